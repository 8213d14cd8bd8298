"""The engine: the same scores and verdicts however a run is cut, its looks, its budget and its progress."""

import dataclasses
import hashlib
import itertools
from concurrent.futures import Executor, Future

import numpy as np
import pytest

from simulate.monte_carlo import BLOCK, Block, Point, SerialExecutor, stream
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
from verify.model import ALPHA, Claim, Experiment, Tier, Verdict
from verify.running.engine import Progress, Settings


def columns(
    point: Point, count: int, experiment: Experiment = GAMMAS, seed: int = 7
) -> dict[str, np.ndarray]:
    """The replicates of a point, drawn without the engine."""
    streams = [stream(seed, experiment.id, point, i) for i in range(count)]
    blocks = [
        experiment.simulate(Block(tuple(streams[i : i + BLOCK])), point) for i in range(0, count, BLOCK)
    ]
    return {
        name: np.concatenate([np.asarray(block[name], dtype=float) for block in blocks]) for name in blocks[0]
    }


# --- rivals


@pytest.mark.parametrize("verdict", [Verdict.AGREES, Verdict.DISAGREES])
def test_replicates_go_on_until_a_rival_is_told_apart_and_the_verdict_stays(verdict: Verdict) -> None:
    off = 0.0 if verdict is Verdict.AGREES else 0.5
    tested = dataclasses.replace(SKEWED_RIVAL, predict=lambda p: p.near + off, expected=verdict)
    row = run(tested)[0]
    alone = judge_claim(tested, SETTINGS)
    assert [p.verdict for p in row.points] == [verdict, verdict]
    assert not any(rival.rejected for p in alone for rival in p.rivals)
    assert any(rival.rejected for p in row.points for rival in p.rivals)
    for mine, before in zip(row.points, alone, strict=True):
        assert mine.rivals_replicates > mine.replicates == before.replicates and mine.looks == before.looks
        assert (mine.lower, mine.upper, mine.measured) == (before.lower, before.upper, before.measured)


def test_what_rivals_need_beyond_the_verdict_ends_with_the_budget() -> None:
    few = dataclasses.replace(SETTINGS, replicates=112)
    row = run(SKEWED_RIVAL, settings=few)[0]
    assert row.verdict == "agrees" and not any(rival.rejected for p in row.points for rival in p.rivals)
    assert [p.rivals_replicates for p in row.points] == [112, 112]


def test_replicates_for_rivals_do_not_depend_on_what_else_is_drawn(two_workers: Executor) -> None:
    other = dataclasses.replace(SKEWED_RIVAL, id="paper/longer", margin=0.004, rivals={})
    both = session(
        other, SKEWED_RIVAL, settings=dataclasses.replace(SETTINGS, workers=2), executor=two_workers
    )
    assert timeless([both.rows(t) for t in (other, SKEWED_RIVAL)][1]) == timeless(run(SKEWED_RIVAL))


# --- sameness


def test_two_workers_give_the_same_scores_and_verdicts_to_the_bit(two_workers: Executor) -> None:
    one, two = (
        session(*ALL),
        session(*ALL, settings=dataclasses.replace(SETTINGS, workers=2), executor=two_workers),
    )
    rows = [[row for tested in ALL for row in made.rows(tested)] for made in (one, two)]
    assert timeless(rows[0]) == timeless(rows[1])
    hashes = [[(r.replicates, r.sha256) for r in made.records()] for made in (one, two)]
    assert hashes[0] == hashes[1] and len(hashes[0]) == len(POINTS)


def test_a_verdict_does_not_depend_on_what_else_is_selected() -> None:
    together = session(*ALL)
    for tested in reversed(ALL):  # nor on the order in which rows are asked for
        assert timeless(together.rows(tested)) == timeless(run(tested))
    assert [row.claim for row in together.finished_rows()] == [
        "paper/mean",
        "paper/hard",
        *["paper/misprint"] * 2,
        "paper/ratio",
        "paper/event",
        "paper/paired",
    ]


@pytest.mark.parametrize("tested", ALL, ids=lambda c: c.id)
def test_a_claim_alone_is_judged_as_in_a_session(tested: Claim) -> None:
    assert judge_claim(tested, SETTINGS) == run(tested)[0].points


def test_scores_are_those_of_the_named_streams() -> None:
    made = session(HARD)
    made.rows(HARD)
    for record, point in zip(made.records(), POINTS, strict=True):
        drawn = columns(point, record.replicates)
        digest = hashlib.sha256()
        for name in sorted(drawn):
            digest.update(name.encode() + b"\0" + drawn[name].astype("<f8").tobytes())
        assert record.sha256 == digest.hexdigest()
        assert (record.experiment, record.parameters) == ("paper/gammas", dict(point))


def test_another_seed_gives_other_scores() -> None:
    made = [session(MEAN, settings=Settings(seed=seed)) for seed in (7, 8, 7)]
    for one in made:
        one.rows(MEAN)
    first, other, again = ([r.sha256 for r in one.records()] for one in made)
    assert first == again and not set(first) & set(other)


# --- looks and budget


