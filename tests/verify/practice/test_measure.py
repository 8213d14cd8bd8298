"""`losscurv measure` on small networks: every number agrees with dense matrices in float64, within its error."""

import copy
import math
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from torch import Tensor, nn

from tests.simulate.models_and_data import dense_hessian
from tests.verify.practice.small_measurements import (
    SIGMAS,
    TOP,
    K,
    N,
    gauss_newtons,
    small_data,
    small_problem,
    within,
)
from theory import gauss_newton
from verify.practice import measure as measuring
from verify.practice.loading import Problem, problem
from verify.practice.measure import measure_problem, pages
from verify.practice.measure.measurement import Measurement, Number, SmearedDensity

pytestmark = pytest.mark.usefixtures("few_probes")
Floats = NDArray[np.float64]


class Dense:
    """Measurement by dense matrices."""

    def __init__(self, given: Problem) -> None:
        self.hessian = dense_hessian(given.objective).numpy()
        self.gauss_newton = gauss_newtons(given).mean(0)
        self.samples = np.stack(
            [dense_hessian(given.batch_objective([i])).numpy() for i in range(given.samples)]
        )
        self.first = np.linalg.eigh(self.hessian)[1][:, -1]


Case = tuple[Problem, Measurement, Dense]


@pytest.fixture(scope="module", params=["tanh", "relu"])
def case(request: pytest.FixtureRequest) -> Case:
    given = small_problem(nn.Tanh() if request.param == "tanh" else nn.ReLU())
    return given, measure_problem(given, top=TOP, seed=1), Dense(given)


def _excess(matrix: Floats) -> float:
    return float(np.trace(matrix) / np.linalg.norm(matrix))


# --- every number ---------------------------------------------------------------------------------------------------


each_name = pytest.mark.parametrize("name", ["hessian", "gauss_newton"])


@each_name
def test_eigenvalues_lie_within_their_bounds(case: Case, name: str) -> None:
    _, found, dense = case
    matrix, values = getattr(found, name), np.linalg.eigvalsh(getattr(dense, name))[::-1]

    assert len(matrix.top) == TOP and matrix.ceiling >= values[0]
    assert matrix.top[0].converged and matrix.top[0].bound <= 1e-3 * abs(values).max()
    assert abs(matrix.top[0].value - values[0]) <= matrix.top[0].bound + 1e-12
    for each, value in zip(matrix.top, values, strict=False):
        assert np.abs(each.value - values).min() <= each.bound + 1e-12 and each.value <= value + 1e-12
    if name == "hessian":
        assert np.abs(matrix.lowest.value - values).min() <= matrix.lowest.bound + 1e-12


@each_name
def test_traces_norms_and_excess_lie_within_their_errors(case: Case, name: str) -> None:
    given, found, dense = case
    matrix, truth = getattr(found, name), getattr(dense, name)

    within(matrix.trace, float(np.trace(truth)))
    within(matrix.frobenius, float(np.linalg.norm(truth)))
    within(matrix.excess, _excess(truth))
    within(found.h_term_frobenius, float(np.linalg.norm(dense.hessian - dense.gauss_newton)))
    smooth = isinstance(given.model[1], nn.Tanh)  # type: ignore[index]
    assert matrix.trace.kind == ("standard error" if smooth else "exact")


def test_noise_is_that_of_the_hessians_of_single_samples(case: Case) -> None:
    given, found, dense = case
    noise, off = found.noise, dense.samples - dense.hessian

    total = (off**2).sum() / (N - 1)
    along = np.einsum("i,nij,j->n", dense.first, dense.samples, dense.first)
    within(noise.total, total)
    within(noise.element, math.sqrt(total) / given.objective.dim)
    assert_allclose(noise.element.error / noise.element.value, noise.total.error / noise.total.value / 2)
    assert_allclose(noise.along_top.value, along.var(ddof=1), rtol=1e-3)
    assert_allclose(noise.row.value, ((off @ dense.first) ** 2).sum() / (N - 1), rtol=1e-3)
    assert_allclose(np.histogram(along, bins=measuring.BINS)[1], noise.edges, rtol=1e-3, atol=1e-4)
    assert sum(noise.counts) == N


