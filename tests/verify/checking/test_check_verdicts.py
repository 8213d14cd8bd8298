"""Verdicts of `check`: agrees if a formula is right, disagrees if it is wrong, for every kind."""

from concurrent.futures import Executor
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import strategies as st
from scipy import stats

from simulate.monte_carlo import BLOCK, Point, stream
from tests.interpreters import fresh
from tests.verify.checking.simulators import constant, harmonic, largest, logarithm, many_largest, normal
from verify import checking
from verify.checking import FIXED, check
from verify.judging import judge as judging
from verify.model import Verdict

POINTS = [{"n": 10}, {"n": 30}]


def test_a_right_formula_agrees_and_its_rival_is_rejected() -> None:
    found = check(harmonic, many_largest, POINTS, margin=0.05, rivals={"log n": logarithm}, vectorised=True)

    assert found.agrees and found.verdict is Verdict.AGREES
    assert [point.point for point in found.points] == POINTS
    assert found.rivals == {"log n": True}
    assert found.draws == sum(point.replicates for point in found.points)


@pytest.mark.parametrize("factor", [1.5, 0.9])
def test_a_wrong_formula_disagrees_after_few_draws(factor: float) -> None:
    found = check(lambda n: factor * harmonic(n), many_largest, POINTS, margin=0.02, vectorised=True)

    assert found.verdict is Verdict.DISAGREES and not found.agrees
    assert found.draws < 8000


def test_undecided_says_how_many_replicates_it_would_take() -> None:
    found = check(harmonic, largest, POINTS, margin=0.02, budget=1000)
    needed = found.points[0].needed

    assert found.verdict is Verdict.UNDECIDED and needed > 1000
    assert f"it would take about {needed:,.0f} at the present estimate" in repr(found)
    more = check(harmonic, many_largest, POINTS[:1], margin=0.02, budget=int(3 * needed), vectorised=True)
    assert more.agrees


def test_heavy_tails_come_out_undecided_with_the_reason() -> None:
    found = check(
        lambda: 1.0, lambda rng, size: rng.standard_cauchy(size), margin=0.1, vectorised=True, budget=4000
    )

    assert found.verdict is Verdict.UNDECIDED
    assert "outside the calibrated laws" in repr(found)


# --- arrays --------------------------------------------------------------------------------------------------


def test_every_component_is_judged() -> None:
    found = check(lambda mean, sd: np.array(mean) * [1, 1, 1.5], normal, [{"mean": [1.0, 2.0, 3.0], "sd": 0.1}],
                  margin=0.1, vectorised=True)  # fmt: skip

    assert [(point.component, str(point.verdict)) for point in found.points] == [
        ((0,), "agrees"), ((1,), "agrees"), ((2,), "disagrees"),
    ]  # fmt: skip


def test_a_component_that_never_varies_takes_no_more_draws_than_the_others() -> None:
    found = check(lambda: 1.0, lambda rng: [rng.normal(1.0, 0.1), 1.0], margin=0.1)

    assert [str(point.verdict) for point in found.points] == ["agrees", "undecided"]
    assert found.points[1].reason == "zero variance" and found.draws == found.points[0].replicates == 96


@pytest.mark.parametrize("vectorised", [False, True])
def test_tensors_are_as_good_as_arrays(vectorised: bool) -> None:
    def simulate(*words: Any) -> torch.Tensor:
        return torch.as_tensor(normal(*words, mean=[1.0, 1.0])).bfloat16().requires_grad_()

    assert check(lambda: torch.ones(2).bfloat16(), simulate, margin=0.05, vectorised=vectorised).agrees


def test_components_and_points_share_the_error() -> None:
    found = check(constant, normal, [{"mean": [1.0, 2.0]}, {"mean": 3.0}], margin=0.1, error=1e-2)

    assert [point.error for point in found.points] == [1e-2 / 4, 1e-2 / 4, 1e-2 / 2]


# --- streams -------------------------------------------------------------------------------------------------


def test_a_replicate_depends_on_seed_point_and_number_alone() -> None:
    seen = {}

    def simulate(rng: np.random.Generator, n: int) -> float:
        value = rng.exponential(size=n).max()
        seen.setdefault(n, []).append(value)
        return value

    check(harmonic, simulate, POINTS, margin=0.3)
    first = {n: values[:96] for n, values in seen.items()}
    seen.clear()
    check(lambda n: 2.0 * n, simulate, POINTS[::-1], margin=0.1, budget=128, error=1e-6)
    assert {n: values[:96] for n, values in seen.items()} == first
    assert first[10][7] == largest(stream(0, "check", Point(point='{"n": 10}'), 7), 10)
    seen.clear()
    check(harmonic, simulate, POINTS, margin=0.3, seed=1)
    assert seen[10][:96] != first[10]


