"""Pages of `measure` and `plan`: picture, table, at most five lines; pictures with names that can be read."""

import re
from itertools import combinations

import matplotlib as mpl
import numpy as np
import pytest
from torch import nn

from tests.verify.practice.small_measurements import small_problem
from verify.page.canvas import frame, name_lines
from verify.page.theme import STYLE
from verify.practice.measure import measure_problem, pages
from verify.practice.plan import pages as plan_pages, plan_problem


@pytest.fixture(scope="module")
def html() -> dict[str, str]:
    given = small_problem(nn.Tanh())
    return {
        "measure": pages.measurement_page(measure_problem(given, top=3, layers=True)),
        "plan": plan_pages.plan_page(plan_problem(given, [2, 4], steps=10)),
    }


@pytest.mark.parametrize(
    ("page", "headline"), [("measure", "Largest eigenvalue "), ("plan", "Learning rate ")]
)
def test_a_page_has_its_result_then_pictures_a_table_and_five_lines(
    html: dict[str, str], page: str, headline: str
) -> None:
    text = html[page]
    assert ("Layer by layer" in text) == (page == "measure")
    places = [text.index(part) for part in (f"<h1>{headline}", "<figure>", "<table>", 'class="lines"')]
    assert places == sorted(places)
    lines = text[places[-1] :].partition("<details")[0]
    assert 1 < lines.count("<p>") <= 5
    titles = re.findall(r"<figure><h3>(.+?)</h3><svg [^>]*aria-label=\"(.+?)\"", text)
    assert len(titles) == text.count("<svg") >= 1 and all(name.startswith(title) for title, name in titles)
    assert not re.search(r'(src|href)="(?!#|data:)|<script', text)


def test_names_of_lines_are_beside_their_ends_and_apart() -> None:
    with mpl.rc_context(STYLE):
        figure, axes = frame("three lines that end together", right=100)
        for k, name in enumerate(("one", "two words that need a second line", "three")):
            axes.plot([0, 1, 2], [0.0, 1 + 0.01 * k, np.nan if k else 1.0], label=name)
        axes.plot([0, 1], [0.5, 0.5], label="_no name")
        name_lines(axes)
    boxes = [text.get_window_extent() for text in axes.texts]
    assert [text.get_text() for text in axes.texts] == ["three", "two words that need\na second line", "one"]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    assert all(axes.bbox.x1 < box.x0 and box.x1 < figure.bbox.x1 for box in boxes)
