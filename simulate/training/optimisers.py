"""SGD on quadratic losses: its largest stable learning rate, and sample paths.

A population is what the per-sample curvatures H_i of a data set are, symmetric positive semidefinite, (N, P, P).
Every step of SGD draws a batch of B of them, independent of the other steps; inside of a batch no sample comes
twice. To find the largest mean-square stable rate of measured curvatures:

>>> matrices = np.array([[[2.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]]])  # or per_sample.gauss_newtons(...)
>>> samples = population(matrices)  # once: eigenbasis of the mean and a thin factor of every sample
>>> [round(largest_stable_rate(samples, batch).rate, 6) for batch in (1, 2)]  # for as many batch sizes as you like
[1.0, 2.0]
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

from simulate import _checks
from simulate._checks import Floats
from simulate.monte_carlo import Block

if TYPE_CHECKING:
    from torch import Tensor


_FLAT = 1e-12
"""Directions with less curvature relative to the largest count as flat; the error of the limit is N times this."""

_DENSE = 8
_FEW = 20
_ACCURACY = 1e-10
_ROUNDING = 1e-9


class Population(NamedTuple):
    """Per-sample curvatures in the eigenbasis of their mean: H_i = basis F_i F_i' basis'.

    Attributes
    ----------
    values
        Positive eigenvalues of the mean, descending, (R,).
    basis
        Their eigenvectors, (P, R).
    factors
        F_i, (N, R, r), where r is the largest rank of a sample.
    """

    values: Floats
    basis: Floats
    factors: Floats


class StableRate(NamedTuple):
    """Largest stable rate, and the second moment of the weights that it leaves unchanged, (P, P) of trace 1."""

    rate: float
    moment: Floats


def population(matrices: ArrayLike) -> Population:
    """Prepare per-sample curvatures (N, P, P) for `largest_stable_rate` at any batch size.

    It takes N P r^2 operations for samples of rank r: 0.2 s for N = 400, P = 226, r = 9.

    Raises
    ------
    ValueError
        If the matrices are not finite, symmetric and positive semidefinite to rounding, or all zero.

    Examples
    --------
    >>> population([[[1.0, 1.0], [1.0, 1.0]], [[1.0, -1.0], [-1.0, 1.0]]]).factors.shape
    (2, 2, 1)
    """
    matrices = _symmetric(matrices)
    values, basis = np.linalg.eigh(matrices.mean(axis=0))
    # along flat directions no step moves the weights, so any rate is stable there
    curved = np.flatnonzero(values > _FLAT * values[-1])[::-1]
    if len(curved) == 0 or values[-1] <= 0:
        raise ValueError("matrices must be positive semidefinite and not all zero")
    factors = [_factor(matrix) for matrix in matrices]
    width = max(factor.shape[1] for factor in factors)
    padded = np.stack([np.pad(factor, ((0, 0), (0, width - factor.shape[1]))) for factor in factors])
    return Population(values[curved], basis[:, curved], basis[:, curved].T @ padded)


def largest_stable_rate(samples: Population, batch_size: float) -> StableRate:
    """Return the largest rate at which the second moment of the weights does not grow under SGD, exactly.

    One step takes the second moment M to M - a (H M + M H) + a^2 E[H_B M H_B]. It is stable for a below 1/rho, with rho
    the largest eigenvalue of E[H_B M H_B] = rho (H M + M H). This symmetric problem in M is solved by Lanczos from the
    identity, with products of the thin factors only. It takes about 2 s for N = 400, P = 226, rank 9.

    Parameters
    ----------
    samples
        Result of `population`.
    batch_size
        B, from 1 to N.

    Returns
    -------
    The rate, and the second moment that it leaves unchanged.

    Raises
    ------
    ValueError
        If `batch_size` is not from 1 to N.

    References
    ----------
    Mulayoff and Michaeli, Exact mean square linear stability analysis for SGD, COLT 2024, arXiv 2306.07850: the same
    threshold, by Kronecker products of P^2 x P^2. Their p is the weight of single samples in E[H_B M H_B],
    (N - B) / (B (N - 1)) without replacement.

    Examples
    --------
    >>> round(largest_stable_rate(population([[[4.0]], [[2.0]]]), 1).rate, 12)  # 2 E[h] / E[h^2]
    0.6
    """
    noise = _noise_weight(len(samples.factors), batch_size)
    h = samples.values
    # H M + M H is diagonal here: its root turns the generalised problem into an ordinary symmetric one
    scale = np.sqrt(h[:, None] + h)

    def product(vector: Floats) -> Floats:
        moment = vector.reshape(scale.shape) / scale
        mean = h[:, None] * moment * h
        whole = (1 - noise) * mean + noise * _sandwich(samples.factors, moment) if noise else mean
        return (whole / scale).ravel()

    rho, vector = _top_pair(product, np.eye(len(h)))
    moment = vector.reshape(scale.shape) / scale
    moment = samples.basis @ (moment + moment.T) @ samples.basis.T
    return StableRate(1 / rho, moment / np.trace(moment))


def whitened_square(samples: Population, batch_size: float) -> float:
    """Largest eigenvalue of H^(-1/2) E[H_B^2] H^(-1/2).

    Examples
    --------
    >>> round(whitened_square(population([[[4.0]], [[2.0]]]), 1), 12)  # E[h^2] / E[h]
    3.333333333333
    """
    noise = _noise_weight(len(samples.factors), batch_size)
    h = samples.values
    square = (1 - noise) * np.diag(h**2) + noise * _sandwich(samples.factors, np.eye(len(h)))
    root = np.sqrt(h)
    return float(np.linalg.eigvalsh(square / root[:, None] / root)[-1])


def form_moments(samples: Population, directions: ArrayLike) -> tuple[Floats, Floats]:
    """Return mean and variance (divisor N - 1) over the samples of u' H_i u for unit directions (k, P), each (k,).

    Raises
    ------
    ValueError
        If the directions do not have P components.

    Examples
    --------
    >>> mean, variance = form_moments(population([[[4.0]], [[2.0]]]), [[1.0]])
    >>> mean.round(12).tolist(), variance.round(12).tolist()
    ([3.0], [2.0])
    """
    u = np.asarray(directions, dtype=np.float64)
    if u.ndim != 2 or u.shape[1] != len(samples.basis):
        raise ValueError(f"directions must be of shape (k, {len(samples.basis)}), got {u.shape}")
    forms = ((u @ samples.basis @ samples.factors) ** 2).sum(axis=2)
    return forms.mean(axis=0), forms.var(axis=0, ddof=1) if len(forms) > 1 else np.zeros(len(u))


def trial_directions(samples: Population, *, top: int, heavy: int) -> Floats:
    """Return top eigenvectors of the mean, and of the samples with the largest eigenvalues: unit rows (top + heavy, P).

    There are fewer if the population holds fewer; a sample without curvature gives none.

    Raises
    ------
    ValueError
        If a number is negative.
    """
    if top < 0 or heavy < 0:
        raise ValueError(f"top and heavy must be non-negative, got {top} and {heavy}")
    grams = np.linalg.eigh(samples.factors.transpose(0, 2, 1) @ samples.factors)
    curved = int((grams.eigenvalues[:, -1] > 0).sum())
    largest = np.argsort(grams.eigenvalues[:, -1])[::-1][: min(heavy, curved)]
    own = (samples.factors[largest] @ grams.eigenvectors[largest][:, :, -1:])[:, :, 0]
    own = own / np.linalg.norm(own, axis=1, keepdims=True)
    return np.concatenate([samples.basis[:, :top].T, own @ samples.basis.T])


def all_batches(matrices: ArrayLike, batch_size: int) -> Floats:
    """Return the mean matrix of every batch of this size without replacement: (N, P, P) -> (batches, P, P).

    Raises
    ------
    ValueError
        If `batch_size` is not an integer, or there is no such batch.

    Examples
    --------
    >>> all_batches([[[1.0]], [[2.0]], [[6.0]]], 2).ravel().tolist()
    [1.5, 3.5, 4.0]
    """
    matrices = _symmetric(matrices)
    members = itertools.combinations(range(len(matrices)), _batch_size(batch_size, len(matrices)))
    return np.stack([matrices[list(chosen)].mean(axis=0) for chosen in members])


def moment_radius(batches: ArrayLike, rate: float) -> float:
    """Return the asymptotic growth factor of the second moment per step, from equally likely batches (K, P, P).

    It is the spectral radius of a dense P^2 x P^2 matrix: for small P.

    Examples
    --------
    >>> moment_radius([[[4.0]], [[2.0]]], 0.25)  # E[(1 - a h)^2]
    0.125
    """
    batches = _symmetric(batches)
    steps = np.eye(batches.shape[1]) - rate * batches
    size = batches.shape[1] ** 2
    whole = np.einsum("kab,kcd->acbd", steps, steps).reshape(size, size) / len(steps)
    return float(np.abs(np.linalg.eigvals(whole)).max())


def sgd_steps(
    block: Block, matrices: ArrayLike, moment: ArrayLike, *, rate: float, batch_size: int, runs: int
) -> dict[str, Floats]:
    """Simulate one step of SGD on per-sample curvatures (N, P, P), from normal weights of a given covariance (P, P).

    Returns
    -------
    Means over the runs of a replicate, each (n,): *change* of the squared distance to the minimum, and *gain*, its
    first-order part 2 a w' H w with the opposite sign.

    Raises
    ------
    ValueError
        If a count is not a positive integer, there is no such batch, or `moment` is no covariance of P weights.
    """
    matrices, runs = _symmetric(matrices), _checks.natural("runs", runs)
    size, batch_size = len(matrices), _batch_size(batch_size, len(matrices))
    covariance, mean = np.asarray(moment, dtype=np.float64), matrices.mean(axis=0)
    if covariance.shape != mean.shape:
        raise ValueError(f"moment must be of shape {mean.shape}, got {covariance.shape}")
    values, vectors = np.linalg.eigh(covariance)
    if not values[0] >= -_ROUNDING * np.abs(values).max():
        raise ValueError(f"moment must be positive semidefinite, got the eigenvalue {values[0]:.3g}")
    # rounding may leave eigenvalues below 0
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    found = []
    for rng in block.streams:
        w = rng.standard_normal((runs, len(root))) @ root.T
        # the first of a random order: draws without replacement, for all runs at once
        drawn = rng.random((runs, size)).argsort(axis=1)[:, :batch_size]
        gradients = (matrices[drawn].mean(axis=1) @ w[..., None])[..., 0]
        change = ((w - rate * gradients) ** 2 - w**2).sum(axis=1)
        found.append((change.mean(), 2 * rate * ((w @ mean) * w).sum(axis=1).mean()))
    return dict(zip(("change", "gain"), np.array(found).T, strict=True))


def least_squares_paths(
    block: Block, *, dim: int, rate: float, batch_size: int, steps: int, runs: int
) -> Tensor:
    """Simulate SGD on noiseless least squares: fresh inputs x ~ N(0, I) at every step, from weights of length 1.

    Returns
    -------
    Squared length after all steps, its mean over the runs of a replicate, (n,).

    Raises
    ------
    ValueError
        If a count is not positive.
    """
    for name, value in {"dim": dim, "batch_size": batch_size, "steps": steps, "runs": runs}.items():
        _checks.natural(name, value)
    w = block.normal(runs, dim)
    w = w / w.norm(dim=2, keepdim=True)
    for _ in range(steps):
        x = block.normal(runs, batch_size, dim)
        outputs = x @ w[..., None]
        w = w - rate / batch_size * (x.mT @ outputs)[..., 0]
    return w.square().sum(2).mean(1)


# --- full gradients: contraction of descent and momentum ---

Step = Callable[[Floats, Floats, Callable[[Floats], Floats]], Floats]
"""Function of the weights, the weights before them and the gradient (a function) to the next weights."""


def descent_step(rate: float) -> Step:
    """Return a step of gradient descent."""
    return lambda w, _, gradient: w - rate * gradient(w)


def heavy_ball_step(rate: float, momentum: float) -> Step:
    """Return a step of Polyak's momentum, w - rate g(w) + momentum (w - before)."""
    return lambda w, before, gradient: w - rate * gradient(w) + momentum * (w - before)


