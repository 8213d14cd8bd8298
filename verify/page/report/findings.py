"""What a run found, in sentences: per paper what holds and how exactly, what fails, real networks, what is left open.

Every number is drawn from the results; the words are those of the claims (`says`), of their findings and of the titles
of their entries.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from verify.model import BOUNDS_EVERY_REPLICATE, ONE_SIDED, SPANS_SIZES, Kind, Standing, Verdict
from verify.model.inventory import Status
from verify.page import ratios, wording
from verify.page.cards import EXACT
from verify.page.counts import percent
from verify.results import InventoryRow, Observed, PointOutcome, Results, Row

__all__ = ["Finding", "PaperFindings", "corrections", "how_closely", "how_far", "paper_findings"]

MOST, FAILURES = 5, 3
"""Findings on the first page, of what holds and of what fails; the others are counted, with a link to all."""

TIMES = 2.0
"""From here on a ratio reads better as a factor than in percent."""


class Finding(NamedTuple):
    """A sentence of what was found: on what, in words, by how much, and the row, table or entry that it leads to."""

    on: str
    words: str
    measure: str
    target: str


class PaperFindings(NamedTuple):
    """What was found on one paper; each list holds the first few, with the number of all."""

    paper: str
    holds: list[Finding]
    all_hold: int
    misprints: list[Finding]
    other_misprints: list[Finding]
    fails: list[Finding]
    all_fail: int
    networks: list[Finding]
    judged_on_networks: tuple[int, int]
    partly: list[Finding]
    unjudged: list[Finding]


def paper_findings(results: Results, most: int = MOST) -> list[PaperFindings]:
    """What was found, paper by paper, in the order of the run: main theorems first."""
    papers = [paper.id for paper in results.suite.papers]
    shown = {item.paper for item in (*results.rows, *results.observations)}
    return [
        _on_paper(results, paper, most) for paper in (*papers, *sorted(shown - {*papers})) if paper in shown
    ]


def _on_paper(results: Results, paper: str, most: int) -> PaperFindings:
    rows = [row for row in results.rows if row.paper == paper]
    entries = [entry for entry in results.inventory if entry.paper == paper]
    titles, places = {e.id: e.title for e in entries}, {e.id: k for k, e in enumerate(entries)}
    hold = [row for row in rows if row.verdict == row.expected == Verdict.AGREES]
    fail = [row for row in rows if row.verdict == row.expected == Verdict.DISAGREES]
    misprints = _first([row for row in fail if row.standing == Standing.MISPRINT], results, places)
    others = _first([row for row in fail if row.standing != Standing.MISPRINT], results, places)
    real = [row for row in rows if row.data]
    seen = [made for made in results.observations if made.paper == paper and not made.error]
    beside = corrections(rows)

    def failure(row: Row) -> Finding:
        words = row.finding or _words(row, titles)
        return Finding(_place(row, results), words, _failure(row, beside), f"row/{row.id}")

    return PaperFindings(
        paper=paper,
        holds=_unlike(
            Finding(_place(row, results), _words(row, titles), how_closely(row), f"row/{row.id}")
            for row in _first(hold, results, places)
        )[:most],
        all_hold=len(hold),
        misprints=[failure(row) for row in misprints[:FAILURES]],
        other_misprints=[failure(row) for row in misprints[FAILURES:]],
        fails=[failure(row) for row in others[:FAILURES]],
        all_fail=len(others),
        networks=_observed(seen, most),
        judged_on_networks=(sum(row.verdict == row.expected for row in real), len(real)),
        partly=[_entry(entry) for entry in entries if entry.status == Status.PARTLY],
        unjudged=[_entry(entry) for entry in entries if entry.status in (Status.OPEN, Status.NOT_CHECKABLE)],
    )


def _unlike(listed: Iterable[Finding]) -> list[Finding]:
    """Those that say something new."""
    found: dict[str, Finding] = {}
    for finding in listed:
        found.setdefault(finding.words, finding)
    return list(found.values())


def corrections(rows: Sequence[Row]) -> dict[str, Row]:
    """The reading that the suite stands behind, by claim, where it agrees beside one that fails."""
    failing = {row.claim for row in rows if row.verdict == Verdict.DISAGREES}
    agreeing = [row for row in rows if row.verdict == Verdict.AGREES and row.claim in failing]
    return {row.claim: row for row in agreeing}


def how_closely(row: Row) -> str:
    """How exactly theory holds, over all points of a row that agrees.

    For a mean the largest deviation with its half-width, in percent of the prediction where the margin is relative.
    """
    if not row.points:
        return ""
    if row.kind in EXACT:
        return _exactly(row)
    if row.kind in BOUNDS_EVERY_REPLICATE:
        return f"in every one of {sum(point.replicates for point in row.points)} replicates"
    if row.kind in ONE_SIDED:
        return _bounded(row)
    if row.kind == Kind.DISTRIBUTION:
        return f"distribution functions at most {wording.numeral(max(p.upper for p in row.points), 2)} apart"
    if row.kind == Kind.EXPONENT:
        point = _worst(row.points, _off)
        return f"exponent {wording.measurement(point)}, predicted {wording.numeral(point.predicted, 3)}"
    off = max(map(_relative if row.relative else _off, row.points))
    if not math.isfinite(off):
        return ""
    limit = ", extrapolated in size" if row.kind in SPANS_SIZES and row.model_based else ""
    return (f"within {percent(off)}" if row.relative else f"within {wording.numeral(off, 2)}") + limit


def how_far(row: Row) -> str:
    """How far off a formula is that fails, at the point where it is farthest off.

    A factor or percent of what was measured; both numbers where one of them is 0 or their signs differ.
    """
    wrong = [p for p in row.points if p.verdict == Verdict.DISAGREES]
    if not wrong:
        return ""
    if row.kind in EXACT:
        off = max(p.measured for p in wrong)
        return f"off by {percent(off)}" if off < 1 and row.kind == "identity" else "fails outright"
    if row.kind in BOUNDS_EVERY_REPLICATE:
        return f"broken in {percent(max(p.measured for p in wrong))} of the replicates"
    point = _worst(wrong, lambda p: ratios.off_by(_over(p)) if row.relative else _off(p))
    over = _over(point)
    if not row.relative or not 0 < over < math.inf:
        return f"{wording.numeral(point.predicted, 3)} where {wording.numeral(point.measured, 3)} is measured"
    if ratios.off_by(over) >= TIMES:
        return f"{wording.numeral(ratios.off_by(over), 2)} times too {'large' if over > 1 else 'small'}"
    return f"{percent(abs(over - 1))} too {'large' if over > 1 else 'small'}"


# --- which come first


def _first(rows: Iterable[Row], results: Results, places: Mapping[str, int]) -> list[Row]:
    """Statements of the paper before ours, theorems before equations, in the order of entries, one for each place."""

    def rank(row: Row) -> tuple[bool, int, bool, bool, int]:
        entry = min((places.get(name, len(places)) for name in row.entries), default=len(places))
        exact = not row.points or row.kind in EXACT
        ours = row.standing == Standing.OURS or row.source.startswith("ours")
        return ours, _level(row), bool(row.data), exact, entry

    found: dict[str, Row] = {}
    for row in sorted(rows, key=rank):
        found.setdefault(_statement(_place(row, results)), row)
    return list(found.values())


_LEVELS = (r"theorem|proposition", r"lemma|corollary|algorithm", r"eqs?\.|eq\b")


def _level(row: Row) -> int:
    """How much of a statement it is: a theorem, a lemma, an equation, a remark."""
    return next(
        (k for k, word in enumerate(_LEVELS) if re.search(word, row.source, re.IGNORECASE)), len(_LEVELS)
    )


def _statement(place: str) -> str:
    """The first numbered statement that a place names; the place itself where it names none."""
    found = re.search(r"(theorem|lemma|proposition|eqs?\.?) \(?(\w[\w.]*)", place, re.IGNORECASE)
    return found.group().lower() if found else place


# --- in words


def _place(row: Row, results: Results) -> str:
    """Where it stands in its paper, without its authors."""
    authors = [paper.authors for paper in results.suite.papers if paper.id == row.paper]
    place = row.source
    for name in authors:
        place = place.replace(f"{name}, ", "").replace(f" of {name}", "")
    place = place.partition(";")[0]
    if place.startswith(("ours", "Ours")) and row.entries:
        return row.entries[0]
    return place[:1].upper() + place[1:]


def _words(row: Row, titles: Mapping[str, str]) -> str:
    said = row.says or next((titles[name] for name in row.entries if name in titles), "")
    return said or row.quantity or row.claim.partition("/")[2]


def _failure(row: Row, beside: Mapping[str, Row]) -> str:
    """How exactly the statement that replaces it holds, and how far off it is itself."""
    instead = beside.get(row.claim)
    closely = how_closely(instead) if instead else ""
    if instead is None or not closely:
        return how_far(row)
    if instead.standing == Standing.CORRECTED:
        return f"corrected: {closely}; as our copy reads: {how_far(row)}"
    return f"{how_far(row)}; what holds instead: {closely}"


def _entry(entry: InventoryRow) -> Finding:
    return Finding(entry.id, entry.title, entry.reason, f"entry/{entry.paper}/{entry.id}")


def _observed(seen: Sequence[Observed], most: int) -> list[Finding]:
    """Tables on real networks, those with ratios first: where theory is farthest off, and where it is nearest."""
    found = []
    for made in sorted(seen, key=lambda made: not ratios.ratio_columns(made)):
        columns = ratios.ratio_columns(made)
        said = [f"{heading} {_reach(values)}" for heading, values in _telling(columns)]
        measure = f"predicted over measured: {'; '.join(said)}" if said else ""
        found.append(Finding("", made.title, measure, f"observed/{made.id}"))
    return found[:most]


def _telling(columns: Mapping[str, Sequence[float]]) -> list[tuple[str, Sequence[float]]]:
    """The first column, which is the paper's, and the one that stays nearest to 1."""
    listed = list(columns.items())
    if len(listed) < 2:
        return listed
    nearest = min(listed[1:], key=lambda column: ratios.off_by(ratios.worst(column[1])))
    return [listed[0], nearest]


