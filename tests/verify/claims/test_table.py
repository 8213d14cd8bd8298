"""The table of the 602 claims of November 2026, docs/claims/table.csv: what became of each, and why."""

import csv
from collections import Counter
from pathlib import Path

import pytest

from verify.claims import registry

KEPT = ("keep", "known elsewhere")
GONE = ("unit test", "delete")

MOST_KEPT = 350
MOST_WORDS = 12


@pytest.fixture(scope="module")
def rows() -> list[dict[str, str]]:
    with Path("docs/claims/table.csv").open(encoding="utf-8", newline="") as table:
        return list(csv.DictReader(table))


@pytest.fixture(scope="module")
def kept(rows: list[dict[str, str]]) -> set[str]:
    return {row["claim"] for row in rows if row["decision"] in KEPT}


def test_what_the_table_keeps_is_there_and_what_it_drops_is_not(
    rows: list[dict[str, str]], kept: set[str]
) -> None:
    assert max(Counter(row["claim"] for row in rows).values()) == 1
    assert {claim.id for claim in registry.claims()} & {row["claim"] for row in rows} == kept
    assert len(kept) <= MOST_KEPT


def test_rows_name_the_entries_of_their_claims(rows: list[dict[str, str]]) -> None:
    told = {row["claim"]: tuple(row["entries"].split()) for row in rows}
    assert [c.id for c in registry.claims() if told.get(c.id, c.entries) != c.entries] == []


def test_a_decision_is_one_of_four_words_with_a_short_reason(rows: list[dict[str, str]]) -> None:
    assert {row["decision"] for row in rows} <= {*KEPT, *GONE}
    assert [row["claim"] for row in rows if not 0 < len(row["reason"].split()) <= MOST_WORDS] == []


def test_what_bites_in_place_of_a_claim_is_kept(rows: list[dict[str, str]], kept: set[str]) -> None:
    assert [row["claim"] for row in rows if row["other claim"] and row["other claim"] not in kept] == []
