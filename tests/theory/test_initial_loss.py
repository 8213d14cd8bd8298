"""Lower bounds of the loss at initialisation, against draws, 60 digits, and the rival sum over classes."""

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats

from theory import initial_loss


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


@pytest.mark.parametrize("spread", [0.02, 0.7, 3.1, 12.0])
def test_gaussian_loss_of_two_classes_is_an_integral_over_their_difference(spread: float) -> None:
    """E log(e^x + e^y) = E (x + y)/2 + E log(2 cosh(d/2)) with d normal."""
    law = stats.norm(0.4, spread * np.sqrt(2))
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
