"""Logits by chunks of positions: every number is that of all logits at once, whatever the chunks."""

import functools
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

MATRICES = (hessian, gauss_newton, h_term, fisher, empirical_fisher)
WEIGHTS = torch.linspace(0.2, 2.0, V, dtype=torch.float64)
PLACES = {
    "all": {},
    "the body alone": {"parameters": ["block"]},
    "the head alone": {"parameters": ["head"]},
    "the sum": {"loss": nn.CrossEntropyLoss(reduction="sum")},
    "weighed classes": {"loss": nn.CrossEntropyLoss(weight=WEIGHTS)},
    "smoothed": {"loss": nn.CrossEntropyLoss(label_smoothing=0.2)},
    "smoothed, the body alone": {
        "loss": nn.CrossEntropyLoss(WEIGHTS, label_smoothing=0.2), "parameters": ["block"]
    },
    "chunks of samples": {"chunk": 2},
    "in training mode": {"training": True},
}  # fmt: skip


def _running_again() -> nn.Module:
    """Its body runs again in the backward pass."""
    model = MaskedModel()
    model.block.forward = functools.partial(checkpoint, model.block.forward, use_reentrant=False)
    return model


MODELS = {
    "tied": CausalModel,
    "with a bias": lambda: CausalModel(tied=False, bias=True),
    "whose parts run again": _running_again,
}


def both(model: nn.Module, monkeypatch: pytest.MonkeyPatch, at_once: int, **given: Any) -> list[Objective]:
    """All logits at once, and in chunks."""
    loss, data = given.pop("loss", nn.CrossEntropyLoss()), given.pop("data", batch())
    plain = Objective(model, data, loss, **given)
    monkeypatch.setattr(heads, "LARGE", 1)
    monkeypatch.setattr(heads, "AT_ONCE", at_once)
    chunked = Objective(model, data, loss, **given)
    few = next(chunked.batches())
    assert plain.head_of(few) is None and chunked.head_of(few) is not None
    return [plain, chunked]


def vectors(objective: Objective) -> Tensor:
    """Two columns."""
    return torch.linspace(0, 9, 2 * objective.dim, dtype=torch.float64).cos().view(-1, 2)


def same(objectives: list[Objective], *matrices: Callable[[Objective], Any]) -> None:
    """Values, gradients and products."""
    plain, chunked = objectives
    assert abs(chunked.value() - plain.value()) < 1e-12 * max(1.0, plain.value())
    assert_same(chunked.gradient(), plain.gradient())
    assert chunked.separable == plain.separable
    for matrix in matrices:
        assert_same(matrix(chunked) @ vectors(plain), matrix(plain) @ vectors(plain), 1e-11)


@pytest.mark.parametrize(("kept", "at_once"), [(True, 1), (False, 7 * V)])
@pytest.mark.parametrize("build", MODELS)
def test_chunks_of_positions_are_no_matter(
    build: str, kept: bool, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks of one position, or of a number that does not divide all, kept or computed again for every product."""
    if not kept:
        monkeypatch.setattr(head_products._memory, "is_free", lambda *_: False)
    same(both(MODELS[build](), monkeypatch, at_once), hessian, empirical_fisher)


@pytest.mark.parametrize("place", PLACES)
def test_whatever_loss_and_parameters(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    same(both(CausalModel(tied=False, bias=True), monkeypatch, 4 * V, **PLACES[place]), *MATRICES)


def test_batches_of_other_lengths_have_the_same_head(monkeypatch: pytest.MonkeyPatch) -> None:
    short = {name: tensor[:, :3] for name, tensor in part(batch(), slice(0, 2)).items()}
    data, loss = [short, part(batch(), slice(2, N))], nn.functional.cross_entropy
    same(both(CausalModel(), monkeypatch, 4 * V, data=data, loss=loss), hessian)


def test_no_chunk_is_larger_than_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted error: with all of them in one chunk this fails."""
    _, chunked = both(CausalModel(), monkeypatch, 4 * V)
    seen = []
    plain = head_products.functional.linear
    monkeypatch.setattr(
        head_products.functional, "linear", lambda *given: (seen.append(len(given[0])), plain(*given))[1]
    )
    _ = gauss_newton(chunked) @ torch.ones(chunked.dim, dtype=torch.float64)
    assert max(n for n in seen if n != N) <= 4 * T


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
    given = batch()
    objective = Objective(build(), (given, given.pop("labels")), nn.CrossEntropyLoss())
    assert objective.head_of(objective.few()) is None
    assert objective.value() > 0


def with_hook() -> nn.Module:
    loss = nn.CrossEntropyLoss()
    loss.register_forward_hook(lambda _, given, found: found.square())
    return loss


@pytest.mark.parametrize(
    ("loss", "reduction"),
    [
        (with_hook(), None),
        (nn.CrossEntropyLoss(), "sum"),
        (nn.CrossEntropyLoss(reduction="sum"), "mean"),
    ],
)
def test_what_does_not_add_up_over_positions_takes_all_logits(
    loss: Any, reduction: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Objective(CausalModel(), batch(), loss, reduction=reduction)
    monkeypatch.setattr(heads, "LARGE", 1)
    monkeypatch.setattr(heads, "AT_ONCE", 4 * V)
    same([plain, Objective(CausalModel(), batch(), loss, reduction=reduction)], gauss_newton)
