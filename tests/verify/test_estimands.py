"""From scores to intervals: each kind of claim against another route to the same number, and what it promises."""

import dataclasses
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import linalg, stats

from simulate.monte_carlo import BLOCK, Block, Point, SerialExecutor
from verify import estimands, sizes
from verify.engine import Session, Settings, judge_claim
from verify.estimands import (
    at_component,
    components,
    distance,
    kurtosis,
    measure,
    variance,
    violations,
)
from verify.intervals import (
    FEWEST,
    Interval,
    distance_interval,
    doublings,
    largest_distance,
    mean_interval,
)
from verify.judge import Judgement, judge, outcome, readings, replicates_fixed
from verify.model import ALPHA, Claim, Experiment, Kind, Tier, Verdict
from verify.results import PointOutcome, Row
from verify.sizes import extrapolated, local_exponents

M = np.array([10.0, 20.0, 40.0, 80.0, 160.0])
SIZES = Point(sizes=(10, 20, 40, 80, 160))
PAIR = Point(sizes=(80, 160))
POINT = Point(scale=3.0)
N = 1024


def nothing(block: Block, point: Point) -> dict[str, np.ndarray]:
    raise AssertionError("nothing is simulated here")


def claim(kind: Kind, point: Point = POINT, **changes) -> Claim:
    plain = {
        "id": "paper/claim",
        "entries": ("A1",),
        "source": "a paper",
        "statement": "x",
        "experiment": Experiment(id="paper/x", replicate="one x", simulate=nothing, points=(point,)),
        "kind": kind,
        "score": "y",
        "predict": lambda p: 3.0,
        "margin": 0.01,
        "margin_reason": "a test",
        "along": "sizes" if kind.spans_sizes else "",
    }
    return Claim(**{**plain, **changes})


def judged(tested: Claim, y: np.ndarray, alpha: float = ALPHA, index: int = 0, **others) -> Judgement:
    point = tested.experiment.points[0]
    return judge(tested, readings(tested)[index], point, {"y": y} | others, alpha)


def recorded(tested: Claim, y: np.ndarray, alpha: float = ALPHA, index: int = 0, **others) -> PointOutcome:
    point, found = tested.experiment.points[0], judged(tested, y, alpha, index, **others)
    return outcome(tested, readings(tested)[index], point, found, {"y": y} | others, [], alpha)


def noisy(curve: np.ndarray, spread, seed: int = 0, n: int = N) -> np.ndarray:
    """Replicates of a curve over sizes."""
    return curve + spread * np.random.default_rng(seed).normal(size=(n, len(curve)))


def spread_evenly(mean: float, spread: float, n: int = N) -> np.ndarray:
    """Symmetric replicates of exactly this mean and standard deviation."""
    z = np.linspace(-1.0, 1.0, n)
    return mean + spread * z / z.std(ddof=1)


def most(promise: float, count: int) -> int:
    """Misses that a promise exceeds once in a thousand tests."""
    return int(stats.binom.isf(1e-3, count, promise))


def covers(interval: Interval, truth: float) -> bool:
    return interval.lower <= truth <= interval.upper


# --- limits: the weights


def by_elimination(y: np.ndarray, sizes: np.ndarray, terms: tuple[float, ...]) -> float:
    """Least squares by the normal equations, with unscaled sizes."""
    columns = np.stack([sizes**-p for p in (0.0, *terms)])
    return float(linalg.solve(columns @ columns.T, columns @ y)[0])


def next_term(terms: tuple[float, ...]) -> float:
    """Error of the limit of a curve that is the next power alone, over what dropping the smallest size changes."""
    power = terms[-1] + terms[-1] - ([0.0, *terms])[-2]
    limit, fewer = (by_elimination(m**-power, m, terms) for m in (M, M[1:]))
    return max(1.25, abs(limit / (fewer - limit)))


@pytest.mark.parametrize("terms", [(1.0, 2.0), (2 / 3, 4 / 3), (0.5, 1.0), (1.0,), (1.0, 2.0, 3.0)])
def test_the_limit_is_that_of_least_squares(terms: tuple[float, ...]) -> None:
    y = noisy(3 + 5 / M, 1.0, n=200)
    found = extrapolated(y, M, terms, alpha=0.05)
    limit, fewer = by_elimination(y.mean(0), M, terms), by_elimination(y[:, 1:].mean(0), M[1:], terms)
    assert_allclose(found.estimate, limit, rtol=1e-6)
    assert_allclose(found.size_model, next_term(terms) * abs(fewer - limit), rtol=1e-5)


@pytest.mark.parametrize(("terms", "inflation"), [((1, 2), 1.04), ((2 / 3, 4 / 3), 1.71), ((0.5, 1), 2.67)])
def test_the_limit_costs_a_known_factor_in_standard_errors(
    terms: tuple[float, ...], inflation: float
) -> None:
    """Against sizes of independent noise: the square root of the first entry of (X'X)^-1."""
    y = noisy(np.zeros(5), 1.0, n=100_000)
    found, one = extrapolated(y, M, terms, alpha=0.05), mean_interval(y[:, 0], alpha=0.05)
    assert_allclose(found.statistical / one.half_width, inflation, atol=0.02)
    columns = np.stack([M**-p for p in (0, *terms)])
    assert_allclose(math.sqrt(linalg.inv(columns @ columns.T)[0, 0]), inflation, atol=0.01)


def test_a_curve_of_the_declared_terms_is_extrapolated_exactly() -> None:
    common = spread_evenly(0.0, 0.1)[:, None]
    found = extrapolated(3 + 5 / M - 7 / M**2 + common, M, (1, 2), alpha=ALPHA, numerical=1e-6)
    assert_allclose(found.estimate, 3.0, rtol=1e-12)
    assert found.size_model < 1e-12
    weights = np.linalg.pinv(np.stack([np.ones(5), 1 / M, 1 / M**2], axis=1))[0]
    assert_allclose(found.numerical, 1e-6 * np.abs(weights).sum(), rtol=1e-6)
    assert_allclose(found.statistical, mean_interval(common[:, 0], alpha=ALPHA).half_width, rtol=1e-9)


def test_the_smallest_size_can_only_be_dropped_where_enough_are_left() -> None:
    with pytest.raises(ValueError, match="sizes must be at least 4 for 2 terms, got 3"):
        extrapolated(np.ones((64, 3)), M[:3], (1, 2), alpha=0.05)


# --- limits: coverage


