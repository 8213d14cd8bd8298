"""The same replicates on every device."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from simulate.monte_carlo import run_block
from verify.claims import registry
from verify.model import Claim, Experiment, StatisticalProperty

EXPERIMENTS: dict[str, Experiment] = {}
for claim in registry.claims():
    if isinstance(claim, Claim):
        EXPERIMENTS[claim.experiment.id] = claim.experiment
    elif isinstance(claim, StatisticalProperty):
        EXPERIMENTS[claim.id] = claim.claim_at(claim.examples[0]).experiment


@pytest.mark.cuda
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_scores_do_not_depend_on_the_device(name: str) -> None:
    """Draws are made on the CPU, so that a device changes rounding and nothing else."""
    experiment = EXPERIMENTS[name]
    point = experiment.points[0]

    here, there = (
        run_block(experiment.simulate, experiment=name, point=point, seed=7, index=0, device=device).scores
        for device in ("cpu", "cuda")
    )

    assert here.keys() == there.keys()
    for score in here:
        # indicators and shares of a grid may flip where rounding decides; all others agree to rounding
        rtol = 0.2 if score.endswith("share") else 1e-8
        assert_allclose(np.asarray(there[score]), here[score], rtol=rtol, err_msg=score)
