"""Bad inputs are refused before anything is measured, each with one line."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn

from simulate import _memory
from tests.refusals import refusal
from tests.verify.practice.user_models import N, load, save
from verify.practice.loading import load_problem, problem

pytestmark = pytest.mark.usefixtures("folder")

MODELS = {
    "needs": r"needs arguments \(width\)",
    "stops": r"cannot be built: exit\(\): 3 \(user_net.py, line \d+\)",
    "word": "must return a torch.nn.Module, got str",
    "absent": "user_net.py has no 'absent'; it has build, drawn, Net",
    "infinite": "parameters must be finite, got NaN or infinity in 'layer.weight'",
    "Fails": r"run on inputs of shape \(2, 64\): KeyError: 'no such thing' \(user_net.py, line 31\)",
    "Pair": "must return one tensor, or one as logits, got tuple",
    "Full": "memory must suffice",
    "Noisy": "the same loss twice",
    "Lazy": "got a lazy '1.weight'",
    "Cut": "look for no_grad and detach",
    "Uncopied": "cannot be copied: TypeError",
    "empty": "got none",
    "one": "must have at least 2 outputs",
}


@pytest.mark.parametrize("model", MODELS)
def test_a_bad_model_is_told(model: str) -> None:
    with refusal(MODELS[model]):
        load(model)


PLACES = {
    "user_net": "must be pkg.module:name or path/file.py:name",
    "absent_module:build": "cannot be imported: ModuleNotFoundError",
    "./nets:build": "got ./nets, a folder$",
    "absent.py:build": "^file not found: absent.py$",
    "broken_net.py:build": "cannot be imported: SyntaxError: .*broken_net.py, line 1",
    "leaving_net.py:build": r"cannot be imported: exit\(\) \(leaving_net.py, line 1\)",
}


@pytest.mark.parametrize("words", PLACES)
def test_a_model_that_does_not_import_is_told(words: str) -> None:
    Path("broken_net.py").write_text("def build(:\n")
    Path("leaving_net.py").write_text("raise SystemExit\n")
    Path("nets").mkdir()

    with refusal(PLACES[words]):
        load_problem(words, "data.npz")


X = np.ones((3, 64))


@pytest.mark.parametrize(
    ("x", "y", "line"),
    [
        (X[:0], np.zeros(0), "at least one sample, got none"),
        (X, np.arange(2), "the same number of samples, got 3 and 2"),
        (np.nan * X, np.arange(3), "inputs must be finite"),
        (X, [0.0, np.inf, 1.0], "targets must be finite"),
        (X, [0, 10, 1], "0..9 for 10 outputs, got 0..10"),
        (X, np.ones((3, 7)), r"shape \(10,\) to match the outputs, got \(7,\)$"),
        (X, [0.0, 1.0, 2.0], "if they are classes, save them as integers"),
        (np.array(["a", "b"]), np.arange(2), "inputs must be tensors or arrays of real numbers"),
        (np.array([{}, {}]), np.arange(2), "plain arrays, got pickled objects"),
    ],
)
def test_bad_data_are_told(x: Any, y: Any, line: str) -> None:
    save("bad", x, y)

    with refusal(line):
        load("net", "bad.npz")


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ("hello", "an .npz archive, got a file of another format"),
        ("cut", "an .npz archive, got a file that cannot be read"),
        ("none", "^file not found: none; check the path"),
        ("sets", "a plain file, got a folder"),
        ("other.npz", "must hold x_train, y_train, got images"),
        ("data.npz", "small enough for memory"),
    ],
)
def test_a_file_that_is_none_is_told(data: str, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("hello").write_bytes(b"hello")
    Path("cut").write_bytes(b"PK\x03\x04 but no more")
    Path("sets").mkdir()
    np.savez("other.npz", images=np.ones(3))
    monkeypatch.setattr(_memory, "_UNCHECKED", 1000)
    monkeypatch.setattr(_memory, "available", lambda _: 2000)

    with refusal(line):
        load(data=data)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"loss": "hinge"}, "^loss must be cross-entropy, mse, bce or pkg.module:function, got 'hinge'"),
        ({"loss": "cross_entropy"}, r"; did you mean cross-entropy\?$"),
        ({"loss": "user_net.py:rows"}, r"one number for a batch, got \(12,\)"),
        ({"loss": "user_net.py:nothing"}, "loss must be finite, got nan"),
        ({"loss": "user_net.py:summed"}, "a mean over the samples of a batch, got a sum"),
        ({"loss": "user_net.py:needs"}, "run on all samples: TypeError"),
        ({"loss": "bce", "data": "values.npz"}, "0..1 for bce, got -"),
        ({"device": "tpu"}, "^device must be auto, cpu, .* got 'tpu'"),
        ({"samples": N + 1}, f"^samples must be from 1 to {N}, the number in the data"),
    ],
)
def test_bad_options_are_told(options: dict[str, Any], line: str) -> None:
    with refusal(line):
        load(**options)


class _Cut(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.square()

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> Any:
        return None


class _Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.exp()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, slope: Tensor) -> Tensor:
        return slope * ctx.saved_tensors[0].exp()


class _Bent(nn.Module):
    """A layer, and what bends its outputs."""

    def __init__(self, bend: Any) -> None:
        super().__init__()
        self.layer, self.bend = nn.Linear(3, 2), bend

    def forward(self, x: Tensor) -> Tensor:
        return self.bend(self.layer(x))


def _breaks() -> Any:
    yield torch.ones(2, 3), torch.ones(2, 1)
    raise OSError("the disk is gone")


NET = nn.Linear(3, 2)
PAIR = torch.ones(4, 3), torch.zeros(4, 2)


@pytest.mark.parametrize(
    ("model", "data", "options", "line"),
    [
        ("a model", PAIR, {}, "^model must be a torch.nn.Module, got str$"),
        (nn.ReLU, PAIR, {}, r"^model must be a torch.nn.Module, got type; call it: ReLU\(\)$"),
        (NET, 7, {}, "^data must be batches"),
        (NET, PAIR[:1], {}, "^data must give batches"),
        (NET, _breaks(), {}, "^data cannot be read as batches .*: OSError: the disk is gone"),
        (NET, PAIR, {"loss": "l1"}, "^loss must be one of cross-entropy"),
        (NET, PAIR, {"loss": lambda z, y: _Cut.apply(z - y).mean()}, "by functions with derivatives"),
        (NET, PAIR, {"loss": lambda z, y: z.detach().mean()}, "must depend on the parameters, got"),
        (
            NET,
            PAIR,
            {"loss": lambda z, y: (z - y + NET.bias).square().mean()},
            "calling the model, got 'bias'",
        ),
        (nn.Sequential(nn.Dropout(0.5), NET), PAIR, {"training": True}, r"in training mode \('0'\)"),
        (_Bent(lambda x: x.detach() * x), PAIR, {}, "must agree with finite differences"),
        (_Bent(_Once.apply), PAIR, {}, "second derivatives, got a function of torch marked once_diff"),
    ],
)
def test_bad_objects_are_told(model: Any, data: Any, options: dict[str, Any], line: str) -> None:
    with refusal(line):
        problem(model, data, **options)


def test_a_loss_that_says_it_is_a_sum_is_one() -> None:
    x, y, net = torch.randn(6, 3), torch.randn(6, 2), nn.Linear(3, 2)

    mean, total = (problem(net, (x, y), loss=nn.MSELoss(reduction=kind)) for kind in ("mean", "sum"))

    assert_allclose(total.objective.value(), 12 * mean.objective.value(), rtol=1e-5)
    assert (mean.unit, total.unit) == (1.0, 6.0)
