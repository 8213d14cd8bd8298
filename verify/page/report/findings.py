"""What a run found, in sentences: per paper what holds and how exactly, what fails, real networks, what is left open.

Every number is drawn from the results; the words are those of the claims (`says`), of their findings and of the titles
of their entries.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from verify.judging.judge import PRINTED
from verify.judging.power import factor
from verify.model import BOUNDS_EVERY_REPLICATE, ONE_SIDED, SPANS_SIZES, Kind, Standing, Tier, Verdict, raised
from verify.model.inventory import Status
from verify.page import ratios, wording
from verify.page.counts import percent
from verify.page.report.on_networks import case, ran_on, seen
from verify.page.report.statements import distinct_statements, first, misprinted, place, stands, statement_of
from verify.page.vocabulary import EXACT
from verify.results import OTHER_IMAGES, InventoryRow, Observed, PointOutcome, Results, Row

__all__ = [
    "Failing",
    "Finding",
    "OnNetworks",
    "PaperFindings",
    "corrections",
    "how_closely",
    "how_far",
    "left_to_a_fuller",
    "on_real_networks",
    "paper_findings",
    "real_readings",
]

MOST, FAILURES = 5, 3
"""Findings on the first page, of what holds and of what fails; the others are counted, with a link to all."""

FAILING = (Standing.AS_STATED, Standing.CORRECTED, Standing.OUTSIDE, Standing.KNOWN, Standing.OURS)
"""What fails and is no misprint, sort by sort: a reading outside the paper's own condition is no error of the paper."""

OF_THE_PAPER = (Standing.AS_STATED, Standing.MISPRINT, Standing.CORRECTED)
"""Readings of what a paper states, under its own condition."""

ROUNDING = 1e-3
"""Two routes that part by more agree by an approximation."""

TIMES = 2.0
"""From here on a ratio reads better as a factor than in percent."""


class Finding(NamedTuple):
    """A sentence of what was found: on what, in words, by how much, and the row, table or entry that it leads to.

    `basis` is what its verdict rests on, or that it has none, and `where` the network and data of its number;
    `networks` is what the same statement comes to on real networks.
    """

    on: str
    words: str
    measure: str
    target: str
    basis: str = ""
    where: str = ""
    networks: str = ""


class Failing(NamedTuple):
    """The first findings of one sort that fails, and how many readings of how many statements there are."""

    standing: str
    listed: list[Finding]
    readings: int
    statements: int


class OnNetworks(NamedTuple):
    """What a statement comes to on real networks: a verdict on all of these readings together, and its words.

    `sort` names the readings that are not the paper's under its own condition; it is empty where they are.
    """

    sort: str
    verdict: str
    words: str
    there: list[str]


class PaperFindings(NamedTuple):
    """What was found on one paper; `holds` and `fails` have the first few, with the number of all.

    `misprints` are those that are judged as our copy reads, `all_misprints` counts the statements in the table of them.
    `judged_on_networks` counts readings there: that agree, that fail as foreseen, of these those outside the paper's
    own condition, and all, whose rows are `there`. `reported` are the entries that only a table shows, `not_run` those
    that only a fuller run shows or judges.
    """

    paper: str
    holds: list[Finding]
    all_hold: int
    misprints: list[Finding]
    all_misprints: int
    fails: list[Failing]
    networks: list[Finding]
    judged_on_networks: tuple[int, int, int, int]
    there: list[str]
    partly: list[Finding]
    unjudged: list[Finding]
    reported: list[Finding]
    not_run: list[Finding]


def paper_findings(results: Results) -> list[PaperFindings]:
    """What was found, paper by paper, in the order of the run: main theorems first."""
    papers = [paper.id for paper in results.suite.papers]
    shown = {item.paper for item in (*results.rows, *results.observations, *left_to_a_fuller(results))}
    return [_on_paper(results, paper) for paper in (*papers, *sorted(shown - {*papers})) if paper in shown]


