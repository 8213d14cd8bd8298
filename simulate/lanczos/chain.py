"""One chain of Lanczos vectors from one start, orthogonal to the vectors found before, with Ritz pairs and bounds.

The rows of a chain are those found before, Y, and its own, Q. With P the projector on the complement of Y, the matrix
of P A P in Q is tridiagonal. The matrix of A in both is block diagonal, with the Ritz values of Y and that tridiagonal
matrix, up to the coupling Y A Q'. The parts of A Y' outside of Y lie in a few vectors, the tails, one for each earlier
chain, so residuals of every combination of Y and Q are known without a further product.

When a chain has as many vectors as it may, it keeps the outer Ritz vectors of its own matrix and goes on from there:
thick restart (Wu and Simon 2000, algorithm 3). The kept vectors are rotated so that the matrix is tridiagonal again,
which makes it the implicit restart with exact shifts (Sorensen 1992). Only speed is lost, and the probabilistic bound
from the random start still holds: the next vector is q_next = chi(A) q / |chi(A) q|, where the zeros of the monic chi
are the dropped and the present Ritz values, and |chi(A) q| is the product of the off-diagonal entries of all steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy import linalg
from torch import Tensor

from simulate import _checks
from simulate._checks import Floats
from simulate.lanczos.precision import in_full_precision
from simulate.lanczos.products import EXHAUSTED, AnyMatrix, Operator, as_operator
from simulate.lanczos.rows import inner_products, length, numbers, unit_of

_TOGETHER = 16
"""Rows that a vector is made orthogonal to at a time."""

_SLICE = 1 << 14
"""Columns of the rows that are combined in place at a time."""

(_STERF,) = linalg.get_lapack_funcs(("sterf",), dtype=np.float64)

_ROUNDINGS = 16
"""Roundings of the largest product that are added to a bound, besides the observed asymmetry."""


class Pairs(NamedTuple):
    """Ritz values, descending, with the coordinates of their vectors in the rows of a chain, as columns."""

    values: Floats
    residuals: Floats
    bounds: Floats
    coordinates: Floats


class Found(NamedTuple):
    """Orthonormal rows with A rows = values rows + shares tails, where the tails are orthogonal to the rows."""

    rows: Tensor
    values: Floats
    residuals: Floats
    bounds: Floats
    shares: Floats
    tails: Tensor

    @classmethod
    def nothing(cls, like: Tensor) -> Found:
        """Return an empty record for vectors of the type and length of `like`."""
        none, empty = np.zeros(0), like.new_zeros((0, len(like)))
        return cls(empty, none, none, none, np.zeros((0, 0)), empty)

    def remainder(self) -> Tensor:
        """Return the largest residual, as a vector."""
        return torch.from_numpy(self.shares[self.residuals.argmax()]).to(self.tails) @ self.tails

    def compact(self) -> Found:
        """Return an equivalent record with no more tails than rows."""
        if len(self.tails) <= len(self.values):
            return self
        tails = torch.from_numpy(self.shares).to(self.tails) @ self.tails
        return self._replace(shares=np.eye(len(self.values)), tails=tails)


class _Rows:
    """Growing set of orthonormal rows, up to `most` after the first ones."""

    def __init__(self, first: Tensor, most: int) -> None:
        self._first, self._filled = first, 0
        # on a CPU rows take memory when they are written, on a GPU now
        self._own = first.new_empty(most, first.shape[1])

    def __len__(self) -> int:
        return len(self._first) + self._filled

    def append(self, row: Tensor) -> None:
        """Append a unit vector that is orthogonal to all rows."""
        self._own[self._filled] = row
        self._filled += 1

    def split(self, vector: Tensor, *, twice: bool) -> Floats:
        """Reduce a vector in place to its part orthogonal to all rows; return its coordinates in the rows.

        One pass over all rows loses digits if it takes away much, so another pass comes first. A product with the last
        row has large coordinates in the last two rows only: unless `twice`, the first pass is over these.
        """
        inside, whole = np.zeros(len(self)), self._parts()
        for parts in (whole if twice else [whole[-1][-2:]], whole):
            found = []
            for block in parts:
                found.append(inner_products(block, vector))
                vector.addmv_(block.mT, found[-1], alpha=-1)
            coordinates = numbers(torch.cat(found))
            inside[len(inside) - len(coordinates) :] += coordinates
        return inside

    def combined(self, coordinates: Floats) -> Tensor:
        """Return the vectors (n, dim) whose coordinates are the columns (len, n)."""
        columns = torch.as_tensor(coordinates).to(self._own)
        total = columns.new_zeros(columns.shape[1], self._own.shape[1])
        parts = self._parts()
        for rows, part in zip(parts, columns.split([len(rows) for rows in parts]), strict=True):
            total.addmm_(part.mT, rows)
        return total

    def turn(self, coordinates: Floats) -> None:
        """Replace the rows after the first ones by fewer combinations of them, in double precision."""
        columns = torch.as_tensor(coordinates).to(self._own.device)
        # by slices of columns: there may be no memory for a second set of rows
        for rows in self._own.split(_SLICE, dim=1):
            rows[: columns.shape[1]] = columns.mT @ rows[: self._filled].double()
        self._filled = columns.shape[1]

    def _parts(self) -> list[Tensor]:
        return [self._first, *self._own[: self._filled].split(_TOGETHER)]


class Chain:
    """A tridiagonal matrix from one start, orthogonal to the rows found before, and its coupling to them.

    `nodes` are the eigenvalues of the tridiagonal matrix, ascending; `off_diagonal` its off-diagonal entries, the
    last of which couples to the next vector; `scale` is the largest length of a product or node, and `rounding` the
    length of all entries that vanish for a symmetric matrix, both over all chains so far. The chain has room for `most`
    rows of its own: `restart` makes room. Unless `twice`, one pass of re-orthogonalisation follows the recurrence of
    three terms. `start` is overwritten.
    """

    def __init__(
        self,
        found: Found,
        start: Tensor,
        scale: float,
        rounding: float,
        most: int,
        twice: bool = False,
    ) -> None:
        self.found, self.scale, self.rounding, self._twice = found, scale, rounding, twice
        self.rows = _Rows(found.rows, most)
        self._tails = found.tails.clone()
        self.rows.split(start, twice=True)
        self._next = start / length(start)
        self._diagonal: list[float] = []
        self.off_diagonal: list[float] = []
        self._coupling: list[Floats] = []
        self._hidden: list[Floats] = []  # coordinates of the original tails, row by row
        self._remainder = 0.0  # length of the last residual, even if it is only rounding
        self._all_off_diagonal: list[float] = []  # the off-diagonal entries of all steps so far
        self._dropped: Floats = np.zeros(0)
        self.nodes: Floats = np.zeros(0)

    @property
    def exhausted(self) -> bool:
        """Whether the chain spans an invariant subspace, so that products add nothing."""
        return self.off_diagonal[-1] == 0

    @property
    def noise(self) -> float:
        """Bound of the error of a value from rounding of the products."""
        return self.rounding + _ROUNDINGS * torch.finfo(self._next.dtype).eps * self.scale

    def grow(self, product: Callable[[Tensor], Tensor]) -> None:
        """Add the next vector, by one product."""
        row, known = self._next, len(self.found.values)
        hidden = inner_products(self._tails, row)
        if len(hidden):  # tails stay orthogonal to all rows, so that residuals need no further product
            self._tails -= torch.outer(hidden, row)
        self.rows.append(row)
        products = product(row)
        size = float(length(products))
        inside = self.rows.split(products, twice=self._twice)
        expected = np.zeros(len(inside))  # coordinates for an exactly symmetric matrix
        self._hidden.append(numbers(hidden))
        # by symmetry the coordinates in Y follow from the tails of A Y
        expected[:known] = self.found.shares @ self._hidden[-1]
        # a tridiagonal matrix: only the last two entries may differ from zero
        expected[known:][-2:] = [*self.off_diagonal[-1:], inside[-1]]
        # every other entry is rounding, or shows that the products are not symmetric
        self.rounding = math.hypot(self.rounding, float(np.linalg.norm(inside - expected)))
        self._diagonal.append(inside[-1])
        self._coupling.append(inside[:known])
        self.nodes = _nodes(self._diagonal, self.off_diagonal)
        self.scale = max(self.scale, size, float(np.abs(self.nodes).max()))
        self._continue(products)

    def _continue(self, rest: Tensor) -> None:
        left = self._remainder = float(length(rest))
        reach = EXHAUSTED * torch.finfo(rest.dtype).eps * self.scale
        ended = left <= reach or len(self.rows) == len(rest)
        self.rounding = math.hypot(self.rounding, left if ended else 0.0)
        self._next = rest.zero_() if ended else rest.div_(left)
        self.off_diagonal.append(0.0 if ended else left)
        self._all_off_diagonal.append(self.off_diagonal[-1])

    def restart(self, top: int, bottom: int) -> None:
        """Keep only the Ritz vectors of the `top` largest and `bottom` smallest nodes, to make room for others.

        References
        ----------
        Wu and Simon (2000), Thick-restart Lanczos method for large symmetric eigenvalue problems, algorithm 3.
        """
        values, vectors = _eigen(self._diagonal, self.off_diagonal[:-1])
        kept = [*range(bottom), *range(len(values) - top, len(values))]
        # zeros of the polynomial in the bound from the random start, see the head of this file
        self._dropped = np.r_[self._dropped, np.delete(values, kept)]
        turn, diagonal, off_diagonal = _tridiagonalise(
            values[kept], self.off_diagonal[-1] * vectors[-1, kept]
        )
        turn = vectors[:, kept] @ turn
        hidden, coupling = np.array(self._hidden), np.array(self._coupling)
        lost = hidden - turn @ (turn.T @ hidden)
        self._tails += self.rows.combined(
            np.vstack([np.zeros((len(self.found.values), lost.shape[1])), lost])
        )
        self._hidden, self._coupling = [*(turn.T @ hidden)], [*(turn.T @ coupling)]
        self.rows.turn(turn)
        self._diagonal, self.off_diagonal, self.nodes = diagonal, off_diagonal, values[kept]

    def pairs(self, top: int, bottom: int) -> Pairs:
        """Return the wanted Ritz pairs of all rows, or as many as there are."""
        values, coordinates = self._decomposed()
        residuals = self._remainders(coordinates) + self.noise
        bounds = _bounds(values, residuals) + self.noise
        chosen = [*range(len(values))][::-1]
        # with fewer values than wanted, both ends would name the same ones twice
        if top + bottom < len(chosen):
            chosen[top : len(chosen) - bottom] = []
        return Pairs(values[chosen], residuals[chosen], bounds[chosen], coordinates[:, chosen])

    def kept(self) -> Pairs:
        """Return the pairs found before, with bounds whose gaps take the nodes into account."""
        found = self.found
        gaps = np.abs(found.values[:, None] - self.nodes).min(1)
        bounds = np.maximum(found.bounds, _second_order(found.residuals, gaps) + self.noise)
        return Pairs(found.values, found.residuals, bounds, np.eye(len(self.rows), len(found.values)))

    def locked(self, pairs: Pairs) -> Found:
        """Return pairs with their vectors, as rows for a next chain."""
        rows, tails = self.rows.combined(pairs.coordinates), torch.cat([self._tails, self._next[None]])
        return Found(rows, *pairs[:3], self._shares(pairs.coordinates).T, tails)

    def _decomposed(self) -> tuple[Floats, Floats]:
        known = len(self.found.values)
        if not known:
            return _eigen(self._diagonal, self.off_diagonal[:-1])
        matrix = np.diag([*self.found.values, *self._diagonal])
        matrix[:known, known:] = np.transpose(self._coupling)
        matrix[known:, known:] += np.diag(self.off_diagonal[:-1], 1)
        # only the upper triangle is filled
        return np.linalg.eigh(matrix, UPLO="U")

    def _shares(self, coordinates: Floats) -> Floats:
        """Return the part of products outside the rows, as coefficients of the tails and of the next vector."""
        known = len(self.found.values)
        return np.vstack(
            [self.found.shares.T @ coordinates[:known], self.off_diagonal[-1] * coordinates[-1:]]
        )

    def _remainders(self, coordinates: Floats) -> Floats:
        if not len(self._tails):
            return np.abs(self.off_diagonal[-1] * coordinates[-1])
        tails = torch.cat([self._tails, self._next[None]])
        shares = self._shares(coordinates)
        # the tails are not orthonormal, so lengths need their Gram matrix; rounding may leave less than 0
        return np.sqrt(np.maximum((shares * (numbers(inner_products(tails, tails.mT)) @ shares)).sum(0), 0))

    def ceiling(self, top: int, doubt: float) -> float:
        """Return an upper bound of all but `top` eigenvalues, wrong with probability at most `doubt` over the start."""
        nodes = np.r_[self._dropped, self.nodes]
        return self._highest(nodes, self.found.values[top:], self.found.residuals[top:], doubt)

    def floor(self, bottom: int, doubt: float) -> float:
        """Return a lower bound of all but `bottom` eigenvalues, in the same sense."""
        others = max(len(self.found.values) - bottom, 0)
        nodes = np.r_[self._dropped, self.nodes]
        return -self._highest(-nodes, -self.found.values[:others], self.found.residuals[:others], doubt)

    def _highest(self, nodes: Floats, others: Floats, residuals: Floats, doubt: float) -> float:
        """Return an upper bound for the complement of the rows found before, and for those rows in `others`."""
        dim = len(self._next) - len(self.found.values)
        off_diagonal = [
            *self._all_off_diagonal[:-1],
            # the length even where it counts as rounding: with 0 the bound would claim that nothing is left
            self._remainder if len(self.rows) < len(self._next) else 0.0,
        ]
        highest = float(nodes.max()) + _reach(nodes, off_diagonal, dim, doubt) + self.noise
        if not len(others):
            return highest
        highest_other = float(others.max()) + self.noise
        # largest eigenvalue of the 2 x 2 matrix of both bounds, coupled by the residuals
        middle, half = (highest + highest_other) / 2, (highest - highest_other) / 2
        return float(middle + np.hypot(half, np.linalg.norm(residuals)))


def _eigen(diagonal: Sequence[float], off_diagonal: Sequence[float]) -> tuple[Floats, Floats]:
    """Return eigenvalues, ascending, of a tridiagonal matrix, and vectors orthogonal to a few roundings at any size.

    Relatively robust representations, scipy's default before 1.16, leave some hundred roundings. These add up over
    restarts until they exceed the bounds.
    """
    # since scipy 1.16; before, QR is the only accurate driver, and five times as slow as a dense matrix
    if hasattr(linalg.lapack, "dstevd"):
        found: Any = linalg.eigh_tridiagonal(diagonal, off_diagonal, lapack_driver="stevd")
        return found
    return np.linalg.eigh(np.diag(diagonal) + np.diag(off_diagonal, -1), UPLO="L")


def _nodes(diagonal: Sequence[float], off_diagonal: Sequence[float]) -> Floats:
    """Return eigenvalues alone, ascending, without the checks of scipy, which take longer than a small matrix."""
    if len(diagonal) == 1:  # which the routine refuses
        return np.array(diagonal)
    values, failed = _STERF(diagonal, off_diagonal)
    if failed or not math.isfinite(sum(diagonal) + sum(off_diagonal)):
        raise ValueError("products must be finite, got an overflow")
    return values


def _bounds(values: Floats, residuals: Floats) -> Floats:
    """Return the residuals, or residual^2 / gap to the intervals of the other values, ascending, if that is less."""
    gaps = np.full(len(values), np.inf if len(values) > 1 else 0.0)
    gaps[1:] = values[1:] - np.maximum.accumulate((values + residuals)[:-1])
    above = np.minimum.accumulate((values - residuals)[:0:-1])[::-1]
    gaps[:-1] = np.minimum(gaps[:-1], above - values[:-1])
    return _second_order(residuals, gaps)


def _second_order(residuals: Floats, gaps: Floats) -> Floats:
    wide = gaps > residuals
    return residuals * np.where(wide, residuals / np.where(wide, gaps, 1.0), 1.0)


def _reach(nodes: Floats, off_diagonal: list[float], dim: int, doubt: float) -> float:
    """Return the distance above the largest node at which det(lambda - T) t equals the product of off-diagonal entries.

    The component of the start along an eigenvector exceeds t except with probability `doubt`.
    """
    if off_diagonal[-1] == 0:
        return 0.0
    gaps = nodes.max() - nodes
    log_gaps = np.log(gaps, where=gaps > 0, out=np.full(len(gaps), -np.inf))
    # the component is below t sqrt(pi / (2 dim)) with a probability of at most t, see `extremes`
    least = math.log(doubt) + math.log(math.pi / (2 * dim)) / 2
    # in logarithms: a product of many off-diagonal entries overflows or vanishes
    level = float(np.log(off_diagonal).sum()) - least

    def excess(log_distance: float) -> float:
        return float(np.logaddexp(log_distance, log_gaps).sum()) - level

    most = level / len(nodes)  # exact if all gaps are zero
    least = most - excess(most)  # the slope is at least one
    from scipy import optimize  # half a second to import, and most chains do not need it

    log_distance: Any = optimize.brentq(excess, least, most) if excess(most) > 0 else most
    return math.exp(log_distance)


def _tridiagonalise(values: Floats, off_diagonal: Floats) -> tuple[Floats, list[float], list[float]]:
    """Rotate axes so that diag(values) is tridiagonal and only the last axis couples to the next vector.

    Returns the rotation, (m, m), the diagonal, and the off-diagonal entries, none negative, the last of which couples
    to the vector. Householder reflections are stable for vanishing couplings, as those of converged Ritz vectors.

    Examples
    --------
    >>> turn, diagonal, off_diagonal = _tridiagonalise(np.array([1.0, 3.0]), np.array([0.6, 0.8]))
    >>> abs(turn[:, 1]).round(9), np.round(diagonal, 9), np.round(off_diagonal, 9)
    (array([0.6, 0.8]), array([1.72, 2.28]), array([0.96, 1.  ]))
    """
    arrow = np.diag(np.r_[0.0, values])
    arrow[0, 1:] = arrow[1:, 0] = off_diagonal
    reduced, turn = linalg.hessenberg(arrow, calc_q=True)
    out = np.diag(reduced, -1)
    turn = turn[1:, 1:] * np.cumprod(np.where(out < 0, -1.0, 1.0))
    # reversed: Hessenberg form couples the first axis to the vector, the chain its last row
    return turn[:, ::-1], np.diag(reduced)[:0:-1].tolist(), np.abs(out)[::-1].tolist()


@dataclass(eq=False)
class UnitProduct:
    """Products with one vector, in a unit in which squares neither overflow nor vanish."""

    _operator: Operator
    unit: float = 0.0

    def __call__(self, vector: Tensor) -> Tensor:
        """Return the product, shaped like the vector."""
        products = self._operator(vector[None])[0]
        # fixed by the first product: the rows of a chain need one common unit
        self.unit = self.unit or unit_of(products)
        return products / self.unit


# --- from a given start ------------------------------------------------------------------------------------------

_RESOLVED = 4
"""Smallest residual that is sought, in roundings of the products."""

_LEADING = 3
"""Most vectors that are returned."""


class WarmStart(NamedTuple):
    """A Ritz pair found from a given start.

    Attributes
    ----------
    value
        Ritz value, at most the largest eigenvalue but for rounding.
    vector
        Its unit vector, (dim,), of the type and on the device of the matrix.
    residual
        |A v - value v|, rounding included: an eigenvalue lies within this distance, be it the largest or not.
    products
        Number of products with the matrix.
    leading
        Unit vectors of the largest Ritz values, descending, (k, dim): `vector` and those that may overtake it.
    """

    value: float
    vector: Tensor
    residual: float
    products: int
    leading: Tensor


def warm_start(
    matrix: AnyMatrix, start: Tensor | Floats, *, tolerance: float = 1e-2, least: int = 2, steps: int = 40
) -> WarmStart:
    """Return the largest Ritz pair of one chain of Lanczos from a given start.

    A start orthogonal to the largest eigenvector leads to another eigenvalue, which the residual does not show: start
    at random now and then, or add noise to the vector found before.

    Parameters
    ----------
    matrix
        Dense, or a `lanczos.Operator`.
    start
        Any vector (dim,) but zero.
    tolerance
        Residual to stop at, as a share of the Ritz value in modulus; never below the rounding of the products.
    least, steps
        Fewest and most products.

    Raises
    ------
    ValueError
        If `start` is not of this shape, not finite or zero, `tolerance` is not positive, or there are no products.

    References
    ----------
    Parlett (1998), The Symmetric Eigenvalue Problem, theorem 4.5.1 and section 13.2.

    Examples
    --------
    >>> found = warm_start(np.diag([3.0, 2.0, 1.0]), np.array([1.0, 0.1, 0.1]), tolerance=1e-9)
    >>> round(found.value, 9), found.products
    (3.0, 3)
    """
    with in_full_precision():
        operator = as_operator(matrix)
        relative, steps = _checks.positive_number("tolerance", tolerance), _checks.natural("steps", steps)
        row = operator.vectors(start[None])[0]
        norm = float(row.norm())
        if not 0 < norm < math.inf:
            raise ValueError(f"start must be finite and not zero, got a vector of length {norm}")
        chain = Chain(Found.nothing(row), row / norm, 0.0, 0.0, min(steps, operator.dim))
        product = UnitProduct(operator)
        while True:
            chain.grow(product)
            pairs, count = chain.pairs(1, 0), len(chain.rows)
            target = max(relative * abs(pairs.values[0]), _RESOLVED * chain.noise)
            if chain.exhausted or count == steps or (count >= least and pairs.residuals[0] <= target):
                break
        rows = chain.locked(chain.pairs(_LEADING, 0)).rows
        rows = rows / rows.norm(dim=1, keepdim=True)
        value, residual = (product.unit * float(numbers[0]) for numbers in pairs[:2])
        return WarmStart(value, rows[0], residual, count, rows)
