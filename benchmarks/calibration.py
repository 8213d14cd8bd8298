r"""Does the verdict engine keep its promise? Sequences of replicates with a known truth, by the million.

| sub-table | what is measured |
|---|---|
| `miss` | chance that the interval of the mean misses it at any look, over its promise |
| `alternatives` | the same for intervals that were not taken |
| `tails` | the same at the error of the suite itself, too rare to count: importance sampling |
| `first` | the same where the first look comes later |
| `events` | the interval of a probability, exactly: dynamic programming over the number of hits |
| `ratio` | the interval of E[A] / E[B] |
| `reports` | reports of a hundred claims each: any wrong verdict, against the promise |
| `replicates` | replicates at the decision, against margin / standard deviation |

``python benchmarks/calibration.py miss --sequences 4000000 --json miss.json``; ``all`` runs every one of them.
The number of processes changes nothing: sequences come in chunks, each with a generator of its own.
Shares come with Clopper-Pearson intervals of 95 %.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

from verify.intervals import FEWEST, TIGHTEST_AT, multiplier, ratio_interval, widened
from verify.judge import looks

__all__ = [
    "AGREES",
    "ALPHAS",
    "DISAGREES",
    "EVENTS",
    "LAWS",
    "RULES",
    "SUITE",
    "TAILS",
    "Event",
    "Law",
    "Rule",
    "Tail",
    "Tilt",
    "Verdicts",
    "clopper_pearson",
    "decided",
    "event_miss_rate",
    "half_widths",
    "judge_reports",
    "judged",
    "main",
    "misses",
    "mixture_weights",
    "power_sums",
    "proportion_limits",
    "rare_miss_rate",
    "synthetic",
    "taken",
    "tilts",
    "widened_each",
    "wrong",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Row = dict[str, Any]

SUITE = 1e-3 / 1024
"""Error of one interval of the suite."""

ALPHAS = (1e-2, 1e-3, 1e-4, 1e-5, SUITE)

BATCH = 512
"""Sequences drawn together: 512 of them times the longest step between looks fit into the cache."""

LAST = 2048
"""Replicates at the last look of a miss rate, unless the law needs more of them before it is judged at all."""

AGREES, DISAGREES = 1, -1


# --- laws with a known mean


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


def _lognormal(rng: np.random.Generator, shape: tuple[int, int], sigma: float) -> Floats:
    return np.exp(sigma * rng.standard_normal(shape)) - math.exp(sigma**2 / 2)


def _gamma(rng: np.random.Generator, shape: tuple[int, int], a: float) -> Floats:
    return rng.standard_gamma(a, shape) - a


def _pareto(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    return rng.pareto(3.0, shape) - 0.5


def _with_jumps(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    return rng.standard_normal(shape) + 20 * (rng.random(shape) < 0.01) - 0.2


def _ratio(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """A - 1.5 B where A = 1.5 B times an independent positive factor of mean 1."""
    return 1.5 * rng.standard_gamma(4.0, shape) * (rng.standard_gamma(9.0, shape) / 9 - 1)


def _lognormal_sd(sigma: float) -> float:
    return math.exp(sigma**2 / 2) * math.sqrt(math.expm1(sigma**2))


TRACY_WIDOM_SHAPE = (2 / 0.29346452408) ** 2
"""Shape of the gamma law with the skewness of the Tracy-Widom law, beta = 1."""

LAWS: Mapping[str, Law] = {
    law.name: law
    for law in (
        Law(name="normal", draw=lambda rng, shape: rng.standard_normal(shape), sd=1.0),
        Law(name="lognormal(1)", draw=partial(_lognormal, sigma=1.0), sd=_lognormal_sd(1.0), last=8192),
        Law(name="exponential", draw=lambda rng, shape: rng.standard_exponential(shape) - 1, sd=1.0),
        Law(name="Student t3", draw=lambda rng, shape: rng.standard_t(3, shape), sd=math.sqrt(3)),
        Law(
            name="gamma as Tracy-Widom",
            draw=partial(_gamma, a=TRACY_WIDOM_SHAPE),
            sd=math.sqrt(TRACY_WIDOM_SHAPE),
        ),
        Law(name="Pareto 3", draw=_pareto, sd=math.sqrt(0.75)),
        Law(name="rare events", draw=_with_jumps, sd=math.sqrt(1 + 400 * 0.01 * 0.99)),
        Law(name="ratio", draw=_ratio, sd=1.5 * math.sqrt(20 / 9)),
    )
}

PROMISED = tuple(LAWS)[:5]
BEYOND = ("Pareto 3", "rare events")

EVENTS: Mapping[str, Event] = {
    "event of 0.5": Event(name="event of 0.5", p=0.5),
    "event of 0.05": Event(name="event of 0.05", p=0.05),
}


# --- the intervals, for many sequences at once


def power_sums(x: Floats) -> Floats:
    """Sums of x, x^2 and x^3 over each row, shape (3, rows).

    >>> power_sums(np.array([[1.0, 2.0]])).ravel()
    array([3., 5., 9.])
    """
    square = x * x
    return np.stack([x.sum(axis=1), square.sum(axis=1), np.einsum("ij,ij->i", square, x)])


def half_widths(sums: Floats, n: int, alpha: float, rule: Rule | None = None) -> Floats:
    """Half-width of `mean_interval` of each row of replicates, infinite where it is too skewed.

    Parameters
    ----------
    sums
        Shape (3, rows): sums of x, x^2 and x^3 over `n` replicates, counted from near their mean.
    """
    mean, square, cube = sums / n
    sd = np.sqrt((square - mean**2) * (n / (n - 1)))
    k = (rule.multiplier if rule else multiplier)(n, alpha)
    if math.isinf(k) or (rule and not rule.widens):
        return k * sd / math.sqrt(n)
    skewness = (cube - 3 * mean * square + 2 * mean**3) / sd**3
    return widened_each(k, n, skewness) * sd / math.sqrt(n)


def widened_each(k: float, n: int, skewness: Floats) -> Floats:
    r"""`widened` of an array: with u = 1/k' the cubic is :math:`u^3 - u/k^2 + 2c/k^2 = 0`, solved by Viete.

    >>> widened_each(6.0, 100, np.array([0.0, 0.5, 9.0])).round(3)
    array([6.   , 6.827,   inf])
    """
    c = np.abs(skewness) / (3 * math.sqrt(n))
    trusted = c * math.sqrt(1.5) * k <= 1 / 6
    angle = np.arccos(-3 * math.sqrt(3) * k * np.where(trusted, c, 0.0))
    return np.where(trusted, math.sqrt(3) / 2 * k / np.cos(angle / 3), math.inf)


def proportion_limits(hits: Floats, n: int, alpha: float) -> tuple[Floats, Floats]:
    """`proportion_interval` of each number of hits, shape (rows,) each.

    >>> np.round(proportion_limits(np.array([256.0]), 256, 1e-6), 3).ravel()
    array([0.935, 1.   ])
    """
    floor = _least_likelihood(hits, n, alpha)
    ends = [_last_inside(hits, n, floor, end) for end in (0.0, 1.0)]
    return np.where(hits == 0, 0.0, ends[0]), np.where(hits == n, 1.0, ends[1])


def _least_likelihood(hits: Floats, n: int, alpha: float) -> Floats:
    return special.betaln(hits + 0.5, n - hits + 0.5) - special.betaln(0.5, 0.5) + math.log(alpha)


def _likelihood(p: Floats | float, hits: Floats, n: int) -> Floats:
    return special.xlogy(hits, p) + special.xlog1py(n - hits, -np.asarray(p))


def _last_inside(hits: Floats, n: int, floor: Floats, end: float) -> Floats:
    inside, outside = hits / n, np.full(hits.shape, end)
    for _ in range(60):
        middle = (inside + outside) / 2
        out = _likelihood(middle, hits, n) <= floor
        inside, outside = np.where(out, inside, middle), np.where(out, middle, outside)
    return outside


def decided(lower: Floats, upper: Floats, low: Floats, high: Floats) -> Ints:
    """`decide` of arrays: `AGREES`, `DISAGREES`, 0 for undecided.

    >>> decided(np.array([0.9, 0.7, 1.3]), np.array([1.1, 0.9, 1.5]), np.full(3, 0.8), np.full(3, 1.2))
    array([ 1,  0, -1])
    """
    agrees = (low < lower) & (upper < high)
    return agrees * AGREES + ((upper < low) | (lower > high)) * DISAGREES


# --- miss rates


@dataclass(frozen=True, kw_only=True)
class Rule:
    """An interval for the mean: multiplier of the standard error, widened for skewness or not, and its looks."""

    name: str
    multiplier: Callable[[int, float], float] = multiplier
    widens: bool = False
    looks: tuple[int, ...]


def _student(n: int, alpha: float) -> float:
    return float(stats.t.isf(alpha / 2, n - 1))


def _mixture(n: int, alpha: float) -> float:
    """Normal mixture sequence for a known variance, tuned like the rule of the suite."""
    level = 2 * math.log(1 / alpha)
    c2 = TIGHTEST_AT / (level + math.log1p(level))
    return math.sqrt((1 + c2 / n) * (level + math.log1p(n / c2)))


LOOKS = tuple(looks(LAST))
EARLY = (16, 32, 48)
DOUBLINGS = tuple(FEWEST * 2**i for i in range(6))


def taken(last: int = LAST) -> Rule:
    """The interval of the suite, at the looks of the suite."""
    return Rule(name="the suite's", widens=True, looks=tuple(looks(last)))


RULES = (
    Rule(name="Student's t at every doubling", multiplier=_student, looks=DOUBLINGS),
    Rule(name="Student's t at every look", multiplier=_student, looks=LOOKS),
    Rule(name="normal mixture, sd taken as known", multiplier=_mixture, looks=LOOKS),
    Rule(name="t martingale, not widened", looks=LOOKS),
    Rule(name="the suite's, from 16 on", widens=True, looks=(*EARLY, *LOOKS)),
    taken(),
)


def misses(
    law: Law,
    sequences: int,
    rng: np.random.Generator,
    *,
    rules: Sequence[Rule],
    alphas: Sequence[float] = ALPHAS,
) -> Ints:
    """Sequences that miss at any look, sequences too skewed at any look, and looks too skewed.

    Returns
    -------
    Shape (3, rules, alphas).
    """
    counts = np.zeros((3, len(rules), len(alphas)), dtype=np.int64)
    for rows in _batches(sequences):
        counts += _misses(law, rows, rng, rules, alphas)
    return counts


def _misses(
    law: Law, rows: int, rng: np.random.Generator, rules: Sequence[Rule], alphas: Sequence[float]
) -> Ints:
    missed = np.zeros((len(rules), len(alphas), rows), dtype=bool)
    skewed = np.zeros((len(rules), len(alphas), rows), dtype=np.int64)
    for n, sums in _walk(law, rows, rng, sorted({n for rule in rules for n in rule.looks})):
        for i, rule in enumerate(rules):
            for j, alpha in enumerate(alphas if n in rule.looks else ()):
                half = half_widths(sums, n, alpha, rule)
                missed[i, j] |= np.abs(sums[0]) / n > half
                skewed[i, j] += np.isinf(half)
    return np.stack([missed.sum(axis=2), (skewed > 0).sum(axis=2), skewed.sum(axis=2)])


def _walk(
    law: Law | Event, rows: int, rng: np.random.Generator, steps: Iterable[int]
) -> Iterator[tuple[int, Floats]]:
    sums, before = law.empty(rows), 0
    for n in steps:
        sums, before = law.extend(sums, rng, n - before), n
        yield n, sums


def _batches(total: int) -> Iterator[int]:
    for start in range(0, total, BATCH):
        yield min(BATCH, total - start)


def _generator(seed: int, *key: str | int) -> np.random.Generator:
    words = [k if isinstance(k, int) else zlib.crc32(k.encode()) for k in key]
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=words)))


def clopper_pearson(hits: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Exact confidence interval of a share.

    >>> [round(end, 4) for end in clopper_pearson(0, 1000)]
    [0.0, 0.0037]
    """
    tail_share = (1 - confidence) / 2
    lower = float(stats.beta.ppf(tail_share, hits, n - hits + 1)) if hits else 0.0
    return lower, float(stats.beta.isf(tail_share, hits + 1, n - hits)) if hits < n else 1.0


