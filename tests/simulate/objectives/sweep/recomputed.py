"""Models of which parts run again in the backward pass, or keep what it needs in ways of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.parametrizations import weight_norm
from torch.utils.checkpoint import checkpoint

from tests.simulate.objectives.sweep.listing import DERIVATIVES, OUT, WIDTH, Calls, Swept, calls, sized, two


def _first_layer(act: Callable[[Tensor], Tensor]) -> Callable[[], nn.Module]:
    return calls(lambda m, x: m.b(checkpoint(lambda h: act(m.a(h)), x, use_reentrant=False)))


def _rerun(part: Callable[[nn.Module], Any], x: Tensor, *, reentrant: bool = False) -> Tensor:
    return checkpoint(part, x, use_reentrant=reentrant)


class Again(torch.autograd.Function):
    """A module whose forward pass is run again to go back, twice differentiable or not."""

    @staticmethod
    def forward(ctx: Any, module: nn.Module, twice: bool, x: Tensor, *parameters: Tensor) -> Tensor:
        ctx.module, ctx.twice = module, twice
        ctx.save_for_backward(x)
        return module(x)

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> Any:
        with torch.enable_grad():
            (x,) = ctx.saved_tensors
            x = x if ctx.twice and x.requires_grad else x.detach().requires_grad_()
            by = (x, *ctx.module.parameters())
            found = torch.autograd.grad(ctx.module(x), by, cotangents, create_graph=ctx.twice)
        return None, None, *found


def _again(twice: bool) -> Callable[[], nn.Module]:
    return calls(lambda m, x: m.b(Again.apply(m.a, twice, x, *m.a.parameters()).tanh()))


class Reversible(torch.autograd.Function):
    """x + c sin(x) kept as its output alone, from which the backward pass finds x again."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, twice: bool) -> Tensor:
        output, ctx.twice = x + 0.5 * x.sin(), twice
        ctx.save_for_backward(output)
        return output

    @staticmethod
    def backward(ctx: Any, cotangent: Tensor) -> Any:
        (output,) = ctx.saved_tensors
        output = output if ctx.twice else output.detach()
        x = output
        for _ in range(60):
            x = output - 0.5 * x.sin()
        return cotangent * (1 + 0.5 * x.cos()), None


def _packed(pack: Callable[[Tensor], Any], unpack: Callable[[Any], Tensor]) -> Callable[[], nn.Module]:
    def forward(m: Any, x: Tensor) -> Tensor:
        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            return m.b(m.a(x).tanh())

    return calls(forward)


def _on_cpu(m: Any, x: Tensor) -> Tensor:
    with torch.autograd.graph.save_on_cpu():
        return m.b(m.a(x).tanh())


def _hook_that_calls(m: Any, x: Tensor) -> Tensor:
    hidden = m.a(x).tanh()
    if hidden.requires_grad:
        hidden.register_hook(lambda g: g + 0 * m.a(x).detach())
    return m.b(hidden)


ACTIVATIONS = {
    "tanh": torch.tanh,
    "relu": torch.relu,
}

RECOMPUTATION = {
    **{f"first layer run again, {name}": Swept(_first_layer(act)) for name, act in ACTIVATIONS.items()},
    "middle run again": Swept(
        lambda: nn.Sequential(
            nn.Linear(WIDTH, WIDTH), Calls(lambda m, x: _rerun(m.a, x).tanh(), **two()), nn.Linear(3, OUT)
        )
    ),
    "function of a weight run again": Swept(
        calls(lambda m, x: m.b(_rerun(lambda h: (h @ m.a.weight.T).tanh(), x)))
    ),
    "whole model run again": Swept(calls(lambda m, x: _rerun(lambda h: m.b(m.a(h).tanh()), x))),
    "one inside another": Swept(calls(lambda m, x: m.b(_rerun(lambda h: _rerun(m.a, h.sin()).tanh(), x)))),
    "run again with many samples": Swept(
        calls(lambda m, x: m.b(_rerun(m.a, x).tanh() if len(x) > 3 else m.a(x).tanh()))
    ),
    "shared layer run again": Swept(calls(lambda m, x: m.b(m.a(_rerun(m.a, x).tanh()).tanh()))),
    "convolution run again": Swept(
        lambda: nn.Sequential(
            Calls(lambda m, x: _rerun(m.c, x).tanh(), c=nn.Conv2d(1, 1, 3, padding=1)),
            nn.Flatten(),
            nn.Linear(9, OUT),
        ),
        sized(1, 3, 3),
    ),
    "batch normalisation run again": Swept(
        calls(lambda m, x: m.b(_rerun(lambda h: m.n(m.a(h)).tanh(), x)), n=lambda: nn.BatchNorm1d(WIDTH)),
        options={"training": True},
        apart=False,
    ),
    "dropout run again": Swept(
        calls(lambda m, x: m.b(_rerun(lambda h: functional.dropout(m.a(h).tanh(), 0.5), x))),
        options={"training": True},
        apart=False,
    ),
    "transformer run again": Swept(
        lambda: Calls(
            lambda m, x: _rerun(m.t, x).flatten(1),
            t=nn.TransformerEncoderLayer(2, 1, 3, activation="gelu", batch_first=True),
        ),
        sized(2, 2),
    ),
    "weight norm run again": Swept(
        calls(lambda m, x: m.b(_rerun(lambda h: m.w(h).tanh(), x)), w=lambda: weight_norm(nn.Linear(3, 3))),
        refused="different number of tensors was saved",
    ),
    "reentrant, first layer": Swept(
        calls(lambda m, x: m.b(_rerun(m.a, x, reentrant=True).tanh())), refused=DERIVATIVES
    ),
    "reentrant, last layer": Swept(
        calls(lambda m, x: _rerun(m.b, m.a(x).tanh(), reentrant=True)), refused="incompatible with .grad()"
    ),
    "kept elsewhere": Swept(calls(_on_cpu)),
    "kept in half precision": Swept(
        _packed(lambda t: t.half() if t.is_floating_point() else t, lambda t: t.double()),
        refused=DERIVATIVES,
    ),
    "function that runs a module again": Swept(_again(twice=True)),
    "function that runs a module again, once": Swept(_again(twice=False), refused=DERIVATIVES),
    "input found again from the output": Swept(calls(lambda m, x: m.b(Reversible.apply(m.a(x), True)))),
    "input found again from the output, once": Swept(
        calls(lambda m, x: m.b(Reversible.apply(m.a(x), False))), refused=DERIVATIVES
    ),
    "hook that calls a layer": Swept(calls(_hook_that_calls)),
}
