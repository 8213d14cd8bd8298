"""Data sets: digits and their resizing, archives good and bad, sampling."""

import hashlib
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy.ndimage import map_coordinates

from simulate import data
from simulate.data.images import _digits
from tests.refusals import refusal
from tests.simulate.dense_matrices import rng

PIXELS = rng().integers(0, 256, (6, 5, 4, 3), dtype=np.uint8)
LABELS = np.array([0, 1, 2, 0, 1, 2])


def archive(folder: Path, **arrays: Any) -> Path:
    np.savez(folder / "set.npz", **arrays)
    return folder / "set.npz"


# --- digits


@pytest.mark.parametrize("size", [(1, 28, 28), (1, 8, 8), (3, 32, 32), (1, 4, 4)])
def test_digits_are_standardised_images_of_the_size_asked_for(size: tuple[int, int, int]) -> None:
    """Block averages, or bilinear: pixel i of the new image lies at (i + 1/2)/factor - 1/2 of the old one, clamped."""
    digits, table = data.digits(size), _digits()
    assert digits.images.shape == (1797, *size) and digits.images.dtype == np.float64
    assert_array_equal(digits.labels, table[:, -1])
    assert_allclose([digits.images.mean(), digits.images.std()], [0.0, 1.0], atol=1e-12)
    assert len(digits) == 1797 and digits.classes == 10 and digits.labels.dtype == np.int64
    assert data.opened("digits", size) is data.digits(size) is digits
    for array in (digits.images, digits.labels, digits.flat().images):
        with refusal("read-only"):
            array[0] = 0

    sources = table[:5, :-1].reshape(-1, 8, 8)
    at = np.clip((np.arange(size[1]) + 0.5) * 8 / size[1] - 0.5, 0, 7)
    expected = np.stack([map_coordinates(s, np.meshgrid(at, at, indexing="ij"), order=1) for s in sources])
    for images in digits.images[:5].swapaxes(0, 1):
        slope, offset = np.polyfit(expected.ravel(), images.ravel(), 1)
        assert slope > 0
        assert_allclose(images, slope * expected + offset, atol=1e-11)


def test_the_embedded_digits_are_those_of_scikit_learn_to_the_bit() -> None:
    """Hash of ``numpy.column_stack(sklearn.datasets.load_digits(return_X_y=True))``: values, type and order."""
    hashed = hashlib.sha256(_digits().astype("<f8").tobytes()).hexdigest()
    assert hashed == "30aa855cd90427ff3c4996b3f40109597c57049f8a038cc52db1efeac8ad2e26"


def test_tensors_are_copies_of_the_type_asked_for() -> None:
    digits = data.digits((1, 8, 8))
    images, labels = digits.tensors(dtype=torch.float32)
    images.zero_()

    assert images.dtype == torch.float32 and labels.dtype == torch.int64
    assert digits.images.std() > 0.9
    assert_array_equal(digits.tensors()[0], digits.images)


# --- archives


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64, np.int32])
def test_layouts_read_as_channels_first(tmp_path: Path, dtype: type) -> None:
    pixels = PIXELS.astype(dtype)
    expected = ((PIXELS - PIXELS.mean()) / PIXELS.std()).transpose(0, 3, 1, 2)
    for images in (pixels, pixels.transpose(0, 3, 1, 2)):
        found = data.load_images(archive(tmp_path, x_train=images, y_train=LABELS))
        assert found.images.dtype == np.float64
        assert_allclose(found.images, expected, rtol=1e-12, atol=1e-13)
        assert_array_equal(found.labels, LABELS)
    grey = data.load_images(archive(tmp_path, x_train=pixels[..., 0], y_train=LABELS))
    assert grey.images.shape == (6, 1, 5, 4)
    assert_allclose([grey.images.mean(), grey.images.std()], [0, 1], atol=1e-12)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x_train": PIXELS}, r"hold y_train, got x_train; save it with numpy.savez"),
        ({"images": PIXELS, "y_train": LABELS}, r"hold x_train, got images, y_train; save it with"),
        (
            {"x_train": PIXELS[..., :2], "y_train": LABELS},
            r"be .* with 1 or 3 channels, N > 0, got \(6, 5, 4, 2\)",
        ),
        ({"x_train": PIXELS[:, :3], "y_train": LABELS}, r"show where its channels are, got \(6, 3, 4, 3\)"),
    ],
)
def test_archives_with_wrong_contents_are_refused_by_name(tmp_path: Path, arrays: Any, message: str) -> None:
    with refusal(rf"{archive(tmp_path, **arrays)} must {message}"):
        data.load_images(tmp_path / "set.npz")