# --- misses too rare to count


class Tilt(NamedTuple):
    """The law times exp(one u + two u^2 + three u^3 - log_norm), u being x in standard deviations of the law."""

    one: float
    two: float
    three: float
    log_norm: float


@dataclass(frozen=True, kw_only=True)
class Tail:
    """A law whose misses are made frequent: its support from `low` on, and a quadrature rule of nodes and weights."""

    law: Law
    skewness: float
    grid: tuple[Floats, Floats]
    low: float = -math.inf

    def tilted(self, exponents: Floats | Sequence[float]) -> tuple[Tilt, Floats]:
        """The tilt normalised, and the weights of the nodes under it."""
        one, two, three = map(float, exponents)
        u, weights = self.grid[0] / self.law.sd, self.grid[1]
        exponent = ((three * u + two) * u + one) * u
        top = float(exponent.max())
        log_norm = top + math.log(float(weights @ np.exp(exponent - top)))
        return Tilt(one, two, three, log_norm), weights * np.exp(exponent - log_norm)

    def log_likelihood_ratio(self, tilt: Tilt, sums: Floats, n: int) -> Floats:
        """Logarithm of dQ/dP of the tilted law Q against the law P after `n` replicates, shape (rows,)."""
        sd = self.law.sd
        return (
            tilt.one * sums[0] / sd
            + tilt.two * sums[1] / sd**2
            + tilt.three * sums[2] / sd**3
            - n * tilt.log_norm
        )

    def peak(self, tilt: Tilt) -> float:
        """Largest exponent on the support."""
        if tilt.three > 0 or (tilt.three == 0 and tilt.two >= 0):
            return math.inf
        turns = np.roots([3 * tilt.three, 2 * tilt.two, tilt.one])
        at = [u for u in turns[np.isreal(turns)].real if u > self.low / self.law.sd]
        at += [self.low / self.law.sd] if math.isfinite(self.low) else []
        return max(((tilt.three * u + tilt.two) * u + tilt.one) * u for u in at)

    def draw(self, rng: np.random.Generator, shape: tuple[int, int], tilt: Tilt) -> Floats:
        """Replicates of the tilted law, by rejection."""
        wanted, peak = shape[0] * shape[1], self.peak(tilt)
        share, found = math.exp(tilt.log_norm - peak), np.zeros(0)
        while len(found) < wanted:
            x = self.law.draw(rng, (1, 64 + math.ceil(1.05 * (wanted - len(found)) / share)))[0]
            u = x / self.law.sd
            exponent = ((tilt.three * u + tilt.two) * u + tilt.one) * u - peak
            found = np.concatenate([found, x[rng.standard_exponential(len(x)) > -exponent]])
        return found[:wanted].reshape(shape)


