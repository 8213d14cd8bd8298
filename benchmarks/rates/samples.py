"""What the networks learn: digits, colour images or a stand-in for them, and the letters of the project's own texts."""

from __future__ import annotations

import string
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from simulate.data import Images, digits, opened, sample as drawn

__all__ = ["CONTEXT", "SAMPLES", "SYMBOLS", "Samples", "Source", "samples_of", "stand_in"]

Source = Literal["digits-8", "digits-28", "images-16", "images-32", "text"]

SAMPLES = 1024
"""Of each network, other ones for each seed."""

CONTEXT = 16
"""Letters from which the next one is told."""

SYMBOLS = len(string.ascii_lowercase) + 4
"""Letters without case, space, end of line, digits as one, and the rest as one."""

_TEXTS = ("conventions.md", "measure.md", "plan.md", "verdicts.md", "watch.md")
_DOCS = Path(__file__).parents[2] / "docs"
_PICTURES, _SIDE = 2000, 32


class Samples(NamedTuple):
    """Inputs along the first axis, float32, or whole numbers of letters; and classes (N,)."""

    inputs: Tensor
    targets: Tensor


def samples_of(source: Source, seed: int, *, images: str | None = None, count: int = SAMPLES) -> Samples:
    """Some of the data, drawn by the seed.

    Parameters
    ----------
    source
        Kind and size.
    seed
        Of the draw.
    images
        Path of an ``.npz`` archive as for `simulate.data.load_images`; the stand-in if None.
    count
        How many.

    Examples
    --------
    >>> [tuple(samples_of(s, 0, count=5).inputs.shape) for s in ("digits-8", "images-16", "text")]
    [(5, 1, 8, 8), (5, 3, 16, 16), (5, 16)]
    """
    rng = np.random.default_rng((seed, 1))
    if source == "text":
        return _windows(rng, count)
    kind, side = source.split("-")
    whole = digits((1, int(side), int(side))) if kind == "digits" else _images(images, int(side))
    return Samples(*drawn(whole, rng, count).tensors(dtype=torch.float32))


def _images(path: str | None, side: int) -> Images:
    if path is not None:
        return opened(path, (3, side, side))
    whole = stand_in()
    small = functional.adaptive_avg_pool2d(torch.from_numpy(whole.images), side).numpy()
    return Images(small / small.std(), whole.labels)


@cache
def stand_in() -> Images:
    """Ten classes of coloured stripes under noise: which way and how dense, at any place and in any colour.

    No pixel by itself tells anything of the class, as in photographs.

    Examples
    --------
    >>> stand_in().images.shape, round(float(stand_in().images.std()), 9)
    ((2000, 3, 32, 32), 1.0)
    """
    rng = np.random.default_rng(0)
    labels = np.arange(_PICTURES) % 10
    colours = rng.standard_normal((_PICTURES, 3, 1, 1))
    stripes = colours / np.linalg.norm(colours, axis=1, keepdims=True) * _stripes(rng, labels)[:, None]
    noise = rng.standard_normal((_PICTURES, 3, _SIDE, _SIDE))
    images = 1.5 * stripes + noise
    return Images((images - images.mean()) / images.std(), labels.astype(np.int64))


def _stripes(rng: np.random.Generator, labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Waves in five directions and two lengths, (N, side, side)."""
    angle, length = np.pi * (labels % 5) / 5, np.where(labels < 5, 10.0, 6.0)
    y, x = np.mgrid[:_SIDE, :_SIDE]
    along = np.cos(angle)[:, None, None] * x + np.sin(angle)[:, None, None] * y
    phase = rng.uniform(0, 2 * np.pi, len(labels))
    return np.sqrt(2) * np.sin(2 * np.pi * along / length[:, None, None] + phase[:, None, None])


def _windows(rng: np.random.Generator, count: int) -> Samples:
    letters = _letters()
    starts = rng.choice(len(letters) - CONTEXT, count, replace=False)
    cut = torch.from_numpy(letters[starts[:, None] + np.arange(CONTEXT + 1)])
    return Samples(cut[:, :-1].contiguous(), cut[:, -1].contiguous())


@cache
def _letters() -> NDArray[np.int64]:
    text = "\n".join((_DOCS / name).read_text(encoding="utf-8") for name in _TEXTS).lower()
    return np.array([_symbol(letter) for letter in text], dtype=np.int64)


def _symbol(letter: str) -> int:
    known = f"{string.ascii_lowercase} \n"
    if letter in known:
        return known.index(letter)
    return len(known) + (not letter.isdigit())
