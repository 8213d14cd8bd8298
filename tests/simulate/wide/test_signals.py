"""Wide networks: laws of the draw, signals against autograd, order parameters against loops."""

from itertools import permutations

import pytest
import torch
from numpy.testing import assert_allclose
from torch.nn import functional

from simulate.activations import ACTIVATIONS
from simulate.wide import signals
from simulate.wide.signals import WideNetwork
from tests.simulate.matrices.drawn import assert_mean, block_of


def network_of(count: int = 2, *, widths=(4, 6, 5, 3), samples: int = 3, seed: int = 0) -> WideNetwork:
    return signals.wide_network(
        block_of(count, seed=seed), widths=widths, samples=samples, weight_variance=1.7, bias_variance=0.4
    )


# --- the draw


def test_weights_biases_and_inputs_have_their_variances() -> None:
    network = network_of(16, widths=(20, 50, 30, 2), samples=10)

    for weight, fan_in in zip(network.weights, (20, 50, 30), strict=True):
        assert_mean(weight, 0.0)
        assert_mean(fan_in * weight**2, 1.7)
    biases = torch.cat(network.biases, dim=1)
    assert_mean(biases, 0.0)
    assert_mean(biases**2, 0.4)
    assert_mean(network.inputs, 0.0)
    assert_mean(network.inputs**2, 1.0)
    assert_mean(network.inputs[:, 0] * network.inputs[:, 1], 0.0)


def test_a_wide_layer_has_the_variances_to_a_hundredth() -> None:
    network = network_of(16, widths=(3, 30_000), samples=1)

    assert_mean(3 * network.weights[0] ** 2, 1.7)
    assert_mean(network.biases[0] ** 2, 0.4)


# --- signals


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_forward_is_a_stack_of_linear_layers(name: str) -> None:
    network = network_of()
    flow = signals.forward(network, name)

    assert len(flow.preactivations) == len(flow.activations) == 3
    for n in range(2):
        h = network.inputs[n]
        for layer in range(3):
            assert_allclose(flow.activations[layer][n], h, rtol=1e-12, atol=1e-13)
            u = functional.linear(h, network.weights[layer][n], network.biases[layer][n])
            assert_allclose(flow.preactivations[layer][n], u, rtol=1e-12, atol=1e-13)
            h = ACTIVATIONS[name].function(u)


# --- order parameters


@pytest.mark.parametrize("name", ["relu", "tanh"])
@pytest.mark.parametrize("samples", [2, 4])
def test_order_parameters_are_means_over_samples_and_ordered_pairs(name: str, samples: int) -> None:
    network = network_of(samples=samples)
    flow = signals.forward(network, name)
    deltas = list(signals.backward(network, name, flow.preactivations))[::-1]
    measured = signals.measured_order_parameters(network, name)

    own = [(s, s) for s in range(samples)]
    pairs = list(permutations(range(samples), 2))
    for layer in range(3):
        h, delta = flow.activations[layer], deltas[layer]
        for suffix, over in (("t", own), ("st", pairs)):
            hat = sum((h[:, s] * h[:, t]).mean(-1) for s, t in over) / len(over)
            tilde = sum((delta[:, :, s] * delta[:, :, t]).sum(-1).mean(1) for s, t in over) / len(over)
            assert_allclose(measured[f"q_hat_{suffix}"][:, layer], hat, rtol=1e-11, atol=1e-13)
            assert_allclose(measured[f"q_tilde_{suffix}"][:, layer], tilde, rtol=1e-11, atol=1e-13)


def test_input_order_parameters_are_those_of_the_normal_law() -> None:
    measured = signals.measured_order_parameters(network_of(16, widths=(400, 3, 1), samples=6), "relu")

    assert_mean(measured["q_hat_t"][:, 0], 1.0)
    assert_mean(measured["q_hat_st"][:, 0], 0.0)


# --- refusals


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"widths": (3,)}, r"widths must be at least two positive integers, got \(3,\)"),
    ],
)
def test_networks_out_of_domain_are_refused(change: dict, message: str) -> None:
    arguments = {"widths": (3, 2), "samples": 1, "weight_variance": 1.0, "bias_variance": 0.0}
    with pytest.raises(ValueError, match=message):
        signals.wide_network(block_of(1), **{**arguments, **change})