def _gaussian() -> tuple[Floats, Floats]:
    z = np.linspace(-12.0, 12.0, 1001)
    return z, np.exp(-(z**2) / 2) * ((z[1] - z[0]) / math.sqrt(2 * math.pi))


def _lognormal_tail(sigma: float, last: int = LAST) -> Tail:
    z, weights = _gaussian()
    draw, mean, growth = partial(_lognormal, sigma=sigma), math.exp(sigma**2 / 2), math.expm1(sigma**2)
    law = Law(name=f"lognormal({sigma:g})", draw=draw, sd=_lognormal_sd(sigma), last=last)
    skewness, nodes = (growth + 3) * math.sqrt(growth), np.exp(sigma * z) - mean
    return Tail(law=law, skewness=skewness, grid=(nodes, weights), low=-mean)


def _gamma_tail(name: str, a: float, last: int = LAST) -> Tail:
    y = np.linspace(math.log(special.gammaincinv(a, 1e-30)), math.log(a + 20 * math.sqrt(a) + 60), 1501)
    law = Law(name=name, draw=partial(_gamma, a=a), sd=math.sqrt(a), last=last)
    grid = np.exp(y) - a, np.exp(a * y - np.exp(y) - math.lgamma(a)) * (y[1] - y[0])
    return Tail(law=law, skewness=2 / math.sqrt(a), grid=grid, low=-a)


