"""The engine: the same scores and verdicts however a run is cut, its looks, its budget and its progress."""

import hashlib
import itertools
from concurrent.futures import Executor
from dataclasses import replace

import numpy as np
import pytest

from simulate.monte_carlo import BLOCK, Block, Point, stream
from tests.verify.running.engine_runs import (
    ALL,
    GAMMAS,
    HARD,
    MEAN,
    POINTS,
    SETTINGS,
    SKEWED_RIVAL,
    claim,
    identity,
    judge_claim,
    run,
    session,
    timeless,
)
from verify.judging.intervals import FEWEST, mean_interval
from verify.judging.judge import PRINTED, decide, looks
from verify.model import ALPHA, Tier, Verdict
from verify.running.engine import Settings


def columns(point: Point, count: int) -> dict[str, np.ndarray]:
    """The replicates of a point, drawn without the engine."""
    streams = [stream(7, GAMMAS.id, point, i) for i in range(count)]
    blocks = [GAMMAS.simulate(Block(tuple(streams[i : i + BLOCK])), point) for i in range(0, count, BLOCK)]
    return {name: np.concatenate([np.asarray(b[name], dtype=float) for b in blocks]) for name in blocks[0]}


# --- rivals


@pytest.mark.parametrize("verdict", [Verdict.AGREES, Verdict.DISAGREES])
def test_replicates_go_on_until_a_rival_is_told_apart_and_the_verdict_stays(verdict: Verdict) -> None:
    off = 0.0 if verdict is Verdict.AGREES else 0.5
    tested = replace(SKEWED_RIVAL, predict=lambda p: p.near + off, expected=verdict)
    row, alone = run(tested)[0], judge_claim(tested, SETTINGS)
    assert [p.verdict for p in row.points] == [verdict, verdict]
    assert not any(rival.rejected for p in alone for rival in p.rivals)
    assert any(rival.rejected for p in row.points for rival in p.rivals)
    for mine, before in zip(row.points, alone, strict=True):
        assert mine.rivals_replicates > mine.replicates == before.replicates and mine.looks == before.looks
        assert (mine.lower, mine.upper, mine.measured) == (before.lower, before.upper, before.measured)


def test_what_rivals_need_beyond_the_verdict_ends_with_the_budget() -> None:
    row = run(SKEWED_RIVAL, settings=replace(SETTINGS, replicates=112))[0]
    assert row.verdict == "agrees" and not any(rival.rejected for p in row.points for rival in p.rivals)
    assert [p.rivals_replicates for p in row.points] == [112, 112]


def test_further_replicates_for_a_rival_are_drawn_where_it_lies_farthest_from_what_was_measured() -> None:
    tested = replace(SKEWED_RIVAL, rivals={"shifted": lambda p: p.near + 0.03 * p.a})
    near, far = run(tested)[0].points
    assert not near.rivals[0].rejected and near.rivals_replicates == 0
    assert far.rivals[0].rejected and far.rivals_replicates > far.replicates


# --- sameness


def test_scores_and_verdicts_hang_neither_on_workers_nor_on_what_else_is_judged(
    two_workers: Executor,
) -> None:
    """To the bit; nor on the order in which rows are asked for."""
    every = (*ALL, replace(SKEWED_RIVAL, id="paper/longer", margin=0.03, rivals={}), SKEWED_RIVAL)
    one, two = (
        session(*every, settings=replace(SETTINGS, workers=workers), executor=executor)
        for workers, executor in ((1, None), (2, two_workers))
    )
    for tested in reversed(every):
        rows = timeless(one.rows(tested))
        assert rows == timeless(two.rows(tested)) == timeless(run(tested))
        assert tested is SKEWED_RIVAL or rows[0].points == judge_claim(tested, SETTINGS)
    names = [row.claim for row in one.finished_rows()]
    assert (
        list(dict.fromkeys(names)) == [tested.id for tested in every] and names.count("paper/misprint") == 2
    )
    hashes = [[(r.replicates, r.sha256) for r in made.records()] for made in (one, two)]
    assert hashes[0] == hashes[1] and len(hashes[0]) == 2 * len(POINTS)


