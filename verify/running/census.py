"""Who was judged: the claims of a run beside those there are, and how many verdicts its promise on errors is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from verify.claims import register, registry
from verify.model import FAMILY_ERROR, Verdict
from verify.results import Census, Promise, Row

__all__ = ["census", "promises", "sampled"]

UNSAMPLED = ("identity", "exact property", "check")
"""Kinds of rows that no interval decides."""


def census(
    asked: Sequence[str], left_out: Mapping[str, int], rows: Sequence[Row], only: registry.Only = ()
) -> Census:
    """Count the claims of a run that was asked for these; `left_out` counts the others by what left them out.

    What is counted are the claims of the papers `only`, of all papers if it is empty.
    """
    return Census(
        known=len(registry.claims(only)),
        asked=len(asked),
        judged=len({row.claim for row in rows}),
        left_out=dict(left_out),
        missing=register.missing(only),
        withdrawn=register.withdrawn(only),
    )


def sampled(row: Row) -> bool:
    """Whether an interval decides it: what rests on a model of the size has no promise."""
    return row.kind not in UNSAMPLED and not row.model_based


def promises(rows: Sequence[Row], only: registry.Only = ()) -> list[Promise]:
    """One for the papers of this package, then one for each paper with a family of its own that was judged."""
    apart = {paper.id: paper.family_error for paper in registry.papers(only) if paper.family_size}
    ours = [row for row in rows if row.paper not in apart]
    found = [_promise("", FAMILY_ERROR, ours)] if ours else []
    for paper, error in apart.items():
        own = [row for row in rows if row.paper == paper]
        found += [_promise(paper, error, own)] if own else []
    return found


def _promise(paper: str, error: float, rows: Sequence[Row]) -> Promise:
    undecided = sum(sampled(row) and row.verdict == Verdict.UNDECIDED for row in rows)
    return Promise(paper=paper, error=error, decided=sum(map(sampled, rows)) - undecided, undecided=undecided)
