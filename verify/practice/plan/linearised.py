"""The dynamics linearised at the parameters as they are: the bracket of the stable rate, beside what other rules say.

Evaluation mode, single samples: a network that normalises by the statistics of its batches has none, see
`batch_curvature`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulate.eigenvalues import Extremes, extremes
from simulate.lanczos import Operator
from simulate.modules.sample_directions import SampleDirections, sample_directions
from simulate.modules.sample_grams import SampleGrams
from simulate.operators import gauss_newton, hessian
from simulate.spectra import Estimate
from verify.practice.loading import Problem
from verify.practice.measure.norms import frobenius
from verify.practice.plan.batch_law import BatchEigenvalue, BatchLaw
from verify.practice.plan.gradient_noise import GradientNoise, NoiseScales, gradient_noise
from verify.practice.plan.optimizers import Chosen
from verify.practice.plan.own_limits import OwnLimits, own_limits
from verify.practice.plan.rate_bracket import MeasuredBracket, measured_bracket
from verify.practice.plan.rules import Anchor, BatchRates, rates_at
from verify.practice.work import Work

_STEPS_FIRST, _STEPS_EACH, _PASSES = 20, 5, 10
"""Guesses: of steps of Lanczos for a first and for each further eigenvalue, of passes for all samples one by one."""

BY_THEORY = "eigenvalues of batches"
"""The part that takes `batch_law.SECONDS` for each size, and no products."""

_PROBES = 8
"""Probes of a norm."""

_OWN = 12
"""Directions of single samples that others are measured along."""

_NOISY, _NOISE_SIZE = 16, 32
"""Batches that the noise of gradients is measured on, and their size at most."""

Integers = NDArray[np.int64]


class Effort(NamedTuple):
    """Trial directions (eigenvectors of all samples, single samples with large eigenvalues), batches of each size.

    The last is for networks with batch statistics, see `batch_curvature`.
    """

    directions: int
    heavy: int
    batches: int


_LEAST = Effort(directions=1, heavy=0, batches=2)


@dataclass(frozen=True, kw_only=True)
class Linearised:
    """Stable rates at every batch size, from the curvature at the current parameters.

    Attributes
    ----------
    bracket
        Statistics of the samples; gives the bracket at any other batch size too.
    hessian, hessian_bound
        Largest eigenvalue of the Hessian and its error bound.
    variance
        Mean over the samples of |G_i - G|_F^2, with its standard error.
    rates
        One for each batch size, ascending.
    crossover
        Batch sizes between which the largest stable rate passes half of 2/lambda_1.
    crossover_along_top
        The same from the first eigenvector alone.
    noise
        Noise scales of the gradients of single samples.
    own
        Limits of the given optimiser with full gradients.
    anchor
        Batch size and rate that Adam's rule starts from.
    products
        Products of the curvature with a vector, each over all samples.
    """

    bracket: MeasuredBracket
    hessian: float
    hessian_bound: float
    variance: Estimate
    rates: tuple[BatchRates, ...]
    crossover: tuple[float, float]
    crossover_along_top: float
    noise: NoiseScales
    own: OwnLimits
    anchor: Anchor | None
    products: float


def linearised(
    problem: Problem,
    own: Chosen,
    sizes: Sequence[int],
    effort: Effort,
    rng: np.random.Generator,
    work: Work,
    anchor: Anchor | None = None,
) -> Linearised:
    """Largest stable learning rates of SGD in the linearised dynamics, and what other rules say.

    Parameters
    ----------
    problem
        A loss that is a mean over samples and convex in the outputs, in evaluation mode.
    own
        One's own optimiser.
    sizes
        Batch sizes, ascending, each from 1 to the number of samples.
    effort
        How much is measured.
    rng
        Source of random starts, probes and batches.
    work
        With the parts of `costs`.
    anchor
        A good rate of Adam and its batch size.

    Raises
    ------
    ValueError
        If samples of a batch see each other, or the loss has no curvature or is not convex in the outputs.
    """
    _require_separable(problem)
    study = _Study(problem, sizes, effort, rng, work)
    top, sharpest = study.top(), study.sharpest()
    samples = study.samples(top)
    bracket, variance = measured_bracket(top, samples, problem.unit), study.variance(top, samples.grams)
    batches, dim = study.batches(BatchLaw(samples.statistics, problem.unit)), problem.objective.dim
    each = zip(sizes, batches, strict=True)
    rates = tuple(rates_at(n, batch, bracket, variance, anchor, dim) for n, batch in each)
    noise = study.noise()
    limits = study.limits(own, float(sharpest.values[0]), noise)
    return Linearised(
        bracket=bracket,
        hessian=float(sharpest.values[0]),
        hessian_bound=float(sharpest.bounds[0]),
        variance=variance,
        rates=rates,
        crossover=bracket.crossover(),
        crossover_along_top=bracket.crossover_along_top(),
        noise=noise.scales,
        own=limits,
        anchor=anchor,
        products=study.products,
    )


class _Study:
    """The measurements, one after the other."""

    def __init__(
        self,
        problem: Problem,
        sizes: Sequence[int],
        effort: Effort,
        rng: np.random.Generator,
        work: Work,
    ) -> None:
        self.problem, self.sizes, self.effort, self.rng = problem, sizes, effort, rng
        self.objective, self.products, self.work = problem.objective, 0.0, work

    def top(self) -> Extremes:
        count = min(self.effort.directions, self.objective.dim)
        with self.work.part("top of the Gauss-Newton matrix") as done:
            return self._extremes(gauss_newton(self.objective), count, done)

    def sharpest(self) -> Extremes:
        with self.work.part("top of the Hessian") as done:
            return self._extremes(hessian(self.objective), 1, done)

    def samples(self, top: Extremes) -> SampleDirections:
        with self.work.part("single samples"):
            return sample_directions(
                self.objective,
                top.vectors,
                self.rng,
                probes=_OWN,
                heavy=min(self.effort.heavy, self.problem.samples),
            )

    def batches(self, law: BatchLaw) -> list[BatchEigenvalue]:
        """Return the largest eigenvalues by theory alone, and report progress: it takes seconds for any network."""
        found, count = list[BatchEigenvalue](), len(self.sizes)
        with self.work.part(BY_THEORY) as done:
            for place, size in enumerate(self.sizes):
                found.append(law.at(size, self.rng, partial(_within, done, place, count)))
                done((place + 1) / count)
        return found

    def noise(self) -> GradientNoise:
        size = max(1, min(_NOISE_SIZE, self.problem.samples // 2))
        with self.work.part("noise of gradients") as done:
            found = gradient_noise(
                self.problem,
                drawn_batches(self.rng, self.problem.samples, size, _NOISY),
                done,
                batches=_NOISY,
            )
        self.products += _NOISY
        return found

    def limits(self, own: Chosen, sharpest: float, noise: GradientNoise) -> OwnLimits:
        with self.work.part("limits of the optimizer") as done:
            found = own_limits(self.problem, own, self.sizes, sharpest, noise, self.rng, done)
        self.products += found.products
        return found

    def variance(self, top: Extremes, grams: SampleGrams) -> Estimate:
        """Mean over the samples of |G_i - G|_F^2, divisor N - 1: |G_i|_F^2 exact, |G|_F^2 in part from probes."""
        unit = self.problem.unit
        with self.work.part("noise of the samples"):
            whole = frobenius(gauss_newton(self.objective), top, self.rng, probes=_PROBES)
        self.products += _PROBES
        factor = self.problem.samples / (self.problem.samples - 1)
        spread = unit**2 * float(grams.squares.mean()) - whole.value**2
        return Estimate(factor * max(spread, 0.0), factor * 2 * whole.value * whole.standard_error)

    def _extremes(self, matrix: Operator, count: int, done: Callable[[float], None]) -> Extremes:
        guess = _STEPS_EACH * count + _STEPS_FIRST
        found = extremes(matrix, self.rng, largest=count, progress=lambda products, _: done(products / guess))
        self.products += found.products
        return found


def _within(done: Callable[[float], None], place: int, count: int, share: float) -> None:
    done((place + share) / count)


def drawn_batches(rng: np.random.Generator, samples: int, size: int, count: int) -> Iterator[Integers]:
    """Random batches: each order of the samples is cut into as many as it holds."""
    order = rng.permutation(samples)
    for _ in range(count):
        if len(order) < size:
            order = rng.permutation(samples)
        yield order[:size]
        order = order[size:]


def costs(own: Chosen, sizes: Sequence[int], effort: Effort) -> dict[str, float]:
    """Guesses of the parts in products with the matrix of all samples."""
    return {
        "top of the Gauss-Newton matrix": _STEPS_EACH * effort.directions + _STEPS_FIRST,
        "top of the Hessian": _STEPS_EACH + _STEPS_FIRST,
        "single samples": _PASSES + effort.directions + effort.heavy + _OWN,
        "noise of the samples": _PROBES,
        "noise of gradients": _NOISY,
        "limits of the optimizer": 1.0 if own.plain else 10.0 * len(sizes),
    }


def batch_cost(problem: Problem, sizes: Sequence[int], effort: Effort) -> float:
    """Cost of `batch_curvature`, in products over all samples."""
    return sum(effort.batches * _STEPS_FIRST * size / problem.samples for size in sizes)


def require_effort(effort: Effort) -> None:
    """Refuse what is too little.

    Raises
    ------
    ValueError
        If a number is below the least.
    """
    for name, least in _LEAST._asdict().items():
        if getattr(effort, name) < least:
            raise ValueError(f"{name} must be at least {least}, got {getattr(effort, name)}")


def _require_separable(problem: Problem) -> None:
    if not problem.objective.separable:
        raise ValueError(
            f"a plan needs a loss that is a mean of losses of single samples, got another: {problem.objective.coupling}"
        )
