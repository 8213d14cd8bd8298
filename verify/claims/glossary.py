"""What a card says of a claim beside its numbers: the letters of its statement, and where its scores are made."""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from verify.model import AnyClaim, Claim, ExactProperty, Identity

__all__ = ["code_of", "in_statement"]

WORDS = re.compile(r"\\(text|mathrm|operatorname|mathbb|mathcal)\s*(\{[^{}]*\}|\w)")
"""Pieces of a formula whose letters are no symbols."""

SIZES = re.compile(r"\\[bB]igg?[lrm]?(?![A-Za-z])")
"""Of brackets: what stands before one is a function."""

DERIVATIVE = re.compile(r"\\frac\{d(?=[ }\\])(.*?)\}\{d(?=[ \\])")
"""A derivative, whose d is none of the letters."""


def in_statement(latex: str, listed: Mapping[str, str]) -> dict[str, str]:
    r"""The letters of a statement that are listed, in the order in which it has them, the longest first read.

    Letters in words, in indices and before a bracket, where they stand for something else, are left out.

    >>> in_statement(r"\sigma_e^2 + \sigma + P(x)", {r"\sigma": "a deviation", r"\sigma_e": "that of e", "P": "a size"})
    {'\\sigma_e': 'that of e', '\\sigma': 'a deviation'}
    >>> in_statement(r"\frac{d \log P}{d \log N} + P\big(x\big)", {"d": "a number", "N": "another", "P": "a third"})
    {'P': 'a third', 'N': 'another'}
    """
    left, found = WORDS.sub(lambda match: " " * len(match.group()), SIZES.sub("", latex)), dict[str, int]()
    left = DERIVATIVE.sub(r"\\frac{ \1}{ ", left)
    for name in sorted(listed, key=len, reverse=True):
        before = r"(?<!_)" if name.startswith("\\") else r"(?<![A-Za-z\\_])"
        pattern = before + re.escape(name) + r"(?![A-Za-z0-9_(])" * name[-1].isalnum()
        if match := re.search(pattern, left):
            found[name] = match.start()
            left = re.sub(pattern, lambda m: " " * len(m.group()), left)
    return {name: listed[name] for name in sorted(found, key=found.__getitem__)}


def code_of(claim: AnyClaim) -> str:
    """File and line of the function that draws or computes what is judged; empty where it has no source."""
    if isinstance(claim, Claim):
        return _line(claim.experiment.simulate)
    if isinstance(claim, Identity):
        return _line(claim.routes)
    return _line(claim.violation if isinstance(claim, ExactProperty) else claim.simulate)


def _line(function: Callable[..., Any]) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None)
    home = getattr(sys.modules.get(getattr(function, "__module__", "")), "__file__", None)
    if code is None or home is None:
        return ""
    parts = str(function.__module__).split(".")
    name = "/".join(parts) + ("/__init__.py" if Path(home).name == "__init__.py" else ".py")
    return f"{name}:{code.co_firstlineno}"
