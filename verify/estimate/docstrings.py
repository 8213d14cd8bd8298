"""Numpy docstrings as plain text and as data: what ``losscurv estimate`` shows of a theory function."""

from __future__ import annotations

import inspect
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_SIGNS = {
    r"\^?\\top\b": "ᵀ",
    r"\\pm\b": "±",
    r"\\le\b": "≤",
    r"\\ge\b": "≥",
    r"\\ne\b": "≠",
    r"\\to\b": "→",
    r"\\sum": "Σ",
    r"\\sqrt\s*": "√",
    r"\\cdot\b": "·",
    r"\\infty\b": "∞",
    r"\\sim\b": "~",
    r"\\cap\b": "∩",
    r"\\[cl]?dots\b": "…",
    r"\\times\b": "×",
    r"\\approx\b": "≈",
    r"\\propto\b": "∝",
    r"\\in\b": "∈",
    r"\\ll\b": "≪",
    r"\\gg\b": "≫",
    r"\\int\b": "∫",
    r"\\partial\b": "∂",
    r"\\oplus\b": "⊕",
    r"\\ell\b": "ℓ",
    r"\\varepsilon\b": "ε",
    r"\\[lr]Vert\b\s*": "‖",
    r"\\rm\b\s*": "",
    r"\\[td]frac": r"\\frac",
    r"\\nabla\s*": "∇",
    r"\\succeq\b": "⪰",
    r"\\langle\s*": "⟨",
    r"\s*\\rangle": "⟩",
    r"\\\|": "‖",
    r"\\q?quad\b": " ",
    r"\\[,;]": " ",
    r"\\[Bb]ig": "",
}
_ACCENTS = {
    "hat": "\N{COMBINING CIRCUMFLEX ACCENT}",
    "tilde": "\N{COMBINING TILDE}",
    "bar": "\N{COMBINING MACRON}",
}
_FORMULA = re.compile(r":math:`([^`]*)`|\.\. math::\s*((?:.+\n?)+)")
_GROUP = r"\{([^{}]*)\}"


def summary(function: Callable[..., Any]) -> str:
    """Return the first line of a docstring as plain text.

    >>> from theory.outliers import spiked_covariance
    >>> summary(spiked_covariance)
    'Top eigenvalue of the covariance of n samples from N(0, σ^2 I + θ u uᵀ).'
    """
    return without_markup(_doc(function).partition("\n")[0])


def description(function: Callable[..., Any]) -> str:
    """Return a docstring as plain text, without the sections Raises and Examples."""
    text = re.sub(
        r"^(Raises|Examples)\n-+\n.*?(?=^\w+\n-+$|\Z)", "", _doc(function), flags=re.MULTILINE | re.DOTALL
    )
    return without_markup(text)


@dataclass(frozen=True, kw_only=True)
class FunctionRecord:
    """Theory function as its docstring describes it, for other programs.

    Attributes
    ----------
    summary
        First line as plain text.
    formula
        Formulas of the docstring above its parameters, in LaTeX; empty where it has only words.
    domain
        Meaning and domain of each argument, as the docstring has them.
    conditions
        What the formula assumes, and for which arguments there is no value.
    source
        Paper and place; empty where the docstring names none.
    code
        module:function.
    claims
        Claims of ``losscurv claims --json`` that read the function, with the verdict registered for each.
    """

    summary: str
    formula: list[str]
    domain: str
    conditions: str
    source: str
    code: str
    claims: dict[str, str]


def function_record(function: Callable[..., Any], readers: Mapping[str, dict[str, str]]) -> FunctionRecord:
    r"""Return a function as a record; `readers` are the claims that read each function, by its code.

    >>> from theory.learning_rates import stability_limit
    >>> record = function_record(stability_limit, {})
    >>> record.formula, record.source
    (['2/\\lambda_{max}'], 'Granziol, Zohren and Roberts (2022), eq. (22).')
    """
    head, *parts = re.split(r"^(\w+)\n-+\n", _doc(function), flags=re.MULTILINE)
    sections = defaultdict(str, zip(parts[::2], map(str.strip, parts[1::2]), strict=True))
    code = f"{function.__module__}:{function.__qualname__}"
    return FunctionRecord(
        summary=summary(function),
        formula=[" ".join((found[1] or found[2]).split()) for found in _FORMULA.finditer(head)],
        domain=sections["Parameters"],
        conditions=f"{sections['Notes']}\n{sections['Raises']}".strip(),
        source=sections["References"],
        code=code,
        claims=readers.get(code, {}),
    )


def without_markup(text: str) -> str:
    r"""Return text without roles, backticks and TeX.

    >>> without_markup(r"Edge :math:`\pm 2\sigma\sqrt{P/b}` of `noise`, at least :math:`\frac{T-1}{T} \hat q_{st}`.")
    'Edge ± 2σ√(P/b) of noise, at least (T-1)/T q̂_st.'
    """
    text = re.sub(r"\.\. math::\s*((?:.+\n?)+)", lambda found: _tex(found[1]) + "\n", text)
    text = re.sub(r":math:`([^`]*)`", lambda found: _tex(found[1]), text)
    text = re.sub(r"(?::\w+:)?`+~?([^`]*)`+", lambda found: found[1].rpartition("theory.")[2], text)
    return text.strip()


def _tex(text: str) -> str:
    """Return TeX as a reader would type it; unknown commands keep their names."""
    text = re.sub(r"\\(?:mathrm|mathbb|text|operatorname)\s*" + _GROUP, r"\1", text)
    text = re.sub(r"\\(hat|tilde|bar)\s*\\?([A-Za-z]+)", _accented, text)
    for pattern, sign in _SIGNS.items():
        text = re.sub(pattern, sign, text)
    before = ""
    while text != before:  # from the innermost braces outwards
        before = text
        text = re.sub(r"([_^√])" + _GROUP, lambda found: found[1] + _bracketed(found[2]), text)
        text = re.sub(rf"\\frac\s*(?:{_GROUP}|(\w))\s*(?:{_GROUP}|(\w))", _fraction, text)
    text = re.sub(_GROUP, r"\1", re.sub(r"\\([A-Za-z]+)", lambda found: _greek(found[1]), text))
    return "\n".join(re.sub(r"(?<=\S)  +", " ", line).strip() for line in text.splitlines())


def _accented(found: re.Match[str]) -> str:
    name = _greek(found[2])
    return name[0] + _ACCENTS[found[1]] + name[1:]


def _fraction(found: re.Match[str]) -> str:
    return f"{_bracketed(found[1] or found[2])}/{_bracketed(found[3] or found[4])}"


def _bracketed(text: str) -> str:
    """Put a text in brackets, unless it is one word or has them already."""
    return text if re.fullmatch(r"\\?\w*|\([^()]*\)", text) else f"({text})"


def _greek(name: str) -> str:
    kind = "CAPITAL" if name[0].isupper() else "SMALL"
    # Unicode spells it "lamda".
    letter = {"lambda": "lamda"}.get(name.lower(), name).upper()
    try:
        return unicodedata.lookup(f"GREEK {kind} LETTER {letter}")
    except KeyError:
        return name


def _doc(function: Callable[..., Any]) -> str:
    return inspect.getdoc(function) or ""
