"""From scores to intervals: vector scores, every kind in the engine, and its words."""

import dataclasses
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from simulate.monte_carlo import Block, Point, SerialExecutor
from tests.verify.judging.by_hand import (
    POINT,
    SIZES,
    exponential,
    grouped,
    judged,
    law,
    spread_evenly,
    tight as claim,
)
from tests.verify.running.engine_runs import judge_claim
from verify.judging import estimands
from verify.judging.estimands import Estimand, components, estimated, variance
from verify.judging.intervals import FEWEST
from verify.judging.judge import judge, readings, replicates_fixed
from verify.model import ALPHA, Claim, Experiment, Kind, Tier, Verdict
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
    for i, at in enumerate(found):
        mine = at_component(tested, point, scores, i)
        assert mine["y"].tolist() == scores["y"][:, i].tolist()
        assert mine["one"] is scores["one"] and mine["pair"] is scores["pair"]
        column = {"y": spread_evenly(3.0 * at.x, 0.01)}
        assert judge(tested, readings(tested)[0], at, column, ALPHA).verdict is Verdict.AGREES
    sizes = claim(Kind.LIMIT, SIZES, terms=(1, 2))
    assert components(sizes, SIZES) == (SIZES,) and at_component(sizes, SIZES, scores, 0) is scores
    assert components(claim(Kind.MEAN), POINT) == (POINT,)


@pytest.mark.parametrize("y", [np.ones((64, 2)), np.ones(64)])
def test_a_score_without_the_components_it_runs_along_is_refused(y: np.ndarray) -> None:
    tested = vector()
    with pytest.raises(
        ValueError, match=r"score 'y' must have one component for each of 3 values of x, got shape"
    ):
        at_component(tested, tested.experiment.points[0], {"y": y}, 0)
    with pytest.raises(ValueError, match=r"score 'y' must be one number per replicate, got shape \(64, 2\)"):
        judged(claim(Kind.MEAN), np.ones((64, 2)))


def test_one_part_of_a_ratio_may_be_the_same_for_all_components() -> None:
    tested = vector(kind=Kind.RATIO, score=("y", "total"))
    scores = {"y": np.ones((64, 3)), "total": np.ones(64)}
    assert at_component(tested, tested.experiment.points[0], scores, 2)["y"].shape == (64,)
    with pytest.raises(ValueError, match=r"score \('y', 'total'\) must have one component"):
        at_component(tested, tested.experiment.points[0], {"y": np.ones(64), "total": np.ones(64)}, 2)


def test_an_estimate_counts_the_replicates_it_rests_on() -> None:
    y = {"y": np.random.default_rng(1).exponential(size=100)}
    for tested, n in ((claim(Kind.MEAN), 100), (law(exponential(1.0)), FEWEST), (grouped(variance), 100)):
        assert estimated(Estimand(tested, tested.predict, "y", POINT, y, 0.05)).replicates == n


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
HARD = claim(
    Kind.MEAN,
    id="paper/hard",
    experiment=CURVED,
    score="mean",
    relative=False,
    margin=0.2,
    predict=lambda p: 0.0,
)
TOGETHER = (LIMIT, EXPONENT, COMPONENT, HARD)


def rows(claims: tuple[Claim, ...], executor=None, **settings) -> list[Row]:
    made = Session(claims, Settings(seed=5, **settings), executor or SerialExecutor())
    return [dataclasses.replace(row, seconds=0.0) for c in claims for row in made.rows(c)]


@pytest.mark.parametrize(
    ("settings", "at"),
    [
        ({}, 112),
        ({"tier": Tier.FULL}, 112),
        ({"replicates": 70}, 80),
    ],
    ids=str,
)
def test_a_model_based_claim_is_judged_once_and_after_its_own_budget(settings: dict, at: int) -> None:
    """More replicates would resolve what the size model leaves out; other claims on the run go on."""
    assert replicates_fixed(LIMIT) == 112 and replicates_fixed(HARD) is None
    limit, exponent, *others = rows(TOGETHER, **settings)
    for row in (limit, exponent):
        (point,) = row.points
        assert row.model_based and [look.replicates for look in point.looks] == [point.replicates] == [at]
        assert repr(row.points) == repr(rows((CLAIM_OF[row.claim],), **settings)[0].points)
    assert others == [row for c in TOGETHER[2:] for row in rows((c,), **settings)]
    hard = others[-1].points[0]
    assert (hard.replicates > 112) == (settings == {"tier": Tier.FULL})
    default = rows((LIMIT,))[0].points
    assert (limit.points == default) == (at == 112)


CLAIM_OF = {c.id: c for c in TOGETHER}


