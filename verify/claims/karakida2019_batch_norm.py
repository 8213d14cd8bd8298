"""Karakida, Akaho and Amari (2019), Theorem 3.4: normalised hidden layers, their gradients and moments."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from simulate.monte_carlo import Block, Point
from theory import middle_normalisation
from theory.activations import named
from verify.model import (
    AnyClaim,
    Claim,
    ExactProperty,
    Experiment,
    Identity,
    StatisticalProperty,
)

__all__ = ["CLAIMS", "OWN", "THEOREM", "eq_22", "normed_network", "sizes"]

PAPER = "Karakida, Akaho and Amari (2019)"
THEOREM = f"{PAPER}, theorem 3.4, eq. (22)"
OWN = f"ours, beside theorem 3.4 of {PAPER}"

WEIGHTS = {"weight_variance": 1.7, "bias_variance": 0.4}
"""Neither matters, which is a claim below."""


def normed_network(block: Block, *, widths: tuple[int, ...], samples: int) -> Any:
    """Networks whose hidden layers are to be normalised."""
    from simulate import signals

    return signals.wide_network(block, widths=widths, samples=samples, **WEIGHTS)


def _moments(p: Point) -> middle_normalisation.BatchNormMoments:
    return middle_normalisation.batch_norm_moments(p.activation, samples=p.samples)


@cache
def _sphere(activation: str, samples: int) -> middle_normalisation.BatchNormMoments:
    """For any number of samples: averages over a sphere, some milliseconds each."""
    return middle_normalisation.batch_norm_moments(activation, samples=samples, finite_samples=True)


def _shared(p: Point) -> float:
    return _moments(p).q_hat_st


def _own(p: Point) -> float:
    return _moments(p).q_hat_t


# --- gradients -----------------------------------------------------------------------------------------------


def _architectures(*, hidden: int = 0, samples: tuple[int, int] = (2, 6)) -> Callable[[], Mapping[str, Any]]:
    """Networks with at least so many hidden layers, and so many samples."""

    def strategies() -> Mapping[str, Any]:
        from hypothesis import strategies as st

        return {
            "activation": st.sampled_from(["relu", "tanh", "erf", "linear", "sigmoid", "softplus", "gelu"]),
            "widths": st.lists(st.integers(1, 6), min_size=2 + hidden, max_size=5),
            "samples": st.integers(*samples),
        }

    return strategies


def _single(rng: np.random.Generator, point: Point) -> Any:
    return normed_network(Block((rng,)), widths=point.widths, samples=point.samples)


def _jacobian(network: Any, activation: str, *, held: tuple[str, ...] = ()) -> tuple[Any, Any]:
    """Derivatives (C, T, P) of one network by weights and by biases, each of a list of one per layer.

    Automatic differentiation through the normalisation, or with means or deviations held fixed.
    """
    import torch

    from simulate import activations

    phi = activations.named(activation).function
    x = network.inputs[0]

    def outputs(weights: list[torch.Tensor], biases: list[torch.Tensor]) -> torch.Tensor:
        h = x
        for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
            u = h @ weight.mT + bias
            mean = u.mean(0)
            centred = u - (mean.detach() if "mean" in held else mean)
            deviation = centred.square().mean(0).sqrt()
            h = phi(centred / (deviation.detach() if "deviation" in held else deviation))
        return (h @ weights[-1].mT + biases[-1]).T

    parameters = [w[0] for w in network.weights], [b[0] for b in network.biases]
    by_weights, by_biases = torch.func.jacrev(outputs, argnums=(0, 1))(*parameters)
    return [j.flatten(2) for j in by_weights], [j.flatten(2) for j in by_biases]


def _gram_difference(rng: np.random.Generator, point: Point, held: tuple[str, ...] = ()) -> float:
    """Largest difference of the closed Gram matrix and J J' by automatic differentiation, relative."""
    import torch

    from simulate import batch_normed

    network = _single(rng, point)
    flat = torch.cat([part for group in _jacobian(network, point.activation, held=held) for part in group], 2)
    expected = torch.einsum("ksp,mtp->kmst", flat, flat)
    found = batch_normed.gram(network, point.activation)[0]
    return float((found - expected).abs().max() / found.abs().max())


