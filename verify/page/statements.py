"""Statements and their readings: where they stand in a paper, what came of them, how closely they hold, how far off.

Every number is drawn from the results.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence

from verify.judging.power import factor
from verify.model import BOUNDS_EVERY_REPLICATE, ONE_SIDED, Kind, Standing, Verdict, raised
from verify.page import ratios, wording
from verify.page.vocabulary import EXACT
from verify.page.wording import percent
from verify.results import Observed, PointOutcome, Results, Row

NOT_OF_A_PAPER = (Standing.OURS, Standing.KNOWN)

TIMES = 2.0
"""Ratio from which a factor reads better than percent."""


def place(row: Row, results: Results) -> str:
    """Return the place of a statement in its paper, without the authors."""
    place = row.source
    for paper in results.suite.papers:
        if paper.id == row.paper:
            place = place.replace(f"{paper.authors}, ", "").replace(f" of {paper.authors}", "")
    place = place.partition(";")[0]
    return row.entries[0] if place.startswith(("ours", "Ours")) and row.entries else capitalised(place)


def rows_of_claims(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """The readings of each claim."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.claim, []).append(row)
    return found


def rows_by_paper(results: Results) -> dict[str, list[Row]]:
    """The rows of each paper that has some, in the order of the run."""
    found: dict[str, list[Row]] = {paper.id: [] for paper in results.suite.papers}
    for row in results.rows:
        found.setdefault(row.paper, []).append(row)
    return {paper: rows for paper, rows in found.items() if rows}


def first_authors(results: Results) -> dict[str, str]:
    """The first author and year of each paper, and of how many papers more; ours have no paper."""
    found: dict[str, str] = {}
    for paper, rows in rows_by_paper(results).items():
        authors = next((known.authors for known in results.suite.papers if known.id == paper), paper)
        name = short_authors(authors)
        found[paper] = "Our own laws" if all(row.standing in NOT_OF_A_PAPER for row in rows) else name
    return found


def short_authors(authors: str) -> str:
    """The first author and year of the first of several papers, and how many papers more.

    >>> short_authors("Malladi et al. (2022); Li et al. (2024); Marek et al. (2025)")
    'Malladi 2022 and 2 more'
    """
    first, *more = authors.split(";")
    return re.sub(r"^([^ ,]+).*\((\d{4})\).*", r"\1 \2", first) + f" and {len(more)} more" * bool(more)


def first_sentence(text: str) -> str:
    """The first sentence, without the words that our copy reads so.

    >>> first_sentence("As our copy reads, a square is missing; P says so. More of it.")
    'A square is missing; P says so.'
    """
    return capitalised(re.sub("^As our copy reads,? ", "", re.split(r"(?<=\.)\s+(?=[A-Z])", text)[0]))


def quoted_place(row: Row, results: Results) -> str:
    """Where the quoted words of a row are in its paper: its place, with numbers of equations in brackets."""
    return capitalised(re.sub(r"\bEq (\w[\w.]*)", r"eq. (\1)", row.place or place(row, results)))


def capitalised(words: str) -> str:
    """The words with a capital in front, the others as they are."""
    return words[:1].upper() + words[1:]


def entry_order(item: Row | Observed, results: Results) -> int:
    """Return the position of its first entry in the inventory."""
    named = [k for k, e in enumerate(results.inventory) if e.paper == item.paper and e.id in item.entries]
    return min(named, default=len(results.inventory))


def fails_as_foreseen(row: Row) -> bool:
    """Return whether a formula that is expected to be wrong is found wrong."""
    return row.verdict == row.expected == Verdict.DISAGREES


def holds_as_foreseen(row: Row) -> bool:
    """Return whether a formula that is expected to be right is found right."""
    return row.verdict == row.expected == Verdict.AGREES


def misprinted(rows: Sequence[Row]) -> list[Row]:
    """Formulas as our copy reads that fail, as foreseen, and corrected ones where no such formula fails beside them.

    What our copy has there may be no formula that could be judged.
    """
    failing = [row for row in rows if row.standing == Standing.MISPRINT and fails_as_foreseen(row)]
    claims = {row.claim for row in failing}
    alone = [row for row in rows if row.standing == Standing.CORRECTED and holds_as_foreseen(row)]
    return [*failing, *(row for row in alone if row.claim not in claims)]


def corrections(rows: Sequence[Row]) -> dict[str, Row]:
    """The reading that the suite stands behind, by claim, where it agrees beside one that fails."""
    failing = {row.claim for row in rows if row.verdict == Verdict.DISAGREES}
    return {row.claim: row for row in rows if row.verdict == Verdict.AGREES and row.claim in failing}


# --- how closely a statement holds, and how far off it is --------------------------------------------------------


