"""The store of finished blocks: the same bits or nothing, whatever the file went through."""

import os
import resource
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as arrays

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


def test_blocks_come_back_to_the_bit(tmp_path: Path) -> None:
    filled(tmp_path)
    found = reread(tmp_path)
    assert sorted(found) == [0, 1, 2]
    for block in found.values():
        assert_same(block, RESULT)


@settings(deadline=None, max_examples=25, derandomize=True)
@given(
    st.dictionaries(
        st.text(max_size=5).filter(lambda s: s.isprintable()),
        st.one_of(
            arrays.arrays(np.float64, (BLOCK,)),
            st.integers(0, 4).flatmap(lambda k: arrays.arrays(np.float64, (BLOCK, k))),
        ),
        max_size=3,
    )
)
def test_any_scores_survive_their_encoding(scores: dict) -> None:
    result = BlockResult(scores, 1 / 3)
    layout, raw = module._encoded(scores)
    digest = module._digest(WHERE, 5, layout, raw)
    found = module._decoded(WHERE, 5, layout, raw, 1 / 3, digest)
    assert found is not None
    assert_same(found, result)


def test_a_block_is_found_under_its_own_key_only(store: Store) -> None:
    store.add(WHERE, 0, RESULT)
    for name in Key._fields:
        assert store.read(WHERE._replace(**{name: "other"}), 10) == {}
    assert list(store.read(WHERE, 10)) == [0] and store.replicates == BLOCK


def test_no_more_blocks_are_read_than_asked_for(store: Store) -> None:
    for index in (0, 1, 5, 9):
        store.add(WHERE, index, RESULT)
    assert sorted(store.read(WHERE, 6)) == [0, 1, 5]


def test_the_same_block_is_kept_once(store: Store) -> None:
    for seconds in (0.1, 0.2, 0.1):
        store.add(WHERE, 0, RESULT._replace(seconds=seconds))
    assert sql(store.path, "SELECT count(*) FROM blocks") == [(1,)]


def test_of_two_different_blocks_the_last_one_counts(tmp_path: Path) -> None:
    filled(tmp_path)
    other = BlockResult({"plain": np.ones(BLOCK)}, 2.0)
    with Store(tmp_path, print, fresh=True) as fresh:
        assert fresh.read(WHERE, 100) == {}
        fresh.add(WHERE, 1, other)
    found = reread(tmp_path)
    assert_same(found[1], other)
    assert_same(found[0], RESULT)


def test_a_store_that_is_never_written_leaves_no_file(tmp_path: Path) -> None:
    with Store(tmp_path, print) as opened:
        assert opened.read(WHERE, 10) == {}
    assert list(tmp_path.iterdir()) == []


def test_a_closed_store_is_one_file(tmp_path: Path) -> None:
    assert list(filled(tmp_path).parent.iterdir()) == [tmp_path / FILE]
    assert sql(tmp_path / FILE, "PRAGMA journal_mode") == [("wal",)]


# --- damage


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE blocks SET scores = zeroblob(length(scores)) WHERE block = 1",
        "UPDATE blocks SET sha256 = 'no' WHERE block = 1",
        "UPDATE blocks SET seconds = -1 WHERE block = 1",
        "UPDATE blocks SET seconds = 'long' WHERE block = 1",
        "UPDATE blocks SET layout = replace(layout, 'plain', 'other') WHERE block = 1",
        "UPDATE blocks SET layout = 7 WHERE block = 1",
        "UPDATE blocks SET layout = CAST(x'ff00fe' AS TEXT) WHERE block = 1",
        "UPDATE blocks SET scores = 'text' WHERE block = 1",
        "UPDATE blocks SET block = 4 WHERE block = 1",
        "UPDATE blocks SET block = 'one' WHERE block = 1",
        "UPDATE blocks SET block = 1e300 WHERE block = 1",
        "DELETE FROM blocks WHERE block = 1",
    ],
)
def test_a_damaged_block_is_drawn_again_and_then_found(statement: str, tmp_path: Path, lines: Lines) -> None:
    sql(filled(tmp_path), statement)
    with Store(tmp_path, lines) as opened:
        assert sorted(opened.read(WHERE, 100)) == [0, 2]
        opened.add(WHERE, 1, RESULT)
    found = reread(tmp_path, lines)
    assert sorted(found) == [0, 1, 2] and lines == []
    assert_same(found[1], RESULT)


