"""Files that are no results: each is one clear error."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from tests.verify.results.hostile_files import place, refused
from tests.verify.results.sample_results import outcome, sample, with_point
from verify.results import (
    SCHEMA,
    Results,
    dumps,
    load,
)
from verify.results.layout import FULL


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"not json",
        b"\xff\xfe\x00",
        dumps(sample())[: len(dumps(sample())) // 2].encode(),
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"1" * 5000,
    ],
)
def test_what_is_no_json_is_corrupt(tmp_path: Path, content: bytes) -> None:
    refused(tmp_path, content, "is corrupt: not JSON; run losscurv report again")


@pytest.mark.parametrize(
    "content", ["[]", "null", "3", '"text"', "{}", '{"schema": 0}', '{"schema": "3"}', '{"schema": 3}']
)
def test_another_layout_is_named(tmp_path: Path, content: str) -> None:
    refused(tmp_path, content.encode(), f"must have schema {FULL} or {SCHEMA}; run losscurv report again")


@pytest.mark.parametrize(
    ("path", "value", "complaint"),
    [
        (("schema",), float(SCHEMA), "results.schema must be a int, got a float"),
        (("extra",), 1, "results must have the fields suite, rows"),
        (("rows",), {}, "results.rows must be a list, got a dict"),
        (("rows",), None, "results.rows must be a list"),
        (("rows", 0), [], r"results.rows\[0\] must have the fields id, claim"),
        (("rows", 0, "verdict"), 3, r"results.rows\[0\].verdict must be a str, got a int"),
        (("rows", 0, "surprise"), 0, r"results.rows\[0\].surprise must be a bool"),
        (("rows", 0, "points", 0, "lower"), "low", r"points\[0\].lower must be a float, got a str"),
        (("rows", 0, "points", 0, "lower"), None, r"points\[0\].lower must be a float"),
        (("rows", 0, "points", 0, "lower"), True, r"points\[0\].lower must be a float, got a bool"),
        (("rows", 0, "points", 0, "lower"), [1.0], r"points\[0\].lower must be a float, got a list"),
        (("rows", 0, "points", 0, "lower"), 10**400, "too large"),
        (("rows", 0, "points", 0, "needed"), "many", r"points\[0\].needed must be a float"),
        (("rows", 0, "points", 0, "replicates"), 1.5, r"points\[0\].replicates must be a int"),
        (("rows", 0, "points", 0, "parameters"), [], r"points\[0\].parameters must be a dict"),
        (("rows", 0, "points", 0, "inputs"), {"y": "z"}, r"points\[0\].inputs.y must be a float"),
        (
            ("rows", 0, "points", 0, "looks"),
            {"measured": []},
            "looks must have the fields replicates, measured",
        ),
        (("rows", 0, "points", 0, "looks", "upper"), 3, "looks.upper must be a list, got a int"),
        (("rows", 0, "points", 0, "looks", "upper"), [1.0], "looks must have as many values of each field"),
        (("rows", 0, "points", 0, "looks", "replicates", 1), "x", r"looks\[1\].replicates must be a int"),
        (("rows", 0, "curves"), [{"axis": "x"}], r"curves\[0\] must have the fields axis"),
        (("suite", "seed"), "7", "results.suite.seed must be a int"),
        (("suite", "replicates"), "7", "results.suite.replicates must be a int"),
        (("derivations",), [{"name": 3}], r"results.derivations\[0\].name must be a str"),
        (("runs", 0, "parameters"), None, r"runs\[0\].parameters must be a dict"),
    ],
)
def test_a_field_of_the_wrong_kind_is_named(tmp_path: Path, path: tuple, value: Any, complaint: str) -> None:
    raw = json.loads(dumps(sample()))
    place(raw, path, value)
    refused(tmp_path, raw, rf"is corrupt: .*{complaint}.*; run losscurv report again")


def test_a_missing_field_is_corrupt(tmp_path: Path) -> None:
    for part in ("suite", "rows", "planted"):
        raw = json.loads(dumps(sample()))
        del raw[part]
        refused(tmp_path, raw, "is corrupt: results must have the fields")
    for part in ("verdict", "measured", "lower"):
        raw = json.loads(dumps(sample()))
        del raw["rows"][0]["points"][0][part]
        refused(tmp_path, raw, r"is corrupt: .*points\[0\] must have the fields")


def test_nesting_in_a_free_field_is_no_crash(tmp_path: Path) -> None:
    raw = json.loads(dumps(sample()))
    raw["suite"]["host"] = {"deep": "HERE"}
    text = json.dumps(raw).replace('"HERE"', "[" * 700 + "]" * 700)
    path = tmp_path / "results.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="is corrupt"):
        load(path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


PLACES = [
    ("suite",),
    ("rows",),
    ("rows", 0),
    ("rows", 0, "points"),
    ("rows", 0, "points", 0, "looks"),
    ("rows", 0, "points", 0, "rivals"),
    ("rows", 0, "curves"),
    ("runs",),
    ("inventory",),
    ("planted",),
    ("derivations",),
    ("schema",),
]


@settings(deadline=None, max_examples=30, derandomize=True)
@given(st.sampled_from(PLACES), JSON)
def test_any_json_in_any_place_loads_or_is_one_error(tmp_path_factory, place_: tuple, value: Any) -> None:
    raw = json.loads(dumps(with_point(outcome())))
    place(raw, place_, value)
    path = tmp_path_factory.getbasetemp() / "hostile.json"
    path.write_text(json.dumps(raw))
    with contextlib.suppress(ValueError):
        assert isinstance(load(path), Results)


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^file not found: .*nowhere\.json$"):
        load(tmp_path / "nowhere.json")
    with pytest.raises(ValueError, match="cannot be read: Is a directory"):
        load(tmp_path)
