"""Terminal text of a run: a table of verdicts, observations, a block for each surprise, and counts."""

from __future__ import annotations

import math
import os
import sys
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import IO

from rich.console import Console

from verify.claims.registry import PAPER, count_statements, whose, whose_claim
from verify.escapes import escaped
from verify.judging.judge import labels
from verify.model import AnyClaim, raised
from verify.model.inventory import Paper
from verify.page import wording
from verify.page.counts import Scorecard
from verify.page.outcomes import MARKS
from verify.page.statements import short_authors
from verify.page.vocabulary import SYMBOLS
from verify.results import InventoryRow, Observed, PointOutcome, Row

WORDS_PER_LINE = 76
PIPE_WIDTH = 80


def table(rows: Sequence[Row]) -> list[str]:
    """Return the verdicts of rows: a line each where the terminal is wide enough, else several.

    Numbers are those of the point that the verdict hangs on. The time of an experiment stands with the first row that
    reads it.
    """
    head = ("verdict     claim", "reading", "measured", "predicted", "n", "rivals", "CPU s")
    first: dict[str, str] = {}
    cells = [_cells(row, first.setdefault(row.experiment or row.claim, row.id) == row.id) for row in rows]
    room = console().width
    return _aligned(head, cells, room) or [
        line for claim, *others in cells for line in [claim, *_cells_with_headings(head[1:], others, room)]
    ]


def _cells(row: Row, first: bool) -> list[str]:
    """The cells of a row, with the time of its experiment in the `first` row that reads it."""
    point, rivals = wording.telling(row), wording.rival_tally(row)
    said = f"{SYMBOLS[row.verdict]} {row.verdict:<9} {row.claim}"
    said += ", SURPRISE" * (row.surprise and row.verdict != "broken") + ", model-based" * row.model_based
    return [
        said,
        row.reading,
        wording.numeral(point.measured, plain=True) if point else "",
        wording.prediction(point, plain=True) if point else "",
        str(point.replicates or "exact") if point else "",
        f"{rivals.rejected}/{rivals.total}" if rivals.total else "",
        f"{row.seconds:.1f}" if first else "",
    ]


def statement_lines(rows: Sequence[InventoryRow], claims: Mapping[str, AnyClaim]) -> list[str]:
    """Return a line for each statement, with what judges or shows it, or the reason why nothing does.

    A statement or claim that is not in the paper's own words is marked with its origin. `claims` are those named by the
    rows. Lines are wrapped on a terminal only, so that a pipe can search them; no id is ever cut.
    """
    width, lines = max((len(f"{row.paper} {row.id}") for row in rows), default=0), list[str]()
    for row in rows:
        origin = whose(row, claims)
        others = {name: whose_claim(claims[name]) for name in row.claims}
        named = [name + f" ({o})" * (o not in (PAPER, origin)) for name, o in others.items()]
        named += [f"{name} (observed)" for name in row.observations]
        status = row.status + f", {origin}" * (origin != PAPER)
        reason = f"({row.reason})" if row.reason else ""
        fields = (f"{row.paper} {row.id}".ljust(width), status, f"{row.title}:" if named else row.title)
        line = escaped("  ".join(filter(None, (*fields, ", ".join(named), reason))))
        lines += wrapped_text(line, columns(), "    ", "") if sys.stdout.isatty() else [line]
    return lines


def wrapped_text(text: str, width: int, indent: str, first: str | None = None) -> list[str]:
    """Return lines of text, none of which ends within a word: ids have hyphens, and are searched for and copied.

    Examples
    --------
    >>> wrapped_text("one two-three four", 10, "  ", "")
    ['one', '  two-three', '  four']
    """
    return textwrap.wrap(
        text,
        width,
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_on_hyphens=False,
        break_long_words=False,
    )


