"""Linear networks, in which the quantities of Karakida, Akaho and Amari (2019) have closed forms."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from simulate.matrices import ensembles
from simulate.monte_carlo import Block, Point
from simulate.wide import fisher_gram
from theory import fisher, linear_network
from verify.claims.karakida2019 import PAPER, wide_networks
from verify.model import OURS, AnyClaim, Claim, Experiment, Tier

__all__ = ["CLAIMS"]


def linear_edges(block: Block, point: Point) -> Mapping[str, Any]:
    """Largest Fisher eigenvalue after mean subtraction over the trace per unit of width."""
    network = wide_networks.network_of(block, point)
    matrix = fisher_gram.centred(fisher_gram.gram(network, "linear"))[:, 0, 0]
    trace = matrix.diagonal(dim1=1, dim2=2).sum(1)
    return {"ratio": point.width * ensembles.top_eigenvalue(matrix) / trace}


NETWORK = {"weight_variance": 1.3, "bias_variance": 0.3, "depth": 2, "outputs": 1}

EDGES = Experiment(
    id="karakida2019/linear-edge",
    replicate="a linear network with its inputs",
    simulate=linear_edges,
    points=(Point(width=144, samples=96, **NETWORK), Point(width=120, samples=170, **NETWORK)),
    budget=4608,
    seconds=2.0,
    tier=Tier.FULL,
)


def _largest(p: Point) -> float:
    """Over the trace per unit of width, T - 1 times the mean of the eigenvalues that are not zero."""
    size = {"width": p.width, "samples": p.samples, "weight_variance": p.weight_variance}
    mean = fisher.mean_subtracted_largest("linear", depth=p.depth, bias_variance=p.bias_variance, **size)
    return p.width * linear_network.linear_network_largest(**size) / ((p.samples - 1) * mean)


def _edge(ratio: float) -> float:
    return linear_network.linear_network_edge(ratio, weight_variance=1.0) / 2


EDGE_CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="karakida2019/linear-edge",
        entries=("C29",),
        source=f"ours, beside {PAPER}, figure 1 and theorem 3.3",
        passage=OURS,
        statement=r"\mathbb{E}\,\frac{M \bar\lambda_{\max}}{\mathrm{Tr}\,\bar F} = "
        r"\frac12 \big(e + \mu\, s\, (T - 1)^{-2/3}\big),\quad "
        r"e = \min_w a\,(1 - \gamma + \gamma\, a w),\ a = 1 + \frac1w + \frac1{1 - w},\ "
        r"\gamma = \frac{M}{T - 1} \quad (\phi(x) = x,\ L = 2,\ C = 1,\ \alpha_l = 1)",
        says="For linear networks of two layers with mean subtraction, the largest Fisher eigenvalue over "
        "the trace lies at a derived random-matrix edge with its Tracy-Widom shift.",
        experiment=EDGES,
        score="ratio",
        predict=_largest,
        margin=0.01,
        margin_reason="at most 1 % for random matrices; what is beyond the Tracy-Widom mean falls as 1/M",
        rivals={
            "edge without the Tracy-Widom mean": lambda p: _edge(p.width / (p.samples - 1)),
            "equal eigenvalues of the population": lambda p: (1 + math.sqrt(p.width / p.samples)) ** 2,
            "largest of the population times that edge": lambda p: (
                2.5 * (1 + math.sqrt(p.width / p.samples)) ** 2
            ),
            "rho for 1/rho": lambda p: _edge(p.samples / p.width),
            "lower bound with c1": lambda p: p.width / p.samples + 5 / 4,
        },
        quantity="largest eigenvalue over the trace per unit of width, linear network",
    ),
)


# --- closed forms --------------------------------------------------------------------------------------------


def _by_quadrature(gamma: float, share: float) -> tuple[float, float, float]:
    """Minimum of Silverstein's function, where it lies, and the mean of (t/(a - t))^3 there.

    The population t is averaged over the Marchenko-Pastur law of the width ratio `share`.
    """
    from scipy.optimize import minimize_scalar

    angles = (np.arange(4000) + 0.5) * np.pi / 4000
    y = 1 + share + 2 * math.sqrt(share) * np.cos(angles)
    weights = 2 * share * np.sin(angles) ** 2 / y * (1 / 4000)
    population = np.append(1 + y, 1.0)
    masses = np.append(weights, 1 - weights.sum())

    def place(log_distance: float) -> float:
        return 1 + (1 + math.sqrt(share)) ** 2 + math.exp(log_distance)

    def inverse(log_distance: float) -> float:
        a = place(log_distance)
        return a + gamma * a * float(masses @ (population / (a - population)))

    best: Any = minimize_scalar(inverse, bounds=(-6.0, 6.0), method="bounded", options={"xatol": 1e-7})
    a = place(best.x)
    return best.fun, a, float(masses @ (population / (a - population)) ** 3)


IDENTITIES: tuple[AnyClaim, ...] = ()

CLAIMS: tuple[AnyClaim, ...] = (*EDGE_CLAIMS, *IDENTITIES)
