"""Logits by chunks of positions: every number is that of all logits at once, whatever the chunks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from simulate.objectives import Objective, head_products, heads
from simulate.operators import empirical_fisher, fisher, gauss_newton, h_term, hessian
from tests.simulate.objectives.language import CausalModel, Found, MaskedModel, N, T, V, batch, part
from tests.simulate.small_perceptrons import assert_same

MATRICES = {
    "hessian": hessian,
    "gauss_newton": gauss_newton,
    "h_term": h_term,
    "fisher": fisher,
    "empirical_fisher": empirical_fisher,
}


WEIGHTS = torch.linspace(0.2, 2.0, V, dtype=torch.float64)
PLACES: dict[str, dict[str, Any]] = {
    "all": {},
    "the body alone": {"parameters": ["block"]},
    "the head alone": {"parameters": ["head"]},
    "the sum": {"loss": nn.CrossEntropyLoss(reduction="sum")},
    "weighed classes": {"loss": nn.CrossEntropyLoss(weight=WEIGHTS)},
    "smoothed": {"loss": nn.CrossEntropyLoss(label_smoothing=0.2)},
    "chunks of samples": {"chunk": 2},
    "in training mode": {"training": True},
}


class Checkpointed(MaskedModel):
    """Its body runs again in the backward pass."""

    def forward(self, input_ids: Tensor, attention_mask: Any = None, labels: Any = None) -> Found:
        places = torch.arange(input_ids.shape[1])
        start: Any = self.embed(input_ids) + self.place(places)
        hidden: Any = checkpoint(self.block, start, attention_mask, use_reentrant=False)
        found = Found(logits=self.head(hidden))
        if labels is not None:
            found["loss"] = self.own_loss(found["logits"], labels)
        return found


MODELS: dict[str, Callable[[], nn.Module]] = {
    "tied": CausalModel,
    "with a bias": lambda: CausalModel(tied=False, bias=True),
    "whose parts run again": Checkpointed,
}


def both(model: nn.Module, monkeypatch: pytest.MonkeyPatch, at_once: int, **given: Any) -> list[Objective]:
    """All logits at once, and in chunks."""
    loss = given.pop("loss", nn.CrossEntropyLoss())
    plain = Objective(model, batch(), loss, **given)
    monkeypatch.setattr(heads, "LARGE", 1)
    monkeypatch.setattr(heads, "AT_ONCE", at_once)
    chunked = Objective(model, batch(), loss, **given)
    few = next(chunked.batches())
    assert plain.head_of(few) is None and chunked.head_of(few) is not None
    return [plain, chunked]


def vectors(objective: Objective) -> Tensor:
    """Two columns."""
    return torch.linspace(0, 9, 2 * objective.dim, dtype=torch.float64).cos().view(-1, 2)


def test_the_function_of_torch_is_one_by_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, chunked = both(CausalModel(), monkeypatch, 4 * V, loss=nn.functional.cross_entropy)
    assert_same(hessian(chunked) @ vectors(plain), hessian(plain) @ vectors(plain), 1e-11)


@pytest.mark.parametrize(("kept", "at_once"), [(True, 1), (False, 7 * V)])
@pytest.mark.parametrize("matrix", ["hessian", "empirical_fisher"])
@pytest.mark.parametrize("build", MODELS)
def test_chunks_of_positions_are_no_matter(
    build: str, matrix: str, kept: bool, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one position, and of some that do not divide all; what is kept, or made anew for every product."""
    if not kept:
        monkeypatch.setattr(head_products._memory, "is_free", lambda *_: False)
    plain, chunked = both(MODELS[build](), monkeypatch, at_once)
    expected, found = (MATRICES[matrix](objective) @ vectors(objective) for objective in (plain, chunked))
    assert_same(found, expected, 1e-11)


