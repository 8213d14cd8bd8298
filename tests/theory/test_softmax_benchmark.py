"""The benchmark of Gamma: it prints its table, and Gamma costs no more than a few plain softmaxes."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import softmax


def test_gamma_from_logits_costs_less_than_five_softmaxes() -> None:
    """CPU time over 4000 rows of 1000 logits, the best of three; the softmax in the blocks that suit it best."""
    z = 3 * np.random.default_rng(0).normal(size=(4000, softmax.CLASSES))
    own = softmax.seconds(softmax.softmax.gamma_from_logits, z, len(z))

    assert own < softmax.LIMIT * softmax.seconds(softmax.plain, z, softmax.BLOCK)


def test_it_prints_its_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert softmax.main(["--rows", "32"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "32 rows of 1000 logits"
    assert [line.split("|")[1].strip() for line in lines[4:]] == ["16", "64", "1000"]
