"""Archives made to crash, to run code or to fill the memory: each is refused in one line that names it."""

import io
import os
import pickle
import struct
import tracemalloc
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose

from simulate import _memory, data
from tests.refusals import refusal

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 5, 5), dtype=np.uint8)
LABELS = np.array([0, 1, 2, 0, 1, 2])


def archive(folder: Path, **arrays: Any) -> Path:
    path = folder / "set.npz"
    np.savez(path, **{"x_train": PIXELS, "y_train": LABELS} | arrays)
    return path


def raw(folder: Path, *images: bytes) -> Path:
    """An archive of raw images, in parts, compressed."""
    path = folder / "raw.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as made:
        with made.open("x_train.npy", "w") as member:
            member.writelines(images)
        labels = io.BytesIO()
        np.save(labels, LABELS)
        made.writestr("y_train.npy", labels.getvalue())
    return path


def header(text: str, version: tuple[int, int] = (1, 0)) -> bytes:
    """The beginning of a stored array that claims whatever the text says."""
    body = text.encode("latin1")
    length = struct.pack("<H" if version == (1, 0) else "<I", len(body))
    return np.lib.format.MAGIC_PREFIX + bytes(version) + length + body


def described(kind: Any = "'<f8'", order: Any = False, shape: Any = (6, 5, 5), end: str = "") -> str:
    return f"{{'descr': {kind}, 'fortran_order': {order}, 'shape': {shape}}}{end}\n"


def refused(path: Path, match: str) -> int:
    """Check that a file is refused in one line; return the peak of allocated bytes."""
    tracemalloc.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with refusal(match) as caught:
                data.load_images(path)
        assert str(path) in str(caught.value) and len(str(caught.value).splitlines()) == 1
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


