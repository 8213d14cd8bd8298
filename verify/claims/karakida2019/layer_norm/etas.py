"""Karakida, Akaho and Amari (2019), layer normalisation: expectations of the etas, and how they scatter."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from simulate.monte_carlo import Block, Point
from simulate.wide import layer_normed
from theory.fisher import layer_normalisation
from verify.claims.karakida2019 import PAPER
from verify.claims.karakida2019.wide_networks import network_of, setting
from verify.model import (
    OURS,
    AnyClaim,
    Claim,
    ExactProperty,
    Experiment,
    Kind,
    NoTheory,
    Passage,
    Standing,
)
from verify.model.domains import Between

__all__ = ["CLAIMS"]

# --- averages of the output variances ------------------------------------------------------------------------


def output_variances(block: Block, point: Point) -> Mapping[str, Any]:
    """The first eta."""
    signals = layer_normed.layer_normed_signals(network_of(block, point), point.activation)
    return {"eta1": layer_normed.etas(signals)["eta1"]}


VARIANCES = Experiment(
    id="karakida2019/layer-norm-variances",
    replicate="one network with its inputs",
    simulate=output_variances,
    points=(
        Point(
            activation="erf", weight_variance=0.8, bias_variance=2.1, depth=3, outputs=40, samples=5, width=50
        ),
        Point(
            activation="relu",
            weight_variance=1.7,
            bias_variance=0.7,
            depth=2,
            outputs=15,
            samples=40,
            width=90,
        ),
    ),
    budget=32768,
    seconds=1.4,
)


def etas_by_width(block: Block, point: Point) -> Mapping[str, Any]:
    """The third eta of one network at each width."""
    import torch

    networks = (network_of(block, point, width=width) for width in point.widths)
    found = [layer_normed.layer_normed_signals(network, point.activation) for network in networks]
    return {"eta3": torch.stack([layer_normed.etas(signals)["eta3"] for signals in found], dim=1)}


WIDTHS = Experiment(
    id="karakida2019/layer-norm-etas-by-width",
    replicate="one network with its inputs at each width",
    simulate=etas_by_width,
    points=(
        Point(
            activation="tanh",
            weight_variance=1.7,
            bias_variance=0.7,
            depth=3,
            outputs=60,
            samples=5,
            widths=(8, 16, 32, 64, 128),
        ),
    ),
    budget=2048,
    seconds=1.7,
)


@cache
def _expected(
    activation: str, depth: int, samples: int, outputs: int, weight_variance: float, bias_variance: float
) -> layer_normalisation.ExpectedEtas:
    return layer_normalisation.expected_etas(
        activation,
        depth=depth,
        samples=samples,
        outputs=outputs,
        weight_variance=weight_variance,
        bias_variance=bias_variance,
    )


def _etas(p: Any, **changed: Any) -> layer_normalisation.ExpectedEtas:
    return _expected(**setting(p, "samples", "outputs") | changed)


WIDE = "at most 3 % for wide networks; the bias is O(1/M)"

ETA_3 = "root mean square overlap between samples' outputs over their variances"

VARIANCE_CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="karakida2019/layer-norm-eta1",
        entries=("C54",),
        source=f"ours, beside theorem 4.1 of {PAPER}",
        passage=OURS,
        statement=r"\mathbb{E}\,\eta_1 = \frac{C}{(C - 3)\, q^L},\quad q^L = \sigma_w^2 \hat q_t^{L-1} + \sigma_b^2",
        says="In wide networks with more than three outputs, the inverse variance of a sample's outputs has "
        "the expectation of an inverse chi-square variable.",
        experiment=VARIANCES,
        score="eta1",
        predict=lambda p: _etas(p).eta1,
        margin=0.03,
        margin_reason=WIDE,
        rivals={
            "one over the mean variance": lambda p: _etas(p).eta1 * (p.outputs - 3) / (p.outputs - 1),
            "one over q": lambda p: _etas(p).eta1 * (p.outputs - 3) / p.outputs,
            "without biases": lambda p: _etas(p, bias_variance=0.0).eta1,
        },
        quantity="mean inverse variance of the outputs over the samples",
    ),
    Claim(
        id="karakida2019/layer-norm-eta3-by-width",
        entries=("C54",),
        source=f"{PAPER}, theorem 4.1",
        passage=Passage(Standing.AS_STATED, "are constants independent of", "Theorem 4.1"),
        no_theory=NoTheory.CONSTANT,
        statement=r"\mathbb{E}\,\eta_3 \sim M^0",
        says=f"With layer normalisation, the expected {ETA_3} does not depend on the width.",
        experiment=WIDTHS,
        kind=Kind.EXPONENT,
        score="eta3",
        along="widths",
        terms=(1,),
        predict=lambda _: 0.0,
        margin=0.2,
        relative=False,
        margin_reason="the exponents at issue are 0, 1/2 and 1: less than half the way to the nearest",
        rivals={"square root": lambda _: 0.5, "as one over the width": lambda _: -1.0},
        quantity=ETA_3,
    ),
)

# --- expectations in closed form -----------------------------------------------------------------------------


def _mixture(p: Any) -> dict[str, float]:
    """The expectations for the linear network of two layers, as a mixture of independent chi-squares.

    Given a negative binomial k, the squared lengths of two correlated Gaussian vectors are independent and those of
    vectors with 2 k more components, and the squared cosine between them averages (k + 1/2) / (k + a).
    """
    q, a, c = p.weight_variance + p.bias_variance, 0.5 * (p.outputs - 1), p.outputs
    overlap = (p.weight_variance * p.bias_variance / q + p.bias_variance) / q
    x = overlap * overlap
    k = np.arange(20000)
    weights = np.cumprod(np.append(1.0, x * (a + k[:-1]) / (1 + k[:-1]))) * (1 - x) ** a
    pairs = weights / (2 * (1 - x) * (a + k - 1)) ** 2 * (c / q) ** 2
    one, own = c / ((c - 3) * q), c * c / ((c - 3) * (c - 5) * q * q)
    each = {"eta1_squared": pairs.sum(), "eta3_squared": (pairs * (k + 0.5) / (k + a)).sum()}
    squares = {name: own / p.samples + (1 - 1 / p.samples) * float(pair) for name, pair in each.items()}
    return {"eta1": one, "eta2": own, **squares}


def _expectation_difference(
    _: np.random.Generator, p: Point, *, swapped: str = "", samples: int | None = None
) -> float:
    """Largest relative difference of the closed forms and the mixture, `swapped` in place of eta3."""
    found = layer_normalisation.expected_etas(
        "linear",
        depth=2,
        samples=samples or p.samples,
        outputs=p.outputs,
        weight_variance=p.weight_variance,
        bias_variance=p.bias_variance,
    )._asdict()
    found["eta3_squared"] = found[swapped or "eta3_squared"]
    return max(abs(found[name] / value - 1) for name, value in _mixture(p).items())


EXPECTATIONS = ExactProperty(
    id="karakida2019/layer-norm-expected-etas",
    entries=("C51", "C54"),
    source=f"ours, beside theorem 4.1 of {PAPER}",
    passage=OURS,
    statement=r"\frac{\mathbb{E}\, r_{st}^2 \sigma_s^{-2} \sigma_t^{-2}}{(\mathbb{E}\,\eta_1)^2} = \frac1a "
    r"\Big[\tfrac12 F(1, 1; a + 1; x) + \frac{a^2 - \frac52 a + 2}{a + 1}\, x F(2, 2; a + 2; x)\Big],\quad "
    r"a = \frac{C - 1}{2},\ x = \frac{q_{st}^2}{q_t^2}",
    says="For Gaussian outputs, the expectations of the three averages that layer normalisation brings are "
    "hypergeometric functions of the correlation between samples.",
    domain={
        "outputs": Between(6, 40),
        "samples": Between(1, 1000),
        "weight_variance": Between(0.5, 4.0),
        "bias_variance": Between(0.0, 2.0),
    },
    violation=_expectation_difference,
    examples=(
        Point(outputs=7, samples=5, weight_variance=1.7, bias_variance=0.7),
        Point(outputs=23, samples=60, weight_variance=0.8, bias_variance=2.1),
    ),
    tolerance=1e-9,
    tolerance_reason="two exact expressions in float64",
    rivals={
        "eta1 for eta3": lambda rng, p: _expectation_difference(rng, p, swapped="eta1_squared"),
        "one sample": lambda rng, p: _expectation_difference(rng, p, samples=1),
    },
    seconds=0.03,
)

CLAIMS: tuple[AnyClaim, ...] = (*VARIANCE_CLAIMS, EXPECTATIONS)
