"""The verdict on the Goldilocks zone, and networks of every other kind."""

from __future__ import annotations

import copy
import json
import math
import re
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn

from simulate.spectra import Estimate
from tests.simulate.models_and_data import dense_hessian
from tests.verify.practice.small_measurements import (
    K,
    N,
    no_constant,
    small_data,
    small_net,
    small_problem,
    within,
)
from verify.practice import measure as measuring
from verify.practice.loading import problem
from verify.practice.measure import StoppingRule, matrices, measure_problem, pages, zone


@pytest.fixture(autouse=True)
def _few_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where numbers are compared they come from `case`, which was measured before this."""
    monkeypatch.setattr(matrices, "DENSITY_STEPS", 4)
    monkeypatch.setattr(measuring, "VARIANCE_PROBES", 2)


# --- the verdict ----------------------------------------------------------------------------------------------------


FLOOR = math.sqrt(2 / 51)


@pytest.mark.parametrize(
    ("excess", "error", "verdict"),
    [
        (3.0, 0.1, "inside"),
        (5.1 * FLOOR, 0.0, "inside"),
        (4.9 * FLOOR, 0.0, "at the edge"),
        (2.1 * FLOOR, 0.0, "at the edge"),
        (1.9 * FLOOR, 0.0, "outside"),
        (0.2, 0.01, "outside"),
        (-3.0, 0.1, "outside"),
        (5 * FLOOR, 0.2, "at the edge or inside"),
        (5.5 * FLOOR, 0.08, "at the edge or inside"),
        (2 * FLOOR, 0.1, "outside or at the edge"),
        (3 * FLOOR, 1.0, "outside or at the edge or inside"),
    ],
)
def test_the_verdict_compares_with_the_noise_of_a_subspace(excess: float, error: float, verdict: str) -> None:
    full = excess * math.sqrt(51 / (50 - excess**2))  # the inverse of r sqrt(50 / (51 + r^2))

    made = zone.zone_of(Estimate(full, error), Estimate(4.0, 0.0), 0.5, None)

    assert made.verdict == verdict
    assert_allclose(made.excess.value, excess, rtol=1e-12)
    assert_allclose(made.floor, FLOOR, rtol=1e-12)


def test_the_error_of_the_projected_excess_follows_the_law() -> None:
    step = 1e-6
    values = [zone.zone_of(Estimate(r, 1.0), None, None, None).excess for r in (3.0, 3.0 + step)]

    assert_allclose(values[0].standard_error, (values[1].value - values[0].value) / step, rtol=1e-5)


@pytest.mark.parametrize(
    ("ratio", "softmax", "words"),
    [
        (None, None, "the Gauss-Newton matrix is zero"),
        (0.5, None, "few directions are curved, or the Gauss-Newton matrix too has negative curvature"),
        (8.0, zone.Softmax(confidence=0.12, entropy=0.99), "8 times: outputs are near uniform"),
        (8.0, zone.Softmax(confidence=0.99, entropy=0.01), "8 times: the softmax is saturated"),
        (8.0, zone.Softmax(confidence=0.6, entropy=0.5), "outweighs the Gauss-Newton matrix 8 times$"),
    ],
)
def test_the_reason_names_the_cause(ratio: float | None, softmax: zone.Softmax | None, words: str) -> None:
    assert re.search(words, zone.zone_of(Estimate(0.1, 0.0), None, ratio, softmax).reason)


@pytest.mark.parametrize(("scale", "cause"), [(0.03, "near uniform"), (60.0, "saturated")])
def test_small_and_large_weights_leave_the_zone(scale: float, cause: str) -> None:
    draw = torch.Generator().manual_seed(0)
    x, y = torch.randn(30, 10, generator=draw), torch.arange(30) % 5
    net = nn.Sequential(nn.Linear(10, 12, bias=False), nn.ReLU(), nn.Linear(12, 5, bias=False))
    for p in net.parameters():
        p.data = scale * torch.randn(p.shape, generator=draw) * p.shape[1] ** -0.5

    found = measure_problem(problem(net, (x, y), dtype="float64"), top=1).zone

    assert found is not None and found.verdict == "outside"
    assert cause in found.reason


# --- other problems -------------------------------------------------------------------------------------------------


def test_regression_has_no_softmax() -> None:
    x, y = small_data()
    found = measure_problem(problem(nn.Linear(5, 1), (x, y.double()), dtype="float64"), top=3)
    design = torch.cat([x, torch.ones(N, 1)], 1).numpy()

    assert found.classes is None
    assert found.zone is not None and found.zone.softmax is None
    values = np.linalg.eigvalsh(2 * design.T @ design / N)[::-1]
    assert_allclose([each.value for each in found.hessian.top], values[:3], rtol=1e-3)


def test_all_eigenvalues_of_a_tiny_model() -> None:
    x = torch.tensor([[3.0, 0.0], [0.0, 1.0]])
    found = measure_problem(problem(nn.Linear(2, 1, bias=False), (x, x[:, :1])), top=10)

    assert_allclose([each.value for each in found.hessian.top], [9.0, 1.0], rtol=1e-5)
    assert found.hessian.lowest is not None
    assert_allclose(found.hessian.lowest.value, 1.0, rtol=1e-5)


class _Negative(nn.Module):
    def forward(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return -nn.functional.mse_loss(outputs, targets)


@pytest.mark.parametrize("loss", [nn.L1Loss(), _Negative()])
def test_without_positive_curvature_there_is_no_largest_rate(loss: nn.Module) -> None:
    x, _ = small_data()
    found = measure_problem(problem(nn.Linear(5, 3), (x, x[:, :3]), loss=loss), top=2)

    assert found.largest_rate is None
    assert (found.hessian.excess is None) == isinstance(loss, nn.L1Loss)
    json.loads(pages.measurement_json(found), parse_constant=no_constant)
    assert "Goldilocks zone" in pages.measurement_text(found)


def test_a_page_without_curvature_and_with_a_name_that_is_code() -> None:
    x, _ = small_data()
    named = problem(nn.Linear(5, 3), (x, x[:, :3]), loss=nn.L1Loss(), name="<script>alert(1)</script>")

    page = pages.measurement_page(measure_problem(named, top=1))

    assert "The Hessian is zero" in page and "Curvature of &lt;script&gt;" in page
    assert "<script" not in page


class _Last(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.unflatten(1, (3, 2))


@pytest.mark.parametrize("kind", ["positions", "weights", "sum"])
def test_noise_is_on_the_scale_of_the_hessian_whatever_the_loss_divides_by(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The mean of the H_i is H: of a mean over positions, of weighted classes and of a sum."""
    monkeypatch.setattr(measuring, "VARIANCE_PROBES", 20)
    x, y = small_data()
    weight = torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64)
    losses = {"weights": {"weight": weight}, "sum": {"reduction": "sum"}}
    net, targets = nn.Sequential(nn.Linear(5, 6), _Last()), torch.stack([y, 2 - y], 1)
    if kind != "positions":
        net, targets = nn.Linear(5, 3), y
    given = problem(net, (x, targets), loss=nn.CrossEntropyLoss(**losses.get(kind, {})), dtype="float64")
    matrix = dense_hessian(given.objective).numpy()
    own = np.stack([dense_hessian(given.batch_objective([i])).numpy() for i in range(N)])
    shares = {"positions": np.ones(N), "weights": N * weight[y].numpy() / float(weight[y].sum())}
    samples = own * shares.get(kind, N * np.ones(N))[:, None, None]
    assert_allclose(samples.mean(0), matrix, atol=1e-12 * np.abs(matrix).max())

    found = measure_problem(given, top=1)

    noise = found.noise
    assert noise is not None and found.zone is not None and found.zone.softmax is not None
    p = given.model(given.inputs).softmax(1)
    assert_allclose(found.zone.softmax.confidence, p.amax(1).mean().item(), rtol=1e-12)
    first, off = np.linalg.eigh(matrix)[1][:, -1], samples - matrix
    along = np.einsum("i,nij,j->n", first, samples, first)
    assert_allclose(noise.along_top.value, along.var(ddof=1), rtol=1e-4)
    assert_allclose(noise.row.value, ((off @ first) ** 2).sum() / (N - 1), rtol=1e-4)
    assert_allclose([noise.edges[0], noise.edges[-1]], [along.min(), along.max()], rtol=1e-4)
    within(noise.total, (off**2).sum() / (N - 1))
    assert_allclose(noise.element.value, math.sqrt(noise.total.value) / given.objective.dim, rtol=1e-12)


