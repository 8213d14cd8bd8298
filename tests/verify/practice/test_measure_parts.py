"""Further parts of `losscurv measure`: layers, the loss along eigenvectors, eigenvectors on disk."""

import copy

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn

from tests.simulate.models_and_data import dense_hessian
from tests.verify.practice.small_measurements import SIGMAS, small_data, small_net, small_problem, within
from verify.practice.loading import problem
from verify.practice.measure import layers, measure_problem, pages
from verify.practice.measure.lines import LINE_POINTS
from verify.practice.measure.matrices import difference_norm
from verify.practice.measure.measurement import Number


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
    assert "between layers" in pages.measurement_text(found)
    if budget is None:
        assert found.layers[0].trace.kind == "standard error" and found.layers[1].trace.kind == "exact"
    off = 1 - sum(layer.share.value for layer in found.layers)
    assert_allclose(pages.share_between_layers(found), max(off, 0.0))


def test_the_error_of_a_share_follows_from_those_of_both_norms() -> None:
    part, whole = (Number(value=v, error=e, kind="standard error") for v, e in ((3.0, 0.3), (5.0, 0.1)))
    share = layers._share(part, whole)
    assert_allclose(share.value, 9 / 25)
    assert_allclose(share.error, np.hypot(2 * 3 / 25 * 0.3, 2 * 9 / 125 * 0.1))


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


@pytest.mark.parametrize("known", [False, True])
def test_the_norm_of_a_difference_is_in_the_unit_of_the_matrices(known: bool) -> None:
    draw = torch.Generator().manual_seed(0)
    vectors = torch.randn(200, 6, generator=draw, dtype=torch.float64)
    matrix = torch.diag(torch.tensor([9.0, 2.0, 2.0, 1.0, -1.0, 0.5], dtype=torch.float64))
    rows = torch.eye(6, dtype=torch.float64)[:1]
    found = []
    for scale in (1.0, 1e-200, 1e3, 1e150):
        products = scale * (vectors @ matrix), torch.zeros_like(vectors)
        norm = difference_norm(products, vectors, (rows, scale * rows @ matrix) if known else None)
        found.append((norm.value / scale, norm.error / scale))
    assert_allclose(found, [found[0]] * 4, rtol=1e-9)
    assert abs(found[0][0] - float(matrix.norm())) < 4 * found[0][1] < 4
