"""One failure stays one failure: experiments, formulas and workers that break."""

import math
import re
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace

import numpy as np
import pytest

from simulate.monte_carlo import Block, Point, SerialExecutor
from tests.verify.running.engine_runs import MEAN, SETTINGS, claim, experiment, run, session, timeless


def crashing(block: Block, point: Point) -> dict[str, np.ndarray]:
    raise ArithmeticError("planted crash")


def misshapen(block: Block, point: Point) -> dict[str, np.ndarray]:
    return {"mean": np.zeros(3)}


def fickle(block: Block, point: Point) -> dict[str, np.ndarray]:
    first = block.streams[0].random()
    return {"mean" if first < 0.7 else "other": np.array([rng.random() for rng in block.streams])}


def lazy(block: Block, point: Point) -> None:
    return None


FAILING = {
    crashing: "ArithmeticError: planted crash",
    misshapen: "score 'mean' must be one number or one vector per replicate",
    fickle: "scores must be (mean|other) in every block, got (mean|other)",
    lazy: "'NoneType' object has no attribute 'items'",
}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_failing_experiment_breaks_its_claims_and_no_others(workers: int, two_workers: Executor) -> None:
    broken = [claim(f.__name__, experiment=experiment(f, f.__name__), margin=0.001) for f in FAILING]
    worse = [replace(c, id=f"{c.id}-printed", printed=lambda p: 0.0) for c in broken]
    executor = two_workers if workers == 2 else SerialExecutor()
    made = session(*broken, MEAN, *worse, settings=replace(SETTINGS, workers=workers), executor=executor)

    for tested, message in zip(broken + worse, [*FAILING.values()] * 2, strict=True):
        (row,) = made.rows(tested)
        assert (row.verdict, row.surprise, row.points) == ("broken", True, [])
        assert row.experiment == tested.experiment.id and "Traceback" in row.error
        assert re.search(message, row.error)
    assert timeless(made.rows(MEAN)) == timeless(run(MEAN))
    assert {r.experiment for r in made.records()} == {"paper/gammas"}  # half a run is no record


def undefined(block: Block, point: Point) -> dict[str, np.ndarray]:
    mean = np.array([rng.gamma(point.shape, size=9).mean() for rng in block.streams])
    return {"mean": mean, "undefined": np.where(mean > 1.5 * point.shape, math.nan, mean)}


def test_a_score_that_is_no_number_breaks_only_the_claims_that_read_it() -> None:
    other = experiment(undefined)
    bad, good = claim("bad", experiment=other, score="undefined"), claim("good", experiment=other, margin=0.4)
    made = session(bad, good)
    assert "score 'undefined' must be finite, got nan in replicate" in made.rows(bad)[0].error
    assert [made.rows(tested)[0].verdict for tested in (bad, good)] == ["broken", "agrees"]


@pytest.mark.parametrize(
    "changes",
    [
        {"predict": lambda p: p.nonsense},
        {"predict": lambda p: 1 / 0, "printed": lambda p: 1.0},
        {"printed": lambda p: 1 / 0},
        {"rivals": {"undefined": lambda p: 1 / 0}},
        {"score": "nonsense"},
        {"inputs": {"nonsense": 1.0}},
    ],
)
def test_a_crashing_formula_breaks_its_own_claim_only(changes: dict) -> None:
    bad = claim("bad", **changes)
    made = session(bad, MEAN)
    (row,) = made.rows(bad)
    assert row.verdict == "broken" and row.error
    assert timeless(made.rows(MEAN)) == timeless(run(MEAN))


class Dying(SerialExecutor):
    """Workers that are lost after so many calls, at submission or underway."""

    def __init__(self, calls: int, *, at_once: bool) -> None:
        self.calls, self.at_once = calls, at_once

    def submit(self, fn, /, *args, **kwargs) -> Future:
        self.calls -= 1
        if self.calls >= 0:
            return super().submit(fn, *args, **kwargs)
        error, future = BrokenProcessPool("a worker died"), Future()
        if self.at_once:
            raise error
        future.set_exception(error)
        return future


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("calls", [0, 3])
@pytest.mark.parametrize("workers", [1, 4])
def test_a_run_ends_when_the_workers_die(at_once: bool, calls: int, workers: int) -> None:
    """Every claim that still needs replicates is broken; none waits for a block that never comes."""
    claims = [claim(f"c{i}", margin=0.03) for i in range(4)]
    rows = run(*claims, settings=replace(SETTINGS, workers=workers), executor=Dying(calls, at_once=at_once))
    assert [row.verdict for row in rows] == ["broken"] * 4
    assert all("a worker died" in row.error for row in rows)
