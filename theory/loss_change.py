r"""Change of the loss in one step, to second order, and fluctuations of the squared gradient of a batch.

==========================  ================================  ================================================
name                        symbol                            Granziol, Zohren and Roberts (2022)
==========================  ================================  ================================================
`quadratic_change`          L(w - a A^-1 g) - L(w)            eq. (22); first line of eq. (26), sign corrected
`descent_bound`             -a |g|^2 (1 - a lambda_1/2)       eq. (22)
`mean_descent_limit`                                      section 10.1, eq. (22) in the mean over batches
`sign_averaged_change`                                        second line of eq. (26), sign corrected
`squared_gradient_mean`     |g|^2 + tr C/B                    section 11.2, corrected
`squared_gradient_variance` 4 g'C g/B + 2 tr C^2/B^2          section 11.2, corrected
``preconditioner``          A = sum_i (eta_i + delta)         B + delta there, damping included; B is the batch
                            phi_i phi_i'                      size too
``covariance``              C                                 of the gradient of one sample
==========================  ================================  ================================================

Vectors have shape (..., P), matrices (..., P, P); leading axes broadcast.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from theory._checks import (
    Floats,
    closed_form,
    finite,
    nonnegative,
    positive,
    require,
    require_symmetric,
    shown,
    together,
)

__all__ = [
    "descent_bound",
    "mean_descent_limit",
    "quadratic_change",
    "sign_averaged_change",
    "squared_gradient_mean",
    "squared_gradient_variance",
]


@closed_form
def quadratic_change(
    rate: ArrayLike, gradient: ArrayLike, hessian: ArrayLike, *, preconditioner: ArrayLike | None = None
) -> Floats:
    r"""Change of a quadratic loss in a step: :math:`-a\, g^\top A^{-1} g + \frac{a^2}{2} g^\top A^{-1} H A^{-1} g`.

    Parameters
    ----------
    rate
        a, finite, of the shape of the leading axes.
    gradient, hessian
        g (..., P) and H (..., P, P), symmetric.
    preconditioner
        A (..., P, P), symmetric and invertible; the identity if left out.

    Returns
    -------
    Change of the loss, exact for a quadratic and up to third order in a otherwise.

    Raises
    ------
    ValueError
        If the shapes do not fit, an entry is not finite, a matrix is not symmetric or A cannot be inverted.

    References
    ----------
    Granziol, Zohren and Roberts (2022), eq. (22), whose middle term lacks 1/|g|^2 in our copy, and the first line of
    eq. (26), whose first term is positive there.

    Examples
    --------
    >>> float(quadratic_change(0.5, [1.0, 2.0], [[4.0, 0.0], [0.0, 1.0]]))
    -1.5
    """
    conditioned = {} if preconditioner is None else {"preconditioner": preconditioner}
    g, h, *a = _problem(gradient, hessian=hessian, **conditioned)
    step = _solved(a[0], g[..., None])[..., 0] if a else g
    first, second = (g * step).sum(axis=-1), (step * (h @ step[..., None])[..., 0]).sum(axis=-1)
    return _change(rate, first, second)


@closed_form
def descent_bound(rate: ArrayLike, *, squared_gradient: ArrayLike, sharpness: ArrayLike) -> Floats:
    r"""Most that a plain step can change a quadratic loss: :math:`-a |g|^2 (1 - a \lambda_1/2)`.

    Of one batch, with its own gradient and its own largest eigenvalue. It does not hold between means over batches:
    :math:`|g_B|^2` and :math:`\lambda_1(H_B)` are correlated, and a below 2/E lambda_1 does not ensure descent.

    Parameters
    ----------
    rate
        a, finite.
    squared_gradient
        |g|^2 >= 0.
    sharpness
        lambda_1, any sign.

    Returns
    -------
    Bound, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    References
    ----------
    Granziol, Zohren and Roberts (2022), eq. (22).

    Examples
    --------
    >>> float(descent_bound(0.5, squared_gradient=5.0, sharpness=2.0))
    -1.25
    """
    rate, squared, sharpness = together(
        rate=(finite, rate),
        squared_gradient=(nonnegative, squared_gradient),
        sharpness=(finite, sharpness),
    )
    return _change(rate, squared, squared * sharpness)


@closed_form
def sign_averaged_change(
    rate: ArrayLike, gradient: ArrayLike, hessian: ArrayLike, *, preconditioner: ArrayLike
) -> Floats:
    r"""`quadratic_change` averaged over independent signs of the gradient along the eigenvectors of A.

    With A = :math:`\sum_i (\eta_i + \delta)\, \phi_i \phi_i^\top` a single sum,
    :math:`-\sum_i \frac{a (\phi_i^\top g)^2}{\eta_i + \delta} \Big(1 - \frac{a}{2 (\eta_i + \delta)}
    \phi_i^\top H \phi_i\Big)`. For one gradient it is the change only if A and H commute.

    Parameters
    ----------
    rate, gradient, hessian, preconditioner
        As in `quadratic_change`; the eigenvalues of A, damping included, must differ, so that its eigenvectors are
        unique.

    Returns
    -------
    Mean change of the loss.

    Raises
    ------
    ValueError
        As `quadratic_change`, and where two eigenvalues of A are closer than a billionth of the largest.

    References
    ----------
    Granziol, Zohren and Roberts (2022), second line of eq. (26), where :math:`\phi_i^\top H \phi_i` is a sum over
    the eigenvectors psi of H; it lacks the leading minus in our copy.

    Examples
    --------
    >>> change = {"hessian": [[4.0, 1.0], [1.0, 1.0]], "preconditioner": [[2.0, 0.0], [0.0, 5.0]]}
    >>> mean = sign_averaged_change(0.5, [1.0, 2.0], **change)
    >>> one, other = (quadratic_change(0.5, [1.0, g], **change) for g in (2.0, -2.0))
    >>> bool(np.isclose(mean, (one + other) / 2)), bool(np.isclose(mean, one))
    (True, False)
    """
    g, h, a = _problem(gradient, hessian=hessian, preconditioner=preconditioner)
    values, vectors = np.linalg.eigh(a)
    step = (vectors.mT @ _solved(a, g[..., None]))[..., 0]
    gaps, largest = np.diff(values), np.abs(values).max(axis=-1, keepdims=True)
    # equal eigenvalues leave their eigenvectors, and hence the signs, undetermined
    require(gaps > 1e-9 * largest, "preconditioner", "a matrix with distinct eigenvalues", preconditioner)
    components = (vectors.mT @ g[..., None])[..., 0]
    curvatures = (vectors * (h @ vectors)).sum(axis=-2)
    return _change(rate, (components * step).sum(axis=-1), (step**2 * curvatures).sum(axis=-1))


@closed_form
def mean_descent_limit(squared_gradients: ArrayLike, sharpness: ArrayLike) -> Floats:
    r"""Rate below which steps descend in the mean over batches.

    .. math:: 2\, \mathrm{E}|g_B|^2 / \mathrm{E}(|g_B|^2 \lambda_B)

    The bound of `descent_bound`, averaged over batches that are drawn alike: where sharp batches have large gradients
    it is below :math:`2 / \mathrm{E} \lambda_B`, which guarantees nothing.

    Parameters
    ----------
    squared_gradients
        :math:`|g_B|^2 \ge 0` of each batch along the last axis, not all 0.
    sharpness
        :math:`\lambda_B > 0`, largest eigenvalue of the Hessian of each batch, in the same order.

    Returns
    -------
    Learning rate, of the shape of the leading axes.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or all gradients are 0.

    References
    ----------
    Ours, beside Granziol, Zohren and Roberts (2022), section 10.1, on eq. (22) in expectation.

    Examples
    --------
    >>> float(mean_descent_limit([1.0, 3.0], [2.0, 2.0]))
    1.0
    >>> float(mean_descent_limit([1.0, 3.0], [1.0, 5.0]))
    0.5
    """
    squares, tops = together(
        squared_gradients=(nonnegative, squared_gradients),
        sharpness=(positive, sharpness),
    )
    require(squares.ndim >= 1 and squares.shape[-1] >= 1, "squared_gradients", "a vector", squared_gradients)
    largest = squares.max(axis=-1, keepdims=True)
    require(largest > 0, "squared_gradients", "not all 0", squared_gradients)
    # relative to the largest, so that the sums do not overflow
    weights = squares / largest
    return 2 * weights.sum(axis=-1) / (weights * tops).sum(axis=-1)


@closed_form
def squared_gradient_mean(squared_gradient: ArrayLike, *, trace: ArrayLike, batch_size: ArrayLike) -> Floats:
    r"""Mean squared gradient of a batch: :math:`E|g_B|^2 = |g|^2 + \mathrm{tr}\,C/B`.

    Parameters
    ----------
    squared_gradient
        |g|^2 >= 0 of the mean gradient.
    trace
        tr C >= 0, C the covariance of the gradient of one sample.
    batch_size
        Positive: B for independent samples, the effective b for batches without replacement (divisor N - 1 in C).

    Returns
    -------
    Mean, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    References
    ----------
    Granziol, Zohren and Roberts (2022), section 11.2, where it does not depend on B.

    Examples
    --------
    >>> squared_gradient_mean(4.0, trace=3.0, batch_size=[1, 6])
    array([7. , 4.5])
    """
    squared, trace, batch = together(
        squared_gradient=(nonnegative, squared_gradient),
        trace=(nonnegative, trace),
        batch_size=(positive, batch_size),
    )
    return squared + trace / batch


@closed_form
def squared_gradient_variance(
    covariance_along: ArrayLike, *, trace_of_square: ArrayLike, batch_size: ArrayLike
) -> Floats:
    r"""Variance of the squared gradient of a batch: :math:`4 g^\top C g/B + 2\, \mathrm{tr}\,C^2/B^2`.

    For normal gradients of the samples; otherwise up to terms of third order in 1/B.

    Parameters
    ----------
    covariance_along
        g'C g >= 0.
    trace_of_square
        tr C^2 >= 0.
    batch_size
        As in `squared_gradient_mean`.

    Returns
    -------
    Variance, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    References
    ----------
    Granziol, Zohren and Roberts (2022), section 11.2, where it falls as 1/B^2: that needs B |g|^2 well below tr C.

    Examples
    --------
    >>> squared_gradient_variance(3.0, trace_of_square=8.0, batch_size=[1, 4])
    array([28.,  4.])
    """
    along, square, batch = together(
        covariance_along=(nonnegative, covariance_along),
        trace_of_square=(nonnegative, trace_of_square),
        batch_size=(positive, batch_size),
    )
    return 4 * (along / batch) + 2 * (square / batch / batch)


def _change(rate: ArrayLike, first: Floats, second: Floats) -> Floats:
    rate, first, second = together(rate=(finite, rate), gradient=first, hessian=second)
    # the square of the rate may overflow or vanish where its product with the curvature does not
    return -rate * first + rate / 2 * (rate * second)


def _problem(gradient: ArrayLike, **matrices: ArrayLike) -> tuple[Floats, ...]:
    """The gradient and the matrices, checked."""
    g = finite("gradient", gradient)
    require(g.ndim >= 1 and g.size > 0, "gradient", "of shape (..., P)", g.shape)
    found = {name: _matrix(name, value, g.shape[-1]) for name, value in matrices.items()}
    together(gradient=g[..., 0], **{name: matrix[..., 0, 0] for name, matrix in found.items()})
    return g, *found.values()


def _matrix(name: str, value: ArrayLike, size: int) -> Floats:
    matrix = finite(name, value)
    require(
        matrix.shape[-2:] == (size, size) and matrix.size,
        name,
        f"of shape (..., {size}, {size})",
        matrix.shape,
    )
    require_symmetric(name, matrix, 1e-9)
    return matrix


def _solved(matrix: Floats, right: Floats) -> Floats:
    try:
        return np.asarray(np.linalg.solve(matrix, right), dtype=np.float64)
    except np.linalg.LinAlgError:
        raise ValueError(f"preconditioner must be invertible, got {shown(matrix)}") from None
