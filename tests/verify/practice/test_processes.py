"""`losscurv measure` and `losscurv plan` in the processes that torchrun starts, beside one process."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import distributed, nn

from tests.simulate.objectives.processes import in_two_processes
from verify import cli
from verify.practice.loading import problem
from verify.practice.plan import plan_problem
from verify.practice.plan.pages import plan_json

pytestmark = pytest.mark.slow

SOURCE = """
from torch import nn

def build():
    print("building")
    return nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))
"""

COMMON = ["--data", "data.npz", "--dtype", "float64", "--json"]
PLAN = ["plan", "--batch-sizes", "2,4,15", "--steps", "20"]
COMMANDS = {
    "measure": ["measure", "--model", "my_net.py:build", "--top", "2", *COMMON],
    "plan": [*PLAN, "--model", "my_net.py:build", "--optimizer", "adam", "--drop-last", *COMMON],
}


@pytest.fixture(autouse=True)
def _own() -> None:
    Path("my_net.py").write_text(SOURCE)
    np.savez("data.npz", x_train=np.random.default_rng(0).standard_normal((15, 4)), y_train=np.arange(15) % 2)


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_two_processes_print_and_write_what_one_does(
    words: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    """Seven samples in one and eight in the other; numbers within 1e-6, words the same."""
    assert cli.main([*words, "--output", "one"]) == 0
    alone = json.loads(capfd.readouterr().out)
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    root = str(Path(cli.__file__).parents[1])
    done = subprocess.run(
        [*run, "-m", "verify.cli", *words, "--output", "two"],
        env={**os.environ, "PYTHONPATH": root, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    together = json.loads(done.stdout)  # of one process alone
    assert _names("two") == _names("one")
    _require_alike(alone, together)


class _Failing(nn.Linear):
    """Model that fails in training on batches of three samples, in one of the processes."""

    def __init__(self, fails: bool) -> None:
        super().__init__(4, 2)
        self._fails = fails

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self._fails and self.training and len(x) == 3:
            raise RuntimeError("three")
        return super().forward(x)


def _normed_plan(group: Any = None) -> dict[str, Any]:
    """Return the plan of a network with batch statistics and dropout."""
    torch.manual_seed(0)
    normed = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.ReLU(), nn.Dropout(0.2), nn.Linear(3, 2))
    data = torch.randn(15, 4, dtype=torch.float64), torch.arange(15) % 2
    given = problem(normed, data, dtype="float64", group=group)
    return json.loads(plan_json(plan_problem(given, [2, 4, 8, 15], steps=20, drop_last=True)))


def _failing_plan(rank: int) -> str:
    """Return the error that a process gets from a plan if the second process cannot train."""
    torch.manual_seed(0)
    model, data = _Failing(bool(rank)), (torch.randn(12, 4), torch.arange(12) % 2)
    given = problem(model, data, group=distributed.group.WORLD)
    try:
        plan_problem(given, [3, 4], steps=10)
    except Exception as error:  # whatever it is, it is told
        return f"{type(error).__name__}: {error}"
    return "nothing"


def _both(rank: int) -> tuple[dict[str, Any], str]:
    return _normed_plan(distributed.group.WORLD), _failing_plan(rank)


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[dict[str, Any], str]]:
    """Return what each of two processes, started once, makes of both plans."""
    return in_two_processes(tmp_path_factory.mktemp("plans"), _both)


def test_batch_statistics_are_those_of_one_process(planned: list[tuple[dict[str, Any], str]]) -> None:
    for made, _ in planned:
        _require_alike(_normed_plan(), made)


def test_a_plan_that_fails_in_one_process_ends_in_all_with_its_words(
    planned: list[tuple[dict[str, Any], str]],
) -> None:
    (_, first), (_, second) = planned
    assert first.startswith("ValueError: process 1 of 2: model and loss cannot train on batches of 3 samples")
    assert second.startswith("ValueError: model and loss cannot train on batches of 3 samples")


def _names(folder: str) -> list[str]:
    return sorted(file.name for file in Path(folder).iterdir())


def _leaves(part: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(part, dict | list):
        for key, value in part.items() if isinstance(part, dict) else enumerate(part):
            yield from _leaves(value, f"{where}/{key}")
    elif where != "/seconds":
        yield where, part


def _require_alike(one: Any, other: Any) -> None:
    expected = {
        where: pytest.approx(x, rel=1e-6, abs=1e-6) if isinstance(x, float) else x
        for where, x in _leaves(one)
    }
    assert dict(_leaves(other)) == expected
