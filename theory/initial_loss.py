r"""How low the cross-entropy of predictions can be that do not know the labels.

================  ============================================================  ==============================
name              symbol                                                        Vysogorets, Dawid, Kempe (2024)
================  ============================================================  ==============================
`jensen_bound`    :math:`\sum_k Q_k (-\log \hat Q_k)`                           Section 4, corrected
`prior_entropy`   :math:`H(Q)`, for balanced classes :math:`\log K`             Section 4, corrected
================  ============================================================  ==============================

Q are the frequencies of the classes, :math:`\hat Q` the predicted probabilities averaged over the data. At
initialisation predictions are independent of the labels, and the mean loss is at least `jensen_bound`, which is at
least `prior_entropy`: both are reached where every prediction is Q.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from theory import _checks
from theory.softmax._softmax import argmax, where

__all__ = ["jensen_bound", "prior_entropy"]

Floats = NDArray[np.float64]


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
    predicted, actual = _checks.distributions(mean_probability=mean_probability, prior=prior)
    at_top = argmax(predicted)
    rest = np.where(at_top, 0.0, predicted)
    with np.errstate(divide="ignore", invalid="ignore"):
        mode = np.log1p(-np.minimum(rest.sum(axis=-1, keepdims=True), 1.0))
        terms = actual * -where(at_top, mode, np.log(predicted))
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
    q = _checks.probabilities("prior", prior)
    return jensen_bound(q, q)
