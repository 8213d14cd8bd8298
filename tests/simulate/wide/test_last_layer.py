"""Normalised outputs: the Gram of their gradients against autograd, and what it has lost and gained."""

import math
from collections.abc import Callable

import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor

from simulate.monte_carlo import Block, Point, stream
from simulate.wide import fisher_gram, last_layer, signals
from simulate.wide.last_layer import Normalisation
from simulate.wide.signals import WideNetwork

SHAPES = [((3, 2), 4), ((4, 6, 1), 3), ((4, 6, 5, 3), 5), ((1, 1, 1), 3), ((2, 3, 3, 3, 3, 2), 2)]
ACTIVATIONS = ["tanh", "erf", "linear", "softplus", "leaky_relu"]


def network_of(widths=(4, 6, 5, 3), samples: int = 5, count: int = 2) -> WideNetwork:
    block = Block(tuple(stream(0, "last", Point(), i) for i in range(count)))
    return signals.wide_network(block, widths=widths, samples=samples, weight_variance=1.9, bias_variance=0.3)


def autograd_gram(network: WideNetwork, activation: str, readout: Callable[[Tensor], Tensor]) -> Tensor:
    """J J^T of readout(f), f (C, T), by all weights and biases; (n, C, C, T, T)."""
    depth = network.depth

    def outputs(inputs: Tensor, *theta: Tensor) -> Tensor:
        one = WideNetwork(
            weights=tuple(w[None] for w in theta[:depth]),
            biases=tuple(b[None] for b in theta[depth:]),
            inputs=inputs[None],
        )
        return readout(signals.forward(one, activation).preactivations[-1][0].T)

    def one_gram(n: int) -> Tensor:
        theta = [t[n] for t in (*network.weights, *network.biases)]
        parts = torch.func.jacrev(outputs, argnums=tuple(range(1, 2 * depth + 1)))(network.inputs[n], *theta)
        j = torch.cat([part.flatten(2) for part in parts], dim=2)
        return torch.einsum("ksp,mtp->kmst", j, j)

    return torch.stack([one_gram(n) for n in range(len(network.inputs))])


def less_mean(f: Tensor) -> Tensor:
    return f - f.mean(1, keepdim=True)


def over_deviation(f: Tensor) -> Tensor:
    return less_mean(f) / f.std(1, correction=0, keepdim=True)


def over_fixed_deviation(f: Tensor) -> Tensor:
    return less_mean(f) / f.std(1, correction=0, keepdim=True).detach()


READOUTS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Normalisation]]] = {
    "mean subtraction": (less_mean, last_layer.mean_subtraction),
    "batch normalisation": (over_deviation, last_layer.batch_normalisation),
    "fixed deviation": (
        over_fixed_deviation,
        lambda f: last_layer.batch_normalisation(f, fixed_deviation=True),
    ),
}


@pytest.mark.parametrize("name", READOUTS)
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize(("widths", "samples"), SHAPES)
def test_projected_gram_is_that_of_the_normalised_outputs(
    widths: tuple[int, ...], samples: int, activation: str, name: str
) -> None:
    network = network_of(widths, samples)
    readout, normalisation = READOUTS[name]
    matrices = normalisation(last_layer.outputs_of(network, activation))
    gram = fisher_gram.gram(network, activation)

    found = last_layer.projected_gram(gram, matrices)

    scale = (gram.amax((1, 2, 3, 4)) * matrices.scale.square().amax(1)).max().item()
    assert found.shape == gram.shape
    assert_allclose(found, autograd_gram(network, activation, readout), rtol=0, atol=1e-13 * scale)


def test_mean_subtraction_is_the_centred_gram() -> None:
    network = network_of()
    gram = fisher_gram.gram(network, "gelu")
    matrices = last_layer.mean_subtraction(last_layer.outputs_of(network, "gelu"))
    assert_allclose(last_layer.projected_gram(gram, matrices), fisher_gram.centred(gram), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", READOUTS)
def test_the_matrices_are_symmetric_multiples_of_projectors(name: str) -> None:
    outputs = last_layer.outputs_of(network_of(), "tanh")
    matrices = READOUTS[name][1](outputs)
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
