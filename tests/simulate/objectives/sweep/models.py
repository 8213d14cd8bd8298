"""Models whose parts run again, whose parameters stand in several places, and of all types of tensors."""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.parametrizations import weight_norm
from torch.utils.checkpoint import checkpoint

from tests.simulate.objectives.sweep.listing import (
    DERIVATIVES,
    USUAL,
    WIDTH,
    N,
    Swept,
    calls,
    own,
    plain,
    sized,
    tokens,
    two_sides,
)

# --- parts that run again in the backward pass, or keep what it needs in ways of their own -----------------------


def _again(part: Callable[[Tensor], Any], x: Tensor, *, reentrant: bool = False) -> Any:
    return checkpoint(part, x, use_reentrant=reentrant)


def _within(context: Callable[[], Any]) -> Callable[[], Any]:
    def forward(m: Any, x: Tensor) -> Tensor:
        with context():
            return m.b(m.a(x).tanh())

    return calls(forward)


def _in_half() -> Any:
    return torch.autograd.graph.saved_tensors_hooks(Tensor.half, Tensor.double)


def _hook_that_calls(m: Any, x: Tensor) -> Tensor:
    hidden = m.a(x).tanh()
    if hidden.requires_grad:
        hidden.register_hook(lambda g: g + 0 * m.a(x).detach())
    return m.b(hidden)


def _one_large() -> Tensor:
    """A sample that does what the few that are asked do not."""
    x = torch.randn(N, WIDTH)
    x[3, 0] = 6.0
    return x


def _beside(m: Any, x: Tensor) -> Tensor:
    """A weight is used beside its layer, with some samples."""
    large = x[:, :1] > 5
    return m.b(m.a(x).tanh() + large * m.a.bias if bool(large.any()) else m.a(x).tanh())


RECOMPUTED = {
    "first layer run again": Swept(calls(lambda m, x: m.b(_again(lambda h: m.a(h).tanh(), x)))),
    "whole model run again": Swept(calls(lambda m, x: _again(lambda h: m.b(m.a(h).tanh()), x))),
    "run again with some samples": Swept(
        calls(lambda m, x: m.b(_again(m.a, x) if bool((x > 5).any()) else m.a(x)).tanh()), _one_large
    ),
    "weight used with some samples": Swept(calls(_beside), _one_large),
    "batch normalisation run again": Swept(
        calls(lambda m, x: m.b(_again(lambda h: m.n(m.a(h)).tanh(), x)), n=lambda: nn.BatchNorm1d(WIDTH)),
        training=True,
    ),
    "dropout run again": Swept(
        calls(lambda m, x: m.b(_again(lambda h: functional.dropout(m.a(h).tanh(), 0.5), x))), training=True
    ),
    "weight norm run again": Swept(
        calls(lambda m, x: m.b(_again(m.w, x).tanh()), w=lambda: weight_norm(nn.Linear(3, 3))),
        refused="different number of tensors was saved",
    ),
    "reentrant, first layer": Swept(
        calls(lambda m, x: m.b(_again(m.a, x, reentrant=True).tanh())), refused=DERIVATIVES
    ),
    "reentrant, last layer": Swept(
        calls(lambda m, x: _again(m.b, m.a(x).tanh(), reentrant=True)), refused="incompatible with .grad()"
    ),
    "kept elsewhere": Swept(_within(torch.autograd.graph.save_on_cpu)),
    "kept in half precision": Swept(_within(_in_half), refused=DERIVATIVES),
    "hook that calls a layer": Swept(calls(_hook_that_calls)),
}

# --- on which other libraries were reported to be wrong ----------------------------------------------------------


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
    distance = torch.linalg.norm(x - m.w, dim=1, keepdim=True)
    return (-distance * distance).exp()


def _matrix(*values: float) -> Callable[[], nn.Parameter]:
    return lambda: nn.Parameter(torch.tensor(values))


REPORTED = {
    "product with two zeros": Swept(
        own(lambda m, x: (m.w * x).prod(1, keepdim=True) + m.w[0], w=_matrix(2.0, 0.0, 0.0))
    ),
    "rows of a gradient": Swept(calls(_row_by_row, n=nn.Identity)),
    "fixed point, last step alone": Swept(
        calls(_settled, inner=lambda: nn.Linear(WIDTH, WIDTH)), refused=DERIVATIVES
    ),
    "layer norm in a gradient": Swept(calls(_forces, n=lambda: nn.LayerNorm(WIDTH)), refused=DERIVATIVES),
    "norm at its kink": Swept(
        own(_gaussian, w=_matrix(1.0, 1.0, 1.0)),
        lambda: torch.ones(N, WIDTH),
        refused="must return finite products, got NaN",
    ),
}

# --- parameters that stand in several places, or are reached around them -----------------------------------------


def _changed(change: Callable[[Any], Any], **layers: Callable[[], Any]) -> Callable[[], Any]:
    """A third layer c, and whatever is done with the model before it is used."""

    def build() -> Any:
        model = calls(
            lambda m, x: m.b(m.c(m.a(x).tanh()).tanh()), **{"c": lambda: nn.Linear(3, 3), **layers}
        )()
        change(model.double())
        return model

    return build


def _overlapping(model: Any) -> None:
    model.c.bias = nn.Parameter(model.a.weight.data.view(-1)[:3])