def _on_paper(results: Results, paper: str) -> PaperFindings:
    rows = [row for row in results.rows if row.paper == paper]
    entries = [entry for entry in results.inventory if entry.paper == paper]
    titles, places = {e.id: e.title for e in entries}, {e.id: k for k, e in enumerate(entries)}
    hold = [row for row in rows if row.verdict == row.expected == Verdict.AGREES]
    fail = [row for row in rows if _foreseen(row)]
    wrong = first([row for row in fail if row.standing == Standing.MISPRINT], results, places)
    real = [row for row in rows if row.data]
    tables = [made for made in results.observations if made.paper == paper and not made.error]
    beside = corrections(rows)
    observed = [entry for entry in entries if entry.status == Status.OBSERVED]
    made = {observation.id for observation in results.observations}
    fuller = [entry for entry in left_to_a_fuller(results) if entry.paper == paper]

    def failure(row: Row) -> Finding:
        words = row.finding or _words(row, titles)
        where = _where(row) if row.data else ""
        return Finding(place(row, results), words, _failure(row, beside), f"row/{row.id}", _basis(row), where)

    def failing(standing: str) -> Failing:
        rows = [row for row in fail if row.standing == standing]
        listed = [failure(row) for row in first(rows, results, places)[:FAILURES]]
        return Failing(standing, listed, len(rows), distinct_statements(rows))

    return PaperFindings(
        paper=paper,
        holds=_unlike(
            Finding(
                place(row, results),
                _words(row, titles),
                how_closely(row),
                f"row/{row.id}",
                _basis(row),
                networks=_elsewhere(row, results),
            )
            for row in first(hold, results, places)
        )[:MOST],
        all_hold=len(hold),
        misprints=[failure(row) for row in wrong],
        all_misprints=len({stands(row, results) for row in misprinted(rows)}),
        fails=[found for found in map(failing, FAILING) if found.readings],
        networks=_observed(tables),
        judged_on_networks=(
            sum(row.verdict == row.expected == Verdict.AGREES for row in real),
            sum(_foreseen(row) for row in real),
            sum(_foreseen(row) and row.standing == Standing.OUTSIDE for row in real),
            len(real),
        ),
        there=[f"row/{row.id}" for row in real],
        partly=[_entry(e) for e in entries if e.status == Status.PARTLY and e not in fuller],
        unjudged=[_entry(entry) for entry in entries if entry.status in (Status.OPEN, Status.NOT_CHECKABLE)],
        reported=[_entry(entry) for entry in observed if made & {*entry.observations}],
        not_run=[_entry(e) for e in observed if not made & {*e.observations}] + [_entry(e) for e in fuller],
    )


def left_to_a_fuller(results: Results) -> list[InventoryRow]:
    """Entries none of whose claims is judged in this run, because of its tier."""
    suite, whole = results.suite, f"--tier {Tier.DEFAULT}"  # of a smoke run that would be most of them
    others = {why for why in suite.census.left_out if why not in (whole, OTHER_IMAGES)}
    stopped = suite.census.judged < suite.census.asked
    if suite.tier != Tier.DEFAULT or whole not in suite.census.left_out or others or stopped:
        return []
    judged = {row.claim for row in results.rows}
    return [e for e in results.inventory if e.claims and not judged & {*e.claims}]


def _foreseen(row: Row) -> bool:
    return row.verdict == row.expected == Verdict.DISAGREES


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

    For a mean the largest deviation with its half-width, in percent of the prediction where the margin is relative,
    as a factor where logarithms are judged; of the quantity of the paper, where a power of it is measured.
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
    if row.logarithm:
        return f"within {factor(row.logarithm, off)}{limit}"
    return (f"within {percent(_of_the_root(row, off))}" if row.relative else _within(row, off)) + limit


def _of_the_root(row: Row, off: float) -> float:
    """A relative deviation, of the quantity of the paper where a power of it is measured."""
    return 1 - (1 - off) ** (1 / row.root) if row.root > 1 and off < 1 else off


def _within(row: Row, off: float) -> str:
    """A deviation in the unit of the quantity; from what, if that is one number, and of a share what was measured."""
    one, *others = {wording.numeral(p.predicted, 3) for p in row.points}
    said = f"within {wording.numeral(off, 2)}"
    if others:
        return said
    farthest = _worst(row.points, _off).measured
    return f"a share of {wording.numeral(farthest, 2)}, " * (row.kind == Kind.PROPORTION) + f"{said} of {one}"


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
        what = "exponent " if slope else ""
        predicted, measured = (wording.numeral(value, 3) for value in (point.predicted, point.measured))
        return f"{what}{predicted} where {measured} is measured"
    if ratios.off_by(over) >= TIMES:
        return f"{wording.numeral(ratios.off_by(over), 2)} times too {'large' if over > 1 else 'small'}"
    return f"{percent(abs(over - 1))} too {'large' if over > 1 else 'small'}"


def _farthest(row: Row) -> PointOutcome | None:
    """The point at which a row that fails is farthest off."""
    wrong = [p for p in row.points if p.verdict == Verdict.DISAGREES]
    if not wrong:
        return None
    if row.kind in EXACT or row.kind in BOUNDS_EVERY_REPLICATE:
        return _worst(wrong, lambda p: p.measured)
    return _worst(wrong, lambda p: ratios.off_by(_over(row, p)) if row.relative or row.logarithm else _off(p))


