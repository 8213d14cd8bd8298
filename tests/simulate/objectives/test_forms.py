"""Data, models and losses in every form: the loss and the products of a plain module on one pair of tensors."""

from collections import UserDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from simulate.objectives import Objective, batches
from simulate.operators import gauss_newton, hessian
from tests.simulate.objectives.losses import LABELS, N, X, network
from tests.simulate.objectives.sweep.listing import own
from tests.simulate.small_perceptrons import assert_same

Y = LABELS
ALL = TensorDataset(X, Y)
LOSS = nn.CrossEntropyLoss()


class Pair(NamedTuple):
    x: Any
    y: Any


class Streamed(IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        return iter(zip(X, Y, strict=True))


class Listed:
    """Samples by number."""

    def __init__(self, sample: Callable[[int], Any], count: int = N) -> None:
        self.sample, self.count = sample, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, place: int) -> Any:
        return self.sample(place)


def cut(size: int) -> list[tuple[Tensor, Tensor]]:
    return list(zip(X.split(size), Y.split(size), strict=True))


DATA = {
    "arrays backwards": lambda: (X.numpy()[::-1], Y.numpy()[::-1]),
    "arrays of the other byte order": lambda: (X.numpy().astype(">f8"), Y.numpy().astype(">i8")),
    "arrays that cannot be written": lambda: (np.broadcast_to(X.numpy(), X.shape), Y.numpy()),
    "long floats": lambda: (X.numpy().astype(np.longdouble), Y.numpy()),
    "labels of two bytes": lambda: (X, Y.short()),
    "unsigned labels": lambda: (X.numpy(), Y.numpy().astype(np.uint64)),
    "inputs with gradients": lambda: (X.clone().requires_grad_(), Y),
    "named pairs": lambda: [Pair(*batch) for batch in cut(6)],
    "batches with empty ones": lambda: [(X[:0], Y[:0]), *cut(9), (X[:0], Y[:0])],
    "a loader that shuffles": lambda: DataLoader(ALL, 6, shuffle=True),
    "a loader of a stream": lambda: DataLoader(Streamed(), 6),
    "a generator": lambda: (batch for batch in cut(6)),
    "a data set": lambda: ALL,
    "numbers by number": lambda: Listed(lambda i: (X[i].numpy(), int(Y[i]))),
    "lists of floats by number": lambda: Listed(lambda i: (X[i].tolist(), int(Y[i]))),
    "a mapping with labels": lambda: {"input": X, "labels": Y},
    "a pair of batches": lambda: ((X[:9], Y[:9]), (X[9:], Y[9:])),
}


def of_pair(model: Any, batch: Any) -> Tensor:
    return cross_entropy(model(batch[0]), batch[1])


def of_triple(model: Any, batch: Any) -> Tensor:
    return cross_entropy(model(batch[0]), batch[2])


def of_mapping(model: Any, batch: Any) -> Tensor:
    return cross_entropy(model(batch["x"]), batch.y)


def by_name(net: Any, batch: Any) -> Tensor:
    return cross_entropy(net(input=batch[0]), batch[1])


def with_annotation(first: nn.Module, batch: Any) -> Tensor:
    return cross_entropy(first(batch[0]), batch[1])


def of_several(model: Any, batch: Any) -> Tensor:
    return cross_entropy(model(batch[0])["logits"], batch[1])


class OfBatch(nn.Module):
    """A loss of model and batch that is a module."""

    def forward(self, model: Any, batch: Any) -> Tensor:
        return of_pair(model, batch)


def returning(form: Callable[[Tensor], Any]) -> nn.Module:
    return own(lambda m, x: form(m.body(x)), body=network)()


SEVERAL = returning(lambda z: {"hidden": z * 0, "logits": z})
TAKING_ALL = own(lambda m, *_, x: m.body(x), body=network)()
"""Whatever it is given by name, as wrappers of language models do."""

