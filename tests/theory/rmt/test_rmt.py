"""Laws of the bulk against quadrature, 40-digit closed forms and each other."""

import math
import pickle
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from theory.rmt import MarchenkoPastur, Semicircle

RATIOS = [1e-12, 1e-6, 9e-5, 1.1e-4, 0.03, 0.25, 0.9, 1 - 1e-8, 1.0, 1 + 1e-12, 1.01, 4.0, 7.3, 30.0, 1e6]
LAWS = [Semicircle(sigma=1.7), Semicircle(variance=0.04)] + [
    MarchenkoPastur(q=q, variance=1.3) for q in RATIOS
]


def inside(law: Any, count: int = 41) -> np.ndarray:
    """Points of the bulk, also very close to its edges."""
    lo, hi = law.edges
    tails = 10.0 ** -np.arange(1, 15)
    shares = np.concatenate([np.linspace(0, 1, count), tails, 1 - tails])
    return lo + (hi - lo) * shares


def semicircle_cdf(sigma: float, x: float) -> mpmath.mpf:
    with mpmath.workdps(40):
        t = min(max(mpmath.mpf(x) / (2 * mpmath.mpf(sigma)), mpmath.mpf(-1)), mpmath.mpf(1))
        return mpmath.mpf(1) / 2 + (t * mpmath.sqrt(1 - t * t) + mpmath.asin(t)) / mpmath.pi


def pastur_cdf(q: float, variance: float, x: float) -> mpmath.mpf:
    """Textbook closed form, whose cancellation 40 digits can afford."""
    with mpmath.workdps(60):
        q, x = mpmath.mpf(q), mpmath.mpf(x) / mpmath.mpf(variance)
        c = mpmath.sqrt(q)
        atom = max(mpmath.mpf(0), 1 - 1 / q)
        if x < 0:
            return mpmath.mpf(0)
        if x <= (1 - c) ** 2:
            return atom
        if x >= (1 + c) ** 2:
            return mpmath.mpf(1)
        phi = mpmath.acos((1 + q - x) / (2 * c))
        last = 0 if q == 1 else 2 * abs(1 - q) * mpmath.atan((1 + c) / abs(1 - c) * mpmath.tan(phi / 2))
        return atom + ((1 + q) * phi + 2 * c * mpmath.sin(phi) - last) / (2 * mpmath.pi * q)


def exact_cdf(law: Any, x: float) -> mpmath.mpf:
    if isinstance(law, Semicircle):
        return semicircle_cdf(law.sigma, x)
    return pastur_cdf(law.q, law.variance, x)


def allowance(law: Any, x: np.ndarray) -> np.ndarray:
    """1e-12, and two units in the last place of x where the bulk is narrower than x can resolve."""
    narrow = isinstance(law, MarchenkoPastur) and law.q < 1e-4
    return 1e-12 + (2 * np.spacing(x) * law.pdf(x) if narrow else 0.0)


each_law = pytest.mark.parametrize("law", LAWS, ids=repr)


@each_law
def test_cdf_agrees_with_forty_digits(law: Any) -> None:
    x = inside(law)
    expected = [exact_cdf(law, v) for v in x]

    assert np.all(np.abs(law.cdf(x) - np.array(expected, dtype=float)) <= allowance(law, x))
    complement = np.array([1 - v for v in expected], dtype=float)
    assert np.all(np.abs(law.sf(x) - complement) <= allowance(law, x))


@each_law
def test_quantile_agrees_with_forty_digits(law: Any) -> None:
    lo, hi = law.edges
    x = law.ppf(u := law.atom + (1 - law.atom) * np.linspace(0.001, 1.0, 201))
    assert np.all(np.diff(x) >= 0)
    assert_allclose(law.isf(1 - u), x, rtol=1e-9, atol=1e-9)
    shares = np.array([1e-15, 1e-7, 0.01, 0.3, 0.5, 0.77, 0.999])
    just_above = law.atom + 3 * np.spacing(law.atom)  # where u - atom has few digits
    for u in [just_above, *(law.atom + shares * (1 - law.atom))]:
        if u <= law.atom or u < 1e-300:
            continue
        found, error = law.ppf(u), 1e-13 * max(1.0, hi)
        with mpmath.workdps(40):  # within the error of where the distribution passes u
            below, above = max(found - error, lo), min(found + error, hi)
            assert lo <= found <= hi and exact_cdf(law, below) <= u <= exact_cdf(law, above), u


@each_law
def test_stieltjes_transform_keeps_its_digits_far_away(law: Any) -> None:
    for z in [1e9, -1e9, 1e150, -1e150, 1e8 + 1e9j, -1e8 - 1e9j]:
        z = z * max(1.0, law.edges[1])
        expected = 1 / z + law.mean() / z / z + law.moment(2) / z / z / z
        assert_allclose(law.stieltjes(z), expected, rtol=1e-14)


