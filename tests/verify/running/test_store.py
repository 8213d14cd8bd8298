"""The store of finished blocks: the same bits or nothing, whatever the file went through."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from simulate.monte_carlo import BLOCK, BlockResult
from tests.verify.running.stores import (
    RESULT,
    ROOT,
    WHERE,
    Lines,
    assert_same,
    filled,
    lines,
    reread,
    sql,
    store,
)
from verify.running import store as module
from verify.running.origin import Key
from verify.running.store import FILE, Store, exclusive

__all__ = ["lines", "store"]

# --- what is written is read


def test_a_block_is_found_under_its_own_key_only_and_kept_once(store: Store) -> None:
    for index in (0, 1, 5, 9, 0):
        store.add(WHERE, index, RESULT)
    for name in Key._fields:
        assert store.read(WHERE._replace(**{name: "other"}), 10) == {}
    found = store.read(WHERE, 6)
    assert sorted(found) == [0, 1, 5] and store.replicates == 3 * BLOCK
    assert_same(found[5], RESULT)
    store.add(WHERE, 0, RESULT._replace(seconds=0.2))
    assert sql(store.path, "SELECT count(*) FROM blocks") == [(4,)]


def test_of_two_different_blocks_the_last_one_counts(tmp_path: Path) -> None:
    filled(tmp_path)
    other = BlockResult({"plain": np.ones(BLOCK)}, 2.0)
    with Store(tmp_path, print, fresh=True) as fresh:
        assert fresh.read(WHERE, 100) == {}
        fresh.add(WHERE, 1, other)
    found = reread(tmp_path)
    assert_same(found[1], other)
    assert_same(found[0], RESULT)


def test_a_closed_store_is_one_file_and_one_never_written_none(tmp_path: Path) -> None:
    with Store(tmp_path, print) as opened:
        assert opened.read(WHERE, 10) == {}
    assert list(tmp_path.iterdir()) == []
    (tmp_path / FILE).touch()  # an empty file becomes a store
    assert list(filled(tmp_path).parent.iterdir()) == [tmp_path / FILE]
    assert sql(tmp_path / FILE, "PRAGMA journal_mode") == [("wal",)] and len(reread(tmp_path)) == 3


# --- damage


@pytest.mark.parametrize(
    "change",
    [
        "scores = zeroblob(length(scores))",
        "sha256 = 'no'",
        "seconds = -1",
        "layout = replace(layout, 'plain', 'other')",
        "layout = CAST(x'ff00fe' AS TEXT)",
        "scores = 'text'",
        "block = 4",
        "block = 1e300",
    ],
)
def test_a_damaged_block_is_drawn_again_and_then_found(change: str, tmp_path: Path, lines: Lines) -> None:
    sql(filled(tmp_path), f"UPDATE blocks SET {change} WHERE block = 1")
    with Store(tmp_path, lines) as opened:
        assert sorted(opened.read(WHERE, 100)) == [0, 2]
        opened.add(WHERE, 1, RESULT)
    found = reread(tmp_path, lines)
    assert sorted(found) == [0, 1, 2] and lines == []
    assert_same(found[1], RESULT)


LAYOUTS = [
    '{"x": [16, -1]}',
    '{"x": [8, 10]}',
    '{"x": [16], "y": [16]}',
    '{"x": [16, 2.5]}',
    '{"x": [16, true]}',
    '{"x": 80}',
    "[16, 5]",
    "{",
]


@pytest.mark.parametrize("layout", [*LAYOUTS, "[" * 100_000])
def test_a_layout_that_does_not_fit_is_no_block(layout: str) -> None:
    """Even where its hash is right: the file may come from anyone."""

    def decoded(layout: str, raw: bytes) -> BlockResult | None:
        return module._decoded(WHERE, 0, layout, raw, 1.0, module._digest(WHERE, 0, layout, raw))

    raw, good = np.zeros(80).tobytes(), '{"x": [16, 5]}'
    assert decoded(layout, raw) is decoded(good, raw + b"1") is None
    assert decoded(good, raw) is not None


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 5000)


def scribble(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4096:8192] = b"\xff" * 4096
    path.write_bytes(data)


def text(path: Path) -> None:
    path.write_text("this is no database, but long enough to be looked at\n" * 40, encoding="utf-8")


def foreign(path: Path) -> None:
    path.unlink()
    sql(path, "CREATE TABLE blocks (a, b)")


def trapped(path: Path) -> None:
    sql(path, "CREATE TRIGGER t AFTER INSERT ON blocks BEGIN DELETE FROM blocks; END")


def other_version(path: Path) -> None:
    sql(path, "PRAGMA application_id = 12345")


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("spoil", [truncate, scribble, text, foreign, trapped, other_version, folder])
def test_what_is_no_store_is_left_as_it_is(
    spoil: Callable[[Path], None], tmp_path: Path, lines: Lines
) -> None:
    path = filled(tmp_path, blocks=40)
    spoil(path)
    before = path.read_bytes() if path.is_file() else b""
    with Store(tmp_path, lines) as opened:
        assert opened.read(WHERE, 100) == {}
        opened.add(WHERE, 0, RESULT)
        assert opened.read(WHERE, 100) == {}
    (line,) = lines
    assert line.startswith(f"{path}: ") and "; the run goes on" in line and "\n" not in line
    assert [file.name for file in tmp_path.iterdir()] == [FILE]
    assert spoil is folder or path.read_bytes() == before


# --- what cannot be written


PROGRAM = """
import resource, sys
from pathlib import Path
from tests.verify.running.stores import RESULT, WHERE
from verify.running.store import Store
folder, count, limit = Path(sys.argv[1]), *map(int, sys.argv[2:])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
with Store(folder, print) as store:
    for index in range(count):
        store.add(WHERE, index, RESULT)
    store.begin()
    if limit:
        print(store.read(WHERE, count))