def nesterov_step(rate: float, momentum: float) -> Step:
    """Return a step of Nesterov's momentum, with the gradient at w + momentum (w - before)."""

    def step(w: Floats, before: Floats, gradient: Callable[[Floats], Floats]) -> Floats:
        ahead = w + momentum * (w - before)
        return ahead - rate * gradient(ahead)

    return step


def step_contraction(step: Step, eigenvalues: Sequence[float]) -> float:
    """Return the asymptotic factor per step by which an optimiser shrinks the error on a quadratic.

    It comes from products of 2^48 steps: the step is a matrix on weights and the weights before them, which is squared
    repeatedly.

    Raises
    ------
    ValueError
        If there is no eigenvalue.

    Examples
    --------
    >>> round(step_contraction(descent_step(0.25), (1.0, 3.0)), 9)
    0.75
    """
    h = np.asarray(eigenvalues, dtype=np.float64)[:, None]
    if not h.size:
        raise ValueError("eigenvalues must hold at least one number")
    starts = np.eye(2)
    images = step(starts[:1] + 0 * h, starts[1:] + 0 * h, lambda w: h * w)
    matrices = np.stack([images, np.broadcast_to(starts[0], images.shape)], axis=1)
    logarithm = np.zeros(len(h))
    for _ in range(48):
        size = np.linalg.norm(matrices, axis=(1, 2))
        alive = size > 0
        size = np.where(alive, size, 1.0)
        # the size is kept as a logarithm: powers of 2^48 overflow or vanish
        logarithm = np.where(alive, 2 * (logarithm + np.log(size)), -math.inf)
        scaled = matrices / size[:, None, None]
        matrices = scaled @ scaled
    size = np.linalg.norm(matrices, axis=(1, 2))
    with np.errstate(divide="ignore"):
        return float(np.exp((logarithm + np.log(size)) / 2.0**48).max())


