"""The loss of a model on data: what counts, at which parameters, and in which precision."""

from typing import Any

import pytest
import torch
from torch import nn

from simulate.objectives import Objective
from simulate.operators import empirical_fisher, gauss_newton, h_term, hessian
from tests.simulate.models_and_data import N, case
from tests.simulate.objectives.language import CausalModel, batch
from tests.simulate.objectives.losses import LABELS, X, network

LOSS = nn.CrossEntropyLoss()


def test_samples_are_what_the_mean_is_over() -> None:
    known = {"class probabilities": N, "cross-entropy": N, "ignored class": 4, "transformer": 3 * N}
    assert {name: case(name).objective().samples for name in known} == known


def test_gradients_are_taken_where_the_user_records_none() -> None:
    objective = Objective(network(), (X, LABELS), LOSS)
    gradient, product = objective.gradient(), hessian(objective) @ torch.ones(objective.dim).double()
    with torch.no_grad():
        assert torch.equal(objective.gradient(), gradient)
        assert torch.equal(hessian(objective) @ torch.ones(objective.dim).double(), product)


def test_renewed_is_at_the_parameters_of_now_and_the_old_one_is_not() -> None:
    model = network()
    objective = Objective(model, (X, LABELS), LOSS)
    before = objective.gradient()
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(1.5)
    renewed, built = objective.at_current_parameters(), Objective(model, (X, LABELS), LOSS)
    assert torch.equal(renewed.gradient(), built.gradient()) and renewed.value() == built.value()
    assert torch.equal(objective.gradient(), before) and not torch.equal(renewed.gradient(), before)
    function = Objective(lambda p, x: x @ p[0], (X, LABELS), LOSS, parameters=[torch.ones(4, 3).double()])
    with pytest.raises(
        ValueError, match="model must be a module to take its current parameters, got a function"
    ):
        function.at_current_parameters()


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(("build", "data"), [(network, (X.float(), LABELS)), (CausalModel, batch())])
def test_half_precision_is_measured_in_single_precision(build: Any, data: Any, kind: torch.dtype) -> None:
    """The numbers are those of the same values in float32, to the last bit."""
    half, single = build().to(kind), build().float()
    before = {name: value.clone() for name, value in half.state_dict().items()}
    single.load_state_dict({name: value.float() for name, value in before.items()})
    found, expected = (Objective(model, data, LOSS) for model in (half, single))
    vector = torch.linspace(-1, 1, expected.dim)

    assert found.dtype == torch.float32 and found.names == expected.names
    assert found.value() == expected.value()
    for matrix in (hessian, gauss_newton, h_term, empirical_fisher):
        assert torch.equal(matrix(found) @ vector, matrix(expected) @ vector)
    assert all(torch.equal(half.state_dict()[name], value) for name, value in before.items())
    assert {p.dtype for p in half.parameters()} == {kind}
