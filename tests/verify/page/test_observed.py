"""Observations in words, in figures and on the page."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.verify.results.drawn_rows import axes_of
from tests.verify.results.sample_observations import observations, observed, spread
from tests.verify.results.sample_results import sample
from verify.page import plots, ratios, report, terminal
from verify.page.drawing import Panel
from verify.page.observed_panels import MOST_PANELS, observed_panels
from verify.page.theme import PALETTE
from verify.results import Observed, ObservedColumn, ObservedGroup, ObservedRow, Spread

BATCHES, DEPTHS, CRASHED = observations()
KEY = "●■▲◆▼○□△◇▽"
ODD = (math.nan, math.inf, -math.inf, 0.0, -3.0, 5e-324, 1e300)


def one(*means: float, places: Any = None, columns: int = 1) -> Observed:
    """A table of columns of ratios with these means, along batch sizes."""
    at = [8.0 * 2**k for k in range(len(means))] if places is None else places
    rows = [ObservedRow(at=x, cells=[spread(mean)] * columns) for x, mean in zip(at, means, strict=True)]
    groups = [ObservedGroup(parameters={"dim": 3}, rows=rows)]
    named = [ObservedColumn(score=f"c{k}", heading=f"c{k}", ratio=True) for k in range(columns)]
    return observed("beyond/one", columns=named, groups=groups)


# --- words


def test_marks_begin_beyond_a_quarter_and_beyond_two_either_way() -> None:
    marks = {1.25: "", 1.26: "▲", 2.0: "▲", 2.01: "▲▲", 0.8: "", 0.79: "▼", 0.5: "▼", 0.49: "▼▼"}
    assert {ratio: ratios.mark(ratio) for ratio in marks} == marks
    assert [ratios.level(r) for r in ODD] == ["far"] * len(ODD) and ratios.mark(-3.0) == "▼▼"


def test_crashes_are_counted_apart() -> None:
    assert terminal.tally([], [BATCHES, CRASHED]).endswith("(0 expected), 2 observed (1 broken)")


# --- figures


def lines(panel: Panel) -> list[Any]:
    return [line for line in axes_of(panel).get_lines() if line.get_marker() != "None"]


def test_a_point_has_a_panel_and_a_column_of_ratios_its_line_beside_the_line_at_1() -> None:
    panels = observed_panels(BATCHES)
    assert len(panels) == len(BATCHES.groups)
    for panel, group in zip(panels, BATCHES.groups, strict=True):
        axes, marks, given = axes_of(panel), [line.get_marker() for line in lines(panel)], group.parameters
        assert marks == ["s", "o", "^"] and axes.get_xscale() == "log"
        for place, line in enumerate(lines(panel), 2):
            assert line.get_ydata().tolist() == pytest.approx([row.cells[place].mean for row in group.rows])
        assert [1.0, 1.0] in [np.asarray(line.get_ydata()).tolist() for line in axes.get_lines()]
        assert {line.get_color() for line in axes.get_lines()} == {
            PALETTE[name] for name in ("nets", "ink", "muted", "theory")
        }  # not those of verdicts
        told = [text.get_text().replace("\n", " ") for text in axes.texts]
        assert f"matrix = {given['matrix']}, state = {given['state']}" in told
    assert [sign for sign in panels[-1].note if sign in KEY] == ["■", "●", "▲"]


def test_a_line_runs_from_left_to_right_in_whatever_order_its_places_are() -> None:
    (panel,) = observed_panels(one(1.1, 0.9, 1.0, places=[32.0, 8.0, 128.0]))
    assert lines(panel)[0].get_xydata().tolist() == [[8.0, 0.9], [32.0, 1.1], [128.0, 1.0]]


def test_counted_networks_stand_side_by_side_and_no_line_connects_them() -> None:
    (panel,) = observed_panels(one(1.0, 1.1, 1.2, places=[1.0, 2.0, 3.0], columns=6))
    drawn = lines(panel)
    assert axes_of(panel).get_xscale() == "linear" and {line.get_linestyle() for line in drawn} == {"None"}
    places = np.array([line.get_xdata() for line in drawn])
    assert (np.diff(places, axis=0) > 0).all() and np.array_equal(np.rint(places), [[1, 2, 3]] * 6)
    first, last = drawn[0], drawn[-1]  # the sixth has the first marker again, hollow
    assert first.get_marker() == last.get_marker() and first.get_mfc() != last.get_mfc()
    assert [sign for sign in panel.note if sign in KEY] == ["■", "●", "▲", "◆", "▼", "□"]


def test_a_table_without_ratios_or_rows_has_no_figure_and_many_points_are_drawn_in_part() -> None:
    plain = [replace(column, ratio=False) for column in BATCHES.columns]
    for made in (replace(BATCHES, columns=plain), CRASHED, DEPTHS):
        assert plots.observation(made) is None
    groups = [replace(BATCHES.groups[0], parameters={"k": k}) for k in range(MOST_PANELS + 3)]
    panels = observed_panels(replace(BATCHES, groups=groups))
    assert len(panels) == MOST_PANELS and panels[-1].note.endswith("3 more points in the table.")


@pytest.mark.parametrize(
    ("places", "means"),
    [([5.0], ODD), ([-2.0, 3.0], ODD), *((p, [1.3]) for p in ([0.0], [1e-99, 1e99], [7.0, 7.0 + 1e-12]))],
)
def test_any_places_and_any_numbers_in_a_table_can_be_drawn(places: list[float], means: Any) -> None:
    for odd in means:
        made = one(*[1.3] * len(places), places=places)
        rows = made.groups[0].rows
        rows[0] = replace(rows[0], cells=[Spread(mean=odd, lowest=odd, highest=odd)])
        figure = plots.observation(made)
        assert figure is not None
        figure.draw_without_rendering()


# --- the page


def test_observations_stand_apart_from_what_is_judged_and_a_crash_first() -> None:
    made = replace(sample(), rows=sample().rows[2:3], runs=[], planted=[])
    html = report.document(made)
    places = [html.index(f'id="{name}"') for name in
              ("observations", "observed-beyond-lost", "observed-granziol2022-batches")]  # fmt: skip
    assert places == sorted(places)
    card = html[places[2] :].partition("</article>")[0]
    table = card[card.index("<table") : card.index("</table>")]
    assert table.count("<tr>") == 18 + 1 and table.count('scope="rowgroup"') == 3
    assert table.count("▲") + table.count("▼") == sum(
        len(ratios.mark(cell.mean))
        for group in BATCHES.groups
        for line in group.rows
        for cell, column in zip(line.cells, BATCHES.columns, strict=True)
        if column.ratio
    )
    crashed = html[places[1] : places[2]]
    assert "RuntimeError: &lt;out&gt; of memory" in crashed and "<table" not in crashed
