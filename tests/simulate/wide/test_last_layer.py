"""Normalised outputs: the Gram of their gradients against autograd, and what it has lost and gained."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from numpy.testing import assert_allclose

from simulate.wide import fisher_gram, last_layer
from tests.simulate.wide.by_autograd import network_of


@pytest.mark.parametrize(
    "normalisation",
    [
        last_layer.mean_subtraction,
        last_layer.batch_normalisation,
        lambda f: last_layer.batch_normalisation(f, fixed_deviation=True),
    ],
)
def test_the_matrices_are_symmetric_multiples_of_projectors(normalisation: Callable[..., Any]) -> None:
    outputs = last_layer.outputs_of(network_of(samples=5), "tanh")
    matrices = normalisation(outputs)
    applied = matrices(torch.eye(5, dtype=torch.float64).expand(2, 3, 5, 5).transpose(1, 2))
    dense = applied.transpose(1, 2)  # (n, C, T, T): a row for each unit vector

    scaled = dense / matrices.scale[..., None, None]
    assert_allclose(dense, dense.mT, atol=1e-14)
    assert_allclose(scaled @ scaled, scaled, atol=1e-14)
    rank = 5 - matrices.directions.shape[-1]
    assert_allclose(scaled.diagonal(dim1=2, dim2=3).sum(-1), rank, rtol=1e-13)


def test_batch_normalisation_of_two_samples_leaves_nothing() -> None:
    network = network_of(samples=2)
    gram = fisher_gram.gram(network, "erf")
    matrices = last_layer.batch_normalisation(last_layer.outputs_of(network, "erf"))
    found = last_layer.projected_gram(gram, matrices)
    assert_allclose(found, 0.0, atol=1e-13 * (gram.max() * matrices.scale.max() ** 2).item())


def test_normalised_outputs_have_mean_zero_and_deviation_one() -> None:
    unit = last_layer.normalised(last_layer.outputs_of(network_of(), "softplus"))
    assert_allclose(unit.mean(-1), 0.0, atol=1e-14)
    assert_allclose(unit.square().mean(-1), 1.0, rtol=1e-13)


@pytest.mark.parametrize("value", [0.1, 1e9 / 3])
@pytest.mark.parametrize("samples", [1, 7])
def test_an_output_that_is_the_same_for_all_samples_is_refused(samples: int, value: float) -> None:
    constant = torch.full((1, 2, samples), value, dtype=torch.float64)
    for function in (last_layer.batch_normalisation, last_layer.normalised):
        with pytest.raises(ValueError, match=r"outputs must differ between samples .* got a constant one"):
            function(constant)


def test_small_outputs_are_normalised_like_large_ones() -> None:
    outputs = last_layer.outputs_of(network_of(), "tanh")
    assert_allclose(last_layer.normalised(1e-30 * outputs), last_layer.normalised(outputs), rtol=1e-12)


def test_precision_is_that_of_the_network() -> None:
    network = network_of().to(torch.float32)
    matrices = last_layer.batch_normalisation(last_layer.outputs_of(network, "tanh"))
    found = last_layer.projected_gram(fisher_gram.gram(network, "tanh"), matrices)
    assert found.dtype == torch.float32
    double = network.to(torch.float64)
    exact = last_layer.projected_gram(
        fisher_gram.gram(double, "tanh"),
        last_layer.batch_normalisation(last_layer.outputs_of(double, "tanh")),
    )
    assert_allclose(found, exact, rtol=0, atol=1e-4 * exact.abs().max().item())
    assert math.isfinite(found.sum())
