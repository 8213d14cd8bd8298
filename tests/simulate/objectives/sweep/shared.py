"""Models whose parameters stand in several places, or are reached around them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.simulate.objectives.sweep.listing import (
    OUT,
    WIDTH,
    Calls,
    N,
    Swept,
    calls,
    plain,
    sized,
    tokens,
    two,
)


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(4, WIDTH), nn.Linear(WIDTH, 4)
        self.head.weight = self.embed.weight

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.embed(tokens).tanh().mean(1))


def _alias() -> nn.Module:
    model = Calls(lambda m, x: m.b(m.again(m.a(x).tanh()).tanh()), **two())
    model.again = model.a
    return model


def _same_memory(whole: bool) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        model = Calls(lambda m, x: m.b(m.c(m.a(x).tanh()).tanh()), **two(c=nn.Linear(3, 3)))
        model.double()
        values = model.a.weight.data if whole else model.a.weight.data.view(-1)[:3]
        setattr(model.c, "weight" if whole else "bias", nn.Parameter(values))
        return model

    return build


def _aliased_buffer() -> nn.Module:
    model = Calls(lambda m, x: m.b(m.a(x).tanh()) + m.old.sum(), **two()).double()
    model.register_buffer("old", model.a.weight.data)
    return model


def _kept_list() -> nn.Module:
    model = Calls(lambda m, x: m.b(m.a(x).tanh()) * m.kept[0].square().sum(), **two()).double()
    model.kept = [model.a.weight]
    return model


def _outsider() -> nn.Module:
    """Layers in a list, which torch does not know of: constants, as for its optimisers."""
    model = Calls(lambda m, x: m.b(m.hidden[0](x).tanh()), b=nn.Linear(WIDTH, OUT))
    model.hidden = [nn.Linear(WIDTH, WIDTH).double()]
    return model


def _shared_attention() -> nn.Module:
    return Calls(
        lambda m, x: m.b((m.a(x) @ m.a(x).mT / 2).softmax(-1) @ m.a(x))[:, 0],
        **two(),
    )


def _penalty(how: Callable[[nn.Module], Tensor]) -> Callable[[Any], Any]:
    return lambda model: lambda z, y: functional.mse_loss(z, y) + 0.1 * how(model)


BY_OWN = "through the call of the model alone"
MEMORY = "must not share memory"
SQUARED = _penalty(lambda model: sum((p.square().sum() for p in model.parameters()), torch.zeros(())))

SHARED = {
    "tied": Swept(Tied, tokens),
    "tied, by its second name": Swept(Tied, tokens, options={"parameters": "head.weight"}),
    "tied, by the second module": Swept(Tied, tokens, options={"parameters": ["head"]}),
    "tied to its transpose": Swept(
        calls(lambda m, x: m.b(functional.linear(m.a(x).tanh(), m.a.weight.T).tanh()))
    ),
    "layer called twice": Swept(calls(lambda m, x: m.b(m.a(m.a(x).tanh()).tanh()))),
    "layer under two names, by the second": Swept(_alias, options={"parameters": "again"}),
    "weight of a layer, also by itself": Swept(calls(lambda m, x: m.b(m.a(x).tanh()) * m.a.weight.sum())),
    "two sides": Swept(
        calls(lambda m, one, other: m.b(m.a(one).tanh() * m.a(other).tanh())),
        lambda: {"one": torch.randn(N, 3), "other": torch.randn(N, 3)},
    ),
    "one matrix for queries, keys and values": Swept(_shared_attention, sized(2, WIDTH)),
    "list of parameters": Swept(
        lambda: Calls(
            lambda m, x: functools.reduce(lambda h, w: (h @ w).tanh(), m.p, x),
            p=nn.ParameterList([torch.randn(3, 3), torch.randn(3, 3), torch.randn(3, 2)]),
        )
    ),
    "own parameters counted in the call": Swept(
        calls(lambda m, x: m.b(m.a(x).tanh()) + sum(p.square().sum() for p in m.parameters()))
    ),
    "two parameters in one memory": Swept(_same_memory(True), refused=MEMORY),
    "two parameters that overlap": Swept(_same_memory(False), refused=MEMORY),
    "buffer in the memory of a parameter": Swept(_aliased_buffer, refused=MEMORY),
    "parameter spread over a view": Swept(
        lambda: Calls(lambda m, x: m.b(m.a(x).tanh() * m.s), **two(s=nn.Parameter(torch.ones(1).expand(3)))),
        refused="must have memory for each number",
    ),
    "parameter in a list of its own": Swept(_kept_list, refused=BY_OWN),
    "layers torch does not know of": Swept(_outsider),
    "penalty on the weights": Swept(plain(lambda: nn.Linear(3, 2)), loss=SQUARED, refused=BY_OWN),
    "penalty on a weight that is frozen": Swept(
        calls(lambda m, x: m.b(m.a(x).tanh())), loss=SQUARED, options={"parameters": "b"}, refused=BY_OWN
    ),
    "loss with a layer of its own": Swept(
        plain(lambda: nn.Linear(3, 2)),
        loss=lambda _: functools.partial(_transformed, nn.Linear(2, 2).double()),
    ),
}


def _transformed(layer: nn.Module, z: Tensor, y: Tensor) -> Tensor:
    return functional.mse_loss(layer(z).tanh(), y)
