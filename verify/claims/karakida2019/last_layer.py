"""Karakida, Akaho and Amari (2019): mean-subtracted and batch-normalised outputs, of every network and of wide ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from simulate import objectives, operators
from simulate.monte_carlo import Block, Point
from simulate.perceptrons import curvature
from simulate.wide import fisher_gram, last_layer, signals
from theory import fisher
from theory.fisher import mean_subtraction
from verify.claims.karakida2019 import PAPER
from verify.claims.karakida2019.wide_networks import (
    WIDE,
    kappas_at,
    law,
    lazy_network_of,
    one_network,
    parameters_of,
    setting,
    small_network,
    spike,
    wide,
)
from verify.model import OURS, Arrays, Claim, ExactProperty, NoTheory, as_stated
from verify.model.domains import Between, Domain, Many, OneOf

BIASED = f"{WIDE}; the bias is O(1/M)"

# --- batch normalisation, in the mean over networks ----------------------------------------------------------


def normalised_fisher(block: Block, point: Point) -> Arrays:
    """Trace and spread of the spectrum with batch-normalised outputs; Q_1 and Q_2.

    And the root of the sum of the squared eigenvalues, with the factor of T - 1 in T directions.
    """
    network = lazy_network_of(block, point)
    outputs = last_layer.outputs_of(network, point.activation)
    normalisation = last_layer.batch_normalisation(outputs, fixed_deviation=True)
    found = last_layer.projected_gram(fisher_gram.gram(network, point.activation), normalisation)
    trace, squares = fisher_gram.fisher_trace(found), fisher_gram.trace_of_square(found)
    precisions = normalisation.scale.square()
    return {
        "trace": trace,
        "spread": (point.samples - 1) * squares / trace**2,
        "root": (squares / (1 - 1 / point.samples)).sqrt(),
        "q1": precisions.sum(1),
        "q2": precisions.square().sum(1),
    }


NORMALISED = one_network(
    id="karakida2019/normalised",
    simulate=normalised_fisher,
    points=(
        law("linear", 1.3, 0.3, depth=3, width=640, samples=6, outputs=4),
        law("tanh", 1.6, 0.6, depth=4, width=640, samples=7, outputs=3),
        law("erf", 0.8, 2.1, depth=3, width=960, samples=8, outputs=4),
    ),
    budget=2048,
    seconds=0.82,
)

SPREAD = one_network(
    id="karakida2019/normalised-spread",
    simulate=normalised_fisher,
    points=(
        law("erf", 0.8, 2.1, depth=3, width=230, samples=35, outputs=4),
        law("linear", 1.3, 0.3, depth=3, width=230, samples=35, outputs=4),
    ),
    budget=1024,
    seconds=3.3,
)


def _typical(power: int) -> Callable[[Point], float]:
    """Q_1 or Q_2 with variances that differ from output to output, as they do in one network."""
    return lambda p: sum(
        (fisher.output_variance(**setting(p, "samples")) * (0.7 + 0.6 * k / (p.outputs - 1))) ** -power
        for k in range(p.outputs)
    )


DEVIATIONS_MEASURED = {"q1": _typical(1), "q2": _typical(2)}


@lru_cache(maxsize=32)
def _statistics(sized: Point, q1: tuple[float, ...], q2: tuple[float, ...]) -> Any:
    """Eq. (19), which the rivals read too, for all replicates."""
    return fisher.batch_normalised_statistics(**sized, q1=q1, q2=q2, finite_width=True)


def _normalised(p: Any) -> fisher.BatchNormalisedStatistics:
    sized = Point(**setting(p, "width", "samples", "outputs"))
    return _statistics(sized, *(tuple(np.atleast_1d(q).tolist()) for q in (p.q1, p.q2)))


def _one(values: Any) -> Any:
    """A number if there is one only."""
    return values.item() if np.size(values) == 1 else values


def _trace(p: Any) -> Any:
    return _one(_normalised(p).mean) * parameters_of(p)


def _root(p: Any) -> Any:
    return _one(_normalised(p).upper)


def _spread_of_eigenvalues(p: Any) -> Any:
    return _over_trace(p, _one(_normalised(p).lower))


def _over_trace(p: Any, lower: Any) -> Any:
    """(T - 1) Tr F^2 / (Tr F)^2 for a value of Tr F^2 / Tr F."""
    return lower * p.samples / (p.q1 * spike(p) * p.width)


def _with_c2(p: Any, c2: Any) -> Any:
    """Predicted spread of the eigenvalues with another constant in place of c2'."""
    diagonal = p.width / p.samples * spike(p) * p.q2 / p.q1
    return _over_trace(p, diagonal + c2 / (p.q1 * spike(p)))


