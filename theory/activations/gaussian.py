r"""Gaussian averages of an activation: what one wide layer does to the moments of a pair of inputs.

============================  =========================================================================
name                          symbol (Karakida, Akaho and Amari 2019, Section 2.2)
============================  =========================================================================
``variance``, ``covariance``  :math:`a, b`: pre-activations :math:`(u, u')` have variance a, covariance b
``gap``                       :math:`d = a - b`, an argument of its own: it outlives its rounding in a - b
``Moments.moment``            :math:`E\,\phi(u)^2 = I_\phi[a, a]`
``Moments.overlap``           :math:`I_\phi[a, b] = E\,\phi(u)\phi(u')`
``Moments.gap``               :math:`I_\phi[a, a] - I_\phi[a, b]`, never computed as a difference
``Kernels.derivative``        the same three for :math:`\phi'`
``Kernels.curvature``         :math:`I_{\phi''}[a, b]`
``Kernels.fluctuations``      averages over z of conditional variances, with
                              :math:`u = \sqrt b z + \sqrt d \zeta`
============================  =========================================================================

A leaky ReLU and erf have closed forms. A smooth activation is averaged by the trapezoidal rule in the Gaussian
variables, one with kinks by Gauss-Legendre panels between them; both converge exponentially and are refined until two
results agree, so an activation that is rougher than it says is found out and refused.
"""

from theory.activations._closed_forms import Erf, PiecewiseLinear
from theory.activations._kernels import ConvergenceError, Fluctuations, Kernels, Moments
from theory.activations._kinks import KinkedQuadrature
from theory.activations._quadrature import NumericalKernels, real_values

__all__ = [
    "ConvergenceError",
    "Erf",
    "Fluctuations",
    "Kernels",
    "KinkedQuadrature",
    "Moments",
    "NumericalKernels",
    "PiecewiseLinear",
    "real_values",
]
