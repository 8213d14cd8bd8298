"""A replay finds every score and verdict the same, or says which differs."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from simulate.monte_carlo import Block, Point
from tests.verify.results.sample_results import sample
from tests.verify.running.engine_runs import ALL, GAMMAS, MEAN, POINTS, claim, gammas, identity, session
from verify.results import Curve, Results, RivalOutcome, load, save
from verify.running import replays
from verify.running.settings import Settings


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


def test_a_replay_finds_every_score_and_verdict_the_same(recorded: Results) -> None:
    assert replays.replay_differences(recorded, results(*ALL, identity())) == []


def edit(made: Results, row: int = 0, **changes: Any) -> Results:
    """With one row changed, and the digest that fits."""
    rows = [dataclasses.replace(r, **changes) if i == row else r for i, r in enumerate(made.rows)]
    return dataclasses.replace(made, rows=rows, sha256="")


def pointed(made: Results, **changes: Any) -> Results:
    """With the first point of the first row changed."""
    first, *others = made.rows[0].points
    return edit(made, points=[dataclasses.replace(first, **changes), *others])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("predicted", 1e-9),
        ("margin", 7.0),
        ("lower", 0.0),
        ("upper", 9.0),
        ("statistical", 1.0),
        ("verdict", "undecided"),
        ("replicates", 1),
        ("rivals", [RivalOutcome(name="r", value=1.0, margins=2.0, rejected=True)]),
        ("looks", []),
        ("parameters", {"shape": 1.0}),
        ("inputs", {"y": 2.0}),
        ("needed", 3.0),
        ("slack", 1.0),
    ],
)
def test_a_replay_compares_all_of_a_point(recorded: Results, field: str, value: Any) -> None:
    (line,) = replays.replay_differences(recorded, pointed(recorded, **{field: value}))
    place = ", at point 0" if len(recorded.rows[0].points) > 1 else ""
    assert line.startswith(f"{recorded.rows[0].id}: {field} ") and " was recorded, now " in line
    assert line.endswith(place)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("margin", 7.0),
        ("expected", "disagrees"),
        ("surprise", True),
        ("kind", "probability"),
        ("curves", [Curve(axis="x", at={}, x=[1.0], predicted=[1.0])]),
    ],
)
def test_a_replay_compares_what_was_to_be_judged(recorded: Results, field: str, value: Any) -> None:
    (line,) = replays.replay_differences(recorded, edit(recorded, **{field: value}))
    assert line.startswith(f"{recorded.rows[0].id}: {field} ")


CURVE = Curve(
    axis="x", at={"dim": [3]}, x=[1.0, 2.0, 3.0], predicted=[0.5, 1 / 3, 7e-9], rivals={"r": [math.nan, 1, 2]}
)


@pytest.mark.parametrize(
    ("changes", "differ"),
    [
        ({}, False),
        ({"predicted": [0.5, 0.3333333, 7e-9]}, False),  # to the digits of a file
        ({"x": [1.0, 1.5, 3.0], "predicted": [0.5, 0.4, 7e-9]}, False),  # other places between the points
        ({"at": {"dim": (3,)}}, False),
        ({"predicted": [0.5, 0.33333, 7e-9]}, True),
        ({"predicted": [0.5, 1 / 3, 7.1e-9]}, True),
        ({"rivals": {"r": [math.nan, 1, 2.001]}}, True),
        ({"rivals": {"r": [1, 1, 2]}}, True),
        ({"rivals": {"other": [math.nan, 1, 2]}}, True),
        ({"x": [1.1, 2.1, 3.1]}, True),
        ({"axis": "y"}, True),
        ({"at": {"dim": [4]}}, True),
    ],
)
def test_a_replay_compares_the_lines_of_curves_and_not_their_digits_and_places(
    recorded: Results, changes: dict[str, Any], differ: bool
) -> None:
    before, now = (
        edit(recorded, curves=[CURVE]),
        edit(recorded, curves=[dataclasses.replace(CURVE, **changes)]),
    )
    lines = replays.replay_differences(before, now)
    assert [line.startswith(f"{recorded.rows[0].id}: curves ") for line in lines] == [True] * differ
    assert replays.replay_differences(before, edit(recorded, curves=[]))


def test_a_replay_misses_rows_and_runs_and_finds_new_ones(recorded: Results) -> None:
    fewer = dataclasses.replace(recorded, rows=recorded.rows[1:], runs=recorded.runs[1:], sha256="")
    name, run = recorded.rows[0].id, recorded.runs[0]
    lost, gone = replays.replay_differences(recorded, fewer)
    assert gone == f"{name}: recorded, now missing"
    assert (
        lost == f"{run.experiment} at {run.parameters}: {run.replicates} replicates were recorded, now none"
    )
    drawn, new = replays.replay_differences(fewer, recorded, {row.claim for row in recorded.rows})
    assert new == f"{name}: not recorded, now there"
    assert drawn == f"{run.experiment} at {run.parameters}: none was recorded, now it is drawn"
    shorter = edit(recorded, points=recorded.rows[0].points[:-1])
    (line,) = replays.replay_differences(recorded, shorter)
    assert "points were recorded, now" in line


def test_a_replay_that_was_interrupted_compares_what_it_reached(recorded: Results) -> None:
    suite = dataclasses.replace(recorded.suite, selection="all claims (interrupted)")
    part = dataclasses.replace(
        recorded, suite=suite, rows=recorded.rows[:1], runs=recorded.runs[:1], sha256=""
    )
    assert replays.replay_differences(recorded, part) == []
    (line,) = replays.replay_differences(recorded, pointed(part, margin=7.0))
    assert line.startswith(f"{recorded.rows[0].id}: margin")


def test_a_replay_names_the_settings_that_differ(recorded: Results) -> None:
    moved = dataclasses.replace(recorded.suite, draws="counted", data="other.npz", seed=1)
    assert replays.replay_differences(recorded, dataclasses.replace(recorded, suite=moved, sha256="")) == [
        f"seed {recorded.suite.seed} was recorded, now 1",
        'draws "streams" was recorded, now "counted"',
        'data "digits" was recorded, now "other.npz"',
    ]


def test_on_another_device_numbers_may_differ_by_rounding_alone(recorded: Results) -> None:
    suite = dataclasses.replace(recorded.suite, device="cuda")
    first, *others = recorded.runs
    runs = [dataclasses.replace(first, sha256="0" * 64), *others]
    there = dataclasses.replace(recorded, suite=suite, runs=runs, sha256="")
    measured = recorded.rows[0].points[0].measured
    assert measured is not None
    assert replays.devices_compared(recorded, there).startswith("recorded on cpu, repeated on cuda: numbers")
    assert replays.replay_differences(recorded, pointed(there, measured=measured * (1 + 1e-8))) == []
    (line,) = replays.replay_differences(recorded, pointed(there, measured=measured * (1 + 1e-5)))
    assert line.startswith(f"{recorded.rows[0].id}: measured")
    (line,) = replays.replay_differences(recorded, pointed(there, verdict="undecided"))
    assert "verdict" in line


def test_between_devices_verdicts_alone_of_trainings_are_compared(recorded: Results) -> None:
    first = recorded.rows[0]
    there = dataclasses.replace(recorded, suite=dataclasses.replace(recorded.suite, device="cuda"), sha256="")
    measured = first.points[0].measured
    assert measured is not None and not first.points[0].numerical
    moved, single = pointed(there, measured=1.5 * measured), [first.experiment]
    assert replays.replay_differences(recorded, moved, single=single) == []
    assert len(replays.replay_differences(recorded, moved, single=["another"])) == 1
    assert len(replays.replay_differences(recorded, edit(moved, verdict="undecided"), single=single)) == 1
    here = pointed(recorded, measured=1.5 * measured)
    assert len(replays.replay_differences(recorded, here, single=single)) == 1  # on one device every number
    known = pointed(there, measured=1.5 * measured, numerical=1e-3)
    held = replays.replay_differences(pointed(recorded, numerical=1e-3), known, single=single)
    assert any("measured" in line for line in held)


def test_between_devices_a_claim_says_by_how_much_rounding_moves_it(recorded: Results) -> None:
    first = recorded.rows[0]
    there = dataclasses.replace(recorded, suite=dataclasses.replace(recorded.suite, device="cuda"), sha256="")
    measured = first.points[0].measured
    assert measured is not None
    moved = pointed(there, measured=1.01 * measured)
    for left, lines in ((0.1, 0), (1e-3, 1), (math.inf, 0)):
        assert len(replays.replay_differences(recorded, moved, rounding={first.claim: left})) == lines
    here = pointed(recorded, measured=1.01 * measured)
    assert len(replays.replay_differences(recorded, here, rounding={first.claim: 0.1})) == 1  # on one device
    other = edit(moved, verdict="undecided")
    assert len(replays.replay_differences(recorded, other, rounding={first.claim: math.inf})) == 1


def test_between_devices_tables_in_single_precision_are_not_compared(recorded: Results) -> None:
    table = sample().observations[1]
    here = dataclasses.replace(recorded, observations=[table], sha256="")
    other = dataclasses.replace(table, groups=table.groups[:-1])
    there = dataclasses.replace(
        here, suite=dataclasses.replace(recorded.suite, device="cuda"), observations=[other]
    )
    assert replays.replay_differences(here, there, single=[table.id]) == []
    assert replays.replay_differences(here, there) == [f"{table.id}: the table differs"]
    broken = dataclasses.replace(there, observations=[dataclasses.replace(other, error="no memory")])
    assert len(replays.replay_differences(here, broken, single=[table.id])) == 1
    moved = dataclasses.replace(here, observations=[other])
    assert len(replays.replay_differences(here, moved, single=[table.id])) == 1  # on one device every number


def test_a_replay_compares_tables_and_planted_errors(recorded: Results) -> None:
    table = sample().observations[1]
    full = dataclasses.replace(recorded, observations=[table], planted=sample().planted, sha256="")
    assert replays.replay_differences(full, full) == []
    other = dataclasses.replace(table, groups=table.groups[:-1])
    lines = replays.replay_differences(
        full, dataclasses.replace(full, observations=[other], planted=full.planted[1:])
    )
    assert lines == [f"{full.planted[0].id}: recorded, now missing", f"{table.id}: the table differs"]
    assert f"{table.id}: recorded, now missing" in replays.replay_differences(full, recorded)


def test_a_replay_of_an_edited_file_is_told_so(recorded: Results) -> None:
    changed = dataclasses.replace(recorded, inventory=sample().inventory)
    (line,) = replays.replay_differences(changed, recorded)
    assert line == "the results file was edited after its run: its sha256 does not fit"


def test_a_replay_of_fewer_claims_compares_those(recorded: Results) -> None:
    """The others may have drawn more of the same replicates."""
    again = results(MEAN)
    assert again.runs[0].replicates < recorded.runs[0].replicates
    assert replays.replay_differences(recorded, again, {"paper/mean"}) == []


def shifted(block: Block, point: Point) -> dict[str, np.ndarray]:
    """Another score changes in its last bit, the one that is judged does not."""
    found = gammas(block, point)
    return found | {"square": np.nextafter(found["square"], math.inf)}


def test_a_replay_finds_a_score_that_changed_in_its_last_bit(recorded: Results) -> None:
    moved = dataclasses.replace(GAMMAS, simulate=shifted)
    again = results(*(dataclasses.replace(c, experiment=moved) for c in ALL))
    found = replays.replay_differences(recorded, again)
    hashes = [line for line in found if "scores differ" in line]
    assert len(hashes) == len(POINTS) and all("paper/gammas at" in line for line in hashes)
    assert not any(line.startswith("paper/mean:") for line in found)
    assert any(line.startswith("paper/ratio: measured") for line in found)


def test_a_replay_finds_measured_values_and_verdicts_that_changed(recorded: Results) -> None:
    changed = claim(predict=lambda p: 2 * p.shape)
    assert replays.replay_differences(recorded, results(changed), {"paper/mean"}) == [
        "paper/mean: agrees was recorded, now disagrees"
    ]
    (line,) = replays.replay_differences(recorded, results(identity(theory="close")), {"paper/identity"})
    assert line.startswith("paper/identity: measured ")
    seed = replays.replay_differences(recorded, results(MEAN, settings=Settings(seed=8)), {"paper/mean"})
    assert any(line.startswith("paper/mean: measured ") for line in seed)


def test_a_replay_without_a_claim_that_is_gone_compares_the_values_of_the_others(recorded: Results) -> None:
    """A claim on the same experiment has asked for more replicates, and for a score that nobody draws any more."""
    gone = dataclasses.replace(recorded.rows[0], id="engine/gone", claim="engine/gone")
    place = gone.experiment
    runs = [
        dataclasses.replace(run, replicates=10 * run.replicates, sha256="0" * 64)
        if run.experiment == place
        else run
        for run in recorded.runs
    ]
    before = dataclasses.replace(recorded, rows=[*recorded.rows, gone], runs=runs, sha256="")
    again = results(*ALL, identity())

    assert replays.replay_differences(before, again, left_out=["engine/gone"]) == []
    moved = dataclasses.replace(before, rows=[*pointed(before, measured=0.5).rows])
    assert len(replays.replay_differences(moved, again, left_out=["engine/gone"])) == 1
