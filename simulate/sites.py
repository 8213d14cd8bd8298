"""Where the parameters of a module act: calls of layers whose output is affine in the layer's own parameters.

Linear and convolutional layers, embeddings, and normalisations in evaluation mode are such layers. If the parameters
of one change by V, its output changes by what the same layer gives with V in their place, and by what its changed
input does. A *site* is one call of such a layer with the input it had and a nudge, a zero that was added to its
output. So derivatives by all parameters become derivatives by the nudges, one number for every unit and sample in
place of one for every parameter: the first layer of a perceptron, which has most of them, then costs nothing.

That the parameters act at the sites and nowhere else, and that no sample sees another, is found out by `covers`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd

from simulate.batches import rows, window
from simulate.objectives import Batch, Objective
from simulate.parametric import Leaves, as_found

__all__ = ["Site", "by_sample", "covers", "moved", "pulled", "visited"]

_KINDS = (nn.Linear, nn.Embedding, nn.LayerNorm, nn.GroupNorm, _ConvNd, _BatchNorm)
_ROUNDINGS = 1e4
"""A difference of more than so many roundings of the largest entry is none of rounding."""
_FEW = 3
"""Samples that the question whether the sites cover a model is put to."""


class Site(NamedTuple):
    """One call of a layer.

    Attributes
    ----------
    layer
        Affine in its parameters.
    places
        Which parameter of the objective stands under each name of the layer; the others are fixed.
    inputs
        What it was given, as part of the graph of the nudges before it.
    nudge
        Zeros, added to its output.
    """

    layer: nn.Module
    places: Mapping[str, int]
    inputs: Tensor
    nudge: Tensor


def visited(objective: Objective, leaves: Sequence[Tensor], batch: Batch) -> tuple[Tensor, list[Site]]:
    """Outputs of the model and the sites on the way, in their order. To be used within `as_found`.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    >>> objective = Objective(model, nn.MSELoss(), (torch.ones(5, 3), torch.zeros(5, 2)))
    >>> _, sites = visited(objective, objective.leaves(), next(objective.batches()))
    >>> [(dict(site.places), tuple(site.nudge.shape)) for site in sites]
    [({'weight': 0, 'bias': 1}, (5, 4)), ({'weight': 2, 'bias': 3}, (5, 2))]
    """
    sites: list[Site] = []
    with _watched(objective, leaves, sites):
        outputs = objective.outputs(leaves, batch.inputs)
    return outputs, sites


def moved(site: Site, directions: Sequence[Tensor]) -> Tensor:
    """Change of the output of a layer along d directions of its own parameters, its input held: (d, *output).

    Parameters
    ----------
    site
        Of an objective with the parameters theta.
    directions
        For every parameter of the objective a tensor (d, *its shape).
    """
    layer, inputs = site.layer, site.inputs.detach()
    own = {name: directions[place] for name, place in site.places.items()}
    count = len(next(iter(own.values())))
    if isinstance(layer, nn.Linear) and "weight" in own:
        change = nn.functional.linear(inputs, own["weight"].flatten(0, 1))
        change = change.unflatten(-1, (count, -1)).movedim(-2, 0)
        return change + _along(own["bias"], change, -1) if "bias" in own else change
    if _stackable(layer) and "weight" in own:
        stacked: Any = layer
        change = stacked._conv_forward(inputs, own["weight"].flatten(0, 1), None)
        axis = 1 if inputs.ndim == own["weight"].ndim - 1 else 0
        change = change.unflatten(axis, (count, -1)).movedim(axis, 0)
        return change + _along(own["bias"], change, axis + 1) if "bias" in own else change
    return torch.stack([_called(site, {n: v[i] for n, v in own.items()}, inputs) for i in range(count)])


def pulled(site: Site, cotangent: Tensor) -> Mapping[int, Tensor]:
    """Derivative of <cotangent, output of the layer> by its own parameters, by their places; its input held."""
    own: dict[str, Tensor] = {
        name: torch.zeros_like(p).requires_grad_()
        for name, p in site.layer.named_parameters(recurse=False)
        if name in site.places
    }
    with torch.enable_grad():
        output = _called(site, own, site.inputs.detach())
        found = torch.autograd.grad(output, list(own.values()), cotangent)
    return {site.places[name]: g for name, g in zip(own, found, strict=True)}


def covers(objective: Objective) -> bool:
    """Whether all that the parameters do to the outputs they do at sites.

    The derivative of a random combination of a few outputs by the parameters is compared with what the sites make
    of it: they differ if a parameter is used anywhere else.

    Examples
    --------
    >>> model, data = nn.Linear(3, 2), (torch.ones(5, 3), torch.zeros(5, 2))
    >>> covers(Objective(model, nn.MSELoss(), data))
    True
    >>> covers(Objective(lambda p, x: x @ p[0].T, nn.MSELoss(), data, parameters=[model.weight]))
    False
    """
    if objective.model is None or objective.training:
        return False
    with as_found(objective.model, objective.training), torch.enable_grad():
        batch = _few(objective)
        leaves = objective.leaves()
        outputs, sites = visited(objective, leaves, batch)
        if not sites:
            return False
        weights = _random(outputs)
        slopes, truth = _slopes(outputs, weights, sites), _gradient(outputs, weights, leaves)
        return _same(_summed(sites, slopes, leaves), truth)


def by_sample(objective: Objective) -> bool:
    """Whether every site has the samples along its first axis, or whole blocks of rows for each, and none sees another.

    Asked of a few samples: the derivative of the outputs of one of them must vanish at the rows of the others.

    Examples
    --------
    >>> data = torch.ones(5, 3), torch.zeros(5, 2)
    >>> by_sample(Objective(nn.Linear(3, 2), nn.MSELoss(), data))
    True
    """
    with as_found(objective.model, objective.training), torch.enable_grad():
        batch = _few(objective)
        outputs, sites = visited(objective, objective.leaves(), batch)
        samples = rows(batch.targets)
        if len(outputs) != samples:
            return False
        weights, chosen = torch.zeros_like(outputs), samples // 2
        weights[chosen] = _random(outputs)[chosen]
        slopes = _slopes(outputs, weights, sites)
        return all(_only(slope, samples, chosen) for slope in slopes)


@contextmanager
def _watched(objective: Objective, leaves: Sequence[Tensor], sites: list[Site]) -> Iterator[None]:
    modules = () if objective.model is None else objective.model.modules()

    def visit(layer: nn.Module, inputs: tuple[Any, ...], output: Any) -> Any:
        own = layer.named_parameters(recurse=False)
        places = {name: i for name, p in own for i, leaf in enumerate(leaves) if p is leaf}
        if not places or len(inputs) != 1 or not isinstance(output, Tensor):
            return output
        nudge = torch.zeros_like(output, requires_grad=True)
        sites.append(Site(layer, places, inputs[0], nudge))
        return output + nudge

    handles = [m.register_forward_hook(visit) for m in modules if _affine(m)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _affine(layer: nn.Module) -> bool:
    """Whether its output is affine in its parameters whatever its input, in evaluation mode."""
    if isinstance(layer, _BatchNorm) and layer.running_mean is None:
        return False  # the statistics of the batch: samples see each other
    if isinstance(layer, nn.Embedding) and layer.max_norm is not None:
        return False  # writes into its own weights
    return any(isinstance(layer, kind) and type(layer).forward is _forward(type(layer)) for kind in _KINDS)


def _forward(kind: type[nn.Module]) -> Any:
    """What the nearest ancestor among torch's own layers does."""
    return next(k.forward for k in kind.__mro__ if k.__module__.startswith("torch.nn.modules"))


