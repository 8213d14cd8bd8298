"""Some blocks of a run on a device are drawn again on the CPU; what differs is said, and counts where it was judged."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from simulate.monte_carlo import Block, Point, SerialExecutor
from tests.verify.running.engine_runs import claim, experiment
from tests.verify.toy_claims import SEEN
from verify.model import Claim, Tier
from verify.model.observation import Cost, on_a_gpu
from verify.running import replays
from verify.running.engine import Session
from verify.running.replays import Again
from verify.running.request import requested
from verify.running.settings import COUNTED, Settings
from verify.running.suite import collect, doubts


def normals(block: Block, point: Point) -> dict[str, Any]:
    drawn = block.normal(60).mean(1)
    return {"mean": point.shape + drawn, "above": (drawn > 0).double()}


NORMAL = claim(experiment=experiment(normals, "normals"))

LARGE = on_a_gpu(SEEN, points=SEEN.points[:1], cost=lambda _: Cost(1.0, 1.0, 1.0), note="large")


def judged(*observations: Any, **changes: Any) -> Session:
    """Drawn on the CPU by the generator that counts, as a device would."""
    settings = Settings(seed=7, draws=COUNTED, **changes)
    made = Session((NORMAL,), settings, SerialExecutor(), observations=observations)
    made.judge_all()
    return made


def moved(made: Session, score: str, by: float) -> None:
    for run in made.pump.runs:
        if score in run.scores:
            run.scores[score] = run.scores[score] + by


def again(made: Session, allowed: float = 0.0, **how: Any) -> Again:
    read = replays.roundings_of([dataclasses.replace(NORMAL, numerical=allowed)])
    return replays.draw_again(made.pump.runs, made.settings, read, share=1.0, **how)


def test_a_run_that_the_cpu_finds_again_agrees() -> None:
    made = judged(SEEN)
    found = again(made)
    assert found.drawn == found.asked == found.blocks > 6
    assert not found.off and not found.other
    assert found.line("cuda").endswith("drawn again on the CPU: judged scores agree")
    few = made.drawn_again(set())
    assert few.asked == -(-few.blocks // 20)


@pytest.mark.parametrize(("by", "seen"), [(1e-9, False), (1e-3, True)])
def test_a_judged_score_that_differs_counts_against_the_run(by: float, seen: bool) -> None:
    made = judged()
    moved(made, "mean", by)
    found = again(made)
    assert bool(found.off) == seen and bool(found.doubts("cuda")) == seen and not found.other
    assert not again(made, allowed=0.01).off  # what a claim allows for
    assert again(made, seconds=-1.0).line("cuda").endswith("asked for): nothing was compared")


def test_an_indicator_and_an_observation_are_named_alone() -> None:
    made = judged(SEEN)
    moved(made, "above", 1.0)
    moved(made, "good", 1.0)
    found = again(made)
    assert set(found.other) == {f"{NORMAL.experiment.id}, above", f"{SEEN.id}, good"}
    assert not found.off and "above differs by 1" in found.line("cuda")


def test_single_precision_is_named_unless_a_claim_knows_what_it_moves() -> None:
    made, names = judged(), {NORMAL.experiment.id}
    moved(made, "mean", 1e-3)
    found = again(made, single=names)
    assert not found.off and set(found.other) == {f"{NORMAL.experiment.id}, mean"}
    assert again(made, 1e-4, single=names).off and not again(made, 0.01, single=names).other
    assert not made.drawn_again(names).off


def test_what_rounding_moves_further_is_allowed_for_or_named() -> None:
    made, place = judged(), (NORMAL.experiment.id, "mean")
    moved(made, "mean", 1e-3)
    assert not again(made, rounding={place: 1e-2}).off and not again(made, rounding={place: 1e-2}).other
    assert set(again(made, rounding={place: 1e-5}).off) == {", ".join(place)}
    found = again(made, rounding={place: math.inf})
    assert not found.off and set(found.other) == {", ".join(place)}


def test_experiments_say_which_of_their_scores_rounding_moves() -> None:
    names = ("entropy-loss", "gradient-distance")
    asked = requested(
        {"claim": [f"vysogorets2024/together-{name}" for name in names]}, tier=Tier.DEFAULT, report_dir=None
    )
    assert asked.rounding == {"vysogorets2024/together-entropy-loss": math.inf}
    drawn = [c for c in asked.claims if isinstance(c, Claim)]
    assert replays.left_by_rounding(drawn) == {
        ("vysogorets2024/together", score): math.inf for score in ("entropy_loss", "entropy_gradient")
    }


def test_a_run_knows_which_of_its_experiments_are_in_single_precision() -> None:
    asked = {"claim": ["width/no-sharpening-under-standard", "granziol2022/theorem-4"]}
    assert requested(asked, tier=Tier.DEFAULT, report_dir=None).single == {"width/standard"}


def test_what_a_claim_knows_is_of_its_own_scores_and_absolute() -> None:
    reading = claim("other", inputs={"above": 1.0}, numerical=0.5)
    found = replays.roundings_of([NORMAL, reading])
    assert found == {
        ("paper/normals", "mean"): 0.0,
        ("paper/gammas", "mean"): 0.5,
        ("paper/gammas", "above"): 0.0,
    }
    made = judged()
    moved(made, "mean", 0.02)  # of 1.7 and 4.3
    assert not again(made, 0.03).off and again(made, 0.01).off


def test_no_number_on_both_sides_is_no_difference() -> None:
    here = np.array([np.nan, np.inf, -np.inf, 2.0, 1.0])
    assert replays._gap(here, here + 1e-9)[1] < 1e-8
    for there in (np.nan, -np.inf, 3.0):
        assert replays._gap(here, np.array([np.nan, there, -np.inf, 2.0, 1.0]))[1] == np.inf


def test_a_block_that_the_cpu_cannot_draw_is_named_and_the_others_are_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, calls, own = judged(), iter(range(99)), replays.run_block

    def refused(*args: Any, **how: Any) -> Any:
        if next(calls) == 1:
            raise MemoryError
        return own(*args, **how)

    monkeypatch.setattr(replays, "run_block", refused)
    found = again(made)
    assert found.drawn == found.asked - 1 > 1 and not found.off
    assert found.line("cuda").endswith(
        "judged scores agree; paper/normals could not be drawn there: MemoryError"
    )
    assert not found.doubts("cuda")


def test_an_interrupt_ends_it_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    made, calls, own = judged(), iter(range(99)), replays.run_block

    def interrupted(*args: Any, **how: Any) -> Any:
        if next(calls) == 2:
            raise KeyboardInterrupt
        return own(*args, **how)

    monkeypatch.setattr(replays, "run_block", interrupted)
    found = again(made)
    assert found.drawn == 2 and f"({found.asked} asked for): judged" in found.line("cuda")


def test_a_block_that_took_longer_than_is_left_is_not_begun() -> None:
    made = judged()
    first, *others = made.pump.runs
    first.seconds = 1e4
    count = sum(run.blocks for run in others)
    found = again(made, seconds=1e3)
    assert found.drawn == count > 0 and found.asked > count


def test_other_draws_are_seen() -> None:
    """As if the device had drawn from streams and the CPU were asked for numbers that are counted."""
    made = judged()
    made.settings = dataclasses.replace(made.settings, draws="streams")
    assert again(made).off


def test_what_no_cpu_draws_is_not_drawn_again() -> None:
    made = judged(SEEN, LARGE)
    with_large = again(made).blocks
    assert again(made, without={LARGE.id}).blocks == with_large - 1
    assert made.drawn_again(set()).blocks == with_large - 1


def test_a_report_of_a_device_says_it_and_the_run_fails_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = requested({"claim": ["granziol2022/edge"]}, tier=Tier.SMOKE, report_dir=None)
    made = judged()
    off = Again(drawn=1, asked=1, blocks=9, off={"paper/x, y": 0.25}, other={})
    monkeypatch.setattr(Session, "drawn_again", lambda *_: off)
    assert "again_on_the_cpu" not in collect(made, asked, paged=False).suite.host
    made.settings = dataclasses.replace(made.settings, device="cuda")
    assert "again_on_the_cpu" not in collect(made, asked, paged=False, interrupted=True).suite.host
    results = collect(made, asked, paged=False)
    assert results.suite.host["again_on_the_cpu"] == (
        "1 of 9 blocks of cuda drawn again on the CPU: paper/x, y differs by 0.25"
    )
    assert "scores of cuda that the CPU does not find: paper/x, y differs by 0.25" in doubts(results)
