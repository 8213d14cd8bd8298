"""What the tests of claims share."""

import pytest

from verify.claims import registry
from verify.claims.places import Reads, reading


@pytest.fixture(scope="session")
def readings() -> dict[str, Reads]:
    """What each claim reads of theory, by its id: some twenty seconds, once for all tests of a process."""
    return {claim.id: reading(claim) for claim in registry.claims()}
