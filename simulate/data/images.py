"""Images and labels: the embedded digits, an ``.npz`` file of your own, or what torchvision finds on disk."""

from __future__ import annotations

import contextlib
import gzip
import importlib
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from simulate import _checks, _memory
from simulate.data.archives import COPIES, LackingError, read_arrays

__all__ = [
    "Images",
    "Split",
    "arrays",
    "digits",
    "load_images",
    "opened",
    "sample",
    "torchvision_images",
]

Split = Literal["train", "test"]

_DIGIT_SIZES = ((1, 28, 28), (1, 8, 8), (3, 32, 32), (1, 4, 4))
_NAMED = {"fashion-mnist": "FashionMNIST", "cifar10": "CIFAR10", "cifar100": "CIFAR100"}
_CHANNELS = (1, 3)
_CONTRAST = 1e-9
"""A standard deviation below this share of the largest pixel is rounding, not an image."""

_LARGEST_LABEL = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Images:
    """Labelled images, standardised to mean 0 and standard deviation 1 over the whole set.

    Parameters
    ----------
    images
        float64 (N, C, H, W), or (N, features) once flattened.
    labels
        int64 (N,), classes counted from 0.
    """

    images: NDArray[np.float64]
    labels: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def classes(self) -> int:
        """Number of classes: one more than the largest label."""
        return int(self.labels.max()) + 1

    def flat(self) -> Images:
        """The same with each image as one row, (N, C H W)."""
        return replace(self, images=self.images.reshape(len(self), -1))

    def tensors(
        self, device: str = "cpu", dtype: torch.dtype = torch.float64
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Images and labels as new tensors on a device."""
        return torch.tensor(self.images, dtype=dtype, device=device), torch.tensor(self.labels, device=device)


@cache
def digits(size: tuple[int, int, int] = (1, 28, 28)) -> Images:
    """Return the 1797 handwritten digits of scikit-learn's `load_digits`, 8 x 8, resized.

    Parameters
    ----------
    size
        (channels, height, width): (1, 8, 8) as they are; (1, 28, 28) and (3, 32, 32) bilinear, the channels
        equal; (1, 4, 4) by averaging 2 x 2 pixels.

    Returns
    -------
    Images, read once per process and shared: the arrays are read-only.

    Raises
    ------
    ValueError
        If the size is none of these.

    Examples
    --------
    >>> digits((1, 8, 8)).images.shape, digits((1, 8, 8)).classes
    ((1797, 1, 8, 8), 10)
    """
    if size not in _DIGIT_SIZES:
        raise ValueError(f"size must be one of {', '.join(map(str, _DIGIT_SIZES))}, got {size!r}")
    table = _digits()
    pixels = _resized(torch.from_numpy(table[:, :-1].reshape(-1, 1, 8, 8)), size)
    images = _standardised(pixels.numpy(), "digits")
    labels = table[:, -1].astype(np.int64)
    for array in (images, labels):
        array.flags.writeable = False
    return Images(images, labels)


def _digits() -> NDArray[np.float64]:
    """Return pixels and label of each digit, (1797, 65)."""
    with (files("simulate.data") / "digits.csv.gz").open("rb") as packed, gzip.open(packed, "rt") as lines:
        return np.loadtxt(lines, delimiter=",")


def load_images(path: str | os.PathLike[str], *, split: Split = "train") -> Images:
    """Images and labels of an ``.npz`` archive with ``x_train, y_train`` and perhaps ``x_test, y_test``.

    Parameters
    ----------
    path
        Images as uint8 or float, (N, H, W), (N, H, W, C) or (N, C, H, W) with 1 or 3 channels; integer labels
        from 0, (N,) or (N, 1). Pickled objects are never read.
    split
        ``train`` or ``test``. Both are standardised by the mean and standard deviation of the training
        images.

    Returns
    -------
    Images of shape (N, C, H, W).

    Raises
    ------
    ValueError
        If the file is missing or damaged, holds pickles, lacks an array, an array has the wrong shape or type,
        or the images do not fit into memory. The message names the path and says what to do.
    """
    _require_split(split)
    needed = ["x_train"] if split == "train" else ["x_train", "x_test"]
    arrays = read_arrays(Path(path), [*needed, f"y_{split}"])
    # the training pixels set the scale of both splits
    train, *rest = (_channels_first(arrays[name], name, path) for name in needed)
    wanted = rest[0] if rest else train
    labels = _integer_labels(arrays[f"y_{split}"], len(wanted), f"y_{split}", path)
    return Images(_standardised(wanted, str(path), reference=train), labels)


@cache
def opened(source: str, size: tuple[int, int, int]) -> Images:
    """The digits, or the training images of an ``.npz`` archive, at the size a network wants.

    Parameters
    ----------
    source
        ``digits``, or the path of an archive as for :func:`load_images`.
    size
        (channels, height, width). Colours are averaged where one channel is wanted and the only channel is
        repeated where three are; pixels are resized bilinearly, smoothed first where they become fewer.

    Returns
    -------
    Images, standardised at that size, read once per process and shared: the arrays are read-only.

    Raises
    ------
    ValueError
        If the archive cannot be used, see :func:`load_images`, or the images cannot be had at that size.

    Examples
    --------
    >>> opened("digits", (1, 8, 8)).images.shape
    (1797, 1, 8, 8)
    """
    if source == "digits":
        return digits(size)
    _require_size(size)
    loaded = load_images(source)
    what = f"{len(loaded)} images of size {size}"
    needed = 8 * (loaded.images.size + COPIES * len(loaded) * math.prod(size))
    _memory.require_free("size", needed, what, advice="use a smaller size or fewer images")
    images = _standardised(_fitted(torch.from_numpy(loaded.images), size).numpy(), source)
    for array in (images, loaded.labels):
        array.flags.writeable = False
    return Images(images, loaded.labels)


def torchvision_images(name: str, root: str | os.PathLike[str], *, split: Split = "train") -> Images:
    """A torchvision data set that is already below `root`; nothing is ever downloaded.

    Parameters
    ----------
    name
        ``fashion-mnist``, ``cifar10`` or ``cifar100``.
    root
        The folder given to torchvision when the set was fetched.
    split
        ``train`` or ``test``. Both are standardised by the mean and standard deviation of the training
        images.

    Raises
    ------
    ValueError
        If the name is unknown, torchvision is not installed, or the files are not there.
    """
    _require_split(split)
    if name not in _NAMED:
        raise ValueError(f"name must be one of {', '.join(_NAMED)}, got {name!r}")
    try:
        datasets = importlib.import_module("torchvision.datasets")
    except ImportError:
        raise ValueError(f"data {name!r} needs the vision extra: pip install 'losscurv[vision]'") from None
    train = _torchvision(datasets, name, root, train=True)
    wanted = train if split == "train" else _torchvision(datasets, name, root, train=False)
    pixels, reference = (_channels_first(np.asarray(d.data), name, root) for d in (wanted, train))
    labels = _integer_labels(np.asarray(wanted.targets), len(pixels), name, root)
    return Images(_standardised(pixels, name, reference=reference), labels)


def arrays(path: str | os.PathLike[str], *choices: Sequence[str]) -> list[NDArray[Any]]:
    """Arrays of an ``.npz`` archive of any kind of data: those of the first choice of names that it holds.

    Parameters
    ----------
    path
        The archive. Pickled objects are never read.
    choices
        Names; the first ones if it holds none of the choices, for the message.

    Raises
    ------
    ValueError
        If the file is missing or damaged, holds pickles or lacks an array, or the arrays do not fit into memory.
    """
    for names in choices:
        with contextlib.suppress(LackingError):
            return list(read_arrays(Path(path), list(names)).values())
    return list(read_arrays(Path(path), list(choices[0])).values())


def sample(images: Images, rng: np.random.Generator, count: int, *, balanced: bool = False) -> Images:
    """Draw `count` of the images without replacement, in random order.

    Parameters
    ----------
    images
        What to draw from; the draw is not standardised anew.
    rng
        Generator.
    count
        How many.
    balanced
        True: the same number from every class that occurs.

    Raises
    ------
    ValueError
        If there are not so many images, or not as many in a class, or `count` does not divide among the
        classes.

    Examples
    --------
    >>> few = sample(digits((1, 8, 8)), np.random.default_rng(0), 30, balanced=True)
    >>> np.bincount(few.labels).tolist()
    [3, 3, 3, 3, 3, 3, 3, 3, 3, 3]
    """
    if isinstance(count, int) and not 1 <= count <= len(images):
        raise ValueError(f"count must be between 1 and the {len(images)} images there are, got {count!r}")
    count = _checks.natural("count", count)
    chosen = (
        _balanced(images.labels, rng, count) if balanced else rng.choice(len(images), count, replace=False)
    )
    return Images(images.images[chosen], images.labels[chosen])


def _balanced(labels: NDArray[np.int64], rng: np.random.Generator, count: int) -> NDArray[np.int64]:
    classes, available = np.unique(labels, return_counts=True)
    each, remainder = divmod(count, len(classes))
    if remainder:
        raise ValueError(
            f"count must be a multiple of the {len(classes)} classes where balanced, got {count!r}"
        )
    if each > available.min():
        scarce = classes[available.argmin()]
        raise ValueError(
            f"count must be at most {available.min() * len(classes)} where balanced, for class {scarce} has"
            f" only {available.min()} images, got {count!r}"
        )
    return rng.permutation(
        np.concatenate([rng.choice(np.flatnonzero(labels == c), each, replace=False) for c in classes])
    )


def _resized(pixels: torch.Tensor, size: tuple[int, int, int]) -> torch.Tensor:
    from torch.nn import functional

    channels, height, width = size
    if height < pixels.shape[-1]:
        return functional.adaptive_avg_pool2d(pixels, (height, width))
    pixels = functional.interpolate(pixels, size=(height, width), mode="bilinear", align_corners=False)
    return pixels.repeat(1, channels, 1, 1)


def _fitted(pixels: torch.Tensor, size: tuple[int, int, int]) -> torch.Tensor:
    from torch.nn import functional

    channels, height, width = size
    if channels == 1:
        pixels = pixels.mean(1, keepdim=True)
    pixels = functional.interpolate(
        pixels, size=(height, width), mode="bilinear", align_corners=False, antialias=True
    )
    return pixels if pixels.shape[1] == channels else pixels.repeat(1, channels, 1, 1)


def _standardised(
    images: NDArray[Any], source: str, *, reference: NDArray[Any] | None = None
) -> NDArray[np.float64]:
    with np.errstate(over="ignore"):  # of a wider type: infinite then, and refused below
        values = images.astype(np.float64)
        scale = values if reference is None or reference is images else reference.astype(np.float64)
    if not (np.isfinite(values).all() and np.isfinite(scale).all()):
        raise ValueError(
            f"images of {source} must be finite, got NaN or infinity; replace them and save again"
        )
    mean, deviation = _mean_and_deviation(scale, source)
    return (values - mean) / deviation


def _mean_and_deviation(pixels: NDArray[np.float64], source: str) -> tuple[float, float]:
    with np.errstate(over="ignore", invalid="ignore"):
        mean, deviation = float(pixels.mean()), float(pixels.std())
    if not math.isfinite(deviation):
        raise ValueError(
            f"images of {source} must have a finite mean square, got pixels up to {np.abs(pixels).max():g};"
            " scale them down and save again"
        )
    if deviation <= _CONTRAST * np.abs(pixels).max():
        raise ValueError(
            f"images of {source} must not all be the same grey, got only {mean:g}; save real images"
        )
    return mean, deviation


def _channels_first(pixels: NDArray[Any], name: str, path: object) -> NDArray[Any]:
    rule = "(N, H, W), (N, H, W, C) or (N, C, H, W) with 1 or 3 channels, N > 0"
    if pixels.dtype.kind not in "uif":
        raise ValueError(
            f"{name} of {path} must be uint8 or float, got {pixels.dtype}; convert it and save again"
        )
    first, last = (pixels.ndim == 4 and pixels.shape[axis] in _CHANNELS for axis in (1, 3))
    if pixels.size == 0 or not (pixels.ndim == 3 or first or last):
        raise ValueError(f"{name} of {path} must be {rule}, got {pixels.shape}; reshape it and save again")
    if first and last:
        raise ValueError(
            f"{name} of {path} must show where its channels are, got {pixels.shape}, which reads both ways;"
            " save images wider than 3"
        )
    if pixels.ndim == 3:
        return pixels[:, None]
    return pixels if first else np.moveaxis(pixels, 3, 1)


def _integer_labels(labels: NDArray[Any], count: int, name: str, path: object) -> NDArray[np.int64]:
    if labels.dtype.kind not in "iu":
        raise ValueError(f"{name} of {path} must be integers, got {labels.dtype}; save labels.astype(int)")
    if labels.shape not in ((count,), (count, 1)):
        raise ValueError(f"{name} of {path} must be one label per image, ({count},), got {labels.shape}")
    if labels.min() < 0:
        raise ValueError(f"{name} of {path} must be classes from 0, got {labels.min()}; renumber them")
    if labels.max() > _LARGEST_LABEL:
        raise ValueError(f"{name} of {path} must be classes from 0, got {labels.max()}; renumber them")
    return labels.reshape(count).astype(np.int64)


def _torchvision(datasets: Any, name: str, root: str | os.PathLike[str], *, train: bool) -> Any:
    try:
        return getattr(datasets, _NAMED[name])(root=os.fspath(root), train=train, download=False)
    except (OSError, RuntimeError) as error:
        fetch = f"torchvision.datasets.{_NAMED[name]}({os.fspath(root)!r}, download=True)"
        raise ValueError(
            f"data {name!r} must be below {root}, got {error}; fetch it once with {fetch}"
        ) from None


def _require_size(size: tuple[int, int, int]) -> None:
    channels, *sides = (_checks.natural("size", side) for side in size)
    if channels not in _CHANNELS or len(sides) != 2:
        raise ValueError(f"size must be (channels, height, width) with 1 or 3 channels, got {size!r}")


def _require_split(split: str) -> None:
    if split not in ("train", "test"):
        raise ValueError(f"split must be train or test, got {split!r}")
