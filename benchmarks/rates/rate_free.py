"""Optimisers that need no learning rate, at their default settings, by the formulas of their papers.

The published packages are not needed: each optimiser is its update rule. Weight decay is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer


class _RateFree(Optimizer):
    """Optimiser of one group, with a state for each parameter."""

    def __init__(self, parameters: Iterable[nn.Parameter]) -> None:
        super().__init__(parameters, {})
        self.steps = 0
        self.own: list[nn.Parameter] = self.param_groups[0]["params"]
        self.first = [p.detach().clone() for p in self.own]

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Make a step with the gradients that the parameters hold; a closure is not called."""
        del closure
        self.steps += 1
        self.move([torch.zeros_like(p) if p.grad is None else p.grad for p in self.own])

    def move(self, gradients: list[Tensor]) -> None:
        """Change the parameters."""
        raise NotImplementedError


class DoG(_RateFree):
    """Distance over gradients (Ivgi, Hinder and Carmon 2023, arXiv 2302.12022), last iterate.

    The rate is the largest distance from the start so far over the root of the sum of squared gradient norms. The first
    distance is 1e-6 (1 + norm of the parameters).
    """

    def __init__(self, parameters: Iterable[nn.Parameter]) -> None:
        super().__init__(parameters)
        self.far, self.squares = 1e-6 * (1 + _norm(self.first)), 0.0

    def move(self, gradients: list[Tensor]) -> None:
        """Make a step of gradient descent at the present rate."""
        self.far = max(self.far, _norm([p - x for p, x in zip(self.own, self.first, strict=True)]))
        self.squares += _norm(gradients) ** 2
        for p, g in zip(self.own, gradients, strict=True):
            p.sub_(g, alpha=self.far / math.sqrt(self.squares + 1e-8))


class Prodigy(_RateFree):
    """Adam with an estimated distance to the solution as its rate (Mishchenko and Defazio 2023, arXiv 2306.06101).

    The first estimate is 1e-6; betas 0.9 and 0.999, without bias correction, as in the published package.
    """

    def __init__(self, parameters: Iterable[nn.Parameter]) -> None:
        super().__init__(parameters)
        self.estimate, self.gain = 1e-6, 0.0
        self.mean, self.square, self.sum = ([torch.zeros_like(p) for p in self.own] for _ in range(3))

    def move(self, gradients: list[Tensor]) -> None:
        """Update the estimate, then make a step of Adam at the one before."""
        d, kept = self.estimate, math.sqrt(0.999)
        weight = d * d / 1e-6
        self.gain *= kept
        for p, x, g, m, v, s in zip(
            self.own, self.first, gradients, self.mean, self.square, self.sum, strict=True
        ):
            self.gain += weight * float((g * (x - p)).sum())
            m.mul_(0.9).add_(g, alpha=0.1 * d)
            v.mul_(0.999).addcmul_(g, g, value=0.001 * d * d)
            s.mul_(kept).add_(g, alpha=weight)
        if (total := sum(float(s.abs().sum()) for s in self.sum)) > 0:
            self.estimate = max(d, self.gain / total)
        for p, m, v in zip(self.own, self.mean, self.square, strict=True):
            p.addcdiv_(m, v.sqrt().add_(d * 1e-8), value=-d)


class ScheduleFree(_RateFree):
    """Schedule-Free SGD or AdamW (Defazio et al. 2024, arXiv 2405.15682), without warm-up.

    Gradients are taken between the iterate z and the average x of all z; `eval` puts x into the parameters. Default
    rates are 1.0 for SGD and 0.0025 for AdamW, with beta 0.9.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], *, adam: bool = False) -> None:
        super().__init__(parameters)
        self.adam, self.rate = adam, 0.0025 if adam else 1.0
        self.z, self.x = ([p.clone() for p in self.first] for _ in range(2))
        self.square = [torch.zeros_like(p) for p in self.own]

    def move(self, gradients: list[Tensor]) -> None:
        """Make a step of z, average, and put the point of the next gradient into the parameters."""
        for p, g, z, x, v in zip(self.own, gradients, self.z, self.x, self.square, strict=True):
            if self.adam:
                v.mul_(0.999).addcmul_(g, g, value=0.001)
                g = g / (v / (1 - 0.999**self.steps)).sqrt_().add_(1e-8)
            z.sub_(g, alpha=self.rate)
            x.lerp_(z, 1 / self.steps)
            p.copy_(z.lerp(x, 0.9))

    @torch.no_grad()
    def eval(self) -> None:
        """Put the average into the parameters."""
        for p, x in zip(self.own, self.x, strict=True):
            p.copy_(x)


def _norm(parts: list[Tensor]) -> float:
    return math.sqrt(sum(float(part.square().sum()) for part in parts))


RATE_FREE: Mapping[str, tuple[Callable[[Iterable[nn.Parameter]], Optimizer], tuple[str, ...]]] = {
    "DoG": (DoG, ("sgd", "momentum")),
    "Schedule-Free SGD": (ScheduleFree, ("sgd", "momentum")),
    "Prodigy": (Prodigy, ("adam", "adamw")),
    "Schedule-Free AdamW": (lambda own: ScheduleFree(own, adam=True), ("adam", "adamw")),
}
"""Optimisers, and those in whose place they are judged."""
