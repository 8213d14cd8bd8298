"""Random matrices, a block of replicates as one stacked tensor: noise, spikes, the random logit model.

Shapes lead with the replicates ``n``. Every draw comes from the streams of the block, on the CPU, so that a
replicate is the same alone and in any block, on any device.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import torch
from numpy.typing import NDArray
from torch import Tensor

from simulate import _checks, _memory
from simulate.matrices import _tridiagonal
from simulate.monte_carlo import Block

__all__ = [
    "gauss_newton_of_logits",
    "goe_moments",
    "goe_norms",
    "goe_top_eigenvalue",
    "goe_top_overlap",
    "haar_frames",
    "logit_gradients",
    "spiked",
    "top_eigenpair",
    "top_eigenvalue",
    "unit_vectors",
    "wigner",
    "wishart",
]

# Where Lanczos overtakes the reduction to tridiagonal form, measured on one core: sooner with an outlier.
_LANCZOS_DIM = 300
_LANCZOS_RESTARTS = 60
_RESIDUAL = 1e-10

# In units of dim^(1/3) the top eigenvector falls off like an Airy function: exp(-2/3 12^1.5) is 1e-12 here.
_TRIDIAGONAL_ROWS = 12.0


class _Law(NamedTuple):
    """Entries of a symmetric matrix before scaling: mean 0, variance 1, the diagonal stretched."""

    draw: Callable[[np.random.Generator, int], NDArray[Any]]
    diagonal_variance: float = 1.0


_LAWS = {
    "gaussian": _Law(lambda rng, size: rng.standard_normal(size), diagonal_variance=2.0),
    "rademacher": _Law(lambda rng, size: 2 * rng.integers(0, 2, size, dtype=np.int8) - 1),
}


def wigner(block: Block, dim: int, *, law: str = "gaussian") -> Tensor:
    """Symmetric matrices with independent entries of mean 0 and variance 1/dim off the diagonal.

    Parameters
    ----------
    block
        Streams to draw from, and the device.
    dim
        Rows of each matrix.
    law
        ``gaussian`` (GOE: variance 2/dim on the diagonal) or ``rademacher`` (every entry +-1/sqrt(dim)).

    Returns
    -------
    Shape (n, dim, dim).

    Raises
    ------
    ValueError
        If the law is unknown, `dim` is not positive, or the matrices do not fit into memory.

    Examples
    --------
    >>> from simulate.monte_carlo import fixture
    >>> w = wigner(Block((fixture(0, "a"), fixture(0, "b"))), 4, law="rademacher")
    >>> w.shape, torch.equal(w, w.mT), w.abs().unique().tolist()
    (torch.Size([2, 4, 4]), True, [0.5])
    """
    if law not in _LAWS:
        raise ValueError(f"law must be one of {', '.join(_LAWS)}, got {law!r}")
    dim = _checks.natural("dim", dim)
    _require_memory(block, "dim", (12 * len(block) + 8) * dim**2, f"matrices of {dim} x {dim}")
    draw, diagonal_variance = _LAWS[law]
    rows, columns = torch.triu_indices(dim, dim)
    entries = block.stack(lambda rng: draw(rng, len(rows))).double() / math.sqrt(dim)
    matrices = entries.new_empty(len(block), dim, dim)
    matrices[:, rows, columns] = entries
    matrices[:, columns, rows] = entries
    matrices.diagonal(dim1=1, dim2=2).mul_(math.sqrt(diagonal_variance))
    return matrices


def goe_top_eigenvalue(block: Block, dim: int, *, spike: float = 0.0) -> Tensor:
    """Largest eigenvalue of the Gaussian matrices of `wigner`, drawn without the matrix: shape (n,).

    From the tridiagonal matrix with the same eigenvalues in law, of which only the first rows are drawn: its top
    eigenvector lives on some dim^(1/3) of them and has died out to rounding where the rest begins. Any dim costs
    a fraction of a millisecond. A `spike` is added in one direction, the first row.

    Raises
    ------
    ValueError
        If `dim` is not positive.

    References
    ----------
    Dumitriu and Edelman (2002), Matrix models for beta ensembles.
    """
    dim = _checks.natural("dim", dim)
    tops = np.array([_tridiagonal_top(rng, dim, spike)[0] for rng in block.streams])
    return torch.from_numpy(tops).to(block.device)


def goe_top_overlap(block: Block, dim: int, *, spike: float) -> Tensor:
    """Squared component of the top eigenvector along the spike, for the matrices of `goe_top_eigenvalue`: shape (n,).

    Raises
    ------
    ValueError
        If `dim` is not positive.

    Examples
    --------
    >>> from simulate.monte_carlo import fixture
    >>> bool((goe_top_overlap(Block((fixture(0, "a"),)), 10**6, spike=1e9) > 0.999).all())
    True
    """
    dim = _checks.natural("dim", dim)
    overlaps = np.array([_tridiagonal_top(rng, dim, spike, vector=True)[1] for rng in block.streams])
    return torch.from_numpy(overlaps).to(block.device)


def _tridiagonal_top(
    rng: np.random.Generator, dim: int, spike: float, *, vector: bool = False
) -> tuple[float, float]:
    """Top eigenvalue, and the squared first component of its eigenvector or NaN."""
    diagonal, beside = _first_rows(rng, dim)
    diagonal[0] += spike  # the first step of the reduction leaves the first direction as it is
    if vector:
        return _tridiagonal.eigenpair(diagonal, beside, len(beside))
    return _tridiagonal.eigenvalue(diagonal, beside, len(beside)), math.nan


def _first_rows(rng: np.random.Generator, dim: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Diagonal and elements beside it of the rows that both ends of the spectrum live on."""
    rows = min(dim, 16 + math.ceil(_TRIDIAGONAL_ROWS * dim ** (1 / 3)))
    diagonal = rng.standard_normal(rows) * math.sqrt(2 / dim)
    return diagonal, np.sqrt(rng.chisquare(dim - np.arange(1.0, rows)) / dim)