CURVES = {
    "two terms": ((1, 2), 3 + 5 / M - 7 / M**2, 1.0),
    "small third term": ((1, 2), 3 + 5 / M - 7 / M**2 + 20 / M**3, 2.5),
    "powers of the edge": ((2 / 3, 4 / 3), 3 - 1.2 * M ** (-2 / 3) + 0.4 * M ** (-4 / 3), 1.0),
}


@pytest.mark.parametrize(
    "spread", [0.02, 0.2 / np.sqrt(M), 0.003 * M**0.5], ids=["equal", "falling", "growing"]
)
@pytest.mark.parametrize("name", CURVES)
def test_a_limit_keeps_its_promise(name: str, spread) -> None:
    """Whatever the noise does with size, and with a third term as large as the noise may hide."""
    terms, curve, factor = CURVES[name]
    found = [extrapolated(noisy(curve, factor * spread, i, 512), M, terms, alpha=0.05) for i in range(60)]
    assert sum(not covers(i, 3.0) for i in found) <= most(0.05, 60)
    assert sum(bool(i.obstacle) for i in found) <= (30 if "third" in name else most(1e-3, 60))


@pytest.mark.parametrize(
    ("terms", "power", "weight"),
    [
        ((1, 2), 3, 1.25),
        ((2 / 3, 4 / 3), 2, 1.61),
        ((0.5, 1), 1.5, 2.02),
        ((2 / 3, 1), 4 / 3, 2.23),
        ((0.5,), 1, 2.76),
    ],
)
def test_the_band_covers_the_next_term_of_the_series(
    terms: tuple[float, ...], power: float, weight: float
) -> None:
    """Without any noise: 1.25 is enough for whole powers, not for fractions."""
    curve = 5 * M**-power
    limit, fewer = by_elimination(curve, M, terms), by_elimination(curve[1:], M[1:], terms)
    assert_allclose(abs(limit) / abs(fewer - limit), weight, atol=0.005)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sizes, "TRUST", 0.0)  # nothing is mistrusted
        found = extrapolated(curve + spread_evenly(0.0, 1e-9)[:, None], M, terms, alpha=ALPHA)
    assert_allclose(found.size_model, abs(limit), rtol=1e-6)
    assert found.size_model > 1000 * found.statistical


def test_a_limit_from_one_term_is_off_by_more_than_its_noise() -> None:
    """Why two are asked for: of the curves whose second term the noise hides from the fit, few cover the limit."""
    curve = 3 + 5 / M + 5 / M**2
    found = [extrapolated(noisy(curve, 0.04, seed, 256), M, (1,), alpha=0.05) for seed in range(60)]
    decided = [i for i in found if not i.obstacle]
    assert 15 < len(decided) < 60
    assert sum(abs(i.estimate - 3) > i.statistical for i in decided) > 0.8 * len(decided)
    assert sum(covers(i, 3.0) for i in decided) > 0.8 * len(decided)  # the band takes it in


STRANGE = {"fourth root": 3 + 0.5 * M**-0.25, "logarithm": 3 + 0.05 * np.log(M), "root": 3 + 0.5 * M**-0.5}


@pytest.mark.parametrize("name", STRANGE)
def test_a_strange_order_is_not_trusted_once_it_is_resolved(name: str) -> None:
    tested = claim(Kind.LIMIT, SIZES, terms=(1, 2))
    for seed in range(10):
        y = noisy(STRANGE[name], 0.01, seed)
        for theory in (3.0, float(y[:, -1].mean()), by_elimination(y.mean(0), M, (1.0, 2.0))):
            found = recorded(dataclasses.replace(tested, predict=lambda p, t=theory: t), y)
            assert (found.verdict, found.reason) == ("undecided", "size model not trusted")
            assert found.lower == -math.inf and found.needed is None


def test_a_strange_order_below_the_noise_is_not_seen() -> None:
    """The limit of the method, as the module says: whoever declares an order has to show it."""
    found = extrapolated(noisy(STRANGE["fourth root"], 0.3), M, (1, 2), alpha=ALPHA)
    assert not found.obstacle and not covers(found, 3.0)
    assert "so the order is a claim of its own" in " ".join(estimands.__doc__.split())


# --- limits: whether the terms fit


def test_the_fit_does_not_depend_on_a_basis_of_the_contrasts() -> None:
    """Hotelling's statistic of two contrasts by elimination, the first of which leaves the largest size out."""
    y = noisy(3 + 5 / M + 0.03 / M**0.5, 0.02 / np.sqrt(M), n=256)
    design = np.stack([np.ones(5), 1 / M, 1 / M**2], axis=1)
    first = np.append(linalg.null_space(design[:4].T)[:, 0], 0.0)
    last = np.append(0.0, linalg.null_space(design[1:].T)[:, 0])
    c = y @ np.stack([first, last]).T
    square = 256 * c.mean(0) @ linalg.solve(np.cov(c.T), c.mean(0))
    p = stats.f.sf(square * (256 - 2) / (2 * 255), 2, 254)
    assert 1e-9 < p < 0.5
    for trust, fits in ((p / 1.01, True), (p * 1.01, False)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sizes, "TRUST", trust)
            assert bool(extrapolated(y, M, (1, 2), alpha=ALPHA).obstacle) is not fits


def test_a_right_model_is_mistrusted_as_rarely_as_promised() -> None:
    rng = np.random.default_rng(3)
    wrong = sum(
        "trusted" in extrapolated(3 + 5 / M + rng.exponential(size=(128, 5)), M, (1, 2), alpha=0.05).obstacle
        for _ in range(1000)
    )
    assert wrong <= most(2e-3, 1000)


def test_noise_that_all_sizes_share_leaves_a_wrong_model_nowhere_to_hide() -> None:
    """Contrasts of zero variance are known exactly: that is no reason to believe them."""
    common = spread_evenly(0.0, 0.1)[:, None]
    right, wrong = (3 + 5 / M + c / M**3 + common for c in (0.0, 0.1))
    assert not extrapolated(right, M, (1, 2), alpha=ALPHA).obstacle
    assert extrapolated(wrong, M, (1, 2), alpha=ALPHA).obstacle == "size model not trusted"
    assert not extrapolated(
        wrong, M, (1, 2), alpha=ALPHA, numerical=1e-4
    ).obstacle  # within the numerical error


def test_a_limit_that_does_not_vary_is_no_measurement() -> None:
    assert extrapolated(np.ones((128, 5)), M, (1, 2), alpha=ALPHA).obstacle == "zero variance"
    assert extrapolated(noisy(M, 1.0, n=48), M, (1, 2), alpha=ALPHA).obstacle == "too few replicates"


