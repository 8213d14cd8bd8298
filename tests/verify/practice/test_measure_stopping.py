"""`losscurv measure` keeps its budget of passes, says what that leaves open, and its errors hold."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from numpy.random import default_rng
from numpy.testing import assert_allclose
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from simulate.lanczos import Operator, as_operator
from simulate.spectra import Estimate
from tests.refusals import refusal
from tests.simulate.models_and_data import dense_hessian
from tests.verify.practice.small_measurements import SIGMAS, small_data, small_net, small_problem
from verify.practice.loading import Problem, problem
from verify.practice.measure import matrices, measure_problem, pages, zone
from verify.practice.measure.matrices import Search, extend
from verify.practice.measure.measurement import Matrix

Floats = np.ndarray[Any, np.dtype[np.float64]]

# --- the budget ---------------------------------------------------------------------------------------------------


class CountedFlops(TorchDispatchMode):
    """Counts floating point operations of all matrix products and convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.flops = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        count = flop_registry.get(func._overloadpacket)
        if count is not None:
            # torch counts derivatives by the weights of a grouped convolution as if it had one group
            groups = args[9] if func is torch.ops.aten.convolution_backward.default else 1
            self.flops += count(*args, **(kwargs or {}), out_val=out) // groups
        return out


class Attention(nn.Module):
    """Positions that see each other: single samples do not come out of the layers."""

    def __init__(self) -> None:
        super().__init__()
        self.mix, self.out = nn.Linear(24, 72), nn.Linear(24, 3)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.mix(x.reshape(len(x), 8, 24)).chunk(3, dim=-1)
        return self.out(((q @ k.mT).softmax(-1) @ v).mean(1))


def _problem(kind: str) -> Problem:
    draw = torch.Generator().manual_seed(0)
    x, y = torch.randn(64, 192, generator=draw), torch.arange(64) % 3
    torch.manual_seed(1)
    nets = {
        "smooth": lambda: nn.Sequential(nn.Linear(192, 20), nn.Tanh(), nn.Linear(20, 3)),
        "convolutions": lambda: nn.Sequential(
            nn.Unflatten(1, (3, 8, 8)), nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 3)
        ),
        "attention": Attention,
    }
    return problem(nets[kind](), (x, y))


def _flops_of_a_pass(given: Problem) -> int:
    with CountedFlops() as counted:
        given.objective.gradient()
    return counted.flops


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("smooth", {"budget": 80}),
        ("smooth", {"budget": 300, "layers": True}),
        *((kind, {}) for kind in ("smooth", "convolutions", "attention")),
    ],
)
def test_no_more_passes_are_made_than_counted_and_allowed(kind: str, options: dict[str, Any]) -> None:
    """Counted apart, by the operations of all products of tensors."""
    given = _problem(kind)
    with CountedFlops() as counted:
        found = measure_problem(given, top=3, **options)
    made = counted.flops / _flops_of_a_pass(_problem(kind))

    assert made <= found.passes
    if "budget" in options:
        assert found.passes <= options["budget"]
    assert made > 0.2 * found.passes  # and it is no budget of something else


def test_a_budget_that_allows_nothing_is_refused() -> None:
    given = _problem("smooth")
    with refusal(r"^budget must be at least 76 passes to measure this, got 75"):
        measure_problem(given, top=7, budget=75)
    assert measure_problem(given, top=7, budget=76).passes <= 76
    for wrong in (-1, math.nan, True, "9"):
        with refusal(r"^budget must be at least"):
            measure_problem(given, budget=wrong)  # type: ignore[arg-type]
    with refusal(r"^tolerance must be a positive number, got nan"):
        measure_problem(given, tolerance=math.nan)


def test_a_larger_budget_leaves_less_open_and_what_is_open_is_named() -> None:
    given = _problem("smooth")
    few, more = (measure_problem(given, top=9, tolerance=1e-3, budget=budget) for budget in (85, 700))

    assert more.hessian.trace.error < few.hessian.trace.error / 4
    assert "Hessian: eigenvalues" in few.short and "trace, Frobenius norm" in few.short
    for name in ("noise of the samples", "loss along the first eigenvector"):
        assert name in few.short and name not in more.short
    assert few.noise is None and not few.lines and more.noise is not None and len(more.lines) == 1
    assert "left open within the budget" in pages.measurement_text(few)
    assert few.short in pages.measurement_page(few)


def test_a_matrix_whose_rows_the_budget_allows_is_measured_whole() -> None:
    given = small_problem(nn.Tanh())
    found, values = (
        measure_problem(given, top=3, budget=400),
        np.linalg.eigvalsh(dense_hessian(given.objective))[::-1],
    )

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
    assert found.products == 2 * given.objective.dim and found.hessian.ceiling >= values[0]


def test_the_bound_of_a_whole_matrix_covers_its_rounding() -> None:
    data = small_data()
    found = [
        measure_problem(problem(small_net(nn.Tanh()), data, dtype=kind), top=3, budget=400).hessian
        for kind in ("float64", "float32")
    ]

    for exact, rounded in zip(found[0].top, found[1].top, strict=True):
        assert abs(exact.value - rounded.value) <= rounded.bound
        assert rounded.bound < 1e-4 * abs(found[0].top[0].value)


# --- one matrix of known eigenvalues ------------------------------------------------------------------------------


def operator_of(values: Floats) -> Operator:
    """Return an operator with these eigenvalues in a random basis, made of a reflection."""
    v = default_rng(5).standard_normal(len(values))
    v /= np.linalg.norm(v)

    def product(rows: Tensor) -> Tensor:
        turned = rows.numpy() - 2 * np.outer(rows.numpy() @ v, v)
        scaled = turned * values
        return rows.new_tensor(scaled - 2 * np.outer(scaled @ v, v))

    return Operator(product=product, dim=len(values))


