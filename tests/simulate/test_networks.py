"""Laws of the networks: counts, initial scales, homogeneity, and modules that agree with plain weights."""

import math

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from simulate.networks import LeNet5, Mlp, Pooling, Vgg, mlp_logits, mlp_weights
from tests.simulate.dense_matrices import rng


def images(*shape: int) -> torch.Tensor:
    return torch.from_numpy(rng(1).standard_normal(shape))


def scaled(net: torch.nn.Module, factor: float = 2.0) -> torch.nn.Module:
    with torch.no_grad():
        for parameter in net.parameters():
            parameter *= factor
    return net


STAGES = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
NETS = {
    "VGG-16": (lambda: Vgg(classes=100, rng=rng(), stages=STAGES), 15_291_300),
    "LeNet-5": (lambda: LeNet5(rng=rng()), 61_770),
    "perceptron": (lambda: Mlp((200, 100, 50), rng=rng(), bias=True), 25_150),
}


@pytest.mark.parametrize("name", NETS)
def test_networks_have_their_parameters_of_variance_two_over_fan_in_and_biases_of_zero(name: str) -> None:
    build, count = NETS[name]
    parameters = list(build().parameters())
    assert sum(p.numel() for p in parameters) == count
    for p in parameters:
        if p.ndim == 1:
            assert not bool(p.any())
            continue
        scaled = p * math.sqrt(p[0].numel() / 2)
        assert abs(scaled.square().mean().item() - 1) < 5 * math.sqrt(2 / p.numel())
        assert abs(scaled.mean().item()) < 5 / math.sqrt(p.numel())


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
