"""The loss of the best constant output: closed forms and the search agree."""

import math

import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn

from simulate.training.constant_outputs import constant_loss
from tests.refusals import refusal

CLASSES = torch.tensor([0, 0, 0, 1, 2, 2])
WEIGHTS = torch.tensor([0.1, 3.0, 1.0], dtype=torch.float64)
SHARES = 0.7 * torch.tensor([3, 1, 2]).double() / 6 + 0.1
TARGETS = torch.tensor([[1.0, 2.0], [3.0, -2.0], [4.0, 0.0]])
CASES = {
    "classes": (nn.CrossEntropyLoss(), torch.zeros(2, 3), CLASSES, None),
    "a class that never comes": (nn.CrossEntropyLoss(), torch.zeros(2, 4), CLASSES, None),
    "weighed": (nn.CrossEntropyLoss(weight=WEIGHTS), torch.zeros(2, 3), CLASSES, None),
    "weighed, one ignored": (
        nn.CrossEntropyLoss(weight=WEIGHTS, ignore_index=2), torch.zeros(2, 3), CLASSES, None
    ),
    "positions": (
        nn.CrossEntropyLoss(), torch.zeros(1, 3, 2), torch.tensor([[0, 1], [0, 1]]), math.log(2)
    ),
    "smoothed": (
        nn.CrossEntropyLoss(label_smoothing=0.3), torch.zeros(1, 3), CLASSES, -float((SHARES * SHARES.log()).sum())
    ),
    "squares": (nn.MSELoss(), torch.ones(1, 2), TARGETS, float(TARGETS.double().var(0, correction=0).mean())),
    "bits": (
        nn.BCEWithLogitsLoss(), torch.zeros(1, 1), torch.tensor([[1.0], [0.0], [0.0], [0.0]]),
        -0.25 * math.log(0.25) - 0.75 * math.log(0.75),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_closed_form_and_search_have_the_least_loss(name: str) -> None:
    """A function has no closed form; the frequencies of positions are those of a text, not of each of its places."""
    loss, outputs, targets, expected = CASES[name]
    found = constant_loss(loss, outputs, targets)
    if name != "positions":
        assert_allclose(found, constant_loss(lambda o, t: loss(o, t), outputs, targets), rtol=1e-7)
    if expected is not None:
        assert_allclose(found, expected, rtol=1e-9)


def test_a_search_that_runs_off_keeps_what_it_has_seen() -> None:
    """A loss without a bottom, infinite from some point on."""
    found = constant_loss(lambda o, _: torch.log(10 + o.sum()), torch.zeros(1, 1), torch.zeros(4))
    assert found <= math.log(10)


def test_what_cannot_be_asked() -> None:
    with refusal("outputs must have at least one sample"):
        constant_loss(nn.CrossEntropyLoss(), torch.zeros(0, 3), CLASSES)
    with refusal("loss must be finite for a constant output"):
        constant_loss(lambda o, t: o.sum() * math.inf, torch.ones(1, 3), CLASSES)
