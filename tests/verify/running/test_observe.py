"""Observations: the table is that of the scores, drawn like any others, and nothing of it is judged."""

from __future__ import annotations

import dataclasses
import json
import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simulate.monte_carlo import Block, Point, SerialExecutor, stream
from tests.verify import toy_claims
from tests.verify.command_line import Planter, elsewhere, judged
from tests.verify.toy_claims import LOST, SEEN, plant
from verify import results
from verify.claims import registry
from verify.claims.images import on_images
from verify.claims.registry import admit_observations, select, select_observations
from verify.cli import main
from verify.model import Tier
from verify.model.inventory import Entry
from verify.model.observation import Column, Observation
from verify.results import Observed, load
from verify.running.engine import Session, Settings
from verify.running.store import Store

__all__ = ["elsewhere", "plant"]


def session(*observations: Observation, store: Store | None = None, **changes: Any) -> Session:
    return Session((), Settings(seed=5, **changes), SerialExecutor(), store=store, observations=observations)


def observed(observation: Observation, **changes: Any) -> Observed:
    return session(observation, **changes).observed(observation)


def timeless(made: Session) -> list[Any]:
    tables = [dataclasses.replace(made.observed(o), seconds=0.0) for o in made.observations]
    return [*tables, *(dataclasses.replace(record, seconds=0.0) for record in made.records())]


# --- the table


def test_a_table_is_made_of_replicates_drawn_one_by_one() -> None:
    made = observed(SEEN)
    for point, group in zip(SEEN.points, made.groups, strict=True):
        blocks = [Block((stream(5, SEEN.id, point, i),)) for i in range(3)]
        drawn = [SEEN.simulate(block, point) for block in blocks]
        assert group.parameters == {"scale": point.scale} and [r.at for r in group.rows] == [4.0, 16.0, 64.0]
        for k, row in enumerate(group.rows):
            for cell, name in zip(row.cells, ("good", "bad"), strict=False):
                values = np.array([scores[name][0, k] for scores in drawn])
                assert (cell.mean, cell.lowest, cell.highest) == (values.mean(), values.min(), values.max())
            assert row.cells[2].mean == np.mean([scores["spent"][0] for scores in drawn])
    assert (made.replicates, made.error, made.along, made.axis) == (3, "", "size", "size")


def test_two_workers_that_finish_in_any_order_give_the_same_bits() -> None:
    with ThreadPoolExecutor(2) as pool:
        both = Session((), Settings(seed=5, workers=2), pool, observations=(SEEN, LOST))
        one, two = timeless(session(SEEN, LOST)), timeless(both)
    assert one[0] == two[0] and one[2:] == two[2:]
    assert "the detector is off" in one[1].error and "the detector is off" in two[1].error


def test_replicates_are_fixed_but_for_the_full_tier_and_a_smaller_number() -> None:
    assert observed(SEEN, tier=Tier.FULL).replicates == 12
    assert observed(SEEN, replicates=2).replicates == 2
    more = observed(SEEN, replicates=500)
    assert more.replicates == 3 and more.groups == observed(SEEN).groups


def without_along(block: Block, point: Point) -> dict[str, Any]:
    return {"x": np.full(len(block), point.scale), "y": np.ones((len(block), 2))}


def gaps(block: Block, point: Point) -> dict[str, Any]:
    values = np.array([[1.0, rng.choice([math.nan, math.inf, -math.inf])] for rng in block.streams])
    return {"x": values}


def ragged(block: Block, point: Point) -> dict[str, Any]:
    return {"x": np.ones((len(block), 2 if block.streams[0].random() < 0.5 else 3))}


def alone(simulate: Any, score: str, **more: Any) -> Observation:
    plain = {"points": (Point(scale=1.3),), "along": "", "columns": (Column(score=score, heading="h"),)}
    return dataclasses.replace(SEEN, simulate=simulate, **{**plain, **more})


