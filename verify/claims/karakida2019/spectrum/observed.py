"""Karakida, Akaho and Amari (2019), Theorems 2.2 and 3.3: Fisher spectra of growing networks over their limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from simulate import eigenvalues
from simulate.monte_carlo import Block, Point
from simulate.wide import fisher_gram
from theory import fisher
from verify.claims.karakida2019 import PAPER
from verify.claims.karakida2019.wide_networks import network_of, setting
from verify.model import Tier
from verify.model.observation import Column, Cost, Observation, on_a_gpu

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["OBSERVATIONS"]

TOLERANCE = 1e-6
"""Of the largest eigenvalue."""


def fisher_by_size(block: Block, point: Point) -> Mapping[str, Any]:
    """Limits over what networks have, at each width, with as many samples as units."""
    columns = [_at_width(block, point, width) for width in point.widths]
    return {name: np.stack([column[name] for column in columns], axis=1) for name in columns[0]}


def _at_width(block: Block, point: Point, width: int) -> dict[str, Any]:
    network = network_of(block, point, width=width, samples=width)
    weights = sum(w[0].numel() for w in (*network.weights, *network.biases))
    gram = fisher_gram.gram(network, point.activation)
    own = _moments(gram, weights)
    plain = {"largest": _largest(block, gram), "rayleigh": fisher_gram.rayleigh(gram).numpy(force=True)}
    gram = fisher_gram.centred(gram)
    left, top = _moments(gram, weights), _largest(block, gram)

    size: dict[str, Any] = {"width": width, "samples": width, "outputs": point.outputs}
    said = fisher.eigenvalue_statistics(**setting(point), **size)
    bounds = fisher.mean_subtracted_statistics(**setting(point), **size)
    return {
        "mean": said.mean / own[0],
        "second_moment": said.second_moment / own[1],
        "largest": said.largest / plain["largest"],
        "over_rayleigh": plain["largest"] / plain["rayleigh"],
        "mean_subtracted": bounds.mean / left[0],
        "bound": bounds.lower / (left[1] / left[0]),
        "lower": top / bounds.lower,
        "upper": bounds.upper / top,
    }


def _moments(gram: Tensor, weights: int) -> tuple[Any, Any]:
    """Mean of all eigenvalues, most of them 0, and of their squares, (n,) each."""
    found = fisher_gram.fisher_trace(gram), fisher_gram.trace_of_square(gram)
    return found[0].numpy(force=True) / weights, found[1].numpy(force=True) / weights


def _largest(block: Block, gram: Tensor) -> Any:
    each = zip(gram, block.streams, strict=True)
    return np.array(
        [
            eigenvalues.extremes(fisher_gram.gram_operator(one), rng, largest=1, tolerance=TOLERANCE).values[
                0
            ]
            for one, rng in each
        ]
    )


def cost_of_spectra(point: Point) -> Cost:
    """Of the largest width; the Gram matrix stands three times while it is centred, in double precision."""
    width, depth = max(point.widths), point.depth
    rows = point.outputs * width
    numbers = 3 * rows**2 + 2 * depth * width**2 + 4 * depth * width * rows
    products = (depth - 1) * rows * (rows + 256) * width + depth * width**3  # of derivatives, of signals
    passed = 2 * depth * width**3 + 2 * depth * rows * width**2
    lanczos = 2 * 2 * rows**2 * STEPS
    tiles = (depth * (-(-width // 256)) ** 2 // 2 + depth) * point.outputs**2
    return Cost(8 * numbers, products + passed + lanczos, 1900 + 12 * tiles)


STEPS = 40
"""Products of a search for the largest eigenvalue."""

SETTINGS: tuple[dict[str, Any], ...] = (
    {"activation": "relu", "weight_variance": 2.1, "bias_variance": 0.2, "depth": 3, "outputs": 1},
    {"activation": "tanh", "weight_variance": 2.7, "bias_variance": 0.6, "depth": 3, "outputs": 1},
)

FISHER = Observation(
    id="karakida2019/limits-by-width",
    entries=("C14", "C25", "C26", "C27"),
    source=f"{PAPER}, theorems 2.2 and 3.3",
    title="Fisher spectra of growing networks over their limits",
    note="Predicted over measured; 1 is perfect. At 512 units the means of 32 networks lie within 1.2 % of 1 for the "
    "mean eigenvalue, 0.9 % for the largest, 0.2 % for the lower bound after mean subtraction and 4.5 % for the mean "
    "square; single networks scatter by a tenth, mean squares by a third. The largest eigenvalue is its Rayleigh "
    "quotient but for 0.5 %. After mean subtraction it stays 2.3 to 2.7 times above its lower bound at every width, "
    "while the upper one runs away as the root of M: seven times at 512.",
    replicate="one network with one output at each width, with as many inputs as units",
    simulate=fisher_by_size,
    points=tuple(Point(widths=(64, 128, 256, 512), **setting) for setting in SETTINGS),
    along="widths",
    columns=(
        Column(score="mean", heading="mean eigenvalue, eq. (10)", ratio=True),
        Column(score="second_moment", heading="mean square, eq. (10)", ratio=True),
        Column(score="largest", heading="largest, eq. (10)", ratio=True),
        Column(score="over_rayleigh", heading="largest over its Rayleigh quotient at equal weights"),
        Column(score="mean_subtracted", heading="mean after mean subtraction, eq. (16)", ratio=True),
        Column(score="bound", heading="second over first moment after it, the lower bound", ratio=True),
        Column(score="lower", heading="largest after it over its lower bound"),
        Column(score="upper", heading="upper bound over the largest after it"),
    ),
    replicates=8,
    seconds=0.3,
    tier=Tier.FULL,
    axis="width M = T",
)

OBSERVATIONS: tuple[Observation, ...] = (
    FISHER,
    on_a_gpu(
        FISHER,
        points=tuple(
            Point(widths=(width,), **setting) for width in (1000, 2000, 4096, 8192) for setting in SETTINGS
        ),
        cost=cost_of_spectra,
        replicates=12,
        note="Limits without extrapolation (an H200). At 8192 units the means of twelve networks are within 0.2 % "
        "of eq. (10) for the mean eigenvalue, 0.6 % for the mean square and 0.3 % for the largest, and within "
        "0.2 % of eq. (16); at 1000 units they are 0.3 to 6 % off. Single networks are off by up to 7 % at "
        "8192. After mean subtraction the largest eigenvalue is 2.6 to 2.7 times its lower bound at every "
        "width, and its upper bound goes from 10 times too large to 29 times.",
    ),
)
