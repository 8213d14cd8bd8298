"""Change of the loss in one step, preconditioned rates, and the squared gradient of a batch."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

from theory import loss_change
from theory.adaptive_rates import adaptive_limit, outlier_over_edge
from theory.batch_hessian import batch_eigenvalue


def problem(dim: int, *shape: int) -> tuple[np.ndarray, ...]:
    """Hessians, preconditioners and weights."""
    rng = np.random.default_rng(dim)
    factors = rng.standard_normal((2, *shape, dim, dim + 2))
    h, a = factors @ factors.swapaxes(-1, -2) / dim
    return h - 0.4 * np.eye(dim), a + 0.3 * np.eye(dim), rng.standard_normal((*shape, dim))


@pytest.mark.parametrize("preconditioned", [False, True])
def test_change_of_a_quadratic_is_the_difference_of_its_ends(preconditioned: bool) -> None:
    h, a, w = problem(4, 3)
    g = np.einsum("nij,nj->ni", h, w)
    end = w - 0.3 * (np.linalg.solve(a, g[..., None])[..., 0] if preconditioned else g)
    expected = [(y @ m @ y - x @ m @ x) / 2 for x, y, m in zip(w, end, h, strict=True)]

    found = loss_change.quadratic_change(0.3, g, h, preconditioner=a if preconditioned else None)
    assert_allclose(found, expected, rtol=1e-12)


def test_mean_over_signs_is_the_sum_over_eigenvectors_of_the_preconditioner() -> None:
    h, a, w = problem(4)
    components = np.linalg.eigh(a)[1].T @ (h @ w)
    changes = [
        loss_change.quadratic_change(
            0.3, np.linalg.eigh(a)[1] @ (np.array(signs) * components), h, preconditioner=a
        )
        for signs in itertools.product((-1, 1), repeat=4)
    ]
    found = loss_change.sign_averaged_change(0.3, h @ w, h, preconditioner=a)
    assert_allclose(found, np.mean(changes), rtol=1e-12)
    assert np.std(changes) > 0.01 * abs(found)


def test_bound_is_attained_along_the_top_eigenvector() -> None:
    h, _, w = problem(5)
    values, vectors = np.linalg.eigh(h)
    for g, attained in ((vectors[:, -1], True), (h @ w, False)):
        bound = loss_change.descent_bound(0.3, squared_gradient=g @ g, sharpness=values[-1])
        change = loss_change.quadratic_change(0.3, g, h)
        assert change <= bound + 1e-12 * abs(bound)
        assert bool(np.isclose(change, bound, rtol=1e-9)) == attained


def test_moments_of_the_squared_gradient_of_normal_samples() -> None:
    """By the cumulants of a noncentral chi-square, component by component."""
    g, c, size = np.array([1.3, -0.7, 0.4]), np.array([3.1, 0.6, 1.7]), 5
    per = c / size
    assert_allclose(
        loss_change.squared_gradient_mean(g @ g, trace=c.sum(), batch_size=size), (g**2 + per).sum()
    )
    found = loss_change.squared_gradient_variance(g**2 @ c, trace_of_square=c @ c, batch_size=size)
    assert_allclose(found, (2 * per**2 * (1 + 2 * g**2 / per)).sum())


@pytest.mark.parametrize("batch", [1, 3, 9, 40])
def test_adaptive_rates_are_those_of_the_edge_and_the_outlier(batch: int) -> None:
    size = {"sigma": 0.3, "dim": 50, "batch_size": batch, "dataset_size": 90}
    edge, top = (batch_eigenvalue(x, **size) for x in (1e-9, 1.9))

    assert_allclose(adaptive_limit(0.7, **size), 2 * 0.7 / edge, rtol=1e-14)
    assert_allclose(outlier_over_edge(1.9, **size), top / edge, rtol=1e-14)
