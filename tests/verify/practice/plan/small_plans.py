"""A network whose samples differ in weight, and its stability limits."""

from typing import Any

import numpy as np
import torch
from torch import nn

from verify.practice.limits import Linearised, linearised
from verify.practice.loading import Problem, problem

N, SIZES = 14, [14, 1, 2, 6]


def small_network(**options: Any) -> Problem:
    with torch.random.fork_rng():
        torch.manual_seed(1)
        net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 3)).double()
        scale = torch.linspace(0.3, 3.0, N, dtype=torch.float64)[:, None]
        x, y = scale * torch.randn(N, 3, dtype=torch.float64), torch.randint(0, 3, (N,))
    return problem(net, (x, y), dtype="float64", **options)


def curvature_of(given: Problem, sizes: list[int], **options: Any) -> Linearised:
    """Return stability limits at batch sizes in any order."""
    return linearised(given, sorted(sizes), np.random.default_rng(0), **options)
