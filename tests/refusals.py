"""Context for tests of refused arguments."""

import pytest


def refusal(message: str) -> pytest.RaisesExc[ValueError]:
    """Require a `ValueError` whose message matches a pattern."""
    return pytest.raises(ValueError, match=message)
