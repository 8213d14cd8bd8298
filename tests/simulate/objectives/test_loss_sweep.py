"""Losses and data of every kind beside finite differences: whatever the batches, the right value or a clear error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn

from simulate.objectives import Objective
from simulate.objectives.batches import window
from simulate.operators import gauss_newton, hessian
from tests.simulate.objectives.losses import ADDITIVE, COUPLED, MIXING, ONCE, TARGETS, Case, X, network

SPREAD = pytest.mark.filterwarnings("ignore:Using a target size")  # what torch says of it is not the question


class Reference:
    """The loss of all data at once, by torch alone, and its derivatives along one vector by differences."""

    def __init__(self, model: nn.Module, loss: Any, targets: Any) -> None:
        self.model, self.loss, self.targets = model.eval(), loss, targets
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.start = nn.utils.parameters_to_vector(self.parameters).detach()
        generator = torch.Generator().manual_seed(1)
        self.vector = torch.randn(len(self.start), generator=generator, dtype=torch.float64)
        self.value, self.gradient = self.at(0.0)
        self.step = 1e-5
        (above, up), (below, down) = self.at(self.step), self.at(-self.step)
        self.slope = (above - below) / (2 * self.step)
        self.product = (up - down) / (2 * self.step)
        self.bend = self._bend()

    def at(self, step: float) -> tuple[float, Tensor]:
        self._set(step)
        loss = self.loss(self.model(X), self.targets)
        gradient = torch.autograd.grad(loss, self.parameters, allow_unused=True, materialize_grads=True)
        self._set(0.0)
        return loss.item(), nn.utils.parameters_to_vector(gradient)

    def _bend(self) -> float:
        """v' G v: how the loss bends along the change that the outputs make."""
        outputs = []
        for step in (-self.step, 0.0, self.step):
            self._set(step)
            outputs.append(self.model(X).detach())
        self._set(0.0)
        tangent = (outputs[2] - outputs[0]) / (2 * self.step)
        slopes = []
        for sign in (1, -1):
            free = (outputs[1] + sign * self.step * tangent).requires_grad_()
            loss = self.loss(free, self.targets)
            slopes.append(torch.autograd.grad(loss, free)[0] if loss.requires_grad else 0 * free)
        return float(((slopes[0] - slopes[1]) * tangent).sum() / (2 * self.step))

    def _set(self, step: float) -> None:
        with torch.no_grad():
            nn.utils.vector_to_parameters(self.start + step * self.vector, self.parameters)

    def agrees(self, objective: Objective) -> None:
        """Value, gradient and both products of an objective."""
        scale = float(self.gradient.abs().max())
        bound = 1e-6 * max(float(self.product.abs().max()), scale)
        assert_allclose(objective.value(), self.value, rtol=1e-12, atol=1e-14 * scale)
        found = objective.gradient()
        assert_allclose(found, self.gradient, atol=1e-12 * scale)
        assert_allclose(float(found @ self.vector), self.slope, rtol=1e-6, atol=1e-6 * scale)
        assert_allclose(hessian(objective) @ self.vector, self.product, atol=bound)
        assert_allclose(
            float((gauss_newton(objective) @ self.vector) @ self.vector), self.bend, rtol=1e-5, atol=bound
        )


def _cut(targets: Any, sizes: list[int]) -> list[tuple[Any, Any]]:
    ends = torch.tensor(sizes).cumsum(0).tolist()
    parts = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    return [(window(X, part), window(targets, part)) for part in parts]


BATCHES: dict[str, Callable[[Any], tuple[Any, int | None]]] = {
    "one": lambda y: ([(X, y)], None),
    "cut by seven": lambda y: ([(X, y)], 7),
    "ragged": lambda y: (_cut(y, [9, 2, 12]), None),
    "ragged and cut to single ones": lambda y: (_cut(y, [19, 3, 1]), 6),
}
SEVERAL = ("ragged", "ragged and cut to single ones")


@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides")
@pytest.mark.parametrize("name", ADDITIVE)
def test_means_and_sums_are_the_same_in_all_batches(name: str) -> None:
    found = ADDITIVE[name]
    model, targets = network(found.sequences), TARGETS[found.targets]
    known = Reference(model, found.loss, targets)
    for batches in BATCHES.values():
        data, chunk = batches(targets)
        objective = Objective(model, data, found.loss, chunk=chunk)
        assert objective.separable and objective.chunk == chunk, objective.coupling
        known.agrees(objective)


@pytest.mark.parametrize("name", ONCE)
def test_losses_of_torch_without_second_derivatives_say_so(name: str) -> None:
    model, targets = network(), TARGETS[ONCE[name].targets]
    values = []
    for batches in BATCHES.values():
        data, chunk = batches(targets)
        objective = Objective(model, data, ONCE[name].loss, chunk=chunk)
        values.append(objective.value())
        with pytest.raises(ValueError, match=r"must have second derivatives, got .* is not implemented"):
            hessian(objective).dense()
    assert_allclose(values, ONCE[name].loss(model(X), targets).item(), rtol=1e-12)


def _assert_whole_or_refused(model: nn.Module, case: Case) -> None:
    targets = TARGETS[case.targets]
    known = Reference(model, case.loss, targets)
    for name, batches in BATCHES.items():
        data, chunk = batches(targets)
        objective = Objective(model, data, case.loss, chunk=chunk)
        if name not in SEVERAL:
            known.agrees(objective)
            assert not objective.separable and objective.chunk is None
            continue
        for measured in (objective.value, objective.gradient, hessian(objective).dense):
            with pytest.raises((ValueError, RuntimeError), match=r"each for itself|must match the size"):
                measured()


@SPREAD
@pytest.mark.parametrize("name", COUPLED)
def test_what_is_no_mean_is_taken_whole_or_refused(name: str) -> None:
    _assert_whole_or_refused(network(COUPLED[name].sequences), COUPLED[name])


@pytest.mark.parametrize("name", MIXING)
def test_samples_that_see_each_other_are_taken_whole_or_refused(name: str) -> None:
    _assert_whole_or_refused(MIXING[name](), ADDITIVE["cross-entropy"])
