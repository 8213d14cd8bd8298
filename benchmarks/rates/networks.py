"""Networks on which rules for learning rates are judged, in a design and a hold-out half, and their samples.

The halves were fixed before any rule was tried. A rule is made on the *design* half alone, and frozen before the
*holdout* half is run; only the latter has residual networks and attention. Samples are digits, colour images of an
archive, and letters of the project's own texts.
"""

from __future__ import annotations

import string
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from simulate.data import opened, sample as drawn
from theory import zone

SAMPLES = 1024
"""Number of samples of each network; each seed has other samples."""

CONTEXT = 8
"""Number of letters from which the next one is predicted."""

_LETTERS = f"{string.ascii_lowercase} \n0"

SYMBOLS = len(_LETTERS) + 1
"""Number of symbols: letters without case, space, end of line, one for digits, and one for the rest."""

_TEXTS = ("conventions.md", "measure.md", "plan.md", "verdicts.md", "watch.md")
_DOCS = Path(__file__).parents[2] / "docs"


class Samples(NamedTuple):
    """Inputs with samples along the first axis, float32 or numbers of letters, and classes (N,)."""

    inputs: Tensor
    targets: Tensor


def samples_of(source: str, seed: int, *, images: str | None = None, count: int = SAMPLES) -> Samples:
    """Return samples of the data, drawn by the seed.

    `images` is the path of an ``.npz`` archive as for `simulate.data.load_images`, for sources of colour images.

    Examples
    --------
    >>> [tuple(samples_of(s, 0, count=5).inputs.shape) for s in ("digits-8", "text")]
    [(5, 1, 8, 8), (5, 8)]
    """
    rng = np.random.default_rng((seed, 1))
    if source == "text":
        return _windows(rng, count)
    kind, side = source.split("-")
    path, channels = ("digits", 1) if kind == "digits" else (str(images), 3)
    whole = opened(path, (channels, int(side), int(side)))
    return Samples(*drawn(whole, rng, count).tensors(dtype=torch.float32))


def _windows(rng: np.random.Generator, count: int) -> Samples:
    letters = _text()
    starts = rng.choice(len(letters) - CONTEXT, count, replace=False)
    cut = torch.from_numpy(letters[starts[:, None] + np.arange(CONTEXT + 1)])
    return Samples(cut[:, :-1].contiguous(), cut[:, -1].contiguous())


@cache
def _text() -> NDArray[np.int64]:
    text = "\n".join((_DOCS / name).read_text(encoding="utf-8") for name in _TEXTS).lower()
    known = [_LETTERS.find("0" if letter.isdigit() else letter) for letter in text]
    return np.array(known, dtype=np.int64) % SYMBOLS  # -1 is the rest


