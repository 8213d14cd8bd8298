"""Granziol, Zohren and Roberts (2022): one element of the noise of a batch, counted over all batches."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulate.monte_carlo import Block, Point
from theory import batch_hessian
from verify.model import OURS, AnyClaim, Claim, Experiment, Identity, Passage, Standing

__all__ = ["CLAIMS"]

PAPER = "Granziol, Zohren and Roberts (2022)"

Array = NDArray[Any]

RATIONAL = "computed in whole numbers and rationals, rounded once"


def _fluctuation(variance: Any, batch_size: Any, dataset_size: Any) -> Array:
    return batch_hessian.element_fluctuation(
        variance=variance, batch_size=batch_size, dataset_size=dataset_size
    )


def _inverse(batch_size: float, dataset_size: float) -> float:
    """1/b."""
    return 1 / batch_size - 1 / dataset_size


# --- eqs. (4) and (5): the noise, sample by sample -----------------------------------------------------------


def batch_and_rest(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Noise of every batch of a population of matrices: as defined, and from the batch and the rest of it."""
    from simulate.matrices import populations

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


def _whole_numbers(rng: np.random.Generator, count: int) -> Array:
    """Whole numbers, not all equal."""
    return np.append(rng.integers(-20, 20, count - 1), 31)


def _mean_power(sums: Array, size: int, mean: Fraction, power: int) -> Fraction:
    """Mean over batches of a power of the batch mean less `mean`, as a rational."""
    total = sum((Fraction(int(s), size) - mean) ** power for s in sums)
    return Fraction(total) / len(sums)


def _central(values: Array, power: int, divisor: int) -> Fraction:
    """Sum of a power of the deviations from the mean, over `divisor`."""
    mean = Fraction(int(values.sum()), len(values))
    return sum(((Fraction(int(v)) - mean) ** power for v in values), Fraction(0)) / divisor


