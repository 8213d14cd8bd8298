"""Real-network claims on other images than the embedded digits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from simulate.monte_carlo import Point
from verify.model import AnyClaim, Claim, Experiment, Identity

__all__ = ["DIGITS", "on_images"]

DIGITS = "digits"


def on_images(claims: Sequence[AnyClaim], source: str) -> tuple[AnyClaim, ...]:
    """The claims with their real networks on the images of an ``.npz`` archive; all others as they are.

    Raises
    ------
    ValueError
        If the archive cannot be read.
    """
    if source == DIGITS:
        return tuple(claims)
    from simulate import data

    data.load(source)  # a bad file is refused before the run, not inside it
    experiments: dict[str, Experiment] = {}
    return tuple(_exchanged(claim, str(Path(source).resolve()), experiments) for claim in claims)


def _exchanged(claim: AnyClaim, path: str, experiments: dict[str, Experiment]) -> AnyClaim:
    if isinstance(claim, Identity):
        return replace(claim, points=_points(claim.points, path), data=_name(claim.data, path))
    if not isinstance(claim, Claim):
        return claim
    old = claim.experiment
    if old.id not in experiments:  # claims that share an experiment go on sharing it
        experiments[old.id] = replace(old, points=_points(old.points, path), data=_name(old.data, path))
    return replace(claim, experiment=experiments[old.id])


def _points(points: Sequence[Point], path: str) -> tuple[Point, ...]:
    return tuple(point | {"images": path} if "images" in point else point for point in points)


def _name(data: str, path: str) -> str:
    return Path(path).name if data else data