LOSSES = {
    "of pairs": {"loss": of_pair},
    "of a loader of triples": {"loss": of_triple, "data": DataLoader(TensorDataset(X, X[:, 0], Y), 5)},
    "of a mapping": {"loss": of_mapping, "data": {"x": X, "y": Y, "names": "text"}},
    "of keywords": {"loss": by_name},
    "with an annotation": {"loss": with_annotation},
    "as a module": {"loss": OfBatch()},
    "of one of several outputs": {"loss": of_several, "model": SEVERAL},
    "of any keywords": {
        "loss": lambda model, batch: cross_entropy(model(x=batch.x), batch.y),
        "model": TAKING_ALL,
        "data": {"x": X, "y": Y},
    },
    "of several targets, with a number for all": {
        "loss": lambda z, y: y["scale"] * cross_entropy(z, y["labels"]),
        "data": (X, {"labels": Y, "scale": torch.tensor(1.0)}),
    },
    "that is a sum": {"loss": lambda z, y: cross_entropy(z, y, reduction="sum") / N, "reduction": "sum"},
    "by default": {"loss": None},
    "by name": {"loss": "cross-entropy"},
}


class OneMapping(nn.Module):
    """As curvlinops has its models of mappings."""

    def __init__(self) -> None:
        super().__init__()
        self.body = network()

    def forward(self, data: Mapping[str, Tensor]) -> Tensor:
        return self.body(data["left"] + data["right"])


class Keywords(OneMapping):
    def forward(self, left: Tensor, right: Tensor) -> Tensor:  # type: ignore[override]
        return self.body(left + right)


@dataclass
class Record:
    hidden: Tensor
    logits: Tensor


def _in_place(model: nn.Module) -> nn.Module:
    model.compile(backend="eager")
    return model


def _part(model: nn.Module) -> nn.Module:
    model.add_module("0", torch.compile(model.get_submodule("0"), backend=broken))  # type: ignore[arg-type]
    return model


def broken(*_: Any) -> Any:
    raise AssertionError("compiled code runs")


PARTS = {"left": X / 4, "right": 3 * X / 4}
ANYTHING = own(lambda m, left, right, factor=1.0: m.body(left + factor * right), body=network)()
MODELS = {
    "of one mapping": {"model": OneMapping(), "data": (UserDict(PARTS), Y)},
    "of keywords": {"model": Keywords(), "data": (UserDict(PARTS), Y)},
    "of any keywords": {"model": ANYTHING, "data": (PARTS, Y)},
    "of several in order, with a number for all": {
        "model": ANYTHING,
        "data": [((x / 2, x, torch.tensor(0.5)), y) for x, y in cut(9)],
    },
    "of several in a list": {"model": ANYTHING, "data": ([X.numpy() / 2, X.numpy(), torch.tensor(0.5)], Y)},
    "of as many inputs as targets": {
        "model": own(lambda m, x, *_: m.body(x), body=network)(),
        "data": ((X, X[:, :2]), (Y, Y)),
        "loss": lambda z, y: cross_entropy(z, y[0]),
    },
    "that gives a dataclass": {"model": returning(lambda z: Record(z.detach() * 0, z))},
    "that gives a mapping": {"model": SEVERAL},
    "that gives a tuple of one tensor": {"model": returning(lambda z: (z, None))},
    "that gives a mapping of one tensor": {"model": returning(lambda z: {"anything": z, "cache": [z]})},
    "with a field by number": {"model": returning(lambda z: (z * 0, z)), "field": 1},
    "with a field by name": {"model": returning(lambda z: Record(z, z * 0)), "field": "hidden"},
    "compiled": {"model": torch.compile(network(), backend=broken)},  # type: ignore[arg-type]
    "compiled in place": {"model": _in_place(network())},
    "of which a part is compiled": {"model": _part(network())},
}

WHOLE = {f"data as {name}": {"data": form} for name, form in DATA.items()}
FORMS = WHOLE | {f"a loss {n}": f for n, f in LOSSES.items()} | {f"a model {n}": f for n, f in MODELS.items()}


