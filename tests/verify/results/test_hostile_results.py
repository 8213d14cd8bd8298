"""Results files made to crash or to stall: refused in one line."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.verify.results.hostile_files import leaves, place, read, refused, small, text_of
from verify.cli import main
from verify.results import load

# --- files


def test_a_cut_anywhere_is_refused(tmp_path: Path) -> None:
    text = text_of(small()).encode()
    for at in range(0, len(text), len(text) // 150):
        refused(tmp_path, text[:at], "is corrupt: not JSON; run losscurv report again")
    read(tmp_path, text)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"\xef\xbb\xbf{}", "not JSON"),
        (b"\xff\xfe{\x00}\x00", "not JSON"),
        (b'{"schema": "\xc0\xaf"}', "not JSON"),
        (b"9" * 10**6, "not JSON"),
        (b'{"schema": ' + b"9" * 10**6 + b"}", "not JSON"),
        (b"[" * 10**6, "not JSON"),
        (b'{"schema":0}', "must have schema"),
        (b'{"schema":"3"}', "must have schema"),
        (b'{"schema":99}', "must have schema"),
        (b'{"schema":NaN}', "must have schema"),
        (b'{"schema":4,"schema":4}', "a name stands twice among schema"),
        (b'{"rows":[{"id":1,"id":2}]}', "a name stands twice among id"),
        (b"\x00" * 1000, "not JSON"),
    ],
)
def test_what_is_no_results_file_is_refused(tmp_path: Path, content: bytes, match: str) -> None:
    refused(tmp_path, content, match)


def test_a_file_of_many_megabytes_is_not_read(tmp_path: Path) -> None:
    path, started = tmp_path / "results.json", time.process_time()
    with path.open("wb") as file:
        file.truncate(700 << 20)
    with pytest.raises(ValueError, match="must have at most 64 MiB, got 700 MiB"):
        load(path)
    assert time.process_time() - started < 0.5


def test_what_never_ends_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), Path("/dev/null")):
        with pytest.raises(ValueError, match="must be a plain file, got a pipe or a device"):
            load(path)


# --- counts


def lists(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    for key, value in node.items() if isinstance(node, dict) else enumerate(node):
        if isinstance(value, list):
            yield (*path, key)
        if isinstance(value, list | dict):
            yield from lists(value, (*path, key))


def test_no_list_may_be_absurdly_long(tmp_path: Path) -> None:
    started = time.process_time()
    for path in {tuple(k for k in way if not isinstance(k, int)): way for way in lists(small())}.values():
        raw = small()
        *way, last = path
        node = raw
        for step in way:
            node = node[step]
        node[last] = [0] * 10_001
        refused(tmp_path, raw, "at most 10000 items, got 10001")
    raw = small()
    raw["suite"]["host"]["deep"] = [0] * 10_001
    refused(tmp_path, raw, "at most 10000 items")
    assert time.process_time() - started < 5.0


def test_a_million_rows_are_refused_in_seconds(tmp_path: Path) -> None:
    raw, started = small(), time.process_time()
    raw["rows"] = [{}] * 10**6
    refused(tmp_path, raw, "results.rows must have at most 10000 items, got 1000000")
    assert time.process_time() - started < 4.0


def test_depth_in_a_free_field_ends(tmp_path: Path) -> None:
    for depth in (18, 400, 900):
        raw = small()
        raw["suite"]["host"]["deep"] = json.loads("[" * depth + "]" * depth)
        refused(tmp_path, raw, "must be nested at most 16 deep")


@pytest.mark.parametrize("value", [-1, 2**128, 10**400, -(10**400), 10**4000])
def test_every_integer_is_a_count(tmp_path: Path, value: int) -> None:
    places = [path for path, leaf in leaves(small()) if type(leaf) is int and path != ("schema",)]
    free = ("parameters", "at", "host")
    assert len(places) > 10
    for path in {tuple(k for k in p if not isinstance(k, int)): p for p in places}.values():
        raw = small()
        place(raw, path, value)
        if value != -1 or not set(path) & set(free):
            refused(tmp_path, raw, r"below 2\*\*128")


# --- parts that do not fit each other


@pytest.mark.parametrize(
    ("path", "value", "match"),
    [
        (("rows", 0, "curves", 0, "x"), [], "have places on its axis"),
        (("rows", 0, "curves", 0, "x", 3), "nan", "have places on its axis, all of a size that can be drawn"),
        (("rows", 0, "curves", 0, "x", 3), "inf", "have places on its axis, all of a size that can be drawn"),
        (
            ("rows", 0, "curves", 0, "x", 3),
            5e-324,
            "have places on its axis, all of a size that can be drawn",
        ),
        (
            ("rows", 0, "curves", 0, "x", 3),
            -1e300,
            "have places on its axis, all of a size that can be drawn",
        ),
        (("rows", 0, "curves", 0, "predicted"), [1.0], "have one value for each place"),
        (("rows", 0, "curves", 0, "predicted"), [], "have one value for each place"),
        (("rows", 0, "curves", 0, "rivals"), {"r": [1.0] * 200}, "have one value for each place"),
        (("suite", "host"), {"wall_seconds": "long"}, "have a host with another sort of wall_seconds"),
        (("suite", "host"), {"packages": ["numpy"]}, "another sort of packages"),
        (("suite", "host"), {"commit": 7}, "another sort of commit"),
        (("derivations",), [{"name": "x"}], "have a name and a statement in each of its derivations"),
    ],
)
def test_parts_that_do_not_fit_are_named(tmp_path: Path, path: Any, value: Any, match: str) -> None:
    raw = small()
    place(raw, path, value)
    refused(tmp_path, raw, rf"is corrupt: results.* must {match}|{match}")


def test_rows_have_names_of_their_own(tmp_path: Path) -> None:
    raw = small()
    raw["rows"] *= 2
    refused(tmp_path, raw, "results must have rows with different ids")


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b'{"schema": 6}', b"[" * 10**5])
def test_a_corrupt_file_is_one_line(
    tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "results.json").write_bytes(content)
    for words in (["plot"], ["replay"], ["report", "--replay"]):
        assert main([*words, str(tmp_path)]) == 2
        printed = capsys.readouterr()
        assert printed.out == "" and len(printed.err.splitlines()) == 1
        assert printed.err.startswith("losscurv: results file") and "run losscurv report again" in printed.err
