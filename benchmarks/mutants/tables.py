"""What a campaign found, as a record of numbers and as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from benchmarks.mutants.child import CAUGHT
from benchmarks.mutants.edits import KINDS, Edit

__all__ = ["CAUGHT", "line", "room", "summary", "told"]


def summary(
    counts: dict[str, Any], found: Iterable[dict[str, Any]], origin: dict[str, Any], root: Path
) -> dict[str, Any]:
    """What is kept of the campaign of one folder: how many edits there were, outcomes, all that was not caught."""
    mine = [row for row in found if row["file"].startswith(f"{counts['folder']}/")]
    return {
        **counts,
        **origin,
        "outcomes": dict(Counter(row["outcome"] for row in mine)),
        "kinds": _counted(mine, lambda row: row["kind"]),
        "rooms": _counted(mine, lambda row: room(row["file"])),
        "survivors": [_survivor(row, root) for row in mine if row["outcome"] not in (*CAUGHT, "inert")],
    }


def _counted(
    rows: Sequence[dict[str, Any]], of: Callable[[dict[str, Any]], str]
) -> dict[str, dict[str, int]]:
    """Outcomes by what `of` says of a row."""
    names = sorted({of(row) for row in rows})
    return {name: dict(Counter(row["outcome"] for row in rows if of(row) == name)) for name in names}


def room(file: str) -> str:
    """The topic that a file belongs to.

    >>> room("theory/own_direction.py"), room("theory/fisher/network.py")
    ('theory/own_direction', 'theory/fisher')
    """
    top, inside = PurePosixPath(file).parts[:2]
    return f"{top}/{inside.removesuffix('.py')}"


def _survivor(row: dict[str, Any], root: Path) -> dict[str, Any]:
    edit = Edit(**{name: row[name] for name in Edit.__dataclass_fields__})
    return {
        **{name: row[name] for name in ("file", "line", "kind", "outcome", "mover")},
        "becomes": edit.becomes(root),
        "margins": float(f"{row['margins']:.2g}"),
    }


def told(found: Sequence[dict[str, Any]]) -> str:
    """Rates by kind, and every edit that was not caught."""
    live = [row for row in found if row["outcome"] != "inert"]
    caught = [row for row in live if row["outcome"] in CAUGHT]
    inert = len(found) - len(live)
    lines = [f"{len(caught)} of {len(live)} caught, {len(caught) / max(len(live), 1):.0%}; {inert} inert"]
    for kind in KINDS:
        how = Counter(row["outcome"] for row in found if row["kind"] == kind)
        lines.append(f"{kind:14} {', '.join(f'{count} {name}' for name, count in how.most_common())}")
    for outcome in ("survived", "undecided", "unfinished", "inert"):
        rows = [row for row in found if row["outcome"] == outcome]
        lines += ["", f"{outcome}: {len(rows)}"]
        for row in rows:
            moved = f"{row['run']} of {row['asked']} claims, {row['margins']:.2g} margins {row['mover']}"
            lines.append(f"  {line(row)} ({moved})")
    return "\n".join(lines)


def line(row: dict[str, Any]) -> str:
    """An edit and what came of it."""
    where = f"{row['file']}:{row['line']}"
    return f"{row['outcome']:9} {row['kind']:13} {where}  {row['before']} -> {row['after']}  {row['claim']}"
