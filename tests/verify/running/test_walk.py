"""What a reader follows from the session to the row of an ordinary claim: few files, and never back up."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import grimp
import pytest

import verify
from simulate.monte_carlo import SerialExecutor
from tests.verify.running.engine_runs import SETTINGS, claim
from verify.running.engine import Session

ROOT = Path(verify.__file__).parents[1]
MOST = 18
"""Functions, methods and properties of other files that are entered; twice as many before the runners were parted."""

Move = tuple[str, str, str]
"""The file that calls, the file that is called, and what of it."""


@contextmanager
def recorded(moves: list[Move]) -> Iterator[None]:
    """Note every call in this thread that leads from one file of verify into another."""

    def note(frame: FrameType, event: str, _: Any) -> None:
        here, back = frame.f_code.co_filename, frame.f_back
        there = back.f_code.co_filename if back else ""
        if event == "call" and here != there and all(f.startswith(f"{ROOT}/verify/") for f in (here, there)):
            moves.append((_module(there), _module(here), frame.f_code.co_qualname))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(before)


def _module(file: str) -> str:
    return ".".join(Path(file).relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@pytest.fixture(scope="module")
def walk() -> list[Move]:
    ordinary = claim("ordinary", axis="shape", rivals={"square": lambda p: p.shape**2})
    session, moves = Session([ordinary], SETTINGS, SerialExecutor()), list[Move]()
    with recorded(moves):
        (row,) = session.rows(ordinary)
    assert row.verdict == "agrees" and row.curves and row.points[0].rivals
    return moves


def test_a_claim_reaches_its_row_in_few_moves_that_never_lead_back_up(walk: list[Move]) -> None:
    """Whatever is called does not call back, neither at once nor by way of others: the moves have an order."""
    entered = {(called, what) for _, called, what in walk}
    left = {(caller, called) for caller, called, _ in walk}
    assert len(entered) <= MOST, sorted(entered)
    assert len(left) <= 15 and len({called for _, called in left}) <= 12
    while left:
        ends = {called for _, called in left} - {caller for caller, _ in left}
        assert ends, f"in a circle: {sorted(left)}"
        left = {(caller, called) for caller, called in left if called not in ends}


def test_every_move_follows_an_import_and_is_on_the_map(walk: list[Move]) -> None:
    """Nothing is reached by a call back or a base class; docs/architecture.md shows every file on the way."""
    graph = grimp.build_graph("verify")
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    picture = text[text.index("## From a claim to its row") :]
    for caller, called, what in walk:
        reached = graph.find_modules_directly_imported_by(caller)
        assert called in reached, f"{caller} calls {what} of {called}"
        assert called.split(".")[-1] in picture, called
