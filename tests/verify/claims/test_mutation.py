"""What is a mutant of a formula, and which of them a claim of each kind tells apart."""

from typing import Any

import numpy as np
import pytest
import sympy
from numpy.testing import assert_allclose

from simulate.monte_carlo import Point
from tests.verify.claims.mutation import ClosedForm
from tests.verify.claims.slips import inseparable, is_formula, read_off, runs, second_route
from verify.model import Claim, Experiment, Kind


def toy(predict: Any, *points: Point, **changes: Any) -> Claim:
    plain = {
        "id": "paper/toy",
        "entries": ("A1",),
        "source": "a paper",
        "statement": "x",
        "experiment": Experiment(id="paper/toy", replicate="one x", simulate=never, points=points),
        "score": "x",
        "predict": predict,
        "margin": 0.03,
        "margin_reason": "a test",
    }
    return Claim(**{**plain, **changes})


def never(block: Any, point: Any) -> Any:
    raise AssertionError("nothing is simulated here")


def test_an_edit_that_changes_nothing_is_no_mutant() -> None:
    same_twice = ClosedForm(lambda a: (1 * a) ** 1)
    _, unseen = inseparable(toy(lambda p: p.a, Point(a=3.7)), same_twice)
    assert unseen == []


def test_an_edit_that_changes_nothing_at_the_run_points_is_unseen() -> None:
    once = toy(lambda p: p.a**2 + p.b, Point(a=3.7, b=0.01))
    _, unseen = inseparable(once, ClosedForm(lambda a, b: a**2 + b))
    assert unseen == [
        "without term b",
        "-1 times b",
        "2 times b",
        "1/2 times b",
        "square root of b",
        "square of b",
    ]


def test_a_mutant_without_a_value_is_told_apart() -> None:
    wide = toy(lambda p: (p.a - p.b) ** 0.5, Point(a=3.7, b=1.3), margin=0.5)
    _, unseen = inseparable(wide, ClosedForm(lambda a, b: sympy.sqrt(a - b)))
    assert "2 times a" in unseen
    assert "-1 times a" not in unseen


def test_a_vector_is_compared_component_by_component() -> None:
    point = Point(a=3.7, x=(1.0, 1.3))
    form = ClosedForm(lambda a, x: a * x)
    whole = toy(lambda p: p.a * p.x, point, along="x")
    assert_allclose(runs(whole, form).predicted, [3.7, 3.7 * 1.3])
    assert inseparable(whole, form)[1] == []
    assert "without factor x of a*x" in inseparable(toy(lambda p: p.a * p.x, Point(a=3.7, x=1.0)), form)[1]


def test_a_distribution_is_compared_along_its_argument() -> None:
    claim = toy(
        lambda p: lambda x: np.where(np.asarray(x) > 0, 1 - np.exp(-np.maximum(x, 0) / p.scale), 0.0),
        Point(scale=1.7),
        kind=Kind.DISTRIBUTION,
        relative=False,
    )
    form = ClosedForm(lambda x, scale: 1 - sympy.exp(-x / scale))
    assert_allclose(*second_route(claim, form), rtol=1e-12)
    assert inseparable(claim, form)[1] == []


@pytest.mark.parametrize(
    ("kind", "unseen"),
    [
        (Kind.AT_LEAST, ["without factor b of a*b", "square root of b in a*b", "inverse of b in a*b"]),
        (Kind.AT_MOST, ["square of b in a*b"]),
        (Kind.NEVER_BELOW, []),
        (Kind.NEVER_ABOVE, []),
    ],
)
def test_only_a_stronger_bound_can_be_told_apart(kind: Kind, unseen: list[str]) -> None:
    """A weaker one holds as well; of a bound on every replicate the run may break any that is stronger."""
    claim = toy(lambda p: p.a * p.b, Point(a=3.7, b=0.999), kind=kind, relative=False)
    assert inseparable(claim, ClosedForm(lambda a, b: a * b))[1] == unseen


def test_a_bound_without_a_factor_of_one_is_unseen_whatever_the_rounding() -> None:
    for nudge in (1 - 1e-15, 1 + 1e-15):
        claim = toy(lambda p, n=nudge: p.a * p.b * n, Point(a=3.7, b=1.0), kind=Kind.AT_MOST)
        assert "without factor b of a*b" in inseparable(claim, ClosedForm(lambda a, b: a * b))[1]


def test_plain_arithmetic_is_read_off() -> None:
    point = Point(a=3.7, b=2, law="gaussian", p=(0.3, 0.7))
    formula = read_off(lambda p: 2 * p.a ** p["b"], point)
    assert formula is not None and is_formula(formula)
    claim = toy(lambda p: 2 * p.a**p.b, point)
    assert_allclose(*second_route(claim, formula))
    number, score = read_off(lambda _: 0.5, point), read_off(lambda p: p.a, point)
    assert number is not None and score is not None and not is_formula(number) and not is_formula(score)


@pytest.mark.parametrize(
    "predict",
    [
        lambda p: np.sqrt(p.a),
        lambda p: p.a if p.a > p.b else p.b,
        lambda p: sum(p.p),
        lambda p: {"gaussian": 1.0}[p.law],
        lambda p: lambda x: x * p.a,
    ],
)
def test_what_is_no_plain_arithmetic_is_not_read_off(predict: Any) -> None:
    """Nor what reads more than numbers, which would pass for a bare number."""
    assert read_off(predict, Point(a=3.7, b=2, law="gaussian", p=(0.3, 0.7))) is None
