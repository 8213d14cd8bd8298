"""Computes the tables behind `theory.rmt.TracyWidom`: Fredholm determinants in many digits, as Chebyshev series.

    python -m benchmarks.tracy_widom_coefficients > tables.py

prints the source of `theory.rmt._tracy_widom_tables`, on one core in about ten minutes. F_2(s) = det(1 - K) with the
Airy kernel and F_1(s) = det(1 - V) with V(x, y) = Ai((x + y)/2)/2, both on (s, inf), by Gauss-Legendre quadrature
(Bornemann 2010, On the numerical evaluation of Fredholm determinants; Ferrari and Spohn 2005). Far to the left,
where F is a product of very small numbers, the asymptotic series of Painleve II takes over, whose coefficients are
rational; far to the right the determinant is 1 less the trace.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cache

import mpmath as mp

FAR_LEFT, SPLIT, FAR_RIGHT = -5.0, -1.5, 4.0
"""Where one piece ends and the next begins; beyond the outer ones a series in |s|^(-3/2) reaches infinity."""

DEGREE = 48
"""Of the series before they are cut."""

SERIES_FROM = 13
"""Left of minus this the series, cut at its smallest term, is good to 20 digits; so it was found."""

TRACE_FROM = 20
"""Right of this the second term of the determinant is 25 digits below the trace."""

SMALLEST = 1e-18
"""Of a coefficient times the square of its degree, which is what the slope sees of it."""


# ------------------------------------------------------------------------------------------- determinants


def log_cdf(beta: int, s: mp.mpf) -> mp.mpf:
    """Logarithm of F_beta(s), 25 digits."""
    # The determinant of entries of order 1 is that small: as many digits cancel.
    with mp.workdps(35 + _digits_of_left_tail(beta, s)):
        return mp.log(determinant(beta, s))


def log_sf(beta: int, s: mp.mpf) -> mp.mpf:
    """Logarithm of 1 - F_beta(s), 25 digits."""
    # As many digits cancel as the tail has zeros.
    with mp.workdps(35 + _digits_of_right_tail(beta, s)):
        return mp.log(trace(beta, s) if s > TRACE_FROM else 1 - determinant(beta, s))


def determinant(beta: int, s: mp.mpf) -> mp.mpf:
    """det(1 - kernel) on (s, inf), to the working precision."""
    nodes, weights = _half_line(beta, s)
    roots = [mp.sqrt(w) for w in weights]
    matrix = _airy_matrix(nodes) if beta == 2 else _ferrari_spohn_matrix(nodes)
    size = range(len(nodes))
    return mp.det(mp.matrix([[(i == j) - roots[i] * matrix[i][j] * roots[j] for j in size] for i in size]))


def trace(beta: int, s: mp.mpf) -> mp.mpf:
    """Integral of the kernel's diagonal over (s, inf)."""
    nodes, weights = _half_line(beta, s)
    values = [_airy_diagonal(x) if beta == 2 else mp.airyai(x) / 2 for x in nodes]
    return mp.fdot(weights, values)


def _airy_matrix(x: list[mp.mpf]) -> list[list[mp.mpf]]:
    value = [mp.airyai(t) for t in x]
    slope = [mp.airyai(t, derivative=1) for t in x]
    size = range(len(x))
    return [
        [
            _airy_diagonal(x[i]) if i == j else (value[i] * slope[j] - slope[i] * value[j]) / (x[i] - x[j])
            for j in size
        ]
        for i in size
    ]


def _airy_diagonal(x: mp.mpf) -> mp.mpf:
    return mp.airyai(x, derivative=1) ** 2 - x * mp.airyai(x) ** 2


def _ferrari_spohn_matrix(x: list[mp.mpf]) -> list[list[mp.mpf]]:
    entry = cache(lambda total: mp.airyai(total / 2) / 2)
    return [[entry(s + t) for t in x] for s in x]


def _half_line(beta: int, s: mp.mpf) -> tuple[list[mp.mpf], list[mp.mpf]]:
    """Gauss-Legendre nodes and weights on (s, end), where the kernel is below the working precision."""
    end = (mp.mpf(3) / (2 * beta) * (mp.mp.dps + 5) * mp.log(10) + max(s, 0) ** mp.mpf(1.5)) ** (
        mp.mpf(2) / 3
    )
    nodes, weights = _gauss_legendre(20 + int(0.9 * mp.mp.dps), mp.mp.dps)
    half = (end - s) / 2
    return [s + half * (1 + x) for x in nodes], [half * w for w in weights]


@cache
def _gauss_legendre(n: int, dps: int) -> tuple[list[mp.mpf], list[mp.mpf]]:
    """Nodes and weights on [-1, 1], by Newton's method from their asymptotic places."""
    with mp.workdps(dps + 10):
        nodes = [mp.cos(mp.pi * (k + mp.mpf(3) / 4) / (n + mp.mpf(1) / 2)) for k in range(n)]
        # Each step of Newton's method doubles the digits.
        for _ in range(3 + int(math.log2(dps))):
            found = [_legendre(n, x) for x in nodes]
            nodes = [x - p / slope for x, (p, slope) in zip(nodes, found, strict=True)]
        return nodes, [2 / ((1 - x * x) * _legendre(n, x)[1] ** 2) for x in nodes]


def _legendre(n: int, x: mp.mpf) -> tuple[mp.mpf, mp.mpf]:
    """Legendre polynomial and its slope."""
    before, now = mp.mpf(1), x
    for k in range(2, n + 1):
        before, now = now, ((2 * k - 1) * x * now - (k - 1) * before) / k
    return now, n * (x * now - before) / (x * x - 1)


