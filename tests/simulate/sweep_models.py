"""Models of every kind that people bring, small enough for finite differences, in four families.

Each entry makes a model in double precision with its inputs; `refused` is what an error must say where there is no
right value, `apart` whether single samples have values of their own, and `padding` how many of the first parameters
stand for padding, which by definition has no derivative.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrizations, parametrize
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

N, WIDTH, OUT = 5, 3, 2

DERIVATIVES = "derivatives of their own values"


class Swept(NamedTuple):
    """How a model is made and asked."""

    build: Callable[[], Any]
    inputs: Callable[[], Any] = lambda: torch.randn(N, WIDTH)
    loss: Callable[[Any], Any] = lambda _: nn.MSELoss()
    options: dict[str, Any] = {}  # noqa: RUF012 (a tuple, whose entries nobody changes)
    refused: str = ""
    apart: bool = True
    padding: int = 0


class Calls(nn.Module):
    """Layers, and what is done with them."""

    def __init__(self, forward: Callable[..., Tensor], **layers: Any) -> None:
        super().__init__()
        for name, layer in layers.items():
            setattr(self, name, layer)
        self.how = forward

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        return self.how(self, *args, **kwargs)


def _two(**more: Any) -> dict[str, Any]:
    return {"a": nn.Linear(WIDTH, WIDTH), "b": nn.Linear(WIDTH, OUT), **more}


def _calls(forward: Callable[..., Tensor], **layers: Callable[[], Any]) -> Callable[[], nn.Module]:
    return lambda: Calls(forward, **_two(), **{name: make() for name, make in layers.items()})


def _plain(*layers: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
    return lambda: nn.Sequential(*(make() for make in layers))


def _sized(*shape: int) -> Callable[[], Tensor]:
    return lambda: torch.randn(N, *shape)


def _tokens() -> Tensor:
    return torch.randint(4, (N, 3))


# --- what runs again in the backward pass -------------------------------------------------------------------------


def _first_layer(act: Callable[[Tensor], Tensor]) -> Callable[[], nn.Module]:
    return _calls(lambda m, x: m.b(checkpoint(lambda h: act(m.a(h)), x, use_reentrant=False)))


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
    return _calls(lambda m, x: m.b(Again.apply(m.a, twice, x, *m.a.parameters()).tanh()))


class Reversible(torch.autograd.Function):
    """x + c sin(x) kept as its output alone, from which the backward pass finds x again."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, twice: bool) -> Tensor:
        output, ctx.twice = x + 0.5 * x.sin(), twice
        ctx.save_for_backward(output)
        return output

    @staticmethod
    def backward(ctx: Any, cotangent: Tensor) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
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

    return _calls(forward)


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
    "sigmoid": torch.sigmoid,
    "relu": torch.relu,
    "gelu": functional.gelu,
    "silu": functional.silu,
    "softplus": functional.softplus,
}

