"""Runs that read a store: nothing is drawn twice, and nothing of other code or hardware is kept."""

from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from simulate.monte_carlo import SerialExecutor
from tests.verify import toy_claims
from tests.verify.running.engine_runs import STATISTICAL
from tests.verify.running.stored_draws import CALLS, COUNTED, _forgotten, counted, judged
from tests.verify.running.stores import RESULT, sql
from tests.verify.toy_claims import plant
from verify.cli import main
from verify.results import load
from verify.running import origin
from verify.running.engine import Session, Settings
from verify.running.origin import filed_under
from verify.running.store import FILE, Store

__all__ = ["_forgotten", "plant"]

# --- in a session


def test_a_rerun_draws_nothing_and_says_the_same(tmp_path: Path) -> None:
    first, again, anew = (judged(tmp_path, COUNTED, fresh=fresh) for fresh in (False, False, True))
    assert (first[:2], again[:2], anew[:2]) == ((16, 0), (0, 256), (16, 0))
    assert first[2:] == again[2:] == anew[2:]
    assert judged(tmp_path, COUNTED, seed=3)[:2] == (16, 0)


def test_more_replicates_only_append(tmp_path: Path) -> None:
    for replicates, drawn, read in ((100, 7, 0), (256, 9, 112), (64, 0, 64), (400, 9, 256)):
        found = judged(tmp_path, COUNTED, replicates=replicates)
        alone = judged(tmp_path / "nowhere", COUNTED, replicates=replicates, fresh=True)
        assert found[:2] == (drawn, read) and found[2:] == alone[2:]


def test_examples_of_a_property_are_stored_too(tmp_path: Path) -> None:
    first, again = (judged(tmp_path, STATISTICAL, replicates=96)[1:] for _ in range(2))
    assert (first[0], again[0]) == (0, 96 * 11) and again[1] == first[1]


def test_a_stored_block_of_other_scores_breaks_its_claim_like_one_just_drawn(tmp_path: Path) -> None:
    judged(tmp_path, COUNTED)
    found = filed_under(counted, COUNTED.experiment.id, COUNTED.experiment.points[0], 2024, "cpu")
    with Store(tmp_path, print) as opened:
        opened.add(found, 3, RESULT)
    assert [row.verdict for row in judged(tmp_path, COUNTED)[2]] == ["broken"]


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
    session = Session([COUNTED], Settings(), Elsewhere(**{part: OTHER[part]}))
    assert session.rows(COUNTED)[0].verdict == "broken"  # without a store too
    assert judged(tmp_path, COUNTED, executor=Elsewhere(), replicates=64)[:2] == (4, 0)
    bad = judged(tmp_path, COUNTED, executor=Elsewhere(**{part: OTHER[part]}))
    (row,) = bad[2]
    assert row.verdict == "broken" and row.error.count("\n") == 1 and bad[:2] == (1, 64)
    assert row.error.startswith("a worker runs different code or library versions than this process; ")
    assert sql(tmp_path / FILE, "SELECT count(*) FROM blocks") == [(4,)]


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
    assert status == 1  # the claim stays undecided, whatever is drawn
    return len(CALLS), load(folder / "results.json").suite.host["stored_replicates"]


def test_a_rerun_says_what_it_reads_and_a_replay_reads_nothing(
    plant: Callable[..., None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(COUNTED)
    out = tmp_path / "out"
    line = f"losscurv: 256 replicates of an earlier run read from {out}; properties read theirs as they run\n"
    assert reported(out) == (16, 0) and "earlier run" not in capsys.readouterr().err
    assert reported(out, "--tier", "full") == (112, 256) and line in capsys.readouterr().err
    assert reported(out) == (0, 256) and line in capsys.readouterr().err
    assert reported(out, "--fresh") == (16, 0) and "earlier run" not in capsys.readouterr().err
    assert sql(out / FILE, "SELECT count(*) FROM blocks") == [(128,)]
    assert reported(out, "--replay", str(out)) == (16, 0)
    assert "replay: every score and verdict is the same" in capsys.readouterr().out
    assert main(["replay", str(out), "--fresh"]) == 2
