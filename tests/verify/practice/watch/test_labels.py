"""Language models in training: the loss that is watched is the model's own, whatever way the labels come in."""

from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from tests.simulate.objectives.language import IGNORED, CausalModel, MaskedModel, OddModel, batch
from tests.simulate.objectives.test_language_models import Truth
from tests.verify.practice.watch.small_watchers import watched
from verify.practice.watch import CurvatureRecord, lightning_callback, trainer_callback

MODELS = [CausalModel, MaskedModel]


still = partial(watched, rate=0.0)


def parts(given: Any) -> tuple[dict[str, Tensor], Tensor]:
    return {name: part for name, part in given.items() if name != "labels"}, given["labels"]


def moved(labels: Tensor) -> Tensor:
    return functional.pad(labels[:, 1:], (0, 1), value=IGNORED)


def require_own_loss(found: CurvatureRecord | None, truth: Truth) -> None:
    """The loss of the model itself, and the largest eigenvalue of its Hessian."""
    assert found.loss == pytest.approx(float(truth.loss(truth.start)), rel=1e-12)
    exact = float(np.linalg.eigvalsh(truth.hessian().detach().numpy())[-1])
    assert abs(found.eigenvalue - exact) <= found.error + 1e-9 * exact


class Trainer(SimpleNamespace):
    """Trainer attributes that both libraries show their callbacks."""

    is_global_zero, is_world_process_zero, global_step = True, True, 1


@pytest.mark.parametrize("build", MODELS)
@pytest.mark.parametrize("options", [{}, {"outputs": lambda found: found.logits}], ids=["whole", "picked"])
def test_every_way_in_gives_the_loss_of_the_model(build: type[CausalModel], options: Any) -> None:
    model, given = build(), batch()
    truth, pair, optimizer = Truth(model, given), parts(given), torch.optim.SGD(model.parameters(), lr=0.0)
    trainer = Trainer(optimizers=[optimizer])
    callback = lightning_callback(lambda _, module: still(module, **options))
    callback.on_train_batch_end(trainer, model, None, given, 0)
    found = [*callback.records, still(model, **options).step(given), still(model, **options).step(*pair)]
    for samples in (given, pair):
        hugging = trainer_callback(lambda _, module, s=samples: still(module, samples=s, **options))
        hugging.on_step_end(None, trainer, None, model=model, optimizer=optimizer)
        found += hugging.records

    assert len(found) == 5
    for each in found:
        require_own_loss(each, truth)


@pytest.mark.parametrize("build", MODELS)
def test_inputs_by_place_are_the_tokens(build: type[CausalModel]) -> None:
    model, given = build(), dict(batch())
    ids, mask, labels = (given[name] for name in ("input_ids", "attention_mask", "labels"))
    require_own_loss(still(model).step((ids, mask), labels), Truth(model, given))
    require_own_loss(still(model).step(ids, ids), Truth(model, {"input_ids": ids, "labels": ids}))
    if model.moves:  # labels that were moved stay as they are
        require_own_loss(still(model).step(parts(given)[0], moved(labels)), Truth(model, given))


def test_a_loss_that_moves_labels_itself_gets_them_as_they_are() -> None:
    model, given = CausalModel(), batch()

    def own(logits: Tensor, labels: Tensor) -> Tensor:
        return functional.cross_entropy(logits.movedim(-1, 1), moved(labels), ignore_index=IGNORED)

    require_own_loss(still(model, own).step(*parts(given)), Truth(model, given))
    with pytest.raises(ValueError, match="this model shifts labels by one position itself"):
        still(model, lambda o, t: functional.cross_entropy(o.movedim(-1, 1), t)).step(*parts(given))


def test_where_nothing_tells_whether_labels_were_moved_they_are_refused() -> None:
    """One label is another token: a pair of it may be either."""
    model, (inputs, labels) = CausalModel(), parts(batch())
    labels = labels.clone()
    labels[0, 2] = (labels[0, 2] + 1) % 11
    with pytest.raises(ValueError, match=r"pass a torch cross-entropy and the whole batch with its labels"):
        still(model).step(inputs, labels)
    given = {**inputs, "labels": labels}
    require_own_loss(still(model).step(given), Truth(model, given))


def test_a_model_of_another_loss_gets_what_is_given() -> None:
    model, (inputs, labels) = OddModel(), parts(batch())
    truth = Truth(CausalModel(), {**inputs, "labels": labels})
    require_own_loss(still(model).step(inputs, moved(labels)), truth)
    with pytest.raises(ValueError, match="own loss must be the cross-entropy of its logits with the labels"):
        still(model).step(inputs, labels)


def test_inputs_without_labels_are_refused() -> None:
    for targets in (None, ()):
        with pytest.raises(ValueError, match="data must hold tensors with samples along the first axis"):
            still(CausalModel()).step(parts(batch())[0], targets)
