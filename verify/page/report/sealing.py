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

    Classes are called by what they say, so that equal styles share one.

    >>> classed('<g><path style="fill: red" d="M0 0"/><text style="fill: red">style="x"</text></g>')
    (Markup('<g><path class="sb6dd" d="M0 0"/><text class="sb6dd">style="x"</text></g>'), '.sb6dd{fill: red}\n')
    """
    known: dict[str, str] = {}

    def named(match: re.Match[str]) -> str:
        opening, said = match.groups()
        if said not in known:
            digest, length = hashlib.sha256(said.encode()).hexdigest(), 4
            while f"s{digest[:length]}" in known.values():
                length += 1
            known[said] = f"s{digest[:length]}"
        return f'{opening} class="{known[said]}"'

    made = _TAG_WITH_STYLE.sub(named, html)
    sheet = "".join(f".{name}{{{said.replace('<', '')}}}\n" for said, name in known.items())
    return Markup(made), sheet  # noqa: S704 - the same elements as before


def _source(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"
