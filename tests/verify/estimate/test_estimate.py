"""Every function of the theory, from the shell and from Python; what is no call is one line."""

import importlib
import inspect
import json
import math
from itertools import groupby
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tests.refusals import refusal
from verify import estimate
from verify.cli import main
from verify.estimate import catalogue, output

NETWORK = "'relu', depth=3, weight_variance=2, bias_variance=0.1"
GGN = "variance=0.3, dim=226, batch_size=64, dataset_size=math.inf"
PYTHON = {
    "softmax.batch_gammas": "[[0.7, 0.2, 0.1], [0.3, 0.3, 0.4]]",
    "gauss_newton.expected_gradient_norm": "[0.7, 0.2, 0.1], [0.5, 0.3, 0.2], dim=50, sigma_c=1.1",
    "gauss_newton.projected_excess": "-12.5, dim=50",
    "gauss_newton.class_blocks.hidden_ratio": "10, dim=50, samples=100, centred=True",
    "outliers.additive_wigner": "[1.7, -1.7], sigma=0.6",
    "finite_size.wishart_edge": "120, 300, variance=0.6, lower=True",
    "batch_hessian.batch_ggn_eigenvalue": f"1.4, {GGN}",
    "batch_hessian.sample_rank_bound": "[24, 2], biases=False",
    "learning_rates.catapult.largest_product": "",
    "learning_rates.adam.sign_rate": "[0.1, 0.2], hessian=[[2, 1], [1, 2]], noise=[1, 1], batch_size=[1, 100]",
    "order_parameters.order_parameters": f"{NETWORK}, input_overlap=-0.3",
    "fisher.cross_entropy_statistics": f"{NETWORK}, width=1000, probabilities=[[0.7, 0.2, 0.1], [0.3, 0.3, 0.4]]",
}
"""A call of each sort, as a user of Python would write it."""

NOT_FOR_A_SHELL = {
    "batch_hessian.low_rank_noise": "returns a law",
    "outliers.additive": "takes a law",
    "softmax.covariance": "returns matrices",
    "gauss_newton.loss_gradient": "takes derivatives of logits",
    "gauss_newton.hessian_terms": "takes derivatives of logits",
    "gauss_newton.gauss_newton_trace": "takes derivatives of logits",
    "zone.tanh_correction": "takes the matrices of a network",
    "learning_rates.adam.adam_moments": "takes what square_root_rule returns",
    "learning_rates.noise_scale.mean_square_distances": "returns a course of steps",
    "learning_rates.noise_scale.least_squares_risks": "returns a course of steps",
    "order_parameters.propagate": "returns what other theory functions build on",
}


def values(result: Any) -> list[Any]:
    fields = output.fields_of(result)
    return list(fields.values()) if fields else [result]


def same(one: Any, other: Any) -> None:
    for mine, its in zip(values(one), values(other), strict=True):
        assert_array_equal(mine, its)


# --- what is offered


def test_every_function_of_its_modules_is_offered_by_topic() -> None:
    names = {name.rpartition(".")[0] for name in estimate.FUNCTIONS}
    modules = {name: importlib.import_module(f"theory.{name}") for name in names}
    public = {
        f"{name}.{function}"
        for name, module in modules.items()
        for function in module.__all__
        if inspect.isfunction(getattr(module, function))
    }
    assert public - {*NOT_FOR_A_SHELL} == {*estimate.FUNCTIONS}
    topics = [name.partition(".")[0] for name in estimate.FUNCTIONS]
    assert [topic for topic, _ in groupby(topics)] == list(catalogue.topics())
    assert all(catalogue.topics().values())


@pytest.mark.parametrize("name", PYTHON)
def test_the_example_of_the_help_gives_what_python_gives(name: str) -> None:
    module, _, function = name.rpartition(".")
    told = {"function": getattr(importlib.import_module(f"theory.{module}"), function), "math": math}
    same(estimate.evaluate(name, estimate.FUNCTIONS[name].split()), eval(f"function({PYTHON[name]})", told))


