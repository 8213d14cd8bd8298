from __future__ import annotations

import importlib
import inspect
import json
import math
import shlex
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_array_equal

from tests.theory.fuzz.check import check
from tests.theory.fuzz.line import Line
from verify import estimate
from verify.cli import main
from verify.estimate import docstrings

BATCH = "sigma=0.06, dim=226, batch_size=64, dataset_size=1797"
NETWORK = "'relu', depth=3, weight_variance=2, bias_variance=0.1"

PYTHON = {
    "softmax.eigenvalues": "[0.7, 0.2, 0.1]",
    "softmax.gamma": "[0.7, 0.2, 0.1]",
    "softmax.gamma_from_logits": "[3.1, -0.4, -1.2], temperature=0.5",
    "softmax.collapse_limit": "[3, 2, 1]",
    "softmax.batch_gammas": "[[0.7, 0.2, 0.1], [0.3, 0.3, 0.4]]",
    "softmax.batch_gammas_from_logits": "[[3.1, -0.4], [1.2, 0.9]], temperature=0.5",
    "softmax.equal_tail_gamma": "[0.01, 0.2], members=5",
    "softmax.equal_tail_eigenvalues": "0.01, members=5, classes=10",
    "gauss_newton.expected_eigenvalues": "[0.7, 0.2, 0.1], dim=6, sigma_c=1.1, sigma_e=0.7",
    "gauss_newton.expected_excess": "1.3, dim=50, sigma_c=1.1, sigma_e=0.7",
    "gauss_newton.expected_gradient_norm": "[0.7, 0.2, 0.1], [0.5, 0.3, 0.2], dim=50, sigma_c=1.1",
    "gauss_newton.projected_excess": "-12.5, dim=50",
    "gauss_newton.hessian_excess": "3.1, frobenius_ratio=0.7",
    "gauss_newton.excess_noise_floor": "50",
    "gauss_newton.finite_sample_excess": "1.3, 4.2, dim=50, sigma_c=1.1, sigma_e=0.7",
    "gauss_newton.squared_gradient_norm": (
        "[0.7, 0.2, 0.1], [0.5, 0.3, 0.2], squared_error=0.5, dim=50, sigma_c=1.1, sigma_e=0.7, samples=100"
    ),
    "gauss_newton.haar_moments": "3, 2, dim=50, parameters=1000",
    "gauss_newton.sparse_moments": "3, 2, squared_diagonal=0.5, dim=50, parameters=1000",
    "gauss_newton.frame_overlap": "50, parameters=1000",
    "zone.curvature_factors": "[0.5, 2], depth=3",
    "zone.reduced_temperature": "[0.5, 2], depth=3",
    "zone.matched_rate": "0.02, alpha=[0.5, 2], depth=3",
    "zone.lower_edge": "0.3, 0.05, depth=3",
    "zone.upper_edge": "1797, gap_density=0.4, depth=3",
    "zone.near_tie_weight": "6, gap_density=0.4, depth=3",
    "zone.largest_base_rate": "[0.5, 2], sharpness=4.2, depth=5",
    "zone.bulk_outlier": "1.7, bulk_norm=1.2",
    "zone.spiked_excess": "1.7, rank=9, bulk_norm=1.2, dim=[50, 5000]",
    "initial_loss.jensen_bound": "[0.7, 0.2, 0.1], [0.5, 0.3, 0.2]",
    "initial_loss.prior_entropy": "[0.5, 0.3, 0.2]",
    "outliers.additive_wigner": "[1.7, -1.7], sigma=0.6",
    "outliers.additive_wishart": "1.7, q=0.4, variance=0.6",
    "outliers.information_plus_noise": "1.7, q=0.4, variance=0.6",
    "outliers.spiked_covariance": "1.7, q=0.4, variance=0.6",
    "finite_size.wigner_edge": "226, sigma=0.6",
    "finite_size.wishart_edge": "120, 300, variance=0.6, lower=True",
    "finite_size.additive_wigner_sd": "1.7, sigma=0.6, dim=226",
    "finite_size.additive_wishart_sd": "1.7, dim=120, samples=300, variance=0.6",
    "finite_size.information_plus_noise_sd": "1.7, dim=120, samples=300, variance=0.6",
    "finite_size.spiked_covariance_sd": "1.7, dim=120, samples=300, variance=0.6",
    "batch_hessian.effective_batch_size": "64, 1797",
    "batch_hessian.batch_eigenvalue": f"0.56, {BATCH}",
    "batch_hessian.batch_overlap": f"0.56, {BATCH}",
    "batch_hessian.batch_ggn_eigenvalue": "1.4, variance=0.3, dim=226, batch_size=64, dataset_size=math.inf",
    "batch_hessian.second_order_eigenvalue": "0.56, coefficient=2.4, batch_size=64, dataset_size=1797",
    "batch_hessian.element_variance": "0.81, dim=226",
    "batch_hessian.element_fluctuation": "variance=0.0036, batch_size=64, dataset_size=1797",
    "batch_hessian.batch_ggn_factor_eigenvalue": (
        "1.4, variance=0.3, dim=226, batch_size=64, dataset_size=math.inf"
    ),
    "batch_hessian.noise_free_eigenvalue": "0.56, sigma=0.06, dim=226, dataset_size=1797",
    "batch_hessian.composed_batch_eigenvalue": f"0.56, {BATCH}",
    "batch_hessian.second_order_coefficient": "[2.0, 0.5, -1.0], [0.3, 0.6, 0.9]",
    "batch_hessian.finite_population_fluctuation": (
        "variance=0.0036, batch_size=64, dataset_size=1797, replacement=True"
    ),
    "batch_hessian.element_skewness": "2.0, batch_size=64, dataset_size=1797",
    "batch_hessian.noise_bound": "1.2, batch_size=64, dataset_size=1797",
    "batch_hessian.ggn_rank_bound": "64, 10, 226",
    "batch_hessian.sample_rank_bound": "[24, 2], biases=False",
    "batch_hessian.sample_rank_bound_of_paths": "24, [24, 2]",
    "batch_hessian.dataset_rank_bound": "48, samples=1797, dim=624, symmetries=24",
    "batch_hessian.crossover_batch_size": "0.56, sigma=0.06, dim=226, dataset_size=1797",
    "lanczos_bounds.ritz_value_bound": "2.0, 1.0, -1.0, angle=1.3, steps=8",
    "learning_rates.stability_limit": "4.2",
    "learning_rates.sgd_limit": f"0.56, {BATCH}",
    "learning_rates.mean_square_limit": "0.56, noise=0.3, batch_size=64, dataset_size=1797",
    "learning_rates.heavy_ball": "4.2, 0.3",
    "learning_rates.nesterov": "4.2, 0.3",
    "learning_rates.best_nesterov": "4.2, 0.3",
    "learning_rates.heavy_ball_contraction": "0.3, 0.5, largest=4.2, smallest=0.3",
    "learning_rates.nesterov_contraction": "0.3, 0.5, largest=4.2, smallest=0.3",
    "learning_rates.sgd_exponent": f"0.56, {BATCH}",
    "learning_rates.marchenko_pastur_exponent": "3.5",
    "learning_rates.linear_then_flat": "0.02, known=32, batch_size=[8, 64, 512], crossover=40, dataset_size=1797",
    "learning_rates.square_root": "0.02, known=32, batch_size=[8, 64, 512], dataset_size=1797",
    "learning_rates.mean_square_exponent": "0.56, noise=0.3, batch_size=64, dataset_size=1797",
    "learning_rates.mean_square_crossover": "0.56, noise=0.3, dataset_size=1797",
    "learning_rates.mean_square_bracket": "[0.5, 0.4], [0.3, 0.9], square=3.1, batch_size=4, dataset_size=1797",
    "learning_rates.gaussian_least_squares_limit": "4, 20",
    "learning_rates.gaussian_least_squares_growth": "0.2, batch_size=4, dim=20",
    "adaptive_rates.outlier_over_edge": f"0.56, {BATCH}",
    "adaptive_rates.adaptive_limit": f"0.7, {BATCH}",
    "loss_change.quadratic_change": "0.1, [1, 2], [[4, 1], [1, 3]], preconditioner=[[2, 0], [0, 5]]",
    "loss_change.sign_averaged_change": "0.1, [1, 2], [[4, 1], [1, 3]], preconditioner=[[2, 0], [0, 5]]",
    "loss_change.descent_bound": "0.1, squared_gradient=5, sharpness=4.2",
    "loss_change.squared_gradient_mean": "5, trace=3.1, batch_size=4",
    "loss_change.squared_gradient_variance": "3.1, trace_of_square=8, batch_size=4",
    "order_parameters.order_parameters": f"{NETWORK}, input_overlap=-0.3",
    "fisher.kappas": NETWORK,
    "fisher.eigenvalue_statistics": f"{NETWORK}, width=1000, samples=100, outputs=10",
    "fisher.mean_subtracted_statistics": f"{NETWORK}, width=1000, samples=1000, outputs=10",
    "fisher.fluctuation_constants": f"{NETWORK}, outputs=10",
    "fisher.mean_subtracted_largest": f"{NETWORK}, width=1000, samples=4",
    "fisher.output_variance": f"{NETWORK}, samples=100",
    "fisher.batch_normalised_statistics": (f"{NETWORK}, width=1000, samples=1000, outputs=3, q1=2.9, q2=2.9"),
    "fisher.batch_normalised_constants": f"{NETWORK}, outputs=3, q1=2.9, q2=2.9",
    "fisher.deviation_share": f"{NETWORK}, width=1000, samples=1000",
    "fisher.batch_norm_moments": "'relu', samples=10",
    "fisher.batch_norm_bound": "'relu', width=1000, samples=100, width_ratio=1.5",
    "fisher.batch_norm_largest": "'relu', width=1000, samples=1000",
    "fisher.batch_norm_largest_odd": "'tanh', width=1000, samples=1000",
    "fisher.layer_norm_kappas": NETWORK,
    "fisher.layer_norm_statistics": (
        f"{NETWORK}, width=1000, samples=100, outputs=10, eta1=1.1, eta2=2.1, eta3=0.8"
    ),
    "fisher.layer_norm_rayleigh": f"{NETWORK}, width=1000, samples=100, outputs=10, eta1=1.1, overlap=7.6",
    "fisher.layer_norm_largest": (
        "'relu', [[0.3, -1.2, 0.4], [-0.8, 0.2, 0.9]], depth=3, width=1000, weight_variance=2, bias_variance=0.1"
    ),
    "fisher.realised_etas": "[[0.3, -1.2, 0.4], [-0.8, 0.2, 0.9]]",
    "fisher.expected_etas": f"{NETWORK}, samples=100, outputs=10",
    "fisher.inverse_variance_cdf": ("2.5, 'relu', depth=3, outputs=10, weight_variance=2, bias_variance=0.1"),
    "fisher.tangent_kernel": f"{NETWORK}, input_overlap=-0.3",
    "fisher.tangent_kernel_statistics": f"{NETWORK}, width=1000, samples=100, outputs=10",
    "fisher.cross_entropy_statistics": (
        f"{NETWORK}, width=1000, probabilities=[[0.7, 0.2, 0.1], [0.3, 0.3, 0.4]]"
    ),
    "fisher.cross_entropy_outliers": f"{NETWORK}, width=1000, probabilities=[[0.7, 0.2, 0.1], [0.3, 0.3, 0.4]]",
    "criticality.variance_fixed_point": "'tanh', weight_variance=1.5, bias_variance=0.1",
    "criticality.depth_scales": "'tanh', weight_variance=1.5, bias_variance=0.1",
    "criticality.critical_weight_variance": "'tanh', 0.05",
    "linear_network.linear_network_edge": "0.5, weight_variance=1.3",
    "linear_network.linear_network_largest": "width=1000, samples=500, weight_variance=1.3",
    "fisher.parameter_count": "depth=3, width=100, outputs=10, width_ratios=[7.84, 1, 1]",
}

