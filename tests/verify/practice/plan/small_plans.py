"""A network whose samples differ in weight, and plans of it."""

from typing import Any

import torch
from torch import nn

from verify.practice.loading import Problem, problem
from verify.practice.plan import plan_problem
from verify.practice.plan.linearised import Linearised

N, SIZES = 14, [14, 1, 2, 6]


def small_network(**options: Any) -> Problem:
    with torch.random.fork_rng():
        torch.manual_seed(1)
        net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 3)).double()
        scale = torch.linspace(0.3, 3.0, N, dtype=torch.float64)[:, None]
        x, y = scale * torch.randn(N, 3, dtype=torch.float64), torch.randint(0, 3, (N,))
    return problem(net, (x, y), dtype="float64", **options)


def curvature_of(given: Problem, sizes: list[int], **options: Any) -> Linearised:
    """The linearised section of a plan alone."""
    return plan_problem(given, sizes, trials=False, **options).linearised
