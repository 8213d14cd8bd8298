"""Pictures of the laws: the same seed gives the same picture, and each shows what its name says."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.text import Text
from numpy.random import default_rng
from numpy.testing import assert_allclose

from simulate.modules.logit_kernel import Kernel
from verify import cli, files, gallery
from verify.gallery import networks, spectra, zone

FEW = np.logspace(-0.5, 0.5, 3)
SMALL: tuple[tuple[Any, dict[str, Any]], ...] = (
    (spectra, {"DIM": 60, "TRANSITION_DIM": 30, "DRAWS": 3, "BATCH_DIM": 12, "BATCHES": 3}),
    (
        networks,
        {
            "SAMPLES": 64,
            "DIRECTIONS": 3,
            "DRAWS": 2,
            "SIZES": np.array([1, 4]),
            "STATES": (("new", 0), ("used", 3)),
            "NETWORKS": 2,
            "RATE_SIZES": np.array([1, 4, 16]),
            "MIDDLES": {"sgd": (0.13, 0.45, 1.3), "adam": (0.0155, 0.03, 0.07)},
            "LEAST": 6,
            "EPOCHS": 1,
            "WIDTHS": np.array([4, 8]),
            "TOP_DRAWS": 2,
        },
    ),
    (
        zone,
        {
            "SAMPLES": 6,
            "DIM": 7,
            "DRAWS": 2,
            "EXCESS_ALPHAS": FEW,
            "IMAGES": 8,
            "PRIORS": 41,
        },
    ),
)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, sizes in SMALL:
        for name, value in sizes.items():
            monkeypatch.setattr(module, name, value)


@pytest.mark.slow
@pytest.mark.parametrize("picture", gallery.PICTURES, ids=lambda picture: picture.name)
def test_a_picture_is_written_twice_says_what_it_shows_and_no_text_leaves_it(
    picture: gallery.Picture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figure: Any = gallery.draw(picture, gallery.Setting())
    monkeypatch.setattr(gallery, "draw", lambda *_: figure)
    svg, png = gallery.save_picture(picture, gallery.Setting(), tmp_path / "new")
    assert f'aria-label="{picture.shows}"' in svg.read_text(encoding="utf-8")
    assert png.read_bytes().startswith(b"\x89PNG")
    figure.canvas.draw()
    width, height = figure.bbox.size
    for text in _texts(figure):
        box = text.get_window_extent(figure.canvas.get_renderer())
        assert 0 <= box.x0 <= box.x1 <= width, text.get_text()
        assert 0 <= box.y0 <= box.y1 <= height, text.get_text()
    if picture.name in (
        "transition",
        "batch-size",
    ):  # two laws in one frame, of which rivals are told by dashes
        for axes in figure.axes:
            laws = [
                line for line in axes.get_lines() if line.get_linewidth() == 1.6 and line.get_zorder() == 3
            ]
            assert len({line.get_color() for line in laws}) == len(laws) > 0


def _texts(figure: Any) -> list[Text]:
    """Notes, titles, names of axes, and keys."""
    named = [text for a in figure.axes for text in (a.title, a.xaxis.label, a.yaxis.label)]
    keys = [text for a in figure.axes if a.get_legend() for text in a.get_legend().get_texts()]
    return [text for text in (*figure.texts, *named, *keys) if text.get_text()]


@pytest.mark.slow
def test_pictures_are_the_same_whoever_draws_them_and_the_seed_is_all_that_chance_depends_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Side by side, as several workers do, and one after the other."""
    monkeypatch.setattr(gallery, "open_workers", lambda _: ThreadPoolExecutor(1))
    chosen = gallery.pictures(["semicircle", "transition"])

    def drawn(workers: int, seed: int) -> dict[str, bytes]:
        told = gallery.save_pictures(chosen, gallery.Setting(seed=seed), tmp_path, workers)
        return {name: png.read_bytes() for name, png, _ in told}

    first, again, other = drawn(2, 1), drawn(1, 1), drawn(1, 2)
    assert first == again and {*first} == {"semicircle", "transition"}
    assert all(first[name] != other[name] for name in first)


def test_a_spike_is_followed_to_the_eigenvalue_of_its_rank() -> None:
    block = gallery.Setting().block("test", 1)
    spikes = np.array([-3.0, 1.0, 2.0])
    values, found = spectra._spectrum(block, torch.zeros(1, 20, 20).double(), spikes)
    assert_allclose(found, spikes, atol=1e-12)
    assert_allclose(values[[0, -2, -1]], spikes, atol=1e-12)


def test_normalisations_are_drawn_for_the_same_networks() -> None:
    """So that what mean subtraction takes away is seen network by network."""
    for law in networks.LAWS:
        found = networks._by_normalisation(gallery.Setting(), law, 8)
        assert (found["mean subtraction"][0] < found["no normalisation"][0]).all()