def how_closely(row: Row) -> str:
    """Return how exactly theory holds, over all points of a row that agrees.

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
        tightest = wording.numeral(min(slacks) if lower else max(slacks), 3) if slacks else ""
        return (
            f"kept, at {'least' if lower else 'most'} {tightest} times the bound"
            if slacks
            else "the bound is kept"
        )
    if row.kind == Kind.DISTRIBUTION:
        return f"distribution functions at most {wording.numeral(max(p.upper for p in row.points), 2)} apart"
    if row.kind == Kind.EXPONENT:
        point = _worst(row.points, _deviation)
        return f"exponent {wording.measurement(point)}, predicted {wording.numeral(point.predicted, 3)}"
    off = max(
        _deviation(p) / (abs(p.predicted) if row.relative else 1.0)
        if p.predicted or not row.relative
        else math.inf
        for p in row.points
    )
    if not math.isfinite(off):
        return ""
    limit = ", extrapolated in size" if row.model_based else ""
    if row.logarithm:
        return f"within {factor(row.logarithm, off)}{limit}"
    if row.relative:
        off = 1 - (1 - off) ** (1 / row.root) if row.root > 1 and off < 1 else off
        return f"within {percent(off)}{limit}"
    predicted = {wording.numeral(p.predicted, 3) for p in row.points}
    said = f"within {wording.numeral(off, 2)}" + (
        f" of {next(iter(predicted))}" if len(predicted) == 1 else ""
    )
    if row.kind == Kind.PROPORTION and len(predicted) == 1:
        measured = wording.numeral(_worst(row.points, _deviation).measured, 2)
        return f"{measured_quantity(row)}: {measured}, {said}"
    return said + limit


def measured_quantity(row: Row) -> str:
    """What the numbers of a row are, in short."""
    exponent = re.match(r"(?:local )?exponent of .*?( in (?!.* in ).*)?$", row.quantity)
    if exponent or row.kind == Kind.EXPONENT:
        return f"exponent{(exponent and exponent[1]) or ''}"
    return re.split(r" (?:whose|less|in which|where) |,", row.quantity)[0]


def how_far(row: Row) -> str:
    """Return how far off a failing formula is, at its worst point.

    A factor or percent of what was measured; both numbers where one of them is 0 or their signs differ, and where the
    margin is absolute: an exponent or a share may well be 0. Where a power of the quantity of the paper is measured,
    it is said of that quantity.
    """
    point = farthest(row)
    if point is None:
        return ""
    if row.kind in EXACT:
        off = point.measured
        return f"off by {percent(off)}" if off < 1 and row.kind == "identity" else "fails outright"
    if row.kind in BOUNDS_EVERY_REPLICATE:
        return f"violated in {percent(point.measured)} of the replicates"
    over = predicted_over(row, point)
    if not (row.relative or row.logarithm) or not 0 < over < math.inf:
        predicted, measured = (wording.numeral(value, 3) for value in (point.predicted, point.measured))
        if row.kind == Kind.DISTRIBUTION:
            return f"distribution functions {measured} apart"
        return f"{measured_quantity(row)}: {predicted}, measured {measured}"
    side = "large" if over > 1 else "small"
    if ratios.off_by(over) >= TIMES:
        return f"{wording.numeral(ratios.off_by(over), 2)} times too {side}"
    return f"{percent(abs(over - 1))} too {side}"


def farthest(row: Row) -> PointOutcome | None:
    """The point at which a row that fails is farthest off."""
    wrong = [p for p in row.points if p.verdict == Verdict.DISAGREES]
    if not wrong:
        return None
    if row.kind in EXACT or row.kind in BOUNDS_EVERY_REPLICATE:
        return _worst(wrong, lambda p: p.measured)
    return _worst(
        wrong,
        lambda p: ratios.off_by(predicted_over(row, p)) if row.relative or row.logarithm else _deviation(p),
    )


def largest_margins(row: Row) -> float:
    """Return the largest deviation of a row in margins; 0 of a bound that is kept, infinite without a number."""
    if row.verdict == Verdict.AGREES and row.kind in (*ONE_SIDED, *BOUNDS_EVERY_REPLICATE):
        return 0.0
    values = [abs(wording.deviation(point)) for point in row.points]
    return max((value for value in values if not math.isnan(value)), default=math.inf)


def _worst(points: Sequence[PointOutcome], by: Callable[[PointOutcome], float]) -> PointOutcome:
    return max(points, key=lambda p: -1.0 if math.isnan(by(p)) else by(p))


def _deviation(point: PointOutcome) -> float:
    """Largest distance of the true value from the prediction: deviation plus half-width."""
    return abs(point.measured - point.predicted) + point.half_width


def predicted_over(row: Row, point: PointOutcome) -> float:
    """Predicted over measured, of logarithms what they are logarithms of, of powers what they are powers of."""
    if row.logarithm:
        return raised(row.logarithm, point.predicted - point.measured)
    over = point.predicted / point.measured if point.measured else math.inf
    return over ** (1 / row.root) if over > 0 else over
