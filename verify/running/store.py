"""Finished blocks on disk: a store in the report folder, from which a rerun continues.

A block is filed under all that its numbers depend on: experiment, point, seed, device, and a fingerprint of the
code, the packages, the machine and the images behind it. Whatever of this changes, the block is drawn again. The
process that draws a block says what it is drawn with, for it may be on another machine than the store.
The store is a convenience, never a condition: what it cannot do it says once, and the run goes on in memory.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from simulate.monte_carlo import BLOCK, BlockResult, Scores
from verify.running.origin import Key

FILE = "replicates.sqlite"

PATIENCE = 30.0
"""Seconds to wait for another run that writes to the same store."""

LOG_PAGES = 200
"""Pages of 4 kB after which the log is worked into the file: a block takes three of them, and a disk may be small."""

APPLICATION = 0x6C6F7373
"""Marks the file as ours in its header: "loss"."""

RUNS = """CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    experiment TEXT NOT NULL,
    point TEXT NOT NULL,
    seed TEXT NOT NULL,
    device TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    UNIQUE (experiment, point, seed, device, fingerprint)
)"""
BLOCKS = """CREATE TABLE blocks (
    run INTEGER NOT NULL REFERENCES runs,
    block INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    layout TEXT NOT NULL,
    scores BLOB NOT NULL,
    seconds REAL NOT NULL,
    sha256 TEXT NOT NULL,
    UNIQUE (run, block, attempt, sha256)
)"""

_ADD_RUN = "INSERT OR IGNORE INTO runs (experiment, point, seed, device, fingerprint) VALUES (?, ?, ?, ?, ?)"
_ADD_BLOCK = """INSERT OR REPLACE INTO blocks SELECT id, ?, 0, ?, ?, ?, ? FROM runs
    WHERE experiment = ? AND point = ? AND seed = ? AND device = ? AND fingerprint = ?"""
_READ = """SELECT block, layout, scores, seconds, sha256 FROM blocks JOIN runs ON run = id
    WHERE experiment = ? AND point = ? AND seed = ? AND device = ? AND fingerprint = ? AND block >= 0 AND block < ?
    ORDER BY blocks.rowid DESC"""


class Store:
    """The blocks of a report folder; the file appears with the first block.

    Parameters
    ----------
    folder
        Where `FILE` is or will be.
    say
        Called with one line if nothing more can be stored: the file is damaged or another's, or the disk is full.
    fresh
        Read nothing; what is drawn is still added.
    """

    def __init__(self, folder: Path, say: Callable[[str], None], *, fresh: bool = False) -> None:
        self.path, self.fresh, self.replicates = folder / FILE, fresh, 0
        self._say = say
        self._connection: sqlite3.Connection | None = None
        self._given_up = False
        self._left_out: set[str] = set()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self, where: Key, most: int, size: int = BLOCK) -> dict[int, BlockResult]:
        """The sound ones of the first `most` blocks of `size`, by index; of two, the one added last."""
        found: dict[int, BlockResult] = {}
        # Connecting would create the file.
        if self.fresh or not self.path.exists():
            return found
        # Rows come newest first: `--fresh` may have drawn a stored block again.
        for index, *fields in self._execute(_READ, (*where, most)):
            # SQLite does not enforce the type of a column: an edited file may hold anything.
            if (
                type(index) is int
                and index not in found
                and (block := _decoded(where, index, *fields, size=size))
            ):
                found[index] = block
        self.replicates += size * len(found)
        return found

    def add(self, where: Key, index: int, result: BlockResult) -> None:
        """Append a block; the file is in order whenever the process ends."""
        # The hash covers the name too, so a block filed under another key or index is not sound.
        layout, scores = _encoded(result.scores)
        digest = _digest(where, index, layout, scores)
        self._execute(_ADD_RUN, where)
        self._execute(_ADD_BLOCK, (index, layout, scores, result.seconds, digest, *where))

    def leave_out(self, what: str) -> None:
        """Say, once, what is not stored."""
        if what not in self._left_out:
            self._left_out.add(what)
            self._say(f"{self.path}: {what} are not stored")

    def begin(self) -> None:
        """Open the file or create it; from then on `exclusive` has a file to lock."""
        # One message is enough, and a full disk would fail at every block.
        if self._connection is None and not self._given_up:
            try:
                self._connection = _open(self.path)
            except (sqlite3.Error, OSError) as error:
                self._give_up(error)

    def close(self) -> None:
        """Close the file; what a full disk has no room for stays in the log beside it."""
        if self._connection is not None:
            # Closing works the log into the file, for which a full disk has no room.
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
        self._connection = None

    def _execute(self, statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        self.begin()
        try:
            return self._connection.execute(statement, values).fetchall() if self._connection else []
        except sqlite3.Error as error:
            self._give_up(error)
            return []

    def _give_up(self, error: Exception) -> None:
        """Close the store for good, and say so once."""
        self.close()
        self._given_up = True
        self._say(f"{self.path}: {error}; the run goes on, but what it draws from here on is not stored")


@contextlib.contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Keep every other run out of the folder's store, and so out of its report, for a moment.

    Raises
    ------
    TimeoutError
        If another run does not let go of it.
    """
    path = folder / FILE
    # Where nothing is stored there is no file to lock.
    if not path.is_file():
        yield
        return
    connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
    try:
        try:
            # SQLite has the locks that work between processes on all systems, and
            # drops them if the process is killed.
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            if _primary_code(error) == sqlite3.SQLITE_BUSY:
                raise TimeoutError(0, f"another run is writing its report to {folder}; run again") from None
            # a disk without room for a lock has none for another report either
        yield
    finally:
        connection.close()


