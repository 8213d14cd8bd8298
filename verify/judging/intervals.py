r"""Confidence intervals that hold at every look at once.

| function | for | reference |
|---|---|---|
| `mean_interval` | mean of iid replicates | Wang and Ramdas (2023), t martingale; widened for skewness |
| `ratio_interval` | E[A] / E[B] | Fieller's inversion of `mean_interval` of A - r B |
| `proportion_interval` | probability of an event | Robbins (1970), beta-binomial mixture, Jeffreys' prior |
| `rate_interval` | probability of an event, one-sided where none was seen | (1 - p)^n <= alpha |
| `distance_interval` | largest distance of two distribution functions | Dvoretzky, Kiefer, Wolfowitz; Massart (1990) |

Stopping when decided, crashing, resuming and adding replicates are all legal: the chance that the interval ever
misses, over all n at once, is at most alpha - exactly so for Gaussian replicates of unknown variance and for
proportions. For skewed replicates the widening is a self-normalised large-deviation correction (Q. Wang 2005),
checked by simulation rather than proved. Replicates unlike those on which it was checked have no interval:
`verify.judging.guards`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module

import numpy as np

from verify.judging.guards import SKEWED, STILL, Floats, departure, unseen_rate

FEWEST = 96
"""No verdict before this many replicates: from 64 on the interval misses 1.4 times as often as promised on
lognormal(0.7) at 1e-3/1024, because a sample so small may not show how skewed the law is; from 96 on 0.44 times."""

TIGHTEST_AT = 128
"""Number of replicates at which the mixture is tuned to be tightest; any constant is valid."""


@dataclass(frozen=True, kw_only=True)
class Interval:
    """`estimate` and its confidence limits; `obstacle` says why there is none (then the limits are infinite).

    `numerical` and `size_model` are the parts of the half-width that more replicates do not shrink.
    """

    estimate: float
    lower: float = -math.inf
    upper: float = math.inf
    numerical: float = 0.0
    size_model: float = 0.0
    skewness: float = 0.0
    obstacle: str = ""

    @property
    def half_width(self) -> float:
        """The larger of the two distances from the estimate to a limit."""
        return max(self.upper - self.estimate, self.estimate - self.lower)

    @property
    def statistical(self) -> float:
        """The part of the half-width that more replicates shrink."""
        return self.half_width - self.numerical - self.size_model

    def scaled(self, factor: float) -> Interval:
        """The interval of the same quantity times a positive number."""
        return replace(
            self,
            estimate=self.estimate * factor,
            lower=self.lower * factor,
            upper=self.upper * factor,
            numerical=self.numerical * factor,
            size_model=self.size_model * factor,
        )

    def shifted(self, by: float) -> Interval:
        """The interval of the same quantity plus a constant."""
        return replace(self, estimate=self.estimate + by, lower=self.lower + by, upper=self.upper + by)

    def widened_by(self, band: float) -> Interval:
        """The interval with the error of a size model added on both sides."""
        return replace(
            self, lower=self.lower - band, upper=self.upper + band, size_model=self.size_model + band
        )

    def blocked_by(self, obstacle: str) -> Interval:
        """Return an interval without ends, and why it has none."""
        return replace(self, lower=-math.inf, upper=math.inf, obstacle=obstacle)


def mean_interval(
    values: Floats,
    *,
    alpha: float,
    numerical: float = 0.0,
    exact: bool = False,
) -> Interval:
    r"""Interval for the mean of iid replicates, valid at every number of replicates at once.

    Parameters
    ----------
    values
        Shape (n,), one number per replicate, finite.
    alpha
        Chance in (0, 1) of ever missing the mean.
    numerical
        Bound on the rounding or truncation error of each replicate, added to the half-width.
    exact
        Replicates that do not vary are no obstacle (the quantity is deterministic).

    References
    ----------
    Wang and Ramdas, arXiv:2310.03722, Theorem 4.1 (t martingale under a Gaussian mixture).

    Examples
    --------
    >>> x = np.random.default_rng(1).normal(3.0, 1.0, 256)
    >>> interval = mean_interval(x, alpha=1e-6)
    >>> bool(interval.lower < 3.0 < interval.upper), round(interval.half_width, 2)
    (True, 0.34)
    """
    n = len(values)
    mean = float(values.mean())
    spread = float(values.std(ddof=1)) if n > 1 else math.inf
    # a spread at the level of rounding is no spread: its "shape" would be the shape of rounding errors
    if spread <= 1e-14 * max(abs(mean), numerical) or spread == 0.0:
        found = Interval(estimate=mean, numerical=numerical)
        if exact and n >= FEWEST:
            return replace(found, lower=mean - numerical, upper=mean + numerical)
        return found.blocked_by(STILL)
    skewness = float((((values - mean) / spread) ** 3).mean())
    found = Interval(estimate=mean, numerical=numerical, skewness=skewness)
    k = multiplier(n, alpha) if n >= FEWEST else math.inf
    if math.isinf(k):
        return found.blocked_by("too few replicates")
    k = widened(k, n, skewness)
    if why := SKEWED if math.isinf(k) else departure(values, skewness):
        return found.blocked_by(why)
    half = k * spread / math.sqrt(n) + numerical
    return replace(found, lower=mean - half, upper=mean + half)


def multiplier(n: int, alpha: float) -> float:
    r"""Half-width in standard errors after `n` replicates; infinite where it is too early to say anything.

    With :math:`f = c^2/(n + c^2)` and :math:`A = (\alpha^2 f)^{-1/n}` the martingale stays below
    :math:`1/\alpha` while :math:`t^2 < (n-1)(A-1)/(1-Af)`.

    >>> [round(multiplier(n, 1e-3 / 1024), 2) for n in (96, 384, 4096)]
    [6.18, 5.82, 5.9]
    """
    level = 2 * math.log(1 / alpha)
    c2 = TIGHTEST_AT / (level + math.log1p(level))
    f = c2 / (n + c2)
    exponent = (level - math.log(f)) / n
    # No statistic, however large, brings the martingale to 1/alpha so early.
    if exponent + math.log(f) >= 0:
        return math.inf
    # `expm1`, for A - 1 would lose its digits when there are many replicates.
    return math.sqrt((n - 1) * math.expm1(exponent) / (1 - math.exp(exponent + math.log(f))))


def widened(k: float, n: int, skewness: float) -> float:
    r"""Smallest :math:`k' \ge k` with :math:`k'^2/2 - ck'^3 = k^2/2`, :math:`c = |g|/(3\sqrt n)`.

    Infinite where :math:`ck' > 1/6`: there the correction is no longer small and nothing is promised.

    >>> widened(6.0, 100, 0.0), round(widened(6.0, 100, 0.5), 3), widened(6.0, 100, 9.0)
    (6.0, 6.827, inf)
    """
    c = abs(skewness) / (3 * math.sqrt(n))
    if c == 0.0:
        return k
    high = math.sqrt(1.5) * k  # k'^2 = k^2/(1 - 2ck') is at most 3/2 k^2 while ck' <= 1/6
    if c * high > 1 / 6:
        return math.inf
    return _boundary(lambda wide: wide**2 / 2 - c * wide**3 >= k * k / 2, k, high)


def ratio_interval(numerator: Floats, denominator: Floats, *, alpha: float) -> Interval:
    r"""Interval for E[A] / E[B], B of positive mean: all r for which the mean of A - rB may be 0.

    Parameters
    ----------
    numerator, denominator
        Shape (n,) each, drawn together in one replicate.

    Examples
    --------
    >>> rng = np.random.default_rng(2)
    >>> b = rng.normal(5.0, 1.0, 512)
    >>> interval = ratio_interval(2 * b + rng.normal(size=512), b, alpha=1e-6)
    >>> bool(interval.lower < 2.0 < interval.upper)
    True
    """
    # A denominator that does not vary is no obstacle: the ratio is then a mean over a constant.
    positive = mean_interval(denominator, alpha=alpha, exact=True)
    estimate = float(numerator.mean()) / positive.estimate if positive.estimate else math.nan
    # If the denominator may be 0, no ratio can be excluded.
    if positive.obstacle or positive.lower <= 0:
        return Interval(estimate=estimate, obstacle=positive.obstacle or "denominator not resolved from 0")
    centre = mean_interval(numerator - estimate * denominator, alpha=alpha)
    if centre.obstacle:
        return Interval(estimate=estimate, skewness=centre.skewness, obstacle=centre.obstacle)

    def excluded(r: float) -> bool:
        at = mean_interval(numerator - r * denominator, alpha=alpha)
        # Where a guard withholds the interval, r is not excluded: that can only widen.
        return not at.obstacle and (at.lower > 0 or at.upper < 0)

    # A first guess of the half-width, for `_first` doubles it until r is excluded.
    step = centre.half_width / positive.lower
    return Interval(
        estimate=estimate,
        lower=_first(excluded, estimate, -step),
        upper=_first(excluded, estimate, step),
        skewness=centre.skewness,
    )


def proportion_interval(hits: int, n: int, *, alpha: float) -> Interval:
    r"""Interval for a probability, valid at every n at once.

    The set of p with :math:`B(h+\frac12, n-h+\frac12)/B(\frac12,\frac12) < p^h(1-p)^{n-h}/\alpha`.

    Examples
    --------
    >>> interval = proportion_interval(256, 256, alpha=1e-6)
    >>> round(interval.lower, 3), interval.upper
    (0.935, 1.0)
    """
    special = import_module("scipy.special")
    estimate = hits / n
    if n < FEWEST:
        return Interval(estimate=estimate, obstacle="too few replicates")
    mixture = special.betaln(hits + 0.5, n - hits + 0.5) - special.betaln(0.5, 0.5)
    threshold = float(mixture) + math.log(alpha)

    def excluded(p: float) -> bool:
        # `xlogy` and `xlog1py` give 0 log 0 = 0 at the ends.
        return float(special.xlogy(hits, p) + special.xlog1py(n - hits, -p)) <= threshold

    # Without a hit p = 0 cannot be excluded, and there is no end to search for.
    lower = 0.0 if hits == 0 else _boundary(excluded, estimate, 0.0)
    upper = 1.0 if hits == n else _boundary(excluded, estimate, 1.0)
    return Interval(estimate=estimate, lower=lower, upper=upper)


def rate_interval(hits: int, n: int, *, alpha: float) -> Interval:
    r"""Interval for the probability of something that should never happen, valid at every n at once.

    Where it did not, only an upper limit is wanted, and :math:`\ln(1/\alpha)/n` is one: had the event a larger
    probability, n replicates without it would have a chance below alpha. Otherwise `proportion_interval`, which may
    miss with a chance of alpha of its own: no verdict rests on it, one event is proof.

    Examples
    --------
    >>> round(rate_interval(0, 1000, alpha=1e-6).upper, 4), rate_interval(3, 1000, alpha=1e-6).lower > 0
    (0.0138, True)
    """
    if hits or n < FEWEST:
        return proportion_interval(hits, n, alpha=alpha)
    return Interval(estimate=0.0, lower=0.0, upper=min(1.0, unseen_rate(n, alpha)))


def doublings(n: int) -> int:
    """The largest of `FEWEST`, twice that, four times, ... that is at most n; 0 below `FEWEST`.

    >>> doublings(96), doublings(1000), doublings(95)
    (96, 768, 0)
    """
    return FEWEST * 2 ** ((n // FEWEST).bit_length() - 1) if n >= FEWEST else 0


def distance_interval(values: Floats, cdf: Callable[[Floats], Floats], *, alpha: float) -> Interval:
    r"""Interval for the largest distance between the distribution of the replicates and `cdf`.

    Valid at every number of replicates at once: only the first 96, 192, 384, ... are looked at, the k-th time with
    error :math:`\alpha_k = \alpha/(k(k+1))` and radius :math:`\sqrt{\ln(2/\alpha_k)/(2n)}`.

    Parameters
    ----------
    values
        Shape (n,), iid, finite; at least 96.
    cdf
        Right-continuous distribution function; between its jumps, if any, it is continuous.

    References
    ----------
    Massart (1990), the constant in the inequality of Dvoretzky, Kiefer and Wolfowitz.

    Examples
    --------
    >>> u = np.random.default_rng(3).random(4096)
    >>> same, other = (distance_interval(u, lambda x, a=a: x**a, alpha=1e-6) for a in (1.0, 1.5))
    >>> same.lower, round(same.upper, 2), bool(other.lower > 0.05)
    (0.0, 0.07, True)
    """
    n = doublings(len(values))
    if n == 0:
        return Interval(estimate=math.nan, obstacle="too few replicates")
    distance = largest_distance(values[:n], cdf)
    k = (n // FEWEST).bit_length()
    # The errors alpha/(k (k + 1)) of all looks add up to alpha.
    radius = math.sqrt(math.log(2 * k * (k + 1) / alpha) / (2 * n))
    return Interval(estimate=distance, lower=max(0.0, distance - radius), upper=distance + radius)


def largest_distance(values: Floats, cdf: Callable[[Floats], Floats]) -> float:
    """Kolmogorov-Smirnov distance of a sample from a distribution function, atoms of either included."""
    x, counts = np.unique(values, return_counts=True)
    above = np.cumsum(counts) / len(values)
    below = above - counts / len(values)
    # at an atom of the law the step from the left must be compared with the limit from the left
    left = np.asarray(cdf(np.nextafter(x, -np.inf)), dtype=float)
    return float(max(np.abs(above - np.asarray(cdf(x), dtype=float)).max(), np.abs(left - below).max()))


def _first(excluded: Callable[[float], bool], start: float, step: float) -> float:
    for doubling in range(60):
        if excluded(start + step * 2**doubling):
            return _boundary(excluded, start, start + step * 2**doubling)
    return math.copysign(math.inf, step)


def _boundary(excluded: Callable[[float], bool], inside: float, outside: float) -> float:
    for _ in range(80):
        middle = (inside + outside) / 2
        if middle in (inside, outside):  # no number lies between them
            break
        inside, outside = (inside, middle) if excluded(middle) else (middle, outside)
    # The end that is excluded: rounding must not narrow an interval.
    return outside