# --- limits and exponents as claims


@pytest.mark.parametrize(("theory", "verdict"), [(3.0, "agrees"), (3.1, "disagrees"), (3.028, "undecided")])
def test_a_limit_is_judged(theory: float, verdict: str) -> None:
    tested = claim(Kind.LIMIT, SIZES, terms=(1, 2), predict=lambda p: theory, rivals={"four": lambda p: 4.0})
    found = recorded(tested, noisy(3 + 5 / M + 2 / M**2, 0.02))
    assert found.verdict == verdict and found.size_model > 0
    assert [(r.name, r.rejected) for r in found.rivals] == [("four", True)]
    assert found.reason == ("too wide after its fixed number of replicates" if verdict == "undecided" else "")
    assert [p.x for p in found.profile] == list(M)
    assert all(p.lower < p.measured < p.upper and p.predicted == theory for p in found.profile)
    assert_allclose(found.statistical + found.numerical + found.size_model, found.upper - found.measured)


def test_local_exponents_are_those_of_the_means() -> None:
    y = noisy(M**1.5 * (1 + 1 / M), 0.1 * M**1.5, n=400)
    mean = y.mean(0)
    assert_allclose(local_exponents(y, M).mean(0), np.log2(mean[1:] / mean[:-1]), rtol=1e-12)
    assert_allclose(local_exponents(-y, M), local_exponents(y, M))
    y = M**-0.7 * (1 + 0.1 * spread_evenly(0.0, 1.0)[:, None])  # noise that all sizes share cancels
    assert_allclose(local_exponents(y, M), -0.7, rtol=1e-9)


def test_local_exponents_vary_as_the_delta_method_and_the_bootstrap_say() -> None:
    rng, n = np.random.default_rng(5), 400
    factor = rng.gamma(20.0, 1 / 20, size=(n, 1)) * rng.gamma(9.0, 1 / 9, size=(n, 5))
    y = M**1.5 * factor
    found = np.cov(local_exponents(y, M).T) / n

    mean = y.mean(0)
    step = (np.eye(5)[1:] - np.eye(5)[:-1]) / np.log(2)
    jacobian = step / mean
    assert_allclose(found, jacobian @ np.cov(y.T) @ jacobian.T / n, rtol=1e-9)

    draws = rng.integers(n, size=(2000, n))
    means = np.stack([y[i].mean(0) for i in draws])
    bootstrap = np.cov(np.log2(means[:, 1:] / means[:, :-1]).T)
    assert_allclose(found, bootstrap, atol=0.15 * found.max())

    independent = 2 / 9 / math.log(2) ** 2 / n  # the common factor cancels: CV^2 = 1/9 at each of two sizes
    assert_allclose(np.diag(found), independent, rtol=0.35)


EXPONENTS = {
    "one term": (1.5, (1,), 0.0, M**1.5 * (1 + 0.3 / M)),
    "two terms": (1.5, (1, 2), 0.0, M**1.5 * (1 + 1 / M + 8 / M**2)),
    "roots": (-0.7, (0.5, 1), 0.0, M**-0.7 * (1 + M**-0.5)),
    "order of a correction": (-2 / 3, (2 / 3, 4 / 3), 2.0, 2 - 1.2 * M ** (-2 / 3) - M ** (-4 / 3)),
}


@pytest.mark.parametrize("spread", [0.03, 0.3])
@pytest.mark.parametrize("name", EXPONENTS)
def test_an_exponent_keeps_its_promise(name: str, spread: float) -> None:
    exponent, terms, offset, curve = EXPONENTS[name]
    missed = 0
    for seed in range(40):
        y = noisy(curve, spread * (curve - offset), seed, 512)
        missed += not covers(
            extrapolated(local_exponents(y - offset, M), M[:-1], terms, alpha=0.05), exponent
        )
    assert missed <= most(0.05, 40)


@pytest.mark.parametrize(
    ("theory", "verdict"), [(1.5, Verdict.AGREES), (1.0, Verdict.DISAGREES), (2.0, Verdict.DISAGREES)]
)
def test_an_exponent_is_judged(theory: float, verdict: Verdict) -> None:
    tested = claim(Kind.EXPONENT, SIZES, terms=(1,), predict=lambda p: theory, margin=0.05)
    curve = M**1.5 * (1 + 0.5 / M)
    found = recorded(tested, noisy(curve, 0.02 * curve))
    assert found.verdict == verdict
    last = found.profile[-1]
    assert last.predicted == last.measured  # the line of this slope goes through the largest size
    assert_allclose(found.profile[0].predicted, last.measured / 16**theory)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_order_of_a_correction_is_that_of_the_distance_from_its_limit(sign: int) -> None:
    limit, curve = 2.0, 2.0 + sign * 1.2 * M ** (-2 / 3)
    tested = claim(
        Kind.EXPONENT, SIZES, terms=(2 / 3,), predict=lambda p: -2 / 3, margin=0.1, offset=lambda p: limit
    )
    y = noisy(curve, 0.01 * abs(curve - limit))
    assert judged(tested, y).verdict is Verdict.AGREES
    assert_allclose([p.measured for p in recorded(tested, y).profile], y.mean(0) - limit)
    assert judged(dataclasses.replace(tested, predict=lambda p: -1.0), y).verdict is Verdict.DISAGREES
    # from a limit that is wrong the distance does not fall as a power
    wrong = judged(dataclasses.replace(tested, offset=lambda p: limit - sign * 0.05), y)
    assert wrong.verdict is not Verdict.AGREES


@pytest.mark.parametrize(
    ("curve", "spread", "offset", "obstacle"),
    [
        (1 / M, 0.2, None, "mean not resolved from 0"),
        (2 + 1 / M, 0.2, 2.0, "distance from the limit not resolved from 0"),
        (2 + 1 / M - 0.03, 0.001, 2.0, "distance from the limit changes sign between sizes"),
        (1 / M - 0.03, 0.001, None, "mean changes sign between sizes"),
        (2 + 1 / M, 0.001, math.nan, "distance from the limit not resolved from 0"),
    ],
)
def test_an_exponent_needs_numbers_resolved_from_zero(
    curve: np.ndarray, spread: float, offset: float | None, obstacle: str
) -> None:
    tested = claim(Kind.EXPONENT, SIZES, terms=(1,), offset=None if offset is None else lambda p: offset)
    assert judged(tested, noisy(curve, spread, n=48)).interval.obstacle == "too few replicates"
    found = judged(tested, noisy(curve, spread))
    assert found.verdict is Verdict.UNDECIDED and found.interval.obstacle == obstacle


