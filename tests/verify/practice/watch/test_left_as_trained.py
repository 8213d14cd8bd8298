"""A training that is watched is, to the last bit, the one that is not."""

import random
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import losscurv
from tests.verify.practice.watch.small_watchers import LOSS, batches, free, images, net, train

OPTIMISERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.3),
    "nesterov": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01, weight_decay=0.01),
}


def end(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[Any]:
    """All that goes on: tensors, moments, gradients, modes, and the next random numbers."""
    moments = [v for state in optimizer.state.values() for v in state.values() if isinstance(v, torch.Tensor)]
    tensors = [*model.state_dict().values(), *moments, *(p.grad for p in model.parameters())]
    modes = [(module.training, p.requires_grad) for module in model.modules() for p in module.parameters()]
    numbers = torch.tensor([random.random(), np.random.rand()])  # noqa: NPY002 (what modules of others draw from)
    return [*(t if t is None else t.clone() for t in tensors), torch.tensor(modes), torch.rand(3), numbers]


@pytest.mark.parametrize("name", OPTIMISERS)
@pytest.mark.parametrize("given", [False, True])
def test_training_with_a_watcher_is_training_without_one(name: str, given: bool) -> None:
    ends = []
    for watched in (False, True):
        model, data = net(mixing=True), batches(6)
        optimizer = OPTIMISERS[name](model.parameters())
        random.seed(3)
        np.random.seed(3)  # noqa: NPY002 (what modules of others draw from)
        options = {"every": 2, "samples": images() if given else None, "clock": free}
        watcher = losscurv.watch(optimizer, model, LOSS, **options) if watched else None
        train(watcher, model, optimizer, data)
        ends.append(end(model, optimizer))
        assert watcher is None or [found.outcome for found in watcher.records] == ["measured"] * 3

    assert len(ends[0]) == len(ends[1])
    assert all(torch.equal(one, other) for one, other in zip(*ends, strict=True))


def test_a_measurement_that_fails_leaves_the_model_as_found() -> None:
    model, (inputs, targets) = net(mixing=True), batches(1)[0]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    state = torch.get_rng_state()
    before = end(model, optimizer)

    def failing(outputs: torch.Tensor, _: Any) -> torch.Tensor:
        torch.rand(5)
        return outputs.detach().mean() + 0 * outputs.sum()

    torch.set_rng_state(state)
    with pytest.raises(ValueError, match="derivatives"):
        losscurv.watch(optimizer, model, failing).step(inputs, targets)
    for one, other in zip(before[:-1], end(model, optimizer)[:-1], strict=True):
        assert one is other is None or torch.equal(one, other)
