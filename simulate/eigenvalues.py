r"""Extreme eigenvalues of a symmetric matrix by products with one vector at a time, with what is known of their errors.

Lanczos with full re-orthogonalisation grows a chain of orthonormal vectors from a random start. Three kinds of
statement come of it; A is the matrix, theta a Ritz value (an eigenvalue of A seen in the span of the chain), v its
vector, r = A v - theta v.

| statement | rests on |
|---|---|
| the k-th largest theta is at most the k-th largest eigenvalue | nothing |
| an eigenvalue lies within \|r\| of theta | nothing |
| it lies within \|r\|^2 / gap of theta | no other eigenvalue is nearer than the intervals of the other Ritz values |
| what was not found lies between `floor` and `ceiling` | the random starts, with probability at least 0.99 |

A chain sees an eigenvalue of any multiplicity once, and one that its start hardly contains late. So a chain from a
further start, orthogonal to all that was found, has to show that nothing is left outside, or finds it; where it shows
that an eigenvalue has a nearer neighbour than it seemed, a chain from the residual goes on first. A single eigenvalue
at an end needs no further chain: its multiplicity does not change it.

Where not all vectors of a chain fit into memory it drops the inner ones now and then and goes on (thick restart): more
products, and the same statements.

`lanczos.warm_start` goes on from a start of one's own, such as the eigenvector of a matrix that was nearly the same:
cheaper, and with the first two kinds of statement alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simulate import _checks, _memory
from simulate.lanczos import AnyMatrix, Operator, as_operator
from simulate.lanczos.chain import GROWTH, Chain, Found, Pairs
from simulate.lanczos.precision import in_full_precision
from simulate.lanczos.rows import numbers, unit_of
from simulate.results import Columns, Result

if TYPE_CHECKING:
    from simulate.results import Axes

Floats = NDArray[np.float64]
Progress = Callable[[int, float], None]
Kind = Literal["first", "looking", "refining", "none"]
"""Of chains: from a random start; from a further one that looks for what was missed; from the largest residual."""

_RESOLVED = 4
"""Roundings of the products below which no bound is sought: it is twice the rounding where there is no gap."""

_ROOM = 3
"""Vectors of a chain, at least, beyond the wanted ones: one more is kept, and it goes on by two."""

_WORK = 8
"""Vectors that are left free for a product: one with the Hessian of a module takes six."""

_DOUBT = 0.01
"""Probability that the random starts hide an eigenvalue beyond the floor or the ceiling."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Extremes(Result):
    """Extreme eigenvalues of a symmetric matrix, the largest from the top and then the smallest, descending.

    Attributes
    ----------
    values
        Ritz values, (count,).
    vectors
        Their unit vectors, (dim, count).
    residuals
        |A v - value v|, (count,): an eigenvalue lies so near, whatever the start. Holds the rounding of the products.
    bounds
        Of the error of each value, (count,). With several values sought at an end: the residual, or residual^2 / gap
        where that is less, with the gap to the intervals of the other Ritz values. With at most one at each end,
        where no further chain looks for a close pair: the distance to `ceiling` or `floor`. Rounding of the products
        is added.
    converged
        Whether the bound is at most the tolerance times the largest Ritz value in modulus, (count,); of several values
        at an end none before a further chain looks for what was passed over. Until then a value may have the place
        of another eigenvalue, such as a copy of the one before, and its bound is the distance to one further down.
    floor, ceiling
        All eigenvalues that were not found lie between them, with probability at least 0.99 over the random starts.
        With at most one value sought at each end, that is all eigenvalues.
    products
        Products with the matrix that were spent.
    stopped
        Why there were no more.
    """

    values: Floats
    vectors: Floats
    residuals: Floats
    bounds: Floats
    converged: NDArray[np.bool_]
    floor: float
    ceiling: float
    products: int
    stopped: str

    def _headline(self) -> str:
        count, others = len(self.values), f"all others in [{self.floor + 0.0:.4g}, {self.ceiling + 0.0:.4g}]"
        said = f"{count} eigenvalue{'s' * (count != 1)} of {len(self.vectors)}, {others}"
        return f"{said}; {self.products} products, {self.stopped}"

    def _columns(self) -> Columns:
        return {
            "eigenvalue": self.values,
            "bound": self.bounds,
            "residual": self.residuals,
            "converged": self.converged,
        }

    def _draw(self, axes: Axes) -> None:
        if math.isfinite(self.floor) and math.isfinite(self.ceiling):
            axes.axhspan(self.floor, self.ceiling, color="0.9", lw=0, label="all others (probability 0.99)")
        places = np.arange(1, len(self.values) + 1)
        axes.errorbar(
            places, self.values, yerr=self.bounds, fmt="o", ms=4, capsize=3, label="value and bound"
        )
        axes.set(title="extreme eigenvalues", xlabel="the largest, then the smallest")
        axes.locator_params(axis="x", integer=True)
        axes.legend(frameon=False)


