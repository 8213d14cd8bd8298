"""Some blocks of a run on a device are drawn again on the CPU; what differs is said, and counts where it was judged."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from simulate.monte_carlo import Block, Point, SerialExecutor
from tests.verify.running.engine_runs import claim, experiment
from tests.verify.toy_claims import SEEN
from verify.model import Tier
from verify.model.observation import Cost, on_a_gpu
from verify.running import replays, suite
from verify.running.engine import Session
from verify.running.replays import Again
from verify.running.request import Request, requested
from verify.running.settings import COUNTED, Settings


def normals(block: Block, point: Point) -> dict[str, Any]:
    drawn = block.normal(60).mean(1)
    return {"mean": point.shape + drawn, "above": (drawn > 0).double()}


NORMAL = claim(experiment=experiment(normals, "normals"))
NAME = NORMAL.experiment.id
LARGE = on_a_gpu(SEEN, points=SEEN.points[:1], cost=lambda _: Cost(1.0, 1.0, 1.0), note="large")


def judged(*observations: Any, moved: dict[str, float] = {}) -> Session:  # noqa: B006 - read only
    """Drawn on the CPU by the generator that counts, as a device would; then scores are moved."""
    settings = Settings(seed=7, draws=COUNTED)
    made = Session((NORMAL,), settings, SerialExecutor(), observations=observations)
    made.judge_all()
    for run in made.pump.runs:
        run.scores |= {score: run.scores[score] + by for score, by in moved.items() if score in run.scores}
    return made


def again(made: Session, allowed: float = 0.0, says: dict[str, Any] = {}, **how: Any) -> Again:  # noqa: B006
    read = [replace(NORMAL, numerical=allowed, experiment=replace(NORMAL.experiment, **says))]
    return replays.draw_again(made.pump.runs, made.settings, read, share=1.0, **how)


def test_a_run_that_the_cpu_finds_again_agrees() -> None:
    made = judged(SEEN)
    found = again(made)
    assert found.drawn == found.asked == found.blocks > 6
    assert not found.off and not found.other
    assert found.line("cuda").endswith("drawn again on the CPU: judged scores agree")
    few = made.drawn_again()
    assert few.asked == -(-few.blocks // 20)
    assert again(made, seconds=-1.0).line("cuda").endswith("asked for): nothing was compared")
    made.settings = replace(made.settings, draws="streams")  # other draws are seen
    assert again(made).off


MEAN = f"{NAME}, mean"


@pytest.mark.parametrize(
    ("by", "allowed", "says", "off", "other"),
    [
        (1e-9, 0.0, {}, False, False),
        (1e-3, 0.0, {}, True, False),
        (1e-3, 0.01, {}, False, False),  # what a claim allows for, absolute: of 1.7 and 4.3
        (0.02, 0.03, {}, False, False),
        (0.02, 0.01, {}, True, False),
        # single precision is named unless a claim knows what it moves
        (1e-3, 0.0, {"single": "all"}, False, True),
        (1e-3, 1e-4, {"single": "all"}, True, False),
        (1e-3, 0.01, {"single": "all"}, False, False),
        # what rounding moves further
        (1e-3, 0.0, {"rounding": {"mean": 1e-2}}, False, False),
        (1e-3, 0.0, {"rounding": {"mean": 1e-5}}, True, False),
        (1e-3, 0.0, {"rounding": {"mean": math.inf}}, False, True),
    ],
)
def test_a_judged_score_that_differs_counts_against_the_run_unless_that_is_known(
    by: float, allowed: float, says: dict[str, Any], off: bool, other: bool
) -> None:
    found = again(judged(moved={"mean": by}), allowed, says)
    assert (list(found.off), list(found.other)) == ([MEAN] * off, [MEAN] * other)
    assert bool(found.doubts("cuda")) == off


def test_an_indicator_and_an_observation_are_named_alone() -> None:
    found = again(judged(SEEN, moved={"above": 1.0, "good": 1.0}))
    assert set(found.other) == {f"{NAME}, above", f"{SEEN.id}, good"}
    assert not found.off and "above differs by 1" in found.line("cuda")


def test_what_rounding_moves_and_what_is_single_is_that_of_the_claims() -> None:
    def asked(*names: str) -> Request:
        return requested({"claim": names}, tier=Tier.DEFAULT, report_dir=None)

    name = "vysogorets2024/together-entropy-loss"
    together = asked(name, "vysogorets2024/upper-edge")
    assert together.rounding == {name: math.inf} and together.single == {"vysogorets2024/together"}
    assert asked("width/no-sharpening-under-standard", "granziol2022/theorem-4").single == {"width/standard"}
    reading = claim("other", inputs={"above": 1.0}, numerical=0.5)
    assert replays.read_by(reading) == {"mean": 0.5, "above": 0.0}


def test_no_number_on_both_sides_is_no_difference() -> None:
    here = np.array([np.nan, np.inf, -np.inf, 2.0, 1.0])
    assert replays._gap(here, here + 1e-9)[1] < 1e-8
    for there in (np.nan, -np.inf, 3.0):
        assert replays._gap(here, np.array([np.nan, there, -np.inf, 2.0, 1.0]))[1] == np.inf


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_a_block_that_the_cpu_cannot_draw_is_named_and_an_interrupt_ends_it(
    error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = iter(range(99))

    def refused(*args: Any, **how: Any) -> Any:
        if next(calls) == 2:
            raise error
        return own(*args, **how)

    made, own = judged(), replays.run_block
    monkeypatch.setattr(replays, "run_block", refused)
    found, ended = again(made), error is KeyboardInterrupt
    assert found.drawn == (2 if ended else found.asked - 1) > 1 and not found.off
    said = "judged scores agree; paper/normals could not be drawn there: MemoryError"
    assert (f"({found.asked} asked for): judged" if ended else said) in found.line("cuda")
    assert not found.doubts("cuda")


def test_a_block_that_took_longer_than_is_left_is_not_begun_nor_what_no_cpu_draws() -> None:
    made = judged(SEEN, LARGE)
    first, *others = made.pump.runs
    blocks = again(made).blocks
    assert again(made, without={LARGE.id}).blocks == made.drawn_again().blocks == blocks - 1
    first.seconds = 1e4
    found = again(made, seconds=1e3)
    assert found.drawn == sum(run.blocks for run in others) > 0 and found.asked == blocks


def test_a_report_of_a_device_says_it_and_the_run_fails_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = requested({"claim": ["granziol2022/several-spikes"]}, tier=Tier.SMOKE, report_dir=None)
    off = Again(drawn=1, asked=1, blocks=9, off={"paper/x, y": 0.25}, other={})
    monkeypatch.setattr(Session, "drawn_again", lambda *_: off)
    monkeypatch.setattr(suite, "PLANTED", ())
    made, differs = judged(), "paper/x, y differs by 0.25"
    for device, interrupted, said in (
        ("cpu", False, None),
        ("cuda", True, None),
        ("cuda", False, f"1 of 9 blocks of cuda drawn again on the CPU: {differs}"),
    ):
        made.settings = replace(made.settings, device=device)
        results = suite.collect(made, asked, paged=False, interrupted=interrupted)
        assert results.suite.host.get("again_on_the_cpu") == said
        told = f"scores of cuda that the CPU does not reproduce: {differs}"
        assert (told in suite.doubts(results)) == bool(said)
