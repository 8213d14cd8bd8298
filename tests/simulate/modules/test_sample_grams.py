"""Gauss-Newton matrices of single samples and exact traces: curvature of any sign, and what is refused."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from simulate.modules.hessian_variance import quadratic_forms
from simulate.modules.sample_grams import trace_gauss_newton, trace_hessian
from simulate.objectives import Objective
from tests.refusals import refusal
from tests.simulate.models_and_data import N, case
from tests.simulate.modules.layer_kinds import Gated
from tests.simulate.modules.test_laws import LAWS, assert_laws, dense, spectra

DRAWN = torch.Generator().manual_seed(0)
X, Y = (torch.randn(N, 4, generator=DRAWN, dtype=torch.float64) for _ in range(2))
SQUARES = nn.MSELoss()


def of_function(
    function: Any, parameters: Sequence[Tensor], loss: Any = SQUARES, outputs: Any = Y
) -> Objective:
    return Objective(function, [(X, outputs)], loss, parameters=parameters)


@pytest.mark.parametrize(
    "loss",
    [
        lambda outputs, targets: (outputs * targets).sin().mean(),  # of both signs
        lambda outputs, targets: -(outputs.square().sum(1) ** 2).mean(),  # concave, and couples the outputs
    ],
)
@pytest.mark.parametrize("size", [1, 2, 30])
def test_curvature_of_any_sign_is_kept(loss: Any, size: int) -> None:
    weight = torch.randn(4, size, generator=torch.Generator().manual_seed(size), dtype=torch.float64)
    mix = torch.randn(size, 4, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)

    def outputs(p: Sequence[Tensor], x: Tensor) -> Tensor:  # more outputs than parameters, or fewer
        return x @ torch.einsum("s,sij->ij", p[0].tanh(), mix) + x

    objective = of_function(outputs, [weight[0]], loss)
    expected = dense(objective)
    assert (spectra(expected)[0] < 0).any()
    assert_laws(objective, expected, {"trace of G": LAWS["trace of G"]})


@pytest.mark.parametrize("name", ["cross-entropy", "tied", "transformer", "inputs by name"])
def test_trace_of_the_hessian_is_refused_where_a_tensor_bends_the_outputs(name: str) -> None:
    with refusal(r"piecewise linear in every parameter tensor.*got curvature in '.*spectra"):
        trace_hessian(case(name).objective())


def test_a_bend_that_one_sample_alone_sees_is_refused() -> None:
    model = Gated(float(X[-1, 0])).double()
    trace_hessian(Objective(model, [(X[:-1], Y[:-1])], SQUARES))
    with refusal(r"got curvature in 'second.weight'"):
        trace_hessian(Objective(model, [(X, Y)], SQUARES))


@pytest.mark.parametrize(
    "coupled",
    [
        lambda z: z.sum(0),
        lambda z: z[:2].prod(0),
        lambda z: z[1] * z[5],
        lambda z: 1e-5 * z[7] * z[8],
        lambda z: z.std(),
    ],
)
def test_a_loss_that_couples_samples_is_refused(coupled: Any) -> None:
    model = nn.Linear(4, 4).double()
    objective = Objective(model, [(X, Y)], lambda z, _: (z**2).mean() + (coupled(z) ** 2).mean())
    with refusal("got one that couples samples; use an estimate"):
        trace_gauss_newton(objective)


@pytest.mark.parametrize("scale", [1e2, 1e8])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_saturation_is_no_coupling(scale: float, dtype: torch.dtype) -> None:
    """The curvature of a saturated softmax is rounding, of each sample by itself."""
    weights = scale * torch.eye(4, dtype=dtype)
    objective = Objective(
        lambda p, x: x @ p[0], [(X, Y.argmax(1))], nn.CrossEntropyLoss(), parameters=[weights]
    )
    assert np.isfinite(trace_gauss_newton(objective))
    assert quadratic_forms(objective, torch.ones(16, 1)).shape == (N, 1)


def test_derivatives_that_are_not_finite_are_refused() -> None:
    root = of_function(lambda p, x: x * p[0].sqrt(), [torch.zeros(1).double()])
    bend = of_function(lambda p, x: x * p[0], [torch.zeros(1).double()], lambda z, _: (z.abs() ** 1.5).mean())
    for objective in (root, bend):
        with refusal("objective must have finite derivatives, got NaN or infinity"):
            trace_gauss_newton(objective)
