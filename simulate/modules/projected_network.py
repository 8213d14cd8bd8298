r"""Curvature of a bias-free network along a frame, at every weight scale and temperature from one pass.

Directions V_1..V_d change the output of each layer with weights (`simulate.modules.sites`) and, through it, the input
of the layers above. Where the network is linear in each layer by itself,

| derivative of logit k of a sample | entry |
|---|---|
| first | the change of the logit along V_i |
| second | h_ij + h_ji, h_ij = sum over layers of <delta_k, the layer with V_i, of the change of its input along V_j> |

with delta_k the derivative of the logit by the output of the layer. The changes of all inputs take one backward pass
of all directions, or one for each, delta_k one for each class; nothing depends on labels, scale or temperature.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from simulate import _checks
from simulate.modules import sites
from simulate.modules.homogeneous import Homogeneous
from simulate.modules.projected import directions_of, has_curvature, plain_convolution, pull
from simulate.modules.sample_parts import deltas_of, parameter_columns, rows_by_sample, single_outputs
from simulate.modules.sites import Site
from simulate.objectives import Batch, Objective
from simulate.objectives.batches import cuts
from simulate.objectives.derivatives import alike, normal, slopes

_BYTES = 1 << 28
"""Most bytes of changes at the layers held at once."""


class ProjectedNetwork(Homogeneous):
    """Bias-free piecewise linear network along a frame: theta = alpha theta_0 + R t, derivatives at t = 0.

    It does for any module of linear and convolutional layers, ReLU, pooling and the like, such as
    `simulate.networks.LeNet5`, what `simulate.perceptrons.curvature.ProjectedMlp` does for matrices. The derivatives of
    the logits are taken once; every (alpha, T) then costs one weighted sum. At 17 scales LeNet-5 along 50 directions
    takes an eighth of the time of `simulate.modules.projected` scale by scale.

    Parameters
    ----------
    model
        Homogeneous in its parameters; the degree L is found by doubling them. Copied, not changed.
    x, labels
        Inputs (N, ...) as the model takes them, and classes (N,).
    frame
        R of shape (P, d), any matrix; its rows are ordered as the flat parameters.

    Attributes
    ----------
    logits
        (N, K), at the weights given.
    jacobian
        (N, K, d), derivative of the logits in t.
    depth
        Degree L of homogeneity: 5 for LeNet-5.

    Raises
    ------
    ValueError
        If the parameters act elsewhere than in layers that are affine in them, a sample sees others, the model is not
        homogeneous (a bias, a normalisation) or not piecewise linear, shapes disagree, a label is not a class, or the
        frame does not fit into memory.

    Examples
    --------
    >>> import numpy as np
    >>> from simulate.perceptrons.curvature import haar
    >>> from simulate.networks import Mlp
    >>> rng = np.random.default_rng(0)
    >>> model, frame = Mlp((6, 5, 4), rng=rng), haar(rng, 50, 3)
    >>> net = ProjectedNetwork(model, rng.standard_normal((7, 6)), np.arange(7) % 4, frame)
    >>> net.depth, net.terms(alpha=[0.5, 1.0, 2.0]).hessian.shape
    (2, torch.Size([3, 3, 3]))
    """

    def __init__(self, model: nn.Module, x: Any, labels: Any, frame: Any) -> None:
        objective = Objective(model, (torch.as_tensor(x), labels), nn.CrossEntropyLoss())
        columns = parameter_columns(objective, "frame", frame)
        if not sites.by_sample(objective):
            rule = "model must be made of layers with weights, and treat each sample on its own"
            raise ValueError(f"{rule}, got {type(model).__name__}")
        directions = directions_of(objective, columns)
        with objective.measured():
            batch = next(objective.batches())
            labels = _labels(objective, batch)
            depth = _degree(objective, batch)
            _require_straight(objective, batch)
            most = _samples_at_once(objective, batch, columns.shape[1])
            parts = [
                _derivatives(objective, batch.part(part), directions) for part in cuts(len(labels), most)
            ]
        logits, jacobian, half = (torch.cat(found).double() for found in zip(*parts, strict=True))
        super().__init__(logits, labels, jacobian, lambda: half, depth)


class _Derivatives(NamedTuple):
    """Logits (n, K), their first derivatives (n, K, d), and one half of the second (n, K, d, d)."""

    logits: Tensor
    jacobian: Tensor
    half: Tensor


def _derivatives(objective: Objective, batch: Batch, directions: Sequence[Tensor]) -> _Derivatives:
    outputs, found = sites.visited(objective, batch)
    inner = [i for i, site in enumerate(found) if site.inputs.requires_grad]
    *inputs, jacobian = _changes(found, [*(found[i].inputs for i in inner), outputs], directions)
    half = outputs.new_zeros(*outputs.shape, len(jacobian), len(jacobian))
    # no sample sees another, so one backward pass serves one logit of all samples
    delta = deltas_of(outputs, [found[i] for i in inner], single_outputs(outputs)) if inner else []
    for i, signal, change in zip(inner, delta, inputs, strict=True):
        if _kernel_is_cheaper(found[i], directions):
            _add_by_kernel(half, found[i], signal, change, directions)
        else:
            _add_by_pulling(half, found[i], signal, change, directions)
    return _Derivatives(outputs.detach(), jacobian.permute(1, 2, 0).contiguous(), half)


def _add_by_pulling(
    half: Tensor, site: Site, signals: Tensor, change: Tensor, directions: Sequence[Tensor]
) -> None:
    """Add <delta_k, the layer with V_i, of the change along V_j>: delta_k is pulled back through V_i first."""
    samples, count = len(half), len(change)
    row = rows_by_sample(change, samples).mT.contiguous()
    for k, signal in enumerate(signals):
        if isinstance(site.layer, nn.Linear) and "weight" in site.places and signal.ndim == 2:
            turned = signal @ directions[site.places["weight"]]
        else:
            sent = pull(site, signal, directions)
            turned = torch.stack([sent(j) for j in range(count)])
        half[:, k].baddbmm_(rows_by_sample(turned, samples), row)


def _kernel_is_cheaper(site: Site, directions: Sequence[Tensor]) -> bool:
    """Whether a 2D convolution has so many positions that working with its patches costs less."""
    layer = site.layer
    if not (isinstance(layer, nn.Conv2d) and plain_convolution(layer) and "weight" in site.places):
        return False
    return site.nudge.ndim == 4 and site.nudge[0, 0].numel() >= len(directions[site.places["weight"]])


def _add_by_kernel(
    half: Tensor, site: Site, signals: Tensor, change: Tensor, directions: Sequence[Tensor]
) -> None:
    """Add the terms of `_add_by_pulling` as V_i times derivatives by the kernel: one set of patches for all logits."""
    layer: Any = site.layer
    kernels, count = directions[site.places["weight"]].flatten(1).mT, len(change)
    by_sample = signals.unflatten(1, (len(half), -1)).movedim(1, 0)  # (n, K, blocks, out, *places)
    for n, mine in enumerate(change.unflatten(1, (len(half), -1)).movedim(1, 0)):
        for block in range(mine.shape[1]):
            patches = functional.unfold(
                mine[:, block], layer.kernel_size, layer.dilation, layer.padding, layer.stride
            )
            signal = by_sample[n, :, block].flatten(2).flatten(0, 1)  # (K out, places)
            slope = torch.matmul(signal, patches.mT).unflatten(1, (-1, layer.out_channels)).flatten(2)
            half[n] += (slope.flatten(0, 1) @ kernels).unflatten(0, (count, -1)).permute(1, 2, 0)


def _changes(found: Sequence[Site], ends: Sequence[Tensor], directions: Sequence[Tensor]) -> list[Tensor]:
    """Return the changes of the tensors `ends` along each direction, (d, *end): derivatives in u of d<u, end>."""
    weights = [torch.zeros_like(end, requires_grad=True) for end in ends]
    pulled = slopes(ends, [site.nudge for site in found], weights, again=True)
    moved = [sites.moved(site, directions) for site in found]
    with contextlib.suppress(Exception):  # of an operation that does not take several directions at once
        return [*slopes(pulled, weights, moved, several=True)]
    each = [slopes(pulled, weights, [change[i] for change in moved]) for i in range(len(moved[0]))]
    return [torch.stack(rows) for rows in zip(*each, strict=True)]


def _degree(objective: Objective, batch: Batch) -> int:
    """Return the degree of homogeneity, from the outputs at doubled parameters."""
    few, leaves = batch.part(slice(0, 3)).inputs, objective.leaves
    with torch.no_grad():
        once, twice = objective.outputs(leaves, few), objective.outputs([2 * leaf for leaf in leaves], few)
    ratio = float(twice.abs().max() / once.abs().max())  # norms vanish of small numbers in single precision
    degree = round(math.log2(ratio)) if 0 < ratio < math.inf else 0
    if degree < 1 or not alike(twice, 2.0**degree * once):
        rule = "model must be homogeneous of a whole degree in its parameters, without biases"
        raise ValueError(f"{rule}, got outputs that grow {ratio:.6g} times when its parameters are doubled")
    return degree


def _require_straight(objective: Objective, batch: Batch) -> None:
    outputs, found = sites.visited(objective, batch.part(slice(0, 3)))
    nudges = [site.nudge for site in found]
    if has_curvature(slopes(outputs, nudges, normal(outputs), again=True), nudges):
        raise ValueError("model must be piecewise linear, such as with ReLU, got a curved one")


def _labels(objective: Objective, batch: Batch) -> Tensor:
    with torch.no_grad():
        outputs = objective.outputs(objective.leaves, batch.part(slice(0, 1)).inputs)
    if outputs.ndim != 2:
        raise ValueError(f"model must give logits of shape (N, K), got {tuple(outputs.shape)}")
    flat = batch.inputs.flatten(1)
    return _checks.labelled(flat, batch.targets, (flat.shape[1], outputs.shape[1]), outputs)[1]


def _samples_at_once(objective: Objective, batch: Batch, count: int) -> int:
    """Return how many samples fit into memory at once."""
    # changes of outputs and inputs of the layers, and what is pulled back
    outputs, found = sites.visited(objective, batch.part(slice(0, 1)))
    classes, nudges = outputs.numel(), sum(site.nudge.numel() for site in found)
    numbers = count * (nudges + 3 * sum(site.inputs.numel() for site in found) + classes) + classes * nudges
    return max(1, _BYTES // (objective.dtype.itemsize * numbers))
