"""When a watcher measures, and the file that it leaves, whatever becomes of process and disk."""

import errno
import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.refusals import refusal
from tests.verify.practice.watch.small_watchers import Clock, batches, net, watched
from verify.practice.watch import CurvatureRecord, read_records
from verify.practice.watch.journal import Journal
from verify.practice.watch.pace import Pace
from verify.practice.watch.record import record_line

CPU = torch.device("cpu")


@pytest.mark.parametrize(("cost", "rarely"), [(0.0, 10), (0.4, 10), (2.0, 39)])
def test_interval_stretches_until_the_share_is_kept(cost: float, rarely: int) -> None:
    """Steps of a second, and measurements of `cost`: cost / (cost + interval) is at most 5 %."""
    clock, at, shares = Clock(), [], []
    pace = Pace(10, 0.05, clock)
    for step in range(1, 2001):
        clock.now += 1.0
        if pace.due(CPU):
            clock.now += cost
            at.append(step)
            shares.append(pace.measured(CPU)[1])
            pace.written()
    gaps = [later - one for one, later in itertools.pairwise(at)]
    assert at[0] == 1 and min(gaps) >= 10
    assert all(share <= 0.05 + 1e-9 for share in shares[1:])
    assert sum(gaps[1:]) / len(gaps[1:]) <= rarely + 1


def test_the_next_measurement_waits_until_the_share_allows_one_of_the_same_cost() -> None:
    clock = Clock()
    pace = Pace(1, 0.5, clock)
    assert pace.due(CPU) and pace.measured(CPU) == (0.0, 0.0, 0)  # no time has passed
    clock.now += 0.125
    assert pace.due(CPU)
    clock.now += 0.25
    assert pace.measured(CPU) == (0.25, 0.25 / 0.375, 1)
    due = []
    for _ in range(3):
        clock.now += 0.125
        due.append(pace.due(CPU))
    assert due == [False, False, True]  # 0.5 of 1.0 seconds then go into measuring


def test_time_of_the_file_counts_too() -> None:
    clock, count = Clock(), 0
    pace = Pace(1, 0.1, clock)
    for _ in range(1000):
        clock.now += 1.0
        if pace.due(CPU):
            count += 1
            pace.measured(CPU)
            clock.now += 3.0  # of a slow disk
            pace.written()
    assert 3.0 * count <= 0.1 * clock.now + 3.0


def test_without_cost_every_hundredth_step_is_measured() -> None:
    watcher = watched(net(), every=3, start=500)
    data = batches(10)
    found = [watcher.step(*batch) is not None for batch in data]
    assert found == [True, False, False] * 3 + [True]
    assert [(each.step, each.interval) for each in watcher.records] == [
        (501, 0),
        (504, 3),
        (507, 3),
        (510, 3),
    ]


def test_records_can_be_read_while_training_runs_and_runs_follow_each_other(tmp_path: Path) -> None:
    file = tmp_path / "new" / "curvature.jsonl"
    for run in range(2):
        watcher = watched(net(), file=file, seed=run)
        for count, batch in enumerate(batches(3), start=1):
            watcher.step(*batch)
            assert read_records(file) == watcher.records and len(watcher.records) == count
    infinite = record_line(CurvatureRecord(step=2, outcome="diverged: the loss is inf", loss=float("inf")))
    assert json.loads(infinite)["loss"] is None and "Infinity" not in infinite
    assert len(read_records(file, run=0)) == 3 and read_records(file, run=0) != read_records(file)
    heads = [json.loads(line) for line in file.read_text().splitlines() if "watch" in json.loads(line)]
    assert [head["seed"] for head in heads] == [0, 1] and heads[0]["parameters"] == 43
    with refusal("run must be one of the 2 runs in"):
        read_records(file, run=2)
    with refusal("cannot read file"):
        read_records(tmp_path / "none")


def test_a_line_that_was_cut_off_costs_itself_alone(tmp_path: Path) -> None:
    file = tmp_path / "curvature.jsonl"
    watcher = watched(net(), file=file)
    data = batches(3)
    for batch in data[:2]:
        watcher.step(*batch)
    file.write_bytes(file.read_bytes()[:-40])  # a machine that went down
    watcher.step(*data[2])
    assert [each.step for each in read_records(file)] == [1, 3]


def test_a_full_disk_is_one_warning_and_the_watcher_has_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "curvature.jsonl"
    watcher = watched(net(), file=file)
    data = batches(4)
    watcher.step(*data[0])
    held = file.read_bytes()

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "_append", full)
        with pytest.warns(UserWarning, match=r"No space left on device; training continues") as caught:
            [watcher.step(*batch) for batch in data[1:3]]
        assert len(caught) == 1 and file.read_bytes() == held
    watcher.step(*data[3])
    assert [each.step for each in read_records(file)] == [1, 4]
    assert [each.step for each in watcher.records] == [1, 2, 3, 4]


def test_a_file_that_cannot_be_written_is_refused_before_training(tmp_path: Path) -> None:
    with refusal(re.escape(f"cannot write file {tmp_path}")):
        watched(net(), file=tmp_path)