def _digits_of_left_tail(beta: int, s: mp.mpf) -> int:
    return int(beta * max(-s, 0) ** 3 / 24 / mp.log(10)) + (int(-s) if s < 0 else 0)


def _digits_of_right_tail(beta: int, s: mp.mpf) -> int:
    return int(2 * beta / mp.mpf(3) * max(s, 0) ** mp.mpf(1.5) / mp.log(10)) * (s < TRACE_FROM)


# ------------------------------------------------------------------------------------------- the far left


@cache
def hastings_mcleod(terms: int = 60) -> list[list[Fraction]]:
    """Coefficients a_n of q(-x) = sqrt(x/2) sum_n a_n x^(-3n), from q'' = s q + 2 q^3, and those of the sum squared."""
    a, squares = [Fraction(1)], [Fraction(1)]
    for n in range(1, terms):
        power = Fraction(7, 2) - 3 * n
        square = sum(a[i] * a[n - i] for i in range(1, n))
        cube = square + sum(a[i] * squares[n - i] for i in range(1, n))
        a.append((power * (power - 1) * a[n - 1] - cube) / 2)
        squares.append(square + 2 * a[n])
    return [a, squares]


def series_left(beta: int, x: mp.mpf) -> mp.mpf:
    """Remainder of log F_beta(-x) without `tail_left`, by the asymptotic series.

    log F_2 has the second derivative -q^2, and log F_1 = (log F_2 - int q)/2. The constants are those of Deift,
    Its and Krasovsky (2008) and of Baik, Buckingham and DiFranco (2008).
    """
    a, squares = hastings_mcleod()
    airy = _to_smallest(
        -squares[n + 1] / 2 / (3 * n * (3 * n + 1)) * (1 / x ** (3 * n)) for n in range(1, 58)
    )
    airy += mp.log(2) / 24 + mp.zeta(-1, derivative=1)
    if beta == 2:
        return airy
    line = _to_smallest(a[n] / (Fraction(3, 2) - 3 * n) * (1 / x ** (3 * n)) for n in range(1, 58))
    return (airy - mp.log(2) / 2 - line * x ** mp.mpf(1.5) / mp.sqrt(2)) / 2


def _to_smallest(terms: Iterable[mp.mpf]) -> mp.mpf:
    """Sum of a divergent series up to its smallest term."""
    total, last = mp.mpf(0), mp.inf
    for term in terms:
        if abs(term) > last:
            break
        total, last = total + term, abs(term)
    return total


# ------------------------------------------------------------------------------------------- series


def pieces(beta: int) -> dict[str, list[float]]:
    """Chebyshev coefficients of the four pieces."""
    return {
        "far_left": _chebyshev(lambda u: _rest_left(beta, u), 0.0, (-FAR_LEFT) ** -1.5),
        "left": _chebyshev(lambda s: log_cdf(beta, s), FAR_LEFT, SPLIT),
        "right": _chebyshev(lambda s: log_sf(beta, s), SPLIT, FAR_RIGHT),
        "far_right": _chebyshev(lambda u: _rest_right(beta, u), 0.0, FAR_RIGHT**-1.5),
    }


def _rest_left(beta: int, u: mp.mpf) -> mp.mpf:
    """Logarithm of F_beta(-x) less its growing terms, in u = x^(-3/2)."""
    x = u ** (-mp.mpf(2) / 3)
    if x > SERIES_FROM:
        return series_left(beta, x)
    return log_cdf(beta, -x) + beta * (x**3 / 24 + mp.log(x) / 16) + (2 - beta) / u / (3 * mp.sqrt(2))


def _rest_right(beta: int, u: mp.mpf) -> mp.mpf:
    """Logarithm of 1 - F_beta(s) less its growing terms, in u = s^(-3/2)."""
    return log_sf(beta, u ** (-mp.mpf(2) / 3)) + beta * (2 / (3 * u) - mp.log(u) / 2)


def _chebyshev(f: Callable[[mp.mpf], mp.mpf], low: float, high: float) -> list[float]:
    """Coefficients of f on (low, high), cut where neither its values nor its slope see the rest in doubles."""
    low, high = mp.mpf(low), mp.mpf(high)
    angles = [mp.pi * (2 * k + 1) / (2 * DEGREE) for k in range(DEGREE)]
    values = [f((low + high) / 2 + (high - low) / 2 * mp.cos(t)) for t in angles]
    series = [
        2 * mp.fdot(values, [mp.cos(j * t) for t in angles]) / DEGREE / (1 + (j == 0)) for j in range(DEGREE)
    ]
    while abs(series[-1]) * len(series) ** 2 < SMALLEST:
        series.pop()
    return [float(c) for c in series]


def main() -> None:
    """Print the module of tables."""
    mp.mp.dps = 30
    print(
        '"""Chebyshev coefficients of the Tracy-Widom laws, printed by benchmarks/tracy_widom_coefficients.py."""'
    )
    print(f"\nFAR_LEFT, SPLIT, FAR_RIGHT = {FAR_LEFT}, {SPLIT}, {FAR_RIGHT}\n\nTABLES = {{")
    for beta in (1, 2):
        print(f"    {beta}: {{")
        for name, series in pieces(beta).items():
            print(f'        "{name}": (', *(f"            {c!r}," for c in series), "        ),", sep="\n")
        print("    },")
    print("}")


if __name__ == "__main__":
    main()
