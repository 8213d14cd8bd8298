r"""Bounds on the cross-entropy of predictions that do not depend on the labels.

================  ============================================================  ==============================
name              symbol                                                        Vysogorets, Dawid, Kempe (2024)
================  ============================================================  ==============================
`jensen_bound`    :math:`\sum_k Q_k (-\log \hat Q_k)`                           Section 4, corrected
`prior_entropy`   :math:`H(Q)`, for balanced classes :math:`\log K`             Section 4, corrected
`gaussian_loss`   mean loss of Gaussian logits                                  beyond the paper
================  ============================================================  ==============================

Q are the frequencies of the classes, :math:`\hat Q` the predicted probabilities averaged over the data. At
initialisation predictions are independent of the labels, and the mean loss is at least `jensen_bound`, which is at
least `prior_entropy`: both are reached where every prediction is Q.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from theory._checks import (
    Floats,
    closed_form,
    distributions,
    finite,
    fits,
    probabilities,
    quiet,
    require,
    scalar,
    within,
)
from theory.softmax._softmax import argmax, where

__all__ = ["gaussian_loss", "jensen_bound", "prior_entropy"]


@quiet
def jensen_bound(mean_probability: ArrayLike, prior: ArrayLike) -> Floats:
    r"""Lower bound of the mean loss at initialisation, :math:`\sum_k Q_k (-\log \hat Q_k)`.

    From :math:`\mathrm{E}[-\log p_k] \ge -\log \mathrm{E}\, p_k` for each class, which has the share :math:`Q_k` of the
    samples. The minimum over :math:`\hat Q` lies at :math:`\hat Q = Q`, not at uniform predictions.

    Parameters
    ----------
    mean_probability
        :math:`\hat Q`, shape (..., K).
    prior
        Q, shape (..., K).

    Returns
    -------
    Shape (...), in nats; infinity where a class that occurs is never predicted.

    Raises
    ------
    ValueError
        If an argument is not a probability vector along its last axis, or their K differ.

    References
    ----------
    Vysogorets, Dawid and Kempe (2024), Section 4, for the sum over classes of the expected loss of each,
    :math:`\sum_k (-\log \hat Q_k) \ge K \log K`; here the mean over samples, with the classes as often as they come.

    Examples
    --------
    >>> jensen_bound([0.25, 0.75], [0.5, 0.5]).round(6), jensen_bound([1.0, 0.0], [0.5, 0.5])
    (np.float64(0.836988), np.float64(inf))
    """
    predicted, actual = distributions(mean_probability=mean_probability, prior=prior)
    at_top = argmax(predicted)
    rest = np.where(at_top, 0.0, predicted)
    # the mode from the sum of the others: near 1 its own logarithm has no digits
    mode = np.log1p(-np.minimum(rest.sum(axis=-1, keepdims=True), 1.0))
    terms = actual * -where(at_top, mode, np.log(predicted))
    # a class without samples adds nothing, also where its logarithm is infinite
    return where(actual > 0, terms, np.zeros_like(actual)).sum(axis=-1)


def prior_entropy(prior: ArrayLike) -> Floats:
    r"""Lowest mean loss of predictions that know nothing but class frequencies, :math:`H(Q)`.

    Parameters
    ----------
    prior
        Q, shape (..., K).

    Returns
    -------
    Shape (...), in nats, at most :math:`\log K`, which balanced classes have.

    Raises
    ------
    ValueError
        If `prior` is not a probability vector along its last axis.

    References
    ----------
    Vysogorets, Dawid and Kempe (2024), Section 4; the loss of uniform predictions in Section 5, :math:`\log K`, is
    this for balanced classes.

    Examples
    --------
    >>> prior_entropy([[0.5, 0.5], [0.9, 0.1]]).round(6)
    array([0.693147, 0.325083])
    """
    q = probabilities("prior", prior)
    return jensen_bound(q, q)


@closed_form
def gaussian_loss(bias: ArrayLike, prior: ArrayLike, *, spread: float) -> float:
    r"""Mean loss of Gaussian logits that know nothing of the labels, :math:`z_k \sim N(b_k, \sigma^2)`.

    .. math:: \mathrm{E}\,\ell = \mathrm{E} \log \sum_k e^{z_k} - \sum_k Q_k b_k, \quad
              \mathrm{E} \log X = \int_0^\infty \frac{e^{-t} - \mathrm{E}\, e^{-tX}}{t}\, dt

    The average of :math:`e^{-tX}` factorises over the classes. It is `prior_entropy` for :math:`b = \log Q` and no
    spread, and above `jensen_bound` of its mean predictions else.

    Parameters
    ----------
    bias
        Means b of the logits, shape (K,), K >= 2.
    prior
        Q, frequencies of the classes, shape (K,).
    spread
        Standard deviation :math:`\sigma` of every logit, from 0 to 30.

    Returns
    -------
    In nats, to 1e-9.

    Raises
    ------
    ValueError
        If `bias` is not a finite vector of two numbers at least, `prior` no probability vector of its length, or
        `spread` is outside of [0, 30]; if the result overflows.

    References
    ----------
    Beside Vysogorets, Dawid and Kempe (2024), Section 4: the loss that its bound is one of. The integral is that of
    Frullani.

    Examples
    --------
    >>> round(gaussian_loss([0.0, 0.0], [0.5, 0.5], spread=0.0), 9)
    0.693147181
    >>> round(gaussian_loss([0.0] * 10, [0.1] * 10, spread=1.0), 6)
    2.728864
    """
    means = finite("bias", bias)
    require(means.ndim == 1 and len(means) >= 2, "bias", "at least two numbers (K,)", bias)
    fits("bias", 2e5 * len(means), means.shape)
    q = probabilities("prior", prior)
    require(q.shape == means.shape, "prior", f"over {len(means)} classes", q.shape)
    sd = scalar("spread", within("spread", spread, 0.0, 30.0))
    largest = float(means.max())
    # a common shift of the logits does not change the loss, and keeps exponentials in range
    return _mean_log_sum(tuple((means - largest).tolist()), sd) - float(q @ (means - largest))


@cache
def _mean_log_sum(bias: tuple[float, ...], spread: float) -> float:
    """E log sum exp of Gaussian logits with a largest mean of 0, by the trapezoidal rule over log t."""
    reach = 9.5 * spread
    t = np.arange(-(40.0 + reach), 6.0 + reach, 0.1)
    step = min(0.5, 0.25 / max(spread, 1e-300))
    count = math.ceil(9.5 / step)
    x: Floats = step * np.arange(-count, count + 1, dtype=np.float64)
    density = np.exp(-np.square(x) / 2)
    density /= density.sum()
    survive = np.exp(-np.exp(t))
    left = np.ones_like(t)
    for mean in bias:
        left *= np.array([np.exp(-np.exp(u + mean + spread * x)) @ density for u in t])
    return float((survive - left).sum() * 0.1)
