"""Pictures of the laws next to fresh draws: spectra, outliers, curvature against batch size, width or scale.

Pictures illustrate; verdicts and their certainty are in the report. The same seed on the same machine gives the same
picture.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure

from simulate._checks import did_you_mean
from simulate.monte_carlo import one_thread
from verify.gallery import networks, spectra, zone
from verify.gallery.parts import Setting
from verify.page.drawing import Panel, stack
from verify.page.plots import save_figure
from verify.page.theme import STYLE
from verify.running.workers import open_workers

__all__ = ["PICTURES", "Picture", "Setting", "draw", "pictures", "save_picture", "save_pictures"]


class Picture(NamedTuple):
    """Picture: its name, what it shows, its panels, and the number of images that it draws from a file."""

    name: str
    shows: str
    panels: Callable[[Setting], list[Panel]]
    images: int = 0


PICTURES = (
    Picture("semicircle", "Wigner noise with four spikes: histogram, law, outliers", spectra.semicircle),
    Picture(
        "marchenko-pastur",
        "Wishart noise at two aspect ratios: histogram, law, outliers",
        spectra.marchenko_pastur,
    ),
    Picture("transition", "outlier and overlap where a spike leaves the bulk", spectra.transition),
    Picture("batch-size", "top eigenvalue against batch size, random samples", spectra.batch_size),
    Picture(
        "network",
        "top eigenvalue against batch size, a network on real images",
        networks.network,
        networks.SAMPLES,
    ),
    Picture(
        "rates-in-training",
        "largest learning rate of SGD and Adam against batch size, in training",
        networks.rates_in_training,
        networks.SAMPLES,
    ),
    Picture(
        "fisher-width",
        "largest Fisher eigenvalue against width, with five normalisations",
        networks.fisher_width,
    ),
    Picture("excess-law", "excess of the G-term against scale", zone.excess_law, zone.SAMPLES),
    Picture("gradient", "gradient norms over class priors", zone.gradient, zone.IMAGES),
)


FEW = 3
"""Most pictures that are drawn sooner than workers start."""

LONGEST = ("fisher-width", "gradient", "excess-law", "network", "rates-in-training")
"""Slowest pictures, begun first: one left for the end would keep a single core busy."""


def pictures(names: Sequence[str]) -> tuple[Picture, ...]:
    """Return the pictures of these names, all of them if none is given.

    Raises
    ------
    ValueError
        If a name is unknown.
    """
    known = {picture.name: picture for picture in PICTURES}
    for name in names:
        if name not in known:
            raise ValueError(
                f"picture must be one of {', '.join(known)}, got {name!r}{did_you_mean(name, known)}"
            )
    return tuple(known[name] for name in dict.fromkeys(names)) or PICTURES


def draw(picture: Picture, setting: Setting) -> Figure:
    """Simulate and draw a picture."""
    with one_thread(), mpl.rc_context(STYLE):
        return stack(picture.panels(setting), picture.shows, f"losscurv · seed {setting.seed}")


def save_picture(picture: Picture, setting: Setting, folder: Path) -> list[Path]:
    """Draw into ``folder/name.svg`` and ``.png``; returns their paths.

    Raises
    ------
    ValueError
        If the folder cannot be written.
    """
    figure = draw(picture, setting)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return save_figure(figure, folder / picture.name)
    except OSError as error:
        raise ValueError(f"pictures cannot be written to {folder}: {error.strerror or error}") from None


def save_pictures(
    chosen: Sequence[Picture], setting: Setting, folder: Path, workers: int
) -> Iterator[tuple[str, Path, float]]:
    """Draw and save pictures, in `workers` processes if there are enough pictures.

    Yields the name, the path of the PNG and the seconds of each as it is finished. A picture depends on its own streams
    only, so it is the same in any process.

    Raises
    ------
    ValueError
        If the folder cannot be written.
    """
    if workers == 1 or len(chosen) <= FEW:
        for picture in chosen:
            yield _save_and_time(picture.name, setting, folder)
        return
    order = sorted(chosen, key=lambda picture: (*LONGEST, picture.name).index(picture.name))
    with open_workers(min(workers, len(chosen))) as pool:
        for done in as_completed(
            [pool.submit(_save_and_time, picture.name, setting, folder) for picture in order]
        ):
            yield done.result()


def _save_and_time(name: str, setting: Setting, folder: Path) -> tuple[str, Path, float]:
    started = time.monotonic()
    (picture,) = pictures([name])
    _, png = save_picture(picture, setting, folder)
    return name, png, time.monotonic() - started
