"""Observations at the smallest of sizes: every column has a number for each row, or one for all."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from simulate import networks
from simulate.monte_carlo import Block, fixture
from verify.claims import registry
from verify.claims.granziol2022.training import through_training
from verify.model.observation import Observation

FRAMED = {"samples": 8, "dim": 4}
BATCHES = {"samples": 16, "steps": 2, "batch_size": (1, 4), "batches": 3, "passes": 5}
CONVOLUTION = {
    "stages": ((2,),),
    "head": (3,),
    "samples": 129,
    "training_batch": 128,
    "epochs": 1,
    "probes": 2,
}

SMALLER = {
    "vysogorets2024/excess-by-scale": {**FRAMED, "alpha": (0.5, 1.0)},
    "vysogorets2024/agreement-by-network": FRAMED | {"network_number": (1, 2)},
    "granziol2022/real-batches": BATCHES,
    "granziol2022/large-batches": BATCHES | {"hidden": (3,)},
    "beyond/wide-network-batches": BATCHES,
    "edge/full-batch-path": {"samples": 8, "steps": 4, "looks": (1, 4)},
    "granziol2022/outliers-of-classes": {"samples": 40, "hidden": 3, "steps": 2, "distance": (0.5, 2.0)},
    "beyond/stable-rates-of-networks": {"samples": 6, "steps": 2, "batch_size": (1, 3)},
    "granziol2022/lenet-through-training": CONVOLUTION | {"done": (0.0, 1.0)},
}  # fmt: skip

PATCHED = (
    (networks, "LENET_300_100", (784, 9, 7, 10)),
    (through_training, "BATCHES", 2),
    (through_training, "DIRECTIONS", 2),
    (through_training, "TOLERANCE", 3.0),
)

LISTED = [pytest.param(o, id=o.id) for o in registry.observations() if o.id in SMALLER]


@pytest.mark.slow
@pytest.mark.parametrize("observation", LISTED)
def test_every_column_has_a_number_for_each_row_or_one_for_all(
    observation: Observation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the first point, and at the last, where a replicate has the same beside another one."""
    for place in PATCHED:
        monkeypatch.setattr(*place)
    first, last = (observation.points[k] | SMALLER[observation.id] for k in (0, -1))
    most = 1 if observation is through_training.LENET else 2  # rows and networks, where each takes long
    first |= {observation.along: first[observation.along][:most]}
    one, more, own = (Block(tuple(fixture(i, "network") for i in range(count))) for count in (1, most, 1))
    shown = [(observation.simulate(one, first), 1, first), (observation.simulate(more, last), most, last)]
    alone = observation.simulate(own, last) if most > 1 else shown[1][0]
    for column in observation.columns:
        for found, count, at in shown:
            values = np.asarray(found[column.score])
            assert values.shape in ((count,), (count, len(at[observation.along])))
            assert np.isfinite(values).all()
        assert_allclose(alone[column.score][0], shown[1][0][column.score][0], rtol=1e-9)


def test_all_of_them_are_there() -> None:
    assert len(LISTED) == len(SMALLER)
