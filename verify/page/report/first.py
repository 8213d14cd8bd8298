"""The head of the first page: verdict of the run, its counts, and the main plots."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from markupsafe import Markup

from verify.model import Verdict
from verify.page.counts import percent
from verify.page.main import MainRun, draw_plot, main_plots
from verify.page.markup import themed
from verify.page.outcomes import FAILS, HOLDS, LIMITS, SEEN, limit_of, mark_of, statement_outcomes
from verify.page.statements import rows_of_claims
from verify.results import Results, Row

__all__ = ["Cell", "RunVerdict", "cells", "run_verdict"]


SHORT = {HOLDS: "holds", FAILS: "does not hold", SEEN: "not judged"}
"""Marks in short."""


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


class Cell(NamedTuple):
    """A main plot: where it is in its paper, its formula (LaTeX), mark and its words, figure, caption and target."""

    where: str
    formula: str
    mark: str
    said: str
    figure: Markup
    caption: str
    target: str


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


def cells(results: Results) -> list[Cell]:
    """Return the main plots that a run has the numbers for."""
    run, found = MainRun(results), list[Cell]()
    for plot in main_plots(results):
        try:
            figure, caption = themed(draw_plot(plot, run)), plot.caption(run)
        except (ArithmeticError, LookupError, StopIteration, TypeError, ValueError):
            continue  # a file of another version has other parameters; all that it has is on the cards
        mark = plot.outcome(run)
        said = (
            limit_of(run.rows[name] for name in plot.judged if name in run.rows)
            if mark == LIMITS
            else SHORT[mark]
        )
        found.append(Cell(plot.where, plot.formula, mark, said, figure, caption, plot.target))
    return found
