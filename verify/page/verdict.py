"""The verdict of a run in numbers of statements, for the first page and the terminal."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from verify.model import Verdict
from verify.page.counts import percent
from verify.page.outcomes import FAILS, HOLDS, LIMITS, mark_of, statement_outcomes
from verify.page.statements import rows_of_claims
from verify.results import Results, Row

__all__ = ["RunVerdict", "run_verdict"]


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
    statements = Counter(statement_outcomes(results).values())
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


def _outcomes(counts: Counter[str], statements: bool) -> list[tuple[str, str]]:
    total, holding = counts.total(), counts[HOLDS]
    what = ("statement" if statements else "claim") + "s" * (total != 1)
    words = {
        LIMITS: "within limits or once corrected",
        FAILS: "does not" if counts[FAILS] == 1 else "do not",
        "undecided": "undecided",
        "broken": "crashed",
    }
    first = (HOLDS, f"{holding} of {total} {what} {'holds' if holding == 1 else 'hold'}")
    return [first, *((kind, f"{counts[kind]} {said}") for kind, said in words.items() if counts[kind])]


def _registered(claims: int, wrong: int, undecided: bool) -> str:
    if wrong:
        return f"{wrong} of {claims} claims did not come out as registered before the run"
    said = (
        f"{claims} claims were judged, each came out as registered before the run"
        if claims
        else "No claim was judged"
    )
    return said + ", or is undecided" * undecided
