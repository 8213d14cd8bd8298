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
SOFTMAX = "drop the softmax"


def inputs(*shape: int) -> Tensor:
    return torch.randn(N, *shape, generator=torch.Generator().manual_seed(2))


CLASSES = torch.arange(N) % 3
PROBABLE = nn.Sequential(nn.Linear(4, 3), nn.Softmax(1))


def of_probabilities(outputs: Tensor, targets: Tensor) -> Tensor:
    return nn.functional.nll_loss(outputs.log(), targets)


NET, X = nn.Linear(4, 3), inputs(4)


@pytest.mark.parametrize(
    ("net", "x", "y", "options", "expected"),
    [
        (NET, X, CLASSES, {}, False),
        (PROBABLE, X, CLASSES, {}, True),
        (PROBABLE, X, CLASSES, {"loss": of_probabilities}, False),
        (nn.Sequential(NET, nn.LogSoftmax(1)), X, CLASSES, {}, False),
        (nn.Sequential(nn.Conv1d(2, 3, 1), nn.Softmax(1)), inputs(2, 5), CLASSES[:, None].repeat(1, 5), {}, True),
    ],
)  # fmt: skip
def test_a_softmax_before_the_loss_is_seen(
    net: nn.Module, x: Tensor, y: Tensor, options: dict[str, Any], expected: bool
) -> None:
    warned = setup_warnings(problem(net, (x, y), **options))
    assert [SOFTMAX in line for line in warned] == [True] * expected


@pytest.mark.parametrize("words", ["measure --top 1", "plan --batch-sizes 2 --steps 4"])
def test_both_commands_tell_it_in_text_json_and_page(words: str, capsys: Any) -> None:
    Path("own.py").write_text("from torch import nn\nnet = nn.Sequential(nn.Linear(4, 3), nn.Softmax(1))\n")
    np.savez("data.npz", x=np.ones((N, 4)), y=np.ones(N, dtype=int))
    assert cli.main([*words.split(), "--model", "own.py:net", "--data", "data.npz", "--output", "out"]) == 0
    command, text = words.split()[0], capsys.readouterr().out
    made = json.loads(Path(f"out/{command}.json").read_text())
    told, page = " ".join(made.get("state", made)["doubts"]), Path(f"out/{command}.html").read_text()
    assert SOFTMAX in text and SOFTMAX in told and SOFTMAX in page
