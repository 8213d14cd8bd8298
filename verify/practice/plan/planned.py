"""The record of a plan: what was found about a network, and the rates at every batch size."""

from __future__ import annotations

from dataclasses import dataclass

from simulate.spectra import Estimate
from verify.practice.plan.rate_bracket import MeasuredBracket
from verify.practice.plan.rules import Anchor, BatchRates
from verify.practice.plan.trial_runs import Trial

__all__ = ["Plan"]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What was found about a network, and the rates at every batch size.

    Attributes
    ----------
    name, samples, parameters, loss
        Of the problem: N samples, P parameters, value of the loss.
    bracket
        Statistics of the samples; gives the bracket at any other batch size too.
    hessian, hessian_bound
        Largest eigenvalue of the Hessian and its error bound.
    variance
        Mean over the samples of |G_i - G|_F^2, with its standard error.
    rates
        One for each batch size, ascending.
    crossover
        Batch sizes between which the largest stable rate passes half of 2/lambda_1.
    crossover_along_top
        The same from the first eigenvector alone.
    anchor
        Of Adam's rule.
    checks
        What short runs have shown, if they were asked for.
    products
        Curvature times vector, for all samples together.
    seconds, seed
        Of all of it.
    """

    name: str
    samples: int
    parameters: int
    loss: float
    bracket: MeasuredBracket
    hessian: float
    hessian_bound: float
    variance: Estimate
    rates: tuple[BatchRates, ...]
    crossover: tuple[float, float]
    crossover_along_top: float
    anchor: Anchor | None
    checks: tuple[Trial, ...]
    products: float
    seconds: float
    seed: int