def measured(
    values: Floats, seed: int = 0, *, count: int = 3, steps: float = 0.0, probes: int = 6, every: bool = False
) -> Matrix:
    search = Search(operator_of(values), default_rng(seed), count, lowest=True)
    extend(search, steps, lambda search: search.all_converged if every else search.finished)
    search.freeze()
    search.probe(search.random_vectors(default_rng([seed, 1]), probes), density=30 * every)
    return search.result(search.off(0.05, placed=False)).matrix


SPECTRA = {
    "outliers": np.r_[9.0, 4.0, 3.9, np.linspace(-1, 1, 197)],
    "decay": 0.9 ** np.arange(200.0),
    "balanced": np.r_[np.full(100, 1.05), np.full(100, -1.0)],
    "low rank": np.r_[5.0, 5.0, 2.0, np.zeros(197)],
}


each_values = pytest.mark.parametrize("values", SPECTRA.values(), ids=SPECTRA)


@each_values
def test_statements_on_eigenvalues_hold(values: Floats) -> None:
    """An eigenvalue lies within each bound, no value is above the one of its rank, and none above the ceiling."""
    for seed in range(20):
        found = measured(values, seed, steps=seed)
        descending = np.sort(values)[::-1]
        for each, of_rank in zip(found.top, descending, strict=False):
            assert np.abs(values - each.value).min() <= each.bound + 1e-12
            assert each.value <= of_rank + 1e-9
            assert each.bound <= matrices.TOLERANCE * 1.001 * np.abs(values).max() or not each.converged
        assert found.ceiling >= descending[0]
        assert np.abs(values - found.lowest.value).min() <= found.lowest.bound + 1e-12
    assert found.ceiling < 1.6 * descending[0]


@each_values
def test_traces_norms_and_excess_have_the_scatter_that_their_errors_say(values: Floats) -> None:
    truth = {"trace": values.sum(), "frobenius": np.linalg.norm(values)}
    truth["excess"] = truth["trace"] / truth["frobenius"]
    found = [measured(values, seed, probes=12) for seed in range(100)]
    for name, expected in truth.items():
        off = np.array([getattr(each, name).value - expected for each in found])
        error = np.array([getattr(each, name).error for each in found])
        size = math.sqrt((error**2).mean())
        assert abs(off.mean()) <= SIGMAS * size / 10 + 1e-9 * abs(expected)
        # errors allow for the few large eigenvalues that probes may miss, so they are rather too large
        assert off.std() <= 1.2 * size + 1e-9 * abs(expected)
        assert size <= 4 * off.std() + 0.02 * np.linalg.norm(values)


@each_values
def test_densities_have_the_distribution_of_the_eigenvalues(values: Floats) -> None:
    seen = measured(values, steps=20, every=True).density
    x, value = np.array(seen.x), np.array(seen.value)
    exact = (
        np.exp(-(((x[:, None] - values) / seen.width) ** 2) / 2).mean(1) / math.sqrt(2 * math.pi) / seen.width
    )
    off = np.abs(np.cumsum(value - exact) * (x[1] - x[0])).max()
    # a matrix of rank 2 lies between the known vectors and the rest
    assert off < 2 / len(values) + 0.06


def test_copies_of_an_eigenvalue_are_found_by_further_starts() -> None:
    found = measured(np.r_[np.full(4, 2.0), np.ones(30)], count=6, steps=50, every=True)
    assert_allclose([each.value for each in found.top], [2, 2, 2, 2, 1, 1], atol=1e-9)
    assert all(each.converged for each in found.top) and found.trace.value == pytest.approx(38)


def test_a_chain_that_restarts_for_lack_of_room_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    values = SPECTRA["decay"]
    whole = measured(values, steps=60, every=True)
    monkeypatch.setattr(matrices, "LARGEST_WHOLE", 10)
    monkeypatch.setattr(matrices, "_VECTORS", 10)
    short = measured(values, steps=300, every=True)
    for matrix in (whole, short):
        assert_allclose([each.value for each in matrix.top], values[:3], atol=1e-3)
        assert abs(matrix.trace.value - values.sum()) <= SIGMAS * matrix.trace.error
        assert abs(matrix.frobenius.value - np.linalg.norm(values)) <= SIGMAS * matrix.frobenius.error


def test_a_zero_matrix_has_no_excess() -> None:
    found = measured(np.zeros(50))
    assert found.excess is None and found.density is None and found.trace.value == found.frobenius.value == 0
    assert [each.value for each in found.top] == [0.0] * 3 and found.ceiling >= 0


def test_an_excess_near_an_edge_of_the_zone_gets_more_probes() -> None:
    given = small_problem(nn.Tanh())
    search = Search(as_operator(np.diag(SPECTRA["balanced"])), default_rng(0), 1, lowest=True)
    extend(search, 5)
    search.freeze()
    search.probe(search.random_vectors(default_rng(1), 4))
    excess, off = search.excess, search.off(10.0, placed=True)
    assert excess is not None
    assert off["place in the Goldilocks zone"] == zone.off_place(Estimate(excess.value, excess.error))
    assert max(off["trace"], off["Frobenius norm"]) < 1
    found = measure_problem(given, top=1, tolerance=10.0)
    decided = " or " not in found.zone.verdict
    assert decided != ("place in the Goldilocks zone" in found.short)


@pytest.mark.parametrize("options", [{"budget": 200}, {}, {"layers": True}])
def test_progress_reaches_the_end_and_never_goes_back(options: dict[str, Any]) -> None:
    shares = []
    measure_problem(_problem("smooth"), top=2, tell=lambda _, share: shares.append(share), **options)
    assert shares == sorted(shares) and 0.7 < shares[-1] <= 1
