"""The compound free Poisson law against its limits, its own equation, quadrature and noncrossing partitions."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from theory.batch_hessian import low_rank_noise
from theory.rmt import MarchenkoPastur, Semicircle
from theory.rmt.free_poisson import CompoundFreePoisson

SETTINGS = settings(deadline=None, max_examples=40, derandomize=True)

GENERIC = CompoundFreePoisson(rate=0.7, jumps=[1.3, -0.8, 0.25], weights=[0.2, 0.5, 0.3])
WHOLE = CompoundFreePoisson(rate=6.3, jumps=[1.3, -0.4])
SPLIT = CompoundFreePoisson(rate=0.1, jumps=[1.0, -1.0])
POSITIVE = CompoundFreePoisson(rate=1.7, jumps=[0.3, 5.0], weights=[0.9, 0.1])
TIGHT = CompoundFreePoisson(rate=0.03, jumps=[-2.0, -2.1, 0.001, 7.0])
PLAIN = [Semicircle(sigma=1.7), Semicircle(variance=0.04)] + [
    MarchenkoPastur(q=q, variance=1.3) for q in (0.03, 0.25, 0.9, 1.0, 4.0, 30.0)
]
LAWS = [GENERIC, WHOLE, SPLIT, POSITIVE, TIGHT]
IDS = ["generic", "whole", "split", "positive", "tight"]

signs = st.sampled_from([-1.0, 1.0])
laws = st.builds(
    lambda rate, sizes, unit: CompoundFreePoisson(rate=rate, jumps=unit * np.array(sizes)),
    st.floats(-2, 2).map(lambda x: 10**x),
    st.lists(st.builds(lambda s, x: s * 10**x, signs, st.floats(-1, 1)), min_size=1, max_size=4),
    st.sampled_from([1.0, 1e-60, 3e50]),
)


def angles(law: Any, n: int = 400) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Points and weights on each bulk, in the angle that makes the ends smooth: the midpoint rule is exact."""
    t = (np.arange(n) + 0.5) * math.pi / n
    for low, high in getattr(law, "bulks", [law.edges]):
        yield (low + high) / 2 - (high - low) / 2 * np.cos(t), (high - low) / 2 * np.sin(t) * math.pi / n


@pytest.mark.parametrize("q", [0.1, 0.5, 1.0, 4.0, 100.0])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_one_jump_is_marchenko_pastur(q: float, sign: float) -> None:
    """Noise X X^T / n of ratio q: 1/q directions for a dimension, each of size q times the variance."""
    plain, law = MarchenkoPastur(q=q, variance=1.7), CompoundFreePoisson(rate=1 / q, jumps=sign * 1.7 * q)
    low, high = plain.edges
    x = np.concatenate([low + (high - low) * np.linspace(1e-6, 1 - 1e-6, 201), [high + 1, -1.0]])
    off = np.array([-3.0, -1e-9, high * (1 + 1e-7), 2 * high, 1e9, 1e300])
    plane = np.linspace(low - 1, high + 1, 9) + 1j * np.array([[1e-6], [-0.3], [40.0]])

    assert_allclose(sorted(sign * e for e in law.edges), plain.edges, rtol=1e-14, atol=1e-30)
    assert_allclose(law.pdf(sign * x), plain.pdf(x), rtol=1e-9)
    tail = law.cdf(sign * x) if sign > 0 else law.sf(sign * x) + np.where(x == 0, law.atom, 0)
    assert_allclose(tail, plain.cdf(x), rtol=0, atol=1e-14)
    assert_allclose(sign * law.stieltjes(sign * off), plain.stieltjes(off), rtol=1e-8)
    assert_allclose(sign * law.stieltjes(sign * plane), plain.stieltjes(plane), rtol=1e-13)
    assert_allclose(
        [law.moment(k) * sign**k for k in range(9)], [plain.moment(k) for k in range(9)], rtol=1e-13
    )
    assert_allclose(law.atom, plain.atom, rtol=1e-15)
    assert_allclose([sign * law.mean(), law.var()], [plain.mean(), plain.var()], rtol=1e-15)


