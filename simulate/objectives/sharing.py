"""A few samples of all processes of a group, the same in each: what questions about a model are put to."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from simulate.objectives.additivity import spaced
from simulate.objectives.batches import Batch, copied, placed, rows
from simulate.objectives.ranks import Ranks

__all__ = ["few_of_group", "of_one", "pieces_of_group"]

_ASKED = 128
"""Samples of all processes that are asked whether the loss may be taken in parts, two of each at least."""


def of_one(ranks: Ranks, rank: int, own: Any, like: Tensor) -> Any:
    """Samples of one process, on the device of a tensor here."""
    return placed(ranks.of_one("samples", rank, _sent(own, like)), like) if ranks.several else own


def few_of_group(ranks: Ranks, own: Batch | None, like: Tensor) -> Batch:
    """Those of the first process with several that add to the loss."""
    use = 0 if own is None else 1 + bool(own.factor) * min(rows(own.targets), 2)
    uses = ranks.gathered("a few samples", use)
    return Batch(*of_one(ranks, uses.index(max(uses)), own, like))


def pieces_of_group(ranks: Ranks, own: list[Any], like: Tensor) -> list[Any]:
    """Single samples of all processes, of each some."""
    if not ranks.several:
        return own
    most = max(2, _ASKED // ranks.size)
    pieces = [own[i] for i in spaced(len(own), most)] if own else []
    return [placed(p, like) for held in ranks.gathered("samples", _sent(pieces, like)) for p in held]


def _sent(samples: Any, like: Tensor) -> Any:
    """As they go to another process: in memory of their own, without the batch that they are of."""
    return copied(placed(samples, like.new_zeros((), device="cpu")))
