"""A watcher in the trainers of others, which are played here."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

import losscurv
from tests.verify.practice.watch.small_watchers import LOSS, batches, descend, free, images, net, top
from verify.practice.watch import Watcher, lightning_callback, trainer_callback


class Base:
    """A callback of a library."""

    def on_train_start(self, *_: Any) -> None:
        raise AssertionError("the watcher has a method of its own")

    def on_train_batch_end(self, *_: Any) -> None:
        raise AssertionError("the watcher has a method of its own")

    def on_step_end(self, *_: Any, **__: Any) -> None:
        raise AssertionError("the watcher has a method of its own")


class Wrapped:
    """What a library makes of an optimiser."""

    def __init__(self, optimizer: Any) -> None:
        self.optimizer = optimizer


def make(optimizer: Any, model: nn.Module, **options: Any) -> Watcher:
    return losscurv.watch(optimizer, model, LOSS, every=2, clock=free, **options)


@pytest.mark.parametrize("before", [0, 70])
def test_lightning_measures_after_steps_and_not_between_accumulated_batches(before: int) -> None:
    model, data = net(), batches(8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    callback = lightning_callback(make, base=Base)
    trainer = SimpleNamespace(is_global_zero=True, global_step=before, optimizers=[Wrapped(optimizer)])
    callback.on_train_start(trainer, model)
    for index, batch in enumerate(data):
        if index % 2:
            descend(model, optimizer, LOSS, *batch)
            trainer.global_step += 1
        callback.on_train_batch_end(trainer, model, None, batch, index)

    assert isinstance(callback, Base)
    assert [found.step for found in callback.records] == [1, 3]


def test_lightning_refuses_several_optimisers_and_is_silent_elsewhere() -> None:
    model, data = net(), batches(1)[0]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    callback = lightning_callback(make, base=Base)
    other = SimpleNamespace(is_global_zero=False, global_step=1, optimizers=[optimizer])
    callback.on_train_batch_end(other, model, None, data, 0)
    assert callback.records == ()
    two = SimpleNamespace(is_global_zero=True, global_step=1, optimizers=[optimizer, optimizer])
    with pytest.raises(ValueError, match="module must have one optimizer to be watched, got 2"):
        callback.on_train_batch_end(two, model, None, data, 0)


def test_transformers_measure_the_samples() -> None:
    model, data = net(), batches(4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    callback = trainer_callback(lambda o, m: make(o, m, samples=images()), base=Base)
    args, control = SimpleNamespace(), SimpleNamespace()
    callback.on_step_end(args, SimpleNamespace(is_world_process_zero=False), control, model=model)
    assert callback.records == () and callback.watcher is None
    for batch in data:
        descend(model, optimizer, LOSS, *batch)
        state = SimpleNamespace(is_world_process_zero=True)
        callback.on_step_end(args, state, control, model=model, optimizer=Wrapped(optimizer), more=1)

    assert isinstance(callback, Base) and [found.step for found in callback.records] == [1, 3]
    optimizer.param_groups[0]["lr"] = 0.0
    last = callback.watcher.step()
    assert abs(last.eigenvalue - top(model, images())) <= last.error


def test_without_the_libraries_a_callback_is_an_object() -> None:
    assert type(trainer_callback(make)).__mro__[-1] is object
    assert hasattr(lightning_callback(make), "on_train_batch_end")
