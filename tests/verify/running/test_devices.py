"""Replicates are equal on every device; sources of their random numbers."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from simulate.monte_carlo import Block, Point, SerialExecutor, run_block
from tests.verify.running.engine_runs import claim, experiment, session
from verify.claims import registry
from verify.model import Claim, StatisticalProperty, Tier
from verify.running import suite
from verify.running.engine import Session
from verify.running.replays import CLOSE
from verify.running.request import requested
from verify.running.settings import COUNTED, STREAMS, Settings
from verify.running.store import Store

EXPERIMENTS = {}
for each in registry.claims():
    if isinstance(each, Claim):
        EXPERIMENTS[each.experiment.id] = each.experiment
    elif isinstance(each, StatisticalProperty):
        EXPERIMENTS[each.id] = each.claim_at(each.examples[0]).experiment


@pytest.mark.cuda
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_scores_do_not_depend_on_the_device(name: str) -> None:
    """Draws are counted on both, so that a device changes rounding and nothing else."""
    experiment = EXPERIMENTS[name]
    point = experiment.points[0]

    here, there = (
        run_block(
            experiment.simulate, experiment=name, point=point, seed=7, index=0, device=device, counted=True
        ).scores
        for device in ("cpu", "cuda")
    )

    assert here.keys() == there.keys()
    for score in here:
        # indicators and shares of a grid may flip where rounding decides; all others agree as a replay asks
        left = experiment.rounding.get(score, CLOSE)
        if left < np.inf:
            rtol = 0.2 if score.endswith("share") else 1e-3 if experiment.single else left
            assert_allclose(np.asarray(there[score]), here[score], rtol=rtol, err_msg=score)


def normals(block: Block, point: Point) -> dict[str, Any]:
    return {"mean": point.shape + block.normal(60).mean(1)}


NORMAL = claim(experiment=experiment(normals, "normals"))


def hashes(settings: Settings, store: Store | None = None) -> list[str]:
    made = Session((NORMAL,), settings, SerialExecutor(), store=store)
    made.judge_all()
    return [record.sha256 for record in made.records()]


def test_draws_are_those_of_the_device_unless_asked_for() -> None:
    for device, usual in (("cpu", STREAMS), ("cuda", COUNTED)):
        for asked in ("", STREAMS, COUNTED):
            settings = Settings(device=device, draws=asked)
            assert settings.drawn_by == (asked or usual)
            assert settings.draws == asked * (asked != usual)


def test_a_run_draws_as_it_is_asked_to_and_files_it_so(tmp_path: Path) -> None:
    streams, counted = Settings(seed=7), Settings(seed=7, draws=COUNTED)
    found = {settings: hashes(settings) for settings in (streams, counted)}
    assert set(found[streams]).isdisjoint(found[counted])
    for settings in (streams, counted, streams):  # what one has left is not taken for the other
        with Store(tmp_path, print) as store:
            assert hashes(settings, store) == found[settings]


def test_a_results_file_says_how_a_run_drew_and_what_did_not_reach_its_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(suite, "PLANTED", ())
    asked = requested({"claim": ["granziol2022/several-spikes"]}, tier=Tier.SMOKE, report_dir=None)
    request = dataclasses.replace(asked, settings=Settings(device="cuda"))
    made = suite.collect(session(settings=request.settings), request, paged=False).suite
    assert made.draws == COUNTED
    elsewhere = {"granziol2022/several-spikes": "eigenvalues of banded matrices, by LAPACK"}
    assert made.host["beside_the_device"] == elsewhere
