"""Time left: within 30 % after the first tenth, whatever single parts were declared to cost."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from verify.running.forecast import costs_of, forecast, pace, remaining


@dataclass
class Part:
    expected: float
    seconds: float = 0.0
    drawn: float = 0.0
    replicates: int = 0
    wanted: int = 16
    size: int = 16
    done: bool = False
    error: str = ""
    began: float = 0.0


def drawn(part: Part, seconds: float) -> None:
    part.seconds = part.drawn = seconds
    part.replicates, part.done = part.wanted, True


def errors(scale: float, spread: float, seed: int) -> list[float]:
    """Relative errors of the time left, of a run of 300 parts on two workers, from its first tenth to its last."""
    rng = np.random.default_rng(seed)
    declared = np.sort(rng.lognormal(0.0, 1.2, 300))[::-1]
    true = scale * declared * rng.lognormal(0.0, spread, 300)
    parts, total, now, found = [Part(e) for e in declared], true.sum() / 2, 0.0, []
    for part, cost in zip(parts, true, strict=True):
        now += cost / 2
        drawn(part, cost)
        if 0.1 * total < now < 0.9 * total:
            told = forecast(parts, 0.0, credited=0.0, elapsed=now, workers=2, now=now)
            found.append(told / (total - now) - 1)
    return found


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("scale", "spread"), [(1.0, 0.4), (0.7, 0.15), (1.0, 0.15), (1.5, 0.15)])
def test_time_left_is_within_thirty_percent_after_the_first_tenth(
    scale: float, spread: float, seed: int
) -> None:
    """Declared costs are off by 40 % each; those of an earlier run by less, on a machine half again as fast or slow."""
    assert np.abs(errors(scale, spread, seed)).max() < 0.3


@pytest.mark.parametrize("scale", [0.7, 1.5])
def test_without_the_pace_it_would_not_be(scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("verify.running.forecast.pace", lambda _: 1.0)

    assert np.abs(errors(scale, 0.15, 0)).max() > 0.3


def test_a_busy_machine_takes_longer() -> None:
    parts = [Part(100.0), Part(100.0)]
    drawn(parts[0], 100.0)

    alone, beside = (forecast(parts, 0.0, credited=0.0, elapsed=t, workers=1) for t in (100.0, 200.0))
    assert alone == pytest.approx(100.0) and 170.0 < beside < 200.0


def test_no_number_of_workers_shortens_a_single_replicate() -> None:
    last = Part(72.0, wanted=1, size=1, began=50.0)

    assert forecast([last], 0.0, credited=0.0, elapsed=50.0, workers=16, now=50.0) == pytest.approx(72.0)
    assert forecast([last], 0.0, credited=0.0, elapsed=80.0, workers=16, now=80.0) == pytest.approx(42.0)


def test_what_was_read_and_not_drawn_says_nothing_of_how_busy_the_workers_are() -> None:
    read = Part(100.0, seconds=100.0, replicates=16, done=True)

    assert forecast([read, Part(50.0)], 0.0, credited=0.0, elapsed=1.0, workers=1) < 60.0


def test_a_part_that_overruns_takes_the_replicates_of_its_next_look() -> None:
    part = Part(1.0, seconds=10.0, replicates=100, wanted=200)

    assert remaining(part) == pytest.approx(10.0)
    assert remaining(Part(1.0, seconds=1.0, replicates=16)) == pytest.approx(0.05)
    assert remaining(Part(1.0, done=True)) == 0.0


def test_pace_leaves_out_what_broke() -> None:
    parts = [Part(100.0), Part(100.0), Part(100.0)]
    drawn(parts[0], 200.0)
    drawn(parts[1], 0.1)
    parts[1].error = "boom"

    assert pace(parts) == pytest.approx((200 + 18) / (100 + 18))
    assert pace([]) == 1.0


def results_file(folder: Path, **suite: object) -> Path:
    run = {"experiment": "a/b", "parameters": {"dim": 3, "at": [1, 2.5]}, "seconds": 7.5}
    facts = {"tier": "default", "replicates": None, "device": "cpu", **suite}
    (folder / "results.json").write_text(json.dumps({"suite": facts, "runs": [run]}), encoding="utf-8")
    return folder


def test_an_earlier_run_of_the_same_sort_tells_what_parts_cost(tmp_path: Path) -> None:
    from simulate.monte_carlo import Point

    known = costs_of(results_file(tmp_path), "default", None, "cpu")
    assert known == {("a/b", Point(dim=3, at=(1, 2.5)).canonical()): 7.5}
    assert costs_of(tmp_path, "full", None, "cpu") == costs_of(tmp_path, "default", 96, "cpu") == {}
    assert costs_of(None, "default", None, "cpu") == {}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"suite": 3}', "[" * 100_000, "\udcff"])
def test_a_file_that_cannot_be_read_tells_nothing(text: str, tmp_path: Path) -> None:
    (tmp_path / "results.json").write_bytes(text.encode("utf-8", "surrogateescape"))

    assert costs_of(tmp_path, "default", None, "cpu") == {}