def _stackable(layer: nn.Module) -> bool:
    return isinstance(layer, _ConvNd) and not isinstance(layer, _ConvTransposeNd) and layer.groups == 1


def _along(bias: Tensor, change: Tensor, axis: int) -> Tensor:
    """Biases (d, out) shaped to be added to changes (d, ..., out, ...)."""
    shape = [1] * change.ndim
    shape[0], shape[axis] = bias.shape
    return bias.view(shape)


def _called(site: Site, own: Mapping[str, Tensor], inputs: Tensor) -> Tensor:
    """The layer with these values for some of its parameters, and zeros for the others."""
    zeros = {n: torch.zeros_like(p) for n, p in site.layer.named_parameters(recurse=False)}
    return torch.func.functional_call(site.layer, zeros | dict(own), (inputs,))


def _few(objective: Objective) -> Batch:
    batch = next(iter(objective.batches()))
    part = slice(0, _FEW)
    return Batch(window(batch.inputs, part), window(batch.targets, part), 1.0)


def _random(like: Tensor) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(like.shape, generator=generator, dtype=like.dtype).to(like.device)


def _slopes(outputs: Tensor, weights: Tensor, sites: Sequence[Site]) -> Leaves:
    nudges = [site.nudge for site in sites]
    return torch.autograd.grad(
        outputs, nudges, weights, retain_graph=True, allow_unused=True, materialize_grads=True
    )


def _gradient(outputs: Tensor, weights: Tensor, leaves: Leaves) -> Leaves:
    return torch.autograd.grad(outputs, leaves, weights, allow_unused=True, materialize_grads=True)


def _summed(sites: Sequence[Site], slopes: Leaves, leaves: Leaves) -> Leaves:
    total = [torch.zeros_like(leaf) for leaf in leaves]
    for site, slope in zip(sites, slopes, strict=True):
        for place, part in pulled(site, slope).items():
            total[place] = total[place] + part
    return tuple(t.detach() for t in total)


def _same(found: Leaves, truth: Leaves) -> bool:
    scale = max(float(t.abs().max()) for t in truth)
    worst = max(float((f - t).abs().max()) for f, t in zip(found, truth, strict=True))
    return worst <= _ROUNDINGS * torch.finfo(truth[0].dtype).eps * scale


def _only(slope: Tensor, samples: int, chosen: int) -> bool:
    if len(slope) % samples:
        return False
    blocks = slope.unflatten(0, (samples, -1)).flatten(1).abs().amax(1)
    others = torch.cat([blocks[:chosen], blocks[chosen + 1 :]])
    return not bool(others.any())
