"""What goes into a model and what comes out, in every form: keywords, one mapping, a field of what is returned."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

from simulate.objectives import Objective
from simulate.objectives.forms import picked
from simulate.operators import gauss_newton, hessian
from tests.simulate.objectives.losses import LABELS, N, X, network
from tests.simulate.small_perceptrons import assert_same

LOSS = nn.CrossEntropyLoss()


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


class Anything(OneMapping):
    def forward(self, **given: Tensor) -> Tensor:  # type: ignore[override]
        return self.body(given["left"] + given["right"])


@pytest.mark.parametrize("kind", [dict, UserDict])
@pytest.mark.parametrize("build", [OneMapping, Keywords, Anything])
def test_a_mapping_goes_in_as_the_model_takes_it(build: type[OneMapping], kind: Any) -> None:
    model = build()
    plain, vector = Objective(model.body, (X, LABELS), LOSS), torch.linspace(-1, 1, 43, dtype=torch.float64)
    inputs = kind({"left": X / 4, "right": 3 * X / 4})
    for chunk in (None, 4):
        found = Objective(model, (inputs, LABELS), LOSS, chunk=chunk)
        assert abs(found.value() - plain.value()) < 1e-14
        for matrix in (hessian, gauss_newton):
            assert_same(matrix(found) @ vector, matrix(plain) @ vector, 1e-12)


@dataclass
class Record:
    hidden: Tensor
    logits: Tensor


class Named(NamedTuple):
    logits: Tensor
    hidden: Tensor


RETURNED: dict[str, Any] = {
    "a dataclass": lambda z: Record(z.detach() * 0, z),
    "a named tuple": lambda z: Named(z, z * 0),
    "a mapping": lambda z: {"hidden": z * 0, "logits": z},
    "a tuple of one tensor": lambda z: (z, None),
    "a list of one tensor": lambda z: [z],
    "a mapping of one tensor": lambda z: {"anything": z, "cache": [z]},
}


class Returning(nn.Module):
    def __init__(self, form: Any) -> None:
        super().__init__()
        self.body, self.form = network(), form

    def forward(self, x: Tensor) -> Any:
        return self.form(self.body(x))


@pytest.mark.parametrize("form", RETURNED)
def test_the_logits_or_the_only_tensor_are_taken(form: str) -> None:
    model = Returning(RETURNED[form])
    plain, found = (Objective(m, (X, LABELS), LOSS, chunk=4) for m in (model.body, model))
    assert found.value() == plain.value()
    assert_same(hessian(found).dense(), hessian(plain).dense(), 1e-13)


@pytest.mark.parametrize(
    ("returned", "field"), [(lambda z: (z * 0, z), 1), (lambda z: Record(z, z * 0), "hidden")]
)
def test_a_field_is_taken_by_name_or_number(returned: Any, field: Any) -> None:
    model = Returning(returned)
    found = Objective(model, (X, LABELS), LOSS, field=field)
    assert found.value() == Objective(model.body, (X, LABELS), LOSS).value()


@pytest.mark.parametrize(
    ("returned", "field", "message"),
    [
        (
            lambda z: (z, z),
            None,
            "model must return one tensor, or one as logits, got tuple of 0, 1; say which by f",
        ),
        (lambda z: {"a": z, "b": z}, None, "got dict of a, b; say which by field"),
        (
            lambda z: {"a": z, "b": z},
            "c",
            "field must name a tensor that the model returns, dict of a, b, got 'c'",
        ),
        (
            lambda z: z,
            "logits",
            "field must name a tensor that the model returns, Tensor of none, got 'logits'",
        ),
        (
            lambda _: "words",
            None,
            "model must return one tensor, got str; wrap it in a function that picks one",
        ),
        (lambda _: (None, "words"), None, "model must return one tensor, got tuple; wrap it"),
    ],
)
def test_what_is_not_clear_is_told(returned: Any, field: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Objective(Returning(returned), (X, LABELS), LOSS, field=field).value()
    with pytest.raises(ValueError, match=message):
        picked(returned(X), field)


class Picture:
    """An image of a library that torch does not know, as PIL gives it: bytes (H, W, C) by the protocol of arrays."""

    def __init__(self, pixels: np.ndarray) -> None:
        self._pixels = pixels
        self.__array_interface__ = pixels.__array_interface__


class Pictures(Dataset[Any]):
    """As torchvision has its data sets: images and numbers."""

    def __init__(self, kind: Any = Picture, label: Any = int) -> None:
        self.pixels = np.random.default_rng(0).integers(0, 256, (N, 4, 5, 3), dtype=np.uint8)
        self._kind, self._label = kind, label

    def __len__(self) -> int:
        return N

    def __getitem__(self, place: int) -> Any:
        return self._kind(self.pixels[place]), self._label(LABELS[place])


def test_images_of_a_data_set_are_taken_as_torchvision_does() -> None:
    data, model = Pictures(), nn.Sequential(nn.Flatten(), nn.Linear(60, 3)).double()
    x = torch.from_numpy(data.pixels).permute(0, 3, 1, 2).double() / 255
    found, plain = Objective(model, data, LOSS, chunk=7), Objective(model, (x, LABELS), LOSS)

    assert (found.rows, found.samples) == (N, N)
    assert abs(found.value() - plain.value()) < 1e-7  # bytes in [0, 1] are floats of single precision
    assert_same(found.gradient(), plain.gradient(), 1e-6)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (Pictures(kind=str), "data must give samples of numbers, got str; give the data set a transform"),
        (Pictures(label=lambda _: object()), "data must give samples of numbers, got object"),
    ],
)
def test_samples_that_are_none_are_told(data: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Objective(nn.Linear(3, 3), data, LOSS)


class Triples(Pictures):
    def __getitem__(self, place: int) -> Any:
        return 1, 2, 3


def test_a_data_set_of_something_else_is_told() -> None:
    with pytest.raises(
        ValueError, match=r"data must give samples \(input, target\).* got tuple of length 3; wrap"
    ):
        Objective(nn.Linear(3, 3), Triples(), LOSS)


def test_in_training_mode_the_batch_is_the_unit() -> None:
    with pytest.raises(
        ValueError, match=r"data must be batches in training mode.* give DataLoader\(data, batch_size"
    ):
        Objective(nn.Linear(60, 3), Pictures(), LOSS, training=True)


class Ragged(Pictures):
    """Sequences of three lengths."""

    def __getitem__(self, place: int) -> Any:
        return X[place, : 2 + place % 3], int(LABELS[place])


class Mean(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(1, 3, dtype=torch.float64)

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x[..., None]).mean(1)


def test_samples_of_several_shapes_come_in_batches_of_one() -> None:
    model, data = Mean(), Ragged()
    expected = np.mean([LOSS(model(data[i][0][None]), LABELS[i : i + 1]).item() for i in range(N)])
    assert abs(Objective(model, data, LOSS).value() - expected) < 1e-14


class Experts(nn.Module):
    """As in transformers: one product for all experts, unless they are told to run one by one."""

    def __init__(self) -> None:
        super().__init__()
        self.weights, self.implementation = nn.Parameter(torch.ones(2, 4, 3)), "grouped_mm"

    def set_experts_implementation(self, implementation: str) -> None:
        self.implementation = implementation

    def forward(self, x: Tensor) -> Tensor:
        if self.implementation != "eager":  # what torch says
            raise RuntimeError("Expected mat_a to be Float32, BFloat16 or Float16 matrix, got Double")
        return torch.cat([x[:2] @ self.weights[0], x[2:] @ self.weights[1]])


def test_experts_without_double_precision_are_told_to_run_one_by_one() -> None:
    model, x, y = Experts().double(), torch.ones(4, 4).double(), torch.zeros(4, 3).double()
    with pytest.raises(ValueError, match=r'call model.set_experts_implementation\("eager"\) before it is'):
        Objective(model, (x, y), nn.MSELoss()).value()
    model.set_experts_implementation("eager")
    assert Objective(model, (x, y), nn.MSELoss()).value() == 16.0