"""


def writing(folder: Path, count: int, limit: int = 0) -> subprocess.Popen[str]:
    """A process that adds so many blocks to the store."""
    words = [sys.executable, "-c", PROGRAM, folder, str(count), str(limit)]
    environment, pipe = {**os.environ, "PYTHONPATH": str(ROOT)}, subprocess.PIPE
    return subprocess.Popen(words, env=environment, stdout=pipe, stderr=subprocess.STDOUT, text=True)


@pytest.mark.slow
def test_a_failing_write_is_said_once_and_loses_nothing_stored(tmp_path: Path) -> None:
    """A limit on the size of files stands for a full disk."""
    said, nothing_more = writing(tmp_path, 400, 400_000).communicate(timeout=60)[0].splitlines()
    assert said.startswith(f"{tmp_path / FILE}: ")
    assert said.endswith("; the run goes on, but what it draws from here on is not stored")
    assert nothing_more == "{}"
    found = reread(tmp_path)
    assert len(found) > 10 and sorted(found) == list(range(len(found)))


def test_a_store_locked_for_too_long_is_given_up(
    tmp_path: Path, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.05)
    filled(tmp_path)
    with Store(tmp_path, lines) as opened:
        assert len(opened.read(WHERE, 100)) == 3
        with exclusive(tmp_path):
            opened.add(WHERE, 7, RESULT)
            with (
                pytest.raises(TimeoutError, match="another run is writing its report to"),
                exclusive(tmp_path),
            ):
                pass
    assert len(lines) == 1 and "database is locked" in lines[0]
    assert len(reread(tmp_path)) == 3


def test_a_folder_without_a_store_needs_no_lock(tmp_path: Path) -> None:
    with exclusive(tmp_path), exclusive(tmp_path):
        assert list(tmp_path.iterdir()) == []
    text(tmp_path / FILE)
    with exclusive(tmp_path):  # nothing to lock, and nothing a report could be kept from
        assert (tmp_path / FILE).exists()


@pytest.mark.slow
def test_processes_write_to_one_store_at_once(tmp_path: Path) -> None:
    runs = [writing(tmp_path, 150) for _ in range(2)]
    assert [run.communicate(timeout=60)[0] for run in runs] == ["", ""]
    assert sorted(reread(tmp_path)) == list(range(150))
    assert sql(tmp_path / FILE, "SELECT count(*) FROM blocks") == [(150,)]
