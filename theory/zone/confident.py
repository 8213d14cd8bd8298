r"""What is left of the Gauss-Newton part where every sample is torn between its two likeliest classes alone.

========================  ==========================================================================================
name                      symbol (Vysogorets, Dawid and Kempe 2024, Section 3 and Appendix D)
========================  ==========================================================================================
``gaps``                  :math:`\Delta_\mu`, between the two largest logits of the unscaled network
``squared_slopes``        :math:`|\nabla \Delta_\mu|^2`, of that gap by the weights
`confident_log_trace`     :math:`\log \mathrm{Tr}\, G` at large :math:`\alpha`
========================  ==========================================================================================

Offered by `theory.zone` too.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from theory import _checks

__all__ = ["confident_log_trace"]

Floats = NDArray[np.float64]


@np.errstate(over="ignore", divide="ignore", invalid="ignore")
def confident_log_trace(
    gaps: ArrayLike,
    squared_slopes: ArrayLike,
    *,
    alpha: ArrayLike,
    depth: int,
    temperature: ArrayLike = 1.0,
) -> Floats:
    r"""Logarithm of the trace of G at large scale, where only two classes of each sample count.

    .. math:: \mathrm{Tr}\, G = \frac{\alpha^{2L-2}}{N T^2} \sum_\mu p_1 p_2\, |\nabla \Delta_\mu|^2, \quad
              p_1 p_2 = \frac{1}{4 \cosh^2(\alpha^L \Delta_\mu / 2T)}

    It falls as :math:`e^{-\alpha^L \Delta/T}` with the smallest gap, and never to zero: floats would have it there.

    Parameters
    ----------
    gaps
        :math:`\Delta_\mu \ge 0`, shape (..., N).
    squared_slopes
        :math:`|\nabla \Delta_\mu|^2 \ge 0` by all weights, or by those of one layer for its block of G, not all zero,
        shape (..., N).
    alpha
        :math:`\alpha > 0`, shape (...).
    depth
        Number L >= 1 of layers with weights.
    temperature
        T > 0, shape (...).

    Returns
    -------
    Shape (...). It leaves out all classes but two: of relative order :math:`e^{-\alpha^L \Delta'/T}` with the gap to
    the third.

    Raises
    ------
    ValueError
        If `gaps` or `squared_slopes` is negative or not finite, or the latter all zero, `alpha` or `temperature` is
        not positive and finite, or `depth` is not a whole number >= 1; if the result overflows.

    References
    ----------
    Beside Vysogorets, Dawid and Kempe (2024), Section 3, on the collapse of G; the law is not in the paper.

    Examples
    --------
    >>> confident_log_trace([0.5, 0.25], [1.0, 3.0], alpha=10.0, depth=3).round(6)
    np.float64(-240.384195)
    """
    gap, slope = _checks.nonnegative("gaps", gaps), _checks.nonnegative("squared_slopes", squared_slopes)
    gap, slope = (np.atleast_1d(part) for part in _checks.together(gaps=gap, squared_slopes=slope))
    _checks.require(
        slope.max(axis=-1, initial=0.0) > 0,
        "squared_slopes",
        "not all zero along the last axis",
        squared_slopes,
    )
    power = _checks.layers("depth", depth, least=1)
    leading, a, heat = _checks.together(
        gaps=gap[..., 0],
        alpha=_checks.positive("alpha", alpha),
        temperature=_checks.positive("temperature", temperature),
    )
    _checks.fits("gaps", 96.0 * leading.size * gap.shape[-1], gap.shape)
    steep = gap * (a ** float(power) / heat)[..., None]
    logs = np.log(slope) - steep - 2.0 * np.log1p(np.exp(-steep))
    found = np.logaddexp.reduce(logs, axis=-1) - np.log(gap.shape[-1])
    found = found + (2.0 * power - 2.0) * np.log(a) - 2.0 * np.log(heat)
    return _checks.representable(found, gaps=gaps, alpha=alpha, depth=depth, temperature=temperature)
