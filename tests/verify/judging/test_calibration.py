"""The calibration: its fast intervals are the engine's, its miss rates are right, and a broken interval shows."""

import doctest
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose
from scipy import stats

from benchmarks.calibration import __main__ as tables, laws, misses, tails, verdicts
from tests.verify.judging.by_hand import most
from verify.judging.guards import REMEDIES, unseen_rate
from verify.judging.intervals import FEWEST, mean_interval, multiplier, proportion_interval
from verify.judging.judge import decide, looks
from verify.model import ALPHA, Verdict

LAST = 208
SEQUENCES = 10_000


def counted(law: str, rule: Any, alphas: tuple[float, ...] = (1e-2, 1e-3)) -> np.ndarray:
    rng = default_rng(17)
    return misses.misses(laws.LAWS[law], SEQUENCES, rng, rules=(rule,), alphas=alphas)[0, 0]


# --- the same intervals


each_alpha = pytest.mark.parametrize("alpha", [1e-2, ALPHA])


@pytest.mark.parametrize("law", laws.EVERY)
@pytest.mark.parametrize("n", [FEWEST, 1008])
@each_alpha
def test_many_intervals_at_once_are_those_of_mean_interval(law: str, n: int, alpha: float) -> None:
    x = laws.EVERY[law].draw(default_rng(3), (12, n))
    lower, upper = laws.EVERY[law].limits(laws.summaries(x), n, alpha)

    single = [mean_interval(row, alpha=alpha) for row in x]
    assert {one.obstacle for one in single} <= {"", *REMEDIES}
    assert_allclose(lower, [one.lower for one in single], rtol=1e-12, atol=1e-12)
    assert_allclose(upper, [one.upper for one in single], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n", [FEWEST, 368])
@each_alpha
def test_many_proportions_at_once_are_those_of_proportion_interval(n: int, alpha: float) -> None:
    hits = np.unique(np.linspace(0, n, 9).round())
    single = [proportion_interval(int(h), n, alpha=alpha) for h in hits]

    found = laws.proportion_limits(hits, n, alpha)
    assert_allclose(found, np.transpose([(one.lower, one.upper) for one in single]), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("last", [50, LAST, 8192])
def test_the_looks_of_the_suite_are_those_from_its_own_first_one(last: int) -> None:
    assert misses.looks_from(FEWEST, last) == looks(last)


# --- miss rates


@pytest.mark.parametrize("law", laws.PROMISED)
def test_the_interval_of_the_mean_keeps_its_promise(law: str) -> None:
    for missed, alpha in zip(counted(law, misses.taken(LAST)), (1e-2, 1e-3), strict=True):
        assert missed <= most(alpha)


def narrow(n: int, alpha: float) -> float:
    return 0.7 * multiplier(n, alpha)


@pytest.mark.parametrize(
    "planted",
    [
        {"multiplier": narrow, "widens": True},
        {"multiplier": lambda n, alpha: float(stats.t.isf(alpha / 2, n - 1))},
    ],
    ids=["seven tenths of it", "Student's t"],
)
def test_an_interval_too_narrow_is_caught(planted: dict[str, Any]) -> None:
    """Seven looks: Student's t is right at each of them, and too narrow only for all together."""
    rule = misses.Rule(looks=tuple(looks(2 * LAST)), **planted)
    assert (counted("normal", rule) > [most(1e-2), most(1e-3)]).all()


def test_an_interval_not_widened_for_skewness_is_caught() -> None:
    rule = replace(misses.taken(LAST), guards=False)
    assert counted("lognormal(1)", rule)[1] > most(1e-3)


def test_rare_events_are_not_seen_and_the_rate_at_which_they_are_is_what_a_card_says() -> None:
    """1 % of 96: below the rate that is named there. From the look on at which it is above, they are."""
    assert counted("rare events", misses.taken(LAST))[0] > most(1e-2)
    seen = laws.ADVERSARIAL["1 % at 20 sd, once they are seen"].first
    assert unseen_rate(FEWEST, ALPHA) > 0.01 > unseen_rate(seen, ALPHA)


SHORT = {"lognormal(1.25)": 2048, "Pareto 2.5": 2048, "Student t3, to 8192": 2048}


@pytest.mark.parametrize("law", [name for name in laws.ADVERSARIAL if "correlation 0.1" not in name])
def test_laws_made_to_break_the_promise_are_within_it_or_undecided(law: str) -> None:
    """Correlated replicates are seen for sure only once there are blocks enough: 640 replicates at 0.5."""
    tested = laws.ADVERSARIAL[law]
    if law == "intraclass correlation 0.5":
        tested = replace(tested, first=640)
    last = min(tested.last, SHORT.get(law, 2 * tested.first))
    found = misses.misses(
        tested,
        1000,
        default_rng(18),
        rules=(misses.taken(last, tested.first),),
        alphas=(1e-2, 1e-3),
    )[0, 0]
    assert (found <= [most(1e-2, 1000), most(1e-3, 1000)]).all()


def test_without_the_guards_correlated_replicates_break_it() -> None:
    rule = misses.Rule(widens=True, looks=tuple(n for n in looks(1280) if n >= 640))
    law, rng = laws.ADVERSARIAL["intraclass correlation 0.5"], default_rng(18)
    assert misses.misses(law, 1000, rng, rules=(rule,), alphas=(1e-3,))[0, 0, 0] > most(1e-3, 1000)


@pytest.mark.parametrize("p", [0.5, 0.05])
def test_the_chance_of_missing_a_probability_is_that_over_all_paths(p: float) -> None:
    """Two looks by brute force."""
    first, more, alpha = FEWEST, 32, 0.2

    def missed(hits: np.ndarray, n: int) -> np.ndarray:
        lower, upper = laws.proportion_limits(hits, n, alpha)
        return (p < lower) | (upper < p)

    h, g = np.arange(first + 1.0)[:, None], np.arange(more + 1.0)
    chance = stats.binom.pmf(h, first, p) * stats.binom.pmf(g, more, p)
    bad = missed(h, first) | missed(h + g, first + more)

    found = misses.event_miss_rate(p, alpha, [first, first + more])
    assert_allclose(found, chance[bad].sum(), rtol=1e-10)
    assert 0 < found <= alpha


@pytest.mark.parametrize("alpha", [1e-2, 1e-4, ALPHA])
def test_the_interval_of_a_probability_keeps_its_promise(alpha: float) -> None:
    assert misses.event_miss_rate(0.05, alpha, looks(LAST)) <= alpha


# --- importance sampling


@pytest.mark.parametrize("law", tails.TAILS)
def test_the_quadrature_of_a_tail_knows_its_moments(law: str) -> None:
    tail = tails.TAILS[law]
    nodes, weights = tail.grid
    scaled = nodes / tail.law.sd
    found = [weights.sum(), weights @ scaled, weights @ scaled**2, weights @ scaled**3]
    assert_allclose(found, [1.0, 0.0, 1.0, tail.skewness], rtol=1e-9, atol=1e-9)


def short(tail: Any, last: int) -> Any:
    return replace(tail, law=replace(tail.law, last=last))


@pytest.mark.parametrize("law", ["normal", "exponential"])
def test_a_weighted_miss_rate_is_the_one_that_is_counted(law: str) -> None:
    tail = short(tails.TAILS[law], 160)
    rate, error, largest = tails.rare_miss_rate(tail, 0.3, 1000, seed=5)
    count = counted(law, misses.taken(160), (0.3,))[0]

    low, high = misses.clopper_pearson(int(count), SEQUENCES, 0.999)
    assert low - 4 * error < rate < high + 4 * error
    assert error < 0.1 * rate and largest < 0.1
    assert tails.rare_miss_rate(tail, 0.3, 1000, seed=5, first=160)[0] < 0.7 * rate


def test_the_first_look_comes_late_enough_for_a_long_tail() -> None:
    """With a first look at 64 the interval would break its promise at the error of the suite."""
    tail = short(tails.TAILS["lognormal(0.7)"], 128)
    rate, error, _ = tails.rare_miss_rate(tail, ALPHA, 1000, seed=5)
    assert rate + 4 * error < 0.5 * ALPHA
    assert tails.rare_miss_rate(tail, ALPHA, 1000, seed=5, first=64)[0] > ALPHA


# --- reports


def judged_reports() -> tuple[Any, np.ndarray, np.ndarray]:
    """Claims, verdicts, and wrong ones at each error."""
    claims, found = verdicts.judge_reports(8, 512, default_rng(8))
    return claims, found.verdict, verdicts.wrong(found.verdict, claims.theta, claims.delta).sum(axis=1)


def test_synthetic_reports_hold_few_wrong_verdicts() -> None:
    """At 1e-3 for each interval, 800 claims hold more than 5 wrong ones less than once in a thousand times."""
    claims, verdict, bad = judged_reports()
    assert bad[0] <= most(verdicts.REPORT_ALPHAS[0], len(claims.law))
    assert (verdict[:, claims.offset == 0.0] == verdicts.AGREES).mean() > 0.3
    assert (verdict[:, claims.offset == 4.0] == verdicts.DISAGREES).mean() > 0.5
    assert (verdict[:, claims.offset == 1.0] == 0).all()


def test_synthetic_reports_show_an_interval_too_narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = laws.guarded
    monkeypatch.setattr(laws, "guarded", lambda *arguments: 0.3 * honest(*arguments))
    claims, _, bad = judged_reports()
    assert bad[0] > most(verdicts.REPORT_ALPHAS[0], len(claims.law))


def stepwise(law: Any, theta: float, delta: float, alpha: float, budget: int) -> tuple[Verdict, int]:
    rng, x = default_rng(9), np.zeros(0)
    for n in looks(budget):
        x = np.append(x, law.draw(rng, (1, n - len(x)))[0])
        verdict = decide(mean_interval(x, alpha=alpha), theta - delta, theta + delta)
        if verdict is not Verdict.UNDECIDED:
            return verdict, n
    return Verdict.UNDECIDED, budget


@pytest.mark.parametrize("theta", [0.05, 1.2])
def test_a_claim_is_judged_at_the_first_look_that_decides(theta: float) -> None:
    """Against the engine's own functions, look by look on the same replicates."""
    law, delta, alphas = laws.LAWS["exponential"], 0.6, (1e-2, ALPHA)
    rng = default_rng(9)
    found = verdicts.judged(law, np.full(1, theta), np.full(1, delta), alphas=alphas, budget=1024, rng=rng)

    codes = {Verdict.AGREES: verdicts.AGREES, Verdict.DISAGREES: verdicts.DISAGREES}
    single = [stepwise(law, theta, delta, alpha, 1024) for alpha in alphas]
    assert found.verdict[:, 0].tolist() == [codes[verdict] for verdict, _ in single]
    assert found.replicates[:, 0].tolist() == [n for _, n in single]


# --- the script


@pytest.mark.parametrize(
    "table",
    ["miss", "tails", "events", "reports", "replicates"],
)
def test_tables_are_printed(
    table: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small = {
        "LAST": 128, "CAP": 256,
        "EVERY": {name: laws.EVERY[name] for name in ("normal", *SHORT)},
        "TAILS": {"normal": short(tails.TAILS["normal"], 128)},
    }  # fmt: skip
    for name, value in small.items():
        monkeypatch.setattr(tables, name, value)
    sizes = "--sequences=64 --reports=2 --budget=256 --claims=2 --processes=1"

    assert tables.main([table, *sizes.split()]) == 0

    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert all(lines[i + 4].startswith("| ") for i, line in enumerate(lines) if line.startswith("### "))
    assert table == "events" or re.search(r": (\d+)/\1 $", printed.err, re.MULTILINE)


def test_the_examples_hold() -> None:
    found = [doctest.testmod(module) for module in (laws, misses, tails, verdicts)]
    assert sum(each.attempted for each in found) >= 8 and not any(each.failed for each in found)


def test_shares_come_with_exact_intervals() -> None:
    for hits, n in [(0, 30), (7, 30), (30, 30)]:
        exact = stats.binomtest(hits, n).proportion_ci(0.99, method="exact")
        assert_allclose(misses.clopper_pearson(hits, n, 0.99), [exact.low, exact.high], rtol=1e-9)
