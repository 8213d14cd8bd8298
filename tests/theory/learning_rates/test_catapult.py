"""The catapult of a linear network: steps by parameters, the limit by whole runs, laws of the map, domains."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from theory.activations.gaussian import ConvergenceError
from theory.learning_rates import catapult


def _network(seed: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal(width), rng.standard_normal(width)


def _seen(u: np.ndarray, v: np.ndarray) -> tuple[float, float]:
    return float(u @ v) / math.sqrt(len(u)), float(u @ u + v @ v) / len(u)


def _moved(u: np.ndarray, v: np.ndarray, rate: float) -> tuple[np.ndarray, np.ndarray]:
    pull = rate * float(u @ v) / len(u)
    return u - pull * v, v - pull * u


@pytest.mark.parametrize(("width", "product"), [(1, 0.7), (5, 3.1), (40, 4.5)])
def test_a_step_is_that_of_the_parameters(width: int, product: float) -> None:
    u, v = _network(1, width)
    f, curvature = _seen(u, v)
    rate = product / curvature
    after = catapult.step(f, curvature, rate=rate, width=width)
    assert_allclose((after.output, after.curvature), _seen(*_moved(u, v, rate)), rtol=1e-12)


@pytest.mark.parametrize("product", [0.6, 1.7, 2.4, 3.5])
def test_the_end_is_that_of_a_whole_run(product: float) -> None:
    u, v = _network(2, 30)
    f, curvature = _seen(u, v)
    rate = product / curvature
    said = catapult.final_product(rate * f / math.sqrt(30), product)
    for _ in range(4000):
        u, v = _moved(u, v, rate)
    assert said == pytest.approx(rate * _seen(u, v)[1], abs=2e-4)
    assert said <= 2


@pytest.mark.parametrize("width", [8, 120])
def test_the_mean_end_by_drawn_networks(width: int) -> None:
    rng = np.random.default_rng(3)
    u, v = rng.standard_normal((2, 20000, width))
    z = 2.4 * (u * v).sum(1) / (u**2 + v**2).sum(1)
    ends = catapult.final_product(z, 2.4)
    found = catapult.mean_final_product(2.4, width=width)
    assert abs(found - ends.mean()) < 5 * ends.std() / math.sqrt(len(ends)) + 1e-3


@pytest.mark.parametrize("product", [0.3, 1.0, 1.8])
def test_a_small_drop_is_that_of_the_map(product: float) -> None:
    z, a = 1e-3, product
    for _ in range(400):
        z, a = z * abs(1 - a + z**2), a - z**2 * (4 - a)
    assert 1 - a / product == pytest.approx(float(catapult.curvature_drop(1e-3, product)), rel=2e-4)


def test_growth_from_the_map() -> None:
    """The peak of z comes later by the steps that the smaller start needs: here whole ones."""
    starts = 1e-6 * 1.5 ** -np.array([0.0, 4.0])
    peaks = []
    for start in starts:
        z, a, seen = start, 2.5, []
        for _ in range(120):
            seen.append(z)
            z, a = z * abs(1 - a + z**2), a - z**2 * (4 - a)
        peaks.append(int(np.argmax(seen)))
    assert peaks[1] - peaks[0] == pytest.approx(float(catapult.growth_steps(2.5, ratio=1.5**8)))


def test_the_largest_product_divides_ends_from_divergence() -> None:
    edge = catapult.largest_product()
    for product, falls in ((0.999 * edge, True), (1.001 * edge, False)):
        z, a = 0.01, product
        for _ in range(3000):
            z, a = min(z * abs(1 - a + z**2), 1e3), min(a - z**2 * (4 - a), 1e3)
        assert (z < 1e-3) == falls


def test_a_start_that_does_not_settle_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catapult, "_MOST_STEPS", 1000)
    with pytest.raises(ConvergenceError, match="did not settle"):
        catapult.final_product(1e-300, 2 + 1e-9)
