"""The benchmark of the laws: it runs without the other libraries, and sees an error and a slow function."""

from __future__ import annotations

from typing import Any

import numpy as np
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
    assert {cell.strip() for row in rows for cell in row[2:]} == {"not installed"}
    errors = {row[0].strip(): float(row[1]) for row in rows if "error" in row[0] or "NaN" in row[0]}
    assert len(errors) > 25 and max(errors.values()) < 2e-12
    assert len(rows) - len(errors) == sum("draws" not in name for name in laws.ours())


def test_it_sees_what_is_wrong_elsewhere() -> None:
    own = laws.ours()
    name = "Marchenko-Pastur cdf, q = 4"
    peer = {
        name: lambda x: own[name](x) - 0.75 * (x == 0),
        "Marchenko-Pastur pdf, q = 1": lambda x: np.full(x.shape, np.nan),
        "Tracy-Widom sf, beta = 2": lambda x: 1.25 * own["Tracy-Widom sf, beta = 2"](x),
        "Marchenko-Pastur draws, q = 1": lambda size: np.full(size, np.nan),
    }
    cells = {row[0]: row[2] for row in laws.accuracy({"peer": peer})}

    assert cells["error of the mass at 0, q = 4"] == "7.5e-01"
    assert cells["rel. error of Marchenko-Pastur pdf, q = 1"] == "NaN at 25 of 25"
    assert cells["rel. error of Tracy-Widom sf at 2, 4, beta = 2"] == "25%"
    assert cells["NaN among 1000 draws, q = 1"] == "1000"
    assert cells["error of semicircle cdf"] == "-"
