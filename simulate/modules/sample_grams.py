r"""Exact traces of the curvature, and what the Gauss-Newton matrix of every single sample is like.

G_i = J_i' A_i J_i has the rank of A_i, the curvature of the loss in the few outputs of sample i. With A_i = S_i' D_i
S_i, D_i of signs, its non-zero eigenvalues are those of D_i K_i, where K_i holds the inner products of the rows of
S_i J_i. These are derivatives of the outputs by the parameters, and the parameters act at sites
(`simulate.modules.sites`): so outputs are differentiated by the nudges alone, one number for a unit and sample. A
layer of weights then multiplies inner products of derivatives by inner products of its inputs, and no gradient by its
weights is formed.

| symbol | shape | meaning |
|---|---|---|
| A_i | (m, m) | second derivative of the loss in the m outputs of a sample, divided by the `share` of a sample |
| J_i | (m, dim) | derivative of the outputs by the parameters |
| G_i | (dim, dim) | J_i' A_i J_i; share * sum G_i = G, so G is the mean of the G_i for a plain mean over samples |

A sample is a row of the targets; its outputs are all numbers of that row, of all classes and positions. An ignored
sample has G_i = 0; a mean that is over positions, or weighs classes, has its share of one position or unit of weight.
What a sample adds is meant in the loss of all data. That of a batch is the mean of its samples' only where
`objectives.Objective.separable`; elsewhere, and where samples see each other, G_i is the part that belongs to the
outputs of sample i, and no matrix of a batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simulate import _memory
from simulate.modules import site_gradients, sites
from simulate.modules.samples import Outer
from simulate.modules.sites import Site
from simulate.objectives import Batch, Objective
from simulate.objectives.batches import cuts, rows
from simulate.objectives.derivatives import slopes
from simulate.objectives.parameters import Leaves
from simulate.operators import h_term

__all__ = ["SampleGrams", "sample_grams", "trace_gauss_newton", "trace_hessian"]

_WINDOW = 1 << 28
"""Bytes that the derivatives of samples taken together should have: more are slower, not faster."""

Pair = tuple[Tensor, Tensor]
"""Of shape (n, r, d): inner products over d of the one with the other are those of gradients."""

Part = tuple[Sequence[Pair], Tensor]
"""Of n samples: pairs whose inner products add up to K_i, and the signs D_i, (n, r)."""

Score = Callable[[Sequence[Pair], Tensor], Tensor]
"""Some numbers (n, c) of n samples."""


class SampleGrams(NamedTuple):
    """Of the Gauss-Newton matrices G_i of the samples, in the order of the data; arrays (N,), float64.

    Attributes
    ----------
    traces
        Trace.
    largest
        Largest eigenvalue.
    squares
        Sum of the squares of the eigenvalues.
    """

    traces: NDArray[np.float64]
    largest: NDArray[np.float64]
    squares: NDArray[np.float64]


def sample_grams(objective: Objective) -> SampleGrams:
    """Trace, largest eigenvalue and squared Frobenius norm of the Gauss-Newton matrix of every sample, exact.

    For m outputs of a sample this takes one forward pass, and m backward passes without gradients by the weights.
    Where the parameters act elsewhere than in affine layers, or the samples of a batch see each other, it takes m
    passes for every single sample.

    Parameters
    ----------
    objective
        Loss of a model on data, a sum (or mean) of what the samples add each for itself.

    Raises
    ------
    ValueError
        If the loss couples the samples, the outputs are not one row for each sample, derivatives are not finite, or
        those of one sample do not fit into memory.

    Examples
    --------
    Linear regression, G_i = 2 x x':

    >>> from torch import nn
    >>> x, weight = torch.tensor([[3.0, 4.0], [1.0, 0.0]]).double(), torch.zeros(1, 2).double()
    >>> line = Objective(lambda p, x: x @ p[0].T, nn.MSELoss(), (x, x[:, :1]), parameters=[weight])
    >>> sample_grams(line).largest.round(9)
    array([50.,  2.])
    """
    found = _scores(objective, lambda pairs, signs: _spectrum(pairs, signs, objective.dim), 3)
    return SampleGrams(*found.T)


def trace_gauss_newton(objective: Objective) -> float:
    """Trace of the Gauss-Newton matrix, exact; at the cost of `sample_grams` without inner products.

    Raises
    ------
    ValueError
        As `sample_grams`.

    Examples
    --------
    >>> from torch import nn
    >>> x, weight = torch.tensor([[3.0, 4.0], [1.0, 0.0]]).double(), torch.zeros(1, 2).double()
    >>> line = Objective(lambda p, x: x @ p[0].T, nn.MSELoss(), (x, x[:, :1]), parameters=[weight])
    >>> round(trace_gauss_newton(line), 9)
    26.0
    """
    return objective.share * float(_scores(objective, _trace, 1, lengths=True).sum())


def trace_hessian(objective: Objective) -> float:
    """Trace of the Hessian, exact, where it is that of the Gauss-Newton matrix.

    That is so if the outputs are linear in every parameter tensor alone but for kinks: then no tensor has a block of
    its own in the H-term. Certified on all data, at one product with the H-term for every tensor: the block times a
    random vector vanishes, which a block that is not zero does with probability nought. (A few samples would not do:
    behind a ReLU that is dead at these there may be anything.)

    Raises
    ------
    ValueError
        If some block does not vanish, as with smooth activations, or a layer that is used twice; and as
        `sample_grams`.

    Examples
    --------
    >>> from torch import nn
    >>> x, weight = torch.tensor([[3.0, 4.0], [1.0, 0.0]]).double(), torch.zeros(1, 2).double()
    >>> line = Objective(lambda p, x: x @ p[0].T, nn.MSELoss(), (x, x[:, :1]), parameters=[weight])
    >>> round(trace_hessian(line), 9)
    26.0
    """
    matrix, places = h_term(objective), objective.blocks()
    generator = torch.Generator().manual_seed(0)
    for name, block in places.items():
        vector = torch.zeros(objective.dim, dtype=objective.dtype)
        vector[block] = torch.randn(vector[block].shape, generator=generator, dtype=objective.dtype)
        product = matrix @ vector.to(objective.device)
        if float(product[block].norm()) > torch.finfo(objective.dtype).eps * float(product.norm()):
            raise ValueError(
                "objective must have outputs that are piecewise linear in every parameter tensor for an exact trace"
                f" of the Hessian, got curvature in {name!r}; use an estimate such as spectra.trace"
            )
    return trace_gauss_newton(objective)


def _scores(objective: Objective, score: Score, columns: int, *, lengths: bool = False) -> NDArray[Any]:
    """Numbers (N, columns) of the samples; `lengths` if nothing but lengths of gradients is asked for."""
    with objective.measured(), torch.enable_grad():
        covered = sites.covers(objective) and sites.by_sample(objective)
        apart = not objective.training and sites.apart(objective)
        found = [np.zeros((0, columns))]
        for batch in objective.batches(empty=True):
            if not batch.factor:  # the mean over nothing
                found.append(np.zeros((rows(batch.targets), columns)))
                continue
            parts = (
                _by_sites(objective, batch, lengths)
                if covered
                else _one_by_one(objective, batch, apart, lengths)
            )
            found += [score(pairs, signs).detach().cpu().numpy() for pairs, signs in parts]
    return np.concatenate(found)


def _by_sites(objective: Objective, batch: Batch, lengths: bool) -> Iterator[Part]:
    """Whole windows of samples."""
    leaves, samples = objective.leaves(), rows(batch.targets)
    size = _window_size(objective, leaves, batch)
    passed = _visited(objective, leaves, batch) if size >= samples else None
    whole = passed[0] if passed else _outputs_alone(objective, leaves, batch)
    for part, cotangents, signs in _rooted(Outer(objective, batch, whole), whole, size):
        only = batch.part(part)
        through = passed or _visited(objective, leaves, only)
        if through:
            outputs, found = through
            yield list(_pairs(found, _deltas(outputs, found, cotangents), len(outputs))), signs
            continue
        for one in cuts(len(signs), 1):
            row = objective.outputs(leaves, only.part(one).inputs)
            yield _by_gradients(objective, leaves, row, cotangents[:, one], lengths), signs[one]


def _visited(objective: Objective, leaves: Leaves, batch: Batch) -> tuple[Tensor, list[Site]] | None:
    """Nothing where parameters act elsewhere too: only with some of the samples, or `covers` had told."""
    try:
        return sites.visited(objective, leaves, batch)
    except sites.ElsewhereError:
        return None


def _deltas(outputs: Tensor, found: Sequence[Site], cotangents: Tensor) -> list[Tensor]:
    """Derivatives (r, *nudge) of the outputs along r cotangents, by the nudge of every site."""
    nudges = [site.nudge for site in found]
    deltas = [n.new_empty(len(cotangents), *n.shape) for n in nudges]
    for k, cotangent in enumerate(cotangents):
        for delta, slope in zip(deltas, slopes(outputs, nudges, cotangent), strict=True):
            delta[k] = slope
    return deltas


def _one_by_one(objective: Objective, batch: Batch, apart: bool, lengths: bool) -> Iterator[Part]:
    """One sample after the other, by gradients."""
    leaves = objective.leaves()
    with torch.set_grad_enabled(not apart):
        whole = objective.outputs(leaves, batch.inputs)
    outer = Outer(objective, batch, whole)
    count = 2 if lengths else 2 * whole[0].numel()
    _require_memory(objective, count * objective.dim + 8 * whole[0].numel() ** 2)
    for part, cotangents, signs in _rooted(outer, whole, 1):
        row = objective.outputs(leaves, batch.part(part).inputs) if apart else whole[part]
        yield _by_gradients(objective, leaves, row, cotangents, lengths), signs


def _by_gradients(
    objective: Objective, leaves: Leaves, row: Tensor, cotangents: Tensor, lengths: bool
) -> Sequence[Pair]:
    """Of the outputs of one sample by all parameters."""
    rows = (objective.flat(slopes(row, leaves, cotangent)) for cotangent in cotangents)
    gradients = torch.stack([r.norm()[None] if lengths else r for r in rows])[None]
    return [(gradients, gradients)]


def _outputs_alone(objective: Objective, leaves: Leaves, batch: Batch) -> Tensor:
    with torch.no_grad():
        return objective.outputs(leaves, batch.inputs)


def _rooted(outer: Outer, outputs: Tensor, size: int) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """Windows of samples with their cotangents and signs, found for many windows together."""
    windows = max(1, _WINDOW // (64 * outputs[0].numel() ** 2 * size))
    for many in cuts(len(outputs), windows * size):
        cotangents, signs = _roots(outer, many, outputs)
        for part in cuts(len(signs), size):
            yield slice(many.start + part.start, many.start + part.stop), cotangents[:, part], signs[part]


def _roots(outer: Outer, part: slice, outputs: Tensor) -> tuple[Tensor, Tensor]:
    """Rows of S with A = S'DS for some samples of a batch, as cotangents (r, n, *outputs), and D as (n, r) signs."""
    blocks = _finite(outer.blocks(part)).double()
    values, vectors = torch.linalg.eigh((blocks + blocks.mT) / 2)
    order = values.abs().argsort(1, descending=True)
    values, vectors = values.gather(1, order), vectors.gather(2, order[:, None].expand_as(vectors))
    none = order.shape[1] * torch.finfo(outputs.dtype).eps * values.abs().amax(1, keepdim=True)
    values = torch.where(values.abs() > none, values, 0.0)
    count = max(1, int((values != 0).sum(1).max()))  # softmax: one less than classes
    roots = (vectors * values.abs().sqrt()[:, None])[..., :count].movedim(-1, 0)
    return roots.reshape(count, *outputs[part].shape).to(outputs.dtype), values.sign()[:, :count]


