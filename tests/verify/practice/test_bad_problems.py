"""A model of one's own is checked: every bad input is one line."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn

from simulate import _memory
from simulate.objectives.losses import named_loss
from tests.verify.practice.user_models import N, furnish, load, save
from verify import cli
from verify.practice.loading import load_problem, problem


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of a user, the current one, with models and data."""
    monkeypatch.chdir(tmp_path)
    furnish(tmp_path)
    return tmp_path


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
        ("Pair", "model must return one tensor, or one as logits, got tuple of 0, 1"),
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
        load(model)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("user_net", "model must be pkg.module:name or path/file.py:name, got 'user_net'"),
        (
            "absent_module:build",
            "must import without an error, got ModuleNotFoundError: No module named 'absent_mod",
        ),
        (
            "./nets:build",
            r"model ./nets:build must be path/file.py:name or pkg.module:name, got ./nets, a folder$",
        ),
        ("./absent:build", r"must be path/file.py:name or pkg.module:name, got ./absent$"),
        ("absent.py:build", "^file not found: absent.py$"),
        ("broken_net.py:build", r"got SyntaxError: .*broken_net.py, line 1"),
        ("leaving_net.py:build", r"got exit\(\) \(leaving_net.py, line 1\)"),
    ],
)
def test_a_model_that_does_not_import_is_told(folder: Path, words: str, line: str) -> None:
    (folder / "broken_net.py").write_text("def build(:\n")
    (folder / "leaving_net.py").write_text("raise SystemExit\n")
    (folder / "nets").mkdir()

    with pytest.raises(ValueError, match=line):
        load_problem(words, "data.npz")


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
    save("bad", x, y)

    with pytest.raises(ValueError, match=line):
        load("net", "bad.npz")


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"hello", "must be an .npz archive, got a pickle or another format"),
        (b"PK\x03\x04 but no more", "must be an .npz archive, got a file that cannot be read"),
        (None, "^file not found: no.npz; check the path"),
    ],
)
def test_a_file_that_is_no_archive_is_told(folder: Path, content: bytes | None, line: str) -> None:
    if content is not None:
        (folder / "no.npz").write_bytes(content)

    with pytest.raises(ValueError, match=line):
        load(data="no.npz")


@pytest.mark.parametrize("name", ["crossentropy", "Cross-Entropy", "cross_entropy"])
def test_a_mistyped_loss_is_told_with_the_one_that_was_meant(folder: Path, name: str) -> None:
    save("good", np.ones((4, 3), "float32"), np.zeros(4, "int64"))
    with pytest.raises(ValueError, match=r"; did you mean cross-entropy\?$"):
        load("net", "good.npz", loss=name)
    with pytest.raises(ValueError, match=r"; did you mean cross-entropy\?$"):
        named_loss(name)


def test_a_folder_in_place_of_a_file_is_told(folder: Path) -> None:
    (folder / "sets").mkdir()
    with pytest.raises(ValueError, match="data sets must be a plain file, got a folder"):
        load(data="sets")


def test_an_archive_without_samples_names_what_it_has(folder: Path) -> None:
    np.savez("other.npz", images=np.ones(3))

    with pytest.raises(ValueError, match="must hold x_train, y_train, got images"):
        load(data="other.npz")


def test_an_archive_larger_than_memory_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save("large", np.zeros((300, 64), np.uint8), np.zeros(300, int))
    monkeypatch.setattr(_memory, "_UNASKED", 1000)
    monkeypatch.setattr(_memory, "available", lambda _: 2000)

    with pytest.raises(ValueError, match=r"data large.npz must be small enough for memory"):
        load(data="large.npz")


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
        load(**options)


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
