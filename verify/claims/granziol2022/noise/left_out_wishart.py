"""Granziol, Zohren and Roberts (2022), theorem 7: what its scores leave out of Wishart noise, and the scale of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from simulate.monte_carlo import Block, Point
from theory.rmt import MarchenkoPastur
from verify.claims.granziol2022 import PAPER
from verify.claims.granziol2022.noise.left_out import drawn_again, noise_along
from verify.claims.granziol2022.outliers.theorems import SAMPLED, WISHART, batch_and_whole, wishart_beside
from verify.model import OURS, AnyClaim, Claim, Experiment

__all__ = ["CLAIMS"]


def added_wishart(block: Block, point: Point) -> Mapping[str, Any]:
    """The Wishart matrix of theorem 7 along its direction, and the mean of its diagonal."""
    noise, directions = wishart_beside(block, point)
    return {"along": noise_along(noise, directions), "diagonal": _mean_diagonal(noise)}


def sampled_wishart(block: Block, point: Point) -> Mapping[str, Any]:
    """The same of the mean over a batch of rank-one samples, and over the data set."""
    batch, whole, directions = batch_and_whole(block, point)
    return {
        "batch": noise_along(batch, directions),
        "full": noise_along(whole, directions),
        "batch_diagonal": _mean_diagonal(batch),
        "full_diagonal": _mean_diagonal(whole),
    }


def _mean_diagonal(noise: Any) -> Any:
    """Mean over all directions of the noise along them: an element of the diagonal, on average."""
    return noise.diagonal(dim1=1, dim2=2).mean(1)


ADDED = drawn_again("wishart-along", added_wishart, WISHART, seconds=0.28, budget=2048)
DRAWN_WISHART = drawn_again("sampled-wishart-along", sampled_wishart, SAMPLED, seconds=0.4, budget=2048)


def _wishart_along(name: str, of: str, noise: str, experiment: Experiment, score: str) -> Claim:
    return Claim(
        id=f"granziol2022/{name}",
        entries=("B25",),
        source=f"ours, for {of} of {PAPER}: the mean of the term left out there",
        passage=OURS,
        statement=r"\mathbb{E}\,v^\top \varepsilon v = \sigma^2\quad (\varepsilon \text{ Wishart})",
        says=f"Along the spike's direction {noise} is on average the variance of its samples, the term left out of the "
        "outlier.",
        experiment=experiment,
        score=score,
        predict=lambda p: MarchenkoPastur(q=1.0, variance=p.variance).mean(),
        margin=0.02,
        margin_reason="1 % of the outlier at most, which is more than twice as large",
        rivals={
            "standard deviation for variance": lambda p: math.sqrt(p.variance),
            "noise 2 % too large": lambda p: 1.02**2 * p.variance,
        },
        quantity="noise along the direction of the spike",
    )


def _wishart_diagonal(name: str, of: str, noise: str, experiment: Experiment, score: str) -> Claim:
    """On the scale of the noise, sharper than along one direction: the mean over all of them hardly scatters."""
    return Claim(
        id=f"granziol2022/{name}",
        entries=("B25",),
        source=f"ours, for {of} of {PAPER}: the scale of the noise, taken for granted there",
        passage=OURS,
        statement=r"\frac1P \mathbb{E}\,\mathrm{tr}\,\varepsilon = \sigma^2\quad (\varepsilon \text{ Wishart})",
        says=f"The diagonal of {noise} is on average the variance of its samples, on which the outlier's scale rests.",
        experiment=experiment,
        score=score,
        predict=lambda p: MarchenkoPastur(q=1.0, variance=p.variance).mean(),
        margin=0.005,
        margin_reason="exact at every size; samples 1 % too large have 2 % more",
        rivals={
            "samples 1 % too large": lambda p: 1.01**2 * p.variance,
            "standard deviation for variance": lambda p: math.sqrt(p.variance),
        },
        quantity="mean of the diagonal of the noise",
    )


CLAIMS: tuple[AnyClaim, ...] = (
    _wishart_along("wishart-along", "theorem 7", "the added Wishart noise", ADDED, "along"),
    _wishart_along(
        "batch-along",
        "theorem 7 for batches",
        "the noise of a batch of rank-one samples",
        DRAWN_WISHART,
        "batch",
    ),
    _wishart_along(
        "data-set-along",
        "theorem 7 for batches",
        "the noise of a data set of rank-one samples",
        DRAWN_WISHART,
        "full",
    ),
    _wishart_diagonal("wishart-diagonal", "theorem 7", "the added Wishart noise", ADDED, "diagonal"),
    _wishart_diagonal(
        "batch-diagonal",
        "theorem 7 for batches",
        "the noise of a batch of rank-one samples",
        DRAWN_WISHART,
        "batch_diagonal",
    ),
    _wishart_diagonal(
        "data-set-diagonal",
        "theorem 7 for batches",
        "the noise of a data set of rank-one samples",
        DRAWN_WISHART,
        "full_diagonal",
    ),
)
