"""Sites of a module: calls of layers whose output is affine in the layer's own parameters.

Linear and convolutional layers, embeddings, and normalisations in evaluation mode are affine in their parameters. If
these change by V, the output changes by the output of the same layer with V as its parameters, and by the effect of its
changed input. A *site* is one call of such a layer, with its input and a nudge, a zero tensor added to its output.
Derivatives by all parameters become derivatives by the nudges: one number for every unit and sample instead of one for
every parameter. The first layer of a perceptron, which has most of the parameters, then costs nothing.

Multi-head attention has two affine layers inside one function; it is called as `simulate.modules.attention` writes it
out. Transformer layers with positions along the first axis and samples along the second, as in torch by default, have
sites with these axes swapped.

`covers` tests that the parameters act at the sites and nowhere else, `by_sample` also that no sample sees another.
"""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd

from simulate.modules.attention import attention, is_plain, lend, projection
from simulate.objectives import Batch, Objective
from simulate.objectives.additivity import asked_once, largest_batch, shared_answers, spaced, spread_samples
from simulate.objectives.batches import joined, rows, window
from simulate.objectives.derivatives import alike, in_graph, normal, slopes
from simulate.objectives.restoring import draws
from simulate.objectives.soundness import trusted

NORMALISATIONS = (nn.LayerNorm, nn.RMSNorm, nn.GroupNorm, _BatchNorm)
_TRANSFORMERS = (
    nn.TransformerEncoderLayer,
    nn.TransformerDecoderLayer,
    nn.TransformerEncoder,
    nn.TransformerDecoder,
)
_PARAMETER_NAMES = ("weight", "bias")
_HOOKS = "model must save tensors for the backward pass as torch does, got hooks on them, as of a checkpoint"
_KINDS = (nn.Linear, nn.Embedding, _ConvNd, *NORMALISATIONS)


class ElsewhereError(ValueError):
    """Raised when parameters act elsewhere than at the sites."""


class Site(NamedTuple):
    """One call of a layer.

    Attributes
    ----------
    layer
        Layer that is affine in its parameters.
    places
        Number of the objective's parameter under each name of the layer; its other parameters are fixed.
    inputs
        Input of the layer, part of the graph of the nudges before it.
    nudge
        Zeros, added to the output of the layer.
    """

    layer: nn.Module
    places: Mapping[str, int]
    inputs: Tensor
    nudge: Tensor


def visited(objective: Objective, batch: Batch) -> tuple[Tensor, list[Site]]:
    """Return the outputs of the model and the sites on the way, in their order.

    Call it within `Objective.measured`. The parameters of a site are constants in the graph of the outputs.

    Raises
    ------
    ElsewhereError
        If a parameter enters the outputs in another way, or tensors are saved for the backward pass otherwise than by
        torch itself; if `covers` the model, this happens only for some samples. If samples are taken `by_sample`, also
        if the first batch of this size has them in another order.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    >>> objective = Objective(model, (torch.ones(5, 3), torch.zeros(5, 2)), nn.MSELoss())
    >>> _, sites = visited(objective, next(objective.batches()))
    >>> [(dict(site.places), tuple(site.nudge.shape)) for site in sites]
    [({'weight': 0, 'bias': 1}, (5, 4)), ({'weight': 2, 'bias': 3}, (5, 2))]
    """
    try:
        # a checkpoint would run a layer again in the backward pass, without its nudge
        with torch.autograd.graph.disable_saved_tensors_hooks(_HOOKS):
            outputs, sites = _run_with_sites(objective, batch)
    except RuntimeError as error:
        if _HOOKS in str(error):
            raise ElsewhereError(_HOOKS) from error
        raise
    samples = rows(batch.inputs)
    if any(in_graph([outputs], objective.leaves)) or not _in_expected_order(
        objective, outputs, sites, samples
    ):
        raise ElsewhereError(
            "model must use its parameters in layers only, for all samples alike and in their order; got a model that"
            " does not"
        )
    return outputs, sites


