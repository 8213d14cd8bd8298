"""Losses and data of every kind beside finite differences: whatever the batches, the right value or a clear error."""

from typing import Any

import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor

from simulate.objectives import Objective
from simulate.objectives.batches import window
from simulate.operators import gauss_newton, hessian
from tests.simulate.objectives.losses import ADDITIVE, COUPLED, LABELS, ONCE, TARGETS, Case, X
from tests.simulate.objectives.sweep.differences import Differences

SEVERAL = {"ragged": ((9, 2, 12), None), "ragged and cut to single ones": ((19, 3, 1), 6)}
"""Sizes of batches, and most samples of a pass."""


def cut(targets: Any, sizes: tuple[int, ...]) -> list[tuple[Any, Any]]:
    places = torch.arange(sum(sizes)).split(sizes)
    return [(window(X, place), window(targets, place)) for place in places]


def measured(objective: Objective) -> list[Tensor]:
    """Value, gradient, and products of both matrices with one vector."""
    vector = torch.linspace(-1, 1, objective.dim, dtype=torch.float64).tan()
    products = [matrix(objective) @ vector for matrix in (hessian, gauss_newton)]
    return [torch.tensor(objective.value(), dtype=torch.float64), objective.gradient(), *products, vector]


def of_one_batch(case: Case, chunk: int | None = None) -> Objective:
    return Objective(case.model().eval(), [(X, TARGETS[case.targets])], case.loss, chunk=chunk)


def beside_differences(case: Case) -> list[Tensor]:
    found = measured(of_one_batch(case))
    value, gradient, product, outer, v = found
    model = case.model().eval()
    truth = Differences(model, X, case.loss, [*model.parameters()])
    truth.targets = TARGETS[case.targets]
    scale = float(gradient.norm() * v.norm())
    bound = 1e-5 * float(product.norm() * v.norm()) + 1e-6 * scale
    assert_allclose(value, truth.loss_at(0 * v), rtol=1e-12)
    assert_allclose(gradient @ v, truth.slope(v), rtol=1e-6, atol=1e-6 * scale)
    assert_allclose(product @ v, truth.bend(v), rtol=1e-5, atol=bound)
    assert_allclose(outer @ v, truth.outer(truth.tangent(v)), rtol=1e-5, atol=bound)
    return found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides")
@pytest.mark.parametrize("name", ADDITIVE)
def test_means_and_sums_are_the_same_in_all_batches(name: str) -> None:
    case = ADDITIVE[name]
    known = beside_differences(case)
    sizes, chunk = SEVERAL["ragged and cut to single ones"]
    objective = Objective(case.model(), cut(TARGETS[case.targets], sizes), case.loss, chunk=chunk)
    assert objective.separable and objective.chunk == chunk, objective.coupling
    for one, other in zip(measured(objective), known, strict=True):
        assert_allclose(one, other, rtol=1e-12, atol=1e-12 * float(other.abs().max()))


def test_losses_of_torch_without_second_derivatives_say_so() -> None:
    objective = of_one_batch(ONCE, chunk=7)
    assert_allclose(objective.value(), ONCE.loss(ONCE.model()(X), LABELS).item(), rtol=1e-12)
    with pytest.raises(ValueError, match=r"must have second derivatives, got .* is not implemented"):
        hessian(objective).dense()


@pytest.mark.filterwarnings("ignore:Using a target size")  # what torch says of it is not the question
@pytest.mark.parametrize("name", COUPLED)
def test_what_is_no_mean_is_taken_whole_or_refused(name: str) -> None:
    case = COUPLED[name]
    known, objective = beside_differences(case), of_one_batch(case, chunk=7)
    assert not objective.separable and objective.chunk is None
    for one, other in zip(measured(objective), known, strict=True):
        assert_allclose(one, other, rtol=1e-12)
    for sizes, chunk in SEVERAL.values():
        objective = Objective(case.model(), cut(TARGETS[case.targets], sizes), case.loss, chunk=chunk)
        for ask in (objective.value, objective.gradient, hessian(objective).dense):
            with pytest.raises((ValueError, RuntimeError), match=r"each for itself|must match the size"):
                ask()
