"""Update rules for many networks at once: gradient descent with two kinds of momentum, and Adam.

Parameters are stacks, (n, ...): n networks, each with a rate of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Rule:
    """Update rule as in `torch.optim`, for a stack of networks with a rate of their own each.

    Attributes
    ----------
    momentum
        Share of the last direction that is kept, in [0, 1); beta_1 of Adam.
    averaged
        Whether the direction is an average of gradients, with weights (1 - momentum) momentum^k, in place of a sum
        with weights momentum^k (dampening of torch); a sum is 1 / (1 - momentum) times as long in the end.
    second
        beta_2: the directions are divided by the root of an average of squared gradients plus `damping`, both
        averages corrected for their start at 0. None: they are not divided.
    damping
        Added to that root.
    squared_start
        Whether averages of squares start at the square of the first gradient in place of 0, as in GI-Adam (Kalra and
        Barkeshli 2024, arXiv 2406.09405), still corrected as if from 0.

    Raises
    ------
    ValueError
        If a share is not in [0, 1), or the damping is not positive.

    Examples
    --------
    A gradient of 2 at every step: the sum grows towards 4, the average stays at 2, and Adam's root makes it 1.

    >>> g = [torch.full((1, 1), 2.0)]
    >>> for rule in (Rule(momentum=0.5), Rule(momentum=0.5, averaged=True), Rule(momentum=0.5, second=0.9)):
    ...     memory, w = Memory(), [torch.zeros(1, 1)]
    ...     for _ in range(3):
    ...         memory = rule.step_(w, g, torch.ones(1), memory)
    ...     print(round(w[0].item(), 4))
    -8.5
    -6.0
    -3.0
    """

    momentum: float = 0.0
    averaged: bool = False
    second: float | None = None
    damping: float = 1e-8
    squared_start: bool = False

    def __post_init__(self) -> None:
        for name, share in (("momentum", self.momentum), ("second", self.second)):
            if share is not None and not 0 <= share < 1:
                raise ValueError(f"{name} must be in [0, 1), got {share}")
        if not self.damping > 0:
            raise ValueError(f"damping must be positive, got {self.damping}")

    @property
    def plain(self) -> bool:
        """Whether a step is the rate times the gradient."""
        return not self.momentum and self.second is None

    @torch.no_grad()
    def step_(
        self, parameters: Sequence[Tensor], gradients: Sequence[Tensor], rates: Tensor, memory: Memory
    ) -> Memory:
        """Move parameters, each (n, ...), in place at rates (n,); return the memory for the next step.

        Numbers below the smallest normal number become 0: next to a parameter they have no effect, and a processor
        takes twenty times as long for one.
        """
        before = sys.float_info.min / 2 == 0.0
        torch.set_flush_denormal(True)  # on this thread, where the processor can; afterwards as before
        try:
            steps, first, second = memory.steps + 1, list(memory.first), list(memory.second)
            if self.second is None:
                moves, weight = self._directions(gradients, first), -1
            else:
                moves, weight = self._adam(gradients, first, second, steps), 1
            for p, move in zip(parameters, moves, strict=True):
                p.addcmul_(per_network(rates, p), move, value=weight)
            return Memory(steps, first, second)
        finally:
            torch.set_flush_denormal(before)

    def _directions(self, gradients: Sequence[Tensor], averages: list[Tensor]) -> Sequence[Tensor]:
        if not self.momentum:
            return gradients
        if not averages:  # torch starts even an average at the first gradient
            averages += [g.clone() for g in gradients]
        else:
            for held, g in zip(averages, gradients, strict=True):
                held.mul_(self.momentum).add_(g, alpha=1 - self.momentum if self.averaged else 1.0)
        return averages

    def _adam(
        self, gradients: Sequence[Tensor], first: list[Tensor], second: list[Tensor], step: int
    ) -> Sequence[Tensor]:
        """Return the moves of Adam at rate 1, by torch's kernel, which reads memory once."""
        # the kernel knows one rate for all networks, so it moves zeros at rate 1
        grads = [g.contiguous() for g in gradients]  # the kernel takes numbers in memory order
        moved = [torch.zeros_like(g) for g in grads]
        if not first:
            first += [torch.zeros_like(g) for g in grads]
            second += [g.square() if self.squared_start else torch.zeros_like(g) for g in grads]
        steps = torch.full((len(grads),), float(step), dtype=torch.float32, device=grads[0].device).unbind()
        torch.ops.aten._fused_adam_(
            moved, grads, first, second, [], steps, amsgrad=False, maximize=False, lr=1.0,
            beta1=self.momentum, beta2=float(self.second or 0.0), eps=self.damping, weight_decay=0.0,
        )  # fmt: skip
        return moved


class Memory(NamedTuple):
    """State of a rule between steps: number of steps, directions, averages of squared gradients."""

    steps: int = 0
    first: Sequence[Tensor] = ()
    second: Sequence[Tensor] = ()

    def of(self, which: Tensor) -> Memory:
        """Return the memory of some of the networks, by a mask."""
        return Memory(self.steps, [t[which] for t in self.first], [t[which] for t in self.second])


def per_network(numbers: Tensor, like: Tensor) -> Tensor:
    """Return numbers of each network with as many axes as its parameters, so that they multiply these."""
    return numbers.reshape(*numbers.shape, *[1] * (like.ndim - numbers.ndim))


SGD = Rule()
MOMENTUM = Rule(momentum=0.9)
AVERAGED = Rule(momentum=0.9, averaged=True)
ADAM = Rule(momentum=0.9, second=0.999)