def test_points_and_lines_of_networks_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the line is the value, as without normalisation, and with it in the middle layers of ReLU but for 2."""
    monkeypatch.setattr(networks, "TOP_DRAWS", 12)
    found = networks._by_normalisation(gallery.Setting(), networks.LAWS[0], 60)
    drawn, line = found["no normalisation"]
    assert_allclose(drawn.mean(), line, rtol=0.3)
    drawn, line = found["batch norm, middle layers"]
    assert 1 < drawn.mean() - line < 4


def test_images_of_two_classes_are_drawn_as_well(tmp_path: Path) -> None:
    path = tmp_path / "two.npz"
    np.savez(path, x_train=default_rng(7).random((60, 9, 9)), y_train=np.arange(60) % 2)
    for name in ("excess-law", "gradient"):
        (picture,) = gallery.pictures([name])
        assert gallery.draw(picture, gallery.Setting(data=str(path))).axes, name


def test_variances_in_a_frame_are_those_of_the_kernel() -> None:
    """With a frame of everything, the two routes see the same gradients."""
    rng = default_rng(7)
    jacobian = rng.standard_normal((5, 3, 8)) + 2 * rng.standard_normal((3, 8))
    flat = torch.from_numpy(jacobian.reshape(15, 8))
    scales = Kernel(torch.zeros(5, 3), (flat @ flat.T).view(5, 3, 5, 3), 8).scales()
    assert_allclose(zone._variances(jacobian), [scales.sigma_c, scales.sigma_e], rtol=1e-12)


def test_gradients_of_the_random_model_are_as_predicted() -> None:
    """Every inner product of gradients is its mean: the formula with the noise of samples is exact."""
    dim, sigma_c, sigma_e, labels = 50, 0.7, 1.9, np.eye(3)[[0, 1, 2, 0, 1, 2, 1, 0, 2]]
    same = torch.eye(len(labels), dtype=torch.float64)
    by_sample = dim * (sigma_c**2 + sigma_e**2 * same)
    gram = by_sample[:, None, :, None] * torch.eye(3, dtype=torch.float64)[None, :, None, :]
    rng = default_rng(5)
    kernel = Kernel(torch.from_numpy(rng.standard_normal((len(labels), 3))), gram, dim)
    found = zone._weighted_gradients(kernel, labels, rng)
    assert np.ptp(found["norm"]) > 1
    assert_allclose(found["norm"] ** 2, found["square"], rtol=1e-10)
    assert_allclose(found["expected"], dim**0.5 * sigma_c * found["distance"], rtol=1e-10)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nothing"], "picture must be one of semicircle, .*, got 'nothing'"),
        (["semicircle", "--output", "/proc/none"], "--output: cannot write to folder"),
        (["network", "--data", "missing.npz"], "file not found: missing.npz"),
        (
            ["network", "--data", "few.npz"],
            "--data few.npz must hold at least 512 images to draw from, got 70",
        ),
        (
            ["network", "--json"],
            "losscurv gallery: unrecognized arguments: --json; see losscurv gallery --help",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_a_line(
    words: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    pixels = default_rng(0).random((70, 8, 8))
    np.savez("few.npz", x_train=pixels, y_train=np.arange(70) % 10)
    if "--output" not in words:
        words = [*words, "--output", str(tmp_path)]
    assert cli.main(["gallery", *words]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert re.search(message, printed.err)
    assert [path.name for path in tmp_path.iterdir()] == ["few.npz"]


@pytest.mark.parametrize(
    ("error", "status", "told"),
    [
        (KeyboardInterrupt(), 130, "losscurv: interrupted\n"),
        (
            OSError(28, "No space left on device"),
            2,
            "pictures cannot be written to .*: No space left on device",
        ),
    ],
)
def test_a_picture_that_is_not_finished_leaves_nothing(
    error: BaseException,
    status: int,
    told: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Drawn as SVG, and stopped while the PNG is written."""
    synced = iter((False, True))

    def stopped(_: int) -> None:
        if next(synced):
            raise error

    assert cli.main(["gallery", "--list"]) == 0
    assert capsys.readouterr().out.count("\n") == len(gallery.PICTURES)
    assert cli.main(["gallery", "semicircle", "--output", str(tmp_path)]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["semicircle.png", "semicircle.svg"]
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    monkeypatch.setattr(files.os, "fsync", stopped)
    assert (
        cli.main(["gallery", "semicircle", "transition", "--seed", "1", "--output", str(tmp_path)]) == status
    )
    assert re.search(told, capsys.readouterr().err)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
