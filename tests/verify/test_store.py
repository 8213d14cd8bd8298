"""The store of finished blocks: the same bits or nothing, whatever the file went through."""

import dataclasses
import importlib
import math
import os
import resource
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Callable
from concurrent.futures import Future
from copy import copy
from functools import partial, wraps
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from simulate.monte_carlo import BLOCK, BlockResult, Point, SerialExecutor
from tests.verify import toy_claims
from tests.verify.toy_claims import plant
from verify import origin
from verify import store as module
from verify.cli import main
from verify.engine import Session, Settings
from verify.model import Claim, StatisticalProperty
from verify.origin import Key, key
from verify.results import load, replace_files
from verify.store import FILE, Store, exclusive

__all__ = ["plant"]

WHERE = Key("paper/experiment", '{"dim": 3}', "2024", "cpu", "f" * 64)
RESULT = BlockResult(
    {
        "plain": np.linspace(-1, 1, BLOCK),
        "odd": np.array([math.nan, math.inf, -math.inf, -0.0, 5e-324, *[1 / 3] * 11]),
        "vector": np.arange(3.0 * BLOCK).reshape(BLOCK, 3),
    },
    0.1,
)
ROOT = Path(__file__).parents[2]


class Lines(list[str]):
    def __call__(self, line: str) -> None:
        self.append(line)


@pytest.fixture
def lines() -> Lines:
    return Lines()


@pytest.fixture
def store(tmp_path: Path, lines: Lines):
    with Store(tmp_path, lines) as opened:
        yield opened


def assert_same(found: BlockResult, expected: BlockResult) -> None:
    assert list(found.scores) == list(expected.scores) and found.seconds == expected.seconds
    for name, values in expected.scores.items():
        assert found.scores[name].dtype == np.float64 and found.scores[name].shape == values.shape
        assert found.scores[name].tobytes() == values.tobytes()


def filled(folder: Path, blocks: int = 3) -> Path:
    with Store(folder, print) as opened:
        for index in range(blocks):
            opened.add(WHERE, index, RESULT)
    return folder / FILE


def sql(path: Path, statement: str, *values: object) -> list[tuple]:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        return connection.execute(statement, values).fetchall()
    finally:
        connection.close()


def reread(folder: Path, lines: Callable[[str], None] = print) -> dict[int, BlockResult]:
    with Store(folder, lines) as opened:
        return opened.read(WHERE, 1000)


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
        from tests.verify.test_store import RESULT, WHERE
        from verify.store import Store
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
        from tests.verify.test_store import RESULT, WHERE
        from verify.store import Store
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


# --- fingerprints


def simulate(block, point):
    return {}


def where(**changes: object) -> Key | None:
    return key(
        **{
            "simulate": simulate,
            "experiment": "e",
            "point": Point(dim=2),
            "seed": 1,
            "device": "cpu",
            **changes,
        }  # pyright: ignore[reportArgumentType]
    )


@pytest.fixture(autouse=True)
def _forgotten():
    yield
    origin.refresh()
    for cached in (origin._versions, origin._hardware, origin._installed):
        cached.cache_clear()


def test_a_key_is_stable_and_tells_everything_apart() -> None:
    first = where()
    assert first is not None and first == where()
    others = [
        where(experiment="f"),
        where(point=Point(dim=3)),
        where(seed=2),
        where(seed=2**80),
        where(simulate=toy_claims.uniform),
    ]
    assert len({first, *others}) == 6


def test_code_that_no_file_shows_is_not_stored() -> None:
    def inner(block, point):
        return {}

    in_no_file: dict = {}
    exec("def typed(block, point): return {}", in_no_file)
    for unknown in (
        inner,
        lambda block, point: {},
        in_no_file["typed"],
        simulate.__call__,
        partial(simulate),
        wrapping,
        disguised,
        *NAMELESS,
    ):
        assert where(simulate=unknown) is None
    assert where(simulate=simulate) is not None


def scaled(factor: float) -> Callable:
    def wrapping(block, point):
        return {"x": factor}

    return wrapping


wrapping = wraps(simulate)(scaled(2.0))
disguised = scaled(3.0)
disguised.__name__ = disguised.__qualname__ = "disguised"
NAMELESS = (lambda block, point: {},)


