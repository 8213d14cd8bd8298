"""`losscurv measure` on small networks: every number agrees with dense matrices in float64, within its error."""

from __future__ import annotations

import copy
import errno
import json
import math
import re
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from torch import Tensor, nn

from simulate.eigenvalues import extremes
from simulate.lanczos import as_operator
from simulate.objectives import Objective
from simulate.operators import hessian
from simulate.perceptrons import curvature
from simulate.spectra import Estimate
from tests.simulate.models_and_data import dense_hessian, dense_jacobian
from theory import gauss_newton
from verify import cli
from verify.practice import measure as measuring
from verify.practice.loading import Problem, problem
from verify.practice.measure import measure, pages, zone
from verify.practice.measure.measurement import Eigenvalue, Measurement, Number, Spectrum

N, K, TOP = 9, 3, 4
SIGMAS = 5.0
"""Standard errors that an estimate from these seeds may be off."""

Floats = NDArray[np.float64]


def _data() -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(3)
    return torch.randn(N, 5, generator=draw, dtype=torch.float64), torch.arange(N) % K


def _net(activation: nn.Module) -> nn.Module:
    net = nn.Sequential(nn.Linear(5, 4), activation, nn.Linear(4, K)).double()
    draw = torch.Generator().manual_seed(4)
    for p in net.parameters():
        p.data = torch.randn(p.shape, generator=draw, dtype=p.dtype)
    return net


def _problem(activation: nn.Module | None = None, **options: Any) -> Problem:
    return problem(_net(activation or nn.Tanh()), _data(), dtype="float64", batch_size=5, **options)


def _dense_gauss_newton(objective: Objective, inputs: Tensor) -> Floats:
    """J'(diag p - p p')J, mean over the samples."""
    jacobian = dense_jacobian(objective, inputs).reshape(len(inputs), K, -1)
    p = objective.outputs(objective.leaves(), inputs).detach().softmax(1)
    bent = torch.diag_embed(p) - p[:, :, None] * p[:, None, :]
    return torch.einsum("nkp,nkl,nlq->pq", jacobian, bent, jacobian).numpy() / len(inputs)


class Dense:
    """The same by dense matrices."""

    def __init__(self, given: Problem) -> None:
        self.hessian = dense_hessian(given.objective).numpy()
        self.gauss_newton = _dense_gauss_newton(given.objective, given.inputs)
        self.samples = np.stack(
            [dense_hessian(given.batch_objective([i])).numpy() for i in range(given.samples)]
        )
        self.first = np.linalg.eigh(self.hessian)[1][:, -1]


@pytest.fixture(scope="module", params=["tanh", "relu"])
def case(request: pytest.FixtureRequest) -> tuple[Problem, Measurement, Dense]:
    given = _problem(nn.Tanh() if request.param == "tanh" else nn.ReLU())
    return given, measure(given, top=TOP, seed=1), Dense(given)


