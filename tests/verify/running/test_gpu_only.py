"""Observations that need a GPU run if it has the memory, and are else left out with a line."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from simulate.monte_carlo import Point
from tests.refusals import refusal
from tests.verify import toy_claims
from tests.verify.command_line import Planter, elsewhere, judged
from tests.verify.toy_claims import SEEN, plant
from verify.claims import registry
from verify.claims.images import ImagesThere
from verify.claims.registry import admit_observations
from verify.model import Tier
from verify.model.observation import Cost, Observation, classes_of, on_a_gpu
from verify.results import dumps, load
from verify.running import request
from verify.running.gpu_only import GpuOnly, fitted
from verify.running.request import Request, requested
from verify.running.settings import Settings

__all__ = ["elsewhere", "plant"]

GIB = 2.0**30
RESULTS = Path("out/results.json")


def cost(point: Point) -> Cost:
    return Cost(memory=point.scale * GIB, flops=2e13 * point.scale, launches=10.0)


LARGE = on_a_gpu(
    SEEN, points=tuple(Point(scale=scale, size=(4, 16, 64)) for scale in (3.0, 40.0)), cost=cost, note="large"
)
PHOTOS = replace(
    LARGE,
    id="beyond/photos-on-a-gpu",
    points=(Point(scale=3.0, images="digits", samples=10_000, size=(4, 16, 64)),),
)


def chosen(*observations: Observation, **changes: Any) -> GpuOnly:
    how = {
        "device": "cuda",
        "memory": 50 * GIB,
        "images": lambda: ImagesThere(1797, 10),
        "replicates": Settings(tier=Tier.FULL).repeats,
    }
    return fitted(observations, **how | changes)


def test_what_fits_is_drawn_with_an_estimate_and_small_sizes_always() -> None:
    made = chosen(SEEN, LARGE)
    assert made.observations == (SEEN, LARGE) and not made.left_out
    assert made.lines == (
        "at sizes for a GPU: 2 replicates of 1 observations on cuda, by estimate 43 s and up to 40.0 GiB at a time",
    )
    made = chosen(LARGE, memory=10 * GIB)  # a point that is too large is left out by itself
    assert [o.points for o in made.observations] == [LARGE.points[:1]]
    assert "1 replicates of 1 observations on cuda, by estimate 3 s" in made.lines[0]
    assert "leaves out {'scale': 40.0, " in made.lines[1] and made.lines[1].endswith("10.0 GiB that are free")


@pytest.mark.parametrize(
    ("observation", "changes", "why"),
    [
        (LARGE, {"device": "cpu", "memory": None}, "it needs a GPU (--device cuda)"),
        (LARGE, {"memory": None}, "the memory of the GPUs of an executor is not known from here"),
        (LARGE, {"memory": GIB}, "it needs 3.0 GiB, of 1.0 GiB that are free"),
        (PHOTOS, {}, "it draws from 10000 images, of 1797 that there are (--data)"),
    ],
)
def test_what_cannot_be_drawn_at_all_says_why(observation, changes: dict[str, Any], why: str) -> None:
    made = chosen(SEEN, observation, **changes)
    assert made.observations == (SEEN,)
    assert made.lines == (f"at sizes for a GPU, not run: {observation.id}: {why}",)
    assert made.left_out == {observation.id: why}


def test_an_estimate_is_for_the_classes_of_the_images() -> None:
    photos = replace(PHOTOS, cost=lambda point: Cost(classes_of(point) * GIB, 1.0, 1.0))
    assert chosen(LARGE, images=pytest.fail).observations == (LARGE,)  # asked for only where they are needed
    for classes, kept in ((10, (photos,)), (100, ())):
        made = chosen(photos, images=lambda c=classes: ImagesThere(10_000, c))
        assert made.observations == kept and f"{classes}.0 GiB" in made.lines[0]
    for large in registry.observations():
        for point in large.points if large.cost else ():
            ten, more = (large.cost(point | {"classes": count}) for count in (10, 100))
            assert large.cost(point) == ten
            assert (more.flops > ten.flops and more.memory > ten.memory) or "images" not in point


def test_the_estimate_is_for_the_replicates_of_the_run(gpu: None, plant: Planter) -> None:
    more = replace(LARGE, replicates=3)
    plant(more)
    for replicates, count in ((None, 3), (2, 2), (50, 3)):
        made = asked(tier="full", device="cuda", replicates=replicates)
        assert made.for_a_gpu[0].startswith(f"at sizes for a GPU: {count} replicates of 1 obs")


def test_a_replay_draws_the_recorded_points_or_nothing() -> None:
    first = {LARGE.id: {'{"scale":3,"size":[4,16,64]}'}}
    assert [o.points for o in chosen(LARGE, recorded=first).observations] == [LARGE.points[:1]]
    assert not chosen(LARGE, recorded={}).observations
    both = {LARGE.id: {*first[LARGE.id], '{"scale":40,"size":[4,16,64]}'}}
    assert chosen(LARGE, recorded=both).observations == (LARGE,)
    assert not chosen(LARGE, recorded=both, memory=10 * GIB).observations


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"small": ""}, "say what it costs and which observation draws the same"),
        ({"cost": None}, "say what it costs and which observation draws the same"),
        ({"tier": Tier.DEFAULT}, "belong to the full tier"),
        ({"cost": lambda _: Cost(0.0, 1.0, 1.0)}, "cost some memory, operations and launches"),
        # its code is that of its form for a CPU
        ({"small": "beyond/none"}, "draw and show what beyond/none does at sizes for a CPU"),
        ({"simulate": cost}, "draw and show what beyond/seen"),
        ({"along": ""}, "draw and show what beyond/seen"),
    ],
)
def test_what_is_for_a_gpu_says_what_it_asks(changes: dict[str, Any], problem: str) -> None:
    known = registry.entries()
    admit_observations([SEEN, LARGE], (), known)
    with refusal(f"beyond/seen-on-a-gpu must {problem}"):
        admit_observations([SEEN, replace(LARGE, **changes)], (), known)


# --- in a run ----------------------------------------------------------------------------------------------------


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CPU that passes for a GPU of 10 GiB: what is drawn is drawn on it all the same."""
    monkeypatch.setattr(request, "resolve_device", lambda name, **_: "cuda" if name == "cuda" else "cpu")
    monkeypatch.setattr(request, "default_workers", lambda *_: 1)
    monkeypatch.setattr(request, "free_memory", lambda *_: 10 * GIB)


