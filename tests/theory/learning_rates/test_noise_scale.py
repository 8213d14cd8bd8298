"""Best rates against the batch size: closed forms against enumerated batches, grids of rates and Gram matrices."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

from theory.learning_rates import noise_scale

RNG = np.random.default_rng(7)
HESSIAN = np.diag([3.0, 0.8, 0.1])
GRADIENTS = RNG.standard_normal((6, 3)) + np.array([1.0, -0.5, 0.2])
STEP = {
    "squared_gradient": float(GRADIENTS.mean(0) @ GRADIENTS.mean(0)),
    "curvature": float(GRADIENTS.mean(0) @ HESSIAN @ GRADIENTS.mean(0)),
    "noise": float(np.trace(HESSIAN @ np.cov(GRADIENTS.T))),
    "dataset_size": 6,
}
SIZES = {"squared_norm": 6.0, "largest": 2.0, "smallest": 0.5}


def mean_change(rate: float, size: int) -> float:
    """Mean change of the quadratic loss over every batch of this size."""
    steps = [GRADIENTS[list(c)].mean(0) for c in itertools.combinations(range(6), size)]
    g = GRADIENTS.mean(0)
    return float(np.mean([-rate * g @ s + rate**2 / 2 * s @ HESSIAN @ s for s in steps]))


@pytest.mark.parametrize("size", [1, 2, 5, 6])
def test_best_rate_is_stationary_over_all_batches_and_its_decrease_is_reached(size: int) -> None:
    rate = float(noise_scale.best_step_rate(**STEP, batch_size=size))
    assert_allclose(mean_change(rate * 1.01, size), mean_change(rate * 0.99, size), rtol=1e-12)
    assert_allclose(
        noise_scale.best_step_decrease(**STEP, batch_size=size), -mean_change(rate, size), rtol=1e-12
    )


@pytest.mark.parametrize("size", [1.0, 2.0, 5.0, 6.0, 40.0])
def test_interpolating_rate_is_the_best_on_a_grid_over_the_whole_spectrum(size: float) -> None:
    rates = np.linspace(0.01, 1.5, 20001)
    values = np.linspace(0.5, 2.0, 51)[:, None]
    slowest = noise_scale.mean_square_factor(rates, eigenvalue=values, squared_norm=6.0, batch_size=size).max(
        0
    )
    found = noise_scale.interpolating_rate(size, **SIZES)
    assert_allclose(found, rates[slowest.argmin()], atol=1e-4)


def test_factor_is_that_of_inputs_of_one_length() -> None:
    """Over all signs of x_k = sqrt(lambda_k), and pairs of them for a batch of two."""
    values = np.array([1.3, 0.4, 0.2])
    inputs = np.array(list(itertools.product([-1, 1], repeat=3))) * np.sqrt(values)
    pairs = [(np.outer(a, a) + np.outer(b, b)) / 2 for a in inputs for b in inputs]
    after = np.mean([(((np.eye(3) - 0.6 * h)[:, 0]) ** 2).sum() for h in pairs])
    found = noise_scale.mean_square_factor(0.6, eigenvalue=1.3, squared_norm=values.sum(), batch_size=2)
    assert_allclose(found, after, rtol=1e-12)


def test_critical_batch_size_is_where_both_forms_of_the_rate_meet() -> None:
    size = float(noise_scale.critical_batch_size(**SIZES))
    found = noise_scale.interpolating_rate([size, size * (1 + 1e-9)], **SIZES)
    assert_allclose(found, size / (6.0 + (size - 1) * 0.5), rtol=1e-8)
    assert noise_scale.critical_batch_size(6.0, largest=2.0, smallest=2.0) == np.inf


@pytest.mark.parametrize("size", [1, 2, 4, 5])
def test_distances_are_those_over_all_batches(size: int) -> None:
    factors = RNG.standard_normal((5, 3, 2))
    matrices, start = factors @ factors.swapaxes(1, 2), np.array([1.0, -2.0, 0.5])
    steps = [np.eye(3) - 0.2 * matrices[list(c)].mean(0) for c in itertools.combinations(range(5), size)]
    moment, expected = np.outer(start, start), []
    for _ in range(3):
        moment = np.mean([s @ moment @ s for s in steps], axis=0)
        expected.append(np.trace(moment))
    found = noise_scale.mean_square_distances(matrices, start, rate=0.2, batch_size=size, steps=3)
    assert_allclose(found, expected, rtol=1e-12)


def test_risks_of_least_squares_are_those_of_moments_of_four_gaussians() -> None:
    """The whole matrix of second moments of weights and their sum, by Isserlis' theorem term by term."""
    values, start, noise, rate, size = np.array([1.3, 0.5, 0.2]), np.array([1.0, 0.3, 2.0]), 0.7, 0.4, 3
    cov, eye = np.diag(values), np.eye(3)
    pairs = [np.einsum(f"{p},{q}->ijkl", cov, cov) for p, q in (("ij", "kl"), ("ik", "jl"), ("il", "jk"))]
    fourth = (1 - 1 / size) * pairs[0] + sum(pairs) / size
    # E (I - a H_B) M (I - a H_B), where E H_B(ij) H_B(kl) is the fourth moment
    full, both, total = np.diag(start), np.zeros((3, 3)), np.zeros((3, 3))
    last, average = [], []
    for count in range(1, 6):
        total = total + both + both.T + full
        both = (both + full) @ (eye - rate * cov)
        full = (
            full - rate * (cov @ full + full @ cov)
            + rate**2 * (np.einsum("ijkl,jk->il", fourth, full) + noise / size * cov)
        )  # fmt: skip
        last.append(np.trace(cov @ full))
        average.append(np.trace(cov @ total) / count**2)
    found = noise_scale.least_squares_risks(values, start, noise=noise, rate=rate, batch_size=size, steps=5)
    assert_allclose(found.last, last, rtol=1e-12)
    assert_allclose(found.average, average, rtol=1e-12)


@pytest.mark.parametrize("averaged", [True, False])
def test_exponent_balances_noise_and_signal(averaged: bool) -> None:
    """Least risk over rates by the leading terms, and the batch size that makes this rate of order one."""
    a, b = 1.6, 2.9

    def batch(samples: float) -> float:
        moves = np.geomspace(1.0, samples, 20001)  # rate times steps
        noise = moves ** (1 / a) if averaged else moves
        return samples / moves[(moves ** ((1 - b) / a) + noise / samples).argmin()]

    slope = np.log(batch(1e12) / batch(1e8)) / np.log(1e4)
    assert_allclose(noise_scale.critical_batch_exponent(a, b, averaged=averaged), slope, atol=1e-3)
