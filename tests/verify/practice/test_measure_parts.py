"""Further parts of `losscurv measure`: layers, the loss along eigenvectors, eigenvectors on disk."""

import copy

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn

from simulate.factors import ekfac, kfac
from simulate.operators import gauss_newton
from tests.simulate.models_and_data import dense_hessian
from tests.verify.practice.small_measurements import SIGMAS, small_data, small_net, small_problem, within
from verify.practice.loading import problem
from verify.practice.measure import measure_problem, pages
from verify.practice.measure.lines import LINE_POINTS


@pytest.mark.parametrize("budget", [3000, None])
def test_layers_are_the_blocks_of_the_hessian(budget: int) -> None:
    given = small_problem(nn.Tanh())
    dense = dense_hessian(given.objective).numpy()
    found = measure_problem(given, top=2, layers=True, budget=budget)

    assert [(layer.name, layer.parameters) for layer in found.layers] == [("0", 24), ("2", 15)]
    for layer, rows in zip(found.layers, (slice(0, 24), slice(24, 39)), strict=True):
        block = dense[rows, rows]
        off = np.abs(layer.largest.value - np.linalg.eigvalsh(block))
        assert off.min() <= layer.largest.bound + 1e-12
        within(layer.trace, float(np.trace(block)))
        within(layer.frobenius, float(np.linalg.norm(block)))
        share = float((np.linalg.norm(block) / np.linalg.norm(dense)) ** 2)
        assert abs(layer.share.value - share) <= SIGMAS * layer.share.error + 1e-9
    text = pages.measurement_text(found)
    assert "between layers" in text and "Layer by layer" in pages.measurement_page(found)
    if budget is None:
        assert found.layers[0].trace.kind == "standard error" and found.layers[1].trace.kind == "exact"
    off = 1 - sum(layer.share.value for layer in found.layers)
    assert_allclose(pages.share_between_layers(found), max(off, 0.0))


def test_factors_are_measured_against_the_gauss_newton_matrix() -> None:
    given = small_problem(nn.Tanh())
    found = measure_problem(given, top=1, factors=True)
    exact = gauss_newton(given.objective).dense()

    for method, whole, largest in (
        (kfac, found.factors.kfac, found.factors.kfac_largest),
        (ekfac, found.factors.ekfac, found.factors.ekfac_largest),
    ):
        near = method(given.objective).dense()
        within(whole, float((exact - near).norm() / exact.norm()))
        assert_allclose(
            largest, torch.linalg.eigvalsh(near)[-1] / torch.linalg.eigvalsh(exact)[-1], rtol=2e-3
        )
        layer, own = found.factors.layers[1], exact[24:, 24:]
        error = layer.kfac if method is kfac else layer.ekfac
        within(error, float((own - near[24:, 24:]).norm() / own.norm()))
    assert [(layer.name, layer.parameters) for layer in found.factors.layers] == [("0", 24), ("2", 15)]
    assert "EKFAC" in pages.measurement_text(found) and "Kronecker factors" in pages.measurement_page(found)


@pytest.mark.parametrize("whole", [True, False])
def test_a_matrix_of_zeros_has_no_errors_of_factors(whole: bool) -> None:
    """Outputs that are logarithms of probabilities leave the loss no curvature; a dead layer has none either."""
    last, loss = (nn.LogSoftmax(1), nn.NLLLoss()) if whole else (nn.Identity(), nn.CrossEntropyLoss())
    net = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3), last).double()
    if not whole:
        net[0].bias.data.fill_(-99.0)
    found = measure_problem(problem(net, small_data(), loss=loss, dtype="float64"), top=1, factors=True)

    assert found.factors is None and found.gauss_newton.trace.value >= 0
    assert any("no errors of Kronecker factors" in line for line in found.doubts)
    assert "no errors of Kronecker factors" in pages.measurement_text(found)


def test_a_model_without_factors_is_refused_before_it_is_measured() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scales = nn.Parameter(torch.ones(5, dtype=torch.float64))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x * self.scales)[:, :3]

    told = []
    with pytest.raises(ValueError, match="model must use its parameters in layers only"):
        measure_problem(
            problem(Scaled(), small_data(), dtype="float64"),
            factors=True,
            tell=lambda what, _: told.append(what),
        )
    assert not told


def test_the_loss_is_followed_along_the_first_eigenvector() -> None:
    given = small_problem(nn.Tanh())
    (line,) = measure_problem(given, top=3, budget=400).lines
    vector = torch.linalg.eigh(dense_hessian(given.objective))[1][:, -1]
    vector *= torch.sign(given.objective.gradient() @ vector)  # the loss rises along it

    moved = copy.deepcopy(given.model)
    theta = nn.utils.parameters_to_vector(moved.parameters()).detach()
    losses = []
    for s in line.distance:
        nn.utils.vector_to_parameters(theta + s * vector, moved.parameters())
        x, y = small_data()
        losses.append(nn.functional.cross_entropy(moved(x), y).item())
    near = LINE_POINTS // 2
    assert_allclose(line.loss, losses, rtol=1e-6)
    assert line.distance[near] == 0 and line.loss[near] == line.parabola[near]
    assert_allclose(np.diff(line.parabola, 2), line.curvature * line.distance[near + 1] ** 2, rtol=1e-6)


def test_a_loss_whose_squares_are_no_numbers_is_refused() -> None:
    loss = nn.CrossEntropyLoss()
    given = problem(
        small_net(nn.Tanh()), small_data(), loss=lambda z, y: 1e-200 * loss(z, y), dtype="float64"
    )
    with pytest.raises(ValueError, match=r"or its square overflows, got .*; multiply the loss by a constant"):
        measure_problem(given, top=1)
