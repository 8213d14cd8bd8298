"""A model of one's own is read, and nothing of the user's is changed."""

from __future__ import annotations

import copy
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

from simulate.objectives.restoring import as_found
from tests.verify.practice.user_models import N, furnish, load, save
from verify.practice import loading
from verify.practice.loading import load_problem, problem


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of a user, the current one, with models and data."""
    monkeypatch.chdir(tmp_path)
    furnish(tmp_path)
    return tmp_path


# --- what is taken ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["Net", "build", "net"])
def test_a_class_a_function_or_a_module_gives_the_model(folder: Path, model: str) -> None:
    found = load(model)

    assert (found.samples, found.classes) == (N, 10)
    assert isinstance(found.loss, nn.CrossEntropyLoss)


def test_a_module_of_the_current_folder_is_found(folder: Path) -> None:
    path = list(sys.path)

    assert load_problem("user_net:build", "data.npz").samples == N
    assert sys.path == path


def test_the_seed_fixes_what_the_model_draws(folder: Path) -> None:
    def value(before: int, seed: int) -> float:
        with as_found(None, training=False):
            random.seed(before)
            np.random.seed(before)  # noqa: NPY002 (what models of others draw from)
            return load("drawn", seed=seed).objective.value()

    assert value(0, 1) == value(5, 1) != value(0, 2)


def test_the_seed_draws_the_samples(folder: Path) -> None:
    first, again, other = (load(samples=5, seed=seed).inputs for seed in (1, 1, 2))

    assert torch.equal(first, again) and not torch.equal(first, other)


@pytest.mark.parametrize("width", [784, 64])
def test_digits_come_in_the_shape_that_the_model_takes(folder: Path, width: int) -> None:
    (folder / "flat_net.py").write_text(f"from torch import nn\nnet = nn.Linear({width}, 10)\n")

    found = load_problem("flat_net.py:net", "digits", samples=5)

    assert found.inputs.shape == (5, width)


def test_digits_that_fit_no_model_are_told(folder: Path) -> None:
    with pytest.raises(
        ValueError, match=r"data digits must fit the model in one of the shapes \(1, 28, 28\)"
    ):
        load("wide", "digits")


def test_bytes_become_floats_up_to_one(folder: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (N, 64)).astype(np.uint8)
    save("bytes", images, np.arange(N) % 10)

    assert_allclose(load(data="bytes.npz", dtype="float64").inputs, images / 255, rtol=1e-15)


def test_bytes_in_a_mapping_are_whole_numbers() -> None:
    """Such as tokens of a vocabulary of 256 that are saved as bytes."""

    class Tokens(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(256, 3)

        def forward(self, ids: Tensor) -> Tensor:
            return self.embed(ids)

    ids = torch.tensor([7, 255, 0], dtype=torch.uint8)
    net, y = Tokens(), torch.tensor([0, 1, 2])
    found = problem(net, ({"ids": ids}, y))
    expected = nn.functional.cross_entropy(net.embed(ids.long()), y).item()

    assert torch.equal(found.inputs["ids"], ids.long())
    assert_allclose(found.objective.value(), expected, rtol=1e-6)


def test_truth_values_stay_such() -> None:
    """A mask that a model turns round: of whole numbers ~ gives -1 and -2."""

    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 2)

        def forward(self, x: Tensor, hidden: Tensor) -> Tensor:
            return self.layer(x * ~hidden)

    x, hidden = torch.randn(4, 3), torch.arange(12).view(4, 3) % 2 == 0
    net, y = Masked(), torch.tensor([0, 1, 1, 0])
    for inputs in ((x, hidden), {"x": x, "hidden": hidden}):
        found = problem(net, (inputs, y))
        assert_allclose(
            found.objective.value(), nn.functional.cross_entropy(net(x, hidden), y).item(), rtol=1e-6
        )
    assert problem(nn.Linear(3, 2), (x, hidden[:, 0])).targets.dtype == torch.int64


def test_short_names_of_arrays_do_too(folder: Path) -> None:
    save("short", np.ones((3, 64)), np.arange(3), ("x", "y"))

    assert load(data="short.npz").samples == 3


def test_float_targets_mean_regression(folder: Path) -> None:
    found = load(data="values.npz")

    assert isinstance(found.loss, nn.MSELoss)
    assert found.classes is None


def test_axes_of_length_one_are_no_difference(folder: Path) -> None:
    """Torch would spread (N,) against (N, 1) over N x N numbers."""
    found = load("one", "numbers.npz", dtype="float64")
    outputs = found.model(found.inputs)[:, 0].detach().numpy()
    y = np.load("numbers.npz")["y_train"]

    assert_allclose(found.objective.value(), np.mean((outputs - y) ** 2), rtol=1e-12)


def test_bce_takes_whole_numbers(folder: Path) -> None:
    save("binary", np.ones((4, 64)), [0, 1, 1, 0])

    found = load("one", "binary.npz", loss="bce")

    assert found.classes is None
    assert found.targets.dtype == torch.float32


@pytest.mark.parametrize("loss", ["cube", "Loss"])
def test_a_loss_of_one_s_own(folder: Path, loss: str) -> None:
    found = load(loss=f"user_net.py:{loss}", dtype="float64")
    outputs = found.model(found.inputs).detach().numpy()

    assert_allclose(found.objective.value(), np.mean(outputs ** (4 if loss == "cube" else 2)), rtol=1e-12)


def test_samples_are_drawn_by_the_seed() -> None:
    x, y = torch.arange(20.0)[:, None], torch.arange(20.0)[:, None]

    found, again, other = (
        problem(nn.Linear(1, 1), (x, y), samples=5, seed=seed).inputs.flatten().tolist() for seed in (1, 1, 2)
    )

    assert found == again == sorted(set(found))
    assert len(found) == 5 and found != other


def test_batches_and_one_pair_are_the_same_problem() -> None:
    x, y, net = torch.randn(7, 3), torch.randn(7, 2), nn.Linear(3, 2)

    whole, batches = problem(net, (x, y)), problem(net, DataLoader(TensorDataset(x, y), batch_size=3))

    assert torch.equal(whole.inputs, batches.inputs)
    assert whole.objective.value() == batches.objective.value()


class _Named(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 1)

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        return self.layer(left * right)


@pytest.mark.parametrize("named", [True, False])
def test_inputs_may_be_several(named: bool) -> None:
    x = {"left": torch.randn(4, 2), "right": torch.randn(4, 2)} if named else (torch.randn(4, 2),) * 2
    batches = [(x, torch.zeros(4, 1)), (x, torch.zeros(4, 1))]

    found = problem(_Named(), batches)

    assert found.samples == 8
    assert found.batch_objective([0, 5]).value() > 0


def test_some_samples_have_the_mean_of_their_losses() -> None:
    x, y = torch.randn(6, 3, dtype=torch.float64), torch.tensor([0, 1, 1, 0, 1, 0])
    found = problem(nn.Linear(3, 2), (x, y), dtype="float64", batch_size=2)

    parts = [found.batch_objective([i]).value() for i in (1, 4, 5)]

    assert_allclose(found.batch_objective([1, 4, 5]).value(), np.mean(parts), rtol=1e-12)


def test_some_samples_are_taken_as_all_of_them_are() -> None:
    """By the same parameters, in the same mode, and so many in a pass."""
    sizes: list[int] = []

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


@pytest.mark.parametrize("size", [None, 3])
def test_what_is_no_mean_over_samples_is_one_batch(monkeypatch: pytest.MonkeyPatch, size: int | None) -> None:
    """Neither the batch size nor the default changes its value; nor are two samples enough to ask it for."""
    x, y, net = torch.randn(9, 3), torch.randn(9, 2), nn.Linear(3, 2)
    weights = torch.rand(9, 1)
    monkeypatch.setattr(loading, "BATCH", 4)

    def bound(outputs: Tensor, targets: Tensor) -> Tensor:
        return (weights * (outputs - targets) ** 2).sum() / weights.sum()

    found = problem(net, (x, y), loss=bound, batch_size=size)

    assert found.batch_size is None
    assert_allclose(found.objective.value(), bound(net(x), y).item(), rtol=1e-6)
    assert problem(net, (x, y), batch_size=size).batch_size == (size or 4)


def test_what_divides_by_the_number_of_something_rare_is_no_sum() -> None:
    x, y = torch.randn(40, 3), (torch.arange(40) % 20 == 7).float()

    def by_positives(outputs: Tensor, targets: Tensor) -> Tensor:
        return nn.functional.softplus(outputs[:, 0]).sum() / targets.sum().clamp(min=1)

    assert problem(nn.Linear(3, 1), (x, y), loss=by_positives).batch_size == 40
    with pytest.raises(ValueError, match="loss must be a mean over the samples of a batch, got a sum"):
        problem(nn.Linear(3, 1), (x, y), loss=lambda z, _: nn.functional.softplus(z).sum(), training=True)


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ([(torch.ones(2, 3), torch.ones(2)), (torch.ones(2, 4), torch.ones(2))], "samples of one shape"),
        ([({"a": torch.ones(2, 3)}, torch.ones(2)), ({}, torch.ones(2))], "of one number of samples, got 2"),
        ([({"a": torch.ones(2, 3), "b": torch.ones(3, 3)}, torch.ones(2))], "samples, got 2 and 3"),
        ((np.ma.masked_array(np.ones((2, 3)), np.eye(2, 3)), np.ones(2)), "got a masked one"),
        ((torch.ones(2, 3), torch.ones(2, device="meta")), "got a tensor on the meta device"),
        ((torch.ones(2, 3, device="meta"), torch.ones(2)), "got a tensor on the meta device"),
        (itertools.repeat((torch.ones(2, 3), torch.ones(2))), "data must end, got more than 20000 batches"),
    ],
)
def test_data_from_python_that_are_none_are_told(data: Any, line: str) -> None:
    with pytest.raises(ValueError, match=line):
        problem(nn.Linear(3, 1), data)


def test_tokens_have_classes_at_every_position() -> None:
    net = nn.Sequential(nn.Embedding(5, 5), nn.Flatten(0, 0))
    tokens = torch.randint(0, 5, (6, 4))
    by_axis = nn.Sequential(net, _Swap())

    found = problem(by_axis, (tokens, tokens))

    assert (found.classes, found.outputs) == (5, (5, 4))


class _Swap(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.mT


# --- nothing of the user's is changed -----------------------------------------------------------------------------


def test_the_model_and_the_generators_are_left_as_found() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 2)).double()
    net[1].eval()
    before, modes = copy.deepcopy(net.state_dict()), [part.training for part in net.modules()]
    states = torch.get_rng_state(), np.random.get_state()[1], random.getstate()  # noqa: NPY002 (looked at, not drawn from)

    found = problem(net, (torch.randn(8, 3), torch.tensor([0, 1] * 4)))
    found.objective.gradient()

    after = net.state_dict()
    assert all(
        torch.equal(before[name], after[name]) and before[name].dtype == after[name].dtype for name in before
    )
    assert modes == [part.training for part in net.modules()]
    assert all(p.grad is None for p in net.parameters())
    assert np.array_equal(states[1], np.random.get_state()[1])  # noqa: NPY002 (looked at, not drawn from)
    assert states[2] == random.getstate()


def test_a_build_that_draws_leaves_no_trace(folder: Path) -> None:
    states = torch.get_rng_state(), np.random.get_state()[1]  # noqa: NPY002 (looked at, not drawn from)

    load("drawn", seed=2**100)

    assert torch.equal(states[0], torch.get_rng_state())
    assert np.array_equal(states[1], np.random.get_state()[1])  # noqa: NPY002 (looked at, not drawn from)