def test_loss_gradient_and_rate(case: Case) -> None:
    given, found, dense = case
    x, y = small_data()
    loss = nn.functional.cross_entropy(given.model(x), y)
    gradient = torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(given.model.parameters()))])

    assert (found.parameters, found.samples, found.classes) == (39, N, K)
    assert_allclose(found.loss.value, loss.item(), rtol=1e-12)
    assert_allclose(found.gradient_norm.value, gradient.norm().item(), rtol=1e-12)
    within(found.largest_rate, 2 / np.linalg.eigvalsh(dense.hessian)[-1])


def test_the_zone_rests_on_theory_and_on_the_softmax(case: Case) -> None:
    given, found, dense = case
    seen, p = found.zone, given.model(given.inputs).softmax(1).detach().numpy()
    parts = [float(np.linalg.norm(m)) for m in (dense.hessian - dense.gauss_newton, dense.gauss_newton)]

    within(Number(value=seen.excess.value, error=seen.excess.standard_error, kind="standard error"),
            float(gauss_newton.projected_excess(_excess(dense.hessian), dim=50)))  # fmt: skip
    assert_allclose(seen.ratio, parts[0] / parts[1], rtol=SIGMAS * found.h_term_frobenius.error / parts[0])
    assert (seen.predicted is None) == (found.hessian.trace.kind != "exact")
    if seen.predicted is not None:
        balanced = _excess(dense.gauss_newton) / math.hypot(1, parts[0] / parts[1])
        assert_allclose(seen.predicted, balanced, rtol=0.1)
    assert_allclose(seen.softmax.confidence, p.max(1).mean(), rtol=1e-12)
    assert_allclose(seen.softmax.entropy, -(p * np.log(p)).sum(1).mean() / np.log(K), rtol=1e-12)


def _smeared(values: Floats, seen: SmearedDensity) -> Floats:
    off = (np.array(seen.x)[:, None] - values) / seen.width
    return np.exp(-(off**2) / 2).mean(1) / (math.sqrt(2 * math.pi) * seen.width)


def test_densities_are_those_of_the_smeared_eigenvalues(case: Case) -> None:
    _, found, dense = case
    for matrix, truth in ((found.hessian, dense.hessian), (found.gauss_newton, dense.gauss_newton)):
        seen = matrix.density
        errors = np.array(seen.standard_error) + np.array(seen.truncation)
        # a matrix of rank 2 couples the known vectors with the rest, and moves two eigenvalues
        moved = 2 / len(truth) / (math.sqrt(2 * math.pi) * seen.width)
        off = np.abs(np.array(seen.value) - _smeared(np.linalg.eigvalsh(truth), seen))
        assert (off <= SIGMAS * errors + moved).all()


class _Centred(nn.Linear):
    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 (the name that torch gave it)
        return super().forward(input) - super().forward(input).mean(0)


_WEIGHT = torch.tensor([0.2, 1.0, 5.0], dtype=torch.float64)


@pytest.mark.parametrize(
    ("net", "loss", "words"),
    [
        (nn.Linear(5, K), nn.CrossEntropyLoss(_WEIGHT).forward, "the loss of a batch is not the mean of"),
        (_Centred(5, K), None, "the outputs for a sample depend on the other samples"),
    ],
)
def test_what_is_no_mean_over_samples_does_not_hang_on_the_batches_either(
    net: nn.Module, loss: Any, words: str
) -> None:
    """All samples are one batch then, whatever is asked for, and single ones have no noise."""
    x, y = small_data()
    found = [
        measure_problem(problem(net, (x, y), loss=loss, dtype="float64", batch_size=size), top=1)
        for size in (2, N)
    ]
    model = copy.deepcopy(net).double()
    expected = (loss or nn.CrossEntropyLoss())(model(x), y).item()
    assert_allclose([each.loss.value for each in found], expected, rtol=1e-14)
    assert found[0].hessian == found[1].hessian
    texts = [" ".join(pages.measurement_text(each).split()) for each in found]
    assert all(each.noise is None and each.coupling in text for each, text in zip(found, texts, strict=True))
    assert words in texts[0] and found[0].coupling in pages.measurement_page(found[0])
