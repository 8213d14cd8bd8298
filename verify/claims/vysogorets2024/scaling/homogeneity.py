"""Vysogorets, Dawid and Kempe (2024): what scaled logits are: temperature, homogeneity, biases, zero logits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from simulate import networks
from simulate.monte_carlo import Point
from theory import softmax, zone
from verify.claims.vysogorets2024 import PAPER
from verify.claims.vysogorets2024.scaling.identities import EXACT, drawn, on_both
from verify.model import AnyClaim, Identity, NoTheory, Passage, Standing

__all__ = ["CLAIMS"]

# --- softmax with temperature --------------------------------------------------------------------------------


def heated_softmax(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Probabilities, in fifty digits from shifted or scaled logits, in float64 from plain ones."""
    z, heat, factor = np.array(point.logits), point.temperature, point.alpha**point.depth
    return {
        "p, shifted and scaled": np.stack([p for p, _ in _shifted_and_scaled(point)]),
        "p": np.stack([_float_softmax(z / heat)] * 2),
        "p, times T": np.stack([_float_softmax(z * heat)] * 2),
        "p, scaled at T": np.stack([_float_softmax(z / heat), _float_softmax(factor * z / heat)]),
    }


def heated_gamma(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Their Gamma, likewise."""
    z, heat, factor = np.array(point.logits), point.temperature, point.alpha**point.depth
    return {
        "Gamma from digits": np.array([gamma for _, gamma in _shifted_and_scaled(point)]),
        "Gamma of logits": softmax.gamma_from_logits(
            np.stack([point.shift + z, factor * z]), temperature=[heat, factor * heat]
        ),
        "Gamma, times T": softmax.gamma_from_logits(
            np.stack([point.shift + z, factor * z]), temperature=[1 / heat, 1 / (factor * heat)]
        ),
    }


def _shifted_and_scaled(point: Point) -> tuple[tuple[Any, Any], ...]:
    heat, factor = point.temperature, point.alpha**point.depth
    return (
        _in_digits([point.shift + value for value in point.logits], heat),
        _in_digits([factor * value for value in point.logits], factor * heat),
    )


def _in_digits(logits: list[float], temperature: float) -> tuple[list[float], float]:
    """Eq (1) as it stands, and trace over Frobenius norm of diag(p) - p p', with digits to spare."""
    import mpmath

    heaviest = int(max(abs(value) for value in logits) / temperature)
    with mpmath.workdps(2 * len(str(heaviest)) + 2 * int(np.ptp(logits) / temperature) + 50):
        powers = [mpmath.exp(mpmath.mpf(value) / mpmath.mpf(temperature)) for value in logits]
        p = [power / mpmath.fsum(powers) for power in powers]
        entries = [[a * ((i == j) - b) for j, b in enumerate(p)] for i, a in enumerate(p)]
        trace = mpmath.fsum(row[i] for i, row in enumerate(entries))
        norm = mpmath.sqrt(mpmath.fsum(e**2 for row in entries for e in row))
        return [float(value) for value in p], float(trace / norm)


def _float_softmax(z: Any) -> Any:
    import torch

    return torch.from_numpy(z).softmax(-1).numpy()


# --- homogeneity and the number of weights ------------------------------------------------------------------


def homogeneity(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Logits of scaled weights, and powers of the factor times the logits as drawn."""
    import torch

    case = drawn(rng, point)
    with torch.no_grad():
        z, scaled, negative = (case.scaled(a)(case.x) for a in (1.0, point.alpha, -point.alpha))
    return {
        "logits of scaled weights": scaled,
        "alpha^L z": float(zone.homogeneous_factor(point.alpha, depth=case.depth)) * z,
        "alpha^(L-1) z": point.alpha ** (case.depth - 1) * z,
        "for negative factors too": (-1) ** case.depth * negative,
    }


def _homogeneity(
    name: str, alphas: tuple[float, ...], tolerance: float, reason: str, *, says: str
) -> Identity:
    return Identity(
        id=f"vysogorets2024/{name}",
        entries=("A2",),
        source=f"{PAPER}, section 2",
        statement=r"z(\alpha\theta) = \alpha^L z(\theta) \quad (\alpha > 0)",
        says=says,
        routes=homogeneity,
        points=on_both(*({"alpha": alpha} for alpha in alphas), samples=8),
        tolerance=tolerance,
        tolerance_reason=reason,
        seconds=0.2,
        data="digits",
        quantity="logits",
    )


def weight_counts(rng: np.random.Generator, _: Point) -> Mapping[str, Any]:
    """Weights of the LeNet-5 that is built, three channels and ten classes, and what the statement says."""
    layers = {
        "convolutions": ((3, 6, 25), (6, 16, 25)),
        "matrices": ((400, 120, 1), (120, 84, 1), (84, 10, 1)),
    }
    counts = [i * out * taps for each in layers.values() for i, out, taps in each]
    units = sum(out for each in layers.values() for _, out, _ in each)
    return {
        "built": sum(p.numel() for p in networks.LeNet5(rng=rng).parameters()),
        "61,770": 61_770,
        "61,170": 61_170,
        "with biases": sum(counts) + units,
        "of one channel": sum(counts) - 2 * 6 * 25,
    }


# --- zero logits, biases, other activations ------------------------------------------------------------------


class _Biased(NamedTuple):
    """Logits of LeNet-300-100 with biases, as functions of the factor of all its parameters and of its first bias."""

    scaled: Callable[[float], Any]
    after_the_first: Callable[[Any], Any]
    shifts: list[Any]
    depth: int


def _biased(rng: np.random.Generator, point: Point) -> _Biased:
    import torch
    from torch import nn

    case = drawn(rng, point)
    weights = [layer.weight.detach() for layer in case.network.layers]
    shifts = [torch.from_numpy(rng.standard_normal(len(w))) for w in weights]
    whole = networks.Mlp((case.x[0].numel(), *map(len, weights)), bias=True, rng=rng)
    theta = torch.cat([p.flatten() for pair in zip(weights, shifts, strict=True) for p in pair])

    def logits(factor: float) -> Any:
        nn.utils.vector_to_parameters(factor * theta, whole.parameters())
        return whole(case.x).detach()

    def after_the_first(shift: Any) -> Any:
        return networks.mlp_logits(weights[1:], (case.x @ weights[0].T + shift).relu())

    return _Biased(logits, after_the_first, shifts, case.depth)


def biases_at_small_scale(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Logits with all parameters scaled down, beside what is left of the weights."""
    net, a = _biased(rng, point), point.alpha
    plain, last = net.after_the_first(0), net.shifts[-1]
    return {
        "logits / alpha, alpha small": net.scaled(a) / a,
        "last bias": last.expand_as(plain),
        "network without other biases": plain + last,
        "nothing": 0 * plain,
    }


def tanh_remainder(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Logits of LeNet-300-100 with tanh over alpha^L, less those of the product of its matrices, over alpha^2."""
    case, a = drawn(rng, point), point.alpha
    weights = [layer.weight.detach() for layer in case.network.layers]
    linear = networks.mlp_logits(weights, case.x, "linear")
    scaled = networks.mlp_logits([a * w for w in weights], case.x, "tanh")

    def through(h: Any) -> Any:
        return networks.mlp_logits(weights[1:], h, "linear")

    first = case.x @ weights[0].T
    return {
        "remainder / alpha^2": (scaled / float(zone.homogeneous_factor(a, depth=case.depth)) - linear) / a**2,
        "- W .. (W_1 x)^3 / 3": zone.tanh_correction([w.numpy() for w in weights], case.x.numpy()),
        "+ W .. (W_1 x)^3 / 3": through(first**3) / 3,
        "remainder of order alpha": -through(first**3) / (3 * a),
        "cubes of the logits": -(linear**3) / 3,
    }


SOFTMAX_POINTS = (
    Point(logits=(0.0, -1.0, -2.0), shift=1e6, temperature=1.0, alpha=1.7, depth=3),
    Point(logits=(0.625, -1.375, 2.25, -0.5), shift=1e6, temperature=0.3, alpha=0.6, depth=5),
    Point(logits=(0.0625, 0.0, 0.046875), shift=-1e6, temperature=1e-3, alpha=0.25, depth=4),
    Point(logits=(350.5, -800.25, 1200.75, 12.5, 3.0), shift=1e6, temperature=1e3, alpha=2.5, depth=2),
)

BIASED = (Point(network="LeNet-300-100", images="digits", alpha=1e-9, samples=8),)

CLAIMS: tuple[AnyClaim, ...] = (
    Identity(
        id="vysogorets2024/softmax-temperature",
        entries=("A1",),
        source=f"{PAPER}, eq. (1)",
        no_theory=NoTheory.MEASURED,
        statement=r"p_k = \frac{e^{z_k/T}}{\sum_c e^{z_c/T}}: \text{ the same for } z + c \text{ at } T "
        r"\text{ and } \alpha^L z \text{ at } \alpha^L T",
        says="Softmax probabilities do not change when all logits are shifted alike, or when logits and temperature "
        "are scaled alike.",
        routes=heated_softmax,
        points=SOFTMAX_POINTS,
        tolerance=1e-12,
        tolerance_reason="rounding of z / T, which reaches some tens",
        seconds=0.01,
        quantity="probabilities",
    ),
    Identity(
        id="vysogorets2024/gamma-of-shifted-logits",
        entries=("A1",),
        source=f"{PAPER}, eqs. (1) and (2)",
        statement=r"\Gamma_p \text{ of } z + c \text{ at } T \text{ and of } \alpha^L z \text{ at } \alpha^L T, "
        r"\ |c| = 10^6",
        says="The excess of the softmax covariance does not change when all logits are shifted by a large number, or "
        "logits and temperature are scaled alike.",
        routes=heated_gamma,
        points=SOFTMAX_POINTS,
        tolerance=1e-12,
        tolerance_reason="rounding of z / T, which reaches some tens",
        seconds=0.01,
        quantity="excess of the softmax covariance",
    ),
    _homogeneity(
        "homogeneity",
        (0.1, 10.0, 1e-3),
        1e-12,
        EXACT,
        says="Scaling all weights of a bias-free LeNet by a positive factor multiplies its logits by that factor to "
        "the power of the depth.",
    ),
    _homogeneity(
        "homogeneity-to-the-bit",
        (2.0, 0.25),
        1e-30,
        "a power of two moves exponents only, so that nothing is rounded differently",
        says="Scaling all weights of a bias-free LeNet by a power of two multiplies its logits by that factor to the "
        "depth, without rounding.",
    ),
    Identity(
        id="vysogorets2024/parameter-count",
        entries=("A3",),
        source=f"{PAPER}, section 4 and caption of figure 5",
        no_theory=NoTheory.CONSTANT,
        statement=r"P(\text{LeNet-5}) = 450 + 2400 + 48000 + 10080 + 840 = 61770",
        says="A bias-free LeNet-5 for three channels and ten classes has 61,770 weights.",
        reads=r"d = P = \text{61,170}",
        routes=weight_counts,
        points=(Point(channels=3, classes=10),),
        printed="61,170",
        passage=Passage(
            Standing.MISPRINT,
            "quite noteworthy for a 61,170-dimensional space",
            "Section 4 and caption of Figure 5",
        ),
        finding="As our copy reads, 61,170 in both places; LeNet-5 without biases has 61,770 weights for three "
        "channels and ten classes, that of the authors' published code too.",
        tolerance=1e-12,
        tolerance_reason="whole numbers",
        seconds=0.01,
        quantity="number of weights",
    ),
    Identity(
        id="vysogorets2024/biases-at-small-scale",
        entries=("A57",),
        source=f"{PAPER}, section 2",
        no_theory=NoTheory.MEASURED,
        statement=r"\alpha \ll 1:\quad \alpha^{-1} f(\alpha\theta, \alpha b) \to b_L",
        says="As all parameters of LeNet-300-100 are scaled down, only the bias of the last layer is left in the "
        "logits.",
        routes=biases_at_small_scale,
        points=BIASED,
        tolerance=1e-7,
        tolerance_reason="the layer below leaves some units of alpha = 1e-9",
        seconds=0.01,
        data="digits",
        quantity="logits over the scale",
    ),
    Identity(
        id="vysogorets2024/tanh-at-small-scale",
        entries=("A57",),
        source=f"{PAPER}, section 2; the order is ours",
        statement=r"\alpha^{-L} f_{\tanh}(\alpha\theta) = W_L \cdots W_1 x - \tfrac{\alpha^2}{3} W_L \cdots W_2 "
        r"(W_1 x)^3 + O(\alpha^4)",
        says="As its weights are scaled down, a tanh network becomes linear, with a leading correction of second "
        "order in the scale that cubes the first layer's signals.",
        routes=tanh_remainder,
        points=tuple(
            Point(network="LeNet-300-100", images="digits", alpha=alpha, samples=8) for alpha in (3e-4, 1e-4)
        ),
        tolerance=1e-4,
        tolerance_reason="the next order is alpha^2 = 1e-7 times squares of signals, up to a hundred",
        seconds=0.011,
        data="digits",
        quantity="distance from the linear network",
    ),
)