@cache
def _scatter(unsized: Point) -> tuple[float, float]:
    """Variances of a centred entry of the Gram matrix, for the same output and for different ones."""
    return fisher.gram_entry_variances(**unsized)


def _same(p: Any) -> float:
    return _scatter(Point(**setting(p)))[0]


NORMALISED_CLAIMS = (
    wide(
        id="karakida2019/batch-normalised-mean",
        entries=("C34",),
        source=f"{PAPER}, eq. (19)",
        passage=as_stated("the eigenvalue statistics slightly change to", "Section 3.2, Eq 19"),
        statement=r"P m_\lambda = Q_1 \Big(1 - \frac1T\Big) "
        r"\Big(\alpha M (\kappa_1 - \kappa_2) + \sum_l (\tilde q_t^l - \tilde q_{st}^l)\Big),\quad "
        r"Q_1 = \sum_k \sigma_k^{-2}",
        says="With batch-normalised outputs of fixed deviations, the Fisher trace is that of mean subtraction "
        "weighted by inverse output variances.",
        experiment=NORMALISED,
        score="trace",
        inputs=DEVIATIONS_MEASURED,
        predict=_trace,
        margin_reason=f"{BIASED}, below 0.5 % at M = 640",
        rivals={
            "no 1 - 1/T": lambda p: _trace(p) * p.samples / (p.samples - 1),
            "1 - 3/T, deviations differentiated": lambda p: _trace(p) * (p.samples - 3) / (p.samples - 1),
            "without Q_1, as after mean subtraction": lambda p: _trace(p) / p.q1 * p.outputs,
            "Q_1 over C": lambda p: _trace(p) / p.outputs,
            "deviation for variance": lambda p: _trace(p) / np.sqrt(p.q1 / p.outputs),
            "kappa1": lambda p: _trace(p) * kappas_at(p).kappa1 / kappas_at(p).difference,
            "kappa2": lambda p: _trace(p) * kappas_at(p).kappa2 / kappas_at(p).difference,
        },
        quantity="trace of the Fisher matrix of batch-normalised outputs",
    ),
    Claim(
        id="karakida2019/batch-normalised-bound",
        entries=("C35",),
        source=f"{PAPER}, eq. (19), its lower bound over the trace, with c1' derived",
        statement=r"(T - 1) \frac{\mathrm{Tr} F^2}{(\mathrm{Tr} F)^2} = \frac{T}{Q_1 \alpha (\kappa_1 - \kappa_2) M} "
        r"\Big(\rho \alpha \frac{Q_2}{Q_1} (\kappa_1 - \kappa_2) + c_1'\Big),\quad "
        r"c_1' = \frac{Q_2 S_{same} + (Q_1^2 - Q_2) S_{diff}}{Q_1 \alpha (\kappa_1 - \kappa_2)}",
        says="With batch-normalised outputs, the moment ratio behind the lower bound is the paper's, its constant "
        "derived.",
        experiment=SPREAD,
        score="spread",
        inputs=DEVIATIONS_MEASURED,
        predict=_spread_of_eigenvalues,
        margin=0.02,
        margin_reason="less than the 3 % for wide networks, for the deviations that differ are 5 % of the value",
        rivals={
            "without c1'": lambda p: _with_c2(p, 0.0),
            "c1 of mean subtraction": lambda p: _with_c2(p, p.q1 * _same(p)),
            "S_same for S_diff": lambda p: _with_c2(p, p.q1**2 * _same(p)),
        },
        quantity="trace of the squared Fisher matrix over the squared trace, times T - 1",
    ),
    wide(
        id="karakida2019/batch-normalised-root",
        entries=("C35",),
        source=f"{PAPER}, eq. (19), the root behind its upper bound, with c2' derived",
        statement=r"\sqrt{\frac{T}{T - 1} \mathrm{Tr} F^2} = "
        r"\sqrt{(Q_2 \alpha^2 \rho (\kappa_1 - \kappa_2)^2 + c_2') M}",
        says="With batch-normalised outputs, the root of the summed squared Fisher eigenvalues is the paper's "
        "upper bound, its constant derived.",
        experiment=SPREAD,
        score="root",
        inputs=DEVIATIONS_MEASURED,
        predict=_root,
        margin_reason=BIASED,
        pilot="the setting: that it resolves the part with c2' was seen in first draws; the margin is the usual one",
        rivals={
            "without c2'": lambda p: _root(p) * np.sqrt(_with_c2(p, 0.0) / _spread_of_eigenvalues(p)),
            "S_same for S_diff": lambda p: (
                _root(p) * np.sqrt(_with_c2(p, p.q1**2 * _same(p)) / _spread_of_eigenvalues(p))
            ),
        },
        quantity="root of the sum of squared eigenvalues, batch-normalised outputs",
    ),
)


