"""What is no call is one line."""

from __future__ import annotations

import inspect
import json
from itertools import groupby
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_array_equal

from tests.verify.estimate.calls import values
from verify import estimate
from verify.cli import main
from verify.estimate import catalogue, output


def test_every_topic_stands_together_and_is_on_the_map_of_theory() -> None:
    names = [name.partition(".")[0] for name in estimate.FUNCTIONS]
    assert [topic for topic, _ in groupby(names)] == list(catalogue.topics())
    assert all(catalogue.topics().values())


def test_a_line_of_a_list_is_one_of_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "70")
    assert estimate.run(["zone"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 70 and any(line.endswith("…") for line in lines)


def test_without_a_function_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert estimate.run([]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in estimate.FUNCTIONS)
    assert "\nzone: edges of the Goldilocks zone, training inside it (vysogorets2024)\n  zone.curv" in listed
    assert max(len(block.splitlines()[0]) for block in listed.split("\n\n")) < 100
    assert estimate.run(["--list"]) == 0
    assert capsys.readouterr().out == listed
    assert estimate.run(["--list", "zone"]) == estimate.run(["zone"]) == 0
    once, again = capsys.readouterr().out.split("Arguments and an example", 1)
    assert once in again
    with pytest.raises(ValueError, match=r"topic must be one of softmax, .*, got 'nothing'"):
        estimate.run(["--list", "nothing"])
    assert estimate.run(["--json"]) == 0
    assert json.loads(capsys.readouterr().out).keys() == estimate.FUNCTIONS.keys()
    assert estimate.run(["outliers"]) == 0
    assert "softmax" not in capsys.readouterr().out
    assert estimate.run(["--help"]) == 0
    assert "usage: losscurv estimate" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("additive_wiger 2", r"no function 'additive_wiger'; did you mean outliers\.additive_wigner"),
        ("outliers.aditive_wigner 2", r"did you mean outliers\.additive_wigner"),
        ("frobnicate 2", r"no function 'frobnicate'; losscurv estimate lists all"),
        ("additive_wigner 2", r"outliers\.additive_wigner needs --sigma; see losscurv estimate outliers"),
        ("additive_wigner --sigma 1", r"outliers\.additive_wigner needs SPIKE"),
        ("additive_wigner 2 --sgima 1", r"no option --sgima; did you mean --sigma\?"),
        ("additive_wigner 2 --frob 1", r"no option --frob; there are --spike, --sigma"),
        ("additive_wigner 2 --sigma", r"--sigma needs a value"),
        ("additive_wigner 2 --sigma 1 --sigma 2", r"--sigma must be given once"),
        ("additive_wigner 2 3 --sigma 1", r"no place for '3': only SPIKE may stand without an option"),
        ("parameter_count 3", r"no place for '3': nothing may stand without an option, see --depth, --width"),
        ("additive_wigner 1,2;3 --sigma 1", r"--spike must have rows of one length, got '1,2;3'"),
        ("additive_wigner two --sigma 1", r"spike must be real numbers, got 'two'; see losscurv estimate"),
        ("additive_wigner 2 --sigma -1", r"sigma must be non-negative"),
        ("softmax.gamma 0.5,0.5 --average=perhaps", r"--average must stand alone or be true or false"),
        (
            "order_parameters rellu --depth 2 --weight-variance 1 --bias-variance 0",
            r"activation must be one of",
        ),
    ],
)
def test_wrong_words_are_refused_in_one_line(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ValueError, match=message):
        estimate.run(words.split())

    assert main(["estimate", *words.split()]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("losscurv: ")
    assert output.err.count("\n") == 1


def test_what_a_function_cannot_compute_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    for error in (OverflowError("too large"), TypeError("no"), MemoryError()):

        def failing(sharpness: Any, error: Exception = error) -> None:
            raise error

        monkeypatch.setattr(estimate, "theory_function", lambda _, failing=failing: failing)
        with pytest.raises(ValueError, match=r"learning_rates\.stability_limit cannot be computed: "):
            estimate.evaluate("learning_rates.stability_limit", ["2"])


NUMBERS = st.sampled_from(
    ["0", "1", "-1", "2", "3", "0.5", "-0.5", "7.25", "1e-300", "-1e-9", "nan", "inf", "-inf", "+2", "1_0"]
)


LISTS = st.one_of(
    st.lists(NUMBERS, min_size=1, max_size=3).map(",".join),
    st.lists(NUMBERS, min_size=2, max_size=4).map(";".join),
    st.sampled_from(["0.5,0.5", "0.7,0.2,0.1", "0.5,0.5;1,0", ",", ";", "1,;2"]),
)


JUNK = st.sampled_from(
    ["", "-", "--", "---", "relu", "relu,tanh", "x", "--help=1", "-h1", "--json=1", "é", "--="]
)


@st.composite
def commands(draw: st.DrawFn) -> list[str]:
    """A function, most of its arguments, some twice, most of them numbers."""
    name = draw(st.sampled_from(sorted(estimate.FUNCTIONS)))
    word = st.one_of(NUMBERS, NUMBERS, LISTS, JUNK)
    words = draw(st.lists(word, max_size=2))
    for parameter in inspect.signature(catalogue.theory_function(name)).parameters:
        if draw(st.integers(0, 9)):
            words += [f"--{parameter.replace('_', '-')}", draw(word)]
    return [name, *words]


@settings(deadline=None, max_examples=150, derandomize=True)
@given(words=commands())
def test_any_words_give_a_value_or_one_line(words: list[str]) -> None:
    try:
        result = estimate.evaluate(words[0], words[1:])
    except ValueError:
        return  # one line of the command's, tested above
    json.dumps(output.as_json(result), allow_nan=False)
    assert output.as_text(result)


@settings(deadline=None, max_examples=60, derandomize=True)
@given(
    spike=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=4),
    sigma=st.floats(0, 1e3),
    named=st.booleans(),
)
def test_printed_numbers_read_back_are_the_same_call(spike: list[float], sigma: float, named: bool) -> None:
    from theory import outliers

    text = ",".join(map(repr, spike)) + "," * (len(spike) == 1)
    words = [*(["--spike"] if named else []), text, "--sigma", repr(sigma)]
    expected = outliers.additive_wigner(spike, sigma=sigma)

    found = estimate.evaluate("additive_wigner", words)
    for one, other in zip(values(found), values(expected), strict=True):
        assert_array_equal(one, other)


