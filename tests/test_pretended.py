"""Tests on the pretended device, in a separate process: once torch knows the device, other tests would see it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pretended.conftest import ALONE

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]


def test_everything_runs_on_a_device() -> None:
    """The tests in `tests/pretended`: rules, draws, every experiment, measure and plan."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    found = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", "tests/pretended"],
        cwd=ROOT,
        env={**others, ALONE: "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout[-20000:] + found.stderr[-5000:]
    assert "passed" in found.stdout or "skipped" in found.stdout
