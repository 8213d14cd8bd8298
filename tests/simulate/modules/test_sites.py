"""Where parameters act: what counts as a site, what a model may do elsewhere, and derivatives of single samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from simulate.modules import site_gradients, sites
from simulate.modules.sample_grams import trace_gauss_newton
from simulate.modules.sites import by_sample, called, covers, visited
from simulate.objectives import Objective
from simulate.operators import gauss_newton
from tests.simulate.models_and_data import BUILDERS, case
from tests.simulate.modules.layer_kinds import AROUND, LAYERS, objective_of
from tests.simulate.small_perceptrons import assert_same

SQUARES = nn.MSELoss()


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape)), dtype=torch.float64)


ELSEWHERE = ("own layer, samples second", "gated", "beside layers of width 0")


@pytest.mark.parametrize("name", [name for name in (*LAYERS, *AROUND) if name not in ELSEWHERE])
def test_derivatives_at_sites_are_those_of_autograd(name: str) -> None:
    """Of every sample and their inner products, what these hold, along directions, and by way of the nudge."""
    objective = objective_of(name)
    leaves, batch = objective.leaves(), next(objective.batches())
    samples = len(batch.targets)
    with objective.measured():
        found = [site for site in visited(objective, leaves, batch)[1] if site.nudge.numel()]
    for site in found:
        own = {key: leaves[place].detach().requires_grad_() for key, place in site.places.items()}
        outputs = called(site, own, site.inputs.detach())
        cotangents, told = drawn(4, *outputs.shape), site_gradients.numbers_held(site, 4, samples)
        for key, parameter in own.items():
            rows = cotangents.unflatten(1, (samples, -1))
            apart = [
                torch.zeros_like(rows).index_copy(1, torch.tensor([i]), rows[:, [i]]) for i in range(samples)
            ]
            expected = torch.stack(
                [
                    torch.stack(
                        [
                            torch.autograd.grad(outputs, parameter, c, retain_graph=True)[0].flatten()
                            for c in each
                        ]
                    )
                    for each in (part.flatten(1, 2) for part in apart)
                ]
            )
            assert_same(site_gradients.per_sample(site, key, cotangents, samples), expected)
            left, right = site_gradients.gram_factors(site, key, cotangents, samples)
            assert_same(left @ right.mT, expected @ expected.mT)
            assert left[0].numel() + (right is not left) * right[0].numel() <= told
            pulled = sites.pulled(site, cotangents[0])[site.places[key]]
            assert_same(pulled.flatten(), expected[:, 0].sum(0))
        directions = [drawn(2, *shape) for shape in objective.shapes]
        moved = {key: own[key].detach() + directions[place] for key, place in site.places.items()}
        if (padding := getattr(site.layer, "padding_idx", None)) is not None:
            moved["weight"][:, padding] = own["weight"].detach()[padding]  # has no derivative
        ends = [called(site, {key: v[i] for key, v in moved.items()}, site.inputs.detach()) for i in range(2)]
        assert_same(sites.moved(site, directions), torch.stack(ends) - outputs.detach(), 1e-10)


@pytest.mark.parametrize("name", [*LAYERS, *AROUND])
def test_layers_and_what_is_made_of_them_are_covered(name: str) -> None:
    """A layer before samples come second takes them for positions, and nothing tells."""
    objective = objective_of(name)
    assert covers(objective) == (name != "beside layers of width 0")
    assert by_sample(objective) == (covers(objective) and name != "own layer, samples second")


@pytest.mark.parametrize("name", sorted(BUILDERS))
def test_sites_cover_models_of_layers_alone(name: str) -> None:
    objective = case(name).objective()
    assert covers(objective) == by_sample(objective) == (name != "tied")
    training = case(name).objective(training=True)
    assert training.model is not None
    drops = any(getattr(module, "p", 0) for module in training.model.modules())
    mixes = any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in training.model.modules())
    assert covers(training) == (name != "tied" and not drops and not mixes)


class Sly(nn.Module):
    """A layer, and its matrix used once more in `another` way."""

    def __init__(self, another: Callable[[nn.Linear, Tensor], Tensor]) -> None:
        super().__init__()
        self.layer, self.another = nn.Linear(4, 4).double(), another

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x) + self.another(self.layer, x)


@pytest.mark.parametrize(
    "another",
    [
        lambda layer, x: 1e-12 * layer.weight.sum(),
        lambda layer, x: nn.functional.linear(x, layer.weight) * (x > 9),
        lambda layer, x: layer.bias,
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_parameters_that_act_elsewhere_are_not_covered_however_little(
    another: Any, dtype: torch.dtype
) -> None:
    model = Sly(another).to(dtype)
    assert not covers(Objective(model, [(drawn(5, 4), drawn(5, 4))], SQUARES))


def test_layers_of_other_forwards_or_gradients_are_no_sites() -> None:
    class Doubled(nn.Linear):
        def forward(self, input: Tensor) -> Tensor:  # noqa: A002 (the name that torch gave it)
            return super().forward(input) * self.weight.sum()

    data = [(drawn(5, 4), drawn(5, 4))]
    assert not covers(Objective(Doubled(4, 4).double(), data, SQUARES))
    sparse = nn.Embedding(5, 4, sparse=True).double()
    assert not covers(Objective(sparse, [(torch.arange(5), drawn(5, 4))], SQUARES))


class Told(nn.Module):
    """Gives a layer its input by name, or more than that."""

    def __init__(self, by_name: bool) -> None:
        super().__init__()
        self.by_name, self.up, self.line = by_name, nn.ConvTranspose1d(4, 2, 2, stride=2), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.line(input=x) if self.by_name else self.line(x)
        return self.up(x[:, :, None], output_size=[3]).tanh().flatten(1)


@pytest.mark.parametrize("by_name", [True, False])
def test_layers_that_are_told_more_than_their_input_are_no_sites(by_name: bool) -> None:
    """The size of an output, say, which a site knows nothing of."""
    objective = Objective(Told(by_name).double(), [(drawn(5, 4), drawn(5, 6))], SQUARES)
    assert not covers(objective)
    assert abs(trace_gauss_newton(objective) / float(gauss_newton(objective).dense().trace()) - 1) <= 1e-12
