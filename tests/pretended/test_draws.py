"""Draws on the device are those of a CPU that is asked to draw alike."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from benchmarks.pretend import NAME, POSSIBLE, pretended
from simulate.monte_carlo import Point, run_block
from tests.simulate.monte_carlo.test_counted_draws import _means

ASKED = {"experiment": "a", "point": Point(dim=5), "seed": 3}


@pytest.mark.skipif(not POSSIBLE, reason="this torch has no devices made in Python")
def test_a_block_of_a_device_draws_there_what_a_cpu_draws_when_asked_to() -> None:
    here = run_block(_means, **ASKED, index=0, counted=True).scores
    with pretended() as counts:
        there = run_block(_means, **ASKED, index=0, device=NAME).scores
    for name, values in here.items():
        assert_allclose(there[name], values, rtol=1e-14)
    assert counts.sent == 2 * 8 * (16 * 2 + 4)  # at each of two draws the keys and four constants
    assert not np.isin(run_block(_means, **ASKED, index=0).scores["first"], here["first"]).any()