# --- in words


def _words(row: Row, titles: Mapping[str, str]) -> str:
    said = row.says or next((titles[name] for name in row.entries if name in titles), "")
    return said or row.quantity or row.claim.partition("/")[2]


def _basis(row: Row) -> str:
    """What a verdict rests on; two routes that part by more than rounding are not called exact."""
    if row.kind not in EXACT:
        return "model-based" if row.model_based else "sampled"
    apart = max((p.measured for p in row.points), default=0.0) if row.kind == "identity" else 0.0
    return "not sampled" if row.verdict == Verdict.AGREES and apart > ROUNDING else "exact"


def _where(row: Row) -> str:
    """The network and data of a number: those of the point that is farthest off, where there are several."""
    point = _farthest(row)
    one_of = case(wording.differing(point, row.points)) if point and len(row.points) > 1 else ""
    return ran_on(row.replicate, row.data, one_of)


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


def _elsewhere(row: Row, results: Results) -> str:
    """What a statement that holds of a model comes to on real networks, where readings of it are judged there."""
    statement = statement_of(row, results)
    of_it = [
        other
        for other in results.rows
        if other.paper == row.paper and statement_of(other, results) == statement
    ]
    there = [] if row.data else on_real_networks(of_it)
    return "; ".join(f"{f'{sort}, ' * bool(sort)}on networks {words}" for sort, _, words, _ in there)


def real_readings(rows: Iterable[Row]) -> list[Row]:
    """The readings that are judged on real networks.

    A formula as our copy reads stands for its claim only where the claim has no other: else it is no second statement.
    """
    judged = [row for row in rows if row.data]
    repaired = {row.claim for row in judged if row.reading != PRINTED}
    return [row for row in judged if row.reading != PRINTED or row.claim not in repaired]


def on_real_networks(rows: Iterable[Row]) -> list[OnNetworks]:
    """What readings come to on real networks: those of the paper under its own condition, then the others by sort."""
    judged = list(rows)
    groups: dict[str, list[Row]] = {"": [], **{standing: [] for standing in Standing}}
    for row in real_readings(judged):
        groups["" if row.standing in OF_THE_PAPER else row.standing].append(row)
    return [
        OnNetworks(sort, _together(real), _on_networks(real, judged), [f"row/{row.id}" for row in real])
        for sort, real in groups.items()
        if real
    ]


def _together(real: Sequence[Row]) -> str:
    """One verdict: agrees where all do, disagrees where one does."""
    verdicts = {row.verdict for row in real}
    return next((v for v in (Verdict.DISAGREES, Verdict.UNDECIDED) if v in verdicts), max(verdicts))


def _on_networks(real: Sequence[Row], judged: Sequence[Row]) -> str:
    """How many of these readings agree, and how far off the worst is."""
    agree = sum(row.verdict == Verdict.AGREES for row in real)
    failing = [row for row in real if _foreseen(row)]
    worst = max(
        [row for row in failing if row.relative or row.logarithm] or failing, key=_factor, default=None
    )
    said = f"{agree} of {len(real)} {'reading agrees' if len(real) == 1 else 'readings agree'}"
    if worst is None:
        return said
    network = worst.replicate.partition(",")[0]
    as_read = [row for row in judged if row.claim == worst.claim and row not in real and _foreseen(row)]
    far = dict.fromkeys([how_far(worst), *map(how_far, as_read)])
    return f"{said}, the worst {' and as our copy reads '.join(far)}" + f" on {network}" * bool(network)


def _factor(row: Row) -> float:
    """By how much a formula that fails is off, at its worst point."""
    point = _farthest(row)
    return ratios.off_by(_over(row, point)) if point else 0.0


def _observed(tables: Sequence[Observed]) -> list[Finding]:
    """Tables on real networks, those with ratios first: where theory is farthest off, and where it is nearest."""
    listed = sorted(tables, key=lambda made: not ratios.ratio_columns(made))
    told = ((made, seen(made)) for made in listed)
    return [
        Finding("", made.title, said.measure, f"observed/{made.id}", "reported", said.where)
        for made, said in told
    ]


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


def _over(row: Row, point: PointOutcome) -> float:
    """Predicted over measured, of logarithms what they are logarithms of, of powers what they are powers of."""
    if row.logarithm:
        return raised(row.logarithm, point.predicted - point.measured)
    over = point.predicted / point.measured if point.measured else math.inf
    return over ** (1 / row.root) if over > 0 else over
