"""A quadratic, a small network and their optimisers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from verify.practice.schedule import CurvatureSchedule

EIGENVALUES = (0.5, 1.0, 1.5, 3.0, 4.0, 6.0, 7.5, 9.0)
"""Of the quadratic, spread so that no Ritz value stands for half of them."""


def line(eigenvalues: Any = EIGENVALUES) -> tuple[nn.Linear, tuple[Tensor, Tensor]]:
    """Least squares whose Hessian is diagonal with these eigenvalues; the minimum is at 0."""
    values = torch.tensor(eigenvalues, dtype=torch.float64)
    model = nn.utils.skip_init(nn.Linear, len(values), 1, bias=False, dtype=torch.float64)
    nn.init.ones_(model.weight)
    inputs = torch.diag((values * len(values) / 2).sqrt())
    return model, (inputs, torch.zeros(len(values), 1, dtype=torch.float64))


def sgd(model: nn.Module, *, nesterov: bool = False, **options: Any) -> torch.optim.SGD:
    return torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, nesterov=nesterov, **options)


def descend(optimizer: torch.optim.SGD, model: nn.Module, loss: Any, batch: tuple[Any, Any]) -> None:
    optimizer.zero_grad()
    loss(model(batch[0]), batch[1]).backward()
    optimizer.step()


def rates(optimizer: torch.optim.Optimizer) -> list[tuple[float, float]]:
    return [(group["lr"], group["momentum"]) for group in optimizer.param_groups]


def read(schedule: CurvatureSchedule) -> Any:
    assert schedule.last is not None
    return schedule.last
