r"""Eigenvalues, trace, norm and density of one symmetric matrix A, all from one Lanczos chain and a few probes.

Lanczos finds k orthonormal Ritz vectors V with A V = V Θ + R, where R = (1 - V V') A V. With P = 1 - V V', in a basis
that begins with V,

.. math:: A = \begin{pmatrix} Θ & R' \\ R & P A P \end{pmatrix}, \quad
    \mathrm{tr} A = \mathrm{tr} Θ + \mathrm{tr} P A P, \quad |A|^2 = |Θ|^2 + 2 |R|^2 + |P A P|^2.

One chain leaves R of rank 1, so that the eigenvalues of Θ and of P A P together have the distribution function of A to
within 2/dim. A random unit vector u of the complement, of dimension n, gives n u'PAPu and n |PAPu|^2, whose means are
trace and squared norm of P A P, and is the start of a short chain for its density. Since the large eigenvalues are
known, few probes suffice.

A chain of as many steps as the matrix has rows leaves nothing outside, and every number is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simulate import _memory
from simulate.lanczos import Operator
from simulate.lanczos.chain import Chain, Found, Pairs
from simulate.lanczos.gauss import Tridiagonal, chains
from simulate.lanczos.rows import dots, numbers, unit_of
from verify.practice.measure.measurement import Eigenvalue, Matrix, Number, SmearedDensity
from verify.practice.measure.zone import excess_ratio, off_place

TOLERANCE = 1e-3
"""Residual of an eigenvalue to stop at, relative to the largest one in modulus."""

DOUBT = 0.01
"""Probability that the random start hides an eigenvalue above the ceiling."""

LARGEST_WHOLE = 500
"""Most rows of a matrix that is taken whole."""

MARGIN = 3
"""Steps of Lanczos beyond the eigenvalues asked for that are always made."""

PROBES, DENSITY_PROBES = 6, 3
"""Random vectors that estimates begin with, and those of them that are continued for the density."""

_RESOLVED = 0.1
"""Residual below which a Ritz value is resolved, as a share of it."""

_GROWTH = 4.0
"""Most by which probes are multiplied at once."""

_AT_ONCE = 40
"""Most probes of one block."""

DENSITY_POINTS = 401
SMEARING = 0.02
"""Width of the smeared density, as a share of the range of the spectrum."""

_LONGEST = 32
"""Most steps of a chain for the density."""

_VECTORS = 64
"""Vectors of a chain that are held before it restarts, more if many eigenvalues are asked for."""

_LARGEST = 1e140
"""Curvature whose square, and sums of such squares, are numbers."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class MeasuredMatrix:
    """A matrix, its first eigenvector (dim,), and what the budget left open, in words."""

    matrix: Matrix
    vector: Floats
    short: str = ""