def goe_norms(block: Block, dim: int) -> tuple[Tensor, Tensor]:
    """Squared Frobenius and squared spectral norm of the Gaussian matrices of `wigner`, drawn without the matrix.

    Both of the same matrix, (n,) each, from the tridiagonal one of `goe_top_eigenvalue`: what its first rows leave of
    the Frobenius norm is a chi square.

    Raises
    ------
    ValueError
        If `dim` is not positive.

    Examples
    --------
    >>> from simulate.monte_carlo import fixture
    >>> frobenius, spectral = goe_norms(Block((fixture(0, "a"),)), 10**6)
    >>> round(float(frobenius) / 10**6, 2), round(float(spectral), 2)
    (1.0, 4.0)
    """
    dim = _checks.natural("dim", dim)
    squares = np.array([_squared_norms(rng, dim) for rng in block.streams]).T
    frobenius, spectral = torch.from_numpy(squares).to(block.device)
    return frobenius, spectral


def _squared_norms(rng: np.random.Generator, dim: int) -> tuple[float, float]:
    diagonal, beside = _first_rows(rng, dim)
    ends = [_tridiagonal.eigenvalue(diagonal, beside, place) for place in (0, len(beside))]
    rest = dim - len(diagonal)
    further = (
        rng.chisquare(rest + rest * (rest + 1) / 2) if rest else 0.0
    )  # diagonal, and twice what lies beside it
    whole = float((diagonal**2).sum() + 2 * (beside**2).sum()) + 2 / dim * further
    return whole, max(end**2 for end in ends)


