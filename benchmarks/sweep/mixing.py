"""Models whose samples see each other: in batches, in pairs, or from some number or value on."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.sweep.listing import C, D, H, Listed, N, drawn, net, plain

_MIXED = partial(Listed, mixed=True)
_SQUARES = partial(_MIXED, targets=drawn(C), loss=nn.MSELoss())


def _between(how: Any, **parts: Any) -> Any:
    return net(lambda m, x: m.b(how(m, m.a(x).tanh())), **parts)


def _attended(m: Any, h: Tensor) -> Tensor:
    return (m.q(h) @ m.k(h).mT / math.sqrt(H)).softmax(-1) @ m.v(h)


def _grouped(_: Any, h: Tensor) -> Tensor:
    return torch.cat([(p - p.mean(0)) / (p.square().mean(0) + 0.1).sqrt() for p in h.split(4)])


def _chosen_by_experts(m: Any, x: Tensor) -> Tensor:
    """Each expert takes the better half of the samples, whoever else does."""
    scores, found = m.gate(x), m.rest(x)
    for i, expert in enumerate((m.one, m.other)):
        best = scores[:, i].topk(-(-len(x) // 2)).indices
        found = found.index_add(0, best, expert(x[best]).tanh() * scores[best, i : i + 1].sigmoid())
    return found


def _scaled(m: Any, x: Tensor) -> Tensor:
    h, largest = m.a(x).tanh(), x[:, 0].max()
    return m.b(h / largest if largest > 2.5 else h)


def _rare() -> Tensor:
    x = torch.randn(N, D).clamp(-2, 2)
    x[13, 0] = 3.0
    return x


def _neighbours(_: Any, h: Tensor) -> Tensor:
    return h[torch.cdist(h, h).topk(min(3, len(h)), largest=False).indices].mean(1)


def _whitened(_: Any, h: Tensor) -> Tensor:
    centred = h - h.mean(0)
    factor = torch.linalg.cholesky(centred.mT @ centred / len(h) + 0.1 * torch.eye(H).to(h))
    return torch.linalg.solve_triangular(factor, centred.mT, upper=False).mT


def _balanced(m: Any, x: Tensor) -> Tensor:
    shares = plain(m, x).exp()
    for _ in range(2):
        shares = shares / shares.sum(0)
        shares = shares / shares.sum(1, keepdim=True)
    return (shares + 1e-3).log()


def _paired(m: Any, h: Tensor) -> Tensor:
    pairs = h.view(-1, 2, H)
    return torch.cat([pairs, m.c(pairs.flip(1))], 2).view(len(h), 2 * H)


def _ranked(m: Any, x: Tensor) -> Tensor:
    place = x[:, 0].argsort().argsort().to(x) / len(x)
    return plain(m, torch.cat([x, place[:, None]], 1))


def _compared(m: Any, x: Tensor, y: Tensor) -> Tensor:
    one, other = (nn.functional.normalize(layer(z), dim=1) for layer, z in ((m.a, x), (m.b, y)))
    return m.scale.exp() * one @ other.mT


def _from_sixteen(m: Any, h: Tensor) -> Tensor:
    return h + m.c(h.mean(0)) if len(h) >= 16 else h


def _past(_: Any, h: Tensor) -> Tensor:
    return h - 0.5 * h.cumsum(0) / torch.arange(1, len(h) + 1)[:, None]


MIXING = {
    "attention over the batch": _MIXED(_between(_attended, q=(H, H), k=(H, H), v=(H, H))),
    "mixed up with the sample before": _MIXED(net(lambda m, x: plain(m, 0.8 * x + 0.2 * x.roll(1, 0)))),
    "similarities between two views of the batch": _MIXED(
        net(_compared, b=(3, H), scale=lambda: nn.Parameter(torch.tensor(1.5))),
        lambda: (torch.randn(N, D), torch.randn(N, 3)),
        lambda: torch.arange(N),
        refuses=("plan",),
    ),
    "mean of all samples before": _MIXED(_between(_past)),
    "normalised over groups of four samples": _MIXED(_between(_grouped)),
    "experts that choose their samples": _MIXED(
        net(_chosen_by_experts, gate=(D, 2), rest=(D, C), one=(D, C), other=(D, C))
    ),
    "mean added from sixteen samples on": _MIXED(_between(_from_sixteen, c=(H, H))),
    # in such batches one of its layers has no part in the outputs
    "mean added from sixteen samples on, in batches of ten": Listed(
        _between(_from_sixteen, c=(H, H)), sited=False, cut=10
    ),
    "scaled by one rare value": _SQUARES(net(_scaled), _rare),
    "weights from a softmax over the batch": _MIXED(
        net(lambda m, x: plain(m, x) * m.c(x).softmax(0) * len(x), c=(D, 1))
    ),
    "mean over the nearest in the batch": _MIXED(_between(_neighbours)),
    "whitened by the batch, in two batches": Listed(
        _between(_whitened), cut=10, refused="pass all samples as one batch"
    ),
    "shares balanced over the batch": _SQUARES(net(_balanced)),
    "neighbours in pairs": _MIXED(_between(_paired, c=(H, H), b=(2 * H, C))),
    "place in the batch as an input": _MIXED(net(_ranked, a=(D + 1, H))),
}
