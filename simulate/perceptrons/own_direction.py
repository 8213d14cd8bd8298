"""Curvature of single samples of a perceptron along the top eigenvectors of their mean matrix and along their own.

Measured once for a data set, these statistics predict for every batch size how far the top eigenvalue of a batch lies
above the top eigenvalue of all samples. `batch_tops` measures top eigenvalues of batches, drawn without replacement.

Samples are matrices or products of a perceptron, see `simulate.perceptrons.sample_products`. There are N samples, P
parameters and k vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from simulate._checks import Floats
from simulate.eigenvalues import extremes
from simulate.lanczos import Operator, Product
from simulate.lanczos.gauss import chains
from simulate.lanczos.rows import identity, numbers
from simulate.modules.sample_directions import (
    OWN,
    SampleStatistics,
    pair_means,
    require_orthonormal,
    sample_statistics,
)
from simulate.perceptrons.sample_products import Samples

_WORKING_SET = 1 << 28
"""Most bytes of one array of a chunk of samples or batches; larger arrays gain nothing."""

_DENSE = 400
_DENSE_SAMPLES = 64
"""Largest numbers of parameters, and of coordinates of a sample, for which a full decomposition is faster."""

_DENSE_BATCH = 32
"""Largest batch of a small network whose matrix is faster to make than to multiply with sample by sample."""

_ROUNDINGS = 1 << 13
"""Accuracy of the top eigenvalues in roundings; relative residuals are its square root."""


class TopPairs(NamedTuple):
    """Top eigenvalue of every sample (N,), its eigenvector in its coordinates (N, D), and its residual (N,)."""

    values: Tensor
    vectors: Tensor
    residuals: Tensor


def statistics(
    samples: Samples, vectors: Tensor, pairs: TopPairs, rng: np.random.Generator, *, probes: int = 12
) -> SampleStatistics:
    """Measure the samples along given directions and along their own.

    Parameters
    ----------
    samples
        All N samples as one group.
    vectors
        V' of shape (k, P), orthonormal: the top eigenvectors of the mean matrix, from `top_eigenvectors`.
    pairs
        Top eigenpairs (l_i, u_i), from `sample_pairs`.
    rng
        Generator that chooses the samples whose own directions are probed.
    probes
        Number of own directions e_i, each probed on all samples j != i.

    Raises
    ------
    ValueError
        If the vectors are not orthonormal.
    """
    require_orthonormal(vectors)
    parts = [_on_vectors(part, vectors) for part in _chunks(samples, len(vectors))]
    inside, projected, squared = _joined(parts)
    overlaps = torch.einsum("nkd,nd->nk", inside, pairs.vectors)
    means = _means_over_pairs(samples, vectors, pairs, overlaps, rng, probes)
    return sample_statistics(projected, squared, pairs.values, overlaps, means)


def top_eigenvectors(samples: Samples, count: int) -> Tensor:
    """Return the top eigenvectors of the mean matrix of all samples, (count, P), by Lanczos if it is large.

    Raises
    ------
    ValueError
        If Lanczos does not find as many.
    """
    if samples.dim <= _DENSE:
        return torch.linalg.eigh(samples.matrices(samples.inner())[0]).eigenvectors[:, -count:].mT.flip(0)
    mean = Operator(
        product=lambda v: samples.mean(v[None])[0],
        dim=samples.dim,
        dtype=samples.dtype,
        device=samples.device,
    )
    accuracy, enough = _ROUNDINGS * torch.finfo(samples.dtype).eps, 4 * samples.dim
    found = extremes(
        mean, 0, largest=count, tolerance=accuracy, certified=True, steps=enough, kept=samples.dim + count
    )
    if not found.converged.all():
        raise ValueError(f"count must be small enough for Lanczos to converge, got {count}: {found.stopped}")
    return torch.from_numpy(np.ascontiguousarray(found.vectors.T)).to(samples.device, samples.dtype)


def sample_pairs(samples: Samples, *, steps: int = 48, tolerance: float = 1e-9) -> TopPairs:
    """Return the top eigenpair of every single sample, in its own coordinates; by Lanczos if these are many.

    Parameters
    ----------
    samples
        All N samples as one group.
    steps
        Largest number of products with each sample.
    tolerance
        Residual, relative to the eigenvalue, at which Lanczos stops.
    """
    if samples.coordinates <= min(_DENSE_SAMPLES, steps):
        parts = [_pairs_by_decomposition(part) for part in _chunks(samples, samples.coordinates)]
        return TopPairs(*_joined(parts))
    start = _start_vector(samples.coordinates).to(samples.device, samples.dtype)
    found = [
        _lanczos(
            lambda c, part=part: part.apply(c[None, :, None])[0, :, 0],
            start.expand(part.size, -1),
            steps,
            tolerance,
        )
        for part in _chunks(samples, steps)
    ]
    return TopPairs(*_joined(found))


def partitions(rng: np.random.Generator, samples: int, size: int, count: int) -> NDArray[np.intp]:
    """Draw batches without replacement: random partitions of all samples, until there are `count` batches.

    Parameters
    ----------
    rng
        Generator.
    samples, size
        N and B; if B does not divide N each partition leaves a few samples out.
    count
        Least number of batches.

    Returns
    -------
    Indices, whole partitions: shape (batches, B) with `count` batches or more.

    Examples
    --------
    >>> partitions(np.random.default_rng(0), 5, 2, 3).shape
    (4, 2)
    """
    each = samples // size
    orders = np.stack([rng.permutation(samples)[: each * size] for _ in range(-(-count // each))])
    return orders.reshape(-1, size)


def batch_tops(
    samples: Samples, batches: NDArray[np.intp], *, steps: int = 64, tolerance: float = 1e-4
) -> Floats:
    """Return the top eigenvalue of the mean matrix of each batch, by Lanczos on all of them at once.

    Parameters
    ----------
    samples
        All N samples as one group.
    batches
        Indices (batches, B).
    steps
        Largest number of products with each batch.
    tolerance
        Residual, relative to the eigenvalue, at which Lanczos stops; the error of the value is of its square.

    Returns
    -------
    Shape (batches,), never above the eigenvalue itself.
    """
    index = torch.from_numpy(np.asarray(batches))
    dense = samples.dim <= _DENSE and index.shape[1] <= _DENSE_BATCH
    needed = max(samples.dim**2, index.shape[1] * samples.coordinates**2) if dense else steps * samples.dim
    found: list[Tensor] = []
    for part in map(samples.on, index.split(max(1, _WORKING_SET // (samples.dtype.itemsize * needed)))):
        start = _start_vector(samples.dim).to(samples.device, samples.dtype).expand(part.groups, -1)
        if dense:
            pairs = top_pairs(part.matrices(part.inner(), ordered=False), steps=steps, tolerance=tolerance)
        else:
            pairs = _lanczos(lambda v, part=part: part.mean(v[:, None])[:, 0], start, steps, tolerance)
        found.append(pairs.values)
    return numbers(torch.cat(found))


def top_pairs(matrices: Tensor, *, steps: int = 64, tolerance: float = 1e-4) -> TopPairs:
    """Return the top eigenpairs of symmetric matrices (n, P, P), by Lanczos on all of them as in `batch_tops`."""
    start = _start_vector(matrices.shape[1]).to(matrices).expand(len(matrices), -1)
    # rows times matrices: products with a block of one column take several times as long
    return _lanczos(lambda v: torch.bmm(v[:, None], matrices)[:, 0], start, steps, tolerance)


def _on_vectors(part: Samples, vectors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the coordinates of the vectors (n, k, D), and V'H_iV and V'H_i^2V."""
    inside = part.project(vectors[None])
    image = part.apply(inside)
    return inside[0], (inside @ image.mT)[0], (image @ image.mT)[0]


