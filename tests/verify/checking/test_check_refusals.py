"""`check` refuses bad input with one clear sentence."""

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


def sized(rng: np.random.Generator, s: Any) -> float:
    return one(rng)


def fails(*_: Any, **__: Any) -> float:
    raise ZeroDivisionError("no such width")


def refused(message: str, *call: Any, raises: type[Exception] = ValueError, **options: Any) -> Exception:
    with pytest.raises(raises, match=message) as caught:
        check(*call, **{"margin": 0.1, **options})
    return caught.value


@pytest.mark.parametrize(
    ("message", "options"),
    [
        ("^margin must be finite and positive, got 0$", {"margin": 0}),
        ("^margin must be finite and positive, got nan$", {"margin": math.nan}),
        ("^margin must be greater than 0 and less than 1, got 1.5", {"margin": 1.5, "kind": "distribution"}),
        ("^margin must be a number, 0.05 for 5 %, got '5%'$", {"margin": "5%"}),
        (
            "^margin must be a fraction, 0.05 for 5 %, or give relative=False; got 5$",
            {"margin": 5},
        ),
        ("^error must be greater than 0 and less than 1, got 0$", {"error": 0}),
        ("^budget must be an integer of at least 96, got 95$", {"budget": 95}),
        ("^workers must be an integer of at least 1, got 0$", {"workers": 0}),
        ("^seed must be an integer of at least 0, got -1$", {"seed": -1}),
        (r"^kind must be one of mean, .*, got 'maen'; did you mean mean\?$", {"kind": "maen"}),
        ("^points must not be empty", {"points": []}),
        ("^workers=2 got <function .*lambda", {"workers": 2}),
    ],
)
def test_a_value_out_of_range_is_refused(message: str, options: dict[str, Any]) -> None:
    refused(message, lambda: 1.0, lambda rng: one(rng), **options)


@pytest.mark.parametrize(
    ("message", "call", "options"),
    [
        (r"^simulate\(rng, n\) cannot be .*did you mean n\?$", (harmonic, largest, [{"N": 10}]), {}),
        (r"^predict\(m\) cannot be called as predict\(n=10\): missing", (lambda m: m, largest, POINT), {}),
        (r"^simulate\(n\) cannot be .* then simulate\(rng", (largest, harmonic, POINT), {}),
        (r"predict\(n='10'\): .*; check takes predict", (largest, largest, [{"n": "10"}]), {}),
        (r"did you mean width\?$", (lambda width: 1.0, lambda rng, **_: 1.0, [{"widht": 1}]), {}),
        (r"as simulate\(rng, size, n=10\): ", (harmonic, largest, POINT), {"vectorised": True}),
        (r"^rival 'r'\(m\) cannot be", (harmonic, largest, POINT), {"rivals": {"r": lambda m: m}}),
        ("^rivals must be formulas by name", (harmonic, largest, POINT), {"rivals": [logarithm]}),
        ("^predict must be a function", (3.0, one), {}),
        ("^points must be mappings of .*, got 10$", (harmonic, largest, 10), {}),
        ("^points must be .* got the name 1$", (harmonic, largest, [{1: 10}]), {}),
        ("^points must be strategies that draw", (harmonic, largest, st.integers(1, 3)), {}),
    ],
)
def test_a_wrong_call_is_refused(message: str, call: Any, options: dict[str, Any]) -> None:
    refused(message, *call, raises=TypeError, **options)


def test_what_cannot_name_a_stream_is_refused() -> None:
    refused("^points must hold numbers, .*; got <object", lambda s: 1.0, sized, [{"s": object()}])