class Planted:
    """Creates a folder when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


def test_a_planted_pickle_is_not_run(tmp_path: Path) -> None:
    trap, bare = tmp_path / "trap", tmp_path / "bare.npz"
    planted, text = np.array([Planted(trap)] * 6, dtype=object), pickle.dumps(Planted(trap))
    for arrays in (
        {"x_train": planted},
        {"y_train": planted},
        {"y_train": planted.astype([("trap", object)])},
    ):
        refused(archive(tmp_path, **arrays), "must hold plain arrays, got pickled objects in [xy]_train")
    bare.write_bytes(text)
    refused(bare, "must be an .npz archive, got a file of another format")
    refused(raw(tmp_path, text), "got raw bytes")
    refused(raw(tmp_path, header(described("'|O'", shape=(6,))), text), "pickled objects")
    assert not trap.exists()
    pickle.loads(text)  # the trap works
    assert trap.exists()


def test_what_inflates_beyond_the_memory_is_not_inflated(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(_memory, "available", lambda device: 2.0**30)
    count, part = 1 << 6, bytes(1 << 20)
    claim = header(described("'|u1'", shape=(count << 14, 8, 8)))
    bomb = raw(tmp_path, claim, *[part] * count)
    assert bomb.stat().st_size < (count << 20) / 100
    message = r"raw.npz must be small enough for memory: its arrays .* about 2.1 GiB, got 1.0 GiB"
    assert refused(bomb, message) < 1 << 20
    assert refused(raw(tmp_path, b"no array", *[part] * count), "got raw bytes") < 1 << 20
    long = np.lib.format.MAGIC_PREFIX + bytes((2, 0)) + struct.pack("<I", 1 << 25)
    assert refused(raw(tmp_path, long, *[part] * count), "must be undamaged") < 1 << 20


def test_a_lone_array_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "lone.npz"
    with path.open("wb") as file:
        file.write(header(described("'|u1'", shape=(1 << 25,))))
        file.truncate(1 << 25)
    assert refused(path, "must be an .npz archive, got a single array") < 1 << 20


@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
@pytest.mark.parametrize("shape", [(60, 5, 5), (10**18, 8, 8), (10**400, 2, 2)])
def test_a_header_that_claims_more_than_there_is_is_damage(tmp_path: Path, shape: Any, version: Any) -> None:
    refused(raw(tmp_path, header(described(shape=shape), version)), "got an array of shape .* bytes")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "{'descr': '<f8'}",
        described(order=7),
        described(shape=(-6, 5, 5)),
        described(shape=(6.0, 5, 5)),
        described("'<q99'"),
        described(None),
        described(end=" " * 60_000),
        "__import__('os').mkdir('trap')",
        "(" * 900,
        "\x00\xff",
    ],
)
def test_a_header_that_is_none_is_damage(tmp_path: Path, text: str, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused(raw(tmp_path, header(text), bytes(1200)), "must be undamaged, got ")
    assert not (tmp_path / "trap").exists()


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("x", np.float64(3), "x_train of .* must be .*N > 0, got \\(\\); reshape"),
        ("x", np.zeros((0, 5, 5)), r"got \(0, 5, 5\); reshape"),
        ("x", PIXELS > 9, "must be uint8 or float, got bool"),
        ("x", PIXELS.astype(complex), "must be uint8 or float, got complex128"),
        ("x", np.full((6, 5, 5), np.nan), "must be finite, got NaN or infinity"),
        ("x", np.full((6, 5, 5), 0.1), "must not all be the same grey, got only 0.1"),
        ("x", PIXELS * 1e-320, "must not all be the same grey"),
        ("x", PIXELS * 1e300, r"must have a finite mean square, got pixels up to 2\..*e\+302; scale them"),
        ("x", np.longdouble("1e4000") * PIXELS, "must be finite, got NaN or infinity"),
        ("y", LABELS.astype(float), "y_train of .* must be integers, got float64"),
        ("y", LABELS[:5], r"must be one label per image, \(6,\), got \(5,\)"),
        ("y", LABELS - 1, "must be classes from 0, got -1; renumber them"),
        ("y", LABELS.astype(np.uint64) + 2**63, "must be classes from 0, got 9223372036854775810; renumber"),
        ("y", LABELS + 2**40, "must be classes from 0, got 1099511627778; renumber them"),
    ],
)
def test_what_are_no_images_or_labels_is_refused(tmp_path: Path, name: str, array: Any, message: str) -> None:
    refused(archive(tmp_path, **{f"{name}_train": array}), message)


@pytest.mark.parametrize(
    "twin",
    [
        np.asfortranarray(PIXELS),
        PIXELS.astype(">u2"),
        PIXELS.astype(">f4"),
        PIXELS.astype(np.longdouble),
        PIXELS[:, :, :, None],
    ],
)
def test_order_and_type_of_the_numbers_do_not_matter(tmp_path: Path, twin: Any) -> None:
    expected = (PIXELS - PIXELS.mean()) / PIXELS.std()
    for labels in (LABELS, LABELS.astype(">i2")[:, None], LABELS.astype(np.uint64)):
        found = data.load_images(archive(tmp_path, x_train=twin, y_train=labels))
        assert_allclose(found.images[:, 0], expected, atol=1e-12)
        assert found.labels.tolist() == LABELS.tolist() and found.labels.dtype == np.int64


def test_what_is_no_file_of_its_own_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, message in (
        (tmp_path, "must be a plain file, got a folder"),
        (tmp_path / "pipe", "must be a plain file, got a pipe or a device"),
        (Path("/dev/zero"), "must be a plain file, got a pipe or a device"),
        (tmp_path / "a\0b", r"^file not found: "),
    ):
        with refusal(message):
            data.load_images(path)


@settings(deadline=None, max_examples=60, derandomize=True)
@given(st.binary(max_size=80), st.integers(0, 700), st.booleans())
def test_any_bytes_anywhere_are_one_clear_line(tmp_path_factory, junk: bytes, at: int, tail: bool) -> None:
    path = archive(tmp_path_factory.getbasetemp())
    text = path.read_bytes()
    path.write_bytes(text[:at] + junk + (text[at + len(junk) :] if tail else b""))
    told = ""
    try:
        data.load_images(path)
    except ValueError as error:
        told = str(error)
    assert not told or (str(path) in told and len(told.splitlines()) == 1)


def test_a_wrong_checksum_is_damage(tmp_path: Path) -> None:
    path = archive(tmp_path)
    text = bytearray(path.read_bytes())
    text[text.index(PIXELS.tobytes())] ^= 255
    path.write_bytes(bytes(text))
    refused(path, "must be undamaged, got BadZipFile")


@pytest.mark.parametrize(
    ("size", "message"),
    [
        ((2, 8, 8), r"with 1 or 3 channels, got \(2, 8, 8\)"),
        ((1, 8), r"must be \(channels, height, width\)"),
        ((1, 0, 8), "size must be a positive integer, got 0"),
        ((1, 10**9, 10**9), "size must be small enough for memory: 6 images of size .* use a smaller size"),
        ((1, 10**400, 8), r"size must be less than 2\*\*63"),
    ],
)
def test_sizes_that_cannot_be_had_are_refused(tmp_path: Path, size: Any, message: str) -> None:
    with refusal(message):
        data.opened(str(archive(tmp_path)), size)


def test_images_whose_detail_vanishes_at_the_size_are_refused(tmp_path: Path) -> None:
    """A chessboard is grey from afar: what is left there is rounding, blown up to standard deviation one."""
    board = np.tile(np.indices((32, 32)).sum(0) % 2, (6, 1, 1)).astype(np.uint8)
    path = archive(tmp_path, x_train=board)
    assert len(data.load_images(path)) == 6
    with refusal("must not all be the same grey"):
        data.opened(str(path), (1, 1, 1))
    wide = archive(tmp_path, x_train=np.arange(6 * 40 * 4.0).reshape(6, 40, 4))  # nor need they be square
    assert data.opened(str(wide), (1, 28, 28)).images.shape == (6, 1, 28, 28)
