"""Factors of the Gauss-Newton matrices of single samples, a few samples at a time: G_i = B_i' D_i B_i, B_i = S_i J_i.

J_i is the derivative of the outputs of a sample by the parameters, A_i = S_i' D_i S_i the curvature of the loss in
these outputs, with signs D_i. B_i has as many rows as A_i has rank. It is never written out if the parameters act at
sites (`simulate.modules.sites`): only inner products of its rows and products with directions are computed.

| symbol | shape | meaning |
|---|---|---|
| B_i | (r, dim) | S_i J_i, r the rank of A_i, at most the number of outputs m |
| K_i | (r, r) | B_i B_i' |
| D_i | (r,) | signs; 0 past the rank |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

import torch
from torch import Tensor

from simulate import _memory
from simulate.lanczos.rows import identity
from simulate.modules import site_gradients, sites
from simulate.modules.sites import Site
from simulate.objectives import Batch, Objective
from simulate.objectives.additivity import MIXED
from simulate.objectives.batches import cuts, window
from simulate.objectives.derivatives import directional, normal, slopes
from simulate.objectives.output_curvature import SoftmaxCurvature, closed_curvature

_WINDOW = 1 << 28
"""Most bytes of the derivatives of samples taken together: more are slower, not faster."""

_MANY = 512
"""Outputs of a sample from which on the factors are taken column by column, for many samples at once."""

_ROUNDINGS = 1e4
"""Roundings of the largest output, beyond which two outputs count as different."""

_HELD = 1 << 27
"""Most bytes of derivatives held at once."""
_COUPLED = 100
"""Roundings of the largest entry, beyond which the effect of one sample on another counts as coupling."""


class CoupledError(ValueError):
    """Raised when samples have no separate losses or outputs."""


def parameter_columns(objective: Objective, name: str, value: Any) -> Tensor:
    """Return vectors in the space of the parameters as columns (dim, k), with their type and device.

    Raises
    ------
    ValueError
        If the vectors are of another shape or complex.
    """
    columns = torch.as_tensor(value)
    if columns.ndim != 2 or columns.shape[0] != objective.dim or columns.shape[1] == 0:
        shape = tuple(columns.shape)
        raise ValueError(f"{name} must be of shape ({objective.dim}, k) with k >= 1, got {shape}")
    if columns.is_complex():
        raise ValueError(f"{name} must be real, got {columns.dtype}")
    return columns.detach().to(dtype=objective.dtype, device=objective.device)


def finite_derivatives(numbers: Tensor) -> Tensor:
    """Return the numbers; raise if any is not finite."""
    if not bool(numbers.isfinite().all()):
        raise ValueError("objective must have finite derivatives, got NaN or infinity")
    return numbers


def require_rows(outputs: Tensor, samples: int) -> None:
    """Refuse outputs that are not one row for each sample."""
    if outputs.ndim == 0 or len(outputs) != samples:
        shape = tuple(outputs.shape)
        raise CoupledError(f"model must return one row for each of {samples} samples, got shape {shape}")


class Outer:
    """First and second derivative of the loss of one batch in its outputs, divided by the share of a sample.

    Outputs and tensors like them have one row for each sample here, (n, m).
    """

    def __init__(self, objective: Objective, batch: Batch, outputs: Tensor) -> None:
        require_rows(outputs, batch.samples)
        free, self._share = outputs.detach().requires_grad_(), objective.share
        loss = objective.loss(free, batch)
        closed = closed_curvature(objective.criterion, outputs.detach(), batch)
        self.closed = closed is not None
        (slope,) = torch.autograd.grad(loss, free, create_graph=not self.closed)
        self._shape = outputs.shape
        self.slope = slope.detach().reshape(batch.samples, -1) / self._share
        self._bend = closed or partial(directional, slope, free)
        # closed forms are those of losses that sum over the samples
        if not self.closed:
            self._require_uncoupled()

    def bent(self, tangent: Tensor, part: slice) -> Tensor:
        """Return the second derivative times a change of the outputs of some of the samples."""
        change = torch.zeros_like(self.slope)
        change[part] = tangent
        return self._bend(change.view(self._shape)).reshape_as(change)[part] / self._share

    def factors(self, part: slice) -> tuple[Tensor, Tensor] | None:
        """Return values (n, r) and V (n, m, r) of the second derivative V diag(values) V'; None without a formula."""
        if not isinstance(self._bend, SoftmaxCurvature):
            return None
        values, vectors = self._bend.factors(part)
        return values / self._share, vectors

    def columns(self, part: slice, most: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield values (n, r) and V (n, m, r) of `factors` for at most `most` columns at a time, for torch's losses."""
        count = self.slope.shape[1]
        if not isinstance(self._bend, SoftmaxCurvature):  # a loss of every output by itself
            values = self.bent(torch.ones_like(self.slope[part]), part)
            units = identity(count, values).expand(len(values), -1, -1)
            yield from ((values[:, some], units[..., some]) for some in cuts(count, most))
            return
        for some in cuts(max(1, self._shape[1] - 1), most):
            values, vectors = self._bend.factors_by_place(part, some)
            for place, own in enumerate(vectors.unbind(1)):
                if values.shape[1] > 1:  # zero at the other places
                    own = own[:, :, None] * identity(values.shape[1], own)[place, :, None]
                yield values[:, place] / self._share, own.reshape(len(own), count, -1)

    def blocks(self, part: slice) -> Tensor:
        """Return the second derivatives (n, m, m) of some of the samples."""
        units, likes = identity(self.slope.shape[1], self.slope), self.slope[part]
        return torch.stack([self.bent(unit.expand_as(likes), part) for unit in units], dim=1)

    def _require_uncoupled(self) -> None:
        """Raise if a change of the outputs of one sample changes the slope at another."""
        # one test for each binary digit of the numbers of the samples: some digit separates any two of them
        numbers, change = torch.arange(len(self.slope), device=self.slope.device), normal(self.slope)
        for digit in range((len(self.slope) - 1).bit_length()):
            others = (numbers >> digit & 1).bool()
            felt = self.bent(change.masked_fill(others[:, None], 0.0), slice(None)).abs().amax(1)
            if float(felt[others].max()) > _COUPLED * torch.finfo(felt.dtype).eps * float(felt.max()):
                raise CoupledError(
                    "loss must be a sum or mean of what every sample adds, got one that couples samples;"
                    " use an estimate such as spectra.trace"
                )


def outer_of(objective: Objective, batch: Batch) -> Outer:
    """Return the `Outer` of a batch at the outputs of the model."""
    return Outer(objective, batch, _outputs_without_graph(objective, batch))


def _outputs_without_graph(objective: Objective, batch: Batch) -> Tensor:
    with torch.no_grad():
        return objective.outputs(objective.leaves, batch.inputs)


def separate_batches(objective: Objective) -> Iterator[Batch]:
    """Yield all batches, including those that add nothing to the loss; raise if samples see each other."""
    if objective.training:
        raise ValueError("objective must be in evaluation mode, where no sample sees another, got training")
    if objective.mixing == MIXED:
        raise ValueError("model must compute each sample separately, got samples that see each other")
    for batch in objective.batches(empty=True):
        if batch.samples > 1 and not batch.cuttable:
            raise ValueError(
                "data must have samples along the first axis of every tensor to measure single samples, got"
                f" {type(batch.inputs).__name__} as inputs"
            )
        yield batch


def windows(batch: Batch, one: Callable[[Any], int], objective: Objective) -> Iterator[slice]:
    """Yield slices of a batch that fit into memory; `one` returns the bytes that given samples take."""
    each = _require_memory(objective, one(window(batch.inputs, slice(0, 1))))
    return cuts(batch.samples, max(1, _HELD // max(1, each)))


def _require_memory(objective: Objective, size: int) -> int:
    """Return the bytes that one sample takes; raise if memory does not have them."""
    what, advice = (
        "the derivatives of one sample",
        "use an estimate such as spectra.trace, or a smaller model",
    )
    _memory.require_free("objective", size, what, device=objective.device, advice=advice)
    return size


# --- factors ------------------------------------------------------------------------------------------------------

Pair = tuple[Tensor, Tensor]
"""Two tensors (n, r, d) whose inner products over d are those of gradients."""


class Root(NamedTuple):
    """Function for the rows of S.

    Attributes
    ----------
    rows
        Returns, for some samples of a batch with given outputs, S as cotangents (r, n, *outputs) and D as signs (n, r).
    asks
        Whether it needs the targets. If not, samples whose targets add nothing to the loss count like the others.
    """

    rows: Callable[[Outer, slice, Tensor], tuple[Tensor, Tensor]]
    asks: bool = True


class SamplePart(NamedTuple):
    """The factors of n samples.

    Attributes
    ----------
    pairs
        Their inner products add up to K_i; empty if the samples add nothing to the loss, or pairs are not needed.
    signs
        Signs D_i, (n, r).
    cotangents
        Rows of S_i, shaped like the outputs: (r, n, *outputs).
    along
        Function of k directions in the space of the parameters, (k, dim), to their products with B_i, (n, r, k).
    slopes
        Every site with the derivatives of the cotangents by its output, (r, *output); empty if gradients were taken.
    """

    pairs: Sequence[Pair]
    signs: Tensor
    cotangents: Tensor
    along: Callable[[Tensor], Tensor]
    slopes: Sequence[tuple[Site, Tensor]] = ()


def roots(outer: Outer, part: slice, outputs: Tensor) -> tuple[Tensor, Tensor]:
    """Return the rows of S and the signs D of the curvature of the loss, A = S'DS; the `rows` of a `Root`."""
    factors = outer.factors(part)
    if factors is None:
        blocks = finite_derivatives(outer.blocks(part)).double()
        factors = _eigen((blocks + blocks.mT) / 2)
    values, vectors = finite_derivatives(factors[0]), factors[1]
    # largest first, so that the zeros are cut off at the end
    order = values.abs().argsort(1, descending=True)
    values, vectors = values.gather(1, order), vectors.gather(2, order[:, None].expand_as(vectors))
    # smaller eigenvalues are rounding and add nothing to the rank
    none = vectors.shape[1] * torch.finfo(outputs.dtype).eps * values.abs().amax(1, keepdim=True)
    values = torch.where(values.abs() > none, values, 0.0)
    count = max(1, int((values != 0).sum(1).max()))  # softmax: one less than classes
    found = (vectors * values.abs().sqrt()[:, None])[..., :count].movedim(-1, 0)
    return found.reshape(count, *outputs[part].shape).to(outputs.dtype), values.sign()[:, :count]


def _eigen(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """Return eigenvalues and eigenvectors of symmetric matrices (n, m, m), in any order."""
    diagonal = blocks.diagonal(dim1=1, dim2=2)
    # for losses that sum over outputs, such as the squared error: a decomposition of many outputs takes minutes
    if int(blocks.count_nonzero()) == int(diagonal.count_nonzero()):
        return diagonal, identity(blocks.shape[1], blocks).expand_as(blocks)
    return torch.linalg.eigh(blocks)


_LOSS_CURVATURE = Root(roots)


def parts(
    objective: Objective,
    *,
    lengths: bool = False,
    directions: int = 0,
    pairs: bool = True,
    root: Root = _LOSS_CURVATURE,
) -> Iterator[SamplePart]:
    """Yield the factors of all samples, in the order of the data.

    Call it within `Objective.measured`, with gradients enabled.

    Parameters
    ----------
    objective
        Loss of a model on data, a sum (or mean) of what the samples add each for itself.
    lengths
        Whether only lengths of gradients are needed: pairs may hold lengths alone, and `along` cannot be used.
    directions
        Most directions that `along` is given at once.
    pairs
        Whether inner products are needed if the parameters act at sites.
    root
        Replaces the root of the curvature of the loss.

    Raises
    ------
    ValueError
        If the loss couples the samples, the outputs are not one row for each sample, derivatives are not finite, or
        those of one sample do not fit into memory.
    """
    covered = sites.by_sample(objective)
    apart = not objective.training and objective.apart
    for batch in objective.batches(empty=True):
        if not batch.factor and root.asks:  # the mean over nothing
            yield _empty_part(objective, batch)
        elif covered:
            yield from _parts_by_sites(objective, batch, lengths, directions, pairs, root)
        else:
            yield from _parts_by_gradients(objective, batch, apart, lengths, root)


def _empty_part(objective: Objective, batch: Batch) -> SamplePart:
    samples = batch.samples
    none = objective.leaves[0].new_zeros(samples, 0)
    return SamplePart((), none, none.mT, lambda v: none.new_zeros(samples, 0, len(v), dtype=torch.float64))


def _parts_by_sites(
    objective: Objective, batch: Batch, lengths: bool, directions: int, pairs: bool, root: Root
) -> Iterator[SamplePart]:
    """Yield windows of samples, from derivatives at the sites."""
    samples = batch.samples
    whole = _outputs_without_graph(objective, batch) if root is _LOSS_CURVATURE and not pairs else None
    if whole is not None and len(whole) == samples and whole[0].numel() > _MANY:
        outer = Outer(objective, batch, whole)
        if outer.closed:
            yield from _parts_by_columns(objective, batch, outer)
            return
    size = _window_size(objective, batch, directions)
    passed = sites.visited_or_none(objective, batch) if size >= samples else None
    whole = passed[0] if passed else _outputs_without_graph(objective, batch)
    for part, cotangents, signs in _root_windows(root, Outer(objective, batch, whole), whole, size):
        only = batch.part(part)
        through = passed or sites.visited_or_none(objective, only)
        if through:
            outputs, found = through
            _require_same(outputs, whole, part)
            deltas = deltas_of(outputs, found, cotangents)
            yield _site_part(objective, found, deltas, cotangents, signs, pairs)
            continue
        for one in cuts(len(signs), 1):
            row = objective.outputs(objective.leaves, only.part(one).inputs)
            _require_same(row, whole, slice(part.start + one.start, part.start + one.stop))
            yield _gradient_part(objective, row, cotangents[:, one], signs[one], lengths)


def _parts_by_columns(objective: Objective, batch: Batch, outer: Outer) -> Iterator[SamplePart]:
    """Yield some columns of the factors of many samples at a time, where those of one sample are too many."""
    count = outer.slope.shape[1]
    passed = sites.visited_or_none(objective, batch.part(slice(0, 1)))
    each = sum(4 * site.nudge.numel() + site.inputs.numel() for site in passed[1]) if passed else _WINDOW
    for part in cuts(len(outer.slope), max(1, _WINDOW // (8 * (each + 8 * count)))):
        outputs, found = sites.visited(objective, batch.part(part))
        size = max(1, _WINDOW // (8 * len(outputs) * (each + 8 * count)))
        for values, vectors in outer.columns(part, size):
            rows = (vectors * finite_derivatives(values).abs().sqrt()[:, None]).to(outputs.dtype)
            cotangents = rows.movedim(-1, 0).reshape(-1, *outputs.shape)
            deltas = deltas_of(outputs, found, cotangents)
            yield _site_part(objective, found, deltas, cotangents, values.sign(), pairs=False)


def _site_part(
    objective: Objective,
    found: Sequence[Site],
    deltas: Sequence[Tensor],
    cotangents: Tensor,
    signs: Tensor,
    pairs: bool,
) -> SamplePart:
    samples = len(signs)

    def along(vectors: Tensor) -> Tensor:
        directions = objective.split(vectors)
        total = signs.new_zeros(samples, len(cotangents), len(vectors), dtype=torch.float64)
        for site, delta in zip(found, deltas, strict=True):
            changes = sites.moved(site, directions)
            total += (rows_by_sample(delta, samples) @ rows_by_sample(changes, samples).mT).double()
        return total

    own = list(_pairs(found, deltas, samples)) if pairs else []
    return SamplePart(own, signs, cotangents, along, list(zip(found, deltas, strict=True)))


def rows_by_sample(stacked: Tensor, samples: int) -> Tensor:
    """Return tensors (k, n * ..., ...), shaped like outputs of a layer, as (n, k, numbers of a sample)."""
    return stacked.unflatten(1, (samples, -1)).movedim(0, 1).flatten(2)


def single_outputs(outputs: Tensor) -> Tensor:
    """Return the cotangents (m, *outputs) that give each of the m outputs of all samples at once."""
    count = outputs[0].numel()
    return identity(count, outputs).view(count, 1, *outputs.shape[1:]).expand(count, *outputs.shape)


def deltas_of(outputs: Tensor, found: Sequence[Site], cotangents: Tensor) -> list[Tensor]:
    """Return the derivatives (r, *nudge) of the outputs along r cotangents, by the nudge of every site."""
    nudges = [site.nudge for site in found]
    deltas = [n.new_empty(len(cotangents), *n.shape) for n in nudges]
    for k, cotangent in enumerate(cotangents):
        for delta, slope in zip(deltas, slopes(outputs, nudges, cotangent), strict=True):
            delta[k] = slope
    return deltas


def _parts_by_gradients(
    objective: Objective, batch: Batch, apart: bool, lengths: bool, root: Root
) -> Iterator[SamplePart]:
    """Yield one sample after the other, from gradients by the parameters."""
    leaves = objective.leaves
    # samples that are independent are evaluated again one by one, so the graph of all is not needed
    with torch.set_grad_enabled(not apart):
        whole = objective.outputs(leaves, batch.inputs)
    outer = Outer(objective, batch, whole)
    count = 2 if lengths else 2 * whole[0].numel()
    _require_memory(objective, whole.element_size() * (count * objective.dim + 8 * whole[0].numel() ** 2))
    for part, cotangents, signs in _root_windows(root, outer, whole, 1):
        row = objective.outputs(leaves, batch.part(part).inputs) if apart else whole[part]
        _require_same(row, whole, part)
        yield _gradient_part(objective, row, cotangents, signs, lengths)


def _gradient_part(
    objective: Objective, row: Tensor, cotangents: Tensor, signs: Tensor, lengths: bool
) -> SamplePart:
    """Return the factors of one sample, from gradients of its outputs by all parameters."""
    rows = (objective.flat(slopes(row, objective.leaves, cotangent)) for cotangent in cotangents)
    gradients = torch.stack(
        [torch.linalg.vector_norm(r, dtype=torch.float64)[None] if lengths else r for r in rows]
    )[None]
    return SamplePart([(gradients, gradients)], signs, cotangents, lambda v: (gradients @ v.mT).double())


def _require_same(found: Tensor, whole: Tensor, part: slice) -> None:
    """Raise if samples have other outputs in a batch of another size, which only some batches may show."""
    expected = whole[part]
    least = _ROUNDINGS * torch.finfo(whole.dtype).eps * float(whole.detach().abs().max())
    if found.shape != expected.shape or float((found - expected).detach().abs().max()) > least:
        raise CoupledError("model must compute each sample separately, got samples that see each other")


def _root_windows(
    root: Root, outer: Outer, outputs: Tensor, size: int
) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """Yield windows of samples with their cotangents and signs, computed for many windows together."""
    windows = max(1, _WINDOW // (64 * outputs[0].numel() ** 2 * size))
    for many in cuts(len(outputs), windows * size):
        cotangents, signs = root.rows(outer, many, outputs)
        for part in cuts(len(signs), size):
            yield slice(many.start + part.start, many.start + part.stop), cotangents[:, part], signs[part]


def _pairs(found: Sequence[Site], deltas: Sequence[Tensor], samples: int) -> Iterator[Pair]:
    """Yield the pairs of every parameter."""
    for uses in site_gradients.uses_of(zip(found, deltas, strict=True)).values():
        if len(uses) == 1:
            yield site_gradients.gram_factors(*uses[0], samples)
        else:  # the sum of the gradients at all of these sites
            total = reduce(torch.add, (site_gradients.per_sample(*use, samples) for use in uses))
            yield total, total


def _window_size(objective: Objective, batch: Batch, directions: int) -> int:
    """Return how many samples fit into a window, from the memory that one of them takes."""
    passed = sites.visited_or_none(objective, batch.part(slice(0, 1)))
    if passed is None:
        return 1
    outputs, found = passed
    cotangents = outputs.numel()
    passes = sum(
        (2 * cotangents + 2 * directions + 4) * site.nudge.numel() + site.inputs.numel() for site in found
    )
    products = sum(site_gradients.numbers_held(site, cotangents, 1) for site in found)
    numbers = passes + products + 8 * cotangents**2
    return max(1, _WINDOW // _require_memory(objective, outputs.element_size() * numbers))
