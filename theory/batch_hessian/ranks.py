r"""Ranks of the Hessian of a batch, a sample and a data set.

==============================  ========================  ===================================================
name                            symbol                    Granziol, Zohren and Roberts (2022)
==============================  ========================  ===================================================
``outputs``                     d_y                       classes of a softmax cross-entropy
``widths``                      N_1, ..., N_L             units of every layer after the input; N_L = d_y
``inputs``                      d_x                       components of a sample
`ggn_rank_bound`                min(P, B (d_y - 1))       section 6, where it reads B d_y
`sample_rank_bound_of_paths`    4 d_y (sum N_l + d_x)     section 7, there of the whole data set
`sample_rank_bound`             2 sum N_l + d_y - 1       not in the paper
`dataset_rank_bound`                                      what of section 7 holds for N samples
`two_layer_rank_bound`          (N + 2 N_1)(d_y - 1)      the same for one hidden layer of ReLUs
==============================  ========================  ===================================================

Ranks add over samples, for each sample has activations of its own: no bound of one sample holds for two.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from theory._checks import as_given, count, flag, instance, integer, require


def ggn_rank_bound(batch_size: int, outputs: int, dim: int) -> int:
    r"""Largest rank of the Gauss-Newton matrix of a batch, :math:`\min(P, B (d_y - 1))`.

    The curvature :math:`\mathrm{diag}(p) - p p^\top` of a softmax has rank d_y - 1: adding a constant to all
    logits changes nothing.

    Parameters
    ----------
    batch_size
        B, samples, an integer >= 1.
    outputs
        d_y, classes, an integer >= 1.
    dim
        P, parameters, an integer >= 1.

    Returns
    -------
    The bound. Networks in general position attain it while B (d_y - 1) stays below P less the directions that shift
    all logits of every sample alike, see `dataset_rank_bound`.

    Raises
    ------
    ValueError
        If an argument is no integer >= 1.

    References
    ----------
    Granziol, Zohren and Roberts (2022), section 6, whose B d_y holds but is never attained.

    Examples
    --------
    >>> [ggn_rank_bound(batch, 2, 100) for batch in (1, 4, 16, 64, 256)]
    [1, 4, 16, 64, 100]
    """
    # outputs - 1: a constant added to all logits changes nothing
    return min(count("dim", dim), count("batch_size", batch_size) * (count("outputs", outputs) - 1))


def sample_rank_bound_of_paths(inputs: int, widths: Sequence[int]) -> int:
    r"""Bound :math:`4 d_y (\sum_l N_l + d_x)` of the Hessian's rank, for one sample of a ReLU network.

    Parameters
    ----------
    inputs
        d_x, an integer >= 1.
    widths
        N_1, ..., N_L = d_y, integers >= 1: units of every layer after the input.

    Returns
    -------
    The bound, which holds for one sample; `sample_rank_bound` is lower.

    Raises
    ------
    ValueError
        If an argument is no integer >= 1, or `widths` is empty.

    References
    ----------
    Granziol, Zohren and Roberts (2022), section 7, stated there for the Hessian of the whole data set, which a
    network 24-24-2 exceeds: rank 600 above 400.

    Examples
    --------
    >>> sample_rank_bound_of_paths(24, (24, 2))
    400
    """
    layers = _widths(widths)
    return 4 * layers[-1] * (sum(layers) + count("inputs", inputs))


def sample_rank_bound(widths: Sequence[int], *, biases: bool = True) -> int:
    r"""Largest rank of the Hessian of softmax cross-entropy for one sample of a fully connected network.

    The second derivative is a quadratic form in :math:`dW_l h_{l-1}` (N_l forms) and
    :math:`dW_l^\top \delta_l` (N_{l-1} forms, l > 1), of which the output layer counts d_y - 1. Without biases
    :math:`\delta_l^\top dW_l h_{l-1}` is a combination of either kind and is counted once. Any activation.

    Parameters
    ----------
    widths
        N_1, ..., N_L = d_y, integers >= 1: units of every layer after the input.
    biases
        Whether the layers have biases.

    Returns
    -------
    :math:`2 (N_1 + \dots + N_{L-1}) + d_y - 1`, less L - 1 without biases.

    Raises
    ------
    ValueError
        If a width is no integer >= 1, or there is none.

    Examples
    --------
    >>> sample_rank_bound((24, 2)), sample_rank_bound((24, 2), biases=False)
    (49, 48)
    """
    *hidden, outputs = _widths(widths)
    # without biases delta' dW h is a combination of the forms of either kind, in every hidden layer
    shared = 0 if flag("biases", biases) else len(hidden)
    return max(2 * sum(hidden) + outputs - 1 - shared, 0) if outputs > 1 else 0


def dataset_rank_bound(sample_rank: int, *, samples: int, dim: int, symmetries: int = 0) -> int:
    r"""Largest rank of a mean of N per-sample Hessians, :math:`\min(P - \mathrm{symmetries}, N r)`.

    Parameters
    ----------
    sample_rank
        r >= 0, bound for one sample.
    samples
        N, an integer >= 1.
    dim
        P, an integer >= 1.
    symmetries
        Directions along which the loss of every sample is flat (for softmax, a shift common to the logits: one
        for each input of the last layer); at most P.

    Returns
    -------
    The bound.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    References
    ----------
    Granziol, Zohren and Roberts (2022), section 7, without the sum over samples.

    Examples
    --------
    >>> [dataset_rank_bound(48, samples=n, dim=624, symmetries=24) for n in (1, 10, 6000)]
    [48, 480, 600]
    """
    rank = integer("sample_rank", sample_rank, least=0)
    dim = count("dim", dim)
    flat = integer("symmetries", symmetries, least=0, most=dim)
    return min(dim - flat, count("samples", samples) * rank)


def two_layer_rank_bound(samples: int, hidden: int, outputs: int) -> int:
    r"""Largest rank of the Hessian of a data set for one hidden layer of ReLUs, :math:`(N + 2 N_1)(d_y - 1)`.

    Between two layers and within fixed gates a sample's Hessian of one logit is a product of its input and of one unit:
    over all samples it spans no more than 2 N_1 directions for each of the d_y - 1 differences of logits; the
    Gauss-Newton part adds d_y - 1 for each sample.

    Parameters
    ----------
    samples
        N, an integer >= 1.
    hidden
        N_1, units of the hidden layer, an integer >= 1.
    outputs
        d_y, classes of a softmax cross-entropy, an integer >= 1.

    Returns
    -------
    The bound, without the dimension and the ranks of the samples, which bound it too.

    Raises
    ------
    ValueError
        If an argument is no integer >= 1.

    References
    ----------
    Ours, beside Granziol, Zohren and Roberts (2022), section 7.

    Examples
    --------
    >>> two_layer_rank_bound(5, 4, 3)
    26
    """
    return (count("samples", samples) + 2 * count("hidden", hidden)) * (count("outputs", outputs) - 1)


def _widths(widths: Sequence[int]) -> tuple[int, ...]:
    """Units of every layer after the input, checked."""
    rule = "a sequence of integers >= 1"
    several = as_given("widths", widths, rule).tolist() if isinstance(widths, np.ndarray) else widths
    instance("widths", several, list | tuple, rule)
    require(len(several) > 0, "widths", rule, widths)
    return tuple(count("widths", width) for width in several)
