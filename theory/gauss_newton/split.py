r"""Gradient and Hessian of the cross-entropy of one sample from the derivatives of its logits: no model, no limit.

======================  ================================================================  =========================
name                    symbol                                                            Vysogorets, Dawid, Kempe
                                                                                          (2024)
======================  ================================================================  =========================
``p``                   :math:`p = \mathrm{softmax}(z / T)`                               Eq. (1)
``label``               y
``jacobian``            :math:`J_k = \nabla z_k`, shape (..., K, d)
``second``              :math:`\nabla^2 z_k`, shape (..., K, d, d)
`loss_gradient`         :math:`\nabla \ell`                                               Eq. (3)
`hessian_terms`         G and :math:`\tilde H`                                            Eq. (4)
`gauss_newton_trace`    :math:`\mathrm{Tr}\, G`                                           Appendix A
======================  ================================================================  =========================

The loss of a data set is the mean over its samples, and so are these: take the mean over the leading axis.

The variance of Hutchinson's estimates of a trace, :math:`x^\top A x` with a random probe x:

========================  =====================================================  ==================================
name                      symbol                                                 source
========================  =====================================================  ==================================
``squared_norm``          :math:`\|A\|_F^2`
``squared_diagonal``      :math:`\sum_i A_{ii}^2`
`sign_probe_variance`     :math:`x_i = \pm 1`                                    Hutchinson (1990)
`normal_probe_variance`   :math:`x \sim N(0, I)`                                 Avron and Toledo (2011), Lemma 5
========================  =====================================================  ==================================

The mean is :math:`\mathrm{Tr} A` with either probe. With :math:`A = H^2` the same formulas are those of
:math:`\|H x\|^2`, whose mean is :math:`\|H\|_F^2`: the estimates of Vysogorets, Dawid and Kempe (2024), Appendix F.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from theory._checks import (
    Floats,
    closed_form,
    finite,
    fits,
    nonnegative,
    positive,
    probabilities,
    require,
    together,
)


class HessianTerms(NamedTuple):
    r"""The two parts of the Hessian of a loss, which add up to it.

    Attributes
    ----------
    gauss_newton
        :math:`G = J^\top (\mathrm{diag}(p) - p p^\top) J / T^2`.
    h_term
        :math:`\tilde H = \sum_k (p - e_y)_k \nabla^2 z_k / T`.
    """

    gauss_newton: Floats
    h_term: Floats


@closed_form
def loss_gradient(
    p: ArrayLike, label: ArrayLike, jacobian: ArrayLike, *, temperature: ArrayLike = 1.0
) -> Floats:
    r"""Gradient of the cross-entropy, :math:`\frac{1}{T}\big[-\nabla z_y + \sum_k p_k \nabla z_k\big]`.

    Parameters
    ----------
    p
        Probabilities at this temperature, shape (..., K).
    label
        Number of the class, from 0 to K - 1, shape (...).
    jacobian
        Gradients of the logits, shape (..., K, d).
    temperature
        T > 0, shape (...).

    Returns
    -------
    Shape (..., d).

    Raises
    ------
    ValueError
        If `p` is not a probability vector along its last axis, `label` is not a class, `jacobian` is not finite or
        has not K rows, or `temperature` is not positive and finite; if the result overflows.

    References
    ----------
    Vysogorets, Dawid and Kempe (2024), Section 3, Eq. (3).

    Examples
    --------
    >>> loss_gradient([0.75, 0.25], 1, [[1.0, 0.0], [0.0, 1.0]], temperature=0.5)
    array([ 1.5, -1.5])
    """
    probabilities, rows, heat = _checked(p, jacobian, temperature)
    residuals = _residuals(probabilities, label, rows, heat)
    return (residuals[..., None, :] @ rows)[..., 0, :] / heat[..., None]


@closed_form
def hessian_terms(
    p: ArrayLike, label: ArrayLike, jacobian: ArrayLike, second: ArrayLike, *, temperature: ArrayLike = 1.0
) -> HessianTerms:
    r"""The Gauss-Newton part and the H-term of the Hessian of the cross-entropy.

    Only the H-term depends on the label.

    Parameters
    ----------
    p
        Probabilities at this temperature, shape (..., K).
    label
        Number of the class, from 0 to K - 1, shape (...).
    jacobian
        Gradients of the logits, shape (..., K, d).
    second
        Hessians of the logits, shape (..., K, d, d).
    temperature
        T > 0, shape (...).

    Returns
    -------
    Both parts, shape (..., d, d).

    Raises
    ------
    ValueError
        If `p` is not a probability vector along its last axis, `label` is not a class, `jacobian` or `second` is not
        finite or of another shape, or `temperature` is not positive and finite; if the result overflows.

    References
    ----------
    Vysogorets, Dawid and Kempe (2024), Section 3, Eq. (4).

    Examples
    --------
    >>> hessian_terms([0.5, 0.5], 0, [[2.0], [0.0]], [[[6.0]], [[2.0]]], temperature=0.5)
    HessianTerms(gauss_newton=array([[4.]]), h_term=array([[-4.]]))
    """
    probabilities, rows, heat = _checked(p, jacobian, temperature)
    residuals = _residuals(probabilities, label, rows, heat)
    curved = finite("second", second)
    shape = (*rows.shape[-2:], rows.shape[-1])
    require(
        curved.ndim >= 3 and curved.shape[-3:] == shape, "second", f"of shape (..., {shape})", curved.shape
    )
    together(jacobian=rows[..., 0, 0], second=curved[..., 0, 0, 0], label=residuals[..., 0])
    heated = rows / heat[..., None, None]
    # about the mean gradient, so that diag(p) - p p' is no difference of nearly equal numbers
    centred = heated - probabilities[..., None, :] @ heated
    g_term = heated.mT @ (probabilities[..., :, None] * centred)
    return HessianTerms(g_term, np.einsum("...k,...kij->...ij", residuals, curved) / heat[..., None, None])


@closed_form
def gauss_newton_trace(p: ArrayLike, jacobian: ArrayLike, *, temperature: ArrayLike = 1.0) -> Floats:
    r"""Trace of the Gauss-Newton part, :math:`\frac{1}{T^2}\big[\sum_k p_k |J_k|^2 - |\sum_k p_k J_k|^2\big]`.

    Of a bias-free ReLU network it is the trace of the whole Hessian: the H-term has no diagonal blocks.

    Parameters
    ----------
    p
        Probabilities at this temperature, shape (..., K).
    jacobian
        Gradients of the logits, shape (..., K, d).
    temperature
        T > 0, shape (...).

    Returns
    -------
    Shape (...).

    Raises
    ------
    ValueError
        If `p` is not a probability vector along its last axis, `jacobian` is not finite or has not K rows, or
        `temperature` is not positive and finite; if the result overflows.

    References
    ----------
    Follows from Vysogorets, Dawid and Kempe (2024), Eq. (4) and Appendix A.

    Examples
    --------
    >>> gauss_newton_trace([0.5, 0.5], [[2.0, 0.0], [0.0, 2.0]])
    np.float64(2.0)
    """
    probabilities, rows, heat = _checked(p, jacobian, temperature)
    heated = rows / heat[..., None, None]
    heated = heated - probabilities[..., None, :] @ heated
    return (probabilities * np.einsum("...d,...d->...", heated, heated)).sum(axis=-1)


def _checked(p: ArrayLike, jacobian: ArrayLike, temperature: ArrayLike) -> tuple[Floats, Floats, Floats]:
    """Probabilities, gradients of logits and temperatures that fit together."""
    p, rows = probabilities("p", p), finite("jacobian", jacobian)
    classes = p.shape[-1]
    shaped = rows.ndim >= 2 and rows.shape[-2] == classes and rows.shape[-1] > 0
    require(shaped, "jacobian", f"of shape (..., {classes}, d)", rows.shape)
    heat = positive("temperature", temperature)
    leading, *_ = together(p=p[..., 0], jacobian=rows[..., 0, 0], temperature=heat)
    fits("jacobian", 8.0 * leading.size * math.prod(rows.shape[-2:]), rows.shape)
    return p, rows, heat


def _residuals(p: Floats, label: ArrayLike, rows: Floats, heat: Floats) -> Floats:
    """Probabilities less the one-hot label."""
    place = nonnegative("label", label)
    classes = p.shape[-1]
    require((place < classes) & (place == np.floor(place)), "label", f"a whole number below {classes}", label)
    together(label=place, p=p[..., 0], jacobian=rows[..., 0, 0], temperature=heat)
    one_hot = np.asarray(place[..., None] == np.arange(classes), dtype=np.float64)
    return p - one_hot


@closed_form
def sign_probe_variance(squared_norm: ArrayLike, *, squared_diagonal: ArrayLike) -> Floats:
    r"""Variance of :math:`x^\top A x` over independent signs, :math:`2 (\|A\|_F^2 - \sum_i A_{ii}^2)`.

    The diagonal adds nothing to the variance: of a diagonal matrix every probe shows the trace.

    Parameters
    ----------
    squared_norm
        :math:`\|A\|_F^2 \ge 0` of a symmetric matrix.
    squared_diagonal
        :math:`\sum_i A_{ii}^2`, from 0 to `squared_norm`.

    Returns
    -------
    Broadcast shape of both, in their unit.

    Raises
    ------
    ValueError
        If an argument is negative or not finite, or `squared_diagonal` exceeds `squared_norm`; if the result
        overflows.

    References
    ----------
    Hutchinson (1990), "A stochastic estimator of the trace of the influence matrix for Laplacian smoothing splines".

    Examples
    --------
    >>> sign_probe_variance(3.0, squared_diagonal=[0.5, 3.0])
    array([5., 0.])
    """
    whole, diagonal = together(
        squared_norm=(nonnegative, squared_norm),
        squared_diagonal=(nonnegative, squared_diagonal),
    )
    require(diagonal <= whole * (1 + 1e-12), "squared_diagonal", "at most squared_norm", squared_diagonal)
    return 2.0 * np.maximum(whole - diagonal, 0.0)


@closed_form
def normal_probe_variance(squared_norm: ArrayLike) -> Floats:
    r"""Variance of :math:`x^\top A x` over standard normal probes, :math:`2 \|A\|_F^2`.

    Parameters
    ----------
    squared_norm
        :math:`\|A\|_F^2 \ge 0` of a symmetric matrix.

    Returns
    -------
    Shape and unit of `squared_norm`.

    Raises
    ------
    ValueError
        If `squared_norm` is negative or not finite; if the result overflows.

    References
    ----------
    Avron and Toledo (2011), "Randomized algorithms for estimating the trace of an implicit symmetric positive
    semi-definite matrix", Lemma 5.

    Examples
    --------
    >>> normal_probe_variance([3.0, 0.5])
    array([6., 1.])
    """
    return 2.0 * nonnegative("squared_norm", squared_norm)
