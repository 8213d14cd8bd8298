"""Observations: the table is that of the scores, drawn like any others, and nothing of it is judged."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simulate.monte_carlo import Block, Point, SerialExecutor, stream
from tests.refusals import refusal
from tests.verify.command_line import Planter, elsewhere
from tests.verify.toy_claims import EXACT, LOST, RIGHT, SEEN, plant
from verify.claims import registry
from verify.claims.images import on_images
from verify.claims.registry import admit_observations, select, select_observations
from verify.model import Tier
from verify.model.inventory import Entry
from verify.model.observation import Column, Observation
from verify.results import Observed
from verify.running.engine import Session, Settings
from verify.running.store import Store

__all__ = ["elsewhere", "plant"]

RESULTS = Path("out/results.json")


def session(*observations: Observation, store: Store | None = None, **changes: Any) -> Session:
    return Session((), Settings(seed=5, **changes), SerialExecutor(), store=store, observations=observations)


def observed(observation: Observation, **changes: Any) -> Observed:
    return session(observation, **changes).observed(observation)


# --- the table


def test_a_table_is_made_of_replicates_drawn_one_by_one() -> None:
    made = observed(SEEN)
    for point, group in zip(SEEN.points, made.groups, strict=True):
        drawn = [SEEN.simulate(Block((stream(5, SEEN.id, point, i),)), point) for i in range(3)]
        assert group.parameters == {"scale": point.scale} and [r.at for r in group.rows] == [4.0, 16.0, 64.0]
        for k, row in enumerate(group.rows):
            for cell, column in zip(row.cells, SEEN.columns, strict=True):
                values = [np.broadcast_to(scores[column.score], (1, 3))[0, k] for scores in drawn]
                assert (cell.mean, cell.lowest, cell.highest) == (np.mean(values), min(values), max(values))
    assert (made.replicates, made.error, made.along, made.axis) == (3, "", "size", "size")


def test_replicates_are_fixed_but_for_the_full_tier_and_a_smaller_number() -> None:
    assert observed(SEEN, tier=Tier.FULL).replicates == 12
    assert observed(SEEN, replicates=2).replicates == 2
    more = observed(SEEN, replicates=500)
    assert more.replicates == 3 and more.groups == observed(SEEN).groups


def odd(block: Block, point: Point) -> dict[str, Any]:
    """A number, a vector, one with what is no number, and one that is as long as chance has it."""
    x = [[1.0, rng.choice([math.nan, math.inf, -math.inf])] for rng in block.streams]
    ragged = np.ones((len(block), 2 if block.streams[0].random() < 0.5 else 3))
    return {"x": np.full(len(block), 1.3), "y": np.ones((len(block), 2)), "gaps": np.array(x)} | (
        {"ragged": ragged} if "ragged" in point else {}
    )


def alone(score: str, *at: int, **more: Any) -> Observation:
    """One column of odd scores, along a parameter of these values, if any."""
    point = Point(scale=1.0, **({"at": at} if at else {}), **more)
    changes = {"points": (point,), "along": "at" * bool(at), "columns": (Column(score=score, heading="h"),)}
    return replace(SEEN, simulate=odd, replicates=12, **changes)


def test_without_a_parameter_along_a_point_is_one_row_and_no_number_shows_in_its_own_row_only() -> None:
    (group,) = observed(alone("x")).groups
    assert group.parameters == {"scale": 1.0} and group.rows[0].at is None
    assert group.rows[0].cells[0].mean == pytest.approx(1.3)
    first, second = observed(alone("gaps", 3, 5)).groups[0].rows
    assert first.cells[0].mean == 1.0 and math.isnan(second.cells[0].mean)


@pytest.mark.parametrize(
    ("observation", "error"),
    [
        (LOST, "RuntimeError: the detector is off"),
        (alone("z"), "column must show one of the scores x, y, gaps, got 'z'"),
        (alone("y"), "score 'y' must have no components, got 2"),
        (alone("y", 1, 2, 3), "must have one component for each of the 3 values of 'at', got 2"),
        (alone("ragged", ragged=1), "must match exactly"),
    ],
)
def test_a_crash_breaks_its_own_observation_only(observation: Observation, error: str) -> None:
    broken = replace(observation, id="beyond/bad")
    together = session(broken, SEEN)
    assert error in together.observed(broken).error and together.observed(broken).groups == []
    assert together.observed(SEEN).groups == observed(SEEN).groups
    assert {record.experiment for record in together.records()} >= {SEEN.id}
    assert [made.id for made in together.finished_observations()] == [broken.id, SEEN.id]


# --- with the machinery of claims


def test_finished_replicates_are_read_and_not_drawn_again(tmp_path: Path) -> None:
    with Store(tmp_path, print) as store:
        observed(SEEN, store=store, replicates=2)
    with Store(tmp_path, print) as store:
        made = session(SEEN, store=store)
        assert store.replicates == 4 and made.observed(SEEN).groups == observed(SEEN).groups
        assert [record.replicates for record in made.records()] == [3, 3]


def test_what_draws_from_images_takes_those_of_the_run(tmp_path: Path) -> None:
    file = str(tmp_path / "images.npz")
    np.savez(file, x_train=np.random.default_rng(0).random((50, 8, 8)), y_train=np.arange(50) % 10)
    few, many = (replace(SEEN, points=(Point(images="digits", samples=n),), data="digits") for n in (40, 60))
    own = (Point(images=file, samples=40),)
    assert on_images([few], file) == (replace(few, data="images.npz", points=own),)
    with refusal("must hold at least 60 images to draw from, got 50"):
        on_images([many], file)


# --- the registry


ENTRIES = {"beyond": (Entry("D1", "one", "open"), Entry("D2", "two", "observed", "as it is"))}
DIFFERENT = "have a tuple of different numbers"


@pytest.mark.parametrize(
    ("field", "value", "rule"),
    [
        ("id", "nowhere/x", "begin with one of beyond"),
        ("id", RIGHT.id, "have an id of its own, among claims"),
        ("id", "toy/uniform", "have an id of its own, among claims"),
        ("entries", (), "cover an entry of the inventory"),
        ("entries", ("D1", "D9"), "cover known entries, not D9"),
        ("title", " ", "say its source, its title, what"),
        ("replicate", " ", "say its source, its title, what"),
        ("note", "too large by $x$", "be told in plain words"),
        ("simulate", lambda block, point: {}, "draw with a function at module level"),
        ("points", (), "have points"),
        ("points", SEEN.points * 2, "have points, all different"),
        ("columns", (), "have columns"),
        ("columns", SEEN.columns[:1] * 2, "have columns, each with a heading of its own"),
        ("columns", (Column(score="", heading="h"),), "name the score and the heading"),
        ("along", "scale", DIFFERENT),
        *(("points", (Point(size=s),), DIFFERENT) for s in ((3, 3), (3, True), (3, math.inf), ("a", "b"))),
        ("brief", (Point(size=(3, 3)),), DIFFERENT),
        ("replicates", 0, "have at least one replicate"),
        ("seconds", math.nan, "say how many seconds"),
        ("tier", Tier.SMOKE, "belong to the default tier or to the full one"),
    ],
)
def test_what_an_observation_must_say(field: str, value: Any, rule: str) -> None:
    admit_observations([SEEN, LOST], [RIGHT, EXACT], ENTRIES)
    with refusal(rf"observation \S+ must .*{rule}"):
        admit_observations([replace(SEEN, **{field: value})], [RIGHT], ENTRIES)
    with refusal("observation beyond/seen must have an id of its own"):
        admit_observations([SEEN, SEEN], [], ENTRIES)


def test_observations_are_selected_by_tier_paper_and_id(plant: Planter) -> None:
    late = replace(SEEN, id="beyond/late", tier=Tier.FULL)
    plant(RIGHT, SEEN, late)
    assert select_observations(Tier.SMOKE) == select(claim=["beyond/seen"]) == ()
    assert select_observations(Tier.DEFAULT) == select_observations(Tier.DEFAULT, paper=["beyond"]) == (SEEN,)
    assert select_observations(Tier.FULL) == (SEEN, late)
    assert select_observations(Tier.SMOKE, claim=["beyond/late"]) == (late,)
    assert select_observations(paper=["karakida2019"]) == select_observations(claim=["beyond/right"]) == ()
    with refusal(r"got 'beyond/sen'; did you mean beyond/seen\?"):
        select_observations(claim=["beyond/sen"])


def test_the_default_tier_draws_one_replicate_at_the_brief_points_and_says_so(plant: Planter) -> None:
    plant(RIGHT, replace(SEEN, brief=SEEN.points[:1], replicates=3))
    (here,), (whole,) = select_observations(Tier.DEFAULT), select_observations(Tier.FULL)
    assert (here.points, here.replicates) == (SEEN.points[:1], 1) and len(whole.points) == len(SEEN.points)
    assert here.note.endswith(f"one replicate is drawn, at 1 of {len(SEEN.points)} points.")


def test_an_entry_is_observed_where_no_claim_judges_it(
    plant: Planter, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(RIGHT, SEEN, replace(SEEN, id="beyond/too", entries=("karakida2019/C43",)))
    rows = {(row.paper, row.id): row for row in registry.inventory()}
    both, only = rows["beyond", "D1"], rows["karakida2019", "C43"]
    assert (both.status, both.claims, both.observations) == ("judged", ["beyond/right"], ["beyond/seen"])
    assert (only.status, only.claims, only.observations, only.reason) == ("observed", [], ["beyond/too"], "")
