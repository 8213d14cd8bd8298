"""A plan as text, as JSON, as a picture and as one page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter

from simulate.spectra import Estimate
from verify.escapes import escaped
from verify.files import replace_files
from verify.gallery.parts import MEASURED, batch_axis, curve
from verify.page import plots
from verify.page.drawing import Floats, Panel, stack
from verify.page.markup import template, themed
from verify.page.theme import PALETTE, STYLE
from verify.page.wording import numeral
from verify.practice.plan.planned import Plan
from verify.practice.plan.rules import BatchRates
from verify.practice.plan.trial_runs import GROWTH, Trial

__all__ = ["plan_figure", "plan_json", "plan_page", "plan_text", "write_plan"]

BIASES = {
    "2/E λ₁(B)": "not the limit: on real networks 1.4 to 43 times too high at B = 1, up to 27 % low at B = 16 to 64,"
    " right from about 1000 on",
    "Theorem 4": "too high on every real network measured: its eigenvalue is 2 to 13 times low at small B,"
    " within 10 % from B = 256 (at initialisation) or 1024 (later) on",
    "Adam": "a rule from the rate that you gave, not a measurement; its size hangs on that rate alone",
}
"""What the rules beside the bracket were found to be off by on real networks: claims D2, B19 and B45."""

VERSION = 1
"""Of the JSON."""

_SHARPER = 1.1
"""Ratio of the largest eigenvalues of Hessian and Gauss-Newton matrix from which on it is said."""

_GRID = 200
_TICKS = 12
_WIDTH = 6.2


def write_plan(made: Plan, folder: Path) -> Path:
    """Write ``plan.json``, ``plan.svg``, ``plan.png`` and ``plan.html``; returns the page.

    Raises
    ------
    ValueError
        If the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        plots.save_figure(plan_figure(made), folder / "plan")
        replace_files({folder / "plan.json": plan_json(made), folder / "plan.html": plan_page(made)})
    except OSError as error:
        raise ValueError(f"plan cannot be written to {folder}: {error.strerror or error}") from None
    return folder / "plan.html"


def plan_json(made: Plan) -> str:
    """All numbers of the plan as JSON text."""
    return json.dumps({"version": VERSION, **_plain(asdict(made))}, indent=1, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, Estimate):
        return value._asdict()
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value


# --- text ------------------------------------------------------------------------------------------------------


def plan_text(made: Plan) -> str:
    """What the command prints."""
    lines = [*_facts(made), "", *_columns(made), "", *_notes(made)]
    if made.checks:
        lines += ["", *_checks(made)]
    return "\n".join([*lines, ""])


def _facts(made: Plan) -> Iterator[str]:
    yield f"{escaped(made.name)}: N = {made.samples}, P = {made.parameters}, loss {numeral(made.loss)}"
    first = _bounded(made.bracket.largest, made.bracket.bound)
    yield f"λ₁ of the Gauss-Newton matrix {first}, of the Hessian {_bounded(made.hessian, made.hessian_bound)}"
    yield f"heaviest single sample {numeral(made.bracket.heaviest)}, noise |G_i − G|² {_measured(made.variance)}"


def _columns(made: Plan) -> Iterator[str]:
    head, *rows = _table(made)
    cells = [head, *rows]
    widths = [max(len(row[k]) for row in cells) for k in range(len(head))]
    for row in cells:
        yield "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _table(made: Plan) -> list[list[str]]:
    """A heading and a row for each batch size."""
    adam = ["Adam √B"] * (made.anchor is not None)
    head = ["B", "stable below", "unstable above", "decided by", "2/E λ₁(B)", "Theorem 4", *adam]
    return [head, *(_row(at) for at in made.rates)]


def _row(at: BatchRates) -> list[str]:
    rules = [_measured(at.sharpness), _measured(at.theorem_4)]
    own = [] if at.adam is None else [numeral(at.adam, 3)]
    return [str(at.batch_size), numeral(at.lower, 3), numeral(at.upper, 3), at.deciding, *rules, *own]


def _notes(made: Plan) -> Iterator[str]:
    yield _growth(made)
    if made.hessian > _SHARPER * made.bracket.largest:
        yield (
            f"the Hessian is sharper than its Gauss-Newton part: full gradients are stable below 2/λ₁(H) ="
            f" {numeral(2 / made.hessian, 3)} only, until training has shrunk the other part"
        )
    yield "± is one standard error. Beside the bracket, for comparison:"
    for rule, bias in BIASES.items():
        if rule != "Adam" or made.anchor is not None:
            yield f"  {rule}: {bias}"
    yield (
        f"{numeral(made.products, 3)} products with all samples in {made.seconds:.1f} s, seed {made.seed};"
        " the rates belong to the parameters as they are now"
    )


def _growth(made: Plan) -> str:
    first, last = (numeral(size, 3) for size in made.crossover)
    flat = numeral(2 / made.bracket.largest, 3)
    if made.crossover[1] <= 1:
        return f"the stable rate of SGD is 2/λ₁ = {flat} at every batch size, but for a factor below 2"
    size = f"{first} to {last}" if made.crossover[0] > 1 else f"{last} at most"
    return f"the stable rate of SGD grows with B up to about {size} and levels off at 2/λ₁ = {flat}"


