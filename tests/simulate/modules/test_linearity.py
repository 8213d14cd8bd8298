"""Outputs that are piecewise linear by the nodes of their graph, and what must not pass for it."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn

from simulate.modules import sample_grams
from simulate.modules.sample_grams import is_piecewise_linear, trace_hessian
from simulate.objectives import Objective
from simulate.operators import hessian
from tests.simulate.modules.layer_kinds import objective_of
from tests.simulate.modules.test_sites import drawn


class Written(nn.Module):
    """Two layers and what is made of what they give."""

    def __init__(self, made: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.one, self.other, self.made = nn.Linear(4, 3), nn.Linear(4, 3), made

    def forward(self, x: Tensor) -> Tensor:
        return self.made(self.one(x), self.other(x))


def of(model: nn.Module, x: Tensor, *, batch_size: int = 100) -> Objective:
    torch.default_generator.manual_seed(0)
    for parameter in model.double().parameters():
        nn.init.normal_(parameter)
    targets = torch.arange(len(x)) % 3
    batches = [(x[i : i + batch_size], targets[i : i + batch_size]) for i in range(0, len(x), batch_size)]
    return Objective(model, batches, nn.CrossEntropyLoss())


LINEAR = {
    "perceptron": (
        nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 4), nn.LeakyReLU(), nn.Linear(4, 3)),
        drawn(7, 4),
    ),
    "normalised": (
        nn.Sequential(
            nn.Conv2d(1, 2, 3, padding=1, bias=False),
            nn.BatchNorm2d(2, affine=False),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            nn.Conv2d(2, 3, 2),
            nn.Hardtanh(),
            nn.AvgPool2d(2),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(3, 3),
        ).eval(),
        drawn(7, 1, 6, 6),
    ),
    "residual": (Written(lambda a, b: torch.cat([a + 2 * b, (a - b).abs()], 1)[:, 1:4] / 2), drawn(7, 4)),
}


@pytest.mark.parametrize("name", LINEAR)
def test_the_trace_is_exact_without_a_product(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    objective = of(*LINEAR[name], batch_size=4)
    expected = float(hessian(objective).dense().trace())

    def none(_: Objective) -> Any:
        raise AssertionError("a product")

    if name == "residual":  # divided: a node that is not known
        assert not is_piecewise_linear(objective)
    else:
        monkeypatch.setattr(sample_grams, "h_term", none)
    assert_allclose(trace_hessian(objective), expected, rtol=1e-11)


@pytest.mark.parametrize(
    "made",
    [
        lambda a, b: a * b,
        lambda a, b: a * a,
        lambda a, b: a.tanh() + b,
        lambda a, b: (a + 1j * b).abs(),
        lambda a, b: (a * (1 + 2j) + b).abs(),
        lambda a, b: (a[:, :, None] @ b[:, None]).sum(2),
        lambda a, b: a + torch.where(b.detach()[:, :1] > 2.0, b.square(), b),
    ],
)
def test_what_bends_is_not_passed(made: Any) -> None:
    assert not is_piecewise_linear(of(Written(made), drawn(7, 4), batch_size=4))


def test_a_bend_in_a_batch_that_comes_later_is_not_passed() -> None:
    def bent(a: Tensor, b: Tensor) -> Tensor:
        steep = a.detach()[:, 0] > 3.0
        return torch.cat([a[~steep], a[steep].square()]) + b if bool(steep.any()) else a + b

    x = torch.cat([0.1 * drawn(4, 4), 100 * drawn(1, 4).abs() * torch.ones(1, 4)])
    model = Written(bent)
    model = model.double()
    nn.init.zeros_(model.one.bias)
    nn.init.ones_(model.one.weight)
    flat, whole = (
        Objective(model, [(part, torch.zeros(len(part)).long()) for part in parts], nn.CrossEntropyLoss())
        for parts in ((x[:4],), (x[:4], x[4:]))
    )
    assert is_piecewise_linear(flat) and not is_piecewise_linear(whole)


@pytest.mark.parametrize("kind", ["twice", "tokens"])
def test_layers_that_are_used_twice_or_bend_are_not_passed(kind: str) -> None:
    assert not is_piecewise_linear(objective_of(kind))