def extremes(
    matrix: AnyMatrix,
    seed: _checks.Seed = 0,
    *,
    largest: int = 1,
    smallest: int = 0,
    tolerance: float = 1e-3,
    steps: int = 300,
    kept: int | None = None,
    progress: Progress | None = None,
) -> Extremes:
    """The algebraically largest and smallest eigenvalues, multiple ones as often as they occur, with error bounds.

    Ends when all bounds are small and no eigenvalue that belongs to the wanted ones is missed (`floor`, `ceiling`);
    what `steps` did not suffice for is returned too, with its bounds. A further chain looks for missed and multiple
    eigenvalues unless at most one value is sought at each end.

    Parameters
    ----------
    matrix
        Dense, or a `lanczos.Operator`; float32 or float64.
    seed
        Of the starts: an integer, or a numpy generator.
    largest, smallest
        How many from the top and from the bottom, together at least one and at most `dim`.
    tolerance
        Error to stop at, relative to the largest Ritz value in modulus; never below the rounding of the products.
    steps
        Most products, at least as many as eigenvalues are sought.
    kept
        Most vectors of a chain that are held at once, beside those of the eigenvalues that were found before: at
        least three more than are sought. The fewer, the more products. By default all, as long as there is memory,
        which is taken as the chain grows, and then as many as there are.
    progress
        Called after each product with the products so far and what has to fall to `tolerance`: the largest relative
        bound, and in a further chain how far beyond the wanted values an eigenvalue may be missed.

    Raises
    ------
    ValueError
        If there are no eigenvalues or too many to find, `tolerance`, `steps` or `kept` is not positive or too small,
        the matrix cannot be used, see `lanczos.as_operator`, or not even the first vectors fit into memory.

    Notes
    -----
    The ceiling: with T the matrix of k steps in the chain, b_1..b_k its entries beside the diagonal, and c the part
    of the unit start along an eigenvector to lambda, det(lambda - T) |c| <= b_1 ... b_k; and |c| < t sqrt(pi / 2 dim)
    has probability at most t for a start that is uniform on the sphere. With m vectors left out, the (m + 1)-th
    largest eigenvalue is at most the largest on their complement. After restarts the Ritz values that were dropped are
    further zeros of the polynomial on the left, and all entries that ever led on stand on the right.

    Rounding is estimated, not proved: by what symmetry says must vanish in the products and does not, and by
    16 units of rounding of the largest product. Products that are not symmetric, or never twice the same, show there.

    A bound of the second order can be too small where an eigenvalue is nearer than any Ritz value shows: in 14 of
    3197 random spectra of close, multiple and single eigenvalues, by a factor of at most 1.45.

    References
    ----------
    Parlett (1998), The Symmetric Eigenvalue Problem, theorems 4.5.1 and 11.7.1; van Dorsselaer, Hochstenbach and van
    der Vorst (2000), Computing probabilistic bounds for extreme eigenvalues of symmetric matrices with the Lanczos
    method; Kuczynski and Wozniakowski (1992), Estimating the largest eigenvalue by the power and Lanczos algorithms
    with a random start; Wu and Simon (2000), Thick-restart Lanczos method for large symmetric eigenvalue problems.

    Examples
    --------
    >>> matrix = np.diag([7.0, 7.0, *np.arange(100) / 25])
    >>> found = extremes(matrix, largest=3, smallest=1)
    >>> found.values.round(2) + 0.0, found.stopped
    (array([7.  , 7.  , 3.96, 0.  ]), 'all bounds below the tolerance')
    """
    with in_full_precision():
        operator = as_operator(matrix)
        top = _checks.natural_or_zero("largest", largest)
        bottom = _checks.natural_or_zero("smallest", smallest)
        if not 1 <= top + bottom <= operator.dim:
            raise ValueError(f"largest and smallest must add up to 1..{operator.dim}, got {top + bottom}")
        relative, steps = (
            float(_checks.positive_numbers("tolerance", tolerance)),
            _checks.natural("steps", steps),
        )
        if steps < top + bottom:
            raise ValueError(
                f"steps must be at least one for each of {top + bottom} eigenvalues, got {steps}"
            )
        if kept is not None and _checks.natural("kept", kept) < top + bottom + _ROOM:
            raise ValueError(
                f"kept must be at least {_ROOM} more than the {top + bottom} eigenvalues sought, got {kept}"
            )
        search = _Search(operator, _checks.generator(seed), top, bottom, relative, kept or math.inf)
        while (stopped := search.stopped(steps)) is None:
            search.step()
            if progress is not None:
                progress(search.products, search.distance)
        return search.result(stopped)


