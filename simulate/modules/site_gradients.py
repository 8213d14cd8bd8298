"""Derivatives by the parameters of a layer for every sample separately, from derivatives by its output.

If a layer multiplies patches of its input by weights, the gradient of each sample is a sum over positions of outer
products, cotangent times patch. Inner products of these gradients follow from inner products of cotangents and of
patches, position by position. With few positions, above all with one, that is less work than the gradients.

| axis | meaning |
|---|---|
| n | samples |
| r | cotangents |
| g | groups of a convolution, else 1 |
| o, p | outputs and inputs of a position, of one group |
| L | positions of a sample |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd

from simulate.modules import sites
from simulate.modules.sites import Site
from simulate.objectives.batches import cuts

Use = tuple[Site, str, Tensor]
"""A site where a parameter acts, its name there, and cotangents (r, *output)."""

_BYTES = 1 << 27
"""Most bytes of gradients of single samples held at once."""


def per_sample(site: Site, name: str, cotangents: Tensor, samples: int) -> Tensor:
    """Return d<cotangent, output of the layer>/d parameter for each sample separately: (n, r, size).

    Parameters
    ----------
    site
        Site of an objective whose samples do not see each other (`sites.by_sample`).
    name
        Name of the parameter, a key of `site.places`.
    cotangents
        Cotangents of shape (r, *output).
    samples
        Number of samples, n.
    """
    layer = site.layer
    if not multiplies(layer):
        each = _gradients_by_backward if isinstance(layer, _ConvTransposeNd) else _normalisation_gradients
        return each(site, name, cotangents, samples)
    if name == "weight" and isinstance(layer, _ConvNd) and len(cotangents) == 1:
        return _kernel_gradients(site, cotangents[0], samples)
    steep = by_position(site, cotangents, samples)
    if name == "bias":
        return steep.sum(-1).movedim(2, 1).flatten(2)
    gradient = _multiply(steep, _patches(site, samples).mT)
    return (gradient.mT if isinstance(layer, nn.Embedding) else gradient).movedim(2, 1).flatten(2)


def gram_factors(site: Site, name: str, cotangents: Tensor, samples: int) -> tuple[Tensor, Tensor]:
    """Return two tensors (n, r, d) whose inner products over d are those of the gradients of `per_sample`.

    They are the same tensor, unless inner products of patches cost less.

    Examples
    --------
    >>> layer, x = nn.Linear(3, 2), torch.tensor([[1.0, 2.0, 2.0], [0.0, 0.0, 4.0]])
    >>> site = Site(layer, {"weight": 0}, x, torch.zeros(2, 2))
    >>> left, right = gram_factors(site, "weight", torch.ones(1, 2, 2), 2)
    >>> (left * right).sum(2).flatten()
    tensor([18., 32.])
    >>> per_sample(site, "weight", torch.ones(1, 2, 2), 2).shape
    torch.Size([2, 1, 6])
    """
    layer = site.layer
    if name == "weight" and multiplies(layer):
        steep = by_position(site, cotangents, samples)
        if steep.shape[-1] == 1:
            # at one position <c x', c' x'> = |x|^2 <c, c'>: the gradients are not written out
            scaled = (steep * _patches(site, samples).norm(dim=2)[:, :, None, None]).movedim(2, 1).flatten(2)
            return scaled, scaled
        if _overlaps_cost_less(layer, steep.shape[2] * steep.shape[3], steep.shape[4]):
            left = _multiply(steep, _overlaps(site, samples))
            return left.movedim(2, 1).flatten(2), steep.movedim(2, 1).flatten(2)
    gradients = per_sample(site, name, cotangents, samples)
    return gradients, gradients


def multiplies(layer: nn.Module) -> bool:
    """Whether a layer multiplies patches of its input by a matrix of weights."""
    return isinstance(layer, nn.Linear | nn.Embedding | _ConvNd) and not isinstance(layer, _ConvTransposeNd)


def factors(site: Site, cotangents: Tensor, samples: int) -> tuple[Tensor, Tensor]:
    """Return cotangents by position (n, g, r, o, L) and patches (n, g, p, L), for a layer that `multiplies`.

    Their outer products, summed over positions, are the gradient by the weights as matrices (o, p) of every group.
    """
    return by_position(site, cotangents, samples), _patches(site, samples)


def by_position(site: Site, cotangents: Tensor, samples: int) -> Tensor:
    """Return cotangents (r, *output) by position: (n, groups, r, outputs of a group, positions)."""
    layer: Any = site.layer
    if not isinstance(layer, _ConvNd):
        by_position = cotangents.reshape(len(cotangents), samples, 1, -1, cotangents.shape[-1])
        return by_position.permute(1, 2, 0, 4, 3)
    split = cotangents.flatten(3).unflatten(2, (layer.groups, -1)).unflatten(1, (samples, -1))
    return split.permute(1, 3, 0, 4, 2, 5).flatten(4)


def uses_of(found: Iterable[tuple[Site, Tensor]]) -> Mapping[int, list[Use]]:
    """Return the uses of every parameter, by its place: sites where it acts, its name there, and cotangents."""
    uses: dict[int, list[Use]] = {}
    for site, cotangents in found:
        for name, place in site.places.items():
            uses.setdefault(place, []).append((site, name, cotangents))
    return uses


def squared(steep: Tensor, patches: Tensor, weights: Tensor) -> Tensor:
    """Return the squared gradients from `factors`, summed with weights (n, r) of samples and cotangents: (g, o, p).

    Examples
    --------
    >>> steep, patches = torch.tensor([[[[[1.0], [2.0]]]]]), torch.tensor([[[[3.0], [0.0], [1.0]]]])
    >>> squared(steep, patches, torch.tensor([[0.5]]))[0]
    tensor([[ 4.5000,  0.0000,  0.5000],
            [18.0000,  0.0000,  2.0000]])
    """
    weights = weights.to(steep)
    if steep.shape[-1] == 1:
        # at one position the squared gradient is a product of squares
        lengths = torch.einsum("nr,ngro->ngo", weights, steep[..., 0].square())
        return torch.einsum("ngo,ngp->gop", lengths, patches[..., 0].square())
    each = steep[0].numel() // steep.shape[-1] * patches.shape[2] * steep.element_size()
    total = steep.new_zeros(steep.shape[1], steep.shape[3], patches.shape[2])
    for part in cuts(len(steep), max(1, _BYTES // max(1, each))):
        gradients = _multiply(steep[part], patches[part].mT)
        total += torch.einsum("nr,ngrop->gop", weights[part], gradients.square_())
    return total


def column_blocks(uses: Sequence[Use], samples: int) -> Iterator[Tensor]:
    """Yield gradients by one parameter for every sample and cotangent, some entries at a time: (n, r, some)."""
    site, name, cotangents = uses[0]
    if len(uses) > 1 or name != "weight" or not multiplies(site.layer):
        yield reduce(torch.add, (per_sample(*use, samples) for use in uses))
        return
    steep = by_position(site, cotangents, samples)
    one = steep[..., 0, 0].numel() * _fan_in(site.layer) * steep.element_size()
    alone = isinstance(site.layer, _ConvNd) and len(cotangents) == 1
    patches = None if alone else _patches(site, samples).mT
    for part in cuts(steep.shape[3], max(1, _BYTES // max(1, one))):
        yield (
            _kernel_gradients(site, cotangents[0], samples, part)
            if patches is None
            else _multiply(steep[:, :, :, part], patches).movedim(2, 1).flatten(2)
        )


def square_sums(uses: Sequence[Use], weights: Tensor) -> Tensor:
    """Return the squared gradients by one parameter, summed with weights (n, r) of samples and cotangents: (size,).

    Parameters
    ----------
    uses
        Every site where the parameter acts, its name there, and cotangents (r, *output).
    weights
        Weights of samples and cotangents.
    """
    samples = len(weights)
    site, name, cotangents = uses[0]
    if len(uses) == 1 and name == "weight" and multiplies(site.layer):
        found = squared(*factors(site, cotangents, samples), weights)
        return (found.mT if isinstance(site.layer, nn.Embedding) else found).flatten()
    size = site.layer.get_parameter(name).numel()
    most = max(1, _BYTES // (size * cotangents.element_size()))
    total = cotangents.new_zeros(size)
    for part in cuts(samples, most):
        for k in range(len(cotangents)):
            gradients = reduce(torch.add, (per_sample(*_restrict(use, k, part, samples)) for use in uses))
            total += weights[part, k].to(total) @ gradients[:, 0].square()
    return total


def _restrict(use: Use, cotangent: int, part: slice, samples: int) -> tuple[Site, str, Tensor, int]:
    """Return the arguments of `per_sample` for one cotangent and some of the samples."""
    site, name, cotangents = use

    def cut(values: Tensor) -> Tensor:
        return values.unflatten(0, (samples, -1))[part].flatten(0, 1)

    only = site._replace(inputs=cut(site.inputs), nudge=cut(site.nudge))
    return only, name, cut(cotangents[cotangent])[None], part.stop - part.start


def numbers_held(site: Site, count: int, samples: int) -> int:
    """Return how many numbers `gram_factors` or `per_sample` hold at most for one sample and `count` cotangents."""
    layer, outputs = site.layer, site.nudge.numel() // samples
    if not multiplies(layer):
        return count * (3 * outputs + sum(p.numel() for p in layer.parameters(recurse=False)))
    groups, _, out, positions = by_position(site, site.nudge[None], samples)[0].shape
    patches = groups * _fan_in(layer) * positions
    if _overlaps_cost_less(layer, count * out, positions):
        return 2 * patches + groups * positions**2 + 2 * count * outputs
    return 2 * patches + count * (2 * outputs + groups * out * _fan_in(layer))


def _fan_in(layer: Any) -> int:
    return layer.num_embeddings if isinstance(layer, nn.Embedding) else layer.weight[0].numel()


def _overlaps_cost_less(layer: nn.Module, rows: int, positions: int) -> bool:
    """Whether inner products of patches cost less than gradients with this many rows."""
    return positions * (_fan_in(layer) + rows) <= rows * _fan_in(layer)


def _patches(site: Site, samples: int) -> Tensor:
    """Return the patches that the weights multiply: (n, groups, fan in, positions)."""
    layer, inputs = site.layer, site.inputs.detach()
    if isinstance(layer, nn.Embedding):
        return _tokens(layer, inputs, samples)[:, None].mT.to(site.nudge.dtype)
    if isinstance(layer, nn.Linear):
        return inputs.reshape(samples, 1, -1, inputs.shape[-1]).mT
    return _windows(layer, inputs, samples)


def _tokens(layer: nn.Embedding, inputs: Tensor, samples: int) -> Tensor:
    """Return one-hot tokens (n, positions, tokens), with zeros for padding, which has no gradient."""
    tokens = inputs.reshape(samples, -1)
    hot = nn.functional.one_hot(tokens, layer.num_embeddings)
    return hot if layer.padding_idx is None else hot * (tokens != layer.padding_idx)[..., None]


def _windows(layer: Any, inputs: Tensor, samples: int) -> Tensor:
    """Return the patches of a convolution, as views of its padded input."""
    padded = _padded(layer, inputs)
    for axis, (size, stride, dilation) in enumerate(
        zip(layer.kernel_size, layer.stride, layer.dilation, strict=True), start=2
    ):
        # `unfold` knows no dilation: windows are taken in full length and thinned, all as views
        padded = padded.unfold(axis, dilation * (size - 1) + 1, stride)[..., ::dilation]
    spatial = len(layer.kernel_size)
    patches = padded.movedim(tuple(range(2 + spatial, 2 + 2 * spatial)), tuple(range(2, 2 + spatial)))
    shape = samples, len(inputs) // samples, layer.groups, _fan_in(layer), -1
    return patches.reshape(shape).movedim(1, -2).flatten(-2)


def _padded(layer: Any, inputs: Tensor) -> Tensor:
    mode = "constant" if layer.padding_mode == "zeros" else layer.padding_mode
    return nn.functional.pad(inputs, layer._reversed_padding_repeated_twice, mode=mode)


def _overlaps(site: Site, samples: int) -> Tensor:
    """Return the inner products of patches: (n, groups, positions, positions)."""
    if isinstance(site.layer, nn.Embedding):
        tokens, padding = site.inputs.reshape(samples, 1, -1), site.layer.padding_idx
        same = tokens[..., None] == tokens[..., None, :]
        return (same if padding is None else same & (tokens != padding)[..., None]).to(site.nudge.dtype)
    patches = _patches(site, samples)
    return patches.mT @ patches


def _multiply(steep: Tensor, matrix: Tensor) -> Tensor:
    """Multiply (n, g, r, o, L) by (n, g, L, p), all rows of a sample at once."""
    return (steep.flatten(2, 3) @ matrix).unflatten(2, steep.shape[2:4])


def _kernel_gradients(site: Site, cotangent: Tensor, samples: int, part: slice = slice(None)) -> Tensor:
    """Return the gradients by the weights of a convolution, or by some outputs of every group: (n, 1, size)."""
    layer: Any = site.layer
    steep = cotangent.unflatten(1, (layer.groups, -1))[:, :, part].flatten(1, 2)
    # samples are groups of one convolution: for one cotangent its backward pass takes less time than patches do
    inputs, grouped = (
        each.unflatten(0, (samples, -1)).transpose(0, 1).flatten(1, 2)
        for each in (_padded(layer, site.inputs.detach()), steep)
    )
    weights = inputs.new_empty(1).expand(grouped.shape[1], *layer.weight.shape[1:])
    none = [0] * len(layer.kernel_size)
    found = torch.ops.aten.convolution_backward(
        grouped, inputs, weights, None, layer.stride, none, layer.dilation, False, none, samples * layer.groups,
        (False, True, False),
    )[1]  # fmt: skip
    return found.view(samples, 1, -1)


def _normalisation_gradients(site: Site, name: str, cotangents: Tensor, samples: int) -> Tensor:
    """Return the gradients by the scale or shift of a normalisation."""
    if name == "weight":
        cotangents = cotangents * sites.normalised_input(site, site.inputs.detach())
    return sum_by_weight(site, cotangents, samples)


def sum_by_weight(site: Site, products: Tensor, samples: int) -> Tensor:
    """Sum products (r, *output) of a normalisation over positions, for each of its weights: (n, r, size)."""
    if not isinstance(site.layer, nn.LayerNorm | nn.RMSNorm):
        products = products.movedim(2, -1)
    size = site.layer.get_parameter("weight").numel()
    return products.reshape(len(products), samples, -1, size).sum(2).movedim(1, 0)


def _gradients_by_backward(site: Site, name: str, cotangents: Tensor, samples: int) -> Tensor:
    """Return the gradients from one backward pass through the layer for each sample and cotangent."""
    place, found = site.places[name], []
    inputs, cotangents = site.inputs.unflatten(0, (samples, -1)), cotangents.unflatten(1, (samples, -1))
    for one, slopes in zip(inputs, cotangents.unbind(1), strict=True):
        alone = site._replace(inputs=one)
        found.append(torch.stack([sites.pulled(alone, slope)[place].flatten() for slope in slopes]))
    return torch.stack(found)