def test_without_a_parameter_along_a_point_is_one_row() -> None:
    (group,) = observed(alone(without_along, "x")).groups
    assert group.parameters == {"scale": 1.3} and [(r.at, r.cells[0].mean) for r in group.rows] == [
        (None, 1.3)
    ]


def test_what_is_no_number_shows_in_its_own_row_only() -> None:
    made = observed(alone(gaps, "x", along="at", points=(Point(at=(3, 5)),), replicates=12))
    first, second = made.groups[0].rows
    assert first.cells[0].mean == 1.0 and math.isnan(second.cells[0].mean)


@pytest.mark.parametrize(
    ("observation", "error"),
    [
        (LOST, "RuntimeError: the detector is off"),
        (alone(without_along, "z"), "column must show one of the scores x, y, not 'z'"),
        (alone(without_along, "y"), "score 'y' must have no components, got 2"),
        (
            alone(without_along, "y", along="at", points=(Point(scale=1.0, at=(1, 2, 3)),)),
            "score 'y' must have one component for each of the 3 values of 'at', got 2",
        ),
        (
            alone(without_along, "y", along="at", points=(Point(scale=1.0, at=(1,)),)),
            "score 'y' must have one component for each of the 1 values of 'at', got 2",
        ),
        (alone(ragged, "x", replicates=20), "score 'x' must have as many components in every block"),
    ],
    ids=["crash", "score", "vector", "too few", "too many", "ragged"],
)
def test_a_crash_breaks_its_own_observation_only(observation: Observation, error: str) -> None:
    broken = dataclasses.replace(observation, id="beyond/bad")
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
        assert store.replicates == 4 and timeless(made)[0].groups == observed(SEEN).groups
        assert [record.replicates for record in made.records()] == [3, 3]


def test_progress_counts_observations_and_their_seconds() -> None:
    costly = dataclasses.replace(SEEN, seconds=50.0)
    made = Session((toy_claims.EXACT,), Settings(), SerialExecutor(), observations=(costly,))
    seen: list[tuple[int, float]] = []
    made.pump.listener = lambda: seen.append((made.progress().done, made.progress().left))
    start = made.progress()
    assert (start.total, start.what) == (2, "claims and observations")
    assert start.left == pytest.approx(300 + toy_claims.EXACT.seconds)
    made.observed(costly)
    made.rows(toy_claims.EXACT)
    assert [done for done, _ in seen][-2:] == [1, 2] and seen[-1][1] == 0.0


def test_what_draws_from_images_takes_those_of_the_run(tmp_path: Path) -> None:
    file, rng = tmp_path / "images.npz", np.random.default_rng(0)
    np.savez(file, x_train=rng.random((50, 8, 8)), y_train=np.arange(50) % 10)
    real = dataclasses.replace(SEEN, points=(Point(images="digits", samples=40),), data="digits")
    (given,) = on_images([real], str(file))
    assert isinstance(given, Observation) and given.data == "images.npz"
    assert given.points == (Point(images=str(file), samples=40),)
    with pytest.raises(ValueError, match="must hold at least 60 images to draw from, got 50"):
        on_images([dataclasses.replace(real, points=(Point(images="digits", samples=60),))], str(file))


# --- the registry