def asked(**values: Any) -> Request:
    return requested(values, tier=Tier.DEFAULT, report_dir=None)


@pytest.mark.usefixtures("gpu")
def test_only_a_full_run_on_a_gpu_or_its_name_draws_it(plant: Planter) -> None:
    plant(SEEN, LARGE)
    assert [o.id for o in asked(tier="full", device="cuda").observations] == [SEEN.id, LARGE.id]
    for values in ({"tier": "full"}, {"device": "cuda"}):
        assert asked(**values).observations == (SEEN,)
    assert not asked(device="cuda").for_a_gpu and "it needs a GPU" in asked(tier="full").heading[-1]
    assert "an executor is not known" in asked(tier="full", device="cuda", executor="dask://x").for_a_gpu[0]
    assert [o.id for o in asked(claim=[LARGE.id], device="cuda").observations] == [LARGE.id]
    with refusal(r"on-a-gpu cannot run here: it needs a GPU .* a smaller version is beyond/seen$"):
        asked(claim=[LARGE.id])


def test_a_replay_on_a_cpu_compares_all_but_what_a_gpu_drew(
    plant: Planter, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(toy_claims.EXACT, SEEN, LARGE)
    assert judged("--tier", "full", "--report-dir", "out") == 0
    line = "at sizes for a GPU, not run: beyond/seen-on-a-gpu: it needs a GPU (--device cuda)"
    told, kept = capsys.readouterr(), load(RESULTS)
    assert f"losscurv: {line}" in told.err and line in told.out and kept.suite.host["for_a_gpu"] == [line]

    def recorded(**changes: Any) -> None:
        RESULTS.write_text(dumps(replace(kept, sha256="", **changes)))

    there = replace(kept.observations[0], id=LARGE.id)
    drawn = replace(kept.runs[0], experiment=LARGE.id, parameters=dict(LARGE.points[0]))
    both, runs = [*kept.observations, there], [*kept.runs, drawn]
    recorded(observations=both, runs=runs)
    assert judged("--replay", "out") == 0
    told = capsys.readouterr()
    assert "at sizes for a GPU, not run" in told.err and "replay differs" not in told.out
    assert f"replay: every score and verdict is the same; left out: {LARGE.id}" in told.out
    recorded(rows=[], observations=[there])
    with refusal(r"^no claim is left to judge with --replay: at sizes for a GPU"):
        asked(replay="out")