TAILS: Mapping[str, Tail] = {
    tail.law.name: tail
    for tail in (
        Tail(law=LAWS["normal"], skewness=0.0, grid=_gaussian()),
        _gamma_tail("gamma as Tracy-Widom", TRACY_WIDOM_SHAPE),
        _gamma_tail("gamma(4)", 4.0),
        _gamma_tail("exponential", 1.0, last=2 * LAST),
        _lognormal_tail(0.25),
        _lognormal_tail(0.35),
        _lognormal_tail(0.5, last=2 * LAST),
        _lognormal_tail(0.7, last=2 * LAST),
        _lognormal_tail(0.85, last=4 * LAST),
        _lognormal_tail(1.0, last=8 * LAST),
    )
}


def tilts(tail: Tail, alpha: float) -> list[Tilt]:
    """The likeliest ways to miss on either side, at every second look."""
    ways = [(n, side) for n in looks(tail.law.last)[::2] for side in (-1, 1)]
    found = [_likeliest(tail, n, alpha, side) for n, side in ways]
    return [tilt for tilt in found if tilt and math.exp(tilt.log_norm - tail.peak(tilt)) > 0.05]


def _likeliest(tail: Tail, n: int, alpha: float, side: int) -> Tilt | None:
    """The tilt of least divergence from the law that puts the mean where it is just missed, skewness trusted."""
    k = multiplier(n, alpha)
    most = math.sqrt(n) / (2 * math.sqrt(1.5) * k)
    # a cubic exponent cuts a long tail off; where there is hardly one, it makes rejection wasteful
    cubic = -0.01 if tail.skewness > 0.8 else 0.0
    start = [side * k / math.sqrt(n), -0.1, cubic]

    def beyond(exponents: Floats) -> float:
        mean, sd, skewness = _moments(tail, exponents)
        return side * mean * math.sqrt(n) / sd - widened(k, n, min(abs(skewness), 0.999 * most))

    best = optimize.minimize(
        lambda e: _divergence(tail, e),
        start,
        method="SLSQP",
        bounds=[(None, None), (None, None), (None, 0.0) if cubic else (0.0, 0.0)],
        constraints=[
            {"type": "eq", "fun": beyond},
            {"type": "ineq", "fun": lambda e: most - abs(_moments(tail, e)[2])},
        ],
    )
    return tail.tilted(best.x)[0] if best.success else None


def _moments(tail: Tail, exponents: Floats | Sequence[float]) -> tuple[float, float, float]:
    weights = tail.tilted(exponents)[1]
    mean = float(weights @ tail.grid[0])
    off = tail.grid[0] - mean
    sd = math.sqrt(float(weights @ off**2))
    return mean, sd, float(weights @ off**3) / sd**3


def _divergence(tail: Tail, exponents: Floats | Sequence[float]) -> float:
    tilt, weights = tail.tilted(exponents)
    u = tail.grid[0] / tail.law.sd
    return float(weights @ (((tilt.three * u + tilt.two) * u + tilt.one) * u)) - tilt.log_norm


def rare_miss_rate(
    tail: Tail, alpha: float, sequences: int, seed: int, first: int = FEWEST
) -> tuple[float, float, float]:
    """Chance of a miss at any look from `first` on, its standard error, and the share of the largest weight in it.

    Sequences are drawn from an equal mixture of tilted laws; each that misses counts dP/dQ at its first miss,
    Q being the mixture, which is unbiased for whatever stopping time.
    """
    ways = tilts(tail, alpha)
    each = math.ceil(sequences / len(ways)) + 1
    weights = [_weights(tail, way, ways, alpha, each, seed, first) for way in ways]
    variance = sum(float(w.var(ddof=1)) / each for w in weights) / len(ways) ** 2
    total = float(np.sum(weights))
    return total / each / len(ways), math.sqrt(variance), float(np.max(weights)) / total


def mixture_weights(tail: Tail, ways: list[Tilt], sums: Floats, n: int) -> Floats:
    """Likelihood ratio dP/dQ of the law against the equal mixture of the tilted laws, shape (rows,)."""
    ratios = [tail.log_likelihood_ratio(tilt, sums, n) for tilt in ways]
    return np.exp(math.log(len(ways)) - np.logaddexp.reduce(ratios, axis=0))


def _weights(
    tail: Tail, way: Tilt, ways: list[Tilt], alpha: float, rows: int, seed: int, first: int
) -> Floats:
    rng = _generator(seed, tail.law.name, ways.index(way), round(1 / alpha))
    return np.concatenate(
        [_first_misses(tail, way, ways, alpha, size, rng, first) for size in _batches(rows)]
    )


def _first_misses(
    tail: Tail, way: Tilt, ways: list[Tilt], alpha: float, rows: int, rng: np.random.Generator, first: int
) -> Floats:
    weights, active, sums, before = np.zeros(rows), np.arange(rows), np.zeros((3, rows)), 0
    for n in looks(tail.law.last):
        sums, before = sums + power_sums(tail.draw(rng, (len(active), n - before), way)), n
        out = (np.abs(sums[0]) / n > half_widths(sums, n, alpha)) & (n >= first)
        weights[active[out]] = mixture_weights(tail, ways, sums[:, out], n)
        active, sums = active[~out], sums[:, ~out]
    return weights


# --- events, exactly


def event_miss_rate(p: float, alpha: float, steps: Sequence[int]) -> float:
    """Chance that `proportion_interval` misses `p` at any of the looks: the hits as a chain that stops at a miss.

    >>> event_miss_rate(0.5, 1e-2, [64]) < event_miss_rate(0.5, 1e-2, [64, 128]) < 1e-2
    True
    """
    chance, before, missed = np.ones(1), 0, 0.0
    for n in steps:
        chance = np.convolve(chance, stats.binom.pmf(np.arange(n - before + 1), n - before, p))
        hits = np.arange(n + 1.0)
        out = _likelihood(p, hits, n) <= _least_likelihood(hits, n, alpha)
        missed += float(chance[out].sum())
        chance, before = np.where(out, 0.0, chance), n
    return missed