def _means_over_pairs(
    samples: Samples,
    vectors: Tensor,
    pairs: TopPairs,
    overlaps: Tensor,
    rng: np.random.Generator,
    probes: int,
) -> tuple[float, float]:
    """Return means over pairs i != j of e_i'H_je_i, and of |(1 - VV')H_je_i|^2 less its square."""
    length = 1 - overlaps.square().sum(1)
    able = torch.nonzero(length > OWN).ravel().cpu().numpy()
    if samples.size < 2 or len(able) == 0:
        return 0.0, 0.0
    chosen = torch.from_numpy(rng.choice(able, min(probes, len(able)), replace=False)).to(overlaps.device)
    full = samples.on(chosen[:, None]).back(pairs.vectors[chosen][:, None, None])[:, 0]
    own = functional.normalize(full - overlaps[chosen] @ vectors, dim=1)
    forms, squares = _joined(_along_own(part, own, vectors) for part in _chunks(samples, probes))
    return pair_means(forms, squares, chosen.tolist())


def _along_own(part: Samples, own: Tensor, vectors: Tensor) -> tuple[Tensor, Tensor]:
    """Return e'He and |(1 - VV')He|^2 for every sample with every own direction e, each (n, probes)."""
    inside = part.project(torch.cat([own, vectors])[None])[0]
    probed, basis = inside[:, : len(own)], inside[:, len(own) :]
    image = part.apply(probed[None])[0]
    outside = image.square().sum(-1) - (image @ basis.mT).square().sum(-1)
    return (probed * image).sum(-1), outside


