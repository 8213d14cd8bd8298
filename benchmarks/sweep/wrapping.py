"""Models inside of other things: wrappers, compilers, transforms, adapters, hooks, and losses of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import make_dataclass
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from benchmarks.sweep.listing import C, D, H, Listed, N, drawn, net, plain

_WITHIN = partial(Listed, sited=False)
_Points = make_dataclass("_Points", ["place", "mass"])
_Found = make_dataclass("_Found", ["features", "logits"])


def _leaky(x: Tensor, scale: Tensor) -> Tensor:
    return torch.where(x > 0, x * scale, 0.1 * x.exp())


@cache
def _scripted() -> Any:
    return torch.jit.script(_leaky)


class Function:
    """A module as a function of its parameters and inputs."""

    def __init__(self) -> None:
        self.inner = net(plain)()
        self.names = [name for name, _ in self.inner.named_parameters()]
        self.leaves = [p.detach().clone() for p in self.inner.parameters()]

    def __call__(self, leaves: Sequence[Tensor], x: Tensor) -> Tensor:
        """The outputs of the module."""
        return torch.func.functional_call(self.inner, dict(zip(self.names, leaves, strict=True)), (x,))


def _heads() -> nn.Module:
    return nn.ModuleDict({"heads": nn.ModuleList(nn.Linear(H, C) for _ in range(2))})


def _by_number(m: Any, x: Tensor, which: Tensor) -> Tensor:
    """Every sample by itself, through a layer of its own."""
    return m.b(torch.stack([m.parts["heads"][int(i)](m.a(row)) for i, row in zip(which, x, strict=True)]))


def _adapted(m: Any, x: Tensor) -> Tensor:
    """A frozen layer with a change of low rank, merged when it is called."""
    weight = m.a.weight + m.up.weight @ m.down.weight
    return m.b(nn.functional.linear(x, weight, m.a.bias).tanh())


def _on_frozen(m: Any, x: Tensor) -> Tensor:
    with torch.no_grad():
        seen = m.body(x).tanh()
    return plain(m, seen)


def _twice(m: Any, x: Tensor) -> Tensor:
    h = m.first(m.c(m.a(x)).tanh())
    return m.b(m.second(m.c(h).tanh()))


def _checkpointed(m: Any, x: Tensor) -> Tensor:
    def block(given: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"h": m.c(given["h"]).sigmoid()}

    return m.b(checkpoint(block, {"h": m.a(x)}, use_reentrant=False)["h"])


def _made(m: Any, x: Tensor) -> Tensor:
    """Weights for every sample, from a network."""
    return torch.vmap(lambda w, row: torch.tanh(w @ row))(plain(m, x).view(-1, C, D), x)


def _recorded(m: Any, place: Tensor, mass: Tensor) -> Any:
    points = _Points(place, mass)
    h = m.a(points.place).tanh() * points.mass
    return _Found(features=h, logits=m.b(h))


def _tapped() -> nn.Module:
    """Network whose output includes what a hook on an inner layer has caught."""
    caught: dict[str, Tensor] = {}
    model = net(
        lambda m, x: m.b(torch.cat([m.c(m.a(x).tanh()).tanh(), caught.pop("h")], 1)), c=(H, H), b=(2 * H, C)
    )()
    model.a.register_forward_hook(lambda _m, _x, out: caught.__setitem__("h", out))
    return model


def _counting(m: Any, x: Tensor) -> Tensor:
    """A buffer that changes in every call and is not used."""
    m.n.running_mean = 0.9 * m.n.running_mean + 0.1 * m.a(x).detach().mean(0)
    m.n.num_batches_tracked += len(x)
    return plain(m, x)


def _with_loss(m: Any, x: Tensor, y: Tensor) -> dict[str, Tensor]:
    logits = plain(m, x)
    return {"loss": nn.functional.cross_entropy(logits, y), "logits": logits}


def own_loss(model: Any, batch: Any) -> Tensor:
    """The loss that the model itself returns."""
    return model(*batch)["loss"]


WRAPPING = {
    "in parts, as over devices": _WITHIN(
        net(lambda m, x: torch.cat([plain(m, part) for part in x.chunk(3)]))
    ),
    "a part that is compiled": Listed(net(plain, a=lambda: torch.compile(nn.Linear(D, H), backend="eager"))),
    "an activation that is scripted": _WITHIN(
        net(lambda m, x: m.b(_scripted()(m.a(x), m.s)), s=lambda: nn.Parameter(torch.tensor(0.7)))
    ),
    "a function of its parameters": _WITHIN(Function),
    "a list in a dictionary, by number": _WITHIN(
        net(_by_number, parts=_heads, b=(C, C)), lambda: (torch.randn(N, D), torch.arange(N) % 2)
    ),
    "adapters merged into a frozen layer": _WITHIN(
        net(_adapted, a=lambda: nn.Linear(D, H).requires_grad_(False), down=(D, 2, False), up=(2, H, False))
    ),
    "on a frozen body without gradients": Listed(
        net(_on_frozen, body=lambda: nn.Linear(D, D).requires_grad_(False))
    ),
    "one layer twice, between two norms": Listed(
        net(_twice, c=(H, H), first=lambda: nn.LayerNorm(H), second=lambda: nn.LayerNorm(H)),
        targets=drawn(C),
        loss=nn.SmoothL1Loss(),
    ),
    "dictionaries through a checkpoint": _WITHIN(net(_checkpointed, c=(H, H))),
    "weights from another network, under vmap": Listed(
        net(_made, b=(H, C * D)), targets=drawn(C), loss=nn.MSELoss()
    ),
    "records inside, a record returned": Listed(
        net(_recorded), lambda: (torch.randn(N, D), torch.rand(N, 1))
    ),
    "a record as inputs": _WITHIN(
        net(lambda m, points: plain(m, points.place)),
        lambda: _Points(torch.randn(N, D), torch.rand(N, 1)),
        refuses=("empirical_kernel", "noise", "plan", "measure of a module"),
    ),
    "what a hook has caught": Listed(_tapped),
    "buffers that change in every call": Listed(net(_counting, n=lambda: nn.BatchNorm1d(H, affine=False))),
    "a loss of its own": Listed(net(_with_loss), loss=own_loss, refused="loss must take"),
}
