"""A model of one's own is read and checked: every bad input is one line, and nothing of the user's is changed."""

from __future__ import annotations

import copy
import itertools
import pickle
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from simulate import _memory
from simulate.objectives.parameters import as_found
from verify import cli
from verify.practice import loading
from verify.practice.loading import load, problem

N = 12

SOURCE = """
import random
import sys
import numpy as np
import torch
from torch import nn

print("printed while importing")

def build():
    print("printed while building")
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 3), nn.ReLU(), nn.Linear(3, 10))

def drawn():
    net = nn.Linear(64, 10)
    net.bias.data[0] += float(np.random.standard_normal())
    net.bias.data[1] += random.random()
    return net

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 10)

    def forward(self, x):
        print("printed while running")
        return self.layer(x.flatten(1))

class Fails(Net):
    def forward(self, x):
        raise KeyError("no such thing")

class Pair(Net):
    def forward(self, x):
        return self.layer(x.flatten(1)), x

class Few(Net):
    def forward(self, x):
        return self.layer(x.flatten(1)).sum()

class Full(Net):
    def forward(self, x):
        raise RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB")

class Noisy(Net):
    def forward(self, x):
        return self.layer(x.flatten(1) + torch.randn(()))

class Lazy(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Flatten(), nn.LazyLinear(10))

class Cut(Net):
    def forward(self, x):
        return self.layer(x.flatten(1)).detach()

class Uncopied(Net):
    def __deepcopy__(self, memo):
        raise TypeError("holds a lock")

def wide():
    return nn.Linear(63, 10)

def on_meta():
    with torch.device("meta"):
        return Net()

def needs(width):
    return Net()

def stops():
    sys.exit(3)

def word():
    return "a model"

def infinite():
    net = Net()
    net.layer.weight.data[0, 0] = float("inf")
    return net

def one():
    return nn.Linear(64, 1)

def empty():
    return nn.Flatten()

def cube(outputs, targets):
    return (outputs**4).mean()

def rows(outputs, targets):
    return (outputs**2).sum(1)

def summed(outputs, targets):
    return nn.functional.cross_entropy(outputs, targets, reduction="sum")

def nothing(outputs, targets):
    return (outputs.mean() * 0).log() - (outputs.mean() * 0).log()

class Loss(nn.Module):
    def forward(self, outputs, targets):
        return outputs.square().mean()

net = Net()
number = 3
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of a user, the current one, with models and data."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "user_net.py").write_text(SOURCE)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((N, 64))
    _save("data", x, np.arange(N) % 10)
    _save("values", x, rng.standard_normal((N, 10)))
    _save("numbers", x, rng.standard_normal(N))
    return tmp_path


def _save(name: str, x: Any, y: Any, names: tuple[str, str] = ("x_train", "y_train")) -> None:
    np.savez(f"{name}.npz", **{names[0]: np.asarray(x), names[1]: np.asarray(y)})


def _load(model: str = "Net", data: str = "data.npz", **options: Any) -> loading.Problem:
    return load(f"user_net.py:{model}", data, **options)


# --- what is taken ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["Net", "build", "net"])
def test_a_class_a_function_or_a_module_gives_the_model(folder: Path, model: str) -> None:
    found = _load(model)

    assert (found.samples, found.classes) == (N, 10)
    assert isinstance(found.loss, nn.CrossEntropyLoss)


def test_a_module_of_the_current_folder_is_found(folder: Path) -> None:
    path = list(sys.path)

    assert load("user_net:build", "data.npz").samples == N
    assert sys.path == path


def test_the_seed_fixes_what_the_model_draws(folder: Path) -> None:
    def value(before: int, seed: int) -> float:
        with as_found(None, training=False):
            random.seed(before)
            np.random.seed(before)  # noqa: NPY002 (what models of others draw from)
            return _load("drawn", seed=seed).objective.value()

    assert value(0, 1) == value(5, 1) != value(0, 2)


def test_the_seed_draws_the_samples(folder: Path) -> None:
    first, again, other = (_load(samples=5, seed=seed).inputs for seed in (1, 1, 2))

    assert torch.equal(first, again) and not torch.equal(first, other)


@pytest.mark.parametrize("width", [784, 64])
def test_digits_come_in_the_shape_that_the_model_takes(folder: Path, width: int) -> None:
    (folder / "flat_net.py").write_text(f"from torch import nn\nnet = nn.Linear({width}, 10)\n")

    found = load("flat_net.py:net", "digits", samples=5)

    assert found.inputs.shape == (5, width)


def test_digits_that_fit_no_model_are_told(folder: Path) -> None:
    with pytest.raises(
        ValueError, match=r"data digits must fit the model in one of the shapes \(1, 28, 28\)"
    ):
        _load("wide", "digits")


def test_bytes_become_floats_up_to_one(folder: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (N, 64)).astype(np.uint8)
    _save("bytes", images, np.arange(N) % 10)

    assert_allclose(_load(data="bytes.npz", dtype="float64").inputs, images / 255, rtol=1e-15)


def test_short_names_of_arrays_do_too(folder: Path) -> None:
    _save("short", np.ones((3, 64)), np.arange(3), ("x", "y"))

    assert _load(data="short.npz").samples == 3


def test_float_targets_mean_regression(folder: Path) -> None:
    found = _load(data="values.npz")

    assert isinstance(found.loss, nn.MSELoss)
    assert found.classes is None


def test_axes_of_length_one_are_no_difference(folder: Path) -> None:
    """Torch would spread (N,) against (N, 1) over N x N numbers."""
    found = _load("one", "numbers.npz", dtype="float64")
    outputs = found.model(found.inputs)[:, 0].detach().numpy()
    y = np.load("numbers.npz")["y_train"]

    assert_allclose(found.objective.value(), np.mean((outputs - y) ** 2), rtol=1e-12)


def test_bce_takes_whole_numbers(folder: Path) -> None:
    _save("binary", np.ones((4, 64)), [0, 1, 1, 0])

    found = _load("one", "binary.npz", loss="bce")

    assert found.classes is None
    assert found.targets.dtype == torch.float32


@pytest.mark.parametrize("loss", ["cube", "Loss"])
def test_a_loss_of_one_s_own(folder: Path, loss: str) -> None:
    found = _load(loss=f"user_net.py:{loss}", dtype="float64")
    outputs = found.model(found.inputs).detach().numpy()

    assert_allclose(found.objective.value(), np.mean(outputs ** (4 if loss == "cube" else 2)), rtol=1e-12)


WEIGHTS = {"layer.weight": torch.full((10, 64), 0.5), "layer.bias": torch.arange(10.0)}


def _prefixed(prefix: str, weights: dict[str, Tensor] = WEIGHTS) -> dict[str, Tensor]:
    return {f"{prefix}{name}": value for name, value in weights.items()}


@pytest.mark.parametrize(
    ("wrap", "told"),
    [
        (lambda s: s, ""),
        (lambda s: {"state_dict": s, "epoch": 3}, " of state_dict"),
        (lambda s: {"model": s}, " of model"),
        (lambda s: {"epoch": 3, "model_state_dict": s, "loss": 0.1}, " of model_state_dict"),
        (lambda s: {"model": {"state_dict": s}}, " of model / state_dict"),
        (lambda s: {"weights": s}, " of weights"),
        (lambda s: {"model": s, "ema": _prefixed("", {"layer.bias": torch.zeros(10)})}, " of model"),
        (lambda s: {"model": s, "ema": {name: 0 * value for name, value in s.items()}}, " of model"),
        (
            lambda s: {
                "state_dict": s,
                "hyper_parameters": {"rate": 0.1},
                "optimizer_states": [{"state": {0: s}}],
            },
            "",
        ),
        (lambda s: {"generator": s, "critic": {"first.weight": torch.ones(2)}}, " of generator"),
    ],
)
@pytest.mark.parametrize(
    "prefix", ["", "module.", "_orig_mod.", "module._orig_mod.", "model.", "net.backbone."]
)
def test_a_checkpoint_sets_the_parameters(
    folder: Path, wrap: Callable[[Any], Any], told: str, prefix: str
) -> None:
    torch.save(wrap(_prefixed(prefix)), "net.pt")
    lines: list[str] = []

    found = _load(checkpoint="net.pt", tell=lines.append)

    state, plain = found.model.state_dict(), prefix.replace("_orig_mod.", "")
    assert all(torch.equal(state[name], value) for name, value in WEIGHTS.items())
    (line,) = lines
    assert line.startswith(f"checkpoint net.pt: 2 tensors{told}")
    assert line.endswith(f", their names without {plain!r}" if plain else told)
    assert found.name == "user_net.py:Net from net.pt on data.npz"


def test_what_stands_beside_the_model_is_left_out_and_told(folder: Path) -> None:
    """As Lightning keeps the weights of a loss, and averaging the number of models."""
    torch.save({"state_dict": {**_prefixed("model."), "loss.weight": torch.ones(10)}}, "net.pt")
    lines: list[str] = []

    _load(checkpoint="net.pt", tell=lines.append)

    assert lines == [
        "checkpoint net.pt: 2 tensors of state_dict, their names without 'model.'; left out: loss.weight"
    ]


def test_parts_that_were_compiled_are_found(folder: Path) -> None:
    torch.save(
        {"module.layer._orig_mod.weight": WEIGHTS["layer.weight"], "module.layer.bias": torch.ones(10)},
        "net.pt",
    )

    assert torch.equal(_load(checkpoint="net.pt").model.layer.bias, torch.ones(10))


@pytest.mark.parametrize(("model", "name"), [("on_meta", "layer"), ("Lazy", "1")])
def test_a_model_without_values_has_those_of_the_checkpoint(folder: Path, model: str, name: str) -> None:
    torch.save(_prefixed("", {f"{name}.{n}": WEIGHTS[f"layer.{n}"] for n in ("weight", "bias")}), "net.pt")
    with pytest.raises(ValueError, match="model must have"):
        _load(model)

    found = _load(model, checkpoint="net.pt")

    assert torch.equal(found.model.state_dict()[f"{name}.bias"], WEIGHTS["layer.bias"])
    assert found.objective.dim == 650


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
        (itertools.repeat((torch.ones(2, 3), torch.ones(2))), "data must end, got more than 100000 batches"),
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

    _load("drawn", seed=2**100)

    assert torch.equal(states[0], torch.get_rng_state())
    assert np.array_equal(states[1], np.random.get_state()[1])  # noqa: NPY002 (looked at, not drawn from)


# --- bad input ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "line"),
    [
        ("needs", "must need no arguments, got width; wrap it in a function"),
        ("stops", r"must build without an error, got exit\(\): 3 \(user_net.py, line \d+\)"),
        ("word", "must give a torch.nn.Module, got str"),
        ("number", "must be a function, a class or a module, got int"),
        ("absent", "must name what user_net.py holds, got 'absent'; it has build, drawn, Net"),
        ("infinite", "parameters must be finite, got NaN or infinity in 'layer.weight'"),
        (
            "Fails",
            r"must run on inputs of shape \(2, 64\), got KeyError: 'no such thing' \(user_net.py, line 31\)",
        ),
        ("Pair", "model must return one tensor, got tuple; wrap it in a module"),
        ("Few", r"samples along the first axis, got outputs \(\) for 2 samples"),
        ("Full", "memory must suffice, got none left; use a smaller batch size or fewer samples"),
        ("Noisy", "data and model must give the same loss twice"),
        ("Lazy", "model must have initialised parameters, got a lazy '1.weight'; call the model once where"),
        (
            "Cut",
            "model must give outputs that depend on the parameters, got others: look for no_grad and detach",
        ),
        ("Uncopied", "model must be such that it can be copied, got TypeError: holds a lock"),
        ("wide", "mat1 and mat2 shapes cannot be multiplied"),
        ("empty", "model must have a parameter that requires a gradient, got none"),
        ("one", "outputs must be at least 2 for cross-entropy"),
    ],
)
def test_a_bad_model_is_told(folder: Path, model: str, line: str) -> None:
    with pytest.raises(ValueError, match=line):
        _load(model)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("user_net", "model must be pkg.module:name or path/file.py:name, got 'user_net'"),
        (
            "absent_module:build",
            "must import without an error, got ModuleNotFoundError: No module named 'absent_mod",
        ),
        ("absent.py:build", "must import without an error, got FileNotFoundError: no such file"),
        ("broken_net.py:build", r"got SyntaxError: .*broken_net.py, line 1"),
        ("leaving_net.py:build", r"got exit\(\) \(leaving_net.py, line 1\)"),
    ],
)
def test_a_model_that_does_not_import_is_told(folder: Path, words: str, line: str) -> None:
    (folder / "broken_net.py").write_text("def build(:\n")
    (folder / "leaving_net.py").write_text("raise SystemExit\n")

    with pytest.raises(ValueError, match=line):
        load(words, "data.npz")


@pytest.mark.parametrize(
    ("x", "y", "line"),
    [
        (np.ones((0, 64)), np.zeros(0, int), "data must hold at least one sample, got none"),
        (np.ones((3, 64)), np.arange(2), "inputs and targets must be of one number of samples, got 3 and 2"),
        (np.full((3, 64), np.nan), np.arange(3), "inputs must be finite, got NaN or infinity"),
        (np.ones((3, 64)), [0.0, np.inf, 1.0], "targets must be finite, got NaN or infinity"),
        (np.ones((3, 64)), [0, 10, 1], r"labels must be 0..9 for 10 outputs, got 0..10"),
        (np.ones((3, 64)), [0, -1, 1], r"labels must be 0..9 for 10 outputs, got -1..1"),
        (
            np.ones((3, 64)),
            np.ones((3, 7)),
            r"targets must be of shape \(10,\) each for what the model returns, got \(7,\)$",
        ),
        (np.ones((3, 64)), [0.5, 1.0, 2.0], r"for what the model returns, got \(\)$"),
        (
            np.ones((3, 64)),
            [0.0, 1.0, 2.0],
            "if they are classes, save them as integers and take cross-entropy",
        ),
        (
            np.ones((3, 64)),
            np.eye(10, dtype=int)[:3],
            "if they are shares of the classes, save them as floats",
        ),
        (np.ones((3, 64), int), np.arange(3), r"must run on inputs of shape \(2, 64\) of whole numbers, got"),
        (np.ones((3, 5)), np.arange(3), r"must run on inputs of shape \(2, 5\)"),
        (
            np.array(["a", "b"]),
            np.arange(2),
            "inputs must be tensors or arrays of real numbers, samples first, got",
        ),
        (
            np.ones((2, 64)),
            np.array(1),
            "targets must be tensors or arrays of real numbers, samples first, got",
        ),
        (np.array([{}, {}]), np.arange(2), "must hold plain arrays, got pickled objects"),
    ],
)
def test_bad_data_are_told(folder: Path, x: Any, y: Any, line: str) -> None:
    _save("bad", x, y)

    with pytest.raises(ValueError, match=line):
        _load("net", "bad.npz")


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"hello", "must be an .npz archive, got a pickle or another format"),
        (b"PK\x03\x04 but no more", "must be an .npz archive, got a file that cannot be read"),
        (None, "must be an existing file, got none"),
    ],
)
def test_a_file_that_is_no_archive_is_told(folder: Path, content: bytes | None, line: str) -> None:
    if content is not None:
        (folder / "no.npz").write_bytes(content)

    with pytest.raises(ValueError, match=line):
        _load(data="no.npz")


def test_an_archive_without_samples_names_what_it_has(folder: Path) -> None:
    np.savez("other.npz", images=np.ones(3))

    with pytest.raises(ValueError, match="must hold x_train, y_train, got images"):
        _load(data="other.npz")


def test_an_archive_larger_than_memory_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _save("large", np.zeros((300, 64), np.uint8), np.zeros(300, int))
    monkeypatch.setattr(_memory, "_UNASKED", 1000)
    monkeypatch.setattr(_memory, "available", lambda _: 2000)

    with pytest.raises(ValueError, match=r"data large.npz must be small enough for memory"):
        _load(data="large.npz")


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"loss": "hinge"}, "loss must be cross-entropy, mse, bce or pkg.module:function, got 'hinge'"),
        ({"loss": "user_net.py:number"}, "must be a function"),
        ({"loss": "user_net.py:rows"}, r"loss must be one number for a batch, got \(12,\)"),
        ({"loss": "user_net.py:nothing"}, "loss must be finite, got nan"),
        (
            {"loss": "user_net.py:summed"},
            "loss must be a mean over the samples of a batch, got a sum: divide it",
        ),
        ({"loss": "user_net.py:needs"}, "model and loss must run on all samples, got TypeError"),
        ({"loss": "bce", "data": "values.npz"}, r"targets must be 0..1 for bce, got -"),
        ({"dtype": "float16"}, "dtype must be one of float32, float64, got 'float16'"),
        ({"device": "tpu"}, "device must be auto, cpu, cuda or cuda:<index>, got 'tpu'"),
        ({"samples": N + 1}, f"samples must be 1 to the {N} there are, got {N + 1}"),
        ({"parameters": ["head"]}, "parameters must name parameters or submodules of the model"),
        ({"seed": -1}, "--seed must be at least 0, got -1"),
    ],
)
def test_bad_options_are_told(folder: Path, options: dict[str, Any], line: str) -> None:
    with pytest.raises(ValueError, match=line):
        _load(**options)


class _Evil:
    def __reduce__(self) -> Any:
        return Path.touch, (Path("touched"),)


@pytest.mark.parametrize(
    ("state", "line"),
    [
        (nn.Linear(2, 2).state_dict(), "got none of layer.weight, layer.bias; too much: weight, bias"),
        (
            {"layer.weight": torch.zeros(10, 63), "layer.bias": torch.zeros(10)},
            r"must hold layer.weight of shape \(10, 64\), got \(10, 63\)",
        ),
        ([1, 2], "must hold a state_dict, got list"),
        ({"model": {}, "epoch": {"a": 1}}, "must hold a state_dict, got a dictionary of model, epoch"),
        (
            {"model_state_dict": _prefixed("module.", {"layer.weight": torch.zeros(10, 64)})},
            "must hold what the model has, got none of layer.bias under model_state_dict",
        ),
        (
            {**_prefixed("model."), "model.head.weight": torch.ones(1)},
            "must hold what the model has, got too much: head.weight$",
        ),
        (_prefixed("", WEIGHTS) | {"head.weight": torch.ones(1)}, "got too much: head.weight$"),
        (
            _prefixed("student.") | _prefixed("teacher."),
            "must hold one state_dict that fits the model, got 'student.' and 'teacher.'",
        ),
        ({"one": WEIGHTS, "two": WEIGHTS}, "that fits the model, got 'one' and 'two'"),
        (
            {"layer.weight": torch.zeros(9, 64), "layer.bias": torch.zeros(9)},
            r"layer.weight of shape \(10, 64\), got \(9, 64\), and 1 more of another shape",
        ),
        (
            {**WEIGHTS, "layer.bias": torch.zeros(10, dtype=torch.complex64)},
            r"got \(10,\) of complex numbers",
        ),
        ({"best": np.float64(3.0), "model": WEIGHTS}, "whose code is never run, got numpy"),
        ({"epoch": 3}, "must hold a state_dict, got a dictionary of epoch"),
        (
            {"layer.weight": _Evil()},
            "must hold tensors by name and no other objects, whose code is never run",
        ),
    ],
)
def test_a_bad_checkpoint_is_told(folder: Path, state: Any, line: str) -> None:
    torch.save(state, "bad.pt")

    with pytest.raises(ValueError, match=line):
        _load(checkpoint="bad.pt")
    assert not Path("touched").exists()


def test_a_pickle_of_code_is_told_and_not_run(folder: Path) -> None:
    Path("bad.pt").write_bytes(pickle.dumps(_Evil()))

    with pytest.raises(ValueError, match="no other objects, whose code is never run"):
        _load(checkpoint="bad.pt")
    assert not Path("touched").exists()


@pytest.mark.parametrize(
    ("content", "line"), [(b"hello", "that can be read, got"), (None, "an existing file, got none")]
)
def test_a_file_that_is_no_checkpoint_is_told(folder: Path, content: bytes | None, line: str) -> None:
    if content is not None:
        Path("bad.pt").write_bytes(content)

    with pytest.raises(
        ValueError, match=f"checkpoint bad.pt must be {'a file of torch.save ' * bool(content)}{line}"
    ):
        _load(checkpoint="bad.pt")


@pytest.mark.parametrize(
    ("model", "data", "options", "line"),
    [
        ("a model", (torch.ones(2, 3), torch.ones(2, 1)), {}, "model must be a torch.nn.Module, got str"),
        (nn.Linear(3, 1), 7, {}, "data must be batches"),
        (nn.Linear(3, 1), [], {}, "data must hold at least one sample, got no batch"),
        (nn.Linear(3, 1), [torch.ones(3)], {}, "data must give batches"),
        (
            nn.Linear(3, 1),
            (torch.ones(2, 3), torch.ones(2, 1)),
            {"loss": 3},
            "loss must be a function of outputs",
        ),
        (
            nn.Linear(3, 1),
            (torch.ones(2, 3), torch.ones(2, 1)),
            {"loss": "l1"},
            "loss must be one of cross-entropy",
        ),
    ],
)
def test_bad_objects_are_told(model: Any, data: Any, options: dict[str, Any], line: str) -> None:
    with pytest.raises(ValueError, match=line):
        problem(model, data, **options)


def test_a_loader_that_raises_is_told() -> None:
    def batches() -> Any:
        yield torch.ones(2, 3), torch.ones(2, 1)
        raise OSError("the disk is gone")

    with pytest.raises(ValueError, match=r"data must give batches .*, got OSError: the disk is gone"):
        problem(nn.Linear(3, 1), batches())


def test_dropout_in_training_mode_is_named() -> None:
    net = nn.Sequential(nn.Dropout(0.5), nn.Linear(3, 1))

    with pytest.raises(ValueError, match=r"dropout in training mode \('0'\)"):
        problem(net, (torch.ones(8, 3), torch.ones(8, 1)), training=True)


def test_a_loss_that_says_it_is_a_sum_is_one() -> None:
    x, y, net = torch.randn(6, 3), torch.randn(6, 2), nn.Linear(3, 2)

    mean, total = (problem(net, (x, y), loss=nn.MSELoss(reduction=kind)) for kind in ("mean", "sum"))

    assert_allclose(total.objective.value(), 12 * mean.objective.value(), rtol=1e-5)
    assert (mean.unit, total.unit) == (1.0, 6.0)


def test_a_loss_without_derivatives_is_told() -> None:
    class Cut(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x.square()

        @staticmethod
        def backward(ctx: Any, slope: Tensor) -> Any:
            return None

    def loss(outputs: Tensor, targets: Tensor) -> Tensor:
        return Cut.apply(outputs - targets).mean()

    with pytest.raises(ValueError, match="loss must depend on the parameters by functions with derivatives"):
        problem(nn.Linear(3, 2), (torch.randn(4, 3), torch.randn(4, 2)), loss=loss)


def test_a_loss_cut_from_the_outputs_is_told() -> None:
    def loss(outputs: Tensor, targets: Tensor) -> Tensor:
        return (outputs.detach() - targets).square().mean()

    with pytest.raises(ValueError, match="loss must depend on the parameters, got one that does not"):
        problem(nn.Linear(3, 2), (torch.randn(4, 3), torch.randn(4, 2)), loss=loss)


class _Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.exp()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, slope: Tensor) -> Tensor:
        return slope * ctx.saved_tensors[0].exp()


class _Straight(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return _Once.apply(x)


def test_a_loss_that_reaches_for_the_weights_is_told() -> None:
    """Those of the model that was given, of which a copy is measured."""
    net = nn.Linear(5, 2)

    def penalised(outputs: Tensor, targets: Tensor) -> Tensor:
        return nn.functional.cross_entropy(outputs, targets) + 0.1 * net.weight.square().sum()

    with pytest.raises(
        ValueError, match="must reach the parameters through the call of the model alone, got 'weight'"
    ):
        problem(net, (torch.randn(4, 5), torch.tensor([0, 1, 1, 0])), loss=penalised)


def test_a_part_without_its_derivative_is_told() -> None:
    net = nn.Sequential(nn.Linear(5, 6), _Frozen(), nn.Linear(6, 2))

    with pytest.raises(ValueError, match="must have the derivatives of their own values, got others by"):
        problem(net, (torch.randn(4, 5), torch.tensor([0, 1, 1, 0])))


class _Frozen(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.detach() * x


def test_a_model_without_second_derivatives_is_told() -> None:
    """Torch itself takes them for zero."""
    net = nn.Sequential(nn.Linear(5, 6), _Straight(), nn.Linear(6, 2))

    with pytest.raises(
        ValueError, match="must have second derivatives, got a function of torch marked once_diff"
    ):
        problem(net, (torch.randn(4, 5), torch.tensor([0, 1, 1, 0])))


def test_batch_normalisation_in_training_mode_sees_all_samples_at_once() -> None:
    net = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    x, y = torch.randn(8, 3), torch.randn(8, 2)
    before = copy.deepcopy(net.state_dict())

    found = problem(net, (x, y), training=True, batch_size=2)

    expected = nn.functional.mse_loss(net(x), y).item()
    assert found.batch_size is None
    assert_allclose(found.objective.value(), expected, rtol=1e-6)
    assert before["1.num_batches_tracked"] == 0 == found.model.state_dict()["1.num_batches_tracked"]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--model", "user_net.py:stops", "--data", "data.npz"], "must build without an error"),
        (
            ["--model", "user_net.py:net", "--data", "data.npz", "--samples", "0"],
            "--samples must be at least 1, got 0",
        ),
        (
            ["--model", "user_net.py:net", "--data", "data.npz", "--batch-size", "-1"],
            "--batch-size must be at least 1",
        ),
        (["--model", "user_net.py:net"], "required: --data"),
    ],
)
def test_the_command_ends_in_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], line: str
) -> None:
    before = sorted(folder.glob("[!_]*"))  # but for __pycache__

    assert cli.main(["measure", *words]) == 2

    out, err = capsys.readouterr()
    assert not out
    assert line in err.splitlines()[-1]
    assert sorted(folder.glob("[!_]*")) == before
