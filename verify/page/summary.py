"""The end of a run on one screen: what needs a look first, then what was found, counts, and where the report is."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from verify.model import Standing, Verdict
from verify.page import counts, ratios, terminal
from verify.page.statements import (
    corrections,
    fails_as_foreseen,
    foremost,
    holds_as_foreseen,
    how_closely,
    how_far,
    left_to_a_fuller,
    place,
)
from verify.page.wording import legible
from verify.results import Observed, Results, Row, Suite

FEW = 12
"""Rows of a table that is read at a glance; longer ones are printed only where asked for."""

SCREEN = 40
"""Lines of the end of a run, the longest report of surprises included."""

NAMES = 6
"""Names of surprises that have no room for their block."""


def tabled(results: Results, asked: bool) -> bool:
    """Whether the table of claims is printed: asked for, short, or of claims that were named one by one."""
    return asked or len(results.rows) <= FEW or "--claim" in results.suite.census.left_out


def to_look_at(results: Results, bad: Sequence[Row | Observed]) -> list[Row | Observed]:
    """Return what counts against the run, then undecided rows, which may not."""
    named = {item.id for item in bad}
    undecided = [row for row in results.rows if row.verdict == Verdict.UNDECIDED and row.id not in named]
    return [*bad, *undecided]


def screen(results: Results, needing: Sequence[Row | Observed], tail: Sequence[str]) -> list[str]:
    """Surprises and undecided claims with their numbers, as many as one screen has room for, and what was found.

    Parameters
    ----------
    results
        The run.
    needing
        What needs a look, from `to_look_at`.
    tail
        The lines that follow, from `ending`, for which room is left.
    """
    shown = {item.paper for item in (*results.rows, *results.observations, *left_to_a_fuller(results))}
    papers = dict.fromkeys([*(paper.id for paper in results.suite.papers), *sorted(shown)])
    found = [line for paper in papers if paper in shown for line in _paper_lines(results, paper)]
    room = SCREEN - len(found) - len(tail)
    return [*_looked_at(legible([*needing]), room), *legible(found)]


def closing_text(
    results: Results,
    bad: Sequence[Row | Observed] | None = None,
    notes: Sequence[str] = (),
    *,
    table: bool = False,
    colour: bool = False,
) -> str:
    """Return the text at the end of a run: one screen or a table, then `bad` items (None: the surprises) and notes."""
    if bad is None:
        made = (*results.rows, *results.observations)
        bad = [item for item in made if (item.error if isinstance(item, Observed) else item.surprise)]
    tail = ending(results, notes)
    if not tabled(results, table):
        return "\n".join([*screen(results, to_look_at(results, bad), tail), *tail])
    lines = terminal.table(legible(results.rows), colour=colour) if results.rows else []
    blocks = [terminal.observed_block(legible(results.observations))] * bool(results.observations)
    blocks += [f"\n{item.error}{terminal.surprise_block(item)}" for item in legible([*bad])]
    return "\n".join([*lines, *blocks, *tail])


def ending(results: Results, notes: Iterable[str] = ()) -> list[str]:
    """The last lines of every run: notes, such as where the report is, what was judged, how long, and the count."""
    return [
        *notes,
        *duration_line(results.suite),
        *computed_on_cpu_line(results.suite),
        *gpu_lines(results.suite),
        *counts.lines(results.suite),
        terminal.tally(results.rows, results.observations),
    ]


def duration_line(suite: Suite) -> list[str]:
    """Return the line on wall-clock and CPU time of a run, if known."""
    wall, cpu = (suite.host.get(name) for name in ("wall_seconds", "cpu_seconds"))
    if wall is None or cpu is None:
        return []
    workers = suite.host.get("workers", 1)
    many = f"{workers} worker{'s' * (workers != 1)}"
    main = suite.host.get("main_seconds")
    alone = "" if main is None else f", {main:.0f} of them in the main process"
    return [f"judged in {wall:.0f} s on {many}, {cpu:.0f} CPU seconds{alone}"]


def computed_on_cpu_line(suite: Suite) -> list[str]:
    """Return the line on experiments that computed on the CPU although the run used another device, if any did.

    >>> from types import SimpleNamespace
    >>> computed_on_cpu_line(SimpleNamespace(device="cuda", host={"beside_the_device": {"a/b": "its LAPACK"}}))
    ['on the CPU, not on cuda: a/b (its LAPACK)']
    """
    beside = suite.host.get("beside_the_device") or {}
    told = ", ".join(f"{name} ({what})" for name, what in beside.items())
    return [f"on the CPU, not on {suite.device}: {told}"] if told else []


def gpu_lines(suite: Suite) -> list[str]:
    """Return the lines on claims that need a GPU, and on blocks that were drawn again on the CPU."""
    told = (*(suite.host.get("for_a_gpu") or ()), suite.host.get("again_on_the_cpu"))
    return [str(line) for line in told if line]


def _looked_at(items: Sequence[Row | Observed], room: int) -> list[str]:
    """A block for each of the first, and the names of the others; one block at least, however little room there is."""
    lines: list[str] = []
    for k, item in enumerate(items):
        block = [*terminal.surprise_block(item).splitlines(), ""]
        others = _names(items[k + 1 :])
        if lines and len(lines) + len(block) + len(others) > room:
            return [*lines, *_names(items[k:])]
        lines += block
    return lines


def _names(items: Sequence[Row | Observed]) -> list[str]:
    if not items:
        return []
    named = ", ".join(f"{item.id} ({_state(item)})" for item in items[:NAMES]) + ", ..." * (
        len(items) > NAMES
    )
    lines = textwrap.wrap(named, terminal.columns() - 2, break_long_words=False, break_on_hyphens=False)
    return [f"{len(items)} more, on the page and by --table:", *(f"  {line}" for line in lines), ""]


def _state(item: Row | Observed) -> str:
    return "broken" if isinstance(item, Observed) else item.verdict


def _paper_lines(results: Results, paper: str) -> list[str]:
    """Return the counts of readings of a paper that hold and fail, and the first of each sort."""
    rows = [row for row in results.rows if row.paper == paper]
    hold = [row for row in rows if holds_as_foreseen(row)]
    failing = [row for row in rows if fails_as_foreseen(row)]
    misprints = [row for row in failing if row.standing == Standing.MISPRINT]
    stated = [row for row in failing if row.standing == Standing.AS_STATED]
    tables = [made for made in results.observations if made.paper == paper and not made.error]
    if not rows:
        return [f"{paper}: " + ("observed" if tables else "left to --tier full"), *_tables(tables)]
    said = f"{paper}: {len(hold)} readings hold" + f", {len(failing)} fail as foreseen" * bool(failing)
    lines = [said + f" ({len(misprints)} misprints)" * bool(misprints)]
    for row in foremost(hold, results)[:1]:
        lines += _line("holds", f"{place(row, results)}: {row.says or row.quantity}, {how_closely(row)}")
    for row in foremost(misprints or stated or failing, results)[:1]:
        instead = corrections(rows).get(row.claim)
        closely = f"; what holds instead: {how_closely(instead)}" if instead else ""
        lines += _line(
            "misprint" if misprints else "fails", f"{place(row, results)}: {how_far(row)}{closely}"
        )
    return [*lines, *_tables(tables)]


def _tables(tables: Sequence[Observed]) -> list[str]:
    """Return the line on the first table with ratios."""
    for made in tables:
        columns = ratios.ratio_columns(made)
        if columns:
            told = "; ".join(
                f"{name} {ratios.middle_and_worst(values, 2)}" for name, values in columns.items()
            )
            return _line("networks", f"{made.title}: predicted over measured: {told}")
    return []


def _line(sort: str, said: str) -> list[str]:
    """A finding on two lines at most."""
    return textwrap.wrap(
        said, terminal.columns(), initial_indent=f"  {sort:<9} ", subsequent_indent=" " * 12, max_lines=2,
        placeholder=" ...", break_on_hyphens=False,
    )  # fmt: skip
