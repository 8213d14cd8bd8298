"""Gram matrices of gradients of every kind: against Jacobians by autograd, in blocks, and within memory."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor
from torch.nn.functional import layer_norm

from simulate.activations import ACTIVATIONS, nonlinearity
from simulate.wide import batch_normed, fisher_gram, gram_variants, last_layer, layer_normed
from simulate.wide.signals import WideNetwork
from tests.simulate.wide.by_autograd import assert_gram, jacobian, network_of, plain

SHAPES = [((3, 4), 4), ((4, 6, 3), 3), ((4, 6, 5, 3), 4), ((3, 2, 7, 4, 5), 5), ((2, 3, 3, 3, 3, 4), 3)]


def in_layers(
    one: WideNetwork, activation: Any, normalised: Callable[[Tensor], Tensor], *, last: bool
) -> Tensor:
    """Outputs of a network whose preactivations are normalised, those of the last layer too or not."""
    depth = one.depth
    names = activation if isinstance(activation, list) else [activation] * (depth - 1)
    h = one.inputs
    for layer, (w, b) in enumerate(zip(one.weights, one.biases, strict=True)):
        u = h @ w.mT + b[:, None]
        u = normalised(u) if last or layer < depth - 1 else u
        h = u if layer == depth - 1 else nonlinearity(names[layer]).function(u)
    return h


def over_samples(u: Tensor) -> Tensor:
    return (u - u.mean(1, keepdim=True)) / u.std(1, correction=0, keepdim=True)


def over_units(u: Tensor) -> Tensor:
    return layer_norm(u, u.shape[-1:], eps=0.0)


def scaled(one: WideNetwork) -> WideNetwork:
    """The network of standard normal parameters."""
    weights = tuple(math.sqrt(1.7 / w.shape[-1]) * w for w in one.weights)
    return WideNetwork(
        weights=weights, biases=tuple(math.sqrt(0.6) * b for b in one.biases), inputs=one.inputs
    )


def tangent(network: WideNetwork, activation: Any) -> Tensor:
    overlap = gram_variants.tangent_overlap(weight_variance=1.7, bias_variance=0.6)
    return fisher_gram.gram(scaled(network), activation, overlap=overlap)


def cross_entropy(network: WideNetwork, activation: Any) -> Tensor:
    return gram_variants.cross_entropy_gram(fisher_gram.gram(network, activation), plain(activation)(network))


def less_mean(f: Tensor) -> Tensor:
    return f - f.mean(1, keepdim=True)


def over_fixed_deviation(f: Tensor) -> Tensor:
    return less_mean(f) / f.std(1, correction=0, keepdim=True).detach()


def projected(normalisation: Callable[[Tensor], Any]) -> Callable[..., Tensor]:
    def gram(network: WideNetwork, activation: Any) -> Tensor:
        matrices = normalisation(last_layer.outputs_of(network, activation))
        return last_layer.projected_gram(fisher_gram.gram(network, activation), matrices)

    return gram


def read(transform: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    return lambda one, activation: transform(plain(activation)(one))


GRAMS = {
    "plain": (fisher_gram.gram, read(lambda f: f)),
    "batch normed": (
        batch_normed.batch_normed_gram, lambda one, a: in_layers(one, a, over_samples, last=False)
    ),
    "layer normed": (layer_normed.layer_normed_gram, lambda one, a: in_layers(one, a, over_units, last=True)),
    "tangent": (tangent, lambda one, a: plain(a)(scaled(one))),
    "cross-entropy": (cross_entropy, read(lambda f: 2 * f.softmax(-1).sqrt())),
    "centred": (lambda network, a: fisher_gram.centred(fisher_gram.gram(network, a)), read(less_mean)),
    "mean subtracted": (projected(last_layer.mean_subtraction), read(less_mean)),
    "normalised": (projected(last_layer.batch_normalisation), read(over_samples)),
    "normalised, fixed deviation": (
        projected(lambda f: last_layer.batch_normalisation(f, fixed_deviation=True)), read(over_fixed_deviation)
    ),
}  # fmt: skip
OWN = ("plain", "batch normed", "layer normed")
"""Those that are formed layer by layer."""


def scale_of(kind: str, network: WideNetwork, activation: Any) -> float | None:
    """Return the scale against which entries of a projected Gram matrix are small."""
    if kind in GRAMS.keys() - {"cross-entropy", "centred", "mean subtracted", "normalised"}:
        return None
    whole = fisher_gram.gram(network, activation).abs().max()
    matrices = last_layer.batch_normalisation(last_layer.outputs_of(network, activation))
    return float(whole * (matrices.scale.max() ** 2 if kind == "normalised" else 1))


@pytest.mark.parametrize("activation", ["tanh", "softplus"])
@pytest.mark.parametrize(("widths", "samples"), SHAPES)
@pytest.mark.parametrize("kind", GRAMS)
def test_gram_is_the_product_of_jacobians(kind: str, widths: Any, samples: int, activation: str) -> None:
    network, (gram, outputs) = network_of(widths, samples), GRAMS[kind]
    j = jacobian(network, lambda one: outputs(one, activation))
    assert_gram(gram(network, activation), j, scale_of(kind, network, activation))


@pytest.mark.parametrize("activation", [*ACTIVATIONS, ["tanh", "relu"]])
@pytest.mark.parametrize("kind", OWN)
def test_gram_takes_every_activation_and_one_per_layer(kind: str, activation: Any) -> None:
    network, (gram, outputs) = network_of(), GRAMS[kind]
    assert_gram(gram(network, activation), jacobian(network, lambda one: outputs(one, activation)))


def test_biases_may_be_left_out() -> None:
    network = network_of()
    j = jacobian(network, plain("tanh"))[..., : sum(w[0].numel() for w in network.weights)]
    assert_gram(fisher_gram.gram(network, "tanh", biases=False), j)


@pytest.mark.parametrize("kind", GRAMS)
def test_a_replicate_has_the_same_gram_alone_and_nothing_is_changed(kind: str) -> None:
    network, gram = network_of(count=3), GRAMS[kind][0]
    kept = [t.clone() for t in (*network.weights, *network.biases, network.inputs)]
    together, alone = gram(network, "gelu"), gram(network_of(count=1), "gelu")
    assert_allclose(alone[0], together[0], rtol=1e-11, atol=1e-12)
    assert all(map(torch.equal, (*network.weights, *network.biases, network.inputs), kept))


@pytest.mark.parametrize("kind", OWN)
@pytest.mark.parametrize(
    ("activation", "rule"), [("swish", "one of relu, .*'swish'"), (["relu"], "one, or one for each of the 2")]
)
def test_activations_that_are_none_are_refused(kind: str, activation: Any, rule: str) -> None:
    with pytest.raises(ValueError, match=f"activation must be {rule}"):
        GRAMS[kind][0](network_of(), activation)
