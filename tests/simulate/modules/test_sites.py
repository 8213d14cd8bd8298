"""Sites where parameters act, and models that use them elsewhere; `test_laws` has the derivatives."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from simulate.modules import site_gradients
from simulate.modules.sample_grams import trace_gauss_newton
from simulate.modules.sites import by_sample, covers, visited
from simulate.objectives import Objective
from simulate.operators import gauss_newton
from tests.simulate.models_and_data import BUILDERS
from tests.simulate.modules.layer_kinds import AROUND, LAYERS, objective_of

SQUARES = nn.MSELoss()


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape)), dtype=torch.float64)


@pytest.mark.parametrize("name", [*LAYERS, "many positions", "three axes", "smooth on tokens"])
def test_what_derivatives_hold_is_told_before(name: str) -> None:
    objective = objective_of(name)
    batch = next(objective.batches())
    with objective.measured():
        _, found = visited(objective, batch)
    for site in found:
        told = site_gradients.numbers_held(site, 4, len(batch.targets))
        for key in site.places:
            cotangents = drawn(4, *site.nudge.shape)
            left, right = site_gradients.gram_factors(site, key, cotangents, len(batch.targets))
            assert left[0].numel() + (right is not left) * right[0].numel() <= told


@pytest.mark.parametrize("name", [*BUILDERS, *LAYERS, *AROUND])
def test_layers_and_what_is_made_of_them_are_covered(name: str) -> None:
    """A layer before samples come second takes them for positions, and nothing tells."""
    objective = objective_of(name)
    assert covers(objective) == (name not in ("tied", "beside layers of width 0"))
    assert by_sample(objective) == (covers(objective) and name != "own layer, samples second")
    if name in BUILDERS:
        training = objective_of(name, training=True)
        parts = list(training.model.modules())
        drops = any(getattr(part, "p", 0) for part in parts)
        mixes = any(isinstance(part, nn.modules.batchnorm._BatchNorm) for part in parts)
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
