"""The table of whole checks: a line for every law and formula, and a count of verdicts that are wrong."""

import pytest

from benchmarks import check_calibration
from benchmarks.check_calibration import LAWS, OFF, main, row


def test_every_law_and_formula_has_a_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_calibration, "BUDGET", 400)
    assert main(["--checks", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "| wrong verdicts of 2 |" in lines[0]
    assert len(lines) == 2 + len(LAWS) * len(OFF)


def test_a_wrong_verdict_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_calibration, "formula", lambda truth, *_: 2 * truth)
    monkeypatch.setitem(LAWS, "normal", LAWS["normal"]._replace(truth=0.5))  # where 1 would be
    assert row("normal", "true", 3)[1] == 3
