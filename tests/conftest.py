"""What all tests share: two workers, and a garbage collector that looks only at what the tests themselves leave."""

import gc
from collections.abc import Iterator
from concurrent.futures import Executor

import pytest

from simulate.monte_carlo import open_executor


def pytest_collection() -> None:
    """Half a million objects come and stay: to look through them over and over takes a tenth of a whole run."""
    gc.disable()


def pytest_collection_finish() -> None:
    """What is there now is there to the end."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def two_workers() -> Iterator[Executor]:
    """Two processes, started once: each takes seconds to load torch. Whoever lets one of them die opens their own."""
    with open_executor(2) as executor:
        yield executor
