"""Layers of width 0, and inputs without positions, add nothing: what is measured is that of the rest."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from simulate.modules.empirical_kernel import empirical_kernel
from simulate.modules.hessian_variance import quadratic_forms, variance_along
from simulate.modules.sample_grams import sample_grams
from simulate.objectives import Objective
from simulate.operators import gauss_newton, hessian
from tests.simulate.modules.test_mixed_samples import LOSS, assert_curvature, jacobian
from tests.simulate.small_perceptrons import assert_same

X = torch.randn(7, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
Y = torch.arange(7) % 3


class Beside(nn.Module):
    """A network next to a layer of no inputs, to one of no outputs, and to one that is given no positions."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 2), nn.Tanh(), nn.Linear(2, 3))
        self.none, self.nothing, self.nowhere = nn.Linear(0, 3), nn.Linear(4, 0), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        empty = x[:, None, :][:, :0]
        rest = self.nothing(x).sum(1, keepdim=True) + self.nowhere(empty).sum(1)
        return self.net(x) + self.none(x[:, :0]) + rest


def beside() -> Beside:
    """In double precision."""
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(0)
        with pytest.warns(UserWarning, match="zero-element"):
            model = Beside()
    return model.double()


def test_layers_of_width_0_leave_the_curvature_of_the_rest() -> None:
    model = beside()
    objective = Objective(model, (X, Y), LOSS)
    assert_curvature(objective, model, [(X, Y)])
    whole, part = hessian(objective), gauss_newton(objective).dense()
    assert_same(torch.from_numpy(sample_grams(objective).traces).mean(), part.trace())
    vector = torch.ones(objective.dim).double()
    forms = quadratic_forms(objective, vector[:, None])
    assert_same(torch.tensor(forms.mean()), vector @ (whole @ vector))
    assert variance_along(objective, vector) >= 0
    steep = jacobian(model, X)
    assert_same(empirical_kernel(model, X).flatten(2).flatten(0, 1), steep @ steep.mT)
