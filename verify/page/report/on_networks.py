"""Tables of real networks in a sentence each: how far theory is off, and the network and data of each number."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from verify.page import ratios, wording
from verify.results import Observed

__all__ = ["Seen", "case", "ran_on", "seen"]


class Seen(NamedTuple):
    """The networks and data of a table, and its ratios: smallest and largest, each with its case."""

    where: str
    measure: str


def seen(made: Observed) -> Seen:
    """What a table of real networks says of theory: in the paper's column, and in the one that stays nearest to 1."""
    said = [f"{heading} {_reach(made, column)}" for heading, column in _telling(made)]
    measure = f"predicted over measured: {'; '.join(said)}" if said else ""
    return Seen(ran_on(made.replicate, made.data), measure)


def ran_on(replicate: str, data: str, one_of: str = "") -> str:
    """What was drawn, on which data, and which case of several.

    >>> ran_on("one LeNet-5 with 80 images", "digits", "steps = 60"), ran_on("", "digits", "LeNet-5")
    ('one LeNet-5 with 80 images (data: digits; steps = 60)', 'LeNet-5 (data: digits)')
    """
    first, *others = [part for part in (replicate, one_of) if part] or ["networks"]
    told = [f"data: {data}"] * bool(data) + others
    return f"{first} ({'; '.join(told)})" if told else first


def case(parameters: Mapping[str, Any]) -> str:
    """Parameters that tell a case from others; of words the word alone.

    >>> case({"network": "LeNet-5", "images": "digits", "steps": 60, "subtracted": True})
    'LeNet-5, digits, steps = 60, subtracted = yes'
    """
    said = (
        value if isinstance(value, str) else wording.parameters({name: value})
        for name, value in parameters.items()
    )
    return ", ".join(said)


def _telling(made: Observed) -> list[tuple[str, int]]:
    """The first column of ratios, which is the paper's, and the one that stays nearest to 1."""
    places = {column.heading: k for k, column in enumerate(made.columns) if column.ratio}
    listed = list(ratios.ratio_columns(made).items())
    if len(listed) > 2:
        listed[1:] = [min(listed[1:], key=lambda column: ratios.off_by(ratios.worst(column[1])))]
    return [(heading, places[heading]) for heading, _ in listed]


def _reach(made: Observed, column: int) -> str:
    """The smallest and the largest ratio of a column; the case of each, where they are not one number."""
    rows = [(row.cells[column].mean, group, row.at) for group in made.groups for row in group.rows]
    known = [row for row in rows if math.isfinite(row[0])]
    if not known:
        return "no number"
    least, most = (of(known, key=lambda row: row[0]) for of in (min, max))
    low, high = wording.numeral(least[0], 2), wording.numeral(most[0], 2)
    if low == high:
        return low
    ends = [
        (number, case(_apart(made, group.parameters)), _at(made, at))
        for number, (_, group, at) in ((low, least), (high, most))
    ]
    cases = [", ".join(filter(None, told)) for _, *told in ends]
    return " to ".join(
        f"{number} ({told})" if told else number for (number, *_), told in zip(ends, cases, strict=True)
    )


def _at(made: Observed, at: float | None) -> str:
    return "" if at is None else f"{made.axis or made.along} {wording.numeral(at, 3)}"


def _apart(made: Observed, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Of what differs between the groups of a table the words, if these alone tell them apart."""
    varying = [name for name in parameters if len({repr(g.parameters.get(name)) for g in made.groups}) > 1]
    words = [name for name in varying if isinstance(parameters[name], str)]
    told = {repr([group.parameters.get(name) for name in words]) for group in made.groups}
    return {name: parameters[name] for name in (words if len(told) == len(made.groups) else varying)}
