"""Files that are no results, or are made to crash or to stall: each is one clear error."""

import contextlib
import itertools
import json
import math
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.refusals import refusal
from tests.verify.results.hostile_files import RAW, found, leaves, place, read, refused, small, text_of
from tests.verify.results.sample_results import outcome, with_point
from verify.cli import main
from verify.results import SCHEMA, Results, dumps, load

AGAIN = "; run losscurv report again"

# --- what is no results file


@pytest.mark.parametrize(
    ("content", "match"),
    [
        *((content, f"is corrupt: not JSON{AGAIN}") for content in (
            b"", b"not json", b"\xef\xbb\xbf{}", b'{"schema": "\xc0\xaf"}', b"\x00" * 1000,
            b"[" * 10**6, b'{"a":' * 10**5, b'{"schema": ' + b"9" * 10**6 + b"}",
        )),
        *((content, f"must have schema {SCHEMA}{AGAIN}") for content in (
            b"[]", b"null", b"{}", b'{"schema": "8"}', b'{"schema":99}', b'{"schema":NaN}',
        )),
        (b'{"rows":[{"id":1,"id":2}]}', "a name occurs twice among id"),
    ],
)  # fmt: skip
def test_what_is_no_results_file_is_refused(tmp_path: Path, content: bytes, match: str) -> None:
    refused(tmp_path, content, match)


def test_a_cut_anywhere_is_refused(tmp_path: Path) -> None:
    text = text_of(small()).encode()
    for at in range(0, len(text), len(text) // 150):
        refused(tmp_path, text[:at], f"is corrupt: not JSON{AGAIN}")
    read(tmp_path, text)


def test_a_corrupt_file_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "results.json").write_bytes(b"[" * 10**5)
    for words in (["plot"], ["replay"], ["report", "--replay"]):
        assert main([*words, str(tmp_path)]) == 2
        printed = capsys.readouterr()
        assert printed.out == "" and len(printed.err.splitlines()) == 1
        assert printed.err.startswith("losscurv: results file") and AGAIN in printed.err


def test_what_cannot_be_read_says_why(tmp_path: Path) -> None:
    with refusal(r"^results file not found: .*nowhere\.json$"):
        load(tmp_path / "nowhere.json")
    with refusal("cannot be read: Is a directory"):
        load(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), Path("/dev/null")):
        with refusal("must be a plain file, got a pipe or a device"):
            load(path)


def test_a_file_of_many_megabytes_is_not_read(tmp_path: Path) -> None:
    path, started = tmp_path / "results.json", time.process_time()
    with path.open("wb") as file:
        file.truncate(700 << 20)
    with refusal("must have at most 64 MiB, got 700 MiB"):
        load(path)
    assert time.process_time() - started < 0.5


# --- a place with something else in it

FAR = "have places on its axis, all of a size that can be drawn"


