"""Findings of a run, paper by paper, and its main statements at a glance.

The words are those of the claims (`says`), of their findings and of the titles of their entries.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from verify.judging.judge import PRINTED
from verify.model import Standing, Verdict
from verify.model.inventory import Status
from verify.page import ratios
from verify.page.report.statements import (
    capitalised,
    corrections,
    distinct_statements,
    entry_order,
    fails_as_foreseen,
    farthest,
    foremost,
    holds_as_foreseen,
    how_closely,
    how_far,
    importance,
    left_to_a_fuller,
    misprinted,
    number_of,
    place,
    predicted_over,
    slip_stands,
)
from verify.page.vocabulary import EXACT
from verify.results import Observed, Results, Row

MOST, FAILURES = 5, 3
"""Findings on the first page, of what holds and of what fails; the others are counted, with a link to all."""

MAIN, FEWEST = 6, 2
"""Main statements of a paper that are shown, and readings below which an equation is none, unless on networks."""

FAILING = (Standing.AS_STATED, Standing.CORRECTED, Standing.OUTSIDE, Standing.KNOWN, Standing.OURS)
"""Sorts of failures except misprints; a reading outside the paper's own condition is no error of the paper."""

OF_THE_PAPER = (Standing.AS_STATED, Standing.MISPRINT, Standing.CORRECTED)
"""Readings of what a paper states, under its own condition."""

ROUNDING = 1e-3
"""Two routes that part by more agree by an approximation."""


# --- on real networks --------------------------------------------------------------------------------------------


class OnNetworks(NamedTuple):
    """Verdict on the readings of a statement on real networks, with its words and rows.

    `sort` names the readings that are not the paper's under its own condition; it is empty where they are.
    """

    sort: str
    verdict: str
    words: str
    there: list[str]


def _on_networks(rows: Sequence[Row]) -> list[OnNetworks]:
    """Readings of the paper under its own condition, then the others by sort.

    A formula as our copy reads stands for its claim only where the claim has no other: else it is no second statement.
    """
    judged = [row for row in rows if row.data]
    repaired = {row.claim for row in judged if row.reading != PRINTED}
    groups: dict[str, list[Row]] = {"": [], **{standing: [] for standing in Standing}}
    for row in judged:
        if row.reading != PRINTED or row.claim not in repaired:
            groups["" if row.standing in OF_THE_PAPER else row.standing].append(row)
    found = []
    for sort, real in groups.items():
        verdicts = {row.verdict for row in real}
        if real:
            together = next(
                (v for v in (Verdict.DISAGREES, Verdict.UNDECIDED) if v in verdicts), max(verdicts)
            )
            found.append(OnNetworks(sort, together, _how_many(real, rows), [f"row/{row.id}" for row in real]))
    return found


def _how_many(real: Sequence[Row], judged: Sequence[Row]) -> str:
    """Return the number of these readings that agree, and how far off the worst one is."""
    agree = sum(row.verdict == Verdict.AGREES for row in real)
    failing = [row for row in real if fails_as_foreseen(row)]
    scaled = [row for row in failing if row.relative or row.logarithm]

    def off(row: Row) -> float:
        point = farthest(row)
        return ratios.off_by(predicted_over(row, point)) if point else 0.0

    worst = max(scaled or failing, key=off, default=None)
    said = f"{agree} of {len(real)} {'reading agrees' if len(real) == 1 else 'readings agree'}"
    if worst is None:
        return said
    network = worst.replicate.partition(",")[0]
    as_read = [
        row for row in judged if row.claim == worst.claim and row not in real and fails_as_foreseen(row)
    ]
    far = " and as our copy reads ".join(dict.fromkeys([how_far(worst), *map(how_far, as_read)]))
    return f"{said}, the worst {far}" + f" on {network}" * bool(network)


# --- findings, paper by paper ------------------------------------------------------------------------------------


class Finding(NamedTuple):
    """A sentence of what was found: on what, in words, by how much, and the row, table or entry that it leads to.

    `basis` is what its verdict rests on, or that it has none, and `where` the network and data of its number.
    """

    on: str
    words: str
    measure: str
    target: str
    basis: str = ""
    where: str = ""


class Failing(NamedTuple):
    """The first findings of one sort that fails, and how many readings of how many statements there are."""

    standing: str
    listed: list[Finding]
    readings: int
    statements: int


