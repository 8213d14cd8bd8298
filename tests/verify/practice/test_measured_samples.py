"""Measurements of models whose samples meet, and of layers of width 0."""

from __future__ import annotations

import pytest
import torch

from simulate.objectives import Objective
from simulate.operators import hessian
from tests.simulate.modules.test_mixed_samples import LOSS, MIXED, OUTPUTS, built, curvature
from tests.simulate.modules.test_width_zero import X, Y, beside
from verify.practice.measure import measure


@pytest.mark.parametrize("name", ["experts with a capacity", "mean subtracted from four samples on"])
def test_a_measured_trace_of_samples_that_meet_is_not_called_exact(name: str) -> None:
    _, model, x = built(name)
    found = measure(model, (x, torch.arange(len(x)) % OUTPUTS), LOSS, top=1)
    assert found.coupling == MIXED and found.noise is None
    trace = found.gauss_newton.trace
    assert abs(trace.value - float(curvature(model, x).trace())) <= max(4 * trace.error, 1e-9)


def test_layers_of_width_0_are_measured() -> None:
    objective = Objective(beside(), (X, Y), LOSS)
    found = measure(objective, top=2, layers=True)
    assert abs(found.hessian.trace.value - float(hessian(objective).dense().trace())) < 1e-9
    assert [layer.name for layer in found.layers] == ["net.0", "net.2", "none", "nowhere"]
