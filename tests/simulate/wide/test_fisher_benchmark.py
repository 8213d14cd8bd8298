"""The benchmark of the Fisher spectrum: both routes give one matrix, and what is too large is not formed."""

import pytest
import torch

from benchmarks import fisher
from benchmarks.fisher import Size

SMALL = Size(7, 5, 3)


def test_a_large_jacobian_is_told_and_not_formed(monkeypatch: pytest.MonkeyPatch) -> None:
    (formed,) = fisher.comparison((SMALL,))
    assert float(formed[-1]) < 1e-13

    monkeypatch.setattr(fisher, "by_jacobian", None)
    (told,) = fisher.comparison((SMALL,), largest=1000)

    parameters = 2 * 7 * 8 + 3 * 8
    assert told[3:] == ["-", f"~{8 * 15 * parameters / 2**20:.3g} MiB", "-"]


def test_peak_counts_what_is_held_at_once() -> None:
    def twice() -> None:
        for _ in range(2):
            torch.zeros(1000, dtype=torch.float64).sum()

    assert 8000 <= fisher.peak_bytes(twice) < 16000


def test_it_prints_its_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(fisher, "SIZES", (SMALL,))
    fisher.main()
    assert capsys.readouterr().out.count("M = 7, T = 5, C = 3") == 1
