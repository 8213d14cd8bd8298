"""Losses of model and batch, losses by name or by default, and data by name: the same matrices as the usual call."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from simulate import data
from simulate.objectives import Objective
from simulate.operators import gauss_newton, h_term, hessian
from tests.simulate.objectives.losses import LABELS, N, X, network


def of_pair(model: Any, batch: Any) -> Tensor:
    x, y = batch
    return cross_entropy(model(x), y)


def of_triple(model: Any, batch: Any) -> Tensor:
    x, _, y = batch
    return cross_entropy(model(x), y)


def of_mapping(model: Any, batch: Any) -> Tensor:
    return cross_entropy(model(batch["x"]), batch.y)


def by_name(net: Any, batch: Any) -> Tensor:
    return cross_entropy(net(input=batch[0]), batch[1])


def with_annotation(first: nn.Module, batch: Any) -> Tensor:
    return cross_entropy(first(batch[0]), batch[1])


FORMS: dict[str, tuple[Callable[..., Tensor], Any]] = {
    "a pair": (of_pair, (X, LABELS)),
    "a loader": (of_pair, DataLoader(TensorDataset(X, LABELS), 4)),
    "triples": (of_triple, [(X[:5], X[:5, 0], LABELS[:5]), (X[5:], X[5:, 0], LABELS[5:])]),
    "a loader of triples": (of_triple, DataLoader(TensorDataset(X, X[:, 0], LABELS), 5)),
    "a mapping": (of_mapping, {"x": X, "y": LABELS, "names": "text"}),
    "keywords": (by_name, (X, LABELS)),
    "an annotation": (with_annotation, (X, LABELS)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("chunk", [None, 3])
def test_a_loss_of_model_and_batch_has_the_curvature_of_its_outputs(form: str, chunk: int | None) -> None:
    loss, given = FORMS[form]
    found, usual = Objective(network(), given, loss, chunk=chunk), Objective(network(), (X, LABELS))
    assert found.samples == N
    assert found.value() == pytest.approx(usual.value(), rel=1e-12)
    for matrix in (hessian, gauss_newton, h_term):
        assert_allclose(matrix(found).dense(), matrix(usual).dense(), atol=1e-12)


class Several(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = network()

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        return {"hidden": x, "logits": self.body(x)}


def test_a_loss_takes_one_of_several_outputs() -> None:
    def loss(model: Any, batch: Any) -> Tensor:
        return cross_entropy(model(batch[0])["logits"], batch[1])

    found = Objective(Several(), (X, LABELS), loss)
    assert found.value() == pytest.approx(Objective(network(), (X, LABELS)).value(), rel=1e-12)


class Named(nn.Module):
    """Takes whatever it is given by name, as wrappers of language models do."""

    def __init__(self) -> None:
        super().__init__()
        self.body = network()

    def forward(self, *_: Any, **given: Any) -> Tensor:
        return self.body(given["x"])


class OfBatch(nn.Module):
    """A loss of model and batch that is a module."""

    def forward(self, model: Any, batch: Any) -> Tensor:
        return cross_entropy(model(batch[0]), batch[1])


@pytest.mark.parametrize(
    ("model", "data", "loss"),
    [
        (Named(), {"x": X, "y": LABELS}, lambda model, batch: cross_entropy(model(x=batch.x), batch.y)),
        (network(), (X, LABELS), OfBatch()),
    ],
)
def test_arguments_of_any_name_and_losses_that_are_modules_go(model: Any, data: Any, loss: Any) -> None:
    usual = Objective(network(), (X, LABELS))
    found = Objective(model, data, loss)
    assert found.value() == pytest.approx(usual.value(), rel=1e-12)
    assert_allclose(hessian(found).dense(), hessian(usual).dense(), atol=1e-12)


def _layer(model: Any, batch: Any) -> Tensor:
    return cross_entropy(model(batch[0]), batch[1]) + model[0](batch[0]).mean()


def _outputs(net: Any, targets: Any) -> Tensor:
    return cross_entropy(net, targets)


def _unnamed(m: Any, batch: Any) -> Tensor:
    return cross_entropy(m(batch[0]), batch[1])


def _mixed(model: Any, batch: Any) -> Tensor:
    return cross_entropy(model(batch[0], x=batch[0]), batch[1])


def _twice(model: Any, batch: Any) -> Tensor:
    return cross_entropy(model(batch[0]), batch[1]) + model(batch[0]).square().mean()


def _never(model: Any, batch: Any) -> Tensor:
    return sum((p.square().sum() for p in model.parameters()), batch[0].sum() * 0)


def _penalised(model: Any, batch: Any) -> Tensor:
    return of_pair(model, batch) + sum(p.square().sum() for p in model.parameters())


def _other_output(model: Any, batch: Any) -> Tensor:
    returned = model(batch[0])
    return cross_entropy(returned["logits"], batch[1]) + returned["hidden"].mean()


def _unpacked(model: Any, batch: Any) -> Tensor:
    _, logits = model(batch[0])
    return cross_entropy(logits, batch[1])


def _noisy(model: Any, batch: Any) -> Tensor:
    return cross_entropy(model(batch[0] + 0.1 * torch.randn_like(batch[0])), batch[1])


def _without_gradients(model: Any, batch: Any) -> Tensor:
    with torch.no_grad():
        outputs = model(batch[0])
    return cross_entropy(outputs, batch[1])


@pytest.mark.parametrize(
    ("model", "loss", "message"),
    [
        (
            network(),
            _noisy,
            "loss must call the model with the same inputs each time, got others at a second call",
        ),
        (
            network(),
            _without_gradients,
            "loss must call the model where gradients are recorded, got a call within",
        ),
        (network(), _twice, "loss must call the model once for a batch, got 2 calls in _twice"),
        (network(), _layer, "loss must call the model and use it in no other way, got _layer that does: "),
        (
            network(),
            _outputs,
            "; if it is a function of outputs and targets, name its first argument outputs",
        ),
        (
            network(),
            _unnamed,
            "loss must take .* calls the first as a model: name it model for loss.model, batch",
        ),
        (
            Named(),
            _mixed,
            r"loss must call the model with arguments by name, got 1 without .* number as \*_$",
        ),
        (network(), _never, "loss must call the model, got _never that returns without a call of it"),
        (network(), _penalised, "must reach the parameters through the call of the model alone"),
        (
            Several(),
            _other_output,
            "loss must take 'logits' of what the model returns, got one that takes 'hidden'",
        ),
        (
            Several(),
            _unpacked,
            "loss must take 'logits' alone of what the model returns, got one that takes all",
        ),
    ],
)
def test_what_is_no_function_of_one_output_is_refused(model: nn.Module, loss: Any, message: str) -> None:
    def measured() -> None:
        objective = Objective(model, (X, LABELS), loss)
        objective.value()
        hessian(objective).dense()

    with pytest.raises(ValueError, match=message):
        measured()


@pytest.mark.parametrize(
    ("targets", "loss", "kind"),
    [
        (LABELS, None, nn.CrossEntropyLoss),
        (LABELS.double(), None, nn.MSELoss),
        (LABELS.numpy(), None, nn.CrossEntropyLoss),
        (LABELS, "cross-entropy", nn.CrossEntropyLoss),
        (torch.zeros(N), "bce", nn.BCEWithLogitsLoss),
    ],
)
def test_a_loss_has_a_name_or_follows_from_the_targets(targets: Any, loss: Any, kind: type) -> None:
    outputs = 1 if kind is not nn.CrossEntropyLoss else 3
    model = nn.Linear(X.shape[1], outputs, dtype=torch.float64)
    assert isinstance(Objective(model, (X, targets), loss).criterion, kind)


@pytest.mark.parametrize(
    "loss", [None, "mse", nn.MSELoss(), nn.functional.mse_loss, nn.SmoothL1Loss(), nn.functional.huber_loss]
)
@pytest.mark.filterwarnings("error")
def test_single_numbers_are_not_spread_over_all_outputs(loss: Any) -> None:
    model, values = nn.Linear(X.shape[1], 1, dtype=torch.float64), X[:, 0]
    expected = Objective(model, (X, values[:, None]), loss)
    assert Objective(model, (X, values), loss).value() == expected.value()
    assert Objective(model, [(X[:4], values[:4]), (X[4:], values[4:])], loss).value() == pytest.approx(
        expected.value()
    )


def _drawn_after(model: Any, batch: Any) -> Tensor:
    outputs = model(batch[0])
    return cross_entropy(outputs + 0.1 * torch.randn_like(outputs), batch[1])


def _dropped(outputs: Tensor, targets: Tensor) -> Tensor:
    return cross_entropy(nn.functional.dropout(outputs, 0.5), targets)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("loss", [_drawn_after, _dropped])
def test_a_loss_that_draws_is_not_taken_for_one_draw(loss: Any, training: bool) -> None:
    """As it is by `measure`; what dropout of a model draws in training mode is one draw."""
    objective = Objective(network(), (X, LABELS), loss, training=training)
    for ask in (objective.value, objective.gradient):
        with pytest.raises(
            ValueError, match=r"loss must give the same for the same outputs.*: draw what is random"
        ):
            ask()


def test_targets_that_fit_no_output_are_refused_where_the_loss_is_chosen() -> None:
    with pytest.raises(
        ValueError, match=r"targets must be of shape \(3,\) each for what the model returns, got \(\)"
    ):
        Objective(nn.Linear(X.shape[1], 3, dtype=torch.float64), (X, X[:, 0]))


def test_digits_come_in_the_shape_that_the_model_takes() -> None:
    images = data.digits((1, 8, 8))
    objective = Objective(nn.Linear(64, 10), "digits")
    usual = Objective(nn.Linear(64, 10), (images.images.reshape(-1, 64), images.labels))
    assert objective.samples == usual.samples == 1797
    with pytest.raises(ValueError, match=r"data digits must fit the model in one of the shapes .*: Runtime"):
        Objective(nn.Linear(3, 10), "digits")


def test_bytes_of_a_file_are_scaled(tmp_path: Path) -> None:
    file, pixels = tmp_path / "images.npz", np.arange(0, 240, dtype=np.uint8).reshape(40, 6)
    labels = np.arange(40) % 3
    np.savez(file, x_train=pixels, y_train=labels)
    model = nn.Linear(6, 3)
    expected = Objective(model, (pixels / 255, labels)).value()
    assert Objective(model, file).value() == Objective(model, str(file)).value() == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (network(), nn.CrossEntropyLoss(), (X, LABELS)),
            "data must come before the loss, got CrossEntropyLoss",
        ),
        ((network(), cross_entropy, (X, LABELS)), r"got cross_entropy: call Objective\(model, data, loss\)"),
        (
            (network(), X, LABELS),
            r"loss must be a function .*, got Tensor: call Objective\(model, \(inputs, targets\)",
        ),
        (((X, LABELS), network()), r"model must come first, got tuple: call Objective\(model, data, loss\)"),
        ((network(), X), r"data must be a pair \(inputs, targets\) .*, got a single Tensor"),
        ((network(), (X, LABELS), nn.CrossEntropyLoss), r"got a class; write CrossEntropyLoss\(\)"),
        ((network(), (X, LABELS), "mean"), "loss must be one of cross-entropy, mse, bce"),
        ((Objective(network(), (X, LABELS)), (X, LABELS)), "got an Objective: use it as it is"),
    ],
)
def test_a_wrong_call_is_told_the_right_one(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Objective(*arguments)
