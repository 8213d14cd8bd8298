"""Convert docstrings (reStructuredText with the sections of numpydoc) to the Markdown that mkdocstrings reads."""

from __future__ import annotations

import re
import textwrap
from typing import Any

import griffe

import losscurv

RULE = re.compile(r"=+(?: +=+)+")


class Markdown(griffe.Extension):
    """Extension of griffe that converts every docstring before it is parsed."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Convert the docstring of an object."""
        if obj.docstring:
            obj.docstring.value = markdown(obj.docstring.value)

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Convert the docstring of a package, and link the topics that it lists to their pages."""
        if pkg.docstring:
            text = markdown(pkg.docstring.value)
            pkg.docstring.value = re.sub(r"(?<!`)`(\w+)`(?!`)", lambda name: _led(pkg.path, name[1]), text)


def _led(package: str, name: str) -> str:
    """Return a name as a link to its page, or as code if it has none."""
    if package in ("theory", "simulate"):
        return f"[`{name}`][{package}.{name}]"
    room = losscurv._ROOMS.get(name) if package == "losscurv" else None
    return f"[`{name}`][{room}.{name}]" if room else f"`{name}`"


def markdown(text: str) -> str:
    """Convert tables, interactive sessions, formulas and the section *Returns* of a docstring."""
    opening, examples, rest = text.partition("Examples\n--------\n")
    text = _prose_of_returns(_fenced(_tables(opening)) + examples + rest)
    text = re.sub(
        r"^( *)\.\. math::\s*?(?: (.+))?\n((?:\1 +.*\n|\s*\n)*)", _display, text + "\n", flags=re.MULTILINE
    ).rstrip()
    text = re.sub(r":math:`([^`]*)`", lambda found: f"${' '.join(found[1].split())}$", text)
    return re.sub(r":\w+:`~?([^`]*)`", r"`\1`", text)


def _tables(text: str) -> str:
    """Convert simple tables (between rules of equal signs); a line without a first cell continues the line before."""
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
                # a table without a header has two rules, one with a header three
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
    """Fence interactive sessions outside of *Examples*, which mkdocstrings fences itself."""
    return re.sub(
        r"^( *)>>> (?:.*\n?)(?:\1.*\S.*\n?)*",
        lambda found: f"{found[1]}```pycon\n{found[0].rstrip()}\n{found[1]}```\n",
        text,
        flags=re.MULTILINE,
    )


def _prose_of_returns(text: str) -> str:
    """Indent *Returns* and *Yields*: they are prose here, where mkdocstrings expects a name or a type."""
    parts = re.split(
        r"^((?:Returns|Yields)\n-+\n)(.*?)(?=^\w[\w ]*\n-+\n|\Z)", text, flags=re.MULTILINE | re.DOTALL
    )
    for place in range(2, len(parts), 3):
        parts[place] = ":\n" + textwrap.indent(textwrap.dedent(parts[place]).strip(), "    ") + "\n\n"
    return "".join(parts)


def _display(found: re.Match[str]) -> str:
    latex = " ".join(((found[2] or "") + " " + found[3]).split())
    return f"{found[1]}$$\n{found[1]}{latex}\n{found[1]}$$\n\n"
