r"""Entropy and Gamma of a prediction: how often they order two predictions differently.

=======================  ========================================================================================
name                     symbol (beside Vysogorets, Dawid and Kempe 2024, Figure 4, right)
=======================  ========================================================================================
`entropy_discordance`    :math:`\Pr[(H(p) - H(q)) (\Gamma_p - \Gamma_q) < 0]`, p and q uniform on the simplex
=======================  ========================================================================================

Along a ray of temperatures both fall together; between rays they do not. Offered by `theory.softmax` too.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from functools import cache

import numpy as np
from numpy.typing import NDArray

from theory import _checks
from theory.softmax._softmax import excess_of_rows

__all__ = ["entropy_discordance"]

Floats = NDArray[np.float64]

_POINTS = 9000  # of the quasi-random sequence; 63,000 change the share by 6e-4
_MOST = 20  # classes; the sequence fills no space of many more dimensions


def entropy_discordance(classes: int) -> float:
    r"""Share of pairs of random predictions that entropy and Gamma order differently.

    Both predictions are uniform on the simplex; an integral without a closed form, by quasi-random points.

    Parameters
    ----------
    classes
        Number K of classes, 3 to 20. Of two classes Gamma is 1 whatever the entropy.

    Returns
    -------
    From 0 to 1, to 6e-4.

    Raises
    ------
    ValueError
        If `classes` is not a whole number from 3 to 20.

    References
    ----------
    Beside Vysogorets, Dawid and Kempe (2024), Figure 4, right. The points are the additive recurrence of Roberts
    (2018), "The unreasonable effectiveness of quasirandom sequences", the gaps of its sorted coordinates.

    Examples
    --------
    >>> round(entropy_discordance(4), 3), round(entropy_discordance(10), 3)
    (0.128, 0.036)
    """
    return _discordance(_checks.integer("classes", classes, least=3, most=_MOST))


@cache
def _discordance(classes: int) -> float:
    p = _simplex(classes)
    log_p = np.log(p)
    gammas = excess_of_rows(log_p, np.ones(len(p)))
    by_entropy = gammas[np.argsort(-(p * log_p).sum(axis=1))]
    return 2 * _inversions(by_entropy) / (_POINTS * (_POINTS - 1))


def _simplex(classes: int) -> Floats:
    """Points that fill the simplex evenly."""
    axes = classes - 1
    root = float(np.roots([1.0, *[0.0] * (axes - 1), -1.0, -1.0]).real.max())
    steps = root ** -np.arange(1.0, classes)
    inner = np.sort((0.5 + np.outer(np.arange(1, _POINTS + 1), steps)) % 1.0, axis=1)
    return np.diff(inner, axis=1, prepend=0.0, append=1.0)


def _inversions(values: Floats) -> int:
    """Pairs of which the larger comes first."""
    before: list[float] = []
    count = 0
    for value in values.tolist():
        count += len(before) - bisect_right(before, value)
        insort(before, value)
    return count
