"""The page of one result: picture, table, and a few lines; for results that no command writes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from simulate.results import Result
from verify.files import replace_files, writing
from verify.page.markup import template

_ROWS = 200


def write_result(result: Result, path: Path, pictures: Markup, lines: Sequence[str]) -> None:
    """Write one HTML page that needs no other file.

    Raises
    ------
    ValueError
        If the file cannot be written.
    """
    heads, rows, more = result.shown_rows(_ROWS)
    page = template("result.html.j2").render(
        name=type(result).__name__,
        headline=result.headline,
        pictures=pictures,
        alone=pictures.count("<svg") == 1,
        heads=heads,
        rows=rows,
        lines=[*lines, *([f"{more} more rows: to_frame()"] if more else [])],
    )
    with writing("page", path):
        replace_files({path: page})
