"""Shared by the tests of claims."""

import pytest

from verify.claims import registry
from verify.claims.places import Reads, reading


@pytest.fixture(scope="session")
def readings() -> dict[str, Reads]:
    """Return what each claim reads of theory, by its id (twenty seconds, once for a process)."""
    return {claim.id: reading(claim) for claim in registry.claims()}
