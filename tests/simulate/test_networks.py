"""Laws of the networks: counts, initial scales, homogeneity, and modules that agree with plain weights."""

import math

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from simulate import networks
from simulate.networks import LENET_300_100, LeNet5, Mlp, Pooling, Vgg, mlp_logits, mlp_weights, weight_count
from tests.simulate.dense_matrices import rng


def images(*shape: int) -> torch.Tensor:
    return torch.from_numpy(rng(1).standard_normal(shape))


def scaled(net: torch.nn.Module, factor: float = 2.0) -> torch.nn.Module:
    with torch.no_grad():
        for parameter in net.parameters():
            parameter *= factor
    return net


def test_parameter_counts_are_those_of_the_named_networks() -> None:
    weights = mlp_weights(rng(), LENET_300_100)
    assert weight_count(LENET_300_100) == sum(w.numel() for w in weights) == 266_200
    assert [p.numel() for p in LeNet5(rng=rng()).parameters()] == [450, 2400, 48_000, 10_080, 840]


def test_vgg_16_has_the_parameters_of_the_paper() -> None:
    """15,291,300 on a hundred classes, all of variance two over the fan-in but for biases of zero."""
    stages = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
    net = Vgg(classes=100, rng=rng(), stages=stages)
    assert sum(p.numel() for p in net.parameters()) == 15_291_300
    assert len([p for p in net.parameters() if p.ndim > 1]) == 16
    for p in net.parameters():
        if p.ndim == 1:
            assert not bool(p.any())
        else:
            assert abs(p.square().mean().item() * p[0].numel() / 2 - 1) < 5 * math.sqrt(2 / p.numel())


@pytest.mark.parametrize(("gain", "factor"), [("kaiming", 2.0), ("lecun", 1.0)])
def test_weight_variance_is_the_gain_over_fan_in(gain: networks.Gain, factor: float) -> None:
    for weight in mlp_weights(rng(), (200, 100, 50), gain=gain):
        count, fan_in = weight.numel(), weight.shape[1]
        scaled = weight.square().mean().item() * fan_in / factor
        assert abs(scaled - 1) < 5 * math.sqrt(2 / count)
        assert abs(weight.mean().item()) < 5 * math.sqrt(factor / fan_in / count)


def test_convolutions_have_variance_two_over_their_receptive_field() -> None:
    for weight, fan_in in zip(LeNet5(rng=rng()).parameters(), (75, 150), strict=False):
        assert abs(weight.square().mean().item() * fan_in / 2 - 1) < 5 * math.sqrt(2 / weight.numel())


def test_weights_depend_on_the_generator_and_on_nothing_else() -> None:
    torch.default_generator.manual_seed(3)
    before = torch.get_rng_state()
    for build in (lambda seed: Mlp((6, 5, 4), rng=rng(seed)), lambda seed: LeNet5(rng=rng(seed))):
        one, same, other = (torch.nn.utils.parameters_to_vector(build(s).parameters()) for s in (0, 0, 1))
        assert torch.equal(one, same) and not torch.equal(one, other)
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(next(Mlp((6, 5, 4), rng=rng()).parameters()), mlp_weights(rng(), (6, 5, 4))[0])


def test_logits_are_products_of_the_layers_in_their_order() -> None:
    weights, x = mlp_weights(rng(), (6, 5, 4, 3)), images(8, 6).numpy()
    first, second, third = (w.numpy() for w in weights)
    expected = np.maximum(np.maximum(x @ first.T, 0) @ second.T, 0) @ third.T
    assert_allclose(mlp_logits(weights, torch.from_numpy(x)).numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("scale", [0.25, 2.0])
@pytest.mark.parametrize("pooling", ["max", "average"])
def test_bias_free_relu_networks_are_homogeneous_of_their_depth(scale: float, pooling: Pooling) -> None:
    weights, x = mlp_weights(rng(), (6, 5, 4, 3)), images(8, 6)
    assert torch.equal(mlp_logits([scale * w for w in weights], x), scale**3 * mlp_logits(weights, x))
    small = Vgg(rng=rng(), stages=((3, 4), (5,)), head=(6,), side=8, bias=False)
    for net, side in ((LeNet5(rng=rng(), pooling=pooling), 32), (small, 8)):
        pictures = images(2, 3, side, side)
        logits = net(pictures)
        assert torch.equal(scaled(net, scale)(pictures), scale**5 * logits)
