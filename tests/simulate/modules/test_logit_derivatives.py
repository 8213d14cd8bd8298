"""Derivatives of the logits of any model, against closed forms, dense automatic differentiation and the operators."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from simulate import networks, operators
from simulate.modules.logit_derivatives import logit_derivatives
from simulate.objectives import Objective

WIDTHS = (5, 7, 6, 4)
CLASSES = WIDTHS[-1]


def perceptron() -> tuple[networks.Mlp, torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(4)
    return networks.Mlp(WIDTHS, rng=rng), *problem(rng)


def problem(rng: np.random.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.from_numpy(rng.standard_normal((6, WIDTHS[0]))), torch.from_numpy(
        rng.integers(0, CLASSES, 6)
    )


def frame_for(model: nn.Module, columns: int) -> torch.Tensor:
    """Neither orthogonal nor of unit length."""
    size = sum(p.numel() for p in model.parameters())
    return torch.from_numpy(np.random.default_rng(5).standard_normal((size, columns)))


def smooth() -> nn.Module:
    rng = np.random.default_rng(2)
    convolution = nn.utils.skip_init(nn.Conv2d, 1, 2, 3, dtype=torch.float64)
    read_out = nn.utils.skip_init(nn.Linear, 8, 3, dtype=torch.float64)
    model = nn.Sequential(convolution, nn.Tanh(), nn.Flatten(), read_out)
    for p in model.parameters():
        p.data.copy_(torch.from_numpy(rng.standard_normal(p.shape)) / 2)
    return model


def test_derivatives_of_a_convolution_are_those_of_dense_differentiation() -> None:
    model, frame = smooth(), frame_for(smooth(), 2)
    x = torch.from_numpy(np.random.default_rng(3).standard_normal((4, 1, 4, 4)))
    theta = nn.utils.parameters_to_vector(model.parameters()).detach()
    names, shapes = zip(*((n, p.shape) for n, p in model.named_parameters()), strict=True)

    def logits(t: torch.Tensor) -> torch.Tensor:
        parts = (theta + frame @ t).split([s.numel() for s in shapes])
        own = {n: part.view(s) for n, part, s in zip(names, parts, shapes, strict=True)}
        return torch.func.functional_call(model, own, (x,))

    at = torch.zeros(2, dtype=torch.float64)
    found = logit_derivatives(model, x, frame)
    torch.testing.assert_close(found.jacobian, torch.func.jacrev(logits)(at))
    torch.testing.assert_close(found.second, torch.func.jacrev(torch.func.jacrev(logits))(at))
    assert found.second.abs().max() > 0.1


def test_both_terms_add_up_to_the_hessian_and_the_gradient_is_that_of_the_loss() -> None:
    model, x, labels = perceptron()
    frame = frame_for(model, 3)
    objective = Objective(model, (x, labels), nn.CrossEntropyLoss())
    found = logit_derivatives(model, x, frame)
    p = found.logits.softmax(-1)
    residuals = p - nn.functional.one_hot(labels, CLASSES)
    mixing = torch.diag_embed(p) - p[:, :, None] * p[:, None]
    hessian = frame.T @ (operators.hessian(objective) @ frame)
    torch.testing.assert_close(
        found.g_term(mixing) + found.h_term(residuals), hessian, rtol=1e-10, atol=1e-10
    )
    torch.testing.assert_close(
        found.g_term(mixing), frame.T @ (operators.gauss_newton(objective) @ frame), rtol=1e-10, atol=1e-10
    )
    torch.testing.assert_close(found.gradient(residuals), frame.T @ objective.gradient())


def test_what_does_not_fit_is_refused() -> None:
    model, x, _ = perceptron()
    for wrong in (frame_for(model, 2)[1:], frame_for(model, 2)[:, :0], frame_for(model, 1)[:, 0]):
        with pytest.raises(ValueError, match=r"frame must be of shape \(101, d\) with d >= 1, got"):
            logit_derivatives(model, x, wrong)
