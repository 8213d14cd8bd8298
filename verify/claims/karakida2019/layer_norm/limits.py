"""Karakida, Akaho and Amari (2019), layer normalisation: limits of infinite width, given the outputs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from simulate.monte_carlo import Block, Point
from simulate.wide import fisher_gram, layer_normed
from theory.fisher import layer_normalisation
from verify.claims.karakida2019 import PAPER
from verify.claims.karakida2019.wide_networks import network_of, setting
from verify.model import OURS, AnyClaim, Claim, Experiment, Kind

__all__ = ["CLAIMS"]


def growing_squares(block: Block, point: Point) -> Mapping[str, Any]:
    """Logarithm of Tr F^2 / Tr F over the theory given the etas of each network, at every width."""
    import torch

    return {"ratio": torch.stack([_squares(block, point, width) for width in point.widths], dim=-1).log()}


def _squares(block: Block, point: Point, width: int) -> Any:
    import torch

    network = network_of(block, point, width=width)
    etas = layer_normed.etas(layer_normed.layer_normed_signals(network, point.activation))
    gram = layer_normed.layer_normed_gram(network, point.activation)
    squares = gram.square().sum((1, 2, 3, 4)) / point.samples**2
    known = _known(etas, point, width)
    moments = torch.from_numpy(known.second_moment / known.mean).to(block.device)
    return squares / fisher_gram.fisher_trace(gram) / moments


def _known(etas: Mapping[str, Any], point: Point, width: int) -> layer_normalisation.LayerNormStatistics:
    return layer_normalisation.layer_norm_statistics(
        **setting(point, "samples", "outputs"),
        width=width,
        eta1=etas["eta1"].cpu().numpy(),
        eta2=etas["eta2"].cpu().numpy(),
        eta3=etas["eta3"].cpu().numpy(),
    )


def largest_given_outputs(block: Block, point: Point) -> Mapping[str, Any]:
    """Largest eigenvalue, what the theory makes of the outputs of each network, and its bounds from their etas."""
    import torch

    network = network_of(block, point)
    signals = layer_normed.layer_normed_signals(network, point.activation)
    outputs = signals.normalised[-1] / signals.inverses[-1][..., None]
    known = [
        layer_normalisation.layer_norm_largest(preactivations=u, **setting(point, "width"))
        for u in outputs.cpu().numpy()
    ]
    bounds = _known(layer_normed.etas(signals), point, point.width)
    values = fisher_gram.fisher_eigenvalues(layer_normed.layer_normed_gram(network, point.activation))
    return {
        "largest": values[:, -1],
        "root": torch.tensor(known, dtype=torch.float64),
        "lower": torch.from_numpy(bounds.lower),
        "upper": torch.from_numpy(bounds.upper),
    }


SQUARES = Experiment(
    id="karakida2019/layer-norm-squares",
    replicate="one network with its inputs at each width",
    simulate=growing_squares,
    points=(
        Point(
            activation="erf",
            weight_variance=1.7,
            bias_variance=1.3,
            depth=3,
            outputs=4,
            samples=6,
            widths=(8, 16, 32, 64, 128),
        ),
    ),
    budget=5376,
    seconds=5.7,
)

LARGEST = Experiment(
    id="karakida2019/layer-norm-largest",
    replicate="one network with its inputs",
    simulate=largest_given_outputs,
    points=(
        Point(
            activation="relu",
            weight_variance=1.7,
            bias_variance=0.7,
            depth=2,
            outputs=3,
            samples=14,
            width=360,
        ),
        Point(
            activation="erf",
            weight_variance=1.7,
            bias_variance=1.3,
            depth=3,
            outputs=4,
            samples=6,
            width=600,
        ),
    ),
    budget=1024,
    seconds=0.82,
)

TYPICAL = {"eta1": 1.1, "eta2": 2.2, "eta3": 0.9}
"""Medians over networks at this point: of these etas only the first has a mean."""


def _of_squares(p: Any, **changed: float) -> float:
    """What the score would tend to if another formula were right."""
    return math.log(_second_moment(p, **TYPICAL | changed) / _second_moment(p, **TYPICAL))


def _second_moment(p: Any, *, eta1: float, eta2: float, eta3: float) -> float:
    known = layer_normalisation.layer_norm_statistics(
        **setting(p, "samples", "outputs"),
        width=p.widths[-1],
        eta1=eta1,
        eta2=eta2,
        eta3=eta3,
    )
    return float(known.second_moment)


SQUARES_ORDER = Claim(
    id="karakida2019/layer-norm-second-moment-order",
    entries=("C51",),
    source=f"ours, beside theorem 4.1 of {PAPER}",
    passage=OURS,
    statement=r"\mathbb{E} \log \frac{\mathrm{Tr}\, F^2}{\mathrm{Tr}\, F} \frac{m_\lambda}{s_\lambda} \sim M^{-1}",
    says="With layer normalisation, the second over the first moment of the Fisher eigenvalues approaches "
    "its limit like one over the width.",
    experiment=SQUARES,
    kind=Kind.EXPONENT,
    score="ratio",
    along="widths",
    terms=(1,),
    offset=lambda _: 0.0,
    predict=lambda _: -1.0,
    margin=0.24,
    relative=False,
    margin_reason="the orders at issue are 1/2, 1 and 2: less than half the way to the nearest",
    rivals={"root of the width": lambda _: -0.5, "square": lambda _: -2.0},
    quantity="logarithm of Tr F^2 / Tr F over its limit",
)
LOGARITHM = "at most 3 % for wide networks; a logarithm, as 1/sigma^2 makes the ratio itself heavy-tailed"

CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="karakida2019/layer-norm-second-moment",
        entries=("C51",),
        source=f"{PAPER}, theorem 4.1, eq. (27); the etas are our reading",
        statement=r"\lim_{M \to \infty} \mathbb{E} \log \frac{\mathrm{Tr}\, F^2}{\mathrm{Tr}\, F} "
        r"\frac{m_\lambda}{s_\lambda} = 0,\quad "
        r"s_\lambda = \alpha \Big[\big((C - 3)\, \eta_1^2 + \eta_3^2\big) \kappa_2'^2 "
        r"+ (C - 2) \frac{\eta_2}{T} (\kappa_1'^2 - \kappa_2'^2)\Big]",
        says="As the width grows, the second over the first moment of the Fisher eigenvalues with layer "
        "normalisation tends to the theorem's value for each network's outputs.",
        experiment=SQUARES,
        kind=Kind.LIMIT,
        score="ratio",
        along="widths",
        terms=(1, 2),
        predict=lambda _: 0.0,
        margin=0.03,
        relative=False,
        order=SQUARES_ORDER,
        margin_reason=LOGARITHM,
        rivals={
            "eta1 for eta3": lambda p: _of_squares(p, eta3=TYPICAL["eta1"]),
            "without eta3": lambda p: _of_squares(p, eta3=1e-9),
            "the square of eta1 for eta2": lambda p: _of_squares(p, eta2=TYPICAL["eta1"] ** 2),
            "without eta2": lambda p: _of_squares(p, eta2=1e-9),
        },
        quantity="logarithm of Tr F^2 / Tr F over its limit",
        logarithm="e",
    ),
    Claim(
        id="karakida2019/layer-norm-largest",
        entries=("C52",),
        source=f"ours, beside theorem 4.1 of {PAPER}",
        passage=OURS,
        statement=r"\mathbb{E}\,\lambda_{\max} = \frac{\alpha M}{T}\, \lambda_{\max}"
        r"\Big(\kappa_{st}' \frac{P(s) P(t)}{\sigma(s)\, \sigma(t)}\Big)",
        says="With layer normalisation, the largest Fisher eigenvalue of a wide network is that of a small "
        "matrix made of the projectors and deviations of its outputs.",
        experiment=LARGEST,
        score="largest",
        inputs={"root": 300.0, "lower": 220.0, "upper": 390.0},
        predict=lambda p: p.root,
        margin=0.03,
        margin_reason="at most 3 % for wide networks; the excess is O(1/M), 1.4 % and 0.9 % at these widths",
        rivals={"lower bound": lambda p: p.lower, "upper bound": lambda p: p.upper},
        quantity="largest eigenvalue with layer normalisation",
    ),
)