class PaperFindings(NamedTuple):
    """Findings on one paper; `holds` and `fails` have the first few, with the number of all.

    `misprints` are those that are judged as our copy reads, `all_misprints` counts the statements in the table of them;
    `tables` are of real networks, not judged; `left_open` are entries, by why they are.
    """

    paper: str
    holds: list[Finding]
    all_hold: int
    misprints: list[Finding]
    all_misprints: int
    fails: list[Failing]
    networks: list[OnNetworks]
    tables: list[Finding]
    left_open: dict[str, list[Finding]]


def paper_findings(results: Results) -> list[PaperFindings]:
    """Return the findings of each paper in the order of the run, main theorems first."""
    papers = [paper.id for paper in results.suite.papers]
    shown = {item.paper for item in (*results.rows, *results.observations, *left_to_a_fuller(results))}
    return [_on_paper(results, paper) for paper in (*papers, *sorted(shown - {*papers})) if paper in shown]


def _on_paper(results: Results, paper: str) -> PaperFindings:
    rows = [row for row in results.rows if row.paper == paper]
    hold, fail = (
        [row for row in rows if holds_as_foreseen(row)],
        [row for row in rows if fails_as_foreseen(row)],
    )
    titles = {entry.id: entry.title for entry in results.inventory if entry.paper == paper}
    beside = corrections(rows)

    def words(row: Row) -> str:
        said = row.says or next((titles[name] for name in row.entries if name in titles), "")
        return said or row.quantity or row.claim.partition("/")[2]

    def failure(row: Row) -> Finding:
        where = ran_on(row.replicate, row.data) if row.data else ""
        told = row.finding or words(row)
        return Finding(place(row, results), told, _failure(row, beside), f"row/{row.id}", _basis(row), where)

    def failing(standing: str) -> Failing:
        those = [row for row in fail if row.standing == standing]
        listed = [failure(row) for row in foremost(those, results)[:FAILURES]]
        return Failing(standing, listed, len(those), distinct_statements(those))

    unlike: dict[str, Finding] = {}
    for row in foremost(hold, results):
        said = words(row)
        unlike.setdefault(
            said, Finding(place(row, results), said, how_closely(row), f"row/{row.id}", _basis(row))
        )
    misprints = [row for row in fail if row.standing == Standing.MISPRINT]
    return PaperFindings(
        paper=paper,
        holds=list(unlike.values())[:MOST],
        all_hold=len(hold),
        misprints=[failure(row) for row in foremost(misprints, results)],
        all_misprints=len({slip_stands(row, results) for row in misprinted(rows)}),
        fails=[found for found in map(failing, FAILING) if found.readings],
        networks=_on_networks(rows),
        tables=[_table(made) for made in results.observations if made.paper == paper and not made.error],
        left_open=_left_open(results, paper),
    )


_OPEN: dict[Status, str] = {
    Status.OPEN: "Not judged",
    Status.NOT_CHECKABLE: "Not judged",
    Status.OBSERVED: "Reported on networks, not judged",
    Status.PARTLY: "Judged in part only",
}
_FULLER = "Left to --tier full"


def _left_open(results: Results, paper: str) -> dict[str, list[Finding]]:
    """The entries that are not judged, or in part, by why."""
    made, fuller = {observation.id for observation in results.observations}, left_to_a_fuller(results)
    found: dict[str, list[Finding]] = {why: [] for why in (*_OPEN.values(), _FULLER)}
    for entry in results.inventory:
        why = _OPEN.get(Status(entry.status), "")
        if entry in fuller or (entry.status == Status.OBSERVED and not made & {*entry.observations}):
            why = _FULLER
        if entry.paper == paper and why:
            target = f"entry/{paper}/{entry.id}"
            found[why].append(Finding(entry.id, entry.title, entry.reason, target))
    return {why: listed for why, listed in found.items() if listed}


def _failure(row: Row, beside: Mapping[str, Row]) -> str:
    """Return how far off a statement is, and how exactly the statement that replaces it holds."""
    instead = beside.get(row.claim)
    closely = how_closely(instead) if instead else ""
    if instead is None or not closely:
        return how_far(row)
    if instead.standing == Standing.CORRECTED:
        return f"corrected: {closely}; as our copy reads: {how_far(row)}"
    return f"{how_far(row)}; what holds instead: {closely}"


