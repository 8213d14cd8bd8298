"""What has no Kronecker factors, and dampings that are none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from simulate.factors import (
    kfac,
    layers,
)
from simulate.objectives import Objective
from tests.simulate.dense_matrices import rng
from tests.simulate.factors.written_out import (
    N,
    built,
    drawn,
    mixed,
    perceptron,
    tokens,
)


class Elsewhere(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.factor = nn.Parameter(torch.ones(3, dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.factor


class Unused(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.used, self.left = nn.Linear(3, 3).double(), nn.Linear(2, 2).double()

    def forward(self, x: Tensor) -> Tensor:
        return self.used(x)


def _of(model: nn.Module, loss: Any = None, **options: Any) -> Objective:
    return Objective(
        model, (drawn(1, N, 3), drawn(2, N, 3)), nn.MSELoss() if loss is None else loss, **options
    )


@pytest.mark.parametrize(
    ("build", "options", "said"),
    [
        (lambda: _of(Elsewhere()), {}, "model must act by its layers alone, on every sample apart"),
        (
            lambda: _of(built(lambda: nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))), training=True),
            {},
            "drawing nothing, for factors of them",
        ),
        (
            lambda: _of(Unused()),
            {},
            "parameters must have a part in the outputs, got 'left.weight' with none",
        ),
        (
            lambda: _of(built(lambda: nn.Linear(3, 3)), lambda z, y: (z - y).cos().mean()),
            {},
            "loss must be convex in the outputs for factors of the Gauss-Newton matrix, got negative curvature",
        ),
        (
            lambda: _of(built(lambda: nn.Linear(3, 3)).float(), lambda z, y: 1e-12 * (z - y).cos().mean()),
            {},
            "loss must be convex in the outputs for factors of the Gauss-Newton matrix, got negative curvature",
        ),
        (perceptron, {"kind": "exact"}, "kind must be one of gauss-newton, sampled, empirical, got 'exact'"),
        (perceptron, {"sharing": "both"}, "sharing must be one of expand, reduce, got 'both'"),
        (
            perceptron,
            {"kind": "sampled", "seed": 0.5},
            "seed must be an integer >= 0 or a numpy Generator, got 0.5",
        ),
        (
            tokens,
            {"kind": "sampled", "seed": rng()},
            "likelihood must be one of .* for a loss of another kind, got None",
        ),
    ],
)
def test_what_has_no_factors_is_refused(build: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        kfac(build(), **options)


def test_large_layers_without_factors_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "DENSE", 19)
    with pytest.raises(
        ValueError, match=r"at most 19 numbers, got 20 in 'embed.weight'; leave them out by parameters="
    ):
        kfac(mixed())


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda f: f.inverse(0.0), "damping must be finite and positive for the exponent -1.0, got 0.0"),
        (lambda f: f.log_determinant(damping=np.nan), "damping must be finite and positive, got nan"),
        (lambda f: f.power(-1.0), "damping must be finite and positive for the exponent -1.0, got 0.0"),
        (lambda f: f.power(np.inf), "exponent must be finite, got inf"),
        (
            lambda f: f.power(2.0, damping=-1.0),
            "damping must be finite and positive for the exponent 2.0, got -1.0",
        ),
    ],
)
def test_dampings_out_of_their_domain_are_refused(ask: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ask(kfac(perceptron()))