# --- what holds for every network ------------------------------------------------------------------------------

LAST_LAYERS = ("mean subtraction", "fixed deviation", "batch normalisation")


class SmallOutputs(NamedTuple):
    """One network, its outputs (C, T) as a function of all parameters in one vector, and that vector.

    A second argument replaces the inputs (1, T, M).
    """

    network: Any
    outputs: Callable[..., Any]
    theta: Any


def small_outputs(rng: Generator, point: Point) -> SmallOutputs:
    """A network as drawn."""
    import torch

    network = small_network(rng, point)
    tensors, depth = (*network.weights, *network.biases), network.depth

    def outputs(theta: Any, inputs: Any = network.inputs) -> Any:
        parts = theta.split([t.numel() for t in tensors])
        shaped = tuple(part.view(t.shape) for part, t in zip(parts, tensors, strict=True))
        moved = signals.WideNetwork(weights=shaped[:depth], biases=shaped[depth:], inputs=inputs)
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
    setting = law("tanh", 1.7, 0.3, widths=(4, 6, 5, 3))
    return tuple(setting | {"samples": t, "last_layer": kind} for t in samples for kind in LAST_LAYERS)


def _relative(found: Any, expected: Any) -> float:
    scale = max(float(expected.abs().max()), float(found.abs().max()))
    return float((found - expected).abs().max()) / scale if scale > 0 else 0.0


