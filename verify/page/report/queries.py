"""What a run found, asked of its results: statements and what came of them, misprints, margins and counts, in words.

Every number is drawn from the results; the words are those of the claims (`says`), of their findings and of the titles
of their entries.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from verify.judging.judge import PRINTED
from verify.judging.power import factor
from verify.model import BOUNDS_EVERY_REPLICATE, ONE_SIDED, SPANS_SIZES, Kind, Standing, Tier, Verdict, raised
from verify.model.inventory import Status
from verify.page import ratios, wording
from verify.page.cards import sensitivity
from verify.page.counts import percent
from verify.page.vocabulary import EXACT, STANDINGS
from verify.results import OTHER_IMAGES, InventoryRow, Observed, PointOutcome, Results, Row

MOST, FAILURES = 5, 3
"""Findings on the first page, of what holds and of what fails; the others are counted, with a link to all."""

MAIN, FEWEST = 6, 2
"""Main statements of a paper that are shown, and readings below which an equation is none, unless on networks."""

FAILING = (Standing.AS_STATED, Standing.CORRECTED, Standing.OUTSIDE, Standing.KNOWN, Standing.OURS)
"""What fails and is no misprint, sort by sort: a reading outside the paper's own condition is no error of the paper."""

OF_THE_PAPER = (Standing.AS_STATED, Standing.MISPRINT, Standing.CORRECTED)
"""Readings of what a paper states, under its own condition."""

ROUNDING = 1e-3
"""Two routes that part by more agree by an approximation."""

TIMES = 2.0
"""From here on a ratio reads better as a factor than in percent."""


# --- statements and where they stand -----------------------------------------------------------------------------

_LEVELS = (r"theorem|proposition", r"lemma|corollary|algorithm", r"eqs?\.|eq\b")
_NUMBERED = re.compile(r"(theorem|lemma|proposition|eqs?\.?) \(?(\w[\w.]*)", re.IGNORECASE)
_NEAR = re.compile(r"\b(before|after) (?=eq|theorem|lemma)")
"""A sentence near a numbered statement is another one."""


def place(row: Row, results: Results) -> str:
    """Where a statement stands in its paper, without the authors."""
    place = row.source
    for paper in results.suite.papers:
        if paper.id == row.paper:
            place = place.replace(f"{paper.authors}, ", "").replace(f" of {paper.authors}", "")
    place = place.partition(";")[0]
    return row.entries[0] if place.startswith(("ours", "Ours")) and row.entries else _capitalised(place)


def numbered(place: str) -> str:
    """The first numbered statement that a place names; the place itself where it names none.

    >>> numbered("Theorem 4, eq. (9)"), numbered("eq. (26b)"), numbered("Section 3")
    ('theorem 4', 'eq. (26b)', 'Section 3')
    """
    found = _NUMBERED.search(place)
    if not found:
        return place
    return found.group().lower() + ")" * (found.group().count("(") - found.group().count(")"))


def _number(row: Row, results: Results) -> str:
    """The numbered statement of its paper that a row judges; a number in the work of others is none."""
    where = place(row, results)
    return where if row.standing == Standing.KNOWN or "beside " in where else numbered(where)


def _slip_stands(row: Row, results: Results) -> str:
    """The statement in which a misprint stands: of a theorem and its lemma the one that has it.

    What stands before or after an equation is none of it: its section is named, if it says which.
    """
    where = re.split(", which |, line ", row.place or place(row, results))[0]
    where = re.sub(r"\bEq (\w[\w.]*)", r"eq. (\1)", where)
    section, *near = _NEAR.split(where, maxsplit=1)
    return _capitalised(section.rstrip(", ") or where if near else numbered(where))


def _capitalised(words: str) -> str:
    return words[:1].upper() + words[1:]


def _importance(source: str) -> int:
    """How much of a statement it is: 0 a theorem, 1 a lemma, 2 an equation, 3 a remark."""
    return next((k for k, word in enumerate(_LEVELS) if re.search(word, source, re.IGNORECASE)), len(_LEVELS))


def _entry_place(row: Row, results: Results) -> int:
    """Where the first of its entries stands in the inventory."""
    named = [k for k, e in enumerate(results.inventory) if e.paper == row.paper and e.id in row.entries]
    return min(named, default=len(results.inventory))