ENTRIES = {"beyond": (Entry("D1", "one", "open"), Entry("D2", "two", "observed", "as it is"))}


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"id": "nowhere/x"}, "begin with one of beyond"),
        ({"id": toy_claims.RIGHT.id}, "have an id of its own, among claims and experiments too"),
        ({"id": "toy/uniform"}, "have an id of its own, among claims and experiments too"),
        ({"entries": ()}, "cover an entry of the inventory"),
        ({"entries": ("D1", "D9")}, "cover known entries, not D9"),
        ({"source": ""}, "say its source, its title, what it shows and what a replicate is"),
        ({"title": " "}, "say its source, its title, what it shows"),
        ({"note": ""}, "say its source, its title, what it shows"),
        ({"replicate": ""}, "say its source, its title, what it shows"),
        ({"note": "too large by $x$"}, "be told in plain words, without formulas"),
        ({"simulate": lambda block, point: {}}, "draw with a function at module level"),
        ({"points": ()}, "have points, all different"),
        ({"points": SEEN.points * 2}, "have points, all different"),
        ({"columns": ()}, "have columns, each with a heading of its own"),
        (
            {"columns": (Column(score="x", heading="h"), Column(score="y", heading="h"))},
            "a heading of its own",
        ),
        ({"columns": (Column(score="", heading="h"),)}, "name the score and the heading of each column"),
        ({"columns": (Column(score="x", heading=" "),)}, "name the score and the heading of each column"),
        ({"along": "dim"}, "have a tuple of different numbers 'dim' at every point"),
        ({"along": "scale"}, "have a tuple of different numbers 'scale' at every point"),
        ({"points": (Point(size=()),)}, "have a tuple of different numbers 'size'"),
        ({"points": (Point(size=(3, 3)),)}, "have a tuple of different numbers 'size'"),
        ({"points": (Point(size=(3, True)),)}, "have a tuple of different numbers 'size'"),
        ({"points": (Point(size=(3, math.inf)),)}, "have a tuple of different numbers 'size'"),
        ({"points": (Point(size=("a", "b")),)}, "have a tuple of different numbers 'size'"),
        ({"replicates": 0}, "have at least one replicate"),
        ({"seconds": 0.0}, "say how many seconds one takes"),
        ({"seconds": math.nan}, "say how many seconds one takes"),
        ({"tier": Tier.SMOKE}, "belong to the default tier or to the full one"),
    ],
)
def test_what_an_observation_must_say(changes: dict[str, Any], rule: str) -> None:
    admit_observations([SEEN, LOST], [toy_claims.RIGHT, toy_claims.EXACT], ENTRIES)
    with pytest.raises(ValueError, match=rf"observation \S+ must .*{rule}"):
        admit_observations([dataclasses.replace(SEEN, **changes)], [toy_claims.RIGHT], ENTRIES)


def test_two_observations_share_no_id() -> None:
    with pytest.raises(ValueError, match="observation beyond/seen must have an id of its own"):
        admit_observations([SEEN, SEEN], [], ENTRIES)


def test_observations_are_selected_by_tier_paper_and_id(plant: Planter) -> None:
    late = dataclasses.replace(SEEN, id="beyond/late", tier=Tier.FULL)
    plant(toy_claims.RIGHT, SEEN, late)
    assert select_observations(Tier.SMOKE) == ()
    assert select_observations(Tier.DEFAULT) == select_observations(Tier.DEFAULT, paper=["beyond"]) == (SEEN,)
    assert select_observations(Tier.FULL) == (SEEN, late)
    assert select_observations(Tier.SMOKE, claim=["beyond/late"]) == (late,)
    assert select_observations(paper=["karakida2019"]) == select_observations(claim=["beyond/right"]) == ()
    assert select(claim=["beyond/seen"]) == ()
    with pytest.raises(ValueError, match=r"got 'beyond/sen'; did you mean beyond/seen\?"):
        select_observations(claim=["beyond/sen"])


def test_an_entry_is_observed_where_no_claim_judges_it(plant: Planter) -> None:
    plant(toy_claims.RIGHT, SEEN, dataclasses.replace(SEEN, id="beyond/too", entries=("karakida2019/C43",)))
    rows = {(row.paper, row.id): row for row in registry.inventory()}
    both, only = rows["beyond", "D1"], rows["karakida2019", "C43"]
    assert (both.status, both.claims, both.observations) == ("judged", ["beyond/right"], ["beyond/seen"])
    assert (only.status, only.claims, only.observations) == ("observed", [], ["beyond/too"])
    assert only.reason == "" and rows["beyond", "D2"].observations == []


