"""Tests of what runs on the pretended device, in a process of their own: it cannot be taken back from torch."""

import os

ALONE = "LOSSCURV_TESTS_ALONE"
"""In the environment of that process, which `tests/test_pretended.py` starts."""


def pytest_ignore_collect() -> bool | None:
    return None if os.environ.get(ALONE) else True
