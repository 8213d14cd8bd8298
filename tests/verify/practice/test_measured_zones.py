"""The verdict on the Goldilocks zone, and networks of every other kind."""

import json
import math
import random
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn

from simulate.spectra import Estimate
from tests.refusals import refusal
from tests.simulate.models_and_data import dense_hessian
from tests.verify.practice.small_measurements import (
    K,
    N,
    no_constant,
    small_data,
    small_problem,
    within,
)
from verify.practice import measure as measuring
from verify.practice.loading import problem
from verify.practice.measure import measure_problem, pages, zone
from verify.practice.measure.measurement import Eigenvalue

pytestmark = pytest.mark.usefixtures("few_probes")

# --- the verdict ----------------------------------------------------------------------------------------------------


FLOOR = math.sqrt(2 / 51)


@pytest.mark.parametrize(
    ("excess", "error", "verdict"),
    [
        (5.1 * FLOOR, 0.0, "inside"),
        (4.9 * FLOOR, 0.0, "at the edge"),
        (2.1 * FLOOR, 0.0, "at the edge"),
        (1.9 * FLOOR, 0.0, "outside"),
        (-3.0, 0.1, "outside"),
        (5 * FLOOR, 0.2, "at the edge or inside"),
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
    assert f" {excess / FLOOR:.1f} times " in made.reason


def test_the_error_of_the_projected_excess_follows_the_law() -> None:
    step = 1e-6
    values = [zone.zone_of(Estimate(r, 1.0), None, None, None).excess for r in (3.0, 3.0 + step)]

    assert_allclose(values[0].standard_error, (values[1].value - values[0].value) / step, rtol=1e-5)


@pytest.mark.parametrize(("scale", "cause"), [(0.03, "near uniform"), (60.0, "saturated")])
def test_small_and_large_weights_leave_the_zone(scale: float, cause: str) -> None:
    draw = torch.Generator().manual_seed(0)
    x, y = torch.randn(30, 10, generator=draw), torch.arange(30) % 5
    net = nn.Sequential(nn.Linear(10, 12, bias=False), nn.ReLU(), nn.Linear(12, 5, bias=False))
    for p in net.parameters():
        p.data = scale * torch.randn(p.shape, generator=draw) * p.shape[1] ** -0.5

    found = measure_problem(problem(net, (x, y), dtype="float64"), top=1).zone

    assert found.verdict == "outside"
    assert cause in found.reason


# --- other problems -------------------------------------------------------------------------------------------------


class _Negative(nn.Module):
    def forward(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return -nn.functional.mse_loss(outputs, targets)


@pytest.mark.parametrize("bound", [0.0, 1e-6, 0.1, 3.9])
def test_the_bound_of_the_largest_rate_holds_where_it_is_large(bound: float) -> None:
    rate = measuring._rate(Eigenvalue(value=4.0, bound=bound, converged=False))
    assert rate is not None and math.isclose(rate.value + rate.error, 2 / (4.0 - bound))
    assert measuring._rate(Eigenvalue(value=bound / 2, bound=bound, converged=True)) is None


@pytest.mark.parametrize("loss", [nn.L1Loss(), _Negative()])
def test_without_positive_curvature_there_is_no_largest_rate(loss: nn.Module) -> None:
    x, _ = small_data()
    named = problem(nn.Linear(5, 3), (x, x[:, :3]), loss=loss, name="<script>alert(1)</script>")
    found = measure_problem(named, top=2)

    assert found.largest_rate is None
    assert (found.hessian.excess is None) == isinstance(loss, nn.L1Loss)
    json.loads(pages.measurement_json(found), parse_constant=no_constant)
    page = pages.measurement_page(found)
    assert "Curvature of &lt;script&gt;" in page and "<script" not in page
    assert ("The Hessian is zero" in page) == isinstance(loss, nn.L1Loss)


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
    net, targets, loss, shares = {
        "positions": (nn.Sequential(nn.Linear(5, 6), _Last()), torch.stack([y, 2 - y], 1), {}, torch.ones(N)),
        "weights": (nn.Linear(5, 3), y, {"weight": weight}, N * weight[y] / weight[y].sum()),
        "sum": (nn.Linear(5, 3), y, {"reduction": "sum"}, N * torch.ones(N)),
    }[kind]
    given = problem(net, (x, targets), loss=nn.CrossEntropyLoss(**loss), dtype="float64")
    matrix = dense_hessian(given.objective).numpy()
    own = np.stack([dense_hessian(given.batch_objective([i])).numpy() for i in range(N)])
    samples = own * shares.numpy()[:, None, None]
    assert_allclose(samples.mean(0), matrix, atol=1e-12 * np.abs(matrix).max())

    found = measure_problem(given, top=1, budget=600)

    noise = found.noise
    assert noise
    first, off = np.linalg.eigh(matrix)[1][:, -1], samples - matrix
    along = np.einsum("i,nij,j->n", first, samples, first)
    assert_allclose(noise.along_top.value, along.var(ddof=1), rtol=1e-4)
    within(noise.total, (off**2).sum() / (N - 1))


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
    assert found.zone.predicted is None


def test_in_training_mode_samples_see_each_other() -> None:
    net = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, K)).double()
    given = problem(net, small_data(), dtype="float64", training=True)
    dense = dense_hessian(given.objective).numpy()

    found = measure_problem(given, top=2)

    assert found.noise is None
    assert found.gauss_newton.trace.kind == "standard error"
    within(found.hessian.trace, float(np.trace(dense)))
    assert abs(found.hessian.top[0].value - np.linalg.eigvalsh(dense)[-1]) <= found.hessian.top[0].bound


def test_measuring_changes_nothing_of_the_user() -> None:
    def seen() -> list[Any]:
        modes = [part.training for part in net.modules()]
        return [*(v.clone() for v in net.state_dict().values()), torch.get_rng_state(), torch.tensor(modes)]

    net = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, K)).double()
    net[1].eval()
    before, states = seen(), (str(np.random.get_state()), random.getstate())  # noqa: NPY002 (looked at)

    first, again = (measure_problem(problem(net, small_data(), dtype="float64"), top=2) for _ in range(2))

    assert first.hessian == again.hessian and first.noise == again.noise
    assert all(map(torch.equal, before, seen())) and all(p.grad is None for p in net.parameters())
    assert states == (str(np.random.get_state()), random.getstate())  # noqa: NPY002 (looked at)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (NotImplementedError("the derivative of 'f'"), "second derivatives: NotImplementedError: the"),
        (MemoryError(), "memory must suffice, got none left; use a smaller batch size"),
    ],
)
def test_what_torch_refuses_is_told(error: Exception, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise error

    given = small_problem()
    monkeypatch.setattr(measuring, "extend", refuse)
    with refusal(line):
        measure_problem(given)
    with refusal("top must be a positive integer, got True"):
        measure_problem(given, top=True)
