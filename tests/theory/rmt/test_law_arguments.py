"""Arguments of the laws of the bulk: shapes, what is out of the domain, and the ends of the number range."""

from __future__ import annotations

import pickle

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from theory.rmt import MarchenkoPastur, Semicircle


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
