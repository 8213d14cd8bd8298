"""Networks of the kinds that people measure, on digits in the shape that each takes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from torch import Tensor, nn
from torch.nn import functional

from simulate.networks import LENET_300_100, LeNet5, Mlp

__all__ = ["NETWORKS", "BenchNetwork", "bench_perceptron"]

CLASSES = 10


class BenchNetwork(NamedTuple):
    """A network by its name in tables, the shape of its inputs, and how it is built.

    `samples` are those of a pass that takes some hundredths of a second on one core. Of a perceptron there is also
    one with a `single` output. Of a network of `few` parameters matrices are formed whole.
    """

    title: str
    shape: tuple[int, ...]
    samples: int
    build: Callable[[np.random.Generator], nn.Module]
    single: Callable[[np.random.Generator], nn.Module] | None = None
    few: bool = False


def bench_perceptron(
    widths: Sequence[int], title: str = "perceptron", samples: int = 1000, *, few: bool = False
) -> BenchNetwork:
    """A bias-free ReLU perceptron on flat digits."""
    one = (*widths[:-1], 1)
    return BenchNetwork(
        title, (widths[0],), samples, lambda rng: Mlp(widths, rng=rng), lambda rng: Mlp(one, rng=rng), few
    )


def _convolutions(*widths: int) -> list[nn.Module]:
    pairs = itertools.pairwise(widths)
    layers = ([nn.Conv2d(a, b, 3, padding=1), nn.ReLU()] for a, b in pairs)
    return [layer for pair in layers for layer in pair]


def _vgg() -> nn.Module:
    features = (
        [*_convolutions(*widths), nn.MaxPool2d(2)] for widths in ((3, 16, 16), (16, 32, 32), (32, 64))
    )
    head = (nn.Flatten(), nn.Linear(1024, 64), nn.ReLU(), nn.Linear(64, CLASSES))
    return nn.Sequential(*(layer for block in features for layer in block), *head)


class _Residual(nn.Module):
    """Two normalised convolutions beside a shortcut."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        first = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        second = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.body = nn.Sequential(first, nn.BatchNorm2d(out), nn.ReLU(), second, nn.BatchNorm2d(out))
        self.shortcut = nn.Identity()
        if stride != 1:
            short = nn.Conv2d(channels, out, 1, stride, bias=False)
            self.shortcut = nn.Sequential(short, nn.BatchNorm2d(out))

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.body(x) + self.shortcut(x))


def _residual() -> nn.Module:
    stem = (nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU())
    blocks = _Residual(16, 16, 1), _Residual(16, 32, 2), _Residual(32, 64, 2)
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, CLASSES))


class _Attention(nn.Module):
    """Attention with a residual, and a perceptron with another."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.before, self.after = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.mixed, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.body = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        n, length, width = x.shape
        split = self.mixed(self.before(x)).view(n, length, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        # by its formula: the fused kernels have no second derivative, which other libraries need
        seen = (query @ key.mT / (width // self.heads) ** 0.5).softmax(-1) @ value
        x = x + self.out(seen.transpose(1, 2).reshape(n, length, width))
        return x + self.body(self.after(x))


class _Transformer(nn.Module):
    """Two blocks over the rows of an image."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(28, 64)
        self.blocks, self.head = nn.Sequential(_Attention(64, 4), _Attention(64, 4)), nn.Linear(64, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.embed(x[:, 0])).mean(1))


NETWORKS: dict[str, BenchNetwork] = {
    "lenet-300-100": bench_perceptron(LENET_300_100, "LeNet-300-100"),
    "lenet-5": BenchNetwork("LeNet-5", (3, 32, 32), 200, lambda rng: LeNet5(rng=rng)),
    "vgg": BenchNetwork("VGG-like, five convolutions", (3, 32, 32), 64, lambda _: _vgg()),
    "residual": BenchNetwork(
        "residual with batch normalisation, eight convolutions", (3, 32, 32), 64, lambda _: _residual()
    ),
    "attention": BenchNetwork("two blocks of attention", (1, 28, 28), 32, lambda _: _Transformer()),
    "tiny": bench_perceptron((16, 4, 10), "16-4-10", samples=100, few=True),
}
"""By the word of the command."""