def _open(path: Path) -> sqlite3.Connection:
    # `isolation_level=None`: without it the module would begin transactions of its own. Each insert is
    # committed at once, so a kill loses no stored block.
    connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
    # A damaged text must fail its hash, not raise while it is read.
    connection.text_factory = lambda raw: raw.decode(errors="replace")
    try:
        # The file may come from somewhere else: nothing in its schema may call functions.
        connection.execute("PRAGMA trusted_schema = OFF")
        # Checked before anything is written: the file may belong to another program or version.
        _require_ours(connection)
        _write_ahead(connection)
        _create(connection)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _require_ours(connection: sqlite3.Connection) -> None:
    ((check,),) = connection.execute("PRAGMA quick_check(1)").fetchall()
    ((application,),) = connection.execute("PRAGMA application_id").fetchall()
    # A new file has neither an application id nor tables.
    ours = application in (0, APPLICATION) and _schema(connection) in ([], [BLOCKS, RUNS])
    if check != "ok" or not ours:
        raise sqlite3.DatabaseError("no sound store of replicates of this version, remove it")


def _schema(connection: sqlite3.Connection) -> list[str]:
    found = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY sql")
    return [sql for (sql,) in found]


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Switch to a log that lets readers work while one run writes."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            # A power cut may lose the last blocks but not damage the file, and no block waits for the disk.
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}")
            return
        except sqlite3.OperationalError as error:
            # The switch fails at once if another run holds the file: the timeout of the connection does not apply.
            if _primary_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        time.sleep(0.01)


def _create(connection: sqlite3.Connection) -> None:
    """Both tables in one step, unless they are there."""
    if _schema(connection):
        return
    connection.execute("BEGIN IMMEDIATE")
    # Another run may have made the tables while this one waited for its turn.
    if not _schema(connection):
        for statement in (RUNS, BLOCKS, f"PRAGMA application_id = {APPLICATION}"):
            connection.execute(statement)
    connection.execute("COMMIT")


def _primary_code(error: sqlite3.Error) -> int:
    # The low byte is the primary code, whatever extended code a version of SQLite gives.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _encoded(scores: Scores) -> tuple[str, bytes]:
    """Names and shapes as JSON, and the raw numbers one after the other."""
    layout = json.dumps({name: values.shape for name, values in scores.items()})
    # A fixed byte order, for the store may move to another machine.
    return layout, b"".join(np.ascontiguousarray(v, dtype="<f8").tobytes() for v in scores.values())


def _decoded(
    where: Key, index: int, layout: Any, scores: Any, seconds: Any, digest: Any, size: int = BLOCK
) -> BlockResult | None:
    """A row as a block; None where it is not what was written."""
    kinds = (type(layout), type(scores), type(seconds))
    # `not seconds >= 0` is true for NaN as well.
    if kinds != (str, bytes, float) or digest != _digest(where, index, layout, scores) or not seconds >= 0:
        return None
    try:
        return BlockResult(_arrays(json.loads(layout), scores, size), seconds)
    # Deeply nested JSON exhausts the recursion limit.
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None


def _arrays(layout: dict[str, list[int]], raw: bytes, rows: int) -> Scores:
    numbers, start = np.frombuffer(raw, dtype="<f8"), 0
    found: Scores = {}
    for name, shape in layout.items():
        if shape[:1] != [rows] or len(shape) > 2 or not all(type(n) is int and n >= 0 for n in shape):
            raise ValueError(f"scores must have one row per replicate, got shape {shape}")
        size = rows * (shape[1] if len(shape) == 2 else 1)
        # `astype` copies: arrays from a buffer are read-only and keep the stored byte order.
        found[name] = numbers[start : start + size].reshape(shape).astype(np.float64)
        start += size
    if start != len(numbers):
        raise ValueError(f"scores must fill {start} numbers, got {len(numbers)}")
    return found


def _digest(where: Key, index: int, layout: str, scores: bytes) -> str:
    """Hash of a block and its name; not of the seconds it took, which nobody draws twice the same."""
    head = json.dumps([*where, index, layout])
    return hashlib.sha256(head.encode() + b"\0" + scores).hexdigest()
