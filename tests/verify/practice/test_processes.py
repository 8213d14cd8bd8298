"""`losscurv measure` in the processes that torchrun starts, beside one process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from tests.simulate.objectives.processes import group_of_one
from verify import cli
from verify.practice.loading import problem
from verify.practice.plan import plan

SOURCE = """
from torch import nn

def build():
    print("building")
    return nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))
"""

WORDS = [
    "measure",
    "--model",
    "my_net.py:build",
    "--data",
    "data.npz",
    "--dtype",
    "float64",
    "--top",
    "2",
    "--json",
]
_SMALLEST = 1e-6
"""Of all numbers, and of their differences."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_net.py").write_text(SOURCE)
    rng = np.random.default_rng(0)
    np.savez("data.npz", x_train=rng.standard_normal((15, 4)), y_train=np.arange(15) % 2)
    return tmp_path


def test_two_processes_print_and_write_what_one_does(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Seven samples in one and eight in the other; numbers within 1e-6, words the same."""
    assert cli.main([*WORDS, "--output", "one"]) == 0
    alone = json.loads(capfd.readouterr().out)
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    root = str(Path(cli.__file__).parents[1])
    done = subprocess.run(
        [*run, "-m", "verify.cli", *WORDS, "--output", "two"],
        env={**os.environ, "PYTHONPATH": root, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    together = json.loads(done.stdout)  # of one process alone
    assert _names(folder / "two") == _names(folder / "one")
    _require_alike(alone, together, "")


def _names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def _require_alike(one: Any, other: Any, where: str) -> None:
    if where in ("/seconds",):
        return
    if isinstance(one, dict):
        assert one.keys() == other.keys(), where
        for name in one:
            _require_alike(one[name], other[name], f"{where}/{name}")
    elif isinstance(one, list):
        assert len(one) == len(other), where
        for place, pair in enumerate(zip(one, other, strict=True)):
            _require_alike(*pair, f"{where}/{place}")
    elif isinstance(one, float):
        assert other == pytest.approx(one, rel=_SMALLEST, abs=_SMALLEST), where
    else:
        assert one == other, where


def test_a_plan_is_for_one_process(tmp_path: Path) -> None:
    with group_of_one(tmp_path) as group:
        given = problem(nn.Linear(4, 2), (torch.randn(8, 4), torch.arange(8) % 2), group=group)

        with pytest.raises(ValueError, match=r"^a plan must be made in one process"):
            plan(given, [2, 4])
