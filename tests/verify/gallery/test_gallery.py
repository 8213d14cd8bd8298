"""Pictures of the laws: the same seed gives the same picture, and each shows what its name says."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pytest
from numpy.testing import assert_allclose

from simulate.training import rules
from tests.verify.gallery.small_pictures import GOLDILOCKS
from verify import cli, files, gallery
from verify.gallery import (
    batch_sizes,
    networks,
    parts,
    rates_in_training,
    spectra,
    wide_networks,
    wide_training,
)
from verify.page.plots import to_svg

SMALL_NETWORKS = {
    "DRAWS": 2,
    "LAYERS": 3,
    "SIGNAL_WIDTH": 8,
    "SIGNAL_SAMPLES": 3,
    "GRID": (3, 2),
    "LINE": 2,
    "CUT_WIDTH": 8,
    "SPECTRUM_WIDTH": 8,
    "SPECTRUM_OUTPUTS": 2,
    "WIDTHS": np.array([4, 8]),
    "TOP_DRAWS": 2,
}

SHORT_TRAINING = {
    "SAMPLES": 64,
    "NETWORKS": 2,
    "SIZES": np.array([1, 4, 16]),
    "MIDDLES": {"sgd": (0.13, 0.45, 1.3), "adam": (0.0155, 0.03, 0.07)},
    "LEAST": 6,
    "EPOCHS": 1,
    "EDGE_SAMPLES": 16,
    "EDGE_NETWORKS": 2,
    "STEPS": (0, 3, 6),
}


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, sizes in (
        (spectra, {"DIM": 60, "TRANSITION_DIM": 30, "DRAWS": 3}),
        (batch_sizes, {"DIM": 12, "DRAWS": 3}),
        (
            networks,
            {
                "SAMPLES": 24,
                "DIRECTIONS": 3,
                "DRAWS": 2,
                "SIZES": np.array([1, 4]),
                "STATES": (("new", 0), ("used", 3)),
            },
        ),
        (rates_in_training, SHORT_TRAINING),
        (wide_networks, SMALL_NETWORKS),
        (wide_training, {"WIDTHS": np.array([4, 8]), "SAMPLES": 6, "STEPS": 3}),
        *GOLDILOCKS,
    ):
        for name, value in sizes.items():
            monkeypatch.setattr(module, name, value)


@pytest.mark.parametrize("name", [picture.name for picture in gallery.PICTURES])
def test_a_picture_is_written_twice_and_says_what_it_shows(name: str, tmp_path: Path) -> None:
    (picture,) = gallery.pictures([name])
    svg, png = gallery.save_picture(picture, gallery.Setting(), tmp_path / "new")
    assert f'aria-label="{picture.shows}"' in svg.read_text(encoding="utf-8")
    assert png.read_bytes().startswith(b"\x89PNG")


def test_pictures_are_the_same_whoever_draws_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Side by side, as several workers do, and one after the other."""
    chosen = gallery.pictures(["semicircle", "transition"])
    monkeypatch.setattr(gallery, "open_workers", lambda _: ThreadPoolExecutor(1))
    found = {
        name: png for name, png, _ in gallery.save_pictures(chosen, gallery.Setting(), tmp_path / "two", 2)
    }
    alone = {
        name: png for name, png, _ in gallery.save_pictures(chosen, gallery.Setting(), tmp_path / "one", 1)
    }

    assert set(found) == set(alone) == {picture.name for picture in chosen}
    assert all(found[name].read_bytes() == png.read_bytes() for name, png in alone.items())


@pytest.mark.parametrize("name", ["transition", "learning-rate", "batch-size"])
def test_two_laws_in_one_frame_have_two_colours(name: str) -> None:
    """Rivals share theirs: they are told by their dashes, and are not what is drawn for."""
    (picture,) = gallery.pictures([name])
    for axes in gallery.draw(picture, gallery.Setting()).axes:
        laws = [line for line in axes.get_lines() if line.get_linewidth() == 1.6 and line.get_zorder() == 3]
        assert len({line.get_color() for line in laws}) == len(laws) > 0


