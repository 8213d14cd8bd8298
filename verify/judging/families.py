"""Score of properties that hold many simulators at once: measurement over prediction."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from simulate.monte_carlo import Block, Point
from verify.model import AnyClaim, Claim, value_at


def ratio(claim: Claim, block: Block, point: Point) -> Any:
    """Return the score of a claim over its prediction, one number for each replicate, at any point."""
    scores = claim.experiment.simulate(block, point)
    if not claim.inputs:
        return scores[str(claim.score)] / value_at(claim.predict, point)
    measured = {name: _numbers(scores[name]) for name in claim.inputs}
    return _numbers(scores[str(claim.score)]) / claim.predict(SimpleNamespace(**point, **measured))


def by_name(claims: Iterable[AnyClaim], *names: str) -> dict[str, Claim]:
    """Return the claims of these names, without their paper, that are on experiments."""
    found = {claim.id.partition("/")[2]: claim for claim in claims if isinstance(claim, Claim)}
    return {name: found[name] for name in names}


def one(_: Point) -> float:
    """Return 1, the prediction for a ratio of measurement to theory.

    >>> one(Point())
    1.0
    """
    return 1.0


def _numbers(score: Any) -> Any:
    return score.cpu().numpy() if hasattr(score, "cpu") else score
