"""Models that take samples in another order, in buckets, folded, or some of them once, and put the outputs back."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from benchmarks.sweep.listing import C, D, H, Listed, N, drawn, net, plain

T = 3
_MOVED = partial(Listed, sited=False)


def _lengths() -> tuple[Tensor, Tensor]:
    return torch.randn(N, T, D), torch.arange(N) * 7 % T + 1


def _packed(m: Any, x: Tensor, lengths: Tensor) -> Tensor:
    return m.b(m.a(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))[1][0])


def _packed_by_hand(m: Any, x: Tensor, lengths: Tensor) -> Tensor:
    order = lengths.argsort(descending=True, stable=True)
    packed = pack_padded_sequence(x[order], lengths[order], batch_first=True)
    states = pad_packed_sequence(m.a(packed)[0], batch_first=True)[0].sum(1)
    return m.b(states).index_select(0, order.argsort())


def _bucketed(m: Any, x: Tensor, lengths: Tensor) -> Tensor:
    inside = [(lengths == length).nonzero()[:, 0] for length in lengths.unique()]
    found = [m.b(m.a(x[some, : int(lengths[some[0]])]).tanh().mean(1)) for some in inside]
    return torch.cat(found)[torch.cat(inside).argsort()]


def _shuffled(m: Any, x: Tensor) -> Tensor:
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(len(x)))
    return plain(m, x[order])[order.argsort()]


def _folded(m: Any, x: Tensor) -> Tensor:
    return plain(m, x.transpose(0, 1).reshape(-1, D)).view(T, -1, C).mean(0)


def _along_samples(m: Any, x: Tensor) -> Tensor:
    """Samples as the length that a kernel of one goes along."""
    return m.b(m.a(x.mT[None]).tanh())[0].mT


def _ragged(m: Any, x: Tensor, lengths: Tensor) -> Tensor:
    rows = torch.nested.nested_tensor([row[: int(n)] for row, n in zip(x, lengths, strict=True)])
    return m.b(torch.nested.to_padded_tensor(m.a(rows), 0.0).tanh().sum(1))


def _in_turn(m: Any, x: Tensor) -> Tensor:
    found = x.new_zeros(len(x), C)
    for start in (1, 0):
        found = found.index_copy(0, torch.arange(start, len(x), 2), plain(m, x[start::2]))
    return found


def _each_once(m: Any, x: Tensor) -> Tensor:
    rows, inverse = torch.unique(x, dim=0, return_inverse=True)
    return plain(m, rows)[inverse]


def _mirrored(m: Any, x: Tensor) -> Tensor:
    one, other = plain(m, torch.cat([x, x.flip(1)])).chunk(2)
    return (one + other) / 2


def _repeated(m: Any, x: Tensor) -> Tensor:
    shifts = torch.tensor([[-0.1], [0.0], [0.2]]).repeat(len(x), 1)
    return plain(m, x.repeat_interleave(3, 0) + shifts).view(-1, 3, C).logsumexp(1)


def _dispatched(m: Any, x: Tensor) -> Tensor:
    best, taken = m.gate(x).softmax(1).max(1)
    order = taken.argsort(stable=True)
    parts = x[order].split(torch.bincount(taken, minlength=2).tolist())
    found = torch.cat([expert(p) for expert, p in zip((m.a, m.c), parts, strict=True)])
    return m.b((best[order, None] * found)[order.argsort()])


def _kept_rows(m: Any, x: Tensor) -> Tensor:
    kept = x[:, 0] > -0.5
    return m.c(x).masked_scatter(kept[:, None], plain(m, x[kept]))


def _answers(m: Any, x: Tensor) -> Tensor:
    return plain(m, x.flatten(0, 1)).view(-1, C)


def _in_one_row(m: Any, x: Tensor) -> Tensor:
    """Positions of all samples in one row, which see their own sample alone."""
    flat, own = m.a(x).reshape(1, -1, H), torch.arange(len(x)).repeat_interleave(T)
    seen = nn.functional.scaled_dot_product_attention(flat, flat, flat, attn_mask=own[:, None] == own[None])
    return m.b(seen.view(len(x), T, H).mean(1))


REORDERING = {
    "packed, and sorted by torch": _MOVED(net(_packed, a=lambda: nn.GRU(D, H, batch_first=True)), _lengths),
    "packed, and sorted by hand": _MOVED(
        net(_packed_by_hand, a=lambda: nn.RNN(D, H, batch_first=True)), _lengths
    ),
    "in buckets of one length": _MOVED(net(_bucketed), _lengths),
    "shuffled by the number of samples": _MOVED(net(_shuffled)),
    "positions first, folded": _MOVED(net(_folded), drawn(T, D)),
    "samples along the last axis": _MOVED(
        net(_along_samples, a=lambda: nn.Conv1d(D, H, 1), b=lambda: nn.Conv1d(H, C, 1)),
        targets=drawn(C),
        loss=nn.MSELoss(),
    ),
    "ragged tensors": _MOVED(net(_ragged), _lengths, refused="must have second derivatives"),
    "odd and even samples in turn": _MOVED(net(_in_turn)),
    "equal samples once": _MOVED(net(_each_once), lambda: torch.randn(8, D)[torch.arange(N) % 8]),
    "beside their mirror images": _MOVED(net(_mirrored)),
    "three times with shifts": Listed(net(_repeated)),
    "sorted by expert": _MOVED(net(_dispatched, gate=(D, 2), c=(D, H))),
    "some rows through another layer": _MOVED(net(_kept_rows, c=(D, C))),
    "answers folded into the rows": Listed(net(_answers, b=(H, 1)), drawn(C, D)),
    "all sequences in one row, masked": Listed(net(_in_one_row), drawn(T, D)),
}
