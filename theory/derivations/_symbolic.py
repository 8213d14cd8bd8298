"""What symbolic derivations share: their record, sympy on demand, and a check that stops a wrong step."""

# pyright: reportMissingTypeStubs=false
# sympy ships none; only the annotations of `Derivation` name it, the functions see it as Any.

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import sympy

__all__ = ["Derivation", "marchenko_pastur_equation", "require_zero", "sympy_module"]


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
        The result, sp.
    symbols
        Symbols of `expression`, in the order of its arguments.
    steps
        The derivation, LaTeX, one formula or sentence each.
    """

    name: str
    statement: str
    expression: sympy.Expr
    symbols: tuple[sympy.Symbol, ...]
    steps: tuple[str, ...]


def sympy_module() -> Any:
    """The sympy module, untyped: importing it costs more than the rest of this package."""
    return importlib.import_module("sympy")


def require_zero(difference: Any, step: str) -> None:
    """Raise ``ArithmeticError`` unless sympy finds the difference of two sides to vanish."""
    if sympy_module().cancel(difference) != 0:
        raise ArithmeticError(f"derivation fails at {step}: sides differ by {difference}")


def marchenko_pastur_equation(g: Any, z: Any, beta: Any, sigma: Any) -> Any:
    """What vanishes where g is the Stieltjes transform of the Marchenko-Pastur law at z."""
    return beta * sigma**2 * z * g**2 - (z - sigma**2 * (1 - beta)) * g + 1