def goe_moments(block: Block, dim: int, *, spike: float = 0.0, rank: int = 0) -> tuple[Tensor, Tensor]:
    """Trace and squared Frobenius norm of the Gaussian matrices of `wigner`, drawn without the matrix: (n,) each.

    A `spike` is added in `rank` orthogonal directions; they may be the first axes, as the law has no axes.

    Raises
    ------
    ValueError
        If `dim` is not positive, `rank` is not a whole number from 0 to `dim`, or the diagonals do not fit into memory.

    Examples
    --------
    >>> from simulate.monte_carlo import fixture
    >>> trace, square = goe_moments(Block((fixture(0, "a"),)), 10**4, spike=1e6, rank=3)
    >>> (trace / 1e6).round(decimals=3).tolist(), (square / 1e12).round(decimals=3).tolist()
    ([3.0], [3.0])
    """
    dim, rank = _checks.natural("dim", dim), _checks.natural_or_zero("rank", rank)
    if rank > dim:
        raise ValueError(f"rank must be at most dim = {dim}, got {rank}")
    _require_memory(block, "dim", 24 * len(block) * dim, f"diagonals of length {dim}")
    diagonal = block.normal(dim) * math.sqrt(2 / dim)
    diagonal[:, :rank] += spike
    pairs = dim * (dim - 1) / 2
    beside = block.stack(lambda rng: np.asarray(rng.chisquare(pairs) if pairs else 0.0))
    return diagonal.sum(1), diagonal.square().sum(1) + 2 * beside / dim


def haar_frames(block: Block, rows: int, columns: int, *, count: int = 1) -> Tensor:
    """Orthonormal frames, uniform on the Stiefel manifold: (n, count, rows, columns).

    As those of `simulate.perceptrons.curvature.haar`.

    Raises
    ------
    ValueError
        If not 1 <= columns <= rows, `count` is not positive, or the frames do not fit into memory.

    Examples
    --------
    >>> from simulate.monte_carlo import fixture
    >>> frame = haar_frames(Block((fixture(0, "a"),)), 5, 2)[0, 0]
    >>> bool(torch.allclose(frame.T @ frame, torch.eye(2, dtype=torch.float64)))
    True
    """
    rows, columns = _checks.natural("rows", rows), _checks.natural("columns", columns)
    count = _checks.natural("count", count)
    if columns > rows:
        raise ValueError(f"columns must be between 1 and rows = {rows}, got {columns}")
    what = f"{count} frames of {rows} x {columns}"
    _require_memory(block, "rows, columns and count", 32 * len(block) * count * rows * columns, what)
    normal = block.normal(count, columns, rows).flatten(0, 1)
    return _haar_rows(normal).mT.unflatten(0, (len(block), count))


def wishart(block: Block, dim: int, samples: int) -> Tensor:
    """X X^T / samples for X of shape dim x samples, standard normal: shape (n, dim, dim).

    By the decomposition of Bartlett (1933): X = L Q with orthonormal rows Q, and independent entries of L, normal below
    the diagonal, on it the roots of chi-squares of `samples` degrees of freedom, one less in each row.

    Raises
    ------
    ValueError
        If `dim` or `samples` is not positive, or the matrices do not fit into memory.
    """
    dim, samples = _checks.natural("dim", dim), _checks.natural("samples", samples)
    rank = min(dim, samples)
    what = f"matrices of {dim} x {dim} from {samples} samples"
    _require_memory(block, "dim and samples", 16 * len(block) * dim * (dim + rank), what)
    degrees = samples - np.arange(rank)

    def draw(rng: np.random.Generator) -> NDArray[np.float64]:
        factor = np.tril(rng.standard_normal((dim, rank)), -1)
        np.fill_diagonal(factor, np.sqrt(rng.chisquare(degrees)))
        return factor

    factors = block.stack(draw)
    return factors @ factors.mT / samples


def unit_vectors(block: Block, dim: int) -> Tensor:
    """Uniform on the unit sphere, shape (n, dim).

    Raises
    ------
    ValueError
        If `dim` is not positive, or the vectors do not fit into memory.
    """
    dim = _checks.natural("dim", dim)
    _require_memory(block, "dim", 24 * len(block) * dim, f"vectors of length {dim}")
    return torch.nn.functional.normalize(block.normal(dim), dim=1)


