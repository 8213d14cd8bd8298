"""Karakida, Akaho and Amari (2019), layer normalisation: limits of infinite width, and how the etas scatter."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from simulate.monte_carlo import Block, Point
from theory import layer_normalisation
from verify.claims.wide_networks import wide_network
from verify.model import AnyClaim, Claim, ExactProperty, Experiment, Kind, Verdict

__all__ = ["CLAIMS"]

PAPER = "Karakida, Akaho and Amari (2019)"

# --- the limit of infinite width -----------------------------------------------------------------------------


def growing_squares(block: Block, point: Point) -> Mapping[str, Any]:
    """Logarithm of Tr F^2 / Tr F over the theory given the etas of each network, at every width."""
    import torch

    return {"ratio": torch.stack([_squares(block, point, width) for width in point.widths], dim=1).log()}


def _squares(block: Block, point: Point, width: int) -> Any:
    import torch

    from simulate import fisher_gram, layer_normed

    network = wide_network(block, point, width=width)
    etas = layer_normed.etas(layer_normed.forward(network, point.activation))
    gram = layer_normed.gram(network, point.activation)
    squares = gram.square().sum((1, 2, 3, 4)) / point.samples**2
    return squares / fisher_gram.trace(gram) / torch.from_numpy(_known(etas, point, width).lower)


def _known(etas: Mapping[str, Any], point: Point, width: int) -> layer_normalisation.LayerNormStatistics:
    return layer_normalisation.layer_norm_statistics(
        point.activation,
        **_setting(point),
        width=width,
        samples=point.samples,
        outputs=point.outputs,
        eta1=etas["eta1"].numpy(),
        eta2=etas["eta2"].numpy(),
        eta3=etas["eta3"].numpy(),
    )


def largest_given_outputs(block: Block, point: Point) -> Mapping[str, Any]:
    """Largest eigenvalue, what the theory makes of the outputs of each network, and its bounds from their etas."""
    import torch

    from simulate import fisher_gram, layer_normed

    network = wide_network(block, point)
    signals = layer_normed.forward(network, point.activation)
    outputs = signals.normalised[-1] / signals.inverses[-1][..., None]
    known = [
        layer_normalisation.layer_norm_largest(point.activation, u, **_setting(point), width=point.width)
        for u in outputs.numpy()
    ]
    bounds = _known(layer_normed.etas(signals), point, point.width)
    values = fisher_gram.eigenvalues(layer_normed.gram(network, point.activation))
    return {
        "largest": values[:, -1],
        "root": torch.tensor(known),
        "lower": torch.from_numpy(bounds.lower),
        "upper": torch.from_numpy(bounds.upper),
    }


def _setting(p: Any) -> dict[str, Any]:
    return {name: getattr(p, name) for name in ("depth", "weight_variance", "bias_variance")}


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
    budget=4608,
    seconds=9.0,
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
    seconds=1.5,
)

TYPICAL = {"eta1": 1.1, "eta2": 2.2, "eta3": 0.9}
"""Medians over networks at this point: of these etas only the first has a mean."""


def _of_squares(p: Any, **changed: float) -> float:
    """What the score would tend to if another formula were right."""
    return math.log(_second_moment(p, **TYPICAL | changed) / _second_moment(p, **TYPICAL))


def _second_moment(p: Any, *, eta1: float, eta2: float, eta3: float) -> float:
    known = layer_normalisation.layer_norm_statistics(
        p.activation,
        **_setting(p),
        width=p.widths[-1],
        samples=p.samples,
        outputs=p.outputs,
        eta1=eta1,
        eta2=eta2,
        eta3=eta3,
    )
    return float(known.second_moment)


SQUARES_ORDER = Claim(
    id="karakida2019/layer-norm-second-moment-order",
    entries=("C51",),
    source=f"ours, beside theorem 4.1 of {PAPER}",
    statement=r"\mathbb{E} \log \frac{\mathrm{Tr}\, F^2}{\mathrm{Tr}\, F} \frac{m_\lambda}{s_\lambda} \sim M^{-1}",
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

LIMITS: tuple[AnyClaim, ...] = (
    Claim(
        id="karakida2019/layer-norm-second-moment",
        entries=("C49", "C51"),
        source=f"{PAPER}, theorem 4.1, eq. (27); the etas are our reading",
        statement=r"\lim_{M \to \infty} \mathbb{E} \log \frac{\mathrm{Tr}\, F^2}{\mathrm{Tr}\, F} "
        r"\frac{m_\lambda}{s_\lambda} = 0,\quad "
        r"s_\lambda = \alpha \Big[\big((C - 3)\, \eta_1^2 + \eta_3^2\big) \kappa_2'^2 "
        r"+ (C - 2) \frac{\eta_2}{T} (\kappa_1'^2 - \kappa_2'^2)\Big]",
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
    ),
    SQUARES_ORDER,
    Claim(
        id="karakida2019/layer-norm-largest",
        entries=("C52",),
        source=f"ours, beside theorem 4.1 of {PAPER}",
        statement=r"\mathbb{E}\,\lambda_{\max} = \frac{\alpha M}{T}\, \lambda_{\max}"
        r"\Big(\kappa_{st}' \frac{P(s) P(t)}{\sigma(s)\, \sigma(t)}\Big)",
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

# --- averages of the output variances ------------------------------------------------------------------------


def output_variances(block: Block, point: Point) -> Mapping[str, Any]:
    """The first eta, and its squared deviation over its expected square."""
    from simulate import layer_normed

    signals = layer_normed.forward(wide_network(block, point), point.activation)
    etas = layer_normed.etas(signals)
    mean = _etas(point).eta1
    return {
        "eta1": etas["eta1"],
        "deviation": (etas["eta1"] / mean - 1).square(),
    }


def small_variances(block: Block, point: Point) -> Mapping[str, Any]:
    """Whether 1/sigma^2 of the first sample exceeds a threshold."""
    from simulate import layer_normed

    signals = layer_normed.forward(wide_network(block, point), point.activation)
    return {"exceeds": (signals.inverses[-1][:, 0].square() > point.threshold).double()}


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
    seconds=3.0,
)

TAIL = Experiment(
    id="karakida2019/layer-norm-tail",
    replicate="one network with its inputs",
    simulate=small_variances,
    points=(
        Point(
            activation="relu",
            weight_variance=1.7,
            bias_variance=0.7,
            depth=2,
            outputs=3,
            samples=4,
            width=70,
            threshold=7.3,
        ),
        Point(
            activation="erf",
            weight_variance=0.8,
            bias_variance=2.1,
            depth=3,
            outputs=5,
            samples=4,
            width=70,
            threshold=1.6,
        ),
    ),
    budget=12288,
    seconds=1.5,
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
    return _expected(p.activation, **{"samples": p.samples, "outputs": p.outputs, **_setting(p), **changed})


def _scatter(p: Any, **changed: Any) -> float:
    e = _etas(p, **changed)
    return e.eta1_squared / e.eta1**2 - 1


def _independent(p: Any) -> float:
    """The relative variance of eta1 if those of different samples were independent."""
    return float(_etas(p).eta2 / _etas(p).eta1 ** 2 - 1) / p.samples


def _exceeds(p: Any, **changed: Any) -> float:
    setting = {**_setting(p), "outputs": p.outputs, **changed}
    value = p.threshold * setting["outputs"] / p.outputs
    return 1 - float(layer_normalisation.inverse_variance_cdf(value, p.activation, **setting))


WIDE = "at most 3 % for wide networks; the bias is O(1/M)"
OF_SQUARE = "of the squared mean of eta1; at most 3 % for wide networks"

VARIANCE_CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="karakida2019/layer-norm-eta1",
        entries=("C54",),
        source=f"ours, beside theorem 4.1 of {PAPER}",
        statement=r"\mathbb{E}\,\eta_1 = \frac{C}{(C - 3)\, q^L},\quad q^L = \sigma_w^2 \hat q_t^{L-1} + \sigma_b^2",
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
        quantity="eta1",
    ),
    Claim(
        id="karakida2019/layer-norm-eta1-scatter",
        entries=("C54",),
        source=f"{PAPER}, theorem 4.1",
        statement=r"\mathbb{E} \Big(\frac{\eta_1}{\mathbb{E}\,\eta_1} - 1\Big)^2 = \frac1T \frac{C - 3}{C - 5} "
        r"+ \frac{T - 1}{T} F\Big(1, 1; \frac{C - 1}{2}; \frac{q_{st}^2}{q_t^2}\Big) - 1",
        experiment=VARIANCES,
        score="deviation",
        predict=_scatter,
        printed=lambda _: 0.0,
        finding="the etas are no constants: at a fixed number of outputs they scatter from network to network, "
        "whatever the width and the number of samples.",
        margin=0.02,
        relative=False,
        margin_reason=OF_SQUARE,
        rivals={"independent samples": _independent},
        quantity="relative variance of eta1",
    ),
    Claim(
        id="karakida2019/layer-norm-tail",
        entries=("C54",),
        source=f"ours, beside theorem 4.1 of {PAPER}",
        statement=r"P(\sigma^{-2} > y) = \gamma\Big(\frac{C - 1}{2}, \frac{C}{2 q^L y}\Big) \Big/ "
        r"\Gamma\Big(\frac{C - 1}{2}\Big)",
        experiment=TAIL,
        kind=Kind.PROPORTION,
        score="exceeds",
        predict=_exceeds,
        margin=0.03,
        relative=False,
        margin_reason="3 % of the networks",
        rivals={
            "C degrees of freedom": lambda p: _exceeds(p, outputs=p.outputs + 1),
            "C - 2 degrees of freedom": lambda p: _exceeds(p, outputs=p.outputs - 1),
            "without biases": lambda p: _exceeds(p, bias_variance=0.0),
        },
        quantity="probability that one over the variance of the outputs exceeds y",
    ),
)

# --- two outputs ---------------------------------------------------------------------------------------------


def two_outputs(block: Block, point: Point) -> Mapping[str, Any]:
    """Largest eigenvalue with a constant in the variances, as libraries have it, and without any normalisation."""
    from simulate import fisher_gram, layer_normed

    network = wide_network(block, point)
    normed = layer_normed.gram(network, point.activation, eps=point.eps)
    plain = fisher_gram.gram(network, point.activation)
    return {
        "largest": fisher_gram.eigenvalues(normed)[:, -1],
        "unnormalised": fisher_gram.eigenvalues(plain)[:, -1],
    }


TWO = Experiment(
    id="karakida2019/layer-norm-two",
    replicate="one network with its inputs",
    simulate=two_outputs,
    points=(
        Point(
            activation="relu",
            weight_variance=1.7,
            bias_variance=0.7,
            depth=3,
            outputs=2,
            samples=90,
            width=40,
            eps=1e-5,
        ),
    ),
    budget=128,
    seconds=0.5,
)

TWO_OUTPUTS = Claim(
    id="karakida2019/layer-norm-two-outputs-in-practice",
    entries=("C53",),
    source=f"ours, beside theorem 4.1 of {PAPER}",
    statement=r"\lambda_{\max} \le \lambda_{\max}(\text{no normalisation}) \quad "
    r"(C = 2,\ \sigma^2 + 10^{-5} \text{ for } \sigma^2)",
    experiment=TWO,
    kind=Kind.NEVER_ABOVE,
    score="largest",
    inputs={"unnormalised": 100.0},
    predict=lambda p: p.unnormalised,
    expected=Verdict.DISAGREES,
    finding="the matrix of two normalised outputs is zero only without the constant that libraries add to the "
    "variance: with it a single sample whose outputs nearly agree makes the sharpness larger than it is without "
    "normalisation.",
    margin=0.05,
    relative=False,
    margin_reason="a violation in 5 % of the networks would be seen",
    numerical=1e-9,
    rivals={"zero": lambda p: 0.0 * p.unnormalised},
    quantity="largest eigenvalue with two normalised outputs",
)

# --- expectations in closed form -----------------------------------------------------------------------------


def _linear_networks() -> Mapping[str, Any]:
    from hypothesis import strategies as st

    return {
        "outputs": st.integers(6, 40),
        "samples": st.integers(1, 1000),
        "weight_variance": st.floats(0.5, 4.0),
        "bias_variance": st.floats(0.0, 2.0),
    }


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
    statement=r"\frac{\mathbb{E}\, r_{st}^2 \sigma_s^{-2} \sigma_t^{-2}}{(\mathbb{E}\,\eta_1)^2} = \frac1a "
    r"\Big[\tfrac12 F(1, 1; a + 1; x) + \frac{a^2 - \frac52 a + 2}{a + 1}\, x F(2, 2; a + 2; x)\Big],\quad "
    r"a = \frac{C - 1}{2},\ x = \frac{q_{st}^2}{q_t^2}",
    strategies=_linear_networks,
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
    seconds=0.5,
)

CLAIMS: tuple[AnyClaim, ...] = (*LIMITS, *VARIANCE_CLAIMS, EXPECTATIONS, TWO_OUTPUTS)
