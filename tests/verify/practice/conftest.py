"""A folder of a test's own, and small networks and data in it."""

from pathlib import Path

import numpy as np
import pytest

from tests.verify.command_line import elsewhere
from tests.verify.practice.user_models import furnish
from verify.practice import measure

__all__ = ["elsewhere"]


@pytest.fixture
def folder() -> None:
    """With the models and data of a user."""
    furnish(Path())


@pytest.fixture
def net() -> list[str]:
    """Words that name a layer of ten parameters and its eight samples."""
    Path("net.py").write_text("from torch import nn\nnet = nn.Linear(4, 2)\n")
    rng = np.random.default_rng(0)
    np.savez("data.npz", x_train=rng.standard_normal((8, 4)), y_train=np.arange(8) % 2)
    return ["--model", "net.py:net", "--data", "data.npz"]


@pytest.fixture
def few_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no numbers are compared, but for those that a fixture of a module measured before."""
    monkeypatch.setattr(measure, "VARIANCE_PROBES", 2)