def spiked(noise: Tensor, directions: Tensor, spike: float | Tensor) -> Tensor:
    """Add spike v v^T to noise: noise (n, dim, dim), directions v (n, dim), spike a number or (n,)."""
    strength = torch.as_tensor(spike, dtype=noise.dtype, device=noise.device).reshape(-1, 1, 1)
    return noise + strength * directions[:, :, None] * directions[:, None, :]


def top_eigenvalue(matrices: Tensor) -> Tensor:
    """Largest eigenvalue of each symmetric matrix: (n, dim, dim) -> (n,).

    Raises
    ------
    ValueError
        If the matrices are not square.
    """
    _require_square(matrices)
    if _dense(matrices):
        return torch.linalg.eigvalsh(matrices)[:, -1]
    return torch.from_numpy(np.stack([_top(a, vector=False)[0] for a in matrices.detach().numpy()]))


def top_eigenpair(matrices: Tensor) -> tuple[Tensor, Tensor]:
    """Largest eigenvalue and a unit eigenvector of each symmetric matrix: (n, dim, dim) -> (n,), (n, dim).

    On the CPU one pair costs 0.3 of a full decomposition at dim 200 and less than 0.1 at dim 1000; what
    Lanczos finds has a residual below 1e-10 of the matrix, or the dense solver replaces it.

    Raises
    ------
    ValueError
        If the matrices are not square.

    Examples
    --------
    >>> values, vectors = top_eigenpair(torch.diag_embed(torch.tensor([[1.0, 3.0], [-1.0, -2.0]]).double()))
    >>> values.tolist(), vectors.abs().tolist()
    ([3.0, -1.0], [[0.0, 1.0], [1.0, 0.0]])
    """
    _require_square(matrices)
    if _dense(matrices):
        values, vectors = torch.linalg.eigh(matrices)
        return values[:, -1], vectors[:, :, -1]
    pairs = [_top(a, vector=True) for a in matrices.detach().numpy()]
    return torch.from_numpy(np.stack([p[0] for p in pairs])), torch.from_numpy(
        np.stack([p[1] for p in pairs])
    )


def logit_gradients(
    block: Block, *, classes: int, dim: int, samples: int, sigma_c: float, sigma_e: float, orthogonal: bool
) -> tuple[Tensor, Tensor]:
    """Gradients of the logits in the random model: class means c_k and deviations e_k of each sample.

    Parameters
    ----------
    block
        Streams to draw from, and the device.
    classes, dim, samples
        Logits K, parameters d, samples.
    sigma_c, sigma_e
        Standard deviation of a component of c and of e.
    orthogonal
        False: rows of c independent N(0, sigma_c^2 I). True: exactly orthogonal rows of squared length
        d sigma_c^2, the frame uniform (Haar) on all orthogonal frames.

    Returns
    -------
    c of shape (n, K, d) and e of shape (n, samples, K, d); the gradients are ``c[:, None] + e``.

    Raises
    ------
    ValueError
        If a count is not positive, a standard deviation is negative or not finite, more orthogonal rows are
        asked for than there are dimensions, or the gradients do not fit into memory.
    """
    sizes = {"classes": classes, "dim": dim, "samples": samples}
    classes, dim, samples = (_checks.natural(name, value) for name, value in sizes.items())
    for name, sigma in (("sigma_c", sigma_c), ("sigma_e", sigma_e)):
        if not 0 <= sigma < math.inf:
            raise ValueError(f"{name} must be non-negative and finite, got {sigma!r}")
    if orthogonal and classes > dim:
        raise ValueError(f"classes must be at most dim where the rows are orthogonal, got {classes} in {dim}")
    what = f"gradients of {samples} samples, {classes} classes and {dim} parameters"
    _require_memory(block, "classes, dim and samples", 16 * len(block) * classes * dim * (samples + 3), what)
    c = block.normal(classes, dim)
    if orthogonal:
        c = _haar_rows(c) * math.sqrt(dim)
    return sigma_c * c, sigma_e * block.normal(samples, classes, dim)


