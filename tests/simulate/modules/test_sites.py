"""Where parameters act: what counts as a site, what a model may do elsewhere, and derivatives of single samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from simulate.modules import site_gradients, sites
from simulate.modules.sample_grams import trace_gauss_newton
from simulate.modules.sites import Site, by_sample, covers, visited
from simulate.objectives import Objective
from simulate.objectives.restoring import as_found
from simulate.operators import gauss_newton
from tests.simulate.models_and_data import BUILDERS, case
from tests.simulate.small_perceptrons import assert_same

SAMPLES, SQUARES = 3, nn.MSELoss()


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape)), dtype=torch.float64)


TOKENS = torch.tensor([[0, 1, 1, 4], [2, 2, 2, 2], [3, 0, 4, 1]])

LAYERS: dict[str, tuple[Callable[[], nn.Module], Tensor]] = {
    "linear": (lambda: nn.Linear(4, 3), drawn(SAMPLES, 4)),
    "linear without bias": (lambda: nn.Linear(4, 3, bias=False), drawn(SAMPLES, 4)),
    "linear on two positions": (lambda: nn.Linear(7, 6), drawn(SAMPLES, 2, 7)),
    "linear on many positions": (lambda: nn.Linear(2, 3), drawn(SAMPLES, 5, 2, 2)),
    "linear on rows": (lambda: nn.Linear(3, 2), drawn(2 * SAMPLES, 3)),
    "convolution": (lambda: nn.Conv2d(2, 3, 2), drawn(SAMPLES, 2, 4, 3)),
    "convolution to a point": (lambda: nn.Conv2d(2, 3, (4, 3)), drawn(SAMPLES, 2, 4, 3)),
    "convolution in one dimension": (lambda: nn.Conv1d(2, 3, 3, padding="same"), drawn(SAMPLES, 2, 5)),
    "convolution in three dimensions": (lambda: nn.Conv3d(1, 2, 2, padding=1), drawn(SAMPLES, 1, 2, 3, 2)),
    "strided and dilated": (
        lambda: nn.Conv2d(2, 3, (2, 3), stride=(2, 1), dilation=(1, 2), padding=(1, 2)),
        drawn(SAMPLES, 2, 4, 5),
    ),
    "circular": (
        lambda: nn.Conv2d(2, 2, (3, 2), padding="same", padding_mode="circular"),
        drawn(SAMPLES, 2, 4, 4),
    ),
    "grouped": (lambda: nn.Conv2d(4, 6, 2, groups=2), drawn(SAMPLES, 4, 3, 3)),
    "depthwise": (lambda: nn.Conv2d(3, 3, 3, groups=3, padding=1), drawn(2 * SAMPLES, 3, 2, 4)),
    "transposed": (lambda: nn.ConvTranspose2d(2, 3, 2, stride=2), drawn(SAMPLES, 2, 3, 2)),
    "embedding": (lambda: nn.Embedding(5, 3), TOKENS),
    "embedding with padding": (lambda: nn.Embedding(5, 3, padding_idx=2), TOKENS),
    "embedding of a token": (lambda: nn.Embedding(5, 3, padding_idx=1), TOKENS[:, 1]),
    "layer norm": (lambda: nn.LayerNorm([2, 4]), drawn(SAMPLES, 3, 2, 4)),
    "layer norm without bias": (lambda: nn.LayerNorm(4, bias=False), drawn(2 * SAMPLES, 4)),
    "root mean square": (lambda: nn.RMSNorm(4), drawn(SAMPLES, 3, 4)),
    "group norm": (lambda: nn.GroupNorm(2, 4), drawn(SAMPLES, 4, 3, 2)),
    "batch norm": (lambda: nn.BatchNorm2d(4), drawn(SAMPLES, 4, 3, 2)),
    "batch norm of rows": (lambda: nn.BatchNorm1d(4), drawn(2 * SAMPLES, 4)),
}


def objective_of(model: nn.Module, x: Tensor, **options: Any) -> Objective:
    """Of random parameters, and buffers that are no identity."""
    model = model.double().eval()
    with torch.no_grad():
        for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
            if tensor.is_floating_point():
                tensor.copy_(
                    drawn(*tensor.shape) if "var" not in name else drawn(*tensor.shape).square() + 0.5
                )
        outputs = model(x)
    return Objective(model, [(x, torch.zeros_like(outputs))], SQUARES, **options)


def site_of(layer: nn.Module, x: Tensor) -> tuple[Site, Tensor, Objective]:
    objective = objective_of(layer, x)
    with as_found(layer, False):
        outputs, (site,) = visited(objective, objective.leaves(), next(objective.batches()))
    return site, outputs, objective


def own_gradients(objective: Objective, x: Tensor, cotangents: Tensor) -> list[Tensor]:
    """Of every sample by every parameter, with nothing but autograd: (n, r, size)."""
    found, step = [], len(x) // SAMPLES
    for i in range(SAMPLES):
        part = slice(i * step, (i + 1) * step)
        leaves = objective.leaves()
        outputs = objective.outputs(leaves, x[part])
        rows = [torch.autograd.grad(outputs, leaves, c[part], retain_graph=True) for c in cotangents]
        found.append([torch.stack([row[k].flatten() for row in rows]) for k in range(len(leaves))])
    return [torch.stack(parts) for parts in zip(*found, strict=True)]


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_of_samples_and_their_inner_products_are_those_of_autograd(name: str) -> None:
    build, x = LAYERS[name]
    site, outputs, objective = site_of(build(), x)
    cotangents = drawn(2, *outputs.shape)
    for parameter, expected in zip(objective.names, own_gradients(objective, x, cotangents), strict=True):
        assert_same(site_gradients.per_sample(site, parameter, cotangents, SAMPLES), expected)
        left, right = site_gradients.gram_factors(site, parameter, cotangents, SAMPLES)
        assert_same(left @ right.mT, expected @ expected.mT)


@pytest.mark.parametrize("name", LAYERS)
def test_what_derivatives_hold_is_told_before(name: str) -> None:
    build, x = LAYERS[name]
    site, outputs, objective = site_of(build(), x)
    told, cotangents = site_gradients.numbers_held(site, 4, SAMPLES), drawn(4, *outputs.shape)
    for parameter in objective.names:
        left, right = site_gradients.gram_factors(site, parameter, cotangents, SAMPLES)
        assert left[0].numel() + (right is not left) * right[0].numel() <= told


@pytest.mark.parametrize("name", LAYERS)
def test_outputs_move_by_what_the_layer_gives_for_a_direction(name: str) -> None:
    build, x = LAYERS[name]
    site, outputs, objective = site_of(build(), x)
    directions = tuple(drawn(2, *shape) for shape in objective.shapes)
    masked = [d.clone() for d in directions]
    if (padding := getattr(site.layer, "padding_idx", None)) is not None:
        masked[0][:, padding] = 0  # has no derivative
    leaves = objective.leaves()
    ends = [objective.outputs([p + d[i] for p, d in zip(leaves, masked, strict=True)], x) for i in range(2)]
    assert_same(sites.moved(site, directions), torch.stack([end - outputs for end in ends]).detach(), 1e-10)


@pytest.mark.parametrize("name", LAYERS)
def test_the_derivative_by_a_layer_follows_from_that_by_its_nudge(name: str) -> None:
    build, x = LAYERS[name]
    site, outputs, objective = site_of(build(), x)
    weights, leaves = drawn(*outputs.shape), objective.leaves()
    (slope,) = torch.autograd.grad(outputs, site.nudge, weights)
    expected = torch.autograd.grad(objective.outputs(leaves, x), leaves, weights)
    found = sites.pulled(site, slope)
    for place, gradient in enumerate(expected):
        assert_same(found[place], gradient)


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
    assert not covers(objective_of(nn.Embedding(5, 3, sparse=True), TOKENS))


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
    objective = objective_of(Told(by_name), drawn(5, 4))
    assert not covers(objective)
    assert abs(trace_gauss_newton(objective) / float(gauss_newton(objective).dense().trace()) - 1) <= 1e-12
