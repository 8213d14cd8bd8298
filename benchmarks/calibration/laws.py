"""Laws whose mean is known, and sequences of their replicates."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.calibration.limits import Floats, half_widths, power_sums, proportion_limits

__all__ = [
    "BATCH",
    "BEYOND",
    "EVENTS",
    "LAST",
    "LAWS",
    "PROMISED",
    "TRACY_WIDOM_SHAPE",
    "Event",
    "Law",
    "batches",
    "gamma",
    "generator",
    "lognormal",
    "lognormal_sd",
    "walk",
]

BATCH = 512
"""Sequences drawn together: 512 of them times the longest step between looks fit into the cache."""

LAST = 2048
"""Replicates at the last look of a miss rate, unless the law needs more of them before it is judged at all."""


@dataclass(frozen=True, kw_only=True)
class Law:
    """Replicates less their true mean: `draw(rng, shape)`, standard deviation `sd`, last look of its miss rate."""

    name: str
    draw: Callable[[np.random.Generator, tuple[int, int]], Floats]
    sd: float
    last: int = LAST

    def empty(self, rows: int) -> Floats:
        """Sums of x, x^2 and x^3 before the first draw, shape (3, rows)."""
        return np.zeros((3, rows))

    def extend(self, sums: Floats, rng: np.random.Generator, steps: int) -> Floats:
        """The sums after `steps` further replicates in each row."""
        return sums + power_sums(self.draw(rng, (sums.shape[1], steps)))

    def limits(self, sums: Floats, n: int, alpha: float) -> tuple[Floats, Floats]:
        """`mean_interval` of every row, as offsets from the truth, shape (rows,) each."""
        half = half_widths(sums, n, alpha)
        return sums[0] / n - half, sums[0] / n + half


@dataclass(frozen=True, kw_only=True)
class Event:
    """Hits of an event of probability `p`; the sums are the hits, shape (1, rows)."""

    name: str
    p: float

    @property
    def sd(self) -> float:
        """Standard deviation of one indicator."""
        return math.sqrt(self.p * (1 - self.p))

    def empty(self, rows: int) -> Floats:
        """No hits so far."""
        return np.zeros((1, rows))

    def extend(self, sums: Floats, rng: np.random.Generator, steps: int) -> Floats:
        """The hits after `steps` further replicates in each row."""
        return sums + rng.binomial(steps, self.p, sums.shape)

    def limits(self, sums: Floats, n: int, alpha: float) -> tuple[Floats, Floats]:
        """`proportion_interval` of every row, as offsets from the truth, shape (rows,) each."""
        hits, back = np.unique(sums[0], return_inverse=True)
        lower, upper = proportion_limits(hits, n, alpha)
        return lower[back] - self.p, upper[back] - self.p


def lognormal(rng: np.random.Generator, shape: tuple[int, int], sigma: float) -> Floats:
    """Exponential of N(0, sigma^2), less its mean."""
    return np.exp(sigma * rng.standard_normal(shape)) - math.exp(sigma**2 / 2)


def gamma(rng: np.random.Generator, shape: tuple[int, int], a: float) -> Floats:
    """Gamma law of shape `a`, less its mean."""
    return rng.standard_gamma(a, shape) - a


def _pareto(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    return rng.pareto(3.0, shape) - 0.5


def _with_jumps(rng: np.random.Generator, shape: tuple[int, int], jump: float, chance: float) -> Floats:
    return rng.standard_normal(shape) + jump * ((rng.random(shape) < chance) - chance)


def _ratio(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """A - 1.5 B where A = 1.5 B times an independent positive factor of mean 1."""
    return 1.5 * rng.standard_gamma(4.0, shape) * (rng.standard_gamma(9.0, shape) / 9 - 1)


def lognormal_sd(sigma: float) -> float:
    """Standard deviation of `lognormal`."""
    return math.exp(sigma**2 / 2) * math.sqrt(math.expm1(sigma**2))


TRACY_WIDOM_SHAPE = (2 / 0.29346452408) ** 2
"""Shape of the gamma law with the skewness of the Tracy-Widom law, beta = 1."""

LAWS: Mapping[str, Law] = {
    law.name: law
    for law in (
        Law(name="normal", draw=lambda rng, shape: rng.standard_normal(shape), sd=1.0),
        Law(name="lognormal(1)", draw=partial(lognormal, sigma=1.0), sd=lognormal_sd(1.0), last=8192),
        Law(name="exponential", draw=lambda rng, shape: rng.standard_exponential(shape) - 1, sd=1.0),
        Law(name="Student t3", draw=lambda rng, shape: rng.standard_t(3, shape), sd=math.sqrt(3)),
        Law(
            name="gamma as Tracy-Widom",
            draw=partial(gamma, a=TRACY_WIDOM_SHAPE),
            sd=math.sqrt(TRACY_WIDOM_SHAPE),
        ),
        Law(name="Pareto 3", draw=_pareto, sd=math.sqrt(0.75)),
        Law(
            name="rare events",
            draw=partial(_with_jumps, jump=20, chance=0.01),
            sd=math.sqrt(1 + 400 * 0.01 * 0.99),
        ),
        Law(
            name="events of 8 %",
            draw=partial(_with_jumps, jump=8, chance=0.08),
            sd=math.sqrt(1 + 64 * 0.08 * 0.92),
        ),
        Law(name="ratio", draw=_ratio, sd=1.5 * math.sqrt(20 / 9)),
    )
}

PROMISED = tuple(LAWS)[:5]

BEYOND = ("Pareto 3", "rare events", "events of 8 %")

EVENTS: Mapping[str, Event] = {
    "event of 0.5": Event(name="event of 0.5", p=0.5),
    "event of 0.05": Event(name="event of 0.05", p=0.05),
}


def walk(
    law: Law | Event, rows: int, rng: np.random.Generator, steps: Iterable[int]
) -> Iterator[tuple[int, Floats]]:
    """The sums of `rows` sequences after each number of replicates in `steps`."""
    sums, before = law.empty(rows), 0
    for n in steps:
        sums, before = law.extend(sums, rng, n - before), n
        yield n, sums


def batches(total: int) -> Iterator[int]:
    """Sizes of at most `BATCH` that add up to `total`."""
    for start in range(0, total, BATCH):
        yield min(BATCH, total - start)


def generator(seed: int, *key: str | int) -> np.random.Generator:
    """A stream for each key, whatever else is drawn."""
    words = [k if isinstance(k, int) else zlib.crc32(k.encode()) for k in key]
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=words)))
