"""Random matrices, a block of replicates as one stacked tensor: noise, spikes, the random logit model.

Shapes lead with the replicates ``n``. Every draw comes from the streams of the block, on the CPU, so that a
replicate is the same alone and in any block, on any device.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import torch
from numpy.typing import NDArray
from torch import Tensor

from simulate import _checks, _memory
from simulate._checks import Floats
from simulate.monte_carlo import Block

# Where Lanczos overtakes the reduction to tridiagonal form, measured on one core: sooner with an outlier.
_LANCZOS_DIM = 300
_LANCZOS_RESTARTS = 60

# Up to here all eigenvalues of a batch take less time than a call for one of each matrix.
_BATCHED_DIM = 100
_RESIDUAL = 1e-10
_ROUNDINGS = 256

# In units of dim^(1/3) the top eigenvector falls off like an Airy function: exp(-2/3 12^1.5) is 1e-12 here.
_TRIDIAGONAL_ROWS = 12.0

# LAPACK's code for eigenvalues that are asked for by index
_BY_INDEX = 2
_STEBZ, _STEIN = scipy.linalg.get_lapack_funcs(("stebz", "stein"), dtype=np.float64)

Draw = Callable[[np.random.Generator, int], NDArray[Any]]

_LAWS: dict[str, tuple[Draw, float]] = {
    "gaussian": (lambda rng, size: rng.standard_normal(size), 2.0),
    "rademacher": (lambda rng, size: 2 * rng.integers(0, 2, size, dtype=np.int8) - 1, 1.0),
}
"""Laws of entries before scaling, with mean 0 and variance 1, each with the variance on the diagonal."""


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
    _checks.one_of("law", law, _LAWS)
    draw, diagonal_variance = _LAWS[law]
    matrices = symmetric(block, dim, draw)
    matrices.diagonal(dim1=1, dim2=2).mul_(math.sqrt(diagonal_variance))
    return matrices


def symmetric(block: Block, dim: int, draw: Draw) -> Tensor:
    """Matrices (n, dim, dim) with entries of variance 1/dim from draws of variance 1, one for each pair of rows.

    Raises
    ------
    ValueError
        If `dim` is not positive, or the matrices do not fit into memory.
    """
    dim = _checks.natural("dim", dim)
    # counted at the peak: while the draws of a block are stacked they are there twice
    needed, what = (12 * len(block) + 8) * dim**2, f"{len(block)} replicates of matrices of {dim} x {dim}"
    _memory.require_free("dim", needed, what)
    rows, columns = torch.triu_indices(dim, dim)
    entries = block.stack(lambda rng: draw(rng, len(rows))).double() / math.sqrt(dim)
    matrices = entries.new_empty(len(block), dim, dim)
    matrices[:, rows, columns] = entries
    matrices[:, columns, rows] = entries
    return matrices


def goe_top_eigenvalue(block: Block, dim: int, *, spike: float = 0.0) -> Tensor:
    """Largest eigenvalue of the Gaussian matrices of `wigner`, drawn without the matrix: shape (n,).

    The eigenvalues have the law of those of a tridiagonal matrix, of which only the first rows are drawn: its top
    eigenvector is spread over some dim^(1/3) rows and has decayed to rounding beyond the drawn ones. Any dim costs a
    fraction of a millisecond. A `spike` is added in one direction, the first row.

    References
    ----------
    Dumitriu and Edelman (2002), Matrix models for beta ensembles.
    """
    draws = [first_rows(rng, dim, spike) for rng in block.streams]
    tops = np.array([float(_bisected(*drawn, len(drawn[1]))[0][0]) for drawn in draws])
    return torch.from_numpy(tops).to(block.device)


def first_rows(rng: np.random.Generator, dim: int, spike: float = 0.0) -> tuple[Floats, Floats]:
    """Draw the first rows of a tridiagonal GOE matrix, which carry the eigenvectors at both ends of the spectrum.

    A `spike` is added in the first direction, which the reduction to tridiagonal form leaves as it is.
    """
    rows = edge_rows(dim, dim)
    diagonal = rng.standard_normal(rows) * math.sqrt(2 / dim)
    diagonal[0] += spike
    return diagonal, np.sqrt(rng.chisquare(dim - np.arange(1.0, rows)) / dim)


def edge_rows(dim: int, scale: int) -> int:
    """Return the number of first rows that carry an eigenvector at the edge of the spectrum."""
    return min(dim, 16 + math.ceil(_TRIDIAGONAL_ROWS * scale ** (1 / 3)))


def eigenpair(diagonal: Floats, off_diagonal: Floats, place: int) -> tuple[float, float]:
    """Return an eigenvalue of a symmetric tridiagonal matrix, and the squared first component of its eigenvector.

    The eigenvalues are counted upwards from 0. Computed by the routines of
    `scipy.linalg.eigh_tridiagonal` without its argument checks, which take longer for a small matrix.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a routine does not converge.

    Examples
    --------
    >>> value, squared = eigenpair(np.array([2.0, 2.0]), np.array([1.0]), 1)
    >>> round(value, 9), round(squared, 9)
    (3.0, 0.5)
    """
    value, blocks, splits = _bisected(diagonal, off_diagonal, place)
    if len(diagonal) == 1:
        return float(value[0]), 1.0
    vectors, failed = _STEIN(diagonal, off_diagonal, value, blocks, splits)
    _require_converged(failed)
    return float(value[0]), float(vectors[0, 0] ** 2)


def _bisected(diagonal: Floats, off_diagonal: Floats, place: int) -> Any:
    """Return the eigenvalue of `eigenpair` by bisection, with the data needed for its vector."""
    if len(diagonal) == 1:  # which the routines refuse
        return diagonal, None, None
    # "B": ordered by blocks, as the routine for the eigenvector requires
    _, values, blocks, splits, failed = _STEBZ(
        diagonal, off_diagonal, _BY_INDEX, 0.0, 1.0, place + 1, place + 1, 0.0, "B"
    )
    _require_converged(failed)
    return values[:1], blocks, splits


def _require_converged(failed: int) -> None:
    if failed:
        raise np.linalg.LinAlgError("tridiagonal matrix must have an eigenpair that converges, got another")


def goe_norms(block: Block, dim: int) -> tuple[Tensor, Tensor]:
    """Squared Frobenius and squared spectral norm of the Gaussian matrices of `wigner`, drawn without the matrix.

    Both of the same matrix, (n,) each, from the tridiagonal one of `goe_top_eigenvalue`: the remaining rows add a
    chi-square to the squared Frobenius norm.

    Examples
    --------
    >>> from simulate.monte_carlo import fixture
    >>> frobenius, spectral = goe_norms(Block((fixture(0, "a"),)), 10**6)
    >>> round(float(frobenius) / 10**6, 2), round(float(spectral), 2)
    (1.0, 4.0)
    """
    squares = np.array([_squared_norms(rng, dim) for rng in block.streams]).T
    frobenius, spectral = torch.from_numpy(squares).to(block.device)
    return frobenius, spectral


def _squared_norms(rng: np.random.Generator, dim: int) -> tuple[float, float]:
    diagonal, off_diagonal = first_rows(rng, dim)
    ends = [float(_bisected(diagonal, off_diagonal, place)[0][0]) for place in (0, len(off_diagonal))]
    rest = dim - len(diagonal)
    # diagonal, and twice the off-diagonal entries
    further = rng.chisquare(rest + rest * (rest + 1) / 2) if rest else 0.0
    whole = float((diagonal**2).sum() + 2 * (off_diagonal**2).sum()) + 2 / dim * further
    return whole, max(end**2 for end in ends)


def goe_moments(block: Block, dim: int, *, spike: float = 0.0, rank: int = 0) -> tuple[Tensor, Tensor]:
    """Trace and squared Frobenius norm of the Gaussian matrices of `wigner`, drawn without the matrix: (n,) each.

    A `spike` is added in `rank` orthogonal directions; they may be the first axes, as the law has no axes.

    Examples
    --------
    >>> from simulate.monte_carlo import fixture
    >>> trace, square = goe_moments(Block((fixture(0, "a"),)), 10**4, spike=1e6, rank=3)
    >>> (trace / 1e6).round(decimals=3).tolist(), (square / 1e12).round(decimals=3).tolist()
    ([3.0], [3.0])
    """
    diagonal = block.normal(dim) * math.sqrt(2 / dim)
    diagonal[:, :rank] += spike
    pairs = dim * (dim - 1) / 2
    # a sum of squares of normals is one chi-square: no entry is drawn
    off_diagonal = block.stack(lambda rng: np.asarray(rng.chisquare(pairs) if pairs else 0.0))
    return diagonal.sum(1), diagonal.square().sum(1) + 2 * off_diagonal / dim


def haar_frames(block: Block, rows: int, columns: int, *, count: int = 1) -> Tensor:
    """Orthonormal frames, uniform on the Stiefel manifold: (n, count, rows, columns).

    As those of `simulate.perceptrons.curvature.haar`.

    Examples
    --------
    >>> from simulate.monte_carlo import fixture
    >>> frame = haar_frames(Block((fixture(0, "a"),)), 5, 2)[0, 0]
    >>> bool(torch.allclose(frame.T @ frame, torch.eye(2, dtype=torch.float64)))
    True
    """
    normal = block.normal(count, columns, rows).flatten(0, 1)
    return signed_qr(normal.mT).unflatten(0, (len(block), count))


def wishart(block: Block, dim: int, samples: int) -> Tensor:
    """X X^T / samples for X of shape dim x samples, standard normal: shape (n, dim, dim)."""
    factors = block.stack(lambda rng: wishart_factor(rng, dim, samples))
    return factors @ factors.mT / samples


def wishart_factor(rng: np.random.Generator, dim: int, samples: int) -> Floats:
    """Draw a factor L of X X^T = L L^T, lower triangular, (dim, min(dim, samples)), for X as in `wishart`.

    By the decomposition of Bartlett (1933): X = L Q with orthonormal rows Q, and independent entries of L, normal below
    the diagonal, on it the roots of chi-squares of `samples` degrees of freedom, one less in each row.
    """
    rank = min(dim, samples)
    factor = np.tril(rng.standard_normal((dim, rank)), -1)
    np.fill_diagonal(factor, np.sqrt(rng.chisquare(samples - np.arange(rank))))
    return factor


def unit_vectors(block: Block, dim: int) -> Tensor:
    """Draw vectors uniform on the unit sphere, shape (n, dim)."""
    return torch.nn.functional.normalize(block.normal(dim), dim=1)


def spiked(noise: Tensor, directions: Tensor, spike: float | Tensor) -> Tensor:
    """Add spike v v^T to noise: noise (n, dim, dim), directions v (n, dim), spike a number or (n,)."""
    strength = torch.as_tensor(spike, dtype=noise.dtype, device=noise.device).reshape(-1, 1, 1)
    return noise + strength * directions[:, :, None] * directions[:, None, :]


def top_eigenvalue(matrices: Tensor) -> Tensor:
    """Largest eigenvalue of each symmetric matrix: (n, dim, dim) -> (n,)."""
    if _dense(matrices) or matrices.shape[-1] < _BATCHED_DIM:
        return torch.linalg.eigvalsh(matrices)[:, -1]
    return torch.from_numpy(np.stack([_top(a, vector=False)[0] for a in matrices.detach().numpy()]))


def top_eigenpair(matrices: Tensor) -> tuple[Tensor, Tensor]:
    """Largest eigenvalue and a unit eigenvector of each symmetric matrix: (n, dim, dim) -> (n,), (n, dim).

    On the CPU one pair costs 0.3 of a full decomposition at dim 200 and less than 0.1 at dim 1000; what
    Lanczos finds has a residual below 1e-10 of the matrix, or the dense solver replaces it.

    Examples
    --------
    >>> values, vectors = top_eigenpair(torch.diag_embed(torch.tensor([[1.0, 3.0], [-1.0, -2.0]]).double()))
    >>> values.tolist(), vectors.abs().tolist()
    ([3.0, -1.0], [[0.0, 1.0], [1.0, 0.0]])
    """
    if _dense(matrices):
        values, vectors = torch.linalg.eigh(matrices)
        return values[:, -1], vectors[:, :, -1]
    tops, directions = zip(*(_top(a, vector=True) for a in matrices.detach().numpy()), strict=True)
    return torch.from_numpy(np.stack(tops)), torch.from_numpy(np.stack(directions))


def outliers(values: Tensor, weights: Tensor, spike: float) -> tuple[Tensor, Tensor]:
    """Largest eigenvalue of a matrix of known eigenvalues plus a positive spike, and squared overlap with the spike.

    Parameters
    ----------
    values
        Ascending eigenvalues (..., dim).
    weights
        Squared components of the unit vector of the spike along their eigenvectors, (..., dim).
    spike
        Eigenvalue of the added matrix.

    Examples
    --------
    >>> value, overlap = outliers(torch.tensor([-1.0, 1.0]).double(), torch.tensor([0.5, 0.5]).double(), 2.0)
    >>> round(float(value), 4), round(float(overlap), 4)  # of the matrix [[0, 1], [1, 2]]
    (2.4142, 0.8536)
    """
    at = values[..., -1:] + spike * weights[..., -1:]
    while True:
        parts = weights / (at - values)
        total, slope = parts.sum(-1, keepdim=True), (parts / (at - values)).sum(-1, keepdim=True)
        # the root of 1 / total = spike: this is concave in `at`, and Newton's steps come from below
        step = (spike * total - 1) * total / slope
        at = at + step
        if bool((step <= _ROUNDINGS * torch.finfo(at.dtype).eps * at.abs()).all()):
            return at[..., 0], 1 / (spike**2 * slope[..., 0])


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
    """
    c = block.normal(classes, dim)
    if orthogonal:
        c = signed_qr(c.mT).mT * math.sqrt(dim)
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
        If `p` does not hold probabilities that sum to 1 (to 1e-8).
    """
    p = torch.as_tensor(p, dtype=gradients.dtype, device=gradients.device)
    if not (p >= 0).all() or not ((p.sum(-1) - 1).abs() <= 1e-8).all():
        raise ValueError("p must be probabilities that sum to 1, got entries that are not")
    # centred on the mean gradient: diag p - p p^T would cancel to nothing where p is nearly one-hot
    mean = (p[..., None] * gradients).sum(-2, keepdim=True)
    factor = (p.sqrt()[..., None] * (gradients - mean)).flatten(1, 2)
    return factor.mT @ factor / gradients.shape[1]


def signed_qr(matrices: Tensor) -> Tensor:
    """Return the orthogonal factors (..., rows, columns) of QR decompositions; of normal matrices they are Haar."""
    orthogonal, upper = torch.linalg.qr(matrices)
    # a positive diagonal makes the factor unique, hence uniform
    return orthogonal * upper.diagonal(dim1=-2, dim2=-1).sign()[..., None, :]


def _dense(matrices: Tensor) -> bool:
    # the routines of scipy and ARPACK in use here are for float64 on the CPU
    return matrices.device.type != "cpu" or matrices.dtype != torch.float64


def _top(matrix: Floats, *, vector: bool) -> tuple[Any, Any]:
    if len(matrix) >= _LANCZOS_DIM and (pair := _lanczos(matrix)) is not None:
        return pair
    top = (len(matrix) - 1, len(matrix) - 1)
    if not vector:
        return scipy.linalg.eigh(matrix, subset_by_index=top, eigvals_only=True)[0], None
    values, vectors = scipy.linalg.eigh(matrix, subset_by_index=top)
    return values[0], vectors[:, 0]


def _lanczos(matrix: Floats) -> tuple[Any, Any] | None:
    """Return the top pair by restarted Lanczos, None without convergence; 20 times as fast as `extremes`."""
    from scipy.sparse import linalg

    sparse: Any = linalg
    # the transpose is the same symmetric matrix in Fortran order, read by BLAS without a copy, one half only
    fortran = matrix.T
    symv: Any = scipy.linalg.get_blas_funcs("symv", (fortran,))
    product = sparse.LinearOperator(matrix.shape, lambda x: symv(1.0, fortran, x.ravel()), dtype=np.float64)
    # a fixed start, since ARPACK's own depends on the calls before
    start = np.random.default_rng(0).standard_normal(len(matrix))
    try:
        # the tolerance is stricter than the check below, so that what ARPACK calls converged passes it
        values, vectors = sparse.eigsh(
            product, 1, which="LA", v0=start, tol=_RESIDUAL / 10, maxiter=_LANCZOS_RESTARTS
        )
    except sparse.ArpackError:
        return None
    value, vector = values[0], vectors[:, 0]
    # |value| is at most the norm of the matrix, so this residual is the stricter one
    residual = np.linalg.norm(matrix @ vector - value * vector)
    return (value, vector) if residual <= _RESIDUAL * abs(value) else None