@pytest.mark.parametrize("word", ["1e400", "-1e400", "9" * 400, "9" * 5000, "nan", "9" * 5000 + ",1"])
def test_a_number_that_no_float_holds_is_not_infinity(word: str) -> None:
    with pytest.raises(ValueError, match=r"^dataset_size must be") as caught:
        estimate.evaluate("batch_hessian.effective_batch_size", ["64", word])
    assert len(str(caught.value)) < 600
    assert float(estimate.evaluate("batch_hessian.effective_batch_size", ["64", "+inf"])) == 64


@pytest.mark.parametrize(
    "words",
    [
        ["4", "a" * 3000],
        ["4", "1\n2"],
        ["--sharpness=1,;2,3"],
        ["--shar\nness", "4"],
        ["--" + "a" * 3000, "4"],
        ["--sharpness", "\ud800"],
        ["--sharpness", "1,\u202e12"],
    ],
)
def test_messages_are_one_short_line_whatever_is_typed(words: list[str]) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        estimate.evaluate("learning_rates.stability_limit", words)
    assert str(caught.value).isprintable() and len(str(caught.value)) < 600


def test_what_is_no_number_in_a_table_is_told_in_one_line() -> None:
    with pytest.raises(
        ValueError, match=r"bias_variance must be a scalar, got array\(\[\[1\.\], \[2\.\]\]\)"
    ):
        estimate.evaluate("criticality.critical_weight_variance", ["tanh", "1,;2"])