class Search:
    """Eigenvalues of one matrix from a chain that grows, then estimates outside of their vectors.

    Parameters
    ----------
    operator
        The matrix.
    rng
        Of the start.
    count, lowest
        Eigenvalues from the top, and whether the smallest one too.

    Examples
    --------
    >>> from simulate.lanczos import as_operator
    >>> search = Search(as_operator(np.diag([4.0, 3.0, -1.0, 0.0])), np.random.default_rng(0), 1, lowest=True)
    >>> _ = extend(search, 100)
    >>> search.freeze()
    >>> _ = search.probe(search.random_vectors(np.random.default_rng(1), 2))
    >>> found = search.result({}).matrix
    >>> [round(each.value, 9) for each in (*found.top, found.lowest)], round(found.trace.value, 9)
    ([4.0, -1.0], 6.0)
    """

    def __init__(self, operator: Operator, rng: np.random.Generator, count: int, *, lowest: bool) -> None:
        self.operator, self.dim, self._rng = operator, operator.dim, rng
        self._count = min(count, self.dim)
        # If all eigenvalues are asked for, the lowest is among them.
        self.lowest, self._bottom = lowest, int(lowest and self._count < self.dim)
        self._unit = 0.0
        start = self.random_vectors(rng, 1)[0]
        size = 4 * start.element_size() * self.dim
        most = self.dim if self.dim <= LARGEST_WHOLE else max(_VECTORS, 3 * count)
        if not _memory.is_free(most * size, operator.device):
            most = min(most, int(_memory.available(operator.device) / size))
        self._most = max(self.least, most)
        self._chain = Chain(Found.nothing(start), start, 0.0, 0.0, self._most)
        self._ceiling: float | None = None
        self._trace: list[float] = []
        self._square: list[float] = []
        self._density: Tridiagonal | None = None
        self._exact_trace: float | None = None

    @property
    def least(self) -> int:
        """Fewest products of the chain."""
        return min(self._count + self._bottom + MARGIN, self.dim)

    def random_vectors(self, rng: np.random.Generator, count: int) -> Tensor:
        """Return Gaussian vectors, (count, dim)."""
        return self.operator.vectors(rng.standard_normal((count, self.dim)))

    # --- eigenvalues ---

    def step(self) -> None:
        """Grow the chain by one product."""
        chain = self._chain
        if len(chain.rows) and chain.exhausted:
            # A chain from one start finds a multiple eigenvalue once: another start finds the copies.
            self._ceiling = self.ceiling
            known = chain.locked(chain.pairs(len(chain.rows), 0))
            start = self.random_vectors(self._rng, 1)[0]
            self._chain = Chain(known, start, chain.scale, chain.rounding, self._most)
        elif len(chain.nodes) >= self._most:
            kept = (len(chain.nodes) - self._bottom - 2) // 2
            chain.restart(max(kept, self._count), self._bottom)
        self._chain.grow(self._product)

    def _product(self, vector: Tensor) -> Tensor:
        products = self.operator(vector[None])[0]
        if not self._unit:
            _require_size(float(products.abs().max()))
            self._unit = unit_of(products)
        return products / self._unit

    @property
    def pairs(self) -> Pairs:
        """Wanted Ritz pairs, in units of the first product."""
        return self._chain.pairs(self._count, self._bottom)

    @property
    def finished(self) -> bool:
        """Whether the first eigenvalue is known to the tolerance, and there are as many as are asked for."""
        return self.enough and bool(self._converged[0])

    @property
    def all_converged(self) -> bool:
        """Whether all eigenvalues are known to the tolerance."""
        return self.enough and bool(self._converged.all())

    @property
    def complete(self) -> bool:
        """Whether the chain spans the whole space."""
        return len(self._chain.rows) == self.dim

    @property
    def enough(self) -> bool:
        """Whether the chain is long enough to have all eigenvalues that are asked for."""
        rows = len(self._chain.rows)
        return rows >= self.least or (rows >= self._count + self._bottom and self._chain.exhausted)

    @property
    def _converged(self) -> NDArray[np.bool_]:
        if self.complete:
            return np.ones(len(self.pairs.values), bool)
        return self.pairs.residuals <= TOLERANCE * np.abs(self._chain.nodes).max()

    @property
    def ceiling(self) -> float:
        """Number that no eigenvalue exceeds, with a probability of `DOUBT` to be wrong."""
        return self._unit * self._chain.ceiling(0, DOUBT) if self._ceiling is None else self._ceiling

    # --- trace, norm and density ---

    def freeze(self, exact_trace: float | None = None) -> None:
        """Take the Ritz vectors found so far as known, and the trace if given; probes see the rest."""
        self._exact_trace = exact_trace
        self._known = self._chain.locked(self._chain.pairs(len(self._chain.rows), 0))
        self._inside = float(self._known.values.sum())
        gram = numbers(self._known.tails.double() @ self._known.tails.double().mT)
        coupling = float((self._known.shares * (self._known.shares @ gram)).sum())
        # Outside, no eigenvalue is much larger than the largest Ritz value that is not resolved.
        values, residuals = np.abs(self._known.values), self._known.residuals
        self._outside_largest = float(values[residuals > _RESOLVED * values].max(initial=0.0))
        self._inside_square = float((self._known.values**2).sum()) + 2 * coupling
        self._outside_dim = self.dim - len(self._known.values)
        if not self._outside_dim:
            self._trace, self._square = [0.0, 0.0], [0.0, 0.0]
        values = self._unit * self._known.values
        self.grid, self.width = _grid(values)

    @property
    def probes(self) -> int:
        """Number of probes so far."""
        return len(self._trace)

    def outer(self, count: int) -> tuple[Tensor, Tensor]:
        """Return the Ritz vectors of the largest values in modulus, as rows, and their products with the matrix."""
        known = self._known
        chosen = np.argsort(-np.abs(known.values))[:count]
        rows = known.rows[chosen]
        values, shares = (
            torch.from_numpy(part[chosen].copy()).to(rows) for part in (known.values, known.shares)
        )
        return rows, self._unit * (values[:, None] * rows + shares @ known.tails)

    def difference(self, other: Search) -> Number:
        """Frobenius norm of the difference of two matrices both of which are complete."""
        one, two = self._known, other._known
        overlaps = numbers(one.rows.double() @ two.rows.double().mT) ** 2
        units = self._unit or 1.0, other._unit or 1.0
        inner = units[0] * one.values @ overlaps @ (units[1] * two.values)
        return Number.exact(math.sqrt(max(self.norm.value**2 + other.norm.value**2 - 2 * inner, 0.0)))

    def probe(self, vectors: Tensor, *, density: float = 0.0) -> Tensor:
        """Add Gaussian probes, and return their products with the matrix.

        So many further products may go into the density, by the first three of these probes.
        """
        whole, rows = self.operator(vectors), self._known.rows
        products, coordinates = whole / (self._unit or 1.0), vectors @ rows.mT
        # what A makes of the part along the known vectors leaves them along the tails alone
        shares = torch.from_numpy(self._known.shares).to(coordinates)
        products = self._outside(products) - (coordinates @ shares) @ self._known.tails
        starts = self._outside(vectors)
        lengths = starts.double().norm(dim=1)[:, None].clamp(min=torch.finfo(starts.dtype).tiny).to(starts)
        starts, products = starts / lengths, products / lengths
        n = self._outside_dim
        self._trace += (n * numbers(dots(starts, products))).tolist()
        self._square += (n * numbers(dots(products, products))).tolist()
        if n and self.width and self._density is None:
            few = slice(DENSITY_PROBES)
            self._grow_density(starts[few], products[few], int(density / len(starts[few])))
        return whole

    def _outside(self, rows: Tensor) -> Tensor:
        return rows - (rows @ self._known.rows.mT) @ self._known.rows

    def _grow_density(self, starts: Tensor, products: Tensor, steps: int) -> None:
        """Run short chains outside the known vectors until their nodes are closer than the smearing."""
        first, width = [products], self.width / self._unit

        def product(rows: Tensor) -> Tensor:
            return first.pop() if first else self._outside(self.operator(self._outside(rows)) / self._unit)

        for found in chains(product, starts, min(1 + steps, _LONGEST, self._outside_dim)):
            diagonal, off_diagonal = numbers(found.diagonal), numbers(found.off_diagonal)
            self._density = Tridiagonal(diagonal, off_diagonal[:, :-1])
            nodes, _ = self._density.quadrature()
            spread = max(float(np.ptp(nodes)), 2 * float(off_diagonal[:, -1].max()))
            if spread <= nodes.shape[1] * width:
                break

    @property
    def trace(self) -> Number:
        """Trace, with its standard error."""
        if self._exact_trace is not None:
            return Number.exact(self._exact_trace)
        samples, square = np.array(self._trace), max(float(np.mean(self._square)), self._outside_largest**2)
        return self._number(self._inside + float(samples.mean()), _error(samples, square), self._unit)

    @property
    def norm(self) -> Number:
        """Frobenius norm, with its standard error."""
        samples = np.array(self._square)
        square, largest = float(samples.mean()), self._outside_largest
        root = math.sqrt(max(self._inside_square + square, 0.0))
        error = _error(samples, largest**2 * max(square, largest**2))
        return self._number(root, error / (2 * root) if root else 0.0, self._unit)

    @property
    def excess(self) -> Number | None:
        """Trace over Frobenius norm; None of a zero matrix."""
        ratio = excess_ratio(self.trace.estimate, self.norm.estimate)
        return ratio and self._number(ratio.value, ratio.standard_error)

    def _number(self, value: float, error: float, unit: float = 1.0) -> Number:
        if not self._outside_dim:
            return Number.exact(unit * value)
        return Number(value=unit * value, error=unit * error, kind="standard error")

    def off(self, tolerance: float, *, placed: bool) -> dict[str, float]:
        """Return the squared errors of trace, norm and, if `placed`, place in the zone, over those asked for."""
        trace, norm, excess = self.trace, self.norm, self.excess
        if excess is None:
            return {"trace": 0.0}
        # A trace near 0 has no relative error.
        scale = max(abs(trace.value), norm.value)
        found = {
            "trace": (trace.error / scale / tolerance) ** 2,
            "Frobenius norm": (norm.error / norm.value / tolerance) ** 2,
        }
        return found | (
            {"place in the Goldilocks zone": off_place(excess.estimate)} if placed and excess.error else {}
        )

    # --- result ---

    def result(self, off: Mapping[str, float]) -> MeasuredMatrix:
        """Return what was found; `off` as returned by the method."""
        pairs, unit = self.pairs, self._unit
        each = [
            Eigenvalue(value=unit * float(v) + 0.0, bound=unit * float(b), converged=bool(c))
            for v, b, c in zip(pairs.values, pairs.residuals, self._converged, strict=True)
        ]
        matrix = Matrix(
            top=tuple(each[: self._count]),
            lowest=each[-1] if self.lowest else None,
            ceiling=self.ceiling,
            stopped="all eigenvalues"
            if self.complete
            else "converged"
            if self.all_converged
            else "the budget",
            trace=self.trace,
            frobenius=self.norm,
            excess=self.excess,
            density=self._smeared(),
        )
        vector = numbers(self._chain.rows.combined(pairs.coordinates[:, :1])[0])
        lowest = ["lowest eigenvalue"] * (matrix.lowest is not None and not matrix.lowest.converged)
        left = [*_open_ranks(matrix.top), *lowest, *(name for name, factor in off.items() if factor > 1)]
        return MeasuredMatrix(matrix, vector, ", ".join(left))

    def _smeared(self) -> SmearedDensity | None:
        if not self.width:
            return None
        known = _heights(self.grid, self._unit * self._known.values, self.width).sum(1) / self.dim
        none = np.zeros(len(self.grid))
        value, error, truncation, steps, probes = known, none, none, len(self._known.values), 0
        if self._density is not None:
            found, (probes, steps) = self._density, self._density.diagonal.shape
            shorter = found.leading(max(1, steps - max(1, steps // 4)))
            each = [self._outside_density(some) for some in (found, shorter)]
            value, error = known + each[0].mean(0), each[0].std(0, ddof=1) / math.sqrt(probes)
            truncation = np.abs(each[0].mean(0) - each[-1].mean(0))
        return SmearedDensity(
            x=tuple(self.grid.tolist()),
            value=tuple(value.tolist()),
            standard_error=tuple(error.tolist()),
            truncation=tuple(truncation.tolist()),
            width=self.width,
            steps=steps,
            probes=probes,
        )

    def _outside_density(self, found: Tridiagonal) -> Floats:
        nodes, weights = found.quadrature()
        heights = [
            _heights(self.grid, self._unit * n, self.width) @ w for n, w in zip(nodes, weights, strict=True)
        ]
        return self._outside_dim / self.dim * np.array(heights)


def extend(
    search: Search, steps: float, until: Callable[[Search], bool] = lambda search: search.finished
) -> int:
    """Grow a chain until its first eigenvalue converges, or for some steps; return the number of products.

    It makes as many as `steps`, or the least that the search needs.
    """
    made = 0
    while not until(search) and (made + 1 <= steps or not search.enough):
        search.step()
        made += 1
    return made


def more_probes(probes: int, factor: float, most: int) -> int:
    """Return how many further probes to draw for a squared error that is too large by a factor.

    >>> more_probes(6, 2.0, 100), more_probes(6, 50.0, 100), more_probes(6, 2.0, 3)
    (6, 18, 3)
    """
    # an error from few probes is itself a guess
    return max(2, min(math.ceil(probes * (min(factor, _GROWTH) - 1)), most, _AT_ONCE))


def _open_ranks(top: tuple[Eigenvalue, ...]) -> list[str]:
    """Return the ranks of eigenvalues that are not converged, in words.

    >>> _open_ranks(tuple(Eigenvalue(value=1.0, bound=0.0, converged=k < 2) for k in range(5)))
    ['eigenvalues 3 to 5']
    """
    ranks = [k + 1 for k, each in enumerate(top) if not each.converged]
    if len(ranks) < 2:
        return [f"eigenvalue {rank}" for rank in ranks]
    whole = ranks == list(range(ranks[0], ranks[-1] + 1))
    return [
        f"eigenvalues {ranks[0]} to {ranks[-1]}" if whole else f"eigenvalues {', '.join(map(str, ranks))}"
    ]


def _require_size(size: float) -> None:
    if size and not 1 / _LARGEST < size < _LARGEST:
        raise ValueError(
            f"curvature must be between {1 / _LARGEST:g} and {_LARGEST:g}, or its square overflows, got {size:g};"
            " multiply the loss by a constant"
        )


def _error(samples: Floats, square: float) -> float:
    """Return the standard error of a mean of n u'Mu, the larger of that by the samples and of sqrt(2/k) |M|.

    The variance of n u'Mu is at most 2 |M|^2. Few samples of a matrix with a few large eigenvalues may scatter less.
    """
    n = len(samples)
    return max(float(samples.std(ddof=1)) / math.sqrt(n), math.sqrt(2 * square / n))


# --- differences -------------------------------------------------------------------------------------------------


def difference_norm(
    products: tuple[Tensor, Tensor], vectors: Tensor, known: tuple[Tensor, Tensor] | None = None
) -> Number:
    """Frobenius norm of a difference D of two matrices.

    Parameters
    ----------
    products
        Of both matrices with the same Gaussian vectors.
    vectors
        These vectors, (k, dim).
    known
        Orthonormal rows V, and their products with D, outside of which the vectors are used.

    Examples
    --------
    >>> z, first = torch.randn(9, 4, generator=torch.Generator().manual_seed(0)), torch.eye(4)[:1]
    >>> products = z @ torch.diag(torch.tensor([9.0, 2.0, 2.0, 2.0])), z
    >>> found = difference_norm(products, z, (first, 8 * first))
    >>> round(found.value, 5)
    8.18535
    """
    rest, difference = vectors.double(), products[0].double() - products[1].double()
    unit, inside, largest, n = unit_of(difference), 0.0, 0.0, vectors.shape[1]
    if known is not None:
        rows, own = (part.double() for part in known)
        squares = (own / unit).square().sum(1)
        inside, largest, n = float(squares.sum()), float(squares.max()), n - len(rows)
        coordinates = rest @ rows.mT
        rest, difference = rest - coordinates @ rows, difference - coordinates @ own
    lengths = rest.norm(dim=1).clamp(min=torch.finfo(rest.dtype).tiny)
    samples = n * numbers(((difference / unit).norm(dim=1) / lengths).square())
    root = math.sqrt(inside + samples.mean())
    # as if no eigenvalue outside were larger than along the known vectors
    error = _error(samples, largest * float(samples.mean())) / (2 * root) if root else 0.0
    return Number(value=unit * root, error=unit * error, kind="standard error")


# --- densities ---------------------------------------------------------------------------------------------------


def _grid(values: Floats) -> tuple[Floats, float]:
    """Return the grid of a density, and the width by which each eigenvalue is smeared."""
    low, high = min(0.0, float(values.min())), max(0.0, float(values.max()))
    width = SMEARING * (high - low)
    return np.linspace(low - 4 * width, high + 4 * width, DENSITY_POINTS), width


def _heights(x: Floats, values: Floats, width: float) -> Floats:
    """Return the Gaussian of each value at the points, (points, values)."""
    return np.exp(-(((x[:, None] - values) / width) ** 2) / 2) / (math.sqrt(2 * math.pi) * width)