RECOMPUTATION = {
    **{f"first layer run again, {name}": Swept(_first_layer(act)) for name, act in ACTIVATIONS.items()},
    "middle run again": Swept(
        lambda: nn.Sequential(
            nn.Linear(WIDTH, WIDTH), Calls(lambda m, x: _rerun(m.a, x).tanh(), **_two()), nn.Linear(3, OUT)
        )
    ),
    "function of a weight run again": Swept(
        _calls(lambda m, x: m.b(_rerun(lambda h: (h @ m.a.weight.T).tanh(), x)))
    ),
    "whole model run again": Swept(_calls(lambda m, x: _rerun(lambda h: m.b(m.a(h).tanh()), x))),
    "one inside another": Swept(_calls(lambda m, x: m.b(_rerun(lambda h: _rerun(m.a, h.sin()).tanh(), x)))),
    "sequence in segments": Swept(
        lambda: Calls(
            lambda m, x: checkpoint_sequential(m.s, 2, x, use_reentrant=False),
            s=nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, OUT)),
        )
    ),
    "activation alone run again": Swept(_calls(lambda m, x: m.b(_rerun(torch.tanh, m.a(x))))),
    "run again with many samples": Swept(
        _calls(lambda m, x: m.b(_rerun(m.a, x).tanh() if len(x) > 3 else m.a(x).tanh()))
    ),
    "shared layer run again": Swept(_calls(lambda m, x: m.b(m.a(_rerun(m.a, x).tanh()).tanh()))),
    "convolution run again": Swept(
        lambda: nn.Sequential(
            Calls(lambda m, x: _rerun(m.c, x).tanh(), c=nn.Conv2d(1, 1, 3, padding=1)),
            nn.Flatten(),
            nn.Linear(9, OUT),
        ),
        _sized(1, 3, 3),
    ),
    "batch normalisation run again": Swept(
        _calls(lambda m, x: m.b(_rerun(lambda h: m.n(m.a(h)).tanh(), x)), n=lambda: nn.BatchNorm1d(WIDTH)),
        options={"training": True},
        apart=False,
    ),
    "dropout run again": Swept(
        _calls(lambda m, x: m.b(_rerun(lambda h: functional.dropout(m.a(h).tanh(), 0.5), x))),
        options={"training": True},
        apart=False,
    ),
    "reentrant, first layer": Swept(
        _calls(lambda m, x: m.b(_rerun(m.a, x, reentrant=True).tanh())), refused=DERIVATIVES
    ),
    "reentrant, last layer": Swept(
        _calls(lambda m, x: _rerun(m.b, m.a(x).tanh(), reentrant=True)), refused="incompatible with .grad()"
    ),
    "kept elsewhere": Swept(_calls(_on_cpu)),
    "kept in half precision": Swept(
        _packed(lambda t: t.half() if t.is_floating_point() else t, lambda t: t.double()),
        refused=DERIVATIVES,
    ),
    "kept as they are": Swept(_packed(lambda t: t, lambda t: t)),
    "function that runs a module again": Swept(_again(twice=True)),
    "function that runs a module again, once": Swept(_again(twice=False), refused=DERIVATIVES),
    "input found again from the output": Swept(_calls(lambda m, x: m.b(Reversible.apply(m.a(x), True)))),
    "input found again from the output, once": Swept(
        _calls(lambda m, x: m.b(Reversible.apply(m.a(x), False))), refused=DERIVATIVES
    ),
    "hook that calls a layer": Swept(_calls(_hook_that_calls)),
}


# --- what stands in several places --------------------------------------------------------------------------------


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(4, WIDTH), nn.Linear(WIDTH, 4)
        self.head.weight = self.embed.weight

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.embed(tokens).tanh().mean(1))


def _alias() -> nn.Module:
    model = Calls(lambda m, x: m.b(m.again(m.a(x).tanh()).tanh()), **_two())
    model.again = model.a
    return model


def _same_memory(whole: bool) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        model = Calls(lambda m, x: m.b(m.c(m.a(x).tanh()).tanh()), **_two(c=nn.Linear(3, 3)))
        model.double()
        values = model.a.weight.data if whole else model.a.weight.data.view(-1)[:3]
        setattr(model.c, "weight" if whole else "bias", nn.Parameter(values))
        return model

    return build


def _aliased_buffer() -> nn.Module:
    model = Calls(lambda m, x: m.b(m.a(x).tanh()) + m.old.sum(), **_two()).double()
    model.register_buffer("old", model.a.weight.data)
    return model


def _kept_list() -> nn.Module:
    model = Calls(lambda m, x: m.b(m.a(x).tanh()) * m.kept[0].square().sum(), **_two()).double()
    model.kept = [model.a.weight]
    return model


def _kept_view() -> nn.Module:
    model = Calls(lambda m, x: m.b(m.a(x).tanh()) * m.kept[0].square().sum(), **_two()).double()
    model.kept = [model.a.weight.view(-1)]
    return model


def _outsider() -> nn.Module:
    """Layers in a list, which torch does not know of: constants, as for its optimisers."""
    model = Calls(lambda m, x: m.b(m.hidden[0](x).tanh()), b=nn.Linear(WIDTH, OUT))
    model.hidden = [nn.Linear(WIDTH, WIDTH).double()]
    return model


