"""Stores of finished blocks in a folder, and what is found in them."""

import math
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from simulate.monte_carlo import BLOCK, BlockResult
from verify.running.origin import Key
from verify.running.store import FILE, Store

WHERE = Key("paper/experiment", '{"dim": 3}', "2024", "cpu", "f" * 64)
RESULT = BlockResult(
    {
        "plain": np.linspace(-1, 1, BLOCK),
        "odd": np.array([math.nan, math.inf, -math.inf, -0.0, 5e-324, *[1 / 3] * 11]),
        "vector": np.arange(3.0 * BLOCK).reshape(BLOCK, 3),
    },
    0.1,
)
ROOT = Path(__file__).parents[3]


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
