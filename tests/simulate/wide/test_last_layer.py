"""Normalised outputs: the Gram of their gradients against autograd, and what it has lost and gained."""

import pytest
import torch
from numpy.testing import assert_allclose

from simulate.wide import fisher_gram, last_layer
from tests.simulate.wide.by_autograd import network_of


def test_batch_normalisation_of_two_samples_leaves_nothing() -> None:
    network = network_of(samples=2)
    gram = fisher_gram.gram(network, "erf")
    matrices = last_layer.batch_normalisation(last_layer.outputs_of(network, "erf"))
    found = last_layer.projected_gram(gram, matrices)
    assert_allclose(found, 0.0, atol=1e-13 * (gram.max() * matrices.scale.max() ** 2).item())


@pytest.mark.parametrize("value", [0.1, 1e9 / 3])
@pytest.mark.parametrize("samples", [1, 7])
def test_an_output_that_is_the_same_for_all_samples_is_refused(samples: int, value: float) -> None:
    constant = torch.full((1, 2, samples), value, dtype=torch.float64)
    for function in (last_layer.batch_normalisation, last_layer.normalised):
        with pytest.raises(ValueError, match=r"outputs must differ between samples .* got a constant output"):
            function(constant)


def test_small_outputs_are_normalised_like_large_ones() -> None:
    outputs = last_layer.outputs_of(network_of(), "tanh")
    unit = last_layer.normalised(outputs)
    assert_allclose(unit.mean(-1), 0.0, atol=1e-14)
    assert_allclose(unit.square().mean(-1), 1.0, rtol=1e-13)
    assert_allclose(last_layer.normalised(1e-30 * outputs), unit, rtol=1e-12)


def test_precision_is_that_of_the_network() -> None:
    found, exact = (
        last_layer.projected_gram(
            fisher_gram.gram(network, "tanh"),
            last_layer.batch_normalisation(last_layer.outputs_of(network, "tanh")),
        )
        for network in (network_of().to(torch.float32), network_of().to(torch.float32).to(torch.float64))
    )
    assert found.dtype == torch.float32 and exact.dtype == torch.float64
    assert_allclose(found, exact, rtol=0, atol=1e-4 * exact.abs().max().item())
