"""A plan as JSON, and as one page with a picture; its words are those of `words`."""

from __future__ import annotations

import json
from pathlib import Path

from verify.files import replace_files, writing
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
    with writing("plan", folder):
        folder.mkdir(parents=True, exist_ok=True)
        figure = figure_of(
            [plan_plot(made)], "Learning rate against batch size", f"losscurv · seed {made.seed}"
        )
        plots.save_figure(figure, folder / "plan")
        replace_files({folder / "plan.json": plan_json(made), folder / "plan.html": plan_page(made)})
    return folder / "plan.html"


def plan_json(made: Plan) -> str:
    """Return all numbers of the plan as JSON text; infinite numbers are null."""
    return json.dumps({"version": VERSION, **made.to_dict()}, indent=1, allow_nan=False) + "\n"


def plan_page(made: Plan) -> str:
    """Return one HTML page that needs no other file."""
    name, level, *doubts = words.header_lines(made)
    return template("plan.html.j2").render(
        words=words,
        made=made,
        name=name.partition(":")[0],
        facts=[name, level],
        doubts=doubts,
        picture=plots_html([plan_plot(made)]),
    )
