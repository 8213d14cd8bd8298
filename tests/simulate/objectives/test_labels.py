"""Labels of a mapping, moved or not: what the model's own loss does with them, whatever is kept of them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from simulate.objectives import Objective
from tests.simulate.objectives.language import IGNORED, CausalModel, Found, MaskedModel, N, T, batch, part
from tests.simulate.objectives.losses import LABELS, X, network
from tests.simulate.objectives.test_language_models import LOSS, MODELS, Truth
from tests.simulate.small_perceptrons import assert_same


def alone(given: Any, kept: int = 1) -> Any:
    """Nothing to predict but at the first positions."""
    return {**given, "labels": given["labels"].where(torch.arange(T) < kept, IGNORED)}


@pytest.mark.parametrize("build", MODELS)
@pytest.mark.parametrize("first", [True, False])
def test_a_batch_with_nothing_kept_after_the_first_position_is_taken_as_all_others(
    build: type[CausalModel], first: bool
) -> None:
    """A model that moves labels predicts nothing there, one that does not predicts the first position."""
    model, given = build(), batch()
    bare, whole = alone(part(given, slice(0, 2))), dict(part(given, slice(2, N)))
    data = [bare, whole] if first else [whole, bare]
    joined = {name: torch.cat([each[name] for each in data]) for name in bare}
    truth = Truth(model, joined)
    objective = Objective(model, data, LOSS)

    assert objective.shifted == model.moves and objective.samples == int(truth.kept.sum())
    for _ in range(2):
        assert abs(objective.value() - truth.loss(truth.start).item()) < 1e-12
    assert_same(objective.gradient(), torch.func.grad(truth.loss)(truth.start), 1e-11)


@pytest.mark.parametrize("positions", [1, T])
def test_where_no_batch_has_anything_later_the_model_is_asked_all_the_same(positions: int) -> None:
    given = {name: each[:, :positions] for name, each in alone(batch()).items()}
    found = Objective(MaskedModel(), given, LOSS)
    assert not found.shifted and abs(found.value() - MaskedModel()(**given)["loss"].item()) < 1e-12
    with pytest.raises(ValueError, match="at least one sample, got none"):
        Objective(CausalModel(), given, LOSS)


class Faulty(CausalModel):
    """An error inside, of the kind that a call with a wrong name raises."""

    kind: type[Exception] = TypeError

    def own_loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        raise self.kind("unsupported operand")


class Handed(nn.Module):
    """Hands on whatever it is given."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, **given: Any) -> Any:
        return self.body(**given)


class Bare(CausalModel):
    """Takes no labels."""

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Found:  # type: ignore[override]
        return super().forward(input_ids, attention_mask)


@pytest.mark.parametrize("wrap", [lambda model: model, Handed])
@pytest.mark.parametrize("kind", [TypeError, ValueError, KeyError])
def test_an_error_of_a_model_that_takes_labels_is_told(kind: Any, wrap: Any) -> None:
    """Not taken for one that takes none, whose labels would stand as they are."""
    model = Faulty()
    model.kind = kind
    line = f"model must give its own loss with labels among its inputs, got {kind.__name__}: .*unsupported.*give pairs"
    with pytest.raises(ValueError, match=line):
        Objective(wrap(model), batch(), LOSS)


@pytest.mark.parametrize("wrap", [lambda model: model, Handed])
def test_a_model_that_takes_no_labels_gets_targets_as_they_stand(wrap: Any) -> None:
    given = batch()
    found = Objective(wrap(Bare()), given, LOSS)
    inputs = {name: each for name, each in given.items() if name != "labels"}
    logits = Bare()(**inputs)["logits"]
    expected = functional.cross_entropy(logits.flatten(0, 1), given["labels"].flatten()).item()
    assert not found.shifted and abs(found.value() - expected) < 1e-12


def test_labels_without_positions_stand_as_they_are() -> None:
    found, usual = (
        Objective(network(), data, LOSS) for data in ({"input": X, "labels": LABELS}, (X, LABELS))
    )
    assert found.value() == usual.value()
