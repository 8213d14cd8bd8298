"""Findings on the first page: at most six a paper, each one sentence with its formula and one number."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from markupsafe import Markup, escape

from verify.model import Standing
from verify.page.main import PLOTS, MainRun
from verify.page.outcomes import mark_of
from verify.page.statements import (
    NOT_OF_A_PAPER,
    entry_order,
    fails_as_foreseen,
    first_authors,
    first_sentence,
    holds_as_foreseen,
    how_closely,
    how_far,
    rows_by_paper,
    rows_of_claims,
)  # fmt: skip
from verify.results import Results, Row

MOST, HOLD = 6, 2
"""Findings of a paper, and how many that hold where some do not."""

SHARED = "Newer papers and our own laws"
"""Heading of the findings on papers that state their own bound on errors, and on what no paper says."""

CHOSEN = (
    "granziol2022/theorem-4-on-networks", "granziol2022/linear-rate-of-small-batches", "granziol2022/theorem-7",
    "granziol2022/theorem-4", "granziol2022/theorem-10", "granziol2022/spectral-distance-as-cited",
    "vysogorets2024/balanced-gradient-vanishes", "vysogorets2024/excess-of-g-at-collapse", "vysogorets2024/prior-slope",
    "vysogorets2024/base-rate-exponent-deep", "vysogorets2024/eq-8", "vysogorets2024/zone-criterion",
    "karakida2019/recovery-above-the-limit", "karakida2019/not-centred", "karakida2019/centred-formal",
    "karakida2019/growth", "karakida2019/no-growth", "karakida2019/batch-norm-theorem",
    "edge/mean-of-batches-at-two-rates", "noise_scale/simple-scale-later", "beyond/own-directions", "edge/full-batch",
    "catapult/largest-rate-of-linear-networks", "adam_limit/surge",
)  # fmt: skip
"""Claims whose findings are shown, in this order, where a run has them; others follow the inventory."""

_NUMBER = re.compile(r"−?\d[\d.]*(?:\s×\s10\S+)?(?: %)?(?!.*measured)")
"""The first number of a measure, or what is measured where it says so."""


class Finding(NamedTuple):
    """A sentence with mark, formula (LaTeX), whose it is, the paper's qualifier, the row it leads to, and a number."""

    mark: str
    words: str
    formula: str
    whose: str
    qualifier: str
    target: str
    measure: Markup


def findings(results: Results) -> dict[str, list[Finding]]:
    """Return the findings by the name of their paper; newer ones share a list."""
    rows = rows_by_paper(results)
    names = {paper.id: paper.authors for paper in results.suite.papers}
    newer = {paper.id for paper in results.suite.papers if paper.family_error}
    newer |= {paper for paper in rows if all(row.standing in NOT_OF_A_PAPER for row in rows[paper])}
    names |= dict.fromkeys(newer, SHARED) if len(newer.intersection(rows)) > 1 else {}
    lists: dict[str, list[Row]] = {}
    for paper in sorted(rows, key=newer.__contains__):  # stable: those that share a list are last
        lists.setdefault(names.get(paper, paper), []).extend(rows[paper])
    marks = _marks(results)
    whose = {paper: name if paper in newer else "" for paper, name in first_authors(results).items()}
    shown = {
        name: [_finding(row, marks[row.claim], whose[row.paper]) for row in _chosen(own, results)]
        for name, own in lists.items()
    }
    return {name: listed for name, listed in shown.items() if listed}


def _marks(results: Results) -> dict[str, str]:
    """Return the mark of each claim: that of its main plot, which may judge more readings of the statement."""
    run = MainRun(results)
    plots = {
        run.rows[name].claim: plot.outcome(run)
        for plot in PLOTS
        for name in (plot.target, *plot.judged)
        if name in run.rows
    }
    return {claim: mark_of(rows) for claim, rows in rows_of_claims(results.rows).items()} | plots


def _chosen(rows: Sequence[Row], results: Results) -> list[Row]:
    """Return the rows that speak for the chosen claims, or else for those that fail and two that hold."""
    spoken = {claim: row for claim, own in rows_of_claims(rows).items() for row in _speaker(own)}
    if chosen := [spoken[claim] for claim in CHOSEN if claim in spoken]:
        return chosen[:MOST]
    listed = sorted(
        spoken.values(), key=lambda row: (row.standing in NOT_OF_A_PAPER, entry_order(row, results))
    )
    failing = [row for row in listed if fails_as_foreseen(row)][: MOST - HOLD]
    holding = [row for row in listed if holds_as_foreseen(row)]
    return [*holding[: HOLD if failing else MOST], *failing]


def _speaker(rows: Iterable[Row]) -> list[Row]:
    """Return the reading that fails, but for a misprint, else the one that holds; none of a surprise."""
    failing = [row for row in rows if fails_as_foreseen(row) and row.standing != Standing.MISPRINT]
    return [*failing, *filter(holds_as_foreseen, rows)][:1]


def _finding(row: Row, mark: str, whose: str) -> Finding:
    fails = fails_as_foreseen(row)
    measure = how_far(row) if fails else how_closely(row)
    measure = re.sub(" (?=±)|(?<=±) |(?<=measured) ", "\N{NO-BREAK SPACE}", measure)
    return Finding(
        mark=mark,
        words=first_sentence(row.finding) if fails and row.finding else row.says or row.quantity,
        formula=row.statement,
        whose=row.standing if row.standing in NOT_OF_A_PAPER else whose,
        qualifier=row.words if fails and row.standing == Standing.OUTSIDE else "",
        target=f"row/{row.id}",
        measure=Markup(_NUMBER.sub(r"<b>\g<0></b>", str(escape(measure)), count=1)),  # noqa: S704 - escaped
    )
