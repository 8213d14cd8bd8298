"""Docstrings of this project, reStructuredText with numpy's sections, as the Markdown that mkdocstrings reads."""

from __future__ import annotations

import re
import textwrap
from typing import Any

import griffe

import losscurv

RULE = re.compile(r"=+(?: +=+)+")


class Markdown(griffe.Extension):
    """Rewrites every docstring before it is parsed."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Those of all objects but the packages at the top."""
        if obj.docstring:
            obj.docstring.value = markdown(obj.docstring.value)

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Those of the packages at the top; a map of topics leads to their pages."""
        if pkg.docstring:
            text = markdown(pkg.docstring.value)
            pkg.docstring.value = re.sub(r"(?<!`)`(\w+)`(?!`)", lambda name: _led(pkg.path, name[1]), text)


def _led(package: str, name: str) -> str:
    """A name on the map of a package as a link to where it is told."""
    if package in ("theory", "simulate"):
        return f"[`{name}`][{package}.{name}]"
    room = losscurv._ROOMS.get(name) if package == "losscurv" else None
    return f"[`{name}`][{room}.{name}]" if room else f"`{name}`"


def markdown(text: str) -> str:
    """Tables, sessions, formulas and what is returned."""
    opening, examples, rest = text.partition("Examples\n--------\n")
    text = _prose_of_returns(_fenced(_tables(opening)) + examples + rest)
    text = re.sub(
        r"^( *)\.\. math::\s*?(?: (.+))?\n((?:\1 +.*\n|\s*\n)*)", _display, text + "\n", flags=re.MULTILINE
    ).rstrip()
    text = re.sub(r":math:`([^`]*)`", lambda found: f"${' '.join(found[1].split())}$", text)
    return re.sub(r":\w+:`~?([^`]*)`", r"`\1`", text)


def _tables(text: str) -> str:
    """Tables between rules of equal signs; a line without a first cell continues the one before."""
    lines, out = text.split("\n"), list[str]()
    while lines:
        line = lines.pop(0)
        if not RULE.fullmatch(line.strip()):
            out.append(line)
            continue
        starts = [found.start() for found in re.finditer("=+", line)]
        ends = [*starts[1:], None]
        rows: list[list[str]] = []
        rules = 1
        while lines and rules < 3:
            line = lines.pop(0)
            if RULE.fullmatch(line.strip()):
                rules += 1
                if rules == 2 and (not lines or not lines[0].strip()):
                    break
                continue
            cells = [line[a:b].strip().replace("|", r"\|") for a, b in zip(starts, ends, strict=True)]
            if cells[0] or not rows:
                rows.append(cells)
            else:
                rows[-1] = [" ".join(filter(None, pair)) for pair in zip(rows[-1], cells, strict=True)]
        head = rows.pop(0) if rules == 3 else [""] * len(starts)
        made = [head, ["---"] * len(starts), *rows]
        out += ["", *("| " + " | ".join(cells) + " |" for cells in made), ""]
    return "\n".join(out)


def _fenced(text: str) -> str:
    """Sessions that stand outside of a section of examples."""
    return re.sub(
        r"^( *)>>> (?:.*\n?)(?:\1.*\S.*\n?)*",
        lambda found: f"{found[1]}```pycon\n{found[0].rstrip()}\n{found[1]}```\n",
        text,
        flags=re.MULTILINE,
    )


def _prose_of_returns(text: str) -> str:
    """What is returned is told in prose here, without a name or a type: it belongs to the annotation."""
    parts = re.split(
        r"^((?:Returns|Yields)\n-+\n)(.*?)(?=^\w[\w ]*\n-+\n|\Z)", text, flags=re.MULTILINE | re.DOTALL
    )
    for place in range(2, len(parts), 3):
        parts[place] = ":\n" + textwrap.indent(textwrap.dedent(parts[place]).strip(), "    ") + "\n\n"
    return "".join(parts)


def _display(found: re.Match[str]) -> str:
    latex = " ".join(((found[2] or "") + " " + found[3]).split())
    return f"{found[1]}$$\n{found[1]}{latex}\n{found[1]}$$\n\n"
