"""Curvature along a frame: against automatic differentiation of the loss along it, and one route against the other."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from simulate.modules import projected, sites
from simulate.modules.projected import projected_terms
from simulate.objectives import Objective
from simulate.objectives.restoring import as_found
from simulate.operators import gauss_newton
from simulate.perceptrons.curvature import Terms
from tests.simulate.models_and_data import BUILDERS, case, whole_loss
from tests.simulate.modules.layer_kinds import LAYERS, SAMPLES, centred, layered


def frame(objective: Objective, columns: int = 4) -> Tensor:
    draws = torch.Generator().manual_seed(3)
    return torch.randn(objective.dim, columns, dtype=torch.float64, generator=draws)


def assert_terms(found: Terms, g_term: Tensor, hessian: Tensor) -> None:
    scale = float(hessian.abs().max() + g_term.abs().max())
    for one, other in ((found.g_term, g_term), (found.hessian, hessian)):
        assert float((one - other).abs().max()) < 1e-10 * scale


def assert_differentiated(found: Terms, objective: Objective, along: Tensor) -> None:
    """Second derivative of the loss in t at theta + R t, by autograd alone, and products of a tested matrix."""
    with as_found(objective.model, objective.training):
        vector, loss = objective.flat(objective.leaves()).detach(), whole_loss(objective)
        origin = torch.zeros(along.shape[1], dtype=torch.float64)
        hessian: Any = torch.autograd.functional.hessian(lambda t: loss(vector + along @ t), origin)
    assert_terms(found, along.T @ (gauss_newton(objective) @ along), hessian)


@pytest.mark.parametrize("name", sorted(BUILDERS))
def test_terms_are_second_derivatives_along_the_frame(name: str) -> None:
    objective = case(name).objective()
    assert_differentiated(projected_terms(objective, frame(objective)), objective, frame(objective))


@pytest.mark.parametrize("columns", [2, 4])
@pytest.mark.parametrize("name", sorted(LAYERS))
def test_every_kind_of_layer_has_its_second_derivative(name: str, columns: int) -> None:
    """With fewer columns than outputs the tangents come by the other way."""
    objective = layered(name)
    assert sites.covers(objective)
    assert sites.by_sample(objective)
    assert_differentiated(
        projected_terms(objective, frame(objective, columns)), objective, frame(objective, columns)
    )


@pytest.mark.parametrize("name", ["tokens", "convolutions"])
def test_cutting_into_single_samples_changes_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    objective, sizes, tangents = layered(name), [], projected._tangents
    monkeypatch.setattr(projected, "_BYTES", 1)
    monkeypatch.setattr(projected, "_tangents", lambda p, c: sizes.append(p.size) or tangents(p, c))
    assert_differentiated(projected_terms(objective, frame(objective)), objective, frame(objective))
    assert sizes == SAMPLES * [1]


def test_a_loss_of_straight_pieces_has_no_gauss_newton_matrix() -> None:
    found = case("squared error")
    objective = found._replace(loss=lambda z, y: (z * y).mean()).objective()
    terms = projected_terms(objective, frame(objective))
    assert not terms.g_term.any()
    assert_differentiated(terms, objective, frame(objective))


def test_samples_that_see_each_other_are_measured_by_products() -> None:
    objective = centred()
    assert not sites.by_sample(objective)
    assert_differentiated(projected_terms(objective, frame(objective)), objective, frame(objective))


@pytest.mark.parametrize(
    ("along", "message"),
    [
        (torch.zeros(3, 2), r"frame must be of shape \(10, k\) with k >= 1, got \(3, 2\)"),
        (torch.zeros(10, 0), r"got \(10, 0\)"),
        (torch.zeros(10, 2, dtype=torch.complex128), "frame must be real, got torch.complex128"),
        (torch.full((10, 2), torch.nan), "frame must be finite"),
    ],
)
def test_a_frame_that_is_none_is_refused(along: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        projected_terms(case("linear").objective(), along)
