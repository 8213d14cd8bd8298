r"""Fisher information of wide random networks whose layers are all normalised over their units.

======================  =======================================================================================
name                    symbol (Karakida, Akaho and Amari 2019, Section 4)
======================  =======================================================================================
``preactivations``      :math:`u^L_k(t)`, outputs before the last normalisation, shape (T, C)
``eta1, eta2, eta3``    :math:`\eta_1, \eta_2, \eta_3`, averages of :math:`1/\sigma(t)^2` and its products, below
``kappa1, kappa2``      :math:`\kappa_1', \kappa_2'`
``mean``                :math:`m_\lambda`, all eigenvalues averaged
``second_moment``       :math:`s_\lambda`, their squares averaged
``lower, upper``        bounds of :math:`\lambda_{max}`, eq. (26)
======================  =======================================================================================

The other names are those of `theory.fisher`. With :math:`\sigma(t)^2` the (biased) variance of the C outputs
of sample t and f(t) the normalised outputs, the last layer multiplies the derivatives of sample t by
:math:`P(t)/\sigma(t)`, :math:`P = I - 1 1^\top/C - f f^\top/C` of rank C - 2. In a wide network

.. math::
    K_{st} = \alpha M \kappa'_{st} \frac{P(s) P(t)}{\sigma(s)\,\sigma(t)}, \qquad
    \mathrm{Tr}\,P(s) P(t) = C - 3 + r_{st}^2, \quad r_{st} = f(s) \cdot f(t) / C,

so that the traces of F and of its square need only

.. math::
    \eta_1 = \frac1T \sum_t \frac{1}{\sigma(t)^2}, \quad
    \eta_2 = \frac1T \sum_t \frac{1}{\sigma(t)^4}, \quad
    \eta_3^2 = \frac{1}{T^2} \sum_{s, t} \frac{r_{st}^2}{\sigma(s)^2 \sigma(t)^2}.

Our copy leaves their definitions, and those of the kappas, to a supplement that it lacks, and calls the etas
constants independent of M. So are their laws: at fixed C they scatter from network to network whatever M and T,
and :math:`1/\sigma^2` has a tail of index (C - 1)/2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from theory import _checks
from theory._roots import bracketed_root
from theory.fisher._layer_normed import normalised_network, normalised_outputs, table_of_outputs
from theory.fisher._wide import Activations, Kappas, Size
from theory.fisher.layer_norm_etas import (
    Etas,
    ExpectedEtas,
    expected_etas,
    inverse_variance_cdf,
    realised_etas,
)

__all__ = [
    "Etas",
    "ExpectedEtas",
    "LayerNormStatistics",
    "expected_etas",
    "inverse_variance_cdf",
    "layer_norm_kappas",
    "layer_norm_largest",
    "layer_norm_rank",
    "layer_norm_rayleigh",
    "layer_norm_statistics",
    "realised_etas",
]

Floats = NDArray[np.float64]


class LayerNormStatistics(NamedTuple):
    """Mean and mean square of the eigenvalues, and bounds of the largest one, of the shape of the etas."""

    mean: Floats
    second_moment: Floats
    lower: Floats
    upper: Floats


def layer_norm_kappas(
    activation: Activations,
    *,
    depth: int,
    weight_variance: ArrayLike,
    bias_variance: ArrayLike,
    width_ratios: Sequence[float] | None = None,
) -> Kappas:
    r"""Constants of the Fisher information of a wide network normalised over the units of every layer.

    A wide hidden layer is divided by :math:`\sqrt{q_t^l}`: its activations are averaged over Gaussians of
    variance 1 and covariance :math:`q_{st}^l/q_t^l`, and its backward factor is divided by :math:`q_t^l`. The
    sums are those of :func:`theory.fisher.kappas`, the last layer's derivatives taken before it is normalised.

    Parameters
    ----------
    activation, depth, width_ratios
        As in :func:`theory.fisher.kappas`.
    weight_variance, bias_variance
        Scalars >= 0, not both 0. Only their ratio matters.

    Raises
    ------
    ValueError
        If an argument is out of its domain, a second derivative is missing, or a layer has no variance.
    ConvergenceError
        If the averages of a user's activation do not settle (not smooth).

    References
    ----------
    Karakida, Akaho and Amari (2019), Theorem 4.1; the recursion is our own.

    Examples
    --------
    >>> layer_norm_kappas("relu", depth=3, weight_variance=2.0, bias_variance=0.0).kappa1
    0.75
    >>> layer_norm_kappas("erf", depth=3, weight_variance=2e200, bias_variance=0.0).kappa2
    0.0
    """
    return normalised_network(activation, depth, weight_variance, bias_variance, width_ratios).kappas()


def layer_norm_statistics(
    activation: Activations,
    *,
    depth: int,
    width: int,
    samples: int,
    outputs: int,
    weight_variance: ArrayLike,
    bias_variance: ArrayLike,
    width_ratios: Sequence[float] | None = None,
    eta1: ArrayLike,
    eta2: ArrayLike,
    eta3: ArrayLike,
    finite_width: bool = False,
) -> LayerNormStatistics:
    r"""Mean, second moment and bounds of the Fisher information with layer normalisation everywhere.

    .. math::
        m_\lambda = (C - 2)\, \eta_1 \frac{\kappa_1'}{M}, \qquad
        s_\lambda = \alpha \Big[\big((C - 3)\, \eta_1^2 + \eta_3^2\big) \kappa_2'^2
        + (C - 2) \frac{\eta_2}{T} (\kappa_1'^2 - \kappa_2'^2)\Big], \qquad
        \frac{M s_\lambda}{m_\lambda} \le \lambda_{max} \le M \sqrt{\alpha s_\lambda},

    for any number of samples. With one or two outputs nothing is left of the derivatives: zeros.

    Parameters
    ----------
    activation, depth, width, samples, outputs, width_ratios
        As in :func:`theory.fisher.eigenvalue_statistics`.
    weight_variance, bias_variance
        As in :func:`layer_norm_kappas`.
    eta1, eta2, eta3
        Positive, broadcast; those of a network by :func:`realised_etas`. They are no constants: for C = 3 the first
        has no expectation, for C <= 5 the second has none (:func:`expected_etas`).
    finite_width
        As in :func:`theory.fisher.eigenvalue_statistics`.

    Raises
    ------
    ValueError, ConvergenceError
        As in :func:`layer_norm_kappas`.

    References
    ----------
    Karakida, Akaho and Amari (2019), Theorem 4.1, eqs. (26) and (27).

    Examples
    --------
    >>> setting = dict(depth=3, width=1000, samples=100, weight_variance=2.0, bias_variance=0.0)
    >>> etas = dict(eta1=1.2, eta2=1.9, eta3=0.8)
    >>> float(layer_norm_statistics("relu", outputs=10, **setting, **etas).mean)
    0.0072
    >>> float(layer_norm_statistics("relu", outputs=2, **setting, **etas).upper)
    0.0
    """
    network = normalised_network(activation, depth, weight_variance, bias_variance, width_ratios)
    size = Size(network, width, samples, outputs, finite_width)
    etas = _etas(eta1=eta1, eta2=eta2, eta3=eta3)
    if size.outputs <= 2:
        return LayerNormStatistics(*(np.zeros(etas.eta1.shape)[()] for _ in range(4)))
    with np.errstate(over="ignore", invalid="ignore"):
        trace, root = (size.outputs - 2) * etas.eta1 * size.own, _root_of_squares(size, etas)
        lower = root * (root / trace) if size.own else np.zeros_like(root)
        found = [trace / size.parameters, root * (root / size.parameters), lower, root]
    named = {"eta1": eta1, "eta2": eta2, "eta3": eta3, "width": width}
    return LayerNormStatistics(*(_checks.representable(x, **named) for x in found))


def layer_norm_largest(
    activation: Activations,
    preactivations: ArrayLike,
    *,
    depth: int,
    width: int,
    weight_variance: ArrayLike,
    bias_variance: ArrayLike,
    width_ratios: Sequence[float] | None = None,
) -> float:
    r"""Largest eigenvalue of the Fisher information with layer normalisation, given the outputs.

    The matrix of blocks :math:`\kappa'_{st} P(s) P(t) / \sigma(s) \sigma(t)` is block-diagonal plus rank C: its
    largest eigenvalue is the largest root of

    .. math::
        \kappa_2' \lambda_{max}\Big(\sum_t \frac{P(t)}{\lambda \sigma(t)^2 - (\kappa_1' - \kappa_2')}\Big) = 1,

    and the one of F is :math:`\alpha M \lambda / T`. Where :math:`\kappa_2' = 0` there is no such root, and it is
    :math:`\kappa_1' \max_t \sigma(t)^{-2}`. For many samples it tends to
    :math:`\alpha M \kappa_2' \lambda_{max}(\langle P(t)/\sigma(t)^2 \rangle)`, one of C - 1 outliers. The excess
    at finite width is O(1/M).

    Parameters
    ----------
    activation, depth, width, weight_variance, bias_variance, width_ratios
        As in :func:`layer_norm_statistics`.
    preactivations
        Outputs before the last normalisation, shape (T, C), the C of each sample not all equal.

    Raises
    ------
    ValueError, ConvergenceError
        As in :func:`layer_norm_kappas`.

    References
    ----------
    Own result, beside the bounds of Karakida, Akaho and Amari (2019), eq. (26).

    Examples
    --------
    >>> u = [[0.3, -1.2, 0.4, 1.1], [-0.8, 0.2, 0.9, 0.1], [1.5, 0.6, -0.4, -0.7]]
    >>> round(layer_norm_largest("relu", u, depth=3, width=100, weight_variance=2.0, bias_variance=0.0), 6)
    150.662817
    """
    network = normalised_network(activation, depth, weight_variance, bias_variance, width_ratios)
    width = _checks.count("width", width)
    k = network.kappas()
    if table_of_outputs(preactivations).shape[1] <= 2:
        return 0.0
    f, precision = normalised_outputs(preactivations)
    root = _largest_root(f, precision, k.kappa2, k.difference)
    return float(_checks.representable(np.array(k.alpha * width * root / len(f)), width=width))


def layer_norm_rayleigh(
    activation: Activations,
    *,
    depth: int,
    width: int,
    samples: int,
    outputs: int,
    weight_variance: ArrayLike,
    bias_variance: ArrayLike,
    width_ratios: Sequence[float] | None = None,
    eta1: ArrayLike,
    overlap: ArrayLike,
    finite_width: bool = False,
) -> Floats:
    r"""Rayleigh quotients of the Fisher information at equal weights of all samples, summed over the outputs.

    Linear in K, so without the excess that the second moment has at finite width:

    .. math::
        \frac{1}{T^2} \sum_k 1^\top K_{kk} 1 = \alpha M \Big[(C - 2) \frac{\eta_1}{T} \kappa_1' + o\, \kappa_2'\Big],
        \qquad o = \frac{1}{T^2} \sum_{s \ne t} \frac{\mathrm{Tr}\,P(s) P(t)}{\sigma(s)\,\sigma(t)}.

    Parameters
    ----------
    activation, depth, width, samples, outputs, weight_variance, bias_variance, width_ratios, eta1, finite_width
        As in :func:`layer_norm_statistics`.
    overlap
        The average o above, >= 0, broadcast with `eta1`.

    Raises
    ------
    ValueError, ConvergenceError
        As in :func:`layer_norm_kappas`.

    References
    ----------
    Own result, beside Karakida, Akaho and Amari (2019), Theorem 4.1.

    Examples
    --------
    >>> setting = dict(depth=3, samples=100, outputs=10, weight_variance=2.0, bias_variance=0.0)
    >>> round(float(layer_norm_rayleigh("relu", width=1000, **setting, eta1=1.2, overlap=7.6)), 3)
    2749.693
    """
    network = normalised_network(activation, depth, weight_variance, bias_variance, width_ratios)
    size = Size(network, width, samples, outputs, finite_width)
    checked = _checks.positive("eta1", eta1), _checks.nonnegative("overlap", overlap)
    one, pairs = _checks.together(eta1=checked[0], overlap=checked[1])
    if size.outputs <= 2:
        return np.zeros(one.shape)[()]
    with np.errstate(over="ignore"):
        found = (size.outputs - 2) * one / size.samples * size.own + pairs * size.shared
    return _checks.representable(found, eta1=eta1, overlap=overlap, width=width)


def layer_norm_rank(outputs: int) -> int:
    r"""Rank of the Gram block of one sample after a layer normalisation of the outputs, :math:`\max(C - 2, 0)`.

    The factor :math:`I - 1 1^\top/C - f f^\top/C` takes out two directions: the outputs can neither move together nor
    stretch.

    Parameters
    ----------
    outputs
        C >= 1.

    Raises
    ------
    ValueError
        If `outputs` is no integer >= 1.

    References
    ----------
    Karakida, Akaho and Amari (2019), Theorem 4.1 and eq. (24); at C = 2 nothing is left.

    Examples
    --------
    >>> [layer_norm_rank(c) for c in (1, 2, 3, 10)]
    [0, 0, 1, 8]
    """
    return max(_checks.count("outputs", outputs) - 2, 0)


# --- sums over samples and outputs ---------------------------------------------------------------------------


def _etas(**values: ArrayLike) -> Etas:
    checked = {name: _checks.positive(name, value) for name, value in values.items()}
    return Etas(*_checks.together(**checked))


def _root_of_squares(size: Size, etas: Etas) -> Floats:
    """Frobenius norm of F: the root of a sum of squares, none of them negative."""
    c, gap = size.outputs, math.sqrt(size.gap) * math.sqrt(size.own + size.shared)
    pairs = np.hypot(math.sqrt(c - 3) * etas.eta1 * size.shared, etas.eta3 * size.shared)
    return np.hypot(pairs, np.sqrt((c - 2) * (etas.eta2 / size.samples)) * gap)


def _largest_root(f: Floats, precision: Floats, shared: float, gap: float) -> float:
    """Largest eigenvalue of the blocks; in y = (lambda / max_t 1/sigma^2 - gap) / shared nothing cancels."""
    top = float(precision.max())
    share, ratio = precision / top, gap / shared if shared > gap * 1e-300 else math.inf
    if math.isinf(ratio):
        return top * gap

    def excess(y: float) -> float:
        return 1 / _largest_of_sum(f, share / (y + ratio * (1 - share))) - 1

    bounds = (1 - 1e-12, (1 + 1e-12) * _largest_of_sum(f, share))
    return top * (gap + shared * bracketed_root(excess, *bounds))


def _largest_of_sum(f: Floats, weights: Floats) -> float:
    """Largest eigenvalue of the weighted sum of the projectors of all samples."""
    c, total = f.shape[1], weights.sum()
    matrix = total * (np.eye(c) - 1 / c) - (f * weights[:, None]).T @ f / c
    return float(np.linalg.eigvalsh(matrix)[-1])
