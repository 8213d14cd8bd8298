"""Checkpoints set the parameters of a model of one's own; what is none is told and never run."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.refusals import refusal
from tests.verify.practice.user_models import load

pytestmark = pytest.mark.usefixtures("folder")


WEIGHTS = {"layer.weight": torch.full((10, 64), 0.5), "layer.bias": torch.arange(10.0)}


def _prefixed(prefix: str, weights: dict[str, Tensor] = WEIGHTS) -> dict[str, Tensor]:
    return {f"{prefix}{name}": value for name, value in weights.items()}


@pytest.mark.parametrize(
    ("wrap", "told"),
    [
        (lambda s: s, ""),
        (lambda s: {"state_dict": s, "epoch": 3}, " of state_dict"),
        (lambda s: {"model": {"state_dict": s}}, " of model / state_dict"),
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
@pytest.mark.parametrize("prefix", ["", "_orig_mod.", "module._orig_mod.", "net.backbone."])
def test_a_checkpoint_sets_the_parameters(wrap: Callable[[Any], Any], told: str, prefix: str) -> None:
    torch.save(wrap(_prefixed(prefix)), "net.pt")
    lines = []

    found = load(checkpoint="net.pt", tell=lines.append)

    state, plain = found.model.state_dict(), prefix.replace("_orig_mod.", "")
    assert all(torch.equal(state[name], value) for name, value in WEIGHTS.items())
    (line,) = lines
    assert line.startswith(f"checkpoint net.pt: 2 tensors{told}")
    assert line.endswith(f", their names without {plain!r}" if plain else told)
    assert found.name == "user_net.py:Net from net.pt on data.npz"


def test_what_stands_beside_the_model_is_left_out_and_told() -> None:
    """As Lightning keeps the weights of a loss, and averaging the number of models."""
    torch.save({"state_dict": {**_prefixed("model."), "loss.weight": torch.ones(10)}}, "net.pt")
    lines = []

    load(checkpoint="net.pt", tell=lines.append)

    assert lines == [
        "checkpoint net.pt: 2 tensors of state_dict, their names without 'model.'; left out: loss.weight"
    ]


def test_parts_that_were_compiled_are_found() -> None:
    torch.save(
        {"module.layer._orig_mod.weight": WEIGHTS["layer.weight"], "module.layer.bias": torch.ones(10)},
        "net.pt",
    )

    assert torch.equal(load(checkpoint="net.pt").model.layer.bias, torch.ones(10))


@pytest.mark.parametrize(("model", "name"), [("on_meta", "layer"), ("Lazy", "1")])
def test_a_model_without_values_has_those_of_the_checkpoint(model: str, name: str) -> None:
    torch.save(_prefixed("", {f"{name}.{n}": WEIGHTS[f"layer.{n}"] for n in ("weight", "bias")}), "net.pt")
    with refusal("model must have"):
        load(model)

    found = load(model, checkpoint="net.pt")

    assert torch.equal(found.model.state_dict()[f"{name}.bias"], WEIGHTS["layer.bias"])
    assert found.objective.dim == 650


class _Evil:
    def __reduce__(self) -> Any:
        return Path.touch, (Path("touched"),)


@pytest.mark.parametrize(
    ("state", "line"),
    [
        (nn.Linear(2, 2).state_dict(), "missing layer.weight, layer.bias; unexpected weight, bias"),
        ({"model": {}, "epoch": {"a": 1}}, "holds no state_dict, got a dictionary with model, epoch"),
        (
            {"model_state_dict": _prefixed("module.", {"layer.weight": torch.zeros(10, 64)})},
            "does not fit the model: missing layer.bias under model_state_dict",
        ),
        (
            {**_prefixed("model."), "model.head.weight": torch.ones(1)},
            "does not fit the model: unexpected head.weight$",
        ),
        (
            _prefixed("student.") | _prefixed("teacher."),
            "holds several state_dicts that fit the model: 'student.' and 'teacher.'",
        ),
        (
            {"layer.weight": torch.zeros(9, 64), "layer.bias": torch.zeros(9)},
            r"layer.weight must have shape \(10, 64\), got \(9, 64\), and 1 more differ",
        ),
        (
            {**WEIGHTS, "layer.bias": torch.zeros(10, dtype=torch.complex64)},
            r"got \(10,\) of complex numbers",
        ),
        ({"best": np.float64(3.0), "model": WEIGHTS}, "since loading other objects can run code, got numpy"),
        (
            {"layer.weight": _Evil()},
            "must hold tensors only, since loading other objects can run code",
        ),
    ],
)
def test_a_bad_checkpoint_is_told(state: Any, line: str) -> None:
    torch.save(state, "bad.pt")

    with refusal(line):
        load(checkpoint="bad.pt")
    assert not Path("touched").exists()


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"hello", "checkpoint bad.pt cannot be read as a file of torch.save:"),
        (pickle.dumps(_Evil()), "since loading other objects can run code"),
        (None, "^file not found: bad.pt$"),
    ],
)
def test_a_file_that_is_no_checkpoint_is_told(content: bytes | None, line: str) -> None:
    if content is not None:
        Path("bad.pt").write_bytes(content)

    with refusal(line):
        load(checkpoint="bad.pt")
    assert not Path("touched").exists()