class _One(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([0.7]))

    def forward(self, x: Tensor) -> Tensor:
        return (self.weight * x).tanh()


@pytest.mark.parametrize("net", [_One(), nn.Sequential(nn.Linear(1, 2), nn.Tanh(), nn.Linear(2, 1))])
def test_few_parameters_have_exact_traces_and_no_theory_of_balanced_terms(net: nn.Module) -> None:
    x = torch.linspace(-2, 2, 7, dtype=torch.float64)[:, None]
    given = problem(net, (x, x.cos()), dtype="float64")

    found = measure_problem(given)

    assert found.hessian.trace.kind == found.gauss_newton.trace.kind == "exact"
    assert_allclose(found.hessian.trace.value, float(dense_hessian(given.objective).trace()), rtol=1e-9)
    assert found.zone is not None and found.zone.predicted is None


def test_one_sample_has_no_noise() -> None:
    found = measure_problem(problem(nn.Linear(5, 3), (torch.ones(1, 5), torch.tensor([1]))), top=1)

    assert found.noise is None
    assert "Hessian variance" not in pages.measurement_text(found)


def test_in_training_mode_samples_see_each_other() -> None:
    net = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, K)).double()
    given = problem(net, small_data(), dtype="float64", training=True)
    dense = dense_hessian(given.objective).numpy()

    found = measure_problem(given, top=2, stopping=StoppingRule(budget=0))

    assert found.noise is None
    assert found.gauss_newton.trace.kind == "standard error"
    within(found.hessian.trace, float(np.trace(dense)))
    assert abs(found.hessian.top[0].value - np.linalg.eigvalsh(dense)[-1]) <= found.hessian.top[0].bound


