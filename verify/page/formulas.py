"""LaTeX as MathML, which every browser draws by itself, and formulas that are typed in sentences."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from functools import lru_cache

from markupsafe import Markup, escape

MATHML = re.compile(r"(?:\{[^}]*\})?(?:math|m[a-z]+|semantics)$")
ACTIVE = re.compile(r"href|src|style|class|id|on.*")
"""Attributes with which a formula could leave its place on the page, or do something there."""

DELIMITERS = {"lvert": "|", "rvert": "|", "vert": "|", "lVert": "‖", "rVert": "‖", "Vert": "‖", "|": "‖"}
DELIMITERS |= {"langle": "⟨", "rangle": "⟩"}
SIZED = re.compile(r"\\([Bb]igg?)[lmr]?\s*\\([lr]?[vV]ert\b|[lr]angle\b|[lr]brace\b|[|{}])")
"""Delimiters of a given size, which the converter knows only as characters."""

_BAR = re.compile('<mo(?: stretchy="false")?>(&#x02016;|&#x0007C;)</mo>')
_SCRIPTED = re.compile(r"(\\[Bb]igg?[r]?\s*\\?[)\]}|‖])(?=[\^_])")
_PRIMED = re.compile(r"(_(?:\{[^{}]*\}|\w))'(?!['^])")

LONGEST_FORMULA = 5000
"""Characters; beyond, the conversion takes seconds."""


@lru_cache(maxsize=4096)  # the readings of a claim share its statement, and pages share their symbols
def formula(latex: str, display: bool = True) -> Markup:
    r"""LaTeX as MathML, in pieces that may break at its ``\quad``; as it stands where it cannot be converted.

    >>> formula(r"\frac{")
    Markup('<code class="latex">\\frac{</code>')
    """
    split = (re.sub(r"^\\q?quad", "", piece) for piece in split_before(r"\\q?quad\b", latex))
    pieces = [_mathml(piece, display) for piece in split if piece.strip()]
    if any(piece is None for piece in pieces):
        return Markup('<code class="latex">{}</code>').format(latex)
    return Markup(" ").join(piece for piece in pieces if piece is not None)


def in_cell(latex: str) -> Markup:
    r"""LaTeX in a table: words wrap as words do, and a formula may break at its commas and, if long, at relations.

    >>> in_cell(r"\text{the bound holds at every size},\ <x").partition("<")[0]
    Markup('the bound holds at every size, ')
    """
    parts: list[Markup] = []
    for piece in split_before(_WORDS, latex):
        words = re.match(_WORDS, piece)
        parts += [Markup("{}").format(words[1])] if words else []
        for part in split_before(r",(?:\\[ ,]|\s)|\\q?quad", piece[words.end() :] if words else piece):
            if part.startswith(",") and parts:
                parts[-1] += ","
            part = re.sub(r"^(?:,(?:\\[ ,]|\s)|\\q?quad)|(?:\\ |\\,|\s)+$", "", part)
            shown = re.sub(r"\\[a-zA-Z]+|[{}_^ ]", "", part)
            pieces = split_before("=", part) if len(shown) > _LONG else [part]
            parts += [formula(text, False) for text in pieces if text.strip()]
    return Markup(" ").join(parts)


_WORDS = r"(?<![_^])\\text\{([^{}$\\]{14,})\}"
_LONG = 50
"""Signs of a formula that may break at its relations."""


def split_before(pattern: str, latex: str) -> list[str]:
    """Split before the matches that stand outside of all brackets."""
    pieces, depth, start = [], 0, 0
    for match in re.finditer(rf"{pattern}|\\begin\b|\\end\b|\\left\b|\\right\b|\\.|[{{}}()\[\]]", latex):
        token = match.group()
        if token in ("{", "(", "[", "\\left", "\\begin"):
            depth += 1
        elif token in ("}", ")", "]", "\\right", "\\end"):
            depth -= 1
        elif depth == 0 and re.fullmatch(pattern, token):
            pieces.append(latex[start : match.start()])
            start = match.start()
    return [*pieces, latex[start:]]


def _mathml(latex: str, display: bool) -> Markup | None:
    from latex2mathml.converter import convert

    if len(latex) > LONGEST_FORMULA:
        return None
    try:
        # the converter sets a prime behind an index, and bars with room around them and as tall as their indices
        # browsers do not enlarge a bracket that has an index or a power
        latex = _SCRIPTED.sub(r"\1{}", _PRIMED.sub(r"\1^{\\prime}", SIZED.sub(_sized, latex.strip())))
        text = convert(latex, display="block" if display else "inline")
        text = _BAR.sub(r'<mo stretchy="false" lspace="0" rspace="0">\1</mo>', text)
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


# --- in sentences

_WRITTEN = (
    "alpha beta gamma delta epsilon eps zeta eta theta kappa lambda mu nu xi pi rho sigma tau phi chi psi omega "
    "Gamma Delta Lambda Sigma Phi Psi Omega"
)
GREEK: dict[str, str] = dict(zip(_WRITTEN.split(" "), "αβγδεεζηθκλμνξπρστφχψωΓΔΛΣΦΨΩ", strict=True))
_NAMED = "|".join(sorted(GREEK, key=len, reverse=True))
_LETTER = re.compile(rf"(?<![A-Za-z])({_NAMED})(?![A-Za-z]|-[a-z])")
_HATTED = re.compile(rf"(?<![A-Za-z])(?!That|What)(?:({_NAMED})-tilde|([A-Z])hat|(H)t)(?![A-Za-z])")
_INDEX = re.compile(
    "(?<![A-Za-z0-9_])((?:d(?=[A-Z]))?[A-Za-z\u0370-\u03ff][\u0302\u0303]?)(?:_{?([A-Za-z0-9]+)}?|(?<=[ηκ])([0-9]))(?![A-Za-z0-9_])"
)
_POWER = re.compile(r"(?<=[\w)|\]\u0300-\u036f\ue001])\^(\([^()]*\)|[-\u2212]?\d+(?:/\d+)?|-?\w+)")
_MINUS = re.compile(r"(?<= )-(?= )|(?<![\w)-])-(?=[\d.(\u0370-\u03ff])|(?<=\()-(?=\w)")
_SIGNS = {"sqrt(": "√(", "sqrt ": "√", "<=": "≤", ">=": "≥", "!=": "≠", "->": "→", "||": "‖", "sum_": "Σ_"}
_TAGS = {"\ue000": "<sub>", "\ue001": "</sub>", "\ue002": "<sup>", "\ue003": "</sup>"}
"""Characters of no script, which stand for tags while the text is not escaped."""

_LOW = re.compile("(?:(?<=[A-Za-z\u0370-\u03ff])_|(?<=[ηκ]))([0-9]+)(?![A-Za-z0-9_])")
_LOWERED = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
RAISED = str.maketrans("-−0123456789", "⁻⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def lettered(text: object) -> Markup:
    """A sentence with its formulas as a page shows them; everything else in it is text.

    >>> lettered("it is sigma_c^4 < 1, from eta_0 alpha^(2-L) - 1")
    Markup('it is σ<sub>c</sub><sup>4</sup> &lt; 1, from η<sub>0</sub> α<sup>2−L</sup> − 1')
    """
    if isinstance(text, Markup):
        return text
    found = _spelled(re.sub("[\ue000-\ue003]", "", str(text)))
    found = _INDEX.sub(lambda index: f"{index[1]}\ue000{index[2] or index[3]}\ue001", found)
    found = re.sub(r"(?<=\d) %", "\u00a0%", found)
    found = str(escape(_POWER.sub(lambda power: f"\ue002{_inner(power[1])}\ue003", found)))
    for mark, tag in _TAGS.items():
        found = found.replace(mark, tag)
    return Markup(found)  # noqa: S704 - escaped above


def typeset(text: str) -> str:
    """Return the formula in plain characters for figures: digits are raised and lowered, letters keep their mark.

    >>> typeset("sigma_c^2 sqrt(P) lambda_1 of kappa2 alpha^(2-L)")
    'σ_c² √(P) λ₁ of κ₂ α^(2-L)'
    """
    lowered = _LOW.sub(lambda found: found[1].translate(_LOWERED), _spelled(text))
    return re.sub(r"(?<=[\w)|])\^(-?\d+)(?![\w/])", lambda power: power[1].translate(RAISED), lowered)


def _spelled(text: str) -> str:
    """Letters by their own sign, and the signs between them."""
    text = _HATTED.sub(_accented, text)
    text = _LETTER.sub(lambda found: GREEK[found[1]], text)
    for written, sign in _SIGNS.items():
        text = text.replace(written, sign)
    return _MINUS.sub("−", text)


def _accented(found: re.Match[str]) -> str:
    """A letter with a tilde or a hat on it."""
    greek, hatted, other = found.groups()
    return f"{hatted}\u0302" if hatted else f"{GREEK.get(greek, other)}\u0303"


def _inner(power: str) -> str:
    """Return an exponent without the brackets that only typed text needs."""
    bare = power[1:-1] if power.startswith("(") else power
    return bare.replace("-", "−")
