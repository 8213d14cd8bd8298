"""What a refusal is: a `ValueError` whose message is known."""

import pytest


def refusal(message: str) -> pytest.RaisesExc[ValueError]:
    """Return a context in which a `ValueError` must be raised whose text this pattern is found in."""
    return pytest.raises(ValueError, match=message)
