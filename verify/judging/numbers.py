"""Numbers in sentences: plainly, and differences of logarithms as the factors that they stand for."""

from __future__ import annotations

import math

from verify.model import raised

__all__ = ["factor", "number"]


def number(value: float, digits: int = 2) -> str:
    """A number to so many significant digits, large ones without a power of ten.

    >>> number(168.3), number(99.7), number(0.01234), number(9.5e-8), number(618.4, 3), number(2.44e7)
    ('170', '100', '0.012', '9.5e-08', '618', '24000000')
    """
    rounded = float(f"{value:.{digits}g}")
    return f"{rounded:.0f}" if 1e6 <= abs(rounded) < 1e15 else f"{rounded:g}"


def factor(logarithm: str, difference: float) -> str:
    """A difference of logarithms to a base as the factor between the two numbers; one near 1 to more digits.

    >>> factor("10", 0.2), factor("e", 0.0218), factor("2", -1.0)
    ('a factor of 1.6', 'a factor of 1.022', 'a factor of 2')
    """
    by = raised(logarithm, abs(difference))
    beyond = by - 1.0
    digits = 2 if not 0 < beyond < 0.1 else min(2 - math.floor(math.log10(beyond)), 12)
    return f"a factor of {number(by, digits)}"