def _bias_gradients(rng: np.random.Generator, point: Point, *, last: bool = False, **options: Any) -> float:
    """Largest derivative by a bias of the hidden layers, over the largest of all."""
    weights, biases = _jacobian(_single(rng, point), point.activation, **options)
    largest = max(float(j.abs().max()) for j in (*weights, *biases))
    return max(float(j.abs().max()) for j in (biases if last else biases[:-1])) / largest


def _moved(
    rng: np.random.Generator, point: Point, *, layers: int | None = None, normalised: bool = True
) -> float:
    """Change of the Gram matrix when biases are drawn anew and the weights of `layers` layers are multiplied."""
    from simulate import batch_normed, fisher_gram, signals

    network = _single(rng, point)
    gram = batch_normed.gram if normalised else fisher_gram.gram
    changed = signals.WideNetwork(
        weights=tuple(2.7 * w if layers is None or i < layers else w for i, w in enumerate(network.weights)),
        biases=tuple(b + float(rng.normal()) for b in network.biases),
        inputs=network.inputs,
    )
    before, after = gram(network, point.activation), gram(changed, point.activation)
    return float((after - before).abs().max() / before.abs().max())


def _two_samples(rng: np.random.Generator, point: Point) -> float:
    """Largest difference of the Gram matrix and what the last layer contributes, relative."""
    import torch

    from simulate import batch_normed

    network = _single(rng, point)
    h = batch_normed.forward(network, point.activation).activations[-1][0]
    found = batch_normed.gram(network, point.activation)[0]
    expected = torch.eye(len(found), dtype=h.dtype)[:, :, None, None] * (h @ h.mT + 1)
    return float((found - expected).abs().max() / expected.abs().max())


def _last_moment(network: Any, name: str) -> float:
    """A second moment of the activations of the last hidden layer, of ReLU."""
    from simulate import batch_normed

    return float(batch_normed.measured_moments(batch_normed.forward(network, "relu"))[name][0, -1])


def _mirrored(rng: np.random.Generator, point: Point, name: str = "q_hat_t", total: float = 1.0) -> float:
    """A moment summed over a network and the one with the signs of its last hidden layer changed."""
    from simulate import signals

    network = _single(rng, point)
    signs = [1.0] * (network.depth - 2) + [-1.0, 1.0]
    mirror = signals.WideNetwork(
        weights=tuple(s * w for s, w in zip(signs, network.weights, strict=True)),
        biases=tuple(s * b for s, b in zip(signs, network.biases, strict=True)),
        inputs=network.inputs,
    )
    return abs(_last_moment(network, name) + _last_moment(mirror, name) - total)


def _one_half(rng: np.random.Generator, point: Point) -> float:
    return abs(_last_moment(_single(rng, point), "q_hat_t") - 0.5)