def visited_or_none(objective: Objective, batch: Batch) -> tuple[Tensor, list[Site]] | None:
    """Return what `visited` does, or None if parameters act elsewhere for these samples."""
    try:
        return visited(objective, batch)
    except ElsewhereError:
        return None


def uses(found: Iterable[Site]) -> Mapping[int, int]:
    """Return at how many sites each parameter acts, by its place."""
    return Counter(place for site in found for place in site.places.values())


def _in_expected_order(objective: Objective, outputs: Tensor, sites: Sequence[Site], samples: int) -> bool:
    """Whether the sites have the samples in order, as `by_sample` requires."""
    # a model may reorder samples by the size of the batch: the first batch of each size is tested
    if not objective.answers.get("by_sample"):
        return True
    if any(len(site.nudge) % samples for site in sites):
        return False
    known = shared_answers(objective).setdefault("orders", {1: True})
    if samples not in known:
        known[samples] = trusted(objective) or _scales_by_sample(outputs, sites)
    return known[samples]


def _scales_by_sample(outputs: Tensor, sites: Sequence[Site]) -> bool:
    """Whether scaling the outputs of each sample scales the derivatives at its own rows alike."""
    weights, nudges = normal(outputs), [site.nudge for site in sites]
    scale = _scales(len(outputs), outputs)
    once, scaled = (slopes(outputs, nudges, w) for w in (weights, weights * _column(scale, outputs)))
    blocks = ((_blocks(a, len(scale)), _blocks(b, len(scale))) for a, b in zip(once, scaled, strict=True))
    return all(_is_scaled(a, b, scale) for a, b in blocks)