def _pairs(found: Sequence[Site], deltas: Sequence[Tensor], samples: int) -> Iterator[Pair]:
    """Of every parameter; one that acts at several sites has the sum of their gradients."""
    uses = Counter(place for site in found for place in site.places.values())
    sums: dict[int, Tensor] = {}
    for site, delta in zip(found, deltas, strict=True):
        for name, place in site.places.items():
            if uses[place] == 1:
                yield site_gradients.gram_factors(site, name, delta, samples)
            else:
                gradients = site_gradients.per_sample(site, name, delta, samples)
                sums[place] = sums[place] + gradients if place in sums else gradients
    yield from ((total, total) for total in sums.values())


def _trace(pairs: Sequence[Pair], signs: Tensor) -> Tensor:
    squares = torch.stack([_squares(*pair).double() for pair in pairs]).sum(0)
    return _finite((squares * signs).sum(1, keepdim=True))


def _squares(left: Tensor, right: Tensor) -> Tensor:
    return left.norm(dim=2).square() if left is right else torch.linalg.vecdot(left, right)


def _spectrum(pairs: Sequence[Pair], signs: Tensor, dim: int) -> Tensor:
    """Trace, largest eigenvalue and sum of squares of DK, the gram K of the pairs: (n, 3)."""
    gram = _finite(torch.stack([(left @ right.mT).double() for left, right in pairs]).sum(0))
    signed = signs[:, :, None] * gram
    traces = signed.diagonal(dim1=1, dim2=2).sum(1)
    squares = (signed * signed.mT).sum((1, 2))
    return torch.stack([traces, _largest(gram, signs, dim), squares], 1)


