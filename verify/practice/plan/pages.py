"""A plan as JSON, and as one page with a picture; its words are those of `words`."""

from __future__ import annotations

import json
from pathlib import Path

from verify.files import replace_files
from verify.page import plots
from verify.page.markup import template
from verify.practice.page_plots import figure_of, plots_html
from verify.practice.plan import words
from verify.practice.plan.picture import plan_plot
from verify.practice.plan.planned import Plan

VERSION = 4
"""Version of the JSON."""


def write_plan(made: Plan, folder: Path) -> Path:
    """Write ``plan.json``, ``plan.svg``, ``plan.png`` and ``plan.html``; return the path of the page.

    Raises
    ------
    ValueError
        If the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        figure = figure_of(
            [plan_plot(made)], "Learning rate against batch size", f"losscurv · seed {made.seed}"
        )
        plots.save_figure(figure, folder / "plan")
        replace_files({folder / "plan.json": plan_json(made), folder / "plan.html": plan_page(made)})
    except OSError as error:
        raise ValueError(f"plan cannot be written to {folder}: {error.strerror or error}") from None
    return folder / "plan.html"


def plan_json(made: Plan) -> str:
    """Return all numbers of the plan as JSON text; infinite numbers are null."""
    return json.dumps({"version": VERSION, **made.to_dict()}, indent=1, allow_nan=False) + "\n"


def plan_page(made: Plan) -> str:
    """Return one HTML page that needs no other file."""
    name, level, *doubts = words.header_lines(made)
    return template("plan.html.j2").render(
        name=name.partition(":")[0],
        facts=[name, level],
        doubts=doubts,
        headline=words.headline(made),
        trials=words.trial_table(made),
        trial_notes=list(words.trial_notes(made)),
        title=words.CURVATURE,
        curvature=words.curvature_table(made),
        notes=list(words.curvature_notes(made)),
        picture=plots_html([plan_plot(made)]),
    )