def _scales(count: int, like: Tensor) -> Tensor:
    """Return random powers of two with random signs, which scale rounding exactly too.

    Two samples get the same with a chance of 1 in 1,024 in double precision, 1 in 128 in single precision.
    """
    drawn = np.random.default_rng(0)
    # half of the exponents that there are: the derivatives need room too
    exponents = drawn.integers(0, round(math.log2(torch.finfo(like.dtype).max)) // 2, count)
    return torch.from_numpy(np.ldexp(drawn.choice([-1.0, 1.0], count), exponents)).to(like)


def _blocks(slope: Tensor, samples: int) -> Tensor:
    return slope.unflatten(0, (samples, -1)).flatten(1)


def _is_scaled(once: Tensor, scaled: Tensor, scale: Tensor) -> bool:
    expected = scale[:, None] * once
    least = _ROUNDINGS * torch.finfo(once.dtype).eps * expected.abs().amax(1)
    return bool(((scaled - expected).abs().amax(1) <= least).all())


def moved(site: Site, directions: Sequence[Tensor]) -> Tensor:
    """Return the change of the output of a layer along d directions of its parameters, input fixed: (d, *output).

    Parameters
    ----------
    site
        Site of an objective.
    directions
        One tensor (d, *its shape) for every parameter of the objective.
    """
    layer, inputs = site.layer, site.inputs.detach()
    own = {name: directions[place] for name, place in site.places.items()}
    if isinstance(layer, nn.Embedding) and layer.padding_idx is not None:
        own["weight"] = (
            # torch gives the padding row no gradient, so it does not move
            own["weight"].clone().index_fill_(1, torch.tensor(layer.padding_idx, device=inputs.device), 0)
        )
    count = len(next(iter(own.values())))
    if isinstance(layer, nn.Linear) and "weight" in own:
        change = nn.functional.linear(inputs, own["weight"].flatten(0, 1))
        change = change.unflatten(-1, (count, -1)).movedim(-2, 0)
        return change + _align_bias(own["bias"], change, -1) if "bias" in own else change
    if (
        isinstance(layer, _ConvNd)
        and not isinstance(layer, _ConvTransposeNd)
        and "weight" in own
        and layer.groups == 1
    ):
        # all directions as one convolution, stacked as output channels
        change = layer._conv_forward(inputs, own["weight"].flatten(0, 1), None)
        axis = 1 if inputs.ndim == own["weight"].ndim - 1 else 0
        change = change.unflatten(axis, (count, -1)).movedim(axis, 0)
        return change + _align_bias(own["bias"], change, axis + 1) if "bias" in own else change
    return torch.stack([called(site, {n: v[i] for n, v in own.items()}, inputs) for i in range(count)])


def pulled(site: Site, cotangent: Tensor) -> Mapping[int, Tensor]:
    """Return d<cotangent, output of the layer>/d parameters by place, with the input fixed."""
    own = {
        name: _constant_parameter(site, name, 0.0).requires_grad_()
        for name in _PARAMETER_NAMES
        if name in site.places
    }
    with torch.enable_grad():
        # the layer is affine in its parameters, so derivatives at zero are those at their values
        output = called(site, own, site.inputs.detach())
        found = torch.autograd.grad(output, list(own.values()), cotangent)
    return {site.places[name]: g for name, g in zip(own, found, strict=True)}


@asked_once
def covers(objective: Objective) -> bool:
    """Whether the parameters act on the outputs at sites only.

    Tested on a few outputs: nothing else in their graph may lead to a parameter, whatever its derivative, and the sites
    must give the derivatives by all parameters. In training mode nothing may be drawn at random either.

    Examples
    --------
    >>> model, data = nn.Linear(3, 2), (torch.ones(5, 3), torch.zeros(5, 2))
    >>> covers(Objective(model, data, nn.MSELoss()))
    True
    >>> covers(Objective(lambda p, x: x @ p[0].T, data, nn.MSELoss(), parameters=[model.weight]))
    False
    """
    if objective.model is None or objective.runs_again:
        return False
    with objective.measured():
        batch = objective.few()
        if objective.training and draws(lambda: objective.outputs(objective.leaves, batch.inputs)):
            return False  # dropout: the two derivatives to compare would come from different draws
        try:
            outputs, sites = visited(objective, batch)
            full = all(site.nudge.numel() and site.inputs.numel() for site in sites)
            return bool(sites) and full and _agrees_with_autograd(objective, batch, outputs, sites)
        except (
            ValueError,
            RuntimeError,
        ):  # a layer inside a transform of torch.func has no nudge, for example
            return False


def _agrees_with_autograd(objective: Objective, batch: Batch, outputs: Tensor, sites: Sequence[Site]) -> bool:
    """Whether derivatives of a few samples at the sites agree with derivatives by the parameters."""
    leaves, weights = objective.leaves, normal(outputs)
    plain = objective.outputs(leaves, batch.inputs)
    expected, found = slopes(plain, leaves, weights), [torch.zeros_like(leaf) for leaf in leaves]
    for site, slope in zip(sites, slopes(outputs, [site.nudge for site in sites], weights), strict=True):
        for place, part in pulled(site, slope).items():
            found[place] += part
    return alike(outputs, plain) and alike(objective.flat(found), objective.flat(expected))


_TESTED = 32
"""Number of samples whose order at the sites is tested."""

_FEW = 8
"""With at most this many samples, their given order is tested too."""

_ROUNDINGS = 1e4
"""Roundings of the largest number of a sample, beyond which two numbers count as different."""


@asked_once
def by_sample(objective: Objective) -> bool:
    """Whether sites cover a model, have samples (or blocks of rows) along the first axis, and none sees another.

    The samples must be `Objective.apart`. The test takes some samples of a batch in a random order; `visited` tests
    batches of other sizes. With several batches, a few samples of all of them are tested too. Derivatives of the
    outputs of one half of the samples must vanish at the rows of the other half. If the outputs of each sample are
    multiplied by a number, the derivatives at its rows must be multiplied by the same number. A model that reorders
    samples by their content, but none of the tested ones, goes unnoticed.

    Examples
    --------
    >>> data = torch.randn(5, 3), torch.zeros(5, 2)
    >>> by_sample(Objective(nn.Linear(3, 2), data, nn.MSELoss()))
    True
    >>> by_sample(Objective(nn.Sequential(nn.Linear(3, 2), nn.Softmax(0)), data, nn.MSELoss()))
    False
    """
    if not (covers(objective) and objective.apart):
        return False
    if trusted(objective):
        return True
    batch = objective.few()
    if objective.head_of(batch) is None:  # otherwise its logits take more memory than a pass may
        batch = largest_batch(objective)
    reordered = [window(batch.inputs, order) for order in _orders(batch.samples)]
    if objective.several and objective.head_of(batch) is None:
        spread = [inputs for inputs, _ in spread_samples(objective)]
        reordered.append(joined([spread[i] for i in np.random.default_rng(0).permutation(len(spread))]))
    with objective.measured():
        try:
            return all(_keeps_order(objective, inputs) for inputs in reordered)
        except (ValueError, RuntimeError):  # outputs without derivatives by the nudges, for example
            return False


def _orders(count: int) -> Iterator[Tensor]:
    """Yield numbers of samples in a random order."""
    # as given, samples may already be sorted by the key by which the model sorts them
    some = torch.tensor(spaced(count, _TESTED))
    if len(some) <= _FEW:  # with so few samples the random order may be the sorted one
        yield some
    yield some[torch.randperm(len(some), generator=torch.Generator().manual_seed(0))]


def _keeps_order(objective: Objective, inputs: Any) -> bool:
    outputs, found = _run_with_sites(objective, Batch(inputs, (), 0.0))
    count, drawn = len(outputs), np.random.default_rng(0)
    half = torch.zeros(count, dtype=torch.bool, device=outputs.device)
    half[torch.from_numpy(drawn.permutation(count)[: count // 2])] = True
    scale = _scales(count, outputs)
    weights, nudges = normal(outputs), [site.nudge for site in found]
    masks = (half.to(outputs), (~half).to(outputs), scale)
    each = (slopes(outputs, nudges, weights * _column(mask, outputs)) for mask in masks)
    return all(
        _derivatives_keep_order(first, second, scaled, half, scale)
        for first, second, scaled in zip(*each, strict=True)
    )


def _column(numbers: Tensor, like: Tensor) -> Tensor:
    return numbers.view(-1, *[1] * (like.ndim - 1))


def _derivatives_keep_order(
    first: Tensor, second: Tensor, scaled: Tensor, half: Tensor, scale: Tensor
) -> bool:
    """Whether the derivatives of each half vanish at the other, and all are scaled like their samples."""
    if len(first) % len(half) or not first.numel():
        return False
    one, other, all_of_them = (_blocks(slope, len(half)) for slope in (first, second, scaled))
    apart = not (bool(one[~half].any()) or bool(other[half].any()))
    return apart and _is_scaled(one + other, all_of_them, scale)


def _run_with_sites(objective: Objective, batch: Batch) -> tuple[Tensor, list[Site]]:
    sites: list[Site] = []
    every = [] if objective.model is None else list(objective.model.modules())
    modules, turned = [m for m in every if _affine(m)], {m for each in every for m in _samples_second(each)}
    leaves, constants, entered = objective.leaves, [leaf.detach() for leaf in objective.leaves], []

    def enter(layer: nn.Module, inputs: tuple[Any, ...], options: dict[str, Any]) -> None:
        own = {n: layer._parameters.get(n) for n in _PARAMETER_NAMES}
        places = {n: i for n, p in own.items() for i, leaf in enumerate(leaves) if p is leaf}
        # other arguments such as an output size are not supported; a layer of width 0 has derivatives without a shape
        plain = len(inputs) == 1 and not options and all(p is None or p.numel() for p in own.values())
        entered.append(places if plain else {})
        for name, place in entered[-1].items():
            _set_parameter(layer, name, constants[place])

    def leave(layer: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> Tensor:
        places = entered.pop()
        if not places:
            return output
        for name, place in places.items():
            _set_parameter(layer, name, leaves[place])
        second = layer in turned and output.ndim == 3
        given, like = (t.transpose(0, 1) if second else t for t in (inputs[0], output))
        nudge = torch.zeros_like(like, memory_format=torch.contiguous_format, requires_grad=True)
        sites.append(Site(layer, places, given, nudge))
        return output + (nudge.transpose(0, 1) if second else nudge)

    # next to the layer: what other hooks do to inputs and outputs belongs to the rest of the model
    handles: list[Any] = []
    attending: list[Any] = [m for m in every if is_plain(m)]
    packed = [projection(m) for m in attending]
    for module in (*modules, *packed):
        handles.append(module.register_forward_pre_hook(enter, with_kwargs=True))
        handles.append(module.register_forward_hook(leave, prepend=True))
    try:
        for layer, part in zip(attending, packed, strict=True):
            layer.forward = attention(layer, part)
        return objective.outputs(leaves, batch.inputs), sites
    finally:
        for handle in handles:
            handle.remove()
        for layer, part in zip(attending, packed, strict=True):
            vars(layer).pop("forward", None)
            lend(layer, part)  # the parameters themselves, as other layers have them back too


def _set_parameter(layer: nn.Module, name: str, value: Any) -> None:
    layer._parameters[name] = value  # a tensor, as `torch.func.functional_call` puts there too


def _samples_second(whole: nn.Module) -> list[nn.Module]:
    """Return layers of a torch transformer with samples along the second of three axes, acting along the last."""
    if not isinstance(whole, _TRANSFORMERS) or type(whole).forward is not _torch_forward(type(whole)):
        return []
    first = next(iter(getattr(whole, "layers", [whole])), None)
    if getattr(getattr(first, "self_attn", None), "batch_first", True):
        return []
    return [
        m
        for m in whole.children()
        if isinstance(m, nn.Linear) or len(getattr(m, "normalized_shape", ())) == 1
    ]


def _affine(layer: nn.Module) -> bool:
    """Whether the output of a layer is affine in its parameters for every input, and computed for each sample alone."""
    if isinstance(layer, _BatchNorm) and (layer.training or layer.running_mean is None):
        return False  # statistics of the batch: samples see each other
    if isinstance(layer, nn.Embedding) and (
        layer.max_norm is not None or layer.scale_grad_by_freq or layer.sparse
    ):
        return False  # writes into its weights, or has gradients of a special kind
    if "forward" in vars(layer):
        return False  # an instance attribute overrides the method of its class
    return any(
        isinstance(layer, kind) and type(layer).forward is _torch_forward(type(layer)) for kind in _KINDS
    )


def _torch_forward(kind: type[nn.Module]) -> Any:
    """Return the forward function of the nearest ancestor among torch's own layers."""
    return next(k.forward for k in kind.__mro__ if k.__module__.startswith("torch.nn.modules"))


def _align_bias(bias: Tensor, change: Tensor, axis: int) -> Tensor:
    """Return biases (d, out), shaped to be added to changes (d, ..., out, ...)."""
    shape = [1] * change.ndim
    shape[0], shape[axis] = bias.shape
    return bias.view(shape)


def called(site: Site, own: Mapping[str, Tensor], inputs: Tensor) -> Tensor:
    """Return the output of the layer with these values for some of its parameters, and zeros for the others."""
    # without its hooks, which belong to the rest of the model
    layer: Any = copy.copy(site.layer)
    # batch normalisation has wrong derivatives for weights that do not lie next to each other
    layer._parameters = {
        n: own[n].contiguous() if n in own else None if p is None else _constant_parameter(site, n, 0.0)
        for n, p in site.layer._parameters.items()
    }
    layer._buffers = {
        n: b.to(site.nudge.dtype) if b is not None and b.is_floating_point() else b
        for n, b in site.layer._buffers.items()
    }
    return layer.forward(inputs)


def normalised_input(site: Site, inputs: Tensor) -> Tensor:
    """Return the normalised input, which a normalisation multiplies by its weights."""
    return called(site, {"weight": _constant_parameter(site, "weight", 1.0)}, inputs)


def _constant_parameter(site: Site, name: str, value: float) -> Tensor:
    """Return a constant tensor like a parameter of the layer."""
    # of the type of the nudge: a layer of half precision is measured in single, but keeps its own type
    return torch.full_like(site.layer.get_parameter(name), value, dtype=site.nudge.dtype)
