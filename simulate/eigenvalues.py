r"""Extreme eigenvalues of a symmetric matrix with error bounds, by products with one vector at a time.

Lanczos with full re-orthogonalisation grows a chain of orthonormal vectors from a random start. It yields the
statements of the table; A is the matrix, theta a Ritz value (an eigenvalue of A restricted to the span of the chain), v
its vector, r = A v - theta v. By default the search ends when the residuals are small: the first two statements are
all that it promises. With `certified=True` it goes on until the last two are tight enough.

| statement | holds if |
|---|---|
| the k-th largest theta is at most the k-th largest eigenvalue | always |
| an eigenvalue lies within \|r\| of theta | always |
| it lies within \|r\|^2 / gap of theta | no other eigenvalue is nearer than the intervals of the other Ritz values |
| all other eigenvalues lie between `floor` and `ceiling` | with probability at least 0.99 over the random starts |

A chain finds a multiple eigenvalue once only, and one that its start hardly contains late. To certify, a further chain
from a new start, orthogonal to all that was found, therefore finds what was missed or shows that nothing is left. If it
shows that an eigenvalue has a nearer neighbour than assumed, a chain from the largest residual is run first. A single
eigenvalue at an end needs no further chain, since its multiplicity does not change it.

A chain holds few vectors. When it has as many as it may, the inner ones are dropped (thick restart): this costs few
more products and gives the same statements.

`lanczos.warm_start` takes a given start, such as the eigenvector of a similar matrix: it is cheaper, and gives only the
first two statements.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from simulate import _checks, _memory
from simulate._checks import Floats
from simulate.lanczos import AnyMatrix, Operator, as_operator
from simulate.lanczos.chain import Chain, Found, Pairs, UnitProduct
from simulate.lanczos.precision import in_full_precision
from simulate.results import Columns, Result

if TYPE_CHECKING:
    from simulate.results import Axes

Progress = Callable[[int, float], None]
Kind = Literal["first", "looking", "refining", "none"]
"""Kinds of chain: from a random start; from a further one, to find what was missed; from the largest residual."""

STEPS = 300
"""Most products by default."""

_RESOLVED = 4
"""Smallest bound that is sought, in roundings of the products: without a gap, the bound is twice the rounding."""

_ROOM = 3
"""Fewest vectors of a chain beyond the wanted ones: one more is kept at a restart, and two are added."""

_KEPT, _KEPT_EACH = 16, 4
"""Most vectors of a chain by default: 16, or four for each eigenvalue sought if that is more. On five networks (two
LeNets, VGG-like, residual, GPT-like) more of them saved at most one product of 18 for one eigenvalue, and one of 74 for
ten."""

_WORK = 8
"""Vectors for which memory is left to a product: one with the Hessian of a module takes six."""

_DOUBT = 0.01
"""Probability that the random starts hide an eigenvalue beyond the floor or the ceiling."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Extremes(Result):
    """Extreme eigenvalues of a symmetric matrix: the largest ones, then the smallest ones, in descending order.

    Attributes
    ----------
    values
        Ritz values, (count,).
    vectors
        Their unit vectors, (dim, count).
    residuals
        |A v - value v|, (count,), rounding of the products included: an eigenvalue lies within this distance.
    bounds
        Error bound of each value, (count,). If not certified: the residual, which bounds the distance to the nearest
        eigenvalue. If certified, with several values sought at an end: the residual, or residual^2 / gap if that is
        less, with the gap to the intervals of the other Ritz values. If certified, with at most one at each end, where
        no further chain looks for a close pair: the distance to `ceiling` or `floor`. Rounding of the products is
        added.
    converged
        Whether the bound is at most the tolerance times the largest Ritz value in modulus, (count,). If certified with
        several values at an end, all are False until a further chain has looked for missed eigenvalues. Until then a
        value may stand in the place of a missed one, such as a copy of the one before; its bound then refers to a lower
        one.
    certified
        Whether the search looked for missed eigenvalues. If not, a value may stand in the place of a missed one.
    floor, ceiling
        All other eigenvalues lie between them, with probability at least 0.99 over the random starts. All eigenvalues
        do if not certified, or with at most one value sought at each end.
    products
        Number of products with the matrix.
    stopped
        Reason why the search ended.
    """

    values: Floats
    vectors: Floats
    residuals: Floats
    bounds: Floats
    converged: NDArray[np.bool_]
    certified: bool
    floor: float
    ceiling: float
    products: int
    stopped: str

    def _headline(self) -> str:
        count, said = len(self.values), "not certified"
        if self.certified:
            # adding 0.0 turns -0.0, which would print as -0, into 0
            said = f"all others in [{self.floor + 0.0:.4g}, {self.ceiling + 0.0:.4g}]"
        said = f"{count} eigenvalue{'s' * (count != 1)} of {len(self.vectors)}, {said}"
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
            label = f"all{' others' * self.certified} (probability 0.99)"
            axes.axhspan(self.floor, self.ceiling, color="0.9", lw=0, label=label)
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
    certified: bool = False,
    steps: int = STEPS,
    kept: int | None = None,
    progress: Progress | None = None,
) -> Extremes:
    """Return the algebraically largest and smallest eigenvalues with error bounds.

    The search ends when all residuals are small, as that of `scipy.sparse.linalg.eigsh` does: an eigenvalue lies within
    the residual of each value. A wanted eigenvalue may be missed, and a multiple one may appear once. With
    `certified=True` the search goes on until the bounds hold for the wanted eigenvalues, multiple ones repeated, with
    probability at least 0.99 over the random starts (`floor`, `ceiling`). Either search ends after `steps` products,
    with the bounds reached by then.

    Parameters
    ----------
    matrix
        Dense, or a `lanczos.Operator`; float32 or float64.
    seed
        Seed of the random starts: an integer, or a numpy generator.
    largest, smallest
        Number of eigenvalues from the top and from the bottom, together at least one and at most `dim`.
    tolerance
        Residual or, if certified, error to stop at, relative to the largest Ritz value in modulus; never below the
        rounding of the products.
    certified
        Whether to go on until no wanted eigenvalue is missed, except with probability 0.01. This takes some products
        more for one value at an end; for several, a further chain looks for missed and multiple eigenvalues.
    steps
        Most products, at least as many as eigenvalues are sought.
    kept
        Most vectors of a chain that are held at once, besides those of eigenvalues found before: at least three more
        than are sought. By default 16, or four for each eigenvalue sought if that is more; fewer if memory is short.
    progress
        Called after each product with the number of products and the quantity that has to fall to `tolerance`: the
        largest relative residual; if certified the largest relative bound, or, in a further chain, how far outside the
        wanted values a missed eigenvalue may lie.

    Raises
    ------
    ValueError
        If there are no eigenvalues or too many to find, `tolerance`, `steps` or `kept` is not positive or too small,
        the matrix cannot be used, see `lanczos.as_operator`, or not even the first vectors fit into memory.

    Notes
    -----
    The ceiling: with T the tridiagonal matrix of k steps, b_1..b_k its off-diagonal entries, and c the part
    of the unit start along an eigenvector to lambda, det(lambda - T) |c| <= b_1 ... b_k; and |c| < t sqrt(pi / 2 dim)
    has probability at most t for a start uniform on the sphere. With m vectors projected out, the (m + 1)-th largest
    eigenvalue is at most the largest on their complement. After restarts, dropped Ritz values are further zeros of the
    polynomial on the left, and the product on the right includes the off-diagonal entries of all steps so far.

    Rounding is estimated, not proved: by entries that vanish for a symmetric matrix in exact arithmetic, and by
    16 units of rounding of the largest product. Products that are not symmetric, or not deterministic, show there.

    The bound residual^2 / gap can be too small if an eigenvalue is nearer than all Ritz values suggest. If certified,
    it was in 14 of 3197 random spectra of close, multiple and single eigenvalues, by a factor of at most 1.45. Without
    a certificate it would be in about half of the spectra with a close pair at the top, so the residual is given.

    References
    ----------
    Parlett (1998), The Symmetric Eigenvalue Problem, theorems 4.5.1 and 11.7.1; van Dorsselaer, Hochstenbach and van
    der Vorst (2000), Computing probabilistic bounds for extreme eigenvalues of symmetric matrices with the Lanczos
    method; Kuczynski and Wozniakowski (1992), Estimating the largest eigenvalue by the power and Lanczos algorithms
    with a random start; Wu and Simon (2000), Thick-restart Lanczos method for large symmetric eigenvalue problems.

    Examples
    --------
    >>> matrix = np.diag([7.0, 7.0, 4.0, *np.linspace(0, 1, 100)])
    >>> found = extremes(matrix, largest=2)
    >>> found.values.round(2), found.stopped
    (array([7., 4.]), 'all residuals below the tolerance')
    >>> extremes(matrix, largest=2, certified=True).values.round(2)
    array([7., 7.])
    """
    with in_full_precision():
        operator = as_operator(matrix)
        top = _checks.natural_or_zero("largest", largest)
        bottom = _checks.natural_or_zero("smallest", smallest)
        if not 1 <= top + bottom <= operator.dim:
            raise ValueError(f"largest and smallest must add up to 1..{operator.dim}, got {top + bottom}")
        relative, steps = _checks.positive_number("tolerance", tolerance), _checks.natural("steps", steps)
        if steps < top + bottom:
            raise ValueError(
                f"steps must be at least one for each of {top + bottom} eigenvalues, got {steps}"
            )
        least = top + bottom + _ROOM
        kept = max(_KEPT, _KEPT_EACH * (top + bottom)) if kept is None else _checks.natural("kept", kept)
        if kept < least:
            raise ValueError(
                f"kept must be at least {_ROOM} more than the {top + bottom} eigenvalues sought, got {kept}"
            )
        kept = _affordable(operator, top + bottom, range(kept, least - 1, -1))
        search = _Search(operator, _checks.generator(seed), top, bottom, relative, kept, certified)
        while (stopped := search.stopped(steps)) is None:
            search.step()
            if progress is not None:
                progress(search.products, search.distance)
        return search.result(stopped)


