"""Properties: every example that hypothesis finds is judged, and all of them make one row."""

from __future__ import annotations

from typing import Any

from verify.claims import registry
from verify.judging.power import explored_power
from verify.judging.properties import Explored, explore_exact, explore_statistical
from verify.model import ExactProperty, StatisticalProperty, Tier, Verdict
from verify.results import Row
from verify.running.pump import Pump
from verify.running.rows import require_separated, row_of
from verify.running.sampled import judged_alone
from verify.running.settings import Settings

FEW, MANY = 10, 100
"""Examples drawn of a property; the second number if examples are quick or the tier is full."""

QUICK = 0.01
"""Declared seconds below which an example is quick."""

AGREEING_SHARE = 0.9


def examples_drawn(claim: ExactProperty | StatisticalProperty, tier: Tier) -> int:
    """Return how many examples of a property are drawn, beside those that it names."""
    # Declared seconds, not measured ones: a slow machine draws as many examples as a fast one.
    each = claim.seconds / (FEW + len(claim.examples))
    return MANY if tier is Tier.FULL or each < QUICK else FEW


def exact_row(claim: ExactProperty, settings: Settings) -> Row:
    """The row of a property that holds or fails at an example, without statistics."""
    explored = explore_exact(claim, settings.seed, examples_drawn(claim, settings.tier))
    require_separated(tuple(claim.rivals), explored.outcomes)
    return _row(
        claim,
        explored,
        settings,
        kind="exact property",
        margin=claim.tolerance,
        margin_reason=claim.tolerance_reason,
    )


def exact_row_by_name(name: str, settings: Settings) -> Row:
    """The row of a registered property, found by its id: lambdas among its formulas cannot be sent to a worker."""
    listed: Any = registry.claims(registry.papers_with([name]))
    return exact_row(next(claim for claim in listed if claim.id == name), settings)


def statistical_row(claim: StatisticalProperty, pump: Pump, settings: Settings, alpha: float) -> Row:
    """The row of a property that is judged on replicates at each example."""
    explored = explore_statistical(
        claim,
        lambda example, replicates, share: judged_alone(example, pump, settings, replicates, share)[0],
        settings.seed,
        examples_drawn(claim, settings.tier),
        alpha,
    )
    return _row(
        claim,
        explored,
        settings,
        kind="property",
        margin=claim.margin,
        relative=claim.relative,
        margin_reason=claim.margin_reason,
        replicate=claim.replicate,
        quantity=claim.quantity,
    )


def _row(
    claim: ExactProperty | StatisticalProperty, explored: Explored, settings: Settings, **facts: Any
) -> Row:
    """Return the row of a property: one disagreeing example decides it; else all named and nine in ten must agree."""
    failing = [explored.failing] if explored.failing else []
    agree = [o.verdict == Verdict.AGREES for o in explored.outcomes]
    # The named examples come first. A case that is off by another factor in each replicate is too noisy to disagree.
    agrees = agree and sum(agree) >= AGREEING_SHARE * len(agree) and all(agree[: len(claim.examples)])
    power = explored_power(claim, explored)
    return row_of(
        claim,
        "theory",
        settings,
        verdict=Verdict.DISAGREES if failing else Verdict.AGREES if agrees else Verdict.UNDECIDED,
        power=power.words,
        sensitivity=power.sensitivity,
        data=claim.data,
        seconds=explored.seconds,
        # the simplest failing example last, where a reader looks for it
        points=[*(o for o in explored.outcomes if o is not explored.failing), *failing],
        **facts,
    )
