"""Limits of infinite size: the weights of the fit, what it promises, and when it is not trusted."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import linalg, stats

from tests.verify.judging.by_hand import (
    SIZES,
    M,
    covers,
    most,
    noisy,
    recorded,
    spread_evenly,
    tight as claim,
)
from verify.judging import sizes
from verify.judging.guards import MISFIT, UNTRUSTED
from verify.judging.intervals import mean_interval
from verify.judging.sizes import extrapolated
from verify.model import ALPHA, Kind

# --- the weights


def by_elimination(y: np.ndarray, sizes: np.ndarray, terms: tuple[float, ...]) -> float:
    """Least squares by the normal equations, with unscaled sizes."""
    columns = np.stack([sizes**-p for p in (0.0, *terms)])
    return float(linalg.solve(columns @ columns.T, columns @ y)[0])


@pytest.mark.parametrize("terms", [(2 / 3, 4 / 3), (1.0,), (1.0, 2.0, 3.0)])
def test_the_limit_is_that_of_least_squares(terms: tuple[float, ...]) -> None:
    y = noisy(3 + 5 / M, 1.0, n=200)
    found = extrapolated(y, M, terms, alpha=0.05)
    assert_allclose(found.estimate, by_elimination(y.mean(0), M, terms), rtol=1e-6)


def test_a_curve_of_the_declared_terms_is_extrapolated_exactly() -> None:
    common = spread_evenly(0.0, 0.1)[:, None]
    found = extrapolated(3 + 5 / M - 7 / M**2 + common, M, (1, 2), alpha=ALPHA, numerical=1e-6)
    assert_allclose(found.estimate, 3.0, rtol=1e-12)
    assert found.size_model < 1e-12
    weights = np.linalg.pinv(np.stack([np.ones(5), 1 / M, 1 / M**2], axis=1))[0]
    assert_allclose(found.numerical, 1e-6 * np.abs(weights).sum(), rtol=1e-6)
    assert_allclose(found.statistical, mean_interval(common[:, 0], alpha=ALPHA).half_width, rtol=1e-9)


def test_the_smallest_size_can_only_be_dropped_where_enough_are_left() -> None:
    with pytest.raises(ValueError, match="a fit of 2 terms needs at least 4 sizes, got 3"):
        extrapolated(np.ones((64, 3)), M[:3], (1, 2), alpha=0.05)


# --- coverage

CURVES = {
    "two terms": ((1, 2), 3 + 5 / M - 7 / M**2, 1.0),
    "small third term": ((1, 2), 3 + 5 / M - 7 / M**2 + 20 / M**3, 2.5),
    "powers of the edge": ((2 / 3, 4 / 3), 3 - 1.2 * M ** (-2 / 3) + 0.4 * M ** (-4 / 3), 1.0),
}


@pytest.mark.parametrize(
    "spread", [0.02, 0.2 / np.sqrt(M), 0.003 * M**0.5], ids=["equal", "falling", "growing"]
)
@pytest.mark.parametrize("name", CURVES)
def test_a_limit_keeps_its_promise(name: str, spread) -> None:
    """Whatever the noise does with size, and with a third term as large as the noise may hide."""
    terms, curve, factor = CURVES[name]
    found = [extrapolated(noisy(curve, factor * spread, i, 512), M, terms, alpha=0.05) for i in range(60)]
    assert sum(not covers(i, 3.0) for i in found) <= most(0.05, 60)
    assert sum(bool(i.obstacle) for i in found) <= (30 if "third" in name else most(1e-3, 60))


@pytest.mark.parametrize(
    ("terms", "power", "weight"),
    [((1, 2), 3, 1.25), ((2 / 3, 4 / 3), 2, 1.61), ((2 / 3, 1), 4 / 3, 2.23), ((0.5,), 1, 2.76)],
)
def test_the_band_covers_the_next_term_of_the_series(
    terms: tuple[float, ...], power: float, weight: float
) -> None:
    """Without any noise: 1.25 is enough for whole powers, not for fractions."""
    curve = 5 * M**-power
    limit, fewer = by_elimination(curve, M, terms), by_elimination(curve[1:], M[1:], terms)
    assert_allclose(abs(limit) / abs(fewer - limit), weight, atol=0.005)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sizes, "TRUST", 0.0)  # nothing is mistrusted
        found = extrapolated(curve + spread_evenly(0.0, 1e-9)[:, None], M, terms, alpha=ALPHA)
    assert_allclose(found.size_model, abs(limit), rtol=1e-6)
    assert found.size_model > 1000 * found.statistical


STRANGE = {"fourth root": 3 + 0.5 * M**-0.25, "logarithm": 3 + 0.05 * np.log(M), "root": 3 + 0.5 * M**-0.5}


@pytest.mark.parametrize("name", STRANGE)
def test_a_strange_order_is_not_trusted_once_it_is_resolved(name: str) -> None:
    for seed in range(10):
        y = noisy(STRANGE[name], 0.01, seed)
        for theory in (3.0, by_elimination(y.mean(0), M, (1.0, 2.0))):
            found = recorded(claim(Kind.LIMIT, SIZES, terms=(1, 2), predict=lambda p, t=theory: t), y)
            assert (found.verdict, found.reason) == ("undecided", MISFIT)
            assert found.lower == -math.inf and found.needed is None


# --- whether the terms fit


def test_the_fit_does_not_depend_on_a_basis_of_the_contrasts() -> None:
    """Hotelling's statistic of two contrasts by elimination, the first of which leaves the largest size out."""
    y = noisy(3 + 5 / M + 0.03 / M**0.5, 0.02 / np.sqrt(M), n=256)
    design = np.stack([np.ones(5), 1 / M, 1 / M**2], axis=1)
    first = np.append(linalg.null_space(design[:4].T)[:, 0], 0.0)
    last = np.append(0.0, linalg.null_space(design[1:].T)[:, 0])
    c = y @ np.stack([first, last]).T
    square = 256 * c.mean(0) @ linalg.solve(np.cov(c.T), c.mean(0))
    p = stats.f.sf(square * (256 - 2) / (2 * 255), 2, 254)
    assert 1e-9 < p < 0.5
    for trust, alpha, obstacle in (
        (p / 1.01, ALPHA, ""),
        (p * 1.01, p / 1.01, UNTRUSTED),
        (p * 1.01, p * 1.01, MISFIT),
    ):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sizes, "TRUST", trust)
            assert extrapolated(y, M, (1, 2), alpha=alpha).obstacle == obstacle


