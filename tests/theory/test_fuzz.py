"""Every public function of the theory, fed with anything: a right value, or a ValueError that names the argument.

Infinity counts as a value where the docstring promises it, NaN never does. A new public name fails the first
test until it has a line in the `TABLE` of its topic, a module of `tests.theory.fuzz`; a new module of the theory goes
into `MODULES` there. A function of elementwise arithmetic also wants right arguments in `RIGHT` below.
"""

from __future__ import annotations

import importlib
import inspect
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tests.theory.fuzz import merged
from tests.theory.fuzz.check import check
from tests.theory.fuzz.strategies import SETTINGS
from theory import activations, fisher, gauss_newton, order_parameters, outliers, rmt, softmax

MODULES = merged("MODULES")
TABLE = merged("TABLE")
WITHOUT_ARGUMENTS = merged("WITHOUT_ARGUMENTS")
STRATEGIES = {name: line.strategy() for name, line in TABLE.items()}


def public_names() -> Iterator[str]:
    for module, not_called in MODULES.items():
        loaded = importlib.import_module(f"theory.{module}")
        for name in loaded.__all__:
            if name in not_called:
                continue
            yield f"{module}.{name}"
            found = getattr(loaded, name)
            if inspect.isclass(found):
                methods = {
                    method
                    for cls in found.__mro__[:-1]
                    for method, value in vars(cls).items()
                    if inspect.isfunction(value) or isinstance(value, property)
                }
                yield from (f"{module}.{name}.{method}" for method in methods if not method.startswith("_"))


def test_every_public_name_has_a_line_in_the_table() -> None:
    assert set(public_names()) == TABLE.keys() | WITHOUT_ARGUMENTS.keys()


@pytest.mark.parametrize("name", WITHOUT_ARGUMENTS)
def test_names_left_out_of_the_table_take_no_arguments(name: str) -> None:
    module, _, function = name.rpartition(".")
    assert not inspect.signature(getattr(importlib.import_module(f"theory.{module}"), function)).parameters


SLOW = (
    "fisher.fluctuation_constants",
    "activations.gaussian.KinkedQuadrature.fluctuations",
    "activations.gaussian.KinkedQuadrature.value",
)
"""Double integrals of anything, which take longer than all the rest."""


@pytest.mark.parametrize("name", [name for name in TABLE if name not in SLOW])
@SETTINGS
@given(data=st.data())
def test_a_right_value_or_a_message_that_names_the_argument(name: str, data: st.DataObject) -> None:
    check(name, TABLE[name], data.draw(STRATEGIES[name]))


@pytest.mark.parametrize("name", SLOW)
@settings(SETTINGS, max_examples=8)
@given(data=st.data())
def test_a_right_value_or_a_message_of_what_is_slow(name: str, data: st.DataObject) -> None:
    check(name, TABLE[name], data.draw(STRATEGIES[name]))


