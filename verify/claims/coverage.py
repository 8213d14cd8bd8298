"""Which entries of the inventory claims and observations cover, and where each entry stands for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from verify.model import AnyClaim
from verify.model.inventory import Entry, Status
from verify.model.observation import Observation
from verify.results import InventoryRow

__all__ = ["covered", "entry_of", "inventory_row"]


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