@pytest.mark.parametrize("law", [*LAWS, *PLAIN], ids=repr)
def test_density_integrates_to_mass_moments_and_distribution(law: Any) -> None:
    nodes = list(angles(law))
    masses = [float(np.sum(law.pdf(x) * w)) for x, w in nodes]
    assert_allclose(law.atom + sum(masses), 1.0, rtol=1e-12)
    for k in range(1, 7):
        found = sum(float(np.sum(x**k * law.pdf(x) * w)) for x, w in nodes)
        scale = max(1, *map(abs, law.edges)) ** k if law in PLAIN else 1.0
        assert_allclose(found, law.moment(k), rtol=1e-11, atol=1e-13 * scale)
    for (low, high), mass in zip(getattr(law, "bulks", [law.edges]), masses, strict=True):
        assert_allclose(law.cdf(high) - law.cdf(low), mass, rtol=0, atol=1e-13)
    assert_allclose([law.moment(0), law.moment(1)], [1.0, law.mean()], rtol=1e-14, atol=1e-300)
    assert_allclose(law.var(), law.moment(2) - law.moment(1) ** 2, rtol=1e-13)
    if law in PLAIN:
        x = nodes[0][0]
        assert_allclose(np.exp(law.logpdf(x)), law.pdf(x), rtol=1e-13)


@pytest.mark.parametrize("law", LAWS, ids=IDS)
def test_distribution_has_the_density_for_its_slope(law: CompoundFreePoisson) -> None:
    for low, high in law.bulks:
        h = 1e-4 * (high - low)
        x = np.linspace(low + 0.02 * (high - low), high - 0.02 * (high - low), 60)
        f = [law.cdf(x + k * h) for k in (-2, -1, 1, 2)]
        assert_allclose((f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * h), law.pdf(x), rtol=2e-5)
        assert_allclose(law.cdf(x) + law.sf(x), 1.0, rtol=1e-15)


@SETTINGS
@given(law=laws)
def test_transform_solves_its_equation_on_the_physical_branch(law: CompoundFreePoisson) -> None:
    """z = 1/G + R(G), with Im G of the other sign than Im z, G ~ 1/z, and G the integral of the density."""
    reach = max(map(abs, law.support()))
    z = reach * np.array([0.3 + 0.2j, -0.9 + 1e-3j, 0.01 - 0.4j, 5.0 - 2.0j, -30.0 + 1e-9j])
    g = law.stieltjes(z)

    assert_allclose(1 / g + law.r_transform(g), z, rtol=1e-9)
    assert np.all(np.imag(g) * np.imag(z) < 0)
    assert_array_equal(law.stieltjes(np.conj(z)), np.conj(g))
    near = law.stieltjes(1e3 * reach)
    assert_allclose(near * 1e3 * reach, 1 + law.mean() / (1e3 * reach), rtol=2e-6)
    low, high = law.edges
    real = np.array([low - 0.3 * reach, high + 0.3 * reach])
    real = real[real != 0]
    assert_allclose(1 / law.stieltjes(real) + law.r_transform(law.stieltjes(real)), real, rtol=1e-9)


def test_gaps_hold_no_density_and_the_atom() -> None:
    (_, a), (b, _) = SPLIT.bulks
    x = np.array([a, a / 2, -1e-300, 0.0, 1e-300, b / 2, b])

    assert_array_equal(SPLIT.pdf(x), 0.0)
    assert_allclose(SPLIT.cdf(x), [0.05] * 3 + [0.95] * 4, rtol=1e-13)
    assert_allclose(SPLIT.cdf([-9.0, -math.inf, math.inf]), [0.0, 0.0, 1.0], rtol=0)
    assert SPLIT.support() == SPLIT.edges
    assert_allclose(SPLIT.stieltjes(b / 3) + SPLIT.stieltjes(-b / 3), 0.0, rtol=0, atol=1e-14)
    assert_allclose(SPLIT.stieltjes([1e-8, -1e-200]) * np.array([1e-8, -1e-200]), SPLIT.atom, rtol=1e-13)
    assert POSITIVE.atom == 0.0 and len(POSITIVE.bulks) == 2
    assert len(WHOLE.bulks) == 1 and len(GENERIC.bulks) == 3 and len(TIGHT.bulks) == 3


