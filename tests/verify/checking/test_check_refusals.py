"""What `check` cannot use it refuses with one clear sentence."""

import math
import sys
import types
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import stats

from simulate.monte_carlo import SerialExecutor
from tests.verify.checking.simulators import constant, harmonic, largest, logarithm, normal
from verify import checking
from verify.checking import check

POINT = [{"n": 10}]


def one(rng: np.random.Generator) -> float:
    return rng.normal(1.0, 0.1)


def vector(rng: np.random.Generator) -> np.ndarray:
    return rng.normal(1.0, 0.1, 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"margin": 0}, r"margin must be finite and positive, got 0$"),
        ({"margin": -0.1}, r"margin must be finite and positive, got -0\.1$"),
        ({"margin": math.inf}, r"margin must be finite and positive, got inf$"),
        ({"margin": math.nan}, r"margin must be finite and positive, got nan$"),
        ({"margin": "0.1"}, r"margin must be finite and positive, got '0\.1'$"),
        (
            {"margin": 1.5, "kind": "distribution"},
            r"margin must be greater than 0 and less than 1, got 1\.5$",
        ),
        ({"error": 0}, r"error must be greater than 0 and less than 1, got 0$"),
        ({"error": 1.0}, r"error must be greater than 0 and less than 1, got 1\.0$"),
        ({"budget": 95}, r"budget must be an integer of at least 96, got 95$"),
        ({"budget": 1e4}, r"budget must be an integer of at least 96, got 10000\.0$"),
        ({"workers": 0}, r"workers must be an integer of at least 1, got 0$"),
        ({"seed": -1}, r"seed must be an integer of at least 0, got -1$"),
        ({"seed": None}, r"seed must be an integer of at least 0, got None$"),
        (
            {"kind": "maen"},
            r"^kind must be one of mean, probability, bound, .*, got 'maen'; did you mean mean\?$",
        ),
        ({"kind": None}, r"^kind must be one of mean, .*, got None$"),
        ({"points": []}, r"^points must not be empty; leave them out for a formula without parameters$"),
    ],
)
def test_a_value_out_of_range_is_refused(options: dict[str, Any], message: str) -> None:
    points = options.pop("points", [{}])
    with pytest.raises(ValueError, match=message):
        check(lambda: 1.0, one, points, **{"margin": 0.1, **options})