@pytest.mark.parametrize("part", ["theory/a.py", "simulate/deep/b.py", "verify/claims/c.py"])
def test_a_change_of_code_changes_the_fingerprint(
    part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(origin, "__file__", str(tmp_path / "verify/origin.py"))
    for name in ("theory/a.py", "simulate/deep/b.py", "verify/claims/c.py", "verify/report.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1", encoding="utf-8")

    def now() -> Key | None:
        origin.refresh()
        return where()

    before = now()
    (tmp_path / "verify/report.py").write_text("2", encoding="utf-8")
    assert now() == before
    (tmp_path / part).write_text("2", encoding="utf-8")
    assert now() != before


def test_images_count_by_their_content(tmp_path: Path) -> None:
    file = tmp_path / "images.npz"
    found = []
    for content in (b"1", b"2", b"1"):
        origin.refresh()
        file.write_bytes(content)
        found.append(where(point=Point(images=str(file))))
    assert found[0] == found[2] != found[1]
    assert where(point=Point(images="digits")) != found[0]
    assert where(point=Point(images=str(tmp_path / "gone.npz"))) is None


@pytest.mark.parametrize(
    ("target", "name"),
    [("verify.origin", "_version"), ("platform", "machine"), ("verify.origin", "_processor")],
)
def test_packages_and_machine_change_the_fingerprint(
    target: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = where()
    monkeypatch.setattr(f"{target}.{name}", lambda *_: "another")
    origin._versions.cache_clear()
    origin._hardware.cache_clear()
    assert where() != before


def test_a_package_that_is_not_there_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(origin, "PACKAGES", ("numpy", "no-such-package"))
    origin._versions.cache_clear()
    assert origin._versions()[0] != "numpy missing" and origin._versions()[1] == "no-such-package missing"


def test_the_python_version_changes_the_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    before = where()
    monkeypatch.setattr(origin.sys, "version_info", type("V", (), {"major": 3, "minor": 99}))
    origin._versions.cache_clear()
    assert where() != before


def test_a_gpu_counts_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    seen = []
    for name in ("H100", "H200"):
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda device, name=name: f"{name} {device}")
        origin._hardware.cache_clear()
        seen.append(where(device="cuda:0"))
    assert seen[0] != seen[1]


def test_a_system_that_tells_nothing_of_its_processor_has_a_name_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def gone(*_: object, **__: object) -> str:
        raise OSError

    monkeypatch.setattr(Path, "read_text", gone)
    monkeypatch.setattr("platform.processor", lambda: "i386")
    assert origin._processor() == "i386"


# --- in a session

CALLS: list[int] = []


def counted(block, point):
    CALLS.append(1)
    return toy_claims.uniform(block, point)


COUNTED = dataclasses.replace(
    toy_claims.TIGHT, experiment=dataclasses.replace(toy_claims.TIGHT.experiment, simulate=counted)
)


def judged(
    folder: Path, *claims, fresh: bool = False, executor: Any = None, **changes
) -> tuple[int, int, list, list]:
    """Blocks drawn, replicates read, rows and records of a run."""
    CALLS.clear()
    with Store(folder, print, fresh=fresh) as opened:
        session = Session(claims, Settings(**changes), executor or SerialExecutor(), store=opened)
        rows = [dataclasses.replace(row, seconds=0.0) for claim in claims for row in session.rows(claim)]
        records = [dataclasses.replace(record, seconds=0.0) for record in session.records()]
        return len(CALLS), opened.replicates, rows, records


def test_a_rerun_draws_nothing_and_says_the_same(tmp_path: Path) -> None:
    first = judged(tmp_path, COUNTED)
    assert first[:2] == (16, 0)
    again = judged(tmp_path, COUNTED)
    assert again[:2] == (0, 256) and again[2:] == first[2:]
    anew = judged(tmp_path, COUNTED, fresh=True)
    assert anew[:2] == (16, 0) and anew[2:] == first[2:]


def test_more_replicates_only_append(tmp_path: Path) -> None:
    for replicates, drawn, read in ((100, 7, 0), (256, 9, 112), (64, 0, 64), (400, 9, 256)):
        found = judged(tmp_path, COUNTED, replicates=replicates)
        alone = judged(tmp_path / "nowhere", COUNTED, replicates=replicates, fresh=True)
        assert found[:2] == (drawn, read) and found[2:] == alone[2:]


def test_another_seed_reads_nothing(tmp_path: Path) -> None:
    judged(tmp_path, COUNTED)
    assert judged(tmp_path, COUNTED, seed=3)[:2] == (16, 0)


def scales() -> dict:
    return {"scale": st.floats(1.1, 6.0)}


def test_examples_of_a_property_are_stored_too(tmp_path: Path) -> None:
    tested = StatisticalProperty(
        id="beyond/property",
        entries=("D1",),
        source="toy",
        statement="for all scales",
        strategies=scales,
        simulate=counted,
        replicate="one uniform variable",
        examples=(Point(scale=2.3),),
        score="x",
        predict=lambda p: p.scale / 2,
        margin=0.4,
        margin_reason="a toy",
        rivals={"whole": lambda p: p.scale},
    )
    first = judged(tmp_path, tested, replicates=96)
    again = judged(tmp_path, tested, replicates=96)
    assert first[0] == 6 * 11 and again[:2] == (0, 96 * 11) and again[2] == first[2]


def test_a_stored_block_of_other_scores_breaks_its_claim_like_one_just_drawn(tmp_path: Path) -> None:
    judged(tmp_path, COUNTED)
    found = key(counted, COUNTED.experiment.id, COUNTED.experiment.points[0], 2024, "cpu")
    assert found is not None
    with Store(tmp_path, print) as opened:
        opened.add(found, 3, RESULT)
    assert [row.verdict for row in judged(tmp_path, COUNTED)[2]] == ["broken"]


# --- code of users


class Written:
    """A user's package on the path: an experiment, what it imports, and what it does not."""

    SOURCE = """
from users.table import FACTOR
DRAWN = []
def simulate(block, point):
    DRAWN.append(1)
    return {"x": [FACTOR * rng.random() for rng in block.streams]}
def lazy(block, point):
    from users.later import FACTOR
    return {"x": [FACTOR * rng.random() for rng in block.streams]}
"""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "users"
        self.folder.mkdir()
        self.write("__init__", "")
        self.write("table", "FACTOR = 1.0")
        self.write("later", "FACTOR = 1.0")
        self.write("experiment", self.SOURCE)

    def write(self, name: str, text: str) -> None:
        (self.folder / f"{name}.py").write_text(text, encoding="utf-8")

    def loaded(self) -> ModuleType:
        """The experiment as a new process has it."""
        for name in [name for name in sys.modules if name.partition(".")[0] == "users"]:
            del sys.modules[name]
        importlib.invalidate_caches()
        return importlib.import_module("users.experiment")


@pytest.fixture
def users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        sys, "dont_write_bytecode", True
    )  # two sources within a tick would share their bytecode
    monkeypatch.syspath_prepend(tmp_path)
    yield Written(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "users"]:
        del sys.modules[name]


