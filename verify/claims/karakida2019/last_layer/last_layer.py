"""Karakida, Akaho and Amari (2019): what holds for every network with mean-subtracted or normalised outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from simulate.monte_carlo import Block, Point
from verify.model import OURS, AnyClaim, ExactProperty, Passage, Standing

__all__ = ["CLAIMS"]

PAPER = "Karakida, Akaho and Amari (2019)"


LAST_LAYERS = ("mean subtraction", "fixed deviation", "batch normalisation")


def _architectures(least: int, most: int) -> Callable[[], Mapping[str, Any]]:
    """Networks whose outputs differ between samples, with so many samples."""

    def strategies() -> Mapping[str, Any]:
        from hypothesis import strategies as st

        return {
            "activation": st.sampled_from(["tanh", "erf", "linear", "sigmoid", "softplus", "gelu"]),
            "widths": st.lists(st.integers(1, 6), min_size=2, max_size=4),
            "samples": st.integers(least, most),
            "weight_variance": st.floats(0.3, 4.0),
            "bias_variance": st.floats(0.0, 2.0),
            "last_layer": st.sampled_from(LAST_LAYERS),
        }

    return strategies


def _examples(*samples: int) -> tuple[Point, ...]:
    setting = Point(activation="tanh", widths=(4, 6, 5, 3), weight_variance=1.7, bias_variance=0.3)
    return tuple(setting | {"samples": t, "last_layer": kind} for t in samples for kind in LAST_LAYERS)


class _Small(NamedTuple):
    """One network, its outputs (C, T) as a function of all parameters in one vector, and that vector.

    A second argument stands in for the inputs (1, T, M).
    """

    network: Any
    outputs: Callable[..., Any]
    theta: Any


def _small(rng: np.random.Generator, point: Point) -> _Small:
    import torch

    from simulate.wide import signals

    network = signals.wide_network(
        Block((rng,)),
        widths=point.widths,
        samples=point.samples,
        weight_variance=point.weight_variance,
        bias_variance=point.bias_variance,
    )
    tensors = (*network.weights, *network.biases)

    def outputs(theta: Any, inputs: Any = network.inputs) -> Any:
        parts = theta.split([t.numel() for t in tensors])
        shaped = [part.view(t.shape) for part, t in zip(parts, tensors, strict=True)]
        moved = signals.WideNetwork(
            weights=tuple(shaped[: network.depth]),
            biases=tuple(shaped[network.depth :]),
            inputs=inputs,
        )
        return signals.forward(moved, point.activation).preactivations[-1][0].T

    return _Small(network, outputs, torch.cat([t.flatten() for t in tensors]))


def _relative(found: Any, expected: Any) -> float:
    scale = max(float(expected.abs().max()), float(found.abs().max()))
    return float((found - expected).abs().max()) / scale if scale > 0 else 0.0


def _hessian_difference(
    rng: np.random.Generator, point: Point, *, sign: float = -1.0, as_in_torch: bool = False
) -> float:
    """Hessian of the loss against F - R; of torch's mean over samples and outputs against 2 / C of it."""
    import torch

    from simulate import operators
    from simulate.objectives import Objective
    from simulate.perceptrons.curvature import hessian

    network, outputs, theta = _small(rng, point)
    labels = torch.from_numpy(rng.standard_normal((network.outputs, point.samples)))
    residual = labels - outputs(theta)
    jacobian = torch.func.jacrev(outputs)(theta).flatten(0, 1)
    curved = hessian(lambda t: (residual * outputs(t)).sum())(theta)
    expected = (jacobian.T @ jacobian + sign * curved) / point.samples

    loss = hessian(lambda t: (labels - outputs(t)).square().sum() / (2 * point.samples))(theta)

    def model(parameters: Any, inputs: Any) -> Any:
        return outputs(parameters[0], inputs[None]).T

    mean_square = Objective(model, torch.nn.MSELoss(), (network.inputs[0], labels.T), parameters=[theta])
    of_torch = operators.hessian(mean_square).dense()
    scale = 1.0 if as_in_torch else 2 / network.outputs
    return max(_relative(loss, expected), _relative(of_torch, scale * expected))


