"""The correctness report: every claim is judged, and its verdict must be the one expected."""

from __future__ import annotations

import pytest

from verify.plugin import Verification
from verify.results import Row
from verify.suite import failed
from verify.terminal import surprise_block


def test_claim(row: Row, verification: Verification) -> None:
    if failed(row, strict_undecided=verification.plan.strict_undecided):
        pytest.fail(row.error or surprise_block(row), pytrace=False)
