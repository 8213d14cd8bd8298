"""What every claim predicts stays what was recorded: predictions, rivals, margins and expected verdicts at all points.

What was changed on purpose is recorded anew by `python -m benchmarks.reference make`.
"""

import gzip
import json
from pathlib import Path

from benchmarks import reference
from verify.claims import registry

RECORDED = Path(__file__).parents[1] / "reference.json.gz"

ROUNDING = 1e-9
"""By which a root or an integral may differ on another machine, relative."""


def gap(finding: reference.Finding) -> float:
    return float(finding.what.rpartition("relative difference ")[2].replace("missing", "inf"))


def test_every_claim_predicts_what_was_recorded() -> None:
    old = {"claims": json.loads(gzip.decompress(RECORDED.read_bytes()))["claims"], "values": {}}
    now = reference.recorded(registry.claims(), None, 1, {})
    found = reference.compare(old, now, reference.deleted(), ())
    assert [finding for finding in found if not finding.allowed and gap(finding) > ROUNDING] == []
