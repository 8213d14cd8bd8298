"""Data sets: digits and their resizing, archives good and bad, sampling."""

import hashlib
import io
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from simulate import data
from simulate.data.images import Images, _digits

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 5, 4, 3), dtype=np.uint8)
LABELS = np.array([0, 1, 2, 0, 1, 2])


def archive(folder: Path, **arrays) -> Path:
    path = folder / "set.npz"
    np.savez(path, **arrays)
    return path


# --- digits


@pytest.mark.parametrize("size", [(1, 28, 28), (1, 8, 8), (3, 32, 32), (1, 4, 4)])
def test_digits_are_standardised_images_of_the_size_asked_for(size: tuple[int, int, int]) -> None:
    digits = data.digits(size)

    assert digits.images.shape == (1797, *size) and digits.images.dtype == np.float64
    assert digits.labels.shape == (1797,) and digits.labels.dtype == np.int64
    assert_allclose([digits.images.mean(), digits.images.std()], [0.0, 1.0], atol=1e-12)
    assert len(digits) == 1797 and digits.classes == 10


def test_the_embedded_digits_are_those_of_scikit_learn_to_the_bit() -> None:
    """Hash of ``numpy.column_stack(sklearn.datasets.load_digits(return_X_y=True))``: values, type and order."""
    table = _digits()

    assert table.shape == (1797, 65) and table.dtype == np.float64
    hashed = hashlib.sha256(table.astype("<f8").tobytes()).hexdigest()
    assert hashed == "30aa855cd90427ff3c4996b3f40109597c57049f8a038cc52db1efeac8ad2e26"


def test_eight_by_eight_digits_are_the_embedded_ones() -> None:
    table = _digits()
    pixels = table[:, :-1]
    expected = (pixels - pixels.mean()) / pixels.std()
    assert_allclose(data.digits((1, 8, 8)).flat().images, expected, rtol=1e-13, atol=1e-14)
    assert_array_equal(data.digits((1, 8, 8)).labels, table[:, -1])


def test_pooled_digits_are_block_averages() -> None:
    whole = data.digits((1, 8, 8)).images[:, 0]
    pooled = whole.reshape(-1, 4, 2, 4, 2).mean((2, 4))
    assert_allclose(data.digits((1, 4, 4)).images[:, 0], pooled / pooled.std(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("size", "factor"), [((1, 28, 28), 3.5), ((3, 32, 32), 4.0)])
def test_enlarged_digits_interpolate_between_pixel_centres(size: tuple[int, int, int], factor: float) -> None:
    """Bilinear: pixel i of the new image lies at (i + 1/2)/factor - 1/2 of the old one, clamped."""
    from scipy.ndimage import map_coordinates

    at = np.clip((np.arange(size[1]) + 0.5) / factor - 0.5, 0, 7)
    grid = np.meshgrid(at, at, indexing="ij")
    sources = _digits()[:5, :-1].reshape(-1, 8, 8)
    expected = np.stack([map_coordinates(image, grid, order=1) for image in sources])

    images = data.digits(size).images[:5, 0]
    slope, offset = np.polyfit(expected.ravel(), images.ravel(), 1)
    assert_allclose(images, slope * expected + offset, atol=1e-11)


def test_digits_are_cached_and_cannot_be_changed() -> None:
    digits = data.digits((1, 8, 8))
    assert data.digits((1, 8, 8)) is digits
    for array in (digits.images, digits.labels, digits.flat().images):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_digits_of_another_size_are_refused() -> None:
    with pytest.raises(ValueError, match=r"size must be one of \(1, 28, 28\), .*got \(2, 8, 8\)"):
        data.digits((2, 8, 8))


# --- the record


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
    expected = (pixels.astype(float) - pixels.mean(dtype=float)) / pixels.std(dtype=float)

    last = data.load_images(archive(tmp_path, x_train=pixels, y_train=LABELS))
    first = data.load_images(archive(tmp_path, x_train=pixels.transpose(0, 3, 1, 2), y_train=LABELS))
    grey = data.load_images(archive(tmp_path, x_train=pixels[..., 0], y_train=LABELS))

    assert last.images.shape == (6, 3, 5, 4) and last.images.dtype == np.float64
    assert_allclose(last.images, expected.transpose(0, 3, 1, 2), rtol=1e-12, atol=1e-13)
    assert_array_equal(first.images, last.images)
    assert grey.images.shape == (6, 1, 5, 4)
    assert_allclose([grey.images.mean(), grey.images.std()], [0, 1], atol=1e-12)
    assert_array_equal(last.labels, LABELS)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x_train": PIXELS}, r"must hold y_train, got x_train; save it with numpy.savez"),
        ({"images": PIXELS, "y_train": LABELS}, r"must hold x_train, got images, y_train; save it with"),
        ({}, r"must hold x_train, y_train, got no array"),
        ({"x_train": PIXELS[..., :2], "y_train": LABELS}, r"with 1 or 3 channels, N > 0, got \(6, 5, 4, 2\)"),
        ({"x_train": PIXELS[:, :3], "y_train": LABELS}, r"show where its channels are, got \(6, 3, 4, 3\)"),
    ],
)
def test_archives_with_wrong_contents_are_refused_by_name(tmp_path: Path, arrays: dict, message: str) -> None:
    path = archive(tmp_path, **arrays)
    with pytest.raises(ValueError, match=message) as refusal:
        data.load_images(path)
    assert str(path) in str(refusal.value)