# --- parts -----------------------------------------------------------------------------------------------------


def _noise_weight(size: int, batch_size: float) -> float:
    """Return c of E[H_B M H_B] = (1 - c) H M H + c E[H_i M H_i]: 1/B, corrected for draws without replacement."""
    if not 1 <= batch_size <= size:
        raise ValueError(f"batch_size must be from 1 to the {size} samples, got {batch_size!r}")
    return (size - batch_size) / (batch_size * (size - 1)) if size > 1 else 0.0


def _batch_size(batch_size: int, size: int) -> int:
    """Return `batch_size` as an integer; raise if a batch of this size cannot be drawn from `size` samples."""
    _noise_weight(size, _checks.natural("batch_size", batch_size))
    return int(batch_size)


def _sandwich(factors: Floats, moment: Floats) -> Floats:
    """Return the mean over the samples of H_i M H_i, in the eigenbasis."""
    size, rows, width = factors.shape
    flat = factors.transpose(1, 0, 2).reshape(rows, size * width)
    right = (moment @ flat).reshape(rows, size, width).transpose(1, 0, 2)
    inner = factors.transpose(0, 2, 1) @ right
    left = (factors @ inner).transpose(1, 0, 2).reshape(rows, size * width)
    return left @ flat.T / size


def _top_pair(product: Callable[[Floats], Floats], start: Floats) -> tuple[float, Floats]:
    """Return the largest eigenvalue and a positive eigenvector of an operator that keeps matrices positive.

    The operator is symmetric. If the eigenvalue is not simple, the projection of a positive `start` on its eigenspace
    is such an eigenvector. For 24 x 24 matrices it takes a seventh of the time of `simulate.eigenvalues.extremes`.
    """
    from scipy.sparse import linalg

    sparse: Any = linalg
    size, flat = start.size, start.ravel()
    basis = np.eye(size) if len(start) <= _DENSE else _small_krylov_basis(product, flat)
    if basis is not None:
        whole = basis @ np.stack([product(unit) for unit in basis]).T
        values, vectors = np.linalg.eigh((whole + whole.T) / 2)
        # projected on the whole eigenspace, since a single eigenvector of it need not be positive
        top = vectors[:, values >= (1 - _ACCURACY) * values[-1]]
        return float(values[-1]), top @ (top.T @ (basis @ flat)) @ basis
    operator = sparse.LinearOperator((size, size), lambda x: product(x.ravel()), dtype=np.float64)
    values, vectors = sparse.eigsh(operator, 1, which="LA", v0=flat, tol=_ACCURACY)
    return float(values[0]), vectors[:, 0]


