"""The correctness report: every claim is judged, and its verdict must be the one expected.

Observations are made beside: only a crash makes one fail.
"""

from __future__ import annotations

import pytest

from verify.page.terminal import surprise_block
from verify.plugin import Verification
from verify.results import Observed, Row
from verify.running.suite import failed


def test_claim(judged: Row, verification: Verification) -> None:
    if failed(judged, strict_undecided=verification.request.options.strict_undecided):
        pytest.fail(f"{judged.error}{surprise_block(judged)}", pytrace=False)


def test_observation(observed: Observed) -> None:
    if failed(observed):
        pytest.fail(f"{observed.error}{surprise_block(observed)}", pytrace=False)
