"""Hostile arguments: masked values, zeros with a sign, numbers beyond every range, threads."""

import sys
import threading
from typing import Any

import mpmath
import numpy as np
import pytest

from tests.refusals import refusal
from tests.theory.calls import LAW
from theory import (
    _checks,
    adaptive_rates,
    batch_hessian,
    finite_size,
    fisher,
    learning_rates,
    own_direction,
    rmt,
)
from theory.activations.gaussian import KinkedQuadrature
from theory.order_parameters import order_parameters

SIZE = {"dim": 5, "batch_size": 4, "dataset_size": 100}
MASKED = np.ma.array([1.0, 5.0, 2.0], mask=[False, True, False])
ENDLESS = [1.0]
ENDLESS += [ENDLESS, ENDLESS]
TOO_LARGE = r"real numbers, got .*; floats end at 1\.8e308"


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        *(
            (x, "without masked")
            for x in (MASKED, [MASKED, MASKED], (1.0, np.ma.masked), np.ma.masked, [[MASKED]])
        ),
        *((x, "real numbers") for x in ([True, 2.0], [[1.0, np.True_]], (2, False), ENDLESS)),
        *((x, TOO_LARGE) for x in (10**400, -(10**5000), [1.0, 10**400], [1, 10**400])),
    ],
    ids=range(13),
)
def test_what_looks_like_numbers_is_refused(value: Any, rule: str) -> None:
    with refusal(f"sharpness must be {rule}"):
        learning_rates.stability_limit(value)


def test_masked_indices_are_refused() -> None:
    with refusal("batches must be without masked values"):
        own_direction.batch_eigenvalues(LAW, np.ma.array([[0, 1]], mask=[[False, True]]))


def test_numbers_in_other_clothes_have_their_values() -> None:
    assert learning_rates.stability_limit(np.ma.array([4.0, 2.0])).tolist() == [0.5, 1.0]
    assert learning_rates.stability_limit([2**100, 0.5]).tolist() == [2.0**-99, 4.0]


def test_parameters_are_counted_where_no_float_holds_their_number() -> None:
    count = fisher.parameter_count(depth=1, width=2**63 - 1, outputs=1, width_ratios=[1e308])
    assert count == (2**63 - 1) * int(1e308) + 1


def test_a_zero_counts_as_one_whatever_its_sign() -> None:
    for zero in (-0.0, np.float32(-0.0), [-0.0]):
        ratio = adaptive_rates.outlier_over_edge(2.0, sigma=zero, **SIZE)
        assert np.all(ratio == np.inf)


def test_digits_in_threads_are_those_of_one_thread() -> None:
    def spelled(digits: int) -> list[str]:
        found = order_parameters(
            "erf", depth=4, weight_variance=1.7, bias_variance=0.1, input_overlap=0.3, digits=digits
        )
        return [mpmath.nstr(x, digits) for values in found for x in values]

    alone = {digits: spelled(digits) for digits in (20, 45, 90)}
    found = []
    threads = [
        threading.Thread(
            target=lambda d: found.extend(spelled(d) == alone[d] for _ in range(8)), args=(digits,)
        )
        for digits in (*alone, *alone)
    ]
    interval = sys.getswitchinterval()
    try:
        sys.setswitchinterval(1e-6)
        for thread in threads:
            thread.start()
    finally:
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)
    assert found == [True] * 48


def test_the_precision_of_the_caller_is_left_alone() -> None:
    with mpmath.workdps(7):
        found = order_parameters("erf", depth=2, weight_variance=1, bias_variance=0, digits=30)
    with mpmath.workdps(35):
        assert abs(found.q_hat_t[1] - 2 / mpmath.pi * mpmath.asin(mpmath.mpf(2) / 3)) < mpmath.mpf(10) ** -29
        assert isinstance(found.q_hat_t[1], mpmath.mpf)


@pytest.mark.parametrize(("name", "digits"), [("tanh", 1000), ("gelu", 300)])
def test_digits_that_take_minutes_are_refused(name: str, digits: int) -> None:
    with refusal(rf"digits must be .*, got {digits}"):
        order_parameters(name, depth=3, weight_variance=2, bias_variance=0, digits=digits)


def test_checked_numbers_are_arrays_even_alone() -> None:
    """The square of a scalar of numpy is rounded otherwise than that of an array."""
    for alone in (1.5, -0.0, 3, np.float32(2)):
        assert isinstance(_checks.finite("x", alone), np.ndarray)


def test_without_noise_an_outlier_does_not_scatter_however_large_it_is() -> None:
    assert finite_size.information_plus_noise_sd(1.7e308, dim=1.7e308, samples=7, variance=0) == 0


def test_a_law_of_hardly_any_atom_has_no_density_at_infinity() -> None:
    law = rmt.CompoundFreePoisson(rate=1 - 2**-53, jumps=(1.0, 16.721072021071535), weights=(0.75, 0.25))
    assert law.pdf([np.inf, -np.inf]).tolist() == [0.0, 0.0] and law.cdf(np.inf) == 1


def test_outputs_whose_inverse_variance_vanishes_are_refused() -> None:
    with refusal("preactivations must be small enough for 1/variance not to vanish"):
        fisher.realised_etas([[1e200, 2e200, -1e200]])


def test_an_edge_that_overflows_is_not_that_of_an_eigenvalue() -> None:
    with refusal(r"^sigma, dim, batch_size must be such that the result does not overflow"):
        adaptive_rates.adaptive_limit(0.7, sigma=1.7e308, **SIZE)


def test_a_gap_of_minus_zero_is_no_gap() -> None:
    bent = KinkedQuadrature("bent", np.abs, np.sign, np.zeros_like, kinks=(0.0, 0.3))
    for value in (bent.value(0.0041, 0.0041, -0.0), bent.value(0.0041, 0.0041, 0.0)):
        assert value.moment == pytest.approx(0.0041, rel=1e-12)


def test_without_noise_the_smallest_batch_has_the_eigenvalue_of_all() -> None:
    size = {"dim": 1, "batch_size": 5e-324, "dataset_size": 100.0}
    assert batch_hessian.batch_ggn_factor_eigenvalue(1.5, variance=0, **size) == 1.5
