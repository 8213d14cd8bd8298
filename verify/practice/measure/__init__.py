"""The curvature of the loss of a model of one's own: eigenvalues, traces, norms, densities, noise, each with its error.

Every number belongs to the parameters as they are and to the samples given.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from simulate.eigenvalues import Extremes, extremes
from simulate.lanczos import Operator
from simulate.modules import sites
from simulate.modules.hessian_variance import quadratic_forms, total_variance, variance_along
from simulate.modules.projected import projected_terms
from simulate.modules.sample_grams import trace_gauss_newton, trace_hessian
from simulate.objectives import Objective
from simulate.operators import CurvatureOperator, gauss_newton, h_term, hessian
from simulate.perceptrons import curvature
from simulate.spectra import Estimate, density, frobenius_norm, xtrace
from verify.escapes import escaped
from verify.practice.loading import Problem, from_options
from verify.practice.loading.foreign import measured, output_apart
from verify.practice.measure import zone as zones
from verify.practice.measure.measurement import (
    Eigenvalue,
    Matrix,
    Measurement,
    Number,
    SampleNoise,
    SmearedDensity,
)
from verify.practice.measure.norms import frobenius
from verify.practice.work import Tell, Work, on_terminal
from verify.running.options import require_seed, require_writable

__all__ = ["measure", "run_measure"]

TOLERANCE = 1e-4
"""Error bound of an eigenvalue to stop at, relative to the largest one in modulus."""

PROBES = 20
"""Random vectors behind a trace or a norm."""

DENSITY_STEPS, DENSITY_PROBES, DENSITY_POINTS = 32, 3, 401
SMEARING = 0.02
"""Width of the smeared density, as a share of the range of the spectrum."""

VARIANCE_PROBES = 20
BINS = 40
LEAST_STEPS = 300
"""Products that Lanczos may take at least, more where many eigenvalues are asked for."""

MOST_PASSES = 200
"""Backward passes that an exact trace may take, one for each output of a sample."""

_SAME = 1e-5
"""Relative difference up to which two exact traces, in float32, are one."""

LARGEST_PROJECTED = 500_000
"""Parameters; a frame of more would fill the memory."""

_SMALLEST_PROJECTED = 10 * zones.SUBSPACE
"""Parameters; in fewer the law of the projection does not hold."""


def measure(
    problem: Problem, *, top: int = 10, seed: int = 0, tell: Tell = lambda _what, _share: None
) -> Measurement:
    """Measure the curvature of a loss.

    Parameters
    ----------
    problem
        Model, data and loss, see `loading.problem`.
    top
        Eigenvalues from the top of either matrix.
    seed
        Of all random vectors.
    tell
        Called with what is being done and the share of all that is done.

    Raises
    ------
    ValueError
        If `top` or `seed` is no such number, something does not fit into memory, or model and loss have no second
        derivatives.

    Examples
    --------
    >>> from torch import nn
    >>> from verify.practice.loading import problem
    >>> x = torch.tensor([[3.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    >>> net = nn.Linear(2, 1, bias=False)
    >>> found = measure(problem(net, (x, x[:, :1]), dtype="float64"))  # its Hessian is 2 x'x / 2
    >>> [round(each.value, 9) for each in found.hessian.top], round(found.hessian.trace.value, 9)
    ([9.0, 1.0], 10.0)
    """
    started, objective = time.monotonic(), problem.objective
    count = min(_count(top), objective.dim)
    streams = np.random.default_rng(require_seed(seed)).spawn(7)
    spent, work = _Spent(), Work(_costs(problem, count), tell)
    with measured():
        loss, gradient = objective.value(), objective.gradient()
        with work.part(_TRACES):
            whole, traces = _traces(problem, streams[0])
        with work.part(_HESSIAN) as done:
            first = _matrix(
                hessian(objective), streams[1], spent.by(done, _cost(count)), count, whole, lowest=True
            )
        with work.part(_GAUSS_NEWTON) as done:
            second = _matrix(gauss_newton(objective), streams[2], spent.by(done, _cost(count)), count, traces)
        with work.part(_H_TERM) as done:
            rest = spent.by(done, PROBES)(h_term(objective))
            remainder = frobenius_norm(rest, streams[3], probes=PROBES)
        with work.part(_PROJECTION):
            seen = _projected(problem, streams[4])
        with work.part(_NOISE):
            noise = _noise(problem, first.vector, streams[5])
    return Measurement(
        name=problem.name,
        parameters=objective.dim,
        samples=problem.samples,
        classes=problem.classes,
        dtype=str(objective.dtype).removeprefix("torch."),
        device=str(objective.device),
        seed=seed,
        loss=_exact(loss),
        gradient_norm=_exact(float(gradient.double().norm())),
        hessian=first.matrix,
        gauss_newton=second.matrix,
        h_term_frobenius=_estimated(remainder),
        zone=_zone(problem, first.matrix, second.matrix, remainder.value),
        projected_excess=seen,
        noise=noise,
        coupling=objective.coupling,
        largest_rate=_rate(first.matrix.top[0]),
        products=spent.products,
        seconds=time.monotonic() - started,
    )


_TRACES, _HESSIAN, _GAUSS_NEWTON = "traces", "Hessian", "Gauss-Newton matrix"
_H_TERM, _PROJECTION, _NOISE = "H-term", "random subspace", "noise of the samples"


def _cost(count: int) -> float:
    """Products that one matrix takes, a guess."""
    return 20 + 6 * count + DENSITY_STEPS * DENSITY_PROBES + PROBES


def _costs(problem: Problem, count: int) -> dict[str, float]:
    few = problem.objective.dim < _SMALLEST_PROJECTED
    return {
        _TRACES: 20,
        _HESSIAN: _cost(count),
        _GAUSS_NEWTON: _cost(count),
        _H_TERM: PROBES,
        _PROJECTION: 1 if few else zones.SUBSPACE,
        _NOISE: 4 * VARIANCE_PROBES,
    }


def _count(top: Any) -> int:
    if not isinstance(top, int) or isinstance(top, bool) or top < 1:
        raise ValueError(f"top must be a positive integer, got {top!r}")
    return top


class _Spent:
    """Products with vectors that were spent."""

    def __init__(self) -> None:
        self.products = 0

    def by(self, done: Callable[[float], None], guess: float) -> Callable[[Operator], Operator]:
        """A way to watch operators that together take about so many products."""
        start = self.products

        def watched(operator: Operator) -> Operator:
            def product(vectors: torch.Tensor) -> torch.Tensor:
                found = operator.product(vectors)
                self.products += len(vectors)
                done((self.products - start) / guess)
                return found

            return Operator(product=product, dim=operator.dim, dtype=operator.dtype, device=operator.device)

        return watched


# --- numbers -----------------------------------------------------------------------------------------------------


def _exact(value: float) -> Number:
    return Number(value=value, error=0.0, kind="exact")


def _estimated(found: Estimate) -> Number:
    return Number(value=found.value, error=found.standard_error, kind="standard error")


def _estimate(number: Number) -> Estimate:
    return Estimate(number.value, number.error)


def _rate(first: Eigenvalue) -> Number | None:
    if first.value <= first.bound:
        return None
    return Number(value=2 / first.value, error=2 * first.bound / first.value**2, kind="bound")


# --- matrices ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Found:
    """A matrix, and its first eigenvector."""

    matrix: Matrix
    vector: np.ndarray


def _matrix(
    operator: Operator,
    rng: np.random.Generator,
    watched: Callable[[Operator], Operator],
    count: int,
    trace: Number,
    *,
    lowest: bool = False,
) -> _Found:
    seen = watched(operator)
    bottom = int(lowest and count < operator.dim)
    steps = max(LEAST_STEPS, 8 * count)
    found = extremes(seen, rng, largest=count, smallest=bottom, tolerance=TOLERANCE, steps=steps)
    values = [
        Eigenvalue(value=float(v), bound=float(b), converged=bool(c))
        for v, b, c in zip(found.values, found.bounds, found.converged, strict=True)
    ]
    norm = frobenius(seen, found, rng, probes=PROBES)
    excess = zones.excess_ratio(_estimate(trace), norm)
    matrix = Matrix(
        top=tuple(values[:count]),
        lowest=values[-1] if lowest else None,
        stopped=found.stopped,
        trace=trace,
        frobenius=_estimated(norm),
        excess=None if excess is None else _estimated(excess),
        density=_density(seen, found, rng),
    )
    return _Found(matrix, found.vectors[:, 0])


def _density(operator: Operator, found: Extremes, rng: np.random.Generator) -> SmearedDensity | None:
    low, high = min(0.0, float(found.values.min())), max(0.0, float(found.values.max()))
    width = SMEARING * (high - low)
    if width == 0:
        return None
    x = np.linspace(low - 4 * width, high + 4 * width, DENSITY_POINTS)
    steps = min(DENSITY_STEPS, operator.dim)
    made = density(operator, x, rng, width=width, steps=steps, probes=DENSITY_PROBES)
    return SmearedDensity(
        x=tuple(x.tolist()),
        value=tuple(made.value.tolist()),
        standard_error=tuple(made.standard_error.tolist()),
        truncation=tuple(made.truncation.tolist()),
        width=width,
        steps=steps,
        probes=DENSITY_PROBES,
    )


def _traces(problem: Problem, rng: np.random.Generator) -> tuple[Number, Number]:
    """Of the Hessian and of the Gauss-Newton matrix: exact where a few passes give them, else estimated."""
    objective = problem.objective
    few = _exact_trace_affordable(problem)
    if few and (both := _if_possible(trace_hessian, objective)) is not None:
        return _exact(both), _exact(both)
    if few and (part := _if_possible(trace_gauss_newton, objective)) is not None:
        rest = _xtrace(h_term(objective), rng)
        return replace(rest, value=part + rest.value), _exact(part)
    return _xtrace(hessian(objective), rng), _xtrace(gauss_newton(objective), rng)


def _if_possible(trace: Callable[[Objective], float], objective: Objective) -> float | None:
    """None of a model or loss that this exact trace is not for."""
    try:
        return trace(objective)
    except ValueError:
        return None


def _xtrace(operator: CurvatureOperator, rng: np.random.Generator) -> Number:
    """Of a matrix that is not larger than the probes are many, exact."""
    if operator.dim <= PROBES:
        return _exact(float(operator.dense().double().trace()))
    return _estimated(xtrace(operator, rng, probes=PROBES))


def _exact_trace_affordable(problem: Problem) -> bool:
    """Whether samples are taken together, each for itself, and have few outputs."""
    objective = problem.objective
    if math.prod(problem.outputs) > MOST_PASSES or objective.training:
        return False
    return sites.covers(objective) and sites.by_sample(objective)


def _projected(problem: Problem, rng: np.random.Generator) -> float | None:
    objective = problem.objective
    if not _SMALLEST_PROJECTED <= objective.dim <= LARGEST_PROJECTED:
        return None
    frame = curvature.haar(rng, objective.dim, zones.SUBSPACE)
    seen = projected_terms(objective, frame).hessian.double()
    return float(curvature.positive_excess(seen)) if bool(seen.any()) else None


def _zone(problem: Problem, whole: Matrix, part: Matrix, rest: float) -> zones.Zone | None:
    if whole.excess is None:
        return None
    ratio = rest / part.frobenius.value if part.frobenius.value else None
    below = None if part.excess is None else _estimate(part.excess)
    return zones.zone_of(
        _estimate(whole.excess), below if _balanced(whole, part) else None, ratio, zones.softmax(problem)
    )


def _balanced(whole: Matrix, part: Matrix) -> bool:
    """Whether the H-term is known to have no trace."""
    same = math.isclose(whole.trace.value, part.trace.value, rel_tol=_SAME)
    return whole.trace.kind == part.trace.kind == "exact" and same


# --- noise -------------------------------------------------------------------------------------------------------


def _noise(problem: Problem, vector: np.ndarray, rng: np.random.Generator) -> SampleNoise | None:
    objective = problem.objective
    if problem.samples < 2 or not objective.separable:  # the Hessian of a batch is no mean of theirs
        return None
    unit = problem.unit
    total = Estimate(*(unit**2 * part for part in total_variance(objective, rng, probes=VARIANCE_PROBES)))
    root = math.sqrt(max(total.value, 0.0))
    element = Estimate(root, total.standard_error / (2 * root) if root else 0.0)
    forms = unit * quadratic_forms(objective, vector[:, None])[:, 0]
    counts, edges = np.histogram(forms, bins=BINS)
    return SampleNoise(
        total=_estimated(total),
        element=_estimated(Estimate(*(part / objective.dim for part in element))),
        along_top=_exact(float(forms.var(ddof=1))),
        row=_exact(unit**2 * variance_along(objective, vector)),
        edges=tuple(edges.tolist()),
        counts=tuple(counts.tolist()),
    )


# --- at the command line -----------------------------------------------------------------------------------------


def run_measure(options: argparse.Namespace) -> int:
    """``losscurv measure``: measure, write the page and the JSON, print."""
    from verify.practice.measure import pages

    require_seed(options.seed)
    if options.top < 1:
        raise ValueError(f"--top must be at least 1, got {options.top}")
    folder = Path(options.output)
    with output_apart() as output:
        problem = from_options(options)
        require_writable(folder, "--output")
        with on_terminal("measuring") as tell:
            found = measure(problem, top=options.top, seed=options.seed, tell=tell)
        text = pages.measurement_json(found) if options.json else pages.measurement_text(found)
        try:
            page = pages.write_measurement(found, folder)
        finally:  # a full disk does not take away what was measured
            output.write(text)
        if not options.json:
            output.write(f"page: {escaped(str(page))}\n")
    return 0