def _first(rows: Iterable[Row], results: Results) -> list[Row]:
    """Statements of the paper before ours, theorems before equations, in the order of entries, one for each place."""

    def rank(row: Row) -> tuple[bool, int, bool, bool, int]:
        ours = row.standing in (Standing.KNOWN, Standing.OURS) or row.source.startswith("ours")
        exact = not row.points or row.kind in EXACT
        return ours, _importance(row.source), bool(row.data), exact, _entry_place(row, results)

    found: dict[str, Row] = {}
    for row in sorted(rows, key=rank):
        found.setdefault(_number(row, results), row)
    return list(found.values())


def distinct_statements(rows: Iterable[Row]) -> int:
    """How many statements readings are of: those of one numbered statement, or of one quoted sentence, are one.

    Outside its condition a statement is named by the source: the words quoted there are the condition.
    """

    def spoken(row: Row) -> str:
        where = (row.place if row.standing != Standing.OUTSIDE else "") or row.source
        number = None if _NEAR.search(where.lower()) else _NUMBERED.search(where)
        return f"{number[1].lower().rstrip('s.')} {number[2]}" if number else row.words or where

    return len({(row.paper, spoken(row)) for row in rows})


def _foreseen(row: Row) -> bool:
    return row.verdict == row.expected == Verdict.DISAGREES


def _holds(row: Row) -> bool:
    return row.verdict == row.expected == Verdict.AGREES


def _mended(rows: Iterable[Row]) -> list[Row]:
    """The readings that replace a misprint and agree, as foreseen."""
    return [row for row in rows if row.standing == Standing.CORRECTED and _holds(row)]


def misprinted(rows: Iterable[Row]) -> list[Row]:
    """A row for whatever our copies misprint, by which every part of a page counts.

    These are the formulas as our copy reads that fail, as foreseen, and corrected ones that agree where no such formula
    fails beside them: what our copy has there may be no formula that could be judged.
    """
    listed = list(rows)
    failing = {row.id: row.claim for row in listed if row.standing == Standing.MISPRINT and _foreseen(row)}
    alone = {row.id for row in _mended(listed) if row.claim not in failing.values()}
    return [row for row in listed if row.id in failing or row.id in alone]


def upshot(row: Row) -> str:
    """What came of a row: agrees, foreseen, surprise (a crash is one too) or undecided."""
    if row.surprise or row.verdict == Verdict.BROKEN:
        return "surprise"
    return "foreseen" if row.verdict == Verdict.DISAGREES else row.verdict


def left_to_a_fuller(results: Results) -> list[InventoryRow]:
    """Entries none of whose claims is judged in this run, because of its tier."""
    suite, whole = results.suite, f"--tier {Tier.DEFAULT}"  # of a smoke run that would be most of them
    others = {why for why in suite.census.left_out if why not in (whole, OTHER_IMAGES)}
    stopped = suite.census.judged < suite.census.asked
    if suite.tier != Tier.DEFAULT or whole not in suite.census.left_out or others or stopped:
        return []
    judged = {row.claim for row in results.rows}
    return [e for e in results.inventory if e.claims and not judged & {*e.claims}]


# --- how closely a statement holds, and how far off it is --------------------------------------------------------


