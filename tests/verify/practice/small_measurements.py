"""Small networks to be measured, and few probes."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tests.simulate.models_and_data import dense_jacobian
from verify.practice.loading import Problem, problem
from verify.practice.measure.measurement import Number

N, K, TOP = 9, 3, 4


SIGMAS = 5.0
"""Standard errors that an estimate from these seeds may be off."""


def small_data() -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(3)
    return torch.randn(N, 5, generator=draw, dtype=torch.float64), torch.arange(N) % K


def small_net(activation: nn.Module) -> nn.Module:
    net = nn.Sequential(nn.Linear(5, 4), activation, nn.Linear(4, K)).double()
    draw = torch.Generator().manual_seed(4)
    for p in net.parameters():
        p.data = torch.randn(p.shape, generator=draw, dtype=p.dtype)
    return net


def small_problem(activation: nn.Module | None = None, **options: Any) -> Problem:
    return problem(small_net(activation or nn.Tanh()), small_data(), dtype="float64", batch_size=5, **options)


def gauss_newtons(given: Problem) -> np.ndarray:
    """Gauss-Newton matrix J' (diag p - p p') J of every sample, (N, P, P)."""
    objective, x = given.objective, given.inputs
    jacobians = dense_jacobian(objective, x).reshape(len(x), K, -1)
    p = objective.outputs(objective.leaves, x).detach().softmax(1)
    return (jacobians.mT @ (torch.diag_embed(p) - p[:, :, None] * p[:, None, :]) @ jacobians).numpy()


def within(number: Number, expected: float) -> None:
    slack = {"exact": 0.0, "bound": number.error, "standard error": SIGMAS * number.error}[number.kind]
    assert abs(number.value - expected) <= slack + 1e-10 * abs(expected)


def no_constant(name: str) -> None:
    raise AssertionError(f"{name} in JSON")
