"""Misses too rare to count: importance sampling."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import optimize, special

from benchmarks.calibration.laws import (
    LAST,
    LAWS,
    TRACY_WIDOM_SHAPE,
    Law,
    batches,
    gamma,
    generator,
    lognormal,
    lognormal_sd,
)
from benchmarks.calibration.limits import Floats, half_widths, power_sums
from benchmarks.calibration.misses import looks_from
from verify.judging.intervals import FEWEST, multiplier, widened

__all__ = [
    "TAILS",
    "Tail",
    "Tilt",
    "mixture_weights",
    "moments",
    "rare_miss_rate",
    "tilts",
]


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
    draw, mean, growth = partial(lognormal, sigma=sigma), math.exp(sigma**2 / 2), math.expm1(sigma**2)
    law = Law(name=f"lognormal({sigma:g})", draw=draw, sd=lognormal_sd(sigma), last=last)
    skewness, nodes = (growth + 3) * math.sqrt(growth), np.exp(sigma * z) - mean
    return Tail(law=law, skewness=skewness, grid=(nodes, weights), low=-mean)


def _gamma_tail(name: str, a: float, last: int = LAST) -> Tail:
    y = np.linspace(math.log(special.gammaincinv(a, 1e-30)), math.log(a + 20 * math.sqrt(a) + 60), 1501)
    law = Law(name=name, draw=partial(gamma, a=a), sd=math.sqrt(a), last=last)
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
        _lognormal_tail(0.6, last=2 * LAST),
        _lognormal_tail(0.7, last=2 * LAST),
        _lognormal_tail(0.85, last=4 * LAST),
        _lognormal_tail(1.0, last=8 * LAST),
    )
}


def tilts(tail: Tail, alpha: float, first: int = FEWEST) -> list[Tilt]:
    """The likeliest ways to miss on either side, at every second look."""
    ways = [(n, side) for n in looks_from(first, tail.law.last)[::2] for side in (-1, 1)]
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
        mean, sd, skewness = moments(tail, exponents)
        return side * mean * math.sqrt(n) / sd - widened(k, n, min(abs(skewness), 0.999 * most))

    best = optimize.minimize(
        lambda e: _divergence(tail, e),
        start,
        method="SLSQP",
        bounds=[(None, None), (None, None), (None, 0.0) if cubic else (0.0, 0.0)],
        constraints=[
            {"type": "eq", "fun": beyond},
            {"type": "ineq", "fun": lambda e: most - abs(moments(tail, e)[2])},
        ],
    )
    return tail.tilted(best.x)[0] if best.success else None


def moments(tail: Tail, exponents: Floats | Sequence[float]) -> tuple[float, float, float]:
    """Mean, standard deviation and skewness of the tilted law."""
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
    ways = tilts(tail, alpha, first)
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
    rng = generator(seed, tail.law.name, ways.index(way), round(1 / alpha))
    return np.concatenate([_first_misses(tail, way, ways, alpha, size, rng, first) for size in batches(rows)])


def _first_misses(
    tail: Tail, way: Tilt, ways: list[Tilt], alpha: float, rows: int, rng: np.random.Generator, first: int
) -> Floats:
    weights, active, sums, before = np.zeros(rows), np.arange(rows), np.zeros((3, rows)), 0
    for n in looks_from(first, tail.law.last):
        sums, before = sums + power_sums(tail.draw(rng, (len(active), n - before), way)), n
        out = np.abs(sums[0]) / n > half_widths(sums, n, alpha)
        weights[active[out]] = mixture_weights(tail, ways, sums[:, out], n)
        active, sums = active[~out], sums[:, ~out]
    return weights