@pytest.mark.parametrize(
    ("predict", "simulate", "points", "options", "message"),
    [
        (
            harmonic,
            largest,
            [{"N": 10}],
            {},
            r"simulate\(rng, n\) cannot be called as simulate\(rng, N=10\): .*'n'; did you mean n\?$",
        ),
        (lambda m: m, largest, POINT, {}, r"predict\(m\) cannot be called as predict\(n=10\): missing .*'m'"),
        (lambda width: 1.0, normal, [{"widht": 10}], {}, r"did you mean|cannot be called as simulate"),
        (lambda width: 1.0, lambda rng, **_: 1.0, [{"widht": 1}], {}, r"'width'; did you mean width\?$"),
        (
            harmonic,
            largest,
            POINT,
            {"vectorised": True},
            r"cannot be called as simulate\(rng, size, n=10\): ",
        ),
        (
            harmonic,
            largest,
            POINT,
            {"rivals": {"r": lambda m: m}},
            r"rival 'r'\(m\) cannot be called as rival 'r'\(n=",
        ),
        (
            harmonic,
            largest,
            POINT,
            {"rivals": {"r": 2.0}},
            r"rival 'r' must be a function of the parameters.* 2\.0$",
        ),
        (
            harmonic,
            largest,
            POINT,
            {"rivals": [logarithm]},
            r"rivals must be formulas by name, .*, got \[<function",
        ),
        (3.0, one, [{}], {}, r"predict must be a function of the parameters of a point, got 3\.0$"),
        (harmonic, 3.0, POINT, {}, r"simulate must be a function of the parameters of a point, got 3\.0$"),
        (harmonic, largest, 10, {}, r"points must be mappings of parameters, such as .*, got 10$"),
        (harmonic, largest, "n", {}, r"points must be mappings of parameters, such as .*, got 'n'$"),
        (harmonic, largest, [10, 30], {}, r"points must be mappings of parameters, such as .*, got 10$"),
        (
            harmonic,
            largest,
            [{1: 10}],
            {},
            r"points must be mappings from names of parameters, got the name 1$",
        ),
        (harmonic, largest, st.integers(1, 3), {}, r"points must be strategies that draw mappings.*, got 1$"),
    ],
)
def test_a_wrong_call_is_refused(
    predict: Any, simulate: Any, points: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        check(predict, simulate, points, margin=0.1, **options)


def test_what_cannot_name_a_stream_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^points must hold numbers, .*; got <object .*Pass a name instead"):
        check(lambda law: 1.0, lambda rng, law: 1.0, [{"law": object()}], margin=0.1)


@pytest.mark.parametrize("value", [[0.3, 0.7], (0.3, 0.7), np.array([0.3, 0.7]), {"a": 0.5}, None, "relu"])
def test_what_can_name_one_is_handed_on_as_it_is(value: Any) -> None:
    seen = []

    def predict(law: Any) -> float:
        seen.append(law)
        return 1.0

    assert check(predict, lambda rng, law: one(rng), [{"law": value}], margin=0.1).agrees
    assert type(seen[0]) is type(value)
    np.testing.assert_equal(seen[0], value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (math.nan, r"predict must be finite, got nan at n = 10$"),
        (math.inf, r"predict must be finite, got inf at n = 10$"),
        (None, r"predict must return real numbers, got None at n = 10$"),
        (1 + 2j, r"predict must return real numbers, got \(1\+2j\) at n = 10$"),
        ("three", r"predict must return real numbers, got three at n = 10$"),
        (
            [[1.0], [1.0, 2.0]],
            r"predict must return real numbers, got \[\[1\.0\], \[1\.0, 2\.0\]\] at n = 10$",
        ),
        ([], r"predict must return real numbers, got \[\] at n = 10$"),
        (
            0.0,
            r"predict returns 0 at n = 10, where a relative margin allows no difference: give relative=False",
        ),
        ([1.0, 0.0], r"predict returns 0 at n = 10, where a relative margin allows no difference"),
        ([1.0, 1.0], r"predict returns shape \(2,\), but simulate returns shape \(\) at n = 10$"),
    ],
)
def test_a_prediction_that_cannot_be_judged_is_refused(value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check(lambda n: value, largest, POINT, margin=0.1)


def test_a_prediction_of_zero_has_an_absolute_margin() -> None:
    assert check(lambda: 0.0, lambda rng: rng.normal(), margin=0.3, relative=False).agrees


def at_fifth(bad: Any) -> Any:
    """A simulation that goes wrong at replicate 5."""
    made = iter(range(10_000))

    def simulate(rng: np.random.Generator, n: int) -> Any:
        return (bad(rng) if callable(bad) else bad) if next(made) == 5 else rng.normal(1.0, 0.1)

    return simulate


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (math.nan, r"simulate must return finite numbers, got not a number at n = 10, replicate 5$"),
        (-math.inf, r"simulate must return finite numbers, got .*∞ at n = 10, replicate 5$"),
        ([1.0, 2.0], r"replicates of one shape, got \(\) and then \(2,\) at n = 10, replicate 5$"),
        (None, r"simulate must return real numbers, got None at n = 10, replicate 5$"),
    ],
)
def test_a_replicate_that_cannot_be_judged_is_refused(bad: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check(lambda n: 1.0, at_fifth(bad), POINT, margin=0.1)


def test_a_shape_that_changes_between_looks_is_refused() -> None:
    made = iter(range(10_000))

    def simulate(rng: np.random.Generator) -> np.ndarray:
        return rng.normal(size=2 if next(made) < 96 else 3)

    with pytest.raises(ValueError, match=r"of one shape, got \(2,\) and then \(3,\), replicate 96$"):
        check(lambda: 0.0, simulate, margin=0.1, relative=False)


def test_an_exception_keeps_its_cause_and_says_where() -> None:
    def fails(*_: Any, **__: Any) -> float:
        raise ZeroDivisionError("no such width")

    told = r"failed at n = 10, replicate 5: ZeroDivisionError: no such width$"
    with pytest.raises(RuntimeError, match=rf"^simulate {told}") as caught:
        check(lambda n: 1.0, at_fifth(fails), POINT, margin=0.1)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    with pytest.raises(RuntimeError, match=r"^simulate failed, replicates 0 to 15: ZeroDivisionError"):
        check(lambda: 1.0, fails, margin=0.1, vectorised=True)
    with pytest.raises(
        RuntimeError, match=r"^predict failed at n = 10: ZeroDivisionError: no such width$"
    ) as caught:
        check(fails, largest, POINT, margin=0.1)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    with pytest.raises(RuntimeError, match=r"^rival 'r' failed at n = 10: ZeroDivisionError"):
        check(harmonic, largest, POINT, margin=0.1, rivals={"r": fails})


@pytest.mark.parametrize("vectorised", [False, True])
def test_a_constant_simulation_is_refused(vectorised: bool) -> None:
    def simulate(_: Any, size: int = 0) -> Any:
        return np.full(size, 2.5) if size else 2.5

    with pytest.raises(
        ValueError, match=r"^simulate must vary, got 2\.5 in all of 96 replicates: either it does not"
    ):
        check(lambda: 2.5, simulate, margin=0.1, vectorised=vectorised)


@pytest.mark.parametrize("kind", ["mean", "probability"])
def test_a_generator_of_its_own_is_refused(kind: str) -> None:
    def simulate(_: Any, size: int, n: int) -> np.ndarray:
        numbers = np.random.default_rng(n).normal(1.0, 1.0, size)
        return numbers > 1 if kind == "probability" else numbers

    with pytest.raises(
        ValueError, match=r"^simulate must draw from rng, got the same 16 replicates for each rng at n = 10: "
    ):
        check(
            lambda n: 1.0 if kind == "mean" else 0.5, simulate, POINT, margin=0.1, kind=kind, vectorised=True
        )


@pytest.mark.parametrize("value", [[0.0, 0.0], np.zeros(2)])
def test_what_a_call_changes_in_a_parameter_does_not_reach_the_next(value: Any) -> None:
    def simulate(rng: np.random.Generator, state: Any) -> float:
        for i in range(2):
            state[i] += rng.normal(0.5, 0.1)
        return state[0] + state[1]

    found = check(lambda state: 1.0, simulate, [{"state": value}], margin=0.1)
    assert found.agrees


def test_a_constant_component_is_undecided_and_no_error() -> None:
    found = check(lambda: [1.0, 1.0], lambda rng: [1.0, one(rng)], margin=0.1, budget=200)

    assert [str(point.verdict) for point in found.points] == ["undecided", "agrees"]
    assert found.points[0].reason == "zero variance"


def test_the_wrong_number_of_replicates_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"^simulate must return 16 replicates along the first axis .* \(3,\)$"
    ):
        check(lambda: 1.0, lambda rng, size: rng.normal(size=3), margin=0.1, vectorised=True)


