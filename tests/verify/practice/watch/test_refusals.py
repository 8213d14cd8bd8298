"""What a watcher refuses, and trainings that go wrong."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import losscurv
from tests.verify.practice.watch.small_watchers import LOSS, batches, free, net


def sgd(model: nn.Module) -> Any:
    return torch.optim.SGD(model.parameters(), lr=0.1)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"every": 0}, "every must be an integer of at least 1, got 0"),
        ({"every": -3}, "every must be an integer of at least 1, got -3"),
        ({"every": 2.5}, r"every must be an integer of at least 1, got 2\.5"),
        ({"every": True}, "every must be an integer of at least 1, got True"),
        ({"batches": 0}, "batches must be an integer of at least 1, got 0"),
        ({"start": -1}, "start must be an integer of at least 0, got -1"),
        ({"seed": -1}, "seed must be an integer of at least 0, got -1"),
        ({"most": 0.0}, r"most must be a number between 0 and 1, got 0\.0"),
        ({"most": 1}, "most must be a number between 0 and 1, got 1"),
        ({"training": "yes"}, "training must be True, False or None, got 'yes'"),
        (
            {"samples": torch.ones(3)},
            r"samples must be a pair \(inputs, targets\), or a mapping with labels, got Tensor",
        ),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], match: str) -> None:
    model = net()
    with pytest.raises(ValueError, match=match):
        losscurv.watch(sgd(model), model, LOSS, **options)


def test_optimisers_that_need_a_closure() -> None:
    model = net()
    with pytest.raises(ValueError, match="optimizer must step without a closure, got LBFGS"):
        losscurv.watch(torch.optim.LBFGS(model.parameters()), model, LOSS)
    with pytest.raises(ValueError, match="optimizer must be one of torch, got Sequential"):
        losscurv.watch(model, model, LOSS)


def test_models_that_cannot_be_watched() -> None:
    model, other = net(), net()
    with pytest.raises(ValueError, match="optimizer must hold parameters of the model only, got 4"):
        losscurv.watch(sgd(other), model, LOSS)
    with pytest.raises(ValueError, match=r"must be all float32 or all float64 .* got torch.bfloat16"):
        losscurv.watch(sgd(other), other.bfloat16(), LOSS)
    for p in model.parameters():
        p.requires_grad_(False)
    with pytest.raises(
        ValueError, match="optimizer must hold a parameter that requires a gradient, got none"
    ):
        losscurv.watch(sgd(model), model, LOSS)


def test_batches_and_losses_that_cannot_be_measured() -> None:
    model, (inputs, targets) = net(), batches(1)[0]
    optimizer = sgd(model)
    with pytest.raises(ValueError, match="targets must hold at least one sample, got none"):
        losscurv.watch(optimizer, model, LOSS).step(inputs[:0], targets[:0])
    with pytest.raises(ValueError, match="samples must be given to watch where step is given no inputs"):
        losscurv.watch(optimizer, model, LOSS).step()
    with pytest.raises(ValueError, match=r"loss must be one number for a batch, its mean, got \(16,\)"):
        losscurv.watch(optimizer, model, lambda o, t: (o[:, 0] - t).square()).step(inputs, targets)
    with pytest.raises(
        ValueError, match="loss must be a mean over the samples of a batch, got reduction='sum'"
    ):
        losscurv.watch(optimizer, model, nn.CrossEntropyLoss(reduction="sum"))
    with pytest.raises(ValueError, match="loss must be a mean over the samples of a batch, got their sum"):
        losscurv.watch(optimizer, model, lambda o, t: (o[:, 0] - t).square().sum()).step(inputs, targets)


def test_a_loss_that_is_no_number_is_a_record() -> None:
    model, data = net(), batches(3)
    watcher = losscurv.watch(sgd(model), model, LOSS, every=1, clock=free)
    watcher.step(*data[0])
    found = watcher.step(data[1][0] * math.nan, data[1][1])
    assert found is not None and found.diverged and found.outcome == "diverged: the loss is nan"
    assert found.eigenvalue is None and found.rates == (0.1,)
    with torch.no_grad():
        model[0].weight[0, 0] = math.inf
    found = watcher.step(*data[2])
    assert found is not None and found.outcome == "diverged: parameters are not finite" and found.loss is None
    assert [each.diverged for each in watcher.records] == [False, True, True]


def test_a_measurement_that_fails_later_is_one_warning_and_training_goes_on() -> None:
    model, data, fails = net(), batches(4), []

    def loss(outputs: Tensor, targets: Tensor) -> Tensor:
        if fails and outputs.requires_grad:
            raise RuntimeError("out of memory\nwith details")
        return LOSS(outputs, targets)

    watcher = losscurv.watch(sgd(model), model, loss, every=1, clock=free)
    watcher.step(*data[0])
    fails.append(True)
    with pytest.warns(
        UserWarning, match="step 2 was not measured: out of memory; training goes on"
    ) as caught:
        found = [watcher.step(*batch) for batch in data[1:3]]
    assert None not in found and len(caught) == 1
    fails.clear()
    watcher.step(*data[3])
    reason = "not measured: out of memory"
    assert [each.outcome for each in watcher.records] == ["measured", reason, reason, "measured"]
