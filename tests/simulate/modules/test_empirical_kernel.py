"""Inner products of gradients against dense Jacobians, by every route; their eigenvalues against those of curvature."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn

from simulate import _memory
from simulate.modules import empirical_kernel as module, site_gradients
from simulate.modules.empirical_kernel import empirical_kernel
from simulate.objectives import Objective
from simulate.objectives.batches import joined
from tests.simulate.dense_matrices import rng
from tests.simulate.models_and_data import BUILDERS, case, dense_jacobian


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