def _shared_attention() -> nn.Module:
    return Calls(
        lambda m, x: m.b((m.a(x) @ m.a(x).mT / 2).softmax(-1) @ m.a(x))[:, 0],
        **_two(),
    )


def _penalty(how: Callable[[nn.Module], Tensor]) -> Callable[[Any], Any]:
    return lambda model: lambda z, y: functional.mse_loss(z, y) + 0.1 * how(model)


_BY_OWN = "through the call of the model alone"
_MEMORY = "must not share memory"
SQUARED = _penalty(lambda model: sum((p.square().sum() for p in model.parameters()), torch.zeros(())))

SHARED = {
    "tied": Swept(Tied, _tokens),
    "tied, by its second name": Swept(Tied, _tokens, options={"parameters": "head.weight"}),
    "tied, by the second module": Swept(Tied, _tokens, options={"parameters": ["head"]}),
    "tied, by the first module": Swept(Tied, _tokens, options={"parameters": "embed"}),
    "tied to its transpose": Swept(
        _calls(lambda m, x: m.b(functional.linear(m.a(x).tanh(), m.a.weight.T).tanh()))
    ),
    "layer called twice": Swept(_calls(lambda m, x: m.b(m.a(m.a(x).tanh()).tanh()))),
    "layer under two names": Swept(_alias),
    "layer under two names, by the second": Swept(_alias, options={"parameters": "again"}),
    "weight of a layer, also by itself": Swept(_calls(lambda m, x: m.b(m.a(x).tanh()) * m.a.weight.sum())),
    "two sides": Swept(
        _calls(lambda m, one, other: m.b(m.a(one).tanh() * m.a(other).tanh())),
        lambda: {"one": torch.randn(N, 3), "other": torch.randn(N, 3)},
    ),
    "recurrent by hand": Swept(
        _calls(lambda m, x: m.b(functools.reduce(lambda h, t: m.a(h + t).tanh(), x.unbind(1), 0 * x[:, 0]))),
        _sized(3, WIDTH),
    ),
    "kernel at two dilations": Swept(
        lambda: Calls(
            lambda m, x: (
                m.c(x).tanh() + functional.conv1d(x, m.c.weight, m.c.bias, padding=2, dilation=2)
            ).flatten(1),
            c=nn.Conv1d(1, 1, 3, padding=1),
        ),
        _sized(1, 4),
    ),
    "one matrix for queries, keys and values": Swept(_shared_attention, _sized(2, WIDTH)),
    "list of parameters": Swept(
        lambda: Calls(
            lambda m, x: functools.reduce(lambda h, w: (h @ w).tanh(), m.p, x),
            p=nn.ParameterList([torch.randn(3, 3), torch.randn(3, 3), torch.randn(3, 2)]),
        )
    ),
    "dictionary of parameters": Swept(
        lambda: Calls(
            lambda m, x: (x @ m.p["a"]).tanh() @ m.p["b"] + m.p["a"].sum(),
            p=nn.ParameterDict({"a": torch.randn(3, 3), "b": torch.randn(3, 2)}),
        )
    ),
    "own parameters counted in the call": Swept(
        _calls(lambda m, x: m.b(m.a(x).tanh()) + sum(p.square().sum() for p in m.parameters()))
    ),
    "two parameters in one memory": Swept(_same_memory(True), refused=_MEMORY),
    "two parameters that overlap": Swept(_same_memory(False), refused=_MEMORY),
    "buffer in the memory of a parameter": Swept(_aliased_buffer, refused=_MEMORY),
    "parameter spread over a view": Swept(
        lambda: Calls(lambda m, x: m.b(m.a(x).tanh() * m.s), **_two(s=nn.Parameter(torch.ones(1).expand(3)))),
        refused="must have memory for each number",
    ),
    "parameter in a list of its own": Swept(_kept_list, refused=_BY_OWN),
    "view of a parameter in a list": Swept(_kept_view, refused=_BY_OWN),
    "layers torch does not know of": Swept(_outsider),
    "penalty on the weights": Swept(_plain(lambda: nn.Linear(3, 2)), loss=SQUARED, refused=_BY_OWN),
    "penalty on a weight that is frozen": Swept(
        _calls(lambda m, x: m.b(m.a(x).tanh())), loss=SQUARED, options={"parameters": "b"}, refused=_BY_OWN
    ),
    "penalty on lengths": Swept(
        _calls(lambda m, x: m.b(m.a(x).tanh())),
        loss=_penalty(lambda model: model.get_parameter("a.weight").norm()),
        refused=_BY_OWN,
    ),
    "loss with a layer of its own": Swept(
        _plain(lambda: nn.Linear(3, 2)),
        loss=lambda _: functools.partial(_transformed, nn.Linear(2, 2).double()),
    ),
}


