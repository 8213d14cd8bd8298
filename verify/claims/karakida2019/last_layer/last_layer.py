"""Karakida, Akaho and Amari (2019): what holds for every network with mean-subtracted or normalised outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from simulate import objectives, operators
from simulate.monte_carlo import Point
from simulate.perceptrons import curvature
from simulate.wide import fisher_gram, last_layer, signals
from theory.fisher import mean_subtraction
from verify.claims.karakida2019 import PAPER
from verify.claims.karakida2019.wide_networks import small_network
from verify.model import OURS, AnyClaim, ExactProperty, NoTheory
from verify.model.domains import Between, Domain, Many, OneOf

__all__ = ["CLAIMS"]

LAST_LAYERS = ("mean subtraction", "fixed deviation", "batch normalisation")


class SmallOutputs(NamedTuple):
    """One network, its outputs (C, T) as a function of all parameters in one vector, and that vector.

    A second argument stands in for the inputs (1, T, M).
    """

    network: Any
    outputs: Callable[..., Any]
    theta: Any


def small_outputs(rng: np.random.Generator, point: Point) -> SmallOutputs:
    """A network as drawn."""
    import torch

    network = small_network(rng, point)
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

    return SmallOutputs(network, outputs, torch.cat([t.flatten() for t in tensors]))


def _architectures(least: int, most: int) -> Domain:
    """Networks whose outputs differ between samples, with so many samples."""
    return {
        "activation": OneOf("tanh", "erf", "linear", "sigmoid", "softplus", "gelu"),
        "widths": Many(Between(1, 6), 2, 4),
        "samples": Between(least, most),
        "weight_variance": Between(0.3, 4.0),
        "bias_variance": Between(0.0, 2.0),
        "last_layer": OneOf(*LAST_LAYERS),
    }


def _examples(*samples: int) -> tuple[Point, ...]:
    setting = Point(activation="tanh", widths=(4, 6, 5, 3), weight_variance=1.7, bias_variance=0.3)
    return tuple(setting | {"samples": t, "last_layer": kind} for t in samples for kind in LAST_LAYERS)


def _relative(found: Any, expected: Any) -> float:
    scale = max(float(expected.abs().max()), float(found.abs().max()))
    return float((found - expected).abs().max()) / scale if scale > 0 else 0.0


def _hessian_difference(
    rng: np.random.Generator, point: Point, *, sign: float = -1.0, as_in_torch: bool = False
) -> float:
    """Hessian of the loss against F - R; of torch's mean over samples and outputs against 2 / C of it."""
    import torch

    network, outputs, theta = small_outputs(rng, point)
    labels = torch.from_numpy(rng.standard_normal((network.outputs, point.samples)))
    residual = labels - outputs(theta)
    jacobian = torch.func.jacrev(outputs)(theta).flatten(0, 1)
    curved = curvature.hessian_of(lambda t: (residual * outputs(t)).sum())(theta)
    expected = (jacobian.T @ jacobian + sign * curved) / point.samples

    loss = curvature.hessian_of(lambda t: (labels - outputs(t)).square().sum() / (2 * point.samples))(theta)

    def model(parameters: Any, inputs: Any) -> Any:
        return outputs(parameters[0], inputs[None]).T

    mean_square = objectives.Objective(
        model, (network.inputs[0], labels.T), torch.nn.MSELoss(), parameters=[theta]
    )
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


def _jacobian(small: SmallOutputs, kind: str) -> Any:
    """Derivatives of the normalised outputs by all parameters, (C, T, P)."""
    import torch

    return torch.func.jacrev(lambda t: _readout(kind)(small.outputs(t)))(small.theta)


def _normalised_difference(rng: np.random.Generator, point: Point, *, kind: str = "") -> float:
    """By automatic differentiation through the last layer, and by layers and projectors."""
    import torch

    small, kind = small_outputs(rng, point), kind or point.last_layer
    outputs = last_layer.outputs_of(small.network, point.activation)
    matrices = (
        last_layer.mean_subtraction(outputs)
        if kind == "mean subtraction"
        else (last_layer.batch_normalisation(outputs, fixed_deviation=kind == "fixed deviation"))
    )
    gram = fisher_gram.gram(small.network, point.activation)
    found = last_layer.projected_gram(gram, matrices)[0]
    jacobian = _jacobian(small, point.last_layer)
    expected = torch.einsum("ksp,mtp->kmst", jacobian, jacobian)
    unprojected = float(gram.abs().max() * matrices.scale.max() ** 2)
    return float((found - expected).abs().max()) / unprojected


def _mean_gradient(rng: np.random.Generator, point: Point, *, shifted: bool = True) -> float:
    """Largest mean over the samples of a derivative of an output, over the largest derivative."""
    import torch

    small = small_outputs(rng, point)
    plain = torch.func.jacrev(small.outputs)(small.theta)
    jacobian = _jacobian(small, "mean subtraction") if shifted else plain
    return float(jacobian.mean(1).abs().max() / plain.abs().max())


