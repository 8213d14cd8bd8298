"""The verdict of a run in numbers of statements, by paper too, counts of claims and the error rate.

Terminal, pytest, JSON and page read it here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from verify.claims import registry
from verify.claims.records import stated_readings
from verify.model import Standing, Verdict
from verify.page.outcomes import (
    CORRECTED,
    FAILS,
    HOLDS,
    LIMITS,
    MARKS,
    SEEN,
    SHORT,
    Judged,
    mark_of,
    statement_outcomes,
)  # fmt: skip
from verify.page.statements import how_closely, how_far, largest_margins, rows_of_claims
from verify.page.vocabulary import EXACT
from verify.page.wording import percent
from verify.results import JudgedCounts, Promise, Results, Row
from verify.running.commits import commit
from verify.running.suite import version

STOPPED = ", the run was stopped"


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
    error = sum(promise.error for promise in promises if promise.decided)
    chance = f"{percent(error)} (one run in {1 / error:.0f})" if error > 0 else "0"
    many = f"{decided} verdict{'s' * (decided != 1)}"
    said = f"of the {many} decided by sampling, at most {chance} chance that any is wrong"
    return (said if decided else "no verdict was decided by sampling") + f"; {undecided} undecided" * bool(
        undecided
    )


class RunVerdict(NamedTuple):
    """Verdict of a run: statements of papers by outcome, or claims where no statement of a paper is judged.

    `outcomes` are marks with the words of the title. `registered` says how many claims came out as registered, and
    `surprises` are those that did not. `error` bounds the chance that any of the `decided` verdicts, those that rest on
    sampling, is wrong; it is the sum of `bounds` bounds.
    """

    outcomes: list[tuple[str, str]]
    claims: int
    registered: str
    surprises: list[Row]
    error: str
    decided: int
    bounds: int


def run_verdict(results: Results) -> RunVerdict:
    """Return the verdict of a run."""
    claims = rows_of_claims(results.rows)
    statements = Counter(statement_outcomes(results.inventory, results.rows).values())
    verdicts = {row.verdict for row in results.rows}
    surprises = [row for row in results.rows if row.surprise or row.verdict == Verdict.BROKEN]
    deciding = [promise for promise in results.suite.promises if promise.decided]
    return RunVerdict(
        outcomes=_outcomes(statements or Counter(map(mark_of, claims.values())), bool(statements)),
        claims=len(claims),
        registered=_registered(len(claims), len({row.claim for row in surprises}), "undecided" in verdicts),
        surprises=surprises,
        error=percent(sum(promise.error for promise in deciding)) if deciding else "",
        decided=sum(promise.decided for promise in deciding),
        bounds=len(deciding),
    )


@dataclass(frozen=True, kw_only=True)
class PaperScore:
    """Statements of a paper by outcome in words, and the largest deviation inside the paper's own condition.

    Readings as strong as stated and corrected ones are inside it: not formulas used outside, misprints or our own laws.
    Exact checks are left out, for their margins are roundings.

    Attributes
    ----------
    claim, margins, deviation
        Claim with that deviation, its size in margins, and in words; an empty claim if none was measured.
    """

    paper: str
    outcomes: dict[str, int]
    claim: str = ""
    margins: float = 0.0
    deviation: str = ""


@dataclass(frozen=True, kw_only=True)
class Scorecard:
    """Scores of all papers with statements, and what they are of: version, commit and selection of a run."""

    run: dict[str, Any]
    papers: list[PaperScore]


def scorecard(results: Results | None) -> Scorecard:
    """Return the scores of a run, or of the verdicts as registered.

    A statement that no claim of its paper judges counts as not judged, whatever the reason.
    """
    if results:
        inventory, readings, suite = results.inventory, results.rows, results.suite
        run = {"version": suite.version, "commit": suite.host.get("commit"), "selection": suite.selection}
    else:
        inventory = registry.inventory()
        readings = [reading for claim in registry.claims() for reading in stated_readings(claim)]
        run = {"version": version(), "commit": commit(), "selection": "verdicts as registered"}
    found, counts = statement_outcomes(inventory, readings), dict[str, dict[str, int]]()
    for entry in inventory:
        if not entry.ours:
            count = counts.setdefault(entry.paper, dict.fromkeys(MARKS.values(), 0))
            count[MARKS[found.get((entry.paper, entry.id), SEEN)]] += 1
    papers = [PaperScore(paper=paper, outcomes=counts[paper], **_far(paper, readings)) for paper in counts]
    return Scorecard(run=run, papers=papers)


def _far(paper: str, readings: Iterable[Judged]) -> dict[str, Any]:
    inside = (Standing.AS_STATED, Standing.CORRECTED)
    rows = [
        row for row in readings
        if isinstance(row, Row) and row.paper == paper and row.standing in inside
        and row.kind not in EXACT and row.verdict in (Verdict.AGREES, Verdict.DISAGREES)
    ]  # fmt: skip
    if not rows:
        return {}
    row = max(rows, key=largest_margins)
    words = how_far(row) or how_closely(row)
    return {"claim": row.claim, "margins": largest_margins(row), "deviation": words}


def _outcomes(counts: Counter[str], statements: bool) -> list[tuple[str, str]]:
    total, holding = counts.total(), counts[HOLDS]
    what = ("statement" if statements else "claim") + "s" * (total != 1)
    words = {
        LIMITS: SHORT[LIMITS],
        CORRECTED: SHORT[CORRECTED],
        FAILS: "does not" if counts[FAILS] == 1 else "do not",
        "undecided": "undecided",
        "broken": "crashed",
    }
    first = (HOLDS, f"{holding} of {total} {what} {'holds' if holding == 1 else 'hold'}")
    return [first, *((kind, f"{counts[kind]} {said}") for kind, said in words.items() if counts[kind])]


def _registered(claims: int, wrong: int, undecided: bool) -> str:
    if wrong:
        return f"{wrong} of {claims} claims did not come out as registered before the run"
    judged = "claim was judged, it" if claims == 1 else "claims were judged, each"
    said = f"{claims} {judged} came out as registered before the run" if claims else "No claim was judged"
    return said + ", or is undecided" * undecided
