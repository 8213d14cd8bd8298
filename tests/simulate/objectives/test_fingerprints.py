"""Answers hold for another objective of the same model and loss, and are asked for anew if anything differs."""

import copy
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from simulate.modules import sites
from simulate.objectives import Objective, soundness
from simulate.operators import hessian
from tests.refusals import refusal

X, Y = torch.linspace(-1, 1, 20).view(5, 4).sin(), torch.tensor([0, 1, 2, 1, 0])
SWITCH = {"detached": False}


class Switched(nn.Module):
    """A model whose forward pass changes by flags of its own, of its class, in a buffer, or of everybody."""

    of_class = False
    switch: Tensor

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(4, 3), nn.Linear(3, 3)
        self.detached, self.mixing, self.gate = False, False, nn.Parameter(torch.ones(1))
        self.register_buffer("switch", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x).tanh()
        if self.detached or SWITCH["detached"] or self.of_class or bool(self.switch):
            h = h * self.first.weight.detach().norm()
        return self.second(h + self.gate * (h.mean(0) if self.mixing else h))


def objective(model: nn.Module, loss: Any = None, **given: Any) -> Objective:
    return Objective(model, (X, Y), loss or nn.CrossEntropyLoss(), **given)


def require_unsound(model: nn.Module, loss: Any = None) -> None:
    with refusal("must agree with finite differences"):
        objective(model, loss).require_sound()


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Objectives whose derivatives are compared with differences."""
    found = list[Any]()
    plain = soundness._contradictions
    monkeypatch.setattr(soundness, "_SOUND", {})
    monkeypatch.setattr(
        soundness,
        "_contradictions",
        lambda o, *given, **named: (found.append(o), plain(o, *given, **named))[1],
    )
    return found


def test_a_second_objective_is_not_asked_again(asked: list[Any]) -> None:
    """Nor one of a copy, of new parameters of the same size, or on other data of these shapes."""
    model = Switched()
    objective(model).require_sound()
    other = copy.deepcopy(model)
    with torch.no_grad():
        other.first.weight.mul_(1.01)
    for again in (
        objective(model),
        objective(other),
        Objective(other, (X.flip(0), Y), nn.CrossEntropyLoss()),
    ):
        again.require_sound()
    assert len(asked) == 1


def _flag(model: Switched, monkeypatch: pytest.MonkeyPatch) -> None:
    model.detached = True


def _flag_of_class(model: Switched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Switched, "of_class", True)


def _flag_in_a_buffer(model: Switched, monkeypatch: pytest.MonkeyPatch) -> None:
    model.switch.fill_(1.0)


def _flag_of_everybody(model: Switched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SWITCH, "detached", True)


def _other_code(model: Switched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Switched, "forward", lambda self, x: self.second(self.first(x).detach() * self.first(x))
    )


def _hook(model: Switched, monkeypatch: pytest.MonkeyPatch) -> None:
    model.first.register_forward_hook(lambda *given: given[-1] * given[-1].detach().norm())


@pytest.mark.parametrize(
    "change", [_flag, _flag_of_class, _flag_in_a_buffer, _flag_of_everybody, _other_code, _hook]
)
def test_a_changed_model_is_asked_anew(
    change: Callable[[Switched, pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was sound; it is refused after the change."""
    model = Switched()
    objective(model).require_sound()
    change(model, monkeypatch)
    require_unsound(model)


def test_another_loss_is_asked_about_anew() -> None:
    """Also a loss whose own attribute changes."""

    class Scaled(nn.Module):
        detached = False

        def forward(self, z: Tensor, y: Tensor) -> Tensor:
            return nn.functional.cross_entropy(z, y) * (z.detach() if self.detached else z).square().sum()

    loss = Scaled()
    objective(Switched(), loss).require_sound()
    loss.detached = True
    require_unsound(Switched(), loss)


def _weighted(z: Tensor, y: Tensor) -> Tensor:
    weight = z.detach() if SWITCH["detached"] else torch.ones_like(z)
    return (z.square() * weight).mean()


