"""Loss along the first eigenvectors of its Hessian, with the parabola of the curvature."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray

from simulate.objectives import Objective
from verify.practice.loading.foreign import forward_passes
from verify.practice.measure.measurement import Eigenvalue, LossLine

LINE_POINTS = 13
"""Points of a line, the parameters as they are among them."""

_RISE = 1.0
"""Rise of the parabola at which a line ends, as a share of the loss."""


def loss_line(
    objective: Objective, vector: NDArray[np.float64], first: Eigenvalue, slope: float
) -> LossLine | None:
    """The loss at theta + s v, to where the parabola of the curvature rises by the loss itself; None where it is flat.

    Parameters
    ----------
    objective
        Of theta.
    vector, first
        v of unit length, (P,), and the eigenvalue that belongs to it.
    slope
        Of the loss along v.

    Examples
    --------
    >>> from torch import nn
    >>> x, net = torch.tensor([[2.0]]), nn.Linear(1, 1, bias=False)
    >>> _ = nn.init.ones_(net.weight)
    >>> objective = Objective(net, (x, torch.tensor([[0.0]])), nn.MSELoss())
    >>> first = Eigenvalue(value=8.0, bound=0.0, converged=True)
    >>> line = loss_line(objective, np.ones(1), first, 8.0)
    >>> line.distance[-1], line.loss[-1], line.parabola[-1]
    (1.0, 16.0, 16.0)
    """
    here = objective.value()
    if not (abs(first.value) > first.bound and here > 0):
        return None
    reach = math.sqrt(2 * _RISE * here / abs(first.value))
    distances = np.linspace(-reach, reach, LINE_POINTS)
    losses = [_loss(objective, float(s) * vector) for s in distances]
    parabola = here + slope * distances + first.value * distances**2 / 2
    return LossLine(
        curvature=first.value,
        distance=tuple(distances.tolist()),
        loss=tuple(each if math.isfinite(each) else None for each in losses),
        parabola=tuple(parabola.tolist()),
    )


def _loss(objective: Objective, step: NDArray[np.float64]) -> float:
    moved = objective.split(torch.as_tensor(step, dtype=objective.dtype, device=objective.device))
    with forward_passes(objective, "a loss"):
        leaves = [leaf + part for leaf, part in zip(objective.leaves, moved, strict=True)]
        own = sum(
            float(objective.criterion(objective.outputs(leaves, batch.inputs), batch.targets)) * batch.factor
            for batch in objective.batches()
        )
    return objective.ranks.sum(own)
