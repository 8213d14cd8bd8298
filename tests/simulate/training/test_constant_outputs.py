"""The best constant output: closed forms against the search, and the search against known least losses."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn

from simulate.training.constant_outputs import constant_loss, constant_output

CLASSES = torch.tensor([0, 0, 0, 1, 2, 2])


def searched(loss: Any, outputs: Tensor, targets: Any) -> float:
    """The same loss behind a function, which has no closed form."""
    return constant_loss(lambda o, t: loss(o, t), outputs, targets)


@pytest.mark.parametrize("weight", [None, torch.tensor([0.1, 3.0, 1.0], dtype=torch.float64)])
@pytest.mark.parametrize("ignored", [-100, 2])
def test_entropy_is_the_least_cross_entropy(weight: Any, ignored: int) -> None:
    loss = nn.CrossEntropyLoss(weight=weight, ignore_index=ignored)
    found = constant_loss(loss, torch.zeros(2, 3), CLASSES)
    assert_allclose(found, searched(loss, torch.zeros(2, 3), CLASSES), rtol=1e-7)


def test_positions_count_as_samples_where_a_class_is_asked_of_each() -> None:
    """The frequencies of a text, not of each of its places."""
    tokens = torch.tensor([[0, 1], [0, 1]])
    assert_allclose(constant_loss(nn.CrossEntropyLoss(), torch.zeros(1, 3, 2), tokens), math.log(2))


def test_variance_is_the_least_squared_error() -> None:
    targets = torch.tensor([[1.0, 2.0], [3.0, -2.0], [4.0, 0.0]])
    found = constant_loss(nn.MSELoss(), torch.ones(1, 2), targets)
    assert_allclose(found, searched(nn.MSELoss(), torch.ones(1, 2), targets), rtol=1e-9)


def test_other_losses_are_searched() -> None:
    few = (torch.tensor([[1.0], [0.0], [0.0], [0.0]]), torch.zeros(1, 1))
    expected = -0.25 * math.log(0.25) - 0.75 * math.log(0.75)
    assert_allclose(constant_loss(nn.BCEWithLogitsLoss(), few[1], few[0]), expected, rtol=1e-9)
    smooth = nn.CrossEntropyLoss(label_smoothing=0.3)
    shares = 0.7 * torch.tensor([3, 1, 2]).double() / 6 + 0.1
    entropy = float(-(shares * shares.log()).sum())
    assert_allclose(constant_loss(smooth, torch.zeros(1, 3), CLASSES), entropy, rtol=1e-9)


def test_a_search_that_runs_off_keeps_what_it_has_seen() -> None:
    """A loss without a bottom, infinite from some point on."""
    found = constant_loss(lambda o, _: torch.log(10 + o.sum()), torch.zeros(1, 1), torch.zeros(4))
    assert found <= math.log(10)


@pytest.mark.parametrize(
    ("loss", "outputs", "targets"),
    [
        (nn.CrossEntropyLoss(), torch.zeros(2, 4), CLASSES),
        (nn.CrossEntropyLoss(weight=torch.tensor([0.1, 3.0, 1.0]).double()), torch.zeros(2, 3), CLASSES),
        (nn.CrossEntropyLoss(), torch.zeros(1, 3, 2), torch.tensor([[0, 1], [0, 1]])),
        (nn.MSELoss(), torch.ones(1, 2), torch.tensor([[1.0, 2.0], [3.0, -2.0], [4.0, 0.0]])),
        (nn.BCEWithLogitsLoss(), torch.zeros(1, 1), torch.tensor([[1.0], [0.0], [0.0], [0.0]])),
    ],
)
def test_the_output_has_the_loss(loss: nn.Module, outputs: Tensor, targets: Tensor) -> None:
    level = constant_output(loss, outputs, targets)
    assert level.shape == outputs.shape[1:]
    wanted = targets.double() if targets.is_floating_point() else targets
    found = loss.double()(level.expand(len(targets), *level.shape), wanted)
    assert_allclose(found, constant_loss(loss, outputs, targets), rtol=1e-7)


def test_what_cannot_be_asked() -> None:
    with pytest.raises(ValueError, match="outputs must be of at least one sample, got shape \\(0, 3\\)"):
        constant_loss(nn.CrossEntropyLoss(), torch.zeros(0, 3), CLASSES)
    with pytest.raises(ValueError, match="loss must be finite for a constant output"):
        constant_loss(lambda o, t: o.sum() * math.inf, torch.ones(1, 3), CLASSES)
