"""A page that runs one script and one style sheet, its own, and fetches nothing: its content security policy."""

from __future__ import annotations

import base64
import hashlib
import re

from markupsafe import Markup

_TAG_WITH_STYLE = re.compile(r'(<\w[^<>]*?) style="([^"]*)"')


def policy(style: str, script: str = "") -> str:
    """Return the content security policy of a page: this style sheet, this script and embedded images only.

    >>> policy("a{}").partition("; img-src")[0]
    "default-src 'none'; style-src 'sha256-X1RutGBrXCt9KkSaXMK7tHftWiRscFHOhxsS8tv8hBk='"
    """
    scripts = f"script-src {_source(script)}; " if script else ""
    return f"default-src 'none'; style-src {_source(style)}; {scripts}img-src data:; base-uri 'none'"


def classed(html: str) -> tuple[Markup, str]:
    r"""Figures with classes in place of styles of single elements, which no policy could name, and their style sheet.

    Equal styles share a class.

    >>> classed('<g><path style="fill: red" d="M0 0"/><text style="fill: red">style="x"</text></g>')
    (Markup('<g><path class="s0" d="M0 0"/><text class="s0">style="x"</text></g>'), '.s0{fill: red}\n')
    """
    known: dict[str, str] = {}

    def named(match: re.Match[str]) -> str:
        opening, said = match.groups()
        name = known.setdefault(said, f"s{len(known)}")
        return f'{opening} class="{name}"'

    made = _TAG_WITH_STYLE.sub(named, html)
    sheet = "".join(f".{name}{{{said.replace('<', '')}}}\n" for said, name in known.items())
    return Markup(made), sheet  # noqa: S704 - the same elements as before


def _source(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"
