"""Models that keep something from call to call, or do more than their formula, with losses that do."""

import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrizations, parametrize

from tests.simulate.objectives.sweep.listing import DERIVATIVES, STILL, Swept, calls, plain


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


def _counting(m: Any, x: Tensor) -> Tensor:
    m.count = getattr(m, "count", 0) + 1
    return m.a(x)


def _writing(change: Callable[[Any], Any]) -> Callable[[], Any]:
    def forward(m: Any, x: Tensor) -> Tensor:
        with torch.no_grad():
            change(m)
        return m.b(m.a(x).tanh())

    return calls(forward)


def _replace(m: Any) -> None:
    """As what normalises by its first inputs does."""
    m.a.bias.data = m.a.bias + 0.1


def _normed(wrap: Callable[[nn.Module], nn.Module]) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        model = nn.Sequential(wrap(nn.Linear(3, 3).double()), nn.Tanh(), nn.Linear(3, 2).double())
        model.train()
        for _ in range(3):
            model(torch.randn(2, 3, dtype=torch.float64))
        return model

    return build


def _hooked(register: Callable[[Any], Any]) -> Callable[[], Any]:
    def build() -> nn.Module:
        model = calls(lambda m, x: m.b(m.n(m.a(x)).tanh()), n=lambda: nn.LayerNorm(3))()
        register(model)
        return model

    return build


def _grad_hook(change: Callable[[Tensor], Tensor]) -> Callable[[], Any]:
    def forward(m: Any, x: Tensor) -> Tensor:
        h = m.a(x).tanh()
        if h.requires_grad:
            h.register_hook(change)
        return m.b(h)

    return calls(forward)


def _patched(model: Any) -> None:
    """A layer whose call was replaced, as adapters do."""
    known = model.n.forward
    model.n.forward = lambda x: known(x) + known(x).square()


class Symmetric(nn.Module):
    def forward(self, weight: Tensor) -> Tensor:
        return weight + weight.T


def _annealed(_: Any) -> Callable[[Tensor, Tensor], Tensor]:
    calls = itertools.count(1)
    return lambda z, y: functional.mse_loss(z, y) / next(calls)


_BATCH = plain(lambda: nn.Linear(3, 3), lambda: nn.BatchNorm1d(3), nn.Tanh)

STATEFUL = {
    "batch normalisation": Swept(_BATCH),
    "batch normalisation in training": Swept(_BATCH, training=True),
    "dropout in training": Swept(plain(lambda: nn.Linear(3, 3), nn.Dropout, nn.Tanh), training=True),
    "spectral norm": Swept(_normed(parametrizations.spectral_norm)),
    "spectral norm in training": Swept(
        _normed(parametrizations.spectral_norm), refused=DERIVATIVES, training=True
    ),
    "weight norm": Swept(_normed(parametrizations.weight_norm)),
    "parametrised": Swept(
        _hooked(lambda m: parametrize.register_parametrization(m.a, "weight", Symmetric()))
    ),
    "call replaced": Swept(_hooked(_patched)),
    "calls counted": Swept(calls(_counting)),
    "calls counted, and used": Swept(
        calls(lambda m, x: _counting(m, x) * m.count), refused="same for the same arguments"
    ),
    "weights replaced in the call": Swept(_writing(_replace), refused=STILL),
    "frozen weights decayed in the call": Swept(
        _writing(lambda m: m.a.weight.mul_(0.9)), parameters="b", refused=STILL
    ),
    "inputs written": Swept(
        calls(lambda m, x: m.b(m.a(x.mul_(0.9)).tanh())), refused="must not write into inputs"
    ),
    "lazy": Swept(plain(lambda: nn.LazyLinear(3)), refused="initialised parameters"),
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
    "differentiable once": Swept(calls(lambda m, x: m.b(Once.apply(m.a(x)))), refused="once_differentiable"),
    "gradient turned round": Swept(calls(lambda m, x: m.b(Scaled.apply(m.a(x)).tanh())), refused=DERIVATIVES),
    "part detached": Swept(calls(lambda m, x: m.b(m.a(x).tanh() * m.a(x).detach())), refused=DERIVATIVES),
    "loss with a detached weight": Swept(
        loss=lambda _: lambda z, y: ((z - y).square() * (z - y).abs().detach()).mean(), refused=DERIVATIVES
    ),
    "loss differentiable once": Swept(
        loss=lambda _: lambda z, y: functional.mse_loss(Once.apply(z), y), refused="once_differentiable"
    ),
    "loss that changes from call to call": Swept(loss=_annealed, refused="same for the same arguments"),
    "targets written": Swept(
        loss=lambda _: lambda z, y: functional.mse_loss(z, y.mul_(0.9)),
        refused="must not write into inputs or targets",
    ),
}
