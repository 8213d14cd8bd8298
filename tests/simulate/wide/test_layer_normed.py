"""Layer normalisation in all layers: signals, Gram and etas against torch's own layer and its autograd."""

import math

import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor
from torch.nn.functional import layer_norm

from simulate.wide import layer_normed
from simulate.wide.signals import WideNetwork
from tests.simulate.wide.by_autograd import assert_gram, jacobian as of_outputs, network_of
from tests.simulate.wide.test_grams import in_layers


def jacobian(network: WideNetwork, activations: list[str], *, eps: float = 0.0) -> Tensor:
    def normalised(u: Tensor) -> Tensor:
        return layer_norm(u, u.shape[-1:], eps=eps)

    return of_outputs(network, lambda one: in_layers(one, activations, normalised, last=True))


@pytest.mark.parametrize("eps", [0.03, 0.2])
@pytest.mark.parametrize(
    ("widths", "samples"), [((5, 3), 1), ((3, 2, 7, 4, 5), 5), ((1, 3, 2, 3, 3, 6), 2), ((4, 6, 5, 2), 4)]
)
def test_gram_is_the_product_of_jacobians(widths: tuple[int, ...], samples: int, eps: float) -> None:
    """With two outputs the Gram matrix vanishes, except for the effect of `eps`."""
    network, hidden = network_of(widths, samples), len(widths) - 2
    measured = layer_normed.layer_normed_gram(network, "tanh", eps=eps)

    assert_gram(
        measured, jacobian(network, ["tanh"] * hidden, eps=eps), 1.0 / eps if widths[-1] == 2 else None
    )
    if widths[-1] == 2:
        scale = layer_normed.layer_normed_signals(network, "tanh").inverses[-1].square().max()
        assert layer_normed.layer_normed_gram(network, "tanh").abs().max() < 1e-25 * scale


@pytest.mark.parametrize("widths", [(1, 1), (3, 1, 4), (4, 6, 1), (2, 1, 1)])
def test_a_single_unit_is_constant(widths: tuple[int, ...]) -> None:
    """Its normalised signal and its derivatives are 0 whatever the constant, and without one."""
    network, hidden = network_of(widths, 3), ["erf"] * (len(widths) - 2)
    assert_gram(
        layer_normed.layer_normed_gram(network, hidden, eps=0.1), jacobian(network, hidden, eps=0.1), 1.0
    )
    without, nearly = (
        layer_normed.layer_normed_gram(network, hidden),
        layer_normed.layer_normed_gram(network, hidden, eps=1e-13),
    )
    assert_allclose(without, nearly, rtol=0, atol=1e-9)
    assert (without == 0).all() == (widths[-1] == 1)


@pytest.mark.parametrize("layer", [0, 2])
def test_several_units_that_agree(layer: int) -> None:
    """With a constant their derivatives are those of torch, without one they are set to 0."""
    network = network_of((4, 8, 5, 4), 3)
    network.weights[layer].zero_()
    network.biases[layer].fill_(0.5)
    found = layer_normed.layer_normed_gram(network, "tanh", eps=0.1)
    assert_gram(found, jacobian(network, ["tanh"] * 2, eps=0.1))

    signals = layer_normed.layer_normed_signals(network, "tanh")
    deltas = list(layer_normed.layer_normed_derivatives(network, "tanh", signals))[::-1]
    assert not signals.normalised[layer].any() and not signals.inverses[layer].any()
    assert not deltas[layer].any()


@pytest.mark.parametrize("eps", [0.0, 0.1])
def test_signals_are_those_of_torch(eps: float) -> None:
    network = network_of((4, 6, 5, 4))
    found = layer_normed.layer_normed_signals(network, "relu", eps=eps)
    h = network.inputs
    for layer, (w, b) in enumerate(zip(network.weights, network.biases, strict=True)):
        u = h @ w.mT + b[:, None]
        expected = layer_norm(u, u.shape[-1:], eps=eps)
        assert_allclose(found.normalised[layer], expected, atol=1e-14)
        variance = u.var(-1, correction=0)
        assert_allclose(found.inverses[layer], 1 / torch.sqrt(variance + eps), rtol=1e-14)
        assert_allclose(found.activations[layer], h)
        h = torch.relu(expected)
    assert len(found.activations) == len(found.normalised) == 3


def test_etas_are_means_over_pairs_of_samples() -> None:
    network = network_of((4, 6, 3), samples=4, count=1)
    found = layer_normed.layer_normed_signals(network, "relu")
    f, p = found.normalised[-1][0], found.inverses[-1][0]
    r = f @ f.T / 3
    squares = (r * r * p[:, None] * p).fill_diagonal_(0)
    eta3 = math.sqrt(float((r * p[:, None] * p).square().sum()) / 16)
    expected = {"eta1": (p**2).mean(), "eta2": (p**4).mean(), "eta3": eta3, "overlap": squares.sum() / 16}

    measured = layer_normed.etas(found)
    assert measured.keys() == expected.keys()
    for name, value in expected.items():
        assert_allclose(measured[name], [value], rtol=1e-13)
