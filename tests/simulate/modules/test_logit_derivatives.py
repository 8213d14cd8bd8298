"""Derivatives of the logits of any model, against dense automatic differentiation and the operators."""

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from simulate import operators
from simulate.modules.logit_derivatives import logit_derivatives
from tests.simulate.modules.layer_kinds import objective_of
from tests.simulate.modules.test_laws import columns


def test_derivatives_are_dense_ones_and_both_terms_add_up_to_the_hessian_of_the_loss() -> None:
    objective = objective_of("convolutions")
    ((x, labels),), frame = objective.data, columns(objective.dim, 3)
    x = x.double()
    theta = objective.flat(objective.leaves).detach()

    def logits(t: Tensor) -> Tensor:
        return objective.outputs(objective.split(theta + frame @ t), x)

    at, found = torch.zeros(3, dtype=torch.float64), logit_derivatives(objective.model, x, frame)
    assert_close(found.logits, logits(at).detach())
    assert_close(found.jacobian, torch.func.jacrev(logits)(at))
    assert_close(found.second, torch.func.jacrev(torch.func.jacrev(logits))(at))
    assert found.second.abs().max() > 0.1

    p = found.logits.softmax(-1)
    residuals = p - nn.functional.one_hot(labels, 3)
    mixing = torch.diag_embed(p) - p[:, :, None] * p[:, None]
    for term, matrix in (
        (found.g_term(mixing) + found.h_term(residuals), operators.hessian),
        (found.g_term(mixing), operators.gauss_newton),
    ):
        assert_close(term, frame.T @ (matrix(objective) @ frame), rtol=1e-10, atol=1e-10)
    assert_close(found.gradient(residuals), frame.T @ objective.gradient())


def test_what_does_not_fit_is_refused() -> None:
    model, x = nn.Linear(2, 3).double(), torch.ones(4, 2).double()
    for wrong in (columns(8, 2), columns(9, 2)[:, :0], columns(9, 1)[:, 0]):
        with pytest.raises(ValueError, match=r"frame must be of shape \(9, d\) with d >= 1, got"):
            logit_derivatives(model, x, wrong)
