"""`losscurv measure --checkpoint 'run/*.pt'`: curvature through training, in the order of the numbers in names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn

from verify import cli
from verify.practice import measure as measuring
from verify.practice.measure import matrices

WORDS = ["measure", "--model", "net.py:build", "--data", "data.npz", "--top", "1", "--dtype", "float64"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of checkpoints of least squares, whose Hessian is that of the data times the square of a scale."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(matrices, "DENSITY_STEPS", 4)
    monkeypatch.setattr(measuring, "VARIANCE_PROBES", 2)
    Path("net.py").write_text(
        "from torch import nn\n"
        "class Net(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.w = nn.Parameter(nn.init.ones_(__import__('torch').empty(3)))\n"
        "    def forward(self, x):\n"
        "        return ((x @ self.w) ** 2)[:, None]\n"
        "build = Net\n"
    )
    rng = np.random.default_rng(0)
    np.savez("data.npz", x_train=rng.standard_normal((8, 3)), y_train=np.zeros((8, 1)))
    for step in (100, 20, 3):
        torch.save({"w": torch.full((3,), float(step))}, f"step-{step}.pt")
    return tmp_path


def test_checkpoints_are_measured_in_the_order_of_their_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*WORDS, "--checkpoint", "step-*.pt"]) == 0

    out = capsys.readouterr().out
    rows = json.loads(Path("losscurv-measure/measure.json").read_text())["checkpoints"]
    assert [row["at"] for row in rows] == [3, 20, 100]
    first = [row["hessian"]["top"][0]["value"] for row in rows]
    assert_allclose(np.array(first) / first[0], (np.array([3, 20, 100]) / 3) ** 2, rtol=1e-9)
    assert out.index("step-3.pt") < out.index("step-20.pt") < out.index("step-100.pt")
    page = Path("losscurv-measure/measure.html").read_text()
    assert "3 checkpoints" in page and page.count("<svg") == 1 and "step-100.pt" in page


def test_one_file_is_no_series_and_a_pattern_without_files_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main([*WORDS, "--checkpoint", "step-2*.pt"]) == 0
    assert "checkpoints" not in json.loads(Path("losscurv-measure/measure.json").read_text())
    assert cli.main([*WORDS, "--checkpoint", "nothing-*.pt"]) == 2
    assert "a pattern that some files fit, got 'nothing-*.pt'" in capsys.readouterr().err
    assert cli.main([*WORDS, "--checkpoint", "step-*.pt", "--save-vectors", "v.npz"]) == 2
    assert "--save-vectors must go with one checkpoint, got 3" in capsys.readouterr().err


def test_what_was_measured_before_a_bad_checkpoint_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    torch.save(nn.Linear(2, 2).state_dict(), "step-50.pt")

    assert cli.main([*WORDS, "--checkpoint", "step-*.pt"]) == 2
    rows: list[Any] = json.loads(Path("losscurv-measure/measure.json").read_text())["checkpoints"]
    assert [row["at"] for row in rows] == [3, 20]
    assert "step-50.pt" in capsys.readouterr().err
