"""Wide networks: laws of the draw, signals against autograd, order parameters against loops."""

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
    """Variances of a wide layer agree to 0.02."""
    network = network_of(16, widths=(20, 10_000, 2), samples=10)

    for weight, fan_in in zip(network.weights, (20, 10_000), strict=True):
        assert_mean(weight, 0.0)
        assert_mean(fan_in * weight**2, 1.7)
    biases = torch.cat(network.biases, dim=1)
    assert_mean(biases, 0.0)
    assert_mean(biases**2, 0.4)
    assert_mean(network.inputs, 0.0)
    assert_mean(network.inputs**2, 1.0)
    assert_mean(network.inputs[:, 0] * network.inputs[:, 1], 0.0)


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

    apart = 1 - torch.eye(samples, dtype=torch.float64)
    for layer in range(3):
        h, delta = flow.activations[layer], deltas[layer]
        for name_of, inner in (
            ("q_hat", h @ h.mT / h.shape[2]),
            ("q_tilde", torch.einsum("ncsi,ncti->nst", delta, delta) / delta.shape[1]),
        ):
            own, other = inner.diagonal(dim1=1, dim2=2).mean(1), (inner * apart).sum((1, 2)) / apart.sum()
            assert_allclose(measured[f"{name_of}_t"][:, layer], own, rtol=1e-11, atol=1e-13)
            assert_allclose(measured[f"{name_of}_st"][:, layer], other, rtol=1e-11, atol=1e-13)


def test_networks_out_of_domain_are_refused() -> None:
    with pytest.raises(ValueError, match=r"widths must be at least two positive integers, got \(3,\)"):
        network_of(widths=(3,))