@each_law
def test_stieltjes_transform_agrees_with_forty_digits(law: Any) -> None:
    lo, hi = law.edges
    width = hi - lo
    points = [
        hi + width / 8,
        lo - width / 7,
        hi + width / 2 + 1j * width,
        lo - width + 1j * width / 64,
        -hi,
        2 * hi,
    ]
    for z in points:
        with mpmath.workdps(50):
            w = mpmath.mpmathify(z)
            if isinstance(law, Semicircle):
                root = mpmath.sqrt(w - 2 * mpmath.mpf(law.sigma)) * mpmath.sqrt(w + 2 * mpmath.mpf(law.sigma))
                expected = (w - root) / (2 * mpmath.mpf(law.sigma) ** 2)
            else:
                q, s2 = mpmath.mpf(law.q), mpmath.mpf(law.variance)
                lower, upper = s2 * (1 - mpmath.sqrt(q)) ** 2, s2 * (1 + mpmath.sqrt(q)) ** 2
                root = mpmath.sqrt(w - lower) * mpmath.sqrt(w - upper)
                expected = (w - s2 * (1 - q) - root) / (2 * q * s2 * w)
        narrow = isinstance(law, MarchenkoPastur) and law.q < 1e-4
        assert_allclose(law.stieltjes(z), complex(expected), rtol=1e-9 if narrow else 1e-13)


@each_law
def test_stieltjes_transform_does_not_depend_on_the_sign_of_zero(law: Any) -> None:
    lo, hi = law.edges
    for x in [lo - 0.5 * (hi - lo) - 1.0, hi + 0.5 * (hi - lo)]:
        real = law.stieltjes(x)
        assert_allclose(law.stieltjes(complex(x, 0.0)), real, rtol=1e-14)
        assert_allclose(law.stieltjes(complex(x, -0.0)), real, rtol=1e-14)
        assert np.isrealobj(real) and np.iscomplexobj(law.stieltjes(complex(x, 0.0)))


@each_law
def test_r_transform_inverts_the_stieltjes_transform(law: Any) -> None:
    """z = R(G(z)) + 1/G(z)."""
    lo, hi = law.edges
    for z in [hi + 0.2 * (hi - lo), -hi, hi * (0.5 + 1j)]:
        g = law.stieltjes(z)
        assert_allclose(law.r_transform(g) + 1 / g, z, rtol=1e-10)


@each_law
def test_edges_belong_to_the_domain_of_the_stieltjes_transform(law: Any) -> None:
    lo, hi = law.edges
    c = math.sqrt(law.q) if isinstance(law, MarchenkoPastur) else None
    upper = 1 / law.sigma if c is None else 1 / (law.variance * c * (1 + c))
    assert_allclose(law.stieltjes(hi), upper, rtol=1e-9)
    if c is None or c < 0.999:
        lower = -1 / law.sigma if c is None else -1 / (law.variance * c * (1 - c))
        assert_allclose(law.stieltjes(lo), lower, rtol=1e-9)


@each_law
def test_nothing_lies_beyond_the_edges(law: Any) -> None:
    lo, hi = law.edges
    outside = np.array([-np.inf, lo - 1.0, hi + 1.0, np.inf])

    assert_array_equal(law.pdf(outside), 0.0)
    assert_array_equal(law.logpdf(outside), -np.inf)
    assert_array_equal(law.cdf([-np.inf, hi, np.inf]), [0.0, 1.0, 1.0])
    assert_array_equal(law.sf([-np.inf, hi, np.inf]), [1.0, 0.0, 0.0])
    assert law.cdf(lo) == law.atom
    assert_array_equal(law.ppf([0.0, 1.0]), law.support())
    assert_array_equal(law.isf([1.0, 0.0]), law.support())


def test_tails_keep_their_relative_accuracy() -> None:
    for law in [Semicircle(sigma=1.0), MarchenkoPastur(q=0.25, variance=1.0)]:
        hi = law.edges[1]
        x = hi - hi * 2.0 ** -np.arange(8, 36)
        with mpmath.workdps(40):
            expected = [float(1 - exact_cdf(law, v)) for v in x]
        assert_allclose(law.sf(x), expected, rtol=1e-9)
    law = Semicircle(sigma=1.0)
    assert_allclose(law.cdf(law.ppf(1e-12)), 1e-12, rtol=1e-3)  # limited by the rounding of the point itself