def test_a_verdict_is_that_of_the_first_look_that_decides() -> None:
    row = run(HARD)[0]
    for outcome, point in zip(row.points, POINTS, strict=True):
        drawn = columns(point, looks(GAMMAS.budget)[-1])["mean"]
        for n in looks(GAMMAS.budget):
            interval = mean_interval(drawn[:n], alpha=ALPHA)
            verdict = decide(interval, 0.97 * point.shape, 1.03 * point.shape)
            if verdict is not Verdict.UNDECIDED:
                break
        assert (outcome.replicates, outcome.verdict) == (n, verdict)
        assert (outcome.measured, outcome.lower, outcome.upper) == (
            interval.estimate,
            interval.lower,
            interval.upper,
        )
        assert [look.replicates for look in outcome.looks] == [k for k in looks(GAMMAS.budget) if k <= n]
        assert outcome.looks[-1].lower == outcome.lower


def test_readings_of_one_claim_stop_by_themselves() -> None:
    corrected, printed = run(claim("two", margin=0.04, printed=lambda p: 2 * p.shape, finding="twice"))
    assert (corrected.verdict, printed.verdict) == ("agrees", "disagrees")
    assert printed.id == f"paper/two [{PRINTED}]" and not printed.surprise
    for one, other in zip(printed.points, corrected.points, strict=True):
        assert one.replicates == FEWEST < other.replicates


def test_the_budget_ends_a_run() -> None:
    row = run(claim(margin=0.001))[0]
    assert row.verdict == "undecided" and row.surprise
    assert all(p.replicates == 512 and p.reason == "budget" and p.needed > 512 for p in row.points)
    few = run(claim(margin=0.001), settings=Settings(seed=7, replicates=150))[0]
    assert [p.replicates for p in few.points] == [160, 160]  # whole blocks
    assert few.points[0].looks == row.points[0].looks[: len(few.points[0].looks)]


@pytest.mark.parametrize(("tier", "budget"), [(Tier.SMOKE, 512), (Tier.DEFAULT, 512), (Tier.FULL, 4096)])
def test_the_full_tier_has_eight_times_the_budget(tier: Tier, budget: int) -> None:
    assert Settings(tier=tier).budget(GAMMAS) == budget
    assert Settings(tier=tier, replicates=5).budget(GAMMAS) == 5


def test_exactly_so_many_replicates_are_judged_where_asked() -> None:
    first = judge_claim(MEAN, SETTINGS)[0].replicates
    for outcome in judge_claim(MEAN, SETTINGS, replicates=4 * first):
        assert outcome.replicates == 4 * first and len(outcome.looks) == 1


def test_a_reading_is_judged_only_where_it_differs() -> None:
    tested = claim(printed=lambda p: p.shape if p.shape < 2 else 2 * p.shape, finding="only for large shapes")
    corrected, printed = run(tested)
    assert [len(row.points) for row in (corrected, printed)] == [2, 1]
    assert printed.points[0].parameters == dict(POINTS[1]) and printed.verdict == "disagrees"


# --- progress


def test_progress_counts_claims_and_runs_down() -> None:
    claims = [*ALL, identity()]
    made = session(*claims)
    seen: list[Progress] = []
    made.pump.listener = lambda: seen.append(made.progress())

    start = made.progress()
    assert (start.done, start.total) == (0, 7) and start.left == pytest.approx(2 * 1.0 + 1.0)
    for tested in claims:
        made.rows(tested)
    end = made.progress()
    assert (end.done, end.total, end.left) == (7, 7, 0.0)
    assert [p.done for p in seen] == sorted(p.done for p in seen) and seen[-1].done == 7
    assert len(seen) > 7 and all(p.elapsed <= q.elapsed for p, q in itertools.pairwise(seen))
    calls = len(seen)
    made.rows(MEAN)
    assert len(seen) == calls  # what is known is not run again


def test_more_workers_leave_less_time() -> None:
    one, four = (session(MEAN, settings=Settings(workers=w)).progress().left for w in (1, 4))
    assert one == 4 * four


# --- what is drawn while others are waited for


class Noted(Executor):
    """Calls at once, as if on many workers, and notes the experiment of each call, or that it is one of routes."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def submit(self, fn, /, *args, **kwargs) -> Future:
        self.names.append(kwargs.get("experiment", "routes"))
        return SerialExecutor().submit(fn, *args, **kwargs)


FOUR = dataclasses.replace(SETTINGS, workers=4)


def test_the_longest_run_is_drawn_first_when_nobody_waits_for_one() -> None:
    others = [
        claim(name, experiment=dataclasses.replace(GAMMAS, id=f"paper/{name}", seconds=seconds))
        for name, seconds in (("short", 1.0), ("long", 50.0))
    ]
    noted = Noted()
    session(MEAN, *others, settings=FOUR, executor=noted).rows(MEAN)
    assert noted.names[0] == MEAN.experiment.id
    assert next(name for name in noted.names if name != MEAN.experiment.id) == "paper/long"


def test_routes_are_taken_while_replicates_are_waited_for() -> None:
    tested, noted = identity(), Noted()
    made = session(MEAN, tested, settings=FOUR, executor=noted)
    made.rows(MEAN)
    assert noted.names[0] == MEAN.experiment.id and noted.names.count("routes") == len(tested.points)
    assert timeless(made.rows(tested)) == timeless(run(tested))
    assert noted.names.count("routes") == len(tested.points)


# --- replays