def element_moments(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Mean and mean square of one noise element over all batches of a population of whole numbers."""
    from simulate.matrices import populations

    total, size = point.dataset_size, point.batch_size
    values = _whole_numbers(rng, total)
    sums, mean = populations.batch_sums(values, size), Fraction(int(values.sum()), total)
    drift, square = (float(_mean_power(sums, size, mean, power)) for power in (1, 2))
    variance = float(_central(values, 2, total - 1))
    exact = _fluctuation(variance, size, total)
    return {
        "all batches": [drift, square],
        "(1/B - 1/N) S^2": [0.0, exact],
        "square of the mean": [0.0, 0.0],
        "variance of divisor N": [0.0, (total - 1) / total * exact],
        "with N/(N - 1) once more": [0.0, total / (total - 1) * exact],
        "1/B": [0.0, variance / size],
    }


def redrawn_moments(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Mean squares of one noise element over every population that can be drawn from a few equally likely values."""
    from simulate.matrices import populations

    total, size = point.dataset_size, point.batch_size
    values = _whole_numbers(rng, point.outcomes)
    drawn = populations.redrawn(values, total)
    batch, every = drawn[:, :size].sum(axis=1), drawn.sum(axis=1)
    truth = Fraction(int(values.sum()), point.outcomes)
    noise = sum(
        Fraction(int(total * b - size * e), size * total) ** 2 for b, e in zip(batch, every, strict=True)
    )
    variance = float(_central(values, 2, point.outcomes))
    return {
        "against the data set": float(noise / len(drawn)),
        "(1/B - 1/N) Var": _fluctuation(variance, size, total),
        "with N/(N - 1)": total / (total - 1) * _fluctuation(variance, size, total),
        "against the true mean": float(_mean_power(batch, size, truth, 2)),
        "Var / B": _fluctuation(variance, size, math.inf),
    }


def with_replacement(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Mean square of one noise element over all sequences of draws from a population, and from redrawn ones."""
    from simulate.matrices import populations

    total, size = point.dataset_size, point.batch_size
    values = _whole_numbers(rng, total)
    sums = populations.batch_sums(values, size, replace=True)
    mean = Fraction(int(values.sum()), total)
    variance = float(_central(values, 2, total))
    return {
        "all sequences": float(_mean_power(sums, size, mean, 2)),
        "variance of divisor N over B": _fluctuation(variance, size, math.inf),
        "1/B - 1/N": _fluctuation(total / (total - 1) * variance, size, total),
        "variance of divisor N - 1 over B": _fluctuation(total / (total - 1) * variance, size, math.inf),
    }


def effective_sizes(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Variance of the samples over mean square of the noise, at every batch size below N."""
    from simulate.matrices import populations

    total = point.dataset_size
    values, sizes = _whole_numbers(rng, total), np.arange(1, total)
    mean, variance = Fraction(int(values.sum()), total), _central(values, 2, total - 1)
    squares = [_mean_power(populations.batch_sums(values, size), size, mean, 2) for size in sizes.tolist()]
    return {
        "variance over mean square": [float(variance / square) for square in squares],
        "b": batch_hessian.effective_batch_size(sizes, total),
        "B": sizes,
        "variance of divisor N": [float((total - 1) * variance / (total * square)) for square in squares],
        "B / (1 + B/N)": sizes / (1 + sizes / total),
    }


def every_element(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Mean square of every noise element over all batches of matrices whose elements vary unequally."""
    from simulate.matrices import populations

    total, size = point.dataset_size, point.batch_size
    scale = 1 + np.arange(point.dim)
    samples = populations.symmetric_matrices(rng, total, point.dim) * scale * scale[:, None]
    noise = populations.batch_sums(samples, size) / size - samples.mean(axis=0)
    variances = samples.var(axis=0, ddof=1)
    return {
        "all batches": (noise**2).mean(axis=0),
        "each its own variance": _fluctuation(variances, size, total),
        "the average variance": _fluctuation(np.full_like(variances, variances.mean()), size, total),
        "B for b": variances / size,
    }


SIZES = tuple(Point(dataset_size=n, batch_size=b) for n, b in ((5, 2), (7, 3), (8, 5), (8, 7)))

NOISE_CLAIMS: tuple[AnyClaim, ...] = (
    Identity(
        id="granziol2022/batch-and-rest",
        entries=("B4", "B5"),
        source=f"{PAPER}, eqs. (4) and (5), first line",
        statement=r"\varepsilon = \left(\frac1B - \frac1N\right) \sum_{i \in \text{batch}} H_i - "
        r"\frac1N \sum_{i \notin \text{batch}} H_i",
        routes=batch_and_rest,
        points=(Point(dataset_size=8, batch_size=3, dim=4), Point(dataset_size=7, batch_size=5, dim=3)),
        measured="noise",
        theory="two sums",
        tolerance=1e-13,
        tolerance_reason="exact; sums of eight numbers in float64",
        rivals=("the factor before both sums", "the rest with a plus"),
        seconds=0.02,
        quantity="noise of every batch",
    ),
    Identity(
        id="granziol2022/element-moments",
        entries=("B6",),
        source=f"{PAPER}, eq. (5), second line",
        statement=r"\mathbb{E}\,\varepsilon_{jk} = 0,\quad \mathbb{E}\,\varepsilon_{jk}^2 = "
        r"\left(\frac1B - \frac1N\right) S_{jk}^2\quad (S^2 \text{ with divisor } N - 1)",
        routes=element_moments,
        points=SIZES,
        measured="all batches",
        theory="(1/B - 1/N) S^2",
        tolerance=1e-14,
        tolerance_reason=RATIONAL,
        rivals=("variance of divisor N", "with N/(N - 1) once more", "1/B", "square of the mean"),
        seconds=0.02,
        quantity="mean and mean square of a noise element",
    ),
    Identity(
        id="granziol2022/redrawn-data-sets",
        entries=("B6",),
        source=f"{PAPER}, eq. (5), second line, for data sets that are drawn themselves",
        statement=r"\mathbb{E}\,\varepsilon_{jk}^2 = \left(\frac1B - \frac1N\right) \mathrm{Var}_\psi\,(H)_{jk}",
        routes=redrawn_moments,
        points=(
            Point(outcomes=3, dataset_size=6, batch_size=2),
            Point(outcomes=4, dataset_size=5, batch_size=3),
        ),
        measured="against the data set",
        theory="(1/B - 1/N) Var",
        tolerance=1e-14,
        tolerance_reason=RATIONAL,
        rivals=("with N/(N - 1)", "Var / B"),
        seconds=0.02,
        quantity="mean square of a noise element",
    ),
    Identity(
        id="granziol2022/true-risk",
        entries=("B11",),
        source=f"{PAPER}, remark 6, eq. (11)",
        statement=r"\mathbb{E}\,(H_B - H_{\text{true}})_{jk}^2 = \mathrm{Var}_\psi\,(H)_{jk} / B",
        routes=redrawn_moments,
        points=(
            Point(outcomes=3, dataset_size=6, batch_size=2),
            Point(outcomes=4, dataset_size=5, batch_size=3),
        ),
        measured="against the true mean",
        theory="Var / B",
        tolerance=1e-14,
        tolerance_reason=RATIONAL,
        rivals=("(1/B - 1/N) Var", "with N/(N - 1)"),
        seconds=0.02,
        quantity="mean square of an element",
    ),
    Identity(
        id="granziol2022/with-replacement",
        entries=("B6",),
        source=f"ours, beside {PAPER}, eq. (5): batches drawn with replacement",
        statement=r"\mathbb{E}\,\varepsilon_{jk}^2 = \frac1B \cdot \frac{N - 1}{N} S_{jk}^2",
        passage=OURS,
        routes=with_replacement,
        points=(Point(dataset_size=5, batch_size=3), Point(dataset_size=7, batch_size=4)),
        measured="all sequences",
        theory="variance of divisor N over B",
        tolerance=1e-14,
        tolerance_reason=RATIONAL,
        rivals=("1/B - 1/N", "variance of divisor N - 1 over B"),
        seconds=0.02,
        quantity="mean square of a noise element",
    ),
    Identity(
        id="granziol2022/effective-batch-size",
        entries=("B7",),
        source=f"{PAPER}, theorem 4 and its footnote; the noise scale of section 2.2",
        statement=r"\frac{S_{jk}^2}{\mathbb{E}\,\varepsilon_{jk}^2} = b = \frac{B}{1 - B/N} = \frac{N B}{N - B}",
        routes=effective_sizes,
        points=(Point(dataset_size=6), Point(dataset_size=8)),
        measured="variance over mean square",
        theory="b",
        tolerance=1e-14,
        tolerance_reason=RATIONAL,
        rivals=("B", "variance of divisor N", "B / (1 + B/N)"),
        seconds=0.02,
        quantity="effective batch size at every B < N",
    ),
    Identity(
        id="granziol2022/element-by-element",
        entries=("B38",),
        source=f"{PAPER}, section 8.2",
        statement=r"\mathbb{E}\,\varepsilon_{jk}^2 = \frac1b \mathrm{Var}_i\,(H_i)_{jk}\quad \text{for each } j, k",
        routes=every_element,
        points=(Point(dataset_size=8, batch_size=3, dim=4), Point(dataset_size=6, batch_size=4, dim=5)),
        measured="all batches",
        theory="each its own variance",
        tolerance=1e-13,
        tolerance_reason="exact; sums of some fifty numbers in float64",
        rivals=("the average variance", "B for b"),
        seconds=0.02,
        quantity="mean square of every noise element",
    ),
)

# --- lemma 2: the central limit -------------------------------------------------------------------------------


def element_skewness(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Third moment of one noise element over all batches of a population of whole numbers, at every B."""
    from simulate.matrices import populations

    total = point.dataset_size
    values, sizes = _whole_numbers(rng, total), range(1, total)
    mean = Fraction(int(values.sum()), total)
    third = _central(values, 3, 1) * Fraction(total, (total - 1) * (total - 2))
    inverse = [Fraction(1, size) - Fraction(1, total) for size in sizes]
    factors = [Fraction(1, size) - Fraction(2, total) for size in sizes]
    cubes = [_mean_power(populations.batch_sums(values, size), size, mean, 3) for size in sizes]
    rows = {
        "all batches": cubes,
        "(1/B - 1/N)(1/B - 2/N) k3": [third * b * f for b, f in zip(inverse, factors, strict=True)],
        "(1/B - 1/N)^2 k3": [third * b**2 for b in inverse],
        "k3 / B^2": [third / size**2 for size in sizes],
        "no skewness": [Fraction(0)] * len(sizes),
    }
    return {name: [float(x) for x in row] for name, row in rows.items()}


def nested_batches(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Mean square of the step from a batch to a larger one that holds it, both in units of their deviation."""
    from simulate.matrices import populations

    total, small, large = point.dataset_size, point.batch_size, point.larger
    values = _whole_numbers(rng, total).astype(float)
    values -= values.mean()
    outer = values[populations.batches(total, large)]
    inner = outer[:, populations.batches(large, small)].mean(axis=2)
    deviations = [math.sqrt(_fluctuation(values.var(ddof=1), size, total)) for size in (small, large)]
    steps = inner / deviations[0] - outer.mean(axis=1, keepdims=True) / deviations[1]
    shared = math.sqrt(_inverse(large, total) / _inverse(small, total))
    return {
        "all nested batches": (steps**2).mean(),
        "2 - 2 sqrt(b / b')": 2 - 2 * shared,
        "settled": 0.0,
        "independent": 2.0,
        "2 - 2 sqrt(B / B')": 2 - 2 * math.sqrt(small / large),
    }


def exponential_elements(block: Block, point: Point) -> Mapping[str, Any]:
    """Third Hermite polynomial of one noise element in units of its deviation, for exponential elements.

    The polynomial z^3 - 3 z leaves out a term of mean exactly 0. Sums of exponential variables are drawn at once.
    """
    inside, outside = (
        np.stack([rng.standard_gamma(count, point.populations) for rng in block.streams])
        for count in (point.batch_size, point.dataset_size - point.batch_size)
    )
    inverse = _inverse(point.batch_size, point.dataset_size)
    z = (inverse * inside - outside / point.dataset_size) / math.sqrt(inverse)
    return {"skewness": (z**3 - 3 * z).mean(axis=1)}


EXPONENTIAL = Experiment(
    id="granziol2022/exponential-elements",
    replicate="8192 data sets of exponential elements, with a batch of each",
    simulate=exponential_elements,
    points=tuple(
        Point(batch_size=size, dataset_size=4 * size, populations=8192) for size in (8, 32, 128, 512)
    ),
    budget=4096,
    seconds=1.0,
)


def _skewness(p: Point) -> float:
    """Elements of third cumulant 2."""
    return 2 * (1 / p.batch_size - 2 / p.dataset_size) / math.sqrt(_inverse(p.batch_size, p.dataset_size))


LIMIT_CLAIMS: tuple[AnyClaim, ...] = (
    Identity(
        id="granziol2022/element-skewness",
        entries=("B10",),
        source=f"ours, beside lemma 2, eq. (7), of {PAPER}",
        statement=r"\mathbb{E}\,\varepsilon_{jk}^3 = \left(\frac1B - \frac1N\right)\left(\frac1B - \frac2N\right) k_3",
        passage=OURS,
        routes=element_skewness,
        points=(Point(dataset_size=7), Point(dataset_size=8)),
        measured="all batches",
        theory="(1/B - 1/N)(1/B - 2/N) k3",
        tolerance=1e-14,
        tolerance_reason=RATIONAL,
        rivals=("no skewness", "(1/B - 1/N)^2 k3", "k3 / B^2"),
        seconds=0.02,
        quantity="third moment of a noise element at every B < N",
    ),
    Identity(
        id="granziol2022/nested-batches",
        entries=("B10",),
        source=f"{PAPER}, lemma 2, eq. (7)",
        statement=r"z_B = \varepsilon_{jk} \big/ \sqrt{\mathbb{E}\,\varepsilon_{jk}^2}:\quad "
        r"\mathbb{E}\,(z_B - z_{B'})^2 = 2 - 2 \sqrt{b / b'}\quad (\text{batch } B \subset B')",
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
        measured="all nested batches",
        theory="2 - 2 sqrt(b / b')",
        printed="settled",
        finding="As our copy reads the convergence is almost sure; by the central limit theorem, which "
        "the proof cites, it is one in distribution. As a batch doubles, its noise in units of its "
        "deviation goes on moving by 0.58 and more in the mean square.",
        tolerance=1e-13,
        tolerance_reason="exact; sums of some hundred numbers in float64",
        rivals=("independent", "2 - 2 sqrt(B / B')"),
        seconds=0.02,
        quantity="mean squared step of the normalised noise",
    ),
    Claim(
        id="granziol2022/exponential-skewness",
        entries=("B10",),
        source=f"ours, beside lemma 2, eq. (7), of {PAPER}: the rate",
        statement=r"\mathrm{skew}(\varepsilon_{jk}) = \kappa_3 \left(\frac1B - \frac2N\right) \Big/ "
        r"\sqrt{\frac1B - \frac1N}\ \sim B^{-1/2}\quad (\text{elements of variance } 1)",
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
            "effective batch size": lambda p: 2 * math.sqrt(_inverse(p.batch_size, p.dataset_size)),
            "1/B": lambda p: 2 / p.batch_size,
        },
        quantity="skewness of a noise element",
        axis="batch_size",
    ),
)

CLAIMS: tuple[AnyClaim, ...] = (*NOISE_CLAIMS, *LIMIT_CLAIMS)
