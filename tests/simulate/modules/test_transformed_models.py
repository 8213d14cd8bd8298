"""Models that transform themselves by `torch.func`: their layers have no sites there, and curvature all the same."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from simulate.factors import kfac
from simulate.modules.diagonals import gauss_newton_diagonal, hessian_diagonal
from simulate.modules.empirical_kernel import empirical_kernel
from simulate.modules.projected import projected
from simulate.modules.sample_grams import trace_gauss_newton
from simulate.modules.sites import covers
from simulate.objectives import Objective
from simulate.operators import gauss_newton, hessian
from tests.simulate.small_perceptrons import assert_same

X = torch.randn(6, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


class Mapped(nn.Module):
    """A network that `vmap` applies to one sample after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2)).double()

    def forward(self, x: Tensor) -> Tensor:
        return torch.vmap(self.net)(x)


class Partly(Mapped):
    """One that maps its first layer alone."""

    def forward(self, x: Tensor) -> Tensor:
        return self.net[2](self.net[1](torch.vmap(self.net[0])(x)))


class Forces(Mapped):
    """The gradient of an energy by the inputs."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.func.vmap(torch.func.grad(lambda row: self.net(row).square().sum()))(x)


def reference(model: nn.Module, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Jacobian, and Hessian of the squared error with its first term, by plain autograd."""
    leaves = list(model.parameters())

    def rows(ends: Tensor) -> Tensor:
        found = [torch.autograd.grad(e, leaves, retain_graph=True, materialize_grads=True) for e in ends]
        return torch.stack([torch.cat([g.flatten() for g in row]) for row in found])

    outputs = model(X)
    slope = torch.autograd.grad((outputs - y).square().mean(), leaves, create_graph=True)
    steep = rows(outputs.flatten())
    return steep, rows(torch.cat([g.flatten() for g in slope])), 2 * steep.mT @ steep / outputs.numel()


@pytest.mark.parametrize("kind", [Mapped, Partly, Forces])
def test_models_that_use_transforms_inside_have_all_of_their_curvature(kind: type[nn.Module]) -> None:
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(0)
        model = kind()
    y = torch.zeros_like(model(X).detach())
    objective = Objective(model, (X, y), nn.MSELoss())
    steep, whole, part = reference(model, y)
    assert not covers(objective)

    assert_same(hessian(objective).dense(), whole)
    assert_same(gauss_newton(objective).dense(), part)
    assert_same(hessian_diagonal(objective), whole.diagonal(), 1e-11)
    assert_same(gauss_newton_diagonal(objective), part.diagonal())
    assert_same(torch.tensor(trace_gauss_newton(objective), dtype=torch.float64), part.trace())
    assert_same(empirical_kernel(model, X).flatten(2).flatten(0, 1), steep @ steep.mT)
    frame = torch.eye(objective.dim, 4).double().roll(5, 0)
    assert_same(projected(objective, frame).hessian, frame.mT @ whole @ frame, 1e-11)
    with pytest.raises(ValueError, match="model must act by its layers alone"):
        kfac(objective)
