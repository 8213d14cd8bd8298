"""Which entries of the inventory claims and observations cover, and where each entry stands for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from verify.model import AnyClaim, Standing
from verify.model.inventory import Entry, Status
from verify.model.observation import Observation
from verify.results import InventoryRow

__all__ = [
    "KNOWN",
    "OURS",
    "PAPER",
    "count_statements",
    "covered",
    "entry_of",
    "inventory_row",
    "whose",
    "whose_claim",
]

PAPER, KNOWN, OURS = "paper", "known elsewhere", "ours"
"""Whose a statement is: a paper states it, others have shown it, or neither."""

ORDER = (
    Status.JUDGED,
    Status.PARTLY,
    Status.OBSERVED,
    Status.DEFINITION,
    Status.OPEN,
    Status.NOT_CHECKABLE,
)
"""Of the count, those that are judged first."""


def count_statements(inventory: Sequence[InventoryRow]) -> dict[str, int]:
    """Return how many statements of papers have which status; those that no paper makes are not counted.

    The command line, the page and the README all give these numbers.
    """
    counts = Counter(entry.status for entry in inventory if not entry.ours)
    return {status.value: counts[status] for status in ORDER if counts[status]}


def whose_claim(claim: AnyClaim) -> str:
    """Return whose it is what a claim judges, as its passage says: `PAPER`, `KNOWN` or `OURS`."""
    standing = claim.passage.standing if claim.passage else None
    return {Standing.KNOWN: KNOWN, Standing.OURS: OURS}.get(standing, PAPER) if standing else PAPER


def whose(entry: InventoryRow, claims: Mapping[str, AnyClaim]) -> str:
    """Return whose a statement is; `claims`, by id, are those that judge it, and maybe others."""
    if not entry.ours:
        return PAPER
    known = [whose_claim(claims[name]) == KNOWN for name in entry.claims]
    return KNOWN if known and all(known) else OURS


def covered(items: Iterable[AnyClaim | Observation]) -> dict[tuple[str, str], list[str]]:
    """Ids of what covers each entry, by the paper and id of the entry, in the order of the items."""
    found: dict[tuple[str, str], list[str]] = {}
    for item in items:
        for entry in item.entries:
            found.setdefault(entry_of(item, entry), []).append(item.id)
    return found


def inventory_row(
    paper: str, entry: Entry, judged: list[str], seen: list[str], needs: Mapping[str, str]
) -> InventoryRow:
    """An entry with its status; `needs` are the images that a claim cannot do without, by its id."""
    status = _status(entry, bool(judged), bool(seen))
    reason = entry.scope if judged else "" if seen else entry.reason
    waiting = {
        needs[name]: [n for n in judged if needs.get(n) == needs[name]] for name in judged if name in needs
    }
    told = [f"on {needed} alone: {', '.join(names)}" for needed, names in waiting.items()]
    return InventoryRow(
        paper=paper,
        id=entry.id,
        title=entry.title,
        status=status,
        reason="; ".join(filter(None, [reason, *told])),
        claims=judged,
        observations=seen,
        ours=entry.ours or paper == "beyond",
    )


def _status(entry: Entry, judged: bool, seen: bool) -> str:
    if judged:
        return (Status.PARTLY if entry.scope else Status.JUDGED).value
    return Status.OBSERVED.value if seen else entry.status


def entry_of(item: AnyClaim | Observation, entry: str) -> tuple[str, str]:
    """The paper and id of an entry: its own paper's, or ``paper/id``."""
    paper, _, name = entry.rpartition("/")
    return (paper or item.paper, name)
