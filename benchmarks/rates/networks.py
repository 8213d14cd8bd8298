"""The networks on which rules for learning rates are judged, and which of them may be looked at before.

The halves are named here, before any rule is tried. A rule is made on the *design* half alone, and frozen before the
*holdout* half is run; residual networks and attention stand in the latter only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn

from benchmarks.rates.samples import CONTEXT, SYMBOLS, Source
from theory import zone

__all__ = ["HELD_OUT_ALONE", "NETWORKS", "OPTIMISERS", "Half", "Network", "half"]

Half = Literal["design", "holdout"]
Start = Literal["torch", "he", "edge"]
Family = Literal[
    "perceptron", "lenet", "convolution", "batch-normalised", "layer-normalised", "residual", "attention"
]

HELD_OUT_ALONE = frozenset(("residual", "attention"))
"""Families of which the design half has none."""

OPTIMISERS = ("sgd", "momentum", "adam")
"""Of every network, of `simulate.training.trial_training.OPTIMISERS`."""

_EDGE = {"samples": 64, "gap_density": 0.25}
"""Scaled so that of a batch of so many samples the last one becomes confident: logits times 16."""


@dataclass(frozen=True, kw_only=True)
class Network:
    """A network at its start.

    Attributes
    ----------
    name, family, half
        What it is, and whether rules may be made by it.
    source
        Its samples.
    start
        Torch's default; normal weights of variance 2 / fan-in with biases 0; or those scaled to the upper edge of the
        Goldilocks zone of a batch.
    module
        Draws one from the global generator.
    squared
        Whether the loss is the squared error against 0 and 1 rather than the cross-entropy.
    """

    name: str
    family: Family
    half: Half
    source: Source
    start: Start
    module: Callable[[], nn.Module]
    squared: bool = False

    def built(self, seed: int) -> nn.Module:
        """The module as it starts, float32; the global generator is left as found.

        Examples
        --------
        >>> NETWORKS[0].built(0)(torch.zeros(2, 1, 8, 8)).shape
        torch.Size([2, 10])
        """
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            module = self.module()
            if self.start != "torch":
                _he(module)
            if self.start == "edge":
                _scale(module)
        return module

    @property
    def loss(self) -> nn.Module:
        """A mean over the samples."""
        return nn.MSELoss() if self.squared else nn.CrossEntropyLoss()

    def targets(self, classes: Tensor) -> Tensor:
        """What the loss wants of classes (N,)."""
        return nn.functional.one_hot(classes, 10).float() if self.squared else classes


def half(name: Half) -> tuple[Network, ...]:
    """Those of a half.

    Raises
    ------
    ValueError
        If there is no such half.
    """
    found = tuple(network for network in NETWORKS if network.half == name)
    if not found:
        raise ValueError(f"half must be design or holdout, got {name!r}")
    return found


# --- starts ------------------------------------------------------------------------------------------------------


def _matrices(module: nn.Module) -> list[nn.Parameter]:
    return [p for p in module.parameters() if p.ndim > 1]


def _he(module: nn.Module) -> None:
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Conv1d | nn.Conv2d):
            nn.init.kaiming_normal_(part.weight, nonlinearity="relu")
            if part.bias is not None:
                nn.init.zeros_(part.bias)


def _scale(module: nn.Module) -> None:
    """All matrices by one factor: the logits are homogeneous in them while biases are 0."""
    matrices = _matrices(module)
    factor = float(zone.upper_edge(_EDGE["samples"], gap_density=_EDGE["gap_density"], depth=len(matrices)))
    with torch.no_grad():
        for matrix in matrices:
            matrix.mul_(factor)


# --- modules -----------------------------------------------------------------------------------------------------


def _perceptron(
    *widths: int, act: type[nn.Module] = nn.ReLU, norm: bool = False, drop: float = 0.0
) -> nn.Module:
    layers: list[nn.Module] = [nn.Flatten()]
    for fan_in, out in pairwise(widths[:-1]):
        layers += [nn.Linear(fan_in, out), *([nn.LayerNorm(out)] if norm else []), act()]
        layers += [nn.Dropout(drop)] if drop else []
    return nn.Sequential(*layers, nn.Linear(*widths[-2:]))


def _lenet_300_100() -> nn.Module:
    return _perceptron(784, 300, 100, 10)


def _lenet_5(pool: type[nn.Module], channels: int = 3) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(channels, 6, 5), nn.ReLU(), pool(2), nn.Conv2d(6, 16, 5), nn.ReLU(), pool(2),
        _perceptron(400, 120, 84, 10),
    )  # fmt: skip


def _convolutions(
    channels: int, *widths: int, norm: bool = False, act: type[nn.Module] = nn.ReLU
) -> nn.Module:
    layers: list[nn.Module] = []
    for fan_in, out in zip((channels, *widths[:-1]), widths, strict=True):
        layers += [nn.Conv2d(fan_in, out, 3, padding=1), *([nn.BatchNorm2d(out)] if norm else []), act()]
        layers += [nn.AvgPool2d(2)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(4 * widths[-1], 10))


class _Residual(nn.Module):
    """Two convolutions with batch normalisation, beside the input itself."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inside = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        return (x + self.inside(x)).relu()


