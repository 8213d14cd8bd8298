"""Arguments of the laws of the bulk: shapes, what is out of the domain, and the ends of the number range."""

from __future__ import annotations

import math
import pickle
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from theory.rmt import MarchenkoPastur, Semicircle


def test_shapes_and_kinds_of_argument() -> None:
    for law in [Semicircle(sigma=1.0), MarchenkoPastur(q=2.0, variance=1.0)]:
        for method in (law.pdf, law.logpdf, law.cdf, law.sf):
            assert method([]).shape == (0,)
            assert method(1).shape == () and method(1).dtype == np.float64
            assert method(np.zeros((2, 3), dtype=np.float32)).shape == (2, 3)
            assert_array_equal(method([0, 1]), method(np.array([0.0, 1.0])))
        for method in (law.ppf, law.isf):
            assert method([]).shape == (0,) and method(0.5).shape == ()
        assert law.stieltjes([]).shape == (0,) and law.r_transform([0.1, 0.2j]).shape == (2,)


def test_records_are_frozen_comparable_and_picklable() -> None:
    law = MarchenkoPastur(q=2, sigma=3)

    assert law == MarchenkoPastur(q=2.0, variance=9.0) and law.sigma == 3.0
    assert pickle.loads(pickle.dumps(law)) == law
    assert repr(Semicircle(sigma=2)) == "Semicircle(sigma=2.0)"
    with pytest.raises(AttributeError):
        law.q = 3.0


@pytest.mark.parametrize("build", [Semicircle, lambda **k: MarchenkoPastur(q=0.5, **k)])
def test_scale_is_given_exactly_once(build: Any) -> None:
    with pytest.raises(ValueError, match="sigma or variance must be given, exactly one"):
        build()
    with pytest.raises(ValueError, match="sigma or variance must be given, exactly one"):
        build(sigma=1.0, variance=1.0)
    for bad in [0.0, -1.0, math.nan, math.inf]:
        with pytest.raises(ValueError, match="sigma must be positive and finite"):
            build(sigma=bad)
        with pytest.raises(ValueError, match="variance must be positive and finite"):
            build(variance=bad)
    with pytest.raises(ValueError, match="sigma must be a scalar"):
        build(sigma=[1.0, 2.0])
    with pytest.raises(ValueError, match="sigma squared must be positive and finite"):
        build(sigma=1e-200)


@pytest.mark.parametrize("q", [0.0, -1.0, math.nan, math.inf])
def test_ratio_is_positive(q: float) -> None:
    with pytest.raises(ValueError, match="q must be positive and finite"):
        MarchenkoPastur(q=q, variance=1.0)


@pytest.mark.parametrize("law", [Semicircle(sigma=1.0), MarchenkoPastur(q=0.25, variance=1.0)], ids=repr)
def test_arguments_out_of_their_domain_are_refused(law: Any) -> None:
    for method in (law.pdf, law.logpdf, law.cdf, law.sf):
        with pytest.raises(ValueError, match="x must be in"):
            method([0.0, math.nan])
        with pytest.raises(ValueError, match="x must be real numbers"):
            method(1j)
    for method in (law.ppf, law.isf):
        for bad in [-1e-9, 1.0001, math.nan]:
            with pytest.raises(ValueError, match="u must be in"):
                method(bad)
    for bad in [1.0, [5.0, 1.0], 1 + 0j]:
        with pytest.raises(ValueError, match="z must be off the cut"):
            law.stieltjes(bad)
    for bad in [math.nan, math.inf, complex(1, math.nan)]:
        with pytest.raises(ValueError, match="z must be finite"):
            law.stieltjes(bad)
        with pytest.raises(ValueError, match="w must be finite"):
            law.r_transform(bad)
    with pytest.raises(ValueError, match="z must be real or complex numbers"):
        law.stieltjes("1")
    for k in [-1, 1.5]:
        with pytest.raises(ValueError, match="k must be an integer >= 0"):
            law.moment(k)


def test_poles_are_refused() -> None:
    for q in [1.0, 2.0]:
        for z in [0.0, 0j]:
            with pytest.raises(ValueError, match="z must be non-zero for q >= 1"):
                MarchenkoPastur(q=q, variance=1.0).stieltjes(z)
    assert_allclose(MarchenkoPastur(q=0.5, variance=1.0).stieltjes(0.0), -2.0, rtol=1e-14)
    with pytest.raises(ValueError, match="w must be different from 1 / \\(q variance\\)"):
        MarchenkoPastur(q=0.5, variance=1.0).r_transform(2.0)


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
    with pytest.raises(ValueError, match="k, q, variance must be such that the result does not overflow"):
        MarchenkoPastur(q=2.0, variance=1.0).moment(500)
    with pytest.raises(ValueError, match="k, sigma must be such that the result does not overflow"):
        Semicircle(sigma=2.0).moment(2000)


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


def test_density_at_the_hard_edge_is_infinite_at_zero_only() -> None:
    law = MarchenkoPastur(q=1.0, variance=1e250)

    assert law.pdf(0.0) == np.inf
    assert_allclose(law.pdf(1e-250), 1 / np.pi, rtol=1e-12)
    assert_allclose(law.logpdf(1e-250), -np.log(np.pi), rtol=1e-10)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: MarchenkoPastur(q=1e200, variance=1e200), r"q times variance must be at most 1e\+270"),
        (lambda: MarchenkoPastur(q=1.0, variance=1e-300), r"variance must be between 1e-270 and 1e\+270"),
        (lambda: Semicircle(sigma=1e-160), r"sigma squared must be between 1e-270"),
        (lambda: Semicircle(sigma=[1.0]), r"sigma must be a scalar"),
        (
            lambda: MarchenkoPastur(q=1.0, variance=1e200).var(),
            r"variance must be such that the result does not",
        ),
        (
            lambda: Semicircle(sigma=1e100).r_transform(1e200),
            r"w must be such that the result does not overflow",
        ),
        (
            lambda: MarchenkoPastur(q=2.0, variance=1.0).stieltjes(1e-320),
            r"z must be such that the result does",
        ),
        (lambda: Semicircle(sigma=1.0).stieltjes([[3.0], [3.0, 4.0]]), r"z must be real or complex numbers"),
        (lambda: Semicircle(sigma=1.0, variance=10**5000), r"exactly one, got a number too long to print"),
    ],
)
def test_what_is_out_of_range_is_refused(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
