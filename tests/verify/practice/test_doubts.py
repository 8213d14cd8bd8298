"""What looks like a mistake in model or data is told beside the numbers, by `measure` and by `plan`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from verify import cli
from verify.practice.doubts import doubtful
from verify.practice.loading import problem

N = 6
SOFTMAX, CLASS, TARGETS, INPUTS = (
    "drop the softmax",
    "all targets are class 1",
    "all targets are equal",
    "all inputs are equal",
)


def found(net: nn.Module, x: Tensor, y: Tensor, **options: Any) -> list[str]:
    told = doubtful(problem(net, (x, y), **options))
    return [words for words in (SOFTMAX, CLASS, TARGETS, INPUTS) for line in told if words in line]


def inputs(*shape: int) -> Tensor:
    return torch.randn(N, *shape, generator=torch.Generator().manual_seed(2))


ALL, CLASSES = torch.ones(N, dtype=torch.int64), torch.arange(N) % 3
PROBABLE = nn.Sequential(nn.Linear(4, 3), nn.Softmax(1))


def of_probabilities(outputs: Tensor, targets: Tensor) -> Tensor:
    return nn.functional.nll_loss(outputs.log(), targets)


@pytest.mark.parametrize(
    ("net", "x", "y", "options", "expected"),
    [
        (nn.Linear(4, 3), inputs(4), CLASSES, {}, []),
        (PROBABLE, inputs(4), CLASSES, {}, [SOFTMAX]),
        (PROBABLE, inputs(4), CLASSES, {"loss": nn.functional.cross_entropy}, [SOFTMAX]),
        (PROBABLE, inputs(4), CLASSES, {"loss": of_probabilities}, []),
        (PROBABLE, inputs(4), torch.eye(3).repeat(2, 1), {"loss": "mse"}, []),
        (nn.Sequential(nn.Linear(4, 3), nn.LogSoftmax(1)), inputs(4), CLASSES, {}, []),
        (nn.Sequential(nn.Linear(4, 3), nn.Sigmoid()), inputs(4), CLASSES, {}, []),
        (nn.Sequential(nn.Conv1d(2, 3, 1), nn.Softmax(1)), inputs(2, 5), (CLASSES[:, None] + torch.arange(5)) % 3, {},
         [SOFTMAX]),
        (nn.Linear(4, 3), inputs(4), ALL, {}, [CLASS]),
        (nn.Linear(4, 3), inputs(4), torch.tensor([1, 1, 1, 1, 1, 2]), {}, []),
        (nn.Linear(4, 3), inputs(4), torch.tensor([1, 1, 1, 1, 2, 2]), {"loss": nn.CrossEntropyLoss(ignore_index=2)},
         [CLASS]),
        (nn.Linear(4, 1), inputs(4), torch.ones(N, 1), {}, [TARGETS]),
        (nn.Linear(4, 3), inputs(4)[:1].expand(N, 4), CLASSES, {}, [INPUTS]),
        (nn.Linear(4, 3), inputs(4)[:1], ALL[:1], {}, []),
    ],
)  # fmt: skip
def test_a_softmax_equal_targets_and_equal_inputs_are_seen(
    net: nn.Module, x: Tensor, y: Tensor, options: dict[str, Any], expected: list[str]
) -> None:
    assert found(net, x, y, **options) == expected


SOURCE = """
from torch import nn

def build():
    return nn.Sequential(nn.Linear(4, 3), nn.Softmax(1))
"""


@pytest.mark.parametrize(
    "words",
    [
        ["measure", "--top", "1", "--probes", "2"],
        ["plan", "--batch-sizes", "2", "--steps", "4", "--no-linearised"],
    ],
)
def test_both_commands_tell_it_in_text_json_and_page(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(SOURCE)
    np.savez("data.npz", x=np.ones((N, 4)), y=np.ones(N, dtype=int))
    asked = [*words, "--model", "own.py:build", "--data", "data.npz", "--output", "out"]
    assert cli.main(asked) == 0
    text = capsys.readouterr().out
    assert cli.main([*asked, "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    told = " ".join(made.get("state", made)["doubts"])
    page = (tmp_path / "out" / f"{words[0]}.html").read_text()
    for line in (SOFTMAX, CLASS, INPUTS):
        assert line in text and line in told and line in page
