"""The Tracy-Widom laws against Fredholm determinants, traces of their kernels, and published moments."""

import math

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from benchmarks import tracy_widom_coefficients as generator
from theory.rmt import TracyWidom
from theory.rmt._tracy_widom_tables import FAR_LEFT, FAR_RIGHT, SPLIT

LAWS = [TracyWidom(beta=1), TracyWidom(beta=2)]


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


@pytest.mark.parametrize("s", [21.0, 62.0, 80.0])
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


each_law = pytest.mark.parametrize("law", LAWS, ids=repr)


@each_law
def test_high_moments_come_from_the_right_tail(law: TracyWidom) -> None:
    x = np.linspace(0, 65, 20001)
    body = np.exp(150 * np.log(np.maximum(x, 1e-300)) + law.logpdf(x)).sum() * (x[1] - x[0])
    assert_allclose(law.moment(150), body, rtol=1e-9)
    assert math.copysign(1, law.moment(151)) == 1 and law.moment(3) < 0
    with pytest.raises(ValueError, match=r"k must be such that the result does not overflow, got 1000"):
        law.moment(1000)


@each_law
def test_pieces_meet(law: TracyWidom) -> None:
    for s in [FAR_LEFT, SPLIT, FAR_RIGHT]:
        around = np.nextafter(s, [-np.inf, s, np.inf])
        for method in (law.cdf, law.sf, law.pdf, law.logpdf):
            assert_allclose(method(around), method(s), rtol=1e-14)  # of exp(-11), rounded
        assert np.all(np.diff(law.ppf(law.cdf(s) + np.arange(-3, 4) * 1e-12)) > 0)


@each_law
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


@each_law
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


@each_law
def test_density_is_the_slope_of_the_distribution(law: TracyWidom) -> None:
    x = np.linspace(-9, 8, 69)
    slope = (law.cdf(x + 1e-4) - law.cdf(x - 1e-4)) / 2e-4
    assert_allclose(law.pdf(x), slope, rtol=1e-6, atol=1e-11)
    assert_allclose(np.exp(law.logpdf(x)), law.pdf(x), rtol=1e-12)
