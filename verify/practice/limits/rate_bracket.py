"""The bracket of the largest stable learning rate of SGD, from statistics of the samples of a network.

All of it is about Gauss-Newton matrices G_i, one for each sample, and their mean G: these are positive semidefinite,
as the bracket needs them, where Hessians are not.

==================  ==========================  ================================================================
name                symbol                      meaning
==================  ==========================  ================================================================
``largest``         lambda_1                    largest eigenvalue of G
``heaviest``        L                           the largest eigenvalue that a single G_i has
``curvatures``      u' G u                      along unit directions u
``variances``       Var_i(u' G_i u)             along the same, divisor N - 1
``batch_size``      B                           samples of a batch, without replacement, from 1 to N
==================  ==========================  ================================================================
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from simulate.eigenvalues import Extremes, Floats
from simulate.modules.sample_directions import SampleDirections
from theory import learning_rates
from theory.learning_rates import RateBracket

_ROUNDING = 1e-4
"""Quadratic forms below zero by less than this, relative to the largest, are rounding."""


def square_bound(
    largest: float, heaviest: float, *, batch_size: ArrayLike, dataset_size: int
) -> Floats | np.float64:
    r"""Bound of the largest eigenvalue of :math:`G^{-1/2} E[G_B^2] G^{-1/2}`: :math:`(1 - c) \lambda_1 + c L`.

    With :math:`c = (N - B) / (B (N - 1))`, so that it is L for single samples and :math:`\lambda_1` at B = N.

    Parameters
    ----------
    largest, heaviest
        :math:`\lambda_1` of the mean, and L of the heaviest sample, at least as large.
    batch_size, dataset_size
        B, from 1 to N, and N.

    Raises
    ------
    ValueError
        If `heaviest` is below `largest`, or a batch size is not from 1 to N.

    Notes
    -----
    A batch without replacement has :math:`E[G_B^2] = (1 - c) G^2 + c\, E_i[G_i^2]`, and
    :math:`G_i^2 \preceq L G_i` for each sample, hence :math:`E_i[G_i^2] \preceq L G`.

    Examples
    --------
    >>> square_bound(1.0, 9.0, batch_size=[1, 3, 9], dataset_size=9)
    array([9., 3., 1.])
    """
    sizes = np.asarray(batch_size, dtype=np.float64)
    if not (sizes.min() >= 1 and sizes.max() <= dataset_size):
        raise ValueError(f"batch_size must be from 1 to the {dataset_size} samples, got {batch_size}")
    if not heaviest >= largest > 0:
        raise ValueError(
            f"largest must be positive and heaviest at least largest, got {largest} and {heaviest}"
        )
    share = (dataset_size - sizes) / (sizes * max(dataset_size - 1, 1))
    return (1 - share) * largest + share * heaviest


@dataclass(frozen=True, kw_only=True)
class MeasuredBracket:
    """Bracket of stable learning rates at every batch size, from single samples.

    Attributes
    ----------
    samples
        N.
    largest, bound
        Largest eigenvalue of G as Lanczos found it, and its error bound: it lies from one to their sum, except with
        probability 0.01.
    heaviest
        L.
    curvatures, variances
        u' G u and Var_i(u' G_i u) along each direction.
    directions
        Their names: eigenvectors of G, and those of heavy samples.
    """

    samples: int
    largest: float
    bound: float
    heaviest: float
    curvatures: tuple[float, ...] = field(repr=False)
    variances: tuple[float, ...] = field(repr=False)
    directions: tuple[str, ...] = field(repr=False)

    def rates(self, batch_sizes: ArrayLike) -> RateBracket:
        """Stable below the first, not above the second; see `theory.learning_rates.mean_square_bracket`."""
        most = self.largest + self.bound
        square = square_bound(
            most, max(self.heaviest, most), batch_size=batch_sizes, dataset_size=self.samples
        )
        return learning_rates.mean_square_bracket(
            self.curvatures, self.variances, square=square, batch_size=batch_sizes, dataset_size=self.samples
        )

    def deciding(self, batch_size: int) -> str:
        """The direction of the upper side."""
        along = learning_rates.mean_square_limit(
            self.curvatures, noise=self.variances, batch_size=batch_size, dataset_size=self.samples
        )
        return self.directions[int(np.argmin(along))]


def measured_bracket(top: Extremes, found: SampleDirections, unit: float) -> MeasuredBracket:
    """Statistics of the samples along the eigenvectors `top` of G and along those of the heaviest samples.

    Parameters
    ----------
    top
        Largest eigenpairs of G.
    found
        What the samples do along these, and along those of the heavy samples.
    unit
        Factor that makes the mean over the samples G: `Problem.unit`.

    Raises
    ------
    ValueError
        If the loss has no curvature.
    """
    names = [f"v{k + 1}" for k in range(top.vectors.shape[1])] + [f"sample {i}" for i in found.heavy]
    inside = np.diagonal(found.statistics.projected, axis1=1, axis2=2)
    forms = unit * np.concatenate([inside, found.forms], axis=1)
    means, variances = forms.mean(0), forms.var(0, ddof=1) if len(forms) > 1 else np.zeros(forms.shape[1])
    if not means.max() > 0:
        raise ValueError("model must have curvature along some direction, got a Gauss-Newton matrix of zero")
    curved = np.flatnonzero(means > _ROUNDING * means.max())
    return MeasuredBracket(
        samples=len(forms),
        largest=float(top.values[0]),
        # a search that ended early has not looked for larger eigenvalues: the ceiling holds them
        bound=max(float(top.bounds[0]), top.ceiling - float(top.values[0])),
        heaviest=float(unit * found.grams.largest.max()),
        curvatures=tuple(means[curved].tolist()),
        variances=tuple(variances[curved].tolist()),
        directions=tuple(names[k] for k in curved),
    )
