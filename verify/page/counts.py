"""Counts of judged claims and the error rate of a run, in words, for the terminal, pytest and the page."""

from __future__ import annotations

from collections.abc import Sequence

from verify.page import wording
from verify.results import JudgedCounts, Promise, Suite

STOPPED = ", the run was stopped"


def lines(suite: Suite) -> list[str]:
    """The count of claims, and a promise for each family that was judged."""
    return [census_line(suite.census), *promise_lines(suite.promises)]


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


def promise_lines(promises: Sequence[Promise]) -> list[str]:
    """A line for each family, but one for all papers that have one of their own; first what they add up to, if several.

    >>> told = (("", 1e-3, 18, 3), ("edge", 2e-3, 7, 1), ("width", 1e-3, 4, 2))
    >>> families = [Promise(paper=p, error=e, decided=d, undecided=u) for p, e, d, u in told]
    >>> for line in promise_lines(families):
    ...     print(line.replace(" decided by sampling", "").replace(" chance that any is wrong", ""))
    of all 29 verdicts, at most 0.4 % (one run in 250)
    papers that share one promise: of the 18 verdicts, at most 0.1 % (one run in 1000); 3 undecided
    edge, width: of the 11 verdicts, at most 0.3 % (one run in 333); 3 undecided
    """
    shared, own = [p for p in promises if not p.paper], [p for p in promises if p.paper]
    families = [*shared, _joint_promise(own)] if len(own) > 1 else [*shared, *own]
    several = sum(p.decided > 0 for p in families) > 1
    told = [promise_line(promise, SHARED if several and not promise.paper else "") for promise in families]
    deciding = [promise for promise in families if promise.decided]
    if len(deciding) < 2:
        return told
    every = _joint_promise(deciding)
    bound = f"at most {chance(every.error)} chance that any is wrong"
    return [f"of all {every.decided} verdicts decided by sampling, {bound}", *told]


def _joint_promise(promises: Sequence[Promise]) -> Promise:
    """Return the joint promise of several families of claims; their errors add up."""
    return Promise(
        paper=", ".join(promise.paper for promise in promises if promise.paper),
        error=sum(promise.error for promise in promises),
        decided=sum(promise.decided for promise in promises),
        undecided=sum(promise.undecided for promise in promises),
    )


SHARED = "papers that share one promise"


def promise_line(promise: Promise, whose: str = "") -> str:
    """Return the line on the error rate of a family and its undecided verdicts; `whose` replaces the paper's name.

    >>> promise_line(Promise(paper="", error=1e-3, decided=18, undecided=1))
    'of the 18 verdicts decided by sampling, at most 0.1 % (one run in 1000) chance that any is wrong; 1 undecided'
    >>> promise_line(Promise(paper="wigner1955", error=1e-3, decided=0, undecided=0))
    'wigner1955: no verdict was decided by sampling'
    >>> promise_line(Promise(paper="", error=1e-3, decided=1, undecided=0), "others")
    'others: of the 1 verdict decided by sampling, at most 0.1 % (one run in 1000) chance that any is wrong'
    """
    whose = whose or promise.paper.replace("_", " ")
    said = "no verdict was decided by sampling"
    if promise.decided:
        many = f"{promise.decided} verdict{'s' * (promise.decided != 1)}"
        said = f"of the {many} decided by sampling, at most {chance(promise.error)} chance that any is wrong"
    return f"{whose}: " * bool(whose) + said + f"; {promise.undecided} undecided" * bool(promise.undecided)


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