def _readout(kind: str) -> Callable[[Any], Any]:
    """The last layer as a function of the outputs (C, T), for automatic differentiation."""

    def applied(f: Any) -> Any:
        centred = f - f.mean(1, keepdim=True)
        if kind == "mean subtraction":
            return centred
        deviation = f.std(1, correction=0, keepdim=True)
        return centred / (deviation.detach() if kind == "fixed deviation" else deviation)

    return applied


def _matrices(outputs: Any, kind: str) -> Any:
    from simulate.wide import last_layer

    if kind == "mean subtraction":
        return last_layer.mean_subtraction(outputs)
    return last_layer.batch_normalisation(outputs, fixed_deviation=kind == "fixed deviation")


class _Normalised(NamedTuple):
    """A K A by layers and projectors (1, C, C, T, T), what its entries would be unprojected, and the outputs."""

    gram: Any
    scale: float
    outputs: Any


def _normalised_gram(small: _Small, point: Point, kind: str) -> _Normalised:
    from simulate.wide import fisher_gram, last_layer

    outputs = last_layer.outputs_of(small.network, point.activation)
    gram, matrices = fisher_gram.gram(small.network, point.activation), _matrices(outputs, kind)
    scale = float(gram.abs().max() * matrices.scale.max() ** 2)
    return _Normalised(last_layer.projected(gram, matrices), scale, outputs)


def _jacobian(small: _Small, kind: str) -> Any:
    """Derivatives of the normalised outputs by all parameters, (C, T, P)."""
    import torch

    return torch.func.jacrev(lambda t: _readout(kind)(small.outputs(t)))(small.theta)


def _normalised_difference(rng: np.random.Generator, point: Point, *, kind: str = "") -> float:
    """By automatic differentiation through the last layer, and by layers and projectors."""
    import torch

    small = _small(rng, point)
    found = _normalised_gram(small, point, kind or point.last_layer)
    jacobian = _jacobian(small, point.last_layer)
    expected = torch.einsum("ksp,mtp->kmst", jacobian, jacobian)
    return float((found.gram[0] - expected).abs().max()) / found.scale


def _mean_gradient(rng: np.random.Generator, point: Point, *, shifted: bool = True) -> float:
    """Largest mean over the samples of a derivative of an output, over the largest derivative."""
    import torch

    small = _small(rng, point)
    plain = torch.func.jacrev(small.outputs)(small.theta)
    jacobian = _jacobian(small, "mean subtraction") if shifted else plain
    return float(jacobian.mean(1).abs().max() / plain.abs().max())


def _dual_difference(rng: np.random.Generator, point: Point, *, factor: float = 1.0) -> float:
    """Eigenvalues of J^T J / T, of the size of the parameters, against those of the Gram matrix, zeros added."""
    import torch

    from simulate.wide import fisher_gram

    small = _small(rng, point)
    found = _normalised_gram(small, point, point.last_layer)
    jacobian = _jacobian(small, point.last_layer).flatten(0, 1)
    primal = torch.linalg.eigvalsh(jacobian.T @ jacobian / point.samples)
    dual = factor * fisher_gram.eigenvalues(found.gram)[0]
    size = max(len(primal), len(dual))
    padded = [torch.cat([v.new_zeros(size - len(v)), v]).sort().values for v in (primal, dual)]
    return float((padded[0] - padded[1]).abs().max()) * point.samples / found.scale