def _reach(values: Sequence[float]) -> str:
    known = [value for value in values if math.isfinite(value)]
    if not known:
        return "no number"
    low, high = wording.numeral(min(known), 2), wording.numeral(max(known), 2)
    return low if low == high else f"{low} to {high}"


# --- numbers


def _exactly(row: Row) -> str:
    if row.kind != "identity":
        return f"no counterexample, to {wording.numeral(max(p.margin for p in row.points), 1)}"
    off = max(p.measured for p in row.points)
    return f"two routes agree to {wording.numeral(off, 1)}" if off > 0 else "two routes agree in every digit"


def _bounded(row: Row) -> str:
    """A bound on a mean, and how near to it the mean comes."""
    slacks = [p.slack for p in row.points if p.slack is not None and math.isfinite(p.slack)]
    if not slacks:
        return "the bound is kept"
    lower = row.kind == Kind.AT_LEAST
    tightest = min(slacks) if lower else max(slacks)
    return f"kept, at {'least' if lower else 'most'} {wording.numeral(tightest, 2)} of the bound"


def _worst(points: Sequence[PointOutcome], by: Callable[[PointOutcome], float]) -> PointOutcome:
    return max(points, key=lambda p: -1.0 if math.isnan(by(p)) else by(p))


def _off(point: PointOutcome) -> float:
    """The farthest that the truth may lie from the prediction: the deviation and the half-width."""
    return abs(point.measured - point.predicted) + wording.half_width(point)


def _relative(point: PointOutcome) -> float:
    return _off(point) / abs(point.predicted) if point.predicted else math.inf


def _over(point: PointOutcome) -> float:
    return point.predicted / point.measured if point.measured else math.inf
