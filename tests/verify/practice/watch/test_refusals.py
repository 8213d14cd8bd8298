"""Refusals of a watcher, and trainings that go wrong."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import losscurv
from tests.refusals import refusal
from tests.verify.practice.watch.small_watchers import LOSS, batches, net, watched


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"every": 0}, "every must be an integer of at least 1, got 0"),
        ({"every": True}, "every must be an integer of at least 1, got True"),
        ({"batches": 0}, "batches must be an integer of at least 1, got 0"),
        ({"seed": -1}, "seed must be an integer of at least 0, got -1"),
        ({"most": 0.0}, r"most must be a number between 0 and 1, got 0\.0"),
        (
            {"samples": torch.ones(3)},
            r"samples must be a pair \(inputs, targets\), or a mapping with labels, got Tensor",
        ),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], match: str) -> None:
    model = net()
    with refusal(match):
        watched(model, **options)


def test_models_that_cannot_be_watched() -> None:
    model, other = net(), net()
    with refusal("optimizer holds 4 tensors that are not parameters of the model"):
        losscurv.watch(torch.optim.SGD(other.parameters()), model, LOSS)
    with refusal(r"must all be float32 or all float64, got torch.bfloat16"):
        watched(other.bfloat16())
    with refusal("optimizer must step without a closure, got LBFGS"):
        losscurv.watch(torch.optim.LBFGS(model.parameters()), model, LOSS)
    with refusal("optimizer must be a torch optimizer, got Sequential"):
        losscurv.watch(model, model, LOSS)
    model.requires_grad_(False)
    with refusal("optimizer holds no parameter that requires a gradient"):
        watched(model)


@pytest.mark.parametrize(
    ("loss", "count", "match"),
    [
        (LOSS, 0, "targets must hold at least one sample, got none"),
        (LOSS, None, "give inputs and targets to step, or samples to watch; got neither"),
        (lambda o, t: (o[:, 0] - t).square(), 16, r"one number for a batch, its mean, got \(16,\)"),
        (nn.CrossEntropyLoss(reduction="sum"), 16, "a mean over the samples of a batch, got reduction='sum'"),
        (lambda o, t: (o[:, 0] - t).square().sum(), 16, "a mean over the samples of a batch, got their sum"),
    ],
)
def test_batches_and_losses_that_cannot_be_measured(loss: Any, count: int | None, match: str) -> None:
    model, (inputs, targets) = net(), batches(1)[0]
    with refusal(match):
        watched(model, loss).step(*(() if count is None else (inputs[:count], targets[:count])))


def test_a_loss_that_is_no_number_is_a_record() -> None:
    model, data = net(), batches(3)
    watcher = watched(model)
    watcher.step(*data[0])
    found = watcher.step(data[1][0] * math.nan, data[1][1])
    assert found.diverged and found.outcome == "diverged: the loss is nan"
    assert found.eigenvalue is None and found.rates == (0.1,)
    with torch.no_grad():
        model[0].weight[0, 0] = math.inf
    found = watcher.step(*data[2])
    assert found.outcome == "diverged: parameters are not finite" and found.loss is None
    assert [each.diverged for each in watcher.records] == [False, True, True]


def test_a_measurement_that_fails_later_is_one_warning_and_training_goes_on() -> None:
    model, data, fails = net(), batches(4), []

    def loss(outputs: Tensor, targets: Tensor) -> Tensor:
        if fails and outputs.requires_grad:
            raise RuntimeError("out of memory\nwith details")
        return LOSS(outputs, targets)

    watcher = watched(model, loss)
    watcher.step(*data[0])
    fails.append(True)
    with pytest.warns(
        UserWarning, match="step 2 was not measured: out of memory; training continues"
    ) as caught:
        found = [watcher.step(*batch) for batch in data[1:3]]
    assert None not in found and len(caught) == 1
    fails.clear()
    watcher.step(*data[3])
    reason = "not measured: out of memory"
    assert [each.outcome for each in watcher.records] == ["measured", reason, reason, "measured"]
