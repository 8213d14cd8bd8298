"""Counts of judged claims and the error rate of a run, in words, for the terminal, pytest and the page."""

from __future__ import annotations

from collections.abc import Sequence

from verify.page import wording
from verify.results import JudgedCounts, Promise, Suite

STOPPED = ", the run was stopped"


def lines(suite: Suite) -> list[str]:
    """The count of claims, and the promise on errors."""
    return [census_line(suite.census), promise_line(suite.promises)]


def census_line(census: JudgedCounts) -> str:
    """Return the line that counts judged claims and says why the others were left out.

    >>> census_line(JudgedCounts(known=495, asked=12, judged=12, left_out={"--paper": 400, "--tier smoke": 83}))
    '12 of 12 claims judged; 483 of 495 left out: 400 by --paper, 83 by --tier smoke'
    >>> census_line(JudgedCounts(known=3, asked=3, judged=1, missing=["a/b"]))
    '1 of 3 claims judged, the run was stopped; missing, dropped or renamed: a/b'
    """
    parts = [f"{census.judged} of {census.asked} claims judged" + STOPPED * (census.judged < census.asked)]
    if census.left_out:
        why = ", ".join(f"{count} by {reason}" for reason, count in census.left_out.items())
        parts.append(f"{sum(census.left_out.values())} of {census.known} left out: {why}")
    if census.missing:
        parts.append(f"missing, dropped or renamed: {', '.join(census.missing)}")
    return "; ".join(parts)


def promise_line(promises: Sequence[Promise]) -> str:
    """Return the line on the error rate of all families, whose bounds add up, and on undecided verdicts.

    >>> told = (("", 1e-3, 18, 3), ("edge", 2e-3, 7, 1), ("width", 1e-3, 0, 2))
    >>> promise_line([Promise(paper=p, error=e, decided=d, undecided=u) for p, e, d, u in told])
    'of the 25 verdicts decided by sampling, at most 0.3 % (one run in 333) chance that any is wrong; 6 undecided'
    >>> promise_line([Promise(paper="wigner1955", error=1e-3, decided=0, undecided=0)])
    'no verdict was decided by sampling'
    """
    decided, undecided = (sum(getattr(one, name) for one in promises) for name in ("decided", "undecided"))
    error = chance(sum(promise.error for promise in promises if promise.decided))
    many = f"{decided} verdict{'s' * (decided != 1)}"
    said = f"of the {many} decided by sampling, at most {error} chance that any is wrong"
    return (said if decided else "no verdict was decided by sampling") + f"; {undecided} undecided" * bool(
        undecided
    )


def chance(error: float) -> str:
    """A small probability in words.

    >>> chance(1e-3)
    '0.1 % (one run in 1000)'
    """
    return f"{percent(error)} (one run in {1 / error:.0f})" if error > 0 else "0"


def percent(share: float) -> str:
    """A share in percent.

    >>> percent(0.0123)
    '1.2 %'
    """
    return f"{wording.numeral(100 * share, 2)} %"