@pytest.mark.parametrize(
    ("path", "value", "complaint"),
    [
        ("extra", 1, "results must have the fields suite, rows"),
        ("rows", [RAW["rows"][0]] * 2, "results must have rows with different ids"),
        ("rows.0", [], r"results.rows\[0\] must have the fields id, claim"),
        ("rows.0.points.0.lower", 10**400, "too large"),
        ("rows.0.points.0.inputs", {"y": "z"}, r"points\[0\].inputs.y must be a float"),
        ("rows.0.points.0.looks", {"measured": []}, "looks must have the fields replicates, measured"),
        ("rows.0.points.0.looks.upper", 3, "looks.upper must be a list, got a int"),
        ("rows.0.points.0.looks.upper", [1.0], "looks must have as many values of each field"),
        ("rows.0.curves", [{"axis": "x"}], r"curves\[0\] must have the fields axis"),
        ("rows.0.curves.0.x", [], "have places on its axis"),
        *(("rows.0.curves.0.x.3", value, FAR) for value in ("nan", "inf", 5e-324, -1e300)),
        *(("rows.0.curves.0.predicted", value, "have one value for each place") for value in ([1.0], [])),
        ("rows.0.curves.0.rivals", {"r": [1.0] * 200}, "have one value for each place"),
        ("suite.host", {"wall_seconds": "long"}, "have a host with another sort of wall_seconds"),
        ("suite.host", {"packages": ["numpy"]}, "another sort of packages"),
        *(("suite.host", {"deep": json.loads("[" * n + "]" * n)}, "nested at most 16 deep") for n in (18, 900)),
        ("derivations", [{"name": "x"}], "have a name and a statement in each of its derivations"),
        ("observations", RAW["observations"][:1] * 2, "observations with ids of their own"),
        ("observations.0.id", RAW["rows"][0]["id"], "observations with ids of their own"),
        ("observations.0.replicates", -1, "replicates must be at least 0"),
        ("observations.0.columns", [], "have one cell for each of its columns"),
        ("observations.0.groups.0.rows.0.cells", [], "have one cell for each of its columns in every row"),
        *(("observations.0.groups.0.rows.0.at", value, "a place for each of its rows or") for value in (None, "nan")),
        ("observations.0.groups.0.rows.0.at", 1e200, "all of a size that can be drawn"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(tmp_path: Path, path: str, value: Any, complaint: str) -> None:
    raw = small()
    place(raw, path, value)
    refused(tmp_path, raw, rf"is corrupt: .*{complaint}")


@pytest.mark.parametrize(
    ("kind", "wrong"), [(str, (3, None)), (bool, (0, "x")), (float, ("low", None, True, [1])), (int, (1.5, "7", True))]
)  # fmt: skip
def test_a_value_of_another_type_is_named(tmp_path: Path, kind: type, wrong: tuple[Any, ...]) -> None:
    free = {"parameters", "at", "host", "derivations", "left_out", "withdrawn"}
    found = (path for path, leaf in leaves(small()) if type(leaf) is kind and isinstance(path[-1], str))
    places = alike(path for path in found if not {*path} & free)
    assert places
    for path, value in itertools.product(places, wrong):
        raw = small()
        place(raw, path, value)
        refused(tmp_path, raw, rf"{path[-1]}.* must |schema")


@pytest.mark.parametrize(
    "path", ["suite", "rows", "observations.0.note", "rows.0.points.0.verdict", "rows.0.points.0.lower"]
)  # fmt: skip
def test_a_missing_field_is_corrupt(tmp_path: Path, path: str) -> None:
    raw = small()
    node, last = found(raw, path)
    del node[last]
    refused(tmp_path, raw, "is corrupt: results.* must have the fields")


WILD = (None, True, -1, 2**70, math.nan, "x", [], [[0.0], "y"], {}, {"id": None, "points": [{}]})
SPOILT = """suite rows runs inventory planted derivations schema rows.0 rows.0.points rows.0.curves
rows.0.points.0.looks rows.0.points.0.rivals"""


def test_any_json_in_any_place_loads_or_is_one_error(tmp_path: Path) -> None:
    for path, value in itertools.product(SPOILT.split(), WILD):
        raw = json.loads(dumps(with_point(outcome())))
        place(raw, path, value)
        with contextlib.suppress(ValueError):
            assert isinstance(read(tmp_path, raw), Results)


# --- counts


def lists(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    for key, value in node.items() if isinstance(node, dict) else enumerate(node):
        if isinstance(value, list):
            yield (*path, key)
        if isinstance(value, list | dict):
            yield from lists(value, (*path, key))


def alike(paths: Iterator[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """One of those that differ only by their place in a list."""
    return list({tuple(k for k in way if not isinstance(k, int)): way for way in paths}.values())


def test_no_list_may_be_absurdly_long(tmp_path: Path) -> None:
    started = time.process_time()
    for path in [*alike(lists(small())), "suite.host.deep"]:
        raw = small()
        place(raw, path, [0] * 10_001)
        refused(tmp_path, raw, "at most 10000 items, got 10001")
    assert time.process_time() - started < 5.0


@pytest.mark.parametrize("value", [-1, 2**128, 10**400, -(10**400), 10**4000])
def test_every_integer_is_a_count(tmp_path: Path, value: int) -> None:
    places = alike(path for path, leaf in leaves(small()) if type(leaf) is int and path != ("schema",))
    assert len(places) > 5
    for path in places:
        raw = small()
        place(raw, path, value)
        if value != -1 or not {*path} & {"parameters", "at", "host"}:
            refused(tmp_path, raw, r"below 2\*\*128")
