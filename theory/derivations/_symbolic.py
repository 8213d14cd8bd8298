"""Shared by symbolic derivations: their record, sympy on demand, and a check that stops a wrong step."""

# pyright: reportMissingTypeStubs=false
# sympy ships none; only the annotations of `Derivation` name it, the functions see it as Any.

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, wraps
from typing import TYPE_CHECKING, Any

from theory._roots import Later

if TYPE_CHECKING:
    import sympy


@dataclass(frozen=True, kw_only=True)
class Derivation:
    """A closed form with the way it was found.

    Attributes
    ----------
    name
        Name of the function that derives it.
    statement
        The result, LaTeX.
    expression
        The result, sympy's.
    symbols
        Symbols of `expression`, in the order of its arguments.
    steps
        The derivation, LaTeX, one formula or sentence each.
    """

    name: str = ""
    statement: str
    expression: sympy.Expr
    symbols: tuple[sympy.Symbol, ...]
    steps: tuple[str, ...]


sp: Any = Later("sympy")  # importing it takes longer than all else here


def derived(derive: Callable[[], Derivation]) -> Callable[[], Derivation]:
    """Decorates a derivation: it runs once, and its result has its name."""
    return cache(wraps(derive)(lambda: replace(derive(), name=derive.__name__)))


def at(found: Derivation, *values: Any) -> Any:
    """The result with the first of its symbols replaced by `values`."""
    return found.expression.subs(dict(zip(found.symbols, values, strict=False)))


def latex(expression: Any) -> str:
    """LaTeX of an expression."""
    return sp.latex(expression)


def equation(left: str, right: Any, symbols: tuple[Any, ...], *steps: str, given: str = "") -> Derivation:
    """Result of the `steps`: `left` equals the expression `right` in its `symbols`; `given` adds conditions."""
    return Derivation(
        statement=f"{left} = {latex(right)}{given}", expression=right, symbols=symbols, steps=steps
    )


def require_zero(difference: Any, step: str) -> None:
    """Raise ``ArithmeticError`` unless sympy finds the difference of two sides to vanish."""
    if sp.cancel(difference) != 0:
        raise ArithmeticError(f"derivation fails at {step}: sides differ by {difference}")


def marchenko_pastur_equation(g: Any, z: Any, beta: Any, sigma: Any) -> Any:
    """Expression that vanishes if g is the Stieltjes transform of the Marchenko-Pastur law at z."""
    return beta * sigma**2 * z * g**2 - (z - sigma**2 * (1 - beta)) * g + 1
