r"""Curvature of single samples along the top eigenvectors of their mean matrix and along their own, for any model.

The samples have the Gauss-Newton matrices :math:`G_i = B_i' B_i` of `simulate.modules.sample_parts`, for a loss that is
convex in the outputs. All inputs of the own-direction law (docs/claims/beyond.md, D1) follow from the small matrices
:math:`K_i = B_i B_i'` and from products of :math:`B_i` with directions:

=====================  =====================================================================================
V'G_iV, V'G_i^2V       (B_iV)'(B_iV), (B_iV)'K_i(B_iV)
l_i, u_i               the largest eigenvalue of K_i, with y_i, and B_i'y_i / sqrt(l_i)
V'u_i                  (B_iV)'y_i / sqrt(l_i)
e'G_je, \|G_je\|^2     along the own direction e of another sample: \|B_je\|^2, (B_je)'K_j(B_je)
=====================  =====================================================================================

So no decomposed matrix has more rows than a sample has outputs. If the parameters act at sites, gradients are written
out only for the few samples whose directions others are probed along.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from simulate import _checks, _memory
from simulate._checks import Floats
from simulate.lanczos.precision import in_full_precision
from simulate.lanczos.rows import identity, numbers
from simulate.modules.sample_grams import SampleGrams
from simulate.modules.sample_parts import SamplePart, finite_derivatives, parameter_columns, parts
from simulate.objectives import Objective
from simulate.objectives.derivatives import slopes

_ROUNDING = 1e-4
"""Curvatures of the loss in the outputs below zero by less than this, relative to the largest, are rounding."""

OWN = 1e-6
"""Share of the squared length of a sample's eigenvector outside of V, below which it is not probed."""


class SampleStatistics(NamedTuple):
    """Statistics of samples and of pairs of samples, the arguments of `theory.own_direction.own_directions`.

    Attributes
    ----------
    eigenvalues
        Rayleigh quotients of V with the mean of the samples, (k,).
    projected, squared
        V'H_iV and V'H_i^2V, (N, k, k).
    largest, overlaps
        Top eigenvalue l_i, (N,), and V'u_i of its eigenvector, (N, k).
    background, spread
        Means over pairs i != j of e_i'H_je_i, and of |(1 - VV')H_je_i|^2 less the square of that. e_i is the part of
        u_i outside of V, scaled to length one. Both are 0 if no sample has such a part, or with one sample.
    """

    eigenvalues: Floats
    projected: Floats
    squared: Floats
    largest: Floats
    overlaps: Floats
    background: float
    spread: float


class SampleDirections(NamedTuple):
    """Statistics of the Gauss-Newton matrices G_i of N samples.

    Attributes
    ----------
    grams
        Trace, largest eigenvalue and squared norm of each G_i.
    statistics
        Curvature along V and along the samples' own directions.
    heavy
        The samples with the largest eigenvalues, largest first; those without curvature are left out.
    forms
        u' G_i u of every sample along the top eigenvectors u of these, (N, heavy).
    """

    grams: SampleGrams
    statistics: SampleStatistics
    heavy: tuple[int, ...]
    forms: Floats