def test_a_mean_resolved_barely_is_too_little_for_its_logarithm() -> None:
    """At twice its half-width from zero, and no nearer."""
    tested = claim(Kind.EXPONENT, SIZES, terms=(1,))
    half = mean_interval(spread_evenly(0.0, 1.0), alpha=ALPHA).half_width
    for factor, refused in ((1.9, True), (2.1, False)):
        rolled = [np.roll(spread_evenly(0.0, 1.0), 200 * i) for i in range(5)]
        y = factor * half + np.stack(rolled, axis=1)
        assert ("not resolved" in judged(tested, y).interval.obstacle) is refused


@pytest.mark.parametrize("kind", [Kind.SETTLED, Kind.LIMIT, Kind.EXPONENT])
def test_sizes_and_components_must_match(kind: Kind) -> None:
    tested = claim(kind, SIZES, terms=(1, 2))
    with pytest.raises(ValueError, match="score 'y' must have one component for each of 5 sizes, got 4"):
        judged(tested, np.ones((64, 4)))
    with pytest.raises(ValueError, match=r"score 'y' must be one vector per replicate, got shape \(64,\)"):
        judged(tested, np.ones(64))
    stray = np.ones((64, 5))
    stray[17, 2] = math.inf
    with pytest.raises(ValueError, match="score 'y' must be finite, got inf in replicate 17"):
        judged(tested, stray)


# --- a mean that no longer depends on size


@pytest.mark.parametrize(
    ("small", "spread", "theory", "verdict", "reason"),
    [
        (3.0, 0.01, 3.0, "agrees", ""),
        (3.0, 0.01, 3.2, "disagrees", ""),
        (3.5, 0.01, 3.0, "undecided", "still depends on size"),
        (2.5, 0.01, 3.0, "undecided", "still depends on size"),
        (3.5, 0.01, 3.2, "undecided", "still depends on size"),
        (3.0, 0.1, 3.0, "undecided", "size dependence not resolved"),
        (3.0, 0.01, 3.03, "undecided", "budget"),
    ],
)
def test_a_settled_mean_is_judged_once_it_has_settled(
    small: float, spread: float, theory: float, verdict: str, reason: str
) -> None:
    y = noisy(np.array([small, 3.0]), spread)
    found = recorded(claim(Kind.SETTLED, PAIR, predict=lambda p: theory), y)
    assert (found.verdict, found.reason) == (verdict, reason)
    assert found.measured == pytest.approx(y[:, 1].mean())
    assert [(p.x, p.predicted) for p in found.profile] == [(80.0, theory), (160.0, theory)]


def test_a_mean_may_move_by_a_tenth_of_the_margin() -> None:
    tested = claim(Kind.SETTLED, PAIR, margin=0.1, relative=False)
    for moved, verdict in ((0.009, Verdict.AGREES), (0.011, Verdict.UNDECIDED)):
        y = np.stack([spread_evenly(3.0 - moved, 0.001), spread_evenly(3.0, 0.001)[::-1]], axis=1)
        assert judged(tested, y).verdict is verdict
    within = np.stack([spread_evenly(3.0, 0.001) - 0.009, spread_evenly(3.0, 0.001)], axis=1)
    assert judged(tested, within).verdict is Verdict.AGREES  # the same difference on every replicate
    assert judged(dataclasses.replace(tested, numerical=0.002), within).verdict is Verdict.UNDECIDED


def test_a_settled_mean_is_rarely_taken_for_one_where_it_still_moves() -> None:
    """The drift has its own interval: at the very edge of what is allowed it is missed as rarely as promised."""
    tested = claim(Kind.SETTLED, PAIR, margin=0.1, relative=False)
    decided = [judged(tested, noisy(np.array([2.9899, 3.0]), 0.02, s, 256), 0.05).verdict for s in range(100)]
    assert sum(v is not Verdict.UNDECIDED for v in decided) <= most(0.05, 100)


# --- bounds on every replicate


def bound(kind: Kind, **changes) -> Claim:
    plain = {
        "relative": False,
        "margin": 0.05,
        "rivals": {"stronger": lambda p: 1.5, "weaker": lambda p: 9.0},
    }
    return claim(kind, **{**plain, **changes})


@pytest.mark.parametrize(("kind", "sign"), [(Kind.NEVER_ABOVE, 1), (Kind.NEVER_BELOW, -1)])
def test_one_violation_in_many_is_enough_and_kept_with_its_replicate(kind: Kind, sign: int) -> None:
    y = sign * np.linspace(1.0, 2.0, 4096)
    tested = bound(kind, predict=lambda p: 3.0 * sign)
    assert judged(tested, y).verdict is Verdict.AGREES
    y[1234] = 3.25 * sign
    found = recorded(tested, y)
    assert found.verdict == "disagrees" and not found.reason
    assert [(v.replicate, v.by) for v in found.violations] == [(1234, 0.25)]
    assert found.measured == 1 / 4096 and 0 < found.lower < 1 / 4096 < found.upper
    y[[7, 300, *range(2000, 2020)]] = 4 * sign
    kept = recorded(tested, y).violations
    assert [v.replicate for v in kept] == [7, 300, 1234, *range(2000, 2005)]


def test_a_violation_counts_before_any_interval_does() -> None:
    y = np.append(np.ones(15), 4.0)
    assert judged(bound(Kind.NEVER_ABOVE), y).verdict is Verdict.DISAGREES
    assert judged(bound(Kind.NEVER_ABOVE), np.ones(16)).verdict is Verdict.UNDECIDED


@pytest.mark.parametrize(("by", "verdict"), [(1e-9, Verdict.AGREES), (1.1e-9, Verdict.DISAGREES)])
def test_rounding_is_no_violation(by: float, verdict: Verdict) -> None:
    y = np.append(np.zeros(1023), by)
    tested = bound(Kind.NEVER_ABOVE, predict=lambda p: 0.0, numerical=1e-9)
    assert judged(tested, y).verdict is verdict
    assert judged(dataclasses.replace(tested, numerical=0.0), y).verdict is Verdict.DISAGREES


def test_a_bound_on_a_measured_input_is_compared_replicate_by_replicate() -> None:
    x = np.linspace(1.0, 2.0, 1024)
    tested = bound(Kind.NEVER_ABOVE, predict=lambda p: p.x**2, inputs={"x": 1.5}, rivals={})
    assert judged(tested, x, x=x).verdict is Verdict.AGREES
    beyond = violations(tested, tested.predict, "y", POINT, {"y": np.where(x > 1.9, 4.0, x), "x": x})
    assert_allclose(beyond, np.where((x > 1.9) & (x < 2), 4 - x**2, 0.0))