def how_closely(row: Row) -> str:
    """How exactly theory holds, over all points of a row that agrees.

    For a mean the largest deviation with its half-width, in percent of the prediction where the margin is relative,
    as a factor where logarithms are judged; of the quantity of the paper, where a power of it is measured.
    """
    if not row.points:
        return ""
    if row.kind == "identity":
        off = max(p.measured for p in row.points)
        return (
            f"two routes agree to {wording.numeral(off, 1)}" if off > 0 else "two routes agree in every digit"
        )
    if row.kind in EXACT:
        return f"no counterexample, to {wording.numeral(max(p.margin for p in row.points), 1)}"
    if row.kind in BOUNDS_EVERY_REPLICATE:
        return f"in every one of {sum(point.replicates for point in row.points)} replicates"
    if row.kind in ONE_SIDED:
        slacks = [p.slack for p in row.points if p.slack is not None and math.isfinite(p.slack)]
        lower = row.kind == Kind.AT_LEAST
        tightest = wording.numeral(min(slacks) if lower else max(slacks), 2) if slacks else ""
        return (
            f"kept, at {'least' if lower else 'most'} {tightest} of the bound"
            if slacks
            else "the bound is kept"
        )
    if row.kind == Kind.DISTRIBUTION:
        return f"distribution functions at most {wording.numeral(max(p.upper for p in row.points), 2)} apart"
    if row.kind == Kind.EXPONENT:
        point = _worst(row.points, _off)
        return f"exponent {wording.measurement(point)}, predicted {wording.numeral(point.predicted, 3)}"
    off = max(_off(p) / (abs(p.predicted) if row.relative else 1.0) if p.predicted or not row.relative else math.inf
              for p in row.points)  # fmt: skip
    if not math.isfinite(off):
        return ""
    limit = ", extrapolated in size" if row.kind in SPANS_SIZES and row.model_based else ""
    if row.logarithm:
        return f"within {factor(row.logarithm, off)}{limit}"
    if row.relative:
        off = 1 - (1 - off) ** (1 / row.root) if row.root > 1 and off < 1 else off
        return f"within {percent(off)}{limit}"
    predicted = {wording.numeral(p.predicted, 3) for p in row.points}
    said = f"within {wording.numeral(off, 2)}" + (
        f" of {next(iter(predicted))}" if len(predicted) == 1 else ""
    )
    share = row.kind == Kind.PROPORTION and len(predicted) == 1
    measured = f"a share of {wording.numeral(_worst(row.points, _off).measured, 2)}, " if share else ""
    return measured + said + limit


def how_far(row: Row) -> str:
    """How far off a formula is that fails, at the point where it is farthest off.

    A factor or percent of what was measured; both numbers where one of them is 0 or their signs differ, and where the
    margin is absolute: an exponent or a share may well be 0. Where a power of the quantity of the paper is measured,
    it is said of that quantity.
    """
    point = _farthest(row)
    if point is None:
        return ""
    if row.kind in EXACT:
        off = point.measured
        return f"off by {percent(off)}" if off < 1 and row.kind == "identity" else "fails outright"
    if row.kind in BOUNDS_EVERY_REPLICATE:
        return f"violated in {percent(point.measured)} of the replicates"
    over = _over(row, point)
    if not (row.relative or row.logarithm) or not 0 < over < math.inf:
        slope = row.kind == Kind.EXPONENT or row.quantity.removeprefix("local ").startswith("exponent ")
        predicted, measured = (wording.numeral(value, 3) for value in (point.predicted, point.measured))
        return f"{'exponent ' * slope}{predicted} where {measured} is measured"
    side = "large" if over > 1 else "small"
    if ratios.off_by(over) >= TIMES:
        return f"{wording.numeral(ratios.off_by(over), 2)} times too {side}"
    return f"{percent(abs(over - 1))} too {side}"


def _farthest(row: Row) -> PointOutcome | None:
    """The point at which a row that fails is farthest off."""
    wrong = [p for p in row.points if p.verdict == Verdict.DISAGREES]
    if not wrong:
        return None
    if row.kind in EXACT or row.kind in BOUNDS_EVERY_REPLICATE:
        return _worst(wrong, lambda p: p.measured)
    return _worst(wrong, lambda p: ratios.off_by(_over(row, p)) if row.relative or row.logarithm else _off(p))


def _worst(points: Sequence[PointOutcome], by: Callable[[PointOutcome], float]) -> PointOutcome:
    return max(points, key=lambda p: -1.0 if math.isnan(by(p)) else by(p))


def _off(point: PointOutcome) -> float:
    """The farthest that the truth may lie from the prediction: the deviation and the half-width."""
    return abs(point.measured - point.predicted) + wording.half_width(point)


def _over(row: Row, point: PointOutcome) -> float:
    """Predicted over measured, of logarithms what they are logarithms of, of powers what they are powers of."""
    if row.logarithm:
        return raised(row.logarithm, point.predicted - point.measured)
    over = point.predicted / point.measured if point.measured else math.inf
    return over ** (1 / row.root) if over > 0 else over


# --- on real networks --------------------------------------------------------------------------------------------