def _checks(made: Plan) -> Iterator[str]:
    first = made.checks[0]
    yield (
        f"short runs, {first.runs} of {first.steps} steps at each rate: one holds if the mean loss after them is at"
        f" most {GROWTH:g} times the {numeral(first.start, 3)} at the start"
    )
    for seen in made.checks:
        lower, upper = (float(rate) for rate in made.bracket.rates(seen.batch_size))
        yield f"  B = {seen.batch_size}: {_outcome(seen)} (bracket {numeral(lower, 3)} to {numeral(upper, 3)})"


def _outcome(seen: Trial) -> str:
    parts = [
        _ended("held", seen.held, seen.held_loss),
        _ended("did not", seen.failed, seen.failed_loss),
        _ended("was best", seen.best, seen.best_loss),
    ]
    return "; ".join(part for part in parts if part)


def _ended(how: str, rate: float | None, loss: Estimate | None) -> str:
    if rate is None:
        return ""
    return f"{numeral(rate, 3)} {how}, {'lost' if loss is None else 'loss ' + _measured(loss)}"


def _measured(value: Estimate) -> str:
    return numeral(value.value, 3) + (
        f" ± {numeral(value.standard_error, 1)}" if value.standard_error else ""
    )


def _bounded(value: float, bound: float) -> str:
    return f"{numeral(value)} (error below {numeral(bound, 1)})"


# --- picture ---------------------------------------------------------------------------------------------------


def plan_figure(made: Plan) -> Figure:
    """Rate against batch size, both logarithmic: the bracket as a band, the rules as lines, the checks as marks."""
    panels = [Panel(3.2, lambda axes: _draw(axes, made), bottom=1.0)]
    if made.anchor is not None:
        panels.append(Panel(1.0, lambda axes: _draw_adam(axes, made)))
    with mpl.rc_context(STYLE):
        label = "Largest stable learning rate against batch size"
        return stack(panels, label, f"losscurv · seed {made.seed}", _WIDTH)


def _draw(axes: Axes, made: Plan) -> None:
    sizes = _sizes(made)
    grid = np.clip(np.geomspace(sizes[0], sizes[-1], _GRID), sizes[0], sizes[-1])
    lower, upper = made.bracket.rates(grid)
    name = "SGD stable below, unstable above"
    axes.fill_between(grid, lower, upper, color=PALETTE["band"], lw=0, zorder=2, label=name)
    curve(axes, grid, upper, "")
    curve(axes, grid, lower, "")
    curve(axes, sizes, [at.theorem_4.value for at in made.rates], "2 / Theorem 4", role="rival", dash=0)
    if made.hessian > _SHARPER * made.bracket.largest:
        curve(
            axes, sizes, np.full(len(sizes), 2 / made.hessian), "2 / λ₁ of the Hessian", role="rival", dash=1
        )
    _batches(axes, made)
    _trials(axes, made)
    _axes(axes, made)
    _crossover(axes, made)
    axes.set_title("Largest stable learning rate of SGD")
    axes.legend(
        loc="upper left", bbox_to_anchor=(-0.02, -0.14), ncols=3, frameon=False, fontsize=7.5,
        labelcolor=PALETTE["muted"], handlelength=2.2, columnspacing=1.4,
    )  # fmt: skip


def _draw_adam(axes: Axes, made: Plan) -> None:
    curve(axes, _sizes(made), [at.adam for at in made.rates], "", role="rival", dash=1)
    _axes(axes, made)
    axes.set_title("Adam, in proportion to √B")


def _axes(axes: Axes, made: Plan) -> None:
    """Batch sizes as they were asked for, as far as there is room."""
    sizes = _sizes(made)
    batch_axis(axes, sizes, label="learning rate")
    shown = sizes[:: -(-len(sizes) // _TICKS)]
    axes.xaxis.set_major_locator(FixedLocator(shown.tolist()))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: f"{size:.0f}"))


def _sizes(made: Plan) -> Floats:
    return np.array([at.batch_size for at in made.rates], dtype=float)


def _batches(axes: Axes, made: Plan) -> None:
    axes.errorbar(
        _sizes(made),
        [at.sharpness.value for at in made.rates],
        yerr=[2 * at.sharpness.standard_error for at in made.rates],
        ls="", marker="s", ms=3.5, mew=0, elinewidth=1.2, color=PALETTE["rival"], label="2 / E λ₁(B)", zorder=4,
    )  # fmt: skip


def _crossover(axes: Axes, made: Plan) -> None:
    low, high = axes.get_xlim()
    first, last = (min(max(size, low), high) for size in made.crossover)
    if first < last:
        axes.axvspan(first, last, color=PALETTE["rule"], lw=0, alpha=0.6, zorder=0, label="crossover within")


def _trials(axes: Axes, made: Plan) -> None:
    style: Any = {"ls": "", "ms": 5, "color": MEASURED, "zorder": 5}
    held = [(seen.batch_size, seen.held) for seen in made.checks if seen.held]
    failed = [(seen.batch_size, seen.failed) for seen in made.checks if seen.failed]
    if held:
        axes.plot(*zip(*held, strict=True), marker="o", label="short runs: held", **style)
    if failed:
        axes.plot(*zip(*failed, strict=True), marker="x", label="short runs: did not", **style)


# --- page ------------------------------------------------------------------------------------------------------


def plan_page(made: Plan) -> str:
    """One HTML page that needs nothing else."""
    head, *rows = _table(made)
    return template("plan.html.j2").render(
        name=escaped(made.name),
        facts=list(_facts(made)),
        head=head,
        rows=rows,
        notes=list(_notes(made)),
        checks=list(_checks(made)) if made.checks else [],
        picture=themed(plan_figure(made)),
    )
