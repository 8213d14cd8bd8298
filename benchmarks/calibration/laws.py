"""Laws whose mean is known, and sequences of their replicates."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.calibration.limits import Floats, added, guarded, proportion_limits, summaries
from simulate.monte_carlo import BLOCK
from verify.judging.intervals import FEWEST

__all__ = [
    "ADVERSARIAL",
    "BATCH",
    "BEYOND",
    "EVENTS",
    "LAST",
    "LAWS",
    "PROMISED",
    "SEEN",
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
    """Replicates less their true mean: `draw(rng, shape)`, standard deviation `sd`, first and last look that count."""

    name: str
    draw: Callable[[np.random.Generator, tuple[int, int]], Floats]
    sd: float
    last: int = LAST
    first: int = FEWEST

    def empty(self, rows: int) -> Floats:
        """`summaries` before the first draw, shape (6, rows)."""
        return np.repeat([[0.0], [0.0], [0.0], [-math.inf], [math.inf], [0.0]], rows, axis=1)

    def extend(self, sums: Floats, rng: np.random.Generator, steps: int) -> Floats:
        """The summaries after `steps` further replicates in each row, whole blocks."""
        return added(sums, summaries(self.draw(rng, (sums.shape[1], steps))))

    def limits(self, sums: Floats, n: int, alpha: float) -> tuple[Floats, Floats]:
        """`mean_interval` of every row, as offsets from the truth, shape (rows,) each."""
        half = guarded(sums, n, alpha)
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


def _pareto(rng: np.random.Generator, shape: tuple[int, int], a: float = 3.0) -> Floats:
    return rng.pareto(a, shape) - 1 / (a - 1)


def _with_jumps(rng: np.random.Generator, shape: tuple[int, int], jump: float, chance: float) -> Floats:
    return rng.standard_normal(shape) + jump * ((rng.random(shape) < chance) - chance)


def _student(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    return rng.standard_t(3, shape)


def _on_both_sides(
    rng: np.random.Generator, shape: tuple[int, int], jump: float, up: float, down: float
) -> Floats:
    u = rng.random(shape)
    return rng.standard_normal(shape) + jump * ((u < up) * 1.0 - (u > 1 - down) - up + down)


def _in_blocks(rng: np.random.Generator, shape: tuple[int, int], share: float) -> Floats:
    """Gaussian replicates of which those of one block have the intraclass correlation `share`."""
    common = np.repeat(rng.standard_normal((shape[0], shape[1] // BLOCK)), BLOCK, axis=1)
    return math.sqrt(share) * common + math.sqrt(1 - share) * rng.standard_normal(shape)


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
        Law(name="Student t3", draw=_student, sd=math.sqrt(3)),
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

SEEN = math.log(1024e3)
"""Events expected among n replicates from which on they are missed altogether with a chance below 1e-3/1024."""


def _rare(name: str, jump: float, chance: float) -> Law:
    return Law(
        name=name,
        draw=partial(_with_jumps, jump=jump, chance=chance),
        sd=math.sqrt(1 + jump**2 * chance * (1 - chance)),
        first=math.ceil(SEEN / chance),
        last=8 * math.ceil(SEEN / chance),
    )


ADVERSARIAL: Mapping[str, Law] = {
    law.name: law
    for law in (
        _rare("1 % at 20 sd, once they are seen", 20.0, 0.01),
        _rare("1 % at 100 sd, once they are seen", 100.0, 0.01),
        _rare("5 % at 20 sd, once they are seen", 20.0, 0.05),
        _rare("5 % at 100 sd, once they are seen", 100.0, 0.05),
        Law(
            name="1.1 % at 100 sd, 0.9 % at -100 sd, once seen",
            draw=partial(_on_both_sides, jump=100.0, up=0.011, down=0.009),
            sd=math.sqrt(1 + 100.0**2 * 0.02),
            first=math.ceil(SEEN / 0.009),
            last=8 * math.ceil(SEEN / 0.009),
        ),
        Law(name="Student t3, to 8192", draw=_student, sd=math.sqrt(3), last=8192),
        Law(name="Pareto 2.5", draw=partial(_pareto, a=2.5), sd=math.sqrt(2.5 / 1.5**2 / 0.5), last=8192),
        Law(name="lognormal(1.25)", draw=partial(lognormal, sigma=1.25), sd=lognormal_sd(1.25), last=8192),
        Law(name="intraclass correlation 0.1", draw=partial(_in_blocks, share=0.1), sd=1.0, last=8192),
        Law(
            name="intraclass correlation 0.1, from 4096 on",
            draw=partial(_in_blocks, share=0.1),
            sd=1.0,
            first=4096,
            last=16384,
        ),
        Law(
            name="intraclass correlation 0.5, from 640 on",
            draw=partial(_in_blocks, share=0.5),
            sd=1.0,
            first=640,
            last=8192,
        ),
        Law(name="intraclass correlation 0.5", draw=partial(_in_blocks, share=0.5), sd=1.0, last=8192),
    )
}
"""Laws made to break the promise, each to be within it or undecided; where events are rare, from the look on at which
they are seen."""

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