@pytest.mark.parametrize(
    "layout",
    [
        '{"x": [16, 7]}',
        '{"x": [16, -1]}',
        '{"x": [8, 10]}',
        '{"x": [16, 5, 1]}',
        '{"x": [16], "y": [16]}',
        '{"x": [16, 2.5]}',
        '{"x": [16, true]}',
        '{"x": 80}',
        '{"x": "16"}',
        "[16, 5]",
        "null",
        "{",
        "[" * 100_000,
    ],
)
def test_a_layout_that_does_not_fit_is_no_block(layout: str) -> None:
    """Even where its hash is right: the file may come from anyone."""
    raw = np.zeros(80).tobytes()
    assert module._decoded(WHERE, 0, layout, raw, 1.0, module._digest(WHERE, 0, layout, raw)) is None
    good = '{"x": [16, 5]}'
    assert module._decoded(WHERE, 0, good, raw, 1.0, module._digest(WHERE, 0, good, raw)) is not None
    odd = raw + b"1"
    assert module._decoded(WHERE, 0, good, odd, 1.0, module._digest(WHERE, 0, good, odd)) is None


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


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (truncate, "is damaged"),
        (scribble, "is damaged"),
        (text, "is damaged"),
        (foreign, "is not a store of replicates of this version"),
        (trapped, "is not a store of replicates of this version"),
        (other_version, "is not a store of replicates of this version"),
        (folder, "is not a file"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_is_no_store_is_set_aside(
    spoil: Callable[[Path], None], message: str, tmp_path: Path, lines: Lines
) -> None:
    spoil(filled(tmp_path, blocks=40))
    before = (tmp_path / FILE).read_bytes() if spoil is not folder else b""
    for number in (1, 2):
        with Store(tmp_path, lines) as opened:
            assert opened.read(WHERE, 100) == {}
            opened.add(WHERE, 0, RESULT)
        assert len(lines) == number
        aside = tmp_path / f"replicates.damaged-{number}.sqlite"
        assert message in lines[-1] and str(aside) in lines[-1] and "\n" not in lines[-1]
        assert spoil is folder or number == 2 or aside.read_bytes() == before
        assert_same(reread(tmp_path, lines)[0], RESULT)
        if number == 1:
            spoil_again = foreign if spoil is not folder else folder
            spoil_again(tmp_path / FILE)
            message = "is not a file" if spoil is folder else "of this version"


def test_a_log_is_set_aside_with_its_file(tmp_path: Path) -> None:
    """Or its pages would be played back into the new store."""
    ends = ("", "-wal", "-shm")
    for end in ends:
        (tmp_path / f"{FILE}{end}").write_text(end, encoding="utf-8")
    aside = module._set_aside(tmp_path / FILE, module._identity(tmp_path / FILE))
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        f"{aside.name}{e}": e for e in ends
    }
    (tmp_path / FILE).touch()  # of another run, which did the same a moment before
    module._set_aside(tmp_path / FILE, before=0)
    assert (tmp_path / FILE).exists()


def test_an_empty_file_becomes_a_store(tmp_path: Path, lines: Lines) -> None:
    (tmp_path / FILE).touch()
    filled(tmp_path)
    assert len(reread(tmp_path, lines)) == 3 and lines == []


def test_a_log_without_its_end_loses_the_last_block_only(tmp_path: Path, lines: Lines) -> None:
    """As after a cut of power: what the log holds in whole transactions stays."""
    with Store(tmp_path, lines) as opened:
        opened.add(WHERE, 0, RESULT)
        opened.add(WHERE, 1, RESULT)
        copies = {end: Path(f"{opened.path}{end}").read_bytes() for end in ("", "-wal")}
    other = tmp_path / "other"
    other.mkdir()
    (other / FILE).write_bytes(copies[""])
    (other / f"{FILE}-wal").write_bytes(copies["-wal"][:-100])
    assert sorted(reread(other, lines)) == [0] and lines == []


# --- what cannot be written


def test_a_failing_write_is_said_once_and_loses_nothing_stored(tmp_path: Path) -> None:
    """A limit on the size of files stands for a full disk."""
    program = textwrap.dedent(f"""
        import resource, sys
        sys.path.insert(0, {str(ROOT)!r})
        from pathlib import Path
        from tests.verify.running.stores import RESULT, WHERE
        from verify.running.store import Store
        folder = Path({str(tmp_path)!r})
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
        with Store(folder, print) as store:
            for index in range(400):
                store.add(WHERE, index, RESULT)
            store.begin()
            print(store.read(WHERE, 400))
    """)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stderr) == (0, "")
    said, nothing_more = run.stdout.splitlines()
    assert said.startswith(f"{tmp_path / FILE}: ") and said.endswith(
        "; the run goes on, but what it draws from here on is not stored"
    )
    assert nothing_more == "{}"
    found = reread(tmp_path)
    assert len(found) > 10 and sorted(found) == list(range(len(found)))
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 400_000


def test_a_folder_that_cannot_be_written_is_said_once(tmp_path: Path, lines: Lines) -> None:
    with Store(tmp_path / "not there", lines) as opened:
        for index in range(3):
            opened.add(WHERE, index, RESULT)
    (line,) = lines
    assert "unable to open database file" in line


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
        pass


def test_processes_write_to_one_store_at_once(tmp_path: Path) -> None:
    program = textwrap.dedent(f"""
        import sys
        sys.path.insert(0, {str(ROOT)!r})
        from pathlib import Path
        from tests.verify.running.stores import RESULT, WHERE
        from verify.running.store import Store
        with Store(Path({str(tmp_path)!r}), print) as store:
            for index in range(150):
                store.add(WHERE, index, RESULT)
    """)
    runs = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for _ in range(2)
    ]
    assert [run.communicate(timeout=60)[0] for run in runs] == [b"", b""]
    assert sorted(reread(tmp_path)) == list(range(150))
    assert sql(tmp_path / FILE, "SELECT count(*) FROM blocks") == [(150,)]