class OnNetworks(NamedTuple):
    """What readings come to on real networks: one verdict on all of them, its words, and their rows.

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
    """How many of these readings agree, and how far off the worst is."""
    agree = sum(row.verdict == Verdict.AGREES for row in real)
    failing = [row for row in real if _foreseen(row)]
    scaled = [row for row in failing if row.relative or row.logarithm]

    def off(row: Row) -> float:
        point = _farthest(row)
        return ratios.off_by(_over(row, point)) if point else 0.0

    worst = max(scaled or failing, key=off, default=None)
    said = f"{agree} of {len(real)} {'reading agrees' if len(real) == 1 else 'readings agree'}"
    if worst is None:
        return said
    network = worst.replicate.partition(",")[0]
    as_read = [row for row in judged if row.claim == worst.claim and row not in real and _foreseen(row)]
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
    """What was found on one paper; `holds` and `fails` have the first few, with the number of all.

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
    """What was found, paper by paper, in the order of the run: main theorems first."""
    papers = [paper.id for paper in results.suite.papers]
    shown = {item.paper for item in (*results.rows, *results.observations, *left_to_a_fuller(results))}
    return [_on_paper(results, paper) for paper in (*papers, *sorted(shown - {*papers})) if paper in shown]


def _on_paper(results: Results, paper: str) -> PaperFindings:
    rows = [row for row in results.rows if row.paper == paper]
    hold, fail = [row for row in rows if _holds(row)], [row for row in rows if _foreseen(row)]
    titles = {entry.id: entry.title for entry in results.inventory if entry.paper == paper}
    beside = _corrections(rows)

    def words(row: Row) -> str:
        said = row.says or next((titles[name] for name in row.entries if name in titles), "")
        return said or row.quantity or row.claim.partition("/")[2]

    def failure(row: Row) -> Finding:
        where = ran_on(row.replicate, row.data) if row.data else ""
        told = row.finding or words(row)
        return Finding(place(row, results), told, _failure(row, beside), f"row/{row.id}", _basis(row), where)

    def failing(standing: str) -> Failing:
        those = [row for row in fail if row.standing == standing]
        listed = [failure(row) for row in _first(those, results)[:FAILURES]]
        return Failing(standing, listed, len(those), distinct_statements(those))

    unlike: dict[str, Finding] = {}
    for row in _first(hold, results):
        said = words(row)
        unlike.setdefault(
            said, Finding(place(row, results), said, how_closely(row), f"row/{row.id}", _basis(row))
        )
    misprints = [row for row in fail if row.standing == Standing.MISPRINT]
    return PaperFindings(
        paper=paper,
        holds=list(unlike.values())[:MOST],
        all_hold=len(hold),
        misprints=[failure(row) for row in _first(misprints, results)],
        all_misprints=len({_slip_stands(row, results) for row in misprinted(rows)}),
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


def _corrections(rows: Sequence[Row]) -> dict[str, Row]:
    """The reading that the suite stands behind, by claim, where it agrees beside one that fails."""
    failing = {row.claim for row in rows if row.verdict == Verdict.DISAGREES}
    return {row.claim: row for row in rows if row.verdict == Verdict.AGREES and row.claim in failing}


def _failure(row: Row, beside: Mapping[str, Row]) -> str:
    """How exactly the statement that replaces it holds, and how far off it is itself."""
    instead = beside.get(row.claim)
    closely = how_closely(instead) if instead else ""
    if instead is None or not closely:
        return how_far(row)
    if instead.standing == Standing.CORRECTED:
        return f"corrected: {closely}; as our copy reads: {how_far(row)}"
    return f"{how_far(row)}; what holds instead: {closely}"


def _basis(row: Row) -> str:
    """What a verdict rests on; two routes that part by more than rounding are not called exact."""
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
    """What was drawn, on which data.

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
        if (number := _number(row, results)) != place(row, results):
            groups[row.paper, number].append(row)
    wrong = {row.id for row in misprinted(results.rows)}

    def rank(key: tuple[str, str]) -> tuple[int, bool, bool, int, str]:
        rows = groups[key]
        real, slips = any(row.data for row in rows), any(row.id in wrong for row in rows)
        return _importance(key[1]), not real, not slips, -len(rows), key[1]

    main = [
        key
        for key, rows in groups.items()
        if _importance(key[1]) == 0 or len(rows) >= FEWEST or any(row.data for row in rows)
    ]
    found: dict[str, list[Statement]] = {}
    for paper in dict.fromkeys([*(p.id for p in results.suite.papers), *(row.paper for row in results.rows)]):
        ranked = sorted((key for key in main if key[0] == paper), key=rank)[:most]
        told = sorted((min(_entry_place(row, results) for row in groups[key]), key) for key in ranked)
        if told:
            found[paper] = [_statement(key[1], groups[key], results, wrong) for _, key in told]
    return found


def _statement(name: str, rows: Sequence[Row], results: Results, wrong: set[str]) -> Statement:
    titles = {e.id: e.title for e in results.inventory if e.paper == rows[0].paper}
    stated = [
        row for row in rows if row.standing in (Standing.AS_STATED, Standing.CORRECTED) and not row.data
    ]
    lead = _first(stated or rows, results)[0]
    misprints = [row for row in rows if row.id in wrong]
    judged = next((row for row in misprints if row.standing == Standing.MISPRINT), None)
    holds = "" if lead.data else how_far(lead) if lead.verdict == Verdict.DISAGREES else lead.verdict
    if holds == Verdict.AGREES:
        holds = how_closely(lead) or "holds"
    return Statement(
        number=_capitalised(name),
        title=next((titles[entry] for entry in lead.entries if entry in titles), lead.quantity),
        target=f"row/{lead.id}",
        verdict=lead.verdict,
        holds=holds,
        misprint=_slip_stands(judged or misprints[0], results) if misprints else "",
        reads=how_far(judged) if judged else "",
        read=f"row/{judged.id}" if judged else "",
        slip=any(row.slip for row in misprints),
        networks=_on_networks(rows),
    )


# --- misprints ---------------------------------------------------------------------------------------------------


class Misread(NamedTuple):
    """A formula as our copy reads: where, what is wrong with it, by how much, and what replaces it.

    Formulas are LaTeX; `corrected` and how closely it `holds` are empty where nothing is judged beside it. `target` is
    the row that fails, and `readings` how many have this formula.

    `slip`: of the text conversion, is likely. Where what our copy has is not judged, no reading fails: `printed` and
    `off` are empty, `quoted` has its own words, and `target` is the row that agrees.
    """

    where: str
    words: str
    printed: str
    corrected: str
    holds: str
    off: str
    target: str
    readings: int
    quoted: str
    slip: bool


class Misprint(NamedTuple):
    """A numbered statement that is misprinted: its lines in the table, and the row whose entries it is of."""

    on: str
    row: Row
    lines: list[Misread]


class MisprintTable(NamedTuple):
    """All misprints by paper, and how their counts fit together.

    `readings` fail, of so many `statements` and `formulas`, the lines of the table; `corrected` ones agree, `beside`
    them or where what our copy has is not judged.
    """

    papers: dict[str, list[Misprint]]
    readings: int
    statements: int
    formulas: int
    corrected: int
    beside: int


def misprint_table(results: Results) -> MisprintTable | None:
    """All that our copies misprint, as `misprinted` says, in the order of the entries; None without any.

    Readings of one numbered statement, the one that has the slip, stand together, and of these the ones of one formula
    in a line.
    """
    groups: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in misprinted(results.rows):
        groups[row.paper, _slip_stands(row, results)].append(row)
    if not groups:
        return None
    beside = _corrections(results.rows)
    papers: dict[str, list[Misprint]] = {}
    for (paper, on), rows in groups.items():
        formulas: defaultdict[str, list[Row]] = defaultdict(list)
        for row in rows:
            formulas[row.statement].append(row)
        lines = [_misread(of_it, results, beside) for of_it in formulas.values()]
        papers.setdefault(paper, []).append(Misprint(on, _first(rows, results)[0], lines))
    for listed in papers.values():
        listed.sort(key=lambda found: _entry_place(found.row, results))
    claims = [row.claim for rows in groups.values() for row in rows if row.standing == Standing.MISPRINT]
    right = _mended(results.rows)
    return MisprintTable(
        papers,
        readings=len(claims),
        statements=len(groups),
        formulas=sum(len(misprint.lines) for listed in papers.values() for misprint in listed),
        corrected=len(right),
        beside=sum(row.claim in claims for row in right),
    )


def _misread(rows: Sequence[Row], results: Results, beside: Mapping[str, Row]) -> Misread:
    row, judged = rows[0], rows[0].standing == Standing.MISPRINT
    instead = beside.get(row.claim) if judged else row
    return Misread(
        where=row.place or place(row, results),
        words=what_is_wrong(row.finding),
        printed=row.statement if judged else "",
        corrected=instead.statement if instead else "",
        holds=how_closely(instead) if instead else "",
        off=how_far(row) if judged else "",
        target=f"row/{row.id}",
        readings=len(rows) if judged else 0,
        quoted="" if judged else row.words,
        slip=row.slip,
    )


def what_is_wrong(finding: str) -> str:
    """The first sentence of a finding; that our copy reads so is said by the heading.

    >>> what_is_wrong("As our copy reads, a square is missing; P says so. More of it.")
    'a square is missing; P says so.'
    """
    return re.sub("^As our copy reads,? ", "", re.split(r"(?<=\.)\s+(?=[A-Z])", finding)[0])


# --- the whole run -----------------------------------------------------------------------------------------------


class Headline(NamedTuple):
    """What came of all rows: what agrees, fails as foreseen, and the rest; what no sample decides, or a model.

    `agree` and `fail` count by how readings stand to the papers; `failing_statements` counts the statements that the
    readings which fail are of, misprints aside.
    """

    agree: dict[str, int]
    fail: dict[str, int]
    failing_statements: dict[str, int]
    surprises: list[Row]
    undecided: int
    modelled: dict[str, int]
    exact: int
    rows: int


def headline(rows: Sequence[Row]) -> Headline:
    """Rows by what came of them."""
    known: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        known[upshot(row)].append(row)
    modelled = Counter(row.verdict for row in rows if row.model_based)
    failing = known["foreseen"]
    return Headline(
        agree=_standings(known["agrees"]),
        fail=_standings(failing),
        failing_statements={
            standing: distinct_statements(row for row in failing if row.standing == standing)
            for standing in (Standing.AS_STATED, Standing.OUTSIDE)
        },
        surprises=known["surprise"],
        undecided=len(known["undecided"]),
        modelled={verdict: modelled[verdict] for verdict in Verdict if modelled[verdict]},
        exact=sum(row.kind in EXACT for row in rows),
        rows=len(rows),
    )


def _standings(rows: Sequence[Row]) -> dict[str, int]:
    counts = Counter(row.standing for row in rows)
    return {standing: counts[standing] for standing in STANDINGS if counts[standing]}


class Margin(NamedTuple):
    """A row with the width of its margin, how it was declared, and the smallest error that was told apart."""

    row: Row
    width: str
    declared: str
    told: str


def margins(rows: Sequence[Row]) -> list[Margin]:
    """Claims by the width of their margin, widest first."""
    claims = {row.claim: row for row in reversed(rows) if row.points and row.kind not in EXACT}
    listed = sorted(claims.values(), key=lambda row: (-_width(row), row.claim))
    return [Margin(row, *_margin(row), sensitivity(row)) for row in listed]


def _width(row: Row) -> float:
    """The margin as a number: a share of the prediction, of a logarithm what its factor exceeds 1 by, else itself.

    An absolute margin is no share of the prediction: that may be an exponent or a probability, and 0.
    """
    return raised(row.logarithm, row.margin) - 1 if row.logarithm else row.margin


def _margin(row: Row) -> tuple[str, str]:
    """The width in words, and what it is of."""
    if not math.isfinite(_width(row)):
        return "—", "no number"
    if row.logarithm:
        return factor(row.logarithm, row.margin), f"{wording.numeral(row.margin)} in {wording.unit(row)}"
    if row.relative:
        return percent(row.margin), "of the prediction"
    return wording.numeral(row.margin), "in its own unit"


STEP = re.compile(r"; (?=\d{4}-\d\d-\d\d|not registered)")
"""Between two steps of a claim's history."""


def histories(rows: Sequence[Row]) -> list[tuple[Row, list[str]]]:
    """A row of each claim that changed after it was declared, with its history line by line."""
    claims = {row.claim: row for row in reversed(rows) if STEP.search(row.registered)}
    return [(row, STEP.split(row.registered)) for row in reversed(claims.values())]