def _tied() -> nn.Module:
    model = own(
        lambda m, x: m.head(m.embed(x).tanh().mean(1)),
        embed=lambda: nn.Embedding(4, WIDTH),
        head=lambda: nn.Linear(WIDTH, 4),
    )()
    model.head.weight = model.embed.weight
    return model


def _listed(model: Any) -> None:
    """As a weight that is kept in a list, which torch does not look into."""
    kept = [model.a.weight]
    model.c.forward = lambda x: x * kept[0].square().sum()


def _penalised(model: nn.Module) -> Any:
    return lambda z, y: functional.mse_loss(z, y) + 0.1 * sum(p.square().sum() for p in model.parameters())


def _transformed(_: Any) -> Any:
    layer = nn.Linear(2, 2).double()
    return lambda z, y: functional.mse_loss(layer(z).tanh(), y)


BY_OWN = "only by calling the model"
MEMORY = "must not share memory"

SHARED = {
    "tied, by its second name": Swept(_tied, tokens, parameters="head.weight"),
    "tied to its transpose": Swept(
        calls(lambda m, x: m.b(functional.linear(m.a(x).tanh(), m.a.weight.T).tanh()))
    ),
    "layer under two names, by the second": Swept(
        _changed(lambda model: setattr(model, "c", model.a)), parameters="c"
    ),
    "two sides": Swept(calls(lambda m, left, right: m.b(m.a(left).tanh() * m.a(right).tanh())), two_sides),
    "list of parameters": Swept(
        own(
            lambda m, x: functools.reduce(lambda h, w: (h @ w).tanh(), m.p, x),
            p=lambda: nn.ParameterList([torch.randn(3, 3), torch.randn(3, 2)]),
        )
    ),
    "two parameters that overlap": Swept(_changed(_overlapping), refused=MEMORY),
    "buffer in the memory of a parameter": Swept(
        _changed(lambda model: model.register_buffer("old", model.a.weight.data)), refused=MEMORY
    ),
    "parameter spread over a view": Swept(
        own(lambda m, x: x * m.w, w=lambda: nn.Parameter(torch.ones(1).expand(3))),
        refused="must not be expanded views",
    ),
    "parameter in a list of its own": Swept(_changed(_listed), refused=BY_OWN),
    "penalty on a weight that is frozen": Swept(loss=_penalised, parameters="b", refused=BY_OWN),
    "loss with a layer of its own": Swept(loss=_transformed),
}

# --- all types of tensors, layouts and kinds of modules ----------------------------------------------------------

CONSTANT = torch.ones(2, dtype=torch.float64)


def _autocast() -> Any:
    return torch.autocast("cpu", dtype=torch.bfloat16)


def _transposed_memory(model: Any) -> None:
    model.a.weight = nn.Parameter(model.a.weight.data.T.contiguous().T)


def _pair() -> list[Tensor]:
    return [torch.randn(3, 3).double(), torch.randn(3, 2).double()]


def _perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 2))


TYPES = {
    "single precision": Swept(lambda: _perceptron().float()),
    "mixed precision": Swept(
        lambda: _within(_autocast)().float(), refused="single or double precision, got torch.bfloat16"
    ),
    "complex weights": Swept(
        own(lambda m, x: (x + 0j) @ m.c, c=lambda: nn.Parameter(torch.randn(3, 2, dtype=torch.complex128))),
        refused="all float32 or all float64",
    ),
    "complex between": Swept(calls(lambda m, x: m.b(torch.fft.fft(m.a(x)).abs().square()))),
    "complex loss": Swept(
        loss=lambda _: lambda z, y: torch.complex(functional.mse_loss(z, y), z.sum()),
        refused="loss must be one number|real",
    ),
    "meta device": Swept(lambda: nn.Linear(3, 2, device="meta"), refused="on the meta device"),
    "sparse parameter": Swept(
        own(lambda m, x: m.s @ x, s=lambda: nn.Parameter(torch.eye(N).to_sparse())),
        refused="dense parameters",
    ),
    "embedding with padding": Swept(
        plain(lambda: nn.Embedding(4, 2, padding_idx=0), nn.Flatten, lambda: nn.Linear(6, 2)),
        tokens,
        padding=2,
    ),
    "embedding with sparse gradients": Swept(
        plain(lambda: nn.Embedding(4, 2, sparse=True), nn.Flatten, nn.Tanh), tokens
    ),
    "weight that lies by columns": Swept(_changed(_transposed_memory)),
    "inputs that lie by columns": Swept(USUAL, lambda: torch.randn(3, N).T),
    "frozen part and unused parameter": Swept(
        _changed(lambda model: model.c.requires_grad_(False), e=_matrix(1.0, 2.0))
    ),
    "function of parameters and other tensors": Swept(
        lambda: lambda p, x: (x @ p[0]).tanh() @ p[1] + CONSTANT.sum(), parameters=_pair
    ),
    "data parallel": Swept(lambda: nn.DataParallel(_perceptron()), refused="got a DataParallel"),
    "long short-term memory": Swept(
        own(lambda m, x: m.r(x)[0][:, -1], r=lambda: nn.LSTM(2, 2, batch_first=True)), sized(3, 2)
    ),
    "derivative of a network by func": Swept(
        calls(lambda m, x: m.b(torch.func.vmap(torch.func.grad(lambda one: m.a(one).tanh().sum()))(x)))
    ),
}
