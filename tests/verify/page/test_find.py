"""The index of the first page: what a topic is about, and what nothing judges."""

from __future__ import annotations

import re

import pytest

from tests.verify.page.full_size import undrawn
from tests.verify.page.test_findings import entry, made, page_of, run

__all__ = ["undrawn"]

pytestmark = pytest.mark.usefixtures("undrawn")


def about(html: str) -> list[str]:
    """What stands beside the name of each topic."""
    return re.findall(r'<span class="about">(.*?)</span></summary>', html)


def test_the_formulas_of_a_topic_are_set_as_those_of_its_entries() -> None:
    titles = {"B1": "eps_max / (1 + B_noise / B)", "B2": "dL_max and |g|^2"}
    shown = [entry(name, title=title) for name, title in titles.items()]
    html = page_of(
        run([made("t", "theorem 1", entries=["B1"]), made("u", "theorem 2", entries=["B2"])], shown)
    )
    assert about(html) == [
        "ε<sub>max</sub> / (1 + B<sub>noise</sub> / B), dL<sub>max</sub> and |g|<sup>2</sup>"
    ]


@pytest.mark.parametrize(
    ("statuses", "said"),
    [
        (["definition"], "definition: 1"),
        (["definition", "open", "definition", "judged"], "definition: 2, not in this run: 1, open: 1"),
        (["not checkable here"] * 3, "not checkable here: 3"),
    ],
)
def test_what_nothing_judges_is_counted_sort_by_sort(statuses: list[str], said: str) -> None:
    silent = [entry(f"B{k}", status=status) for k, status in enumerate(statuses, 2)]
    html = page_of(run([made("t", "theorem 1", entries=["B1"])], [entry("B1"), *silent]))
    assert about(html)[-1] == said
