"""Archives made to crash, to run code or to fill the memory: each is refused in one line that names it."""

import io
import os
import pickle
import struct
import time
import tracemalloc
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose

from simulate import _memory, data
from simulate.data import Images

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 5, 5), dtype=np.uint8)
LABELS = np.array([0, 1, 2, 0, 1, 2])


def archive(folder: Path, **arrays: Any) -> Path:
    path = folder / "set.npz"
    np.savez(path, **arrays)
    return path


def members(path: Path, **contents: bytes) -> Path:
    """An archive of raw members, compressed."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in contents.items():
            made.writestr(f"{name}.npy", content)
    return path


def stored(array: Any, **more: Any) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array(out, np.asanyarray(array), **more)
    return out.getvalue()


def header(text: str, version: tuple[int, int] = (1, 0)) -> bytes:
    """The beginning of a stored array that claims whatever the text says."""
    body = text.encode("latin1")
    length = struct.pack("<H" if version == (1, 0) else "<I", len(body))
    return np.lib.format.MAGIC_PREFIX + bytes(version) + length + body


def refused(path: Path, match: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=match) as caught:
            data.load_images(path)
    assert str(path) in str(caught.value) and len(str(caught.value).splitlines()) == 1


# --- pickles


class Planted:
    """Creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


