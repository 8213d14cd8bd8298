"""Granziol, Zohren and Roberts (2022): one element of the noise of a batch, and how near it is to normal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulate.matrices import populations
from simulate.monte_carlo import Block, Point
from theory import batch_hessian
from verify.claims.granziol2022 import PAPER
from verify.model import OURS, AnyClaim, Claim, Experiment, Identity, NoTheory, Passage, Standing

__all__ = ["CLAIMS", "inverse_batch"]

# --- moments over all batches of a population of whole numbers, as rationals ---------------------------------

Array = NDArray[Any]

RATIONAL = "computed in whole numbers and rationals, rounded once"


def fluctuation_of(variance: Any, batch_size: Any, dataset_size: Any) -> Array:
    """Variance of an element of the noise, of that of the samples."""
    return batch_hessian.element_fluctuation(
        variance=variance, batch_size=batch_size, dataset_size=dataset_size
    )


def inverse_batch(batch_size: float, dataset_size: float) -> float:
    """1/b."""
    return 1 / batch_size - 1 / dataset_size


def whole_numbers(rng: np.random.Generator, count: int) -> Array:
    """Whole numbers, not all equal."""
    return np.append(rng.integers(-20, 20, count - 1), 31)


def mean_power(sums: Array, size: int, mean: Fraction, power: int) -> Fraction:
    """Mean over batches of a power of the batch mean less `mean`, as a rational."""
    total = sum((Fraction(int(s), size) - mean) ** power for s in sums)
    return Fraction(total) / len(sums)


def central_moment(values: Array, power: int, divisor: int) -> Fraction:
    """Sum of a power of the deviations from the mean, over `divisor`."""
    mean = Fraction(int(values.sum()), len(values))
    return sum(((Fraction(int(v)) - mean) ** power for v in values), Fraction(0)) / divisor


# --- eqs. (4) and (5): the noise, sample by sample -----------------------------------------------------------


def batch_and_rest(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Noise of every batch of a population of matrices: as defined, and from the batch and the rest of it."""
    total, size = point.dataset_size, point.batch_size
    samples = populations.symmetric_matrices(rng, total, point.dim)
    inside = populations.batch_sums(samples, size)
    outside = samples.sum(axis=0) - inside
    return {
        "noise": inside / size - samples.mean(axis=0),
        "two sums": (1 / size - 1 / total) * inside - outside / total,
        "the factor before both sums": (1 / size - 1 / total) * (inside - outside),
        "the rest with a plus": (1 / size - 1 / total) * inside + outside / total,
    }


def against_the_true_mean(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """The same about the mean of what the populations are drawn from."""
    values, drawn, variance = _redrawn(rng, point)
    total, size = point.dataset_size, point.batch_size
    truth = Fraction(int(values.sum()), point.outcomes)
    return {
        "against the true mean": float(mean_power(drawn[:, :size].sum(axis=1), size, truth, 2)),
        "Var / B": fluctuation_of(variance, size, math.inf),
        "(1/B - 1/N) Var": fluctuation_of(variance, size, total),
        "with N/(N - 1)": total / (total - 1) * fluctuation_of(variance, size, total),
    }


def _redrawn(rng: np.random.Generator, point: Point) -> tuple[Any, Any, float]:
    """The values, every population that can be drawn from them, and their variance."""
    values = whole_numbers(rng, point.outcomes)
    return (
        values,
        populations.redrawn(values, point.dataset_size),
        float(central_moment(values, 2, point.outcomes)),
    )


def effective_sizes(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Variance of the samples over mean square of the noise, at every batch size below N."""
    total = point.dataset_size
    values, sizes = whole_numbers(rng, total), np.arange(1, total)
    mean, variance = Fraction(int(values.sum()), total), central_moment(values, 2, total - 1)
    squares = [mean_power(populations.batch_sums(values, size), size, mean, 2) for size in sizes.tolist()]
    return {
        "variance over mean square": [float(variance / square) for square in squares],
        "b": batch_hessian.effective_batch_size(sizes, total),
        "B": sizes,
        "variance of divisor N": [float((total - 1) * variance / (total * square)) for square in squares],
        "B / (1 + B/N)": sizes / (1 + sizes / total),
    }


SIZES = tuple(Point(dataset_size=n, batch_size=b) for n, b in ((5, 2), (7, 3), (8, 5), (8, 7)))


# --- lemma 2: how near the noise is to normal ----------------------------------------------------------------


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

    The polynomial z^3 - 3 z leaves out a term of mean 0. Sums of exponential variables are drawn at once.
    """
    inside, outside = (
        np.stack([rng.standard_gamma(count, point.populations) for rng in block.streams])
        for count in (point.batch_size, point.dataset_size - point.batch_size)
    )
    inverse = inverse_batch(point.batch_size, point.dataset_size)
    z = (inverse * inside - outside / point.dataset_size) / math.sqrt(inverse)
    return {"skewness": (z**3 - 3 * z).mean(axis=1)}


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
        id="granziol2022/batch-and-rest",
        no_theory=NoTheory.MEASURED,
        entries=("B4", "B5"),
        source=f"{PAPER}, eqs. (4) and (5), first line",
        statement=r"\varepsilon = \left(\frac1B - \frac1N\right) \sum_{i \in \text{batch}} H_i - "
        r"\frac1N \sum_{i \notin \text{batch}} H_i",
        says="The noise of every batch is a positive weight on the samples inside it and a negative one on the "
        "samples outside.",
        routes=batch_and_rest,
        points=(Point(dataset_size=8, batch_size=3, dim=4), Point(dataset_size=7, batch_size=5, dim=3)),
        tolerance=1e-13,
        tolerance_reason="exact; sums of eight numbers in float64",
        seconds=0.01,
        quantity="noise of every batch",
    ),
    Identity(
        id="granziol2022/true-risk",
        symbols={"H": "Hessian of one sample, drawn from the law psi of the data"},
        entries=("B11",),
        source=f"{PAPER}, remark 6, eq. (11)",
        statement=r"\mathbb{E}\,(H_B - H_{\text{true}})_{jk}^2 = \mathrm{Var}_\psi\,(H)_{jk} / B",
        says="Measured from the Hessian of the true risk, an element of the batch Hessian has the variance of its "
        "source over the batch size itself.",
        routes=against_the_true_mean,
        points=(
            Point(outcomes=3, dataset_size=6, batch_size=2),
            Point(outcomes=4, dataset_size=5, batch_size=3),
        ),
        tolerance=1e-14,
        tolerance_reason=RATIONAL,
        seconds=0.01,
        quantity="mean square of an element",
    ),
    Identity(
        id="granziol2022/effective-batch-size",
        entries=("B7",),
        source=f"{PAPER}, theorem 4 and its footnote; the noise scale of section 2.2",
        statement=r"\frac{S_{jk}^2}{\mathbb{E}\,\varepsilon_{jk}^2} = b = \frac{B}{1 - B/N} = \frac{N B}{N - B}",
        says="The sample variance over the mean square of the noise is the effective batch size, for every batch "
        "smaller than the data set.",
        routes=effective_sizes,
        points=(Point(dataset_size=6), Point(dataset_size=8)),
        tolerance=1e-14,
        tolerance_reason=RATIONAL,
        seconds=0.01,
        quantity="effective batch size at every B < N",
    ),
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
