"""Lower bounds of the loss at initialisation, against draws, 60 digits, and the rival sum over classes."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats

from theory import initial_loss


@pytest.mark.parametrize(("sd", "loss"), [(0.3, 2.3433), (1.0, 2.7303), (3.0, 5.093)])
def test_mean_loss_of_predictions_without_labels_lies_above(sd: float, loss: float) -> None:
    """Ten balanced classes, 20 000 draws of Gaussian logits: K log K = 23 lies far above the loss itself."""
    z = sd * np.random.default_rng(0).normal(size=(20_000, 10))
    top = np.log(np.exp(z).sum(axis=1))
    losses = top - z[:, 0]
    bound = initial_loss.jensen_bound((np.exp(z - top[:, None])).mean(axis=0), np.full(10, 0.1))

    assert abs(losses.mean() - loss) < 5 * losses.std() / np.sqrt(20_000)
    assert np.log(10) <= bound < losses.mean() < 10 * np.log(10)


def test_bound_is_reached_by_equal_predictions_and_lowest_at_the_prior() -> None:
    rng = np.random.default_rng(1)
    prior, predicted = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(6), size=500)

    assert_allclose(initial_loss.jensen_bound(prior, prior), initial_loss.prior_entropy(prior), rtol=1e-15)
    assert np.all(initial_loss.jensen_bound(predicted, prior) > initial_loss.prior_entropy(prior))
    assert initial_loss.jensen_bound(np.full(6, 1 / 6), prior) > initial_loss.prior_entropy(prior)


def test_gap_between_the_bounds_is_the_divergence() -> None:
    prior, predicted = np.random.default_rng(2).dirichlet(np.ones(4), size=2)
    gap = initial_loss.jensen_bound(predicted, prior) - initial_loss.prior_entropy(prior)

    assert_allclose(gap, (prior * np.log(prior / predicted)).sum(), rtol=1e-13)


@pytest.mark.parametrize("tail", [1e-3, 1e-17, 1e-300])
def test_keep_their_digits_near_one_hot(tail: float) -> None:
    with mpmath.workdps(700):
        t = mpmath.mpf(tail)
        entropy = -3 * t * mpmath.log(t) - (1 - 3 * t) * mpmath.log(1 - 3 * t)
        bound = -3 * t * mpmath.log(2 * t) - (1 - 3 * t) * mpmath.log(1 - 6 * t)

    prior = [tail, 1 - 3 * tail, tail, tail]
    assert_allclose(initial_loss.prior_entropy(prior), float(entropy), rtol=2e-15)
    predicted = [2 * tail, 1 - 6 * tail, 2 * tail, 2 * tail]
    assert_allclose(initial_loss.jensen_bound(predicted, prior), float(bound), rtol=2e-15)


def test_classes_that_never_occur_or_are_never_predicted() -> None:
    assert initial_loss.prior_entropy([0.0, 1.0, 0.0]) == 0.0
    assert_allclose(initial_loss.jensen_bound([0.5, 0.5, 0.0], [0.3, 0.7, 0.0]), np.log(2), rtol=1e-15)
    assert initial_loss.jensen_bound([1.0, 0.0], [0.5, 0.5]) == np.inf


def test_prior_broadcasts_against_predictions() -> None:
    predicted = np.random.default_rng(3).dirichlet(np.ones(3), size=(2, 4))
    found = initial_loss.jensen_bound(predicted, [0.2, 0.3, 0.5])

    assert found.shape == (2, 4)
    assert_allclose(found[1, 2], initial_loss.jensen_bound(predicted[1, 2], [0.2, 0.3, 0.5]))


def test_refuse_what_is_no_distribution() -> None:
    with pytest.raises(ValueError, match="mean_probability must be a probability vector"):
        initial_loss.jensen_bound([0.5, 0.4], [0.5, 0.5])
    with pytest.raises(ValueError, match=r"prior must be over 2 classes, got \(3,\)"):
        initial_loss.jensen_bound([0.5, 0.5], [0.2, 0.3, 0.5])
    with pytest.raises(ValueError, match="prior must be a probability vector"):
        initial_loss.prior_entropy([1.0])


@pytest.mark.parametrize("spread", [0.02, 0.7, 3.1, 12.0])
def test_gaussian_loss_of_two_classes_is_an_integral_over_their_difference(spread: float) -> None:
    """E log(e^x + e^y) = E (x + y)/2 + E log(2 cosh(d/2)) with d normal."""
    law: Any = stats.norm(0.4, spread * np.sqrt(2))
    kink, _ = integrate.quad(
        lambda d: np.logaddexp(d / 2, -d / 2) * law.pdf(d),
        *law.mean() + np.array([-12, 12]) * law.std(),
        limit=500,
        epsabs=1e-12,
    )
    exact = (0.3 - 0.1) / 2 + kink - (0.7 * 0.3 + 0.3 * -0.1)

    assert_allclose(initial_loss.gaussian_loss([0.3, -0.1], [0.7, 0.3], spread=spread), exact, atol=2e-9)


def test_gaussian_loss_without_spread_is_the_cross_entropy_and_else_above_the_entropy() -> None:
    prior = [0.62, 0.27, 0.11]
    still = initial_loss.gaussian_loss(np.log(prior) + 5.0, prior, spread=0.0)
    moving = initial_loss.gaussian_loss(np.log(prior), prior, spread=0.8)

    assert_allclose(still, initial_loss.prior_entropy(prior), atol=1e-9)
    assert moving > still
    second = np.square(0.01) / 2 * (1 - np.square(prior).sum())
    slow = initial_loss.gaussian_loss(np.log(prior), prior, spread=0.01)
    assert_allclose(slow - still, second, rtol=1e-3)


def test_gaussian_loss_refuses_what_it_cannot_integrate() -> None:
    with pytest.raises(ValueError, match=r"spread must be in \[0, 30\], got 31"):
        initial_loss.gaussian_loss([0.0, 0.0], [0.5, 0.5], spread=31)
    with pytest.raises(ValueError, match=r"prior must be over 2 classes, got \(3,\)"):
        initial_loss.gaussian_loss([0.0, 0.0], [0.5, 0.3, 0.2], spread=1.0)
    with pytest.raises(ValueError, match="bias must be at least two numbers"):
        initial_loss.gaussian_loss([0.0], [0.5, 0.5], spread=1.0)