# --- verdicts


class Verdicts(NamedTuple):
    """First verdicts and the replicates they took (the budget where undecided), shape (alphas, claims) each."""

    verdict: Ints
    replicates: Ints


def judged(
    law: Law | Event,
    theta: Floats,
    delta: Floats,
    *,
    alphas: Sequence[float],
    budget: int,
    rng: np.random.Generator,
) -> Verdicts:
    """Claims about the mean of one law, judged look by look until decided.

    Parameters
    ----------
    theta, delta
        Offset of the theory from the truth, and margin; shape (claims,).
    """
    verdict = np.zeros((len(alphas), len(theta)), dtype=np.int64)
    replicates = np.full(verdict.shape, budget)
    active, sums, before = np.arange(len(theta)), law.empty(len(theta)), 0
    for n in looks(budget):
        sums, before = law.extend(sums, rng, n - before), n
        low, high = theta[active] - delta[active], theta[active] + delta[active]
        for alpha, row, took in zip(alphas, verdict, replicates, strict=True):
            now = decided(*law.limits(sums, n, alpha), low, high)
            first = (row[active] == 0) & (now != 0)
            row[active[first]], took[active[first]] = now[first], n
        open_ = (verdict[:, active] == 0).any(axis=0)
        active, sums = active[open_], sums[:, open_]
        if not len(active):
            break
    return Verdicts(verdict, replicates)


def wrong(verdict: Ints, theta: Floats, delta: Floats) -> NDArray[np.bool_]:
    """Verdicts that the truth contradicts, `theta` being the theory less the truth.

    *Agrees* says |mu - theta| < delta and is wrong where |mu - theta| >= delta. *Disagrees* says
    |mu - theta| > delta and is wrong where |mu - theta| <= delta. So with the theory exactly one margin off either
    verdict is wrong, and undecided, which is never wrong, is all that is left.

    >>> wrong(np.array([1, -1, 0, 1]), np.array([0.1, 0.1, 0.1, 0.0]), np.full(4, 0.1))
    array([ True,  True, False, False])
    """
    off = np.abs(theta)
    return ((verdict == AGREES) & (off >= delta)) | ((verdict == DISAGREES) & (off <= delta))


# --- synthetic reports

CLAIMS = 100
FRACTIONS = (1 / 2, 1 / 3, 1 / 4, 1 / 6, 1 / 8)
OFFSETS = (0.0, 0.5, 0.95, 1.0, 1.05, 2.0, 4.0)
REPORT_LAWS: tuple[Law | Event, ...] = (*(LAWS[name] for name in PROMISED), *EVENTS.values())
REPORT_ALPHAS = (1e-1 / CLAIMS, 1e-2 / CLAIMS, SUITE)


class Claims(NamedTuple):
    """Claims of synthetic reports, shape (claims,) each: law, offset and margin in units of its deviation."""

    law: Ints
    offset: Floats
    theta: Floats
    delta: Floats


def synthetic(reports: int, rng: np.random.Generator) -> Claims:
    """`CLAIMS` claims for each report: law, margin, offset and its side drawn at random, each as often."""
    size = reports * CLAIMS
    law = rng.integers(len(REPORT_LAWS), size=size)
    offset = rng.choice(OFFSETS, size)
    delta = rng.choice(FRACTIONS, size)
    return Claims(law, offset, rng.choice([-1.0, 1.0], size) * offset * delta, delta)


def judge_reports(reports: int, budget: int, rng: np.random.Generator) -> tuple[Claims, Verdicts]:
    """Synthetic reports, judged at each of `REPORT_ALPHAS` on the same replicates."""
    claims = synthetic(reports, rng)
    verdict = np.zeros((len(REPORT_ALPHAS), len(claims.law)), dtype=np.int64)
    replicates = np.zeros_like(verdict)
    for i, law in enumerate(REPORT_LAWS):
        chosen = np.flatnonzero(claims.law == i)
        for batch in np.array_split(chosen, math.ceil(len(chosen) / BATCH) or 1):
            theta, delta = law.sd * claims.theta[batch], law.sd * claims.delta[batch]
            found = judged(law, theta, delta, alphas=REPORT_ALPHAS, budget=budget, rng=rng)
            verdict[:, batch], replicates[:, batch] = found
    return claims, Verdicts(verdict, replicates)


# --- tables


