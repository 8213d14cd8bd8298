"""A model of one's own is read."""

import itertools
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from simulate.objectives.restoring import preserve_state
from tests.refusals import refusal
from tests.verify.practice.user_models import N, load
from verify.practice import loading
from verify.practice.loading import load_problem, problem

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.parametrize("model", ["Net", "build", "net"])
def test_a_class_a_function_or_a_module_gives_the_model(model: str) -> None:
    found = load(model)

    assert (found.samples, found.classes) == (N, 10)
    assert isinstance(found.loss, nn.CrossEntropyLoss)


def test_a_module_of_the_current_folder_is_found() -> None:
    path = list(sys.path)

    assert load_problem("user_net:build", "data.npz").samples == N
    assert sys.path[: len(path)] == path  # the folder comes last


def test_the_seed_fixes_what_the_model_draws_and_leaves_no_trace() -> None:
    def value(before: int, seed: int) -> float:
        random.seed(before)
        np.random.seed(before)  # noqa: NPY002 (what models of others draw from)
        states = torch.get_rng_state(), random.getstate(), str(np.random.get_state())  # noqa: NPY002 (looked at)
        drawn = load("drawn", seed=seed).objective.value()
        assert torch.equal(states[0], torch.get_rng_state())
        assert states[1:] == (random.getstate(), str(np.random.get_state()))  # noqa: NPY002 (looked at)
        return drawn

    with preserve_state(None, training=False):
        assert value(0, 2**100) == value(5, 2**100) != value(0, 2)


@pytest.mark.parametrize("width", [784, 64])
def test_digits_come_in_the_shape_that_the_model_takes(width: int) -> None:
    Path("flat_net.py").write_text(f"from torch import nn\nnet = nn.Linear({width}, 10)\n")

    with refusal(r"^data digits must fit the model in one of the shapes"):
        load("wide", "digits", samples=5)
    found = load_problem("flat_net.py:net", "digits", samples=5)

    assert found.inputs.shape == (5, width)


class _Parts(nn.Module):
    """Model with inputs by name or place: tokens of a vocabulary of 256, numbers, and a mask that it inverts."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(256, 3)

    def forward(self, ids: Tensor, x: Tensor, hidden: Tensor) -> Tensor:
        return self.embed(ids) * x * ~hidden


@pytest.mark.parametrize("named", [True, False])
def test_inputs_may_be_several_of_any_kind(named: bool) -> None:
    """Tokens may be bytes, and truth values stay such: of whole numbers ~ gives -1 and -2."""
    ids, net, y = torch.tensor([7, 255, 0], dtype=torch.uint8), _Parts(), torch.tensor([0, 1, 2])
    x, hidden = torch.randn(3, 3), torch.arange(9).view(3, 3) % 2 == 0
    given = {"ids": ids, "x": x, "hidden": hidden} if named else (ids.long(), x, hidden)
    found = problem(net, [(given, y), (given, y)])

    assert found.samples == 6 and found.batch_objective([0, 5]).value() > 0
    expected = nn.functional.cross_entropy(net(ids.long(), x, hidden), y).item()
    assert_allclose(found.objective.value(), expected, rtol=1e-6)
    assert problem(nn.Linear(3, 2), (x, hidden[:, 0])).targets.dtype == torch.int64


@pytest.mark.parametrize("loss", ["cube", "Loss"])
def test_a_loss_of_one_s_own(loss: str) -> None:
    found = load(loss=f"user_net.py:{loss}", dtype="float64")
    outputs = found.model(found.inputs).detach().numpy()

    assert_allclose(found.objective.value(), np.mean(outputs ** (4 if loss == "cube" else 2)), rtol=1e-12)


def test_some_samples_are_taken_as_all_of_them_are() -> None:
    """By the same parameters, in the same mode, and so many in a pass."""
    sizes = []

    def loss(outputs: Tensor, targets: Tensor) -> Tensor:
        sizes.append(len(targets))
        return (outputs - targets).square().mean()

    x, y, net = torch.randn(6, 3), torch.randn(6, 2), nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 2))
    found = problem(net, (x, y), loss=loss, parameters=["1"], batch_size=2)
    part = found.batch_objective([0, 1, 3, 4, 5])
    part.value()  # the first time asks a few samples more
    sizes.clear()

    part.value()
    assert part.names == found.objective.names == ("1.weight", "1.bias")
    assert sizes == [2, 2, 1]
    assert problem(net, (x, y), training=True).batch_objective([0, 1]).training


def test_a_pass_takes_all_samples_up_to_a_most(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = torch.randn(6, 3), torch.randn(6, 2)

    assert problem(nn.Linear(3, 2), (x, y)).batch_size == 6
    monkeypatch.setattr(loading, "BATCH", 4)
    assert problem(nn.Linear(3, 2), (x, y)).batch_size == 4


def test_what_divides_by_the_number_of_something_rare_is_no_sum() -> None:
    x, y = torch.randn(40, 3), (torch.arange(40) % 20 == 7).float()

    def by_positives(outputs: Tensor, targets: Tensor) -> Tensor:
        return nn.functional.softplus(outputs[:, 0]).sum() / targets.sum().clamp(min=1)

    assert problem(nn.Linear(3, 1), (x, y), loss=by_positives).batch_size == 40
    with refusal("loss must be a mean over the samples of a batch, got a sum"):
        problem(nn.Linear(3, 1), (x, y), loss=lambda z, _: nn.functional.softplus(z).sum(), training=True)


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ([(torch.ones(2, 3), torch.ones(2)), (torch.ones(2, 4), torch.ones(2))], "samples of one shape"),
        ([({"a": torch.ones(2, 3), "b": torch.ones(3, 3)}, torch.ones(2))], "samples, got 2 and 3"),
        ((np.ma.masked_array(np.ones((2, 3)), np.eye(2, 3)), np.ones(2)), "got a masked one"),
        (itertools.repeat((torch.ones(2, 3), torch.ones(2))), "data must end, got more than 20000 batches"),
    ],
)
def test_data_from_python_that_are_none_are_told(data: Any, line: str) -> None:
    with refusal(line):
        problem(nn.Linear(3, 1), data)


def test_tokens_have_classes_at_every_position() -> None:
    tokens = torch.randint(0, 5, (6, 4))
    by_axis = nn.Sequential(nn.Embedding(5, 5), nn.Flatten(), nn.Unflatten(1, (5, 4)))

    found = problem(by_axis, (tokens, tokens))

    assert (found.classes, found.outputs) == (5, (5, 4))


@pytest.mark.parametrize("samples", [None, 5])
def test_the_generator_of_a_loader_is_left_as_found(samples: int | None) -> None:
    """So the same call reads the same data again."""
    data = TensorDataset(torch.randn(9, 2), torch.arange(9) % 2)
    loader = DataLoader(data, batch_size=4, shuffle=True, generator=torch.Generator().manual_seed(3))
    before = loader.generator.get_state()
    first, again = (problem(nn.Linear(2, 2), loader, samples=samples) for _ in range(2))
    assert torch.equal(before, loader.generator.get_state())
    assert torch.equal(first.inputs, again.inputs)