def test_a_right_model_is_mistrusted_as_rarely_as_promised() -> None:
    rng = np.random.default_rng(3)
    drawn = (3 + 5 / M + rng.exponential(size=(128, 5)) for _ in range(1000))
    wrong = sum("size model" in extrapolated(y, M, (1, 2), alpha=0.05).obstacle for y in drawn)
    assert wrong <= most(2e-3, 1000)


def test_noise_that_all_sizes_share_leaves_a_wrong_model_nowhere_to_hide() -> None:
    """Contrasts of zero variance are known exactly: that is no reason to believe them."""
    common = spread_evenly(0.0, 0.1)[:, None]
    right, wrong = (3 + 5 / M + c / M**3 + common for c in (0.0, 0.1))
    assert not extrapolated(right, M, (1, 2), alpha=ALPHA).obstacle
    assert extrapolated(wrong, M, (1, 2), alpha=ALPHA).obstacle == MISFIT
    assert not extrapolated(
        wrong, M, (1, 2), alpha=ALPHA, numerical=1e-4
    ).obstacle  # within the numerical error


def test_a_limit_that_does_not_vary_is_no_measurement() -> None:
    assert extrapolated(np.ones((128, 5)), M, (1, 2), alpha=ALPHA).obstacle == "zero variance"
    assert extrapolated(noisy(M, 1.0, n=48), M, (1, 2), alpha=ALPHA).obstacle == "too few replicates"