def _largest(gram: Tensor, signs: Tensor, dim: int) -> Tensor:
    """Of a matrix (dim, dim) whose non-zero eigenvalues are those of DK."""
    if bool((signs < 0).any()):
        values, vectors = torch.linalg.eigh(gram)
        root = vectors * values.clamp(min=0).sqrt()[:, None]  # K = R R', and DK is similar to R'DR
        gram = root.mT @ (signs[:, :, None] * root)
    values = torch.linalg.eigvalsh(gram)
    order = values.abs().argsort(1, descending=True)[:, :dim]  # no more than it has
    largest = values.gather(1, order).amax(1)
    return largest.clamp(min=0) if dim > gram.shape[1] else largest


def _window_size(objective: Objective, leaves: Leaves, batch: Batch) -> int:
    """Samples at once, from what one of them takes."""
    passed = _visited(objective, leaves, batch.part(slice(0, 1)))
    if passed is None:
        return 1
    outputs, found = passed
    cotangents = outputs.numel()
    passes = sum((2 * cotangents + 4) * site.nudge.numel() + site.inputs.numel() for site in found)
    products = sum(site_gradients.numbers_held(site, cotangents, 1) for site in found)
    return max(1, _WINDOW // _require_memory(objective, passes + products + 8 * cotangents**2))


def _require_memory(objective: Objective, numbers: int) -> int:
    """Bytes of so many numbers of one sample."""
    size = numbers * torch.finfo(objective.dtype).bits // 8
    what, advice = "the derivatives of one sample", "use an estimate such as spectra.trace"
    _memory.require_free("objective", size, what, device=objective.device, advice=advice)
    return size


def _finite(numbers: Tensor) -> Tensor:
    if not bool(numbers.isfinite().all()):
        raise ValueError("objective must have finite derivatives, got NaN or infinity")
    return numbers
