"""Granziol, Zohren and Roberts (2022): lemma 2, how near the noise of a batch is to normal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from simulate.matrices import populations
from simulate.monte_carlo import Block, Point
from theory import batch_hessian
from verify.claims.granziol2022 import PAPER
from verify.claims.granziol2022.noise.rational_moments import (
    fluctuation_of,
    inverse_batch,
    whole_numbers,
)
from verify.model import OURS, AnyClaim, Claim, Experiment, Identity, Passage, Standing

__all__ = ["CLAIMS", "EXPONENTIAL"]


def nested_batches(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Mean square of the step from a batch to a larger one that holds it, both in units of their deviation."""
    total, small, large = point.dataset_size, point.batch_size, point.larger
    values = whole_numbers(rng, total).astype(float)
    values -= values.mean()
    outer = values[populations.every_batch(total, large)]
    inner = outer[:, populations.every_batch(large, small)].mean(axis=2)
    deviations = [math.sqrt(fluctuation_of(values.var(ddof=1), size, total)) for size in (small, large)]
    steps = inner / deviations[0] - outer.mean(axis=1, keepdims=True) / deviations[1]
    shared = math.sqrt(inverse_batch(large, total) / inverse_batch(small, total))
    return {
        "all nested batches": (steps**2).mean(),
        "2 - 2 sqrt(b / b')": 2 - 2 * shared,
        "settled": 0.0,
        "independent": 2.0,
        "2 - 2 sqrt(B / B')": 2 - 2 * math.sqrt(small / large),
    }


def exponential_elements(block: Block, point: Point) -> Mapping[str, Any]:
    """Third Hermite polynomial of one noise element in units of its deviation, for exponential elements.

    The polynomial z^3 - 3 z leaves out a term of mean 0, which `left_out` judges. Sums of exponential variables are
    drawn at once.
    """
    inside, outside = (
        np.stack([rng.standard_gamma(count, point.populations) for rng in block.streams])
        for count in (point.batch_size, point.dataset_size - point.batch_size)
    )
    inverse = inverse_batch(point.batch_size, point.dataset_size)
    z = (inverse * inside - outside / point.dataset_size) / math.sqrt(inverse)
    return {"skewness": (z**3 - 3 * z).mean(axis=1), "mean": z.mean(axis=1)}


EXPONENTIAL = Experiment(
    id="granziol2022/exponential-elements",
    replicate="8192 data sets of exponential elements, with a batch of each",
    simulate=exponential_elements,
    on_host="all of it, in numpy",
    points=tuple(
        Point(batch_size=size, dataset_size=4 * size, populations=8192) for size in (8, 32, 128, 512)
    ),
    budget=4096,
    seconds=0.58,
)


def _skewness(p: Point) -> float:
    """Exponential elements have skewness 2."""
    sizes = {"batch_size": p.batch_size, "dataset_size": p.dataset_size}
    return float(batch_hessian.element_skewness(2.0, **sizes))


CLAIMS: tuple[AnyClaim, ...] = (
    Identity(
        id="granziol2022/nested-batches",
        entries=("B10",),
        source=f"{PAPER}, lemma 2, eq. (7)",
        statement=r"z_B = \varepsilon_{jk} \big/ \sqrt{\mathbb{E}\,\varepsilon_{jk}^2}:\quad "
        r"\mathbb{E}\,(z_B - z_{B'})^2 = 2 - 2 \sqrt{b / b'}\quad (\text{batch } B \subset B')",
        says="From a batch to a larger one around it, the normalised noise keeps moving by an amount set by the "
        "ratio of effective sizes: it does not settle.",
        passage=Passage(
            Standing.MISPRINT,
            "converges element-wise to a zero mean, normal random variable",
            "Lemma 2, Eq 7",
        ),
        routes=nested_batches,
        points=(
            Point(dataset_size=8, batch_size=2, larger=4),
            Point(dataset_size=8, batch_size=3, larger=6),
        ),
        printed="settled",
        reads=r"\Big(\frac1B - \frac1N\Big)^{-1/2} [\nabla^2 R_{\rm emp}(w) - \nabla^2 R_{\rm batch}(w)]_{jk} "
        r"\xrightarrow{\text{a.s}} N(0, \sigma_{jk}^2)",
        finding="As our copy reads the convergence is almost sure; by the central limit theorem, which "
        "the proof cites, it is one in distribution. As a batch doubles, its noise in units of its "
        "deviation goes on moving by 0.58 and more in the mean square.",
        tolerance=1e-13,
        tolerance_reason="exact; sums of some hundred numbers in float64",
        seconds=0.01,
        quantity="mean squared step of the normalised noise",
    ),
    Claim(
        id="granziol2022/exponential-skewness",
        entries=("B10",),
        source=f"ours, beside lemma 2, eq. (7), of {PAPER}: the rate",
        statement=r"\mathrm{skew}(\varepsilon_{jk}) = \kappa_3 \left(\frac1B - \frac2N\right) \Big/ "
        r"\sqrt{\frac1B - \frac1N}\ \sim B^{-1/2}\quad (\text{elements of variance } 1)",
        says="For exponential elements the skewness of a noise element falls as the inverse square root of the "
        "batch size, at a fixed share of the data.",
        passage=OURS,
        experiment=EXPONENTIAL,
        score="skewness",
        predict=_skewness,
        margin=0.008,
        relative=False,
        margin_reason="a sixth of the skewness at the largest batch, where it is 0.051",
        rivals={
            "normal": lambda _: 0.0,
            "with replacement": lambda p: 2 / math.sqrt(p.batch_size),
            "effective batch size": lambda p: 2 * math.sqrt(inverse_batch(p.batch_size, p.dataset_size)),
            "1/B": lambda p: 2 / p.batch_size,
        },
        quantity="skewness of a noise element",
        axis="batch_size",
    ),
)