@pytest.mark.parametrize("value", [[0.3, 0.7], (0.3, 0.7), np.array([0.3, 0.7]), {"a": 0.5}, None, "relu"])
def test_what_can_name_one_is_handed_on_as_it_is(value: Any) -> None:
    seen = []

    def predict(s: Any) -> float:
        seen.append(s)
        return 1.0

    assert check(predict, sized, [{"s": value}], margin=0.1).agrees
    assert type(seen[0]) is type(value)
    np.testing.assert_equal(seen[0], value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (math.nan, "be finite, got nan at n = 10$"),
        (None, "return real numbers, got None at n = 10$"),
        (1 + 2j, "return real numbers"),
        ([[1.0], [1.0, 2.0]], "return real numbers"),
        ([], "return real numbers"),
    ],
)
def test_a_prediction_that_cannot_be_judged_is_refused(value: Any, message: str) -> None:
    refused(f"^predict must {message}", lambda n: value, largest, POINT)


def test_a_prediction_of_zero_has_an_absolute_margin() -> None:
    refused("^predict returns 0 at n = 10, where", lambda n: [1.0, 0.0], largest, POINT)
    refused("^rival 'r' must return shape", lambda: 1.0, one, rivals={"r": lambda: [2.0, 2.0]})
    refused("^predict returns shape .* at n = 10$", lambda n: [1.0, 1.0], largest, POINT)
    assert check(lambda: 0.0, lambda rng: rng.normal(), margin=0.3, relative=False).agrees


def at_fifth(bad: Any) -> Any:
    """A simulation that goes wrong at replicate 5."""
    made = iter(range(10_000))

    def simulate(rng: np.random.Generator, n: int) -> Any:
        return (bad() if callable(bad) else bad) if next(made) == 5 else one(rng)

    return simulate


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (math.nan, "finite numbers, got not a number at n = 10, replicate 5$"),
        (-math.inf, "finite numbers, got .*∞"),
        ([1.0, 2.0], r"replicates of one shape, got \(\) and then \(2,\) at n = 10, replicate 5$"),
        (None, "real numbers, got None at n = 10, replicate 5$"),
    ],
)
def test_a_replicate_that_cannot_be_judged_is_refused(bad: Any, message: str) -> None:
    refused(f"^simulate must return {message}", lambda n: 1.0, at_fifth(bad), POINT)


def test_a_shape_that_changes_between_looks_is_refused() -> None:
    made = iter(range(10_000))

    def simulate(rng: np.random.Generator) -> np.ndarray:
        return rng.normal(size=2 if next(made) < 96 else 3)

    told = r"of one shape, got \(2,\) and then \(3,\), replicate 96$"
    refused(told, lambda: 0.0, simulate, relative=False)


@pytest.mark.parametrize(
    ("call", "options", "told"),
    [
        ((lambda n: 1.0, at_fifth(fails), POINT), {}, "simulate failed at n = 10, replicate 5"),
        ((lambda: 1.0, fails), {"vectorised": True}, "simulate failed, replicates 0 to 15"),
        ((fails, largest, POINT), {}, "predict failed at n = 10"),
        ((harmonic, largest, POINT), {"rivals": {"r": fails}}, "rival 'r' failed at n = 10"),
    ],
)
def test_an_exception_keeps_its_cause_and_says_where(call: Any, options: Any, told: str) -> None:
    raised = refused(f"^{told}: ZeroDivisionError: no such width$", *call, raises=RuntimeError, **options)
    assert isinstance(raised.__cause__, ZeroDivisionError)


@pytest.mark.parametrize("vectorised", [False, True])
def test_a_constant_simulation_is_refused(vectorised: bool) -> None:
    def simulate(_: Any, size: int = 0) -> Any:
        return np.full(size, 2.5) if size else 2.5

    told = r"^simulate must vary, got 2\.5 in all of 96 replicates"
    refused(told, lambda: 2.5, simulate, vectorised=vectorised)


@pytest.mark.parametrize("kind", ["mean", "probability"])
def test_a_generator_of_its_own_is_refused(kind: str) -> None:
    def simulate(_: Any, size: int, n: int) -> np.ndarray:
        numbers = np.random.default_rng(n).normal(1.0, 1.0, size)
        return numbers > 1 if kind == "probability" else numbers

    told = "^simulate must draw from rng, got the same 16 replicates for each rng at n = 10"
    refused(told, lambda n: 0.5, simulate, POINT, kind=kind, vectorised=True)


