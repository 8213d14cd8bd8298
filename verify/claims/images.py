"""Real networks of claims and observations on other images than the embedded digits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from simulate import data
from simulate.monte_carlo import Point
from verify.model import AnyClaim, Claim, ExactProperty, StatisticalProperty
from verify.model.observation import Observation

Item = AnyClaim | Observation

DIGITS = "digits"

SMALLEST = (1, 4, 4)
"""The smallest size an experiment asks for: there the detail of an image is lost first."""

MOST_CLASSES = 1000
"""A network has one output for each: the second derivatives of more would not fit into memory."""


def on_images(items: Sequence[Item], source: str) -> tuple[Item, ...]:
    """Put real networks of claims and observations on the images of an ``.npz`` archive; others are unchanged.

    Raises
    ------
    ValueError
        If the archive cannot be read, or its images are not what the experiments can draw from.
    """
    if source == DIGITS:
        return tuple(items)
    require_images(
        source, max((point.get("samples", 1) for item in items for point in _image_points(item)), default=1)
    )
    known: dict[int, Any] = {}
    return tuple(_put_on_images(item, str(Path(source).resolve()), known) for item in items)


def needed_images(item: Item) -> str:
    """Describe the images that a claim requires; empty if any will do."""
    size = item.experiment.needs if isinstance(item, Claim) else None
    return f"images of {' x '.join(map(str, size))} (--data)" if size else ""


def unmet(item: Item, source: str) -> str:
    """Return what a claim needs of its images and these lack; empty if it can be judged on them.

    Raises
    ------
    ValueError
        If the archive cannot be read.
    """
    needed = needed_images(item)
    satisfied = not needed or (isinstance(item, Claim) and _stored_size(source) == item.experiment.needs)
    return "" if satisfied else needed


@cache
def _stored_size(source: str) -> tuple[int, ...] | None:
    """Size at which an archive stores its images; None for the digits, which are drawn at any size."""
    return None if source == DIGITS else data.load_images(source).images.shape[1:]


class ImagesThere(NamedTuple):
    """Number of images to draw from, and of their classes."""

    samples: int
    classes: int


@cache
def images_there(source: str) -> ImagesThere:
    """Count the images to draw from, and their classes.

    Raises
    ------
    ValueError
        If the archive cannot be read.
    """
    images = data.opened(source, SMALLEST)
    return ImagesThere(len(images), images.classes)


def require_images(source: str, needed: int) -> None:
    """Check before the run that an archive is valid and has the `needed` images, drawn at once.

    Raises
    ------
    ValueError
        If it cannot be read, or has too few images, or too few or too many classes.
    """
    if source == DIGITS:
        return
    images = data.opened(source, SMALLEST)
    if not 2 <= images.classes <= MOST_CLASSES:
        raise ValueError(
            f"--data {source} must have 2 to {MOST_CLASSES} classes, got labels up to {images.classes - 1};"
            " renumber them from 0"
        )
    if len(images) < needed:
        raise ValueError(
            f"--data {source} must hold at least {needed} images to draw from, got {len(images)}"
        )


def _image_points(item: Item) -> tuple[Point, ...]:
    """The points of a claim or an observation that draw from images."""
    place = item.experiment if isinstance(item, Claim) else item
    return tuple(point for point in getattr(place, "points", ()) if "images" in point)


def _put_on_images(item: Item, path: str, known: dict[int, Any]) -> Item:
    """Return an item with its points on these images; `known` keeps experiments that claims go on sharing."""
    if isinstance(item, ExactProperty | StatisticalProperty):
        return item
    old = item.experiment if isinstance(item, Claim) else item
    if id(old) not in known:
        points = tuple(point | {"images": path} if "images" in point else point for point in old.points)
        known[id(old)] = replace(old, points=points, data=Path(path).name if old.data else "")
    return replace(item, experiment=known[id(old)]) if isinstance(item, Claim) else known[id(old)]