def _transformed(layer: nn.Module, z: Tensor, y: Tensor) -> Tensor:
    return functional.mse_loss(layer(z).tanh(), y)


# --- what keeps something, or does more than its formula ----------------------------------------------------------


class Once(torch.autograd.Function):
    """tanh that may be differentiated once."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        output = x.tanh()
        ctx.save_for_backward(output)
        return output

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, cotangent: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        (output,) = ctx.saved_tensors
        return cotangent * (1 - output**2)


class Twice(torch.autograd.Function):
    """tanh by hand, with derivatives of any order."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.tanh()

    @staticmethod
    def backward(ctx: Any, cotangent: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        (x,) = ctx.saved_tensors
        return cotangent * (1 - x.tanh() ** 2)


class Scaled(torch.autograd.Function):
    """The identity, with its derivative turned round."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, cotangent: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
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

    return _calls(forward)


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
        model = Calls(lambda m, x: m.b(m.n(m.a(x)).tanh()), **_two(n=nn.LayerNorm(3)))
        register(model)
        return model

    return build


def _grad_hook(change: Callable[[Tensor], Tensor]) -> Callable[[], nn.Module]:
    def forward(m: Any, x: Tensor) -> Tensor:
        h = m.a(x).tanh()
        if h.requires_grad:
            h.register_hook(change)
        return m.b(h)

    return _calls(forward)


def _materialised() -> nn.Module:
    model = nn.Sequential(nn.LazyLinear(3), nn.Tanh(), nn.LazyLinear(2))
    model(torch.randn(2, 3))
    return model


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


_STILL = "must not write into its parameters"
_TRAINING: dict[str, Any] = {"options": {"training": True}, "apart": False}

STATEFUL = {
    "batch normalisation": Swept(_plain(lambda: nn.Linear(3, 3), lambda: nn.BatchNorm1d(3), nn.Tanh)),
    "batch normalisation in training": Swept(
        _plain(lambda: nn.Linear(3, 3), lambda: nn.BatchNorm1d(3), nn.Tanh), **_TRAINING
    ),
    "batch normalisation, plain mean": Swept(
        _plain(lambda: nn.Linear(3, 3), lambda: nn.BatchNorm1d(3, momentum=None), nn.Tanh), **_TRAINING
    ),
    "batch normalisation that keeps nothing": Swept(
        _plain(lambda: nn.Linear(3, 3), lambda: nn.BatchNorm1d(3, track_running_stats=False), nn.Tanh),
        apart=False,
    ),
    "dropout": Swept(_plain(lambda: nn.Linear(3, 3), nn.Dropout, nn.Tanh)),
    "dropout in training": Swept(_plain(lambda: nn.Linear(3, 3), nn.Dropout, nn.Tanh), **_TRAINING),
    "spectral norm": Swept(_normed(parametrizations.spectral_norm)),
    "spectral norm in training": Swept(
        _normed(parametrizations.spectral_norm), refused=DERIVATIVES, **_TRAINING
    ),
    "spectral norm by a hook": Swept(_normed(nn.utils.spectral_norm)),
    "spectral norm by a hook, in training": Swept(
        _normed(nn.utils.spectral_norm), refused=DERIVATIVES, **_TRAINING
    ),
    "weight norm": Swept(_normed(parametrizations.weight_norm)),
    "weight norm by a hook": Swept(_normed(nn.utils.weight_norm)),
    "orthogonal": Swept(_normed(functools.partial(parametrizations.orthogonal, orthogonal_map="cayley"))),
    "parametrised": Swept(_parametrised),
    "call replaced": Swept(_patched),
    "calls counted": Swept(lambda: Counting(matters=False)),
    "calls counted, and used": Swept(lambda: Counting(matters=True), refused="same for the same arguments"),
    "set at the first call": Swept(FirstCall, refused=_STILL),
    "state kept from call to call": Swept(Remembering, refused="same for the same arguments"),
    "moving mean of activations": Swept(lambda: Averaging(of_inputs=False), refused=DERIVATIVES, **_TRAINING),
    "moving mean of inputs": Swept(lambda: Averaging(of_inputs=True), **_TRAINING),
    "weights decayed in the call": Swept(_writes(lambda m: m.a.weight.mul_(0.9)), refused=_STILL),
    "weights clipped by their data": Swept(
        _writes(lambda m: m.a.weight.data.clamp_(-0.1, 0.1)), refused=_STILL
    ),
    "weights drawn in the call": Swept(
        _writes(lambda m: nn.init.normal_(m.a.weight, generator=torch.Generator().manual_seed(0))),
        refused=_STILL,
    ),
    "frozen weights changed in the call": Swept(
        _writes(lambda m: m.a.weight.mul_(0.9)), options={"parameters": "b"}, refused=_STILL
    ),
    "inputs written": Swept(
        _calls(lambda m, x: m.b(m.a(x.mul_(0.9)).tanh())), refused="must not write into inputs"
    ),
    "lazy": Swept(lambda: nn.Sequential(nn.LazyLinear(3), nn.Linear(3, 2)), refused="initialised parameters"),
    "lazy, called once": Swept(_materialised),
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
    "differentiable once": Swept(_calls(lambda m, x: m.b(Once.apply(m.a(x)))), refused="once_differentiable"),
    "differentiable twice by hand": Swept(_calls(lambda m, x: m.b(Twice.apply(m.a(x))))),
    "gradient turned round": Swept(
        _calls(lambda m, x: m.b(Scaled.apply(m.a(x)).tanh())), refused=DERIVATIVES
    ),
    "rounded, straight through": Swept(
        _calls(lambda m, x: m.b(m.a(x) + ((4 * m.a(x)).round() / 4 - m.a(x)).detach())), refused=DERIVATIVES
    ),
    "part detached": Swept(_calls(lambda m, x: m.b(m.a(x).tanh() * m.a(x).detach())), refused=DERIVATIVES),
    "layer without gradients": Swept(_calls(lambda m, x: m.b(_without(m.a, x).tanh())), refused=DERIVATIVES),
    "loss with a detached weight": Swept(
        _calls(lambda m, x: m.b(m.a(x).tanh())),
        loss=lambda _: lambda z, y: ((z - y).square() * (z - y).abs().detach()).mean(),
        refused=DERIVATIVES,
    ),
    "loss differentiable once": Swept(
        _calls(lambda m, x: m.b(m.a(x).tanh())),
        loss=lambda _: lambda z, y: functional.mse_loss(Once.apply(z), y),
        refused="once_differentiable",
    ),
    "loss that changes from call to call": Swept(
        _calls(lambda m, x: m.b(m.a(x).tanh())),
        loss=lambda _: _annealed(),
        refused="same for the same arguments",
    ),
    "targets written": Swept(
        _calls(lambda m, x: m.b(m.a(x).tanh())),
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


# --- types, layouts and kinds of modules --------------------------------------------------------------------------


def _autocast(back: bool) -> Callable[[], nn.Module]:
    def forward(m: Any, x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            z = m.b(m.a(x.float()).tanh())
        return z.float() if back else z

    return lambda: Calls(forward, **_two()).float()


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


def _attention() -> nn.Module:
    return Calls(
        lambda m, x: m.t(x, x, x, need_weights=False)[0].flatten(1),
        t=nn.MultiheadAttention(2, 1, batch_first=True),
    )


def _products() -> nn.Module:
    return Calls(
        lambda m, x: torch.einsum("ni,ij,nj,jk->nk", x, m.w, x.sin(), m.v).tanh(),
        w=nn.Parameter(torch.randn(3, 3)),
        v=nn.Parameter(torch.randn(3, 2)),
    )


TYPES = {
    "single precision": Swept(lambda: nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 2)).float()),
    "half precision": Swept(lambda: nn.Linear(3, 2).half(), refused="all float32 or all float64"),
    "two precisions": Swept(
        lambda: nn.Sequential(nn.Linear(3, 3).double(), nn.Linear(3, 2).float()),
        refused="all float32 or all float64",
    ),
    "mixed precision": Swept(_autocast(back=False), refused="single or double precision, got torch.bfloat16"),
    "mixed precision, outputs single": Swept(
        _autocast(back=True), refused="single or double precision, got torch.bfloat16"
    ),
    "complex weights": Swept(
        lambda: Calls(
            lambda m, x: (x.to(m.c.dtype) @ m.c).abs(),
            c=nn.Parameter(torch.randn(3, 2, dtype=torch.complex128)),
        ),
        refused="all float32 or all float64",
    ),
    "complex weights among others": Swept(
        lambda: Calls(
            lambda m, x: (m.a(x) @ m.c).abs(),
            **_two(c=nn.Parameter(torch.randn(3, 2, dtype=torch.complex128))),
        ),
        refused="all float32 or all float64",
    ),
    "complex between": Swept(_calls(_complex)),
    "pairs as complex numbers": Swept(
        lambda: Calls(_pairs, a4=nn.Linear(3, 4), w=nn.Parameter(torch.randn(2, 2)))
    ),
    "complex outputs": Swept(
        _calls(lambda m, x: torch.fft.fft(m.a(x))),
        loss=lambda _: lambda z, y: z.abs().square().mean(),
        refused="must return real numbers",
    ),
    "complex loss": Swept(
        _calls(lambda m, x: m.b(m.a(x).tanh())),
        loss=lambda _: lambda z, y: torch.complex(functional.mse_loss(z, y), z.sum()),
        refused="loss must be one number|real",
    ),
    "meta device": Swept(lambda: nn.Linear(3, 2, device="meta"), refused="on the meta device"),
    "sparse parameter": Swept(
        lambda: Calls(lambda m, x: m.s @ m.a(x).T, **_two(s=nn.Parameter(torch.eye(N).to_sparse()))),
        refused="dense parameters",
    ),
    "compiled by script": Swept(
        lambda: torch.jit.script(nn.Sequential(nn.Linear(3, 3), nn.Tanh())), refused="compiled"
    ),
    "part compiled by trace": Swept(
        lambda: nn.Sequential(
            torch.jit.trace(nn.Linear(3, 3).double(), torch.randn(2, 3).double()), nn.Linear(3, 2)
        ),
        refused="compiled",
    ),
    "integer inputs": Swept(_plain(lambda: nn.Embedding(4, 2), nn.Flatten, nn.Tanh), _tokens),
    "embedding with padding": Swept(
        _plain(lambda: nn.Embedding(4, 2, padding_idx=0), nn.Flatten, lambda: nn.Linear(6, 2)),
        _tokens,
        padding=2,
    ),
    "bags": Swept(
        _plain(lambda: nn.EmbeddingBag(4, 3), nn.Tanh, lambda: nn.Linear(3, 2)),
        _tokens,
        refused="_embedding_bag_backward' is not implemented",
    ),
    "embedding with sparse gradients": Swept(
        _plain(lambda: nn.Embedding(4, 2, sparse=True), nn.Flatten, nn.Tanh), _tokens
    ),
    "embedding with lengths bounded": Swept(
        _plain(lambda: nn.Embedding(4, 2, max_norm=0.1), nn.Flatten, nn.Tanh), _tokens, refused=_STILL
    ),
    "mask beside inputs": Swept(
        _calls(lambda m, x, mask: m.b(m.a(x).tanh() * mask)),
        lambda: (torch.randn(N, 3), torch.rand(N, 3) > 0.5),
    ),
    "inputs by name": Swept(
        _calls(lambda m, left, right: m.b(m.a(left).tanh() * right)),
        lambda: {"left": torch.randn(N, 3), "right": torch.randn(N, 3)},
    ),
    "weight that lies by columns": Swept(_transposed_memory),
    "inputs that lie by columns": Swept(_calls(lambda m, x: m.b(m.a(x).tanh())), lambda: torch.randn(3, N).T),
    "channels last": Swept(
        lambda: nn.Sequential(nn.Conv2d(2, 2, 2), nn.Tanh(), nn.Flatten(), nn.Linear(2, 2)).to(
            memory_format=torch.channels_last
        ),
        lambda: torch.randn(N, 2, 2, 2).to(memory_format=torch.channels_last),
    ),
    "scalar parameter": Swept(
        lambda: Calls(lambda m, x: m.b(m.a(x).tanh() * m.s.exp()), **_two(s=nn.Parameter(torch.tensor(0.3))))
    ),
    "empty parameter": Swept(
        lambda: Calls(lambda m, x: m.b(m.a(x).tanh()) + m.e.sum(), **_two(e=nn.Parameter(torch.zeros(0))))
    ),
    "unused parameter": Swept(
        lambda: Calls(lambda m, x: m.b(m.a(x).tanh()), **_two(e=nn.Parameter(torch.ones(2))))
    ),
    "frozen part": Swept(_half_frozen),
    "modules in modules": Swept(
        _plain(
            lambda: nn.Sequential(nn.Linear(3, 3), nn.Sequential(nn.Tanh(), nn.Linear(3, 3))),
            lambda: nn.Linear(3, 2),
        )
    ),
    "list of modules": Swept(
        lambda: Calls(
            lambda m, x: functools.reduce(lambda h, layer: layer(h).tanh(), m.layers, x),
            layers=nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 2)]),
        )
    ),
    "function": Swept(lambda: functools.partial(_network, 1), options=_OWN),
    "partial function": Swept(lambda: functools.partial(_network, 2), options=_OWN),
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
    "long short-term memory": Swept(_recurrent(nn.LSTM), _sized(3, 2)),
    "gated recurrent": Swept(_recurrent(nn.GRU), _sized(3, 2)),
    "recurrent, both ways": Swept(_recurrent(nn.RNN, bidirectional=True), _sized(3, 2)),
    "attention": Swept(_attention, _sized(3, 2)),
    "transformer": Swept(
        lambda: Calls(
            lambda m, x: m.t(x).flatten(1),
            t=nn.TransformerEncoderLayer(2, 1, 3, activation="gelu", batch_first=True),
        ),
        _sized(2, 2),
    ),
    "layer and group norms": Swept(
        _plain(
            lambda: nn.Conv1d(2, 2, 2),
            lambda: nn.GroupNorm(1, 2),
            nn.Tanh,
            nn.Flatten,
            lambda: nn.LayerNorm(4),
        ),
        _sized(2, 3),
    ),
    "transposed convolution": Swept(
        _plain(lambda: nn.ConvTranspose2d(1, 2, 2), nn.Tanh, nn.Flatten, lambda: nn.Linear(18, 1)),
        _sized(1, 2, 2),
    ),
    "bilinear": Swept(
        lambda: Calls(lambda m, x: m.f(x, x.sin()).tanh(), f=nn.Bilinear(3, 3, 2)),
    ),
    "products of tensors": Swept(_products),
    "learned slope": Swept(_plain(lambda: nn.Linear(3, 3), nn.PReLU, lambda: nn.Linear(3, 2))),
}

CONSTANT = torch.ones(2, dtype=torch.float64)

FAMILIES = {"recomputation": RECOMPUTATION, "shared": SHARED, "stateful": STATEFUL, "types": TYPES}
SWEEP = {f"{family}: {name}": swept for family, group in FAMILIES.items() for name, swept in group.items()}