def _with_trained_parameters(rng: np.random.Generator, point: Point, *, further: float = 1.0) -> float:
    """Spectrum with shifts, and gains of batch-normalised outputs, as parameters, against that without.

    By automatic differentiation; `further` is what each is said to add.
    """
    import torch

    from simulate.wide import fisher_gram

    small, kind = _small(rng, point), point.last_layer
    gains = kind == "batch normalisation"
    ones = torch.ones(small.network.outputs, 1, dtype=torch.float64)

    def trained(theta: Any, shift: Any, gain: Any) -> Any:
        unit = _readout(kind)(small.outputs(theta))
        return (gain * unit if gains else unit) + shift

    parts = torch.func.jacrev(trained, argnums=(0, 1, 2))(small.theta, 0 * ones, ones)
    jacobian = torch.cat([part.flatten(2) for part in parts], dim=2)
    total = torch.einsum("ksp,mtp->kmst", jacobian, jacobian)[None]
    found = _normalised_gram(small, point, kind)
    without = fisher_gram.eigenvalues(found.gram)[0]
    added = (1 + gains) * small.network.outputs
    expected = torch.cat([without[added:], torch.full((added,), further, dtype=torch.float64)]).sort().values
    return float((fisher_gram.eigenvalues(total)[0] - expected).abs().max()) / max(found.scale, 1.0)


def _label_dependence(rng: np.random.Generator, point: Point, *, floor: float = 0.5) -> float:
    """Loss of mean-subtracted outputs against that for centred labels and the mean of the labels, squared, halved."""
    import torch

    small = _small(rng, point)
    labels = torch.from_numpy(rng.standard_normal((small.network.outputs, point.samples)))
    means = labels.mean(1, keepdim=True)

    def loss(theta: Any, wanted: Any) -> Any:
        outputs = _readout("mean subtraction")(small.outputs(theta))
        return 0.5 * (wanted - outputs).square().sum() / point.samples

    gradients = [torch.func.grad(loss)(small.theta, y) for y in (labels, labels - means)]
    values = [loss(small.theta, y) for y in (labels, labels - means)]
    constant = float(values[0] - values[1] - floor * means.square().sum()) / float(values[0])
    slope = float((gradients[0] - gradients[1]).abs().max()) / max(1.0, float(gradients[0].abs().max()))
    return max(abs(constant), slope)


def _nothing_left(rng: np.random.Generator, point: Point, *, further: int = 0, kind: str = "") -> float:
    """What mean subtraction leaves of one sample, and batch normalisation of two, over what there was."""
    found = []
    for samples, last in ((1, "mean subtraction"), (2, kind or "batch normalisation")):
        at = point | {"samples": samples + further}
        normalised = _normalised_gram(_small(rng, at), at, last)
        found.append(float(normalised.gram.abs().max()) / normalised.scale)
    return max(found)


def _outside_bounds(rng: np.random.Generator, point: Point, *, swapped: bool = False) -> float:
    """By how much the largest eigenvalue leaves Tr F^2 / Tr F and the root of Tr F^2, over the unprojected scale."""
    from simulate.wide import fisher_gram

    found = _normalised_gram(_small(rng, point), point, point.last_layer)
    squares = float(fisher_gram.trace_of_square(found.gram))
    top, trace = float(fisher_gram.eigenvalues(found.gram)[0, -1]), float(fisher_gram.trace(found.gram))
    # one unit and one input leave nothing that batch normalisation does not take out, but for rounding
    low, high = squares / trace if trace > 1e-14 * found.scale else 0.0, squares**0.5
    low, high = (high, low) if swapped else (low, high)
    return max(0.0, low - top, top - high) / found.scale


def _not_interlaced(rng: np.random.Generator, point: Point, *, by: int = 0, upper: bool = True) -> float:
    """Eigenvalues, from the top, full with deviations differentiated: full_i <= fixed_i <= full_{i-C}.

    `by` brings the upper bound closer; without `upper` the lower bound is turned round.
    """
    import torch

    from simulate.wide import fisher_gram

    small = _small(rng, point)
    fixed, full = (
        fisher_gram.eigenvalues(_normalised_gram(small, point, kind).gram)[0].flip(0)
        for kind in ("fixed deviation", "batch normalisation")
    )
    shift = small.network.outputs - by
    above = fixed[shift:] - full[: len(full) - shift]
    below = full - fixed if upper else fixed - full
    return max(0.0, float(torch.maximum(above.max(), below.max()))) / float(fixed[0])