def test_bulks_meet_at_rate_one() -> None:
    """Symmetric jumps at rate 1: the gap closes and the density grows like |x|^(-1/3); one sign: a hard edge."""
    meeting = CompoundFreePoisson(rate=1.0, jumps=[1.0, -1.0])
    x = np.array([1e-9, 1e-6])
    assert len(meeting.bulks) == 1 and meeting.pdf(0.0) == math.inf
    assert_allclose(np.diff(np.log(meeting.pdf(x))) / np.diff(np.log(x)), -1 / 3, rtol=1e-3)

    hard = CompoundFreePoisson(rate=1.0, jumps=[0.243, 1.3], weights=[0.36, 0.64])
    assert hard.edges[0] == 0.0 and hard.pdf(0.0) == math.inf and hard.cdf(0.0) == 0.0
    assert_allclose(np.diff(np.log(hard.pdf(x))) / np.diff(np.log(x)), -1 / 2, rtol=1e-5)
    assert CompoundFreePoisson(rate=1 + 1e-9, jumps=1.0).edges[0] > 0


@pytest.mark.parametrize(("rank", "batch"), [(1, 20), (2, 50), (3, 700)])
def test_low_rank_noise_has_the_kurtosis_of_few_directions(rank: int, batch: int) -> None:
    """m4/m2^2 - 2 = P/(B r), and the variance P sigma^2/B of Theorem 4 with sigma^2 = r tau^4."""
    law = low_rank_noise(rank=rank, variance=0.3, dim=300, batch_size=batch)

    assert_allclose(law.moment(4) / law.var() ** 2 - 2, 300 / (batch * rank), rtol=1e-11)
    assert_allclose(law.var(), 300 / batch * rank * 0.3**2, rtol=1e-13)
    assert law.mean() == 0.0 and law.moment(3) == 0.0


def test_low_rank_noise_of_one_sign_is_marchenko_pastur() -> None:
    law = low_rank_noise(rank=2, variance=0.3, dim=300, batch_size=50, positive_share=1)
    plain = MarchenkoPastur(q=300 / (50 * 2), variance=2 * 0.3)

    assert_allclose(law.jumps, [300 * 0.3 / 50], rtol=1e-15)
    assert_allclose(law.edges, plain.edges, rtol=1e-13)
    assert_allclose(law.mean(), plain.mean(), rtol=1e-14)
    assert (
        low_rank_noise(rank=2, variance=0.3, dim=300, batch_size=50, positive_share=0).mean() == -law.mean()
    )
    uneven = low_rank_noise(rank=2, variance=0.3, dim=300, batch_size=50, positive_share=0.75)
    assert_allclose(uneven.mean(), 2 * 0.3 * 0.5, rtol=1e-14)


def test_a_record_is_canonical() -> None:
    law = CompoundFreePoisson(rate=2, jumps=[3, -1, 3, 5], weights=[0.25, 0.25, 0.5, 0.0])

    assert law == CompoundFreePoisson(rate=2.0, jumps=(-1.0, 3.0), weights=(0.25, 0.75))
    assert (law.rate, law.jumps, law.weights) == (2.0, (-1.0, 3.0), (0.25, 0.75))
    assert hash(law) == hash(CompoundFreePoisson(rate=2.0, jumps=(-1.0, 3.0), weights=(0.25, 0.75)))
    assert CompoundFreePoisson(rate=2, jumps=np.array(-1.5)).jumps == (-1.5,)
    with pytest.raises(AttributeError):
        law.rate = 3.0