def test_files_that_are_no_archives_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with refusal(r"^file not found: .*absent.npz; check the path"):
        data.load_images(tmp_path / "absent.npz")
    path = tmp_path / "other.npz"
    for content in (b"hello, world", b"", b"PK\x03\x04 but no zip"):
        path.write_bytes(content)
        with refusal(r"other.npz must be an .npz archive, got a .*; save it with"):
            data.load_images(path)

    def refuse(*_: Any) -> Any:
        raise PermissionError("Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with refusal(r"other.npz must be readable, got Permission denied; check its"):
        data.load_images(path)


def test_damage_anywhere_ends_in_one_clear_line(tmp_path: Path) -> None:
    """Flipped bits and cut ends: the archive still loads, or the refusal names the file."""
    whole, path, draws, messages = io.BytesIO(), tmp_path / "damaged.npz", rng(), list[str]()
    np.savez_compressed(whole, x_train=PIXELS, y_train=LABELS)
    sound = whole.getvalue()
    for position in range(0, len(sound), 7):
        broken = bytearray(sound)
        broken[position] ^= int(draws.integers(1, 256))
        for content in (bytes(broken), sound[:position]):
            path.write_bytes(content)
            try:
                data.load_images(path)
            except ValueError as error:
                messages.append(str(error))
    assert len(messages) > len(sound) / 7
    assert all(str(path) in message for message in messages)


def test_an_archive_comes_at_the_size_a_network_wants(tmp_path: Path) -> None:
    """Grey is the mean of the colours, and a constant image stays constant whatever its size."""
    flat = np.tile(rng(3).integers(0, 255, (12, 1, 1, 3), dtype=np.uint8), (1, 32, 32, 1))
    path = str(archive(tmp_path, x_train=flat, y_train=np.arange(12) % 4))
    found, grey = data.opened(path, (1, 28, 28)), flat[:, 0, 0].mean(1)

    assert found.images.shape == (12, 1, 28, 28) and found.classes == 4
    assert_allclose(np.ptp(found.images, axis=(1, 2, 3)), 0, atol=1e-12)
    assert_allclose(found.images[:, 0, 0, 0], (grey - grey.mean()) / grey.std(), atol=1e-12)
    assert data.opened(path, (3, 32, 32)).images.shape == (12, 3, 32, 32)


# --- sampling

SMALL = data.Images(np.arange(12.0), np.array([0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 4, 4]))


@pytest.mark.parametrize(("count", "balanced"), [(12, False), (6, True)])
def test_sample_draws_without_replacement_and_keeps_pairs(count: int, balanced: bool) -> None:
    found = data.sample(SMALL, rng(), count, balanced=balanced)

    order = found.images.astype(int)
    assert len(set(order)) == count and list(order) != sorted(order)
    assert_array_equal(found.labels, SMALL.labels[order])
    assert list(found.labels) != sorted(found.labels)
    if balanced:
        assert_array_equal(np.unique(found.labels, return_counts=True), [[0, 1, 4], [2, 2, 2]])


def test_every_image_is_equally_likely() -> None:
    draws = rng()
    counts = np.bincount(
        np.concatenate([data.sample(SMALL, draws, 3).images for _ in range(2000)]).astype(int)
    )
    assert np.abs(counts / 2000 - 0.25).max() < 5 * np.sqrt(0.25 * 0.75 / 2000)
