"""Lines on the stable rate of full-batch gradient descent, shared by `measure` and `plan`."""

from __future__ import annotations

from collections.abc import Iterator

from verify.page.wording import numeral


def full_gradient_lines(hessian: float, gauss_newton: float) -> Iterator[str]:
    """Yield 2 over the largest eigenvalue of H and of G, each with its meaning, if the eigenvalue is positive.

    Parameters
    ----------
    hessian, gauss_newton
        Largest eigenvalues of the Hessian H of the loss on all data, and of its Gauss-Newton part G.

    Examples
    --------
    >>> first, second = full_gradient_lines(8.0, 10.0)
    >>> first[:43]
    '2/λ₁(H) = 0.25: full-batch gradient descent'
    """
    if hessian > 0:
        yield (
            f"2/λ₁(H) = {numeral(2 / hessian, 3)}: full-batch gradient descent, linearised here, is stable below it"
        )
    if gauss_newton > 0:
        yield (
            f"2/λ₁(G) = {numeral(2 / gauss_newton, 3)}: the same for G, which plan uses; equal once outputs fit targets"
        )
