"""Questions about the samples of an objective: whether they see each other, and whether the loss may be taken in parts.

| question | what it is put to |
|---|---|
| `all_coupling` | at most 32 samples of all data, and both parts of three splits of them; then the next question |
| `model_mixing` | a batch of the largest size that a pass takes, and its first samples: as many as other passes take |
| `rows_apart` | one of a few samples, alone |
| `gives_sum` | the samples of the first question, and both halves of a batch |

Each is asked once of each data, the first one once of each loss, and again of sizes that are
new. The answers are kept in `Objective.answers`, as are
those of `simulate.modules.sites`, which asks in which order samples lie where the parameters act.

What they leave out: samples that see each other only in some batches of a size, because of what these hold, unless
those are the first batch of the largest size or the samples of the first question; and of more than four sizes of
batches those in between. What takes samples one by one, or some at a time, compares their outputs with those of the
whole batch, see `simulate.modules.sample_parts`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from torch import Tensor

from simulate.objectives.additivity import MIXED, SUM, Piece, alone, chosen, coupling, halves, mixing, spaced
from simulate.objectives.asked import Asked
from simulate.objectives.batches import Batch, copied, cuttable, of_several, placed, rows
from simulate.objectives.heads import Few
from simulate.objectives.ranks import Ranks
from simulate.objectives.restoring import as_found
from simulate.objectives.soundness import trusted

__all__ = [
    "all_coupling",
    "asked_once",
    "few_samples",
    "gives_sum",
    "kept_answers",
    "largest_batch",
    "model_mixing",
    "of_one",
    "rows_apart",
    "spread_samples",
]

_FEW = 3
"""Samples that questions about a model are put to."""

_SIZES = 4
"""Sizes of batches that are asked about at most."""

_ASKED = 128
"""Samples of all processes that are asked whether the loss may be taken in parts, two of each at least."""

_Answer = TypeVar("_Answer")


class AskedSamples(Asked, Protocol):
    """Protocol for objectives whose samples are asked about; the attributes are those of `Objective`."""

    answers: dict[str, Any]
    sizes: tuple[int, ...]
    several: bool
    own_rows: int
    ranks: Ranks

    @property
    def pass_size(self) -> int:
        """Samples that a pass takes at most."""
        ...

    @property
    def coupling(self) -> str:
        """Why the loss of a batch is not that of its parts."""
        ...

    def at_few(self) -> Asked:
        """Itself, or at a few positions."""
        ...

    def given(self) -> Iterator[Piece]:
        """The batches as they are given."""
        ...

    def weighed(self, inputs: Any, targets: Any) -> Batch:
        """A batch with its factor in the loss."""
        ...


def asked_once(question: Callable[[Any], _Answer]) -> Callable[[Any], _Answer]:
    """Keep the answer with the objective: what a model does is the same each time, as `require_sound` makes sure."""

    @functools.wraps(question)
    def answer(objective: Any) -> _Answer:
        known, name = objective.answers, question.__name__
        if name not in known:
            known[name] = question(objective)
        return known[name]

    return answer


def kept_answers(answers: dict[str, Any]) -> dict[str, Any]:
    """Return the answers that hold for other data too: what couples samples, and the sizes that were asked about."""
    return {name: answers[name] for name in ("loss_coupling", "sizes") if name in answers}


def all_coupling(objective: AskedSamples) -> str:
    """Return what couples the samples of a batch, of any size that is used, in words; empty if nothing does."""
    known: frozenset[int] = objective.answers.get("sizes", frozenset())
    if not loss_coupling(objective) and not known.issuperset(objective.sizes):
        objective.answers["sizes"] = known.union(objective.sizes)
        if model_mixing(objective) == MIXED:
            objective.answers["loss_coupling"] = MIXED
    return loss_coupling(objective)


@asked_once
def loss_coupling(objective: AskedSamples) -> str:
    """Return what couples a few samples of all data, in words; empty if nothing does."""
    return _coupled(objective, spread_samples(objective))


@asked_once
def model_mixing(objective: AskedSamples) -> str:
    """Return how the model mixes samples in batches of the sizes that are used, in words; empty if it does not."""
    asked = objective.at_few()
    if trusted(asked):
        return ""
    batch, sizes = largest_batch(objective), objective.sizes
    if not cuttable(batch.inputs, batch.targets):
        return ""
    with as_found(objective.model, objective.training):
        wanted = [sizes[i] for i in spaced(len(sizes), _SIZES)]
        found = [mixing(asked, batch.part(slice(0, size))) for size in wanted]
    return MIXED if MIXED in found else next(filter(None, found), "")


@asked_once
def rows_apart(objective: AskedSamples) -> bool:
    """Return whether the model gives every sample the outputs that it has alone, as a row."""
    asked = objective.at_few()
    batch = asked.few()
    coupled = objective.several and not objective.training and objective.coupling == MIXED
    if coupled or model_mixing(objective) or not cuttable(batch.inputs, batch.targets):
        return False
    with as_found(objective.model, objective.training):
        return alone(asked, batch)


def gives_sum(objective: AskedSamples) -> bool:
    """Return whether the loss function gives the sum over the samples of a batch, though it is taken for their mean.

    Asked of a few samples, and if it looks so of both halves of a batch: what divides by the number of something rare
    is no sum.
    """
    pieces, whole = spread_samples(objective), objective.at_few().few(whole=True)
    return objective.reduction == "mean" and all(
        _coupled(objective, some, loss_alone=True) == SUM
        for some in (pieces, halves((whole.inputs, whole.targets)))
    )


def _coupled(objective: AskedSamples, pieces: Sequence[Piece], *, loss_alone: bool = False) -> str:
    with as_found(objective.model, objective.training):
        return coupling(objective.at_few(), pieces, most=objective.pass_size, loss_alone=loss_alone)


# --- the samples that questions are put to, in a group those of all processes, the same in each --------------------


def few_samples(objective: AskedSamples, *, whole: bool = False) -> Batch:
    """Return a few samples of the first batch that has several; all of it if `whole`, or where it cannot be cut."""
    ranks, known = objective.ranks, objective.answers
    if ranks.several and not whole and "few" in known:
        return known["few"]
    with ranks.together("a few samples"), as_found(objective.model, objective.training):
        own = None
        if objective.own_rows or not ranks.several:
            own = of_several(objective.weighed(*given) for given in objective.given())
            if not (whole or objective.training) and cuttable(own.inputs, own.targets):
                own = own.part(slice(0, _FEW))
    if own is not None and not ranks.several:
        return own
    use = 0 if own is None else 1 + bool(own.factor) * min(rows(own.targets), 2)
    found = _of_most(ranks, own, use, objective.leaves()[0])
    if not whole:
        known["few"] = found
    return found


def largest_batch(objective: AskedSamples) -> Batch:
    """Return the first batch of the largest size that a pass takes, or so much of a larger one."""
    ranks, most = objective.ranks, objective.pass_size
    with ranks.together("a few samples"), as_found(objective.model, objective.training):
        own: Batch | None = None
        for given in objective.given():
            if own is None or rows(given[1]) > rows(own.targets):
                own = objective.weighed(*given)
            if rows(own.targets) >= most:
                break
        if own is not None and rows(own.targets) > most and cuttable(own.inputs, own.targets):
            own = own.part(slice(0, most))
    if own is not None and not ranks.several:
        return own
    return _of_most(ranks, own, 0 if own is None else rows(own.targets), objective.leaves()[0])


@asked_once
def spread_samples(objective: AskedSamples) -> list[Piece]:
    """Return a few samples of all data, one by one; where there is a head with a few of their targets."""
    ranks, asked = objective.ranks, objective.at_few()
    with ranks.together("a few samples"), as_found(objective.model, objective.training):
        found = chosen(objective.given())
    if ranks.several:
        most = max(2, _ASKED // ranks.size)
        some, like = [found[i] for i in spaced(len(found), most)] if found else [], objective.leaves()[0]
        held = ranks.gathered("samples", _sent(some, like))
        found = [placed(piece, like) for pieces in held for piece in pieces]
    return asked.pieces(found) if isinstance(asked, Few) else found


def of_one(ranks: Ranks, rank: int, own: Any, like: Tensor) -> Any:
    """Samples of one process, on the device of a tensor here."""
    return placed(ranks.of_one("samples", rank, _sent(own, like)), like) if ranks.several else own


def _of_most(ranks: Ranks, own: Batch | None, use: int, like: Tensor) -> Batch:
    """The samples of the process that has most use for them."""
    uses = ranks.gathered("a few samples", use)
    return Batch(*of_one(ranks, uses.index(max(uses)), own, like))


def _sent(samples: Any, like: Tensor) -> Any:
    """As they go to another process: in memory of their own, without the batch that they are of."""
    return copied(placed(samples, like.new_zeros((), device="cpu")))
