"""Claims that span sizes: limits and exponents."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.refusals import refusal
from tests.verify.judging.by_hand import (
    SIZES,
    M,
    covers,
    judged,
    most,
    noisy,
    recorded,
    spread_evenly,
    tight as claim,
)
from verify.judging.guards import REFUTED
from verify.judging.intervals import mean_interval
from verify.judging.sizes import exponent_replicates, extrapolated
from verify.model import ALPHA, Kind, Verdict

# --- limits and exponents as claims


@pytest.mark.parametrize(("theory", "verdict"), [(3.0, "agrees"), (3.1, "disagrees"), (3.028, "undecided")])
def test_a_limit_is_judged(theory: float, verdict: str) -> None:
    tested = claim(Kind.LIMIT, SIZES, terms=(1, 2), predict=lambda p: theory, rivals={"four": lambda p: 4.0})
    found = recorded(tested, noisy(3 + 5 / M + 2 / M**2, 0.02))
    assert found.verdict == verdict and found.size_model > 0
    assert [r.rejected for r in found.rivals] == [True]
    assert found.reason == ("too wide after its fixed number of replicates" if verdict == "undecided" else "")
    assert [p.x for p in found.profile] == list(M)
    assert all(p.lower < p.measured < p.upper and p.predicted == theory for p in found.profile)
    assert_allclose(found.statistical + found.numerical + found.size_model, found.upper - found.measured)


def test_exponent_replicates_are_those_of_the_means() -> None:
    y = noisy(M**1.5 * (1 + 1 / M), 0.1 * M**1.5, n=400)
    mean = y.mean(0)
    assert_allclose(exponent_replicates(y, M).mean(0), np.log2(mean[1:] / mean[:-1]), rtol=1e-12)
    assert_allclose(exponent_replicates(-y, M), exponent_replicates(y, M))


def test_exponent_replicates_vary_as_the_delta_method_says() -> None:
    rng, n = np.random.default_rng(5), 400
    factor = rng.gamma(20.0, 1 / 20, size=(n, 1)) * rng.gamma(9.0, 1 / 9, size=(n, 5))
    y = M**1.5 * factor
    jacobian = np.diff(np.eye(5), axis=0) / np.log(2) / y.mean(0)
    assert_allclose(np.cov(exponent_replicates(y, M).T), jacobian @ np.cov(y.T) @ jacobian.T, rtol=1e-9)


EXPONENTS = {
    "one term": (1.5, (1,), 0.0, M**1.5 * (1 + 0.3 / M)),
    "roots": (-0.7, (0.5, 1), 0.0, M**-0.7 * (1 + M**-0.5)),
    "order of a correction": (-2 / 3, (2 / 3, 4 / 3), 2.0, 2 - 1.2 * M ** (-2 / 3) - M ** (-4 / 3)),
}


@pytest.mark.parametrize("spread", [0.03, 0.3])
@pytest.mark.parametrize("name", EXPONENTS)
def test_an_exponent_keeps_its_promise(name: str, spread: float) -> None:
    exponent, terms, offset, curve = EXPONENTS[name]
    drawn = [noisy(curve, spread * (curve - offset), seed, 512) - offset for seed in range(40)]
    found = [extrapolated(exponent_replicates(y, M), M[:-1], terms, alpha=0.05) for y in drawn]
    assert sum(not covers(interval, exponent) for interval in found) <= most(0.05, 40)


@pytest.mark.parametrize(("theory", "verdict"), [(1.5, "agrees"), (1.0, "disagrees"), (2.0, "disagrees")])
def test_an_exponent_is_judged(theory: float, verdict: str) -> None:
    tested = claim(Kind.EXPONENT, SIZES, terms=(1,), predict=lambda p: theory, margin=0.05)
    curve = M**1.5 * (1 + 0.5 / M)
    found = recorded(tested, noisy(curve, 0.02 * curve))
    assert found.verdict == verdict
    last = found.profile[-1]
    assert last.predicted == last.measured  # the line of this slope goes through the largest size
    assert_allclose(found.profile[0].predicted, last.measured / 16**theory)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_order_of_a_correction_is_that_of_the_distance_from_its_limit(sign: int) -> None:
    """The distance from a wrong limit does not fall as a power."""
    curve = sign * 1.2 * M ** (-2 / 3)
    y = 2.0 + noisy(curve, 0.01 * abs(curve))
    order = {"terms": (2 / 3,), "margin": 0.1, "predict": lambda p: -2 / 3, "offset": lambda p: 2.0}
    found = recorded(claim(Kind.EXPONENT, SIZES, **order), y)
    assert found.verdict == "agrees"
    assert_allclose([p.measured for p in found.profile], y.mean(0) - 2.0)
    for wrong in ({"predict": lambda p: -1.0}, {"offset": lambda p: 2.0 - sign * 0.05}):
        assert judged(claim(Kind.EXPONENT, SIZES, **{**order, **wrong}), y).verdict is not Verdict.AGREES


@pytest.mark.parametrize(
    ("curve", "spread", "offset", "obstacle"),
    [
        (1 / M, 0.2, None, "mean not resolved from 0"),
        (1 / M - 0.03, 0.001, None, "mean changes sign between sizes"),
        (2 + 1 / M - 0.03, 0.001, 2.0, "distance from the limit changes sign between sizes"),
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


@pytest.mark.parametrize(("factor", "refused"), [(1.9, True), (2.1, False)])
def test_a_mean_resolved_barely_is_too_little_for_its_logarithm(factor: float, refused: bool) -> None:
    """At twice its half-width from zero, and no nearer."""
    x = spread_evenly(0.0, 1.0)
    y = factor * mean_interval(x, alpha=ALPHA).half_width + np.stack(
        [np.roll(x, 200 * i) for i in range(5)], axis=1
    )
    found = judged(claim(Kind.EXPONENT, SIZES, terms=(1,)), y)
    assert ("not resolved" in found.interval.obstacle) is refused


@pytest.mark.parametrize("kind", [Kind.LIMIT, Kind.EXPONENT])
def test_sizes_and_components_must_match(kind: Kind) -> None:
    tested = claim(kind, SIZES, terms=(1, 2))
    with refusal("score 'y' must have one component for each of 5 sizes, got 4"):
        judged(tested, np.ones((64, 4)))
    with refusal(r"score 'y' must be one vector per replicate, got shape \(64,\)"):
        judged(tested, np.ones(64))


@pytest.mark.parametrize(
    ("power", "within", "obstacle"),
    [(-1.0, 0.3, ""), (-2.0, 0.3, REFUTED), (-1.0, 1e-3, "order of its correction not confirmed")],
)
def test_a_limit_needs_the_order_of_its_correction(power: float, within: float, obstacle: str) -> None:
    limit = {"predict": lambda _: 3.0, "margin": 0.1}
    order = claim(
        Kind.EXPONENT, SIZES, terms=(1,), offset=limit["predict"], predict=lambda _: power, margin=within
    )
    tested = claim(Kind.LIMIT, SIZES, terms=(1, 2), order=order, **limit)
    found = judged(tested, noisy(3 + 5 / M - 7 / M**2, 0.01))

    assert found.verdict is (Verdict.UNDECIDED if obstacle else Verdict.AGREES)
    assert found.interval.obstacle == obstacle
