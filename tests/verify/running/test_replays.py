"""A replay finds every score and verdict the same, or says which differs."""

from dataclasses import fields, replace
from functools import partial
from math import inf
from typing import Any

import numpy as np
import pytest

from simulate.monte_carlo import Block, Point
from tests.verify.results.sample_results import sample
from tests.verify.running.engine_runs import ALL, GAMMAS, MEAN, POINTS, gammas, identity, session
from verify.results import PointOutcome, Results, canonical, load, save
from verify.running.replays import replay_differences

CLAIM, EXPERIMENT = MEAN.id, GAMMAS.id


def results(*claims, **options) -> Results:
    made = session(*claims, **options)
    rows = [row for tested in claims for row in made.rows(tested)]
    return Results(suite=sample().suite, rows=rows, runs=made.records(), inventory=[])


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A run read back from its file, where the tuples among the parameters are lists."""
    file = tmp_path_factory.mktemp("recorded") / "results.json"
    save(results(*ALL, identity()), file)
    return load(file)


def changed(made: Results, place: str = "", **changes: Any) -> Results:
    """With other fields of its suite, its first row or the first point of that, and no digest."""
    row, *rows = made.rows
    point, *points = row.points
    if place == "suite":
        changes = {"suite": replace(made.suite, **changes)}
    elif place:
        row = replace(
            row, **(changes if place == "row" else {"points": [replace(point, **changes), *points]})
        )
        changes = {"rows": [row, *rows]}
    return replace(made, sha256="", **changes)


def test_a_replay_finds_every_score_and_verdict_the_same(recorded: Results) -> None:
    assert replay_differences(recorded, results(*ALL, identity())) == []


FIELDS = {
    "point": [f.name for f in fields(PointOutcome)],
    "row": ["expected", "surprise", "reading", "standing", "kind", "model_based", "relative", "margin"],
    "suite": ["seed", "tier", "draws", "data", "replicates", "alpha", "family_error"],
}


@pytest.mark.parametrize(("place", "field"), [(place, field) for place in FIELDS for field in FIELDS[place]])
def test_a_replay_compares_all_that_a_verdict_rests_on(recorded: Results, place: str, field: str) -> None:
    (line,) = replay_differences(recorded, changed(recorded, place, **{field: "another"}))
    assert line.startswith(f"{field} " if place == "suite" else f"{CLAIM}: {field} ")
    assert line.endswith(f'was recorded, now "another"{", at point 0" * (place == "point")}')


def test_a_replay_misses_rows_runs_and_points_and_finds_new_ones(recorded: Results) -> None:
    fewer, run = changed(recorded, rows=recorded.rows[1:], runs=recorded.runs[1:]), recorded.runs[0]
    place = f"{run.experiment} at {canonical(run.parameters)}: "
    assert replay_differences(recorded, fewer) == [
        f"{place}recorded, now missing",
        f"{CLAIM}: recorded, now missing",
    ]
    assert replay_differences(fewer, recorded, {row.claim for row in recorded.rows}) == [
        f"{place}not recorded, now there",
        f"{CLAIM}: not recorded, now there",
    ]
    shorter = changed(recorded, "row", points=recorded.rows[0].points[:-1])
    assert replay_differences(recorded, shorter) == [f"{CLAIM}: 2 points were recorded, now 1"]


def test_a_replay_that_was_interrupted_compares_what_it_reached(recorded: Results) -> None:
    part = changed(recorded, "suite", selection="all claims (interrupted)")
    part = changed(part, rows=recorded.rows[:1], runs=recorded.runs[:1])
    assert replay_differences(recorded, part) == []
    assert len(replay_differences(recorded, changed(part, "point", margin=7.0))) == 1


# --- on another device


SINGLE = {"single": [EXPERIMENT]}


@pytest.mark.parametrize(
    ("lines", "device", "factor", "known"),
    [
        (0, "cuda", 1 + 1e-8, {}),
        (1, "cuda", 1 + 1e-5, {}),
        (0, "cuda", 1.5, SINGLE),
        (1, "cpu", 1.5, SINGLE),
        (0, "cuda", 1.01, {"rounding": {CLAIM: 0.1}}),
        (1, "cuda", 1.01, {"rounding": {CLAIM: 1e-3}}),
        (0, "cuda", 1.01, {"rounding": {CLAIM: inf}}),
        (1, "cpu", 1.01, {"rounding": {CLAIM: 0.1}}),
    ],
)
def test_on_another_device_numbers_may_differ_by_rounding_and_verdicts_may_not(
    recorded: Results, lines: int, device: str, factor: float, known: dict[str, Any]
) -> None:
    there, (first, *others) = changed(recorded, "suite", device=device), recorded.runs
    if device != "cpu":
        there = changed(there, runs=[replace(first, sha256="0" * 64), *others])
    measured = recorded.rows[0].points[0].measured
    there = changed(there, "point", measured=factor * measured)
    assert len(replay_differences(recorded, there, **known)) == lines
    assert len(replay_differences(recorded, changed(there, "row", verdict="undecided"), **known)) == 1


def test_a_numerical_error_that_is_known_holds_in_single_precision_too(recorded: Results) -> None:
    point = recorded.rows[0].points[0]
    here = changed(recorded, "point", numerical=0.01 * point.measured)
    for factor, lines in ((1.009, 0), (1.011, 1)):
        moved = changed(here, "point", measured=factor * point.measured)
        there = changed(moved, "suite", device="cuda")
        assert len(replay_differences(here, there, single=[EXPERIMENT])) == lines


def test_a_replay_compares_tables_and_planted_errors(recorded: Results) -> None:
    table = sample().observations[1]
    full = changed(recorded, observations=[table], planted=sample().planted)
    gpu, single = changed(full, "suite", device="cuda"), partial(replay_differences, full, single=[table.id])
    other = [replace(table, groups=table.groups[:-1])]
    broken = [replace(table, error="no memory")]
    assert replay_differences(full, full) == []
    assert replay_differences(full, changed(full, observations=other, planted=full.planted[1:])) == [
        f"{full.planted[0].id}: recorded, now missing",
        f"{table.id}: the table differs",
    ]
    assert replay_differences(full, changed(gpu, observations=other)) == [f"{table.id}: the table differs"]
    assert single(changed(gpu, observations=other)) == []
    assert single(changed(gpu, observations=broken)) == [f"{table.id}: a table was recorded, now broken"]
    assert len(single(changed(full, observations=other))) == 1


# --- scores, and what was not asked for


def test_a_replay_of_an_edited_file_is_told_so(recorded: Results) -> None:
    edited = replace(recorded, inventory=sample().inventory)
    (line,) = replay_differences(edited, recorded)
    assert line == "the results file was edited after its run (its sha256 does not match)"


def shifted(block: Block, point: Point) -> dict[str, np.ndarray]:
    """Another score changes in its last bit, the one that is judged does not."""
    found = gammas(block, point)
    return found | {"square": np.nextafter(found["square"], inf)}


def test_a_replay_finds_a_score_that_changed_in_its_last_bit(recorded: Results) -> None:
    moved = replace(GAMMAS, simulate=shifted)
    found = replay_differences(recorded, results(*(replace(c, experiment=moved) for c in ALL)))
    assert sum("scores differ" in line for line in found) == len(POINTS)
    assert not any(line.startswith(f"{CLAIM}:") for line in found)
    assert any(line.startswith("paper/ratio: measured") for line in found)


def test_a_replay_without_a_claim_that_is_gone_compares_the_values_of_the_others(recorded: Results) -> None:
    """A claim on the same experiment has asked for more replicates, and for a score that nobody draws any more."""
    gone = replace(recorded.rows[0], id="paper/gone", claim="paper/gone")
    more = [replace(run, replicates=10 * run.replicates, sha256="0" * 64) for run in recorded.runs]
    before, again = changed(recorded, rows=[*recorded.rows, gone], runs=more), results(*ALL, identity())
    assert {run.experiment for run in more} == {EXPERIMENT}

    assert replay_differences(before, again, left_out=[gone.id]) == []
    moved = changed(before, "point", measured=0.5)
    assert len(replay_differences(moved, again, left_out=[gone.id])) == 1