@pytest.fixture(autouse=True)
def _few_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where numbers are compared they come from `case`, which was measured before this."""
    for name, value in {"DENSITY_STEPS": 4, "PROBES": 6, "VARIANCE_PROBES": 2}.items():
        monkeypatch.setattr(measuring, name, value)


def _within(number: Number, expected: float) -> None:
    slack = {"exact": 0.0, "bound": number.error, "standard error": SIGMAS * number.error}[number.kind]
    assert abs(number.value - expected) <= slack + 1e-10 * abs(expected)


def _excess(matrix: Floats) -> float:
    return float(np.trace(matrix) / np.linalg.norm(matrix))


# --- every number ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["hessian", "gauss_newton"])
def test_eigenvalues_lie_within_their_bounds(case: tuple[Problem, Measurement, Dense], name: str) -> None:
    _, found, dense = case
    matrix, values = getattr(found, name), np.linalg.eigvalsh(getattr(dense, name))[::-1]

    assert len(matrix.top) == TOP
    for each, value in zip(matrix.top, values, strict=False):
        assert each.converged and each.bound <= 1e-4 * abs(values).max()
        assert abs(each.value - value) <= each.bound + 1e-12
    if name == "hessian":
        assert abs(matrix.lowest.value - values[-1]) <= matrix.lowest.bound + 1e-12


@pytest.mark.parametrize("name", ["hessian", "gauss_newton"])
def test_traces_norms_and_excess_lie_within_their_errors(
    case: tuple[Problem, Measurement, Dense], name: str
) -> None:
    _, found, dense = case
    matrix, truth = getattr(found, name), getattr(dense, name)

    _within(matrix.trace, float(np.trace(truth)))
    _within(matrix.frobenius, float(np.linalg.norm(truth)))
    _within(matrix.excess, _excess(truth))


def test_traces_are_exact_where_a_few_passes_give_them(case: tuple[Problem, Measurement, Dense]) -> None:
    given, found, _ = case
    smooth = isinstance(given.model[1], nn.Tanh)  # type: ignore[index]

    assert found.gauss_newton.trace.kind == "exact"
    assert found.hessian.trace.kind == ("standard error" if smooth else "exact")


def test_the_h_term_has_the_norm_of_the_difference(case: tuple[Problem, Measurement, Dense]) -> None:
    _, found, dense = case

    _within(found.h_term_frobenius, float(np.linalg.norm(dense.hessian - dense.gauss_newton)))


def test_noise_is_that_of_the_hessians_of_single_samples(case: tuple[Problem, Measurement, Dense]) -> None:
    given, found, dense = case
    noise, off = found.noise, dense.samples - dense.hessian
    assert noise is not None

    total = (off**2).sum() / (N - 1)
    along = np.einsum("i,nij,j->n", dense.first, dense.samples, dense.first)
    _within(noise.total, total)
    _within(noise.element, math.sqrt(total) / given.objective.dim)
    assert_allclose(noise.element.error / noise.element.value, noise.total.error / noise.total.value / 2)
    assert_allclose(noise.along_top.value, along.var(ddof=1), rtol=1e-5)
    assert_allclose(noise.row.value, ((off @ dense.first) ** 2).sum() / (N - 1), rtol=1e-5)
    assert_allclose(np.histogram(along, bins=measuring.BINS)[1], noise.edges, rtol=1e-5, atol=1e-6)
    assert sum(noise.counts) == N


def test_loss_gradient_and_rate(case: tuple[Problem, Measurement, Dense]) -> None:
    given, found, dense = case
    x, y = _data()
    loss = nn.functional.cross_entropy(given.model(x), y)
    gradient = torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(given.model.parameters()))])

    assert (found.parameters, found.samples, found.classes) == (39, N, K)
    assert_allclose(found.loss.value, loss.item(), rtol=1e-12)
    assert_allclose(found.gradient_norm.value, gradient.norm().item(), rtol=1e-12)
    assert found.largest_rate is not None
    _within(found.largest_rate, 2 / np.linalg.eigvalsh(dense.hessian)[-1])


def test_the_rate_has_the_error_that_the_eigenvalue_leaves() -> None:
    step, first = 1e-6, Eigenvalue(value=4.0, bound=1e-6, converged=True)
    rate = measuring._rate(first)

    assert rate is not None
    assert_allclose(rate.error, 2 / first.value - 2 / (first.value + step), rtol=1e-5)
    assert measuring._rate(Eigenvalue(value=1e-9, bound=1e-6, converged=True)) is None


def test_the_zone_rests_on_theory_and_on_the_softmax(case: tuple[Problem, Measurement, Dense]) -> None:
    given, found, dense = case
    seen, p = found.zone, given.model(given.inputs).softmax(1).detach().numpy()
    assert seen is not None and seen.softmax is not None and found.hessian.excess is not None
    parts = [float(np.linalg.norm(m)) for m in (dense.hessian - dense.gauss_newton, dense.gauss_newton)]

    _within(Number(value=seen.excess.value, error=seen.excess.standard_error, kind="standard error"),
            float(gauss_newton.projected_excess(_excess(dense.hessian), dim=50)))  # fmt: skip
    assert_allclose(seen.ratio, parts[0] / parts[1], rtol=0.1)
    assert (seen.predicted is None) == (found.hessian.trace.kind != "exact")
    if seen.predicted is not None:
        balanced = _excess(dense.gauss_newton) / math.hypot(1, parts[0] / parts[1])
        assert_allclose(seen.predicted, balanced, rtol=0.1)
    assert_allclose(seen.softmax.confidence, p.max(1).mean(), rtol=1e-12)
    assert_allclose(seen.softmax.entropy, -(p * np.log(p)).sum(1).mean() / np.log(K), rtol=1e-12)
    assert found.projected_excess is None  # 39 parameters are too few


def _smeared(values: Floats, seen: Spectrum) -> Floats:
    off = (np.array(seen.x)[:, None] - values) / seen.width
    return np.exp(-(off**2) / 2).mean(1) / (math.sqrt(2 * math.pi) * seen.width)


@pytest.mark.parametrize("name", ["hessian", "gauss_newton"])
def test_densities_are_near_the_smeared_eigenvalues(
    case: tuple[Problem, Measurement, Dense], name: str
) -> None:
    _, found, dense = case
    seen, values = getattr(found, name).density, np.linalg.eigvalsh(getattr(dense, name))
    x = np.array(seen.x)

    assert_allclose(np.trapezoid(seen.value, x), 1.0, rtol=1e-3)
    assert np.trapezoid(np.abs(np.array(seen.value) - _smeared(values, seen)), x) < 0.5
    assert x[0] < values[0] and values[-1] < x[-1]


def test_densities_converge_to_the_smeared_eigenvalues(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"DENSITY_PROBES": 100, "DENSITY_STEPS": 50, "SMEARING": 0.02}.items():
        monkeypatch.setattr(measuring, name, value)
    values = np.linspace(-1, 2, 60)
    operator, rng = as_operator(np.diag(values)), np.random.default_rng(0)

    seen = measuring._density(operator, extremes(operator, rng, largest=1, smallest=1), rng)

    assert seen is not None
    errors = np.array(seen.standard_error) + np.array(seen.truncation)
    assert (np.abs(np.array(seen.value) - _smeared(values, seen)) <= SIGMAS * errors + 1e-9).all()
    assert errors.max() < 0.2


def test_the_projected_excess_is_that_of_the_projected_hessian() -> None:
    x, y = torch.randn(9, 25, generator=torch.Generator().manual_seed(0)), torch.arange(9) % 4
    net = nn.Sequential(nn.Linear(25, 17), nn.ReLU(), nn.Linear(17, 4))  # 514 parameters
    given = problem(net, (x, y), dtype="float64")
    frame = curvature.haar(np.random.default_rng(7).spawn(7)[4], given.objective.dim, zone.SUBSPACE)

    expected = curvature.excess(frame.mT @ (hessian(given.objective) @ frame)).item()
    assert_allclose(measure(given, top=1, seed=7).projected_excess, expected, rtol=1e-9)


def test_the_result_does_not_hang_on_the_batches() -> None:
    data = _data()
    whole, cut = (
        measure(problem(_net(nn.ReLU()), data, dtype="float64", batch_size=size), top=2) for size in (N, 5)
    )

    for name in ("hessian", "gauss_newton"):
        pairs = zip(getattr(whole, name).top, getattr(cut, name).top, strict=True)
        assert all(abs(a.value - b.value) <= a.bound + b.bound + 1e-12 for a, b in pairs)
    assert whole.noise is not None and cut.noise is not None
    assert_allclose(whole.noise.total.value, cut.noise.total.value, rtol=1e-9)


class _Centred(nn.Linear):
    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 (the name that torch gave it)
        return super().forward(input) - super().forward(input).mean(0)


_WEIGHT = torch.tensor([0.2, 1.0, 5.0], dtype=torch.float64)


@pytest.mark.parametrize(
    ("net", "loss", "words"),
    [
        (
            nn.Linear(5, K),
            lambda z, y: nn.functional.cross_entropy(z, y, weight=_WEIGHT),
            "no noise of single samples: the loss of a batch is not the mean of those of its parts; all are one",
        ),
        (
            nn.Linear(5, K),
            lambda z, y: nn.functional.cross_entropy(z, y).sqrt(),
            "the loss of a batch is not",
        ),
        (_Centred(5, K), None, "the model gives a sample other outputs beside other samples"),
    ],
)
def test_what_is_no_mean_over_samples_does_not_hang_on_the_batches_either(
    net: nn.Module, loss: Any, words: str
) -> None:
    """All samples are one batch then, whatever is asked for, and single ones have no noise."""
    x, y = _data()
    found = [
        measure(problem(net, (x, y), loss=loss, dtype="float64", batch_size=size), top=1)
        for size in (2, 5, N)
    ]
    model = copy.deepcopy(net).double()
    expected = (loss or nn.CrossEntropyLoss())(model(x), y).item()
    assert_allclose([each.loss.value for each in found], expected, rtol=1e-14)
    assert found[0].hessian == found[1].hessian == found[2].hessian
    assert all(each.noise is None and each.coupling in pages.text(each) for each in found)
    assert words in pages.text(found[0]) and found[0].coupling in pages.document(found[0])


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

    made = zone.zone(Estimate(full, error), Estimate(4.0, 0.0), 0.5, None)

    assert made.verdict == verdict
    assert_allclose(made.excess.value, excess, rtol=1e-12)
    assert_allclose(made.floor, FLOOR, rtol=1e-12)


def test_the_error_of_the_projected_excess_follows_the_law() -> None:
    step = 1e-6
    values = [zone.zone(Estimate(r, 1.0), None, None, None).excess for r in (3.0, 3.0 + step)]

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
    assert re.search(words, zone.zone(Estimate(0.1, 0.0), None, ratio, softmax).reason)


@pytest.mark.parametrize(("scale", "cause"), [(0.03, "near uniform"), (60.0, "saturated")])
def test_small_and_large_weights_leave_the_zone(
    monkeypatch: pytest.MonkeyPatch, scale: float, cause: str
) -> None:
    monkeypatch.setattr(measuring, "PROBES", 30)
    draw = torch.Generator().manual_seed(0)
    x, y = torch.randn(30, 10, generator=draw), torch.arange(30) % 5
    net = nn.Sequential(nn.Linear(10, 12, bias=False), nn.ReLU(), nn.Linear(12, 5, bias=False))
    for p in net.parameters():
        p.data = scale * torch.randn(p.shape, generator=draw) * p.shape[1] ** -0.5

    found = measure(problem(net, (x, y), dtype="float64"), top=1).zone

    assert found is not None and found.verdict == "outside"
    assert cause in found.reason


# --- other problems -------------------------------------------------------------------------------------------------


def test_regression_has_no_softmax() -> None:
    x, y = _data()
    found = measure(problem(nn.Linear(5, 1), (x, y.double()), dtype="float64"), top=3)
    design = torch.cat([x, torch.ones(N, 1)], 1).numpy()

    assert found.classes is None
    assert found.zone is not None and found.zone.softmax is None
    values = np.linalg.eigvalsh(2 * design.T @ design / N)[::-1]
    assert_allclose([each.value for each in found.hessian.top], values[:3], rtol=1e-3)


def test_all_eigenvalues_of_a_tiny_model() -> None:
    x = torch.tensor([[3.0, 0.0], [0.0, 1.0]])
    found = measure(problem(nn.Linear(2, 1, bias=False), (x, x[:, :1])), top=10)

    assert_allclose([each.value for each in found.hessian.top], [9.0, 1.0], rtol=1e-5)
    assert found.hessian.lowest is not None
    assert_allclose(found.hessian.lowest.value, 1.0, rtol=1e-5)


class _Negative(nn.Module):
    def forward(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return -nn.functional.mse_loss(outputs, targets)


@pytest.mark.parametrize("loss", [nn.L1Loss(), _Negative()])
def test_without_positive_curvature_there_is_no_largest_rate(loss: nn.Module) -> None:
    x, _ = _data()
    found = measure(problem(nn.Linear(5, 3), (x, x[:, :3]), loss=loss), top=2)

    assert found.largest_rate is None
    assert (found.hessian.excess is None) == isinstance(loss, nn.L1Loss)
    json.loads(pages.dumps(found), parse_constant=_no_constant)
    assert "Goldilocks zone" in pages.text(found)


def test_a_page_without_curvature_and_with_a_name_that_is_code() -> None:
    x, _ = _data()
    named = problem(nn.Linear(5, 3), (x, x[:, :3]), loss=nn.L1Loss(), name="<script>alert(1)</script>")

    page = pages.document(measure(named, top=1))

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
    x, y = _data()
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

    found = measure(given, top=1)

    noise = found.noise
    assert noise is not None and found.zone is not None and found.zone.softmax is not None
    p = given.model(given.inputs).softmax(1)
    assert_allclose(found.zone.softmax.confidence, p.amax(1).mean().item(), rtol=1e-12)
    first, off = np.linalg.eigh(matrix)[1][:, -1], samples - matrix
    along = np.einsum("i,nij,j->n", first, samples, first)
    assert_allclose(noise.along_top.value, along.var(ddof=1), rtol=1e-4)
    assert_allclose(noise.row.value, ((off @ first) ** 2).sum() / (N - 1), rtol=1e-4)
    assert_allclose([noise.edges[0], noise.edges[-1]], [along.min(), along.max()], rtol=1e-4)
    _within(noise.total, (off**2).sum() / (N - 1))
    assert_allclose(noise.element.value, math.sqrt(noise.total.value) / given.objective.dim, rtol=1e-12)


class _One(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([0.7]))

    def forward(self, x: Tensor) -> Tensor:
        return (self.weight * x).tanh()


@pytest.mark.parametrize("net", [_One(), nn.Sequential(nn.Linear(1, 2), nn.Tanh(), nn.Linear(2, 1))])
def test_few_parameters_have_exact_traces_and_no_theory_of_balanced_terms(
    monkeypatch: pytest.MonkeyPatch, net: nn.Module
) -> None:
    monkeypatch.setattr(measuring, "PROBES", 7)
    x = torch.linspace(-2, 2, 7, dtype=torch.float64)[:, None]
    given = problem(net, (x, x.cos()), dtype="float64")

    found = measure(given)

    assert found.hessian.trace.kind == found.gauss_newton.trace.kind == "exact"
    assert_allclose(found.hessian.trace.value, float(dense_hessian(given.objective).trace()), rtol=1e-9)
    assert found.zone is not None and found.zone.predicted is None


def test_one_sample_has_no_noise() -> None:
    found = measure(problem(nn.Linear(5, 3), (torch.ones(1, 5), torch.tensor([1]))), top=1)

    assert found.noise is None
    assert "Hessian variance" not in pages.text(found)


def test_in_training_mode_samples_see_each_other() -> None:
    net = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, K)).double()
    given = problem(net, _data(), dtype="float64", training=True)
    dense = dense_hessian(given.objective).numpy()

    found = measure(given, top=2)

    assert found.noise is None
    assert found.gauss_newton.trace.kind == "standard error"
    _within(found.hessian.trace, float(np.trace(dense)))
    assert abs(found.hessian.top[0].value - np.linalg.eigvalsh(dense)[-1]) <= found.hessian.top[0].bound


def test_measuring_changes_nothing_of_the_user() -> None:
    net = _net(nn.Tanh())
    before, state = copy.deepcopy(net.state_dict()), torch.get_rng_state()

    first, again = (measure(problem(net, _data(), dtype="float64"), top=2) for _ in range(2))

    assert first.hessian == again.hessian and first.noise == again.noise
    assert torch.equal(state, torch.get_rng_state())
    assert net.training and all(p.grad is None for p in net.parameters())
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())


def test_progress_is_told_and_never_goes_back() -> None:
    told: list[tuple[str, float]] = []

    measure(_problem(), top=1, tell=lambda what, share: told.append((what, share)))

    shares = [share for _, share in told]
    assert shares == sorted(shares) and shares[0] >= 0 and shares[-1] <= 1
    assert [*dict(told)] == ["traces", "Hessian", "Gauss-Newton matrix", "H-term", "random subspace",
                             "noise of the samples"]  # fmt: skip


def test_what_torch_refuses_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise NotImplementedError("the derivative of 'f' is not implemented")

    given = _problem()
    monkeypatch.setattr(measuring, "extremes", refuse)

    with pytest.raises(
        ValueError, match="must have second derivatives, got NotImplementedError: the derivative of"
    ):
        measure(given)


@pytest.mark.parametrize("top", [0, 1.5, True])
def test_top_is_a_count(top: Any) -> None:
    with pytest.raises(ValueError, match=f"top must be a positive integer, got {top!r}"):
        measure(_problem(), top=top)


def test_memory_that_runs_out_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise MemoryError

    given = _problem()
    monkeypatch.setattr(measuring, "extremes", full)

    with pytest.raises(ValueError, match="memory must suffice, got none left; use a smaller batch size"):
        measure(given)


# --- the command ----------------------------------------------------------------------------------------------------

SOURCE = """
from torch import nn