def test_files_that_are_no_archives_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^file not found: .*absent.npz; check the path"):
        data.load_images(tmp_path / "absent.npz")
    for name, content in (
        ("text.npz", b"hello, world"),
        ("empty.npz", b""),
        ("zip.npz", b"PK\x03\x04 but no zip"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=rf"{name} must be an .npz archive, got a .*; save it with"):
            data.load_images(tmp_path / name)


@pytest.mark.parametrize("compressed", [False, True])
def test_damage_anywhere_ends_in_one_clear_line(tmp_path: Path, compressed: bool) -> None:
    """Flipped bits and cut ends: the archive still loads, or the refusal names the file."""
    whole = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(whole, x_train=PIXELS, y_train=LABELS)
    sound = whole.getvalue()
    path = tmp_path / "damaged.npz"
    rng = np.random.default_rng(0)
    messages = []
    for position in range(0, len(sound), 7):
        broken = bytearray(sound)
        broken[position] ^= int(rng.integers(1, 256))
        for content in (bytes(broken), sound[:position]):
            path.write_bytes(content)
            try:
                data.load_images(path)
            except ValueError as error:
                messages.append(str(error))
    assert len(messages) > len(sound) / 7
    assert all(str(path) in message for message in messages)


def test_an_unreadable_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = archive(tmp_path, x_train=PIXELS, y_train=LABELS)

    def refuse(*args):
        raise PermissionError("Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(
        ValueError, match=r"set.npz must be readable, got Permission denied; check its permissions"
    ):
        data.load_images(path)


# --- sampling


def small() -> Images:
    return Images(np.arange(12.0).reshape(12, 1, 1, 1), np.array([0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 4, 4]))


def test_sample_draws_without_replacement_and_keeps_pairs() -> None:
    drawn = data.sample(small(), np.random.default_rng(0), 12)

    order = drawn.images.ravel().astype(int)
    assert sorted(order) == list(range(12)) and list(order) != list(range(12))
    assert_array_equal(drawn.labels, small().labels[order])


def test_balanced_sample_has_the_same_number_of_every_class() -> None:
    drawn = data.sample(small(), np.random.default_rng(0), 6, balanced=True)

    order = drawn.images.ravel().astype(int)
    assert len(set(order)) == 6
    assert_array_equal(drawn.labels, small().labels[order])
    assert_array_equal(np.unique(drawn.labels, return_counts=True), [[0, 1, 4], [2, 2, 2]])
    assert list(drawn.labels) != sorted(drawn.labels)


def test_every_image_is_equally_likely() -> None:
    rng = np.random.default_rng(0)
    counts = sum(
        np.bincount(data.sample(small(), rng, 3).images.ravel().astype(int), minlength=12)
        for _ in range(2000)
    )
    assert np.abs(counts / 2000 - 0.25).max() < 5 * np.sqrt(0.25 * 0.75 / 2000)


@pytest.mark.parametrize(
    ("count", "balanced", "message"),
    [
        (0, False, r"count must be between 1 and the 12 images there are, got 0"),
        (13, False, r"count must be between 1 and the 12 images there are, got 13"),
        (13, True, r"count must be between 1 and the 12 images"),
        (7, True, r"count must be a multiple of the 3 classes where balanced, got 7"),
        (9, True, r"count must be at most 6 where balanced, for class 4 has only 2 images, got 9"),
    ],
)
def test_samples_that_are_not_possible_are_refused(count: int, balanced: bool, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        data.sample(small(), np.random.default_rng(0), count, balanced=balanced)


def test_an_archive_comes_at_the_size_a_network_wants(tmp_path: Path) -> None:
    """Grey is the mean of the colours, and a constant image stays constant whatever its size."""
    rng = np.random.default_rng(3)
    flat = np.repeat(rng.integers(0, 255, (12, 1, 1, 3), dtype=np.uint8), 32, axis=1).repeat(32, axis=2)
    path = tmp_path / "flat.npz"
    np.savez(path, x_train=flat, y_train=np.arange(12) % 4)

    found = data.opened(str(path), (1, 28, 28))

    grey = flat[:, 0, 0].mean(1)
    assert found.images.shape == (12, 1, 28, 28)
    assert found.classes == 4
    np.testing.assert_allclose(np.ptp(found.images, axis=(1, 2, 3)), 0, atol=1e-12)
    np.testing.assert_allclose(found.images[:, 0, 0, 0], (grey - grey.mean()) / grey.std(), atol=1e-12)
    assert data.opened(str(path), (3, 32, 32)).images.shape == (12, 3, 32, 32)


def test_opening_the_digits_is_the_digits() -> None:
    assert data.opened("digits", (1, 8, 8)) is data.digits((1, 8, 8))