def _basis(row: Row) -> str:
    """Return the basis of a verdict; two routes that differ by more than rounding are not called exact."""
    if row.kind not in EXACT:
        return "model-based" if row.model_based else "sampled"
    apart = max((p.measured for p in row.points), default=0.0) if row.kind == "identity" else 0.0
    return "not sampled" if row.verdict == Verdict.AGREES and apart > ROUNDING else "exact"


def _table(made: Observed) -> Finding:
    """A table of real networks: where most ratios of a column lie, and the farthest from 1."""
    told = "; ".join(
        f"{heading} {ratios.middle_and_worst(values, 2)}"
        for heading, values in ratios.ratio_columns(made).items()
    )
    measure = f"predicted over measured: {told}" if told else ""
    return Finding(
        "", made.title, measure, f"observed/{made.id}", "reported", ran_on(made.replicate, made.data)
    )


def ran_on(replicate: str, data: str) -> str:
    """Name what was sampled, and on which data.

    >>> ran_on("one LeNet-5 with 80 images", "digits"), ran_on("", "digits")
    ('one LeNet-5 with 80 images (data: digits)', 'networks (data: digits)')
    """
    return f"{replicate or 'networks'} (data: {data})" if data else replicate or "networks"


# --- the main statements at a glance -----------------------------------------------------------------------------


class Statement(NamedTuple):
    """A numbered statement: what it is about, and in words what came of its readings.

    `holds` is how it does on its own model, corrected where our copy is misprinted; `misprint` what the table of
    misprints has of it, itself or what stands with it, `reads` how far off that is as our copy reads, if it is judged,
    by the row `read`, and `slip` whether a slip of the text conversion is likely there; `networks` what it comes to on
    real data, under its own condition and elsewhere. What is not judged is empty. `target` is the row that the verdict
    is of.
    """

    number: str
    title: str
    target: str
    verdict: str
    holds: str
    misprint: str
    reads: str
    read: str
    slip: bool
    networks: list[OnNetworks]


def glances(results: Results, most: int = MAIN) -> dict[str, list[Statement]]:
    """The main statements by paper, in their order there, of those papers that number them.

    Theorems come first, then what is judged on networks, what our copy misprints, and what has the most readings.
    """
    groups: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in results.rows:
        if (number := number_of(row, results)) != place(row, results):
            groups[row.paper, number].append(row)
    wrong = {row.id for row in misprinted(results.rows)}

    def rank(key: tuple[str, str]) -> tuple[int, bool, bool, int, str]:
        rows = groups[key]
        real, slips = any(row.data for row in rows), any(row.id in wrong for row in rows)
        return importance(key[1]), not real, not slips, -len(rows), key[1]

    main = [
        key
        for key, rows in groups.items()
        if importance(key[1]) == 0 or len(rows) >= FEWEST or any(row.data for row in rows)
    ]
    found: dict[str, list[Statement]] = {}
    for paper in dict.fromkeys([*(p.id for p in results.suite.papers), *(row.paper for row in results.rows)]):
        ranked = sorted((key for key in main if key[0] == paper), key=rank)[:most]
        told = sorted((min(entry_order(row, results) for row in groups[key]), key) for key in ranked)
        if told:
            found[paper] = [_statement(key[1], groups[key], results, wrong) for _, key in told]
    return found


def _statement(name: str, rows: Sequence[Row], results: Results, wrong: set[str]) -> Statement:
    titles = {e.id: e.title for e in results.inventory if e.paper == rows[0].paper}
    stated = [
        row for row in rows if row.standing in (Standing.AS_STATED, Standing.CORRECTED) and not row.data
    ]
    lead = foremost(stated or rows, results)[0]
    misprints = [row for row in rows if row.id in wrong]
    judged = next((row for row in misprints if row.standing == Standing.MISPRINT), None)
    holds = "" if lead.data else how_far(lead) if lead.verdict == Verdict.DISAGREES else lead.verdict
    if holds == Verdict.AGREES:
        holds = how_closely(lead) or "holds"
    return Statement(
        number=capitalised(name),
        title=next((titles[entry] for entry in lead.entries if entry in titles), lead.quantity),
        target=f"row/{lead.id}",
        verdict=lead.verdict,
        holds=holds,
        misprint=slip_stands(judged or misprints[0], results) if misprints else "",
        reads=how_far(judged) if judged else "",
        read=f"row/{judged.id}" if judged else "",
        slip=any(row.slip for row in misprints),
        networks=_on_networks(rows),
    )