def test_an_event_is_0_or_1() -> None:
    with pytest.raises(
        ValueError, match=r"^simulate must return 0 or 1 for a probability, got 0\.5, replicate 0$"
    ):
        check(lambda: 0.5, lambda rng: 0.5, margin=0.1, kind="probability")


@pytest.mark.parametrize(
    ("predict", "simulate", "kind", "points", "message"),
    [
        (lambda: 1.0, one, "distribution", [{}], r"predict must return a distribution function, got 1\.0$"),
        (lambda: lambda x: 2.0 + 0 * x, one, "distribution", [{}], r"of predict must return a number in \[0, 1\] for"),
        (lambda: lambda x: 0.5, one, "distribution", [{}], r"of predict must return a number in \[0, 1\] for each"),
        (lambda: lambda x: x, vector, "distribution", [{}], r"single numbers for a distribution, got shape \(3,\)$"),
        (lambda n: 1.0, largest, "exponent", POINT, r"one parameter that is a sequence of sizes, .*; got n = 10$"),
        (lambda s: 1.0, lambda rng, s: one(rng), "exponent", [{"s": (1, 2, 3, 4)}], r"sizes each twice the one before"),
        (lambda s: 1.0, lambda rng, s: one(rng), "exponent", [{"s": (1, 2, 4)}], r"at least 4 sizes for kind='expo"),
        (lambda s: [1.0], lambda rng, s: one(rng), "exponent", [{"s": (1, 2, 4, 8)}], r"one number, the exponent, got"),
        (lambda s: 1.0, lambda rng, s: one(rng), "exponent", [{"s": (1, 2, 4, 8)}], r"one value at each of 4 sizes, "),
    ],
)  # fmt: skip
def test_what_a_kind_cannot_judge_is_refused(
    predict: Any, simulate: Any, kind: str, points: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        check(predict, simulate, points, margin=0.1, kind=kind)


def test_a_distribution_function_of_numbers_only_is_refused() -> None:
    with pytest.raises(
        RuntimeError, match=r"^the distribution function of predict failed on an array: TypeError"
    ):
        check(lambda: lambda x: math.erf(x), one, margin=0.1, kind="distribution")


# --- rivals --------------------------------------------------------------------------------------------------


def test_a_rival_within_two_margins_everywhere_is_refused_before_anything_is_drawn() -> None:
    def simulate(rng: np.random.Generator, n: int) -> float:
        raise AssertionError("drawn")

    near = {"near": lambda n: 1.1 * harmonic(n)}
    with pytest.raises(ValueError, match=r"^points must have a point where rival 'near' is 2 margins away"):
        check(harmonic, simulate, [{"n": 10}, {"n": 30}], margin=0.06, rivals=near)
    assert check(
        harmonic, largest, [{"n": 10}, {"n": 30}], margin=0.2, rivals={"log": lambda n: n + 0.0}
    ).agrees


def test_a_rival_needs_one_distant_point_only() -> None:
    rivals = {"bent": lambda mean: mean if mean < 2 else 2 * mean}
    found = check(constant, normal, [{"mean": 1.0}, {"mean": 3.0}], margin=0.1, rivals=rivals)

    assert found.agrees and [p.rivals[0].rejected for p in found.points] == [False, True]
    assert found.rivals == {"bent": True}


@pytest.mark.parametrize(
    ("kind", "predict", "rival"),
    [
        ("bound", lambda: 2.0, lambda: 3.0),  # a weaker bound holds too
        ("lower bound on every replicate", lambda: -9.0, lambda: -99.0),
        ("distribution", lambda: stats.norm(), lambda: stats.norm()),
    ],
)
def test_a_rival_that_nothing_could_reject_is_refused(kind: str, predict: Any, rival: Any) -> None:
    with pytest.raises(ValueError, match=r"^points must have a point where rival 'other' is"):
        check(predict, one, margin=0.1, kind=kind, rivals={"other": rival})


def test_a_rival_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^rival 'r' must return shape \(3,\) as predict does, got \(2,\)$"):
        check(lambda: [1.0, 1.0, 1.0], vector, margin=0.1, rivals={"r": lambda: [2.0, 2.0]})


# --- workers -------------------------------------------------------------------------------------------------


def test_a_simulation_that_other_processes_cannot_load_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"^workers=2 got <function .*lambda.*, but other processes must be able to"
    ):
        check(lambda: 1.0, lambda rng: 1.0, margin=0.1, workers=2)


def test_so_is_one_that_was_typed_in(monkeypatch: pytest.MonkeyPatch) -> None:
    main = types.ModuleType("__main__")
    main.one = one
    monkeypatch.setitem(sys.modules, "__main__", main)
    monkeypatch.setattr(one, "__module__", "__main__")
    with pytest.raises(
        ValueError, match=r"^workers=2 got one, but other processes must .* or leave workers at 1$"
    ):
        check(lambda: 1.0, one, margin=0.1, workers=2)


def test_a_worker_that_dies_says_what_may_be_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    class Dying(SerialExecutor):
        def submit(self, *_: Any, **__: Any) -> Future[Any]:
            raise BrokenProcessPool

    monkeypatch.setattr(checking, "open_executor", lambda _: nullcontext(Dying()))
    with pytest.raises(RuntimeError, match=r"^a worker process crashed or could not load simulate: other"):
        check(harmonic, largest, POINT, margin=0.1, workers=2)
