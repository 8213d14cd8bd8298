r"""Bounds on the distance of extreme Ritz values of the Lanczos method from the eigenvalues.

=================  ==================  =========================================================
name               symbol              Granziol, Zohren and Roberts (2022), appendix D
=================  ==================  =========================================================
``eigenvalue``     lambda_1, lambda_n  at the end that is looked at
``neighbour``      lambda_2, lambda_m  the next one, lambda_{n-1} for the bottom end
``opposite``       lambda_n, lambda_1  at the other end
``angle``          phi_1, phi_n        between start and eigenvector, arccos |q_1' z|
``steps``          k                   of the method
=================  ==================  =========================================================
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from theory._checks import Floats, count, finite, quiet, representable, require, together, within

__all__ = ["ritz_value_bound"]


@quiet
def ritz_value_bound(
    eigenvalue: ArrayLike, neighbour: ArrayLike, opposite: ArrayLike, *, angle: ArrayLike, steps: int
) -> Floats:
    r"""Bound on an extreme Ritz value, which lies between it and the eigenvalue (Kaniel, Paige and Saad).

    :math:`\lambda_1 \ge \theta_1 \ge \lambda_1 - (\lambda_1 - \lambda_n) \tan^2\phi_1 / c_{k-1}^2(1 + 2\rho_1)`,
    :math:`\rho_1 = (\lambda_1 - \lambda_2) / (\lambda_2 - \lambda_n)`, c the Chebyshev polynomials; the same
    formula for the bottom end, seen from there.

    Parameters
    ----------
    eigenvalue
        The largest or the smallest; any shape, as the three that follow.
    neighbour
        The next one, between `eigenvalue` and `opposite`.
    opposite
        The one at the other end: below `neighbour` for the largest, above for the smallest.
    angle
        Between the start and the eigenvector, in [0, pi/2]. The closer to a right angle, the weaker the bound.
    steps
        Products with the matrix, an integer >= 1; the Krylov space has that dimension.

    Returns
    -------
    The bound, of the broadcast shape, no further than `opposite`, beyond which no Ritz value lies.

    Raises
    ------
    ValueError
        If an eigenvalue is not finite, `neighbour` does not lie between the other two, `angle` is outside of
        [0, pi/2], `steps` is no integer >= 1, or the spread overflows.

    References
    ----------
    Granziol, Zohren and Roberts (2022), Theorem 12, whose tangent is of the Ritz value as our copy reads, and whose
    second line repeats the angle and the gap of the first. Golub and Van Loan (2013), section 10.1.

    Examples
    --------
    >>> [float(ritz_value_bound(2.0, 1.0, -1.0, angle=1.3, steps=k).round(4)) for k in (1, 4, 8)]
    [-1.0, 1.9424, 2.0]
    >>> float(ritz_value_bound(-2.0, -1.0, 1.0, angle=1.3, steps=4).round(4))
    -1.9424
    """
    at, near, other, phi = together(
        eigenvalue=(finite, eigenvalue),
        neighbour=(finite, neighbour),
        opposite=(finite, opposite),
        angle=within("angle", angle, 0.0, np.pi / 2),
    )
    order = count("steps", steps) - 1
    between = ((at >= near) & (near >= other)) | ((at <= near) & (near <= other))
    require(between, "neighbour", "between eigenvalue and opposite", neighbour)
    spread = representable(np.abs(at - other), eigenvalue=eigenvalue, opposite=opposite)
    gap, rest = np.abs(at - near), np.abs(near - other)
    # if all others are equal, rho is infinite, or 0 if the end is equal to them too
    rho = np.divide(gap, rest, out=np.where(gap > 0, np.inf, 0.0), where=rest > 0)
    # the Chebyshev polynomial by arccosh(1 + 2 rho), with the digits of a small gap
    ratio = np.tan(phi) / np.cosh(order * 2 * np.arcsinh(np.sqrt(rho)) if order else np.zeros_like(rho))
    loss = np.minimum(ratio * (ratio * spread), spread)
    # a difference may be rounded past the end that it is measured from
    return np.clip(at - np.sign(at - other) * loss, np.minimum(at, other), np.maximum(at, other))
