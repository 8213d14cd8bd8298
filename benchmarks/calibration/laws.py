"""Laws whose mean is known, sequences of their replicates, and the intervals of many sequences at once."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import special

from simulate.monte_carlo import BLOCK
from verify.judging.guards import SKEWEST, farthest_allowed, untrusted_share
from verify.judging.intervals import FEWEST, multiplier

Floats = NDArray[np.float64]

Ints = NDArray[np.int64]


def power_sums(x: Floats) -> Floats:
    """Sums of x, x^2 and x^3 over each row, shape (3, rows).

    >>> power_sums(np.array([[1.0, 2.0]])).ravel()
    array([3., 5., 9.])
    """
    square = x * x
    return np.stack([x.sum(axis=1), square.sum(axis=1), np.einsum("ij,ij->i", square, x)])


def summaries(x: Floats) -> Floats:
    """Return what intervals and guards need of each row, (6, rows): `power_sums`, the largest and the smallest
    replicate, and the sum of squares of the sums of blocks; whole blocks.

    >>> summaries(np.arange(32.0)[None]).ravel().tolist()
    [496.0, 10416.0, 246016.0, 31.0, 0.0, 155776.0]
    """
    blocks = x.reshape(len(x), -1, BLOCK).sum(axis=2)
    ends = np.stack([x.max(axis=1), x.min(axis=1), np.einsum("ij,ij->i", blocks, blocks)])
    return np.concatenate([power_sums(x), ends])


def added(sums: Floats, more: Floats) -> Floats:
    """The summaries of rows joined end to end.

    >>> x = np.arange(64.0)[None]
    >>> bool((added(summaries(x[:, :32]), summaries(x[:, 32:])) == summaries(x)).all())
    True
    """
    found = sums + more
    found[3], found[4] = np.maximum(sums[3], more[3]), np.minimum(sums[4], more[4])
    return found


def guarded(sums: Floats, n: int, alpha: float) -> Floats:
    """Half-width of `mean_interval` of each row, infinite wherever a guard leaves it without an interval.

    Parameters
    ----------
    sums
        Shape (6, rows): `summaries` of `n` replicates.
    """
    mean, square, cube = sums[:3] / n
    sd = np.sqrt((square - mean**2) * (n / (n - 1)))
    skewness = (cube - 3 * mean * square + 2 * mean**3) / sd**3
    far = np.maximum(sums[3] - mean, mean - sums[4]) > farthest_allowed(n) * sd
    among, blocks = sums[5] / BLOCK, n // BLOCK
    between = (among - n * mean**2) / (blocks - 1)
    within = (sums[1] - among) / (n - blocks)
    outside = (np.abs(skewness) > SKEWEST) | far | (between > untrusted_share(n) * within)
    return np.where(outside, math.inf, half_widths(sums[:3], n, alpha))


def half_widths(
    sums: Floats,
    n: int,
    alpha: float,
    *,
    multiplier: Callable[[int, float], float] = multiplier,
    widens: bool = True,
) -> Floats:
    """Half-width of `mean_interval` of each row of replicates without its guards, infinite where it cannot be widened.

    Parameters
    ----------
    sums
        Shape (3, rows): sums of x, x^2 and x^3 over `n` replicates, counted from near their mean.
    multiplier, widens
        Of the standard error, and whether it grows with the skewness, where another interval is meant.
    """
    mean, square, cube = sums / n
    sd = np.sqrt((square - mean**2) * (n / (n - 1)))
    k = multiplier(n, alpha)
    if math.isinf(k) or not widens:
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
    # Beyond the trusted range the argument leaves the domain of the arc cosine.
    angle = np.arccos(-3 * math.sqrt(3) * k * np.where(trusted, c, 0.0))
    return np.where(trusted, math.sqrt(3) / 2 * k / np.cos(angle / 3), math.inf)


def proportion_limits(hits: Floats, n: int, alpha: float) -> tuple[Floats, Floats]:
    """`proportion_interval` of each number of hits, shape (rows,) each.

    >>> np.round(proportion_limits(np.array([256.0]), 256, 1e-6), 3).ravel()
    array([0.935, 1.   ])
    """
    floor = least_likelihood(hits, n, alpha)
    ends = [_last_inside(hits, n, floor, end) for end in (0.0, 1.0)]
    return np.where(hits == 0, 0.0, ends[0]), np.where(hits == n, 1.0, ends[1])


def least_likelihood(hits: Floats, n: int, alpha: float) -> Floats:
    """Logarithm of the likelihood below which a probability is outside of the interval."""
    return special.betaln(hits + 0.5, n - hits + 0.5) - special.betaln(0.5, 0.5) + math.log(alpha)


def log_likelihood(p: Floats | float, hits: Floats, n: int) -> Floats:
    """Logarithm of the likelihood of p after `hits` in n draws, up to a constant."""
    return special.xlogy(hits, p) + special.xlog1py(n - hits, -np.asarray(p))


def _last_inside(hits: Floats, n: int, floor: Floats, end: float) -> Floats:
    inside, outside = hits / n, np.full(hits.shape, end)
    for _ in range(60):
        middle = (inside + outside) / 2
        out = log_likelihood(middle, hits, n) <= floor
        inside, outside = np.where(out, inside, middle), np.where(out, middle, outside)
    return outside


# --- laws

BATCH = 512
"""Sequences drawn together: 512 of them times the longest step between looks fit into the cache."""

LAST = 2048
"""Replicates at the last look of a miss rate, unless the law needs more of them before it is judged at all."""


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class Event:
    """Hits of an event of probability `p`; the sums are the hits, shape (1, rows)."""

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
        # Few numbers of hits occur: the limits of each are searched once.
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


def _in_blocks(rng: np.random.Generator, shape: tuple[int, int], share: float) -> Floats:
    """Gaussian replicates of which those of one block have the intraclass correlation `share`."""
    common = np.repeat(rng.standard_normal((shape[0], shape[1] // BLOCK)), BLOCK, axis=1)
    return math.sqrt(share) * common + math.sqrt(1 - share) * rng.standard_normal(shape)


def _ratio(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """A - 1.5 B where A = 1.5 B times an independent positive factor of mean 1."""
    return 1.5 * rng.standard_gamma(4.0, shape) * (rng.standard_gamma(9.0, shape) / 9 - 1)


TRACY_WIDOM_SHAPE = (2 / 0.29346452408) ** 2
"""Shape of the gamma law with the skewness of the Tracy-Widom law, beta = 1."""


def _jumps(name: str, jump: float, chance: float, first: int = FEWEST, last: int = LAST) -> Law:
    draw = partial(_with_jumps, jump=jump, chance=chance)
    return Law(name, draw, math.sqrt(1 + jump**2 * chance * (1 - chance)), last, first)


def _once_seen(chance: float, jump: float) -> Law:
    first, name = (
        math.ceil(SEEN / chance),
        f"{100 * chance:g} % at {jump:g} sd, once they are seen",
    )
    return _jumps(name, jump, chance, first, 8 * first)


def lognormal_law(sigma: float, last: int = LAST) -> Law:
    """`lognormal` with its standard deviation."""
    sd = math.exp(sigma**2 / 2) * math.sqrt(math.expm1(sigma**2))
    return Law(f"lognormal({sigma:g})", partial(lognormal, sigma=sigma), sd, last)


def gamma_law(name: str, a: float, last: int = LAST) -> Law:
    """`gamma` with its standard deviation."""
    return Law(name, partial(gamma, a=a), math.sqrt(a), last)


def _by_name(*found: Law) -> Mapping[str, Law]:
    return {law.name: law for law in found}


LAWS = _by_name(
    Law("normal", lambda rng, shape: rng.standard_normal(shape), 1.0),
    lognormal_law(1.0, 8192),
    Law("exponential", lambda rng, shape: rng.standard_exponential(shape) - 1, 1.0),
    Law("Student t3", _student, math.sqrt(3)),
    gamma_law("gamma as Tracy-Widom", TRACY_WIDOM_SHAPE),
    Law("Pareto 3", _pareto, math.sqrt(0.75)),
    _jumps("rare events", 20, 0.01),
    _jumps("events of 8 %", 8, 0.08),
    Law("ratio", _ratio, 1.5 * math.sqrt(20 / 9)),
)

PROMISED = tuple(LAWS)[:5]

SEEN = math.log(1024e3)
"""Events expected among n replicates from which on they are missed altogether with a chance below 1e-3/1024."""


_BLOCKY = partial(_in_blocks, share=0.1)

ADVERSARIAL = _by_name(
    *(_once_seen(chance, jump) for chance in (0.01, 0.05) for jump in (20.0, 100.0)),
    Law("Student t3, to 8192", _student, math.sqrt(3), 8192),
    Law("Pareto 2.5", partial(_pareto, a=2.5), math.sqrt(2.5 / 1.5**2 / 0.5), 8192),
    lognormal_law(1.25, 8192),
    Law("intraclass correlation 0.1", _BLOCKY, 1.0, 8192),
    Law("intraclass correlation 0.1, from 4096 on", _BLOCKY, 1.0, 16384, 4096),
    Law("intraclass correlation 0.5, from 640 on", partial(_in_blocks, share=0.5), 1.0, 8192, 640),
    Law("intraclass correlation 0.5", partial(_in_blocks, share=0.5), 1.0, 8192),
)
"""Laws made to break the promise, each to be within it or undecided; where events are rare, from the look on at which
they are seen."""

EVERY = {**LAWS, **ADVERSARIAL}


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
    # Not `hash()`, which differs from process to process.
    words = [k if isinstance(k, int) else zlib.crc32(k.encode()) for k in key]
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=words)))
