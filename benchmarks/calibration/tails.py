"""Misses too rare to count: importance sampling."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, special

from benchmarks.calibration.laws import (
    LAST,
    LAWS,
    TRACY_WIDOM_SHAPE,
    Floats,
    Law,
    batches,
    gamma_law,
    generator,
    half_widths,
    lognormal_law,
    power_sums,
)
from benchmarks.calibration.misses import looks_from
from verify.judging.intervals import FEWEST, multiplier, widened


class Tilt(NamedTuple):
    """The law times exp(one u + two u^2 + three u^3 - log_norm), u being x in standard deviations of the law."""

    one: float
    two: float
    three: float
    log_norm: float = 0.0

    def exponent(self, u: Any) -> Any:
        """Without the norm."""
        return ((self.three * u + self.two) * u + self.one) * u


@dataclass(frozen=True)
class Tail:
    """A law whose misses are made frequent: its support from `low` on, and a quadrature rule of nodes and weights."""

    law: Law
    skewness: float
    grid: tuple[Floats, Floats]
    low: float = -math.inf

    def tilted(self, exponents: Floats | Sequence[float]) -> tuple[Tilt, Floats]:
        """The tilt normalised, and the weights of the nodes under it."""
        tilt, weights = Tilt(*map(float, exponents)), self.grid[1]
        exponent = tilt.exponent(self.grid[0] / self.law.sd)
        # Without its largest value the exponential would overflow.
        top = float(exponent.max())
        log_norm = top + math.log(float(weights @ np.exp(exponent - top)))
        return tilt._replace(log_norm=log_norm), weights * np.exp(exponent - log_norm)

    def log_likelihood_ratio(self, tilt: Tilt, sums: Floats, n: int) -> Floats:
        """Logarithm of dQ/dP of the tilted law Q against the law P after `n` replicates, shape (rows,)."""
        one, two, three = sums / self.law.sd ** np.arange(1, 4)[:, None]
        return tilt.one * one + tilt.two * two + tilt.three * three - n * tilt.log_norm

    def peak(self, tilt: Tilt) -> float:
        """Largest exponent on the support."""
        if tilt.three > 0 or (tilt.three == 0 and tilt.two >= 0):
            return math.inf
        turns = np.roots([3 * tilt.three, 2 * tilt.two, tilt.one])
        at = [u for u in turns[np.isreal(turns)].real if u > self.low / self.law.sd]
        at += [self.low / self.law.sd] if math.isfinite(self.low) else []
        return max(map(tilt.exponent, at))

    def draw(self, rng: np.random.Generator, shape: tuple[int, int], tilt: Tilt) -> Floats:
        """Replicates of the tilted law, by rejection."""
        wanted, peak = shape[0] * shape[1], self.peak(tilt)
        share, found = math.exp(tilt.log_norm - peak), np.zeros(0)
        while len(found) < wanted:
            x = self.law.draw(rng, (1, 64 + math.ceil(1.05 * (wanted - len(found)) / share)))[0]
            exponent = tilt.exponent(x / self.law.sd) - peak
            # Accepted with chance exp(exponent): minus the logarithm of a uniform number is exponential.
            found = np.concatenate([found, x[rng.standard_exponential(len(x)) > -exponent]])
        return found[:wanted].reshape(shape)


def _gaussian() -> tuple[Floats, Floats]:
    z = np.linspace(-12.0, 12.0, 1001)
    return z, np.exp(-(z**2) / 2) * ((z[1] - z[0]) / math.sqrt(2 * math.pi))


def _lognormal(sigma: float, looks: int = 1) -> Tail:
    z, weights = _gaussian()
    mean, growth = math.exp(sigma**2 / 2), math.expm1(sigma**2)
    nodes = np.exp(sigma * z) - mean
    return Tail(lognormal_law(sigma, looks * LAST), (growth + 3) * math.sqrt(growth), (nodes, weights), -mean)


def _gamma(name: str, a: float, looks: int = 1) -> Tail:
    y = np.linspace(math.log(special.gammaincinv(a, 1e-30)), math.log(a + 20 * math.sqrt(a) + 60), 1501)
    grid = np.exp(y) - a, np.exp(a * y - np.exp(y) - math.lgamma(a)) * (y[1] - y[0])
    return Tail(gamma_law(name, a, looks * LAST), 2 / math.sqrt(a), grid, -a)


TAILS: Mapping[str, Tail] = {
    tail.law.name: tail
    for tail in (
        Tail(LAWS["normal"], 0.0, _gaussian()),
        _gamma("gamma as Tracy-Widom", TRACY_WIDOM_SHAPE),
        _gamma("gamma(4)", 4.0),
        _gamma("exponential", 1.0, 2),
        _lognormal(0.25),
        _lognormal(0.35),
        _lognormal(0.5, 2),
        _lognormal(0.6, 2),
        _lognormal(0.7, 2),
        _lognormal(0.85, 4),
        _lognormal(1.0, 8),
    )
}


def tilts(tail: Tail, alpha: float, first: int = FEWEST) -> list[Tilt]:
    """The likeliest ways to miss on either side, at every second look."""
    ways = [(n, side) for n in looks_from(first, tail.law.last)[::2] for side in (-1, 1)]
    found = [_likeliest(tail, n, alpha, side) for n, side in ways]
    # The others would reject nearly all that they draw.
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
        # At the bound the widening becomes infinite, which the optimiser could not follow.
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
    return float(weights @ tilt.exponent(tail.grid[0] / tail.law.sd)) - tilt.log_norm


def rare_miss_rate(
    tail: Tail, alpha: float, sequences: int, seed: int, first: int = FEWEST
) -> tuple[float, float, float]:
    """Chance of a miss at any look from `first` on, its standard error, and the share of the largest weight in it.

    Sequences are drawn from an equal mixture of tilted laws; each that misses counts dP/dQ at its first miss,
    Q being the mixture, which is unbiased for whatever stopping time.
    """
    ways, weights = tilts(tail, alpha, first), list[Floats]()
    each = math.ceil(sequences / len(ways)) + 1
    for number, way in enumerate(ways):
        rng = generator(seed, tail.law.name, number, round(1 / alpha))
        parts = [_first_misses(tail, way, ways, alpha, size, rng, first) for size in batches(each)]
        weights.append(np.concatenate(parts))
    variance = sum(float(w.var(ddof=1)) / each for w in weights) / len(ways) ** 2
    total = float(np.sum(weights))
    return total / each / len(ways), math.sqrt(variance), float(np.max(weights)) / total


def mixture_weights(tail: Tail, ways: list[Tilt], sums: Floats, n: int) -> Floats:
    """Likelihood ratio dP/dQ of the law against the equal mixture of the tilted laws, shape (rows,)."""
    ratios = [tail.log_likelihood_ratio(tilt, sums, n) for tilt in ways]
    return np.exp(math.log(len(ways)) - np.logaddexp.reduce(ratios, axis=0))


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
