r"""The rate below which one's own optimiser is stable on the quadratic at these parameters, gradients being full.

With momentum, Nesterov's momentum and weight decay it follows from the largest eigenvalue of the Hessian alone. Adam
divides by the root of its second moment v, so that the eigenvalue is that of :math:`P^{-1/2} H P^{-1/2}`, and v hangs
on the batch size: here the mean square of the gradient of a batch at these parameters, held fixed,
:math:`g^2 + (1/B - 1/N) \Sigma` element by element. The formulas are those of `verify.practice.step_limits`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from simulate.lanczos import warm_start
from simulate.operators import hessian
from verify.practice.loading import Problem
from verify.practice.plan.gradient_noise import GradientNoise
from verify.practice.plan.optimizers import Chosen
from verify.practice.step_limits import StepLimit, scaled, step_limit, with_decay

_ACCURACY, _LEAST, _STEPS = 0.02, 5, 40
"""Residual that Lanczos may leave in an eigenvalue, as a share of it, and products for one."""

_STRAY = 0.3
"""Length of the random part of a start, where the vector found before has 1."""

_SETTLED = 1e9
"""Steps after which no moment is biased any more."""


@dataclass(frozen=True, kw_only=True)
class OwnLimits:
    """Largest stable rates of one's own optimiser, full gradients.

    Attributes
    ----------
    rule
        The formula, in words, or why there is none.
    rates
        One for each batch size; None where there is none. They differ where the optimiser scales by second moments.
    scaled
        Whether it does.
    products
        Of the Hessian with a vector.
    """

    rule: str
    rates: tuple[float | None, ...]
    scaled: bool
    products: int


def own_limits(
    problem: Problem,
    own: Chosen,
    sizes: Sequence[int],
    top: float,
    noise: GradientNoise,
    rng: np.random.Generator,
    watch: Callable[[float], None] = lambda _: None,
) -> OwnLimits:
    """Limits of an optimiser at some batch sizes.

    Parameters
    ----------
    problem
        A loss that is a mean over samples, each for itself.
    own
        The optimiser.
    sizes
        Batch sizes.
    top
        Largest eigenvalue of the Hessian.
    noise
        Of the gradients.
    rng
        Source of a random start.
    watch
        Called with the share that is done.
    """
    study = _Study(problem, own, top, noise, rng)
    first = study.limit(sizes[0])
    if first.scaling is None:  # the same at every batch size
        rate = study.rate(first)
        return OwnLimits(
            rule=_of_rates(first), rates=(rate,) * len(sizes), scaled=False, products=study.products
        )
    rates = list[float | None]()
    for place, size in enumerate(sizes, start=1):
        rates.append(study.rate(study.limit(size)))
        watch(place / len(sizes))
    return OwnLimits(rule=_of_rates(first), rates=tuple(rates), scaled=True, products=study.products)


def _of_rates(limit: StepLimit) -> str:
    """The formula of the largest eigenvalue at a rate, turned round."""
    return limit.note.replace("/ rate", "/ λ₁")


class _Study:
    """One batch size after the other; Lanczos goes on from the vector found before."""

    def __init__(
        self, problem: Problem, own: Chosen, top: float, noise: GradientNoise, rng: np.random.Generator
    ) -> None:
        self._problem, self._own, self._top, self._noise, self._rng = problem, own, top, noise, rng
        self._vector: Tensor | None = None
        self.products = 0

    def limit(self, size: int) -> StepLimit:
        """Return the limit at a learning rate of 1, with the second moments of batches of one size."""
        parameters = [nn.Parameter(p.detach().clone()) for p in self._problem.objective.leaves()]
        optimizer = self._own.make(parameters, 1.0)
        _settle(optimizer, parameters, _second_moments(self._problem, self._noise, size))
        groups = {id(p): group for group in optimizer.param_groups for p in group["params"]}
        return step_limit(optimizer, [(p, groups[id(p)]) for p in parameters])

    def rate(self, limit: StepLimit) -> float | None:
        """The largest rate; None where there is none, or no positive curvature."""
        if limit.value is None:
            return None
        largest = self._top
        if limit.scaling is not None or any(limit.decay):
            largest = self._largest(limit)
        return limit.value / largest if largest > 0 else None

    def _largest(self, limit: StepLimit) -> float:
        objective = self._problem.objective
        matrix = with_decay(hessian(objective), objective.shapes, limit.decay)
        if limit.scaling is not None:
            matrix = scaled(matrix, objective.shapes, limit.scaling)
        drawn = matrix.vectors(self._rng.standard_normal((1, matrix.dim)))[0]
        start = drawn if self._vector is None else self._vector + _STRAY * drawn / drawn.norm()
        found = warm_start(matrix, start, tolerance=_ACCURACY, least=min(_LEAST, matrix.dim), steps=_STEPS)
        self._vector, self.products = found.vector, self.products + found.products
        return found.value


def _second_moments(problem: Problem, noise: GradientNoise, size: int) -> Sequence[Tensor]:
    """E g_B^2 of every parameter."""
    mean = noise.squares + (1 / size - 1 / problem.samples) * noise.variances
    return problem.objective.split(mean)


def _settle(optimizer: Optimizer, parameters: Sequence[nn.Parameter], moments: Sequence[Tensor]) -> None:
    """The state of Adam after many steps that saw these second moments."""
    for parameter, moment in zip(parameters, moments, strict=True):
        state: dict[str, Any] = optimizer.state[parameter]
        kept = moment.to(parameter).view_as(parameter)
        state |= {"step": torch.tensor(_SETTLED), "exp_avg_sq": kept, "max_exp_avg_sq": kept}
