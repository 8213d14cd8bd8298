"""One chain of Lanczos vectors from one start, orthogonal to what was found before, and what is to be read from it.

The rows of a chain are those found before, Y, and its own, Q. With P the projector on the complement of Y, the matrix
of P A P in Q is tridiagonal; that of A in both is the Ritz values of Y beside it, coupled by Y A Q'. What products
with Y leave outside of Y lies in a few vectors, the tails, one for each chain before, so that residuals of every
combination of Y and Q are known without a further product.

Where there is room for no further vector the chain keeps the outer Ritz vectors of its own matrix alone and goes on
from where it was: thick restart (Wu and Simon 2000, algorithm 3), with the kept vectors turned so that the matrix is
tridiagonal again, which makes it the implicit restart with exact shifts (Sorensen 1992). Nothing is lost but speed,
and what the random start promises stands: the next vector is still q_next = chi(A) q / |chi(A) q|, where the monic chi
has as its zeros the Ritz values that were dropped and those of the matrix at present, and |chi(A) q| is the product of
all entries beside the diagonal that ever led on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy import linalg
from torch import Tensor

from simulate import _checks
from simulate.lanczos.precision import in_full_precision
from simulate.lanczos.products import EXHAUSTED, AnyMatrix, as_operator
from simulate.lanczos.rows import Floats, inner_products, length, numbers, unit_of

GROWTH = 16
"""Vectors of a chain for which memory is taken at once."""

_SLICE = 1 << 14
"""Columns of rows that are combined in place at once."""

_ROUNDINGS = 16
"""Roundings of the largest product that a bound allows for beside the asymmetry that is seen."""


class Pairs(NamedTuple):
    """Ritz values, descending, and their columns of coordinates in the rows of a chain."""

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
        """No rows, of the type and length of a vector."""
        none, empty = np.zeros(0), like.new_zeros((0, len(like)))
        return cls(empty, none, none, none, np.zeros((0, 0)), empty)

    def remainder(self) -> Tensor:
        """The largest residual, as a vector."""
        return torch.from_numpy(self.shares[self.residuals.argmax()]).to(self.tails) @ self.tails

    def compact(self) -> Found:
        """The same with no more tails than rows."""
        if len(self.tails) <= len(self.values):
            return self
        tails = torch.from_numpy(self.shares).to(self.tails) @ self.tails
        return self._replace(shares=np.eye(len(self.values)), tails=tails)


class _Rows:
    """Orthonormal rows whose number grows, up to `most` beside the first, in blocks that stay where they are."""

    def __init__(self, first: Tensor, most: float) -> None:
        self._blocks, self._filled, self._most = [first], [len(first)], most

    def __len__(self) -> int:
        return sum(self._filled)

    @property
    def full(self) -> bool:
        """Whether the next row needs memory."""
        return self._filled[-1] == len(self._blocks[-1])

    def append(self, row: Tensor) -> None:
        """Take in a unit vector that is orthogonal to all rows."""
        if self.full:
            own = len(self) - self._filled[0]
            self._blocks.append(row.new_empty(int(min(GROWTH, self._most - own)), len(row)))
            self._filled.append(0)
        here = next(i for i, block in enumerate(self._blocks) if self._filled[i] < len(block))
        self._blocks[here][self._filled[here]] = row
        self._filled[here] += 1

    def split(self, vector: Tensor) -> tuple[Tensor, Floats]:
        """What of a vector is orthogonal to all rows, and its coordinates in them."""
        inside = torch.zeros(len(self), dtype=torch.float64)
        for _ in range(2):  # once loses digits, twice is enough
            parts = []
            for block in self._parts():
                parts.append(inner_products(block, vector))
                vector = torch.addmv(vector, block.mT, parts[-1], alpha=-1)
            inside += torch.cat(parts).cpu()
        return vector, inside.numpy()

    def combined(self, coordinates: Floats) -> Tensor:
        """Columns of coordinates (len, n) to the rows (n, dim) that they stand for."""
        first = self._blocks[0]
        columns = torch.as_tensor(coordinates, dtype=first.dtype, device=first.device)
        total = first.new_zeros(columns.shape[1], first.shape[1])
        for block, part in zip(self._parts(), columns.split(self._filled), strict=True):
            total.addmm_(part.mT, block)
        return total

    def own(self, coordinates: Floats) -> Tensor:
        """As `combined`, of the rows beside the first block."""
        return self.combined(np.vstack([np.zeros((self._filled[0], coordinates.shape[1])), coordinates]))

    def turn(self, coordinates: Floats) -> None:
        """Put fewer combinations of the rows beside the first block in their place, in double precision."""
        columns = torch.as_tensor(coordinates, dtype=torch.float64, device=self._blocks[0].device)
        before = self._parts()[1:]
        rooms = [len(block) for block in self._blocks[1:]]
        after = np.diff(np.minimum(np.cumsum([0, *rooms]), columns.shape[1])).tolist()
        for start in range(0, self._blocks[0].shape[1], _SLICE):
            at = slice(start, start + _SLICE)
            turned = columns.mT @ torch.cat([part[:, at] for part in before]).double()
            for block, rows in zip(self._blocks[1:], turned.split(after), strict=True):
                block[: len(rows), at] = rows
        self._filled[1:] = after

    def _parts(self) -> list[Tensor]:
        return [block[:filled] for block, filled in zip(self._blocks, self._filled, strict=True)]


class Chain:
    """A tridiagonal matrix from one start, orthogonal to what was found before, and its coupling to that.

    `nodes` are the eigenvalues of the tridiagonal matrix, ascending; `beside` its entries beside the diagonal, the
    last of which leads out of the chain; `scale` is the largest length of a product or node and `rounding` the
    length of all entries that symmetry says vanish, both with those of the chains before. Of its own it never has
    more than `most` rows, if `restart` is called before each row for which there is no room.
    """

    def __init__(
        self, found: Found, start: Tensor, scale: float, rounding: float, most: float = math.inf
    ) -> None:
        self.found, self.scale, self.rounding = found, scale, rounding
        self.rows = _Rows(found.rows, most)
        self._tails = found.tails.clone()
        self._next = _unit(self.rows.split(start)[0])
        self._diagonal: list[float] = []
        self.beside: list[float] = []
        self._coupling: list[Floats] = []
        self._hidden: list[Floats] = []  # coordinates of the tails as they were, row by row
        self._remainder = 0.0  # of the last product, be it rounding or not
        self._led_on: list[float] = []  # all that were ever beside the diagonal
        self._dropped: Floats = np.zeros(0)
        self.nodes: Floats = np.zeros(0)

    @property
    def exhausted(self) -> bool:
        """Whether products lead to nothing new."""
        return self.beside[-1] == 0

    @property
    def noise(self) -> float:
        """What rounding of the products may do to a value."""
        return self.rounding + _ROUNDINGS * torch.finfo(self._next.dtype).eps * self.scale

    def grow(self, product: Callable[[Tensor], Tensor]) -> None:
        """Take in the next vector, by one product."""
        row, known = self._next, len(self.found.values)
        hidden = inner_products(self._tails, row)
        self._tails -= torch.outer(hidden, row)
        self.rows.append(row)
        products = product(row)
        rest, inside = self.rows.split(products)
        expected = np.zeros(len(inside))  # what a symmetric matrix makes of the vectors before
        self._hidden.append(numbers(hidden))
        expected[:known] = self.found.shares @ self._hidden[-1]
        expected[known:][-2:] = [*self.beside[-1:], inside[-1]]
        self.rounding = math.hypot(self.rounding, float(np.linalg.norm(inside - expected)))
        self._diagonal.append(inside[-1])
        self._coupling.append(inside[:known])
        nodes: Any = linalg.eigvalsh_tridiagonal(self._diagonal, self.beside, lapack_driver="sterf")
        self.nodes = nodes
        self.scale = max(self.scale, float(length(products)), float(np.abs(self.nodes).max()))
        self._continue(rest)

    def _continue(self, rest: Tensor) -> None:
        left = self._remainder = float(length(rest))
        reach = EXHAUSTED * torch.finfo(rest.dtype).eps * self.scale
        ended = left <= reach or len(self.rows) == len(rest)
        self.rounding = math.hypot(self.rounding, left if ended else 0.0)
        self._next = torch.zeros_like(rest) if ended else rest / left
        self.beside.append(0.0 if ended else left)
        self._led_on.append(self.beside[-1])

    def restart(self, top: int, bottom: int) -> None:
        """Drop all but the Ritz vectors of so many of the largest and smallest nodes, to make room for others.

        References
        ----------
        Wu and Simon (2000), Thick-restart Lanczos method for large symmetric eigenvalue problems, algorithm 3.
        """
        values, vectors = _eigen(self._diagonal, self.beside[:-1])
        kept = [*range(bottom), *range(len(values) - top, len(values))]
        self._dropped = np.r_[self._dropped, np.delete(values, kept)]
        turn, diagonal, beside = _tridiagonalised(values[kept], self.beside[-1] * vectors[-1, kept])
        turn = vectors[:, kept] @ turn
        if len(self._tails):
            hidden, coupling = np.array(self._hidden), np.array(self._coupling)
            self._tails += self.rows.own(hidden - turn @ (turn.T @ hidden))
            self._hidden, self._coupling = [*(turn.T @ hidden)], [*(turn.T @ coupling)]
        else:
            self._hidden, self._coupling = self._hidden[: len(kept)], self._coupling[: len(kept)]
        self.rows.turn(turn)
        self._diagonal, self.beside, self.nodes = diagonal, beside, values[kept]

    def pairs(self, top: int, bottom: int) -> Pairs:
        """The wanted Ritz pairs of all rows, or as many as there are."""
        values, coordinates = self._decomposed()
        residuals = self._remainders(coordinates) + self.noise
        bounds = _bounds(values, residuals) + self.noise
        last = len(values) - 1
        chosen = [*range(last, last - top, -1), *range(bottom - 1, -1, -1)]
        chosen = chosen if len(chosen) <= len(values) else [*range(last, -1, -1)]
        return Pairs(values[chosen], residuals[chosen], bounds[chosen], coordinates[:, chosen])

    def kept(self) -> Pairs:
        """What was found before, with gaps no wider than the nodes leave."""
        found = self.found
        gaps = np.abs(found.values[:, None] - self.nodes).min(1)
        bounds = np.maximum(found.bounds, _second_order(found.residuals, gaps) + self.noise)
        return Pairs(found.values, found.residuals, bounds, np.eye(len(self.rows), len(found.values)))

    def locked(self, pairs: Pairs) -> Found:
        """Pairs with their vectors."""
        rows, tails = self.rows.combined(pairs.coordinates), torch.cat([self._tails, self._next[None]])
        return Found(rows, *pairs[:3], self._shares(pairs.coordinates).T, tails)

    def _decomposed(self) -> tuple[Floats, Floats]:
        known = len(self.found.values)
        if not known:
            return _eigen(self._diagonal, self.beside[:-1])
        matrix = np.diag([*self.found.values, *self._diagonal])
        matrix[:known, known:] = np.transpose(self._coupling)
        matrix[known:, known:] += np.diag(self.beside[:-1], 1)
        return np.linalg.eigh(matrix, UPLO="U")

    def _shares(self, coordinates: Floats) -> Floats:
        """Products with columns of coordinates outside of the rows, in terms of the tails and of the next vector."""
        known = len(self.found.values)
        return np.vstack([self.found.shares.T @ coordinates[:known], self.beside[-1] * coordinates[-1:]])

    def _remainders(self, coordinates: Floats) -> Floats:
        tails = torch.cat([self._tails, self._next[None]])
        shares = self._shares(coordinates)
        return np.sqrt(np.maximum((shares * (numbers(inner_products(tails, tails.mT)) @ shares)).sum(0), 0))

    def ceiling(self, top: int, doubt: float) -> float:
        """Above all but `top` eigenvalues, unless the start hides one, which has the probability `doubt`."""
        nodes = np.r_[self._dropped, self.nodes]
        return self._highest(nodes, self.found.values[top:], self.found.residuals[top:], doubt)

    def floor(self, bottom: int, doubt: float) -> float:
        """Below all but `bottom` eigenvalues, in the same sense."""
        others = len(self.found.values) - min(bottom, len(self.found.values))
        nodes = np.r_[self._dropped, self.nodes]
        return -self._highest(-nodes, -self.found.values[:others], self.found.residuals[:others], doubt)

    def _highest(self, nodes: Floats, others: Floats, residuals: Floats, doubt: float) -> float:
        """Of the complement of the rows found, and of those among them that belong to the other end."""
        dim = len(self._next) - len(self.found.values)
        beside = [*self._led_on[:-1], self._remainder if len(self.rows) < len(self._next) else 0.0]
        highest = float(nodes.max()) + _reach(nodes, beside, dim, doubt) + self.noise
        if not len(others):
            return highest
        highest_other = float(others.max()) + self.noise
        middle, half = (highest + highest_other) / 2, (highest - highest_other) / 2
        return float(middle + np.hypot(half, np.linalg.norm(residuals)))


def _eigen(diagonal: Sequence[float], beside: Sequence[float]) -> tuple[Floats, Floats]:
    """Eigenvalues, ascending, of a tridiagonal matrix, and its vectors, orthogonal to a few roundings at any size.

    Relatively robust representations, which scipy takes by itself before 1.16, leave some hundred roundings. Restarts
    add those up, until they are more than bounds allow for.
    """
    found: Any
    # since scipy 1.16; of the others, QR alone takes five times as long as dense matrices
    if hasattr(linalg.lapack, "dstevd"):
        found = linalg.eigh_tridiagonal(diagonal, beside, lapack_driver="stevd")
    else:
        found = np.linalg.eigh(np.diag(diagonal) + np.diag(beside, -1), UPLO="L")
    return found


def _bounds(values: Floats, residuals: Floats) -> Floats:
    """The residual, or its square over the gap to the intervals of the other values, ascending, if that is less."""
    below = np.maximum.accumulate(np.r_[-np.inf, (values + residuals)[:-1]])
    above = np.minimum.accumulate(np.r_[np.inf, (values - residuals)[:0:-1]])[::-1]
    gaps = np.minimum(values - below, above - values)
    return _second_order(residuals, np.where(np.isfinite(gaps), gaps, 0.0))


def _second_order(residuals: Floats, gaps: Floats) -> Floats:
    wide = gaps > residuals
    return residuals * np.where(wide, residuals / np.where(wide, gaps, 1.0), 1.0)


def _reach(nodes: Floats, beside: list[float], dim: int, doubt: float) -> float:
    """How far above the largest node det(lambda - T) t reaches the product of the entries beside the diagonal.

    t is what the part of the start along an eigenvector exceeds but for the probability `doubt`.
    """
    if beside[-1] == 0:
        return 0.0
    gaps = nodes.max() - nodes
    log_gaps = np.log(gaps, where=gaps > 0, out=np.full(len(gaps), -np.inf))
    least = math.log(doubt) + math.log(math.pi / (2 * dim)) / 2
    level = float(np.log(beside).sum()) - least

    def excess(log_distance: float) -> float:
        return float(np.logaddexp(log_distance, log_gaps).sum()) - level

    most = level / len(nodes)  # where all gaps are zero
    least = most - excess(most)  # the slope is at least one
    from scipy import optimize  # half a second to import, and most chains end before

    log_distance: Any = optimize.brentq(excess, least, most) if excess(most) > 0 else most
    return math.exp(log_distance)


def _tridiagonalised(values: Floats, beside: Floats) -> tuple[Floats, list[float], list[float]]:
    """A turn of the axes that makes diag(values) tridiagonal and what couples them to one vector the last axis.

    Returns the turn, (m, m), the diagonal, and the entries beside it, none negative, the last of which leads to the
    vector. Householder's reflections do not mind entries that vanish, as those of converged Ritz vectors.

    Examples
    --------
    >>> turn, diagonal, beside = _tridiagonalised(np.array([1.0, 3.0]), np.array([0.6, 0.8]))
    >>> abs(turn[:, 1]).round(9), np.round(diagonal, 9), np.round(beside, 9)
    (array([0.6, 0.8]), array([1.72, 2.28]), array([0.96, 1.  ]))
    """
    arrow = np.diag(np.r_[0.0, values])
    arrow[0, 1:] = arrow[1:, 0] = beside
    reduced: Any
    reduced, turn = linalg.hessenberg(arrow, calc_q=True)
    out = np.diag(reduced, -1)
    turn = turn[1:, 1:] * np.cumprod(np.where(out < 0, -1.0, 1.0))
    return turn[:, ::-1], np.diag(reduced)[:0:-1].tolist(), np.abs(out)[::-1].tolist()


def _unit(vector: Tensor) -> Tensor:
    return vector / length(vector)


# --- from a start of one's own ------------------------------------------------------------------------------------

_RESOLVED = 4
"""Roundings of the products below which no residual is sought."""

_LEADING = 3
"""Vectors that are given back, if there are so many."""


class WarmStart(NamedTuple):
    """A Ritz pair from a start that was given.

    Attributes
    ----------
    value
        Ritz value, at most the largest eigenvalue but for rounding.
    vector
        Its unit vector, (dim,), of the type and on the device of the matrix.
    residual
        |A v - value v|, with the rounding of the products: an eigenvalue lies so near, be it the largest or not.
    products
        That were spent.
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
    """The largest eigenvalue that a start leads to, by one chain of Lanczos.

    A start that has nothing of the largest eigenvector leads to another eigenvalue, and no residual tells: start at
    random now and then, or add something random to what was found before.

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
        relative, steps = (
            float(_checks.positive_numbers("tolerance", tolerance)),
            _checks.natural("steps", steps),
        )
        row = operator.vectors(start[None])[0]
        norm = float(row.norm())
        if not 0 < norm < math.inf:
            raise ValueError(f"start must be finite and not zero, got a vector of length {norm}")
        chain, unit = Chain(Found.nothing(row), row / norm, 0.0, 0.0), 0.0

        def product(vector: Tensor) -> Tensor:
            nonlocal unit
            products = operator(vector[None])[0]
            unit = unit or unit_of(products)
            return products / unit

        while True:
            chain.grow(product)
            pairs, count = chain.pairs(1, 0), len(chain.rows)
            target = max(relative * abs(pairs.values[0]), _RESOLVED * chain.noise)
            if chain.exhausted or count == steps or (count >= least and pairs.residuals[0] <= target):
                break
        rows = chain.locked(chain.pairs(_LEADING, 0)).rows
        rows = rows / rows.norm(dim=1, keepdim=True)
        return WarmStart(
            unit * float(pairs.values[0]), rows[0], unit * float(pairs.residuals[0]), count, rows
        )
