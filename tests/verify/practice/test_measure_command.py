"""`losscurv measure` as a command: what it prints and writes, and bad options."""

from __future__ import annotations

import errno
import json
import re
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.verify.practice.small_measurements import (
    no_constant,
)
from verify import cli
from verify.practice import measure as measuring
from verify.practice.measure import command, matrices, pages


@pytest.fixture(autouse=True)
def _few_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where numbers are compared they come from `case`, which was measured before this."""
    monkeypatch.setattr(matrices, "DENSITY_STEPS", 4)
    monkeypatch.setattr(measuring, "VARIANCE_PROBES", 2)


SOURCE = """
from torch import nn

class Net(nn.Sequential):
    def __init__(self):
        print("building")
        super().__init__(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))

    def forward(self, x):
        print("running")
        return super().forward(x)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_net.py").write_text(SOURCE)
    rng = np.random.default_rng(0)
    np.savez("data.npz", x_train=rng.standard_normal((8, 4)), y_train=np.arange(8) % 2)
    return tmp_path


WORDS = ["measure", "--model", "my_net.py:Net", "--data", "data.npz", "--top", "3"]


def test_the_command_prints_json_whatever_the_model_prints(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*WORDS, "--json"]) == 0

    out, err = capsys.readouterr()
    printed = json.loads(out, parse_constant=no_constant)
    assert printed == json.loads((folder / "losscurv-measure" / "measure.json").read_text())
    assert {"building", "running"} <= set(err.splitlines())
    assert printed["version"] == pages.VERSION
    assert printed["zone"]["excess"].keys() == {"value", "standard_error"}
    assert len(printed["hessian"]["top"]) == 3


def test_the_command_prints_a_table_and_writes_a_page_that_stands_alone(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*WORDS, "--output", "there"]) == 0

    out, page = capsys.readouterr().out, (folder / "there" / "measure.html").read_text()
    found = json.loads((folder / "there" / "measure.json").read_text())
    first = pages.wording.numeral(found["hessian"]["top"][0]["value"], 6, plain=True)
    assert re.search(rf"^eigenvalue 1 +{re.escape(first)} ± ", out, re.MULTILINE)
    assert out.endswith(f"page: {Path('there') / 'measure.html'}\n")
    assert "building" not in out and "running" not in out
    assert (
        first.replace("-", "−") in page and page.count("<svg") == 4
    )  # densities, eigenvalues, loss along them, noise
    assert not re.search(r'(src|href)="(?!#|data:)', page)


def test_a_full_disk_is_one_line_and_takes_no_numbers_away(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pages, "replace_files", full)
    monkeypatch.setattr(pages, "measurement_page", lambda _: "a page")

    assert cli.main(WORDS) == 2

    out, err = capsys.readouterr()
    assert "eigenvalue 1" in out and "page:" not in out
    assert (
        err.splitlines()[-1]
        == "losscurv: page cannot be written to losscurv-measure: No space left on device"
    )


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--output", "data.npz"], "--output must be a folder that can be written, got data.npz: "),
        (["--top", "0"], "--top must be at least 1, got 0"),
        (["--seed", "-1"], "--seed must be at least 0, got -1"),
        (["--device", "tpu"], "device must be auto, cpu, cuda or cuda:<index>, got 'tpu'"),
        (["--loss", "hinge"], "loss must be cross-entropy, mse, bce or pkg.module:function, got 'hinge'"),
    ],
)
def test_bad_options_are_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], line: str
) -> None:
    assert cli.main([*WORDS, *words]) == 2

    out, err = capsys.readouterr()
    assert not out
    assert line in err.splitlines()[-1]


def test_an_interrupt_ends_the_command(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any, **__: Any) -> Any:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(command, "measure_problem", interrupt)

    assert cli.main(WORDS) == 130
    assert capsys.readouterr().err.endswith("losscurv: interrupted\n")
    assert not list((folder / "losscurv-measure").iterdir())