@pytest.mark.parametrize("kind", [Kind.NEVER_ABOVE, Kind.NEVER_BELOW])
def test_a_bound_that_is_no_number_is_violated(kind: Kind) -> None:
    x = np.linspace(-0.1, 1.0, 1024)
    tested = bound(kind, predict=lambda p: (p.x + 0j) ** 0.5 if kind is Kind.NEVER_ABOVE else np.log(p.x))
    tested = dataclasses.replace(tested, inputs={"x": 0.5}, rivals={})
    with np.errstate(invalid="ignore", divide="ignore"):
        found = recorded(tested, np.zeros(1024) if kind is Kind.NEVER_ABOVE else np.ones(1024), x=x)
    assert found.verdict == "disagrees"
    assert found.violations[0].replicate == 0 and found.violations[0].by == math.inf


@pytest.mark.parametrize("n", [FEWEST, 100, 4096])
def test_what_was_never_seen_is_rarer_than_ln_one_over_alpha_in_n(n: int) -> None:
    """Also at every n at once: the first n at which a rate would be missed has a chance below alpha by itself."""
    found = judged(bound(Kind.NEVER_ABOVE), np.ones(n)).interval
    assert (found.estimate, found.lower) == (0.0, 0.0)
    assert_allclose(found.upper, math.log(1 / ALPHA) / n)
    rate = found.upper * 1.0001
    assert (1 - rate) ** n < ALPHA


def test_the_replicates_that_a_bound_still_needs_are_those_at_which_it_agrees() -> None:
    tested = bound(Kind.NEVER_ABOVE, margin=0.004)
    found = recorded(tested, np.ones(FEWEST))
    assert found.reason == "budget" and found.needed == BLOCK * math.ceil(math.log(1 / ALPHA) / 0.004 / BLOCK)
    assert judged(tested, np.ones(int(found.needed))).verdict is Verdict.AGREES
    assert judged(tested, np.ones(int(found.needed) - BLOCK)).verdict is Verdict.UNDECIDED


def test_a_rival_bound_is_rejected_by_one_violation() -> None:
    found = recorded(bound(Kind.NEVER_ABOVE), np.linspace(1.0, 2.0, 1024))
    assert {r.name: r.rejected for r in found.rivals} == {"stronger": True, "weaker": False}
    assert_allclose([r.value for r in found.rivals], [0.5, 0.0], atol=0.01)


def test_the_printed_bound_is_judged_by_its_own_violations() -> None:
    tested = bound(Kind.NEVER_ABOVE, printed=lambda p: 1.9, finding="too strong")
    y = np.linspace(1.0, 2.0, 1024)
    assert [judged(tested, y, index=i).verdict for i in (0, 1)] == [Verdict.AGREES, Verdict.DISAGREES]
    assert recorded(tested, y, index=1).rivals == []


# --- bounds on means, and how loose they are


@pytest.mark.parametrize(
    ("mean", "verdict"), [(0.1, "agrees"), (3.0, "agrees"), (3.03, "undecided"), (3.1, "disagrees")]
)
def test_an_upper_bound_is_violated_only_from_above(mean: float, verdict: str) -> None:
    tested = claim(Kind.AT_MOST, rivals={"stronger": lambda p: 2.0, "weaker": lambda p: 9.0})
    found = recorded(tested, spread_evenly(mean, 0.02))
    assert found.verdict == verdict and not found.offset_resolved
    assert {r.name: r.rejected for r in found.rivals} == {"stronger": mean > 2, "weaker": False}
    assert_allclose(found.slack, mean / 3)


@pytest.mark.parametrize(
    ("kind", "y", "slack"),
    [
        (Kind.AT_LEAST, spread_evenly(9.0, 0.1), 3.0),
        (Kind.AT_MOST, spread_evenly(-6.0, 0.1), -2.0),
        (Kind.NEVER_ABOVE, np.linspace(0.0, 1.5, 64), 0.5),  # the closest replicate, not the mean
        (Kind.NEVER_BELOW, np.linspace(4.5, 90.0, 64), 1.5),
        (Kind.MEAN, spread_evenly(3.0, 0.1), None),
    ],
)
def test_slack_is_what_was_measured_over_its_bound(kind: Kind, y: np.ndarray, slack: float | None) -> None:
    tested = claim(kind, relative=False, margin=0.05)
    assert recorded(tested, y).slack == (None if slack is None else pytest.approx(slack))


@pytest.mark.parametrize("value", [0.0, math.inf, math.nan])
def test_a_bound_of_zero_or_no_number_has_no_slack(value: float) -> None:
    for kind in (Kind.AT_MOST, Kind.NEVER_ABOVE):
        tested = claim(kind, relative=False, predict=lambda p: value)
        assert recorded(tested, spread_evenly(-1.0, 0.1)).slack is None


# --- statistics of groups


def grouped(statistic, group: int = 32, **changes) -> Claim:
    return claim(Kind.GROUPS, statistic=statistic, group=group, **changes)


@pytest.mark.parametrize(
    ("statistic", "draw", "truth", "margin"),
    [
        (variance, lambda rng, n: rng.normal(5.0, 2.0, n), 4.0, 0.2),
        (variance, lambda rng, n: rng.exponential(2.0, n), 4.0, 0.4),
        (kurtosis, lambda rng, n: rng.normal(5.0, 2.0, n), 0.0, 0.2),
    ],
)
def test_the_statistic_of_groups_is_unbiased(statistic, draw, truth: float, margin: float) -> None:
    y = draw(np.random.default_rng(1), 32 * 4000)
    tested = grouped(statistic, relative=False, margin=margin, predict=lambda p: truth)
    assert judged(tested, y).verdict is Verdict.AGREES
    assert judged(dataclasses.replace(tested, predict=lambda p: truth + 1), y).verdict is Verdict.DISAGREES


def test_the_variance_and_kurtosis_of_a_group_are_fishers() -> None:
    groups = np.random.default_rng(2).gamma(2.0, size=(7, 30))
    n, centred = 30, groups - groups.mean(axis=1, keepdims=True)
    s2, s4 = ((centred**k).sum(axis=1) for k in (2, 4))
    k2 = s2 / (n - 1)
    k4 = n * ((n + 1) * s4 - 3 * (n - 1) * s2**2 / n) / ((n - 1) * (n - 2) * (n - 3))
    assert_allclose(variance(groups), k2)
    assert_allclose(kurtosis(groups), k4 / k2**2)


