"""Granziol, Zohren and Roberts (2022), eqs. (14), (15): the mean of noise inside a factor, and of batches."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from simulate.monte_carlo import Point
from verify.model import AnyClaim, ExactProperty, Passage, Standing

__all__ = ["CLAIMS"]

PAPER = "Granziol, Zohren and Roberts (2022)"


def _factor_parameters() -> Mapping[str, Any]:
    from hypothesis import strategies as st

    return {
        "dim": st.integers(1, 6),
        "samples": st.integers(1, 6),
        "draws": st.integers(2, 9),
        "sigma": st.floats(1e-3, 1e3),
    }


def _factors(rng: np.random.Generator, p: Point) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """J, and noise with equally likely values whose mean is 0."""
    noise = p.sigma * rng.standard_exponential((p.draws, p.dim, p.samples))
    return rng.standard_normal((p.dim, p.samples)), noise - noise.mean(axis=0)


def _mean_square(j: Any, noise: Any) -> Any:
    return np.mean([(j + x) @ (j + x).T for x in noise], axis=0)


def _off(found: Any, expected: Any) -> float:
    """Largest difference relative to the largest entry."""
    return float(np.abs(found - expected).max() / np.abs(found).max())


def _noise_adds_its_square(rng: np.random.Generator, p: Point) -> float:
    j, noise = _factors(rng, p)
    return _off(_mean_square(j, noise), j @ j.T + np.mean([x @ x.T for x in noise], axis=0))


def _noise_drops_out(rng: np.random.Generator, p: Point) -> float:
    j, noise = _factors(rng, p)
    return _off(_mean_square(j, noise), j @ j.T)


def _every_draw_adds_its_square(rng: np.random.Generator, p: Point) -> float:
    j, noise = _factors(rng, p)
    return max(_off((j + x) @ (j + x).T, j @ j.T + x @ x.T) for x in noise)


def _batch_parameters() -> Mapping[str, Any]:
    from hypothesis import strategies as st

    return {"dim": st.integers(1, 5), "dataset_size": st.integers(2, 7), "share": st.floats(0.1, 0.9)}


def _batches(rng: np.random.Generator, p: Point) -> tuple[Any, Any, float]:
    """Mean over all batches of their Gauss-Newton matrix, that of the data set, and sigma^2 of eq. (15)."""
    factors = rng.standard_normal((p.dataset_size, p.dim, 2)) + 1.0
    size = math.ceil(p.share * (p.dataset_size - 1))
    samples = np.array([f @ f.T for f in factors])
    batches = [samples[list(chosen)].mean(axis=0) for chosen in combinations(range(len(samples)), size)]
    noise = float(factors.var(axis=0).mean()) * (1 / size - 1 / p.dataset_size)
    return np.mean(batches, axis=0), samples.mean(axis=0), noise


def _batches_keep_the_mean(rng: np.random.Generator, p: Point) -> float:
    batches, whole, _ = _batches(rng, p)
    return _off(batches, whole)


def _batches_gain_the_noise(rng: np.random.Generator, p: Point) -> float:
    batches, whole, noise = _batches(rng, p)
    return _off(batches, whole + noise * np.eye(p.dim))


ROUNDING = "rounding of a few dozen additions"

CLAIMS: tuple[AnyClaim, ...] = (
    ExactProperty(
        id="granziol2022/mean-of-the-square",
        entries=("B24",),
        source=f"{PAPER}, eq. (15)",
        statement=r"\mathbb{E}\,(J + X)(J + X)^\top = J J^\top + \mathbb{E}\,X X^\top\quad (\mathbb{E} X = 0)",
        strategies=_factor_parameters,
        violation=_noise_adds_its_square,
        examples=(Point(dim=4, samples=3, draws=5, sigma=0.7),),
        tolerance=1e-10,
        tolerance_reason=ROUNDING,
        rivals={
            "the noise drops out": _noise_drops_out,
            "without the mean, in every draw": _every_draw_adds_its_square,
        },
    ),
    ExactProperty(
        id="granziol2022/mean-of-the-batches",
        entries=("B24",),
        source=f"{PAPER}, eqs. (14), (15), against the sampling of eq. (3)",
        statement=r"\mathbb{E}\,G_B = G\quad \text{over all batches of any size}",
        passage=Passage(
            Standing.OUTSIDE, "Let us simply consider a mini-batching model", "Section 6, before Eq 14"
        ),
        finding="Eq 15 is of the model of Eq 14, in which a batch gains sigma^2 I in the mean; batches "
        "drawn from a data set, as in Eq 3, gain nothing.",
        strategies=_batch_parameters,
        violation=_batches_keep_the_mean,
        examples=(Point(dim=3, dataset_size=6, share=0.4),),
        tolerance=1e-11,
        tolerance_reason=ROUNDING,
        rivals={"the mean gains sigma^2 I, as eq. (15)": _batches_gain_the_noise},
    ),
)
