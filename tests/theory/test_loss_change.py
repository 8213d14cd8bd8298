"""Change of the loss in one step, preconditioned rates, and the squared gradient of a batch."""

from __future__ import annotations

import itertools
import math
from typing import Any

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


def test_mean_over_signs_is_minus_the_second_line_of_eq_26() -> None:
    """Term by term, eigenpairs (eta, phi) of the preconditioner and (lambda, psi) of the Hessian."""
    h, b, w = problem(5)
    g, rate, damping = h @ w, 0.3, 0.2
    etas, phis = np.linalg.eigh(b)
    lambdas, psis = np.linalg.eigh(h)
    as_read = 0.0
    for eta, phi in zip(etas + damping, phis.T, strict=True):
        curvature = sum(x * (psi @ phi) ** 2 for x, psi in zip(lambdas, psis.T, strict=True))
        as_read += rate * (phi @ g) ** 2 / eta * (1 - rate / (2 * eta) * curvature)
    found = loss_change.sign_averaged_change(rate, g, h, preconditioner=b + damping * np.eye(5))
    assert_allclose(found, -as_read, rtol=1e-12)


def test_mean_over_signs_by_automatic_differentiation() -> None:
    """Change along one eigenvector of the preconditioner at a time, from slope and bend of a loss."""
    import torch

    _, a, w = problem(3)
    at = torch.from_numpy(w).requires_grad_()
    loss = (at**4).sum() + (at[0] * at[1] - at[2]).cos()
    (g,) = torch.autograd.grad(loss, at, create_graph=True)
    h = torch.stack([torch.autograd.grad(x, at, retain_graph=True)[0] for x in g])
    etas, phis = np.linalg.eigh(a)
    expected = 0.0
    for eta, phi in zip(etas, torch.from_numpy(phis.T.copy()), strict=True):
        (bend,) = torch.autograd.grad(g @ phi, at, retain_graph=True)
        slope = (g.detach() @ phi).item()
        step = -0.3 * slope / eta
        expected += step * slope + step**2 / 2 * (bend @ phi).item()
    found = loss_change.sign_averaged_change(0.3, g.detach().numpy(), h.numpy(), preconditioner=a)
    assert_allclose(found, expected, rtol=1e-12)


def test_one_gradient_is_enough_where_hessian_and_preconditioner_commute() -> None:
    h, _, w = problem(4)
    a = h @ h + 0.3 * np.eye(4)
    both = [
        f(0.3, h @ w, h, preconditioner=a)
        for f in (loss_change.quadratic_change, loss_change.sign_averaged_change)
    ]
    assert_allclose(*both, rtol=1e-11)


def test_eigenvectors_that_are_not_unique_are_refused() -> None:
    h, _, w = problem(3)
    with pytest.raises(ValueError, match="preconditioner must be of eigenvalues that differ"):
        loss_change.sign_averaged_change(0.3, w, h, preconditioner=np.diag([2.0, 2.0, 5.0]))
    assert np.isfinite(loss_change.sign_averaged_change(0.3, [1.0], [[2.0]], preconditioner=[[3.0]]))


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


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gradient": 1.0}, r"gradient must be of shape \(\.\.\., P\)"),
        ({"gradient": []}, r"gradient must be of shape \(\.\.\., P\)"),
        ({"gradient": [1.0, math.nan]}, "gradient must be finite"),
        ({"hessian": [1.0, 2.0]}, r"hessian must be of shape \(\.\.\., 2, 2\)"),
        ({"hessian": np.eye(3)}, r"hessian must be of shape \(\.\.\., 2, 2\)"),
        ({"hessian": [[1.0, 2.0], [3.0, 4.0]]}, "hessian must be symmetric"),
        ({"preconditioner": [[1.0, 2.0], [3.0, 4.0]]}, "preconditioner must be symmetric"),
        ({"preconditioner": np.zeros((2, 2))}, "preconditioner must be invertible"),
        ({"rate": math.inf}, "rate must be finite"),
        ({"rate": [1.0, 2.0], "hessian": np.ones((3, 2, 2))}, "must be broadcastable to one shape"),
        ({"gradient": np.ones((2, 2)), "hessian": np.ones((3, 2, 2))}, "must be broadcastable to one shape"),
        ({"rate": 1e200}, "overflow"),
    ],
)
@pytest.mark.parametrize("name", ["quadratic_change", "sign_averaged_change"])
def test_problems_that_do_not_fit_are_refused(name: str, changes: Any, message: str) -> None:
    right = {"rate": 0.3, "gradient": [1.0, 2.0], "hessian": np.eye(2), "preconditioner": np.diag([2.0, 3.0])}
    with pytest.raises(ValueError, match=message):
        getattr(loss_change, name)(**right | changes)