class Net(nn.Sequential):
    def __init__(self):
        print("building")
        super().__init__(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))

    def forward(self, x):
        print("running")
        return super().forward(x)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_net.py").write_text(SOURCE)
    rng = np.random.default_rng(0)
    np.savez("data.npz", x_train=rng.standard_normal((8, 4)), y_train=np.arange(8) % 2)
    return tmp_path


WORDS = ["measure", "--model", "my_net.py:Net", "--data", "data.npz", "--top", "3"]


def _no_constant(name: str) -> None:
    raise AssertionError(f"{name} in JSON")


def test_the_command_prints_json_whatever_the_model_prints(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*WORDS, "--json"]) == 0

    out, err = capsys.readouterr()
    printed = json.loads(out, parse_constant=_no_constant)
    assert printed == json.loads((folder / "losscurv-measure" / "measure.json").read_text())
    assert {"building", "running"} <= set(err.splitlines())
    assert printed["version"] == pages.VERSION
    assert printed["zone"]["excess"].keys() == {"value", "standard_error"}
    assert len(printed["hessian"]["top"]) == 3


def test_the_command_prints_a_table_and_writes_a_page_that_stands_alone(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*WORDS, "--output", "there"]) == 0

    out, page = capsys.readouterr().out, (folder / "there" / "measure.html").read_text()
    found = json.loads((folder / "there" / "measure.json").read_text())
    first = pages.wording.number(found["hessian"]["top"][0]["value"], 6, plain=True)
    assert re.search(rf"^eigenvalue 1 +{re.escape(first)} ± ", out, re.MULTILINE)
    assert out.endswith(f"page: {Path('there') / 'measure.html'}\n")
    assert "building" not in out and "running" not in out
    assert first.replace("-", "−") in page and page.count("<svg") == 3
    assert not re.search(r'(src|href)="(?!#|data:)', page)


