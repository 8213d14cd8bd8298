"""Tests on the pretended device, in a separate process: once torch knows the device, other tests would see it."""

import contextlib
import io
import os
from pathlib import Path

import pytest

from tests.interpreters import forked
from tests.pretended.conftest import ALONE

pytestmark = pytest.mark.slow


def alone() -> tuple[int, str]:
    for name in [name for name in os.environ if name.startswith("PYTEST_")]:
        del os.environ[name]
    os.environ[ALONE] = "1"
    words = ["-q", "-p", "no:xdist", "-p", "no:cacheprovider", str(Path(__file__).parent / "pretended")]
    with contextlib.redirect_stdout(io.StringIO()) as said:
        return int(pytest.main(words)), said.getvalue()


def test_everything_runs_on_a_device() -> None:
    """The tests in `tests/pretended`: rules, draws, every experiment, measure and plan."""
    status, said = forked(alone)
    assert status == 0, said[-20000:]
    assert "passed" in said or "skipped" in said
