"""Models on which other libraries were reported to be wrong: the curvature is that of differences of gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from simulate.eigenvalues import extremes
from simulate.modules.diagonals import gauss_newton_diagonal, hessian_diagonal
from simulate.modules.empirical_kernel import empirical_kernel
from simulate.modules.hessian_variance import quadratic_forms
from simulate.modules.sample_grams import trace_gauss_newton
from simulate.objectives import Objective
from simulate.operators import gauss_newton, hessian
from tests.simulate.small_perceptrons import assert_same

CROSS_ENTROPY, SQUARES = nn.CrossEntropyLoss(), nn.MSELoss()


def drawn(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=torch.float64)


class Model(nn.Module):
    """Layers by name, and what is done with them."""

    def __init__(self, forward: Callable[..., Any], **parts: Any) -> None:
        super().__init__()
        self._call = forward
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *inputs: Any) -> Any:
        return self._call(self, *inputs)


def small(*between: nn.Module, width: int = 3, outputs: int = 3) -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, width), *(between or (nn.Tanh(),)), nn.Linear(width, outputs))


def settled(self: Any, x: Tensor) -> Tensor:
    """A fixed point, and the derivative of the last step alone."""
    z = x.new_zeros(len(x), 3)
    with torch.no_grad():
        for _ in range(50):
            z = (0.3 * self.inner(z) + self.outer(x)).tanh()
    return (0.3 * self.inner(z) + self.outer(x)).tanh()


def forces(self: Any, x: Tensor) -> Tensor:
    x = x.detach().requires_grad_()
    with torch.enable_grad():
        return torch.autograd.grad(self.net(x).sum(), x, create_graph=True)[0]


def row_by_row(self: Any, x: Tensor) -> Tensor:
    """Products of rows of a gradient, taken by their numbers."""
    slope, x = forces(self, x), x.detach()
    return torch.stack([torch.dot(slope[i, :], x[i, :]) for i in range(len(x))])[:, None]


def gaussian(self: Any, x: Tensor) -> Tensor:
    distance = torch.linalg.norm(x - self.centre, dim=1, keepdim=True)
    return (-distance * distance).exp()


def weight_normed() -> nn.Module:
    model = small()
    for layer in (model[0], model[2]):
        nn.utils.parametrizations.weight_norm(layer)
    return model


class Case(NamedTuple):
    build: Callable[[], nn.Module]
    inputs: Any
    targets: Any
    loss: Any = CROSS_ENTROPY
    training: bool = False

    def model(self) -> nn.Module:
        with torch.random.fork_rng():
            torch.default_generator.manual_seed(0)
            return self.build().double().train(self.training)

    def objective(self, model: nn.Module) -> Objective:
        return Objective(model, (self.inputs, self.targets), self.loss, training=self.training)


X, Y = drawn(9, 4), torch.arange(9) % 3
PAIR = nn.Parameter(torch.tensor([2.0, 3.0, 0.0, 0.0]))
PLACES = torch.tensor([[0, -100], [1, 2], [-100, -100], [2, 0], [1, -100]])

CASES: dict[str, Case] = {
    "batch norm over a layer": Case(lambda: small(nn.BatchNorm1d(3), nn.ReLU()), X, Y, training=True),
    "group norm": Case(
        lambda: nn.Sequential(
            *(nn.Conv2d(1, 4, 2), nn.GroupNorm(2, 4), nn.SiLU(), nn.Flatten(), nn.Linear(16, 2))
        ),
        drawn(4, 1, 3, 3),
        torch.tensor([0, 1, 1, 0]),
    ),
    "weight norm of every layer": Case(weight_normed, X, Y),
    "log-softmax inside": Case(lambda: nn.Sequential(small(), nn.LogSoftmax(1)), X, Y, nn.NLLLoss()),
    "checkpointed": Case(
        lambda: Model(
            lambda self, x: self.above(checkpoint(self.below, x, use_reentrant=False)),
            below=nn.Sequential(nn.Linear(4, 4), nn.Sigmoid()),
            above=nn.Linear(4, 3),
        ),
        X,
        Y,
    ),
    "a value at every step": Case(
        lambda: Model(
            lambda self, x: self.above(self.steps(x)[0]),
            steps=nn.LSTM(2, 2, batch_first=True),
            above=nn.Linear(2, 1),
        ),
        drawn(4, 3, 2),
        drawn(4, 3, 1),
        SQUARES,
    ),
    "adapters, some positions ignored": Case(
        lambda: Model(
            lambda self, x: (self.fixed(x) + x @ self.down.T @ self.up.T).movedim(-1, 1),
            fixed=nn.Linear(4, 3).requires_grad_(False),
            down=nn.Parameter(drawn(1, 4)),
            up=nn.Parameter(drawn(3, 1)),
        ),
        drawn(5, 2, 4),
        PLACES,
    ),
    "product with two zeros": Case(
        lambda: Model(lambda self, x: (self.weight * x).prod(1, keepdim=True), weight=PAIR),
        torch.ones(3, 4).double(),
        torch.ones(3, 1).double(),
        SQUARES,
    ),
    "determinant of equal singular values": Case(
        lambda: Model(
            lambda self, x: x * torch.linalg.det(self.weight), weight=nn.Parameter(2 * torch.eye(3))
        ),
        torch.ones(3, 1).double(),
        torch.zeros(3, 1).double(),
        SQUARES,
    ),
    "rows of a gradient": Case(
        lambda: Model(row_by_row, net=nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1))),
        drawn(4, 4),
        torch.ones(4, 1).double(),
        SQUARES,
    ),
}
REFUSED: dict[str, tuple[Case, str]] = {
    "fixed point, last step alone": (
        Case(lambda: Model(settled, inner=nn.Linear(3, 3), outer=nn.Linear(4, 3)), X, Y),
        "must have the derivatives of their own values",
    ),
    "layer norm in a gradient": (
        Case(
            lambda: Model(forces, net=small(nn.LayerNorm(3), nn.Tanh(), outputs=1)),
            drawn(5, 4),
            torch.zeros(5, 4).double(),
            SQUARES,
        ),
        "must have the derivatives of their own values",
    ),
    "norm at its kink": (
        Case(
            lambda: Model(gaussian, centre=nn.Parameter(torch.ones(1, 4))),
            torch.ones(3, 4).double(),
            torch.zeros(3, 1).double(),
            SQUARES,
        ),
        "must return finite products, got NaN",
    ),
    "several outputs": (
        Case(
            lambda: Model(
                lambda self, u, v: {"class": self.left(u).tanh(), "number": self.right(v)},
                left=nn.Linear(4, 3),
                right=nn.Linear(2, 1),
            ),
            (X, drawn(9, 2)),
            (Y, drawn(9, 1)),
            lambda z, y: functional.cross_entropy(z["class"], y[0]) + SQUARES(z["number"], y[1]),
        ),
        "say which by field",
    ),
}


def by_differences(model: nn.Module, loss: Callable[[], Tensor], step: float = 1e-5) -> Tensor:
    """Hessian from differences of first gradients: it sees what a second backward pass does not."""
    leaves = [p for p in model.parameters() if p.requires_grad]

    def gradient() -> Tensor:
        return torch.cat([g.flatten() for g in torch.autograd.grad(loss(), leaves, materialize_grads=True)])

    rows = list[Tensor]()
    for entries in (leaf.data.view(-1) for leaf in leaves):
        for j, value in enumerate(entries.tolist()):
            entries[j] = value + step
            above = gradient()
            entries[j] = value - step
            rows.append((above - gradient()) / (2 * step))
            entries[j] = value
    return torch.stack(rows)


def jacobian(model: nn.Module, inputs: Tensor) -> Tensor:
    leaves = [p for p in model.parameters() if p.requires_grad]
    outputs = model(inputs).flatten()
    each = (torch.autograd.grad(z, leaves, retain_graph=True, materialize_grads=True) for z in outputs)
    return torch.stack([torch.cat([g.flatten() for g in row]) for row in each]).detach()


@pytest.mark.parametrize("name", CASES)
def test_curvature_is_that_of_differences_of_gradients(name: str) -> None:
    case = CASES[name]
    model = case.model()
    objective = case.objective(model)
    expected = by_differences(model, lambda: case.loss(model(case.inputs), case.targets))
    assert_same(hessian(objective).dense(), expected, 1e-7)
    assert_same(hessian_diagonal(objective), expected.diagonal(), 1e-7)

    steep, outputs = jacobian(model, case.inputs), model(case.inputs).detach()
    bent: Any = torch.autograd.functional.hessian(lambda z: case.loss(z, case.targets), outputs)
    first = steep.mT @ bent.reshape(len(steep), -1) @ steep
    assert_same(gauss_newton(objective).dense(), first)
    assert_same(gauss_newton_diagonal(objective), first.diagonal())
    if case.training:  # samples see each other
        with pytest.raises(ValueError, match="must be in evaluation mode"):
            quadratic_forms(objective, torch.eye(objective.dim, 2).double())
        return
    assert_allclose(trace_gauss_newton(objective), first.trace(), rtol=1e-9, atol=1e-14)
    assert_same(empirical_kernel(model, case.inputs).reshape(len(steep), -1), steep @ steep.mT)


@pytest.mark.parametrize("name", REFUSED)
def test_what_torch_differentiates_wrongly_is_refused(name: str) -> None:
    case, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        hessian(case.objective(case.model())).dense()


def test_eigenvalues_and_products_from_the_left_are_those_of_the_dense_matrix() -> None:
    """Most of the eigenvalues are zero."""
    case = Case(small, X[:3], Y[:3])
    matrix = gauss_newton(case.objective(case.model()))
    dense = matrix.dense()
    found = extremes(matrix, largest=8, tolerance=1e-10)
    assert_allclose(found.values, np.linalg.eigvalsh(dense.numpy())[::-1][:8], rtol=0, atol=1e-9)
    frame = torch.linalg.qr(drawn(matrix.dim, 4))[0]
    assert_same(torch.as_tensor(frame.mT @ matrix), frame.mT @ dense)
    assert_same(torch.as_tensor(frame.numpy().T @ matrix), frame.mT @ dense)
