"""Any text on the command line of ``losscurv estimate`` ends in a value or in one line on stderr."""

from __future__ import annotations

import contextlib
import inspect
import io
import json

from hypothesis import HealthCheck, example, given, settings, strategies as st

from verify import estimate
from verify.cli import main
from verify.estimate import catalogue

SETTINGS = settings(
    deadline=None, max_examples=120, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)

NUMBERS = [
    "0",
    "-0",
    "1",
    "-1",
    "2",
    "3",
    "0.5",
    "7.25",
    "1e-300",
    "5e-324",
    "1e308",
    "-1e308",
    "1e400",
    "64",
]
HUGE = ["1000000000", "1000000000000", "1" + "0" * 30, "9" * 400, "9" * 5000, "1e15"]
ODD = [
    "nan",
    "-nan",
    "inf",
    "-inf",
    "1_0",
    "٣",
    "1j",
    "0x10",
    "1e",
    "--",
    "-",
    "",
    " ",
    "\n",
    "\x00",
    "é",
    "\ud800",
]
NAMES = [
    "relu",
    "tanh",
    "erf,relu",
    "leaky_relu",
    "swish",
    "true",
    "none",
    "softmax",
    "gamma",
    "rmt.Semicircle",
]
LISTS = [
    "0.5,0.5",
    "0.7,0.2,0.1",
    "0.5,0.5;1,0",
    "1,2;3",
    ",",
    ";",
    "1,;2",
    "1,nan",
    "a,b",
    "1," * 50,
    "1;" * 50,
]
OPTIONS = [
    "--help",
    "-h",
    "--json",
    "--help=1",
    "--json=1",
    "-h1",
    "--=",
    "---",
    "--sigma",
    "--average",
    "--digits",
]

words = st.one_of(
    st.sampled_from(NUMBERS),
    st.sampled_from(NUMBERS),
    st.sampled_from([*HUGE, *ODD, *NAMES, *LISTS, *OPTIONS]),
    st.lists(st.sampled_from([*NUMBERS, *ODD]), min_size=2, max_size=4).map(",".join),
    st.text(max_size=12),
)


@st.composite
def calls(draw: st.DrawFn) -> list[str]:
    """A function, and most of its arguments, an eighth of them anything at all."""
    name = draw(st.sampled_from(sorted(estimate.FUNCTIONS)))
    told = iter(estimate.FUNCTIONS[name].split())
    given = [draw(words) if draw(st.integers(0, 7)) == 0 else word for word in told]
    return [name, *given, *draw(st.lists(words, max_size=1))]


@st.composite
def guesses(draw: st.DrawFn) -> list[str]:
    """A function with a word for every argument, by name."""
    name = draw(st.sampled_from(sorted(estimate.FUNCTIONS)))
    parameters = inspect.signature(catalogue.theory_function(name)).parameters
    return [name, *(w for p in parameters for w in (f"--{p.replace('_', '-')}", draw(words)))]


def run(given: list[str]) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(["estimate", *given])
    return status, out.getvalue(), err.getvalue()


def holds(given: list[str]) -> None:
    status, out, err = run(given)
    if status == 0:
        assert err == ""
        assert out.endswith("\n")
        if "--json" in given and not {"-h", "--help"} & set(given):
            json.loads(out)
    else:
        assert status == 2
        assert out == ""
        assert err.startswith("losscurv: ")
        assert err.endswith("\n") and len(err.splitlines()) == 1


@SETTINGS
@given(st.lists(words, max_size=4))
@example(["\x85", "2"])
@example(["additive_wigner", "a\u2028b", "--sigma", "1"])
@example(["parameter_count", "--depth", "9" * 5000, "--width", "1", "--outputs", "1"])
@example(["additive_wigner", "1," * 5000, "--sigma", "x"])
@example(["a" * 10000])
def test_any_words_are_answered(given: list[str]) -> None:
    holds(given)


@SETTINGS
@given(calls())
def test_a_spoilt_call_is_answered(given: list[str]) -> None:
    holds(given)


@SETTINGS
@given(guesses())
@example(["expected_eigenvalues", "0.5,0.5", "--dim", "1000000000000", "--sigma-c", "1", "--sigma-e", "1"])
@example(
    ["order_parameters", "relu", "--depth", "1000000000", "--weight-variance", "2", "--bias-variance", "0"]
)
@example(["additive_wigner", "1e308", "--sigma", "1e308"])
@example(["stability_limit", "5e-324", "--json"])
def test_a_guessed_call_is_answered(given: list[str]) -> None:
    holds(given)
