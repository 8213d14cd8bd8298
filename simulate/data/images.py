"""Images and labels: the embedded digits, or an ``.npz`` file, which may come from an untrusted source.

What is wrong with a file is said, and nothing large is inflated.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from simulate import _checks, _memory
from simulate._checks import Floats

_DIGIT_SIZES = ((1, 28, 28), (1, 8, 8), (3, 32, 32), (1, 4, 4))
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

    images: Floats
    labels: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def classes(self) -> int:
        """Number of classes: one more than the largest label."""
        return int(self.labels.max()) + 1

    def flat(self) -> Images:
        """Return the images, each as one row, (N, C H W)."""
        return replace(self, images=self.images.reshape(len(self), -1))

    def tensors(
        self, device: str = "cpu", dtype: torch.dtype = torch.float64
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return images and labels as new tensors on a device."""
        # copies: torch cannot share the read-only arrays of `digits` and `opened`
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
    _checks.one_of("size", size, _DIGIT_SIZES)
    table = _digits()
    pixels = _resized(torch.from_numpy(table[:, :-1].reshape(-1, 1, 8, 8)), size)
    return _shared(_standardised(pixels.numpy(), "digits"), table[:, -1].astype(np.int64))


def _digits() -> Floats:
    """Return pixels and label of each digit, (1797, 65)."""
    with (files("simulate.data") / "digits.csv.gz").open("rb") as packed, gzip.open(packed, "rt") as lines:
        return np.loadtxt(lines, delimiter=",")


def load_images(path: str | os.PathLike[str]) -> Images:
    """Load images and labels of an ``.npz`` archive with ``x_train, y_train``.

    Parameters
    ----------
    path
        Images as uint8 or float, (N, H, W), (N, H, W, C) or (N, C, H, W) with 1 or 3 channels; integer labels
        from 0, (N,) or (N, 1). Pickled objects are never read.

    Returns
    -------
    Images of shape (N, C, H, W).

    Raises
    ------
    ValueError
        If the file is missing or damaged, holds pickles, lacks an array, an array has the wrong shape or type,
        or the images do not fit into memory. The message names the path and says what to do.
    """
    pixels, labels = arrays(path, ("x_train", "y_train"))
    pixels = _channels_first(pixels, path)
    return Images(_standardised(pixels, str(path)), _integer_labels(labels, len(pixels), path))


@cache
def opened(source: str, size: tuple[int, int, int]) -> Images:
    """Return the digits, or the training images of an ``.npz`` archive, at the size that a network takes.

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
        If the archive cannot be used, see :func:`load_images`, or the images cannot be resized to that size.

    Examples
    --------
    >>> opened("digits", (1, 8, 8)).images.shape
    (1797, 1, 8, 8)
    """
    if source == "digits":
        return digits(size)
    channels, *sides = (_checks.natural("size", side) for side in size)
    if channels not in _CHANNELS or len(sides) != 2:
        raise ValueError(f"size must be (channels, height, width) with 1 or 3 channels, got {size!r}")
    loaded = load_images(source)
    what = f"{len(loaded)} images of size {size}"
    needed = 8 * (loaded.images.size + COPIES * len(loaded) * math.prod(size))
    _memory.require_free("size", needed, what, advice="use a smaller size or fewer images")
    images = _fitted(torch.from_numpy(loaded.images), size).numpy()
    return _shared(_standardised(images, source), loaded.labels)


def _shared(images: Floats, labels: NDArray[np.int64]) -> Images:
    # cached: all callers share these arrays
    for array in (images, labels):
        array.flags.writeable = False
    return Images(images, labels)


