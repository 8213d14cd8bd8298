"""The end of a run on one screen: what needs a look first, then what was found, counts, and where the report is."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from verify.model import Verdict
from verify.page import counts, terminal
from verify.page.counts import run_verdict
from verify.page.wording import legible
from verify.results import Observed, Results, Row, Suite

FEW = 12
"""Rows of a table that is read at a glance; longer ones are printed only where asked for."""

SCREEN = 40
"""Lines of the end of a run, the longest report of surprises included."""

NAMES, FEWEST = 6, 6
"""Names of surprises that have no room for their block, and lines kept free for them."""


def tabled(results: Results, asked: bool) -> bool:
    """Whether the table of claims is printed: asked for, short, or of claims that were named one by one."""
    return asked or len(results.rows) <= FEW or "--claim" in results.suite.census.left_out


def to_look_at(results: Results, bad: Sequence[Row | Observed]) -> list[Row | Observed]:
    """Return what counts against the run, then undecided rows, which may not."""
    named = {item.id for item in bad}
    undecided = [row for row in results.rows if row.verdict == Verdict.UNDECIDED and row.id not in named]
    return [*bad, *undecided]


def screen(results: Results, needing: Sequence[Row | Observed], tail: Sequence[str]) -> list[str]:
    """Surprises and undecided claims with their numbers, as many as one screen has room for, and the verdict.

    Parameters
    ----------
    results
        The run.
    needing
        What needs a look, from `to_look_at`.
    tail
        The lines that follow, from `ending`, for which room is left.
    """
    run = run_verdict(results)
    verdict = f"{', '.join(words for _, words in run.outcomes)}. {run.registered}."
    found = textwrap.wrap(verdict, terminal.columns())
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
    names = ", ".join(made.id for made in legible(results.observations))
    blocks = [f"observed, not judged; the page has their tables: {names}"] * bool(names)
    blocks += [f"\n{item.error}{terminal.surprise_block(item)}" for item in legible([*bad])]
    return "\n".join([*lines, *blocks, *tail])


def ending(results: Results, notes: Iterable[str] = ()) -> list[str]:
    """The last lines of every run: notes, such as where the report is, what was judged, how long, and the count."""
    return [
        *notes,
        *host_lines(results.suite),
        *counts.lines(results.suite),
        terminal.tally(results.rows, results.observations),
    ]


def host_lines(suite: Suite) -> list[str]:
    """Return lines on wall-clock and CPU time, if known, and on what was not computed on the device that was asked for.

    >>> from types import SimpleNamespace
    >>> host_lines(SimpleNamespace(device="cuda", host={"beside_the_device": {"a/b": "its LAPACK"}}))
    ['on the CPU, not on cuda: a/b (its LAPACK)']
    """
    host, lines = suite.host, list[str]()
    wall, cpu, workers = map(host.get, ("wall_seconds", "cpu_seconds", "workers"))
    if wall is not None and cpu is not None:
        many = f"{workers or 1} worker{'s' * (workers not in (None, 1))}"
        lines.append(f"judged in {wall:.0f} s on {many}, {cpu:.0f} CPU seconds")
    named = ", ".join(f"{name} ({what})" for name, what in (host.get("beside_the_device") or {}).items())
    lines += [f"on the CPU, not on {suite.device}: {named}"] * bool(named)
    return lines + [
        str(line) for line in (*(host.get("for_a_gpu") or ()), host.get("again_on_the_cpu")) if line
    ]


def _looked_at(items: Sequence[Row | Observed], room: int) -> list[str]:
    """A block for each of the first, one at least, and the names of the others."""
    lines, named = list[str](), list[str]()
    for item in items:
        block = [*terminal.surprise_block(item).splitlines(), ""]
        if named or (lines and len(lines) + len(block) + FEWEST > room):
            named.append(f"{item.id} ({'broken' if isinstance(item, Observed) else item.verdict})")
        else:
            lines += block
    more = f"{len(named)} more, on the page and by --table:"
    listed = ", ".join(named[:NAMES]) + ", ..." * (len(named) > NAMES)
    others = terminal.wrapped_text(listed, terminal.columns(), "  ")
    return [*lines, *([more, *others, ""] if named else [])]
