"""The table of all claims, docs/claims/table.csv: which stay, which become unit tests, which go, and why.

While the table is carried out, claims leave the registry one by one. What the table keeps has to be there.
"""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

from verify.claims import registry, unread
from verify.claims.coverage import entry_of
from verify.claims.reading import Reads, theory_outputs
from verify.model import AnyClaim, Claim, Identity, Verdict

KEPT = ("keep", "known elsewhere")
GONE = ("unit test", "delete")

MOST_KEPT = 350
MOST_WORDS = 12

PART = "a part of what kept claims read: unit tests hold the part to the whole"
FORM = "another form of a law that kept claims read, or a known moment: unit tests hold it"

LOST = {
    "theory.activations.KinkedQuadrature.curvature": "karakida2019/squares-over-trace takes a clipped activation",
    "theory.activations.KinkedQuadrature.fluctuations": "karakida2019/squares-over-trace takes a clipped activation",
    "theory.fisher.batch_normalisation.BatchNormalisedConstants.c1": PART,
    "theory.fisher.batch_normalisation.BatchNormalisedConstants.c2": PART,
    "theory.fisher.batch_normalisation.batch_normalised_constants": PART,
    "theory.fisher.layer_norm_etas.inverse_variance_cdf": FORM,
    "theory.fisher.tangent.TangentKernel.difference": PART,
    "theory.gauss_newton.gradients.gradient_scatter": FORM,
    "theory.linear_network.linear_network_edge": PART,
    "theory.softmax.pairs.gamma_of_pairs": "a second formula for gamma: unit tests hold both to each other",
}
"""Outputs of theory that no kept claim reads, and what becomes of each."""

SAME = "the same words are judged, and disagree, in another setting"

WITHOUT = {
    "vysogorets2024/base-rate-exponent-two-layers": SAME,  # four and five layers
    "karakida2019/centred-rayleigh": SAME,  # the largest eigenvalue
}
"""Claims of readings that disagree and go though no kept claim of their entry or quote disagrees, and why."""


@pytest.fixture(scope="module")
def rows() -> list[dict[str, str]]:
    with Path("docs/claims/table.csv").open(encoding="utf-8", newline="") as table:
        return list(csv.DictReader(table))


@pytest.fixture(scope="module")
def kept(rows: list[dict[str, str]]) -> set[str]:
    return {row["claim"] for row in rows if row["decision"] in KEPT}


def entries(claim: AnyClaim) -> Iterable[tuple[str, str]]:
    return (entry_of(claim, name) for name in claim.entries)


def test_every_claim_has_one_row(rows: list[dict[str, str]], kept: set[str]) -> None:
    named = Counter(row["claim"] for row in rows)
    assert [name for name, count in named.items() if count > 1] == []
    assert [claim.id for claim in registry.claims() if claim.id not in named] == []
    assert kept <= {claim.id for claim in registry.claims()}


def test_rows_name_the_entries_of_their_claims(rows: list[dict[str, str]]) -> None:
    told = {row["claim"]: tuple(row["entries"].split()) for row in rows}
    assert [c.id for c in registry.claims() if told[c.id] != c.entries] == []


def test_a_decision_is_one_of_four_words_with_a_short_reason(rows: list[dict[str, str]]) -> None:
    assert {row["decision"] for row in rows} <= {*KEPT, *GONE}
    assert [row["claim"] for row in rows if not 0 < len(row["reason"].split()) <= MOST_WORDS] == []


def test_the_table_keeps_no_more_than_it_is_to(kept: set[str]) -> None:
    assert len(kept) <= MOST_KEPT


def test_what_bites_in_place_of_a_claim_is_kept(rows: list[dict[str, str]], kept: set[str]) -> None:
    assert [row["claim"] for row in rows if row["other claim"] and row["other claim"] not in kept] == []


def test_every_judged_entry_keeps_a_claim(kept: set[str]) -> None:
    judged = {entry for claim in registry.claims() for entry in entries(claim)}
    still = {entry for claim in registry.claims() if claim.id in kept for entry in entries(claim)}
    assert judged - still == set()


def disagrees(claim: AnyClaim) -> bool:
    """Whether a claim judges a reading, printed or its own, that is expected to disagree."""
    printed = claim.printed if isinstance(claim, Claim | Identity) else None
    return claim.expected is Verdict.DISAGREES or bool(printed)


def test_no_statement_loses_its_only_reading_that_disagrees(kept: set[str]) -> None:
    """By entry, and by the words that are quoted."""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for claim in filter(disagrees, registry.claims()):
        quoted = [(claim.paper, claim.passage.words)] if claim.passage and claim.passage.words else []
        for statement in (*entries(claim), *quoted):
            found[statement].add(claim.id)
    without = {name for claims in found.values() if not claims & kept for name in claims}
    assert without <= WITHOUT.keys()
    assert not WITHOUT.keys() & kept


def test_no_output_of_theory_loses_its_only_reader(readings: dict[str, Reads], kept: set[str]) -> None:
    read = set[str]().union(*(found.outputs for name, found in readings.items() if name in kept))
    missing = {name for name in theory_outputs() if name not in read and not unread.reason(name)}
    assert missing <= LOST.keys()
    assert not LOST.keys() & read
