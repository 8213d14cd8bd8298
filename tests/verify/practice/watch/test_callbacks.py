"""A watcher in the trainers of others, which are played here."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

import losscurv
from tests.verify.practice.watch.small_watchers import LOSS, batches, descend, free, images, net, top
from verify.practice.watch import Watcher, lightning_callback, trainer_callback


class Wrapped:
    """Optimiser wrapped as a library wraps it."""

    def __init__(self, optimizer: Any) -> None:
        self.optimizer = optimizer


def make(optimizer: Any, model: nn.Module, **options: Any) -> Watcher:
    return losscurv.watch(optimizer, model, LOSS, every=2, clock=free, **options)


@pytest.mark.parametrize("before", [0, 70])
def test_lightning_measures_after_steps_and_not_between_accumulated_batches(before: int) -> None:
    model, data = net(), batches(8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    callback = lightning_callback(make, base=dict)
    trainer = SimpleNamespace(is_global_zero=True, global_step=before, optimizers=[Wrapped(optimizer)])
    callback.on_train_start(trainer, model)
    losses = []
    for index, batch in enumerate(data):
        optimizer.zero_grad()
        (LOSS(model(batch[0]), batch[1]) / 2).backward()
        if index % 2:
            optimizer.step()
            trainer.global_step += 1
            losses.append(LOSS(model(batch[0]), batch[1]).item())  # that of the last batch, not of both
        callback.on_train_batch_end(trainer, model, None, batch, index)

    assert isinstance(callback, dict)
    assert [found.step for found in callback.records] == [1, 3]
    assert [found.loss for found in callback.records] == pytest.approx(losses[::2], rel=1e-12)


def test_lightning_refuses_several_optimisers_and_is_silent_elsewhere() -> None:
    model, data = net(), batches(1)[0]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    callback = lightning_callback(make)
    trainer = SimpleNamespace(is_global_zero=False, global_step=1, optimizers=[optimizer, optimizer])
    callback.on_train_batch_end(trainer, model, None, data, 0)
    assert callback.records == ()
    trainer.is_global_zero = True
    with pytest.raises(ValueError, match="only a module with one optimizer can be watched, got 2"):
        callback.on_train_batch_end(trainer, model, None, data, 0)


def test_transformers_measure_the_samples() -> None:
    model, data = net(), batches(4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    callback = trainer_callback(lambda o, m: make(o, m, samples=images()), base=dict)
    args, control = SimpleNamespace(), SimpleNamespace()
    callback.on_step_end(args, SimpleNamespace(is_world_process_zero=False), control, model=model)
    assert callback.records == () and callback.watcher is None
    for batch in data:
        descend(model, optimizer, LOSS, *batch)
        state = SimpleNamespace(is_world_process_zero=True)
        callback.on_step_end(args, state, control, model=model, optimizer=Wrapped(optimizer), more=1)

    assert isinstance(callback, dict) and [found.step for found in callback.records] == [1, 3]
    optimizer.param_groups[0]["lr"] = 0.0
    last = callback.watcher.step()
    assert abs(last.eigenvalue - top(model, images())) <= last.error