def statements_by_paper(
    rows: Sequence[InventoryRow], claims: Mapping[str, AnyClaim], papers: Sequence[Paper]
) -> list[str]:
    """Return a screen with the papers, how many statements of each are judged by how many claims, and all counts."""
    table: list[tuple[str, ...]] = []
    for paper in papers:
        own = [row for row in rows if row.paper == paper.id]
        judging = {name for row in own for name in row.claims}
        judged = sum(bool(row.claims) for row in own)
        table.append((paper.id, *map(str, (len(own), judged, len(judging))), short_authors(paper.authors)))
    others = Counter(whose(row, claims) for row in rows if row.ours)
    counts = {"made by papers": sum(not row.ours for row in rows), **dict(sorted(others.items()))}
    states = ", ".join(f"{count} {status}" for status, count in count_statements(rows).items())
    judging = {name for row in rows for name in row.claims}
    readings = sum(len(labels(claims[name])) for name in judging)
    texts = (
        f"{len(rows)} statements: {', '.join(f'{count} {name}' for name, count in counts.items())}.",
        f"Status of those made by papers: {states}.",
        f"They are judged by {len(judging)} claims, in {readings} readings.",
        "A claim is a prediction, the measurement it is compared with, and a margin declared before the run.",
        "A reading is a formula of a claim with its own verdict: a misprint and its correction are two readings.",
        "To list statements: losscurv claims [overlap] [B13] [--paper edge]",
    )
    found = [line for text in texts for line in wrapped_text(text, columns(), "  ", "")]
    return [*fitted_table(("paper", "statements", "judged", "claims", "authors"), table), "", *found]


def score_lines(card: Scorecard) -> list[str]:
    """Return a table of statements by paper and outcome, the largest deviation of each paper, and the run."""
    rows = [(one.paper, *map(str, one.outcomes.values())) for one in card.papers]
    lines = [
        *fitted_table(("paper", *MARKS.values()), rows),
        "largest deviation of a sampled reading under the paper's own condition:",
    ]
    for one in card.papers:
        far = f"{one.deviation}, {wording.numeral(one.margins, 2)} margins, {one.claim}"
        lines.append(f"  {one.paper}: {far if one.claim else 'not measured'}")
    return [*lines, ", ".join(f"{name} {value}" for name, value in card.run.items())]


def console(file: IO[str] | None = None) -> Console:
    """Return a console, as wide as the terminal; a file or a pipe is as wide as `COLUMNS` says, else 80."""
    fixed = not (file or sys.stdout).isatty() and "COLUMNS" not in os.environ
    return Console(file=file, highlight=False, width=PIPE_WIDTH if fixed else None)


def columns(most: int = 110) -> int:
    """Return the width of lines for standard output, at most what is read with ease."""
    return min(console().width, most)


def fitted_table(head: Sequence[str], rows: Sequence[Sequence[str]], *, right: bool = False) -> list[str]:
    """Return a table as lines no wider than the terminal, and no cell cut.

    Headings take several lines where that helps; else each row has its first cell on a line, and the others below it
    with their headings.

    >>> fitted_table(["B", "rate"], [["16", "0.4"], ["128", "0.8"]], right=True)
    ['  B  rate', ' 16   0.4', '128   0.8']
    """
    found = _aligned(head, rows, columns(), right=right)
    return found or [
        line
        for row in rows
        for line in [f"{head[0]} {row[0]}", *_cells_with_headings(head[1:], row[1:], columns())]
    ]


def _aligned(
    head: Sequence[str], rows: Sequence[Sequence[str]], room: int, *, right: bool = False
) -> list[str]:
    """Columns, with headings in as many lines as that takes; nothing where they do not fit."""
    cells = [max((len(row[k]) for row in rows), default=0) for k in range(len(head))]
    for height in range(1, 1 + max(len(name.split()) for name in head)):
        widths = [_narrowest(name, least, height) for name, least in zip(head, cells, strict=True)]
        if sum(widths) + 2 * (len(head) - 1) <= room:
            titles = [textwrap.wrap(name, width) for name, width in zip(head, widths, strict=True)]
            above = zip(*([""] * (height - len(title)) + title for title in titles), strict=True)
            place = str.rjust if right else str.ljust
            return ["  ".join(map(place, line, widths)).rstrip() for line in (*above, *rows)]
    return []


def _narrowest(name: str, least: int, height: int) -> int:
    """Return the smallest width of a column whose heading takes at most `height` lines."""
    widths = range(max(least, *map(len, name.split())), 1 + max(least, len(name)))
    return next(width for width in widths if len(textwrap.wrap(name, width)) <= height)


def _cells_with_headings(head: Sequence[str], cells: Sequence[str], room: int) -> list[str]:
    """Return the cells of a row with their headings, as indented lines below its first cell."""
    named = (f"{name} {cell}" for name, cell in zip(head, cells, strict=True) if cell)
    return wrapped_text(", ".join(named), room, " " * 4)


