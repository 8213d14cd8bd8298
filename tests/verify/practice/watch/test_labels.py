"""Language models in training: the loss that is watched is the model's own, whatever way the labels come in."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import losscurv
from tests.simulate.objectives.language import IGNORED, CausalModel, MaskedModel, OddModel, batch
from tests.simulate.objectives.test_language_models import Truth
from tests.verify.practice.watch.small_watchers import LOSS, free
from verify.practice.watch import CurvatureRecord, Watcher, lightning_callback, trainer_callback

MODELS = [CausalModel, MaskedModel]


def watched(model: nn.Module, loss: Any = LOSS, **options: Any) -> Watcher:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    return losscurv.watch(optimizer, model, loss, every=1, clock=free, **options)


def parts(given: Any) -> tuple[dict[str, Tensor], Tensor]:
    return {name: part for name, part in given.items() if name != "labels"}, given["labels"]


def moved(labels: Tensor) -> Tensor:
    return functional.pad(labels[:, 1:], (0, 1), value=IGNORED)


def require_own_loss(found: CurvatureRecord | None, truth: Truth) -> None:
    """The loss of the model itself, and the largest eigenvalue of its Hessian."""
    assert found is not None and found.loss is not None
    assert found.eigenvalue is not None and found.error is not None
    assert found.loss == pytest.approx(float(truth.loss(truth.start)), rel=1e-12)
    exact = float(np.linalg.eigvalsh(truth.hessian().detach().numpy())[-1])
    assert abs(found.eigenvalue - exact) <= found.error + 1e-9 * exact


class Trainer(SimpleNamespace):
    """What both libraries show their callbacks."""

    is_global_zero, is_world_process_zero, global_step = True, True, 1


@pytest.mark.parametrize("build", MODELS)
@pytest.mark.parametrize("options", [{}, {"outputs": lambda found: found.logits}], ids=["whole", "picked"])
def test_every_way_in_gives_the_loss_of_the_model(build: type[CausalModel], options: Any) -> None:
    model, given = build(), batch()
    truth, pair, optimizer = Truth(model, given), parts(given), torch.optim.SGD(model.parameters(), lr=0.0)
    trainer = Trainer(optimizers=[optimizer])
    lightning = lightning_callback(lambda _, module: watched(module, **options))
    hugging = trainer_callback(lambda _, module: watched(module, samples=given, **options))
    hugging_pair = trainer_callback(lambda _, module: watched(module, samples=pair, **options))
    lightning.on_train_batch_end(trainer, model, None, given, 0)
    for callback in (hugging, hugging_pair):
        callback.on_step_end(None, trainer, None, model=model, optimizer=optimizer)

    for found in (
        watched(model, **options).step(given),
        watched(model, **options).step(*pair),
        watched(model, samples=given, **options).step(),
        watched(model, samples=pair, **options).step(),
        *lightning.records,
        *hugging.records,
        *hugging_pair.records,
    ):
        require_own_loss(found, truth)


@pytest.mark.parametrize("build", MODELS)
def test_inputs_by_place_are_the_tokens(build: type[CausalModel]) -> None:
    model, given = build(), dict(batch())
    ids, mask, labels = (given[name] for name in ("input_ids", "attention_mask", "labels"))
    require_own_loss(watched(model).step((ids, mask), labels), Truth(model, given))
    require_own_loss(watched(model).step(ids, ids), Truth(model, {"input_ids": ids, "labels": ids}))


def test_labels_that_were_moved_stay_as_they_are() -> None:
    model, given = CausalModel(), batch()
    inputs, labels = parts(given)
    require_own_loss(watched(model).step(inputs, moved(labels)), Truth(model, given))


def test_a_loss_that_moves_labels_itself_gets_them_as_they_are() -> None:
    model, given = CausalModel(), batch()

    def own(logits: Tensor, labels: Tensor) -> Tensor:
        return functional.cross_entropy(logits.movedim(-1, 1), moved(labels), ignore_index=IGNORED)

    require_own_loss(watched(model, own).step(*parts(given)), Truth(model, given))
    with pytest.raises(
        ValueError, match="targets must be what the loss takes, got labels of a model that moves"
    ):
        watched(model, lambda o, t: functional.cross_entropy(o.movedim(-1, 1), t)).step(*parts(given))


def test_where_nothing_tells_whether_labels_were_moved_they_are_refused() -> None:
    """One label is another token: a pair of it may be either."""
    model, (inputs, labels) = CausalModel(), parts(batch())
    labels = labels.clone()
    labels[0, 2] = (labels[0, 2] + 1) % 11
    with pytest.raises(
        ValueError, match=r"give a cross-entropy of torch and the whole batch with its labels"
    ):
        watched(model).step(inputs, labels)
    given = {**inputs, "labels": labels}
    require_own_loss(watched(model).step(given), Truth(model, given))


def test_a_model_of_another_loss_gets_what_is_given() -> None:
    model, (inputs, labels) = OddModel(), parts(batch())
    truth = Truth(CausalModel(), {**inputs, "labels": labels})
    require_own_loss(watched(model).step(inputs, moved(labels)), truth)
    with pytest.raises(
        ValueError, match="labels must be those of a model whose own loss is the cross-entropy"
    ):
        watched(model).step(inputs, labels)


def test_diverged_parameters_are_a_record_for_pairs_too() -> None:
    model, pair = CausalModel(), parts(batch())
    with torch.no_grad():
        model.place.weight.mul_(torch.nan)
    found = watched(model).step(*pair)
    assert found is not None and found.diverged


@pytest.mark.parametrize("targets", [None, ()], ids=["alone", "with nothing"])
def test_inputs_without_labels_are_refused(targets: Any) -> None:
    inputs, _ = parts(batch())
    with pytest.raises(ValueError, match="data must hold tensors with samples along the first axis"):
        watched(CausalModel()).step(inputs, targets)