@dataclass(frozen=True, kw_only=True)
class Table:
    """A heading, the columns, and the rows as they are printed; `data` for the file."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    data: Sequence[Row]

    def __str__(self) -> str:
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        return "\n".join([f"### {self.title}", "", *(f"| {' | '.join(line)} |" for line in lines), ""])


CHUNK = 16 * BATCH


def _chunks(total: int, size: int = CHUNK) -> list[tuple[int, int]]:
    return [(i, min(size, total - start)) for i, start in enumerate(range(0, total, size))]


def _spread(
    label: str, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], processes: int
) -> list[Any]:
    """Results of the tasks in their order; what is done and the time left go to stderr."""
    columns = list(zip(*tasks, strict=True))
    if processes == 1:
        return _reported(label, map(function, *columns), len(tasks))
    with ProcessPoolExecutor(processes) as pool:
        return _reported(label, pool.map(function, *columns), len(tasks))


def _reported(label: str, results: Iterable[Any], total: int) -> list[Any]:
    started, found = time.monotonic(), []
    for done, result in enumerate(results, 1):
        found.append(result)
        left = (time.monotonic() - started) * (total - done) / done
        end = "\n" if done == total else ""
        print(f"\r{label}: {done}/{total}, {left:.0f} s left   ", end=end, file=sys.stderr, flush=True)
    return found


def _count(
    law: str, chunk: int, rows: int, rules: Sequence[Rule], alphas: Sequence[float], seed: int
) -> Ints:
    return misses(LAWS[law], rows, _generator(seed, law, chunk), rules=rules, alphas=alphas)


def _counted(
    label: str,
    law: str,
    sequences: int,
    rules: Sequence[Rule],
    alphas: Sequence[float],
    args: argparse.Namespace,
) -> Ints:
    tasks = [(law, *chunk, rules, alphas, args.seed) for chunk in _chunks(sequences)]
    return np.sum(_spread(f"{label}, {law}", _count, tasks, args.processes), axis=0)


def _over_promise(hits: int, n: int, alpha: float) -> str:
    lower, upper = clopper_pearson(hits, n)
    return f"{hits / n / alpha:.2g} [{lower / alpha:.2g}, {upper / alpha:.2g}]"


def _power(alpha: float) -> str:
    return "1e-3/1024" if alpha == SUITE else f"1e{round(math.log10(alpha))}"


def _miss_table(title: str, laws: Mapping[str, int], args: argparse.Namespace) -> Table:
    rows, data = [], []
    for law, sequences in laws.items():
        missed, ever, skewed = _counted(args.table, law, sequences, (taken(LAWS[law].last),), ALPHAS, args)[
            :, 0
        ]
        cells = [_over_promise(int(m), sequences, a) for m, a in zip(missed, ALPHAS, strict=True)]
        shares = [f"{s / sequences / len(looks(LAWS[law].last)):.2g}" for s in skewed[[1, -1]]]
        rows.append([law, f"{sequences:.3g}", f"{LAWS[law].last}", *cells, *shares])
        for j, alpha in enumerate(ALPHAS):
            found = {"missed": int(missed[j]), "skewed_looks": int(skewed[j]), "skewed_ever": int(ever[j])}
            data.append({"law": law, "sequences": sequences, "alpha": alpha, **found})
    undecided = [f"looks too skewed at {_power(alpha)}" for alpha in (ALPHAS[1], SUITE)]
    columns = ["law", "sequences", "last look", *map(_power, ALPHAS), *undecided]
    return Table(title=title, columns=columns, rows=rows, data=data)


def miss(args: argparse.Namespace) -> list[Table]:
    """Miss rates over all looks, over the promise."""
    fewer = math.ceil(args.sequences / 4)
    wanted = {law: args.sequences if law in PROMISED else fewer for law in (*PROMISED, *BEYOND)}
    return [_miss_table(f"Miss rate / promise, any look from {FEWEST} on", wanted, args)]


def alternatives(args: argparse.Namespace) -> list[Table]:
    """Miss rates of intervals that were not taken, on the same sequences."""
    alphas, sequences, rows, data = ALPHAS[1:4], math.ceil(args.sequences / 4), [], []
    laws = ("normal", "lognormal(1)")
    counts = [_counted(args.table, law, sequences, RULES, alphas, args)[0] for law in laws]
    for i, rule in enumerate(RULES):
        cells = [_over_promise(int(c[i, j]), sequences, a) for c in counts for j, a in enumerate(alphas)]
        rows.append([rule.name, *cells])
        for law, count in zip(laws, counts, strict=True):
            found = {_power(a): int(count[i, j]) for j, a in enumerate(alphas)}
            data.append({"rule": rule.name, "law": law, "sequences": sequences, "missed": found})
    columns = ["interval", *(f"{law}, {_power(a)}" for law in laws for a in alphas)]
    return [
        Table(title=f"Alternatives, {sequences:.3g} sequences each", columns=columns, rows=rows, data=data)
    ]


TAIL_ALPHAS = (1e-3, 1e-5, SUITE)


FIRSTS = (64, 80, 96, 128)
FIRST_LAWS = ("lognormal(0.5)", "lognormal(0.7)", "lognormal(0.85)", "lognormal(1)")


def _rare(law: str, alpha: float, sequences: int, seed: int, first: int) -> tuple[float, float, float]:
    return rare_miss_rate(TAILS[law], alpha, sequences, seed, first)


def _weighted(
    args: argparse.Namespace, laws: Iterable[str], cells: Sequence[tuple[float, int]]
) -> tuple[list[list[str]], list[Row]]:
    sequences = math.ceil(args.sequences / 10)
    tasks = [(law, alpha, sequences, args.seed, first) for law in laws for alpha, first in cells]
    rows = {law: [law, f"{TAILS[law].skewness:.2g}", f"{TAILS[law].law.last}"] for law in laws}
    data = []
    for task, found in zip(tasks, _spread(args.table, _rare, tasks, args.processes), strict=True):
        (law, alpha, _, _, first), (rate, error, largest) = task, found
        rows[law].append(f"{rate / alpha:.2g} ± {2 * error / alpha:.1g}")
        result = {"rate": rate, "standard_error": error, "largest_share": largest}
        data.append({"law": law, "alpha": alpha, "first": first, "sequences": sequences, **result})
    return list(rows.values()), data


def tails(args: argparse.Namespace) -> list[Table]:
    """Miss rates by importance sampling, to the error of the suite itself."""
    rows, data = _weighted(args, TAILS, [(alpha, FEWEST) for alpha in TAIL_ALPHAS])
    title = "Miss rate / promise by importance sampling, ± 2 standard errors"
    columns = ["law", "skewness", "last look", *map(_power, TAIL_ALPHAS)]
    return [Table(title=title, columns=columns, rows=rows, data=data)]


def first(args: argparse.Namespace) -> list[Table]:
    """Miss rates at the error of the suite where the first look comes later."""
    rows, data = _weighted(args, FIRST_LAWS, [(SUITE, n) for n in FIRSTS])
    title = f"Miss rate / promise at {_power(SUITE)} by the first look, ± 2 standard errors"
    columns = ["law", "skewness", "last look", *(f"from {n}" for n in FIRSTS)]
    return [Table(title=title, columns=columns, rows=rows, data=data)]


def events(_args: argparse.Namespace) -> list[Table]:
    """Exact miss rates of the interval of a probability, at the looks and at every n."""
    rows, data = [], []
    for p in (0.5, 0.05, 0.005):
        for name, steps in (("the looks", LOOKS), ("every n", tuple(range(FEWEST, LAST + 1)))):
            rates = {alpha: event_miss_rate(p, alpha, steps) for alpha in ALPHAS}
            rows.append([f"{p}", name, *(f"{rate / alpha:.2g}" for alpha, rate in rates.items())])
            data += [{"p": p, "at": name, "alpha": alpha, "rate": rate} for alpha, rate in rates.items()]
    title = f"Probability, miss rate / promise, exact, {FEWEST} to {LAST} replicates"
    return [Table(title=title, columns=["p", "at", *map(_power, ALPHAS)], rows=rows, data=data)]


def ratio(args: argparse.Namespace) -> list[Table]:
    """Miss rates of the set of r for which 0 may be the mean of A - r B, and whether `ratio_interval` is that set."""
    wanted = {"ratio": math.ceil(args.sequences / 4)}
    table = _miss_table("Ratio E[A] / E[B], miss rate / promise of the set that is inverted", wanted, args)
    tasks = [(*chunk, args.seed) for chunk in _chunks(math.ceil(args.sequences / 2000), 64)]
    same = np.sum(_spread("ratio_interval itself", same_as_inverted, tasks, args.processes), axis=0)
    names = ("samples", "both miss", "`ratio_interval` alone", "the set alone")
    data: list[Row] = [{name: int(count) for name, count in zip(names, same, strict=True)}]
    title = "`ratio_interval` against the set that is inverted, 64 replicates, error 1/2"
    return [table, Table(title=title, columns=names, rows=[[str(v) for v in same]], data=data)]


def same_as_inverted(chunk: int, rows: int, seed: int) -> Ints:
    """Samples, and those missed by `ratio_interval` and by the interval of A - r B: by both, the one, the other."""
    rng, n, alpha = _generator(seed, "ratio_interval", chunk), FEWEST, 0.5
    b = rng.standard_gamma(4.0, (rows, n))
    a = 1.5 * b * rng.standard_gamma(9.0, (rows, n)) / 9
    d = a - 1.5 * b
    inverted = np.abs(d.mean(axis=1)) > half_widths(power_sums(d), n, alpha)
    found = [ratio_interval(x, y, alpha=alpha) for x, y in zip(a, b, strict=True)]
    itself = np.array([not i.lower <= 1.5 <= i.upper for i in found])
    return np.array([rows, (itself & inverted).sum(), (itself & ~inverted).sum(), (inverted & ~itself).sum()])


def _report_task(chunk: int, reports: int, budget: int, seed: int) -> tuple[Claims, Verdicts]:
    return judge_reports(reports, budget, _generator(seed, "reports", chunk))


def reports(args: argparse.Namespace) -> list[Table]:
    """Synthetic reports: any wrong verdict, and what stays undecided."""
    tasks = [(*chunk, args.budget, args.seed) for chunk in _chunks(args.reports, 50)]
    parts = _spread("reports", _report_task, tasks, args.processes)
    claims = Claims(*(np.concatenate(columns) for columns in zip(*(c for c, _ in parts), strict=True)))
    verdict = np.concatenate([v.verdict for _, v in parts], axis=1)
    bad = wrong(verdict, claims.theta, claims.delta)
    return [_whole_reports(verdict, bad), _by_offset(claims, verdict, bad), _by_law(claims, verdict, bad)]


def _whole_reports(verdict: Ints, bad: NDArray[np.bool_]) -> Table:
    rows, data = [], []
    for alpha, v, b in zip(REPORT_ALPHAS, verdict, bad, strict=True):
        any_wrong, total = int(b.reshape(-1, CLAIMS).any(axis=1).sum()), len(b) // CLAIMS
        lower, upper = clopper_pearson(any_wrong, total)
        share = f"{any_wrong} of {total}: {any_wrong / total:.2g} [{lower:.2g}, {upper:.2g}]"
        rows.append([f"{alpha:.3g}", f"{CLAIMS * alpha:.2g}", share, f"{b.sum()}", f"{(v == 0).mean():.3f}"])
        found = {
            "wrong_reports": any_wrong,
            "wrong_claims": int(b.sum()),
            "undecided": float((v == 0).mean()),
        }
        data.append({"alpha": alpha, "reports": total, **found})
    columns = ["error per interval", "promise", "reports with any wrong verdict", "wrong", "undecided"]
    return Table(title=f"Reports of {CLAIMS} claims", columns=columns, rows=rows, data=data)


def _by_offset(claims: Claims, verdict: Ints, bad: NDArray[np.bool_]) -> Table:
    rows, data = [], []
    for offset in OFFSETS:
        at = claims.offset == offset
        shares = [(float((v[at] == 0).mean()), int(b[at].sum())) for v, b in zip(verdict, bad, strict=True)]
        rows.append([f"{offset:g}", f"{at.sum()}", *(f"{u:.3f}, {w}" for u, w in shares)])
        data.append({"offset": offset, "claims": int(at.sum()), "undecided_wrong": shares})
    columns = ["offset / margin", "claims", *(f"{a:.2g}" for a in REPORT_ALPHAS)]
    return Table(title="Undecided (share), wrong (number), by offset", columns=columns, rows=rows, data=data)


def _by_law(claims: Claims, verdict: Ints, bad: NDArray[np.bool_]) -> Table:
    rows, data, edge = [], [], claims.offset == 1.0
    for i, law in enumerate(REPORT_LAWS):
        at = (claims.law == i) & edge
        hits = [int(b[at].sum()) for b in bad]
        undecided = [float((v[claims.law == i] == 0).mean()) for v in verdict]
        cells = [_over_promise(h, int(at.sum()), a) for h, a in zip(hits, REPORT_ALPHAS, strict=True)]
        rows.append([law.name, f"{at.sum()}", *cells, f"{undecided[-1]:.3f}"])
        data.append({"law": law.name, "at_the_margin": int(at.sum()), "wrong": hits, "undecided": undecided})
    columns = ["law", "claims", *(f"{a:.2g}" for a in REPORT_ALPHAS), "undecided, all offsets, suite"]
    title = "Theory exactly one margin off: wrong / promise, by law"
    return Table(title=title, columns=columns, rows=rows, data=data)


RATIOS = (1, 1 / 2, 1 / 4, 1 / 10, 1 / 20)
SITUATIONS = {"right": 0.0, "off by 1/2 margin": 0.5, "off by 2 margins": 2.0}
CAP = 2**17


def _replicates_task(law: str, fraction: float, offset: float, chunk: int, rows: int, seed: int) -> Verdicts:
    rng, delta = _generator(seed, law, round(1 / fraction), round(2 * offset), chunk), np.full(rows, fraction)
    theta, sd = rng.choice([-1.0, 1.0], rows) * offset * delta, LAWS[law].sd
    return judged(LAWS[law], sd * theta, sd * delta, alphas=(SUITE,), budget=CAP, rng=rng)


def replicates(args: argparse.Namespace) -> list[Table]:
    """Replicates at the decision at the suite's own error."""
    cells = [(law, f, o) for law in ("normal", "lognormal(1)") for f in RATIOS for o in SITUATIONS.values()]
    each = _chunks(args.claims, 250)
    found = _spread(
        "replicates", _replicates_task, [(*c, *e, args.seed) for c in cells for e in each], args.processes
    )
    data = []
    for i, (law, fraction, offset) in enumerate(cells):
        parts = found[i * len(each) : (i + 1) * len(each)]
        took = np.concatenate([part.replicates[0] for part in parts])
        undecided = int(sum((part.verdict == 0).sum() for part in parts))
        wrongly = int(sum((part.verdict == (AGREES if offset > 1 else DISAGREES)).sum() for part in parts))
        quantiles = {"median": float(np.median(took)), "ninety": float(np.quantile(took, 0.9))}
        row = {"law": law, "fraction": fraction, "offset": offset, "claims": args.claims}
        data.append({**row, **quantiles, "undecided": undecided, "wrong": wrongly})
    per_line = len(SITUATIONS)
    lines = [data[i : i + per_line] for i in range(0, len(data), per_line)]
    rows = [[d[0]["law"], f"1/{1 / d[0]['fraction']:g}", *map(_median_and_ninety, d)] for d in lines]
    title = f"Replicates at the decision, median (90 % quantile), {args.claims} claims each, at most {CAP}"
    return [Table(title=title, columns=["law", "margin / sd", *SITUATIONS], rows=rows, data=data)]


