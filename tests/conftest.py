"""What tests of several modules share."""

from collections.abc import Iterator
from concurrent.futures import Executor

import pytest

from simulate.monte_carlo import open_executor


@pytest.fixture(scope="session")
def two_workers() -> Iterator[Executor]:
    """Two processes, started once: each takes seconds to load torch. Whoever lets one of them die opens their own."""
    with open_executor(2) as executor:
        yield executor