def test_a_detached_factor_is_no_constant(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both leave the same graph."""
    objective(Switched(), _weighted).require_sound()
    monkeypatch.setitem(SWITCH, "detached", True)
    require_unsound(Switched(), _weighted)


@pytest.mark.parametrize("own", [False, True])
def test_a_closure_is_asked_about_each_time(own: bool, asked: list[Any]) -> None:
    model = Switched()
    kept = [torch.ones(1)]

    def loss(z: Tensor, y: Tensor) -> Tensor:
        return nn.functional.cross_entropy(z, y) + kept[0].square().sum()

    objective(model, loss).require_sound()
    if not own:
        objective(model, loss).require_sound()
        assert len(asked) == 2
        return
    kept[0] = model.first.weight
    with refusal("only by calling the model"):
        objective(model, loss).require_sound()


def test_other_shapes_and_modes_are_asked_about_anew(asked: list[Any]) -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.0), nn.Tanh(), nn.Linear(3, 3))
    objective(model).require_sound()
    objective(model, training=True).require_sound()
    objective(model, parameters=["0"]).require_sound()
    Objective(model, (X[:1], Y[:1]), nn.CrossEntropyLoss()).require_sound()
    assert len(asked) == 4


def test_a_gate_that_was_closed_says_nothing_of_an_open_one() -> None:
    """A part that couples samples is multiplied by zero at first, as in networks that start as the identity."""
    model = Switched()
    model.mixing = True
    with torch.no_grad():
        model.gate.zero_()
    closed = objective(model)
    assert (
        closed.separable and closed.apart and sites.by_sample(closed) is False
    )  # the gate acts outside of layers
    with torch.no_grad():
        model.gate.fill_(1.0)
    opened = objective(model)
    assert not opened.separable and not opened.apart


def test_what_differences_cannot_decide_is_asked_each_time(asked: list[Any]) -> None:
    """A dead unit hides what a live one shows."""
    model = Switched()
    with torch.no_grad():
        model.second.weight.zero_()
    objective(model).require_sound()
    objective(model).require_sound()
    assert len(asked) == 2


BIG = np.zeros(100_000)


@pytest.mark.parametrize(
    ("held", "times"),
    [(open, 1), (functools.partial(abs, 1), 1), (lambda kept=BIG: kept, 1), (BIG.sum, 2)],
)
def test_attributes_of_any_kind_are_compared_or_asked_about_each_time(
    held: Any, times: int, asked: list[Any]
) -> None:
    """Functions by what they are, other objects by their pickle if it is short; another one is asked about anew."""
    model = Switched()
    for attribute in (held, held, functools.partial(abs, 2)):
        setattr(model, "attribute", attribute)  # noqa: B010
        objective(model).require_sound()
    assert len(asked) == times + 1


def test_other_data_of_one_shape_may_couple() -> None:
    """Whether the loss splits depends on its targets."""
    loss = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 1.0, 5.0]))
    model = nn.Linear(4, 3)
    few, all_of_them = (Objective(model, (X, y), loss, count=len) for y in (Y % 2, Y))
    assert few.separable and not all_of_them.separable


def test_products_are_those_of_a_first_objective() -> None:
    model, vector = Switched(), torch.ones(28)
    first, second = (hessian(objective(model)) @ vector for _ in range(2))
    assert torch.equal(first, second)


@pytest.mark.parametrize("middle", ["convolution", "linear"])
def test_single_precision_is_checked_with_buffers_and_fixed_parameters(middle: str) -> None:
    """Fixed tensors of a model are converted to double precision too."""

    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(4, 3), nn.Linear(3, 3)
            self.middle = (
                nn.BatchNorm2d(1) if middle == "convolution" else nn.Linear(3, 3).requires_grad_(False)
            )

        def forward(self, x: Tensor) -> Tensor:
            h = self.first(x) * self.first.weight.detach().norm()
            h = h[:, None, None] if middle == "convolution" else h
            return self.last(self.middle(h).flatten(1))

    require_unsound(Scaled())