def sample_directions(
    objective: Objective, vectors: Any, seed: _checks.Seed = 0, *, probes: int = 12, heavy: int = 0
) -> SampleDirections:
    """Measure the Gauss-Newton matrices of all samples along given directions and along their own.

    For m outputs of a sample it takes two times one forward and m backward passes without gradients by the weights,
    and k + probes + heavy products of the layers with directions. Where the parameters act elsewhere than in affine
    layers it takes 2 m passes for every single sample.

    Parameters
    ----------
    objective
        Loss of a model on data, a mean (or sum) of what the samples add each for itself, convex in the outputs.
    vectors
        V, orthonormal columns (dim, k): the top eigenvectors of the mean matrix.
    seed
        Seed of the choice of samples whose own directions are probed: an integer or a numpy generator; in a group the
        same in all processes.
    probes
        Number of own directions, each probed on all other samples.
    heavy
        Number of samples, those with the largest eigenvalues, along whose eigenvectors all others are measured.

    Raises
    ------
    ValueError
        If the loss is not convex in the outputs or couples the samples, the vectors are not orthonormal columns, a
        count is out of its domain, the outputs are not one row for each sample, derivatives are not finite, or the
        derivatives of one sample or the numbers kept of all samples do not fit into memory.

    Examples
    --------
    Linear regression, G_i = 2 x x', on the first axis:

    >>> from torch import nn
    >>> x, weight = torch.tensor([[3.0, 4.0], [1.0, 0.0]]).double(), torch.zeros(1, 2).double()
    >>> line = Objective(lambda p, x: x @ p[0].T, (x, x[:, :1]), nn.MSELoss(), parameters=[weight])
    >>> found = sample_directions(line, [[1.0], [0.0]]).statistics
    >>> found.projected.ravel().round(9), found.squared.ravel().round(9), np.abs(found.overlaps).ravel().round(9)
    (array([18.,  2.]), array([900.,   4.]), array([0.6, 1. ]))
    """
    with in_full_precision():
        basis = parameter_columns(objective, "vectors", vectors).mT.contiguous()
        require_orthonormal(basis)
        probes, heavy = _checks.natural("probes", probes), _checks.natural_or_zero("heavy", heavy)
        rng = _checks.generator(seed)
        if not objective.separable:
            raise ValueError(
                f"loss must be a mean over samples, each for itself, got another: {objective.coupling}"
            )
        ranks = objective.ranks
        ranks.require_same(vectors=(basis,))
        with ranks.together("samples"), objective.measured():
            found = [
                (_curvatures(part), _first_pass(part, basis))
                for part in parts(objective, directions=len(basis))
            ]
            _require_convex(
                [each for own in ranks.gathered("curvatures", [c for c, _ in found]) for each in own]
            )
            none = basis.new_zeros(0, 0)  # a process of a group may hold no samples
            nothing = SamplePart((), none, none, none.mm)
            first = [_first_pass(nothing, basis), *(one for _, one in found)]
            grams, projected, squared, overlaps = (
                _gather_rows(objective, column) for column in [*zip(*first, strict=True)][:-1]
            )
            largest = grams[:, 1]
            tops = [row for one in first for row in one.tops]
            order = largest.argsort(descending=True)[:heavy].tolist()
            # a sample without curvature has no direction
            heaviest = [i for i in order if float(largest[i]) > 0]
            own_length = 1 - overlaps.square().sum(1)
            able = np.flatnonzero((own_length.cpu().numpy() > OWN) & (largest.cpu().numpy() > 0))
            chosen = (
                rng.choice(able, min(probes, len(able)), replace=False).tolist() if len(largest) > 1 else []
            )
            # every process chooses by itself, so the choices must agree
            ranks.require_same(vectors=(repr((heaviest, chosen)),))
            before = sum(ranks.gathered("sizes", len(tops))[: ranks.rank])
            heavies = _eigenvectors(objective, tops, before, heaviest, basis)
            own = _eigenvectors(objective, tops, before, chosen, basis)
            # only the part outside of V: along V the samples are known
            own = functional.normalize(own - overlaps[chosen].to(own.dtype) @ basis, dim=1)
            along = torch.cat([basis, heavies, own])
            second = [
                _second_pass(part, along, len(basis), len(chosen))
                for part in itertools.chain([nothing], parts(objective, directions=len(along)))
            ]
            forms, squares = (_gather_rows(objective, column) for column in zip(*second, strict=True))
        pairs = pair_means(forms[:, len(heaviest) :], squares, chosen)
        return SampleDirections(
            grams=SampleGrams(*(numbers(column) for column in grams.mT)),
            statistics=sample_statistics(projected, squared, largest, overlaps, pairs),
            heavy=tuple(heaviest),
            forms=numbers(forms[:, : len(heaviest)]),
        )


class _FirstPass(NamedTuple):
    """Results of the first pass over n samples: Gram statistics, numbers on V, and the cotangents of u_i."""

    grams: Tensor
    projected: Tensor
    squared: Tensor
    overlaps: Tensor
    tops: list[Tensor | None]


def _first_pass(part: SamplePart, basis: Tensor) -> _FirstPass:
    samples, count = len(part.signs), len(basis)
    if not part.pairs:
        zero = part.signs.new_zeros(samples, dtype=torch.float64)
        square = zero[:, None, None].expand(-1, count, count)
        return _FirstPass(zero[:, None].expand(-1, 3), square, square, square[:, 0], [None] * samples)
    gram, inside = _gram(part), _along_directions(part, basis)
    values, vectors = torch.linalg.eigh(gram)
    largest, top = values[:, -1].clamp(min=0), vectors[:, :, -1]
    # 1 in place of 0 first: infinity times zero would be NaN
    root = torch.where(largest > 0, largest, 1.0).rsqrt() * (largest > 0)
    traces, squares = gram.diagonal(dim1=1, dim2=2).sum(1), gram.square().sum((1, 2))
    weights = (top * root[:, None]).to(part.cotangents.dtype)
    cotangents = torch.einsum("nr,rn...->n...", weights, part.cotangents)
    overlaps = torch.einsum("nrk,nr->nk", inside, top) * root[:, None]
    return _FirstPass(
        grams=torch.stack([traces, largest, squares], 1),
        projected=inside.mT @ inside,
        squared=inside.mT @ gram @ inside,
        # only rounding makes overlaps of unit vectors longer than one
        overlaps=overlaps / overlaps.norm(dim=1, keepdim=True).clamp(min=1),
        tops=list(cotangents),
    )