@pytest.mark.parametrize("matrix", MATRICES)
@pytest.mark.parametrize("place", PLACES)
def test_whatever_loss_and_parameters(place: str, matrix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, chunked = both(CausalModel(tied=False, bias=True), monkeypatch, 4 * V, **PLACES[place])
    found, expected = (MATRICES[matrix](objective) @ vectors(objective) for objective in (chunked, plain))
    assert_same(found, expected, 1e-11)


LOSSES = [
    nn.CrossEntropyLoss(),
    nn.CrossEntropyLoss(label_smoothing=0.2),
    nn.CrossEntropyLoss(weight=WEIGHTS),
]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("matrix", MATRICES)
def test_a_layer_may_be_fixed(matrix: str, loss: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = CausalModel(tied=False, bias=True)
    plain, chunked = both(model, monkeypatch, 4 * V, parameters=["block"], loss=loss)
    found, expected = (MATRICES[matrix](objective) @ vectors(objective) for objective in (chunked, plain))
    assert_same(found, expected, 1e-11)


@pytest.mark.parametrize("place", PLACES)
def test_loss_and_gradient_are_the_same(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, chunked = both(CausalModel(), monkeypatch, 4 * V, **PLACES[place])
    assert abs(chunked.value() - plain.value()) < 1e-12
    assert_same(chunked.gradient(), plain.gradient(), 1e-12)
    assert chunked.separable == plain.separable


def test_no_chunk_is_larger_than_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted error: with all of them in one chunk this fails."""
    _, chunked = both(CausalModel(), monkeypatch, 4 * V)
    seen: list[int] = []
    plain = head_products.functional.linear
    monkeypatch.setattr(
        head_products.functional, "linear", lambda *given: (seen.append(len(given[0])), plain(*given))[1]
    )
    _ = gauss_newton(chunked) @ torch.ones(chunked.dim, dtype=torch.float64)
    assert max(n for n in seen if n != N) <= 4 * T


def test_batches_of_other_lengths_have_the_same_head(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = batch()
    short = {name: tensor[:, :3] for name, tensor in part(whole, slice(0, 2)).items()}
    data = [short, part(whole, slice(2, N))]
    plain = Objective(CausalModel(), data, nn.CrossEntropyLoss())
    monkeypatch.setattr(heads, "LARGE", 1)
    chunked = Objective(CausalModel(), data, nn.CrossEntropyLoss())
    assert_same(hessian(chunked) @ vectors(plain), hessian(plain) @ vectors(plain), 1e-11)


class Capped(MaskedModel):
    """Logits are bent after the last layer."""

    def forward(self, *args: Any, **given: Any) -> Found:
        found = super().forward(*args, **given)
        return Found(found, logits=5 * (found["logits"] / 5).tanh())


class Twice(MaskedModel):
    """The last layer is used inside too."""

    def forward(self, input_ids: Tensor, attention_mask: Any = None, labels: Any = None) -> Found:
        found = super().forward(input_ids, attention_mask, None)
        return Found(logits=self.head(found["hidden"] + self.head(found["hidden"]).mean(-1, keepdim=True)))


def hooked() -> nn.Module:
    model = MaskedModel()
    model.head.register_forward_hook(lambda *given: given[-1] * 2)
    return model


@pytest.mark.parametrize("build", [Capped, Twice, hooked])
def test_a_layer_that_is_not_the_last_thing_stays(build: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "LARGE", 1)
    given = {name: tensor for name, tensor in batch().items() if name != "labels"}
    objective = Objective(build(), (given, batch()["labels"]), nn.CrossEntropyLoss())
    assert objective.head_of(objective.few()) is None
    assert objective.value() > 0


class Squared(nn.CrossEntropyLoss):
    """No sum over positions."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:  # noqa: A002 (the name that torch gave it)
        return super().forward(input, target).square()


def with_hook() -> nn.Module:
    loss = nn.CrossEntropyLoss()
    loss.register_forward_hook(lambda _, given, found: found.square())
    return loss


COUPLED: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "derived": (Squared, {}),
    "hooked": (with_hook, {}),
    "a mean said to be a sum": (nn.CrossEntropyLoss, {"reduction": "sum"}),
    "a sum said to be a mean": (lambda: nn.CrossEntropyLoss(reduction="sum"), {"reduction": "mean"}),
}


@pytest.mark.parametrize("name", COUPLED)
def test_what_does_not_add_up_over_positions_takes_all_logits(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loss, given = COUPLED[name]
    plain = Objective(CausalModel(), batch(), loss(), **given)
    monkeypatch.setattr(heads, "LARGE", 1)
    monkeypatch.setattr(heads, "AT_ONCE", 4 * V)
    found = Objective(CausalModel(), batch(), loss(), **given)
    assert abs(found.value() - plain.value()) < 1e-12 * plain.value()
    assert_same(gauss_newton(found) @ vectors(found), gauss_newton(plain) @ vectors(plain), 1e-11)
