"""The last campaign of planted errors, on the report page."""

from __future__ import annotations

import re
from html import unescape

import pytest

from tests.verify.page.full_size import undrawn
from tests.verify.page.test_report import Page
from tests.verify.results.sample_results import sample
from verify.judging.campaign import Campaign, Outcomes, Survivor
from verify.page import report
from verify.page.report import pages

__all__ = ["undrawn"]

pytestmark = pytest.mark.usefixtures("undrawn")


SURVIVOR = Survivor(
    "theory/zone/edges.py:12", "constant", "a < 1.05", "survived", 0.25, "vysogorets2024/zone", ""
)
CAMPAIGN = Campaign(
    folder="theory",
    passed=5,
    not_executed=6,
    executed=70,
    seed=77,
    commit="abc123",
    date="2026-11-23",
    kinds={"sign": Outcomes(10, 3, 7, 1), "constant": Outcomes(1, 0, 0, 0), "branch": Outcomes(1, 1, 0, 0)},
    rooms={},
    survivors=[SURVIVOR],
)


def drawn(monkeypatch: pytest.MonkeyPatch, *made: Campaign) -> str:
    monkeypatch.setattr(pages, "campaigns", lambda: made)
    results = sample()
    results.rows.clear()
    return report.document(results)


def rows(html: str) -> list[str]:
    """The rows of the table, as words."""
    (table,) = re.findall(r'aria-label="One-line errors in the code".*?</table>', html, flags=re.DOTALL)
    lines = re.findall(r"<tr>.*?</tr>", table, flags=re.DOTALL)
    return [" ".join(unescape(re.sub(r"<[^>]*>", " ", line)).split()) for line in lines]


def test_the_page_tells_rates_by_kind_and_who_made_them(monkeypatch: pytest.MonkeyPatch) -> None:
    html = drawn(monkeypatch, CAMPAIGN)
    _, whole, *kinds = rows(html)

    assert Page(html).open == []
    assert whole == "theory seed 77, commit abc123, 2026-11-23 12 4 7 1 88 % 1 1"
    assert kinds == ["sign 10 3 7 1 100 % 0", "constant 1 0 0 0 0 % 1", "branch 1 1 0 0 — 0"]


def test_the_page_names_each_survivor_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    html = drawn(monkeypatch, CAMPAIGN)

    assert "the 1 that survived in theory" in html
    assert "theory/zone/edges.py:12" in html and "<code>a &lt; 1.05</code>" in html


def test_without_a_campaign_there_is_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    html = drawn(monkeypatch)

    assert 'id="campaign"' not in html and "Drawn from results.json alone." in html