@pytest.mark.parametrize("value", [[0.0, 0.0], np.zeros(2)])
def test_what_a_call_changes_in_a_parameter_does_not_reach_the_next(value: Any) -> None:
    def simulate(rng: np.random.Generator, state: Any) -> float:
        for i in range(2):
            state[i] += rng.normal(0.5, 0.1)
        return state[0] + state[1]

    assert check(lambda state: 1.0, simulate, [{"state": value}], margin=0.1).agrees


@pytest.mark.parametrize(
    ("message", "call", "options"),
    [
        (
            r"16 replicates along .* \(3,\)$",
            (lambda: 1.0, lambda rng, size: vector(rng)),
            {"vectorised": True},
        ),
        ("0 or 1 for .* 0.5, replicate 0$", (lambda: 0.5, lambda rng: 0.5), {"kind": "probability"}),
        ("a distribution function, got 1.0$", (lambda: 1.0, one), {"kind": "distribution"}),
        (r"a number in \[0, 1\] for each", (lambda: lambda x: 0.5, one), {"kind": "distribution"}),
        (r"a number in \[0, 1\] for each", (lambda: lambda x: 1.5 + 0 * x, one), {"kind": "distribution"}),
        ("single numbers for", (lambda: lambda x: x, vector), {"kind": "distribution"}),
        ("a sequence of sizes, .*; got n = 10$", (lambda n: 1.0, largest, POINT), {"kind": "exponent"}),
        ("each twice", (lambda s: 1.0, sized, [{"s": (1, 2, 3, 4)}]), {"kind": "exponent"}),
        ("one number, the exp", (lambda s: [1.0], sized, [{"s": (1, 2, 4, 8)}]), {"kind": "exponent"}),
        ("one value at each of 4 sizes", (lambda s: 1.0, sized, [{"s": (1, 2, 4, 8)}]), {"kind": "exponent"}),
    ],
)
def test_what_a_kind_cannot_judge_is_refused(message: str, call: Any, options: Any) -> None:
    refused(message, *call, **options)


def test_a_distribution_function_of_numbers_only_is_refused() -> None:
    told = "^the distribution function of predict failed on an array: TypeError"
    refused(told, lambda: lambda x: math.erf(x), one, kind="distribution", raises=RuntimeError)


# --- rivals --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "predict", "rival"),
    [
        ("bound", 2.0, 3.0),  # a weaker bound holds too
        ("lower bound on every replicate", -9.0, -99.0),
        ("distribution", stats.norm(), stats.norm()),
        ("mean", 1.0, 1.19),
    ],
)
def test_a_rival_that_nothing_could_reject_is_refused(kind: str, predict: Any, rival: Any) -> None:
    """Before anything is drawn."""
    told = "^points must have a point where rival 'other' is"
    refused(told, lambda: predict, fails, kind=kind, rivals={"other": lambda: rival})


def test_a_rival_needs_one_distant_point_only() -> None:
    rivals = {"bent": lambda mean: mean if mean < 2 else 2 * mean}
    found = check(constant, normal, [{"mean": 1.0}, {"mean": 3.0}], margin=0.1, rivals=rivals)

    assert found.agrees and [p.rivals[0].rejected for p in found.points] == [False, True]
    assert found.rivals == {"bent": True}


# --- workers -------------------------------------------------------------------------------------------------


def test_a_simulation_that_was_typed_in_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    main = types.ModuleType("__main__")
    main.one = one
    monkeypatch.setitem(sys.modules, "__main__", main)
    monkeypatch.setattr(one, "__module__", "__main__")
    refused("^workers=2 got one, but other processes must", lambda: 1.0, one, workers=2)


def test_a_worker_that_dies_says_what_may_be_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    class Dying(SerialExecutor):
        def submit(self, *_: Any, **__: Any) -> Future[Any]:
            raise BrokenProcessPool

    monkeypatch.setattr(checking, "open_executor", lambda _: nullcontext(Dying()))
    refused("^a worker process crashed", harmonic, largest, POINT, workers=2, raises=RuntimeError)
