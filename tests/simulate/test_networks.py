"""Laws of the networks: counts, initial scales, homogeneity, and modules that agree with plain weights."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from simulate import networks
from simulate.networks import (
    LENET_300_100,
    LeNet5,
    Mlp,
    Pooling,
    Vgg,
    mlp_logits,
    mlp_weights,
    weight_count,
)


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def images(*shape: int) -> torch.Tensor:
    return torch.from_numpy(generator(1).standard_normal(shape))


def test_parameter_counts_are_those_of_the_named_networks() -> None:
    weights = mlp_weights(generator(), LENET_300_100)
    assert weight_count(LENET_300_100) == sum(w.numel() for w in weights) == 266_200
    counts = [p.numel() for p in LeNet5(rng=generator()).parameters()]
    assert counts == [450, 2400, 48_000, 10_080, 840] and sum(counts) == 61_770


def test_vgg_16_has_the_parameters_of_the_paper() -> None:
    """15,291,300 on a hundred classes, all of variance two over the fan-in but for biases of zero."""
    stages = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
    net = Vgg(classes=100, rng=generator(), stages=stages)
    assert sum(p.numel() for p in net.parameters()) == 15_291_300
    assert len([p for p in net.parameters() if p.ndim > 1]) == 16
    for p in net.parameters():
        if p.ndim == 1:
            assert not bool(p.any())
        else:
            assert abs(p.square().mean().item() * p[0].numel() / 2 - 1) < 5 * math.sqrt(2 / p.numel())


def test_vgg_without_biases_is_homogeneous_of_the_degree_of_its_layers() -> None:
    net = Vgg(rng=generator(), stages=((3, 4), (5,)), head=(6,), side=8, bias=False)
    x = images(3, 3, 8, 8)
    once = net(x).detach()
    with torch.no_grad():
        for p in net.parameters():
            p.mul_(2)
    assert_allclose(net(x).detach().numpy(), 2**5 * once.numpy(), rtol=1e-12)


def test_vgg_refuses_images_that_cannot_be_halved() -> None:
    with pytest.raises(ValueError, match="side must be a multiple of 4, got 6"):
        Vgg(rng=generator(), stages=((3,), (4,)), side=6)


@pytest.mark.parametrize(("gain", "factor"), [("kaiming", 2.0), ("lecun", 1.0)])
def test_weight_variance_is_the_gain_over_fan_in(gain: networks.Gain, factor: float) -> None:
    for weight in mlp_weights(generator(), (200, 100, 50), gain=gain):
        count, fan_in = weight.numel(), weight.shape[1]
        scaled = weight.square().mean().item() * fan_in / factor
        assert abs(scaled - 1) < 5 * math.sqrt(2 / count)
        assert abs(weight.mean().item()) < 5 * math.sqrt(factor / fan_in / count)


def test_convolutions_have_variance_two_over_their_receptive_field() -> None:
    first, second, *_ = LeNet5(rng=generator()).parameters()
    for weight, fan_in in ((first, 75), (second, 150)):
        assert abs(weight.square().mean().item() * fan_in / 2 - 1) < 5 * math.sqrt(2 / weight.numel())


def test_weights_depend_on_the_generator_and_on_nothing_else() -> None:
    torch.default_generator.manual_seed(3)
    before = torch.get_rng_state()
    nets = [Mlp((6, 5, 4), rng=generator()) for _ in range(2)]
    convolutional = [next(LeNet5(rng=generator()).parameters()) for _ in range(2)]
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(a, b) for a, b in zip(*(net.parameters() for net in nets), strict=True))
    assert torch.equal(*convolutional)
    assert not torch.equal(next(nets[0].parameters()), mlp_weights(generator(1), (6, 5, 4))[0])


def test_logits_are_products_of_the_layers_in_their_order() -> None:
    weights, x = mlp_weights(generator(), (6, 5, 4, 3)), images(8, 6).numpy()
    first, second, third = (w.numpy() for w in weights)
    expected = np.maximum(np.maximum(x @ first.T, 0) @ second.T, 0) @ third.T
    assert_allclose(mlp_logits(weights, torch.from_numpy(x)).numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("scale", [0.25, 2.0])
@pytest.mark.parametrize("pooling", ["max", "average"])
def test_bias_free_relu_networks_are_homogeneous_of_their_depth(scale: float, pooling: Pooling) -> None:
    weights, x = mlp_weights(generator(), (6, 5, 4, 3)), images(8, 6)
    assert torch.equal(mlp_logits([scale * w for w in weights], x), scale**3 * mlp_logits(weights, x))
    net, pictures = LeNet5(rng=generator(), pooling=pooling), images(2, 3, 32, 32)
    logits = net(pictures)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter *= scale
    assert torch.equal(net(pictures), scale**5 * logits)


def test_errors_name_the_argument() -> None:
    with pytest.raises(ValueError, match=r"activation must be one of relu, .*, got 'swish'"):
        mlp_logits(mlp_weights(generator(), (2, 2)), torch.ones(1, 2), "swish")
    with pytest.raises(ValueError, match=r"widths must be at least two positive integers, got \(5,\)"):
        weight_count((5,))
    with pytest.raises(ValueError, match="gain must be one of kaiming, lecun, got 'xavier'"):
        mlp_weights(generator(), (5, 2), gain="xavier")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="pooling must be one of max, average, got 'mean'"):
        LeNet5(rng=generator(), pooling="mean")  # pyright: ignore[reportArgumentType]