def surprise_block(row: Row | Observed) -> str:
    """Everything needed to look into a verdict that was not expected or is missing, or into what crashed.

    Theory, margin, measured value and half-width are those of the point that the verdict hangs on.
    """
    if isinstance(row, Observed):
        return _broken_block(f"BROKEN {row.id}: observation", row)
    word = "UNDECIDED" if row.verdict == "undecided" and not row.surprise else "SURPRISE"
    heading = f"{word} {row.id}: {row.verdict}, expected {row.expected}"
    if row.verdict == "broken":
        return _broken_block(heading.replace("SURPRISE", "BROKEN", 1), row)
    point = wording.telling(row)
    if point is None:
        return _block(heading, {"points": "none", "rerun": row.rerun})
    return _block(heading, {**_numbers(row, point), "rerun": row.rerun})


def tally(rows: Sequence[Row], observations: Sequence[Observed] = ()) -> str:
    """The last line of a run; model-based verdicts, which have no promise on their errors, are counted apart.

    >>> tally([])
    '0 agrees, 0 disagrees (0 expected)'
    """
    modelled = [row for row in rows if row.model_based]
    line = _counts([row for row in rows if not row.model_based], always=("agrees", "disagrees"))
    line += f"; model-based: {_counts(modelled)}" * bool(modelled)
    broken = sum(bool(made.error) for made in observations)
    observed = f", {len(observations)} observed" + f" ({broken} broken)" * bool(broken)
    return line + observed * bool(observations)


def _counts(rows: Sequence[Row], always: Sequence[str] = ()) -> str:
    """Count the rows with each verdict; a count of 0 is left out unless the verdict is in `always`."""
    count = {verdict: sum(row.verdict == verdict for row in rows) for verdict in SYMBOLS}
    expected = sum(row.verdict == row.expected == "disagrees" for row in rows)
    notes = {"disagrees": f" ({expected} expected)"}
    return ", ".join(f"{n} {v}{notes.get(v, '')}" for v, n in count.items() if n or v in always)


def _broken_block(heading: str, row: Row | Observed) -> str:
    last = (row.error.strip().splitlines() or ["no message"])[-1]
    return _block(heading, {"error": last, "rerun": row.rerun})


def _numbers(row: Row, point: PointOutcome) -> dict[str, str]:
    half = point.half_width
    parts = wording.half_parts(point, 3, plain=True)
    halves = abs(point.measured - point.predicted) / half if half > 0 else math.inf
    margins = f"{_three_digits(abs(wording.deviation(point)))} margins"
    return {
        "theory": _in_unit(row, point.predicted),
        "margin": f"{_three_digits(point.margin)} ({row.margin_reason})",
        "measured": _in_unit(row, point.measured),
        "half-width": f"{_three_digits(half)} ({parts})",
        "deviation": f"{_three_digits(halves)} half-widths, {margins}" if half > 0 else margins,
        "sizes": wording.parameters(point.parameters),
        "replicates": str(point.replicates) if point.replicates else "none needed",
        **_particulars(row, point),
    }


def _particulars(row: Row, point: PointOutcome) -> dict[str, str]:
    """Return the facts that only some kinds of claims have."""
    facts = {"model-based": "rests on the declared powers of the size"} if row.model_based else {}
    if row.verdict == "undecided":
        facts["why"] = wording.undecided(point)
        facts |= {"foreseen": row.may_be_undecided} if row.may_be_undecided else {}
    if point.slack is not None:
        facts["slack"] = f"{_three_digits(point.slack)} (measured / bound)"
    if "property" in row.kind and row.verdict == "disagrees":
        facts["keep"] = f"failed=(Point({', '.join(f'{k}={v!r}' for k, v in point.parameters.items())}),)"
    if point.violations:
        facts["violations"] = f"replicate {wording.listed_violations(point, plain=True)}"
    return facts


def _in_unit(row: Row, value: float) -> str:
    """A number; a logarithm with what it is one of."""
    said = wording.numeral(value, 6, plain=True)
    of = (
        f" ({wording.unit(row, plain=True)} of {_three_digits(raised(row.logarithm, value))})"
        if row.logarithm
        else ""
    )
    return said + of


def _three_digits(value: float) -> str:
    return wording.numeral(value, 3, plain=True)


def _block(heading: str, facts: dict[str, str]) -> str:
    lines = [heading]
    for name, value in facts.items():
        # a command is one line, however long, so that it can be copied
        room = WORDS_PER_LINE - 14 if name not in ("rerun", "keep") else len(value) + 1
        first, *others = textwrap.wrap(value, room, break_on_hyphens=False) or [""]
        lines += [f"  {name:<12}{first}", *(f"  {'':<12}{line}" for line in others)]
    return "\n".join(lines)