ROUNDING = "exact; float64 through deviations that may be a hundredth of the outputs"

ANY_NETWORK = {"tolerance": 1e-10, "tolerance_reason": ROUNDING}

CLAIMS: tuple[AnyClaim, ...] = (
    ExactProperty(
        id="karakida2019/hessian",
        entries=("C10",),
        source=f"{PAPER}, eq. (9)",
        statement=r"\nabla^2 E = F - \frac1T \sum_{t,k} (y_k - f_k)\, \nabla^2 f_k,\quad "
        r"E = \frac1{2T} \sum_t \lVert y - f \rVert^2 = \frac C2 \times \text{mean square}",
        strategies=_architectures(1, 4),
        violation=_hessian_difference,
        examples=_examples(3)[:1],
        **ANY_NETWORK,
        rivals={
            "F + R": lambda rng, point: _hessian_difference(rng, point, sign=1.0),
            "mean square of the same curvature": lambda rng, point: _hessian_difference(
                rng, point, as_in_torch=True
            ),
        },
        seconds=2.0,
    ),
    ExactProperty(
        id="karakida2019/zero-mean-gradient",
        entries=("C20",),
        source=f"{PAPER}, section 3.2",
        statement=r"\mathbb{E}\,\nabla_\theta \bar f_k = 0,\quad \bar f_k = f_k - \mathbb{E} f_k",
        strategies=_architectures(1, 5),
        violation=_mean_gradient,
        examples=_examples(4)[:1],
        **ANY_NETWORK,
        rivals={"not shifted": lambda rng, point: _mean_gradient(rng, point, shifted=False)},
        seconds=1.0,
    ),
    ExactProperty(
        id="karakida2019/normalised-gram",
        entries=("C20", "C36", "C55"),
        source=f"ours, for {PAPER}, eqs. (13) and (14)",
        passage=OURS,
        statement=r"\bar J_k = \frac{1}{\sigma_k} \Big(I - \frac{\mathbf 1 \mathbf 1^\top}{T} - "
        r"\frac{\bar f_k \bar f_k^\top}{T}\Big) J_k,\quad \sigma_k = \text{const}:\ "
        r"\frac{1}{\sigma_k} \Big(I - \frac{\mathbf 1 \mathbf 1^\top}{T}\Big) J_k",
        strategies=_architectures(2, 5),
        violation=_normalised_difference,
        examples=_examples(4, 2),
        **ANY_NETWORK,
        rivals={
            "sigma constant": lambda rng, point: _normalised_difference(rng, point, kind="fixed deviation"),
            "sigma differentiated": lambda rng, point: _normalised_difference(
                rng, point, kind="batch normalisation"
            ),
            "mean only": lambda rng, point: _normalised_difference(rng, point, kind="mean subtraction"),
        },
        seconds=2.0,
    ),
    ExactProperty(
        id="karakida2019/normalised-duality",
        entries=("C55",),
        source=f"{PAPER}, section 5, for normalised outputs",
        passage=Passage(Standing.AS_STATED, "share the same non-zero eigenvalues", "Section 5"),
        statement=r"\mathrm{spec}\Big(\frac1T \bar J^\top \bar J\Big) \setminus 0 = "
        r"\mathrm{spec}\Big(\frac1T \bar J \bar J^\top\Big) \setminus 0",
        strategies=_architectures(2, 5),
        violation=_dual_difference,
        examples=_examples(4),
        **ANY_NETWORK,
        rivals={
            "without 1 / T": lambda rng, point: _dual_difference(rng, point, factor=float(point.samples))
        },
        seconds=2.0,
    ),
    ExactProperty(
        id="karakida2019/trained-shift",
        entries=("C23",),
        source=f"ours, for {PAPER}, eqs. (13) to (15)",
        passage=OURS,
        statement=r"\mathrm{spec}(F_{\theta, \beta}) = \mathrm{spec}(F_\theta) \cup \{1\}^C,\quad "
        r"\mathrm{spec}(F_{\theta, \beta, \gamma}) = \mathrm{spec}(F_\theta) \cup \{1\}^{2C}",
        strategies=_architectures(2, 5),
        violation=_with_trained_parameters,
        examples=_examples(4),
        **ANY_NETWORK,
        rivals={
            "nothing": lambda rng, point: _with_trained_parameters(rng, point, further=0.0),
            "1 / T": lambda rng, point: _with_trained_parameters(rng, point, further=1 / point.samples),
        },
        seconds=2.0,
    ),
    ExactProperty(
        id="karakida2019/loss-floor",
        entries=("C23",),
        source=f"ours, for {PAPER}, eq. (15) without shifts",
        passage=OURS,
        statement=r"E(y) = E(y - \bar y) + \tfrac12 \lVert \bar y \rVert^2,\quad \bar y = \tfrac1T \sum_t y(t)",
        strategies=_architectures(1, 5),
        violation=_label_dependence,
        examples=_examples(4)[:1],
        **ANY_NETWORK,
        rivals={
            "no floor": lambda rng, point: _label_dependence(rng, point, floor=0.0),
            "without 1/2": lambda rng, point: _label_dependence(rng, point, floor=1.0),
        },
        seconds=1.0,
    ),
    ExactProperty(
        id="karakida2019/nothing-left",
        entries=("C24", "C36"),
        source=f"ours, beside {PAPER}, eq. (16) at T = 1 and eq. (13) at T = 2",
        passage=OURS,
        statement=r"T = 1:\ \bar F = 0 \ (\text{mean subtraction});\quad "
        r"T = 2:\ \bar F = 0 \ (\text{batch normalisation})",
        strategies=_architectures(2, 2),
        violation=_nothing_left,
        examples=_examples(2)[:1],
        **ANY_NETWORK,
        rivals={
            "one sample more": lambda rng, point: _nothing_left(rng, point, further=1),
            "sigma constant": lambda rng, point: _nothing_left(rng, point, kind="fixed deviation"),
        },
        seconds=1.0,
    ),
    ExactProperty(
        id="karakida2019/bounds-of-every-network",
        entries=("C26", "C27", "C35"),
        source=f"ours, behind {PAPER}, theorem 3.3 and eq. (19)",
        passage=OURS,
        statement=r"\frac{\mathrm{Tr} \bar F^2}{\mathrm{Tr} \bar F} \le \bar\lambda_{\max} \le "
        r"\sqrt{\mathrm{Tr} \bar F^2}",
        strategies=_architectures(3, 5),
        violation=_outside_bounds,
        examples=_examples(5),
        **ANY_NETWORK,
        rivals={"the other way round": lambda rng, point: _outside_bounds(rng, point, swapped=True)},
        seconds=1.0,
    ),
    ExactProperty(
        id="karakida2019/interlacing",
        entries=("C36",),
        source=f"ours, beside eq. (19) of {PAPER}",
        passage=OURS,
        statement=r"\lambda_i(F_{full}) \le \lambda_i(F_{fixed}) \le \lambda_{i-C}(F_{full})",
        strategies=_architectures(3, 5),
        violation=_not_interlaced,
        examples=_examples(5)[:1],
        **ANY_NETWORK,
        rivals={
            "by one less": lambda rng, point: _not_interlaced(rng, point, by=1),
            "fixed below full": lambda rng, point: _not_interlaced(rng, point, upper=False),
        },
        seconds=1.0,
    ),
)
