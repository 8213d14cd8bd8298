"""Templates that escape their values, and figures in the colours of the page, for all pages."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup
from matplotlib.figure import Figure

from verify.page import wording
from verify.page.plots import to_svg
from verify.page.theme import DARK, PAGE, PAGE_DARK, PALETTE


@cache  # compiling one takes longer than to fill in many a page
def template(name: str, **filters: Callable[..., Any]) -> Template:
    """One of the templates of `verify.page`, with the colours of the page, numbers as text and filters of its own."""
    environment = Environment(
        loader=PackageLoader("verify.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(light=PAGE | PALETTE, dark=PAGE_DARK | DARK)
    environment.filters.update(number=wording.numeral, **filters)
    return environment.get_template(name)


def themed(figure: Figure) -> Markup:
    """The figure in the colours of the page, light or dark."""
    svg = to_svg(figure)
    for name, colour in PALETTE.items():
        svg = svg.replace(colour, f"var(--{name})")
    return Markup(svg)  # noqa: S704 - drawn by matplotlib, which escapes its texts
