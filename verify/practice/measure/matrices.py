"""The Hessian and the Gauss-Newton matrix: eigenvalues, trace, norm, density, until their errors are small enough.

Where all rows of a matrix cost fewer products than what is asked for, it is taken whole, and every number is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from simulate.eigenvalues import extremes
from simulate.lanczos import Operator
from simulate.spectra import Estimate, density
from verify.practice.measure import zone
from verify.practice.measure.measurement import Eigenvalue, Matrix, Number, SmearedDensity
from verify.practice.measure.norms import GrowingNorm
from verify.practice.measure.stopping import GrowingTrace, StoppingRule

TOLERANCE = 1e-4
"""Error bound of an eigenvalue to stop at, relative to the largest one in modulus."""

LARGEST_WHOLE = 2000
"""Rows; of more the eigenvalues take longer than products with probes do."""

DENSITY_STEPS, DENSITY_PROBES, DENSITY_POINTS = 32, 3, 401
SMEARING = 0.02
"""Width of the smeared density, as a share of the range of the spectrum."""

LEAST_STEPS = 300
"""Products that Lanczos may take at least, more where many eigenvalues are asked for."""

SURE_STEPS = 100
"""Products that it may take whatever the budget says: of fewer eigenvalues would be no more than guesses."""

_GROWTH = 4.0
"""Most by which probes are multiplied at once: an error from few of them is itself a guess."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """Quantities to measure of one matrix.

    Attributes
    ----------
    count, lowest
        Eigenvalues from the top, and whether the smallest one too.
    placed
        Whether to refine its excess until the verdict on the Goldilocks zone is clear.
    dense
        Whether to compute the density of its eigenvalues.
    stopping
        When estimates end.
    """

    count: int
    stopping: StoppingRule
    lowest: bool = False
    placed: bool = False
    dense: bool = True


@dataclass(frozen=True)
class MeasuredMatrix:
    """A matrix, its first eigenvectors in columns, and what of it the budget did not suffice for, in words."""

    matrix: Matrix
    vectors: Floats
    short: str = ""


def cost(count: int, probes: int) -> int:
    """Products that one matrix takes at first, a guess."""
    return 20 + 6 * count + DENSITY_STEPS * DENSITY_PROBES + probes


def least(count: int, probes: int) -> int:
    """Products that one matrix may take whatever the budget says."""
    return max(SURE_STEPS, 8 * count) + DENSITY_STEPS * DENSITY_PROBES + probes


def found_matrix(
    operator: Operator,
    rng: np.random.Generator,
    trace: GrowingTrace,
    asked: Wishes,
    spent: Callable[[], int],
    expect: Callable[[float], None] = lambda _: None,
) -> MeasuredMatrix:
    """A matrix, from products with vectors.

    Parameters
    ----------
    operator
        Of the matrix.
    rng
        Of random vectors.
    trace
        Begun already.
    asked
        What is asked of it.
    spent
        Products of the whole measurement so far, and those that are laid aside for what comes after.
    expect
        Called with how many more this matrix is going to take, by the errors as they are.

    Examples
    --------
    >>> from simulate.lanczos import as_operator
    >>> matrix, rng = as_operator(np.diag([4.0, 3.0, -1.0])), np.random.default_rng(0)
    >>> asked, trace = Wishes(count=2, lowest=True, stopping=StoppingRule()), GrowingTrace(6.0, None, rng)
    >>> found = found_matrix(matrix, rng, trace, asked, lambda: 0).matrix
    >>> [each.value for each in found.top], found.lowest.value, found.trace.value, round(found.frobenius.value, 9)
    ([4.0, 3.0], -1.0, 6.0, 5.099019514)
    """
    return _Search(operator, rng, trace, asked, spent, expect).go()


class _Search:
    def __init__(
        self,
        operator: Operator,
        rng: np.random.Generator,
        trace: GrowingTrace,
        asked: Wishes,
        spent: Callable[[], int],
        expect: Callable[[float], None],
    ) -> None:
        self.operator, self.rng, self.trace, self.asked = operator, rng, trace, asked
        self.spent, self.expect = spent, expect
        # The density comes last: its products are laid aside.
        self.after = min(DENSITY_STEPS, operator.dim) * DENSITY_PROBES if asked.dense else 0

    def go(self) -> MeasuredMatrix:
        asked, stopping = self.asked, self.asked.stopping
        if self._dense_pays(cost(asked.count, stopping.probes)):
            return self._measure_densely()
        # If all eigenvalues are asked for, the lowest is among them.
        bottom = int(asked.lowest and asked.count < self.operator.dim)
        steps, sure = (max(steps, 8 * asked.count) for steps in (LEAST_STEPS, SURE_STEPS))
        steps = min(steps, max(sure, self._products_left() - stopping.probes))
        seen = extremes(
            self.operator,
            self.rng,
            largest=asked.count,
            smallest=bottom,
            tolerance=TOLERANCE,
            steps=steps,
        )
        norm = GrowingNorm(self.operator, seen, self.rng)
        norm.grow(stopping.probes)
        while (needed := self._needed(norm)) > 0:
            if self._dense_pays(needed):
                return self._measure_densely()
            left = self._products_left()
            if left < (2 if self._factors(norm)[1] > 1 else 4):  # two probes of a norm, or of a trace
                break
            self.expect(min(needed, left) + self.after)
            self._grow(norm)
        values = [
            Eigenvalue(value=float(v), bound=float(b), converged=bool(c))
            for v, b, c in zip(seen.values, seen.bounds, seen.converged, strict=True)
        ]
        estimate, trace = norm.estimate, self.trace.number
        matrix = Matrix(
            top=tuple(values[: asked.count]),
            lowest=values[-1] if asked.lowest else None,
            stopped=seen.stopped,
            trace=trace,
            frobenius=Number.estimated(estimate),
            excess=_excess(trace, Number.estimated(estimate)),
            density=_estimated_density(self.operator, seen.values, self.rng) if asked.dense else None,
        )
        short = self._shortfall(trace, estimate) if needed else ""
        return MeasuredMatrix(matrix, seen.vectors, short)

    def _products_left(self) -> int:
        """Return the products that the budget leaves for more probes."""
        return self.asked.stopping.budget - self.spent() - self.after

    # --- how far estimates are ---

    def _factors(self, norm: GrowingNorm) -> tuple[float, float]:
        """Return the factors by which the probes of trace and norm must grow."""
        stopping, trace, size = self.asked.stopping, self.trace.number, norm.estimate
        # A trace near 0 has no relative error.
        scale = max(abs(trace.value), size.value)
        if not scale:
            return 0.0, 0.0
        place = self._off_place(trace, size)
        return (
            max((trace.error / scale / stopping.tolerance) ** 2, place if trace.error else 0.0),
            (size.standard_error / size.value / stopping.tolerance) ** 2 if size.value else 0.0,
        )

    def _off_place(self, trace: Number, norm: Estimate) -> float:
        """Squared factor by which errors must shrink for a single verdict on the zone; 0 if none is needed."""
        excess = zone.excess_ratio(trace.estimate, norm) if self.asked.placed else None
        return 0.0 if excess is None else zone.off_place(excess)

    def _needed(self, norm: GrowingNorm) -> int:
        """Return the products still needed by the current errors; 0 if none."""
        first, second = self._factors(norm)
        more = 2 * self.trace.probes * (first - 1) if first > 1 else 0.0
        more += norm.probes * (second - 1) if second > 1 else 0.0
        # A factor may be infinite, at the edge of the zone.
        return math.ceil(min(more, 1e9))

    def _grow(self, norm: GrowingNorm) -> None:
        first, second = self._factors(norm)
        if first > 1 and (left := self._products_left()) >= 4:  # two probes at least, of two products each
            self.trace.grow(_more(self.trace.probes, first, left // 2))
        if second > 1 and (left := self._products_left()) >= 2:
            norm.grow(_more(norm.probes, second, left))

    def _shortfall(self, trace: Number, norm: Estimate) -> str:
        if self._off_place(trace, norm) > 1:
            return "its place in the Goldilocks zone"
        return "errors of its trace or norm"

    # --- whole ---

    def _dense_pays(self, instead: float) -> bool:
        dim = self.operator.dim
        return dim <= min(instead, LARGEST_WHOLE) and self.spent() + dim <= self.asked.stopping.budget

    def _measure_densely(self) -> MeasuredMatrix:
        asked, dim = self.asked, self.operator.dim
        rows = self.operator.product(torch.eye(dim, dtype=self.operator.dtype, device=self.operator.device))
        rows = rows.double().cpu()
        ascending, vectors = np.linalg.eigh(((rows + rows.mT) / 2).numpy())
        values, vectors = ascending[::-1], vectors[:, ::-1]
        # of products in the precision of the model the matrix is as little symmetric as they are rounded
        eps = torch.finfo(self.operator.dtype).eps
        bound = float((rows - rows.mT).norm()) / 2 + eps * float(np.abs(values).max(initial=0.0))
        each = [Eigenvalue(value=float(v), bound=bound, converged=True) for v in values]
        trace, norm = Number.exact(float(values.sum())), Number.exact(float(np.linalg.norm(values)))
        matrix = Matrix(
            top=tuple(each[: asked.count]),
            lowest=each[-1] if asked.lowest else None,
            stopped="all eigenvalues",
            trace=trace,
            frobenius=norm,
            excess=_excess(trace, norm),
            density=_density(values) if asked.dense else None,
        )
        kept = [*range(asked.count), *([dim - 1] if asked.lowest and asked.count < dim else [])]
        return MeasuredMatrix(matrix, np.ascontiguousarray(vectors[:, kept]))


def _more(probes: int, factor: float, most: int) -> int:
    return max(2, min(math.ceil(probes * (min(factor, _GROWTH) - 1)), most))


# --- numbers -----------------------------------------------------------------------------------------------------


def _excess(trace: Number, norm: Number) -> Number | None:
    ratio = zone.excess_ratio(trace.estimate, norm.estimate)
    if ratio is None:
        return None
    return Number.exact(ratio.value) if trace.kind == norm.kind == "exact" else Number.estimated(ratio)


# --- densities ---------------------------------------------------------------------------------------------------


def _grid(values: Floats) -> tuple[Floats, float]:
    """Return the grid of a density, and the width by which each eigenvalue is smeared."""
    low, high = min(0.0, float(values.min())), max(0.0, float(values.max()))
    width = SMEARING * (high - low)
    return np.linspace(low - 4 * width, high + 4 * width, DENSITY_POINTS), width


def _density(values: Floats) -> SmearedDensity | None:
    """Smeared density of all eigenvalues, each given."""
    x, width = _grid(values)
    if width == 0:
        return None
    heights = np.exp(-(((x[:, None] - values) / width) ** 2) / 2).mean(1) / (math.sqrt(2 * math.pi) * width)
    none = (0.0,) * len(x)
    return SmearedDensity(
        x=tuple(x.tolist()),
        value=tuple(heights.tolist()),
        standard_error=none,
        truncation=none,
        width=width,
        steps=len(values),
        probes=0,
    )


def _estimated_density(operator: Operator, values: Floats, rng: np.random.Generator) -> SmearedDensity | None:
    x, width = _grid(values)
    if width == 0:
        return None
    steps = min(DENSITY_STEPS, operator.dim)
    made = density(operator, rng, x=x, width=width, steps=steps, probes=DENSITY_PROBES)
    return SmearedDensity(
        x=tuple(x.tolist()),
        value=tuple(made.value.tolist()),
        standard_error=tuple(made.standard_error.tolist()),
        truncation=tuple(made.truncation.tolist()),
        width=width,
        steps=steps,
        probes=DENSITY_PROBES,
    )
