"""The benchmark of the laws: it runs without the other libraries, and sees an error and a slow function."""

from typing import Any

import pytest

from benchmarks import laws


def missing() -> Any:
    raise ModuleNotFoundError


def test_it_runs_without_the_other_libraries(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(laws, "scikit_rmt", missing)
    monkeypatch.setattr(laws, "freealg", missing)

    assert laws.main(["--points", "300"]) == 0
    printed = capsys.readouterr().out
    rows = [line.strip("| ").split(" | ") for line in printed.splitlines() if "not installed" in line]
    assert {cell.strip() for row in rows for cell in row[3:]} == {"not installed"}
    errors = {row[0].strip(): float(row[1]) for row in rows if "error" in row[0]}
    assert len(errors) == 23 and max(errors.values()) < 2e-12
    assert len(rows) - len(errors) == len(laws.functions())
