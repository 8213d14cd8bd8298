"""Networks and their initial scales, as plain tensors for exact curvature and as modules for users.

Every weight comes from the numpy generator it is given, in float64, layer by layer from the input; the global
generator of torch is neither read nor advanced. Layers are numbered 0 (next to the input) to L - 1.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from simulate import _checks, _memory, activations

Weights = Sequence[Tensor]
"""Weight matrices of shape (out, in), from the input layer to the logits."""

Pooling = Literal["max", "average"]
"""Pooling of four neighbours: the largest of them, or their mean."""

LENET_300_100 = (784, 300, 100, 10)
"""Widths of LeNet-300-100 on 28 x 28 images: 266,200 weights."""

_POOLS: dict[str, type[nn.Module]] = {"max": nn.MaxPool2d, "average": nn.AvgPool2d}


def weight_count(widths: Sequence[int], *, biases: bool = False) -> int:
    """Number of weights of a multilayer perceptron, and of its biases if they count.

    Raises
    ------
    ValueError
        If there are fewer than two widths, or one is not positive.

    Examples
    --------
    >>> weight_count(LENET_300_100), weight_count((16, 8, 10), biases=True)
    (266200, 226)
    """
    return sum((fan_in + biases) * out for fan_in, out in _checks.layer_sizes(widths))


def mlp_weights(rng: np.random.Generator, widths: Sequence[int]) -> tuple[Tensor, ...]:
    """Normal weights of a bias-free multilayer perceptron, of variance 2 / fan_in, which keeps the scale of signals.

    Parameters
    ----------
    rng
        Source of all weights.
    widths
        Units of the input, of each hidden layer and of the output.

    Returns
    -------
    One float64 matrix of shape (out, in) per layer.

    Raises
    ------
    ValueError
        If there are fewer than two widths, one is not positive, or the weights do not fit into memory.

    Examples
    --------
    >>> [tuple(w.shape) for w in mlp_weights(np.random.default_rng(0), (4, 3, 2))]
    [(3, 4), (2, 3)]
    """
    _require_memory("widths", weight_count(widths))
    return tuple(_normal(rng, (out, fan_in), fan_in) for fan_in, out in _checks.layer_sizes(widths))


def mlp_logits(
    weights: Weights, x: Tensor, activation: str = "relu", *, biases: Sequence[Tensor] | None = None
) -> Tensor:
    """Logits of shape (..., K) of the network with these weights on inputs of shape (..., in), without biases if None.

    Raises
    ------
    ValueError
        If the activation is unknown.
    """
    nonlinearity = activations.nonlinearity(activation).function
    for i, weight in enumerate(weights):
        x = (nonlinearity(x) if i else x) @ weight.mT
        x = x if biases is None else x + biases[i]
    return x


class Mlp(nn.Module):
    """Multilayer perceptron as a module, initialised from a numpy generator; biases start at zero.

    With the same generator state and widths it holds the weights that `mlp_weights` returns.

    Raises
    ------
    ValueError
        If the activation is unknown, or the widths are not as in `mlp_weights`.

    Examples
    --------
    >>> net = Mlp((4, 3, 2), rng=np.random.default_rng(0), bias=True)
    >>> net(torch.zeros(5, 4, dtype=torch.float64)).shape
    torch.Size([5, 2])
    """

    def __init__(
        self,
        widths: Sequence[int],
        activation: str = "relu",
        bias: bool = False,
        *,
        rng: np.random.Generator,
    ) -> None:
        super().__init__()
        self.activation = activations.nonlinearity(activation).function
        _require_memory("widths", weight_count(widths))
        self.layers = nn.ModuleList()
        for fan_in, out in _checks.layer_sizes(widths):
            layer = nn.Linear(fan_in, out, bias=bias, device="meta", dtype=torch.float64)
            self.layers.append(_filled(layer, _normal(rng, (out, fan_in), fan_in)))

    def forward(self, x: Tensor) -> Tensor:
        """Logits of shape (N, K) of inputs whose trailing axes are flattened."""
        x = x.flatten(1)
        for layer in self.layers[:-1]:
            x = self.activation(layer(x))
        return self.layers[-1](x)


class LeNet5(nn.Module):
    """Bias-free ReLU LeNet-5 on 32 x 32 images: 61,770 weights for 3 channels, 10 classes.

    Piecewise linear and homogeneous of degree 5 in its weights, like the perceptrons. Two networks go by this name:
    max pooled, the default here, or average pooled, as in the code published with Vysogorets et al. (2024).

    Raises
    ------
    ValueError
        If `channels` or `classes` is not positive, or the pooling is unknown.

    Examples
    --------
    >>> net = LeNet5(rng=np.random.default_rng(0))
    >>> sum(p.numel() for p in net.parameters())
    61770
    """

    def __init__(
        self,
        channels: int = 3,
        classes: int = 10,
        *,
        rng: np.random.Generator,
        pooling: Pooling = "max",
    ) -> None:
        super().__init__()
        channels, classes = _checks.natural("channels", channels), _checks.natural("classes", classes)
        _checks.one_of("pooling", pooling, _POOLS)
        pool = _POOLS[pooling]
        _require_memory("channels and classes", 150 * channels + 84 * classes)
        self.features = nn.Sequential(
            _convolution(rng, channels, 6), nn.ReLU(), pool(2),
            _convolution(rng, 6, 16), nn.ReLU(), pool(2), nn.Flatten(),
        )  # fmt: skip
        self.head = Mlp((400, 120, 84, classes), rng=rng)

    def forward(self, x: Tensor) -> Tensor:
        """Logits of shape (N, classes) of images of shape (N, channels, 32, 32)."""
        return self.head(self.features(x))


class Vgg(nn.Module):
    """ReLU network of 3 x 3 convolutions, halved by max pooling after each stage, then a perceptron; Kaiming normal.

    Without normalisation. With the stages of VGG-16, biases and 100 classes on 32 x 32 images in 3 channels it has
    15,291,300 parameters, as in Granziol et al. (2022).

    Parameters
    ----------
    channels, classes
        Of the images.
    rng
        Source of all weights; biases start at zero.
    stages
        Channels of the convolutions of each stage.
    head
        Units of the hidden layers after them.
    side
        Height and width of the images, a multiple of 2 to the number of stages.
    bias
        Whether the layers have biases; without, the network is homogeneous of the degree of its layers.

    Raises
    ------
    ValueError
        If a number is not positive, or the images cannot be halved so often.

    Examples
    --------
    >>> net = Vgg(3, 10, rng=np.random.default_rng(0), stages=((4, 4), (8,)), head=(6,), side=8)
    >>> net(torch.zeros(5, 3, 8, 8, dtype=torch.float64)).shape
    torch.Size([5, 10])
    """

    def __init__(
        self,
        channels: int = 3,
        classes: int = 10,
        *,
        rng: np.random.Generator,
        stages: Sequence[Sequence[int]],
        head: Sequence[int] = (512, 512),
        side: int = 32,
        bias: bool = True,
    ) -> None:
        super().__init__()
        channels, classes = _checks.natural("channels", channels), _checks.natural("classes", classes)
        widths = [channels, *(_checks.natural("stages", width) for stage in stages for width in stage)]
        if _checks.natural("side", side) % 2 ** len(stages):
            raise ValueError(f"side must be a multiple of {2 ** len(stages)}, got {side}")
        places = (side // 2 ** len(stages)) ** 2
        units = (places * widths[-1], *head, classes)
        kernels = [9 * narrow * wide for narrow, wide in itertools.pairwise(widths)]
        _require_memory("stages and head", sum(kernels) + weight_count(units))
        layers: list[nn.Module] = []
        for stage in stages:
            for width in stage:
                layers += [_convolution(rng, channels, width, side=3, bias=bias), nn.ReLU()]
                channels = width
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers, nn.Flatten())
        self.head = Mlp(units, rng=rng, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """Logits of shape (N, classes) of images of shape (N, channels, side, side)."""
        return self.head(self.features(x))


def _require_memory(name: str, weights: int) -> None:
    # twice: a normal matrix is there a second time while it is scaled
    _memory.require_free(name, 16 * weights, f"{weights} weights")


def _normal(rng: np.random.Generator, shape: tuple[int, ...], fan_in: int) -> Tensor:
    return torch.from_numpy(rng.standard_normal(shape) * math.sqrt(2 / fan_in))


def _convolution(
    rng: np.random.Generator, channels: int, out: int, *, side: int = 5, bias: bool = False
) -> nn.Module:
    """Return a convolution: 5 x 5 kernels without padding, 3 x 3 kernels with padding that keeps the image size."""
    padding = 1 if side == 3 else 0
    layer = nn.Conv2d(channels, out, side, padding=padding, bias=bias, device="meta", dtype=torch.float64)
    return _filled(layer, _normal(rng, (out, channels, side, side), side**2 * channels))


def _filled(layer: nn.Module, weight: Tensor) -> nn.Module:
    """Fill a layer from the meta device, whose constructor does not advance the global generator, with values.

    `nn.utils.skip_init` would do the same, but import sympy and much of torch's compiler, which takes half a second.
    """
    for name, parameter in list(layer.named_parameters()):
        values = weight if name == "weight" else weight.new_zeros(parameter.shape)
        setattr(layer, name, nn.Parameter(values))
    return layer