def test_groups_are_whole_and_in_order() -> None:
    y = np.random.default_rng(3).normal(size=FEWEST * 32 + 31)
    found = judged(grouped(variance), y).interval
    direct = mean_interval(y[: FEWEST * 32].reshape(FEWEST, 32).var(axis=1, ddof=1), alpha=ALPHA)
    assert found == direct
    assert judged(grouped(variance), np.append(y[:-31], np.full(31, 1e9))).interval == direct


def test_too_few_groups_give_no_interval() -> None:
    found = judged(grouped(variance), np.random.default_rng(3).normal(size=FEWEST * 32 - 1))
    assert found.verdict is Verdict.UNDECIDED and found.interval.obstacle == "too few replicates"


@pytest.mark.parametrize(
    "statistic", [lambda g: g.mean(), lambda g: g, lambda g: np.full(len(g), math.nan)], ids=range(3)
)
def test_a_statistic_is_one_number_for_each_group(statistic) -> None:
    with pytest.raises(
        ValueError, match=f"statistic must be one finite number for each of {FEWEST} groups, got"
    ):
        judged(grouped(statistic), np.random.default_rng(3).normal(size=FEWEST * 32))


# --- distributions


def exponential(scale: float):
    return lambda t: -np.expm1(-np.maximum(t, 0.0) / scale)


def law(predict, **changes) -> Claim:
    return claim(
        Kind.DISTRIBUTION, relative=False, **{"margin": 0.1, "predict": lambda p: predict, **changes}
    )


@pytest.mark.parametrize("digits", [16, 1])
@pytest.mark.parametrize("n", [1, 64, 1000])
def test_the_distance_is_kolmogorovs(n: int, digits: int) -> None:
    """Ties in the sample included; scipy has no laws with atoms."""
    x = np.random.default_rng(4).exponential(1.3, n).round(digits)
    found = largest_distance(x, exponential(1.0))
    assert_allclose(found, stats.kstest(x, stats.expon.cdf).statistic, rtol=1e-12)


@pytest.mark.parametrize("p", [0.2, 0.5])
def test_the_distance_from_a_law_with_atoms_is_that_of_the_probabilities(p: float) -> None:
    x = np.random.default_rng(5).binomial(6, 0.3, 500).astype(float)
    grid = np.arange(-1, 8)
    direct = max(abs((x <= k).mean() - stats.binom.cdf(k, 6, p)) for k in grid)
    assert_allclose(largest_distance(x, lambda t: stats.binom.cdf(t, 6, p)), direct, atol=1e-12)
    half_atom = lambda t: 0.5 * (t >= 0) + 0.5 * exponential(1.0)(t)  # noqa: E731
    mixed = np.concatenate([np.zeros(50), np.linspace(0.05, 3.0, 50)])
    fine = np.linspace(-1.0, 4.0, 50_001)
    ecdf = np.searchsorted(mixed, fine + 1e-12, side="right") / 100
    assert_allclose(largest_distance(mixed, half_atom), abs(ecdf - half_atom(fine)).max(), atol=1e-4)


def test_the_radius_is_massarts_at_every_doubling() -> None:
    x = np.random.default_rng(6).random(1000)
    spent = 0.0
    for k, n in enumerate((96, 192, 384, 768), start=1):
        found = distance_interval(x[:n], lambda t: np.clip(t, 0, 1), alpha=0.01)
        share = 2 * math.exp(-2 * n * (found.upper - found.estimate) ** 2)
        assert_allclose(share, 0.01 / (k * (k + 1)))
        spent += share
        assert found == distance_interval(x[: min(2 * n - 1, 1000)], lambda t: np.clip(t, 0, 1), alpha=0.01)
    assert spent < 0.01
    assert [doublings(n) for n in (0, 95, 96, 191, 192, 6144, 12000)] == [0, 0, 96, 96, 192, 6144, 6144]
    assert distance_interval(x[: FEWEST - 1], np.sin, alpha=0.01).obstacle == "too few replicates"


@pytest.mark.parametrize("alpha", [0.05, 1e-2, 1e-3])
def test_a_distribution_keeps_its_promise_over_all_looks(alpha: float) -> None:
    """Of the true law the distance is 0: the interval misses it where its lower end is above."""
    rng, count = np.random.default_rng(7), 300
    missed = 0
    for _ in range(count):
        x = rng.exponential(size=1536)
        looks = (distance_interval(x[:n], exponential(1.0), alpha=alpha) for n in (96, 192, 384, 768, 1536))
        missed += any(i.lower > 0 for i in looks)
    assert missed <= most(alpha, count)


def test_the_promise_holds_for_the_distance_of_another_law_too() -> None:
    rng, count = np.random.default_rng(8), 200
    grid = np.linspace(0, 30, 100_001)
    truth = abs(exponential(1.0)(grid) - exponential(1.5)(grid)).max()
    found = [distance_interval(rng.exponential(size=256), exponential(1.5), alpha=0.05) for _ in range(count)]
    assert sum(not covers(i, truth) for i in found) <= most(0.05, count)


def test_a_law_is_judged() -> None:
    y = np.random.default_rng(9).exponential(size=6144 + 500)
    tested = law(
        exponential(1.0), rivals={"twice": lambda p: exponential(2.0), "near": lambda p: exponential(1.01)}
    )
    found = recorded(tested, y)
    assert (found.verdict, found.replicates, found.predicted) == ("agrees", 6144, 0.0)
    assert found.measured == largest_distance(y[:6144], exponential(1.0)) and not found.offset_resolved
    assert {r.name: r.rejected for r in found.rivals} == {"twice": True, "near": False}
    assert_allclose(found.rivals[0].value, 0.25, atol=1e-5)  # |e^-t/2 - e^-t| at t = 2 ln 2
    wrong = recorded(law(exponential(2.0)), y)
    assert wrong.verdict == "disagrees" and wrong.lower > 0.1
    first, last = found.profile[0], found.profile[-1]
    assert (first.x, last.x, last.measured) == (y[:6144].min(), y[:6144].max(), 1.0)
    assert all(p.lower <= p.measured <= p.upper for p in found.profile)
    assert_allclose(
        [p.predicted for p in found.profile], exponential(1.0)(np.array([p.x for p in found.profile]))
    )
    assert recorded(law(exponential(1.0)), y[:32]).profile == []