def test_a_block_is_one_call() -> None:
    sizes = []

    def simulate(rng: np.random.Generator, size: int) -> np.ndarray:
        sizes.append(size)
        return rng.normal(1.0, 0.1, size)

    found = check(lambda: 1.0, simulate, margin=0.1, vectorised=True)
    assert set(sizes) == {BLOCK} and len(sizes) == found.draws // BLOCK


@pytest.mark.slow
def test_workers_change_nothing(two_workers: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = partial(check, harmonic, largest, POINTS[:1], margin=0.2, seed=3)
    alone = asked(workers=1).to_dict()
    monkeypatch.setattr(checking, "open_executor", lambda _: nullcontext(two_workers))
    assert alone == asked(workers=2).to_dict()


def test_the_suite_and_check_share_one_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever decides the claims of the suite decides here."""
    monkeypatch.setattr(judging, "decide", lambda *_: Verdict.DISAGREES)

    assert check(constant, normal, margin=0.5).verdict is Verdict.DISAGREES


# --- kinds ---------------------------------------------------------------------------------------------------

SIZES = [{"sizes": (40, 80, 160, 320, 640)}]


def growing(rng: np.random.Generator, sizes: tuple[int, ...]) -> np.ndarray:
    m = np.array(sizes, dtype=float)
    return m**1.5 * (1 + 1 / m) * (1 + 0.01 * rng.standard_normal(len(m)))


CASES = {
    "probability": (lambda: 0.3, lambda: 0.5, lambda rng: rng.random() < 0.3, [{}], 0.2),
    "upper bound": (lambda: 1.5, lambda: 0.5, lambda rng: rng.exponential(), [{}], 0.1),
    "lower bound": (lambda: 0.5, lambda: 1.5, lambda rng: rng.exponential(), [{}], 0.1),
    "upper bound on every replicate": (lambda: 1.0, lambda: 0.9, lambda rng: rng.random(), [{}], 0.05),
    "lower bound on every replicate": (lambda: 0.0, lambda: 0.1, lambda rng: rng.random(), [{}], 0.05),
    "distribution": (lambda: stats.expon(), lambda: stats.norm().cdf, lambda rng: rng.exponential(), [{}], 0.1),
    "exponent": (lambda sizes: 1.5, lambda sizes: 1.0, growing, SIZES, 0.05),
}  # fmt: skip


@pytest.mark.parametrize("kind", CASES)
def test_every_kind_tells_right_from_wrong(kind: str) -> None:
    right, wrong, simulate, points, margin = CASES[kind]

    found = check(right, simulate, points, kind=kind, margin=margin, rivals={"other": wrong})
    assert found.agrees and found.rivals == {"other": True}
    if kind == "exponent":  # is judged once, and says on what it rests
        assert found.draws == FIXED and "if its correction falls as 1/size" in repr(found)
    assert check(wrong, simulate, points, kind=kind, margin=margin).verdict is Verdict.DISAGREES


# --- the promise ---------------------------------------------------------------------------------------------


def test_hardly_any_verdict_is_wrong() -> None:
    """At an error of a tenth, of 80 checks of a right formula and 80 of one that is 1.5 margins off."""
    right = [check(constant, normal, margin=0.02, error=0.1, vectorised=True, seed=s) for s in range(80)]
    wrong = [check(lambda: 1.03, normal, margin=0.02, error=0.1, vectorised=True, seed=s) for s in range(80)]
    assert sum(found.verdict is Verdict.DISAGREES for found in right) <= 8
    assert sum(found.verdict is Verdict.AGREES for found in wrong) <= 8


def test_torch_is_not_loaded_for_a_check() -> None:
    program = (
        "import sys\nfrom verify.checking import check\n"
        "assert check(lambda: 1.0, lambda rng: rng.normal(1.0, 0.1), margin=0.1).agrees\n"
        "assert not {'torch', 'matplotlib', 'hypothesis', 'pandas'} & set(sys.modules)\n"
    )
    fresh(program)


def test_a_corner_where_nothing_is_random_is_undecided_if_hypothesis_draws_it() -> None:
    found = check(constant, normal, {"sd": st.just(0.0), "mean": st.just(1.0)}, margin=0.1)

    assert found.verdict is Verdict.UNDECIDED and found.failing is None
    assert [list(point.point) for point in found.points] == [["sd", "mean"]]
    assert found.points[0].replicates == 96