def test_scalars_out_of_their_domain_are_refused() -> None:
    with pytest.raises(ValueError, match="squared_gradient must be non-negative and finite"):
        loss_change.descent_bound(0.1, squared_gradient=-1.0, sharpness=1.0)
    with pytest.raises(ValueError, match="overflow"):
        loss_change.descent_bound(1e200, squared_gradient=1.0, sharpness=1.0)
    with pytest.raises(ValueError, match="batch_size must be positive and finite"):
        loss_change.squared_gradient_mean(1.0, trace=1.0, batch_size=0)
    with pytest.raises(ValueError, match="trace must be non-negative and finite"):
        loss_change.squared_gradient_mean(1.0, trace=math.nan, batch_size=1)
    with pytest.raises(ValueError, match="trace_of_square must be non-negative and finite"):
        loss_change.squared_gradient_variance(1.0, trace_of_square=-1.0, batch_size=1)


@pytest.mark.parametrize("batch", [1, 3, 9, 40])
def test_adaptive_rates_are_those_of_the_edge_and_the_outlier(batch: int) -> None:
    size = {"sigma": 0.3, "dim": 50, "batch_size": batch, "dataset_size": 90}
    edge, top = (batch_eigenvalue(x, **size) for x in (1e-9, 1.9))

    assert_allclose(adaptive_limit(0.7, **size), 2 * 0.7 / edge, rtol=1e-14)
    assert_allclose(outlier_over_edge(1.9, **size), top / edge, rtol=1e-14)
    x = 1.9 / (math.sqrt(50 * (1 / batch - 1 / 90)) * 0.3)
    assert_allclose(outlier_over_edge(1.9, **size), (x + 1 / x) / 2 if x > 1 else 1.0, rtol=1e-12)


def test_the_adaptive_rate_grows_as_the_root_of_the_effective_size() -> None:
    size = {"sigma": 0.3, "dim": 50, "dataset_size": 90}
    low, high = adaptive_limit(0.7, batch_size=[10, 30], **size)
    assert_allclose(high / low, math.sqrt((1 / 10 - 1 / 90) / (1 / 30 - 1 / 90)), rtol=1e-13)
    assert adaptive_limit(0.7, batch_size=90, **size) == math.inf
    assert outlier_over_edge(0.7, batch_size=90, **size) == math.inf
    assert adaptive_limit(0.7, batch_size=3, **size | {"sigma": 0.0}) == math.inf


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_adaptive_rates_need_positive_curvature(bad: float) -> None:
    size = {"sigma": 0.3, "dim": 50, "batch_size": 3, "dataset_size": 90}
    with pytest.raises(ValueError, match="preconditioner must be positive and finite"):
        adaptive_limit(bad, **size)
    with pytest.raises(ValueError, match="eigenvalue must be positive and finite"):
        outlier_over_edge(bad, **size)
    with pytest.raises(ValueError, match="batch_size must be at most dataset_size"):
        adaptive_limit(1.0, **size | {"batch_size": 91})
    with pytest.raises(ValueError, match="sigma must be non-negative and finite"):
        adaptive_limit(1.0, **size | {"sigma": -0.1})
