"""Tasks for rules: a network in a state, its data, an optimiser and batch sizes; and the judge, who trains apart."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer

from benchmarks.rates.networks import SAMPLES, Network, samples_of
from simulate.training.constant_outputs import constant_loss

Make = Callable[[Iterable[nn.Parameter], float], Optimizer]

OPTIMISERS: Mapping[str, tuple[Make, float]] = {
    "sgd": (SGD, 0.1),
    "momentum": (partial(SGD, momentum=0.9), 0.01),
    "adam": (Adam, 1e-3),
    "adamw": (partial(AdamW, weight_decay=0.01), 1e-3),
}
"""Optimisers, as functions of parameters and learning rate, with their usual default rates."""

STATES = ("start", "checkpoint")

SIZES, STEPS = (8, 64), 200
"""Batch sizes, and the number of steps for which a rate is wanted."""

_SEEDS = {"sgd": 0, "momentum": 0, "adam": 0, "adamw": 1}
"""Seed of samples and start. Adam and AdamW differ little in 200 steps, so AdamW has other ones."""

_WARM_STEPS, _WARM_RATE, _WARM_SIZE = 100, 1e-3, 64
"""Training with Adam that leads to the checkpoint."""


@dataclass
class Task:
    """A network in a state, with an optimizer. A rule maps a task to a rate, or None, for each batch size.

    Attributes
    ----------
    model
        In its state, float32. A rule leaves it as it was.
    inputs, targets, loss
        All samples, along the first axis, and the loss, a mean over samples.
    optimiser
        Name in `OPTIMISERS`.
    sizes, steps
        Batch sizes, ascending, and the number of steps for which the rates are wanted.
    seed
        For the order of the rule's batches; the judge has other orders.
    usual
        Usual default rate of the optimiser.
    spent
        Training steps that the optimisers of the rule have taken.
    """

    model: nn.Module
    inputs: Tensor
    targets: Tensor
    loss: Callable[[Tensor, Tensor], Tensor]
    optimiser: str
    sizes: tuple[int, ...] = SIZES
    steps: int = STEPS
    seed: int = 0
    usual: float = field(init=False)
    spent: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._make, self.usual = OPTIMISERS[self.optimiser]

    def optimizer(self, parameters: Iterable[nn.Parameter], rate: float) -> Optimizer:
        """Return a new optimiser, whose steps are counted."""
        made = self._make(parameters, rate)
        made.register_step_post_hook(self._count)
        return made

    def _count(self, *_: Any) -> None:
        self.spent += 1


Rule = Callable[[Task], Mapping[int, float | None]]


@dataclass(frozen=True)
class Ground:
    """Network in a state with its samples.

    Attributes
    ----------
    network, state, optimiser
        Network, one of `STATES`, and name of the optimiser.
    images
        Archive of colour images; None if the network takes other samples.
    """

    network: Network
    state: str
    optimiser: str
    images: str | None = None

    @cached_property
    def data(self) -> tuple[Tensor, Tensor]:
        """Inputs and targets in the form that the loss takes."""
        drawn = samples_of(self.network.source, _SEEDS[self.optimiser], images=self.images)
        return drawn.inputs, self.network.targets(drawn.targets)

    @cached_property
    def model(self) -> nn.Module:
        """Model in its state."""
        model = self.network.built(_SEEDS[self.optimiser])
        if self.state == "checkpoint":
            optimizer = Adam(model.parameters(), lr=_WARM_RATE)
            self._train(model, optimizer, size=_WARM_SIZE, steps=_WARM_STEPS, order=99)
        return model

    def task(self) -> Task:
        """Return the task for a rule."""
        return Task(copy.deepcopy(self.model), *self.data, self.network.loss, self.optimiser)

    @cached_property
    def reference(self) -> float:
        """Loss of the model, or of the best constant output if that is smaller: what a rate must beat."""
        outputs = _outputs(self.model, self.data[0])
        own = float(self.network.loss(outputs, self.data[1]))
        return min(own, constant_loss(self.network.loss, outputs, self.data[1]))

    def judge(self, size: int, order: int, make: Callable[[Any], Optimizer], steps: int = STEPS) -> float:
        """Train with an optimiser on the judge's batches; return the loss of all data in evaluation mode at the end.

        Infinite if the loss is no longer finite.
        """
        model = copy.deepcopy(self.model)
        optimizer = make(model.parameters())
        finite = self._train(model, optimizer, size=size, steps=steps, order=order)
        getattr(optimizer, "eval", lambda: None)()
        loss = float(self.network.loss(_outputs(model, self.data[0]), self.data[1]))
        return loss if finite and math.isfinite(loss) else math.inf

    def _train(self, model: nn.Module, optimizer: Optimizer, *, size: int, steps: int, order: int) -> bool:
        (inputs, targets), done = self.data, 0
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(1000 + order)  # orders of the epochs, and dropout
            model.train()
            while done < steps:
                for chosen in torch.randperm(SAMPLES).split(size)[: steps - done]:
                    optimizer.zero_grad()
                    loss = self.network.loss(model(inputs[chosen]), targets[chosen])
                    if not math.isfinite(loss.item()):
                        return False
                    loss.backward()
                    optimizer.step()
                    done += 1
        return True


def _outputs(model: nn.Module, inputs: Tensor) -> Tensor:
    with torch.no_grad():
        return copy.deepcopy(model).eval()(inputs)
