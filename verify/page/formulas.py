"""LaTeX as MathML, which every browser draws by itself."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

from markupsafe import Markup

__all__ = ["formula"]

MATHML = re.compile(r"(?:\{[^}]*\})?(?:math|m[a-z]+|semantics)$")
ACTIVE = re.compile(r"href|src|style|class|id|on.*")
"""Attributes with which a formula could leave its place on the page, or do something there."""

DELIMITERS = {"lvert": "|", "rvert": "|", "vert": "|", "lVert": "‖", "rVert": "‖", "Vert": "‖", "|": "‖"}
DELIMITERS |= {"langle": "⟨", "rangle": "⟩"}
SIZED = re.compile(r"\\([Bb]igg?)[lmr]?\s*\\([lr]?[vV]ert\b|[lr]angle\b|[lr]brace\b|[|{}])")
"""Delimiters of a given size, which the converter knows only as characters."""

LONGEST_FORMULA = 5000
"""Characters; beyond, the conversion takes seconds."""


def formula(latex: str, display: bool = True) -> Markup:
    r"""LaTeX as MathML, in pieces that may break at its ``\quad``; as it stands where it cannot be converted.

    >>> formula(r"\frac{")
    Markup('<code class="latex">\\frac{</code>')
    """
    pieces = [_mathml(piece, display) for piece in _pieces(latex)]
    if any(piece is None for piece in pieces):
        return Markup('<code class="latex">{}</code>').format(latex)
    return Markup(" ").join(piece for piece in pieces if piece is not None)


def _pieces(latex: str) -> list[str]:
    """Split at spaces of a quad or more that stand outside of all braces and environments."""
    pieces, depth, start = [], 0, 0
    for match in re.finditer(r"\\begin\b|\\end\b|\\left\b|\\right\b|\\q?quad\b|\\.|[{}]", latex):
        token = match.group()
        depth += (token in ("{", "\\begin", "\\left")) - (token in ("}", "\\end", "\\right"))
        if token in ("\\quad", "\\qquad") and depth == 0:
            pieces.append(latex[start : match.start()])
            start = match.end()
    return [piece for piece in (*pieces, latex[start:]) if piece.strip()]


def _mathml(latex: str, display: bool) -> Markup | None:
    from latex2mathml.converter import convert

    if len(latex) > LONGEST_FORMULA:
        return None
    try:
        text = convert(SIZED.sub(_sized, latex.strip()), display="block" if display else "inline")
        root = ElementTree.fromstring(text)  # noqa: S314 - made by the converter just now, not fetched
    except Exception:
        return None
    strange = any(
        not MATHML.match(node.tag) or any(map(ACTIVE.fullmatch, node.attrib)) for node in root.iter()
    )
    if strange or any("\\" in (node.text or "") for node in root.iter()):
        return None
    return Markup(text.replace("&#x0007E;", "&#x0223C;"))  # noqa: S704 - parsed and checked above


def _sized(match: re.Match[str]) -> str:
    size, name = match.groups()
    if name in DELIMITERS:
        return f"\\{size}{DELIMITERS[name]}"
    return "\\{" if name in ("{", "lbrace") else "\\}"  # a brace by itself has no size there
