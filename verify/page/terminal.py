"""What a run says at the command line: verdicts in a table, what was observed, a block per surprise, the count."""

from __future__ import annotations

import math
import os
import re
import sys
import textwrap
from collections.abc import Sequence
from typing import IO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from verify.model import raised
from verify.page import ratios, wording
from verify.page.vocabulary import SYMBOLS
from verify.results import InventoryRow, Observed, PointOutcome, Results, Row

__all__ = ["console", "inventory_table", "observed_block", "surprise_block", "table", "tally"]

STYLES = {"agrees": "green", "disagrees": "blue", "undecided": "yellow", "broken": "bold magenta"}
"""Red is for surprises."""

WORDS_PER_LINE = 76
PIPE_WIDTH = 140


def table(results: Results | Sequence[Row]) -> Table:
    """One line per row, as wide as the terminal allows; nothing in it hangs on colour.

    Numbers are those of the point that the verdict hangs on. The time of an experiment stands with the first row that
    reads it, the others name that row.
    """
    rows = results.rows if isinstance(results, Results) else results
    made = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    made.add_column("verdict", no_wrap=True)
    made.add_column("claim", overflow="fold", min_width=13, ratio=3)
    made.add_column("reading", overflow="fold", min_width=9, max_width=18)
    made.add_column("measured", justify="right", min_width=8)
    made.add_column("predicted", justify="right", min_width=10)
    made.add_column("n", justify="right", no_wrap=True)
    made.add_column("rivals", justify="right", no_wrap=True)
    made.add_column("CPU s", justify="right", overflow="fold", min_width=5, max_width=18)
    first: dict[str, str] = {}
    for row in rows:
        spent = first.setdefault(row.experiment or row.claim, row.id)
        made.add_row(*_cells(row, spent))
    return made


def inventory_table(rows: Sequence[InventoryRow]) -> Table:
    """One line per entry of the papers: where it stands, what judges or shows it, or the reason why nothing does."""
    made = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    made.add_column("paper", no_wrap=True)
    made.add_column("entry", no_wrap=True)
    made.add_column("status", no_wrap=True)
    made.add_column("statement", overflow="fold", max_width=40)
    made.add_column("claims, or why none", overflow="fold")
    for row in rows:
        reason = [f"({row.reason})" if row.claims else row.reason] if row.reason else []
        why = "\n".join([*row.claims, *(f"{name} (observed)" for name in row.observations), *reason])
        made.add_row(*(Text(cell) for cell in (row.paper, row.id, row.status, row.title, why)))
    return made


def console(file: IO[str] | None = None, *, colour: bool | None = None) -> Console:
    """Where tables go; a file or a pipe gets room for whole claim names, which a search can then find."""
    tty = (file or sys.stdout).isatty() or bool(colour)
    width = None if tty or "COLUMNS" in os.environ else PIPE_WIDTH
    return Console(file=file, highlight=False, width=width, force_terminal=colour)


def observed_block(observations: Sequence[Observed]) -> str:
    """A line per observation, and one per column of ratios: where most of them lie, and the farthest from 1."""
    lines = ["observed, not judged; ratios are predicted over measured, 1 is perfect"]
    for made in observations:
        rows = sum(len(group.rows) for group in made.groups)
        facts = f"{rows} rows, {made.replicates} replicates, {made.seconds:.1f} s"
        lines.append(f"  {made.id}: {'BROKEN' if made.error else facts}")
        for heading, values in ratios.ratio_columns(made).items():
            middle, worst = (_short(of(values)) for of in (ratios.median, ratios.worst))
            lines.append(f"    {_cut(heading, 42):<42}  median {middle}, worst {worst}")
    return "\n".join(lines)


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
    return _block(heading, {**_numbers(row, point), "seed": _seed(row), "rerun": row.rerun})


def tally(rows: Sequence[Row], observations: Sequence[Observed] = ()) -> str:
    """The last line of a run; model-based verdicts, which have no promise on their errors, are counted apart.

    >>> tally([])
    '0 agrees, 0 disagrees (0 expected)'
    """
    broken = sum(bool(made.error) for made in observations)
    observed = f", {len(observations)} observed" + f" ({broken} broken)" * bool(broken)
    return _tally(rows) + observed * bool(observations)


def _tally(rows: Sequence[Row]) -> str:
    modelled = [row for row in rows if row.model_based]
    line = _counts([row for row in rows if not row.model_based], always=("agrees", "disagrees"))
    return f"{line}; model-based: {_counts(modelled)}" if modelled else line