@pytest.mark.parametrize("name", estimate.FUNCTIONS)
def test_json_holds_every_digit_and_help_every_argument(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = estimate.FUNCTIONS[name].split()
    assert estimate.run([name, *words, "--json"]) == 0
    same(json.loads(capsys.readouterr().out), output.as_json(estimate.evaluate(name, words)))

    assert estimate.run([name, "--help"]) == 0
    text = capsys.readouterr().out
    for parameter in inspect.signature(catalogue.theory_function(name)).parameters:
        assert parameter in text
        assert parameter.upper() in text or f"--{parameter.replace('_', '-')}" in text
    assert estimate.FUNCTIONS[name] in text and not [mark for mark in (":math:", "`", "\\") if mark in text]


def test_functions_are_listed_by_topic(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def said(*words: str) -> str:
        assert estimate.run(words) == 0
        return capsys.readouterr().out

    topics, listed = said(), said("--list")
    assert all(f"\n{topic} " in f"\n{topics}" for topic in catalogue.topics())
    assert len(topics.splitlines()) <= 40 and all(name in listed for name in estimate.FUNCTIONS)
    assert "\nzone: edges of the Goldilocks zone, training inside it (vysogorets2024)\n  zone.curv" in listed
    assert said("--list", "zone") == said("zone") and said("zone").partition("Arguments")[0] in listed
    assert json.loads(said("--json")).keys() == estimate.FUNCTIONS.keys()
    assert "softmax" not in said("outliers") and "usage: losscurv estimate" in said("--help")
    with refusal(r"topic must be one of softmax, .*, got 'nothing'"):
        estimate.run(["--list", "nothing"])
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "70")
    lines = said("zone").splitlines()
    assert max(map(len, lines)) <= 70 and any(line.endswith("…") for line in lines)


# --- what words mean


def test_named_and_ordered_arguments_mean_the_same() -> None:
    ordered = estimate.evaluate("batch_hessian.effective_batch_size", ["64", "1797"])
    for words in ("--dataset-size 1797 64", "64 --dataset-size=1797", "--dataset_size 1797 --batch-size 64"):
        assert estimate.evaluate("effective_batch_size", words.split()) == ordered


@pytest.mark.parametrize(
    ("words", "eigenvalue"),
    [
        ("-2 --sigma 1", -2.5),
        ("-.5e1 --sigma 2", -5.8),
        ("--sigma 1 -2,2", [-2.5, 2.5]),
        ("--spike=-2,2 --sigma=1", [-2.5, 2.5]),
        ("--spike -2,2 --sigma 1", [-2.5, 2.5]),
        ("-2, --sigma 1", [-2.5]),
        ("2,4 --sigma 1;2", [[2.5, 4.25], [4.0, 5.0]]),
        ("0.30000000000000004,1e-300 --sigma 0", [0.30000000000000004, 1e-300]),
    ],
)
def test_negative_numbers_lists_and_matrices_are_values(words: str, eigenvalue: Any) -> None:
    assert_array_equal(estimate.evaluate("outliers.additive_wigner", words.split()).eigenvalue, eigenvalue)


def test_a_switch_stands_alone_or_takes_a_word() -> None:
    batch = "0.7,0.3;0.2,0.8"
    mean = estimate.evaluate("softmax.gamma", [batch, "--average"])
    assert np.shape(mean) == () and estimate.evaluate("softmax.gamma", ["--average=true", batch]) == mean
    assert np.shape(estimate.evaluate("softmax.gamma", [batch, "--average=false"])) == (2,)
    # one without a default takes a word
    words = ["10", "--dim", "50", "--samples", "100", "--centred"]
    yes, no = (estimate.evaluate("class_blocks.hidden_ratio", [*words, word]) for word in ("true", "false"))
    assert yes == pytest.approx(no * (12 / 11) ** 0.5, rel=1e-4)


def test_digits_beyond_a_float_are_kept(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["relu", "--depth", "2", "--weight-variance", "2", "--bias-variance", "0", "--digits", "30"]
    assert estimate.run(["order_parameters", *words]) == 0
    assert "0.318309886183790671537767526745" in capsys.readouterr().out  # 1/pi
    assert estimate.run(["order_parameters", *words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["q_hat_st"][1] == "0.318309886183790671537767526745"


def test_infinity_and_nan_are_strings_in_json_and_plain_output_is_one_line_per_field(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert estimate.run(["--json", "effective_batch_size", "64", "64"]) == 0
    assert json.loads(capsys.readouterr().out) == "inf"
    assert output.as_json(np.array([math.nan, -math.inf, 1.0])) == ["nan", "-inf", 1.0]
    assert estimate.run(["outliers.additive_wigner", "-2", "--sigma", "1"]) == 0
    lines = ["eigenvalue  -2.5", "overlap     0.75", "threshold   -1", "edge        -2", "visible     True"]
    assert capsys.readouterr().out.splitlines() == lines


# --- what is no call


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("additive_wiger 2", r"unknown function 'additive_wiger'; did you mean outliers\.additive_wigner"),
        ("frobnicate 2", r"unknown function 'frobnicate'; losscurv estimate --list names all"),
        ("additive_wigner 2", r"outliers\.additive_wigner needs --sigma; see losscurv estimate outliers"),
        ("additive_wigner 2 --sgima 1", r"unknown option --sgima; did you mean --sigma\?"),
        ("additive_wigner 2 --frob 1", r"unknown option --frob; options: --spike, --sigma"),
        ("additive_wigner 2 --sigma", r"--sigma needs a value"),
        ("additive_wigner 2 --sigma 1 --sigma 2", r"--sigma is given twice"),
        ("additive_wigner 2 3 --sigma 1", r"unexpected argument '3': only SPIKE can be given without a name"),
        ("parameter_count 3", r"unexpected argument '3': no argument can .* without a name; options: --depth, --width"),
        ("additive_wigner 1,2;3 --sigma 1", r"--spike must have rows of one length, got '1,2;3'"),
        ("additive_wigner two --sigma 1", r"spike must be real numbers, got 'two'; see losscurv estimate"),
        ("softmax.gamma 0.5,0.5 --average=perhaps", r"--average takes no value but true or false"),
        ("critical_weight_variance tanh 1,;2", r"bias_variance must be a scalar, got array\(\[\[1\.\], "),
        # a number that no float holds is not infinity
        *((f"effective_batch_size 64 {word}", r"dataset_size must be") for word in (
            "1e400", "-1e400", "9" * 5000, "nan", "9" * 5000 + ",1",
        )),
        *((f"stability_limit {word}", ".") for word in (
            "a" * 3000, "--" + "a" * 3000, "--shar\u2028ness 4", "--sharpness \ud800", "--sharpness 1,\u202e12",
        )),
    ],
)  # fmt: skip
def test_wrong_words_are_refused_in_one_short_line(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with refusal(message) as caught:
        estimate.run(words.split(" "))
    assert str(caught.value).isprintable() and len(str(caught.value)) < 600

    assert main(["estimate", *words.split(" ")]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.startswith("losscurv: ") and printed.err.count("\n") == 1


def test_what_a_function_cannot_compute_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    for error in (OverflowError("too large"), TypeError("no"), MemoryError()):

        def failing(sharpness: Any, error: Exception = error) -> None:
            raise error

        monkeypatch.setattr(estimate, "theory_function", lambda _, failing=failing: failing)
        with refusal(r"learning_rates\.stability_limit cannot be computed: "):
            estimate.evaluate("learning_rates.stability_limit", ["2"])