def test_a_full_disk_is_one_line_and_takes_no_numbers_away(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pages, "replace_files", full)
    monkeypatch.setattr(pages, "document", lambda _: "a page")

    assert cli.main(WORDS) == 2

    out, err = capsys.readouterr()
    assert "eigenvalue 1" in out and "page:" not in out
    assert (
        err.splitlines()[-1]
        == "losscurv: page cannot be written to losscurv-measure: No space left on device"
    )


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--output", "data.npz"], "--output must be a folder that can be written, got data.npz: "),
        (["--top", "0"], "--top must be at least 1, got 0"),
        (["--seed", "-1"], "--seed must be at least 0, got -1"),
        (["--device", "tpu"], "device must be auto, cpu, cuda or cuda:<index>, got 'tpu'"),
        (["--loss", "hinge"], "loss must be cross-entropy, mse, bce or pkg.module:function, got 'hinge'"),
    ],
)
def test_bad_options_are_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], line: str
) -> None:
    assert cli.main([*WORDS, *words]) == 2

    out, err = capsys.readouterr()
    assert not out
    assert line in err.splitlines()[-1]


def test_an_interrupt_ends_the_command(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any, **__: Any) -> Any:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(measuring, "measure", interrupt)

    assert cli.main(WORDS) == 130
    assert capsys.readouterr().err.endswith("losscurv: interrupted\n")
    assert not list((folder / "losscurv-measure").iterdir())