class _Search:
    """Chains, one after the other, until what is wanted is found and nothing more appears."""

    def __init__(
        self,
        operator: Operator,
        rng: np.random.Generator,
        top: int,
        bottom: int,
        tolerance: float,
        kept: float,
    ) -> None:
        self._operator, self._rng = operator, rng
        self._top, self._bottom, self._count = top, bottom, top + bottom
        self._tolerance, self._doubt, self._kept = tolerance, _DOUBT / 2, kept
        self._unit = self._largest = self._target = 0.0
        self._searched = False
        self.products, self.distance = 0, math.inf
        self._kind: Kind = "first"
        self._next: Kind | None = None
        self._last_ends = -math.inf, math.inf
        _memory.require_free(
            "matrix",
            self._needed(),
            f"{self._block() + _WORK} vectors of {operator.dim} numbers, and the result,",
            device=operator.device,
            advice="use fewer eigenvalues",
        )
        start = self._drawn()
        self._chain = Chain(Found.nothing(start), start, 0.0, 0.0, kept)

    def stopped(self, steps: int) -> str | None:
        """Why there is no further product."""
        if self._next == "none":
            if len(self._chain.rows) == self._operator.dim:
                return "the whole space was spanned"
            if self._converged().all():
                return "all bounds below the tolerance"
            return "the rounding of the products, which allows no smaller bounds"
        if self.products == steps:
            return f"the step limit, {steps} products"
        if self._next is None and self._crowded() and len(self._chain.nodes) < self._count + _ROOM:
            return f"no memory for more than {len(self._chain.rows)} vectors at once"
        return None

    def _crowded(self) -> bool:
        """Whether there is no room for one more vector of this chain."""
        own = len(self._chain.nodes)
        if own and self._chain.rows.full and not self._affordable():
            self._kept = min(self._kept, own)
        return self._chain.rows.full and own >= self._kept

    def step(self) -> None:
        """One more product."""
        if self._next == "refining":
            self._refine(self._chain.found)
        elif self._next is not None:
            self._begin(self._next, self._chain.locked(self._pairs), self._drawn())
        elif self._crowded():
            self._make_room()
        self._chain.grow(self._product)
        self.products += 1
        self._largest = max(self._largest, float(np.abs(self._chain.nodes).max()))
        self._target = max(self._tolerance * self._largest, _RESOLVED * self._chain.noise)
        self._pairs, distance, self._next = self._look(self._target)
        self.distance = distance / (self._largest or 1.0)

    def _begin(self, kind: Kind, found: Found, start: Tensor) -> None:
        self._kind = kind
        self._chain = Chain(found, start, self._chain.scale, self._chain.rounding, self._kept)

    def _refine(self, found: Found) -> None:
        self._last_ends = self._ends()
        self._begin("refining", found, found.remainder())

    def _make_room(self) -> None:
        """Drop what is least needed of this chain.

        Ritz vectors of the chain alone are those that its random start promises something of. Where they no longer
        matter, since there is more than was found before or it is not accurate enough, those of all rows are kept:
        what mends a vector found before need not lie near the ends of what the chain sees.
        """
        chain = self._chain
        full = len(chain.found.values) == self._count
        if full and (self._kind == "refining" or self._passed(chain.found.values, self._target)):
            self._refine(chain.locked(self._pairs).compact())
        else:  # the wanted ones and half of the others, shared out like those
            spare = (len(chain.nodes) - self._count) // 2
            below = self._bottom + spare * self._bottom // self._count
            chain.restart(self._count + spare - below, below)

    def _drawn(self) -> Tensor:
        self._doubt /= 2  # half of what is left for each further start, the same for both ends
        return self._operator.vectors(self._rng.standard_normal((1, self._operator.dim)))[0]

    def _look(self, target: float) -> tuple[Pairs, float, Kind | None]:
        """The pairs, how far they are from certain, and the chain that follows, if this one has done its part."""
        chain = self._chain
        self._searched = True
        if len(chain.rows) == self._operator.dim:
            return chain.pairs(self._top, self._bottom), 0.0, "none"
        full = self._kind == "looking" and len(chain.found.values) == self._count
        if full and not self._passed(chain.found.values, target):
            pairs, distance, following = self._checked(chain.kept(), target)
            self._searched = following != "refining"
            if following is not None or not chain.exhausted:
                return pairs, distance, following
        pairs, distance, following = self._refined(chain.pairs(self._top, self._bottom))
        self._searched = following == "none"
        return pairs, distance, following if distance <= target or chain.exhausted else None

    def _checked(self, pairs: Pairs, target: float) -> tuple[Pairs, float, Kind | None]:
        """What was found before, as long as nothing beyond it appears."""
        if pairs.bounds.max() > target and not self._chain.exhausted:  # nearer to others than it seemed
            return pairs, float(pairs.bounds.max()), "refining"
        bounds = np.maximum(pairs.bounds, self._hidden(pairs.values))
        distance = float(bounds.max())
        return pairs._replace(bounds=bounds), distance, "none" if distance <= target else None

    def _refined(self, pairs: Pairs) -> tuple[Pairs, float, Kind]:
        """What is found with the rows of this chain."""
        if len(pairs.values) < self._count:
            return pairs, math.inf, "looking"
        if self._kind == "first" and max(self._top, self._bottom) == 1:
            # without a further chain a close pair may pass for its lower one: the ends alone are certain
            bounds = self._hidden(pairs.values)
            return pairs._replace(bounds=bounds), float(bounds.max()), "none"
        distances = pairs.residuals if self._kind == "refining" else pairs.bounds
        return pairs, float(distances.max()), "looking"

    def _passed(self, found: Floats, target: float) -> bool:
        """Whether the chain has come upon more than was found before."""
        nodes = self._chain.nodes
        above = self._top and nodes.max() > found[self._top - 1] + target
        return bool(above or (self._bottom and nodes.min() < found[self._top] - target))

    def _hidden(self, values: Floats) -> Floats:
        """How far beyond each value there may be an eigenvalue that was not found, above or below."""
        floor, ceiling = self._ends()
        return np.r_[ceiling - values[: self._top], values[self._top :] - floor]

    def _ends(self) -> tuple[float, float]:
        """Floor and ceiling, by the last random start."""
        if self._kind == "refining":
            return self._last_ends
        return self._chain.floor(self._bottom, self._doubt), self._chain.ceiling(self._top, self._doubt)

    def _product(self, row: Tensor) -> Tensor:
        """In a unit in which squares neither overflow nor vanish."""
        products = self._operator(row[None])[0]
        self._unit = self._unit or unit_of(products)
        return products / self._unit

    def _converged(self) -> NDArray[np.bool_]:
        return (self._pairs.bounds <= self._tolerance * self._largest) & self._searched

    def result(self, stopped: str) -> Extremes:
        """What is found, in the unit of the matrix."""
        rows = self._chain.locked(self._pairs).rows.double()
        rows /= rows.norm(dim=1, keepdim=True)
        floor, ceiling = self._ends()
        if (
            max(self._top, self._bottom) == 1
        ):  # of all eigenvalues, those too that were found in a chain before
            least, most = self._pairs.values - self._pairs.bounds, self._pairs.values + self._pairs.bounds
            floor, ceiling = min(floor, least.min()), max(ceiling, most.max())
        return Extremes(
            values=self._unit * self._pairs.values,
            vectors=numbers(rows.mT),
            residuals=self._unit * self._pairs.residuals,
            bounds=self._unit * self._pairs.bounds,
            converged=self._converged(),
            floor=self._unit * floor,
            ceiling=self._unit * ceiling,
            products=self.products,
            stopped=stopped,
        )

    def _needed(self) -> int:
        """Bytes of the next vectors of a chain, and of a product, or, after the last, of the result."""
        item = torch.finfo(self._operator.dtype).bits // 8
        return (self._block() * item + max(_WORK * item, 32 * self._count)) * self._operator.dim

    def _affordable(self) -> bool:
        return _memory.available(self._operator.device) >= self._needed()

    def _block(self) -> int:
        return int(min(GROWTH, self._kept))
