"""Models whose numbers are very small, very large, of several types, or made from other numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, parametrize

from benchmarks.sweep.listing import C, D, H, Listed, N, drawn, net, plain

_MADE = partial(Listed, sited=False)
_SINGLE = partial(Listed, inputs=lambda: torch.randn(N, D).float(), tolerance=2e-3)


def _squares(factor: float, *, single: bool = False) -> Listed:
    """Outputs and targets of one size."""
    kind = torch.float32 if single else torch.float64
    build = net(lambda m, x: factor * plain(m, x))
    # squares of the gradients are no numbers in single precision
    listed = partial(_SINGLE, refuses=("empirical_fisher",)) if single else Listed
    return listed(
        lambda: build().to(kind), targets=lambda: (factor * torch.randn(N, C)).to(kind), loss=nn.MSELoss()
    )


def _changed(change: Callable[[Any], Any], call: Any = plain, **parts: Any) -> Callable[[], nn.Module]:
    """A network, changed after it was built."""

    def build() -> nn.Module:
        model = net(call, **parts)()
        with torch.no_grad():
            change(model)
        return model

    return build


class _Exp(nn.Module):
    """A parameter by its logarithm."""

    def forward(self, log: Tensor) -> Tensor:
        return log.exp()


def _logarithmic(model: Any) -> None:
    model.a.weight.sub_(8.0)
    parametrize.register_parametrization(model.a, "weight", _Exp(), unsafe=True)


def _by_lengths(model: Any) -> None:
    parametrizations.weight_norm(model.a, dim=1)
    parametrizations.weight_norm(model.b, dim=-1)


def _confident(model: Any) -> None:
    model.b.bias.copy_(torch.tensor([15.0, 0.0, 0.0]))


def _tied(m: Any, tokens: Tensor) -> Tensor:
    h = m.b(tokens).mean(1) * H**0.5
    return nn.functional.linear(m.a(h).tanh(), m.b.weight) / H**0.5


def _convolved(m: Any, x: Tensor) -> Tensor:
    return m.b(m.a(x.view(-1, 1, D)).tanh().flatten(1))


def _units() -> Tensor:
    return torch.tensor([1e-6, 1.0, 1e6], dtype=torch.float64)


def _huge(outputs: Tensor, targets: Tensor) -> Tensor:
    return 1e20 * nn.functional.cross_entropy(outputs, targets)


RESCALING = {
    "outputs of 1e-12": _squares(1e-12),
    "outputs of 1e12": _squares(1e12),
    "outputs of 1e-12, single precision": _squares(1e-12, single=True),
    "outputs of 1e10, single precision": _squares(1e10, single=True),
    "outputs of three units": Listed(
        net(lambda m, x: plain(m, x) * _units()),
        targets=lambda: torch.randn(N, C) * _units(),
        loss=nn.MSELoss(),
    ),
    "embedding tied to the head and scaled": _MADE(
        net(_tied, a=(H, H), b=lambda: nn.Embedding(7, H)),
        lambda: torch.randint(7, (N, 3)),
        lambda: torch.arange(N) % 7,
    ),
    "weights by their logarithms": _MADE(_changed(_logarithmic)),
    "lengths of columns, and of a whole matrix": _MADE(_changed(_by_lengths)),
    "convolution of unit norm": _MADE(
        net(
            _convolved,
            a=lambda: parametrizations.spectral_norm(nn.Conv1d(1, 2, 2)),
            b=(2 * (D - 1), C),
        )
    ),
    "orthogonal by reflections": _MADE(
        net(
            lambda m, x: plain(m, m.c(x)),
            c=lambda: parametrizations.orthogonal(nn.Linear(D, D), orthogonal_map="householder"),
        )
    ),
    "single precision, double head": _SINGLE(
        _changed(lambda m: m.float(), lambda m, x: plain(m, x).double())
    ),
    "half precision": _SINGLE(
        _changed(lambda m: m.bfloat16()), inputs=lambda: torch.randn(N, D).bfloat16(), refuses=("watch",)
    ),
    "a loss near nought": Listed(_changed(_confident), targets=lambda: torch.zeros(N).long(), tolerance=1e-6),
    "a loss of 1e20": Listed(net(plain), loss=_huge),
    "temperature that is learned": _MADE(
        net(
            lambda m, x: m.t.exp() * nn.functional.normalize(plain(m, x), dim=1),
            t=lambda: nn.Parameter(torch.tensor(4.6)),
        ),
        targets=drawn(C),
        loss=nn.SmoothL1Loss(),
    ),
}
