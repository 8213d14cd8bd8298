"""Shared by formulas of the softmax: probabilities split at their mode, and Gamma without cancellation.

A vector is held as its mode `top`, the `scale` of the other entries and their `ratios` to it, the largest being 1
and the mode itself 0. Weights relative to a scale neither underflow nor subtract from something of their own size.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from theory._checks import Floats, finite, positive, probabilities, quiet, require, together

_EPS = float(np.finfo(np.float64).eps)
_FAR = 1.7e308  # keeps differences of gaps finite
_HOT = 1e300  # below it, logits whose difference is too large for a float differ by 10^8 heats or more
_ROWS = 1 << 14  # numbers per work array of elementwise steps
_BLOCK = 1 << 17  # numbers per work array: one megabyte, which stays in the cache


def split_probabilities(p: ArrayLike) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """`p` with its mode set to zero, the mode, and where it was."""
    full = probabilities("p", p)
    at_top = argmax(full)
    rest = np.where(at_top, 0.0, full)
    given, implied = full.max(axis=-1), 1.0 - rest.sum(axis=-1)
    # Both readings of the mode agree to rounding for normalised input; the given one keeps ties exact.
    top = where(np.abs(given - implied) <= 16 * _EPS, given, np.maximum(implied, 0.0))
    return rest, top, at_top


def heated(z: ArrayLike, temperature: ArrayLike) -> tuple[Floats, Floats, Floats]:
    """Logits (..., K), and the first of them and the temperatures, broadcast."""
    logits = finite("z", z)
    require(logits.ndim >= 1 and logits.shape[-1] >= 2, "z", "at least two logits (..., K)", z)
    heat = positive("temperature", temperature)
    leading, heat = together(z=logits[..., 0], temperature=heat)
    return logits, leading, heat


def subtractable(logits: Floats, heat: Floats) -> tuple[Floats, Floats]:
    """Both over 4 where the heat is so large that a difference beyond the floats is not a weight of zero."""
    if not (heat > _HOT).any():
        return logits, heat
    shrink = where(heat > _HOT, np.full_like(heat, 0.25), np.ones_like(heat))
    return logits * shrink[..., None], heat * shrink


class SplitLogits(NamedTuple):
    """A softmax split at its mode; its scale is exp(gap / heat) times the mode, the gap with its rounding error."""

    ratios: Floats
    top: Floats
    scale: Floats
    gap: Floats
    error: Floats
    at_top: NDArray[np.bool_]


@quiet
def split_logits(logits: Floats, heat: Floats) -> SplitLogits:
    """Parts of softmax(logits / heat); `heat` broadcasts against the leading axes.

    The off-mode logits are measured from the runner-up, so that nothing is lost where p rounds to one-hot.
    """
    at_top = argmax(logits)
    first = logits.max(axis=-1, keepdims=True)
    others = np.where(at_top, -np.inf, logits)
    second = others.max(axis=-1, keepdims=True)
    # A difference or a quotient beyond the floats means a weight of exactly zero: the right limit at these heats.
    ratios = np.exp((others - second) / heat[..., None])
    gap, error = _difference(second[..., 0], first[..., 0])
    lead = np.exp(gap / heat)
    top = 1.0 / (1.0 + lead * ratios.sum(axis=-1))
    return SplitLogits(ratios, top, lead * top, gap, error, at_top)


@quiet
def relative_scales(parts: SplitLogits, heat: Floats) -> Floats:
    """Scales over axis -1 in units of about the largest, where they themselves may underflow."""
    nearest = np.argmax(parts.gap, axis=-1, keepdims=True)
    behind = parts.gap - np.take_along_axis(parts.gap, nearest, axis=-1)
    behind = behind + (parts.error - np.take_along_axis(parts.error, nearest, axis=-1))
    behind = behind - behind.max(axis=-1, keepdims=True)  # of gaps that round to the same, the errors decide
    return np.exp(behind / heat) * parts.top


@quiet
def _difference(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """The difference rounded, and what the rounding left over, 0 where the difference is too large for a float."""
    # the error of a rounded difference is itself a float, found by these additions (Knuth)
    rounded = x - y
    back = rounded - x
    error = (x - (rounded - back)) - (y + back)
    return np.maximum(rounded, -_FAR), where(np.isfinite(rounded), error, np.zeros_like(error))


def argmax(x: Floats) -> NDArray[np.bool_]:
    """True at the first largest entry of each vector along the last axis."""
    return np.arange(x.shape[-1], dtype=np.intp) == np.argmax(x, axis=-1, keepdims=True)


def where(condition: NDArray[np.bool_], yes: Floats, no: Floats) -> Floats:
    """`numpy.where`, known to be of floats."""
    return np.asarray(np.where(condition, yes, no), dtype=np.float64)


def block(size: int) -> int:
    """Number of rows of this size that a work array may have."""
    return max(1, _BLOCK // size)


def mean_excess(
    ratios: Floats, top: Floats, scale: Floats, weight: Floats, at_top: NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """Trace over Frobenius norm of the mean of the matrices over axis -2, and of all of them side by side.

    `weight` is the scale of each member in any common unit, so that the largest is of order 1.
    """
    traces, squares = trace_and_square(ratios, top, scale)
    trace = (weight * traces).sum(axis=-1)
    separate = np.sqrt((np.square(weight) * squares).sum(axis=-1))
    return trace / _norm_of_mean(ratios, top, scale, weight, at_top), trace / separate


@quiet
def excess_of_rows(logits: Floats, heat: Floats) -> Floats:
    """Trace over Frobenius norm at softmax(row / heat) for each row of (n, K), a few rows in the cache at a time."""
    classes = logits.shape[-1]
    step = max(1, _ROWS // classes)
    work = np.empty((2, step, classes))
    found = np.empty(len(logits))
    # weights of exactly zero: the right limit
    for start in range(0, len(logits), step):
        rows = slice(start, start + step)
        size = len(logits[rows])
        found[rows] = _excess_in_place(logits[rows], heat[rows], work[0, :size], work[1, :size])
    return found


def _excess_in_place(logits: Floats, heat: Floats, ratios: Floats, squares: Floats) -> Floats:
    """Compute the excess with two work arrays: allocating new ones costs more than the arithmetic."""
    lane = np.arange(len(logits))
    ratios[...] = logits
    mode = ratios.argmax(axis=-1)
    first = ratios[lane, mode]
    ratios[lane, mode] = -np.inf
    second = ratios.max(axis=-1)
    ratios -= second[:, None]
    ratios /= heat[:, None]
    np.exp(ratios, out=ratios)
    np.square(ratios, out=squares)
    lead = np.exp((second - first) / heat)
    sums = _sums(ratios, squares)
    top = 1.0 / (1.0 + lead * sums[0])
    trace, square = _from_sums(sums, top, lead * top)
    return trace / np.sqrt(square)


def trace_and_square(ratios: Floats, top: Floats, scale: Floats) -> tuple[Floats, Floats]:
    """Trace over `scale` and squared norm over its square."""
    return _from_sums(_sums(ratios, np.square(ratios)), top, scale)


def _sums(ratios: Floats, squares: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Sums of the first four powers along the last axis."""
    cubes, quarts = (np.einsum("...k,...k->...", x, squares) for x in (ratios, squares))
    return ratios.sum(axis=-1), squares.sum(axis=-1), cubes, quarts