def _small_krylov_basis(product: Callable[[Floats], Floats], start: Floats) -> Floats | None:
    """Return orthonormal rows that span the Krylov space of `start`, or None if it has more than `_FEW` dimensions.

    A positive `start` has a part in the eigenspace of the largest eigenvalue, so that the span meets it.
    """
    # in such a small space Lanczos would restart at random vectors
    basis = start[None] / np.linalg.norm(start)
    for _ in range(_FEW):
        image = product(basis[-1])
        rest = image
        for _ in range(2):  # twice is enough to be orthogonal to rounding
            rest = rest - (basis @ rest) @ basis
        if np.linalg.norm(rest) <= _ACCURACY * np.linalg.norm(image):
            return basis
        basis = np.concatenate([basis, rest[None] / np.linalg.norm(rest)])
    return None


def _factor(matrix: Floats) -> Floats:
    """Return L with L L' = the matrix and as many columns as its rank, by pivoted Cholesky."""
    pstrf: Any = scipy.linalg.get_lapack_funcs("pstrf", (matrix,))
    packed = pstrf(matrix, lower=1)
    # LAPACK counts pivots from one, and leaves the upper triangle as it was
    lower, pivots, rank = np.tril(packed[0])[:, : packed[2]], packed[1] - 1, packed[2]
    factor = np.empty((len(matrix), rank))
    factor[pivots] = lower
    # LAPACK takes an indefinite matrix for one of lower rank; only the product shows the difference
    error = np.abs(factor @ factor.T - matrix).max(initial=0.0)
    if not error <= _ROUNDING * np.abs(matrix).max(initial=0.0):
        raise ValueError(f"matrices must be positive semidefinite, got a matrix with an error of {error:.3g}")
    return factor


def _symmetric(matrices: ArrayLike) -> Floats:
    array = np.asarray(matrices, dtype=np.float64)
    if array.ndim != 3 or array.shape[1] != array.shape[2] or array.size == 0:
        raise ValueError(f"matrices must be of shape (N, P, P), got {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError("matrices must be finite, got NaN or infinity")
    if np.abs(array - array.transpose(0, 2, 1)).max() > _ROUNDING * np.abs(array).max():
        raise ValueError("matrices must be symmetric")
    return array