def gauss_newton_of_logits(gradients: Tensor, p: Tensor) -> Tensor:
    """Mean over the samples of J^T (diag p - p p^T) J.

    Parameters
    ----------
    gradients
        J of every sample, shape (n, samples, K, d).
    p
        Class probabilities, shape (K,), (samples, K) or (n, samples, K).

    Returns
    -------
    Shape (n, d, d).

    Raises
    ------
    ValueError
        If `p` does not hold probabilities that sum to 1 (to 1e-8), or its shape does not fit.
    """
    samples, classes = gradients.shape[1:3]
    p = torch.as_tensor(p, dtype=gradients.dtype, device=gradients.device)
    if p.shape not in ((classes,), (samples, classes), gradients.shape[:3]):
        raise ValueError(f"p must be of shape ({classes},) or ({samples}, {classes}), got {tuple(p.shape)}")
    if not (p >= 0).all() or not ((p.sum(-1) - 1).abs() <= 1e-8).all():
        raise ValueError("p must be probabilities that sum to 1, got entries that are not")
    # centred on the mean gradient: diag p - p p^T would cancel to nothing where p is nearly one-hot
    mean = (p[..., None] * gradients).sum(-2, keepdim=True)
    factor = (p.sqrt()[..., None] * (gradients - mean)).flatten(1, 2)
    return factor.mT @ factor / samples


def _haar_rows(gaussian: Tensor) -> Tensor:
    # the signs make R's diagonal positive: the QR factor is then unique, hence Haar
    q, r = torch.linalg.qr(gaussian.mT)
    return (q * r.diagonal(dim1=1, dim2=2).sign()[:, None, :]).mT


def _dense(matrices: Tensor) -> bool:
    return matrices.device.type != "cpu" or matrices.dtype != torch.float64


def _top(matrix: NDArray[np.float64], *, vector: bool) -> tuple[Any, Any]:
    if len(matrix) >= _LANCZOS_DIM and (pair := _lanczos(matrix)) is not None:
        return pair
    top = (len(matrix) - 1, len(matrix) - 1)
    if not vector:
        return scipy.linalg.eigh(matrix, subset_by_index=top, eigvals_only=True)[0], None
    values, vectors = scipy.linalg.eigh(matrix, subset_by_index=top)
    return values[0], vectors[:, 0]


def _lanczos(matrix: NDArray[np.float64]) -> tuple[Any, Any] | None:
    """Top pair by restarted Lanczos, or None where it has not converged; 20 times as fast as `eigenvalues.extremes`."""
    from scipy.sparse import linalg

    sparse: Any = linalg
    # the transpose is the same symmetric matrix in Fortran order, read by BLAS without a copy, one half only
    fortran = matrix.T
    symv: Any = scipy.linalg.get_blas_funcs("symv", (fortran,))
    product = sparse.LinearOperator(matrix.shape, lambda x: symv(1.0, fortran, x.ravel()), dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(len(matrix))
    try:
        values, vectors = sparse.eigsh(
            product, 1, which="LA", v0=start, tol=_RESIDUAL / 10, maxiter=_LANCZOS_RESTARTS
        )
    except sparse.ArpackError:
        return None
    value, vector = values[0], vectors[:, 0]
    # |value| is at most the norm of the matrix, so this residual is the stricter one
    residual = np.linalg.norm(matrix @ vector - value * vector)
    return (value, vector) if residual <= _RESIDUAL * abs(value) else None


def _require_memory(block: Block, name: str, needed: int, what: str) -> None:
    # counted at the peak: while the draws of a block are stacked they are there twice
    _memory.require_free(name, needed, f"{len(block)} replicates of {what}")


def _require_square(matrices: Tensor) -> None:
    if matrices.ndim != 3 or matrices.shape[1] != matrices.shape[2]:
        raise ValueError(f"matrices must be of shape (n, dim, dim), got {tuple(matrices.shape)}")
