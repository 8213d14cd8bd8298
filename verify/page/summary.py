"""The end of a run on one screen: what needs a look first, then what was found, counts, and where the report is."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from verify.model import Verdict
from verify.page import terminal
from verify.page.counts import census_line, promise_line, run_verdict
from verify.page.wording import legible
from verify.results import Observed, Results, Row, Suite

FEW = 12
"""Rows of a table that is read at a glance; longer ones are printed only where asked for."""

BLOCKS, NAMES = 2, 6
"""Items that are shown with their numbers, and further ones that are named."""


def tabled(results: Results, asked: bool) -> bool:
    """Whether the table of claims is printed: asked for, short, or of claims that were named one by one."""
    return asked or len(results.rows) <= FEW or "--claim" in results.suite.census.left_out


def to_look_at(results: Results, bad: Sequence[Row | Observed]) -> list[Row | Observed]:
    """Return what counts against the run, then undecided rows, which may not."""
    named = {item.id for item in bad}
    undecided = [row for row in results.rows if row.verdict == Verdict.UNDECIDED and row.id not in named]
    return [*bad, *undecided]


def screen(results: Results, needing: Sequence[Row | Observed]) -> list[str]:
    """Return the first items that need a look with their numbers, the names of others, and the verdict of the run."""
    run, items = run_verdict(results), legible([*needing])
    lines = [line for item in items[:BLOCKS] for line in (*terminal.surprise_block(item).splitlines(), "")]
    rest = items[BLOCKS:]
    if rest:
        listed = ", ".join(item.id for item in rest[:NAMES]) + ", ..." * (len(rest) > NAMES)
        others = terminal.wrapped_text(listed, terminal.columns(), "  ")
        lines += [f"{len(rest)} more, on the page and by --table:", *others, ""]
    verdict = f"{', '.join(words for _, words in run.outcomes)}. {run.registered}."
    return [*lines, *legible(textwrap.wrap(verdict, terminal.columns()))]


def closing_text(
    results: Results,
    bad: Sequence[Row | Observed] | None = None,
    notes: Sequence[str] = (),
    *,
    table: bool = False,
) -> str:
    """Return the text at the end of a run: one screen or a table, then `bad` items (None: the surprises) and notes."""
    if bad is None:
        made = (*results.rows, *results.observations)
        bad = [item for item in made if (item.error if isinstance(item, Observed) else item.surprise)]
    tail = ending(results, notes)
    if not tabled(results, table):
        return "\n".join([*screen(results, to_look_at(results, bad)), *tail])
    lines = terminal.table(legible(results.rows)) if results.rows else []
    names = ", ".join(made.id for made in legible(results.observations))
    blocks = [f"observed, not judged; the page has their tables: {names}"] * bool(names)
    blocks += [f"\n{item.error}{terminal.surprise_block(item)}" for item in legible([*bad])]
    return "\n".join([*lines, *blocks, *tail])


def ending(results: Results, notes: Iterable[str] = ()) -> list[str]:
    """The last lines of every run: notes, such as where the report is, what was judged, how long, and the count."""
    return [
        *notes,
        *host_lines(results.suite),
        census_line(results.suite.census),
        promise_line(results.suite.promises),
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