def test_the_printed_law_is_judged_on_the_same_replicates() -> None:
    y = np.random.default_rng(9).exponential(size=4096)
    tested = law(exponential(1.0), printed=lambda p: exponential(2.0), finding="twice")
    assert [judged(tested, y, index=i).verdict for i in (0, 1)] == [Verdict.AGREES, Verdict.DISAGREES]


def test_a_law_that_is_no_number_disagrees() -> None:
    y = np.random.default_rng(9).exponential(size=256)
    tested = law(lambda t: np.full_like(np.asarray(t, dtype=float), math.nan))
    found = judged(tested, y)
    assert found.verdict is Verdict.DISAGREES and math.isnan(found.predicted)
    assert judged(tested, y[:32]).verdict is Verdict.UNDECIDED
    assert distance(tested, POINT, lambda p: exponential(1.0), tested.predict) == math.inf


def test_the_replicates_a_distribution_still_needs_are_a_look() -> None:
    y = np.random.default_rng(9).exponential(size=8192)
    found = recorded(law(exponential(1.0)), y[:512])
    assert found.reason == "budget" and found.needed is not None
    assert doublings(int(found.needed)) == found.needed > 512
    assert judged(law(exponential(1.0)), y[: int(found.needed)]).verdict is Verdict.AGREES


@pytest.mark.parametrize("scale", [1e-3, 1.0, 50.0])
def test_laws_of_any_scale_are_told_apart(scale: float) -> None:
    found = distance(
        law(exponential(scale)), POINT, lambda p: exponential(2 * scale), lambda p: exponential(scale)
    )
    assert_allclose(found, 0.25, atol=1e-4)


# --- vector scores


def vector(kind: Kind = Kind.MEAN, **changes) -> Claim:
    point = Point(scale=3.0, x=(0.3, 0.7, 1.9))
    return claim(kind, point, **{"along": "x", "predict": lambda p: p.scale * p.x, **changes})


def test_a_vector_is_judged_at_each_component() -> None:
    tested = vector()
    point = tested.experiment.points[0]
    found = components(tested, point)
    assert found == tuple(Point(scale=3.0, x=x) for x in (0.3, 0.7, 1.9))
    scores = {"y": np.arange(12.0).reshape(4, 3), "one": np.arange(4.0), "pair": np.ones((4, 2))}
    for i, at in enumerate(found):
        mine = at_component(tested, point, scores, i)
        assert mine["y"].tolist() == scores["y"][:, i].tolist()
        assert mine["one"] is scores["one"] and mine["pair"] is scores["pair"]
        column = {"y": spread_evenly(3.0 * at.x, 0.01)}
        assert judge(tested, readings(tested)[0], at, column, ALPHA).verdict is Verdict.AGREES
    sizes = claim(Kind.LIMIT, SIZES, terms=(1, 2))
    assert components(sizes, SIZES) == (SIZES,) and at_component(sizes, SIZES, scores, 0) is scores
    assert components(claim(Kind.MEAN), POINT) == (POINT,)


@pytest.mark.parametrize("y", [np.ones((64, 2)), np.ones(64)])
def test_a_score_without_the_components_it_runs_along_is_refused(y: np.ndarray) -> None:
    tested = vector()
    with pytest.raises(
        ValueError, match=r"score 'y' must have one component for each of 3 values of x, got shape"
    ):
        at_component(tested, tested.experiment.points[0], {"y": y}, 0)
    with pytest.raises(ValueError, match=r"score 'y' must be one number per replicate, got shape \(64, 2\)"):
        judged(claim(Kind.MEAN), np.ones((64, 2)))


def test_one_part_of_a_ratio_may_be_the_same_for_all_components() -> None:
    tested = vector(kind=Kind.RATIO, score=("y", "total"))
    scores = {"y": np.ones((64, 3)), "total": np.ones(64)}
    assert at_component(tested, tested.experiment.points[0], scores, 2)["y"].shape == (64,)
    with pytest.raises(ValueError, match=r"score \('y', 'total'\) must have one component"):
        at_component(tested, tested.experiment.points[0], {"y": np.ones(64), "total": np.ones(64)}, 2)


def test_measure_counts_the_replicates_it_rests_on() -> None:
    y = {"y": np.random.default_rng(1).exponential(size=100)}
    for tested, n in ((claim(Kind.MEAN), 100), (law(exponential(1.0)), FEWEST), (grouped(variance), 100)):
        assert measure(tested, tested.predict, "y", POINT, y, 0.05).replicates == n


# --- in the engine


def curves(block: Block, point: Point) -> dict[str, np.ndarray]:
    m = np.array(point.sizes, dtype=float)
    noise = np.stack([rng.standard_normal(len(m)) for rng in block.streams])
    return {"limit": 3 + 5 / m + 0.02 * noise, "growing": m**1.5 * (1 + 0.01 * noise), "mean": noise[:, 0]}


CURVED = Experiment(id="paper/curves", replicate="one curve", simulate=curves, points=(SIZES,), budget=100)
LIMIT = claim(Kind.LIMIT, id="paper/limit", experiment=CURVED, score="limit", terms=(1, 2), margin=0.001)
EXPONENT = claim(
    Kind.EXPONENT, id="paper/exponent", experiment=CURVED, score="growing", terms=(1,), predict=lambda p: 1.5
)
COMPONENT = claim(
    Kind.MEAN, id="paper/vector", experiment=CURVED, score="limit", along="sizes", margin=0.002,
    predict=lambda p: 3 + 5 / p.sizes,
)  # fmt: skip
HARD = claim(
    Kind.MEAN,
    id="paper/hard",
    experiment=CURVED,
    score="mean",
    relative=False,
    margin=0.2,
    predict=lambda p: 0.0,
)
TOGETHER = (LIMIT, EXPONENT, COMPONENT, HARD)


def rows(claims: tuple[Claim, ...], executor=None, **settings) -> list[Row]:
    made = Session(claims, Settings(seed=5, **settings), executor or SerialExecutor())
    return [dataclasses.replace(row, seconds=0.0) for c in claims for row in made.rows(c)]


