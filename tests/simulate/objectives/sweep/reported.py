"""Models on which other libraries were reported to be wrong."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from tests.simulate.objectives.sweep.listing import DERIVATIVES, OUT, WIDTH, Calls, N, Swept, calls, plain


def _settled(m: Any, x: Tensor) -> Tensor:
    """A fixed point, and the derivative of the last step alone."""
    z = x.new_zeros(len(x), WIDTH)
    with torch.no_grad():
        for _ in range(50):
            z = (0.3 * m.inner(z) + m.a(x)).tanh()
    return m.b((0.3 * m.inner(z) + m.a(x)).tanh())


def _forces(m: Any, x: Tensor) -> Tensor:
    x = x.detach().requires_grad_()
    with torch.enable_grad():
        return torch.autograd.grad(m.b(m.n(m.a(x)).tanh()).sum(), x, create_graph=True)[0]


def _row_by_row(m: Any, x: Tensor) -> Tensor:
    """Products of rows of a gradient, taken by their numbers."""
    slope, x = _forces(m, x), x.detach()
    return torch.stack([torch.dot(slope[i, :], x[i, :]) for i in range(len(x))])[:, None]


def _gaussian(m: Any, x: Tensor) -> Tensor:
    distance = torch.linalg.norm(x - m.centre, dim=1, keepdim=True)
    return (-distance * distance).exp()


def _adapted() -> nn.Module:
    model = Calls(
        lambda m, x: m.a(x) + x @ m.down.T @ m.up.T,
        a=nn.Linear(WIDTH, OUT),
        down=nn.Parameter(torch.randn(1, WIDTH)),
        up=nn.Parameter(torch.randn(OUT, 1)),
    )
    model.a.requires_grad_(requires_grad=False)
    return model


REPORTED = {
    "log-softmax inside": Swept(plain(lambda: nn.Linear(WIDTH, WIDTH), nn.Tanh, lambda: nn.LogSoftmax(1))),
    "adapters": Swept(_adapted),
    "product with two zeros": Swept(
        lambda: Calls(
            lambda m, x: (m.w * x).prod(1, keepdim=True) + m.w[0],
            w=nn.Parameter(torch.tensor([2.0, 0.0, 0.0])),
        )
    ),
    "determinant of equal singular values": Swept(
        lambda: Calls(lambda m, x: x * torch.linalg.det(m.w), w=nn.Parameter(2 * torch.eye(3)))
    ),
    "rows of a gradient": Swept(calls(_row_by_row, n=nn.Identity)),
    "fixed point, last step alone": Swept(
        calls(_settled, inner=lambda: nn.Linear(WIDTH, WIDTH)), refused=DERIVATIVES
    ),
    "layer norm in a gradient": Swept(calls(_forces, n=lambda: nn.LayerNorm(WIDTH)), refused=DERIVATIVES),
    "norm at its kink": Swept(
        lambda: Calls(_gaussian, centre=nn.Parameter(torch.ones(1, WIDTH))),
        lambda: torch.ones(N, WIDTH),
        refused="must return finite products, got NaN",
    ),
}
