"""The loss of a model on data: what counts, what is refused, and that nothing of the user's is changed."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from simulate.objectives import Objective
from simulate.operators import hessian
from tests.simulate.models_and_data import N, case

X = torch.randn(N, 4, generator=torch.Generator().manual_seed(0))
Y = torch.arange(N) % 3
LOSS = nn.CrossEntropyLoss()


def perceptron() -> nn.Module:
    return case("cross-entropy").model.float()


def test_samples_are_what_the_mean_is_over() -> None:
    known = {"class probabilities": N, "cross-entropy": N, "ignored class": 4, "transformer": 3 * N}
    assert {name: case(name).objective().samples for name in known} == known


def test_a_loss_function_without_attribute_is_a_mean_unless_said() -> None:
    def summed(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(outputs, targets, reduction="sum")

    model = perceptron()
    batches = [(X[:4], Y[:4]), (X[4:], Y[4:])]
    expected = nn.functional.cross_entropy(model(X), Y, reduction="sum").item()
    assert abs(Objective(model, batches, summed, reduction="sum").value() - expected) < 1e-5


def test_gradients_are_taken_where_the_user_records_none() -> None:
    objective = Objective(perceptron(), (X, Y), LOSS)
    gradient, product = objective.gradient(), hessian(objective) @ torch.ones(objective.dim)
    with torch.no_grad():
        assert torch.equal(objective.gradient(), gradient)
        assert torch.equal(hessian(objective) @ torch.ones(objective.dim), product)


def test_renewed_is_at_the_parameters_of_now_and_the_old_one_is_not() -> None:
    model = perceptron()
    objective = Objective(model, [(X, Y)], LOSS)
    before = objective.gradient()
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(1.5)
    renewed, built = objective.renewed(), Objective(model, [(X, Y)], LOSS)
    assert torch.equal(renewed.gradient(), built.gradient()) and renewed.value() == built.value()
    assert torch.equal(objective.gradient(), before) and not torch.equal(renewed.gradient(), before)
    with pytest.raises(ValueError, match="model must be a module to be measured anew, got a function"):
        Objective(lambda p, x: x @ p[0], [(X, Y)], LOSS, parameters=[torch.ones(4, 3)]).renewed()


def bad(**changed: Any) -> dict[str, Any]:
    return {"model": perceptron(), "loss": LOSS, "data": (X, Y)} | changed


def not_finite() -> nn.Module:
    model = perceptron()
    model.get_parameter("0.bias").data[1] = float("nan")
    return model


def half_and_double() -> nn.Module:
    model = perceptron()
    model.get_submodule("2").double()
    return model


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (bad(model=3), "model must come first, got int: call Objective"),
        (bad(model=nn.ReLU()), "model must have a parameter that requires a gradient"),
        (bad(model=lambda p, x: x), "parameters of a function must be a sequence of tensors"),
        (bad(model=not_finite()), "parameters must be finite, got NaN or infinity in '0.bias'"),
        (bad(model=half_and_double()), "parameters must be all float32 or all float64"),
        (
            bad(parameters="head"),
            "parameters must name parameters or submodules of the model, such as 0.weight",
        ),
        (bad(reduction="none"), "reduction must be one of mean, sum, got 'none'"),
        (bad(loss=nn.CrossEntropyLoss(reduction="none")), "reduction must be one of mean, sum"),
        (bad(chunk=0), "chunk must be a positive integer"),
        (bad(data=3), "data must be batches"),
        (bad(chunk=2, training=True), "chunk must be None in training mode"),
    ],
)
def test_what_cannot_be_measured_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Objective(**arguments)


class Pair(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.line = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> Any:
        return self.line(x), x


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (bad(loss=lambda z, y: z.sum(1)), r"loss must be one number for a batch, got \(\d,\)"),
        (bad(loss=lambda z, y: 1.0), "loss must be one number for a batch, got float"),
        (bad(loss=lambda z, y: z.sum() * float("inf")), "loss must be finite"),
        (bad(model=Pair()), "model must return one tensor, .* got tuple of 0, 1; say which by field"),
    ],
)
def test_what_shows_on_the_way_is_refused(arguments: dict[str, Any], message: str) -> None:
    objective = Objective(**arguments)
    for measured in (
        objective.value,
        objective.gradient,
        lambda: hessian(objective) @ torch.ones(objective.dim),
    ):
        with pytest.raises(ValueError, match=message):
            measured()
