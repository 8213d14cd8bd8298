"""Curvature of the loss of a model: eigenvalues, traces, norms, densities, noise of the samples, each with its error.

Every number belongs to the parameters as they are and to the samples given.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from simulate._checks import natural
from simulate.modules import sites
from simulate.modules.hessian_variance import quadratic_forms, total_variance, variance_along
from simulate.modules.sample_grams import is_piecewise_linear, trace_gauss_newton
from simulate.objectives import Objective
from simulate.objectives.batches import cuttable
from simulate.operators import gauss_newton, hessian
from simulate.spectra import Estimate
from verify.practice.loading import Problem, asked_problem
from verify.practice.loading.foreign import measured
from verify.practice.measure import zone as zones
from verify.practice.measure.batches import batch_passes, mini_batches
from verify.practice.measure.budget import DEFAULT, FIRST, GAUSS_NEWTON, HESSIAN, Budget
from verify.practice.measure.layers import LAYER_PASSES, LEAST_LAYER, layered, layers_of
from verify.practice.measure.lines import LINE_POINTS, loss_line
from verify.practice.measure.matrices import (
    LARGEST_WHOLE,
    MARGIN,
    PROBES,
    MeasuredMatrix,
    Search,
    difference_norm,
    extend,
    more_probes,
)
from verify.practice.measure.measurement import (
    Eigenvalue,
    Layer,
    LossLine,
    Matrix,
    Measurement,
    Number,
    SampleNoise,
)
from verify.practice.setup_warnings import setup_warnings
from verify.practice.work import Tell, progress, silent
from verify.running.options import require_seed

__all__ = ["measure", "measure_problem"]

STEPS = 300
"""Most products for the largest eigenvalue of the Hessian if no budget is given."""

VARIANCE_PROBES, _PAIRS = 4, 20
"""Probes of the variance of the Hessian; pairs of them if layers do not give it for all samples at once."""

BINS = 40

_MOST_OUTPUTS = 16
"""Outputs of a sample up to which the exact trace is computed."""

_OUTER = 4
"""Eigenvectors of the Hessian outside of which the norm of the H-term is estimated."""

_SAME = 1e-5
"""Relative difference up to which two exact traces, in float32, are one."""

_START = 10.0
"""Passes for the checks of model and loss, loss, gradient, confidence, and the test for piecewise linear networks."""


def measure(
    model: nn.Module | Objective,
    data: Any = None,
    loss: Any = None,
    *,
    top: int = 10,
    seed: int = 0,
    layers: bool = False,
    batches: int | None = None,
    budget: float | None = None,
    tolerance: float = 0.05,
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
    batches
        Size of random mini-batches whose largest eigenvalues are measured too; none if None.
    budget
        Most passes of the whole measurement, never exceeded. A pass costs as much as one forward and one backward
        pass over all samples; a product of a vector with the Hessian counts 2.5 of them, with the Gauss-Newton matrix
        1.6. If None: as many as the largest eigenvalue of the Hessian takes to 1e-3, and 200 for everything else, plus
        50 for each layer, and what 16 mini-batches and their law take at most. What the passes do not suffice for is
        named in `short` of the result.
    tolerance
        Standard error at which estimates end: of a trace relative to the larger of trace and Frobenius norm, of the
        norm relative to itself.
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
    with progress("measuring") as tell:
        return measure_problem(
            own,
            top=top,
            seed=seed,
            budget=budget,
            tolerance=tolerance,
            layers=layers,
            batches=batches,
            tell=tell,
        )


def measure_problem(
    problem: Problem,
    *,
    top: int = 10,
    seed: int = 0,
    budget: float | None = None,
    tolerance: float = 0.05,
    layers: bool = False,
    batches: int | None = None,
    tell: Tell = silent,
) -> Measurement:
    """Measure a model whose data and loss have been put together.

    Parameters
    ----------
    problem
        Model, data and loss, see `loading.problem`.
    top, seed, budget, tolerance, layers, batches
        As in `measure`.
    tell
        Called with the name of the part at work and the share of all work that is done.

    Raises
    ------
    ValueError
        If `top`, `seed`, `budget`, `batches` or `tolerance` is out of its domain, something does not fit into memory,
        or model and loss have no second derivatives.
    """
    started, objective = time.monotonic(), problem.objective
    count = min(natural("top", top), objective.dim)
    if not (isinstance(tolerance, int | float) and 0 < tolerance < math.inf):
        raise ValueError(f"tolerance must be a positive number, got {tolerance!r}")
    named = layers_of(objective.blocks()) if layers else {}
    # A stream for each part: whether layers or batches are asked for changes no other number.
    streams = np.random.default_rng(require_seed(seed)).spawn(8)
    by_layer: tuple[Layer, ...] = ()
    drawn = None
    with measured():
        spent = _budget(problem, budget, count, len(named), batches, tell)
        spent.spend(_START)
        loss, gradient, warnings = objective.value(), objective.gradient(), setup_warnings(problem)
        pair = _Pair(problem, spent, streams, count, tolerance)
        first, second, h_term = pair.measured(limited=budget is not None)
        with spent.part(_LINES):
            lines = _line(objective, first, gradient, spent)
        with spent.part(_NOISE):
            noise = _noise(problem, first.vector, streams[5], spent)
        if layers:
            with spent.part(_LAYERS):
                size = first.matrix.frobenius
                by_layer = layered(pair.hessian, named, size, streams[6], spent, tolerance)
        if batches:
            with spent.part(_BATCHES):
                drawn = mini_batches(problem, batches, pair.gauss_newton, streams[7], spent)
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
        h_term_frobenius=h_term,
        zone=_zone(problem, first.matrix, second.matrix, h_term.value),
        noise=noise,
        coupling=objective.coupling,
        largest_rate=_rate(first.matrix.top[0]),
        layers=by_layer,
        batches=drawn,
        lines=lines,
        doubts=warnings,
        short="; ".join(_open_parts(problem, first, second, noise, lines, by_layer, batches and not drawn)),
        products=spent.products,
        passes=round(spent.spent, 1),
        seconds=time.monotonic() - started,
    )


_EIGENVALUES, _ESTIMATES = "largest eigenvalues", "traces, norms and densities"
_LAYERS, _LINES, _BATCHES = "layers", "loss along the first eigenvector", "mini-batches"
_NOISE = "noise of the samples"


def _budget(
    problem: Problem, budget: float | None, count: int, layers: int, batches: int | None, tell: Tell
) -> Budget:
    """Return the budget, with passes laid aside for the parts that come last."""
    # What takes much of the budget is measured only if the rest leaves it.
    most = (budget if isinstance(budget, int | float) else DEFAULT) / 4
    noise = sum(passes for passes in _noise_passes(problem).values() if passes <= most)
    aside = {_LINES: _LINE_PASSES, _NOISE: noise, _LAYERS: LAYER_PASSES * layers}
    aside[_BATCHES] = batch_passes(problem, batches)
    if budget is None:
        return Budget(DEFAULT + aside[_LAYERS] + aside[_BATCHES], tell, aside)
    # short chains, and two probes
    steps, least = min(count + 1 + MARGIN, problem.objective.dim) + 2, LEAST_LAYER * layers
    fewest = math.ceil(_START + 2 * FIRST + steps * (HESSIAN + GAUSS_NEWTON) + least)
    if isinstance(budget, bool) or not isinstance(budget, int | float) or not fewest <= budget < math.inf:
        raise ValueError(f"budget must be at least {fewest} passes to measure this, got {budget!r}")
    aside[_LAYERS] -= least
    share = min(1.0, (budget - fewest) / 2 / sum(aside.values()))
    aside = {name: share * passes for name, passes in aside.items()}
    return Budget(budget, tell, aside | {_LAYERS: aside[_LAYERS] + least})


def _open_parts(
    problem: Problem,
    first: MeasuredMatrix,
    second: MeasuredMatrix,
    noise: SampleNoise | None,
    lines: tuple[LossLine, ...],
    layers: tuple[Layer, ...],
    no_batches: int | bool | None,
) -> Iterator[str]:
    """Yield what the budget did not suffice for, in words."""
    named = {"Hessian": first.short, "Gauss-Newton matrix": second.short}
    named |= {f"layer {layer.name}": layer.short for layer in layers}
    yield from (f"{name}: {short}" for name, short in named.items() if short)
    if noise is None and _has_noise(problem):
        yield "noise of the samples"
    elif noise is not None and (noise.total is None or noise.row is None):
        yield "variance of the Hessian over samples"
    if not lines and _rate(first.matrix.top[0]) is not None:
        yield _LINES
    if no_batches:
        yield _BATCHES


def _all_converged(search: Search) -> bool:
    return search.all_converged


class _Pair:
    """The Hessian and the Gauss-Newton matrix, measured with the same probes."""

    def __init__(
        self,
        problem: Problem,
        spent: Budget,
        streams: Sequence[np.random.Generator],
        count: int,
        tolerance: float,
    ) -> None:
        self._problem, self._spent, self._streams = problem, spent, streams
        self._count, self._tolerance = count, tolerance
        self.hessian = spent.on(hessian(problem.objective), HESSIAN)
        self.gauss_newton = spent.on(gauss_newton(problem.objective), GAUSS_NEWTON)

    def measured(self, *, limited: bool) -> tuple[MeasuredMatrix, MeasuredMatrix, Number]:
        """Return both matrices, and the Frobenius norm of their difference."""
        spent, dim = self._spent, self.hessian.dim
        whole = dim <= LARGEST_WHOLE and 2 * FIRST + dim * (HESSIAN + GAUSS_NEWTON) <= spent.free
        with spent.part(_EIGENVALUES):
            first = Search(self.hessian, self._streams[1], self._count, lowest=True)
            second = Search(self.gauss_newton, self._streams[2], self._count, lowest=False)
            if whole:
                for search in (first, second):
                    extend(search, dim, lambda search: search.complete)
                    search.freeze()
                return first.result({}), second.result({}), first.difference(second)
            if limited:
                extend(first, (0.4 * spent.free - FIRST) / HESSIAN)
            else:
                with spent.unlimited():
                    extend(first, STEPS)
            extend(second, (0.4 * spent.free - FIRST) / GAUSS_NEWTON)
        with spent.part(_ESTIMATES):
            return self._estimated(first, second)

    def _estimated(self, first: Search, second: Search) -> tuple[MeasuredMatrix, MeasuredMatrix, Number]:
        spent, rng, both = self._spent, self._streams[3], HESSIAN + GAUSS_NEWTON
        exact = self._exact_trace()
        searches = ((first, HESSIAN), (second, GAUSS_NEWTON))
        # Longer chains converge more eigenvalues, and leave less for the probes to see.
        more = max(0.0, spent.free - PROBES * both)
        for (search, cost), share in zip(searches, (0.3, 0.15), strict=True):
            extend(search, share * more / cost, _all_converged)
            search.freeze(exact)
        vectors = first.random_vectors(rng, max(2, min(PROBES, int(spent.free / both))))
        # The densities take at most half of what the common probes leave.
        half = (spent.free - len(vectors) * both) / 2
        products = [
            search.probe(vectors, density=share * half / cost)
            for (search, cost), share in zip(searches, (0.7, 0.3), strict=True)
        ]
        known = None
        if spent.free >= _OUTER * GAUSS_NEWTON:
            rows, own = first.outer(_OUTER)
            known = rows, own - self.gauss_newton(rows)
        h_term = difference_norm((products[0], products[1]), vectors, known)
        off = [search.off(self._tolerance, placed=search is first) for search, _ in searches]
        while max(worst := [max(each.values()) for each in off]) > 1:
            k = int(np.argmax(worst))
            search, cost = searches[k]
            if spent.free < 2 * cost:
                break
            more = more_probes(search.probes, worst[k], int(spent.free / cost))
            search.probe(search.random_vectors(rng, more))
            off[k] = search.off(self._tolerance, placed=search is first)
        extend(first, 0.6 * spent.free / HESSIAN, _all_converged)
        extend(second, spent.free / GAUSS_NEWTON, _all_converged)
        return first.result(off[0]), second.result(off[1]), h_term

    def _exact_trace(self) -> float | None:
        """Return the trace of both matrices if they are equal and take few passes: it is that of a ReLU network."""
        objective, outputs = self._problem.objective, math.prod(self._problem.outputs)
        passes = outputs + 4.0  # one backward pass for each output
        # In training mode the loss is no mean of losses of single samples.
        if outputs > _MOST_OUTPUTS or objective.training or passes > self._spent.free / 4:
            return None
        try:
            if not sites.by_sample(objective) or not is_piecewise_linear(objective):
                return None
            self._spent.spend(passes)
            return trace_gauss_newton(objective)
        except ValueError:  # model or loss are not of this kind
            return None


# --- numbers -----------------------------------------------------------------------------------------------------


def _rate(first: Eigenvalue) -> Number | None:
    # The eigenvalue may be 0 or negative within its error.
    if first.value <= first.bound:
        return None
    rate = 2 / first.value
    # the distance to the rate of the smallest eigenvalue within the bound
    return Number(value=rate, error=rate * (first.bound / (first.value - first.bound)), kind="bound")


_LINE_PASSES = LINE_POINTS / 2


def _line(
    objective: Objective, found: MeasuredMatrix, gradient: torch.Tensor, spent: Budget
) -> tuple[LossLine, ...]:
    if spent.free < _LINE_PASSES:
        return ()
    spent.spend(_LINE_PASSES)
    slope = float(gradient.double().cpu().numpy() @ found.vector)
    # the sign of an eigenvector is arbitrary: the loss rises along it
    sign = -1.0 if slope < 0 else 1.0
    line = loss_line(objective, sign * found.vector, found.matrix.top[0], abs(slope))
    return () if line is None else (line,)


def _zone(problem: Problem, whole: Matrix, part: Matrix, rest: float) -> zones.Zone | None:
    if whole.excess is None:
        return None
    ratio = rest / part.frobenius.value if part.frobenius.value else None
    below = part.excess and part.excess.estimate
    # whether the H-term is known to have no trace
    exact = whole.trace.kind == part.trace.kind == "exact"
    balanced = exact and math.isclose(whole.trace.value, part.trace.value, rel_tol=_SAME)
    return zones.zone_of(whole.excess.estimate, below if balanced else None, ratio, zones.softmax(problem))


# --- noise -------------------------------------------------------------------------------------------------------


def _has_noise(problem: Problem) -> bool:
    objective, few = problem.objective, problem.objective.few()
    # the Hessian of a batch is no mean of theirs, or nobody but the model can tell them apart
    return problem.samples >= 2 and objective.separable and cuttable(few.inputs, few.targets)


def _noise_passes(problem: Problem) -> dict[str, float]:
    """Return the passes that each number takes; more if layers do not give it for all samples at once."""
    if not _has_noise(problem):
        return {}
    if sites.by_sample(problem.objective):
        return {"along_top": 5.0, "row": 8.0, "total": 7.0 * VARIANCE_PROBES}
    return {"along_top": 9.0, "row": 1.5 * problem.samples, "total": 10.0 * _PAIRS}


def _noise(
    problem: Problem, vector: np.ndarray, rng: np.random.Generator, spent: Budget
) -> SampleNoise | None:
    objective, passes = problem.objective, _noise_passes(problem)
    if not passes or spent.free < passes["along_top"]:
        return None
    unit = problem.unit
    spent.spend(passes["along_top"])
    forms = unit * quadratic_forms(objective, vector[:, None])[:, 0]
    counts, edges = np.histogram(forms, bins=BINS)
    total = element = row = None
    if spent.free >= passes["row"]:
        spent.spend(passes["row"])
        row = Number.exact(unit**2 * variance_along(objective, vector))
    if spent.free >= passes["total"]:
        spent.spend(passes["total"])
        probes = VARIANCE_PROBES if sites.by_sample(objective) else _PAIRS
        found = total_variance(objective, rng, probes=probes)
        total = Number.estimated(Estimate(*(unit**2 * part for part in found)))
        # An estimate of a variance may come out negative.
        root = math.sqrt(max(total.value, 0.0))
        error = total.error / (2 * root) if root else 0.0
        element = Number.estimated(Estimate(root / objective.dim, error / objective.dim))
    return SampleNoise(
        total=total,
        element=element,
        along_top=Number.exact(float(forms.var(ddof=1))),
        row=row,
        edges=tuple(edges.tolist()),
        counts=tuple(counts.tolist()),
    )
