"""An experiment that counts the blocks it draws, runs that read a store, and the keys of what is stored."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from simulate.monte_carlo import Point, SerialExecutor
from tests.verify import toy_claims
from verify.running import origin
from verify.running.engine import Session, Settings
from verify.running.origin import Key, filed_under
from verify.running.store import Store


def simulate(block, point):
    return {}


def where(**changes: object) -> Key | None:
    return filed_under(
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


CALLS = []


def counted(block, point):
    CALLS.append(1)
    return toy_claims.uniform(block, point)


COUNTED = replace(toy_claims.TIGHT, experiment=replace(toy_claims.TIGHT.experiment, simulate=counted))


def judged(
    folder: Path, *claims, fresh: bool = False, executor: Any = None, **changes
) -> tuple[int, int, list, list]:
    """Blocks drawn, replicates read, rows and records of a run."""
    CALLS.clear()
    with Store(folder, print, fresh=fresh) as opened:
        session = Session(claims, Settings(**changes), executor or SerialExecutor(), store=opened)
        rows = [replace(row, seconds=0.0) for claim in claims for row in session.rows(claim)]
        records = [replace(record, seconds=0.0) for record in session.records()]
        return len(CALLS), opened.replicates, rows, records