def _label_dependence(rng: np.random.Generator, point: Point, *, times: float = 1.0) -> float:
    """Loss of mean-subtracted outputs against that for centred labels and its floor, `times` what it is."""
    import torch

    small = small_outputs(rng, point)
    labels = torch.from_numpy(rng.standard_normal((small.network.outputs, point.samples)))
    means = labels.mean(1, keepdim=True)

    def loss(theta: Any, wanted: Any) -> Any:
        outputs = _readout("mean subtraction")(small.outputs(theta))
        return 0.5 * (wanted - outputs).square().sum() / point.samples

    gradients = [torch.func.grad(loss)(small.theta, y) for y in (labels, labels - means)]
    values = [loss(small.theta, y) for y in (labels, labels - means)]
    floor = times * mean_subtraction.loss_floor(labels.T.numpy())
    constant = (float(values[0] - values[1]) - floor) / float(values[0])
    slope = float((gradients[0] - gradients[1]).abs().max()) / max(1.0, float(gradients[0].abs().max()))
    return max(abs(constant), slope)


ROUNDING = "exact; float64 through deviations that may be a hundredth of the outputs"

ANY_NETWORK = {"tolerance": 1e-10, "tolerance_reason": ROUNDING}

CLAIMS: tuple[AnyClaim, ...] = (
    ExactProperty(
        id="karakida2019/hessian",
        entries=("C10",),
        source=f"{PAPER}, eq. (9)",
        no_theory=NoTheory.MEASURED,
        statement=r"\nabla^2 E = F - \frac1T \sum_{t,k} (y_k - f_k)\, \nabla^2 f_k,\quad "
        r"E = \frac1{2T} \sum_t \lVert y - f \rVert^2 = \frac C2 \times \text{mean square}",
        says="The Hessian of the squared error is the Fisher matrix less the curvature of the outputs, "
        "weighted by the errors, for smooth activation functions.",
        domain=_architectures(1, 4),
        violation=_hessian_difference,
        examples=_examples(3)[:1],
        **ANY_NETWORK,
        rivals={
            "F + R": lambda rng, point: _hessian_difference(rng, point, sign=1.0),
            "mean square of the same curvature": lambda rng, point: _hessian_difference(
                rng, point, as_in_torch=True
            ),
        },
        seconds=0.22,
    ),
    ExactProperty(
        id="karakida2019/zero-mean-gradient",
        entries=("C20",),
        source=f"{PAPER}, section 3.2",
        no_theory=NoTheory.MEASURED,
        statement=r"\mathbb{E}\,\nabla_\theta \bar f_k = 0,\quad \bar f_k = f_k - \mathbb{E} f_k",
        says="Once the mean of an output over the samples is subtracted, its gradients average to zero over "
        "the samples, in any network.",
        domain=_architectures(1, 5),
        violation=_mean_gradient,
        examples=_examples(4)[:1],
        **ANY_NETWORK,
        rivals={"not shifted": lambda rng, point: _mean_gradient(rng, point, shifted=False)},
        seconds=0.025,
    ),
    ExactProperty(
        id="karakida2019/normalised-gram",
        entries=("C20", "C36", "C55"),
        source=f"ours, for {PAPER}, eqs. (13) and (14)",
        passage=OURS,
        no_theory=NoTheory.MEASURED,
        statement=r"\bar J_k = \frac{1}{\sigma_k} \Big(I - \frac{\mathbf 1 \mathbf 1^\top}{T} - "
        r"\frac{\bar f_k \bar f_k^\top}{T}\Big) J_k,\quad \sigma_k = \text{const}:\ "
        r"\frac{1}{\sigma_k} \Big(I - \frac{\mathbf 1 \mathbf 1^\top}{T}\Big) J_k",
        says="In any network, gradients of mean-subtracted or batch-normalised outputs are the plain ones "
        "times a projector, whose rank depends on whether deviations are differentiated.",
        domain=_architectures(2, 5),
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
        seconds=0.076,
    ),
    ExactProperty(
        id="karakida2019/loss-floor",
        entries=("C23",),
        source=f"ours, for {PAPER}, eq. (15) without shifts",
        passage=OURS,
        statement=r"E(y) = E(y - \bar y) + \tfrac12 \lVert \bar y \rVert^2,\quad \bar y = \tfrac1T \sum_t y(t)",
        says="Without trainable shifts, the squared error after mean subtraction is that for the centred "
        "labels plus half the squared mean of the labels.",
        domain=_architectures(1, 5),
        violation=_label_dependence,
        examples=_examples(4)[:1],
        **ANY_NETWORK,
        rivals={
            "no floor": lambda rng, point: _label_dependence(rng, point, times=0.0),
            "without 1/2": lambda rng, point: _label_dependence(rng, point, times=2.0),
        },
        seconds=0.022,
    ),
)
