"""The benchmark of Gamma prints its table."""

from __future__ import annotations

import pytest

from benchmarks import softmax


def test_it_prints_its_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert softmax.main(["--rows", "32"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "32 rows of 1000 logits"
    assert [line.split("|")[1].strip() for line in lines[4:]] == ["16", "64", "1000"]
