"""The report from Python: claims judged anew, and the figure of any of them."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from simulate._checks import did_you_mean
from verify.model import Tier
from verify.page import plots, report as pages
from verify.results import Results, load
from verify.running import suite
from verify.running.request import requested
from verify.running.workers import open_map

__all__ = ["holds", "plot", "publish", "report", "stored"]

AS_READ = " [as our copy reads]"
"""Ends the id of a row that judges a formula as our copy of the paper reads."""

FEW = 4
"""Ids that an error names."""


def report(
    claim: str | Sequence[str] = (),
    *,
    paper: str | Sequence[str] = (),
    tier: str = "default",
    seed: int | None = None,
    replicates: int | None = None,
    data: str | None = None,
    device: str = "cpu",
    workers: int = 1,
    folder: str | Path | None = None,
    one_file: bool = False,
) -> Results:
    """Judge claims and make observations, as ``losscurv report`` does.

    Parameters
    ----------
    claim, paper
        Ids of claims or observations, and of papers, one or several; all if empty.
    tier
        smoke, default or full.
    seed
        Of the suite; 2024 if None.
    replicates
        Most of them at a point, in place of what each experiment asks for.
    data
        An ``.npz`` of images for the real networks in place of the embedded digits.
    device
        cpu, cuda, cuda:<index> or auto.
    workers
        Processes. More than one start new interpreters, so that a script has to stand behind
        ``if __name__ == "__main__":``.
    folder
        Where the pages and results.json go, and replicates for a rerun; nothing is written if None.
    one_file
        The whole report in report.html, in place of a first page with pages of cards beside it.

    Returns
    -------
    The results: `rows` with a verdict each, `observations`, and all that the page is drawn from.

    Raises
    ------
    ValueError
        If an argument cannot be used, or the folder cannot be written.

    Examples
    --------
    >>> found = report("vysogorets2024/softmax-rank")
    >>> [(row.id, row.verdict) for row in found.rows]
    [('vysogorets2024/softmax-rank', 'agrees'), ('vysogorets2024/softmax-rank [as our copy reads]', 'disagrees')]
    """
    given = {
        "claim": _listed(claim),
        "paper": _listed(paper),
        "tier": tier,
        "seed": seed,
        "replicates": replicates,
        "data": data,
        "device": device,
        "workers": workers,
        "report_dir": None if folder is None else str(folder),
        "one_file": one_file,
    }
    values = {name: value for name, value in given.items() if value not in (None, [])}
    request = requested(values, tier=Tier.DEFAULT, report_dir=None)
    with suite.open_session(request, lambda _: None) as session:
        session.judge_all()
    results = suite.collect(session, request)
    if request.report_dir is not None:
        publish(results, request.report_dir, request.settings.workers, one_file=request.one_file)
    return results


def publish(
    results: Results,
    folder: Path,
    workers: int,
    *,
    one_file: bool = False,
    doing: Callable[[str | Callable[[], str]], None] = lambda _: None,
) -> Path:
    """Write pages and results file, with figures by as many processes as are worth starting; the first page's path.

    What is being done is told to `doing`, figure by figure.

    Raises
    ------
    ValueError, OSError
        If they cannot be written.
    """
    with open_map(len(results.rows), workers) as each:
        return pages.write(results, folder, _counted(each, doing), one_file=one_file)


def _counted(
    each: Callable[..., Iterator[Any]], doing: Callable[[str | Callable[[], str]], None]
) -> Callable[..., Iterator[Any]]:
    """The same ``map``, which tells how many figures it has drawn, and when the rest will be."""

    def mapped(function: Callable[..., Any], *arguments: Iterable[Any]) -> Iterator[Any]:
        columns = [list(values) for values in arguments]
        total, done, started = min(map(len, columns), default=0), 0, time.monotonic()

        def far() -> str:
            since = time.monotonic() - started
            left = f", about {since * (total - done) / done:.0f} s left" if done else ""
            return f"writing the page: {done} of {total} cards drawn, {since:.0f} s{left}"

        doing(far)
        for made in each(function, *columns):
            done += 1
            yield made
        doing("writing the page")

    return mapped


def plot(results: Results | str | Path | None, claim: str) -> Figure:
    """The figure of one row or observation: prediction, rivals and measured points.

    Parameters
    ----------
    results
        What `report` returned, or a results file, or its folder; None judges the claim first.
    claim
        Id of a claim or an observation; ``"<id> [as our copy reads]"`` for the form as our copy of the paper reads.

    Returns
    -------
    A figure of matplotlib, which ``figure.savefig("law.pdf")`` writes; ``losscurv plot --claim ID`` does so from the
    shell.

    Raises
    ------
    ValueError
        If the file cannot be read, nothing in it has this id, or there is nothing to draw of it.

    Examples
    --------
    >>> plot(report(claim=["vysogorets2024/softmax-rank"]), "vysogorets2024/softmax-rank").get_label()
    'vysogorets2024/softmax-rank: agrees'
    """
    name = claim.removesuffix(AS_READ)
    where, instead = "these results", f": judge it first, losscurv report --claim {shlex.quote(name)}"
    if results is None:
        results, instead = report(claim=[name]), ""
    elif not isinstance(results, Results):
        where = f"results at {results}"
        instead = f": name another folder, or judge it first, losscurv report --claim {shlex.quote(name)}"
        results = stored(results)
    mark = plots.stamp(results)
    for row in results.rows:
        if row.id == claim:
            return plots.agreement(row, mark)
    for made in results.observations:
        if made.id == claim and (figure := plots.observation(made, mark)) is not None:
            return figure
    if holds(results, claim):
        raise ValueError(f"claim must have something to draw, got {claim!r}")
    known = [item.id for item in (*results.rows, *results.observations)]
    has = f"they have {_some(claim, known)}" if known else "they are empty"
    raise ValueError(f"{where} do not hold {claim!r}{instead}; {has}")


def holds(results: Results, claim: str) -> bool:
    """Whether a run has a row or an observation of this id."""
    return any(item.id == claim for item in (*results.rows, *results.observations))


def stored(path: str | Path) -> Results:
    """What a results file has, by its path or by its folder.

    Raises
    ------
    ValueError
        If it cannot be read.
    """
    file = Path(path)
    return load(file / "results.json" if file.is_dir() else file)


def _some(claim: str, known: Sequence[str]) -> str:
    """All ids where they are few, else the nearest ones: a full run has some five hundred."""
    return ", ".join(known) if len(known) <= FEW else f"{len(known)} ids{did_you_mean(claim, known, FEW)}"


def _listed(names: str | Sequence[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)
