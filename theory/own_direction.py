r"""Top eigenvalue of the mean matrix of a batch, at every batch size, from a few statistics of each sample.

Random-matrix theory gives every element of the noise one variance. In a network the noise sits where curvature is,
and a small batch has the top eigenvalue of its heaviest sample, whose own direction the mean matrix hardly knows. So
the batch matrix is reduced to the top eigenvectors of the mean matrix, taken sample by sample, and to one direction
of each sample's own; what is left enters through two numbers.

=====================  ===================  ==========================================================================
name                   symbol               meaning
=====================  ===================  ==========================================================================
``projected``          A_i = V'H_iV         matrix of sample i on the top k eigenvectors V of the mean matrix
``squared``            C_i = V'H_i^2V       its square on them
``largest``            l_i                  top eigenvalue of sample i
``overlaps``           alpha_i = V'u_i      its eigenvector on V
``coupling``           h_i = V'H_ie_i       e_i = (u_i - V alpha_i)/r_i, the own direction, r_i^2 = 1 - |alpha_i|^2
``own``                d_i = e_i'H_ie_i     curvature along it
``rest``               T_i                  C_i - A_i^2 - h_ih_i', coupling of V to everything else
``background``         q                    E e_i'H_je_i, what another sample adds along an own direction
``spread``             kappa                E |(1 - VV')H_je_i|^2 - q^2, how it couples that direction onwards
``x``                  1/b                  1/B - 1/N
=====================  ===================  ==========================================================================

Not from a paper; docs/claims/beyond.md, D1, has the derivation. The matrices are Hessians or Gauss-Newton matrices, and
the batch is drawn without replacement.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from theory._checks import Floats, as_given, finite, flag, instance, require, scalar

__all__ = [
    "BatchBounds",
    "OwnDirections",
    "batch_bounds",
    "batch_eigenvalues",
    "expected_eigenvalue",
    "own_directions",
]

Indices = NDArray[np.intp]

_LARGEST_BACKGROUND = 0.8
"""Largest background, as a share of lambda_1: more would make a typical own direction one of the top ones."""

_IN_THE_SPAN = 1e-12
"""Share of the squared length of u_i outside of V, below which it counts as rounding."""

_LARGEST = 1e100
"""Largest size of an entry, whose square must not overflow."""

_TOLERANCE = 1e-11
_STEPS = 200
_ROUNDOFF = 1e-15
_ROUNDING = 1e-6


@dataclass(frozen=True, kw_only=True, eq=False)
class OwnDirections:
    """Statistics of N samples on k directions that the law reads; made by `own_directions`.

    Attributes
    ----------
    projected, rest
        A_i and T_i, shape (N, k, k).
    coupling
        h_i, shape (N, k).
    own
        d_i, shape (N,).
    background, spread
        q and kappa, as the law uses them.
    """

    projected: Floats
    rest: Floats
    coupling: Floats
    own: Floats
    background: float
    spread: float

    @property
    def samples(self) -> int:
        """N."""
        return len(self.own)

    @property
    def eigenvalue(self) -> float:
        """lambda_1 of the mean matrix, which its top eigenvectors hold in full."""
        return float(np.linalg.eigvalsh(self.projected.mean(axis=0))[-1])


def own_directions(
    projected: ArrayLike,
    squared: ArrayLike,
    largest: ArrayLike,
    overlaps: ArrayLike,
    *,
    background: ArrayLike,
    spread: ArrayLike,
) -> OwnDirections:
    r"""The blocks of every sample on V and its own direction, which cost nothing beyond the eigenpair.

    From :math:`H_i u_i = \ell_i u_i` follow :math:`h_i = (\ell_i - A_i)\alpha_i / r_i` and
    :math:`d_i = [\ell_i (1 - 2|\alpha_i|^2) + \alpha_i' A_i \alpha_i] / r_i^2`. A sample whose u_i lies in the span of
    V has no own direction, and both are 0. Fewer eigenvectors are the leading entries of every argument.

    Parameters
    ----------
    projected, squared
        A_i and C_i on the top k eigenvectors of the mean matrix, each (N, k, k), symmetric.
    largest
        l_i, shape (N,).
    overlaps
        alpha_i, shape (N, k), of length at most 1.
    background, spread
        q and kappa as measured, scalars; noise may make them negative, which counts as 0, and q at most
        0.8 lambda_1.

    Raises
    ------
    ValueError
        If a shape does not fit, a matrix is not symmetric, an overlap is longer than 1, a number is not finite or
        above 1e100, or lambda_1 is not positive.

    Examples
    --------
    >>> pair = own_directions(
    ...     [[[3.0]], [[1.0]]], [[[9.0]], [[2.0]]], [3.0, 2.0], [[1.0], [0.5**0.5]], background=0.0, spread=0.0
    ... )
    >>> pair.eigenvalue, pair.coupling.round(3).tolist(), pair.own.round(3).tolist()
    (2.0, [[0.0], [1.0]], [0.0, 1.0])
    """
    a, c = _symmetric("projected", projected), _symmetric("squared", squared)
    tops, alpha = _bounded("largest", largest), finite("overlaps", overlaps)
    shape = a.shape[:2]
    require(c.shape == a.shape, "squared", f"of shape {a.shape} like projected", c.shape)
    require(tops.shape == shape[:1], "largest", f"of shape {shape[:1]}", tops.shape)
    require(alpha.shape == shape, "overlaps", f"of shape {shape}", alpha.shape)
    require(np.abs(alpha) <= 2, "overlaps", "at most 1 in length", overlaps)
    inside = (alpha**2).sum(axis=1)
    require(inside <= 1 + _ROUNDING, "overlaps", "at most 1 in length", overlaps)
    top = float(np.linalg.eigvalsh(a.mean(axis=0))[-1])
    require(top > 0, "projected", "of positive mean top eigenvalue", top)
    coupling, own = _own_blocks(a, tops, alpha, inside)
    q = scalar("background", background, _bounded)
    kappa = scalar("spread", spread, _bounded)
    return OwnDirections(
        projected=a,
        rest=c - a @ a - coupling[:, :, None] * coupling[:, None, :],
        coupling=coupling,
        own=own,
        background=min(max(q, 0.0), _LARGEST_BACKGROUND * top),
        spread=max(kappa, 0.0),
    )


def batch_eigenvalues(statistics: OwnDirections, batches: ArrayLike) -> Floats:
    r"""Top eigenvalue of the mean matrix of each batch, as the law gives it.

    The largest root of :math:`\lambda = \lambda_{\max}(F_S(\lambda))` above :math:`\max_S x d_i + Q`, with
    :math:`x = 1/B - 1/N`, :math:`Q = q (1 - x) + x (1 - 1/B) \kappa / (\lambda - q (1 - x))` and

    .. math:: F_S = \frac1B \sum_{i \in S} \left[ A_i + \frac{x h_i h_i'}{\lambda - x d_i - Q}
                    + \frac{x (1 - 1/B) T_i}{\lambda - Q} \right].

    F decreases in lambda, so the root lies between any value and F there: bisection, with that as a further bracket.

    Parameters
    ----------
    statistics
        Of all N samples.
    batches
        Indices of the samples in each batch, (batches, B); no sample twice in a batch.

    Returns
    -------
    Shape (batches,). At B = N exactly lambda_1; at B = 1 the top eigenvalues of the samples up to O(1/N).

    Raises
    ------
    ValueError
        If `batches` are not indices of samples, or hold one twice.

    Notes
    -----
    What the law is for is the mean over batches, `expected_eigenvalue`. One value knows of the other samples of its
    batch only what is true on average, :math:`q` and :math:`\kappa`, and is off by 0.1 to 0.4 :math:`\lambda_1` (root
    mean square, on small networks). Never divide by or into it at B from 2 to 4: a batch of samples that a trained
    network is sure of has hardly any curvature, the value stays near :math:`q`, and nothing bounds the ratio to the
    true one. `batch_bounds` hold for every batch.

    Examples
    --------
    >>> pair = own_directions(
    ...     [[[3.0]], [[1.0]]], [[[9.0]], [[2.0]]], [3.0, 2.0], [[1.0], [0.5**0.5]], background=0.0, spread=0.0
    ... )
    >>> batch_eigenvalues(pair, [[0, 1]]).tolist()
    [2.0]
    """
    instance("statistics", statistics, OwnDirections, "the result of own_directions")
    return _roots(statistics, _batches(batches, statistics.samples))


class BatchBounds(NamedTuple):
    """Numbers between which the top eigenvalue of the mean matrix of each batch lies, shape (batches,)."""

    lower: Floats
    upper: Floats


def batch_bounds(statistics: OwnDirections, batches: ArrayLike, *, semidefinite: bool = False) -> BatchBounds:
    r"""Bounds that hold for every single batch, where `batch_eigenvalues` is right on average.

    .. math::
        \lambda_{\max}\Big(\frac1B \sum_{i \in S} A_i\Big) \le \lambda_{\max}(H_S)
        \le \frac1B \sum_{i \in S} \ell_i,

    a compression and the triangle inequality; for positive semidefinite matrices the largest
    :math:`\ell_i / B` is a lower bound too, so that they are within a factor B.

    Parameters
    ----------
    statistics, batches
        As in `batch_eigenvalues`.
    semidefinite
        Whether the matrices of the samples are positive semidefinite, as Gauss-Newton matrices are.

    Raises
    ------
    ValueError
        As `batch_eigenvalues`, or if `semidefinite` is not True or False.

    Examples
    --------
    >>> pair = own_directions(
    ...     [[[3.0]], [[1.0]]], [[[9.0]], [[2.0]]], [3.0, 2.0], [[1.0], [0.5**0.5]], background=0.0, spread=0.0
    ... )
    >>> [bound.round(12).tolist() for bound in batch_bounds(pair, [[0], [1]])]
    [[3.0, 1.0], [3.0, 2.0]]
    """
    instance("statistics", statistics, OwnDirections, "the result of own_directions")
    chosen = _batches(batches, statistics.samples)
    samples, directions = statistics.coupling.shape
    # of each sample, on the span and its own direction
    matrices = np.empty((samples, directions + 1, directions + 1))
    matrices[:, :-1, :-1] = statistics.projected
    matrices[:, -1, :-1] = matrices[:, :-1, -1] = statistics.coupling
    matrices[:, -1, -1] = statistics.own
    tops = np.linalg.eigvalsh(matrices)[:, -1][chosen]
    lower = np.linalg.eigvalsh(statistics.projected[chosen].mean(axis=1))[:, -1]
    if flag("semidefinite", semidefinite):
        lower = np.maximum(lower, tops.max(axis=1) / chosen.shape[1])
    upper = tops.mean(axis=1)
    return BatchBounds(np.minimum(lower, upper), upper)  # equal ones may cross by rounding


def expected_eigenvalue(statistics: OwnDirections, batches: ArrayLike) -> Floats:
    """Mean of `batch_eigenvalues`, less what these batches differ by from all batches of their size to first order.

    Control variates are the batch means of A_11 and of the trace of A, whose expectations are known.

    Parameters
    ----------
    statistics, batches
        As in `batch_eigenvalues`; with less than a dozen batches the plain mean is returned.

    Returns
    -------
    E lambda_1(B), a 0-d float.

    Raises
    ------
    ValueError
        As `batch_eigenvalues`.

    Examples
    --------
    >>> pair = own_directions(
    ...     [[[3.0]], [[1.0]]], [[[9.0]], [[2.0]]], [3.0, 2.0], [[1.0], [0.5**0.5]], background=0.0, spread=0.0
    ... )
    >>> float(expected_eigenvalue(pair, [[0, 1]]))
    2.0
    """
    values = batch_eigenvalues(statistics, batches)
    diagonal = np.diagonal(statistics.projected, axis1=1, axis2=2)
    controls = np.stack([diagonal[:, 0], diagonal.sum(axis=1)], axis=1)
    off = controls[_batches(batches, statistics.samples)].mean(axis=1) - controls.mean(axis=0)
    slopes = np.zeros_like(off[0])
    if len(values) >= 12:  # least squares
        centred = off - off.mean(axis=0)
        solve: Any = np.linalg.lstsq
        slopes = solve(centred, values - values.mean(), rcond=1e-9)[0]
    return values.mean() - off.mean(axis=0) @ slopes


def _own_blocks(a: Floats, tops: Floats, alpha: Floats, inside: Floats) -> tuple[Floats, Floats]:
    """h_i and d_i; 0 where u_i lies in the span of V."""
    outside = 1 - inside
    there = outside > _IN_THE_SPAN
    squared_length = np.where(there, outside, 1.0)
    image = np.einsum("nij,nj->ni", a, alpha)
    coupling = (tops[:, None] * alpha - image) / np.sqrt(squared_length)[:, None]
    own = (tops * (1 - 2 * inside) + (alpha * image).sum(axis=1)) / squared_length
    return np.where(there[:, None], coupling, 0.0), np.where(there, own, 0.0)


def _roots(statistics: OwnDirections, batches: Indices) -> Floats:
    """Solve lambda = lambda_max(F_S(lambda)) for batches of one size, all at once."""
    size = batches.shape[1]
    x = (statistics.samples - size) / (size * statistics.samples)
    unit = statistics.eigenvalue
    base = statistics.projected[batches].mean(axis=1)
    rest = x * (1 - 1 / size) * statistics.rest[batches].mean(axis=1)
    # the root, since the coupling enters twice
    coupling = math.sqrt(x / size) * statistics.coupling[batches]
    own = x * statistics.own[batches]
    shift = statistics.background * (1 - x)
    spread = x * (1 - 1 / size) * statistics.spread

    def largest(at: Floats) -> Floats:
        # above the poles both gaps are positive, but for rounding next to one
        least = _ROUNDOFF * at
        above = at - shift
        above = above - spread / np.maximum(above, least)
        gaps = np.maximum(above[:, None] - own, least[:, None])
        matrices = base + rest / np.maximum(above, least)[:, None, None]
        matrices += (coupling / gaps[:, :, None]).mT @ coupling
        return np.asarray(np.linalg.eigvalsh(matrices)[:, -1], dtype=np.float64)

    # lambda = max(x d_i, 0) + Q(lambda), below which nothing is a solution
    heaviest = np.maximum(own.max(axis=1), 0.0)
    low = shift + (heaviest + np.sqrt(heaviest**2 + 4 * spread)) / 2
    strongest = max(np.abs(statistics.coupling).max(), np.abs(statistics.own).max())
    at = low + (unit + float(strongest))
    # F decreases: whatever it is at `at`, the root does not lie above both
    found = largest(at)
    high: Floats = np.maximum(at, found)
    middle: Floats = low + (high - low) / 2
    for _ in range(_STEPS):
        if (high - low <= _TOLERANCE * np.maximum(high, unit)).all():
            break
        last, at, before, length = at, middle, found, high - low
        found = largest(at)
        above = found > at
        low, high = (
            np.where(above, at, np.maximum(low, np.minimum(found, at))),
            np.where(above, np.minimum(high, found), at),
        )
        # the secant, where it lies between the bounds and these have come closer by a quarter
        with np.errstate(divide="ignore", invalid="ignore"):
            secant = at - (found - at) * (at - last) / ((found - at) - (before - last))
        use = (low < secant) & (secant < high) & (high - low <= 0.75 * length)
        middle = np.where(use, secant, low + (high - low) / 2)
    # one more step costs nothing where F is steep and is exact where it is flat, as at B = N
    return np.clip(largest(low + (high - low) / 2), low, high)


def _batches(batches: ArrayLike, samples: int) -> Indices:
    rule = "indices of samples, of shape (batches, B) and not empty"
    found = as_given("batches", batches, rule)
    require(found.ndim == 2 and found.size > 0 and found.dtype.kind in "iu", "batches", rule, batches)
    require((found >= 0) & (found < samples), "batches", f"between 0 and {samples - 1}", batches)
    chosen = np.sort(found.astype(np.intp), axis=1)
    require((np.diff(chosen, axis=1) > 0).all(), "batches", "without repeated samples in a batch", batches)
    return chosen


def _symmetric(name: str, value: ArrayLike) -> Floats:
    matrices = _bounded(name, value)
    square = matrices.ndim == 3 and matrices.shape[1] == matrices.shape[2]
    require(square and matrices.size > 0, name, "of shape (N, k, k), not empty", matrices.shape)
    require(
        np.abs(matrices - matrices.mT) <= _ROUNDING * np.abs(matrices).max(),
        name,
        "symmetric",
        value,
    )
    return matrices


def _bounded(name: str, value: ArrayLike) -> Floats:
    numbers = finite(name, value)
    require(np.abs(numbers) <= _LARGEST, name, f"at most {_LARGEST:g} in size", value)
    return numbers
