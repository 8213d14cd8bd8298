"""Language models in training: the loss that is watched is the model's own, whatever way the labels come in."""

from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from tests.refusals import refusal
from tests.simulate.objectives.language import IGNORED, CausalModel, MaskedModel, batch
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
def test_a_batch_with_labels_has_the_loss_of_the_model(build: type[CausalModel], options: Any) -> None:
    model, given = build(), batch()
    truth, optimizer = Truth(model, given), torch.optim.SGD(model.parameters(), lr=0.0)
    trainer = Trainer(optimizers=[optimizer])
    callback = lightning_callback(lambda _, module: still(module, **options))
    callback.on_train_batch_end(trainer, model, None, given, 0)
    found = [*callback.records, still(model, **options).step(given)]
    hugging = trainer_callback(lambda _, module: still(module, samples=given, **options))
    hugging.on_step_end(None, trainer, None, model=model, optimizer=optimizer)
    found += hugging.records

    assert len(found) == 3
    for each in found:
        require_own_loss(each, truth)


def test_next_tokens_in_a_pair_are_the_labels_moved() -> None:
    model, given = CausalModel(), dict(batch())
    require_own_loss(still(model).step(parts(given)[0], moved(given["labels"])), Truth(model, given))


def test_a_loss_that_moves_labels_itself_gets_them_as_they_are() -> None:
    model, given = CausalModel(), batch()

    def own(logits: Tensor, labels: Tensor) -> Tensor:
        return functional.cross_entropy(logits.movedim(-1, 1), moved(labels), ignore_index=IGNORED)

    require_own_loss(still(model, own).step(*parts(given)), Truth(model, given))


def test_tokens_of_the_inputs_are_no_targets() -> None:
    given = batch()
    for pair in (parts(given), (given["input_ids"], given["labels"])):
        with refusal(r"^targets must be the next tokens, .* the whole batch with its labels$"):
            still(CausalModel()).step(*pair)


def test_inputs_without_labels_are_refused() -> None:
    for targets in (None, ()):
        with refusal("data must hold tensors with samples along the first axis"):
            still(CausalModel()).step(parts(batch())[0], targets)
