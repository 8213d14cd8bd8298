"""The largest eigenvalue of a random batch at every batch size, from the samples: its mean, and how batches scatter.

The own-direction law (docs/claims/beyond.md, D1) on what `simulate.modules.sample_directions` measures once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from simulate.modules.sample_directions import SampleStatistics
from simulate.spectra import Estimate
from theory import own_direction
from theory.own_direction import OwnDirections

_BATCHES = 256
"""Drawn for each size from what is stored of the samples; the network is not touched again."""

_ENTRIES = 1 << 17
"""Most entries of index arrays: large batches scatter little, so fewer of them suffice."""

_LEAST = 32
_SHARE = (0.1, 0.9)


@dataclass(frozen=True, kw_only=True)
class BatchEigenvalue:
    """Largest eigenvalue of a batch of one size.

    Attributes
    ----------
    mean
        Over batches; its error is that of the batches drawn with what half of the directions would change.
    low, high
        Eight of ten batches lie between.
    """

    mean: Estimate
    low: float
    high: float


def summarised(values: NDArray[np.float64]) -> BatchEigenvalue:
    """Return mean and scatter of independent batches; the error of the mean is its standard error.

    >>> summarised(np.array([1.0, 2.0, 3.0])).mean
    Estimate: 2 ± 0.58
    """
    low, high = np.quantile(values, _SHARE).tolist()
    error = float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return BatchEigenvalue(mean=Estimate(float(values.mean()), error), low=low, high=high)


class BatchLaw:
    """The law of some samples.

    Parameters
    ----------
    statistics
        Of the samples.
    unit
        Factor that makes the mean over the samples the matrix of the loss.

    Examples
    --------
    >>> two = SampleStatistics(
    ...     np.array([2.0]), np.array([[[3.0]], [[1.0]]]), np.array([[[9.0]], [[2.0]]]), np.array([3.0, 2.0]),
    ...     np.array([[1.0], [0.5**0.5]]), 0.0, 0.0,
    ... )
    >>> BatchLaw(two).at(2, np.random.default_rng(0)).mean
    Estimate: 2 ± 0
    """

    def __init__(self, statistics: SampleStatistics, unit: float = 1.0) -> None:
        self._statistics, self._unit = statistics, unit
        count = statistics.projected.shape[1]
        self._all_samples, self._half_of_samples = self._on(count), self._on(-(-count // 2))

    def at(self, size: int, rng: np.random.Generator) -> BatchEigenvalue:
        """Return the law at one batch size, from 1 to the number of samples."""
        batches = self._sample_batch(size, rng)
        values = own_direction.batch_eigenvalues(self._all_samples, batches)
        mean = float(own_direction.expected_eigenvalue(self._all_samples, batches))
        fewer = float(own_direction.expected_eigenvalue(self._half_of_samples, batches))
        drawn = summarised(values)
        error = (
            math.hypot(drawn.mean.standard_error, mean - fewer) if size < self._all_samples.samples else 0.0
        )
        return replace(drawn, mean=Estimate(mean, error))

    def _on(self, count: int) -> OwnDirections:
        found, unit = self._statistics, self._unit
        return own_direction.own_directions(
            unit * found.projected[:, :count, :count],
            unit**2 * found.squared[:, :count, :count],
            unit * found.largest,
            found.overlaps[:, :count],
            background=unit * found.background,
            spread=unit**2 * found.spread,
        )

    def _sample_batch(self, size: int, rng: np.random.Generator) -> NDArray[np.intp]:
        samples = self._all_samples.samples
        if size == samples:
            return np.arange(samples)[None]
        count = max(_LEAST, min(_BATCHES, _ENTRIES // size))
        each = samples // size
        orders = [
            rng.permutation(samples)[: each * size].reshape(each, size) for _ in range(-(-count // each))
        ]
        return np.concatenate(orders)[:count]
