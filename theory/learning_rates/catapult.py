r"""Gradient descent at large rates on a linear network with one hidden layer and one sample, exactly.

====================  =====================================  ====================================================
name                  symbol                                 Lewkowycz et al. (2020), arXiv 2003.02218, section 2
====================  =====================================  ====================================================
``output``            f = v.u/sqrt(n)                        output on the sample, its target 0
``curvature``         lambda = (\|u\|^2 + \|v\|^2)/n           tangent kernel; Hessian of f^2/2 where f = 0
``width``             n                                      hidden neurons
``product``           eta lambda_0                           rate times the first curvature
`step`                f', lambda'                            the two equations of the update
`growth_steps`        t ~ log n                              steps that the loss grows for
`final_product`       eta lambda_end < 2                     by the steps; its mean `mean_final_product`
`curvature_drop`      O(1/n)                                 change of the curvature below 2/lambda_0
`largest_product`     eta_max lambda_0 = 4
====================  =====================================  ====================================================

In z = eta \|f\|/sqrt(n) and a = eta lambda the width is gone: z' = z\|1 - a + z^2\| and a' = a - z^2 (4 - a).
Parameters have a >= 2z. If a_0 < 4 then a falls and stays positive, so that the sum of z^2 is finite and z goes to 0;
and z = 0 repels where a > 2, so that a ends at 2 or below. If a_0 > 4 then a grows for ever. This holds at every width.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from theory._checks import (
    Floats,
    closed_form,
    count,
    finite,
    inside,
    positive,
    quiet,
    require,
    scalar,
    together,
    whole,
)
from theory._roots import special
from theory.activations.gaussian import ConvergenceError

__all__ = [
    "Stepped",
    "curvature_drop",
    "final_product",
    "growth_steps",
    "largest_product",
    "mean_final_product",
    "step",
]


_SETTLED = 1e-4
"""Largest further loss of a at which a run counts as settled."""

_MOST_STEPS = 100_000

_NODES = 8192

"""Nodes of the midpoint rule over positive outputs (negative ones end at the same curvature)."""


class Stepped(NamedTuple):
    """Output f and curvature lambda after a step, each of the broadcast shape."""

    output: Floats
    curvature: Floats


@closed_form
def step(output: ArrayLike, curvature: ArrayLike, *, rate: ArrayLike, width: ArrayLike) -> Stepped:
    r"""Output and curvature after one step of descent on :math:`f^2/2`.

    :math:`f' = f (1 - \eta\lambda + \eta^2 f^2/n)` and :math:`\lambda' = \lambda + (\eta f^2/n) (\eta\lambda - 4)`.

    Parameters
    ----------
    output
        f, of any size. Parameters that give it have :math:`\lambda \ge 2|f|/\sqrt n`, which is not asked.
    curvature
        lambda, positive.
    rate
        eta, positive.
    width
        n, a whole number.

    Returns
    -------
    Both of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or a result too large for a number.

    References
    ----------
    Lewkowycz, Bahri, Dyer, Sohl-Dickstein and Gur-Ari (2020), The large learning rate phase of deep learning: the
    catapult mechanism, arXiv 2003.02218, section 2, the update of f and of lambda.

    Examples
    --------
    >>> after = step(2.0, 3.0, rate=0.5, width=4)
    >>> float(after.output), float(after.curvature)
    (-0.5, 1.75)
    """
    f, at, eta, n = together(
        output=(finite, output),
        curvature=(positive, curvature),
        rate=(positive, rate),
        width=(whole, width),
    )
    moved = eta * f / np.sqrt(n)
    return Stepped(f * (1 - eta * at + moved**2), at + moved * (f / np.sqrt(n)) * (eta * at - 4))


def largest_product() -> float:
    r"""Largest :math:`\eta\lambda_0` at which descent converges, 4 at every width.

    References
    ----------
    Lewkowycz et al. (2020), section 2; for every width as in the notes of this module.

    Examples
    --------
    >>> largest_product()
    4.0
    """
    return 4.0


@closed_form
def growth_steps(product: ArrayLike, *, ratio: ArrayLike) -> Floats:
    r"""Number of steps by which the highest loss comes later in a network `ratio` times as wide.

    :math:`\log r/(2\log(\eta\lambda_0 - 1))`. The output starts at the same size and grows by
    :math:`\eta\lambda_0 - 1` a step until it is of size :math:`\sqrt n`. Where in a step that falls is a matter of
    chance: the mean over initial outputs is meant.

    Parameters
    ----------
    product
        :math:`\eta\lambda_0`, in (2, 4).
    ratio
        r, positive.

    Returns
    -------
    Steps, of the broadcast shape, negative for a ratio below 1.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    References
    ----------
    Lewkowycz et al. (2020), section 2, where the time is of order log n; the constant is ours.

    Examples
    --------
    >>> float(growth_steps(3.0, ratio=16.0))
    2.0
    """
    a, r = together(product=inside("product", product, 2, 4), ratio=(positive, ratio))
    return np.log(r) / (2 * np.log(a - 1))


@closed_form
def curvature_drop(output: ArrayLike, product: ArrayLike) -> Floats:
    r"""Share of the curvature that descent takes off at a small rate, to first order in 1/n.

    The output falls by :math:`1 - \eta\lambda_0` a step, so that :math:`1 - \lambda_{end}/\lambda_0` is
    :math:`z^2 (4 - a)/(a^2 (2 - a))` with :math:`a = \eta\lambda_0`. With unit normal parameters the mean of
    :math:`z^2/a^2` is :math:`1/(4 (n + 1))`.

    Parameters
    ----------
    output
        :math:`z = \eta f_0/\sqrt n`, small; of any size, which is not checked.
    product
        :math:`\eta\lambda_0`, in (0, 2).

    Returns
    -------
    Share, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or the share too large for a number.

    References
    ----------
    Lewkowycz et al. (2020), section 2, where it is of order 1/n; the constant is ours.

    Examples
    --------
    >>> round(float(curvature_drop(0.1, 1.0)), 12)
    0.03
    """
    z, a = together(output=(finite, output), product=inside("product", product, 0, 2))
    return (z / a) ** 2 * ((4 - a) / (2 - a))


@quiet
def final_product(output: ArrayLike, product: ArrayLike) -> Floats:
    r"""Where :math:`\eta\lambda` ends, by the exact steps.

    Parameters
    ----------
    output
        :math:`z = \eta f_0/\sqrt n`, not 0 and at most half of the product in size, as parameters have it.
    product
        :math:`\eta\lambda_0`, in (0, 4).

    Returns
    -------
    :math:`\eta\lambda_{end}`, below 2, within 0.0001, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its domain.
    ConvergenceError
        If 100000 steps do not settle it, for a product next to 4 or an end next to 2.

    References
    ----------
    Lewkowycz et al. (2020), section 2.

    Examples
    --------
    >>> final_product([0.001, 0.0013, 0.0016], 3.0).round(3)
    array([0.24 , 0.212, 0.188])
    """
    z, a = together(output=(finite, output), product=inside("product", product, 0, 4))
    require(z != 0, "output", "different from 0", output)
    require(np.abs(z) <= a / 2, "output", "at most half of the product in size", output)
    ends = np.full(z.size, np.nan)
    square, at, left = np.square(z).ravel(), a.ravel(), np.arange(z.size)
    for _ in range(_MOST_STEPS):
        # z shrinks by |1 - a| per step, so that a still loses at most 4 z^2 / (a (2 - a))
        moving = 4 * square >= _SETTLED * at * (2 - at)
        if not (moving.size and moving.all()):
            ends[left[~moving]] = at[~moving]
            square, at, left = square[moving], at[moving], left[moving]
            if not left.size:
                return ends.reshape(z.shape)[()]
        # the equations contain z only as z^2
        square, at = square * (1 - at + square) ** 2, at - square * (4 - at)
    raise ConvergenceError("the curvature did not settle in 100000 steps", estimate=at)


def mean_final_product(product: float, *, width: int) -> float:
    r"""Mean of `final_product` over networks with unit normal parameters.

    There :math:`z = \eta\lambda_0 (b - 1/2)` with :math:`b = |u+v|^2/(|u+v|^2 + |u-v|^2)`, which is of the law
    Beta(n/2, n/2) since u + v and u - v are independent.

    Parameters
    ----------
    product
        :math:`\eta\lambda_0`, in (0, 4).
    width
        n, a whole number, at most 10^24: beyond it outputs are less than the rounding of b.

    Returns
    -------
    Mean, within about a thousandth: by the rule of midpoints in the quantiles of b.

    Raises
    ------
    ValueError
        If an argument is out of its domain.
    ConvergenceError
        As in `final_product`.

    References
    ----------
    Lewkowycz et al. (2020), section 2, for the steps; the mean is ours.

    Examples
    --------
    >>> round(mean_final_product(3.0, width=100), 2)
    0.2
    """
    a = scalar("product", inside("product", product, 0, 4))
    n = count("width", width)
    if a < np.finfo(float).eps:  # what it moves by is less than its rounding
        return a
    b = special.betaincinv(n / 2, n / 2, 0.5 + (np.arange(_NODES) + 0.5) / (2 * _NODES))
    return float(final_product(a * (b - 0.5), a).mean())
