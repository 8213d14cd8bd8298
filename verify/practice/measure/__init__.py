"""Curvature of the loss of a model: eigenvalues, traces, norms, densities, noise of the samples, each with its error.

Every number belongs to the parameters as they are and to the samples given.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn

from simulate._checks import natural
from simulate.lanczos import Operator
from simulate.modules import sites
from simulate.modules.hessian_variance import quadratic_forms, total_variance, variance_along
from simulate.modules.projected import projected_terms
from simulate.modules.sample_grams import trace_gauss_newton, trace_hessian
from simulate.objectives import Objective
from simulate.objectives.batches import cuttable
from simulate.operators import gauss_newton, h_term, hessian
from simulate.perceptrons import curvature
from simulate.spectra import Estimate, frobenius_norm
from verify.practice.loading import Problem, asked_problem
from verify.practice.loading.foreign import measured
from verify.practice.measure import zone as zones
from verify.practice.measure.kronecker import factor_cost, factors_of, measured_factors
from verify.practice.measure.layers import layer_cost, layered, layers_of
from verify.practice.measure.lines import LINE_POINTS, loss_line
from verify.practice.measure.matrices import MeasuredMatrix, Wishes, cost, found_matrix, least
from verify.practice.measure.measurement import (
    Eigenvalue,
    Factors,
    Layer,
    LossLine,
    Matrix,
    Measurement,
    Number,
    SampleNoise,
)
from verify.practice.measure.stopping import GrowingTrace, StoppingRule
from verify.practice.setup_warnings import setup_warnings
from verify.practice.work import Tell, Work, progress
from verify.running.options import require_seed

__all__ = ["Keep", "StoppingRule", "measure", "measure_problem"]

LINES = 2
"""Eigenvectors along which the loss is followed."""

Keep = Callable[[np.ndarray, np.ndarray], None]
"""Takes eigenvalues and their vectors."""

VARIANCE_PROBES = 20
BINS = 40

MOST_PASSES = 200
"""Backward passes that an exact trace may take, one for each output of a sample."""

_SAME = 1e-5
"""Relative difference up to which two exact traces, in float32, are one."""

LARGEST_PROJECTED = 500_000
"""Parameters; a frame of more would fill the memory."""

_SMALLEST_PROJECTED = 10 * zones.SUBSPACE
"""Parameters; in fewer the law of the projection does not hold."""


def measure(
    model: nn.Module | Objective,
    data: Any = None,
    loss: Any = None,
    *,
    top: int = 10,
    seed: int = 0,
    layers: bool = False,
    factors: bool = False,
    budget: int | None = None,
    tolerance: float | None = None,
    samples: int | None = None,
    parameters: Sequence[str] | str | None = None,
    training: bool = False,
    field: str | int | None = None,
    batch_size: int | None = None,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype | None = None,
) -> Measurement:
    """Measure the curvature of a loss: eigenvalues, traces, norms, densities, noise, each with its error.

    Parameters
    ----------
    model
        A module, of which a copy is measured; or an `Objective`, which has its data and its loss.
    data
        A pair (inputs, targets) of tensors or arrays, a `DataLoader`, a data set, a mapping with labels as a batch of
        transformers, the path of an ``.npz`` file with ``x_train, y_train``, or ``"digits"``.
    loss
        ``loss(outputs, targets)``, one number for a batch; its name, "cross-entropy", "mse" or "bce"; or
        ``loss(model, batch)``, whose first argument is named ``model``. If None, cross-entropy for targets that are
        whole numbers, else the squared error.
    top
        Number of eigenvalues from the top of the Hessian, and of its Gauss-Newton part.
    seed
        Of all random vectors, and of the choice of `samples`.
    layers
        Whether the Hessian is measured layer by layer too.
    factors
        Whether to measure how far Kronecker factors are from the Gauss-Newton matrix.
    budget, tolerance
        Most products of a matrix and a vector, and the relative error at which estimates end: see `StoppingRule`.
    samples
        Number of samples to draw from the data; all if None.
    parameters
        Names of parameters or submodules to differentiate by; all that require a gradient if None.
    training
        Whether to measure in training mode, with all samples as one batch.
    field
        Name or number of the tensor that the loss takes, where the model returns several; `logits`, or the only one,
        if None.
    batch_size
        Most samples in one pass, which changes memory and time alone, unless samples see each other in larger
        batches only; at most 1000 if None.
    device, dtype
        Such as "cuda", and "float32" or "float64"; those of the model if None.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or model, data and loss do not go together.

    Examples
    --------
    >>> x = torch.tensor([[3.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    >>> net = nn.Linear(2, 1, bias=False, dtype=torch.float64)
    >>> found = measure(net, (x, x[:, :1]))  # its Hessian is 2 x'x / 2
    >>> [round(each.value, 9) for each in found.hessian.top], round(found.hessian.trace.value, 9)
    ([9.0, 1.0], 10.0)
    """
    own = asked_problem(
        "measure",
        model,
        data,
        loss,
        seed=seed,
        samples=samples,
        parameters=parameters,
        training=training,
        field=field,
        batch_size=batch_size,
        device=device,
        dtype=dtype,
    )
    limits = {"budget": budget, "tolerance": tolerance}
    stopping = StoppingRule(**{name: value for name, value in limits.items() if value is not None})
    with progress("measuring") as tell:
        return measure_problem(
            own, top=top, seed=seed, stopping=stopping, layers=layers, factors=factors, tell=tell
        )


def measure_problem(
    problem: Problem,
    *,
    top: int = 10,
    seed: int = 0,
    stopping: StoppingRule | None = None,
    layers: bool = False,
    factors: bool = False,
    keep: Keep | None = None,
    tell: Tell | None = None,
) -> Measurement:
    """Measure a model whose data and loss have been put together.

    Parameters
    ----------
    problem
        Model, data and loss, see `loading.problem`.
    top, seed, layers, factors
        As in `measure`.
    stopping
        What estimates may cost, and when they end; `StoppingRule()` if None.
    keep
        Called with eigenvalues of the Hessian (k,) and their vectors (P, k).
    tell
        Called with the name of the part at work and the share of all work that is done.

    Raises
    ------
    ValueError
        If `top` or `seed` is out of its domain, something does not fit into memory, model and loss have no second
        derivatives, or `factors` are asked for and the model has none.
    """
    started, objective, stopping = time.monotonic(), problem.objective, stopping or StoppingRule()
    count = min(natural("top", top), objective.dim)
    # A stream for each part: whether layers or factors are asked for changes no other number.
    streams = np.random.default_rng(require_seed(seed)).spawn(8)
    costs = _costs(problem, count, stopping.probes, layers=layers, factors=factors)
    spent = _Spent(Work(costs, tell), _aside(costs, count, stopping.probes))
    by_layer: tuple[Layer, ...] = ()
    near: Factors | None = None
    with measured():
        loss, gradient, warnings = objective.value(), objective.gradient(), setup_warnings(problem)
        own = factors_of(objective) if factors else None  # refused before anything takes long
        with spent.part(_TRACES):
            whole, part = _traces(problem, spent, streams[0], stopping.probes)
        asked = Wishes(count=count, stopping=stopping)
        with spent.part(_HESSIAN):
            first = found_matrix(
                spent.on(hessian(objective)),
                streams[1],
                whole,
                replace(asked, lowest=True, placed=True),
                spent.claimed,
                spent.expect,
            )
            _require_size(first.matrix)
        with spent.part(_GAUSS_NEWTON):
            second = found_matrix(
                spent.on(gauss_newton(objective)), streams[2], part, asked, spent.claimed, spent.expect
            )
        with spent.part(_H_TERM):
            exact = first.matrix.frobenius.kind == "exact"
            remainder = _norm_of_rest(spent.on(h_term(objective)), streams[3], stopping.probes, exact=exact)
        if layers:
            with spent.part(_LAYERS):
                blocks, size = objective.blocks(), first.matrix.frobenius
                by_layer = layered(
                    spent.on(hessian(objective)), blocks, size, streams[6], stopping, spent.claimed
                )
        if own is not None:
            with spent.part(_FACTORS):
                near, nothing = measured_factors(
                    spent.on(gauss_newton(objective)), own, streams[7], stopping.probes
                )
                warnings = (*warnings, *nothing)
        with spent.part(_LINES):
            lines = _lines(objective, first, gradient)
        with spent.part(_PROJECTION):
            seen = _projected(problem, streams[4])
        with spent.part(_NOISE):
            noise = _noise(problem, first.vectors[:, 0], streams[5])
        if keep is not None:
            keep(_values(first), first.vectors)
    return Measurement(
        name=problem.name,
        parameters=objective.dim,
        samples=problem.samples,
        classes=problem.classes,
        dtype=str(objective.dtype).removeprefix("torch."),
        device=str(objective.device),
        seed=seed,
        loss=Number.exact(loss),
        gradient_norm=Number.exact(float(gradient.double().norm())),
        hessian=first.matrix,
        gauss_newton=second.matrix,
        h_term_frobenius=remainder,
        zone=_zone(problem, first.matrix, second.matrix, remainder.value),
        projected_excess=seen,
        noise=noise,
        coupling=objective.coupling,
        largest_rate=_rate(first.matrix.top[0]),
        layers=by_layer,
        factors=near,
        lines=lines,
        doubts=warnings,
        short=_budget_shortfall(first, second, by_layer, stopping),
        products=spent.products,
        seconds=time.monotonic() - started,
    )


_LARGEST = 1e140
"""Curvature whose square, and sums of such squares, are numbers."""

_TRACES, _HESSIAN, _GAUSS_NEWTON = "traces", "Hessian", "Gauss-Newton matrix"
_H_TERM, _LAYERS, _LINES = "H-term", "layers", "loss along eigenvectors"
_FACTORS = "Kronecker factors"
_PROJECTION, _NOISE = "random subspace", "noise of the samples"


def _costs(problem: Problem, count: int, probes: int, *, layers: bool, factors: bool) -> dict[str, float]:
    few = problem.objective.dim < _SMALLEST_PROJECTED
    # A small matrix is taken whole, by its rows.
    each = min(cost(count, probes), problem.objective.dim)
    return {
        _TRACES: 20,
        _HESSIAN: each,
        _GAUSS_NEWTON: each,
        _H_TERM: probes,
        _LAYERS: layer_cost(probes) * len(layers_of(problem.objective.blocks())) if layers else 0,
        _FACTORS: factor_cost(probes, len(layers_of(problem.objective.blocks()))) if factors else 0,
        _LINES: LINES * LINE_POINTS / 3,
        _PROJECTION: 1 if few else zones.SUBSPACE,
        _NOISE: 4 * VARIANCE_PROBES,
    }


def _aside(costs: Mapping[str, float], count: int, probes: int) -> dict[str, float]:
    """Products to lay aside for each part until it begins."""
    few = costs[_HESSIAN] < cost(count, probes)  # of which all rows are taken
    whole = costs[_HESSIAN] if few else least(count, probes)
    return {**costs, _HESSIAN: whole, _GAUSS_NEWTON: whole, _LINES: 0}


def _values(found: MeasuredMatrix) -> np.ndarray:
    """Return the eigenvalue of each vector."""
    matrix = found.matrix
    values = [each.value for each in matrix.top]
    # If all eigenvalues were asked for, the lowest is among the top ones already.
    if matrix.lowest is not None and found.vectors.shape[1] > len(values):
        values.append(matrix.lowest.value)
    return np.array(values)


def _budget_shortfall(
    first: MeasuredMatrix, second: MeasuredMatrix, layers: tuple[Layer, ...], stopping: StoppingRule
) -> str:
    """Return what the budget did not suffice for, in words."""
    named = {_HESSIAN: first.short, _GAUSS_NEWTON: second.short}
    named |= {f"layer {layer.name}": layer.short for layer in layers}
    left = ", ".join(f"{name}: {short}" for name, short in named.items() if short)
    return left and f"{left} (budget {stopping.budget} products, tolerance {stopping.tolerance:g})"


class _Spent:
    """Products with vectors that were spent, and how far the part is that spends them."""

    def __init__(self, work: Work, aside: Mapping[str, float]) -> None:
        self.products, self._work, self._aside = 0, work, dict(aside)
        self._done: Callable[[float], None] = lambda _: None
        self._start, self._name = 0, ""

    def claimed(self) -> int:
        """Products so far, and those that parts take which have not begun."""
        return self.products + math.ceil(sum(self._aside.values()))

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Count products within this context as spent on the named part."""
        with self._work.part(name) as done:
            self._done, self._start, self._name = done, self.products, name
            self._aside.pop(name)
            yield

    def expect(self, more: float) -> None:
        """Expect this many further products in the current part."""
        self._work.expect(self._name, self.products - self._start + more)

    def on(self, operator: Operator) -> Operator:
        """Return the operator with its products counted."""

        def product(vectors: torch.Tensor) -> torch.Tensor:
            found = operator.product(vectors)
            self.products += len(vectors)
            self._done((self.products - self._start) / self._work.cost(self._name))
            return found

        return replace(operator, product=product)


# --- numbers -----------------------------------------------------------------------------------------------------


def _require_size(matrix: Matrix) -> None:
    size = max((abs(each.value) for each in matrix.top), default=0.0)
    if size and not 1 / _LARGEST < size < _LARGEST:
        raise ValueError(
            f"curvature must be between {1 / _LARGEST:g} and {_LARGEST:g}, or its square overflows, got {size:g};"
            " multiply the loss by a constant"
        )


def _rate(first: Eigenvalue) -> Number | None:
    # The eigenvalue may be 0 or negative within its error.
    if first.value <= first.bound:
        return None
    return Number(value=2 / first.value, error=2 * (first.bound / first.value) / first.value, kind="bound")


# --- traces and norms --------------------------------------------------------------------------------------------


def _traces(
    problem: Problem, spent: _Spent, rng: np.random.Generator, probes: int
) -> tuple[GrowingTrace, GrowingTrace]:
    """Return the traces of Hessian and Gauss-Newton matrix: exact if a few passes suffice, else first estimates."""
    objective = problem.objective
    few = _exact_trace_affordable(problem)
    if few and (both := _if_possible(trace_hessian, objective)) is not None:
        return GrowingTrace(both, None, rng), GrowingTrace(both, None, rng)
    if few and (part := _if_possible(trace_gauss_newton, objective)) is not None:
        # With the exact trace of the Gauss-Newton part only that of the H-term is left to estimate.
        found = GrowingTrace(part, spent.on(h_term(objective)), rng), GrowingTrace(part, None, rng)
    else:
        found = (
            GrowingTrace(0.0, spent.on(hessian(objective)), rng),
            GrowingTrace(0.0, spent.on(gauss_newton(objective)), rng),
        )
    for each in found:
        each.grow(probes)
    return found


def _lines(objective: Objective, found: MeasuredMatrix, gradient: torch.Tensor) -> tuple[LossLine, ...]:
    slopes = gradient.double().cpu().numpy() @ found.vectors[:, :LINES]
    each = zip(found.vectors.T, found.matrix.top[:LINES], slopes, strict=False)
    drawn = (loss_line(objective, vector, value, float(slope)) for vector, value, slope in each)
    return tuple(line for line in drawn if line is not None)


def _norm_of_rest(operator: Operator, rng: np.random.Generator, probes: int, *, exact: bool) -> Number:
    """Frobenius norm of the H-term: from all its rows where the Hessian was had whole."""
    if exact:
        rows = operator.product(torch.eye(operator.dim, dtype=operator.dtype, device=operator.device))
        return Number.exact(float(rows.double().norm()))
    return Number.estimated(frobenius_norm(operator, rng, probes=probes))


def _if_possible(trace: Callable[[Objective], float], objective: Objective) -> float | None:
    """Return an exact trace; None if it does not suit the model or the loss."""
    try:
        return trace(objective)
    except ValueError:
        return None


def _exact_trace_affordable(problem: Problem) -> bool:
    """Return whether an exact trace takes few passes: samples are independent and have few outputs."""
    objective = problem.objective
    # In training mode the loss is no mean of losses of single samples.
    if math.prod(problem.outputs) > MOST_PASSES or objective.training:
        return False
    return sites.by_sample(objective)


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
    below = part.excess and part.excess.estimate
    return zones.zone_of(
        whole.excess.estimate, below if _balanced(whole, part) else None, ratio, zones.softmax(problem)
    )


def _balanced(whole: Matrix, part: Matrix) -> bool:
    """Whether the H-term is known to have no trace."""
    same = math.isclose(whole.trace.value, part.trace.value, rel_tol=_SAME)
    return whole.trace.kind == part.trace.kind == "exact" and same


# --- noise -------------------------------------------------------------------------------------------------------


def _noise(problem: Problem, vector: np.ndarray, rng: np.random.Generator) -> SampleNoise | None:
    objective, few = problem.objective, problem.objective.few()
    # the Hessian of a batch is no mean of theirs, or nobody but the model can tell them apart
    if problem.samples < 2 or not objective.separable or not cuttable(few.inputs, few.targets):
        return None
    unit = problem.unit
    total = Estimate(*(unit**2 * part for part in total_variance(objective, rng, probes=VARIANCE_PROBES)))
    # An estimate of a variance may come out negative.
    root = math.sqrt(max(total.value, 0.0))
    element = Estimate(root, total.standard_error / (2 * root) if root else 0.0)
    forms = unit * quadratic_forms(objective, vector[:, None])[:, 0]
    counts, edges = np.histogram(forms, bins=BINS)
    return SampleNoise(
        total=Number.estimated(total),
        element=Number.estimated(Estimate(*(part / objective.dim for part in element))),
        along_top=Number.exact(float(forms.var(ddof=1))),
        row=Number.exact(unit**2 * variance_along(objective, vector)),
        edges=tuple(edges.tolist()),
        counts=tuple(counts.tolist()),
    )