@dataclass(frozen=True)
class Network:
    """Network with its start.

    Attributes
    ----------
    name, half
        Name, and the half, `design` or `holdout`.
    source
        Source of its samples.
    start
        Torch's default; normal weights of variance 2 / fan-in with biases 0; or these scaled to the upper edge of the
        Goldilocks zone of a batch.
    module
        Function that builds the module, drawing from the global generator.
    squared
        Whether the loss is the squared error against 0 and 1 rather than the cross-entropy.
    """

    name: str
    half: str
    source: str
    start: str
    module: Callable[[], nn.Module]
    squared: bool = False

    def built(self, seed: int) -> nn.Module:
        """Return the module at its start, float32; the global generator is restored.

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
        """Loss function, a mean over the samples."""
        return nn.MSELoss() if self.squared else nn.CrossEntropyLoss()

    def targets(self, classes: Tensor) -> Tensor:
        """Return classes (N,) in the form that the loss takes."""
        return nn.functional.one_hot(classes, 10).float() if self.squared else classes


# --- starts ------------------------------------------------------------------------------------------------------


def _he(module: nn.Module) -> None:
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Conv1d | nn.Conv2d):
            nn.init.kaiming_normal_(part.weight, nonlinearity="relu")
            if part.bias is not None:
                nn.init.zeros_(part.bias)


def _scale(module: nn.Module) -> None:
    """Scale all matrices by one factor; the logits are homogeneous in them while biases are 0.

    It makes the last of 64 samples confident: logits are multiplied by 16.
    """
    matrices = [p for p in module.parameters() if p.ndim > 1]
    factor = float(zone.upper_edge(64, gap_density=0.25, depth=len(matrices)))
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
    return nn.Sequential(*layers, nn.Linear(widths[-2], widths[-1]))


def _convolutions(*widths: int, norm: bool = False) -> nn.Module:
    layers: list[nn.Module] = []
    for fan_in, out in pairwise(widths):
        layers += [nn.Conv2d(fan_in, out, 3, padding=1), *([nn.BatchNorm2d(out)] if norm else [])]
        layers += [nn.ReLU(), nn.AvgPool2d(2)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(4 * widths[-1], 10))


class _Residual(nn.Module):
    """Two convolutions with batch normalisation and a shortcut."""

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
    """Attention over positions with position vectors; the mean over the positions is read out."""

    def __init__(self, read: nn.Module, places: int, outputs: int, *, drop: float = 0.0) -> None:
        super().__init__()
        width = 32
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


class _SwapAxes(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.transpose(1, 2)


def _letters(*widths: int, act: type[nn.Module] = nn.ReLU, norm: bool = False) -> nn.Module:
    return nn.Sequential(
        nn.Embedding(SYMBOLS, 8), _perceptron(8 * CONTEXT, *widths, SYMBOLS, act=act, norm=norm)
    )


def _letter_convolutions(width: int) -> nn.Module:
    return nn.Sequential(
        nn.Embedding(SYMBOLS, 8), _SwapAxes(), nn.Conv1d(8, width, 3), nn.ReLU(), nn.Conv1d(width, width, 3),
        nn.ReLU(), nn.Flatten(), nn.Dropout(0.1), nn.Linear(width * (CONTEXT - 4), SYMBOLS),
    )  # fmt: skip


# --- the halves --------------------------------------------------------------------------------------------------


_Row = tuple[str, str, str, Callable[[], nn.Module]]

_ROWS: dict[str, tuple[_Row, ...]] = {
    "design": (
        ("relu", "digits-8", "torch", lambda: _perceptron(64, 64, 64, 10)),
        ("deep-relu", "digits-8", "he", lambda: _perceptron(64, 48, 48, 48, 48, 10)),
        ("tanh-squared", "digits-8", "torch", lambda: _perceptron(64, 64, 10, act=nn.Tanh)),
        ("convolutions", "images-8", "torch", lambda: _convolutions(3, 16, 32)),
        ("convolutions", "text", "he", lambda: _letter_convolutions(24)),
        ("batch-norm", "images-8", "he", lambda: _convolutions(3, 12, 24, norm=True)),
        ("layer-norm", "text", "torch", lambda: _letters(96, 96, norm=True)),
    ),
    "holdout": (
        ("gelu", "text", "torch", lambda: _letters(96, act=nn.GELU)),
        ("relu", "digits-8", "edge", lambda: _perceptron(64, 80, 40, 10)),
        ("convolutions", "images-8", "he", lambda: _convolutions(3, 8, 16, 32)),
        ("batch-norm", "digits-8", "torch", lambda: _convolutions(1, 16, 16, norm=True)),
        (
            "layer-norm", "digits-8", "he",
            lambda: _perceptron(64, 64, 64, 10, norm=True, drop=0.1),
        ),
        ("residual", "images-8", "torch", lambda: _residual(3, 12, 2)),
        ("residual", "digits-8", "he", lambda: _residual(1, 12, 2)),
        (
            "attention", "text", "torch",
            lambda: _Transformer(nn.Embedding(SYMBOLS, 32), CONTEXT, SYMBOLS, drop=0.1),
        ),
        ("attention", "images-8", "torch", lambda: _Transformer(
            nn.Sequential(nn.Conv2d(3, 32, 4, stride=4), nn.Flatten(2), _SwapAxes()), 4, 10
        )),
    ),
}  # fmt: skip
"""Networks of design and hold-out: builder, source, start and module of each."""

NETWORKS = tuple(
    Network(f"{what}-{source.split('-')[0]}-{start}", half, source, start, module, "squared" in what)
    for half, rows in _ROWS.items()
    for what, source, start, module in rows
)
