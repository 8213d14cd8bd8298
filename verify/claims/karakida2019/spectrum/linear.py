"""Linear networks, in which the quantities of Karakida, Akaho and Amari (2019) have closed forms."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from simulate.monte_carlo import Block, Point
from theory import fisher, linear_network
from verify.claims.karakida2019 import wide_networks
from verify.claims.karakida2019.wide_networks import PAPER
from verify.model import OURS, AnyClaim, Claim, Experiment, Identity

__all__ = ["CLAIMS"]


def linear_edges(block: Block, point: Point) -> Mapping[str, Any]:
    """Largest Fisher eigenvalue after mean subtraction over the trace per unit of width."""
    from simulate.matrices import ensembles
    from simulate.wide import fisher_gram

    network = wide_networks.wide_network(block, point)
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
    seconds=8.0,
)


def _over_trace(p: Point, largest: float) -> float:
    """The trace per unit of width is (1 - 1/T) alpha (kappa1 - kappa2), here 2 at weight variance 1."""
    return largest / 2 / (1 - 1 / p.samples)


def _largest(p: Point) -> float:
    found = linear_network.linear_network_largest(width=p.width, samples=p.samples, weight_variance=1.0)
    return _over_trace(p, found)


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


def linear_constants(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """c1 and c2 of linear networks by the recursion over their layers, and in closed form."""
    depths = np.array(point.depths, dtype=float)
    found = [
        fisher.fluctuation_constants(
            "linear",
            depth=depth,
            outputs=1,
            weight_variance=point.weight_variance,
            bias_variance=point.bias_variance,
        )
        for depth in point.depths
    ]
    squares = (depths + 1) * (2 * depths + 1) / 6
    s = point.weight_variance
    return {
        "recursion": np.array(found),
        "closed form": np.stack([s ** (depths - 1) * squares, s ** (2 * depths - 2) * depths * squares], -1),
        "at variance 1": np.stack([squares, depths * squares], -1),
        "sum of squares to L - 1": np.stack(
            [
                s ** (depths - 1) * squares,
                s ** (2 * depths - 2) * (depths - 1) * depths * (2 * depths - 1) / 6,
            ],
            -1,
        ),
    }


def linear_edge_by_quadrature(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """The edge as the minimum of Silverstein's function, the population averaged over the Marchenko-Pastur law."""
    from scipy.optimize import minimize_scalar

    first, second = point.width_ratios
    share, gamma = second / first, point.ratio * first
    angles = (np.arange(4000) + 0.5) * np.pi / 4000
    y = 1 + share + 2 * math.sqrt(share) * np.cos(angles)
    weights = 2 * share * np.sin(angles) ** 2 / y * (1 / 4000)
    population = np.append(1 + y, 1.0)
    masses = np.append(weights, 1 - weights.sum())

    def inverse(log_distance: float) -> float:
        a = 1 + (1 + math.sqrt(share)) ** 2 + math.exp(log_distance)
        return a + gamma * a * float(masses @ (population / (a - population)))

    best = minimize_scalar(inverse, bounds=(-6.0, 6.0), method="bounded", options={"xatol": 1e-7})
    top = 1 + (1 + math.sqrt(share)) ** 2
    edge = linear_network.linear_network_edge
    return {
        "quadrature": point.weight_variance * best.fun,
        "closed": edge(point.ratio, weight_variance=point.weight_variance, width_ratios=point.width_ratios),
        "square of the variance": point.weight_variance
        * edge(point.ratio, weight_variance=point.weight_variance, width_ratios=point.width_ratios),
        "equal widths": edge(point.ratio, weight_variance=point.weight_variance),
        "largest of the population": point.weight_variance * top * (1 + math.sqrt(gamma)) ** 2,
    }


IDENTITIES: tuple[AnyClaim, ...] = (
    Identity(
        id="karakida2019/linear-constants",
        entries=("C28",),
        source=f"ours, beside {PAPER}, theorem 3.3",
        passage=OURS,
        statement=r"c_1 = \sigma_w^{2(L-1)} \frac{(L+1)(2L+1)}{6},\quad "
        r"c_2 = \sigma_w^{4(L-1)} \frac{L(L+1)(2L+1)}{6} \quad (\phi(x) = x,\ C = 1,\ \alpha_l = 1)",
        routes=linear_constants,
        points=(
            Point(depths=(2, 3, 5, 8), weight_variance=1.3, bias_variance=0.4),
            Point(depths=(3, 4, 7), weight_variance=0.7, bias_variance=2.3),
        ),
        measured="recursion",
        theory="closed form",
        tolerance=1e-12,
        tolerance_reason="an exact identity in float64",
        rivals=("at variance 1", "sum of squares to L - 1"),
        seconds=0.05,
        quantity="constants of theorem 3.3 of linear networks",
    ),
    Identity(
        id="karakida2019/linear-edge-by-quadrature",
        entries=("C29",),
        source=f"ours, beside {PAPER}, figure 1; the edge is that of Silverstein and Choi (1995)",
        passage=OURS,
        statement=r"\min_{a} a \Big[1 + \gamma \int \frac{t\, dH(t)}{a - t}\Big] = "
        r"\min_w \sigma_w^2\, a\,(1 - \gamma + \gamma\, a w),\quad "
        r"a = 1 + \frac1w + \frac{\alpha_1 / \alpha_0}{1 - w},\quad \gamma = \alpha_0 \rho",
        routes=linear_edge_by_quadrature,
        points=(
            Point(ratio=0.7, weight_variance=1.3, width_ratios=(1.2, 0.8)),
            Point(ratio=1.6, weight_variance=0.6, width_ratios=(0.9, 2.3)),
        ),
        measured="quadrature",
        theory="closed",
        tolerance=1e-8,
        tolerance_reason="a minimum found to 1e-7 is flat to 1e-14; quadrature next to the edge of a square root",
        rivals=("square of the variance", "equal widths", "largest of the population"),
        seconds=0.05,
        quantity="edge of the spectrum of linear networks",
    ),
)

CLAIMS: tuple[AnyClaim, ...] = (*EDGE_CLAIMS, *IDENTITIES)