def _counts(rows: Sequence[Row], always: Sequence[str] = ()) -> str:
    """How many rows have which verdict; none is worth a word only where it is `always` said."""
    count = {verdict: sum(row.verdict == verdict for row in rows) for verdict in SYMBOLS}
    expected = sum(row.verdict == row.expected == "disagrees" for row in rows)
    notes = {"disagrees": f" ({expected} expected)"}
    return ", ".join(f"{n} {v}{notes.get(v, '')}" for v, n in count.items() if n or v in always)


def _cells(row: Row, spent: str) -> list[Text]:
    """The cells of a row; `spent` is the first row that reads its experiment."""
    point = wording.telling(row)
    rivals = wording.rival_tally(row)
    verdict = Text(
        f"{SYMBOLS[row.verdict]} {row.verdict}", style="red" if row.surprise else STYLES[row.verdict]
    )
    if row.surprise and row.verdict != "broken":
        verdict.append("\n  SURPRISE", style="bold")
    if row.model_based:
        verdict.append("\n  model-based", style="dim")
    return [
        verdict,
        Text(row.claim),
        Text(row.reading),
        Text(wording.numeral(point.measured, plain=True) if point else ""),
        Text(wording.prediction(point, plain=True) if point else ""),
        Text(str(point.replicates or "exact") if point else ""),
        Text(f"{rivals.rejected}/{rivals.total}" if rivals.total else ""),
        Text(f"{row.seconds:.1f}" if spent == row.id else _with(row, spent)),
    ]


def _with(row: Row, first: str) -> str:
    """That the draws of a row are those of an earlier one, by its name without the paper where that is the same."""
    claim = first.partition(" [")[0]
    return "as above" if claim == row.claim else f"with {claim.removeprefix(f'{row.paper}/')}"


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 3].rstrip()}..."


def _broken_block(heading: str, row: Row | Observed) -> str:
    last = (row.error.strip().splitlines() or ["no message"])[-1]
    return _block(heading, {"error": last, "rerun": row.rerun})


def _numbers(row: Row, point: PointOutcome) -> dict[str, str]:
    half = wording.half_width(point)
    parts = wording.half_parts(point, 3, plain=True)
    halves = abs(point.measured - point.predicted) / half if half > 0 else math.inf
    margins = f"{_short(abs(wording.deviation(point)))} margins"
    return {
        "theory": _in_unit(row, point.predicted),
        "margin": f"{_short(point.margin)} ({row.margin_reason})",
        "measured": _in_unit(row, point.measured),
        "half-width": f"{_short(half)} ({parts})",
        "deviation": f"{_short(halves)} half-widths, {margins}" if half > 0 else margins,
        "sizes": wording.parameters(point.parameters),
        "replicates": str(point.replicates) if point.replicates else "none needed",
        **_particulars(row, point),
    }


def _particulars(row: Row, point: PointOutcome) -> dict[str, str]:
    """What only some kinds have."""
    facts = {"model-based": "rests on the declared powers of the size"} if row.model_based else {}
    if row.verdict == "undecided":
        facts["why"] = wording.undecided(point)
    if point.slack is not None:
        facts["slack"] = f"{_short(point.slack)} (measured / bound)"
    if point.violations:
        facts["violations"] = f"replicate {wording.listed_violations(point, plain=True)}"
        facts["draw again"] = wording.redraw(row, point)
    return facts


def _in_unit(row: Row, value: float) -> str:
    """A number; a logarithm with what it is one of."""
    said = wording.numeral(value, 6, plain=True)
    of = (
        f" ({wording.unit(row, plain=True)} of {_short(raised(row.logarithm, value))})"
        if row.logarithm
        else ""
    )
    return said + of


def _short(value: float) -> str:
    return wording.numeral(value, 3, plain=True)


def _seed(row: Row) -> str:
    found = re.search(r"--seed[= ](\S+)", row.rerun)
    return found.group(1) if found else "that of the run"


def _block(heading: str, facts: dict[str, str]) -> str:
    lines = [heading]
    for name, value in facts.items():
        # a command is one line, however long, so that it can be copied
        room = WORDS_PER_LINE - 14 if name not in ("rerun", "draw again") else len(value) + 1
        first, *others = textwrap.wrap(value, room) or [""]
        lines += [f"  {name:<12}{first}", *(f"  {'':<12}{line}" for line in others)]
    return "\n".join(lines)
