"""The last campaign of planted errors: one-line edits of theory and simulation, and how many the claims caught.

`python -m benchmarks.mutants` makes it, `python -m benchmarks.mutants.record` writes `campaign.json`, which is read
here for the page and for docs/mutants.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

FILE = Path(__file__).with_name("campaign.json")


class Outcomes(NamedTuple):
    """Numbers of planted edits by outcome.

    Attributes
    ----------
    inert
        Edits that change no value that claims read.
    caught, crashed
        Edits that a report would have shown, and those of them without a verdict: a check crashed, a claim was no
        longer admitted, or a check never ended.

    >>> tally = Outcomes(15, 5, 8, 2)
    >>> tally.live, tally.rate
    (10, 0.8)
    """

    tried: int
    inert: int
    caught: int
    crashed: int

    @property
    def live(self) -> int:
        """Number of edits that change a value, or may: all but the inert ones."""
        return self.tried - self.inert

    @property
    def rate(self) -> float:
        """Share of edits that change a value which were caught; 1 if there are none."""
        return self.caught / self.live if self.live else 1.0


class Survivor(NamedTuple):
    """An edit that was not caught: `file:line`, its kind, and what the line became.

    `margins` is the largest change of measured minus predicted, in margins, which is that of the claim `mover`.
    `reason` says why no claim can catch the edit; without one it is a gap.
    """

    place: str
    kind: str
    becomes: str
    outcome: str
    margins: float
    mover: str
    reason: str


class Campaign(NamedTuple):
    """The campaign of one folder.

    `passed` edits touch refusals, tolerances or texts; `not_executed` ones touch code that no claim executes. Neither
    are tried.
    """

    folder: str
    passed: int
    not_executed: int
    executed: int
    seed: int
    commit: str
    date: str
    kinds: Mapping[str, Outcomes]
    survivors: Sequence[Survivor]

    @property
    def all(self) -> Outcomes:
        """Outcomes summed over all kinds of edits."""
        return Outcomes(*map(sum, zip(*self.kinds.values(), strict=True)))

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
        return tuple(_campaign(**one) for one in json.loads(file.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{file} must be a record of a campaign, got {error!r}") from None


def _campaign(*, kinds: Any, survivors: Any, **origin: Any) -> Campaign:
    tallies = {name: Outcomes(*row) for name, row in kinds.items()}
    return Campaign(**origin, kinds=tallies, survivors=[Survivor(*row) for row in survivors])
