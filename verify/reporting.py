"""The report from Python: claims judged anew, and the figure of any of them."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from simulate._checks import did_you_mean
from verify.model import Tier
from verify.page import plots, report as pages
from verify.page.canvas import WIDTH
from verify.page.main.plot import PRINTED
from verify.page.main.sheet import EDGE, GAP, main_figure
from verify.results import Results
from verify.running import suite
from verify.running.options import load_results
from verify.running.request import requested
from verify.running.workers import open_map

FEW = 4
"""Ids that an error proposes."""

PICTURES = {
    "semicircle": "granziol2022/semicircle",
    "marchenko-pastur": "granziol2022/theorem-7-edge",
    "transition": "granziol2022/theorem-10",
    "batch-size": "granziol2022/theorem-4",
    "network": "granziol2022/real-batches",
    "rates-in-training": "granziol2022/sgd-rates-clean-linear-then-flat",
    "fisher-width": "karakida2019/growth",
    "excess-law": "vysogorets2024/excess-by-scale",
    "gradient": "vysogorets2024/mean-gradient-norm",
}
"""Claims and observations of the pictures of ``losscurv gallery``, by name."""


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
    values = {
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
    request = requested(values, tier=Tier.DEFAULT, report_dir=None)
    with suite.open_session(request, lambda _: None) as session:
        session.judge_all()
    results = suite.collect(session, request)
    if request.report_dir is not None:
        publish(results, request.report_dir, request.settings.workers, one_file=one_file)
    return results


def pictures(names: Sequence[str]) -> dict[str, str]:
    """Return the claims of these pictures of `PICTURES`, all of them if none is named.

    Raises
    ------
    ValueError
        If a name is unknown.
    """
    for name in names:
        if name not in PICTURES:
            raise ValueError(
                f"picture must be one of {', '.join(PICTURES)}, got {name!r}{did_you_mean(name, PICTURES)}"
            )
    return {name: PICTURES[name] for name in names or PICTURES}


def publish(results: Results, folder: Path, workers: int, *, one_file: bool = False) -> Path:
    """Write pages and results file, with figures by as many processes as are worth starting; the first page's path.

    Raises
    ------
    ValueError, OSError
        If they cannot be written.
    """
    with open_map(len(results.rows), workers) as each:
        return pages.write(results, folder, each, one_file=one_file)


def plot(
    results: Results | str | Path | None,
    claim: str = "",
    *,
    panels: str = "main",
    width: float | None = None,
    main: bool = False,
    paper: str = "",
) -> Figure:
    """The figure of one row or observation, or one with the main plots of a run.

    Parameters
    ----------
    results
        What `report` returned, or a results file, or its folder; None judges the claim first.
    claim
        Id of a claim or an observation; ``"<id> [as our copy reads]"`` for the form as our copy of the paper reads.
    panels
        "main" for one panel: prediction, margin, measured points, rivals. "all" adds the deviations in margins.
    width
        Inches, 6 to 30; about 7 if None. Texts keep their size. Of main plots as many stand side by side as fit, 4
        at most.
    main, paper
        In place of a claim: all main plots of the run, or those of a paper, side by side.

    Returns
    -------
    A figure of matplotlib, which ``figure.savefig("law.pdf")`` writes; ``losscurv plot --claim ID`` does so from the
    shell.

    Raises
    ------
    ValueError
        If the file cannot be read, nothing in it has this id, there is nothing to draw of it, or an argument cannot be
        used.

    Examples
    --------
    >>> found = report(claim=["vysogorets2024/softmax-rank"])
    >>> plot(found, "vysogorets2024/softmax-rank").get_label()
    'vysogorets2024/softmax-rank: agrees'
    >>> plot(found, "vysogorets2024/softmax-rank", width=6).get_size_inches()[0]
    np.float64(6.0)
    """
    if bool(claim) == (main or bool(paper)) or (panels != "main" and not claim):
        raise ValueError("plot needs either a claim, with its panels, or main or a paper")
    if not claim:
        if results is None:
            raise ValueError("main plots need results: run losscurv report first, or name a results file")
        room = plots.require_width(width) - 2 * EDGE + GAP if width else math.inf
        made = results if isinstance(results, Results) else load_results(results)
        return main_figure(made, paper, int(max(1, min(4, room // (WIDTH + GAP)))))
    name = claim.removesuffix(PRINTED)
    made = report(claim=[name]) if results is None else results
    made = made if isinstance(made, Results) else load_results(made)
    mark = plots.stamp(made)
    for row in made.rows:
        if row.id == claim:
            return plots.agreement(row, mark, panels, width)
    for seen in made.observations:
        if seen.id == claim and (figure := plots.observation(seen, mark)) is not None:
            return figure
    if holds(made, claim):
        raise ValueError(f"claim must have something to draw, got {claim!r}")
    known = [item.id for item in (*made.rows, *made.observations)]
    raise ValueError(
        f"the results do not hold {claim!r}{did_you_mean(claim, known, FEW)}: judge it first, "
        f"losscurv report --claim {shlex.quote(name)}"
    )


def holds(results: Results, claim: str) -> bool:
    """Whether a run has a row or an observation of this id."""
    return any(item.id == claim for item in (*results.rows, *results.observations))


def _listed(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)