def _pairs_by_decomposition(part: Samples) -> TopPairs:
    """Return top pairs by decomposition of the matrices in the coordinates of the samples."""
    matrices = part.apply(identity(part.coordinates, part).expand(1, part.size, -1, -1))[0]
    values, vectors = torch.linalg.eigh((matrices + matrices.mT) / 2)
    return TopPairs(values[:, -1], vectors[:, :, -1], torch.zeros_like(values[:, -1]))


def _chunks(samples: Samples, count: int) -> Iterator[Samples]:
    """Yield a few samples at a time, so that `count` vectors of coordinates of each fit the working set."""
    each = max(1, _WORKING_SET // (samples.dtype.itemsize * count * samples.coordinates))
    for index in torch.arange(samples.size).split(each):
        yield samples.on(index[None])


def _joined(parts: Iterable[Sequence[Tensor]]) -> Iterator[Tensor]:
    """Concatenate what was found for parts of the samples."""
    return (torch.cat(column) for column in zip(*parts, strict=True))


def _lanczos(product: Product, start: Tensor, steps: int, tolerance: float) -> TopPairs:
    """Return top eigenpairs of symmetric matrices, one for each row of `start`, in at most `steps` steps."""
    steps = min(steps, start.shape[1])
    growing = chains(product, functional.normalize(start, dim=1), steps)
    while True:
        chain = next(growing)
        step = chain.diagonal.shape[1]
        if step == steps or step % 8 == 0:  # a test of all matrices costs as much as some steps
            # a chain that ended early has nodes without a vector, which must not be the largest
            spent = functional.pad(chain.off_diagonal[:, :-1] == 0, (1, 0))
            below = 1 + 2 * chain.diagonal.abs().amax(1, keepdim=True)
            # only the lower triangle is read
            lower = torch.diag_embed(chain.diagonal - spent * below)
            lower += torch.diag_embed(chain.off_diagonal[:, :-1], -1)
            every, vectors = torch.linalg.eigh(lower)
            values, inner = every[:, -1], vectors[:, :, -1]
            residuals = chain.off_diagonal[:, -1] * inner[:, -1].abs()
            if step == steps or bool((residuals <= tolerance * values.abs()).all()):
                return TopPairs(values, (inner[:, None] @ chain.basis)[:, 0], residuals)


def _start_vector(size: int) -> Tensor:
    """Return a fixed normal vector, so that a matrix always gives the same numbers."""
    return torch.from_numpy(np.random.default_rng(0).standard_normal(size))
