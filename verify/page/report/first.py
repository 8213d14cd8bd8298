"""The head of the first page: verdict of the run, its counts, and the main plots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from markupsafe import Markup

from verify.model import Verdict
from verify.page.counts import percent
from verify.page.main import MainRun, draw_plot, main_plots
from verify.page.markup import themed
from verify.page.outcomes import mark_of, statement_outcomes
from verify.page.statements import rows_of_claims
from verify.results import Results, Row

__all__ = ["Cell", "RunVerdict", "cells", "run_verdict"]


class RunVerdict(NamedTuple):
    """Verdict of a run in a line, what came out otherwise than declared, the chance of an error, and counts.

    `error` is of the `decided` verdicts, those that rest on sampling. `counts` are of statements of papers by outcome,
    or of claims where no statement of a paper is judged.
    """

    title: str
    surprises: list[Row]
    claims: int
    error: str
    decided: int
    counts: Mapping[str, int]
    counted: str


class Cell(NamedTuple):
    """A main plot: where it is in its paper, its formula (LaTeX), mark, figure, caption and target."""

    where: str
    formula: str
    mark: str
    figure: Markup
    caption: str
    target: str


def run_verdict(results: Results) -> RunVerdict:
    """Return the verdict of a run."""
    claims = rows_of_claims(results.rows)
    surprises = [row for row in results.rows if row.surprise or row.verdict == Verdict.BROKEN]
    wrong = len({row.claim for row in surprises})
    undecided = len(
        {row.claim for row in results.rows if row.verdict == Verdict.UNDECIDED and not row.surprise}
    )
    error = sum(promise.error for promise in results.suite.promises if promise.decided)
    statements = Counter(statement_outcomes(results).values())
    return RunVerdict(
        title=_title(len(claims), wrong, undecided),
        surprises=surprises,
        claims=len(claims),
        error=percent(error) if error else "",
        decided=sum(promise.decided for promise in results.suite.promises),
        counts=statements or Counter(map(mark_of, claims.values())),
        counted="statement" if statements else "claim",
    )


def _title(claims: int, wrong: int, undecided: int) -> str:
    if not claims:
        return "No claim was judged"
    many = f"{claims} claim{'s' * (claims != 1)}"
    still = f"{undecided} {'is' if undecided == 1 else 'are'} undecided"
    if wrong:
        return f"{wrong} of {many} did not come out as declared" + f", {still}" * bool(undecided)
    if undecided:
        return f"{claims - undecided} of {many} came out as declared, {still}"
    return "The claim came out as declared" if claims == 1 else f"All {many} came out as declared"


def cells(results: Results) -> list[Cell]:
    """Return the main plots that a run has the numbers for."""
    run, found = MainRun(results), list[Cell]()
    for plot in main_plots(results):
        try:
            figure, caption = themed(draw_plot(plot, run)), plot.caption(run)
        except (ArithmeticError, LookupError, StopIteration, TypeError, ValueError):
            continue  # a file of another version has other parameters; all that it has is on the cards
        found.append(Cell(plot.where, plot.formula, plot.outcome(run), figure, caption, plot.target))
    return found