def arrays(path: str | os.PathLike[str], *choices: Sequence[str]) -> list[NDArray[Any]]:
    """Load arrays of an ``.npz`` archive: those of the first of several choices of names that it contains.

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
            return read_arrays(Path(path), names)
    return read_arrays(Path(path), choices[0])


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
    count = _checks.natural("count", count)
    if count > len(images):
        raise ValueError(f"count must be at most the {len(images)} images there are, got {count}")
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
    channels, height, width = size
    if height < pixels.shape[-1]:
        return functional.adaptive_avg_pool2d(pixels, (height, width))
    pixels = functional.interpolate(pixels, size=(height, width), mode="bilinear", align_corners=False)
    return pixels.repeat(1, channels, 1, 1)


def _fitted(pixels: torch.Tensor, size: tuple[int, int, int]) -> torch.Tensor:
    channels, height, width = size
    if channels == 1:
        pixels = pixels.mean(1, keepdim=True)
    # antialias: without it, shrinking looks at four pixels only, however many lie between
    pixels = functional.interpolate(
        pixels, size=(height, width), mode="bilinear", align_corners=False, antialias=True
    )
    return pixels if pixels.shape[1] == channels else pixels.repeat(1, channels, 1, 1)


def _standardised(images: NDArray[Any], source: str) -> Floats:
    with np.errstate(over="ignore", invalid="ignore"):  # of a wider type: infinite then, and refused below
        values = images.astype(np.float64)
        mean, deviation = float(values.mean()), float(values.std())
    if not np.isfinite(values).all():
        raise ValueError(f"images of {source} must be finite, got NaN or infinity; replace them")
    largest = np.abs(values).max()
    if not math.isfinite(deviation):
        raise ValueError(
            f"images of {source} must have a finite mean square, got pixels up to {largest:g}; scale them down"
        )
    if deviation <= _CONTRAST * largest:
        raise ValueError(
            f"images of {source} must not all be the same grey, got only {mean:g}; save real images"
        )
    return (values - mean) / deviation


def _channels_first(pixels: NDArray[Any], path: object) -> NDArray[Any]:
    rule = "(N, H, W), (N, H, W, C) or (N, C, H, W) with 1 or 3 channels, N > 0"
    if pixels.dtype.kind not in "uif":
        raise ValueError(f"x_train of {path} must be uint8 or float, got {pixels.dtype}; convert it")
    first, last = (pixels.ndim == 4 and pixels.shape[axis] in _CHANNELS for axis in (1, 3))
    if pixels.size == 0 or not (pixels.ndim == 3 or first or last):
        raise ValueError(f"x_train of {path} must be {rule}, got {pixels.shape}; reshape it")
    if first and last:
        raise ValueError(
            f"x_train of {path} must show where its channels are, got {pixels.shape}, which reads both ways;"
            " save images wider than 3"
        )
    if pixels.ndim == 3:
        return pixels[:, None]
    return pixels if first else np.moveaxis(pixels, 3, 1)


def _integer_labels(labels: NDArray[Any], count: int, path: object) -> NDArray[np.int64]:
    if labels.dtype.kind not in "iu":
        raise ValueError(f"y_train of {path} must be integers, got {labels.dtype}; save labels.astype(int)")
    if labels.shape not in ((count,), (count, 1)):
        raise ValueError(f"y_train of {path} must be one label per image, ({count},), got {labels.shape}")
    for end in (labels.max(), labels.min()):
        if not 0 <= end <= _LARGEST_LABEL:
            raise ValueError(f"y_train of {path} must be classes from 0, got {end}; renumber them")
    return labels.reshape(count).astype(np.int64)


# --- an archive that anyone may have made ---

_SAVE_HINT = "save it with numpy.savez(path, x_train=images, y_train=labels)"
COPIES = 4
"""Number of float64 copies of the images in memory while they are standardised or resized."""

_HEADER_BYTES = 1 << 14
"""Bytes beyond the largest header of an array that numpy accepts."""

_SHOWN = 8
"""Most names of arrays in a message."""


class LackingError(ValueError):
    """Raised for an archive that lacks an array."""


def require_file(path: Path) -> None:
    """Refuse a path that is not a file, without opening it, so that the check is cheap before other work."""
    if not path.exists():
        raise ValueError(f"file not found: {path}; check the path or {_SAVE_HINT}")
    if not path.is_file():
        got = "a folder" if path.is_dir() else "a pipe or a device"
        raise ValueError(f"data {path} must be a plain file, got {got}; check the path or {_SAVE_HINT}")


def read_arrays(path: Path, names: Sequence[str]) -> list[NDArray[Any]]:
    """Return the arrays of these names, in their order."""
    require_file(path)
    # opened here, since numpy leaves a file open that it fails to read
    with _readable(path) as file, _archive(file, path) as archive:
        if missing := [name for name in names if name not in archive.files]:
            got = ", ".join(archive.files[:_SHOWN]) + ", ..." * (len(archive.files) > _SHOWN) or "no array"
            raise LackingError(f"data {path} must hold {', '.join(missing)}, got {got}; {_SAVE_HINT}")
        needed = sum(_bytes_needed(archive, name, path) for name in names)
        _memory.require_free(f"data {path}", needed, "its arrays in float64", advice="save fewer images")
        with _undamaged(path):
            return [archive[name] for name in names]


def _readable(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        raise ValueError(f"data {path} must be readable, got {error}; check its permissions") from None


def _archive(file: IO[bytes], path: Path) -> Any:
    """Open an archive recognised by its first bytes: numpy would read all of a bare array, however long."""
    magic = np.lib.format.MAGIC_PREFIX
    start = file.read(len(magic))
    file.seek(0)
    got = "a single array" if start == magic else "a file of another format"
    if start.startswith(b"PK"):
        try:
            # a pickle would run the code of whoever made the file
            return np.load(file, allow_pickle=False)
        except Exception as error:  # the readers of zip and npy raise a dozen kinds
            got = f"a file that cannot be read ({error})"
    raise ValueError(f"data {path} must be an .npz archive, got {got}; {_SAVE_HINT}") from None


@contextlib.contextmanager
def _undamaged(path: Path) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # as above
        raise ValueError(f"data {path} must be undamaged, got {error!r}; copy it again") from None


def _bytes_needed(archive: Any, name: str, path: Path) -> int:
    """Return the bytes of an array and its float64 copies, from its header: a small archive may inflate to any size."""
    # numpy finds an array under its name with and without the ending
    member = name if name in archive.zip.namelist() else f"{name}.npy"
    with _undamaged(path), archive.zip.open(member) as stream:
        stored = archive.zip.getinfo(member).file_size
        header = _header(stream)
    if header is None:
        raise ValueError(f"data {path} must hold an array under {name}, got raw bytes; {_SAVE_HINT}")
    shape, dtype = header
    if dtype.hasobject:
        raise ValueError(
            f"data {path} must hold plain arrays, got pickled objects in {name}; save numbers of one shape"
        )
    numbers = math.prod(int(side) for side in shape)
    # the header may promise more numbers than the archive holds, and numpy allocates them first
    if not 0 <= numbers * dtype.itemsize <= stored:
        got = f"an array of shape {shape} in {stored} bytes"
        raise ValueError(f"data {path} must be undamaged, got {got} in {name}; copy it again")
    return numbers * (dtype.itemsize + 8 * COPIES)


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]] | None:
    """Return shape and type of a stored array; None if the file is not an array."""
    start = io.BytesIO(stream.read(_HEADER_BYTES))  # a header may claim to be 4 GiB long
    if start.read(len(np.lib.format.MAGIC_PREFIX)) != np.lib.format.MAGIC_PREFIX:
        return None
    # the layouts of versions 2 and 3 differ in the encoding of names only
    first = tuple(start.read(2)) == (1, 0)
    read = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(start)
    return shape, dtype