def measured(objective: Objective) -> list[Tensor]:
    """Gradient, and products with one vector."""
    vector = torch.linspace(-1, 1, objective.dim, dtype=torch.float64)
    products = [matrix(objective) @ vector for matrix in (hessian, gauss_newton)]
    return [objective.gradient(), *products]


PLAIN = Objective(network(), [(X, Y)], LOSS)
KNOWN = PLAIN.value(), measured(PLAIN)


@pytest.mark.parametrize(
    ("form", "chunk"), [*((form, 4) for form in FORMS), *((form, None) for form in WHOLE)]
)
def test_forms_are_no_matter(form: str, chunk: int | None) -> None:
    given = {"model": network(), "data": (X, Y), "loss": LOSS} | FORMS[form]
    if callable(given["data"]):
        given["data"] = given["data"]()
    found = Objective(**given, chunk=chunk)
    assert found.separable and (found.rows, found.samples) == (N, N)
    for _ in range(2):
        assert abs(found.value() - KNOWN[0]) < 1e-14
    for one, other in zip(measured(found), KNOWN[1], strict=True):
        assert_same(one, other, 1e-13)


def test_data_that_tell_their_number_have_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "_MOST_BATCHES", 5)
    for given in (cut(1), DataLoader(ALL, 1)):
        assert Objective(network(), given, LOSS).samples == N


@pytest.mark.parametrize(
    "loss", [None, "mse", nn.MSELoss(), nn.functional.mse_loss, nn.SmoothL1Loss(), nn.functional.huber_loss]
)
@pytest.mark.filterwarnings("error")
def test_single_numbers_are_not_spread_over_all_outputs(loss: Any) -> None:
    model, values = nn.Linear(X.shape[1], 1, dtype=torch.float64), X[:, 0]
    expected = Objective(model, (X, values[:, None]), loss).value()
    assert Objective(model, (X, values), loss).value() == expected
    cut_up = [(X[:4], values[:4]), (X[4:], values[4:])]
    assert Objective(model, cut_up, loss).value() == pytest.approx(expected)


def test_bytes_of_a_file_are_scaled(tmp_path: Path) -> None:
    file, pixels = tmp_path / "images.npz", np.arange(0, 240, dtype=np.uint8).reshape(40, 6)
    labels, model = np.arange(40) % 3, nn.Linear(6, 3)
    np.savez(file, x_train=pixels, y_train=labels)
    expected = Objective(model, (pixels / 255, labels)).value()
    assert Objective(model, file).value() == Objective(model, str(file)).value() == expected


class Picture:
    """An image of a library that torch does not know, as PIL gives it: bytes (H, W, C) by the protocol of arrays."""

    def __init__(self, pixels: np.ndarray) -> None:
        self.__array_interface__ = pixels.__array_interface__
        self._pixels = pixels


class Pictures(Listed, Dataset[Any]):
    """As torchvision has its data sets: images and numbers."""


def test_images_of_a_data_set_are_taken_as_torchvision_does() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (N, 4, 5, 3), dtype=np.uint8)
    given = Pictures(lambda i: (Picture(pixels[i]), int(Y[i])))
    model = nn.Sequential(nn.Flatten(), nn.Linear(60, 3)).double()
    x = torch.from_numpy(pixels).permute(0, 3, 1, 2).double() / 255
    found, plain = Objective(model, given, LOSS, chunk=7), Objective(model, (x, Y), LOSS)

    assert (found.rows, found.samples) == (N, N)
    assert abs(found.value() - plain.value()) < 1e-7  # bytes in [0, 1] are floats of single precision
    assert_same(found.gradient(), plain.gradient(), 1e-6)


def test_samples_of_several_shapes_come_in_batches_of_one() -> None:
    model = own(lambda m, x: m.a(x[..., None]).mean(1), a=lambda: nn.Linear(1, 3).double())()
    ragged = Listed(lambda i: (X[i, : 2 + i % 3], int(Y[i])))
    expected = np.mean([LOSS(model(ragged[i][0][None]), Y[i : i + 1]).item() for i in range(N)])
    assert abs(Objective(model, ragged, LOSS).value() - expected) < 1e-14