def test_the_observations_of_the_suite_are_admitted_and_found_by_workers() -> None:
    for observation in registry.observations():
        assert observation.simulate.__module__.startswith("verify.claims.")


# --- the command line


def test_a_table_that_is_far_off_is_no_failure_but_a_crash_is(
    plant: Planter, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(toy_claims.EXACT, SEEN, LOST)
    assert judged("--claim", SEEN.id, "--claim", toy_claims.EXACT.id) == 0
    text = capsys.readouterr().out
    assert "without the root" in text and text.endswith("1 agrees, 0 disagrees (0 expected), 1 observed\n")
    assert judged() == 1
    text = capsys.readouterr().out
    assert "BROKEN beyond/lost: observation" in text and "RuntimeError: the detector is off" in text
    assert text.endswith("1 agrees, 0 disagrees (0 expected), 2 observed (1 broken)\n")
    assert "losscurv report --claim beyond/lost --seed 2024 --tier default" in text


def test_the_smoke_tier_observes_nothing(plant: Planter, capsys: pytest.CaptureFixture[str]) -> None:
    plant(toy_claims.EXACT, SEEN)
    assert judged("--tier", "smoke", "--json") == 0
    assert json.loads(capsys.readouterr().out)["observations"] == []
    plant(SEEN)
    assert judged("--tier", "smoke") == 2
    assert "--tier must leave at least one claim" in capsys.readouterr().err


def test_a_replay_finds_the_same_table_or_says_that_it_differs(
    plant: Planter, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(SEEN, LOST)
    assert judged("--report-dir", "out", "--claim", SEEN.id, "--seed", "9") == 0
    kept = load(Path("out/results.json"))
    (made,) = kept.observations
    assert {(run.experiment, run.replicates) for run in kept.runs} == {(SEEN.id, 3)}
    assert main(["replay", "out", "--workers", "1"]) == 0
    assert "every score and verdict is the same" in capsys.readouterr().out

    changed = [dataclasses.replace(made, groups=made.groups[:1])]
    runs = [dataclasses.replace(run, sha256="0" * 64) for run in kept.runs]
    results.save(dataclasses.replace(kept, observations=changed, runs=runs), Path("out/results.json"))
    assert main(["replay", "out", "--workers", "1"]) == 1
    text = capsys.readouterr().out
    assert "replay differs: beyond/seen: the table differs" in text and text.count("scores differ") == 2

    was = [dataclasses.replace(made, error="crashed", groups=[])]
    results.save(dataclasses.replace(kept, observations=was), Path("out/results.json"))
    assert main(["replay", "out", "--workers", "1"]) == 1
    assert "beyond/seen: broken was recorded, now a table" in capsys.readouterr().out
    plant(dataclasses.replace(LOST, id=SEEN.id))
    results.save(kept, Path("out/results.json"))
    assert main(["replay", "out", "--workers", "1"]) == 1
    assert "beyond/seen: a table was recorded, now broken" in capsys.readouterr().out


def test_an_interruption_keeps_the_tables_that_are_finished(
    plant: Planter, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(SEEN, toy_claims.HALTS)
    assert judged("--report-dir", "out") == 130
    kept = load(Path("out/results.json"))
    assert [made.id for made in kept.observations] == [SEEN.id] and "(interrupted)" in kept.suite.selection
    plant(toy_claims.HALTS)
    assert judged("--report-dir", "other") == 130
    assert not list(Path("other").iterdir())


def test_the_inventory_lists_observations(plant: Planter, capsys: pytest.CaptureFixture[str]) -> None:
    plant(toy_claims.RIGHT, SEEN)
    assert main(["claims", "--paper", "beyond"]) == 0
    assert "beyond/seen (observed)" in capsys.readouterr().out
    assert main(["claims", "--paper", "beyond", "--json"]) == 0
    rows = {row["id"]: row for row in json.loads(capsys.readouterr().out)}
    assert (rows["D1"]["claims"], rows["D1"]["observations"]) == (["beyond/right"], ["beyond/seen"])
