"""`losscurv measure` as a command: what it prints and writes, and bad options."""

import errno
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn

from tests.verify.practice.small_measurements import (
    no_constant,
)
from verify import cli
from verify.practice.measure import pages

WORDS = ["measure", "--model", "my_net.py:Net", "--data", "data.npz", "--top", "3"]
SOURCE = """
from torch import nn

class Net(nn.Linear):
    def __init__(self):
        print("building")
        super().__init__(4, 2)

    def forward(self, x):
        print("running")
        return super().forward(x)
"""


@pytest.fixture(autouse=True)
def _own(net: list[str], few_probes: None) -> None:
    Path("my_net.py").write_text(SOURCE)


def test_the_command_prints_json_whatever_the_model_prints(capsys: Any) -> None:
    assert cli.main([*WORDS, "--json"]) == 0

    out, err = capsys.readouterr()
    printed = json.loads(out, parse_constant=no_constant)
    assert printed == json.loads(Path("losscurv-measure/measure.json").read_text())
    assert {"building", "running"} <= set(err.splitlines())
    assert printed["version"] == pages.VERSION
    assert printed["zone"]["excess"].keys() == {"value", "standard_error"}
    assert len(printed["hessian"]["top"]) == 3


def test_the_command_prints_a_table_and_writes_a_page_that_stands_alone(capsys: Any) -> None:
    assert cli.main([*WORDS, "--output", "there"]) == 0

    out, page = capsys.readouterr().out, Path("there/measure.html").read_text()
    found = json.loads(Path("there/measure.json").read_text())
    first = pages.wording.numeral(found["hessian"]["top"][0]["value"], 6, plain=True)
    assert re.search(rf"^eigenvalue 1 +{re.escape(first)} ± ", out, re.MULTILINE)
    assert out.endswith("page: there/measure.html\n") and "running" not in out
    assert first.replace("-", "−") in page and page.count("<svg") == 4
    assert not re.search(r'(src|href)="(?!#|data:)', page)


def test_a_full_disk_is_one_line_and_takes_no_numbers_away(capsys: Any, monkeypatch: Any) -> None:
    def full(_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pages, "replace_files", full)
    monkeypatch.setattr(pages, "measurement_page", lambda _: "a page")

    assert cli.main(WORDS) == 2
    out, err = capsys.readouterr()
    assert "eigenvalue 1" in out and "page:" not in out
    assert err.splitlines()[-1].endswith("cannot be written to losscurv-measure: No space left on device")
    assert cli.main([*WORDS, "--output", "data.npz"]) == 2
    assert "--output: cannot write to folder data.npz: " in capsys.readouterr().err


# --- a series of checkpoints: curvature through training, in the order of the numbers in names

SERIES = ["measure", "--model", "least.py:Net", "--data", "data.npz", "--top", "1", "--dtype", "float64"]


@pytest.fixture
def series() -> None:
    """Write checkpoints of least squares, whose Hessian is that of the data times the square of a scale."""
    Path("least.py").write_text(
        "from torch import nn, ones\n"
        "class Net(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.w = nn.Parameter(ones(3))\n"
        "    def forward(self, x):\n"
        "        return ((x @ self.w) ** 2)[:, None]\n"
    )
    x = np.random.default_rng(0).standard_normal((8, 3))
    np.savez("data.npz", x_train=x, y_train=np.zeros((8, 1)))
    for step in (100, 20, 3):
        torch.save({"w": torch.full((3,), float(step))}, f"step-{step}.pt")


def rows() -> Any:
    return json.loads(Path("losscurv-measure/measure.json").read_text()).get("checkpoints")


def test_checkpoints_are_measured_in_the_order_of_their_numbers(series: None, capsys: Any) -> None:
    assert cli.main([*SERIES, "--checkpoint", "step-*.pt"]) == 0

    out = capsys.readouterr().out
    assert [row["at"] for row in rows()] == [3, 20, 100]
    first = [row["hessian"]["top"][0]["value"] for row in rows()]
    assert_allclose(np.array(first) / first[0], (np.array([3, 20, 100]) / 3) ** 2, rtol=1e-9)
    assert out.index("step-3.pt") < out.index("step-20.pt") < out.index("step-100.pt")
    page = Path("losscurv-measure/measure.html").read_text()
    assert "3 checkpoints" in page and page.count("<svg") == 3 and "step-100.pt" in page


def test_what_is_no_series_and_what_was_measured_before_a_bad_checkpoint(series: None, capsys: Any) -> None:
    def told(*words: str) -> str:
        assert cli.main([*SERIES, "--checkpoint", *words]) == 2
        return capsys.readouterr().err

    assert cli.main([*SERIES, "--checkpoint", "step-2*.pt"]) == 0 and rows() is None
    assert "no file matches --checkpoint 'nothing-*.pt'" in told("nothing-*.pt")
    one = "--save-vectors works with one checkpoint only, got 3"
    assert one in told("step-*.pt", "--save-vectors", "v.npz")
    torch.save(nn.Linear(2, 2).state_dict(), "step-50.pt")
    assert "step-50.pt" in told("step-*.pt") and [row["at"] for row in rows()] == [3, 20]
