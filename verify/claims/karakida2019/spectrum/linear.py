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
from verify.model import OURS, AnyClaim, Claim, Experiment, Identity, Tier

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


def linear_edge_by_quadrature(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """The edge as the minimum of Silverstein's function, the population averaged over the Marchenko-Pastur law."""
    first, second = point.width_ratios
    share, gamma = second / first, point.ratio * first
    lowest, _a, _third = _by_quadrature(gamma, share)
    top = 1 + (1 + math.sqrt(share)) ** 2
    edge = linear_network.linear_network_edge
    return {
        "quadrature": point.weight_variance * lowest,
        "closed form": edge(
            point.ratio, weight_variance=point.weight_variance, width_ratios=point.width_ratios
        ),
        "square of the variance": point.weight_variance
        * edge(point.ratio, weight_variance=point.weight_variance, width_ratios=point.width_ratios),
        "equal widths": edge(point.ratio, weight_variance=point.weight_variance),
        "largest of the population": point.weight_variance * top * (1 + math.sqrt(gamma)) ** 2,
    }


TRACY_WIDOM_MEAN = -1.2065335745820
"""Of the orthogonal ensemble, by numerical evaluation of its Painleve form."""


def linear_spread_by_quadrature(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """What the Tracy-Widom mean adds to the edge, its scale from the third moment of the same population."""
    first, second = point.width_ratios
    rest = point.samples - 1
    gamma = first * point.width / rest
    lowest, a, third = _by_quadrature(gamma, second / first)
    scale = point.weight_variance * TRACY_WIDOM_MEAN * rest ** (-2 / 3)
    largest = linear_network.linear_network_largest(
        width=point.width,
        samples=point.samples,
        weight_variance=point.weight_variance,
        width_ratios=point.width_ratios,
    )
    return {
        "quadrature": scale * a * (1 + gamma * third) ** (1 / 3),
        "closed form": largest / (1 - 1 / point.samples) - point.weight_variance * lowest,
        "no root": scale * a * (1 + gamma * third),
        "without a": scale * (1 + gamma * third) ** (1 / 3),
        "square root": scale * a * (1 + gamma * third) ** (1 / 2),
        "without gamma": scale * a * (1 + third) ** (1 / 3),
    }


IDENTITIES: tuple[AnyClaim, ...] = (
    Identity(
        id="karakida2019/linear-constants",
        entries=("C28",),
        source=f"ours, beside {PAPER}, theorem 3.3",
        passage=OURS,
        statement=r"c_1 = \sigma_w^{2(L-1)} \frac{(L+1)(2L+1)}{6},\quad "
        r"c_2 = \sigma_w^{4(L-1)} \frac{L(L+1)(2L+1)}{6} \quad (\phi(x) = x,\ C = 1,\ \alpha_l = 1)",
        says="For linear networks of equal widths, both constants of the mean-subtraction bounds are "
        "polynomials in the depth times powers of the weight variance.",
        routes=linear_constants,
        points=(
            Point(depths=(2, 3, 5, 8), weight_variance=1.3, bias_variance=0.4),
            Point(depths=(3, 4, 7), weight_variance=0.7, bias_variance=2.3),
        ),
        tolerance=1e-12,
        tolerance_reason="an exact identity in float64",
        seconds=0.01,
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
        says="For linear networks of two layers with mean subtraction, the closed form of the spectral edge "
        "agrees with the general edge equation solved by quadrature.",
        routes=linear_edge_by_quadrature,
        points=(
            Point(ratio=0.7, weight_variance=1.3, width_ratios=(1.2, 0.8)),
            Point(ratio=1.6, weight_variance=0.6, width_ratios=(0.9, 2.3)),
        ),
        tolerance=1e-8,
        tolerance_reason="a minimum found to 1e-7 is flat to 1e-14; quadrature next to the edge of a square root",
        seconds=0.01,
        quantity="edge of the spectrum of linear networks",
    ),
    Identity(
        id="karakida2019/linear-spread-by-quadrature",
        entries=("C29",),
        source=f"ours, beside {PAPER}, figure 1; the scale is that of El Karoui (2007)",
        passage=OURS,
        statement=r"\frac{T \bar\lambda_{\max}}{T - 1} - \sigma_w^2 e = \sigma_w^2\, \mu\, s\, (T - 1)^{-2/3},\quad "
        r"s^3 = a^3 \Big[1 + \gamma \int \Big(\frac{t}{a - t}\Big)^3 dH(t)\Big],\quad "
        r"\gamma = \frac{\alpha_0 M}{T - 1}",
        says="For linear networks of two layers with mean subtraction, the closed form of the Tracy-Widom "
        "shift agrees with the general formula solved by quadrature.",
        routes=linear_spread_by_quadrature,
        points=(
            Point(width=140, samples=96, weight_variance=1.3, width_ratios=(1.2, 0.8)),
            Point(width=70, samples=250, weight_variance=0.6, width_ratios=(0.9, 2.3)),
        ),
        tolerance=1e-6,
        tolerance_reason="the minimum is placed to 1e-7; its third moment next to an edge loses digits",
        seconds=0.01,
        quantity="Tracy-Widom shift of the largest eigenvalue of linear networks",
    ),
)

CLAIMS: tuple[AnyClaim, ...] = (*EDGE_CLAIMS, *IDENTITIES)
