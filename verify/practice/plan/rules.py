"""Rules for learning rates, shown next to the bracket: one batch alone, Theorem 4, and Adam's square root."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from simulate.spectra import Estimate
from theory import learning_rates
from theory.batch_hessian import element_variance
from verify.practice.plan.batch_law import BatchEigenvalue
from verify.practice.plan.rate_bracket import MeasuredBracket


class Anchor(NamedTuple):
    """A learning rate of Adam that is known to be good, and its batch size."""

    rate: float
    batch_size: int


@dataclass(frozen=True, kw_only=True)
class BatchRates:
    """Learning rates at one batch size.

    Attributes
    ----------
    batch_size
        B.
    lower, upper
        SGD is stable in the mean square below the first and not above the second.
    deciding
        The direction that gives the upper one: an eigenvector of the Gauss-Newton matrix, or that of a sample.
    batch
        Largest Gauss-Newton eigenvalue of random batches.
    sharpness
        2 over its mean, the rate at which full steps on one batch alone would be stable.
    theorem_4
        2 over the eigenvalue of Theorem 4, with the error that the probes leave.
    adam
        The square-root rule from the anchor; None without one.
    """

    batch_size: int
    lower: float
    upper: float
    deciding: str
    batch: BatchEigenvalue
    sharpness: Estimate
    theorem_4: Estimate
    adam: float | None


def anchored(adam: tuple[float, int] | None) -> Anchor | None:
    """A rate of Adam and its batch size, checked.

    Raises
    ------
    ValueError
        If the rate is not positive and finite, or the batch size below 1.
    """
    if adam is None:
        return None
    rate, size = adam
    if not (0 < rate < math.inf and size >= 1):
        raise ValueError(f"Adam's rate must be positive and its batch size at least 1, got {rate} and {size}")
    return Anchor(float(rate), int(size))


def rates_at(
    size: int,
    batch: BatchEigenvalue,
    bracket: MeasuredBracket,
    variance: Estimate,
    anchor: Anchor | None,
    dim: int,
) -> BatchRates:
    """All rates at one batch size.

    Parameters
    ----------
    size
        B, from 1 to the number of samples.
    batch
        Largest eigenvalue of batches of this size.
    bracket, variance
        Statistics of the samples, and the mean over them of |G_i - G|_F^2.
    anchor
        Of Adam's rule.
    dim
        P.
    """
    lower, upper = bracket.rates(size)

    def of_theorem_4(total: float) -> float:
        return float(
            learning_rates.sgd_limit(
                bracket.largest,
                sigma=math.sqrt(element_variance(total / dim, dim=dim)),
                dim=dim,
                batch_size=size,
                dataset_size=bracket.samples,
            )
        )

    low, high = (of_theorem_4(variance.value + side * variance.standard_error) for side in (0.0, 1.0))
    return BatchRates(
        batch_size=size,
        lower=float(lower),
        upper=float(upper),
        deciding=bracket.deciding(size),
        batch=batch,
        sharpness=Estimate(2 / batch.mean.value, 2 * batch.mean.standard_error / batch.mean.value**2),
        theorem_4=Estimate(low, abs(high - low)),
        adam=None if anchor is None else _adam(anchor, size),
    )


def _adam(anchor: Anchor, size: int) -> float:
    """By B, as the rule is used, and not by b of the paper, which is infinite for all samples at once."""
    return float(
        learning_rates.square_root(
            anchor.rate, known=anchor.batch_size, batch_size=size, dataset_size=math.inf
        )
    )
