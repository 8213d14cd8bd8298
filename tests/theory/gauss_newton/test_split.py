"""Eqs. (3) and (4) against derivatives of the loss in 40 digits."""

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose

from theory import gauss_newton, softmax

SLOPES = np.array([[0.7, -0.4], [0.2, 1.1], [-0.9, 0.3]])
CURVED = np.array([[[0.5, 0.2], [0.2, -0.3]], [[0.0, 0.4], [0.4, 0.1]], [[-0.6, 0.0], [0.0, 0.8]]])
LEVELS = np.array([0.3, -0.5, 0.9])


def loss(label: int, heat: float):
    """Cross-entropy of quadratic logits, as a function of two parameters."""

    def of(*w):
        z = [
            mpmath.mpf(a)
            + sum(b * x for b, x in zip(slope, w, strict=True))
            + sum(c[i][j] * w[i] * w[j] for i in range(2) for j in range(2)) / 2
            for a, slope, c in zip(LEVELS.tolist(), SLOPES.tolist(), CURVED.tolist(), strict=True)
        ]
        return mpmath.log(mpmath.fsum(mpmath.exp((x - z[label]) / heat) for x in z))

    return of


def probabilities(heat: float) -> np.ndarray:
    w = np.exp(LEVELS / heat)
    return w / w.sum()


@pytest.mark.parametrize(("label", "heat"), [(0, 1.0), (2, 1.7), (1, 0.4)])
def test_gradient_and_hessian_are_those_of_the_loss(label: int, heat: float) -> None:
    with mpmath.workdps(40):
        orders = [(1, 0), (0, 1), (2, 0), (1, 1), (0, 2)]
        a, b, aa, ab, bb = (float(mpmath.diff(loss(label, heat), (0, 0), n)) for n in orders)

    p = probabilities(heat)
    terms = gauss_newton.hessian_terms(p, label, SLOPES, CURVED, temperature=heat)
    assert_allclose(gauss_newton.loss_gradient(p, label, SLOPES, temperature=heat), [a, b], rtol=1e-12)
    assert_allclose(terms.gauss_newton + terms.h_term, [[aa, ab], [ab, bb]], rtol=1e-12)


def test_linear_logits_have_no_h_term_and_labels_no_part_in_g() -> None:
    p = probabilities(1.0)
    one, other = (gauss_newton.hessian_terms(p, y, SLOPES, 0 * CURVED) for y in (0, 2))

    assert not one.h_term.any() and not other.h_term.any()
    assert_allclose(one.gauss_newton, SLOPES.T @ softmax.covariance(p) @ SLOPES, rtol=1e-14)
    assert_allclose(one.gauss_newton, other.gauss_newton, rtol=0)


def test_trace_is_that_of_the_matrix_for_every_sample() -> None:
    rng = np.random.default_rng(0)
    p, heat = rng.dirichlet(np.ones(4), size=6), rng.uniform(0.5, 2, 6)
    jacobian, second = rng.standard_normal((6, 4, 3)), rng.standard_normal((6, 4, 3, 3))
    terms = gauss_newton.hessian_terms(p, [0, 1, 2, 3, 0, 1], jacobian, second, temperature=heat)

    found = gauss_newton.gauss_newton_trace(p, jacobian, temperature=heat)
    assert_allclose(found, np.trace(terms.gauss_newton, axis1=1, axis2=2), rtol=1e-13)
    assert np.all(np.linalg.eigvalsh(terms.gauss_newton) > -1e-14)
