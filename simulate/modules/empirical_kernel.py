r"""Inner products of the gradients of all outputs at all samples: J J', the empirical neural tangent kernel.

Where the parameters act at sites (`simulate.modules.sites`) the kernel is a sum over the parameters, and a layer that
acts once for each sample adds the inner products of its inputs times those of the derivatives by its outputs, without
a gradient by its weights. Otherwise gradients are taken output by output, and all of them are held.

Its non-zero eigenvalues are those of J'J, which is N times the Fisher information of outputs of unit variance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from simulate import _memory
from simulate.modules import site_gradients, sites
from simulate.modules.sample_parts import deltas_of, finite_derivatives, require_rows, single_outputs
from simulate.objectives import Batch, Objective
from simulate.objectives.batches import placed, rows
from simulate.objectives.derivatives import slopes
from simulate.objectives.soundness import mean_output


def empirical_kernel(model: Any, inputs: Any, *, parameters: Any = None, traced: bool = False) -> Tensor:
    """Return the empirical neural tangent kernel: inner products (N, m, N, m) of the gradients of all m outputs.

    N samples with m outputs take one forward pass and m backward passes without gradients by the weights. If
    parameters act elsewhere than in affine layers, they take N m passes of one sample, and memory for all gradients.
    The model is in evaluation mode; a sample that sees others is evaluated with them.

    Parameters
    ----------
    model
        A module, or a function of a sequence of parameters and of inputs.
    inputs
        N samples: a tensor, or a tuple or a mapping of tensors.
    parameters
        As in `Objective`: all that require a gradient if None.
    traced
        Whether to return the trace over the outputs, (N, N).

    Raises
    ------
    ValueError
        If the outputs are not one row for each sample, derivatives are not finite or not those of the model, see
        `objectives.soundness`, or the kernel, or the gradients of a model that needs them, do not fit into memory.

    References
    ----------
    Jacot, Gabriel and Hongler (2018), Neural tangent kernel: convergence and generalization in neural networks.

    Examples
    --------
    A linear model: the gradients are the inputs, each in the row of its own output.

    >>> x = torch.tensor([[3.0, 4.0], [4.0, 3.0]], dtype=torch.float64)
    >>> kernel = empirical_kernel(nn.Linear(2, 2, bias=False, dtype=torch.float64), x)
    >>> kernel[:, 0, :, 0].tolist(), bool(kernel[:, 0, :, 1].any())
    ([[25.0, 24.0], [24.0, 25.0]], False)
    >>> empirical_kernel(nn.Linear(2, 2, bias=False, dtype=torch.float64), x, traced=True).tolist()
    [[50.0, 48.0], [48.0, 50.0]]
    """
    return kernel_of(outputs_alone(model, inputs, parameters), traced=traced)


def outputs_alone(model: Any, inputs: Any, parameters: Any = None) -> Objective:
    """Return an objective of a model on inputs as one batch, for its outputs alone: it has no loss of interest."""
    samples = rows(placed(inputs, torch.zeros(())))
    return Objective(model, (inputs, torch.zeros(samples)), mean_output, parameters=parameters)


def kernel_of(objective: Objective, *, traced: bool = False) -> Tensor:
    """Return the `empirical_kernel` of an objective with one batch, whatever its loss."""
    covered = sites.by_sample(objective)
    alone = covered or objective.apart
    with objective.measured():
        (batch,) = objective.batches()
        leaves = objective.leaves
        passed = sites.visited_or_none(objective, batch) if covered else None
        with torch.no_grad():
            outputs = passed[0] if passed else objective.outputs(leaves, batch.inputs)
        samples = batch.samples
        require_rows(outputs, samples)
        count = outputs[0].numel()
        order = samples if traced else samples * count
        like = leaves[0]
        what = f"the inner products of {samples} samples and {count} outputs"
        needed = 3 * like.element_size() * order**2
        _memory.require_free("inputs", needed, what, device=like.device, advice="use fewer samples")
        total = like.new_zeros(order, order)
        if passed:
            _add_by_sites(total, *passed, samples, traced)
        else:
            _add_by_gradients(total, objective, batch, count, traced, alone)
    finite_derivatives(total)
    return total if traced else total.view(samples, count, samples, count)


def _add_by_sites(
    total: Tensor, outputs: Tensor, found: Sequence[sites.Site], samples: int, traced: bool
) -> None:
    """Add the parts of all parameters."""
    count = outputs[0].numel()
    held = sum(count * site.nudge.numel() + site.inputs.numel() for site in found)
    held += samples * max(site_gradients.numbers_held(site, count, samples) for site in found)
    what = f"the derivatives of {count} outputs of {samples} samples"
    needed = held * outputs.element_size()
    _memory.require_free("inputs", needed, what, device=outputs.device, advice="use fewer samples")
    # no sample sees another, so one backward pass serves one output of all samples
    steep = deltas_of(outputs, found, single_outputs(outputs))
    for uses in site_gradients.uses_of(zip(found, steep, strict=True)).values():
        if _acts_once(uses, samples):
            _add_products(total, uses[0], samples, traced)
            continue
        for gradients in site_gradients.column_blocks(uses, samples):
            each = gradients.flatten(1) if traced else gradients.flatten(0, 1)
            total.addmm_(each, each.mT)


def _acts_once(uses: list[site_gradients.Use], samples: int) -> bool:
    """Whether a matrix of weights multiplies exactly one input of every sample."""
    site, name, _ = uses[0]
    linear = isinstance(site.layer, nn.Linear) and site.inputs.ndim == 2
    # positions may be folded into the rows: several of them for each sample
    return len(uses) == 1 and name == "weight" and linear and len(site.inputs) == samples


def _add_products(total: Tensor, use: site_gradients.Use, samples: int, traced: bool) -> None:
    """Add inner products of inputs times inner products of the derivatives by the outputs of the layer."""
    site, _, steep = use
    signal = site.inputs.detach()
    overlaps, count = signal @ signal.mT, len(steep)
    if traced:
        each = steep.transpose(0, 1).flatten(1)
        total.add_((each @ each.mT).mul_(overlaps))
    else:
        each = steep.transpose(0, 1).flatten(0, 1)
        products = (each @ each.mT).view(samples, count, samples, count)
        total.add_(products.mul_(overlaps[:, None, :, None]).view_as(total))


def _add_by_gradients(
    total: Tensor, objective: Objective, batch: Batch, count: int, traced: bool, alone: bool
) -> None:
    """Add inner products of the gradients of single outputs, of each sample alone if it has the same outputs."""
    samples, leaves, each = batch.samples, objective.leaves, list[Tensor]()
    what = f"the gradients of {count} outputs of {samples} samples"
    needed = 2 * samples * count * objective.dim * total.element_size()
    advice = "use fewer samples or parameters"
    _memory.require_free("inputs", needed, what, device=objective.device, advice=advice)
    whole = None if alone else objective.outputs(leaves, batch.inputs)
    for n in range(samples):
        row = objective.outputs(leaves, batch.part(slice(n, n + 1)).inputs)[0] if whole is None else whole[n]
        each.append(torch.stack([objective.flat(slopes(output, leaves)) for output in row.reshape(-1)]))
    gradients = torch.stack(each).flatten(1) if traced else torch.cat(each)
    total.addmm_(gradients, gradients.mT)
