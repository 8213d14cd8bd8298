"""Activations and their derivatives: against numpy and scipy, torch's own functions and autograd."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy import special

from simulate.activations import ACTIVATIONS
from theory import activations

REFERENCES = {
    "relu": lambda x: np.maximum(x, 0),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "linear": lambda x: x,
    "tanh": np.tanh,
    "erf": special.erf,
    "sigmoid": special.expit,
    "softplus": lambda x: np.logaddexp(0, x),
    "gelu": lambda x: x * special.ndtr(x),
    "hard_tanh": lambda x: np.clip(x, -1, 1),
}

FAR = torch.tensor([-800.0, -40.0, -30.0, 0.0, 30.0, 800.0], dtype=torch.float64)


def test_every_name_has_its_reference() -> None:
    assert set(ACTIVATIONS) == set(REFERENCES) == set(activations._NAMED)


each_name = pytest.mark.parametrize("name", ACTIVATIONS)


@each_name
def test_activations_are_the_functions_they_are_named_after(name: str) -> None:
    x = np.concatenate([np.linspace(-9.05, 9.05, 200), np.linspace(15, 45, 301), FAR])
    value = ACTIVATIONS[name].function(torch.from_numpy(x)).numpy()
    assert_allclose(value, REFERENCES[name](x), rtol=1e-12, atol=1e-15)


@each_name
def test_derivatives_are_those_of_autograd_and_second_ones_finite_far_out(name: str) -> None:
    function, derivative = ACTIVATIONS[name]
    u = torch.cat([torch.linspace(-9.05, 9.05, 200).double(), FAR[1:-1]]).requires_grad_()
    (slopes,) = torch.autograd.grad(function(u).sum(), u)
    assert_allclose(derivative(u.detach()), slopes, rtol=1e-12, atol=1e-14)
    assert bool(torch.func.vmap(torch.func.grad(torch.func.grad(function)))(FAR).isfinite().all())


@each_name
def test_activations_keep_the_type_and_the_input(name: str) -> None:
    u = torch.linspace(-2, 2, 9)
    kept, results = u.clone(), [part(u) for part in ACTIVATIONS[name]]

    assert all(result.dtype == torch.float32 and result is not u for result in results)
    assert torch.equal(u, kept)


@pytest.mark.parametrize(("name", "slope"), [("relu", 0.0), ("leaky_relu", 0.01)])
def test_slopes_at_a_kink_are_those_of_the_left_side(name: str, slope: float) -> None:
    assert ACTIVATIONS[name].derivative(FAR[3]).item() == slope