def test_a_planted_pickle_is_not_run(tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    planted = np.array([Planted(trap)] * 6, dtype=object)
    for arrays in ({"x_train": planted, "y_train": LABELS}, {"x_train": PIXELS, "y_train": planted}):
        refused(archive(tmp_path, **arrays), "must hold plain arrays, got pickled objects in [xy]_train")
    mixed = np.zeros(6, dtype=[("label", int), ("trap", object)])
    mixed["trap"] = planted
    refused(archive(tmp_path, x_train=PIXELS, y_train=mixed), "got pickled objects in y_train")
    bare = tmp_path / "bare.npz"
    bare.write_bytes(pickle.dumps(Planted(trap)))
    refused(bare, "must be an .npz archive, got a pickle or another format")
    refused(members(tmp_path / "raw.npz", x_train=pickle.dumps(Planted(trap)), y_train=b""), "got raw bytes")
    disguised = header("{'descr': '|O', 'fortran_order': False, 'shape': (6,), }\n") + pickle.dumps(planted)
    refused(members(tmp_path / "disguised.npz", x_train=disguised, y_train=stored(LABELS)), "pickled objects")
    assert not trap.exists()
    pickle.loads(pickle.dumps(Planted(trap)))  # the trap works
    assert trap.exists()


# --- more than the memory holds


def zeros(count: int) -> Iterator[bytes]:
    part = bytes(1 << 20)
    for _ in range(count >> 20):
        yield part


def bomb(path: Path, start: bytes, size: int) -> Path:
    """An archive whose images are `start` and then so many zeros, a thousandth of it on the disk."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as made:
        with made.open("x_train.npy", "w") as member:
            member.write(start)
            for part in zeros(size):
                member.write(part)
        made.writestr("y_train.npy", stored(LABELS))
    return path


def allocated(path: Path, match: str) -> int:
    tracemalloc.start()
    try:
        refused(path, match)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_what_inflates_beyond_the_memory_is_refused_by_its_header(tmp_path: Path, monkeypatch) -> None:
    size = 1 << 26
    shape = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({size // 64}, 8, 8), }}\n"
    path = bomb(tmp_path / "bomb.npz", header(shape), size)
    assert path.stat().st_size < size / 100
    monkeypatch.setattr(_memory, "available", lambda device: 2.0**30)

    most = allocated(
        path, r"bomb.npz must be small enough for memory: its arrays .* about 2.1 GiB, got 1.0 GiB"
    )
    assert most < 1 << 20


def test_what_is_no_array_is_not_inflated(tmp_path: Path) -> None:
    assert allocated(bomb(tmp_path / "raw.npz", b"no array", 1 << 25), "got raw bytes") < 1 << 20
    long = np.lib.format.MAGIC_PREFIX + bytes((2, 0)) + struct.pack("<I", 1 << 25)
    assert allocated(bomb(tmp_path / "header.npz", long, 1 << 25), "must be undamaged") < 1 << 20


def test_a_lone_array_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "lone.npz"
    with path.open("wb") as file:
        file.write(header("{'descr': '|u1', 'fortran_order': False, 'shape': (33554432,), }\n"))
        file.truncate(1 << 25)
    assert allocated(path, "must be an .npz archive, got a single array") < 1 << 20


@pytest.mark.parametrize("shape", ["(60, 5, 5)", "(1000000000000000000, 8, 8)", "(9" + "9" * 400 + ", 2, 2)"])
@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
def test_a_header_that_claims_more_than_there_is_is_damage(tmp_path: Path, shape: str, version: Any) -> None:
    claim = header(f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n", version)
    refused(
        members(tmp_path / "claim.npz", x_train=claim, y_train=stored(LABELS)),
        "got an array of shape .* bytes",
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "{'descr': '<f8'}",
        "{'descr': '<f8', 'fortran_order': 7, 'shape': (6, 5, 5)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-6, 5, 5)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (6.0, 5, 5)}",
        "{'descr': '<q99', 'fortran_order': False, 'shape': (6, 5, 5)}",
        "{'descr': None, 'fortran_order': False, 'shape': (6, 5, 5)}",
        "__import__('os').mkdir('trap')",
        "(" * 900,
        "{'descr': '<f8', 'fortran_order': False, 'shape': (6, 5, 5)}" + " " * 60_000,
        "\x00\xff",
    ],
)
def test_a_header_that_is_none_is_damage(tmp_path: Path, text: str, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    sound = members(tmp_path / "header.npz", x_train=header(text) + bytes(1200), y_train=stored(LABELS))
    refused(sound, "must be undamaged, got ")
    assert not (tmp_path / "trap").exists()


# --- arrays that are no images and labels


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (np.float64(3), "x_train of .* must be .*N > 0, got \\(\\); reshape"),
        (np.zeros(6), r"got \(6,\); reshape"),
        (np.zeros((0, 5, 5)), r"got \(0, 5, 5\); reshape"),
        (np.zeros((6, 1, 5, 5, 1)), r"got \(6, 1, 5, 5, 1\); reshape"),
        (PIXELS > 9, "must be uint8 or float, got bool"),
        (PIXELS.astype(complex), "must be uint8 or float, got complex128"),
        (PIXELS.view([("r", "u1")]), "must be uint8 or float, got"),
        (np.full((6, 5, 5), np.nan), "must be finite, got NaN or infinity"),
        (np.full((6, 5, 5), 0.1), "must not all be the same grey, got only 0.1"),
        (PIXELS * 1e-320, "must not all be the same grey"),
        (PIXELS * 1e300, r"must have a finite mean square, got pixels up to 2\..*e\+302; scale them down"),
        (np.longdouble("1e4000") * PIXELS, "must be finite, got NaN or infinity"),
    ],
)
def test_what_is_no_image_is_refused(tmp_path: Path, images: Any, message: str) -> None:
    refused(archive(tmp_path, x_train=images, y_train=LABELS), message)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (LABELS.astype(float), "y_train of .* must be integers, got float64"),
        (np.int64(3), r"must be one label per image, \(6,\), got \(\)"),
        (LABELS[:5], r"must be one label per image, \(6,\), got \(5,\)"),
        (LABELS - 1, "must be classes from 0, got -1; renumber them"),
        (LABELS.astype(np.uint64) + 2**63, "must be classes from 0, got 9223372036854775810; renumber them"),
        (LABELS + 2**40, "must be classes from 0, got 1099511627778; renumber them"),
    ],
)
def test_what_are_no_labels_is_refused(tmp_path: Path, labels: Any, message: str) -> None:
    refused(archive(tmp_path, x_train=PIXELS, y_train=labels), message)


def test_names_of_a_thousand_arrays_are_not_all_told(tmp_path: Path) -> None:
    path = archive(tmp_path, **{f"array{i}": LABELS for i in range(300)})
    refused(path, r"must hold x_train, y_train, got array0, .*array7, \.\.\.; save")


@pytest.mark.parametrize(
    "twin",
    [
        np.asfortranarray(PIXELS),
        PIXELS.astype(">u2"),
        PIXELS.astype(">f4"),
        PIXELS.astype(np.float16),
        PIXELS.astype(np.longdouble),
        PIXELS[:, :, :, None],
        np.repeat(PIXELS, 2, axis=0)[::2],
    ],
)
def test_order_and_type_of_the_numbers_do_not_matter(tmp_path: Path, twin: Any) -> None:
    expected = (PIXELS - PIXELS.mean()) / PIXELS.std()
    for labels in (LABELS, LABELS.astype(">i2")[:, None], LABELS.astype(np.uint64)):
        found = data.load_images(archive(tmp_path, x_train=twin, y_train=labels))
        assert_allclose(found.images[:, 0], expected, atol=1e-12)
        assert found.labels.tolist() == LABELS.tolist() and found.labels.dtype == np.int64


def test_images_need_not_be_square(tmp_path: Path) -> None:
    path = archive(tmp_path, x_train=np.arange(6 * 40 * 4.0).reshape(6, 40, 4), y_train=LABELS)
    assert data.opened(str(path), (1, 28, 28)).images.shape == (6, 1, 28, 28)


# --- files that are no archives


def test_what_is_no_file_of_its_own_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="must be a plain file, got a folder"):
        data.load_images(tmp_path)
    for path in (tmp_path / "pipe", Path("/dev/null"), Path("/dev/zero")):
        with pytest.raises(ValueError, match="must be a plain file, got a pipe or a device"):
            data.load_images(path)
    with pytest.raises(ValueError, match=r"^file not found: "):
        data.load_images(tmp_path / "a\0b")


@settings(deadline=None, max_examples=60, derandomize=True)
@given(st.binary(max_size=80), st.integers(0, 700), st.booleans())
def test_any_bytes_anywhere_are_one_clear_line(tmp_path_factory, junk: bytes, at: int, tail: bool) -> None:
    sound = io.BytesIO()
    np.savez(sound, x_train=PIXELS, y_train=LABELS)
    text = sound.getvalue()
    path = tmp_path_factory.getbasetemp() / "junk.npz"
    path.write_bytes(text[:at] + junk + (text[at + len(junk) :] if tail else b""))
    told = ""
    try:
        data.load_images(path)
    except ValueError as error:
        told = str(error)
    assert not told or (str(path) in told and len(told.splitlines()) == 1)


def test_a_wrong_checksum_is_damage(tmp_path: Path) -> None:
    path = archive(tmp_path, x_train=PIXELS, y_train=LABELS)
    text = bytearray(path.read_bytes())
    text[text.index(PIXELS.tobytes())] ^= 255
    path.write_bytes(bytes(text))
    refused(path, "must be undamaged, got BadZipFile")
    assert zlib.crc32(PIXELS.tobytes()) != 0


# --- sizes


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
    path, started = archive(tmp_path, x_train=PIXELS, y_train=LABELS), time.process_time()
    with pytest.raises(ValueError, match=message):
        data.opened(str(path), size)
    assert time.process_time() - started < 1.0


def test_images_whose_detail_vanishes_at_the_size_are_refused(tmp_path: Path) -> None:
    """A chessboard is grey from afar: what is left there is rounding, blown up to standard deviation one."""
    board = np.tile(np.indices((32, 32)).sum(0) % 2, (6, 1, 1)).astype(np.uint8)
    path = archive(tmp_path, x_train=board, y_train=LABELS)
    assert len(data.load_images(path)) == 6
    with pytest.raises(ValueError, match="must not all be the same grey"):
        data.opened(str(path), (1, 1, 1))


@pytest.mark.parametrize("count", [0, -1, 13, 10**400, 2.0, float("nan"), True, "3", None])
def test_a_sample_is_a_number_of_images(count: Any) -> None:
    images = Images(np.zeros((12, 1, 2, 2)), np.arange(12) % 3)
    with pytest.raises(ValueError, match="count must be"):
        data.sample(images, np.random.default_rng(0), count)