def _median_and_ninety(row: Row) -> str:
    open_ = f", {row['undecided']} undecided" if row["undecided"] else ""
    return f"{row['median']:.0f} ({row['ninety']:.0f}){open_}"


TABLES: Mapping[str, Callable[[argparse.Namespace], list[Table]]] = {
    "miss": miss,
    "alternatives": alternatives,
    "tails": tails,
    "first": first,
    "events": events,
    "ratio": ratio,
    "reports": reports,
    "replicates": replicates,
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("table", choices=[*TABLES, "all"])
    whole = partial(parser.add_argument, type=int, metavar="N")
    whole("--sequences", default=400_000, help="per law of `miss`; the others take a fixed part of it")
    whole("--reports", default=1000, help="synthetic reports")
    whole("--budget", default=2**14, help="most replicates of a claim in a report")
    whole("--claims", default=1000, help="claims per cell of `replicates`")
    whole("--seed", default=1, help="of all sequences")
    whole("--processes", default=2, help="drawing at the same time")
    parser.add_argument("--json", type=Path, help="file for the counts behind the tables")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables asked for as markdown."""
    args, written = _parser().parse_args(argv), {}
    for name in TABLES if args.table == "all" else [args.table]:
        tables = TABLES[name](argparse.Namespace(**vars(args) | {"table": name}))
        print(*tables, sep="\n", flush=True)
        written[name] = [{"title": table.title, "rows": list(table.data)} for table in tables]
    if args.json:
        arguments = {key: value for key, value in vars(args).items() if key not in ("json", "table")}
        args.json.write_text(
            json.dumps({"arguments": arguments, "tables": written}, indent=1), encoding="utf-8"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