def test_scores_are_those_of_the_named_streams() -> None:
    made, other = session(HARD), session(HARD, settings=Settings(seed=8))
    for one in (made, other):
        one.rows(HARD)
    for record, point in zip(made.records(), POINTS, strict=True):
        drawn = columns(point, record.replicates)
        digest = hashlib.sha256()
        for name in sorted(drawn):
            digest.update(name.encode() + b"\0" + drawn[name].astype("<f8").tobytes())
        assert record.sha256 == digest.hexdigest()
        assert (record.experiment, record.parameters) == ("paper/gammas", dict(point))
    assert not {r.sha256 for r in made.records()} & {r.sha256 for r in other.records()}


# --- looks and budget


def test_a_verdict_is_that_of_the_first_look_that_decides() -> None:
    for outcome, point in zip(run(HARD)[0].points, POINTS, strict=True):
        drawn = columns(point, looks(GAMMAS.budget)[-1])["mean"]
        for n in looks(GAMMAS.budget):
            interval = mean_interval(drawn[:n], alpha=ALPHA)
            verdict = decide(interval, 0.97 * point.shape, 1.03 * point.shape)
            if verdict is not Verdict.UNDECIDED:
                break
        assert (outcome.replicates, outcome.verdict, outcome.measured) == (n, verdict, interval.estimate)
        assert (outcome.lower, outcome.upper) == (interval.lower, interval.upper)
        assert [look.replicates for look in outcome.looks] == [k for k in looks(GAMMAS.budget) if k <= n]
        assert outcome.looks[-1].lower == outcome.lower


def test_readings_stop_by_themselves_and_are_judged_where_they_differ() -> None:
    tested = claim(
        "two", margin=0.04, printed=lambda p: p.shape * (1 if p.shape < 2 else 2), finding="if large"
    )
    corrected, printed = run(tested)
    assert (corrected.verdict, printed.verdict) == ("agrees", "disagrees")
    assert printed.id == f"paper/two [{PRINTED}]" and not printed.surprise
    (only,) = printed.points
    assert only.parameters == dict(POINTS[1])
    assert only.replicates == FEWEST < corrected.points[1].replicates


def test_the_budget_ends_a_run() -> None:
    narrow = claim(margin=0.001)
    row, few = run(narrow)[0], run(narrow, settings=Settings(seed=7, replicates=150))[0]
    assert row.verdict == "undecided" and row.surprise
    assert all(p.replicates == 512 and p.reason == "budget" and p.needed > 512 for p in row.points)
    assert [p.replicates for p in few.points] == [160, 160]  # whole blocks
    assert few.points[0].looks == row.points[0].looks[: len(few.points[0].looks)]
    for tier, budget in ((Tier.SMOKE, 512), (Tier.DEFAULT, 512), (Tier.FULL, 4096)):
        assert Settings(tier=tier).budget(GAMMAS) == budget
        assert Settings(tier=tier, replicates=5).budget(GAMMAS) == 5


# --- progress


def test_progress_counts_claims_and_runs_down() -> None:
    claims = [*ALL, identity()]
    made = session(*claims)
    seen = []
    made.pump.listener = lambda: seen.append(made.progress())

    start = made.progress()
    assert start[:2] == (0, 7) and start.left == pytest.approx(3.0)
    for tested in claims:
        made.rows(tested)
    assert made.progress()[:2] == (7, 7) and made.progress().left == 0.0
    assert [p.done for p in seen] == sorted(p.done for p in seen) and seen[-1].done == 7
    assert len(seen) > 7 and all(p.elapsed <= q.elapsed for p, q in itertools.pairwise(seen))
    calls = len(seen)
    made.rows(MEAN)
    assert len(seen) == calls  # what is known is not run again
