"""`losscurv measure` and `losscurv plan` in the processes that torchrun starts, beside one process."""

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import distributed, nn
from torch.distributed import run
from torch.distributed.launcher import launch_agent

from tests.interpreters import LOADED
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


def _rank(folder: Path) -> None:
    """Run both commands, then both plans, in one of the processes."""
    os.chdir(folder)
    begin, rank = distributed.init_process_group, int(os.environ["RANK"])
    for name, words in COMMANDS.items():
        os.dup2(os.open(f"{name}.{rank}", os.O_WRONLY | os.O_CREAT), 1)
        assert cli.main([*words, "--output", name]) == 0
        # addresses of the last meeting are still in the store
        store = distributed.PrefixStore(
            name, distributed.TCPStore("localhost", int(os.environ["MASTER_PORT"]))
        )
        distributed.init_process_group = partial(begin, store=store, rank=rank, world_size=2)
    distributed.init_process_group("gloo")
    torch.save(_normed_plan(distributed.group.WORLD), f"{rank}.pt")
    torch.save(_failing_plan(rank), f"{rank} failing.pt")
    distributed.destroy_process_group()


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder in which both have run."""
    folder = tmp_path_factory.mktemp("together")
    (folder / "my_net.py").write_text(SOURCE)
    x = np.random.default_rng(0).standard_normal((15, 4))
    np.savez(folder / "data.npz", x_train=x, y_train=np.arange(15) % 2)
    words = ["--nproc-per-node=2", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "no program"]
    config, *_ = run.config_from_args(run.parse_args(words))
    config.start_method = LOADED.get_start_method()
    with ThreadPoolExecutor() as thread:  # in the main one it would keep the signals
        thread.submit(launch_agent, config, _rank, [folder]).result()
    return folder


@pytest.mark.parametrize("name", COMMANDS)
def test_two_processes_print_and_write_what_one_does(
    name: str, together: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seven samples in one and eight in the other; numbers within 1e-6, words the same."""
    monkeypatch.chdir(together)
    assert cli.main([*COMMANDS[name], "--output", "one " + name]) == 0
    alone = json.loads(capfd.readouterr().out)

    assert Path(name + ".1").read_text() == ""
    assert {p.name for p in Path(name).iterdir()} == {p.name for p in Path("one " + name).iterdir()}
    _require_alike(alone, json.loads(Path(name + ".0").read_text()))


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


def test_batch_statistics_are_those_of_one_process(together: Path) -> None:
    alone = _normed_plan()
    for rank in range(2):
        _require_alike(alone, torch.load(together / f"{rank}.pt"))


def test_a_plan_that_fails_in_one_process_ends_in_all_with_its_words(together: Path) -> None:
    first, second = (torch.load(together / f"{rank} failing.pt") for rank in range(2))
    assert first.startswith("ValueError: process 1 of 2: model and loss cannot train on batches of 3 samples")
    assert second.startswith("ValueError: model and loss cannot train on batches of 3 samples")


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
