"""The report from Python: claims judged anew, and the figure of any of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from verify.claims import registry
from verify.model import Tier
from verify.page import plots
from verify.page.report import write
from verify.results import Results, load
from verify.running import suite
from verify.running.engine import Session
from verify.running.options import plan
from verify.running.workers import open_workers, shared

__all__ = ["plot", "report"]


def report(
    *,
    claim: Sequence[str] = (),
    paper: Sequence[str] = (),
    tier: str = "default",
    seed: int | None = None,
    replicates: int | None = None,
    data: str | None = None,
    device: str = "cpu",
    workers: int = 1,
    folder: str | Path | None = None,
) -> Results:
    """Judge claims and make observations, as ``losscurv report`` does.

    Parameters
    ----------
    claim, paper
        Ids of claims or observations, and papers; all if empty.
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
        Where report.html and results.json go, and replicates for a rerun; nothing is written if None.

    Returns
    -------
    The results: `rows` with a verdict each, `observations`, and all that the page is drawn from.

    Raises
    ------
    ValueError
        If an argument cannot be used, or the folder cannot be written.

    Examples
    --------
    >>> found = report(claim=["vysogorets2024/softmax-rank"])
    >>> [(row.id, row.verdict) for row in found.rows]
    [('vysogorets2024/softmax-rank', 'agrees'), ('vysogorets2024/softmax-rank [as our copy reads]', 'disagrees')]
    """
    given = {
        "claim": _listed("claim", claim),
        "paper": _listed("paper", paper),
        "tier": tier,
        "seed": seed,
        "replicates": replicates,
        "data": data,
        "device": device,
        "workers": workers,
        "report_dir": None if folder is None else str(folder),
    }
    values = {name: value for name, value in given.items() if value not in (None, [])}
    chosen = plan(values, tier=Tier.DEFAULT, report_dir=None)
    with (
        suite.open_store(chosen, lambda _: None) as store,
        open_workers(chosen.settings.workers) as executor,
    ):
        session = Session(
            chosen.claims,
            chosen.settings,
            executor,
            alpha=registry.alpha,
            store=store,
            observations=chosen.observations,
        )
        for item in chosen.claims:
            session.rows(item)
        for observation in chosen.observations:
            session.observed(observation)
    results = suite.collect(session, chosen)
    if chosen.report_dir is not None:
        with shared(len(results.rows), chosen.settings.workers) as each:
            write(results, chosen.report_dir, each)
    return results


def plot(results: Results | str | Path, claim: str) -> Figure:
    """The figure of one row or observation: prediction, rivals and measured points.

    Parameters
    ----------
    results
        What `report` returned, or a results file, or its folder.
    claim
        Id of a claim or an observation; ``"<id> [as our copy reads]"`` for the form as our copy of the paper reads.

    Raises
    ------
    ValueError
        If the file cannot be read, nothing in it has this id, or there is nothing to draw of it.

    Examples
    --------
    >>> plot(report(claim=["vysogorets2024/softmax-rank"]), "vysogorets2024/softmax-rank").get_label()
    'vysogorets2024/softmax-rank: agrees'
    """
    if not isinstance(results, Results):
        file = Path(results)
        results = load(file / "results.json" if file.is_dir() else file)
    mark = plots.stamp(results)
    for row in results.rows:
        if row.id == claim:
            return plots.agreement(row, mark)
    for made in results.observations:
        if made.id == claim and (figure := plots.observation(made, mark)) is not None:
            return figure
    known = [item.id for item in (*results.rows, *results.observations)]
    raise ValueError(f"claim must be one of {', '.join(known)}, with something to draw, got {claim!r}")


def _listed(name: str, words: Sequence[str]) -> list[str]:
    if isinstance(words, str):
        raise ValueError(f"{name} must be a sequence of names, got the string {words!r}")
    return list(words)
