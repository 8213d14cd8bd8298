"""Any text on the command line of ``losscurv estimate`` ends in a value or in one line on stderr."""

import contextlib
import inspect
import io
import json

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from verify import estimate
from verify.cli import main
from verify.estimate import catalogue

SETTINGS = settings(
    deadline=None, max_examples=150, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
NUMBERS = "0 -0 1 -1 2 3 0.5 7.25 64 1e-300 5e-324 1e308 -1e308 1e400"
ODD = """1000000000 1000000000000 1e15 nan -nan inf -inf 1_0 ٣ 1j 0x10 1e -- - é relu tanh erf,relu swish true none
softmax gamma rmt.Semicircle 0.5,0.5 0.7,0.2,0.1 0.5,0.5;1,0 1,2;3 , ; 1,;2 1,nan a,b --help -h --json --help=1
--json=1 -h1 --= --- --sigma --average --digits"""
WILD = ("", " ", "\n", "\x00", "\ud800", "1" + "0" * 30, "9" * 400, "9" * 5000, "1," * 50, "1;" * 50)
words = st.one_of(
    st.sampled_from(NUMBERS.split()), st.sampled_from([*ODD.split(), *WILD]), st.text(max_size=12)
)


@st.composite
def calls(draw: st.DrawFn) -> list[str]:
    """A function with its arguments, an eighth of them anything at all, or with a word for every one by name."""
    name = draw(st.sampled_from(sorted(estimate.FUNCTIONS)))
    parameters = inspect.signature(catalogue.theory_function(name)).parameters
    if draw(st.booleans()):
        return [name, *(w for p in parameters for w in (f"--{p.replace('_', '-')}", draw(words)))]
    told = estimate.FUNCTIONS[name].split()
    given = [draw(words) if draw(st.integers(0, 7)) == 0 else word for word in told]
    return [name, *given, *draw(st.lists(words, max_size=1))]


@pytest.mark.slow
@SETTINGS
@given(st.one_of(calls(), calls(), st.lists(words, max_size=4)))
@example(["\x85", "2"])
@example(["additive_wigner", "1," * 5000, "--sigma", "x"])
@example(["additive_wigner", "1e308", "--sigma", "1e308"])
@example(["stability_limit", "5e-324", "--json"])
def test_any_words_are_answered(given: list[str]) -> None:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(["estimate", *given])
    printed, told = out.getvalue(), err.getvalue()
    if status == 0:
        assert told == "" and printed.endswith("\n")
        if "--json" in given and not {"-h", "--help"} & {*given}:
            json.loads(printed)
    else:
        assert status == 2 and printed == "" and told.startswith("losscurv: ")
        assert told.endswith("\n") and len(told.splitlines()) == 1
