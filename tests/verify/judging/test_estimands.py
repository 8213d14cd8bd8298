"""Intervals of scores: vector scores, every kind in the engine, and its words."""

import dataclasses
import math

import numpy as np
import pytest

from simulate.monte_carlo import Block, Point, SerialExecutor
from tests.refusals import refusal
from tests.verify.judging.by_hand import (
    POINT,
    SIZES,
    judged,
    law,
    tight as claim,
)
from tests.verify.running.engine_runs import judge_claim
from verify.judging.estimands import components
from verify.judging.judge import replicates_fixed
from verify.model import ALPHA, Claim, Experiment, Kind, Tier
from verify.results import Row
from verify.running.engine import Session, Settings
from verify.running.sampled import at_component

# --- vector scores


def vector(kind: Kind = Kind.MEAN, **changes) -> Claim:
    point = Point(scale=3.0, x=(0.3, 0.7, 1.9))
    return claim(kind, point, **{"along": "x", "predict": lambda p: p.scale * p.x, **changes})


def test_a_vector_is_judged_at_each_component() -> None:
    tested = vector()
    point = tested.experiment.points[0]
    found = components(tested, point)
    assert found == tuple(Point(scale=3.0, x=x) for x in (0.3, 0.7, 1.9))
    scores = {"y": np.arange(12.0).reshape(4, 3), "one": np.arange(4.0), "pair": np.ones((4, 2))}
    for i in range(3):
        mine = at_component(tested, point, scores, i)
        assert mine["y"].tolist() == scores["y"][:, i].tolist()
        assert mine["one"] is scores["one"] and mine["pair"] is scores["pair"]
    sizes = claim(Kind.LIMIT, SIZES, terms=(1, 2))
    assert components(sizes, SIZES) == (SIZES,) and at_component(sizes, SIZES, scores, 0) is scores
    assert components(claim(Kind.MEAN), POINT) == (POINT,)


def test_a_score_without_the_components_it_runs_along_is_refused() -> None:
    """One part of a ratio may be the same for all of them."""
    ratio = vector(kind=Kind.RATIO, score=("y", "total"))
    for tested, y in ((vector(), np.ones((64, 2))), (vector(), np.ones(64)), (ratio, np.ones(64))):
        with refusal(r"score .* must have one component for each of 3 values of x, got"):
            at_component(tested, tested.experiment.points[0], {"y": y, "total": np.ones(64)}, 0)
    with refusal(r"score 'y' must be one number per replicate, got shape \(64, 2\)"):
        judged(claim(Kind.MEAN), np.ones((64, 2)))
    both = {"y": np.ones((64, 3)), "total": np.ones(64)}
    assert at_component(ratio, ratio.experiment.points[0], both, 2)["y"].shape == (64,)


# --- in the engine


def curves(block: Block, point: Point) -> dict[str, np.ndarray]:
    m = np.array(point.sizes, dtype=float)
    noise = np.stack([rng.standard_normal(len(m)) for rng in block.streams])
    return {"limit": 3 + 5 / m + 0.02 * noise, "growing": m**1.5 * (1 + 0.01 * noise), "mean": noise[:, 0]}


CURVED = Experiment(id="paper/curves", replicate="one curve", simulate=curves, points=(SIZES,), budget=100)
LIMIT = claim(Kind.LIMIT, id="paper/limit", experiment=CURVED, score="limit", terms=(1, 2), margin=0.001)
EXPONENT = claim(
    Kind.EXPONENT, id="paper/exponent", experiment=CURVED, score="growing", terms=(1,), predict=lambda p: 1.5
)
COMPONENT = claim(
    Kind.MEAN, id="paper/vector", experiment=CURVED, score="limit", along="sizes", margin=0.002,
    predict=lambda p: 3 + 5 / p.sizes,
)  # fmt: skip
HARD = claim(experiment=CURVED, score="mean", relative=False, margin=0.2, predict=lambda p: 0.0)
TOGETHER = (LIMIT, EXPONENT, COMPONENT, HARD)


def rows(claims: tuple[Claim, ...], executor=None, **settings) -> list[Row]:
    made = Session(claims, Settings(seed=5, **settings), executor or SerialExecutor())
    return [dataclasses.replace(row, seconds=0.0) for c in claims for row in made.rows(c)]


@pytest.mark.parametrize(("settings", "at"), [({"tier": Tier.FULL}, 112), ({"replicates": 70}, 80)], ids=str)
def test_a_model_based_claim_is_judged_once_and_after_its_own_budget(settings: dict, at: int) -> None:
    """More replicates would resolve what the size model leaves out; other claims on the run go on."""
    assert replicates_fixed(LIMIT) == 112 and replicates_fixed(HARD) is None
    limit, exponent, *others = rows(TOGETHER, **settings)
    for row in (limit, exponent):
        (point,) = row.points
        assert row.model_based and [look.replicates for look in point.looks] == [point.replicates] == [at]
    assert repr(limit.points) == repr(rows((LIMIT,), **settings)[0].points)
    assert others == [row for c in TOGETHER[2:] for row in rows((c,), **settings)]
    assert [p.parameters["sizes"] for p in others[0].points] == list(SIZES.sizes)
    assert (others[-1].points[0].replicates > 112) == (at == 112)


def test_a_model_based_claim_by_itself_is_judged_on_no_more_than_its_budget() -> None:
    (found,) = judge_claim(LIMIT, Settings(seed=5), replicates=256)
    assert found.replicates == 112 and [look.replicates for look in found.looks] == [112]


# --- in words


def steady(block: Block, point: Point) -> dict[str, np.ndarray]:
    return {"y": np.array([point.scale * rng.uniform(0.5, 1.0) for rng in block.streams])}


STEADY = Experiment(id="paper/steady", replicate="one y", simulate=steady, points=(POINT,), budget=2048)


def bounded(limit: float) -> Claim:
    return claim(Kind.NEVER_ABOVE, experiment=STEADY, predict=lambda p: limit, relative=False, margin=0.05)


def test_a_bound_on_every_replicate_says_what_was_and_was_not_seen() -> None:
    (row,) = rows((bounded(6.0),))
    rarest = math.log(1 / ALPHA) / row.points[0].replicates
    assert row.sensitivity == pytest.approx(rarest) and f"rarer than {100 * rarest:.2g} %" in row.power
    (row,) = rows((bounded(2.9),))
    assert row.power == f"Broken in {100 * row.points[0].measured:.2g} % of the replicates."


def test_a_distribution_says_which_difference_would_have_been_caught() -> None:
    uniform = law(lambda t: np.clip((t - 1.5) / 1.5, 0.0, 1.0), experiment=STEADY, margin=0.15)
    (row,) = rows((uniform,))
    point = row.points[0]
    assert row.verdict == "agrees" and f"beyond {point.upper:.2g} is excluded" in row.power
    assert row.sensitivity == pytest.approx(point.margin + 2 * (point.upper - point.measured))
