"""Inner products of gradients against dense Jacobians, by every route; their eigenvalues against those of curvature."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn

from simulate import _memory
from simulate.modules import empirical_kernel as module, site_gradients
from simulate.modules.empirical_kernel import empirical_kernel
from simulate.modules.samples import outer_of
from simulate.objectives import Objective
from simulate.objectives.batches import joined
from simulate.operators import fisher, gauss_newton
from tests.simulate.dense_matrices import rng
from tests.simulate.models_and_data import BUILDERS, case, dense_jacobian


class Twice(nn.Module):
    """A layer that is called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(self.layer(x).tanh())


class Centred(nn.Module):
    """Samples that see each other."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x - x.mean(0)).tanh()


def built(kind: type[nn.Module]) -> nn.Module:
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(0)
        return kind().double()


def by_jacobian(objective: Objective, inputs: Any, samples: int) -> Tensor:
    rows = dense_jacobian(objective, inputs)
    gram = rows @ rows.mT
    return gram.view(samples, -1, samples, len(rows) // samples)


@pytest.mark.parametrize("name", BUILDERS)
def test_kernels_are_those_of_the_jacobian(name: str) -> None:
    """Of every kind of model, by whatever route it takes."""
    found = case(name)
    inputs = joined([x for x, _ in found.data])
    names = [n for n, p in found.model.named_parameters() if p.requires_grad]
    kernel = empirical_kernel(found.model, inputs, parameters=names)
    expected = by_jacobian(found.objective(), inputs, 9)

    assert_allclose(kernel, expected, atol=1e-11)
    assert_allclose(
        empirical_kernel(found.model, inputs, parameters=names, traced=True),
        expected.diagonal(dim1=1, dim2=3).sum(2),
        atol=1e-11,
    )


@pytest.mark.parametrize("kind", [Twice, Centred])
def test_layers_called_twice_and_samples_that_see_each_other(kind: type[nn.Module]) -> None:
    model, x = built(kind), torch.from_numpy(rng(1).standard_normal((5, 3)))
    objective = Objective(model, (x, model(x).detach()), nn.MSELoss())

    assert_allclose(empirical_kernel(model, x), by_jacobian(objective, x, 5), atol=1e-12)


class Folded(nn.Module):
    """Positions are folded into the samples before a layer, (N, T, d) to (N T, d)."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.head = nn.Linear(2, 2), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layer(x.reshape(-1, 2)).tanh().view(len(x), 6))


def test_a_layer_on_positions_that_are_folded_into_the_samples_has_a_kernel() -> None:
    model, x = built(Folded), torch.from_numpy(rng(1).standard_normal((5, 3, 2)))
    expected = by_jacobian(Objective(model, (x, model(x).detach()), nn.MSELoss()), x, 5)

    assert_allclose(empirical_kernel(model, x), expected, atol=1e-12)
    traces = expected.diagonal(dim1=1, dim2=3).sum(2)
    assert_allclose(empirical_kernel(model, x, traced=True), traces, atol=1e-12)


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("name", ["convolution", "tied"])
def test_blocks_within_memory_make_the_whole(
    name: str, traced: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = case(name)
    inputs = joined([x for x, _ in found.data])
    whole = empirical_kernel(found.model, inputs, traced=traced)
    objective = found.objective()
    count = 3 if name == "convolution" else 4
    monkeypatch.setattr(site_gradients, "_BYTES", 1)
    monkeypatch.setattr(
        _memory, "available", lambda device: module._SHARE * 2 * 2 * count * objective.dim * 8
    )

    assert_allclose(empirical_kernel(found.model, inputs, traced=traced), whole, atol=1e-12)


def test_a_function_of_parameters_has_a_kernel() -> None:
    x = torch.from_numpy(rng(2).standard_normal((4, 3)))
    leaves = [torch.from_numpy(rng(3).standard_normal(shape)) for shape in ((2, 3), (2,))]
    kernel = empirical_kernel(lambda p, x: (x @ p[0].T).exp() * p[1], x.numpy(), parameters=leaves)
    outputs = (x @ leaves[0].T).exp()
    expected = torch.einsum("nk,mk,nm->nkm", outputs * leaves[1], outputs * leaves[1], x @ x.mT)
    expected += torch.einsum("nk,mk->nkm", outputs, outputs)

    assert_allclose(kernel.diagonal(dim1=1, dim2=3).movedim(2, 1), expected, atol=1e-12)
    assert not kernel[:, 0, :, 1].any()


@pytest.mark.parametrize("name", ["cross-entropy", "convolution", "transformer"])
def test_eigenvalues_are_those_of_the_fisher_information(name: str) -> None:
    """J J' / N has those of J' J / N, the Fisher information of outputs of unit variance."""
    found = case(name)
    inputs = joined([x for x, _ in found.data])
    kernel = empirical_kernel(found.model, inputs).flatten(2).flatten(0, 1) / 9
    matrix = fisher(Objective(found.model, found.data, nn.MSELoss()), likelihood="gaussian").dense()
    one, other = (torch.linalg.eigvalsh(m).flip(0) for m in (kernel, matrix))
    least = min(len(one), len(other))

    assert_allclose(one[:least], other[:least], atol=1e-11)
    assert one[least:].abs().max(initial=0) < 1e-11 if len(one) > least else other[least:].abs().max() < 1e-11


def test_eigenvalues_with_the_curvature_of_the_loss_are_those_of_the_gauss_newton_matrix() -> None:
    found = case("cross-entropy")
    data = tuple(joined(list(part)) for part in zip(*found.data, strict=True))
    objective = Objective(found.model, data, found.loss)
    (batch,) = objective.batches()
    blocks = outer_of(objective, batch).blocks(slice(None))
    kernel = empirical_kernel(found.model, data[0])
    product = objective.share * torch.einsum("nij,njmk->nimk", blocks, kernel).flatten(2).flatten(0, 1)
    values = np.sort(np.linalg.eigvals(product.numpy()).real)[::-1]

    assert_allclose(
        values[:18], torch.linalg.eigvalsh(gauss_newton(objective).dense()).flip(0)[:18], atol=1e-11
    )


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: empirical_kernel(nn.Flatten(0), torch.ones(2, 3)), "model must have a parameter"),
        (
            lambda: empirical_kernel(nn.Sequential(nn.Linear(3, 2), nn.Flatten(0)), torch.ones(4, 3)),
            r"model must return one row for each of 4 samples, got shape \(8,\)",
        ),
    ],
)
def test_what_has_no_kernel_is_refused(ask: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ask()


@pytest.mark.parametrize(
    ("free", "traced", "said"),
    [
        (1e4, False, "the inner products of 9 samples and 3 outputs need"),
        (3e3, True, "the derivatives of 3 outputs of 9 samples need"),
    ],
)
def test_kernels_beyond_memory_are_refused(
    free: float, traced: bool, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = case("cross-entropy")
    inputs = joined([x for x, _ in found.data])
    monkeypatch.setattr(_memory, "available", lambda device: free)
    monkeypatch.setattr(_memory, "_UNASKED", 0)
    with pytest.raises(ValueError, match=said):
        empirical_kernel(found.model, inputs, traced=traced)
