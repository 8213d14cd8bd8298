"""Identities and properties in a session."""

import re
from concurrent.futures import Executor
from dataclasses import replace

import numpy as np
import pytest

from simulate.monte_carlo import Point
from tests.verify.running.engine_runs import EXACT, MEAN, SETTINGS, STATISTICAL, identity, run, timeless
from verify.claims import registry
from verify.judging.judge import PRINTED
from verify.running import identities
from verify.running.engine import Session
from verify.running.settings import Settings


def test_two_routes_agree_within_rounding(two_workers: Executor) -> None:
    (row,) = run(identity())
    assert row.verdict == "agrees" and [r.margins for p in row.points for r in p.rivals] == [0.5e10, 0.5e10]
    assert row.power.endswith("digits; a difference beyond 1e-10 is seen.") and row.sensitivity == 1e-10
    assert timeless([row]) == timeless(run(identity(), executor=two_workers))


def test_the_printed_route_is_a_row_of_its_own() -> None:
    corrected, printed = run(identity(printed="imaginary", finding="complex"))
    assert (corrected.verdict, corrected.reading) == ("agrees", "corrected")
    assert (printed.verdict, printed.reading, printed.surprise) == ("disagrees", PRINTED, False)


@pytest.mark.parametrize(
    ("theory", "rivals", "verdict", "error"),
    [
        ("complex", ("twice",), "agrees", ""),
        ("imaginary", ("twice",), "disagrees", ""),
        ("infinite", ("twice",), "disagrees", ""),
        ("pair", ("twice",), "broken", r"routes must have one shape, got \(\) and \(2,\)"),
        ("nonsense", ("twice",), "broken", "KeyError: 'nonsense'"),
        (
            "eigenvalues",
            (),
            "broken",
            "an identity needs at least three routes: measured, theory and a rival",
        ),
        ("eigenvalues", ("close",), "broken", "rival 'close' must differ by two tolerances at one point"),
    ],
)
def test_routes_are_compared_as_the_numbers_they_are(theory, rivals, verdict, error) -> None:
    (row,) = run(identity(theory, rivals))
    assert row.verdict == verdict and re.search(error, row.error)


def test_routes_of_which_one_entry_is_no_number_differ_by_infinity() -> None:
    gap = np.array([1.0, np.nan])
    assert identities._difference(gap, np.ones(2)) == identities._difference(np.ones(2), gap) == np.inf


def signs(_: np.random.Generator, point: Point) -> dict[str, np.ndarray]:
    """Signs of numbers on both sides of a threshold, then of one that is off."""
    x = np.linspace(-1.0, 1.0, point.dim)
    return {"above": np.sign(x), "half": np.sign(x / 2), "off": np.sign(x - 0.5), "as read": np.sign(x + 0.5)}


def test_signs_that_agree_say_which_error_they_see() -> None:
    corrected, printed = run(identity(printed="as read", finding="off", routes=signs))
    seen = "a count that is off by one is seen."
    assert corrected.power == f"The two routes give the same whole numbers; {seen}"
    assert printed.power == f"The two routes give unlike whole numbers; {seen}"
    assert corrected.sensitivity is None and printed.sensitivity is None


def test_properties_keep_to_the_settings() -> None:
    """`replicates` holds for them too, and the same seed gives the same examples."""
    (row,) = run(STATISTICAL)
    assert row.verdict == "agrees" and row.points[0].parameters == {"shape": 2.3}
    assert timeless([row]) == timeless(run(STATISTICAL))
    (few,) = run(STATISTICAL, settings=Settings(seed=7, replicates=40))
    assert {p.replicates for p in few.points} == {48} and few.verdict == "undecided"
    (other,) = run(STATISTICAL, settings=Settings(seed=8))
    assert [p.parameters for p in other.points[1:]] != [p.parameters for p in row.points[1:]]


def test_a_property_that_crashes_is_broken() -> None:
    def violation(rng: np.random.Generator, point: Point) -> float:
        raise ArithmeticError("planted crash")

    broken, row = run(replace(EXACT, violation=violation), MEAN)
    assert broken.verdict == "broken" and "planted crash" in broken.error and row.verdict == "agrees"


def test_a_registered_property_is_judged_by_a_worker_as_it_is_here(two_workers: Executor) -> None:
    (listed,) = registry.select(claim=["adam_limit/adaptive-edge"])
    there = Session([listed], SETTINGS, two_workers, registered=True)
    assert timeless(there.rows(listed)) == timeless(run(listed))


def test_a_new_session_evaluates_formulas_anew() -> None:
    """Code that they call may have been reloaded since."""
    off = [0.0]
    tested = replace(MEAN, id="paper/reloaded", predict=lambda p: MEAN.predict(p) + off[0], rivals={})
    assert run(tested)[0].verdict == "agrees"
    off[0] = 10.0
    assert run(tested)[0].verdict == "disagrees"