RIGHT: dict[str, Any] = {
    "diagonal": 1.0,
    "fourth_cumulant": -2.0,
    "hidden": 24,
    "limit": 0.4,
    "spike": 1.7,
    "sigma": 0.6,
    "q": 0.4,
    "variance": 0.6,
    "law": rmt.Semicircle(sigma=0.6),
    "eigenvalue": 0.56,
    "dim": 226,
    "batch_size": 64,
    "dataset_size": 1797,
    "coefficient": 2.4,
    "skewness": 0.7,
    "replacement": False,
    "norm": 1.2,
    "semidefinite": True,
    "eigenvalues": [2.0, 0.5, -1.0],
    "variances": [0.3, 0.6, 0.9],
    "rank": 2,
    "positive_share": 0.3,
    "outputs": 10,
    "inputs": 8,
    "widths": [30, 10],
    "biases": True,
    "sample_rank": 69,
    "samples": 1797,
    "symmetries": 31,
    "total": 0.81,
    "sharpness": 4.2,
    "noise": 0.3,
    "rate": 0.02,
    "known": 32,
    "crossover": 40,
    "momentum": 0.9,
    "curvatures": [0.5, 0.4, 0.2],
    "square": 3.1,
    "preconditioner": 0.7,
    "largest": 4.2,
    "smallest": 0.3,
    "p": [0.7, 0.2, 0.1],
    "average": False,
    "lower": False,
    "z": [3.1, -0.4],
    "temperature": 0.5,
    "weights": [3, 2, 1],
    "gamma": 1.3,
    "sigma_c": 1.1,
    "sigma_e": 0.7,
    "excess": -12.5,
    "mean_probability": [0.5, 0.5],
    "prior": [0.7, 0.3],
    "gauss_newton_excess": 3.1,
    "frobenius_ratio": 0.7,
    "separate_gamma": 2.6,
    "orthogonal": True,
    "squared_error": 0.7,
    "trace": 3.1,
    "squared_norm": 2.5,
    "squared_diagonal": 0.9,
    "parameters": 2720,
    "tail": 0.02,
    "members": 7,
    "classes": 12,
    "alpha": 1.8,
    "depth": 3,
    "gauss_newton_norm": 0.8,
    "h_term_norm": 0.1,
    "gap_density": 0.4,
    "bulk_norm": 0.9,
    "order": 1,
    "gaps": [0.3, 0.1],
    "squared_slopes": [2.5, 1.7],
    "matrices": [[[1.0, 2.0]], [[0.5]]],
    "x": [0.3, -0.2],
    "bias": [0.3, -0.2],
    "spread": 0.7,
    "label": 1,
    "jacobian": [[0.3], [1.0], [-0.2]],
    "second": [[[0.3]], [[1.0]], [[-0.2]]],
}
ELEMENTWISE = [
    name
    for name in TABLE
    if name.partition(".")[0]
    in (
        "outliers",
        "finite_size",
        "batch_hessian",
        "learning_rates",
        "adaptive_rates",
        "gauss_newton",
        "softmax",
        "zone",
        "initial_loss",
    )
    # of several arguments that must fit each other: their own tests give them wrong ones
    and not name.startswith(("learning_rates.noise_scale.", "learning_rates.adam."))
]


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_what_is_no_number_is_refused_in_every_place(name: str) -> None:
    line = TABLE[name]
    right = {argument: RIGHT[argument] for argument in inspect.signature(line.function).parameters}
    if ("from_logits" in name and "batch" in name) or name.endswith("batch_gammas"):
        right = {argument: [value] if argument in "pz" else value for argument, value in right.items()}
    line.function(**right)
    for argument in right:
        for wrong in (
            None,
            "x",
            1j,
            np.bool_(1),
            math.nan,
            -math.inf,
            {},
            np.array([0.5, 0.5], dtype=object),
        ):
            if isinstance(right[argument], bool) and isinstance(wrong, np.bool_):
                continue
            with pytest.raises(ValueError, match=rf"^{argument} must be"):
                line.function(**right | {argument: wrong})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: softmax.covariance(np.full(10**6, 1e-6)),
            r"p must be small enough for memory \(it needs about 21\.8 TiB",
        ),
        (
            lambda: gauss_newton.expected_eigenvalues([0.5, 0.5], dim=10**12, sigma_c=1, sigma_e=1),
            r"dim must be small enough for memory .* about 21\.8 TiB, the limit is 16 GiB\), got 1000000000000",
        ),
        (
            lambda: outliers.additive_wigner(np.ones((10**6, 1)), sigma=np.ones(10**6)),
            r"spike, sigma must be small enough for memory .* about 87\.3 TiB",
        ),
        (lambda: activations.resolve("relu", 10**12), r"layers must be at most 1000000, got 1000000000000"),
        (lambda: rmt.Semicircle(sigma=0.5).moment(10**9), r"k must be at most 1000000, got 1000000000"),
        (
            lambda: order_parameters.order_parameters(
                "relu", depth=10**9, weight_variance=2, bias_variance=0
            ),
            r"depth must be at most 100000, got 1000000000",
        ),
        (
            lambda: order_parameters.order_parameters(
                "relu", depth=3, weight_variance=2, bias_variance=0, digits=10**9
            ),
            r"digits must be at most 1000, got 1000000000",
        ),
        (
            lambda: order_parameters.order_parameters(
                "tanh", depth=2, weight_variance=1e300, bias_variance=0, digits=20
            ),
            r"digits must be fewer for the trapezoidal rule at variance 1\.0e\+300, got 20",
        ),
        (
            lambda: fisher.fluctuation_constants(
                "linear", depth=50_000, outputs=1, weight_variance=1, bias_variance=0
            ),
            r"depth must be small enough for memory .* needs about 373 GiB",
        ),
    ],
)
def test_absurd_sizes_are_refused_before_they_are_taken(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
