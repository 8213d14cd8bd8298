"""Gauss-Newton matrices of single samples: against dense Jacobians, by every route, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn

from simulate.modules import sample_grams, sample_parts, sites
from simulate.modules.hessian_variance import quadratic_forms
from simulate.modules.sample_grams import SampleGrams, trace_gauss_newton, trace_hessian
from simulate.objectives import Batch, Objective
from simulate.objectives.restoring import as_found
from tests.simulate.models_and_data import BUILDERS, N, case, dense_hessian, dense_jacobian

ALL = sorted(BUILDERS)
DRAWN = torch.Generator().manual_seed(0)
X, Y = (torch.randn(N, 4, generator=DRAWN, dtype=torch.float64) for _ in range(2))
SQUARES = nn.MSELoss()


def matrices(objective: Objective, batch: Batch) -> Tensor:
    """Gauss-Newton matrices (n, dim, dim) of the samples of a batch."""
    with as_found(objective.model, objective.training):
        outputs = objective.outputs(objective.leaves(), batch.inputs).detach()
    outer = torch.func.jacrev(torch.func.grad(lambda z: objective.loss(z.view_as(outputs), batch)))(
        outputs.flatten()
    )
    n, m = len(outputs), outputs[0].numel()
    blocks = outer.view(n, m, n, m).diagonal(dim1=0, dim2=2).permute(2, 0, 1) / objective.share
    rows = dense_jacobian(objective, batch.inputs).view(n, m, -1)
    return rows.mT @ blocks @ rows


def dense(objective: Objective) -> SampleGrams:
    found, left = [], list(objective.batches())
    for _, targets in objective.data:
        if left and torch.equal(left[0].targets, targets):
            g = matrices(objective, left.pop(0))
        else:
            g = torch.zeros(len(targets), 1, 1)
        values = torch.linalg.eigvalsh(g).double()
        found += [(float(v.sum()), float(v[-1]), float(v.square().sum())) for v in values]
    assert not left
    return SampleGrams(*np.array(found).T)


def assert_alike(found: SampleGrams, expected: SampleGrams, tolerance: float = 1e-10) -> None:
    """To the accuracy that matrices of this norm have eigenvalues to."""
    norm = float(np.sqrt(expected.squares.max()))
    for a, b, scale in zip(found, expected, (norm, norm, norm**2), strict=True):
        assert a.shape == b.shape and a.dtype == np.float64
        assert_allclose(a, b, rtol=0, atol=tolerance * scale)


def of_function(
    function: Any, parameters: Sequence[Tensor], loss: Any = SQUARES, outputs: Any = Y
) -> Objective:
    return Objective(function, [(X, outputs)], loss, parameters=parameters)


@pytest.mark.parametrize("name", ALL)
def test_spectra_of_samples_are_those_of_dense_matrices(name: str) -> None:
    objective = case(name).objective()
    assert_alike(sample_grams.sample_grams(objective), dense(objective))


@pytest.mark.parametrize("name", [n for n in ALL if n not in ("tied", "transformer")])
def test_gradients_of_single_samples_give_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    objective = case(name).objective()
    assert sites.covers(objective) and sites.by_sample(objective)
    by_sites, trace = sample_grams.sample_grams(objective), trace_gauss_newton(objective)
    monkeypatch.setattr(sites, "covers", lambda _: False)
    assert_alike(sample_grams.sample_grams(objective), by_sites, 1e-12)
    assert_allclose(trace_gauss_newton(objective), trace, rtol=1e-12)
    objective.answers["rows_apart"] = False
    assert_alike(sample_grams.sample_grams(objective), by_sites, 1e-12)


@pytest.mark.parametrize("name", ["weighted classes", "convolution", "tied"])
@pytest.mark.parametrize("window", [0, 1 << 15])
def test_windows_of_samples_change_nothing(name: str, window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    objective, cut = case(name).objective(), case(name).objective(chunk=2)
    whole = sample_grams.sample_grams(objective)
    assert_alike(sample_grams.sample_grams(cut), whole, 1e-12)
    monkeypatch.setattr(sample_parts, "_WINDOW", window)
    assert_alike(sample_grams.sample_grams(objective), whole, 1e-12)
    assert_allclose(trace_gauss_newton(objective), objective.share * whole.traces.sum(), rtol=1e-12)


@pytest.mark.parametrize(
    "loss",
    [
        lambda outputs, targets: (outputs * targets).sin().mean(),  # of both signs
        lambda outputs, targets: -(outputs.square().sum(1) ** 2).mean(),  # concave, and couples the outputs
    ],
)
@pytest.mark.parametrize("size", [1, 2, 30])
def test_curvature_of_any_sign_is_kept(loss: Any, size: int) -> None:
    weight = torch.randn(4, size, generator=torch.Generator().manual_seed(size), dtype=torch.float64)
    mix = torch.randn(size, 4, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)

    def outputs(p: Sequence[Tensor], x: Tensor) -> Tensor:  # more outputs than parameters, or fewer
        return x @ torch.einsum("s,sij->ij", p[0].tanh(), mix) + x

    objective = of_function(outputs, [weight[0]], loss)
    expected = dense(objective)
    assert (expected.traces < 0).any()
    assert_alike(sample_grams.sample_grams(objective), expected)


class Gated(nn.Module):
    """Behind a gate that one sample alone opens, a matrix is used by itself, and its tanh."""

    def __init__(self, sample: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4).double(), nn.Linear(4, 4, bias=False).double()
        self.gate = float(X[sample, 0])

    def forward(self, x: Tensor) -> Tensor:
        opened = x[:, :1] == self.gate
        hidden = self.second(self.first(x).relu())
        return hidden + (x @ self.second.weight).tanh() * opened if bool(opened.any()) else hidden


def test_parameters_that_act_elsewhere_for_one_sample_only_are_found_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    objective = Objective(Gated(N - 1), [(X, Y)], SQUARES)
    assert sites.covers(objective)
    expected = dense(objective)
    assert_alike(sample_grams.sample_grams(objective), expected)
    assert_allclose(trace_gauss_newton(objective), expected.traces.mean(), rtol=1e-12)
    monkeypatch.setattr(sample_parts, "_WINDOW", 0)
    assert_alike(sample_grams.sample_grams(objective), expected)


def test_samples_are_rows_of_the_targets() -> None:
    """Tokens of a flattened sequence: their outputs are rows, though the inputs have fewer."""
    model = nn.Sequential(nn.Linear(4, 6), nn.Unflatten(1, (2, 3)), nn.Flatten(0, 1)).double()
    objective = Objective(model, [(X[:3], torch.arange(6) % 3)], nn.CrossEntropyLoss())
    assert_alike(sample_grams.sample_grams(objective), dense(objective))


def piecewise(name: str) -> Objective:
    found = case(name)
    model = nn.Sequential(
        nn.Linear(4, 6), nn.LeakyReLU(), nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3)
    ).double()
    return found.objective() if name in ("linear", "convolution") else found._replace(model=model).objective()


@pytest.mark.parametrize("name", ["cross-entropy", "ignored class", "squared error", "linear", "convolution"])
def test_trace_of_the_hessian_is_exact_where_the_outputs_bend_in_no_tensor(name: str) -> None:
    objective = piecewise(name)
    assert_allclose(trace_hessian(objective), float(dense_hessian(objective).trace()), rtol=1e-12)


@pytest.mark.parametrize("name", ["cross-entropy", "tied", "transformer", "inputs by name"])
def test_trace_of_the_hessian_is_refused_where_a_tensor_bends_the_outputs(name: str) -> None:
    with pytest.raises(
        ValueError, match=r"piecewise linear in every parameter tensor.*got curvature in '.*spectra"
    ):
        trace_hessian(case(name).objective())


def test_a_bend_that_one_sample_alone_sees_is_refused() -> None:
    trace_hessian(Objective(Gated(N - 1), [(X[:-1], Y[:-1])], SQUARES))
    with pytest.raises(ValueError, match=r"got curvature in 'second.weight'"):
        trace_hessian(Objective(Gated(N - 1), [(X, Y)], SQUARES))


@pytest.mark.parametrize(
    "coupled",
    [
        lambda z: z.sum(0),
        lambda z: z[:2].prod(0),
        lambda z: z[2] * z[7],
        lambda z: z[2] * z[8],
        lambda z: z[1] * z[5],
        lambda z: 1e-5 * z[7] * z[8],
        lambda z: z.std(),
    ],
)
def test_a_loss_that_couples_samples_is_refused(coupled: Any) -> None:
    model = nn.Linear(4, 4).double()
    objective = Objective(model, [(X, Y)], lambda z, _: (z**2).mean() + (coupled(z) ** 2).mean())
    with pytest.raises(ValueError, match="got one that couples samples; use an estimate"):
        trace_gauss_newton(objective)


@pytest.mark.parametrize("scale", [1e2, 1e4, 1e8])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_saturation_is_no_coupling(scale: float, dtype: torch.dtype) -> None:
    """The curvature of a saturated softmax is rounding, of each sample by itself."""
    weights = scale * torch.eye(4, dtype=dtype)
    objective = Objective(
        lambda p, x: x @ p[0], [(X, Y.argmax(1))], nn.CrossEntropyLoss(), parameters=[weights]
    )
    found = sample_grams.sample_grams(objective)
    assert np.isfinite(found.traces).all()
    assert quadratic_forms(objective, torch.ones(16, 1)).shape == (N, 1)


def test_derivatives_that_are_not_finite_are_refused() -> None:
    root = of_function(lambda p, x: x * p[0].sqrt(), [torch.zeros(1).double()])
    bend = of_function(lambda p, x: x * p[0], [torch.zeros(1).double()], lambda z, _: (z.abs() ** 1.5).mean())
    for objective in (root, bend):
        with pytest.raises(ValueError, match="objective must have finite derivatives, got NaN or infinity"):
            sample_grams.sample_grams(objective)
