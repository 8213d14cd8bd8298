"""Measurements of models whose samples meet, and of layers of width 0."""

import pytest

from simulate.operators import gauss_newton, hessian
from tests.simulate.modules.layer_kinds import objective_of
from verify.practice.measure import measure


@pytest.mark.parametrize("name", ["experts with a capacity", "mean subtracted from four samples on"])
def test_a_measured_trace_of_samples_that_meet_is_not_called_exact(name: str) -> None:
    objective = objective_of(name)
    found = measure(objective.model, objective.data[0], objective.criterion, top=1)
    assert found.coupling == objective.mixing and found.noise is None
    trace = found.gauss_newton.trace
    assert abs(trace.value - float(gauss_newton(objective).dense().trace())) <= max(4 * trace.error, 1e-9)


def test_layers_of_width_0_are_measured() -> None:
    objective = objective_of("beside layers of width 0")
    found = measure(objective, top=2, layers=True, budget=600)
    assert abs(found.hessian.trace.value - float(hessian(objective).dense().trace())) < 1e-9
    assert [layer.name for layer in found.layers] == ["net.0", "net.2", "none", "nowhere"]
