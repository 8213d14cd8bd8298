"""Reading an ``.npz`` archive that anyone may have made: what is wrong with it is said, nothing large is inflated."""

from __future__ import annotations

import io
import math
import struct
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from simulate import _memory

__all__ = ["COPIES", "LackingError", "read_arrays", "require_file"]

_SAVE_HINT = "save it with numpy.savez(path, x_train=images, y_train=labels)"
_MAGIC = b"PK"

COPIES = 4
"""Float64 copies of the images that are there at once while they are standardised or resized."""

_HEADER_BYTES = 1 << 14
"""More than numpy accepts as the header of an array."""

_SHOWN = 8
"""Names of arrays in a message."""

# what the zip, zlib and npy readers raise on a damaged archive, beside ValueError; NotImplementedError is zipfile's
# word for a way of packing that it does not know
_DAMAGED = (
    EOFError,
    KeyError,
    MemoryError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    SyntaxError,
    TypeError,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)


class LackingError(ValueError):
    """An archive without an array."""


def require_file(path: Path) -> None:
    """Without opening it, so that it costs nothing to ask before other work."""
    if not path.exists():
        raise ValueError(f"file not found: {path}; check the path or {_SAVE_HINT}")
    if not path.is_file():
        got = "a folder" if path.is_dir() else "a pipe or a device"
        raise ValueError(f"data {path} must be a plain file, got {got}; check the path or {_SAVE_HINT}")


def read_arrays(path: Path, names: list[str]) -> dict[str, NDArray[Any]]:
    """Return the arrays of these names, in their order."""
    require_file(path)
    # opened here, since numpy leaves a file open that it fails to read
    with _opened(path) as file, _archive(file, path) as archive:
        if missing := [name for name in names if name not in archive.files]:
            got = ", ".join(archive.files[:_SHOWN]) + ", ..." * (len(archive.files) > _SHOWN) or "no array"
            raise LackingError(f"data {path} must hold {', '.join(missing)}, got {got}; {_SAVE_HINT}")
        needed = sum(_bytes_needed(archive, name, path) for name in names)
        _memory.require_free(f"data {path}", needed, "its arrays in float64", advice="save fewer images")
        return {name: _member(archive, name, path) for name in names}


def _opened(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        raise ValueError(f"data {path} must be readable, got {error}; check its permissions") from None


def _archive(file: IO[bytes], path: Path) -> Any:
    _require_archive(file, path)
    try:
        archive = np.load(file, allow_pickle=False)
    except (*_DAMAGED, ValueError) as error:
        got = f"a file that cannot be read ({error})"
        raise ValueError(f"data {path} must be an .npz archive, got {got}; {_SAVE_HINT}") from None
    return archive


def _require_archive(file: IO[bytes], path: Path) -> None:
    """Look at the first bytes: numpy would read an array that stands alone to its end, however long it is."""
    start = file.read(len(np.lib.format.MAGIC_PREFIX))
    file.seek(0)
    if not start.startswith(_MAGIC):
        alone = start == np.lib.format.MAGIC_PREFIX
        got = "a single array" if alone else "a pickle or another format"
        raise ValueError(f"data {path} must be an .npz archive, got {got}; {_SAVE_HINT}")


def _bytes_needed(archive: Any, name: str, path: Path) -> int:
    """What an array and its float64 copies take, by its header alone: a small archive may inflate to anything."""
    member = name if name in archive.zip.namelist() else f"{name}.npy"
    try:
        with archive.zip.open(member) as stream:
            stored = archive.zip.getinfo(member).file_size
            header = _header(stream)
    except (*_DAMAGED, ValueError) as error:
        raise ValueError(f"data {path} must be undamaged, got {error!r} in {name}; copy it again") from None
    if header is None:
        raise ValueError(f"data {path} must hold an array under {name}, got raw bytes; {_SAVE_HINT}")
    shape, dtype = header
    if dtype.hasobject:
        raise ValueError(
            f"data {path} must hold plain arrays, got pickled objects in {name}; save numbers of one shape"
        )
    numbers = math.prod(int(side) for side in shape)
    if not 0 <= numbers * dtype.itemsize <= stored:
        got = f"an array of shape {shape} in {stored} bytes"
        raise ValueError(f"data {path} must be undamaged, got {got} in {name}; copy it again")
    return numbers * (dtype.itemsize + 8 * COPIES)


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]] | None:
    """Shape and type of a stored array; None if it is none."""
    start = io.BytesIO(stream.read(_HEADER_BYTES))  # a header may claim to be 4 GiB long
    if start.read(len(np.lib.format.MAGIC_PREFIX)) != np.lib.format.MAGIC_PREFIX:
        return None
    first = tuple(start.read(2)) == (1, 0)
    read = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(start)
    return shape, dtype


def _member(archive: Any, name: str, path: Path) -> NDArray[Any]:
    try:
        return archive[name]
    except (*_DAMAGED, ValueError) as error:
        raise ValueError(f"data {path} must be undamaged, got {error!r} in {name}; copy it again") from None
