"""Differences of the loss of a model, of its outputs, and of the loss of outputs: by calls of the model alone."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

ALL = slice(None)


class Differences:
    def __init__(
        self, model: Any, inputs: Any, loss: Any, parameters: Sequence[Tensor], *, step: float = 1e-4
    ) -> None:
        self.model, self.inputs, self.loss, self.parameters = model, inputs, loss, parameters
        self.targets: Any = None
        self.step = step

    def called(self, model: Any, rows: slice = ALL) -> Tensor:
        inputs = tree_map(lambda tensor: tensor[rows].clone(), self.inputs)
        if not isinstance(model, nn.Module):
            return model(self.parameters, inputs)
        if isinstance(inputs, dict):
            return model(**inputs)
        return model(*inputs) if isinstance(inputs, tuple) else model(inputs)

    def at(self, vector: Tensor, ask: Callable[[], Any]) -> Any:
        """Return the result of `ask` with the parameters moved along a vector; restore them afterwards."""
        state = self.model.state_dict() if isinstance(self.model, nn.Module) else {}
        tensors = [*state.values(), *(p.detach() for p in self.parameters)]
        before = [tensor.clone() for tensor in tensors]
        parts = vector.split([p.numel() for p in self.parameters])
        with torch.random.fork_rng(), torch.no_grad():
            for p, change in zip(self.parameters, parts, strict=True):
                p.add_(change.view(p.shape), alpha=self.step)
            answer = ask()
            for tensor, value in zip(tensors, before, strict=True):
                tensor.copy_(value)
        return answer

    def loss_at(self, vector: Tensor, rows: slice = ALL) -> float:
        targets = tree_map(lambda tensor: tensor[rows], self.targets)
        return self.at(vector, lambda: float(self.loss(self.called(self.model, rows), targets)))

    def slope(self, vector: Tensor) -> float:
        return (self.loss_at(vector) - self.loss_at(-vector)) / (2 * self.step)

    def bend(self, vector: Tensor, rows: slice = ALL) -> float:
        """v'Hv."""
        up, here, down = (self.loss_at(sign * vector, rows) for sign in (1, 0, -1))
        return (up - 2 * here + down) / self.step**2

    def cross(self, left: Tensor, right: Tensor) -> float:
        """w'Hv."""
        return (self.bend(left + right) - self.bend(left - right)) / 4

    def outputs(self, vector: Tensor) -> Tensor:
        return self.at(vector, lambda: self.called(self.model).clone())

    def tangent(self, vector: Tensor) -> Tensor:
        """Jv."""
        return (self.outputs(vector) - self.outputs(-vector)) / (2 * self.step)

    @functools.cached_property
    def start(self) -> Tensor:
        return self.outputs(torch.zeros(sum(p.numel() for p in self.parameters), dtype=torch.float64))

    def outer(self, change: Tensor) -> float:
        """v'Gv of Jv, the second difference of the loss along a change of the outputs."""
        with torch.no_grad():
            ends = (self.loss(self.start + s * self.step * change, self.targets) for s in (1, 0, -1))
            up, here, down = map(float, ends)
        return (up - 2 * here + down) / self.step**2