def _gather_rows(objective: Objective, own: Sequence[Tensor]) -> Tensor:
    """Return the rows of the samples of all processes, in the order of the samples."""
    here = torch.cat(list(own))
    if not objective.ranks.several:
        return here
    return torch.from_numpy(objective.ranks.rows(numbers(here))).to(here)


def _second_pass(part: SamplePart, along: Tensor, count: int, probes: int) -> tuple[Tensor, Tensor]:
    """Return u'G_ju along all but V, (n, heavy + probes), and |(1 - VV')G_je|^2 along the last ones, (n, probes)."""
    samples, rest = len(part.signs), len(along) - count
    if not part.pairs:
        zero = part.signs.new_zeros(samples, rest, dtype=torch.float64)
        return zero, zero[:, :probes]
    gram, through = _gram(part), _along_directions(part, along)
    inside, probed = through[:, :, :count], through[:, :, len(along) - probes :]
    image = (probed * (gram @ probed)).sum(1)
    within = (inside.mT @ probed).square().sum(1)
    return through[:, :, count:].square().sum(1), image - within


def _gram(part: SamplePart) -> Tensor:
    gram = finite_derivatives(torch.stack([(left @ right.mT).double() for left, right in part.pairs]).sum(0))
    positive = _positive_rows(part)
    return gram * positive[:, :, None] * positive[:, None]


def _along_directions(part: SamplePart, directions: Tensor) -> Tensor:
    return finite_derivatives(part.along(directions)) * _positive_rows(part)[:, :, None]


def _positive_rows(part: SamplePart) -> Tensor:
    """Return a mask of the rows of positive curvature; `_require_convex` has shown the others to be rounding."""
    return (part.signs > 0).double()


def _curvatures(part: SamplePart) -> tuple[float, float]:
    """Return the largest and smallest eigenvalue of the A_i of some samples; never below and above 0."""
    if not part.pairs:
        return 0.0, 0.0
    values = part.signs * part.cotangents.reshape(*part.signs.mT.shape, -1).square().sum(2).mT
    return max(float(values.max()), 0.0), min(float(values.min()), 0.0)


def _require_convex(curvatures: list[tuple[float, float]]) -> None:
    largest = max((high for high, _ in curvatures), default=0.0)
    smallest = min((low for _, low in curvatures), default=0.0)
    if smallest < -_ROUNDING * largest or (largest == 0 and smallest < 0):
        raise ValueError(
            "loss must be convex in the outputs of the model, got Gauss-Newton matrices that are not positive"
            " semidefinite; where a saturated softmax leaves rounding only, use float64"
        )


def sample_statistics(
    projected: Tensor, squared: Tensor, largest: Tensor, overlaps: Tensor, pairs: tuple[float, float]
) -> SampleStatistics:
    """Return statistics from those of the samples, all in double precision, and from `pair_means`."""
    eigenvalues = numbers(projected.diagonal(dim1=1, dim2=2).mean(0))
    return SampleStatistics(
        eigenvalues, numbers(projected), numbers(squared), numbers(largest), numbers(overlaps), *pairs
    )


def pair_means(forms: Tensor, squares: Tensor, chosen: list[int]) -> tuple[float, float]:
    """Return means over samples j and directions e of others: of e'G_je, and of |(1 - VV')G_je|^2 less its square."""
    if not chosen:
        return 0.0, 0.0
    others = torch.ones_like(forms)
    # a direction is not measured at the sample that it belongs to
    others[chosen, torch.arange(len(chosen), device=others.device)] = 0.0
    background = float((others * forms).sum() / others.sum())
    return background, float((others * squares).sum() / others.sum()) - background**2


def _eigenvectors(
    objective: Objective, tops: list[Tensor | None], before: int, chosen: list[int], like: Tensor
) -> Tensor:
    """Return u_i of the chosen samples, (chosen, dim); this process holds the samples from `before` on."""
    size = (len(chosen) + 1) * objective.dim * like.element_size()
    _memory.require_free("heavy", size, f"{len(chosen)} directions", device=objective.device)
    found, leaves, start = like.new_zeros(len(chosen), objective.dim), objective.leaves, before
    for batch in objective.batches(empty=True):
        stop = start + batch.samples
        for place, sample in enumerate(chosen):
            top = tops[sample - before] if start <= sample < stop else None
            if top is not None:
                outputs = objective.outputs(
                    leaves, batch.part(slice(sample - start, sample - start + 1)).inputs
                )
                found[place] = objective.flat(slopes(outputs, leaves, top[None]))
        start = stop
    return objective.ranks.total(found)


def require_orthonormal(basis: Tensor) -> None:
    """Raise unless the vectors (k, dim) are orthonormal."""
    unit = identity(len(basis), basis)
    if not torch.allclose(basis @ basis.mT, unit, atol=1e-4):
        error = float((basis @ basis.mT - unit).abs().max())
        raise ValueError(f"vectors must be orthonormal to 1e-4, got an error of {error:.2g}")