def _hessian_difference(
    rng: Generator, point: Point, *, sign: float = -1.0, as_in_torch: bool = False
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


def _readout(kind: str, f: Any) -> Any:
    """The last layer of outputs (C, T), for automatic differentiation."""
    centred = f - f.mean(1, keepdim=True)
    if kind == "mean subtraction":
        return centred
    deviation = f.std(1, correction=0, keepdim=True)
    return centred / (deviation.detach() if kind == "fixed deviation" else deviation)


def _jacobian(small: SmallOutputs, kind: str) -> Any:
    """Derivatives of the normalised outputs by all parameters, (C, T, P)."""
    import torch

    return torch.func.jacrev(lambda t: _readout(kind, small.outputs(t)))(small.theta)


def _normalised_difference(rng: Generator, point: Point, *, kind: str = "") -> float:
    """Difference of matrices by automatic differentiation through the last layer and by layers and projectors."""
    import torch

    small, kind = small_outputs(rng, point), kind or point.last_layer
    outputs = last_layer.outputs_of(small.network, point.activation)
    if kind == "mean subtraction":
        matrices = last_layer.mean_subtraction(outputs)
    else:
        matrices = last_layer.batch_normalisation(outputs, fixed_deviation=kind == "fixed deviation")
    gram = fisher_gram.gram(small.network, point.activation)
    jacobian = _jacobian(small, point.last_layer)
    expected = torch.einsum("ksp,mtp->kmst", jacobian, jacobian)
    difference = (last_layer.projected_gram(gram, matrices)[0] - expected).abs().max()
    return float(difference) / float(gram.abs().max() * matrices.scale.max() ** 2)


def _mean_gradient(rng: Generator, point: Point, *, shifted: bool = True) -> float:
    """Largest mean over the samples of a derivative of an output, over the largest derivative."""
    import torch

    small = small_outputs(rng, point)
    plain = torch.func.jacrev(small.outputs)(small.theta)
    jacobian = _jacobian(small, "mean subtraction") if shifted else plain
    return float(jacobian.mean(1).abs().max() / plain.abs().max())


def _label_dependence(rng: Generator, point: Point, *, times: float = 1.0) -> float:
    """Loss of mean-subtracted outputs against that for centred labels and its floor, `times` what it is."""
    import torch

    small = small_outputs(rng, point)
    labels = torch.from_numpy(rng.standard_normal((small.network.outputs, point.samples)))

    def loss(theta: Any, wanted: Any) -> Any:
        left = wanted - _readout("mean subtraction", small.outputs(theta))
        return 0.5 * left.square().sum() / point.samples

    both = (labels, labels - labels.mean(1, keepdim=True))
    (one, value), (other, centred) = (torch.func.grad_and_value(loss)(small.theta, y) for y in both)
    floor = times * mean_subtraction.loss_floor(labels.T.numpy())
    slope = float((one - other).abs().max()) / max(1.0, float(one.abs().max()))
    return max(abs((float(value - centred) - floor) / float(value)), slope)


_of_any_network = partial(
    ExactProperty,
    tolerance=1e-10,
    tolerance_reason="exact; float64 through deviations that may be a hundredth of the outputs",
)

CLAIMS = (
    *NORMALISED_CLAIMS,
    _of_any_network(
        id="karakida2019/hessian",
        entries=("C10",),
        source=f"{PAPER}, eq. (9)",
        no_theory=NoTheory.MEASURED,
        statement=r"\nabla^2 E = F - \frac1T \sum_{t,k} (y_k - f_k)\, \nabla^2 f_k,\quad "
        r"E = \frac1{2T} \sum_t \|y - f\|^2 = \frac C2 \times \text{mean square}",
        says="For smooth activations, the Hessian of the squared error is the Fisher matrix less the curvature of "
        "outputs weighted by errors.",
        domain=_architectures(1, 4),
        violation=_hessian_difference,
        examples=_examples(3)[:1],
        rivals={
            "F + R": partial(_hessian_difference, sign=1.0),
            "mean square of the same curvature": partial(_hessian_difference, as_in_torch=True),
        },
        seconds=0.22,
    ),
    _of_any_network(
        id="karakida2019/zero-mean-gradient",
        entries=("C20",),
        source=f"{PAPER}, section 3.2",
        no_theory=NoTheory.MEASURED,
        statement=r"\mathbb{E}\,\nabla_\theta \bar f_k = 0,\quad \bar f_k = f_k - \mathbb{E} f_k",
        says="Once the mean of an output over the samples is subtracted, its gradients average to zero, in any "
        "network.",
        domain=_architectures(1, 5),
        violation=_mean_gradient,
        examples=_examples(4)[:1],
        rivals={"not shifted": partial(_mean_gradient, shifted=False)},
        seconds=0.025,
    ),
    _of_any_network(
        id="karakida2019/normalised-gram",
        entries=("C20", "C36", "C55"),
        source=f"ours, for {PAPER}, eqs. (13) and (14)",
        passage=OURS,
        no_theory=NoTheory.MEASURED,
        statement=r"\bar J_k = \frac{1}{\sigma_k} \Big(I - \frac{\mathbf 1 \mathbf 1^\top}{T} - "
        r"\frac{\bar f_k \bar f_k^\top}{T}\Big) J_k,\quad \sigma_k = \text{const}:\ "
        r"\frac{1}{\sigma_k} \Big(I - \frac{\mathbf 1 \mathbf 1^\top}{T}\Big) J_k",
        says="Gradients of mean-subtracted or batch-normalised outputs are the plain ones times a projector, whose"
        " rank depends on whether deviations are differentiated.",
        domain=_architectures(2, 5),
        violation=_normalised_difference,
        examples=_examples(4, 2),
        rivals={
            "sigma constant": partial(_normalised_difference, kind="fixed deviation"),
            "sigma differentiated": partial(_normalised_difference, kind="batch normalisation"),
            "mean only": partial(_normalised_difference, kind="mean subtraction"),
        },
        seconds=0.076,
    ),
    _of_any_network(
        id="karakida2019/loss-floor",
        entries=("C23",),
        source=f"ours, for {PAPER}, eq. (15) without shifts",
        passage=OURS,
        statement=r"E(y) = E(y - \bar y) + \tfrac12 \|\bar y\|^2,\quad \bar y = \tfrac1T \sum_t y(t)",
        says="Without trainable shifts, the squared error after mean subtraction is that for centred labels plus "
        "half their squared mean.",
        domain=_architectures(1, 5),
        violation=_label_dependence,
        examples=_examples(4)[:1],
        rivals={
            "no floor": partial(_label_dependence, times=0.0),
            "without 1/2": partial(_label_dependence, times=2.0),
        },
        seconds=0.022,
    ),
)