def claim_of(drawing: Callable) -> Claim:
    return dataclasses.replace(
        COUNTED, experiment=dataclasses.replace(COUNTED.experiment, simulate=drawing, budget=64)
    )


def test_a_change_in_what_an_experiment_imports_is_seen(users: Written, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    for factor, drawn, read in ((1.0, 4, 0), (1.0, 0, 64), (1.7, 4, 0), (1.0, 0, 64)):
        users.write("table", f"FACTOR = {factor}")
        experiment = users.loaded()
        assert judged(out, claim_of(experiment.simulate))[1] == read
        assert len(experiment.DRAWN) == drawn


def test_our_own_experiments_do_not_depend_on_code_of_users(users: Written) -> None:
    from verify.planted import sums

    before, toy = where(simulate=sums), where(simulate=toy_claims.uniform)
    users.loaded()
    assert where(simulate=sums) == before != toy != where(simulate=toy_claims.uniform)


def test_installed_code_counts_in_the_package_of_the_experiment_only() -> None:
    names = origin._files("numpy.linalg", 0)
    assert {"numpy", "numpy.linalg", "tests.verify.test_store"} <= names.keys() and "scipy" not in names
    assert not {"os", "json", "verify.store", "pytest", "__main__"} & names.keys()


def test_the_main_program_counts_only_as_the_home_of_the_experiment(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of a worker is another one, or the same one under another name."""
    monkeypatch.setattr(sys.modules["__main__"], "__file__", __file__, raising=False)
    for name in ("__main__", "__mp_main__"):
        assert not origin._is_users(name, "/home/user/run.py", "experiment")

    def drawing(block, point):
        return {}

    for drawing.__module__ in ("__main__", "__mp_main__"):
        origin.refresh()
        assert "__main__" in origin.origin(drawing, Point(dim=2), "cpu").files


def test_a_module_that_cannot_be_read_is_not_known(users: Written) -> None:
    drawing = users.loaded().simulate
    (users.folder / "table.py").unlink()
    assert where(simulate=drawing) is None


def test_what_is_imported_while_drawing_is_not_stored(users: Written, tmp_path: Path) -> None:
    out, lines = tmp_path / "out", Lines()
    out.mkdir()
    for _ in range(2):
        with Store(out, lines) as opened:
            session = Session([claim_of(users.loaded().lazy)], Settings(), SerialExecutor(), store=opened)
            assert session.rows(session.claims[0])[0].verdict != "broken"
            assert opened.replicates == 0
    assert (
        lines == [f"{out / FILE}: blocks whose experiment imports modules while it draws are not stored"] * 2
    )


# --- processes that live long


def test_a_reloaded_module_is_new_code_and_its_old_functions_are_no_code(users: Written) -> None:
    experiment = users.loaded()
    old = experiment.simulate
    first = where(simulate=old)
    users.write("experiment", users.SOURCE.replace("FACTOR *", "2 * FACTOR *"))
    origin.refresh()
    assert where(simulate=old) == first is not None  # the file is another, the code is still that of before
    importlib.reload(experiment)
    origin.refresh()
    assert where(simulate=old) is None
    assert where(simulate=experiment.simulate) not in (first, None)
    users.write("experiment", users.SOURCE)
    importlib.reload(experiment)
    origin.refresh()
    assert where(simulate=experiment.simulate) == first


def test_our_own_reloaded_code_is_new_code(monkeypatch: pytest.MonkeyPatch) -> None:
    from theory import softmax

    before = where()
    content = origin._content
    monkeypatch.setattr(
        origin, "_content", lambda file: content(file) + "edited" * file.endswith("theory/softmax.py")
    )
    origin.refresh()
    assert where() == before
    monkeypatch.setattr(softmax, "__spec__", copy(softmax.__spec__))  # as a reload does
    origin.refresh()
    assert where() != before


def test_images_that_are_overwritten_are_read_again(tmp_path: Path) -> None:
    from simulate import data

    file = tmp_path / "images.npz"
    means, keys = [], []
    for number in (1, 2, 1):
        pixels = np.random.default_rng(number).integers(0, 255, (8, 4, 4)).astype(np.uint8)
        np.savez(file, x_train=pixels, y_train=np.arange(8) % 2)
        origin.refresh()
        keys.append(where(point=Point(images=str(file))))
        means.append(data.opened(str(file), (1, 4, 4)).images.tobytes())
    assert keys[0] == keys[2] != keys[1] and means[0] == means[2] != means[1]


def test_a_session_looks_at_the_files_anew(tmp_path: Path) -> None:
    """Also where time and size of a file are as before."""
    file, found = tmp_path / "images.npz", []
    claim = dataclasses.replace(
        COUNTED,
        experiment=dataclasses.replace(COUNTED.experiment, points=(Point(scale=1.0, images=str(file)),)),
    )
    for content in (b"1", b"2"):
        file.write_bytes(content)
        os.utime(file, ns=(1, 1))
        found.append(judged(tmp_path, claim)[:2])
    assert found == [(16, 0), (16, 0)]


# --- workers elsewhere


class Elsewhere(SerialExecutor):
    """Draws as a process would in which these functions of the store tell something else."""

    def __init__(self, **told: Any) -> None:
        self.told = told

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self.told.items():
                patch.setattr(origin, name, lambda *_, value=value: value)
            return super().submit(fn, *args, **kwargs)


OTHER = {
    "_sources": "f" * 64,
    "_versions": ("numpy 1.0",),
    "_images": "0" * 64,
    "_files": {toy_claims.__name__: "0"},
}


@pytest.mark.parametrize("part", OTHER)
def test_a_block_drawn_by_other_code_breaks_its_run_and_is_not_stored(part: str, tmp_path: Path) -> None:
    assert judged(tmp_path, COUNTED, executor=Elsewhere(), replicates=64)[:2] == (4, 0)
    bad = judged(tmp_path, COUNTED, executor=Elsewhere(**{part: OTHER[part]}))
    (row,) = bad[2]
    assert row.verdict == "broken" and row.error.count("\n") == 1 and bad[:2] == (1, 64)
    assert row.error.startswith("a worker runs other code or other library versions than this process: ")
    assert sql(tmp_path / FILE, "SELECT count(*) FROM blocks") == [(4,)]


def test_other_code_is_refused_without_a_store_too() -> None:
    session = Session([COUNTED], Settings(), Elsewhere(_sources="f" * 64))
    assert session.rows(COUNTED)[0].verdict == "broken"


def test_blocks_of_other_hardware_count_but_are_not_stored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = judged(tmp_path / "nowhere", COUNTED, fresh=True)
    capsys.readouterr()
    assert judged(tmp_path, COUNTED, executor=Elsewhere(_hardware="another"))[2:] == expected[2:]
    line = f"{tmp_path / FILE}: blocks drawn on other hardware than this process runs on are not stored\n"
    assert capsys.readouterr().out == line
    assert judged(tmp_path, COUNTED)[:2] == (16, 0)


def test_a_worker_need_not_load_what_its_experiment_does_not_need(tmp_path: Path) -> None:
    judged(tmp_path, COUNTED, executor=Elsewhere(_files={}))
    assert judged(tmp_path, COUNTED)[:2] == (0, 256)


# --- at the command line


def reported(folder: Path, *words: str) -> tuple[int, int]:
    """Blocks drawn and replicates read, as the results say."""
    CALLS.clear()
    status = main(["report", "--workers", "1", "--report-dir", str(folder), *words])
    assert status == 0
    return len(CALLS), load(folder / "results.json").suite.host["stored_replicates"]


def test_a_rerun_says_what_it_reads(
    plant: Callable[..., None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(COUNTED, page=True)
    out = tmp_path / "out"
    line = f"losscurv: 256 replicates of an earlier run read from {out}; properties read theirs as they run\n"
    assert reported(out) == (16, 0) and "earlier run" not in capsys.readouterr().err
    assert reported(out, "--tier", "full") == (112, 256) and line in capsys.readouterr().err
    assert "<dt>from earlier runs</dt><dd>256 replicates</dd>" in (out / "report.html").read_text()
    plant(COUNTED)
    assert reported(out) == (0, 256) and line in capsys.readouterr().err
    assert reported(out, "--fresh") == (16, 0) and "earlier run" not in capsys.readouterr().err
    assert sql(out / FILE, "SELECT count(*) FROM blocks") == [(128,)]


def test_a_replay_never_reads_what_is_stored(
    plant: Callable[..., None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(COUNTED)
    assert reported(tmp_path) == (16, 0)
    CALLS.clear()
    words = ["--workers", "1", "--report-dir", str(tmp_path)]
    assert main(["replay", str(tmp_path), *words]) == 0
    assert len(CALLS) == 16 and "replay: every score and verdict is the same" in capsys.readouterr().out
    assert main(["replay", str(tmp_path), "--fresh"]) == 2
    assert reported(tmp_path, "--replay", str(tmp_path)) == (16, 0)


def test_files_are_replaced_together_or_not_at_all(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "gone" / "two"
    one.write_text("old", encoding="utf-8")
    with pytest.raises(FileNotFoundError, match="two"):
        replace_files({one: "new", two: "new"})
    assert [path.name for path in tmp_path.iterdir()] == ["one"] and one.read_text(encoding="utf-8") == "old"
    two.parent.mkdir()
    replace_files({one: "new", two: "new"})
    assert one.read_text(encoding="utf-8") == two.read_text(encoding="utf-8") == "new"