def test_measuring_changes_nothing_of_the_user() -> None:
    net = small_net(nn.Tanh())
    before, state = copy.deepcopy(net.state_dict()), torch.get_rng_state()

    first, again = (measure_problem(problem(net, small_data(), dtype="float64"), top=2) for _ in range(2))

    assert first.hessian == again.hessian and first.noise == again.noise
    assert torch.equal(state, torch.get_rng_state())
    assert net.training and all(p.grad is None for p in net.parameters())
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())


def test_progress_is_told_and_never_goes_back() -> None:
    told: list[tuple[str, float]] = []

    measure_problem(small_problem(), top=1, tell=lambda what, share: told.append((what, share)))

    shares = [share for _, share in told]
    assert shares == sorted(shares) and shares[0] >= 0 and shares[-1] <= 1
    assert [*dict(told)] == ["traces", "Hessian", "Gauss-Newton matrix", "H-term", "loss along eigenvectors",
                             "random subspace", "noise of the samples"]  # fmt: skip


def test_what_torch_refuses_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise NotImplementedError("the derivative of 'f' is not implemented")

    given = small_problem()
    monkeypatch.setattr(matrices, "extremes", refuse)

    with pytest.raises(
        ValueError, match="must have second derivatives, got NotImplementedError: the derivative of"
    ):
        measure_problem(given, stopping=StoppingRule(budget=0))


@pytest.mark.parametrize("top", [0, 1.5, True])
def test_top_is_a_count(top: Any) -> None:
    with pytest.raises(ValueError, match=f"top must be a positive integer, got {top!r}"):
        measure_problem(small_problem(), top=top)


def test_memory_that_runs_out_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise MemoryError

    given = small_problem()
    monkeypatch.setattr(matrices, "extremes", full)

    with pytest.raises(ValueError, match="memory must suffice, got none left; use a smaller batch size"):
        measure_problem(given, stopping=StoppingRule(budget=0))
