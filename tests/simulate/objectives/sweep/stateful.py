"""Models that keep something from call to call, or do more than their formula, with losses that do."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrizations, parametrize

from tests.simulate.objectives.sweep.listing import DERIVATIVES, STILL, Calls, Swept, calls, plain, two


class Once(torch.autograd.Function):
    """tanh that may be differentiated once."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        output = x.tanh()
        ctx.save_for_backward(output)
        return output

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, cotangent: Tensor) -> Tensor:
        (output,) = ctx.saved_tensors
        return cotangent * (1 - output**2)


class Twice(torch.autograd.Function):
    """tanh by hand, with derivatives of any order."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.tanh()

    @staticmethod
    def backward(ctx: Any, cotangent: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return cotangent * (1 - x.tanh() ** 2)


class Scaled(torch.autograd.Function):
    """The identity, with its derivative turned round."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, cotangent: Tensor) -> Tensor:
        return -cotangent


class Counting(nn.Module):
    def __init__(self, matters: bool) -> None:
        super().__init__()
        self.a, self.calls, self.matters = nn.Linear(3, 2), 0, matters

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return self.a(x).tanh() * (self.calls if self.matters else 1)


class FirstCall(nn.Module):
    """Normalises by what it is given first."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.scale, self.ready = nn.Linear(3, 2), nn.Parameter(torch.ones(2)), False

    def forward(self, x: Tensor) -> Tensor:
        h = self.a(x)
        if not self.ready:
            self.scale.data = 1 / h.detach().std(0)
            self.ready = True
        return (h * self.scale).tanh()


class Remembering(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell, self.state = nn.GRUCell(3, 2), torch.zeros(1, 2, dtype=torch.float64)

    def forward(self, x: Tensor) -> Tensor:
        h = self.cell(x, self.state.expand(len(x), -1))
        self.state = h[:1].detach()
        return h


class Averaging(nn.Module):
    """Subtracts a moving mean of its own activations, in training."""

    def __init__(self, of_inputs: bool) -> None:
        super().__init__()
        self.a, self.of_inputs = nn.Linear(3, 2), of_inputs
        self.register_buffer("mean", torch.zeros(2))

    def forward(self, x: Tensor) -> Tensor:
        h = self.a(x)
        if self.training:
            new = x[:, :2].mean(0) if self.of_inputs else h.detach().mean(0)
            self.mean = 0.5 * self.mean + 0.5 * new
        return (h - self.mean).tanh()


def _writes(change: Callable[[Any], Any]) -> Callable[[], nn.Module]:
    def forward(m: Any, x: Tensor) -> Tensor:
        with torch.no_grad():
            change(m)
        return m.b(m.a(x).tanh())

    return calls(forward)


def _normed(wrap: Callable[[nn.Module], nn.Module]) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        model = nn.Sequential(wrap(nn.Linear(3, 3).double()), nn.Tanh(), nn.Linear(3, 2).double())
        model.train()
        for _ in range(3):
            model(torch.randn(2, 3, dtype=torch.float64))
        return model

    return build


def _hooked(register: Callable[[Any], Any]) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        model = Calls(lambda m, x: m.b(m.n(m.a(x)).tanh()), **two(n=nn.LayerNorm(3)))
        register(model)
        return model

    return build


def _grad_hook(change: Callable[[Tensor], Tensor]) -> Callable[[], nn.Module]:
    def forward(m: Any, x: Tensor) -> Tensor:
        h = m.a(x).tanh()
        if h.requires_grad:
            h.register_hook(change)
        return m.b(h)

    return calls(forward)


def _patched() -> nn.Module:
    """A layer whose call was replaced, as adapters do."""
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 2))
    layer: Any = model[0]
    plain = layer.forward
    layer.forward = lambda x: plain(x) + plain(x).square()
    return model


class Symmetric(nn.Module):
    def forward(self, weight: Tensor) -> Tensor:
        return weight + weight.T


def _parametrised() -> nn.Module:
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 2))
    parametrize.register_parametrization(model[0], "weight", Symmetric())
    return model


TRAINING: dict[str, Any] = {"options": {"training": True}, "apart": False}

STATEFUL = {
    "batch normalisation": Swept(plain(lambda: nn.Linear(3, 3), lambda: nn.BatchNorm1d(3), nn.Tanh)),
    "batch normalisation in training": Swept(
        plain(lambda: nn.Linear(3, 3), lambda: nn.BatchNorm1d(3), nn.Tanh), **TRAINING
    ),
    "batch normalisation that keeps nothing": Swept(
        plain(lambda: nn.Linear(3, 3), lambda: nn.BatchNorm1d(3, track_running_stats=False), nn.Tanh),
        apart=False,
    ),
    "dropout in training": Swept(plain(lambda: nn.Linear(3, 3), nn.Dropout, nn.Tanh), **TRAINING),
    "spectral norm": Swept(_normed(parametrizations.spectral_norm)),
    "spectral norm in training": Swept(
        _normed(parametrizations.spectral_norm), refused=DERIVATIVES, **TRAINING
    ),
    "weight norm": Swept(_normed(parametrizations.weight_norm)),
    "orthogonal": Swept(_normed(functools.partial(parametrizations.orthogonal, orthogonal_map="cayley"))),
    "parametrised": Swept(_parametrised),
    "call replaced": Swept(_patched),
    "calls counted": Swept(lambda: Counting(matters=False)),
    "calls counted, and used": Swept(lambda: Counting(matters=True), refused="same for the same arguments"),
    "set at the first call": Swept(FirstCall, refused=STILL),
    "state kept from call to call": Swept(Remembering, refused="same for the same arguments"),
    "moving mean of activations": Swept(lambda: Averaging(of_inputs=False), refused=DERIVATIVES, **TRAINING),
    "moving mean of inputs": Swept(lambda: Averaging(of_inputs=True), **TRAINING),
    "weights decayed in the call": Swept(_writes(lambda m: m.a.weight.mul_(0.9)), refused=STILL),
    "frozen weights changed in the call": Swept(
        _writes(lambda m: m.a.weight.mul_(0.9)), options={"parameters": "b"}, refused=STILL
    ),
    "inputs written": Swept(
        calls(lambda m, x: m.b(m.a(x.mul_(0.9)).tanh())), refused="must not write into inputs"
    ),
    "lazy": Swept(lambda: nn.Sequential(nn.LazyLinear(3), nn.Linear(3, 2)), refused="initialised parameters"),
    "hook on outputs": Swept(_hooked(lambda m: m.n.register_forward_hook(lambda _, x, z: z.sin()))),
    "hook on inputs": Swept(_hooked(lambda m: m.n.register_forward_pre_hook(lambda _, x: (x[0].sin(),)))),
    "hook that uses a weight": Swept(
        _hooked(lambda m: m.a.register_forward_hook(lambda layer, x, z: z * layer.weight.sum()))
    ),
    "hook on gradients of a layer": Swept(
        _hooked(lambda m: m.n.register_full_backward_hook(lambda _, x, z: (2 * x[0],))), refused=DERIVATIVES
    ),
    "hook that looks at gradients": Swept(
        _hooked(lambda m: m.n.register_full_backward_hook(lambda _, x, z: None))
    ),
    "gradients clipped": Swept(_grad_hook(lambda g: g.clamp(-1e-3, 1e-3)), refused=DERIVATIVES),
    "gradients cut from their graph": Swept(_grad_hook(lambda g: g.detach()), refused=DERIVATIVES),
    "differentiable once": Swept(calls(lambda m, x: m.b(Once.apply(m.a(x)))), refused="once_differentiable"),
    "differentiable twice by hand": Swept(calls(lambda m, x: m.b(Twice.apply(m.a(x))))),
    "gradient turned round": Swept(calls(lambda m, x: m.b(Scaled.apply(m.a(x)).tanh())), refused=DERIVATIVES),
    "rounded, straight through": Swept(
        calls(lambda m, x: m.b(m.a(x) + ((4 * m.a(x)).round() / 4 - m.a(x)).detach())), refused=DERIVATIVES
    ),
    "part detached": Swept(calls(lambda m, x: m.b(m.a(x).tanh() * m.a(x).detach())), refused=DERIVATIVES),
    "layer without gradients": Swept(calls(lambda m, x: m.b(_without(m.a, x).tanh())), refused=DERIVATIVES),
    "loss with a detached weight": Swept(
        calls(lambda m, x: m.b(m.a(x).tanh())),
        loss=lambda _: lambda z, y: ((z - y).square() * (z - y).abs().detach()).mean(),
        refused=DERIVATIVES,
    ),
    "loss differentiable once": Swept(
        calls(lambda m, x: m.b(m.a(x).tanh())),
        loss=lambda _: lambda z, y: functional.mse_loss(Once.apply(z), y),
        refused="once_differentiable",
    ),
    "loss that changes from call to call": Swept(
        calls(lambda m, x: m.b(m.a(x).tanh())),
        loss=lambda _: _annealed(),
        refused="same for the same arguments",
    ),
    "targets written": Swept(
        calls(lambda m, x: m.b(m.a(x).tanh())),
        loss=lambda _: lambda z, y: functional.mse_loss(z, y.mul_(0.9)),
        refused="must not write into inputs or targets",
    ),
}


def _annealed() -> Callable[[Tensor, Tensor], Tensor]:
    calls = itertools.count(1)
    return lambda z, y: functional.mse_loss(z, y) / next(calls)


def _without(layer: nn.Module, x: Tensor) -> Tensor:
    with torch.no_grad():
        return layer(x)