def _affordable(operator: Operator, count: int, lengths: range) -> int:
    """Return the first number of vectors that fits into memory, besides those of a product or of the result."""
    item = operator.dtype.itemsize

    def needed(kept: int) -> int:
        return (kept * item + max(_WORK * item, 16 * count)) * operator.dim

    least = lengths[-1]
    # not of what is chosen below, some of which may be gone again by then
    _memory.require_free(
        "matrix",
        needed(least),
        f"{least + _WORK} vectors of {operator.dim} numbers, and the result,",
        device=operator.device,
        advice="use fewer eigenvalues",
    )
    # asking for the free memory takes a millisecond, and there may be as many lengths as parameters
    at = bisect_left(lengths[:-1], True, key=lambda kept: _memory.is_free(needed(kept), operator.device))
    return lengths[at]


@dataclass(eq=False)
class _Search:
    """Runs chains one after the other until the wanted eigenvalues are found and no others appear."""

    _operator: Operator
    _rng: np.random.Generator
    _top: int
    _bottom: int
    _tolerance: float
    _kept: int
    _certified: bool
    _largest: float = 0.0
    _kind: Kind = "first"
    _next: Kind | None = None
    products: int = 0

    def __post_init__(self) -> None:
        self._count, self._product = self._top + self._bottom, UnitProduct(self._operator)
        self._doubt = _DOUBT / 2  # half for the floor, half for the ceiling
        start = self._random_start()
        self._chain = Chain(Found.nothing(start), start, 0.0, 0.0, self._kept, self._certified)

    def stopped(self, steps: int) -> str | None:
        """Return the reason to stop; None to go on."""
        if self._next == "none":
            if len(self._chain.rows) == self._operator.dim:
                return "the whole space was spanned"
            if self._converged().all():
                return f"all {'bounds' if self._certified else 'residuals'} below the tolerance"
            return "the rounding of the products, which allows no smaller bounds"
        if self.products == steps:
            return f"the step limit, {steps} products"
        return None

    def step(self) -> None:
        """Choose the chain and extend it by one product."""
        if self._next == "refining":
            self._refine(self._chain.found)
        elif self._next is not None:
            self._begin(self._next, self._chain.locked(self._pairs), self._random_start())
        elif len(self._chain.nodes) == self._kept:
            self._make_room()
        self._chain.grow(self._product)
        self.products += 1
        self._largest = max(self._largest, float(np.abs(self._chain.nodes).max()))
        # below the rounding of the products no bound can be reached
        self._target = max(self._tolerance * self._largest, _RESOLVED * self._chain.noise)
        self._pairs, distance, self._next = self._assess()
        self.distance = distance / (self._largest or 1.0)

    def _begin(self, kind: Kind, found: Found, start: Tensor) -> None:
        self._kind = kind
        self._chain = Chain(
            found, start, self._chain.scale, self._chain.rounding, self._kept, self._certified
        )

    def _refine(self, found: Found) -> None:
        # the refining chain has no random start: the bounds of the last one that had stay valid
        self._last_ends = self._ends()
        self._begin("refining", found, found.remainder())

    def _make_room(self) -> None:
        """Restart the chain with fewer vectors.

        The bounds from the random start need Ritz vectors of the chain alone. If these bounds no longer matter, since
        the chain has found more eigenvalues or the earlier ones are not accurate enough, Ritz vectors of all rows are
        kept instead: a correction of an earlier vector need not lie near the ends of the spectrum of the chain.
        """
        chain = self._chain
        full = len(chain.found.values) == self._count
        if full and (self._kind == "refining" or self._found_outside()):
            self._refine(chain.locked(self._pairs).compact())
        else:  # keep the wanted ones and half of the others, in the same proportion at both ends
            spare = (len(chain.nodes) - self._count) // 2
            below = self._bottom + spare * self._bottom // self._count
            chain.restart(self._count + spare - below, below)

    def _random_start(self) -> Tensor:
        self._doubt /= 2  # each start gets half of the remaining probability, the same for both ends
        return self._operator.vectors(self._rng.standard_normal((1, self._operator.dim)))[0]

    def _assess(self) -> tuple[Pairs, float, Kind | None]:
        """Return the pairs, their distance from certainty, and the kind of the next chain; None to extend this one."""
        chain, target = self._chain, self._target
        self._searched = True
        # the rows are a basis, so the Ritz values are the eigenvalues
        if len(chain.rows) == self._operator.dim:
            return chain.pairs(self._top, self._bottom), 0.0, "none"
        if not self._certified:
            pairs = chain.pairs(self._top, self._bottom)
            pairs, enough = pairs._replace(bounds=pairs.residuals), len(pairs.values) == self._count
            distance = float(pairs.bounds.max()) if enough else math.inf
            if not chain.exhausted:
                return pairs, distance, "none" if distance <= target else None
            return pairs, distance, "none" if enough else "looking"
        full = self._kind == "looking" and len(chain.found.values) == self._count
        if full and not self._found_outside():
            pairs, distance, following = self._verified_pairs()
            self._searched = following != "refining"
            if following is not None or not chain.exhausted:
                return pairs, distance, following
        pairs, distance, following = self._current_pairs()
        self._searched = following == "none"
        return pairs, distance, following if distance <= target or chain.exhausted else None

    def _verified_pairs(self) -> tuple[Pairs, float, Kind | None]:
        """Return the pairs found before, which nothing has passed, with bounds from this chain, and the next step."""
        pairs, target = self._chain.kept(), self._target
        if pairs.bounds.max() > target and not self._chain.exhausted:  # neighbours are nearer than assumed
            return pairs, float(pairs.bounds.max()), "refining"
        bounds = np.maximum(pairs.bounds, self._distance_to_missed(pairs.values))
        distance = float(bounds.max())
        return pairs._replace(bounds=bounds), distance, "none" if distance <= target else None

    def _current_pairs(self) -> tuple[Pairs, float, Kind]:
        """Return the pairs of all rows of this chain, their distance from certainty, and the next kind of chain."""
        pairs = self._chain.pairs(self._top, self._bottom)
        if len(pairs.values) < self._count:
            return pairs, math.inf, "looking"
        if self._kind == "first" and max(self._top, self._bottom) == 1:
            # without a further chain, the upper one of a close pair may be missed: only floor and ceiling are certain
            bounds = self._distance_to_missed(pairs.values)
            return pairs._replace(bounds=bounds), float(bounds.max()), "none"
        distances = pairs.residuals if self._kind == "refining" else pairs.bounds
        return pairs, float(distances.max()), "looking"

    def _found_outside(self) -> bool:
        """Return whether the chain shows an eigenvalue outside those found before."""
        nodes, found = self._chain.nodes, self._chain.found.values
        above = self._top and nodes.max() > found[self._top - 1] + self._target
        return bool(above or (self._bottom and nodes.min() < found[self._top] - self._target))

    def _distance_to_missed(self, values: Floats) -> Floats:
        """Return how far outside each value a missed eigenvalue may lie, above or below."""
        floor, ceiling = self._ends()
        return np.r_[ceiling - values[: self._top], values[self._top :] - floor]

    def _ends(self) -> tuple[float, float]:
        """Return floor and ceiling, by the last random start."""
        # a refining chain starts from a residual: the bounds hold with a probability over random starts only
        if self._kind == "refining":
            return self._last_ends
        return self._chain.floor(self._bottom, self._doubt), self._chain.ceiling(self._top, self._doubt)

    def _converged(self) -> NDArray[np.bool_]:
        return (self._pairs.bounds <= self._tolerance * self._largest) & self._searched

    def result(self, stopped: str) -> Extremes:
        """Return the result in the unit of the matrix."""
        rows = self._chain.locked(self._pairs).rows.cpu().double()
        # combined in single precision, they have unit length to single precision only
        rows /= rows.norm(dim=1, keepdim=True)
        (floor, ceiling), unit = self._ends(), self._product.unit
        # include the eigenvalues of earlier chains, so that the interval holds all
        if not self._certified or max(self._top, self._bottom) == 1:
            bounds = self._pairs.bounds
            floor = min(floor, (self._pairs.values - bounds).min())
            ceiling = max(ceiling, (self._pairs.values + bounds).max())
        return Extremes(
            values=unit * self._pairs.values,
            vectors=rows.mT.numpy(),
            residuals=unit * self._pairs.residuals,
            bounds=unit * self._pairs.bounds,
            converged=self._converged(),
            certified=self._certified,
            floor=unit * floor,
            ceiling=unit * ceiling,
            products=self.products,
            stopped=stopped,
        )
