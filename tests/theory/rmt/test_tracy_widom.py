"""The Tracy-Widom laws against Painleve II in 60 digits, Fredholm determinants in doubles, and published moments."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from benchmarks import tracy_widom_coefficients as generator
from theory.rmt import TracyWidom
from theory.rmt._tracy_widom_tables import FAR_LEFT, FAR_RIGHT, SPLIT

LAWS = [TracyWidom(beta=1), TracyWidom(beta=2)]
STEP = mp.mpf(1) / 4
START, END = 20, -15


def painleve() -> dict[float, tuple[mp.mpf, ...]]:
    """The Hastings-McLeod solution q, and int q, int q^2, int (x - s) q^2 from s on, by Taylor steps.

    Errors grow by exp(0.94 |s|^1.5) on the left: 24 of the 50 digits that the start at s = 20 has.
    """
    s, found = mp.mpf(START), {}
    a, d = mp.airyai(s), mp.airyai(s, derivative=1)
    value, slope = a, d
    line = mp.mpf(1) / 3 - mp.airyai(s, derivative=-1)
    square, double = d * d - s * a * a, (2 * s * s * a * a - 2 * s * d * d - a * d) / 3
    while s > END:
        found[float(s)] = value, line, square, double
        q = taylor(s, value, slope, 55)
        squares = [mp.fdot(q[: k + 1], q[k::-1]) for k in range(54)]
        lines = [line, *(-q[k] / (k + 1) for k in range(54))]
        moments = [square, *(-squares[k] / (k + 1) for k in range(54))]
        doubles = [double, *(-moments[k] / (k + 1) for k in range(54))]
        slope = mp.polyval([k * q[k] for k in range(55)][:0:-1], -STEP)
        value, line, square, double = (mp.polyval(c[::-1], -STEP) for c in (q, lines, moments, doubles))
        s -= STEP
    return found


def taylor(s: mp.mpf, value: mp.mpf, slope: mp.mpf, terms: int) -> list[mp.mpf]:
    """Taylor coefficients at s of the solution of q'' = s q + 2 q^3."""
    q, squares = [value, slope], []
    for k in range(terms - 2):
        squares.append(mp.fdot(q[: k + 1], q[k::-1]))
        cube = mp.fdot(squares, q[k::-1])
        q.append((s * q[k] + (q[k - 1] if k else 0) + 2 * cube) / ((k + 1) * (k + 2)))
    return q


@pytest.fixture(scope="module")
def solution() -> dict[float, tuple[mp.mpf, ...]]:
    with mp.workdps(70):
        return painleve()


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_the_law_is_that_of_painleve(law: TracyWidom, solution: dict[float, tuple[mp.mpf, ...]]) -> None:
    """F_2 = exp(-int (x - s) q^2), F_1 = sqrt(F_2) exp(-int q / 2), both tails to 12 digits of their size."""
    points = np.array(list(solution))
    expected = []
    with mp.workdps(70):
        for q, line, square, double in solution.values():
            log, slope = (-double, square) if law.beta == 2 else (-(double + line) / 2, (square + q) / 2)
            expected.append([float(v) for v in (mp.exp(log), -mp.expm1(log), mp.exp(log) * slope)])
    cdf, sf, pdf = np.transpose(expected)

    assert_allclose(law.cdf(points), cdf, rtol=1e-12, atol=0)
    assert_allclose(law.sf(points), sf, rtol=1e-12, atol=0)
    assert_allclose(law.pdf(points), pdf, rtol=1e-12, atol=0)
    assert np.max(np.abs(law.cdf(points) - cdf)) < 1e-15
    assert_allclose(np.exp(law.logpdf(points)), pdf, rtol=1e-12)


@pytest.mark.slow
def test_the_generator_returns_what_is_stored() -> None:
    """A determinant of each kernel, a trace, and the series on the far left."""
    with mp.workdps(15):
        assert_allclose(float(generator.determinant(1, mp.mpf(1.7))), LAWS[0].cdf(1.7), rtol=1e-14)
    with mp.workdps(30):
        assert_allclose(float(generator.log_cdf(2, mp.mpf(-2.3))), np.log(LAWS[1].cdf(-2.3)), rtol=1e-14)
        assert_allclose(float(generator.log_sf(2, mp.mpf(30))), np.log(LAWS[1].sf(30.0)), rtol=1e-14)
        for law in LAWS:
            x = mp.mpf(16)
            growing = law.beta * (x**3 / 24 + mp.log(x) / 16) + (2 - law.beta) * x**1.5 / (3 * mp.sqrt(2))
            found = generator.series_left(law.beta, x) - growing
            assert_allclose(float(found), np.log(law.cdf(-16.0)), rtol=1e-14)


@pytest.mark.parametrize("s", [21.0, 40.0, 62.0, 80.0])
def test_the_right_tail_is_the_trace_of_its_kernel(s: float) -> None:
    """1 - F_1 = int Ai / 2 and 1 - F_2 = (2 s^2 Ai^2 - 2 s Ai'^2 - Ai Ai')/3, but for the square of itself."""
    with mp.workdps(40 + int(s**1.5 / 3)):
        a, d = mp.airyai(s), mp.airyai(s, derivative=1)
        double = (2 * s * s * a * a - 2 * s * d * d - a * d) / 3
        line = (mp.mpf(1) / 3 - mp.airyai(s, derivative=-1)) / 2
    assert_allclose(LAWS[0].sf(s), float(line), rtol=1e-12)
    if s < 65:
        assert_allclose(LAWS[1].sf(s), float(double), rtol=1e-12)


@pytest.mark.parametrize(
    ("law", "mean", "variance", "skewness", "kurtosis"),
    [
        (LAWS[0], -1.2065335745820, 1.607781034581, 0.29346452408, 0.1652429384),
        (LAWS[1], -1.771086807411, 0.8131947928329, 0.224084203610, 0.0934480876),
    ],
    ids=repr,
)
def test_moments_are_the_published_ones(
    law: TracyWidom, mean: float, variance: float, skewness: float, kurtosis: float
) -> None:
    """Bornemann (2010), On the numerical evaluation of distributions in random matrix theory; digits cut."""
    m = law.mean()
    third, fourth = (
        sum(math.comb(k, j) * law.moment(j) * (-m) ** (k - j) for j in range(k + 1)) for k in (3, 4)
    )

    assert_allclose([m, law.var()], [mean, variance], rtol=0, atol=1e-12)
    assert_allclose(third / law.var() ** 1.5, skewness, atol=1e-11)
    assert_allclose(fourth / law.var() ** 2 - 3, kurtosis, atol=1e-10)
    assert law.mean() == law.moment(1) and law.moment(0) == 1.0
    assert_allclose(law.var(), law.moment(2) - m * m, rtol=1e-14)


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_high_moments_come_from_the_right_tail(law: TracyWidom) -> None:
    x = np.linspace(0, 65, 20001)
    body = np.exp(150 * np.log(np.maximum(x, 1e-300)) + law.logpdf(x)).sum() * (x[1] - x[0])
    assert_allclose(law.moment(150), body, rtol=1e-9)
    assert math.copysign(1, law.moment(151)) == 1 and law.moment(3) < 0
    with pytest.raises(
        ValueError, match=r"k, beta must be such that the result does not overflow, got \(1000,"
    ):
        law.moment(1000)


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_pieces_meet(law: TracyWidom) -> None:
    for s in [FAR_LEFT, SPLIT, FAR_RIGHT]:
        around = np.nextafter(s, [-np.inf, s, np.inf])
        for method in (law.cdf, law.sf, law.pdf, law.logpdf):
            assert_allclose(method(around), method(s), rtol=1e-14)  # of exp(-11), rounded
        assert np.all(np.diff(law.ppf(law.cdf(s) + np.arange(-3, 4) * 1e-12)) > 0)


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_quantiles_invert_the_distribution_in_both_tails(law: TracyWidom) -> None:
    tails = 10.0 ** -np.linspace(0.01, 307, 400)
    u = np.linspace(1e-3, 1 - 1e-3, 1999)

    assert_allclose(law.cdf(law.ppf(u)), u, rtol=1e-14)
    assert_allclose(law.sf(law.isf(u)), u, rtol=1e-14)
    assert_allclose(law.ppf(1 - u), law.isf(u), rtol=1e-12, atol=1e-13)
    assert_allclose(law.cdf(law.ppf(tails)), tails, rtol=1e-12)
    assert_allclose(law.sf(law.isf(tails)), tails, rtol=1e-12)
    for x in (law.ppf(u), law.isf(tails), -law.ppf(tails), law.ppf(0.3 + 1e-13 * np.arange(2000))):
        assert np.all(np.diff(x) > 0)
    assert np.isfinite([law.ppf(5e-324), law.isf(5e-324)]).all()
    assert_array_equal(law.ppf([0.0, 1.0]), law.support())
    assert_array_equal(law.isf([1.0, 0.0]), law.support())


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_the_line_has_no_end(law: TracyWidom) -> None:
    far = np.array([-np.inf, -1e300, -1e3, 1e3, 1e300, np.inf])

    assert_array_equal(law.cdf(far), [0, 0, 0, 1, 1, 1])
    assert_array_equal(law.sf(far), [1, 1, 1, 0, 0, 0])
    assert_array_equal(law.pdf(far), 0)
    assert_array_equal(law.logpdf(far[[0, 1, 4, 5]]), -np.inf)
    b = law.beta
    left = -b * 1e9 / 24 - (2 - b) * 1e3**1.5 / math.sqrt(18) - b * math.log(1e3) / 16 + math.log(b * 1e6 / 8)
    right = -2 * b * 1e3**1.5 / 3 - 0.75 * b * math.log(1e3) + math.log(b * math.sqrt(1e3))
    assert_allclose(law.logpdf([-1e3, 1e3]), [left, right], rtol=3e-4)
    assert law.edges == law.support() == (-math.inf, math.inf) and law.atom == 0.0


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_density_is_the_slope_of_the_distribution(law: TracyWidom) -> None:
    x = np.linspace(-9, 8, 69)
    slope = (law.cdf(x + 1e-4) - law.cdf(x - 1e-4)) / 2e-4
    assert_allclose(law.pdf(x), slope, rtol=1e-6, atol=1e-11)
