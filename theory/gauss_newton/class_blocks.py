r"""Blocks of the Hessian between classes and between hidden neurons, against those on the diagonal, at random weights.

======================  ==========================================  =================================================
name                    symbol                                      source
======================  ==========================================  =================================================
``classes``             C                                           Dong et al. (2025), arXiv 2505.02809
``dim``                 d                                           inputs of the layer, standard normal
``samples``             N                                           samples the Hessian is a mean over
``logit_std``           s                                           standard deviation of independent normal logits
`uniform_ratio`         1/(C - 1)                                   at equal probabilities, exactly
`output_ratio`          \|H_12\|_F/\|H_11\|_F, root mean squares      ours, for the weights of a softmax classifier
`hidden_ratio`          likewise for the weights of ReLU neurons    ours; C^(-1/2) as in Dong et al.
======================  ==========================================  =================================================

A block between classes is (1/N) sum_n a_n x_n x_n' with a_n = p_1 p_2 or p_1 (1 - p_1). Where a and x are independent,
which in high dimension they are but for O(1/d), its mean squared Frobenius norm is d/N times
(d + 2) E a^2 + (N - 1) (E a)^2.
Since the entries of p sum to 1, E p_1 p_2 is E p_1 (1 - p_1) over C - 1 **whatever the logits**: that they are not
equal shows in E a^2 alone, so in samples that are not many more than dimensions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from theory._checks import Floats, count, flag, integer, scalar, within
from theory._roots import special

__all__ = ["hidden_ratio", "output_ratio", "uniform_ratio"]


_WIDEST = 8.0
"""Largest standard deviation of logits: beyond it one class has all, and moments of the rest lose their digits."""

_MOST_CLASSES = 10**6
"""Most classes: with more, the rounding of one logarithm, multiplied by their number, would show."""

_NODES = 1200
"""Nodes of both trapezoidal rules, which agree with finer rules to ten digits."""

_REACH = 11.0
"""Standard deviations covered on each side; moments of fourth order shift the weight by four of them."""


def uniform_ratio(classes: int) -> float:
    r"""Norm of a block between two classes over that of one class, where all probabilities are equal: 1/(C - 1).

    Parameters
    ----------
    classes
        C, at least 2.

    Returns
    -------
    Ratio of any norm: the blocks are multiples of one matrix, -1/C^2 and (1 - 1/C)/C times.

    Raises
    ------
    ValueError
        If there are fewer than two classes.

    References
    ----------
    Dong, Zhang, Luo, Yao and Sun (2025), Towards quantifying the Hessian structure of neural networks, arXiv
    2505.02809, where the ratio is of order 1/C.

    Examples
    --------
    >>> uniform_ratio(5)
    0.25
    """
    return 1 / (count("classes", classes, 2) - 1)


def output_ratio(classes: int, *, logit_std: float, dim: int, samples: int) -> float:
    r"""Norm of a block between two classes over that of one class, for the weights of a softmax classifier.

    Root of the ratio of mean squared Frobenius norms, with independent normal logits and inputs independent of them.

    Parameters
    ----------
    classes
        C, from 2 to a million.
    logit_std
        s, from 0 to 8.
    dim, samples
        d and N, at least 1.

    Returns
    -------
    Ratio; `uniform_ratio` for s = 0 or d/N to 0. For many classes C times it tends to the root of
    (1 + g e^(2 s^2))/(1 + g e^(s^2)) with g = d/N, as probabilities are then independent log-normal numbers over C.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    References
    ----------
    Ours; the setting is that of Dong et al. (2025). Moments of the softmax as integrals over the Laplace transform of
    the exponentials.

    Examples
    --------
    >>> round(output_ratio(10, logit_std=1.0, dim=50, samples=100), 4)
    0.1293
    >>> round(output_ratio(10, logit_std=1.0, dim=1, samples=10**9), 6) == round(uniform_ratio(10), 6)
    True
    """
    c = integer("classes", classes, least=2, most=_MOST_CLASSES)
    d, n = count("dim", dim), count("samples", samples)
    mean = _softmax_moments(c, scalar("logit_std", within("logit_std", logit_std, 0.0, _WIDEST)))
    own = mean(2) - 2 * mean(3) + mean(4)
    squares = [(d + 2) * mean(2, 2) + (n - 1) * mean(1, 1) ** 2]
    squares.append((d + 2) * own + (n - 1) * ((c - 1) * mean(1, 1)) ** 2)
    return float(np.sqrt(squares[0] / squares[1]))


def hidden_ratio(classes: int, *, dim: int, samples: int, centred: bool) -> float:
    r"""Norm of a block between two hidden neurons over that of one neuron, for ReLU and normal read-out weights.

    A block is v_1.v_2 times the mean of 1_1 1_2 x x', with read-out weights v of one neuron to the C outputs and 1 for
    an active neuron. For the squared error :math:`E(v_1 \cdot v_2)^2/E|v_1|^4 = 1/(C + 2)`; for cross-entropy at equal
    probabilities the v are centred over the outputs, which leaves C - 1 dimensions: 1/(C + 1). Two inputs whose
    directions have the cosine c activate a neuron together with probability :math:`g = 1/4 + \arcsin(c)/(2\pi)`, two
    neurons with :math:`g^2`, so that the ratio is

    .. math:: \frac{1}{C + 2} \cdot \frac{(d + 2)/4 + (N - 1) s}{(d + 2)/2 + (N - 1)/4},\qquad
        s = d\, E\, c^2 g^2 = \frac{1}{16} + \frac{\psi_1(d/2)/2 + 2 (d - 1)/d^2}{4 \pi^2}

    with the trigamma function :math:`\psi_1`. It is exact for the squared error.

    Parameters
    ----------
    classes
        C, at least 2.
    dim, samples
        d and N, at least 1.
    centred
        Whether the loss is the cross-entropy at equal probabilities, and not the squared error.

    Returns
    -------
    Root of the ratio of mean squared Frobenius norms.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    References
    ----------
    Ours; of order C^(-1/2) in Dong et al. (2025).

    Examples
    --------
    Against one half if activity did not depend on the inputs:

    >>> round(hidden_ratio(10, dim=10, samples=10**9, centred=False) * 12**0.5, 4)
    0.5286
    """
    c = count("classes", classes, 2)
    d, n = count("dim", dim), count("samples", samples)
    # E c^2 arcsin(c)^2 by parts, with Var(arcsin c) = psi_1(d/2)/2; what is odd in c has no mean
    angles = float(special.polygamma(1, d / 2)) / 2 + 2 * (d - 1) / d**2
    two = (d + 2) / 4 + (n - 1) * (1 / 16 + angles / (4 * np.pi**2))
    one = (d + 2) / 2 + (n - 1) / 4
    return float(np.sqrt(two / one / (c + 1 if flag("centred", centred) else c + 2)))


@lru_cache(maxsize=64)  # a curve over dimensions or samples asks for the same one at every point
def _softmax_moments(classes: int, std: float) -> Callable[..., float]:
    """Return E p_1^a p_2^b of the softmax of C independent normal logits, as a function of a and b.

    With S the sum of the exponentials, S^-k is the integral of t^(k-1) e^(-tS)/(k-1)!, so that logits separate: the
    mean of p_1^a p_2^b is that of t^(a+b-1)/(a+b-1)! f_a f_b f_0^(C-2) with f_k(t) = E e^(kz) exp(-t e^z).
    """
    steps = np.linspace(-_REACH, _REACH, _NODES)
    centre, spread = -float(np.log(classes)), std * _REACH + 4.0
    times = np.linspace(centre - spread - 12.0, centre + spread, _NODES)
    # exp(-exp(700)) is zero already, and exp(710) would overflow
    decays = np.exp(np.minimum(times[:, None] + std * steps, 700.0))
    weights = -(steps**2) / 2 - np.log(2 * np.pi) / 2 + np.log(steps[1] - steps[0])

    # all at once, so that the large table of decays is not kept
    log = [_logsumexp(order * (std * steps) + weights - decays) for order in range(5)]

    def mean(first: int, second: int = 0) -> float:
        order, others = first + second, classes - (1 if second == 0 else 2)
        logs = order * times - float(np.log(np.arange(1, order)).sum()) + log[first] + others * log[0]
        if second:
            logs += log[second]
        return float(np.exp(_logsumexp(logs) + np.log(times[1] - times[0])))

    return mean


def _logsumexp(rows: Floats) -> Floats:
    # relative to the largest, so that no exponential overflows
    top = rows.max(axis=-1)
    apart = rows - top[..., None]
    return top + np.log(np.exp(apart, out=apart).sum(axis=-1))
