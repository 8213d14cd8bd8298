"""What does not repeat is refused by the name of its cause; what only comes in another order is not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, RandomSampler, TensorDataset, WeightedRandomSampler

from simulate.objectives import Objective
from simulate.objectives.soundness import require_deterministic
from tests.simulate.models_and_data import BUILDERS, case

DATA = TensorDataset(torch.randn(10, 4, generator=torch.Generator().manual_seed(1)), torch.arange(10) % 3)


@pytest.fixture(autouse=True)
def _drawn_alike() -> Iterator[None]:
    """Loaders and layers draw from the common generator; two orders that are the same by chance would pass."""
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(0)
        yield


class Noise(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.randn_like(x)


def model(*parts: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(4, 5), *parts, nn.Linear(5, 3))


@pytest.mark.parametrize("name", sorted(BUILDERS))
def test_what_repeats_passes(name: str) -> None:
    require_deterministic(case(name).objective())


@pytest.mark.parametrize("training", [False, True])
def test_shuffling_alone_passes(training: bool) -> None:
    loader = DataLoader(DATA, batch_size=3, shuffle=True)
    require_deterministic(Objective(model(), loader, nn.CrossEntropyLoss(), training=training))


def test_batch_normalisation_passes_where_batches_stay() -> None:
    loader = DataLoader(DATA, batch_size=5)
    require_deterministic(Objective(model(nn.BatchNorm1d(5)), loader, nn.CrossEntropyLoss(), training=True))


@pytest.mark.parametrize(
    ("network", "loader", "cause"),
    [
        (model(nn.Dropout(0.3)), DataLoader(DATA, 5), r"dropout in training mode \('1'\)"),
        (
            model(nn.BatchNorm1d(5)),
            DataLoader(DATA, 5, shuffle=True),
            r"shuffles under batch normalisation in training mode \('1'\)",
        ),
        (model(), DataLoader(DATA, 4, shuffle=True, drop_last=True), "drops the last samples"),
        (
            model(),
            DataLoader(DATA, 5, sampler=RandomSampler(DATA, replacement=True)),
            "chooses samples at random",
        ),
        (
            model(),
            DataLoader(DATA, 5, sampler=WeightedRandomSampler([1.0] * 10, 10)),
            "chooses samples at random",
        ),
        (model(Noise()), DataLoader(DATA, 5), "draw random numbers of their own"),
    ],
)
def test_causes_are_named(network: nn.Module, loader: Any, cause: str) -> None:
    with pytest.raises(ValueError, match=f"data and model must give the same loss twice.*{cause}"):
        require_deterministic(Objective(network, loader, nn.CrossEntropyLoss(), training=True))
