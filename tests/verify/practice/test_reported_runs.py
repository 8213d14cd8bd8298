"""Runs on which other tools were reported to be wrong: measure, plan and watch, called as people call them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn

import losscurv
from verify import cli
from verify.practice.watch import lightning_callback

LOSS = nn.CrossEntropyLoss()


def classes(samples: int) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 3)).double()
    x = torch.randn(samples, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return model, x, torch.arange(samples) % 3


def test_two_seeds_measure_the_same_eigenvalue_and_trace() -> None:
    model, x, y = classes(40)
    dense = losscurv.hessian(losscurv.Objective(model, (x, y), LOSS)).dense()
    for seed in (0, 1):
        found: Any = losscurv.measure(model, (x, y), seed=seed, top=2, dtype="float64").hessian
        assert_allclose(found.top[0].value, float(torch.linalg.eigvalsh(dense)[-1]), rtol=2e-4)
        assert_allclose(
            found.trace.value, float(dense.trace()), rtol=1e-6 if found.trace.kind == "exact" else 0.2
        )


SOURCE = """
import torch
from torch import nn

torch.manual_seed(0)
line = nn.Linear(3, 2).double()
stages = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)).double()

def build():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))

def steep():
    x = torch.randn(200, 4, generator=torch.Generator().manual_seed(0))
    return x, (30 * x[:, :1]) ** 2
"""


@pytest.fixture
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((30, 3))
    (tmp_path / "reported.py").write_text(SOURCE)
    np.savez(tmp_path / "d.npz", x=x, y=rng.standard_normal((30, 2)))
    return x


def printed(words: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert cli.main([*words.split(), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


WORDS = "measure --data d.npz --dtype float64 --top 2 --model reported.py:"


def test_a_linear_model_has_the_eigenvalues_of_its_inputs(
    inputs: np.ndarray, capsys: pytest.CaptureFixture[str]
) -> None:
    found = printed(f"{WORDS}line", capsys)["hessian"]
    features = np.c_[inputs, np.ones(len(inputs))]
    values = np.linalg.eigvalsh(features.T @ features / len(features))
    assert_allclose(found["top"][0]["value"], values[-1], rtol=1e-6)
    assert_allclose(found["trace"]["value"], 2 * values.sum(), rtol=1e-6)


def test_one_stage_of_a_network_has_its_own_curvature(
    inputs: np.ndarray, capsys: pytest.CaptureFixture[str]
) -> None:
    found = printed(f"{WORDS}stages --parameters 1", capsys)
    space: dict[str, Any] = {}
    exec(SOURCE, space)
    hidden = space["stages"][0](torch.from_numpy(inputs)).detach().numpy()
    assert found["parameters"] == 10
    trace = 2 * (np.square(hidden).sum() / len(hidden) + 1)
    assert_allclose(found["hessian"]["trace"]["value"], trace, rtol=1e-6)


def numbers(value: Any) -> Iterator[float]:
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from numbers(part)
    elif isinstance(value, float):
        yield value


@pytest.mark.usefixtures("inputs")
def test_rates_at_which_the_loss_is_no_number_are_not_suggested(capsys: pytest.CaptureFixture[str]) -> None:
    words = "plan --model reported.py:build --data reported.py:steep --batch-sizes 8 --steps 20"
    found = list(numbers(printed(words, capsys)))
    assert found and not any(map(math.isnan, found))


def test_the_loss_of_accumulated_gradients_is_that_of_the_last_batch() -> None:
    model, x, y = classes(8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    callback = lightning_callback(lambda o, m: losscurv.watch(o, m, LOSS, every=1, most=0.99))
    trainer = SimpleNamespace(is_global_zero=True, global_step=0, optimizers=[optimizer])
    callback.on_train_start(trainer, model)
    for index, batch in enumerate(zip(x.split(4), y.split(4), strict=True)):
        (LOSS(model(batch[0]), batch[1]) / 2).backward()
        if index:
            optimizer.step()
            trainer.global_step = 1
        callback.on_train_batch_end(trainer, model, None, batch, index)
    assert len(callback.records) == 1
    assert_allclose(callback.records[0].loss, LOSS(model(x[4:]), y[4:]).item(), rtol=1e-12)