NOT_FOR_A_SHELL = {
    "batch_hessian.low_rank_noise": "returns a law",
    "outliers.additive": "takes a law",
    "finite_size.additive_sd": "takes a law",
    "softmax.covariance": "returns matrices",
    "order_parameters.propagate": "returns what other theory functions build on",
}


def call(name: str, words: str) -> Any:
    """The Python call that a user would write."""
    module, _, function = name.partition(".")
    made = importlib.import_module(f"theory.{module}")
    return eval(f"function({words})", {"function": getattr(made, function), "math": math})


def values(result: Any) -> list[Any]:
    fields = estimate._fields(result)
    return list(fields.values()) if fields else [result]


def test_every_function_of_its_modules_is_offered() -> None:
    names = {name.partition(".")[0] for name in estimate.FUNCTIONS}
    modules = {name: importlib.import_module(f"theory.{name}") for name in names}
    public = {
        f"{name}.{function}"
        for name, module in modules.items()
        for function in module.__all__
        if inspect.isfunction(getattr(module, function))
    }
    assert public - set(NOT_FOR_A_SHELL) == set(estimate.FUNCTIONS)


def test_every_function_has_its_python_call_here() -> None:
    assert PYTHON.keys() == estimate.FUNCTIONS.keys()


@pytest.mark.parametrize("name", estimate.FUNCTIONS)
def test_the_example_of_the_help_gives_what_python_gives(name: str) -> None:
    found = estimate.evaluate(name, estimate.FUNCTIONS[name].split())

    for one, other in zip(values(found), values(call(name, PYTHON[name])), strict=True):
        assert_array_equal(one, other)


