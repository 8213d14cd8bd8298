"""`losscurv measure` as a command: what it prints and writes, and bad options."""

import errno
import json
import re
from pathlib import Path
from typing import Any

import pytest

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


def test_the_command_prints_json_whatever_the_model_prints(capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(pages, "measurement_page", lambda _: "a page")
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
