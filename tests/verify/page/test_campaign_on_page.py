"""The last campaign of planted errors, on the report page."""

from __future__ import annotations

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


def test_the_page_tells_rates_and_who_made_them(monkeypatch: pytest.MonkeyPatch) -> None:
    html = drawn(monkeypatch, CAMPAIGN)

    assert Page(html).open == []
    said = (
        "theory: 88 % of 8 caught, 4 inert, 1 survived without a reason (seed 77, commit abc123, 2026-11-23)"
    )
    assert said in html


def test_without_a_campaign_there_is_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    html = drawn(monkeypatch)

    assert 'id="campaign"' not in html and "Drawn from results.json alone." in html
