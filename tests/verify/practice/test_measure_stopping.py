"""`losscurv measure` goes on until estimates are decided, takes a matrix whole where that is cheaper, or says no."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn

from simulate.lanczos import Operator, as_operator
from simulate.spectra import Estimate
from tests.simulate.models_and_data import dense_hessian
from tests.verify.practice.small_measurements import SIGMAS, small_data, small_net, small_problem
from verify.practice.loading import problem
from verify.practice.measure import StoppingRule, matrices, measure_problem, pages, zone
from verify.practice.measure.matrices import MeasuredMatrix, Wishes, found_matrix
from verify.practice.measure.stopping import GrowingTrace


def test_a_small_smooth_network_is_measured_whole() -> None:
    given = small_problem(nn.Tanh())
    found, values = measure_problem(given, top=3), np.linalg.eigvalsh(dense_hessian(given.objective))[::-1]

    for each, value in zip(found.hessian.top, values, strict=False):
        assert abs(each.value - value) <= each.bound + 1e-13
    for number, value in (
        (found.hessian.trace, values.sum()),
        (found.hessian.frobenius, np.linalg.norm(values)),
        (found.hessian.excess, values.sum() / np.linalg.norm(values)),
    ):
        assert number.kind == "exact"
        assert_allclose(number.value, value, rtol=1e-10)
    assert_allclose(found.hessian.lowest.value, values[-1], rtol=1e-10)
    assert_allclose(np.trapezoid(found.hessian.density.value, found.hessian.density.x), 1.0, rtol=1e-3)
    assert found.h_term_frobenius.kind == "exact" and not found.short
    assert found.products == 3 * given.objective.dim + 2 * 20  # three matrices, and the trace begun before


def test_the_bound_of_a_whole_matrix_covers_its_rounding() -> None:
    data = small_data()
    found = [
        measure_problem(problem(small_net(nn.Tanh()), data, dtype=kind), top=3).hessian
        for kind in ("float64", "float32")
    ]

    for exact, rounded in zip(found[0].top, found[1].top, strict=True):
        assert abs(exact.value - rounded.value) <= rounded.bound
        assert rounded.bound < 1e-4 * abs(found[0].top[0].value)


# --- one matrix of known eigenvalues


def balanced(dim: int = 3000) -> np.ndarray:
    """Eigenvalues of which probes see the trace badly."""
    return np.concatenate([np.full(dim // 2, 1.05), np.full(dim - dim // 2, -1.0)])


def operator_of(values: np.ndarray) -> Operator:
    """Return an operator with these eigenvalues in a random basis with fast products, made of reflections."""
    rng = np.random.default_rng(5)
    v = rng.standard_normal(len(values))
    v /= np.linalg.norm(v)

    def product(rows: Any) -> Any:
        turned = rows.numpy() - 2 * np.outer(rows.numpy() @ v, v)
        scaled = turned * values
        return rows.new_tensor(scaled - 2 * np.outer(scaled @ v, v))

    return replace(as_operator(np.eye(1)), product=product, dim=len(values))


def judged(
    values: np.ndarray,
    stopping: StoppingRule,
    *,
    placed: bool = False,
    expected: list[float] | None = None,
) -> tuple[MeasuredMatrix, int]:
    """With how many products were spent; all in all so many were expected, each time that it was asked."""
    spent, noted = [0], [] if expected is None else expected
    inner = operator_of(values)

    def product(rows: Any) -> Any:
        spent[0] += len(rows)
        return inner.product(rows)

    operator = replace(inner, product=product)
    rng = np.random.default_rng(1)
    trace = GrowingTrace(0.0, operator, rng)
    trace.grow(stopping.probes)
    asked = Wishes(count=2, stopping=stopping, lowest=True, placed=placed)
    found = found_matrix(
        operator, rng, trace, asked, lambda: spent[0], lambda more: noted.append(spent[0] + more)
    )
    return found, spent[0]


@pytest.mark.slow
def test_probes_are_added_until_the_errors_are_small_enough() -> None:
    values = balanced()
    found, _ = judged(values, StoppingRule(tolerance=0.02, budget=100_000))
    trace, norm = found.matrix.trace, found.matrix.frobenius
    scale = max(abs(trace.value), norm.value)

    assert trace.kind == norm.kind == "standard error" and not found.short
    assert 0 < trace.error <= 0.02 * scale and norm.error <= 0.02 * norm.value
    assert abs(trace.value - values.sum()) <= SIGMAS * trace.error
    assert abs(norm.value - np.linalg.norm(values)) <= SIGMAS * norm.error


def test_what_the_budget_leaves_open_is_said() -> None:
    found, spent = judged(balanced(), StoppingRule(tolerance=1e-3, budget=500))

    for wrong in ({"probes": 1}, {"budget": -1}, {"tolerance": float("nan")}):
        with pytest.raises(ValueError, match=f"^{next(iter(wrong))} must be"):
            StoppingRule(**wrong)
    assert found.short == "errors of its trace or norm"
    assert spent < 500 + matrices.cost(2, 20)


@pytest.mark.parametrize("budget", [900, 100_000])
def test_as_many_products_are_expected_as_are_spent(budget: int) -> None:
    """By a guess of errors from few probes; never more than the budget and the density after it."""
    expected = []
    _, spent = judged(balanced(), StoppingRule(tolerance=0.05, budget=budget), expected=expected)
    assert spent / 2 < expected[0] < 2 * spent and 0.8 * spent < expected[-1] < 1.25 * spent
    assert max(expected) <= budget + matrices.DENSITY_STEPS * matrices.DENSITY_PROBES


def test_a_matrix_is_taken_whole_where_more_probes_cost_more() -> None:
    values = balanced(600)
    found, spent = judged(values, StoppingRule(tolerance=1e-3, budget=5000))

    assert found.matrix.stopped == "all eigenvalues" and found.matrix.trace.kind == "exact"
    assert_allclose(found.matrix.trace.value, values.sum(), rtol=1e-9)
    assert spent < 600 + 40 + 400


def test_an_excess_near_an_edge_of_the_zone_gets_more_probes() -> None:
    values = balanced()  # an excess of 1.3: inside begins at 1
    plain, few = judged(values, StoppingRule(tolerance=1.0, budget=4000))
    placed, more = judged(values, StoppingRule(tolerance=1.0, budget=4000), placed=True)
    excess = placed.matrix.excess

    assert zone.off_place(Estimate(plain.matrix.excess.value, plain.matrix.excess.error)) > 1
    assert more > few
    assert (zone.off_place(Estimate(excess.value, excess.error)) <= 1) != bool(placed.short)


@pytest.mark.slow
def test_the_budget_bounds_the_whole_measurement() -> None:
    """Eigenvalues, densities, H-term and layers too; with more of it less is left open."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(40, 45), nn.Tanh(), nn.Linear(45, 10))
    given = problem(net, (torch.randn(20, 40), torch.arange(20) % 10))
    assert given.objective.dim > matrices.LARGEST_WHOLE  # never taken whole
    found = [
        measure_problem(
            given, top=2, layers=True, stopping=StoppingRule(tolerance=1e-3, probes=5, budget=budget)
        )
        for budget in (900, 1500)
    ]
    assert 700 < found[0].products <= 900 < 1200 < found[1].products <= 1500
    assert found[1].hessian.trace.error < found[0].hessian.trace.error
    assert "Gauss-Newton matrix: errors of its trace or norm" in found[0].short
    text = " ".join(pages.measurement_text(found[0]).split())
    assert "budget too small" in text and "raise --budget" in text
