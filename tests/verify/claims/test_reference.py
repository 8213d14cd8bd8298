"""Predictions and rivals of every claim stay what was recorded, at all points.

Margins and expected verdicts are in the ledger instead. After an intended change of a prediction record anew:
`python -m benchmarks.reference make tests/verify/reference.json.gz`.
"""

import gzip
import json
from pathlib import Path

from benchmarks import reference
from verify.claims import registry

RECORDED = Path(__file__).parents[1] / "reference.json.gz"

ROUNDING = 1e-9
"""By which a root or an integral may differ on another machine, relative."""


IN_LEDGER = {"margin", "expected", "tolerance"}


def predictions(claims: dict[str, reference.Facts]) -> dict[str, reference.Facts]:
    return {
        name: {at: {n: v for n, v in one.items() if n not in IN_LEDGER} for at, one in facts.items()}
        for name, facts in claims.items()
    }


def gap(finding: reference.Finding) -> float:
    return float(finding.what.rpartition("relative difference ")[2].replace("missing", "inf"))


def test_every_claim_predicts_what_was_recorded() -> None:
    old, now = (
        json.loads(gzip.decompress(RECORDED.read_bytes())),
        reference.recorded(registry.claims(), fast=True),
    )
    both = ({"claims": predictions(record["claims"]), "values": {}} for record in (old, now))
    found = reference.compare(*both)
    assert [finding for finding in found if gap(finding) > ROUNDING] == []
