"""Fisher eigenvalue statistics: hand-made networks, naive recursions at high precision, stored values."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.theory.fisher.networks import RELU, TANH
from theory.fisher import (
    eigenvalue_statistics,
    kappas,
    mean_subtracted_statistics,
    parameter_count,
    rank_bound,
)
from theory.order_parameters import order_parameters

# ------------------------------------------------------------------------------------------- kappas


# --------------------------------------------------------------------------------------- statistics


@pytest.mark.parametrize("finite", [False, True])
def test_statistics_are_those_of_the_block_matrix(finite: bool) -> None:
    """C blocks, own on and shared off the diagonal, over T; the biases at finite width."""
    width, t, c = 50, 7, 3
    ratios = [1.0, 2.0, 0.5]
    k, q = kappas(**TANH, width_ratios=ratios), order_parameters(**TANH)
    own, shared = (
        k.alpha * width * x + finite * y.sum() for x, y in ((k.kappa1, q.q_tilde_t), (k.kappa2, q.q_tilde_st))
    )
    block = np.full((t, t), shared) + np.eye(t) * (own - shared)
    values = np.tile(np.linalg.eigvalsh(block / t), c)
    p = 100 * 51 + 25 * 101 + 3 * 26 if finite else k.alpha * width**2
    size = {"width": width, "samples": t, "outputs": c, "width_ratios": ratios, "finite_width": finite}
    result = eigenvalue_statistics(**TANH, **size)
    assert_allclose(result, [values.sum() / p, (values**2).sum() / p, values.max()], rtol=1e-12)
    trace = c * np.trace((np.eye(t) - 1 / t) @ block) / t / p
    assert mean_subtracted_statistics(**TANH, **size).mean == pytest.approx(trace, rel=1e-12)


def test_one_sample_statistics() -> None:
    size = {"width": 100, "samples": 1, "outputs": 2}
    result = eigenvalue_statistics(**RELU, **size)
    assert_allclose(result, [0.03, 2 * 2 * 1.5**2, 300.0])
    assert mean_subtracted_statistics(**RELU, **size) == (0.0, 0.0, 0.0)


# --------------------------------------------------------------------------------- parameter counts


def test_parameter_count_counts_weights_and_biases() -> None:
    # 6-3-12-2
    count = parameter_count(depth=3, width=6, outputs=2, width_ratios=[1.0, 0.5, 2.0])
    assert count == 6 * 3 + 3 + 3 * 12 + 12 + 12 * 2 + 2
    assert parameter_count(depth=1, width=4, outputs=3) == 15
    assert isinstance(count, int)


def test_rank_bound_is_attained_by_random_gradients() -> None:
    """A sum of C T matrices of rank one in P dimensions, drawn at random, has that rank."""
    for samples in (1, 4, 9):
        size = {"depth": 2, "width": 3, "outputs": 2, "width_ratios": [1.0, 1 / 3]}
        gradients = np.random.default_rng(samples).normal(size=(parameter_count(**size), 2 * samples))
        assert rank_bound(**size, samples=samples) == np.linalg.matrix_rank(gradients @ gradients.T)


# ------------------------------------------------------------------------------------------- errors


def test_statistics_survive_overflow_of_their_parts() -> None:
    size = {"depth": 2, "width": 10**6, "samples": 10, "outputs": 1, "bias_variance": 0.0}
    found = eigenvalue_statistics("linear", weight_variance=1e149, **size)
    assert found.second_moment == pytest.approx((2e149) ** 2 / 10)  # kappa1 = 2 sigma_w^2, kappa2 = 0
