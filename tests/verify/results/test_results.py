"""The results file: what goes in comes out, half a file is never seen, and anything else is one clear error."""

import dataclasses
import json
import math
import os
from pathlib import Path
from typing import Any

import pytest

from simulate.monte_carlo import SerialExecutor
from tests.verify.results.hostile_files import place, refused
from tests.verify.results.sample_results import outcome, sample, with_point
from verify.judging.planted import PLANTED
from verify.results import (
    SCHEMA,
    InventoryRow,
    Look,
    PointOutcome,
    Results,
    RivalOutcome,
    Row,
    Suite,
    dumps,
    edited,
    load,
    save,
)
from verify.results.records import WORDS
from verify.running.engine import Session, Settings


@pytest.fixture(scope="module")
def planted() -> Results:
    """Rows of every kind as the engine makes them, tuples among their parameters turned into lists."""
    session = Session(PLANTED, Settings(seed=1), SerialExecutor())
    rows = [row for claim in PLANTED for row in session.rows(claim)]
    return Results(suite=sample().suite, rows=rows, runs=session.records(), inventory=[], planted=rows)


def written(tmp_path: Path, made: Results) -> Results:
    save(made, tmp_path / "results.json")
    return load(tmp_path / "results.json")


def same(one: Any, other: Any) -> bool:
    """Equal with NaN equal to itself."""
    return repr(dataclasses.asdict(one)) == repr(dataclasses.asdict(other))


# --- round trip


def test_a_run_comes_back_as_it_was(tmp_path: Path, planted: Results) -> None:
    again = written(tmp_path, sample())
    assert same(dataclasses.replace(again, sha256=""), sample())
    assert dumps(written(tmp_path, planted)) == dumps(planted)
    assert json.loads(dumps(sample()))["schema"] == SCHEMA
    assert [p.name for p in tmp_path.iterdir()] == ["results.json"]


NUMBERS = (math.nan, math.inf, -math.inf, -0.0, 5e-324, 1 / 3, -1.7976931348623157e308, 2.0**53 + 2, 1e22)
TEXTS = ("", "nan", "-inf", "1e5", "null", "\x00\x1b\x9b", "\ud800", "\u2028\u202e名😀", '"\\')


@pytest.mark.parametrize(("number", "text"), [*zip(NUMBERS, TEXTS, strict=True)], ids=range(9))
def test_every_number_and_text_comes_back(tmp_path: Path, number: float, text: str) -> None:
    """To the bit, in plain JSON, and even a text that looks like a number that JSON lacks."""
    look = Look(replicates=3, measured=number, lower=1.0, upper=number)
    rival = RivalOutcome(name=text, value=number, margins=0.5, rejected=True)
    free = {"inputs": {"y": number}, "looks": [look], "rivals": [rival], "parameters": {"k": number}}
    needed = None if math.isnan(number) else number
    made = with_point(outcome(reason=text, lower=number, needed=needed, **free))

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    assert json.loads(dumps(made), parse_constant=refuse)
    assert same(dataclasses.replace(written(tmp_path, made), sha256=""), made)


# --- layout


def test_what_holds_its_default_is_not_said_and_many_records_are_a_table() -> None:
    look = {"replicates": 3, "measured": 0.1, "lower": 0.0, "upper": 0.2}
    made = with_point(outcome(looks=[Look(**look), Look(**look)], skewness=-0.0))
    (row,) = json.loads(dumps(made))["rows"]
    assert row["points"] == [
        {"parameters": {}, "verdict": "agrees", "predicted": 0.1, "margin": 0.1, "measured": 0.1, "lower": 0.1,
         "upper": 0.1, "skewness": -0.0, "looks": {name: [value, value] for name, value in look.items()}}
    ]  # fmt: skip
    assert "curves" not in row and "error" not in row and row["verdict"] == "agrees"


def test_a_row_is_a_line() -> None:
    lines = dumps(sample()).splitlines()
    rows = [json.loads(line.removesuffix(",")) for line in lines if line.startswith('{"id":"')]
    judged = [row["id"] for row in rows if "claim" in row]
    assert judged == [row.id for row in (*sample().rows, *sample().planted)]


# --- the digest


def numbers_of(raw: Any) -> Any:
    """Return numbers with whole ones written the other way."""
    if isinstance(raw, dict):
        return {key: numbers_of(value) for key, value in reversed(raw.items())}
    if isinstance(raw, list):
        return [numbers_of(value) for value in raw]
    return int(raw) if isinstance(raw, float) and raw.is_integer() else raw


def test_the_digest_fits_what_a_run_wrote_and_however_it_is_laid_out(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    save(sample(), path)
    assert not edited(load(path)) and len(load(path).sha256) == 64
    path.write_text(json.dumps(numbers_of(json.loads(path.read_text())), indent=4))
    assert not edited(load(path))
    again = load(path)
    save(again, path)
    assert not edited(load(path))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("rows.0.points.0.measured", 0.25),
        ("rows.0.verdict", "disagrees"),
        ("suite.seed", 1),
        ("suite.host.commit", "0"),
        ("observations.0.groups", []),
        ("sha256", "0" * 64),
    ],
)
def test_any_edit_shows_and_is_not_washed_away_by_writing_again(
    tmp_path: Path, path: str, value: Any
) -> None:
    raw = json.loads(dumps(sample()))
    place(raw, path, value)
    file = tmp_path / "results.json"
    file.write_text(json.dumps(raw))
    made = load(file)
    assert edited(made)
    save(made, file)
    assert edited(load(file))


AT = {PointOutcome: "rows.0.points.0", Row: "rows.0", InventoryRow: "inventory.0", Suite: "suite"}


@pytest.mark.parametrize(("record", "name"), list(WORDS))
def test_words_that_no_run_writes_are_refused(tmp_path: Path, record: type, name: str) -> None:
    raw = json.loads(dumps(sample()))
    place(raw, f"{AT[record]}.{name}", "perhaps\n\x1b" + "x" * 100)
    refused(tmp_path, raw, rf"must have one of .* as {name}, got 'perhaps\\n\\x1bx", most=1000)


# --- writing in one step


@pytest.mark.parametrize(
    ("owner", "name", "error"),
    [(os, "fsync", OSError(28, "No space left on device")), (Path, "replace", KeyboardInterrupt())],
)
def test_an_unfinished_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, error: BaseException
) -> None:
    path = tmp_path / "results.json"
    save(sample(), path)
    before = path.read_bytes()

    def stopped(*_: Any) -> None:
        raise error

    monkeypatch.setattr(owner, name, stopped)
    with pytest.raises(type(error)):
        save(with_point(outcome()), path)
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["results.json"]


def test_what_has_no_json_form_is_found_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="not JSON serializable"):
        save(with_point(outcome(parameters={"x": object()})), tmp_path / "results.json")
    with pytest.raises(FileNotFoundError):
        save(sample(), tmp_path / "nowhere" / "results.json")
    assert not list(tmp_path.iterdir())
