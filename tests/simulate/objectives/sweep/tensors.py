"""Models of all types of tensors, layouts and kinds of modules."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.simulate.objectives.sweep.listing import STILL, Calls, N, Swept, calls, plain, sized, tokens, two

CONSTANT = torch.ones(2, dtype=torch.float64)


def _autocast(back: bool) -> Callable[[], nn.Module]:
    def forward(m: Any, x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            z = m.b(m.a(x.float()).tanh())
        return z.float() if back else z

    return lambda: Calls(forward, **two()).float()


def _transposed_memory() -> nn.Module:
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 2)).double()
    layer: Any = model[0]
    layer.weight = nn.Parameter(layer.weight.data.T.contiguous().T)
    return model


def _half_frozen() -> nn.Module:
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 2))
    model[0].requires_grad_(requires_grad=False)
    return model


class Functor:
    """A function as an object."""

    def __call__(self, p: Any, x: Tensor) -> Tensor:
        return (x @ p[0]).tanh() @ p[1]


def _network(depth: int, p: Any, x: Tensor) -> Tensor:
    for _ in range(depth):
        x = (x @ p[0]).tanh()
    return x @ p[1]


_OWN: dict[str, Any] = {"parameters": lambda: [torch.randn(3, 3).double(), torch.randn(3, 2).double()]}


def _recurrent(kind: type[nn.Module], **options: Any) -> Callable[[], nn.Module]:
    return lambda: Calls(lambda m, x: m.r(x)[0][:, -1], r=kind(2, 2, batch_first=True, **options))


def _complex(m: Any, x: Tensor) -> Tensor:
    return m.b(torch.fft.fft(m.a(x)).abs().square())


def _pairs(m: Any, x: Tensor) -> Tensor:
    turned = torch.view_as_complex(m.w) * torch.view_as_complex(m.a4(x).view(-1, 2, 2))
    return torch.view_as_real(turned.exp()).flatten(1)


def _force(m: Any, x: Tensor) -> Tensor:
    with torch.enable_grad():
        x = x.requires_grad_()
        (slope,) = torch.autograd.grad(m.a(x).tanh().sum(), x, create_graph=True)
    return m.b(slope)


def _products() -> nn.Module:
    return Calls(
        lambda m, x: torch.einsum("ni,ij,nj,jk->nk", x, m.w, x.sin(), m.v).tanh(),
        w=nn.Parameter(torch.randn(3, 3)),
        v=nn.Parameter(torch.randn(3, 2)),
    )


TYPES = {
    "single precision": Swept(lambda: nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 2)).float()),
    "two precisions": Swept(
        lambda: nn.Sequential(nn.Linear(3, 3).double(), nn.Linear(3, 2).float()),
        refused="all float32 or all float64",
    ),
    "mixed precision": Swept(_autocast(back=False), refused="single or double precision, got torch.bfloat16"),
    "complex weights": Swept(
        lambda: Calls(
            lambda m, x: (x.to(m.c.dtype) @ m.c).abs(),
            c=nn.Parameter(torch.randn(3, 2, dtype=torch.complex128)),
        ),
        refused="all float32 or all float64",
    ),
    "complex between": Swept(calls(_complex)),
    "pairs as complex numbers": Swept(
        lambda: Calls(_pairs, a4=nn.Linear(3, 4), w=nn.Parameter(torch.randn(2, 2)))
    ),
    "complex outputs": Swept(
        calls(lambda m, x: torch.fft.fft(m.a(x))),
        loss=lambda _: lambda z, y: z.abs().square().mean(),
        refused="must return real numbers",
    ),
    "complex loss": Swept(
        calls(lambda m, x: m.b(m.a(x).tanh())),
        loss=lambda _: lambda z, y: torch.complex(functional.mse_loss(z, y), z.sum()),
        refused="loss must be one number|real",
    ),
    "meta device": Swept(lambda: nn.Linear(3, 2, device="meta"), refused="on the meta device"),
    "sparse parameter": Swept(
        lambda: Calls(lambda m, x: m.s @ m.a(x).T, **two(s=nn.Parameter(torch.eye(N).to_sparse()))),
        refused="dense parameters",
    ),
    "compiled by script": Swept(
        lambda: torch.jit.script(nn.Sequential(nn.Linear(3, 3), nn.Tanh())), refused="compiled"
    ),
    "embedding with padding": Swept(
        plain(lambda: nn.Embedding(4, 2, padding_idx=0), nn.Flatten, lambda: nn.Linear(6, 2)),
        tokens,
        padding=2,
    ),
    "bags": Swept(
        plain(lambda: nn.EmbeddingBag(4, 3), nn.Tanh, lambda: nn.Linear(3, 2)),
        tokens,
        refused="_embedding_bag_backward' is not implemented",
    ),
    "embedding with sparse gradients": Swept(
        plain(lambda: nn.Embedding(4, 2, sparse=True), nn.Flatten, nn.Tanh), tokens
    ),
    "embedding with lengths bounded": Swept(
        plain(lambda: nn.Embedding(4, 2, max_norm=0.1), nn.Flatten, nn.Tanh), tokens, refused=STILL
    ),
    "mask beside inputs": Swept(
        calls(lambda m, x, mask: m.b(m.a(x).tanh() * mask)),
        lambda: (torch.randn(N, 3), torch.rand(N, 3) > 0.5),
    ),
    "inputs by name": Swept(
        calls(lambda m, left, right: m.b(m.a(left).tanh() * right)),
        lambda: {"left": torch.randn(N, 3), "right": torch.randn(N, 3)},
    ),
    "weight that lies by columns": Swept(_transposed_memory),
    "inputs that lie by columns": Swept(calls(lambda m, x: m.b(m.a(x).tanh())), lambda: torch.randn(3, N).T),
    "channels last": Swept(
        lambda: nn.Sequential(nn.Conv2d(2, 2, 2), nn.Tanh(), nn.Flatten(), nn.Linear(2, 2)).to(
            memory_format=torch.channels_last
        ),
        lambda: torch.randn(N, 2, 2, 2).to(memory_format=torch.channels_last),
    ),
    "scalar parameter": Swept(
        lambda: Calls(lambda m, x: m.b(m.a(x).tanh() * m.s.exp()), **two(s=nn.Parameter(torch.tensor(0.3))))
    ),
    "unused parameter": Swept(
        lambda: Calls(lambda m, x: m.b(m.a(x).tanh()), **two(e=nn.Parameter(torch.ones(2))))
    ),
    "frozen part": Swept(_half_frozen),
    "function": Swept(lambda: functools.partial(_network, 1), options=_OWN),
    "object that is called": Swept(Functor, options=_OWN),
    "function and other tensors": Swept(
        lambda: lambda p, x: (x @ p[0]).tanh() @ p[1] + CONSTANT.sum(), options=_OWN
    ),
    "data parallel": Swept(
        lambda: nn.DataParallel(nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 2))),
        refused="in a DataParallel",
    ),
    "compiled without a compiler": Swept(
        lambda: torch.compile(nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 2)), backend="eager")
    ),
    "long short-term memory": Swept(_recurrent(nn.LSTM), sized(3, 2)),
    "gated recurrent": Swept(_recurrent(nn.GRU), sized(3, 2)),
    "transformer": Swept(
        lambda: Calls(
            lambda m, x: m.t(x).flatten(1),
            t=nn.TransformerEncoderLayer(2, 1, 3, activation="gelu", batch_first=True),
        ),
        sized(2, 2),
    ),
    "layer and group norms": Swept(
        plain(
            lambda: nn.Conv1d(2, 2, 2),
            lambda: nn.GroupNorm(1, 2),
            nn.Tanh,
            nn.Flatten,
            lambda: nn.LayerNorm(4),
        ),
        sized(2, 3),
    ),
    "transposed convolution": Swept(
        plain(lambda: nn.ConvTranspose2d(1, 2, 2), nn.Tanh, nn.Flatten, lambda: nn.Linear(18, 1)),
        sized(1, 2, 2),
    ),
    "bilinear": Swept(
        lambda: Calls(lambda m, x: m.f(x, x.sin()).tanh(), f=nn.Bilinear(3, 3, 2)),
    ),
    "products of tensors": Swept(_products),
    "derivative of a network": Swept(calls(_force)),
    "derivative of a network by func": Swept(
        calls(lambda m, x: m.b(torch.func.vmap(torch.func.grad(lambda one: m.a(one).tanh().sum()))(x)))
    ),
    "many copies by vmap": Swept(
        lambda: Calls(
            lambda m, x: torch.func.vmap(lambda w: (x @ w).tanh())(m.w).sum(0),
            w=nn.Parameter(torch.randn(2, 3, 2)),
        )
    ),
    "learned slope": Swept(plain(lambda: nn.Linear(3, 3), nn.PReLU, lambda: nn.Linear(3, 2))),
}