def _residual(channels: int, width: int, blocks: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(channels, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.AvgPool2d(2),
        *(_Residual(width) for _ in range(blocks)),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10),
    )  # fmt: skip


class _Transformer(nn.Module):
    """Attention among places, each with a vector of its own; the mean over the places is read out."""

    def __init__(
        self, read: nn.Module, places: int, outputs: int, *, width: int = 32, drop: float = 0.0
    ) -> None:
        super().__init__()
        self.read, self.places = read, nn.Parameter(0.1 * torch.randn(places, width))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 2 * width, drop, "gelu", batch_first=True, norm_first=True)
            for _ in range(2)
        )
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, outputs)

    def forward(self, x: Tensor) -> Tensor:
        x = self.read(x) + self.places
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x).mean(1))


def _vision(width: int = 32) -> nn.Module:
    read = nn.Sequential(nn.Conv2d(3, width, 4, stride=4), nn.Flatten(2), _Turned())
    return _Transformer(read, 16, 10, width=width)


class _Turned(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.transpose(1, 2)


def _letters(*widths: int, act: type[nn.Module] = nn.ReLU, norm: bool = False) -> nn.Module:
    return nn.Sequential(
        nn.Embedding(SYMBOLS, 8), _perceptron(8 * CONTEXT, *widths, SYMBOLS, act=act, norm=norm)
    )


def _letter_convolutions(width: int) -> nn.Module:
    return nn.Sequential(
        nn.Embedding(SYMBOLS, 8), _Turned(), nn.Conv1d(8, width, 3), nn.ReLU(), nn.Conv1d(width, width, 3),
        nn.ReLU(), nn.Flatten(), nn.Dropout(0.1), nn.Linear(width * (CONTEXT - 4), SYMBOLS),
    )  # fmt: skip


# --- the halves --------------------------------------------------------------------------------------------------


def _network(
    half: Half, family: Family, source: Source, start: Start, what: str, module: Callable[[], nn.Module],
    squared: bool = False,
) -> Network:  # fmt: skip
    kind = source.split("-")[0]
    name = f"{what}-{kind}-{start}"
    return Network(
        name=name, family=family, half=half, source=source, start=start, module=module, squared=squared
    )


NETWORKS: tuple[Network, ...] = (
    _network("design", "perceptron", "digits-8", "torch", "relu", lambda: _perceptron(64, 64, 64, 10)),
    _network("design", "perceptron", "digits-8", "he", "deep-relu", lambda: _perceptron(64, 48, 48, 48, 48, 10)),
    _network(
        "design", "perceptron", "digits-8", "torch", "tanh-squared",
        lambda: _perceptron(64, 64, 10, act=nn.Tanh), squared=True,
    ),
    _network("design", "lenet", "digits-28", "edge", "lenet-300-100", _lenet_300_100),
    _network("design", "lenet", "images-32", "torch", "lenet-5", lambda: _lenet_5(nn.MaxPool2d)),
    _network("design", "convolution", "images-16", "torch", "convolutions", lambda: _convolutions(3, 16, 32)),
    _network("design", "convolution", "text", "he", "convolutions", lambda: _letter_convolutions(24)),
    _network(
        "design", "batch-normalised", "images-16", "he", "batch-norm",
        lambda: _convolutions(3, 12, 24, norm=True),
    ),
    _network(
        "design", "layer-normalised", "text", "torch", "layer-norm", lambda: _letters(96, 96, norm=True)
    ),
    _network("holdout", "perceptron", "text", "torch", "gelu", lambda: _letters(96, act=nn.GELU)),
    _network("holdout", "perceptron", "digits-8", "edge", "relu", lambda: _perceptron(64, 80, 40, 10)),
    _network("holdout", "lenet", "digits-28", "torch", "lenet-300-100", _lenet_300_100),
    _network("holdout", "lenet", "images-32", "he", "lenet-5-average", lambda: _lenet_5(nn.AvgPool2d)),
    _network("holdout", "convolution", "images-16", "he", "convolutions", lambda: _convolutions(3, 8, 16, 32)),
    _network(
        "holdout", "batch-normalised", "digits-8", "torch", "batch-norm",
        lambda: _convolutions(1, 16, 16, norm=True),
    ),
    _network(
        "holdout", "layer-normalised", "digits-8", "he", "layer-norm",
        lambda: _perceptron(64, 64, 64, 10, norm=True, drop=0.1),
    ),
    _network("holdout", "residual", "images-16", "torch", "residual", lambda: _residual(3, 12, 2)),
    _network("holdout", "residual", "digits-8", "he", "residual", lambda: _residual(1, 12, 2)),
    _network(
        "holdout", "attention", "text", "torch", "attention",
        lambda: _Transformer(nn.Embedding(SYMBOLS, 32), CONTEXT, SYMBOLS, drop=0.1),
    ),
    _network("holdout", "attention", "images-16", "torch", "attention", _vision),
)  # fmt: skip