def test_atom_at_zero() -> None:
    law = MarchenkoPastur(q=3.0, variance=1.0)

    assert_allclose(law.atom, 2 / 3, rtol=1e-15)
    assert law.support()[0] == 0.0 and law.edges[0] > 0.0
    assert_array_equal(law.cdf([-1e-300, 0.0, law.edges[0]]), [0.0, law.atom, law.atom])
    assert law.pdf(0.0) == 0.0
    assert_array_equal(law.ppf([0.0, 0.1, law.atom]), 0.0)
    assert law.ppf(np.nextafter(law.atom, 1)) >= law.edges[0]
    assert law.isf(law.sf(0.0)) == 0.0
    for q in [0.5, 1.0]:
        assert MarchenkoPastur(q=q, variance=1.0).atom == 0.0


def test_hard_edge_at_ratio_one() -> None:
    law = MarchenkoPastur(q=1.0, sigma=2.0)

    assert law.pdf(0.0) == np.inf and law.logpdf(0.0) == np.inf
    assert law.pdf(-1e-9) == 0.0
    assert law.edges == (0.0, 16.0)
    # cdf -> (2/pi) sqrt(x/variance), far below the resolution of 1 - x
    assert_allclose(law.cdf(4e-20), 2 / math.pi * 1e-10, rtol=1e-9)
    wide = MarchenkoPastur(q=1.0, variance=1e250)
    assert_allclose([wide.pdf(1e-250), wide.logpdf(1e-250)], [1 / np.pi, -np.log(np.pi)], rtol=1e-10)


@each_law
def test_probabilities_at_the_end_of_the_number_range(law: Any) -> None:
    u = np.array([5e-324, 1e-300, 1e-100])
    lo, hi = law.edges

    assert_allclose(law.ppf(u), lo if law.atom == 0 else 0.0, rtol=1e-14, atol=1e-30)
    assert_allclose(law.isf(u), hi, rtol=1e-14)


def test_records_are_frozen_comparable_and_picklable() -> None:
    law = MarchenkoPastur(q=2, sigma=3)

    assert law == MarchenkoPastur(q=2.0, variance=9.0) and law.sigma == 3.0
    assert pickle.loads(pickle.dumps(law)) == law
    assert repr(Semicircle(sigma=2)) == "Semicircle(sigma=2.0)"
    with pytest.raises(AttributeError):
        law.q = 3.0


def test_moments_survive_overflow_of_their_parts() -> None:
    """The Narayana polynomial of order 500 in 2 is larger than any float, its product with 6^-500 is not."""
    exact = (
        1
        / mpmath.mpf(6) ** 500
        * mpmath.fsum(
            mpmath.binomial(500, r) * mpmath.binomial(500, r - 1) / 500 * mpmath.mpf(2) ** (r - 1)
            for r in range(1, 501)
        )
    )
    assert_allclose(MarchenkoPastur(q=2.0, variance=1 / 6).moment(500), float(exact), rtol=1e-9)
    assert MarchenkoPastur(q=2.0, variance=1e-10).moment(500) == 0


def test_a_bulk_narrower_than_the_spacing_of_floats_is_a_step() -> None:
    law = MarchenkoPastur(q=1e-40, variance=1.0)

    assert_array_equal(law.cdf([0.9, 1.0, 1.1, np.inf]), [0, 1, 1, 1])
    assert_array_equal(law.sf([0.9, 1.0, 1.1, np.inf]), [1, 0, 0, 0])


@pytest.mark.parametrize("q", [1e250, 1e-250])
def test_quantiles_of_extreme_ratios_are_in_the_bulk(q: float) -> None:
    law = MarchenkoPastur(q=q, variance=1.0)
    low, high = law.edges

    assert np.all((law.isf([0.0, 1e-260, 1e-300]) >= low) & (law.isf([0.0, 1e-260, 1e-300]) <= high))


def test_transforms_far_from_and_close_to_the_bulk() -> None:
    law = MarchenkoPastur(q=0.5, variance=1e-200)
    assert_allclose(law.stieltjes([1e308, -1e308]), [1e-308, -1e-308], rtol=1e-12)
    assert_allclose(Semicircle(sigma=1.0).stieltjes(1e308 * (1 + 1j)), 0.5e-308 * (1 - 1j), rtol=1e-12)
    assert_allclose(MarchenkoPastur(q=4.0, variance=1e250).stieltjes(1e-200), 0.75e200, rtol=1e-12)
    assert_allclose(MarchenkoPastur(q=1.0, variance=1e250).stieltjes(-1e-200), -1e-25, rtol=1e-12)
    assert_allclose(MarchenkoPastur(q=1.0, variance=1e200).r_transform(1e200), -1e-200, rtol=1e-12)