def _from_sums(
    sums: tuple[Floats, Floats, Floats, Floats], top: Floats, scale: Floats
) -> tuple[Floats, Floats]:
    """Return trace over `scale` and squared norm over its square, from power sums."""
    mass, power, cubes, quarts = sums
    # entries off the mode are at most 1/2, so that each difference keeps its digits
    diagonal = power - scale * (2.0 * cubes - scale * quarts)
    pairs = np.square(power) - quarts  # safe beside 2 power: ratios <= top / scale
    norm = np.square(top) * (np.square(mass) + 2.0 * power) + diagonal + np.square(scale) * pairs
    return top * mass + (mass - scale * power), norm


def _norm_of_mean(
    ratios: Floats, top: Floats, scale: Floats, weight: Floats, at_top: NDArray[np.bool_]
) -> Floats:
    """Frobenius norm of the weighted sum, entry by entry in blocks of rows: all sums have one sign."""
    mass = ratios.sum(axis=-1, keepdims=True)
    inner = where(at_top, top[..., None] * mass, ratios * (1.0 - scale[..., None] * ratios))
    diagonal = (weight[..., None] * inner).sum(axis=-2)
    norm = np.square(diagonal).sum(axis=-1)
    # off the diagonal, (mode + scale * ratios / 2) ratios^T and its transpose
    left = weight[..., None] * (at_top * top[..., None] + 0.5 * scale[..., None] * ratios)
    across, back = np.swapaxes(left, -1, -2), np.swapaxes(ratios, -1, -2)
    for start in range(0, ratios.shape[-1], step := block(ratios.shape[-1])):
        some = slice(start, start + step)
        rows = across[..., some, :] @ ratios + back[..., some, :] @ left
        k = np.arange(rows.shape[-2], dtype=np.intp)
        rows[..., k, start + k] = 0.0
        norm = norm + np.square(rows).sum(axis=(-2, -1))
    return np.sqrt(norm)
