"""What is no probability vector, and logits that are none, are told."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from theory import softmax

Function = Callable[..., object]


@pytest.mark.parametrize("function", [softmax.covariance, softmax.eigenvalues, softmax.gamma])
@pytest.mark.parametrize(
    "bad", [[0.5, 0.6], [1.5, -0.5], [1.0], 1.0, [0.5, 0.5 + 2e-8], [[0.5, 0.5], [0.4, 0.4]]]
)
def test_refuses_what_is_no_probability_vector(function: Function, bad: object) -> None:
    with pytest.raises(ValueError, match="p must be a probability vector along its last axis"):
        function(bad)


@pytest.mark.parametrize("function", [softmax.covariance, softmax.eigenvalues, softmax.gamma])
def test_refuses_nan_and_infinity(function: Function) -> None:
    with pytest.raises(ValueError, match="p must be finite"):
        function([np.nan, 1.0])
    with pytest.raises(ValueError, match="p must be real numbers"):
        function(["half", "half"])


def test_gamma_refuses_one_hot() -> None:
    with pytest.raises(ValueError, match="p must be not one-hot, got"):
        softmax.gamma([[0.5, 0.5], [1.0, 0.0]])
    with pytest.raises(ValueError, match="p must be not one-hot in every member of the batch"):
        softmax.gamma([[0.0, 1.0], [1.0, 0.0]], average=True)


@pytest.mark.parametrize("p", [np.array([0.5, 0.5]), np.empty((0, 3))])
def test_average_refuses_what_is_no_batch(p: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"p must be a batch of shape \(..., N, K\)"):
        softmax.gamma(p, average=True)


@pytest.mark.parametrize("z", [[0.0, np.inf], [-np.inf, 0.0], [np.nan, 0.0]])
def test_logits_must_be_finite(z: list[float]) -> None:
    with pytest.raises(ValueError, match="z must be finite"):
        softmax.gamma_from_logits(z)


def test_logits_must_be_two_and_temperature_positive() -> None:
    with pytest.raises(ValueError, match="z must be at least two logits"):
        softmax.gamma_from_logits([1.0])
    with pytest.raises(ValueError, match="temperature must be positive and finite, got 0"):
        softmax.gamma_from_logits([1.0, 2.0], temperature=0.0)


def test_collapse_weights_must_be_non_negative_and_not_all_zero() -> None:
    with pytest.raises(ValueError, match="weights must be non-negative and finite"):
        softmax.collapse_limit([1.0, -1.0])
    with pytest.raises(ValueError, match="weights must be not all zero along the last axis"):
        softmax.collapse_limit([[1.0, 0.0], [0.0, 0.0]])


def test_a_switch_is_a_bool() -> None:
    with pytest.raises(ValueError, match="average must be True or False, got 'no'"):
        softmax.gamma([[0.5, 0.5]], average="no")


def test_temperatures_must_fit_the_logits() -> None:
    with pytest.raises(
        ValueError, match=r"z, temperature must be broadcastable to one shape, got \(2,\), \(3,\)"
    ):
        softmax.gamma_from_logits([[0.0, 1.0], [2.0, 3.0]], temperature=[1.0, 2.0, 3.0])


def test_enormous_entries_are_no_probabilities() -> None:
    with pytest.raises(ValueError, match="p must be a probability vector"):
        softmax.gamma([1e308, 1e308])