def test_a_model_based_claim_by_itself_is_judged_on_no_more_than_its_budget() -> None:
    (found,) = judge_claim(LIMIT, Settings(seed=5), replicates=256)
    assert found.replicates == 112 and [look.replicates for look in found.looks] == [112]


def test_two_workers_that_finish_in_any_order_give_the_same_bits_of_vector_scores() -> None:
    with ThreadPoolExecutor(2) as pool:
        made = [
            Session(TOGETHER, Settings(seed=5, workers=w), e) for w, e in ((1, SerialExecutor()), (2, pool))
        ]
        found = [[dataclasses.replace(r, seconds=0.0) for c in TOGETHER for r in m.rows(c)] for m in made]
    assert repr(found[0]) == repr(found[1])  # NaN where there is no interval yet
    assert [r.sha256 for r in made[0].records()] == [r.sha256 for r in made[1].records()]
    assert [len(row.points) for row in found[0]] == [1, 1, 5, 1]
    assert [p.parameters["sizes"] for p in found[0][2].points] == list(SIZES.sizes)


def test_a_wrong_width_breaks_the_claim_that_reads_it_and_no_other() -> None:
    bad = dataclasses.replace(COMPONENT, id="paper/bad", score="mean")
    broken, fine = rows((bad, LIMIT))
    assert broken.verdict == "broken" and "score 'mean' must have one component for each of 5" in broken.error
    assert fine.verdict != "broken"


# --- in words


def steady(block: Block, point: Point) -> dict[str, np.ndarray]:
    return {"y": np.array([point.scale * rng.uniform(0.5, 1.0) for rng in block.streams])}


STEADY = Experiment(id="paper/steady", replicate="one y", simulate=steady, points=(POINT,), budget=2048)


@pytest.mark.parametrize(
    ("kind", "predict", "rivals", "sentence"),
    [
        (
            Kind.NEVER_ABOVE,
            6.0,
            {"r": 5.0},
            " It holds, loose by a factor of 2.",
        ),
        (Kind.NEVER_BELOW, 0.75, {"r": 1.0}, " It holds, loose by a factor of 2."),
        (
            Kind.AT_LEAST,
            0.75,
            {"r": 0.5},
            " It holds, loose by a factor of 2.9.",
        ),
        (Kind.AT_MOST, 9.0, {"r": 1.0}, " It holds, loose by a factor of 4.1."),
        (Kind.AT_MOST, 2.26, {"r": 1.0}, ""),
    ],
)
def test_a_bound_that_holds_says_by_which_factor(
    kind: Kind, predict: float, rivals: dict, sentence: str
) -> None:
    tested = claim(
        kind,
        experiment=STEADY,
        predict=lambda p: predict,
        rivals={k: lambda p, v=v: v for k, v in rivals.items()},
        relative=False,
        margin=0.05,
    )
    (row,) = rows((tested,))
    assert row.verdict == "agrees" and row.power.endswith(sentence or ".")
    assert ("loose" in row.power) == bool(sentence)


def test_a_bound_on_every_replicate_says_what_was_and_was_not_seen() -> None:
    tested = claim(Kind.NEVER_ABOVE, experiment=STEADY, predict=lambda p: 6.0, relative=False, margin=0.05)
    (row,) = rows((tested,))
    rarest = 100 * math.log(1 / ALPHA) / row.points[0].replicates
    assert row.power.startswith(f"No violation in any replicate: they are rarer than {rarest:.2g} %.")
    (few,) = rows((tested,), replicates=32)
    assert few.verdict == "undecided" and few.power == "No interval yet: this run excludes nothing."
    (row,) = rows((dataclasses.replace(tested, predict=lambda p: 2.9),))
    first = row.points[0].violations[0]
    assert row.power.startswith(f"Broken: by {first.by:.2g} in replicate {first.replicate}, and in ")


def test_a_distribution_says_which_differences_are_excluded() -> None:
    uniform = claim(
        Kind.DISTRIBUTION,
        experiment=STEADY,
        predict=lambda p: lambda t: np.clip((t - 1.5) / 1.5, 0.0, 1.0),
        relative=False,
        margin=0.15,
    )
    (row,) = rows((uniform,))
    point = row.points[0]
    caught = point.margin + 2 * (point.upper - point.measured)
    assert row.verdict == "agrees" and row.power == (
        f"Distribution functions that differ by more than {point.upper:.2g} somewhere are excluded by this run; "
        f"a difference of {caught:.2g} would have been caught."
    )


def test_every_kind_has_its_measure() -> None:
    assert set(estimands._MEASURES) == set(Kind)
