r"""Eigenvalues of the Fisher information matrix of wide random networks.

==========================  ============================================================================
name                        symbol (Karakida, Akaho and Amari 2019)
==========================  ============================================================================
``depth``, ``width``        :math:`L`, :math:`M`
``samples``, ``outputs``    :math:`T`, :math:`C`
``width_ratios``            :math:`\alpha_0, \dots, \alpha_{L-1}`: layer l has :math:`\alpha_l M` units
``alpha``                   :math:`\alpha = \sum_{l=1}^{L-1} \alpha_l \alpha_{l-1}`
``kappa1, kappa2``          :math:`\kappa_1, \kappa_2`, eq. (11)
``difference``              :math:`\kappa_1 - \kappa_2`
``mean``                    :math:`m_\lambda`, all eigenvalues averaged
``second_moment``           :math:`s_\lambda`, their squares averaged
``largest``                 :math:`\lambda_{max}`
``bias1, bias2``            :math:`\sum_l \tilde q_t^l, \sum_l \tilde q_{st}^l`: from the bias parameters
``c1, c2``                  :math:`c_1, c_2` of Theorem 3.3
==========================  ============================================================================

Everything follows from the matrix :math:`K = J J^\top` (J: derivatives of the CT outputs), which has the
non-zero eigenvalues of T times the Fisher information. For wide layers each of its C diagonal blocks is
:math:`(\alpha M \kappa_1 + \mathrm{bias1})` on the diagonal and :math:`(\alpha M \kappa_2 + \mathrm{bias2})`
off it. The paper keeps the leading order in M; the input width has to grow along, as :math:`\alpha_0 M`.
A batch-normalised last layer is the topic of `theory.fisher.batch_normalisation`. Normalised hidden layers are
the topic of `theory.fisher.middle_normalisation`, layers normalised over their units of
`theory.fisher.layer_normalisation`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from numpy.typing import ArrayLike

from theory.fisher._wide import Activations, Kappas, Network, Size, parameter_count, rank_bound
from theory.fisher.batch_normalisation import (
    BatchNormalisedConstants,
    BatchNormalisedStatistics,
    batch_normalised_constants,
    batch_normalised_statistics,
    deviation_share,
    output_variance,
)
from theory.fisher.cross_entropy import (
    CrossEntropyStatistics,
    cross_entropy_outliers,
    cross_entropy_statistics,
)
from theory.fisher.layer_normalisation import (
    Etas,
    ExpectedEtas,
    LayerNormStatistics,
    expected_etas,
    inverse_variance_cdf,
    layer_norm_kappas,
    layer_norm_largest,
    layer_norm_rank,
    layer_norm_rayleigh,
    layer_norm_statistics,
    realised_etas,
)
from theory.fisher.mean_subtraction import (
    EntryVariances,
    FluctuationConstants,
    MeanSubtractedStatistics,
    fluctuation_constants,
    gram_entry_variances,
    loss_floor,
    mean_subtracted_largest,
    mean_subtracted_statistics,
)
from theory.fisher.middle_normalisation import (
    BatchNormMoments,
    batch_norm_bound,
    batch_norm_largest,
    batch_norm_largest_odd,
    batch_norm_moments,
)
from theory.fisher.tangent import (
    TangentKernel,
    TangentKernelStatistics,
    tangent_kernel,
    tangent_kernel_statistics,
)

__all__ = [
    "BatchNormMoments",
    "BatchNormalisedConstants",
    "BatchNormalisedStatistics",
    "CrossEntropyStatistics",
    "EntryVariances",
    "Etas",
    "ExpectedEtas",
    "FisherStatistics",
    "FluctuationConstants",
    "Kappas",
    "LayerNormStatistics",
    "MeanSubtractedStatistics",
    "TangentKernel",
    "TangentKernelStatistics",
    "batch_norm_bound",
    "batch_norm_largest",
    "batch_norm_largest_odd",
    "batch_norm_moments",
    "batch_normalised_constants",
    "batch_normalised_statistics",
    "cross_entropy_outliers",
    "cross_entropy_statistics",
    "deviation_share",
    "eigenvalue_statistics",
    "expected_etas",
    "fluctuation_constants",
    "gram_entry_variances",
    "inverse_variance_cdf",
    "kappas",
    "layer_norm_kappas",
    "layer_norm_largest",
    "layer_norm_rank",
    "layer_norm_rayleigh",
    "layer_norm_statistics",
    "loss_floor",
    "mean_subtracted_largest",
    "mean_subtracted_statistics",
    "output_variance",
    "parameter_count",
    "rank_bound",
    "realised_etas",
    "tangent_kernel",
    "tangent_kernel_statistics",
]


class FisherStatistics(NamedTuple):
    """Mean, mean square and largest of the eigenvalues."""

    mean: float
    second_moment: float
    largest: float


def kappas(
    activation: Activations,
    *,
    depth: int,
    weight_variance: ArrayLike,
    bias_variance: ArrayLike,
    width_ratios: Sequence[float] | None = None,
) -> Kappas:
    r"""Constants of the Fisher information of a wide network.

    .. math::
        \kappa_1 = \sum_{l=1}^L \frac{\alpha_{l-1}}{\alpha} \tilde q_t^l \hat q_t^{l-1}, \qquad
        \kappa_2 = \sum_{l=1}^L \frac{\alpha_{l-1}}{\alpha} \tilde q_{st}^l \hat q_{st}^{l-1}.

    Parameters
    ----------
    activation
        An :class:`~theory.activations.Activation` (with second derivative unless closed forms are known),
        its name, or one of these per hidden layer.
    depth
        L from 2 to 100000: without a hidden layer :math:`\alpha = 0`.
    weight_variance, bias_variance
        Scalars >= 0.
    width_ratios
        L positive numbers, all 1 if None.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or a second derivative is missing.
    ConvergenceError
        If the averages of a user's activation do not settle (not smooth), or a pre-activation has a variance
        beyond about 1e8 and the activation no closed form.

    References
    ----------
    Karakida, Akaho and Amari (2019), eq. (11), which in our copy reads :math:`\hat q^l \hat q^{l-1}` where
    the trace of the Fisher information has :math:`\tilde q^l \hat q^{l-1}`; very likely a lost tilde.

    Examples
    --------
    >>> kappas("relu", depth=3, weight_variance=2.0, bias_variance=0.0).kappa1
    1.5
    >>> f"{kappas('erf', depth=100, weight_variance=0.3, bias_variance=1.0).difference:.2e}"
    '4.13e-79'
    """
    network = Network(activation, depth, weight_variance, bias_variance, width_ratios)
    return network.kappas()


def eigenvalue_statistics(
    activation: Activations,
    *,
    depth: int,
    width: int,
    samples: int,
    outputs: int,
    weight_variance: ArrayLike,
    bias_variance: ArrayLike,
    width_ratios: Sequence[float] | None = None,
    finite_width: bool = False,
) -> FisherStatistics:
    r"""Mean, second moment and largest eigenvalue of the Fisher information, any number of samples.

    .. math::
        m_\lambda = \frac{C \kappa_1}{M}, \quad
        s_\lambda = \alpha C \Big(\frac{T-1}{T} \kappa_2^2 + \frac{\kappa_1^2}{T}\Big), \quad
        \lambda_{max} = \alpha M \Big(\frac{T-1}{T} \kappa_2 + \frac{\kappa_1}{T}\Big),

    the last one C times (on average: the C are split by :math:`O(\sqrt M)`). In a centred network
    (:math:`\kappa_2 = 0`) with T of the order of M the last expression is not the largest eigenvalue.

    Parameters
    ----------
    activation, depth, weight_variance, bias_variance, width_ratios
        As in :func:`kappas`.
    width, samples, outputs
        M, T and C, each >= 1.
    finite_width
        Count the parameters exactly (:func:`parameter_count` in place of :math:`\alpha M^2`) and add the
        derivatives by the biases. The mean is then unbiased in practice at widths of some hundred; the
        other two keep an O(1/M) excess.

    Raises
    ------
    ValueError, ConvergenceError
        As in :func:`kappas`.

    References
    ----------
    Karakida, Akaho and Amari (2019), Theorem 2.2, eqs. (10) and (11). The second moment is not printed
    there; it is the trace of the squared block matrix above.

    Examples
    --------
    >>> setting = dict(depth=3, samples=100, outputs=2, weight_variance=2.0, bias_variance=0.0)
    >>> eigenvalue_statistics("relu", width=1000, **setting).mean
    0.003
    """
    network = Network(activation, depth, weight_variance, bias_variance, width_ratios)
    size = Size(network, width, samples, outputs, finite_width)
    own, shared, t, c = size.own, size.shared, size.samples, size.outputs
    mean_square = (t - 1) / t * shared * (shared / size.parameters) + own * (own / size.parameters) / t
    statistics = FisherStatistics(
        mean=c * (own / size.parameters),
        second_moment=c * mean_square,
        largest=(t - 1) / t * shared + own / t,
    )
    network.require_finite(*statistics)
    return statistics