def two_normalised_samples(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Moments of the activations of two samples, and what they should be."""
    network = _single(rng, point)
    return {
        "measured": np.array([_last_moment(network, name) for name in ("q_hat_t", "q_hat_st")]),
        "theory": np.array(middle_normalisation.batch_norm_moments("relu", samples=2)),
        "positive": np.array([0.5, 1 / (2 * math.pi)]),
        "uncorrelated": np.array([0.5, 0.25]),
    }


DEEP = Point(activation="tanh", widths=(4, 6, 5, 3), samples=5)
SHALLOW = Point(activation="softplus", widths=(3, 5, 2), samples=4)
EXACT = "an exact identity in float64; the derivative amplifies rounding where a deviation is small"

GRADIENT_CLAIMS: tuple[AnyClaim, ...] = (
    ExactProperty(
        id="karakida2019/batch-norm-gradients",
        entries=("C37",),
        source=f"{PAPER}, eqs. (20) and (21)",
        statement=r"\frac{\partial}{\partial u(s)} = \frac{1}{\sigma} \Big(v(s) - \tfrac1T \sum_t v(t) "
        r"- \bar u(s) \tfrac1T \sum_t \bar u(t)\, v(t)\Big),\quad v = \frac{\partial}{\partial \bar u}",
        strategies=_architectures(),
        violation=_gram_difference,
        examples=(DEEP, SHALLOW, Point(activation="relu", widths=(2, 5, 4, 3, 2), samples=6)),
        tolerance=1e-10,
        tolerance_reason=EXACT,
        rivals={
            "no coupling of samples": lambda rng, p: _gram_difference(rng, p, ("mean", "deviation")),
            "deviation held fixed": lambda rng, p: _gram_difference(rng, p, ("deviation",)),
            "mean held fixed": lambda rng, p: _gram_difference(rng, p, ("mean",)),
        },
        seconds=2.0,
    ),
    ExactProperty(
        id="karakida2019/batch-norm-biases",
        entries=("C37",),
        source=OWN,
        statement=r"\frac{\partial f_k(s)}{\partial b^l} = 0,\quad l < L",
        strategies=_architectures(hidden=1),
        violation=_bias_gradients,
        examples=(DEEP, SHALLOW),
        tolerance=1e-10,
        tolerance_reason=EXACT,
        rivals={
            "for l = L too": lambda rng, p: _bias_gradients(rng, p, last=True),
            "with the mean held fixed": lambda rng, p: _bias_gradients(rng, p, held=("mean",)),
        },
        seconds=1.0,
    ),
    ExactProperty(
        id="karakida2019/batch-norm-variances",
        entries=("C37", "C38"),
        source=OWN,
        statement=r"K(c W, b + b') = K(W, b) \text{ for one } c > 0 \text{ in all layers and any } b'"
        r"\text{: neither } \sigma_w \text{ nor } \sigma_b \text{ matters}",
        strategies=_architectures(),
        violation=_moved,
        examples=(DEEP, SHALLOW),
        tolerance=1e-10,
        tolerance_reason=EXACT,
        rivals={
            "a factor of one layer": lambda rng, p: _moved(rng, p, layers=1),
            "without normalisation": lambda rng, p: _moved(rng, p, normalised=False),
        },
        seconds=1.0,
    ),
    ExactProperty(
        id="karakida2019/batch-norm-two-samples",
        entries=("C37", "C39"),
        source=OWN,
        statement=r"T = 2:\quad K_{km} = \delta_{km} (h^{L-1} h^{L-1\top} + \mathbf 1 \mathbf 1^\top)",
        strategies=_architectures(samples=(2, 2)),
        violation=_two_samples,
        examples=(DEEP | {"samples": 2}, SHALLOW | {"samples": 2}),
        tolerance=1e-10,
        tolerance_reason=EXACT,
        rivals={"T = 3": lambda rng, p: _two_samples(rng, p | {"samples": 3})},
        seconds=1.0,
    ),
    ExactProperty(
        id="karakida2019/batch-norm-mirror",
        entries=("C39",),
        source=OWN,
        statement=r"\hat q_t(W^{L-1}, b^{L-1}) + \hat q_t(-W^{L-1}, -b^{L-1}) = 1 "
        r"\text{ for ReLU, hence } \mathbb{E}\,\hat q_t = \tfrac12 \text{ at any } M, T",
        strategies=_architectures(hidden=1),
        violation=_mirrored,
        examples=(DEEP, SHALLOW),
        tolerance=1e-12,
        tolerance_reason="an exact identity in float64",
        rivals={
            "on every network": _one_half,
            "for the product at two samples": lambda rng, p: _mirrored(rng, p, "q_hat_st", 2 * _shared(p)),
        },
        seconds=1.0,
    ),
    Identity(
        id="karakida2019/batch-norm-vanishing-covariance",
        entries=("C39",),
        source=f"{PAPER}, section 3.3, below eq. (22)",
        statement=r"T = 2:\quad \hat q_{t,BN} = \tfrac12,\ \hat q_{st,BN} = 0 \text{ for ReLU, on every network}",
        routes=two_normalised_samples,
        points=(Point(widths=(5, 7, 9, 3), samples=2),),
        measured="measured",
        theory="theory",
        printed="positive",
        finding="as our copy reads, both moments are positive constants, which for the one of two different samples "
        "could only be 1 / (2 pi), its value for many of them. By the formula given there for ReLU it depends on T and "
        "is 0 at T = 2, where the bound rests on the other one alone.",
        rivals=("uncorrelated",),
        tolerance=1e-12,
        tolerance_reason="two samples are normalised to -1 and 1, of which ReLU keeps one",
        seconds=0.1,
    ),
)


# --- activations of the last hidden layer --------------------------------------------------------------------


def normed_activations(block: Block, point: Point) -> Mapping[str, Any]:
    """Second moments of the activations of the last hidden layer, and the squared length of their sample mean."""
    from simulate import batch_normed

    signals = batch_normed.forward(
        normed_network(block, widths=(*point.layers, 1), samples=point.samples), point.activation
    )
    found = batch_normed.measured_moments(signals)
    return {
        "own": found["q_hat_t"][:, -1],
        "shared": found["q_hat_st"][:, -1],
        "rayleigh": batch_normed.last_layer_rayleigh(signals),
    }


LAST = (120, 160, 480)
"""Inputs and hidden layers: the moments of the last one scatter less if it is wide."""

RELU = Experiment(
    id="karakida2019/batch-norm-relu",
    replicate="one network with its inputs",
    simulate=normed_activations,
    points=tuple(Point(activation="relu", layers=LAST, samples=samples) for samples in (3, 4, 8, 50)),
    budget=2048,
    seconds=0.5,
)

WIDE = Experiment(
    id="karakida2019/batch-norm-bound",
    replicate="one network with its inputs",
    simulate=normed_activations,
    points=tuple(
        Point(activation=activation, layers=(180, 240, 300), samples=samples)
        for activation, samples in (("relu", 5), ("relu", 190), ("softplus", 7), ("sigmoid", 23))
    ),
    budget=2048,
    seconds=0.5,
)

FEW = Experiment(
    id="karakida2019/batch-norm-few-samples",
    replicate="one network with its inputs",
    simulate=normed_activations,
    points=tuple(
        Point(activation=activation, layers=(21, 35), samples=samples)
        for activation, samples in (("tanh", 4), ("erf", 5))
    ),
    budget=4096,
    seconds=0.3,
)


def _kernel(correlation: float) -> float:
    """Arc-cosine kernel, 1 at correlation 1."""
    root = math.sqrt(max(1 - correlation**2, 0.0))
    return (root + correlation * (math.pi - math.acos(correlation))) / math.pi


def sizes(p: Point) -> dict[str, Any]:
    """M is the number of inputs."""
    return {"width": p.layers[0], "samples": p.samples, "width_ratio": p.layers[-1] / p.layers[0]}


def eq_22(p: Point, *, own: float = 1.0, shared: float = 1.0, ratio: float = 1.0) -> float:
    """Eq. (22) with factors on its parts."""
    m, t = _moments(p), p.samples
    return ratio * p.layers[-1] * (shared * (t - 1) / t * m.q_hat_st + own * m.q_hat_t / t)


WIDTH_BIAS = "the bias is O(1/M), half a per cent at these widths, less for fewer samples"

ACTIVATION_CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="karakida2019/batch-norm-variance",
        entries=("C39",),
        source=f"{PAPER}, section 3.3",
        statement=r"\hat q_{t,BN} = \tfrac12 \text{ for ReLU}",
        experiment=RELU,
        score="own",
        predict=_own,
        margin=0.01,
        margin_reason="exact in expectation at any size",
        rivals={
            "without centring": lambda p: 0.5 * p.samples / (p.samples - 1),
            "kernel at correlation 0": lambda _: _kernel(0.0) / 2,
        },
        quantity="mean square of the activations",
        axis="samples",
    ),
    Claim(
        id="karakida2019/batch-norm-covariance",
        entries=("C39", "C40"),
        source=f"{PAPER}, section 3.3",
        statement=r"\hat q_{st,BN} = \tfrac12 A\big(-\tfrac{1}{T-1}\big) \text{ for ReLU},\quad "
        r"A(c) = \tfrac1\pi \big(\sqrt{1 - c^2} + c\, (\pi - \arccos c)\big)",
        experiment=RELU,
        score="shared",
        predict=_shared,
        margin=0.015,
        margin_reason=WIDTH_BIAS,
        rivals={
            "correlation 0": lambda _: _kernel(0.0) / 2,
            "correlation -1/T": lambda p: _kernel(-1 / p.samples) / 2,
            "correlation 1/(T - 1)": lambda p: _kernel(1 / (p.samples - 1)) / 2,
            "kernel without 1/pi": lambda p: math.pi * _shared(p),
            "kernel without 1/2": lambda p: 2 * _shared(p),
        },
        quantity="mean product of the activations of two samples",
        axis="samples",
    ),
    Claim(
        id="karakida2019/batch-norm-bound",
        entries=("C38",),
        source=THEOREM + ", the Rayleigh quotient in its proof",
        statement=r"\mathbb{E}\,\tfrac{1}{T^2} \mathbf 1^\top h^{L-1} h^{L-1\top} \mathbf 1 = "
        r"\alpha_{L-1} M \Big(\frac{T-1}{T} \hat q_{st,BN} + \frac1T \hat q_{t,BN}\Big)",
        experiment=WIDE,
        score="rayleigh",
        predict=lambda p: middle_normalisation.batch_norm_bound(p.activation, **sizes(p)),
        margin=0.01,
        margin_reason=WIDTH_BIAS,
        rivals={
            "without the variances": lambda p: eq_22(p, own=0.0),
            "no (T - 1)/T": lambda p: eq_22(p, shared=p.samples / (p.samples - 1)),
            "variances not over T": lambda p: eq_22(p, own=p.samples),
            "no alpha": lambda p: eq_22(p, ratio=p.layers[0] / p.layers[-1]),
            "independent samples": lambda p: eq_22(p | {"samples": 10**9}),
        },
        quantity="Rayleigh quotient of the last layer at equal weights",
        axis="samples",
    ),
    Claim(
        id="karakida2019/batch-norm-sphere-variance",
        entries=("C39", "C41"),
        source=OWN,
        statement=r"\mathbb{E}\,\hat q_t^1 = \mathbb{E}\,\phi(z_1)^2,\quad z \text{ uniform on }"
        r" \{z \in \mathbb{R}^T: |z|^2 = T,\ z \perp \mathbf 1\}\text{, at any width}",
        experiment=FEW,
        score="own",
        predict=lambda p: _sphere(p.activation, p.samples).q_hat_t,
        margin=0.01,
        margin_reason="exact in expectation",
        rivals={"Gaussian": _own},
        quantity="mean square of the activations",
        axis="samples",
    ),
    Claim(
        id="karakida2019/batch-norm-sphere-covariance",
        entries=("C39", "C41"),
        source=OWN,
        statement=r"\mathbb{E}\,\hat q_{st}^1 = \mathbb{E}\,\phi(z_1) \phi(z_2),\quad z \text{ uniform on }"
        r" \{z \in \mathbb{R}^T: |z|^2 = T,\ z \perp \mathbf 1\}\text{, at any width}",
        experiment=FEW,
        score="shared",
        predict=lambda p: _sphere(p.activation, p.samples).q_hat_st,
        margin=0.03,
        margin_reason="exact in expectation; the moment is small against its scatter",
        rivals={"Gaussian": _shared},
        quantity="mean product of the activations of two samples",
        axis="samples",
    ),
)

# --- the condition for growth --------------------------------------------------------------------------------


def squared_mean(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Eq. (22) over M for very many samples, beside Gaussian averages, of several activations."""
    phis = [named(name) for name in point.activations]
    z = np.linspace(-12.0, 12.0, 2 * int(rng.integers(10**5, 2 * 10**5)) + 1)  # whatever the step
    density = np.exp(-(z**2) / 2) * (z[1] - z[0]) / math.sqrt(2 * math.pi)

    def averages(functions: Sequence[Callable[[Any], Any]], inner: int, outer: int) -> Any:
        return np.array([(density @ f(z) ** inner) ** outer for f in functions])

    bounds = [
        middle_normalisation.batch_norm_bound(name, width=1, samples=10**13) for name in point.activations
    ]
    functions, slopes = [phi.function for phi in phis], [phi.derivative for phi in phis]
    return {
        "bound": np.array(bounds),
        "squared mean": averages(functions, 1, 2),
        "mean square": averages(functions, 2, 1),
        "squared mean slope": averages(slopes, 1, 2),
    }


def _property_prediction(p: Point) -> float:
    return middle_normalisation.batch_norm_bound(
        p.activation, width=p.widths[-1], samples=p.samples, finite_samples=True
    )


def one_normed_layer(block: Block, point: Point) -> Mapping[str, Any]:
    """Rayleigh quotient of the block of the last layer, one hidden layer."""
    from simulate import batch_normed

    network = normed_network(block, widths=(*point.widths, 1), samples=point.samples)
    return {"rayleigh": batch_normed.last_layer_rayleigh(batch_normed.forward(network, point.activation))}


def _one_hidden_layer() -> Mapping[str, Any]:
    from hypothesis import strategies as st

    return {
        "activation": st.sampled_from(["relu", "sigmoid", "softplus", "gelu", "leaky_relu"]),
        "widths": st.tuples(st.integers(3, 40), st.integers(30, 90)),
        "samples": st.integers(3, 24),
    }


CONDITION_CLAIMS: tuple[AnyClaim, ...] = (
    Identity(
        id="karakida2019/batch-norm-condition",
        entries=("C38", "C41"),
        source=OWN,
        statement=r"\lim_{T \to \infty} \Big(\frac{T-1}{T} \hat q_{st,BN} + \frac1T \hat q_{t,BN}\Big) = "
        r"\Big(\int Dz\, \phi(z)\Big)^2\text{: } \tfrac{1}{2\pi} \text{ for ReLU, } 0 \text{ for odd } \phi",
        routes=squared_mean,
        points=(
            Point(activations=("relu", "leaky_relu", "sigmoid", "softplus", "gelu", "tanh", "erf", "linear")),
        ),
        measured="bound",
        theory="squared mean",
        tolerance=1e-8,
        tolerance_reason="trapezoidal rule with steps of 1e-4 across the kink of ReLU: an error of 1e-9",
        rivals=("mean square", "squared mean slope"),
        seconds=0.1,
    ),
    StatisticalProperty(
        id="karakida2019/batch-norm-any-width",
        entries=("C38", "C39"),
        source=OWN,
        statement=r"L = 2:\quad \mathbb{E}\,\tfrac{1}{T^2} \mathbf 1^\top h h^\top \mathbf 1 = "
        r"M_1 \Big(\frac{T-1}{T} \hat q_{st} + \frac1T \hat q_t\Big)\text{, averages over the sphere, at any width}",
        strategies=_one_hidden_layer,
        simulate=one_normed_layer,
        replicate="one network with its inputs",
        examples=(
            Point(activation="gelu", widths=(3, 60), samples=4),
            Point(activation="relu", widths=(7, 45), samples=5),
            Point(activation="sigmoid", widths=(5, 50), samples=4),
        ),
        score="rayleigh",
        predict=_property_prediction,
        margin=0.03,
        margin_reason="exact in expectation; at most 3 %",
        rivals={
            "Gaussian": lambda p: middle_normalisation.batch_norm_bound(
                p.activation, width=p.widths[-1], samples=p.samples
            ),
            "very many samples": lambda p: middle_normalisation.batch_norm_bound(
                p.activation, width=p.widths[-1], samples=10**9
            ),
        },
        budget=4096,
        seconds=2.0,
    ),
)

CLAIMS: tuple[AnyClaim, ...] = (
    *GRADIENT_CLAIMS,
    *ACTIVATION_CLAIMS,
    *CONDITION_CLAIMS,
)
