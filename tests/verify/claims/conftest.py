"""Shared by the tests of claims."""

import pytest

from tests.verify.claims.reads import Reads, reading
from verify.claims import registry


@pytest.fixture(scope="session")
def readings() -> dict[str, Reads]:
    """Return what each claim reads of theory, by its id (twenty seconds, once for a process)."""
    return {claim.id: reading(claim) for claim in registry.claims()}
