"""Which matrix decides on the rate of full gradients: the words that `measure` and `plan` have in common."""

from __future__ import annotations

from collections.abc import Iterator

from verify.page.wording import numeral


def full_gradient_lines(hessian: float, gauss_newton: float) -> Iterator[str]:
    """2 over the largest eigenvalue of H and of G, each with what it decides; of a matrix without one, nothing.

    Parameters
    ----------
    hessian, gauss_newton
        Largest eigenvalues of the Hessian H of the loss on all data, and of its Gauss-Newton part G.

    Examples
    --------
    >>> first, second = full_gradient_lines(8.0, 10.0)
    >>> first[:49]
    '2/λ₁(H) = 0.25: H decides for full gradients, lin'
    """
    if hessian > 0:
        yield (
            f"2/λ₁(H) = {numeral(2 / hessian, 3)}: H decides for full gradients, linearised at these parameters:"
            " gradient descent is stable below"
        )
    if gauss_newton > 0:
        yield (
            f"2/λ₁(G) = {numeral(2 / gauss_newton, 3)}: G, the Gauss-Newton part of H, decides in the bracket of"
            " batches; the two meet as outputs fit the targets"
        )
