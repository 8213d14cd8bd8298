"""The last campaign of planted errors: one-line edits of theory and simulation, and how many the claims caught.

`python -m benchmarks.mutants` makes it, `python -m benchmarks.mutants.record` writes `campaign.json`, which is read
here for the page and for docs/mutants.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("campaign.json")

CRASHED = ("broken", "refused", "hung")
"""Caught without a verdict: a check crashed, a claim was no longer let in, or one never ended."""


@dataclass(frozen=True)
class Outcomes:
    """How edits came out.

    >>> tally = Outcomes({"disagrees": 5, "undecidable": 1, "broken": 2, "survived": 1, "unfinished": 1, "inert": 5})
    >>> tally.tried, tally.live, tally.caught, tally.crashed, tally.rate
    (15, 10, 8, 2, 0.8)
    """

    counts: Mapping[str, int]

    @property
    def tried(self) -> int:
        """All of them."""
        return sum(self.counts.values())

    @property
    def inert(self) -> int:
        """Those after which nothing that claims read has another value."""
        return self.counts.get("inert", 0)

    @property
    def live(self) -> int:
        """Those that change a value, or may: all but the inert ones."""
        return self.tried - self.inert

    @property
    def crashed(self) -> int:
        """Those that were caught without a verdict."""
        return sum(self.counts.get(name, 0) for name in CRASHED)

    @property
    def caught(self) -> int:
        """Those that a report would have shown."""
        return self.counts.get("disagrees", 0) + self.counts.get("undecidable", 0) + self.crashed

    @property
    def rate(self) -> float:
        """Caught of those that change a value; 1 of none."""
        return self.caught / self.live if self.live else 1.0


@dataclass(frozen=True, kw_only=True)
class Survivor:
    """An edit that was not caught, and why no claim can catch it; without a reason it is a gap.

    `margins` is the most by which measured minus predicted moved, in margins, for the claim `mover`.
    """

    file: str
    line: int
    function: str
    kind: str
    outcome: str
    run: int
    asked: int
    mover: str
    stands: str
    becomes: str
    margins: float
    reason: str


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """The campaign of one folder.

    `passed` edits touch refusals, tolerances or texts, `not_executed` code that no claim executes: neither is tried.
    """

    folder: str
    passed: int
    not_executed: int
    executed: int
    seed: int
    commit: str
    date: str
    all: Outcomes
    kinds: Mapping[str, Outcomes]
    rooms: Mapping[str, Outcomes]
    survivors: tuple[Survivor, ...]

    @property
    def unexplained(self) -> int:
        """Survivors without a reason."""
        return sum(not survivor.reason for survivor in self.survivors)


def campaigns(file: Path = FILE) -> tuple[Campaign, ...]:
    """The last campaign of each folder; none where none was recorded.

    Raises
    ------
    ValueError
        If the file is no record of a campaign.
    """
    if not file.exists():
        return ()
    try:
        return tuple(_campaign(one) for one in json.loads(file.read_text(encoding="utf-8"))["folders"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{file} must be a record of a campaign, got {error!r}") from None


def _campaign(raw: Mapping[str, Any]) -> Campaign:
    told = {
        name: raw[name] for name in ("folder", "passed", "not_executed", "executed", "seed", "commit", "date")
    }
    return Campaign(
        **told,
        all=Outcomes(raw["outcomes"]),
        kinds={name: Outcomes(outcomes) for name, outcomes in raw["kinds"].items()},
        rooms={name: Outcomes(outcomes) for name, outcomes in raw["rooms"].items()},
        survivors=tuple(Survivor(**one) for one in raw["survivors"]),
    )