def test_each_rule_trains_its_own_points(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    plain = rates_in_training.tried

    def watched(*given: Any, **options: Any) -> Any:
        seen.append((options["rule"], options["size"]))
        return plain(*given, **options)

    monkeypatch.setattr(rates_in_training, "tried", watched)
    rates_in_training.largest_by_batch_size(gallery.Setting())
    assert seen == [(rule, size) for rule in (rules.SGD, rules.ADAM) for size in (1, 4, 16)]


def test_what_takes_longest_is_begun_first() -> None:
    assert set(gallery.LONGEST) < {picture.name for picture in gallery.PICTURES}


def test_the_seed_is_all_that_chance_depends_on() -> None:
    (picture,) = gallery.pictures(["transition"])
    first, again, other = (to_svg(gallery.draw(picture, gallery.Setting(seed=s))) for s in (1, 1, 2))
    assert first == again
    assert first != other


def test_a_spike_is_followed_to_the_eigenvalue_of_its_rank() -> None:
    import torch

    block = gallery.Setting().block("test", 1)
    spikes = np.array([-3.0, 1.0, 2.0])
    values, found = spectra._spectrum(block, torch.zeros(1, 20, 20).double(), spikes)
    assert_allclose(found, spikes, atol=1e-12)
    assert_allclose(values[[0, -2, -1]], spikes, atol=1e-12)


def test_one_step_rates_are_those_of_drawn_samples() -> None:
    """The two moments of H v are drawn by their laws; here with all of x."""
    rng = np.random.default_rng(0)
    size, dim = 3, batch_sizes.RATE_DIM
    x = rng.standard_normal((4000, size, dim))
    product = (x * x[:, :, :1]).mean(1)
    whole = 2 * product[:, 0].mean() / (product**2).sum(1).mean()
    drawn = batch_sizes._one_step_rates(gallery.Setting(), size)
    assert_allclose(drawn.mean(), whole, rtol=0.1)


def test_measured_constants_are_those_of_wide_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve networks of width 200: one standard error is 3 % of each."""
    monkeypatch.setattr(wide_networks, "CUT_WIDTH", 200)
    monkeypatch.setattr(wide_networks, "DRAWS", 12)
    found = wide_networks._measured_kappas(gallery.Setting(), 2.2)
    theory = wide_networks._kappas("tanh", 2.2, wide_networks.CUT)
    for name, values in found.items():
        assert_allclose(values.mean(), getattr(theory, name), rtol=0.1)


def test_normalisations_are_drawn_for_the_same_networks() -> None:
    """So that what mean subtraction takes away is seen network by network."""
    for law in (wide_networks.RELU, wide_networks.TANH):
        plain, _ = wide_networks._plain(gallery.Setting(), law, 8)
        less, _ = wide_networks._subtracted(gallery.Setting(), law, 8)
        assert (less < plain).all()


def test_points_and_lines_of_networks_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the line is the value, as without normalisation, and with it in the middle layers of ReLU but for 2."""
    monkeypatch.setattr(wide_networks, "TOP_DRAWS", 12)
    drawn, line = wide_networks._plain(gallery.Setting(), wide_networks.RELU, 60)
    assert_allclose(drawn.mean(), line, rtol=0.3)
    drawn, line = wide_networks._middle_layers(gallery.Setting(), wide_networks.RELU, 60)
    assert 1 < drawn.mean() - line < 4


def test_a_key_is_marked_at_powers_of_ten() -> None:
    assert_allclose(parts._whole(10.0 ** np.arange(-2.0, 1.6, 0.25)), [0.01, 0.1, 1, 10])


def test_cells_meet_half_way_in_logarithms() -> None:
    assert_allclose(wide_training._edges([1, 4, 16]), [0.5, 2, 8, 32])


def _realised_limit(width: int) -> float:
    """2 / largest eigenvalue with mean subtraction, of the same network."""
    from simulate.wide import fisher_gram

    law = {**wide_training.LAW, "samples": 6}
    block = gallery.Setting().block(f"training {width}", 1)
    student, _ = wide_training.student_and_targets(block, law, width)
    gram = fisher_gram.centred(fisher_gram.gram(student, law["activation"]))
    return 2 / float(fisher_gram.fisher_eigenvalues(gram)[0, -1])


def test_a_width_has_losses_at_every_rate_and_its_line() -> None:
    final, peak, realised, drawn = wide_training._at_width(gallery.Setting(), 4, subtracted=True)
    assert len(final) == len(peak) == len(wide_training.RATES[True])
    assert (peak >= final).all() and realised > 0
    assert_allclose(realised, _realised_limit(4), rtol=1e-12)
    assert drawn == wide_training.drawn_lines({**wide_training.LAW, "samples": 6}, 4)[True]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nothing"], "picture must be one of semicircle, .*, got 'nothing'"),
        (["semicircle", "--output", "/proc/none"], "--output must be a folder that can be written"),
        (["semicircle", "--seed", "-1"], "--seed must be at least 0, got -1"),
        (["semicircle", "--seed", "9" * 60], "--seed must be at most"),
        (["network", "--data", "missing.npz"], "file not found: missing.npz"),
        (["--data", "missing.npz"], "file not found: missing.npz"),
        (
            ["network", "--data", "few.npz"],
            "--data few.npz must hold at least 512 images to draw from, got 70",
        ),
        (["network", "--device", "abacus"], "device"),
        (
            ["network", "--json"],
            "losscurv gallery: unrecognized arguments: --json; see losscurv gallery --help",
        ),
        ([""], "PICTURE must be given a value"),
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
    pixels = np.random.default_rng(0).random((70, 8, 8))
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
    write = files._write

    def stopped(file: BinaryIO, content: str | bytes) -> None:
        write(file, content[:100])
        if isinstance(content, bytes):
            raise error

    assert cli.main(["gallery", "semicircle", "--output", str(tmp_path)]) == 0
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    monkeypatch.setattr(files, "_write", stopped)
    assert (
        cli.main(["gallery", "semicircle", "transition", "--seed", "1", "--output", str(tmp_path)]) == status
    )
    assert re.search(told, capsys.readouterr().err)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_pictures_are_listed_and_drawn_from_the_shell(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert cli.main(["gallery", "--list"]) == 0
    assert capsys.readouterr().out.count("\n") == len(gallery.PICTURES)
    assert cli.main(["gallery", "semicircle", "--output", str(tmp_path)]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["semicircle.png", "semicircle.svg"]
