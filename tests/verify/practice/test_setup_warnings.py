"""`measure` and `plan` warn of likely mistakes in model or data."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from verify import cli
from verify.practice.loading import problem
from verify.practice.setup_warnings import setup_warnings

N = 6
SOFTMAX, CLASS, TARGETS, INPUTS = (
    "drop the softmax",
    "all targets are class 1",
    "all targets are equal",
    "all inputs are equal",
)


def found(net: nn.Module, x: Tensor, y: Tensor, **options: Any) -> list[str]:
    told = setup_warnings(problem(net, (x, y), **options))
    return [words for words in (SOFTMAX, CLASS, TARGETS, INPUTS) for line in told if words in line]


def inputs(*shape: int) -> Tensor:
    return torch.randn(N, *shape, generator=torch.Generator().manual_seed(2))


ALL, CLASSES = torch.ones(N, dtype=torch.int64), torch.arange(N) % 3
PROBABLE = nn.Sequential(nn.Linear(4, 3), nn.Softmax(1))


def of_probabilities(outputs: Tensor, targets: Tensor) -> Tensor:
    return nn.functional.nll_loss(outputs.log(), targets)


NET, X = nn.Linear(4, 3), inputs(4)


@pytest.mark.parametrize(
    ("net", "x", "y", "options", "expected"),
    [
        (NET, X, CLASSES, {}, []),
        (PROBABLE, X, CLASSES, {}, [SOFTMAX]),
        (PROBABLE, X, CLASSES, {"loss": of_probabilities}, []),
        (nn.Sequential(NET, nn.LogSoftmax(1)), X, CLASSES, {}, []),
        (nn.Sequential(nn.Conv1d(2, 3, 1), nn.Softmax(1)), inputs(2, 5), CLASSES[:, None].repeat(1, 5), {}, [SOFTMAX]),
        (NET, X, ALL, {}, [CLASS]),
        (NET, X, ALL.index_fill(0, ALL[:1], 2), {}, []),
        (NET, X, ALL.index_fill(0, ALL[:1], 2), {"loss": nn.CrossEntropyLoss(ignore_index=2)}, [CLASS]),
        (nn.Linear(4, 1), X, torch.ones(N, 1), {}, [TARGETS]),
        (NET, X[:1].expand(N, 4), CLASSES, {}, [INPUTS]),
        (NET, X[:1], ALL[:1], {}, []),
    ],
)  # fmt: skip
def test_a_softmax_equal_targets_and_equal_inputs_are_seen(
    net: nn.Module, x: Tensor, y: Tensor, options: dict[str, Any], expected: list[str]
) -> None:
    assert found(net, x, y, **options) == expected


@pytest.mark.parametrize("words", ["measure --top 1 --probes 2", "plan --batch-sizes 2 --steps 4"])
def test_both_commands_tell_it_in_text_json_and_page(words: str, capsys: Any) -> None:
    Path("own.py").write_text("from torch import nn\nnet = nn.Sequential(nn.Linear(4, 3), nn.Softmax(1))\n")
    np.savez("data.npz", x=np.ones((N, 4)), y=np.ones(N, dtype=int))
    assert cli.main([*words.split(), "--model", "own.py:net", "--data", "data.npz", "--output", "out"]) == 0
    command, text = words.split()[0], capsys.readouterr().out
    made = json.loads(Path(f"out/{command}.json").read_text())
    told, page = " ".join(made.get("state", made)["doubts"]), Path(f"out/{command}.html").read_text()
    for line in (SOFTMAX, CLASS, INPUTS):
        assert line in text and line in told and line in page