@pytest.mark.parametrize("name", estimate.FUNCTIONS)
def test_json_holds_every_digit(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert estimate.run([name, *estimate.FUNCTIONS[name].split(), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)

    found = printed.values() if isinstance(printed, dict) else [printed]
    for one, other in zip(found, values(call(name, PYTHON[name])), strict=True):
        assert_array_equal(one, np.asarray(other).tolist())


@pytest.mark.parametrize("name", estimate.FUNCTIONS)
def test_help_explains_every_argument(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert estimate.run([name, "--help"]) == 0
    text = capsys.readouterr().out

    function = estimate._function(name)
    for parameter in inspect.signature(function).parameters:
        assert parameter.upper() in text or f"--{parameter.replace('_', '-')}" in text
        assert docstrings.parameter(function, parameter)
    assert estimate.FUNCTIONS[name] in text
    assert ":math:" not in text
    assert "`" not in text
    assert "\\" not in text


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
    ],
)
def test_negative_numbers_lists_and_matrices_are_values(words: str, eigenvalue: Any) -> None:
    assert_array_equal(estimate.evaluate("outliers.additive_wigner", words.split()).eigenvalue, eigenvalue)


def test_a_switch_stands_alone_or_takes_a_word() -> None:
    batch = "0.7,0.3;0.2,0.5".replace("0.5", "0.8")
    mean = estimate.evaluate("softmax.gamma", [batch, "--average"])

    assert np.shape(mean) == ()
    assert estimate.evaluate("softmax.gamma", ["--average=true", batch]) == mean
    assert np.shape(estimate.evaluate("softmax.gamma", [batch, "--average=false"])) == (2,)


def test_digits_beyond_a_float_are_kept(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["relu", "--depth", "2", "--weight-variance", "2", "--bias-variance", "0", "--digits", "30"]

    assert estimate.run(["order_parameters", *words]) == 0
    assert "0.318309886183790671537767526745" in capsys.readouterr().out  # 1/pi
    assert estimate.run(["order_parameters", *words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["q_hat_st"][1] == "0.318309886183790671537767526745"


def test_infinity_and_nan_are_strings_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert estimate.run(["--json", "effective_batch_size", "64", "64"]) == 0
    assert json.loads(capsys.readouterr().out) == "inf"
    assert estimate._plain(np.array([math.nan, -math.inf, 1.0])) == ["nan", "-inf", 1.0]


def test_plain_output_is_one_line_per_field(capsys: pytest.CaptureFixture[str]) -> None:
    assert estimate.run(["outliers.additive_wigner", "-2", "--sigma", "1"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "eigenvalue  -2.5",
        "overlap     0.75",
        "threshold   -1",
        "edge        -2",
        "visible     True",
    ]


def test_without_a_function_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert estimate.run([]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in estimate.FUNCTIONS)
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

        monkeypatch.setattr(estimate, "_function", lambda _, failing=failing: failing)
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
    for parameter in inspect.signature(estimate._function(name)).parameters:
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
    json.dumps(estimate._plain(result), allow_nan=False)
    assert estimate._text(result)


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


EXTREMES = (5e-324, 1e-320, 1e-160, 1e160, 1.7e308, -5e-324, -0.0, 2**31, 2**63)
SHAPES = ([1e-320, 1], [1, 1e-320], [5e-324] * 2, [1e308, 1e-320], [1e-320, 1e308], [1e-160] * 2)


@pytest.mark.parametrize("name", estimate.FUNCTIONS)
def test_extreme_numbers_are_answered_or_refused_without_a_warning(name: str) -> None:
    """Each number in turn, and the ratios of a network of two layers."""
    function = estimate._function(name)
    parameters = inspect.signature(function).parameters
    right = estimate._bind(name, parameters, shlex.split(estimate.FUNCTIONS[name]))
    calls = [
        right | {argument: value}
        for argument in parameters
        if type(right.get(argument)) in (int, float)
        for value in EXTREMES
    ]
    if "width_ratios" in parameters:
        depth = {"depth": 2} if "depth" in parameters else {}
        calls += [right | depth | {"width_ratios": shape} for shape in SHAPES]
    for call in calls:
        check(
            name, Line(function, {}, also=tuple(parameters), infinite=True, unsettled=True, pooled=True), call
        )
