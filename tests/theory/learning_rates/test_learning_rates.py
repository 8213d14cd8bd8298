"""Learning rates against the iterations they describe."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from theory.batch_hessian import batch_eigenvalue, crossover_batch_size
from theory.learning_rates import (
    heavy_ball,
    linear_then_flat,
    mean_square_limit,
    nesterov,
    sgd_limit,
    stability_limit,
)

SETTINGS = settings(deadline=None, max_examples=50, derandomize=True)
INTERVALS = [(10.0, 0.1), (100.0, 1.0), (1.0, 0.01), (7.0, 3.0), (1e-3, 1e-7)]


def radius(rates: Any, largest: float, smallest: float, *, look_ahead: bool) -> float:
    """Worst spectral radius of the 2 x 2 companion matrix over eigenvalues between the two."""
    worst = 0.0
    for h in np.geomspace(smallest, largest, 201):
        shrink = 1 - rates.learning_rate * h
        if look_ahead:  # Nesterov: the gradient step applies to the momentum too
            step = [[(1 + rates.momentum) * shrink, -rates.momentum * shrink], [1.0, 0.0]]
        else:
            step = [[shrink + rates.momentum, -rates.momentum], [1.0, 0.0]]
        worst = max(worst, float(np.abs(np.linalg.eigvals(np.array(step, dtype=float))).max()))
    return worst


def test_gradient_descent_is_stable_below_its_limit_only() -> None:
    sharpness = np.array([0.3, 2.0, 50.0])
    limit = stability_limit(sharpness)

    assert_allclose(np.abs(1 - limit * sharpness), 1.0, rtol=1e-15)
    assert np.all(np.abs(1 - 0.999 * limit * sharpness) < 1) and np.all(
        np.abs(1 - 1.001 * limit * sharpness) > 1
    )


@pytest.mark.parametrize(("largest", "smallest"), INTERVALS)
def test_heavy_ball_contracts_as_its_companion_matrix(largest: float, smallest: float) -> None:
    rates = heavy_ball(largest, smallest)
    # double roots at both ends: the computed radius is only good to the root of the rounding error
    assert_allclose(radius(rates, largest, smallest, look_ahead=False), rates.contraction, rtol=1e-6)


@pytest.mark.parametrize(("largest", "smallest"), INTERVALS)
def test_nesterov_contracts_as_its_companion_matrix(largest: float, smallest: float) -> None:
    rates = nesterov(largest, smallest)
    assert rates.learning_rate == 1 / largest
    assert_allclose(radius(rates, largest, smallest, look_ahead=True), rates.contraction, rtol=1e-6)
    assert_allclose(rates.contraction, 1 - math.sqrt(smallest / largest), rtol=1e-12)


@pytest.mark.parametrize(("largest", "smallest"), INTERVALS)
def test_no_other_heavy_ball_is_faster(largest: float, smallest: float) -> None:
    best = heavy_ball(largest, smallest)
    for a in (0.9, 1.0, 1.1):
        for m in (0.9, 1.0, 1.05):
            other = best._replace(learning_rate=a * best.learning_rate, momentum=m * best.momentum)
            assert radius(other, largest, smallest, look_ahead=False) > best.contraction * (1 - 1e-6)


def test_learning_rates_as_our_copy_reads_diverge() -> None:
    """Without the square, and sqrt(mu/L): radius 16 for L = 100, mu = 1."""
    polyak, lookahead = heavy_ball(100.0, 1.0), nesterov(100.0, 1.0)
    printed = polyak._replace(learning_rate=2 / 11)
    assert radius(printed, 100.0, 1.0, look_ahead=False) > 16
    printed = lookahead._replace(learning_rate=0.1)
    assert radius(printed, 100.0, 1.0, look_ahead=True) > 16


@SETTINGS
@given(largest=st.floats(1e-3, 1e3), share=st.floats(1e-6, 1.0), unit=st.sampled_from([0.25, 16.0]))
def test_learning_rates_carry_the_inverse_unit_of_the_hessian(
    largest: float, share: float, unit: float
) -> None:
    for method in (heavy_ball, nesterov):
        one, scaled = method(largest, share * largest), method(unit * largest, unit * share * largest)
        assert scaled == (one.learning_rate / unit, one.momentum, one.contraction)
        assert 0 <= one.momentum < 1 and 0 <= one.contraction < 1


def test_a_round_bowl_takes_one_step() -> None:
    for method in (heavy_ball, nesterov):
        assert method(4.0, 4.0) == (0.25, 0.0, 0.0)


def test_sgd_limit_is_stable_for_the_batch_eigenvalue() -> None:
    sizes = {"batch_size": [1, 8, 64, 100], "dataset_size": 100}
    rate = sgd_limit(2.0, sigma=0.3, dim=200, **sizes)

    assert_allclose(rate * batch_eigenvalue(2.0, sigma=0.3, dim=200, **sizes), 2.0, rtol=1e-15)
    assert rate[-1] == stability_limit(2.0)


@pytest.mark.parametrize(
    ("share", "exponent"), [(1 / 64, 0.5), (0.5, 0.5), (1.0, 0.5), (4.0, 0.2), (64.0, 1 / 65)]
)
def test_sgd_limit_never_grows_faster_than_the_square_root(share: float, exponent: float) -> None:
    """Local exponent 1/2 below the crossover, 1/(1 + b/b_c) above."""
    crossover = crossover_batch_size(2.0, sigma=0.3, dim=200, dataset_size=math.inf)
    b = share * crossover * np.exp([-1e-4, 1e-4])
    low, high = sgd_limit(2.0, sigma=0.3, dim=200, batch_size=b, dataset_size=math.inf)

    assert_allclose(np.log(high / low) / 2e-4, exponent, atol=1e-4)


def test_mean_square_limit_keeps_the_squared_length_of_one_step() -> None:
    """E |(I - a H_B) v|^2 = 1 over all batches of a small data set, with the variance of H_i v."""
    rng = np.random.default_rng(3)
    factors = rng.standard_normal((5, 4, 2))
    matrices = factors @ factors.transpose(0, 2, 1)
    values, vectors = np.linalg.eigh(matrices.mean(axis=0))
    top = vectors[:, -1]
    noise = (matrices @ top).var(axis=0, ddof=1).sum()
    for batch in (1, 4):
        rate = mean_square_limit(values[-1], noise=noise, batch_size=batch, dataset_size=5)
        members = matrices if batch == 1 else (matrices.sum(axis=0) - matrices) / 4
        lengths = [np.sum((top - rate * m @ top) ** 2) for m in members]
        assert_allclose(np.mean(lengths), 1.0, rtol=1e-12)


@pytest.mark.parametrize("batch", [1, 3, 50])
def test_mean_square_limit_is_exact_for_gaussian_least_squares(batch: int) -> None:
    """x ~ N(0, I_P): E[H^2] = (1 + (P + 1)/B) I, hence 2 B / (B + P + 1)."""
    assert_allclose(
        mean_square_limit(1.0, noise=21.0, batch_size=batch, dataset_size=math.inf),
        2 * batch / (batch + 21),
        rtol=1e-15,
    )


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_own_direction_noise_bounds_the_stable_rate(batch: int) -> None:
    """The exact limit from the spectral radius of E[(I - a H_B) x (I - a H_B)] lies below the bound."""
    rng = np.random.default_rng(8)
    samples = rng.standard_normal((12, 3)) * [2.0, 1.0, 0.5]
    matrices = np.einsum("ij,ik->ijk", samples, samples)
    mean = matrices.mean(axis=0)
    values, vectors = np.linalg.eigh(mean)
    own = np.einsum("j,ijk,k->i", vectors[:, -1], matrices, vectors[:, -1]).var(ddof=1)
    bound = mean_square_limit(values[-1], noise=own, batch_size=batch, dataset_size=12)
    eye, deviations = np.eye(3), matrices - mean
    share = (1 / batch - 1 / 12) * 12 / 11
    spread = share * np.mean([np.kron(d, d) for d in deviations], axis=0)

    def grows(rate: float) -> bool:
        step = np.kron(eye - rate * mean, eye - rate * mean) + rate**2 * spread
        return np.abs(np.linalg.eigvals(step)).max() > 1

    low, high = 0.0, 2 * float(bound)
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if grows(middle) else (middle, high)
    assert low <= bound * (1 + 1e-9)
    assert low > 0.2 * bound


@SETTINGS
@given(lam=st.floats(1e-3, 1e3), noise=st.floats(0, 1e3), batch=st.floats(1, 100))
def test_mean_square_limit_lies_below_the_noiseless_one(lam: float, noise: float, batch: float) -> None:
    rate = mean_square_limit(lam, noise=noise, batch_size=batch, dataset_size=100)

    assert 0 < rate <= stability_limit(lam)
    assert mean_square_limit(lam, noise=noise, batch_size=100, dataset_size=100) == stability_limit(lam)
    assert mean_square_limit(lam, noise=0.0, batch_size=batch, dataset_size=100) == stability_limit(lam)
    doubled = mean_square_limit(2 * lam, noise=4 * noise, batch_size=batch, dataset_size=100)
    assert doubled == rate / 2


def test_arguments_broadcast() -> None:
    rates = heavy_ball([[4.0], [9.0]], [1.0, 2.0, 3.0])
    assert {part.shape for part in (*rates, *nesterov([[4.0], [9.0]], [1.0, 2.0, 3.0]))} == {(2, 3)}
    assert stability_limit([]).shape == (0,) and stability_limit(1).shape == ()
    sizes = {"batch_size": [1, 2], "dataset_size": 9}
    assert sgd_limit([[1.0], [2.0]], sigma=0.1, dim=3, **sizes).shape == (2, 2)
    assert mean_square_limit([[1.0], [2.0]], noise=0.1, **sizes).shape == (2, 2)
    assert_array_equal(heavy_ball(4, 1), [float(part) for part in heavy_ball(4.0, 1.0)])


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_curvature_out_of_its_domain_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="sharpness must be positive and finite"):
        stability_limit(bad)
    with pytest.raises(ValueError, match="eigenvalue must be positive and finite"):
        sgd_limit(bad, sigma=1.0, dim=1, batch_size=1, dataset_size=2)
    with pytest.raises(ValueError, match="eigenvalue must be positive and finite"):
        mean_square_limit(bad, noise=1.0, batch_size=1, dataset_size=2)
    for method in (heavy_ball, nesterov):
        with pytest.raises(ValueError, match="largest must be positive and finite"):
            method(bad, 1.0)
        with pytest.raises(ValueError, match="smallest must be positive and finite"):
            method(1.0, bad)


def test_other_arguments_out_of_their_domain_are_refused() -> None:
    for method in (heavy_ball, nesterov):
        with pytest.raises(ValueError, match="largest must be at least smallest"):
            method([2.0, 1.0], 1.5)
    for bad in [-1.0, math.nan, math.inf]:
        with pytest.raises(ValueError, match="noise must be non-negative and finite"):
            mean_square_limit(1.0, noise=bad, batch_size=1, dataset_size=2)
        with pytest.raises(ValueError, match="sigma must be non-negative and finite"):
            sgd_limit(1.0, sigma=bad, dim=1, batch_size=1, dataset_size=2)
    with pytest.raises(ValueError, match="batch_size must be at most dataset_size"):
        sgd_limit(1.0, sigma=1.0, dim=1, batch_size=3, dataset_size=2)
    with pytest.raises(ValueError, match="batch_size must be at most dataset_size"):
        mean_square_limit(1.0, noise=1.0, batch_size=3, dataset_size=2)


def test_momentum_of_the_largest_eigenvalues_is_in_range() -> None:
    rate, momentum, contraction = heavy_ball(1e308, 1e308 / 4)
    assert_allclose([rate * 1e308, momentum, contraction], [16 / 9, 1 / 9, 1 / 3])
    assert nesterov(1.7e308, 1.0).contraction == 1  # rounding must not pass it


def test_mean_square_limit_survives_overflow_of_its_parts() -> None:
    size = {"batch_size": 1.0, "dataset_size": math.inf}
    assert_allclose(mean_square_limit(1e200, noise=1e300, **size), 2e-200)
    assert_allclose(mean_square_limit(1e-200, noise=1e50, **size), 2e-250)


@pytest.mark.parametrize("call", [lambda: stability_limit(1e-320), lambda: nesterov(1e-320, 1e-320)])
def test_rates_beyond_a_float_are_refused(call: Any) -> None:
    with pytest.raises(
        ValueError, match=r"(sharpness|largest) must be such that the result does not overflow"
    ):
        call()


def test_one_size_keeps_its_rate_however_small_it_is() -> None:
    size = {"known": 1e-307, "batch_size": [1e-307, 2e-307], "crossover": 200, "dataset_size": math.inf}
    assert linear_then_flat(3.0, **size).tolist() == [3.0, 6.0]
