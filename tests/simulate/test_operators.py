"""Curvature of any model: products against dense matrices by automatic differentiation, and against closed forms."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from simulate.modules.hessian_variance import quadratic_forms
from simulate.objectives import Objective, products
from simulate.objectives.derivatives import bytes_held
from simulate.objectives.products import Built, Derivative, Kept, of_scalar
from simulate.operators import empirical_fisher, fisher, gauss_newton, h_term, hessian
from tests.refusals import refusal
from tests.simulate.models_and_data import BUILDERS, N, case, dense_hessian
from tests.simulate.small_perceptrons import assert_same

MATRICES = (hessian, gauss_newton, h_term, empirical_fisher)
ANY_LOSS = sorted(BUILDERS)


def columns(objective: Objective) -> torch.Tensor:
    """Random vectors: matrices that agree on these agree."""
    draws = torch.Generator().manual_seed(0)
    return torch.randn(objective.dim, 3, generator=draws, dtype=objective.dtype)


@pytest.mark.parametrize("name", ANY_LOSS)
def test_products_are_those_of_the_dense_hessian(name: str) -> None:
    objective = case(name).objective()
    vectors = columns(objective)
    assert_same(hessian(objective) @ vectors, dense_hessian(objective) @ vectors)


@pytest.mark.parametrize("name", ["cross-entropy", "binary", "squared error", "convolution", "transformer"])
def test_fisher_information_is_the_gauss_newton_matrix_of_a_log_likelihood(name: str) -> None:
    objective = case(name).objective()
    outputs = objective.outputs(objective.leaves, next(objective.batches()).inputs)
    # torch means over all targets; unit variance has half the squares
    factor = {"binary": outputs[0].numel(), "squared error": outputs[0].numel() / 2}.get(name, 1)
    vectors = columns(objective)
    assert_same(fisher(objective) @ vectors, factor * (gauss_newton(objective) @ vectors))


@pytest.mark.parametrize("name", ["cross-entropy", "squared error", "convolution", "frozen", "sum"])
def test_empirical_fisher_is_the_mean_of_squared_gradients(name: str) -> None:
    found = case(name)
    objective = found.objective()
    single = [(x[i : i + 1], y[i : i + 1]) for x, y in found.data for i in range(len(y))]
    rows = torch.stack([Objective(found.model, [one], found.loss).gradient() for one in single])
    assert_same(empirical_fisher(objective).dense(), rows.T @ rows / (1 if name == "sum" else N))


@pytest.mark.parametrize(("spare", "kept"), [(0, True), (-1, False)])
def test_graphs_are_kept_that_fit_into_half_of_the_memory(
    spare: int, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = nn.Linear(3, 2, dtype=torch.float64)
    objective = Objective(model, (torch.ones(5, 3).double(), torch.zeros(5, 2).double()), nn.MSELoss())
    graphs = Kept(objective, Derivative("none", lambda *_: Built(tuple, None), lambda *_: Built(tuple, None)))
    monkeypatch.setattr(graphs, "_cost", lambda batch, trials: (5, 100, 1000))
    monkeypatch.setattr(products, "_DERIVATIVES", 1 << 40)
    needed = 5 * 100 + 1000 + products.VECTORS * objective.dim * 8
    monkeypatch.setattr(products, "_SMALL_CPU", 0)
    monkeypatch.setattr("simulate._memory._UNCHECKED", 0)
    monkeypatch.setattr("simulate._memory.available", lambda _: 2 * needed + spare)
    assert graphs._affordable(next(iter(objective.batches()))) is kept


@pytest.mark.parametrize("forward", [False, True])
def test_memory_is_told_from_few_samples(forward: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory of 40 samples follows from trials with 2 and 3: the weights once, and a part for every sample."""
    model, x = nn.Sequential(nn.Linear(30, 20), nn.Tanh(), nn.Linear(20, 10)), torch.ones(40, 30)
    objective = Objective(model, (x, torch.zeros(40).long()), nn.CrossEntropyLoss())
    objective.recordable["hessian"] = forward
    monkeypatch.setattr(Kept, "_forward_is_faster", lambda _: True)
    monkeypatch.setattr(products, "_SMALL_CPU", 0)
    told = []
    monkeypatch.setattr("simulate._memory.is_free", lambda needed, _: told.append(needed))
    _ = hessian(objective) @ torch.ones(objective.dim)
    (batch,) = objective.batches()
    derivative = of_scalar(
        objective, "hessian", lambda leaves, _: objective.loss(objective.outputs(leaves, x), batch)
    )
    if forward:
        known = derivative.forward(batch, objective.leaves).held()
    else:
        known = bytes_held(lambda: derivative.reverse(batch), without=objective.leaves)
    # after the checks of derivatives, what all are sure to need, and what one trial shows
    assert told[3] == pytest.approx(2 * (known + 16 * objective.dim), rel=0.02)


@pytest.mark.parametrize(("value", "refused"), [(3e38, False), (torch.inf, True), (torch.nan, True)])
def test_products_are_refused_if_one_number_is_not_finite(value: float, refused: bool) -> None:
    objective = case("cross-entropy").objective()
    matrix = replace(hessian(objective), product=lambda vectors: torch.full_like(vectors, value).float())
    if not refused:
        assert torch.equal(matrix(torch.ones(2, 43)), torch.full((2, 43), value))
        return
    with refusal("operator must return finite products, got NaN or infinity"):
        matrix(torch.ones(2, 43))


class Steps(nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x).round()


class Cut(nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x).detach()


@pytest.mark.parametrize("matrix", MATRICES)
def test_a_model_of_steps_has_no_curvature_and_one_cut_from_its_parameters_is_refused(matrix: Any) -> None:
    data, loss = (torch.ones(6, 4), torch.arange(6) % 2), nn.CrossEntropyLoss()
    steps, cut = (Objective(kind(4, 2), data, loss) for kind in (Steps, Cut))

    assert not (matrix(steps) @ torch.ones(10)).any()
    assert not quadratic_forms(steps, torch.ones(10, 1)).any()
    with refusal(r"outputs that depend on the parameters.*detach"):
        _ = matrix(cut) @ torch.ones(10)


@pytest.mark.parametrize("chunk", [None, 2, 3])
def test_targets_do_not_enter_the_fisher_information_however_batches_are_cut(chunk: int | None) -> None:
    """Two samples that stand together are ignored: alone in a batch they add nothing to the loss."""
    x, targets = columns(case("linear").objective())[:6], torch.tensor([0, 1, -100, -100, 2, 1])
    model, loss = nn.Linear(3, 3, dtype=torch.float64), nn.CrossEntropyLoss()
    known = fisher(Objective(model, (x, targets.clamp(min=0)), loss))
    assert_same(fisher(Objective(model, (x, targets), loss, chunk=chunk)).dense() * 4 / 6, known.dense())