@pytest.mark.parametrize(
    ("settings", "at"),
    [
        ({}, 112),
        ({"tier": Tier.SMOKE}, 112),
        ({"tier": Tier.FULL}, 112),
        ({"replicates": 70}, 80),
        ({"replicates": 300}, 112),
    ],
    ids=str,
)
def test_a_model_based_claim_is_judged_once_and_after_its_own_budget(settings: dict, at: int) -> None:
    """More replicates would resolve what the size model leaves out; other claims on the run go on."""
    assert replicates_fixed(LIMIT) == 112 and replicates_fixed(HARD) is None
    limit, exponent, *others = rows(TOGETHER, **settings)
    for row in (limit, exponent):
        (point,) = row.points
        assert row.model_based and [look.replicates for look in point.looks] == [point.replicates] == [at]
        assert repr(row.points) == repr(rows((CLAIM_OF[row.claim],), **settings)[0].points)
    assert others == [row for c in TOGETHER[2:] for row in rows((c,), **settings)]
    hard = others[-1].points[0]
    assert (hard.replicates > 112) == (settings in ({"tier": Tier.FULL}, {"replicates": 300}))
    default = rows((LIMIT,))[0].points
    assert (limit.points == default) == (at == 112)


CLAIM_OF = {c.id: c for c in TOGETHER}


def test_a_model_based_claim_by_itself_is_judged_on_no_more_than_its_budget() -> None:
    (found,) = judge_claim(LIMIT, Settings(seed=5), SerialExecutor(), replicates=256)
    assert found.replicates == 112 and [look.replicates for look in found.looks] == [112]


def test_two_workers_that_finish_in_any_order_give_the_same_bits_of_vector_scores() -> None:
    with ThreadPoolExecutor(2) as pool:
        made = [
            Session(TOGETHER, Settings(seed=5, workers=w), e) for w, e in ((1, SerialExecutor()), (2, pool))
        ]
        found = [[dataclasses.replace(r, seconds=0.0) for c in TOGETHER for r in m.rows(c)] for m in made]
    assert repr(found[0]) == repr(found[1])  # NaN where there is no interval yet
    assert [r.sha256 for r in made[0].records()] == [r.sha256 for r in made[1].records()]
    assert [len(row.points) for row in found[0]] == [1, 1, 5, 1]
    assert [p.parameters["sizes"] for p in found[0][2].points] == list(SIZES.sizes)


def test_a_wrong_width_breaks_the_claim_that_reads_it_and_no_other() -> None:
    bad = dataclasses.replace(COMPONENT, id="paper/bad", score="mean")
    broken, fine = rows((bad, LIMIT))
    assert broken.verdict == "broken" and "score 'mean' must have one component for each of 5" in broken.error
    assert fine.verdict != "broken"


# --- in words


def steady(block: Block, point: Point) -> dict[str, np.ndarray]:
    return {"y": np.array([point.scale * rng.uniform(0.5, 1.0) for rng in block.streams])}


STEADY = Experiment(id="paper/steady", replicate="one y", simulate=steady, points=(POINT,), budget=2048)


@pytest.mark.parametrize(
    ("kind", "predict", "rivals", "sentence"),
    [
        (
            Kind.NEVER_ABOVE,
            6.0,
            {"r": 5.0},
            " It holds, loose by a factor of 2.",
        ),
        (
            Kind.NEVER_BELOW,
            0.75,
            {"r": 1.0},
            " It holds, loose by a factor of 2.",
        ),
        (Kind.NEVER_ABOVE, 6.0, {"r": 2.0}, " It holds, loose by a factor of 2."),
        (Kind.AT_MOST, 9.0, {"r": 8.0}, " It holds, loose by a factor of 4.1."),
        (
            Kind.AT_LEAST,
            0.75,
            {"r": 0.5},
            " It holds, loose by a factor of 2.9.",
        ),
        (Kind.AT_MOST, 9.0, {"r": 1.0}, " It holds, loose by a factor of 4.1."),
        (Kind.AT_MOST, 2.26, {"r": 1.0}, ""),
    ],
)
def test_a_bound_that_holds_says_by_which_factor(
    kind: Kind, predict: float, rivals: dict, sentence: str
) -> None:
    tested = claim(
        kind,
        experiment=STEADY,
        predict=lambda p: predict,
        rivals={k: lambda p, v=v: v for k, v in rivals.items()},
        relative=False,
        margin=0.05,
    )
    (row,) = rows((tested,))
    assert row.verdict == "agrees" and row.power.endswith(sentence or ".")
    assert ("loose" in row.power) == bool(sentence)


def test_a_bound_on_every_replicate_says_what_was_and_was_not_seen() -> None:
    tested = claim(Kind.NEVER_ABOVE, experiment=STEADY, predict=lambda p: 6.0, relative=False, margin=0.05)
    (row,) = rows((tested,))
    rarest = 100 * math.log(1 / ALPHA) / row.points[0].replicates
    assert row.power.startswith(f"No violation in any replicate: they are rarer than {rarest:.2g} %.")
    (few,) = rows((tested,), replicates=32)
    assert few.verdict == "undecided" and few.power == "No interval yet: this run excludes nothing."
    (row,) = rows((dataclasses.replace(tested, predict=lambda p: 2.9),))
    first = row.points[0].violations[0]
    assert row.power.startswith(f"Broken: by {first.by:.2g} in replicate {first.replicate}, and in ")


def test_a_distribution_says_which_differences_are_excluded() -> None:
    uniform = claim(
        Kind.DISTRIBUTION,
        experiment=STEADY,
        predict=lambda p: lambda t: np.clip((t - 1.5) / 1.5, 0.0, 1.0),
        relative=False,
        margin=0.15,
    )
    (row,) = rows((uniform,))
    point = row.points[0]
    caught = point.margin + 2 * (point.upper - point.measured)
    assert row.verdict == "agrees" and row.power == (
        f"Distribution functions that differ by more than {point.upper:.2g} somewhere are excluded by this run; "
        f"a difference of {caught:.2g} would have been caught."
    )


def test_every_kind_has_its_measure() -> None:
    assert set(estimands._MEASURES) == set(Kind)
    assert all(hasattr(estimands, name) for name in estimands.__all__)


@pytest.mark.parametrize(("power", "verdict"), [(-1.0, Verdict.AGREES), (-2.0, Verdict.UNDECIDED)])
def test_a_limit_needs_the_order_of_its_correction(power: float, verdict: Verdict) -> None:
    at = Point(sizes=tuple(M))
    order = claim(Kind.EXPONENT, at, terms=(1,), offset=lambda _: 3.0, predict=lambda _: power, margin=0.3)
    tested = claim(Kind.LIMIT, at, terms=(1, 2), predict=lambda _: 3.0, margin=0.1, order=order)
    found = judged(tested, noisy(3 + 5 / M - 7 / M**2, 0.01))

    assert found.verdict is verdict
    expected = "" if verdict is Verdict.AGREES else "order of its correction not confirmed"
    assert found.interval.obstacle == expected
