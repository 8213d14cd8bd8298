"""A plan as JSON, and as one page with a picture; its words are those of `words`."""

from __future__ import annotations

import json
from pathlib import Path

from verify.escapes import escaped
from verify.files import replace_files
from verify.page import plots
from verify.page.markup import template
from verify.practice.page_plots import plots_html
from verify.practice.plan import words
from verify.practice.plan.picture import plan_figure, plan_plots
from verify.practice.plan.planned import Plan

VERSION = 3
"""Of the JSON."""


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
    """All numbers of the plan as JSON text; what is infinite is null."""
    found = {"version": VERSION, "uncertainty": list(words.uncertain(made)), **made.to_dict()}
    return json.dumps(found, indent=1, allow_nan=False) + "\n"


def plan_page(made: Plan) -> str:
    """One HTML page that needs nothing else."""
    drawn = plan_plots(made)
    level, *state = words.state_lines(made.state)
    return template("plan.html.j2").render(
        name=escaped(made.name),
        facts=[next(words.header_lines(made)), level],
        state=state,
        doubts=made.state.doubts,
        headline=words.headline(made),
        trials=words.trial_table(made) if made.trials else [],
        trial_notes=list(words.trial_notes(made)) if made.trials else [],
        title=words.section_title(made),
        curvature=words.batch_table(made),
        notes=list(words.curvature_notes(made)) if words.section_title(made) else [],
        pictures=plots_html(drawn),
        alone=len(drawn) == 1,
    )
