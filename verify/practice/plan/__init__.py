"""Learning rate against batch size for a network of one's own: what is stable, beside what other rules say.

Every number belongs to the parameters as they are: at initialisation, or after training, of the model given.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulate.eigenvalues import Extremes, extremes
from simulate.lanczos import Operator
from simulate.modules.sample_grams import SampleGrams
from simulate.operators import gauss_newton, hessian
from simulate.spectra import Estimate
from verify.escapes import escaped
from verify.practice.loading import Problem, from_options
from verify.practice.loading.foreign import measured, output_apart
from verify.practice.measure.norms import frobenius
from verify.practice.plan.planned import Plan
from verify.practice.plan.rate_bracket import MeasuredBracket, measured_bracket, sample_matrices
from verify.practice.plan.rules import Anchor, BatchRates, anchored, rates_at
from verify.practice.plan.trial_runs import Trial, trial
from verify.practice.work import Tell, Work, on_terminal
from verify.running.options import require_seed, require_writable

__all__ = ["Anchor", "BatchRates", "Plan", "plan", "run_plan"]

DIRECTIONS, HEAVY, BATCHES, PROBES = 10, 20, 8, 8
CHECKED, STEPS, RUNS = 3, 100, 5

_STEPS_FIRST, _STEPS_EACH, _GRAMS, _RATES_TRIED = 20, 5, 10, 6
"""Guesses: of steps of Lanczos for a first and for each further eigenvalue, of passes for all samples one by one, and
of rates tried in short runs."""

_RITZ = 1e-2
"""Relative error that Lanczos may leave in the eigenvalue of a batch, which batches scatter by more than that."""


Integers = NDArray[np.int64]


def plan(
    problem: Problem,
    batch_sizes: Sequence[int],
    *,
    seed: int = 0,
    directions: int = DIRECTIONS,
    heavy: int = HEAVY,
    batches: int = BATCHES,
    adam: tuple[float, int] | None = None,
    check: bool = False,
    steps: int = STEPS,
    runs: int = RUNS,
    tell: Tell | None = None,
) -> Plan:
    """Largest stable learning rates of SGD at some batch sizes, and what other rules say.

    Parameters
    ----------
    problem
        Of `verify.practice.loading.problem`: a loss that is a mean over samples and convex in the outputs.
    batch_sizes
        Different ones, each from 1 to the number of samples.
    seed
        Of all random starts, probes and batches.
    directions, heavy
        Trial directions of the upper side: eigenvectors of all samples, and of single samples with large eigenvalues.
    batches
        Random batches of each size whose largest eigenvalue is measured, at least 2.
    adam
        A good rate of Adam and its batch size.
    check
        Whether short runs are made at three of the batch sizes, see `verify.practice.plan.trial_runs.trial`.
    steps, runs
        Of these, `runs` at least 2.
    tell
        Called with what is being done and the share of all work that is done.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or the problem is of another kind.

    Examples
    --------
    >>> import torch
    >>> from verify.practice.loading import problem
    >>> x, y = torch.eye(3).repeat(4, 1), torch.tensor([0, 1, 2]).repeat(4)
    >>> found = plan(problem(torch.nn.Linear(3, 3), (x, y)), [1, 12])
    >>> [r.batch_size for r in found.rates], all(r.lower <= r.upper for r in found.rates)
    ([1, 12], True)
    """
    started = time.monotonic()
    sizes, anchor = _sizes(batch_sizes, problem.samples), anchored(adam)
    effort = _Effort(directions, heavy, batches, steps, runs, check)
    study = _Study(problem, sizes, effort, np.random.default_rng(require_seed(seed)), tell)
    top, sharpest = study.top(), study.sharpest()
    grams = study.grams()
    bracket, variance = study.bracket(top, grams), study.variance(top, grams)
    dim = problem.objective.dim
    rates = tuple(
        rates_at(size, batch, bracket, variance, anchor, dim) for size, batch in study.batches(bracket)
    )
    checks = study.checks(rates) if check else ()
    return Plan(
        name=problem.name,
        samples=problem.samples,
        parameters=dim,
        loss=problem.objective.value(),
        bracket=bracket,
        hessian=float(sharpest.values[0]),
        hessian_bound=float(sharpest.bounds[0]),
        variance=variance,
        rates=rates,
        crossover=bracket.crossover(),
        crossover_along_top=bracket.crossover_along_top(),
        anchor=anchor,
        checks=checks,
        products=study.products,
        seconds=time.monotonic() - started,
        seed=seed,
    )


class _Effort(NamedTuple):
    directions: int
    heavy: int
    batches: int
    steps: int
    runs: int
    check: bool


_LEAST = _Effort(directions=1, heavy=0, batches=2, steps=1, runs=2, check=False)


class _Study:
    """The measurements, one after the other."""

    def __init__(
        self,
        problem: Problem,
        sizes: Sequence[int],
        effort: _Effort,
        rng: np.random.Generator,
        tell: Tell | None,
    ) -> None:
        _require_effort(effort)
        _require_plain(problem)
        self.problem, self.sizes, self.effort, self.rng = problem, sizes, effort, rng
        self.objective, self.products = problem.objective, 0.0
        self.work = Work(_costs(problem, sizes, effort), tell)

    def top(self) -> Extremes:
        count = min(self.effort.directions, self.objective.dim)
        with self.work.part("top of the Gauss-Newton matrix") as done:
            return self._extremes(gauss_newton(self.objective), count, done)

    def sharpest(self) -> Extremes:
        with self.work.part("top of the Hessian") as done:
            return self._extremes(hessian(self.objective), 1, done)

    def grams(self) -> SampleGrams:
        with self.work.part("single samples"):
            return sample_matrices(self.problem)

    def bracket(self, top: Extremes, grams: SampleGrams) -> MeasuredBracket:
        with self.work.part("trial directions") as done:
            return measured_bracket(
                self.problem, top, grams.largest, self.rng, heavy=self.effort.heavy, watch=done
            )

    def variance(self, top: Extremes, grams: SampleGrams) -> Estimate:
        """Mean over the samples of |G_i - G|_F^2, divisor N - 1: |G_i|_F^2 exact, |G|_F^2 in part from probes."""
        with self.work.part("noise of the samples"):
            whole = frobenius(gauss_newton(self.objective), top, self.rng, probes=PROBES)
        self.products += PROBES
        factor = self.problem.samples / (self.problem.samples - 1)
        spread = float(grams.squares.mean()) - whole.value**2
        return Estimate(factor * max(spread, 0.0), factor * 2 * whole.value * whole.standard_error)

    def batches(self, bracket: MeasuredBracket) -> Iterator[tuple[int, Estimate]]:
        """Batch sizes, each with the mean of the largest eigenvalue."""
        with self.work.part("batches") as done:
            for place, size in enumerate(self.sizes, start=1):
                whole = size == self.problem.samples
                yield size, Estimate(bracket.largest, 0.0) if whole else self._of_batches(size)
                done(place / len(self.sizes))

    def checks(self, rates: Sequence[BatchRates]) -> tuple[Trial, ...]:
        chosen, found = _spread(rates), []
        with self.work.part("short runs") as done:
            for place, at in enumerate(chosen):
                share = partial(_part_done, done, place, len(chosen))
                found.append(
                    trial(
                        self.problem,
                        at.batch_size,
                        at.lower,
                        self.rng,
                        steps=self.effort.steps,
                        runs=self.effort.runs,
                        watch=share,
                    )
                )
        return tuple(found)

    def _extremes(self, matrix: Operator, count: int, done: Callable[[float], None]) -> Extremes:
        guess = _STEPS_EACH * count + _STEPS_FIRST
        found = extremes(matrix, self.rng, largest=count, progress=lambda products, _: done(products / guess))
        self.products += found.products
        return found

    def _of_batches(self, size: int) -> Estimate:
        values = []
        for chosen in _cut(self.rng, self.problem.samples, size, self.effort.batches):
            matrix = gauss_newton(self.problem.batch_objective(chosen))
            found = extremes(matrix, self.rng, largest=1, tolerance=_RITZ)
            self.products += found.products * size / self.problem.samples
            values.append(float(found.values[0]))
        return Estimate(float(np.mean(values)), float(np.std(values, ddof=1) / math.sqrt(len(values))))


def _cut(rng: np.random.Generator, samples: int, size: int, count: int) -> Iterator[Integers]:
    """Random batches: each order of the samples is cut into as many as it holds."""
    order = rng.permutation(samples)
    for _ in range(count):
        if len(order) < size:
            order = rng.permutation(samples)
        yield order[:size]
        order = order[size:]


def _part_done(done: Callable[[float], None], place: int, count: int, share: float) -> None:
    done((place + share) / count)


def _spread(rates: Sequence[BatchRates]) -> list[BatchRates]:
    """Three of them: the first, the last and the one in the middle; all if there are fewer."""
    if len(rates) <= CHECKED:
        return list(rates)
    return [rates[0], rates[len(rates) // 2], rates[-1]]


def _costs(problem: Problem, sizes: Sequence[int], effort: _Effort) -> dict[str, float]:
    """Guesses in products with the matrix of all samples."""
    samples = problem.samples
    heavy = min(effort.heavy, samples)
    few = len(sizes[:CHECKED])
    steps = effort.check * effort.steps * effort.runs * _RATES_TRIED * few
    return {
        "top of the Gauss-Newton matrix": _STEPS_EACH * effort.directions + _STEPS_FIRST,
        "top of the Hessian": _STEPS_EACH + _STEPS_FIRST,
        "single samples": _GRAMS,
        "trial directions": 2.0 * (effort.directions + heavy) + _STEPS_FIRST * heavy / samples,
        "noise of the samples": PROBES,
        "batches": sum(effort.batches * _STEPS_FIRST * size / samples for size in sizes),
        "short runs": steps * (sum(sizes) / len(sizes) / samples),
    }


def _sizes(batch_sizes: Sequence[int], samples: int) -> tuple[int, ...]:
    given = list(batch_sizes)
    if not given:
        raise ValueError("batch sizes must be at least one, got none")
    for size in given:
        if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
            raise ValueError(f"batch sizes must be integers of at least 1, got {size!r}")
        if size > samples:
            raise ValueError(f"batch sizes must be at most the number of samples, {samples}, got {size}")
        if given.count(size) > 1:
            raise ValueError(f"batch sizes must be different, got {size} more than once")
    return tuple(sorted(int(size) for size in given))


def _require_effort(effort: _Effort) -> None:
    for name, least in _LEAST._asdict().items():
        if getattr(effort, name) < least:
            raise ValueError(f"{name} must be at least {least}, got {getattr(effort, name)}")


def _require_plain(problem: Problem) -> None:
    """Rates are those of steps on the mean over a batch, whose samples do not depend on each other."""
    if problem.objective.reduction != "mean":
        raise ValueError("loss must be a mean over the samples, got a sum: divide it by their number")
    if problem.samples < 2:
        raise ValueError("data must hold at least two samples for a plan, got one")
    if problem.objective.training:
        raise ValueError(
            "a plan needs evaluation mode: in training mode samples of a batch may see each other"
        )
    if not problem.objective.separable:
        raise ValueError(
            f"loss must be a mean over samples, each for itself, for a plan, got another: {problem.objective.coupling}"
        )


def run_plan(options: argparse.Namespace) -> int:
    """The command: plan, print, write."""
    from verify.practice.plan import pages as plan_pages

    sizes = _words(options.batch_sizes)
    if (options.adam_rate is None) != (options.adam_batch is None):
        raise ValueError("--adam-rate and --adam-batch must be given together")
    adam = None if options.adam_rate is None else (options.adam_rate, options.adam_batch)
    folder = Path(options.output)
    with output_apart() as output:
        problem = from_options(options)
        _sizes(sizes, problem.samples)
        require_writable(folder, "--output")
        with on_terminal("plan") as tell, measured():
            made = plan(
                problem,
                sizes,
                seed=options.seed,
                adam=adam,
                check=options.check,
                steps=options.steps,
                tell=tell,
            )
        try:
            page = plan_pages.write_plan(made, folder)
        finally:  # a full disk does not take away what was found
            output.write(plan_pages.plan_json(made) if options.json else plan_pages.plan_text(made))
        if not options.json:
            output.write(f"\npage: {escaped(str(page))}\n")
    return 0


def _words(text: str) -> list[int]:
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise ValueError(
            f"--batch-sizes must be integers with commas between them, such as 16,32,64, got {text!r}"
        ) from None
