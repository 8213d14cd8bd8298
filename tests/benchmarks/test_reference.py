"""The reference: what claims predict and draw is recorded, and whatever a later tree has otherwise is found."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import reference
from benchmarks.reference import main
from simulate.monte_carlo import Block, Point, SerialExecutor
from tests.verify import toy_claims
from tests.verify.command_line import Planter, elsewhere
from tests.verify.running.engine_runs import EXACT as ANY
from tests.verify.toy_claims import EXACT, UNIFORM, plant
from verify.model import AnyClaim, Tier, Verdict
from verify.model.domains import Between
from verify.running.engine import Session
from verify.running.settings import Settings

__all__ = ["elsewhere", "plant"]

RIGHT = replace(toy_claims.RIGHT, relative=False, margin=0.425)
PAIRED = replace(
    RIGHT,
    id="beyond/paired",
    experiment=replace(UNIFORM, id="toy/two", simulate=lambda b, p: two(b, p), tier=Tier.FULL),
    inputs={"y": 1.0},
    predict=lambda p: p.y,
    rivals={"twice": lambda p: 2 * p.y},
)
BOUND = replace(
    ANY,
    id="beyond/bound",
    entries=("D1",),
    domain={"x": Between(0.1, 0.9)},
    violation=lambda rng, p: max(0.0, p.x - 1.0) + 0.0 * rng.random(),
    examples=(Point(x=0.3),),
    rivals={"smaller": lambda rng, p: rng.random()},
)
ALL = (RIGHT, PAIRED, EXACT, BOUND)


def two(block: Block, point: Point) -> Mapping[str, Any]:
    drawn = np.array([rng.random(2) for rng in block.streams])
    return {"x": drawn[:, 0], "y": drawn[:, 1], "unread": drawn.sum(axis=1)}


def drawing(change: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> AnyClaim:
    """The paired claim, on an experiment whose columns are changed."""
    return replace(PAIRED, experiment=replace(PAIRED.experiment, simulate=lambda b, p: change(two(b, p))))


def make(*words: str) -> int:
    return main(["make", "file", "--workers", "1", *words])


@pytest.fixture
def made(plant: Planter) -> None:
    plant(*ALL)
    assert make() == 0


def compared(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[str]]:
    capsys.readouterr()
    status = main(["compare", "file", "--workers", "1", *words])
    return status, [line for line in capsys.readouterr().out.splitlines() if ": " in line]


def read() -> dict[str, Any]:
    return json.loads(gzip.decompress(Path("file").read_bytes()))


with_made = pytest.mark.usefixtures("made")


@with_made
def test_the_same_tree_has_nothing_otherwise(capsys: pytest.CaptureFixture[str]) -> None:
    before = Path("file").read_bytes()

    assert compared(capsys) == (0, ["36 facts compared: 0 findings differ; 0 facts are new"])
    assert compared(capsys, "--fast")[0] == 0
    assert make() == 0
    assert Path("file").read_bytes() == before


PREDICTED = 'beyond/right {"scale": 1.7} predicted'
TWICE = 'beyond/paired {"scale": 1.7} rival twice'


@with_made
@pytest.mark.parametrize(
    ("place", "edited"),
    [
        (PREDICTED, replace(RIGHT, predict=lambda p: (0.5 + 1e-15) * p.scale)),
        ('beyond/right {"scale": 1.7} margin', replace(RIGHT, margin=0.51)),
        ("beyond/right  expected", replace(RIGHT, expected=Verdict.DISAGREES)),
        (TWICE, replace(PAIRED, rivals={"twice": lambda p: 2.1 * p.y})),
        (f"{TWICE}: missing", replace(PAIRED, rivals={})),
        ("beyond/exact  tolerance", replace(EXACT, tolerance=1e-11)),
        # found by drawing alone
        ('toy/two {"scale": 1.7} x', drawing(lambda v: {**v, "x": np.nextafter(v["x"], 2)})),
        ('toy/two {"scale": 1.7} y: missing', drawing(lambda v: {"x": v["x"], "z": v["y"]})),
        ("toy/two error: ZeroDivisionError", drawing(lambda v: {"x": 1 // 0})),
        ('beyond/exact {"dim": 3} product', replace(EXACT, routes=lambda r, p: routes(r, p, 1.5))),
        ('beyond/bound {"x": 0.3} violation', replace(BOUND, violation=lambda rng, p: 1e-3 * (p.x < 0.31))),
    ],
)
def test_an_edit_of_what_a_claim_states_or_computes_is_found(
    plant: Planter, capsys: pytest.CaptureFixture[str], place: str, edited: AnyClaim
) -> None:
    plant(*(edited if claim.id == edited.id else claim for claim in ALL))

    fast, found = compared(capsys, "--fast"), compared(capsys)
    differ = [[line for line in lines if line.startswith("DIFFERS: ")] for _, lines in (fast, found)]
    assert fast[0] == bool(differ[0]) and len(differ[0]) <= 1 and found[0] == 1
    assert any(line.startswith(f"DIFFERS: {place}") for line in differ[0] or differ[1])


def routes(rng: np.random.Generator, point: Point, factor: float) -> dict[str, Any]:
    found = toy_claims.two_routes(rng, point)
    return {**found, "product": factor * found["product"]}


@with_made
def test_what_is_missing_differs_and_what_is_new_is_counted(
    plant: Planter, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(RIGHT, drawing(lambda v: {"x": v["x"], "y": v["y"], "new": v["x"]}), EXACT, BOUND)
    missing = 'DIFFERS: toy/two {"scale": 1.7} unread: missing'
    assert compared(capsys) == (1, [missing, "36 facts compared: 1 findings differ; 1 facts are new"])

    plant(RIGHT, EXACT, BOUND)
    status, lines = compared(capsys)
    assert status == compared(capsys, "--fast")[0] == 1
    assert lines[:2] == ["DIFFERS: beyond/paired: missing", "DIFFERS: toy/two: missing"]


@with_made
def test_values_are_those_of_a_report() -> None:
    session = Session((RIGHT, EXACT, BOUND), Settings(seed=2024, replicates=96), SerialExecutor())
    session.judge_all()
    values = read()["values"]

    run = session.sampled.runs[0]
    assert values["toy/uniform"] == {run.point.canonical(): {"x": reference._summary(run.scores["x"])}}
    explored = next(row for row in session.finished_rows() if row.claim == BOUND.id)
    assert [json.loads(point) for point in values[BOUND.id]] == [
        point.parameters for point in explored.points
    ]
    [routes] = values[EXACT.id].values()
    [judged] = next(row for row in session.finished_rows() if row.claim == EXACT.id).points
    short = abs(routes["one short"][2] / routes["sum"][2] - 1)
    assert short == pytest.approx(judged.rivals[0].value, rel=1e-12)


def test_what_is_dear_has_fewer_replicates_and_is_compared_on_as_many(
    plant: Planter, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(RIGHT)
    monkeypatch.setattr(reference, "SECONDS", 0.0)
    assert make() == 0
    assert "fewer replicates: toy/uniform" in capsys.readouterr().out
    monkeypatch.setattr(reference, "SECONDS", 30.0)

    [facts] = read()["values"]["toy/uniform"].values()
    assert facts["x"][0] == 16
    assert compared(capsys)[0] == 0


@with_made
def test_one_paper_is_renewed_or_compared_alone(plant: Planter, capsys: pytest.CaptureFixture[str]) -> None:
    other = replace(RIGHT, id="edge/right")
    plant(*ALL, other)
    assert make("--paper", "edge") == 0
    assert {"edge/right", "beyond/right"} <= read()["claims"].keys()

    plant(replace(RIGHT, margin=0.1), other)
    assert compared(capsys, "--paper", "edge") == (0, [compared(capsys, "--paper", "edge")[1][-1]])
    assert compared(capsys, "--paper", "beyond")[0] == 1


@pytest.mark.parametrize("words", ["compare none", "make new --fast", "make new --paper no"])
def test_what_cannot_be_done_is_refused(plant: Planter, words: str) -> None:
    plant(RIGHT)

    with pytest.raises(SystemExit, match="2"):
        main(words.split())
    assert not Path("new").exists()


def test_a_record_with_an_error_is_not_written(plant: Planter, capsys: pytest.CaptureFixture[str]) -> None:
    plant(toy_claims.BROKEN)

    assert make() == 1
    assert "the detector is off" in capsys.readouterr().err
    assert not Path("file").exists()
