r"""Noise scales of McCandlish et al., from the gradients of small batches.

===========  ==================================================  ========================================
`simple`     :math:`\mathrm{tr}\,\Sigma / |g|^2`                 McCandlish et al. (2018), eq. (2.9)
`curved`     :math:`\mathrm{tr}(H\Sigma) / g'Hg`                 eq. (2.8)
===========  ==================================================  ========================================

g is the gradient of the loss on all data, :math:`\Sigma` the covariance of that of a single sample, divisor N - 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simulate.operators import hessian
from simulate.spectra import Estimate
from verify.practice.loading import Problem

Integers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class NoiseScales:
    """Noise scales, in samples; None where the square of g, or the curvature along it, is not positive."""

    simple: Estimate | None
    curved: Estimate | None


@dataclass(frozen=True, kw_only=True, eq=False)
class GradientNoise:
    """The gradients of small batches.

    Attributes
    ----------
    scales
        What they say in two numbers.
    squares, variances
        Of every parameter, (P,): square of its gradient on all data, and variance of that of a single sample.
    """

    scales: NoiseScales
    squares: Tensor
    variances: Tensor


def gradient_noise(
    problem: Problem,
    drawn: Iterable[Integers],
    watch: Callable[[float], None] = lambda _: None,
    *,
    batches: int,
) -> GradientNoise:
    """Noise of the gradients, from disjoint or random batches of one size.

    Parameters
    ----------
    problem
        A loss that is a mean over samples, each for itself.
    drawn
        Random batches of B < N samples each.
    watch
        Called with the share that is done.
    batches
        How many there are, at least two.

    Examples
    --------
    >>> from verify.practice.loading import problem
    >>> x, y = torch.tensor([[1.0], [1.0], [1.0], [1.0]]), torch.tensor([[1.0], [3.0], [1.0], [3.0]])
    >>> line = torch.nn.Linear(1, 1, bias=False)
    >>> _ = torch.nn.init.zeros_(line.weight)
    >>> given = problem(line, (x, y), loss=torch.nn.MSELoss())
    >>> found = gradient_noise(given, np.array([[0], [1], [2], [3]]), batches=4).scales
    >>> round(found.simple.value, 4), round(found.curved.value, 4)  # gradients -2, -6, -2, -6
    (0.3333, 0.3333)
    """
    objective, samples = problem.objective, problem.samples
    matrix, gradient = hessian(objective), objective.gradient()
    traces, curved, total = list[float](), list[float](), torch.zeros_like(gradient, dtype=torch.float64)
    for place, chosen in enumerate(drawn, start=1):
        off = problem.batch_objective(chosen).gradient() - gradient
        # the mean of B samples, drawn without replacement, has the variance of one times 1/B - 1/N
        factor = 1 / (1 / len(chosen) - 1 / samples)
        traces.append(factor * float(off.double() @ off.double()))
        curved.append(factor * float(off @ (matrix @ off)))
        total += factor * off.double().square()
        watch(place / batches)
    along = float(gradient @ (matrix @ gradient))
    square = float(gradient.double() @ gradient.double())
    return GradientNoise(
        scales=NoiseScales(simple=_over(traces, square), curved=_over(curved, along)),
        squares=gradient.double().square(),
        variances=total / len(traces),
    )


def _over(values: list[float], scale: float) -> Estimate | None:
    if not scale > 0:
        return None
    error = float(np.std(values, ddof=1)) / len(values) ** 0.5
    return Estimate(float(np.mean(values)) / scale, error / scale)
