"""Small networks in training, and clocks that go as they are told."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import losscurv
from simulate.objectives import Objective
from simulate.operators import hessian
from verify.practice.watch import CurvatureRecord, Watcher

LOSS = nn.CrossEntropyLoss()


class Clock:
    """Seconds that pass when somebody says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def free() -> float:
    """Nothing takes any time."""
    return 0.0


def net(*, seed: int = 0, mixing: bool = False) -> nn.Module:
    """A perceptron of double precision; `mixing` with batch normalisation and dropout."""
    torch.manual_seed(seed)
    inner = [nn.BatchNorm1d(5), nn.Tanh(), nn.Dropout(0.3)] if mixing else [nn.Tanh()]
    return nn.Sequential(nn.Linear(4, 5), *inner, nn.Linear(5, 3)).double()


def watched(model: nn.Module, loss: Any = LOSS, *, rate: float = 0.1, **options: Any) -> Any:
    """A watcher of plain descent that measures at every step it is told of."""
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    return losscurv.watch(optimizer, model, loss, **{"every": 1, "clock": free, **options})


def images(count: int = 96, seed: int = 1) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(count, 4, generator=generator, dtype=torch.float64)
    return inputs, torch.randint(3, (count,), generator=generator)


def batches(count: int, size: int = 16) -> list[tuple[Tensor, Tensor]]:
    inputs, targets = images()
    generator = torch.Generator().manual_seed(2)
    chosen = [torch.randint(len(inputs), (size,), generator=generator) for _ in range(count)]
    return [(inputs[rows], targets[rows]) for rows in chosen]


def descend(model: nn.Module, optimizer: Any, loss: Any, inputs: Any, targets: Any) -> None:
    optimizer.zero_grad()
    loss(model(inputs), targets).backward()
    optimizer.step()


def train(
    watcher: Watcher | None, model: nn.Module, optimizer: Any, data: Any, loss: Any = LOSS,
    look: Callable[[CurvatureRecord], None] = lambda _: None,
) -> None:  # fmt: skip
    for inputs, targets in data:
        descend(model, optimizer, loss, inputs, targets)
        found = None if watcher is None else watcher.step(inputs, targets)
        if found is not None:
            look(found)


def trained(model: nn.Module, data: Any, *, rate: float = 0.1, **options: Any) -> Any:
    """A watcher of a training on these batches."""
    watcher = watched(model, rate=rate, **options)
    train(watcher, model, watcher._optimizer, data)
    return watcher


def spectrum(
    model: nn.Module, data: Any, *, loss: Any = LOSS, training: bool = False, added: float = 0.0
) -> Any:
    """Eigenvalues of the dense Hessian, of which `added` is on the diagonal, ascending."""
    matrix = hessian(Objective(model, [data], loss, training=training)).dense().numpy()
    return np.linalg.eigvalsh(matrix) + added


def top(model: nn.Module, data: Any, *, loss: Any = LOSS, training: bool = False) -> float:
    """The largest of them."""
    return float(spectrum(model, data, loss=loss, training=training)[-1])


def require_eigenvalue(value: float | None, error: float | None, exact: Any) -> bool:
    """A Ritz value: within its residual of an eigenvalue, and not above the largest; whether it is that one."""
    assert error <= 0.02 * abs(value)
    assert np.abs(exact - value).min() <= error and value <= exact[-1] * (1 + 1e-9)
    return bool(exact[-1] - value <= error)


def require_top(value: float | None, error: float | None, exact: float) -> None:
    """The largest eigenvalue to within the residual."""
    assert require_eigenvalue(value, error, np.array([exact]))
