"""Observations on the page, in figures, on the terminal and in the results file."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from tests.verify.results.sample_observations import observations, observed, spread
from tests.verify.results.sample_results import sample
from verify import results
from verify.page import plots, ratios, report, terminal
from verify.page.drawing import Panel
from verify.page.observed_panels import MOST_PANELS, observed_panels
from verify.page.theme import PALETTE
from verify.results import Observed, ObservedColumn, ObservedGroup, ObservedRow, Results, Spread, dumps, load

BATCHES, DEPTHS, CRASHED = observations()
ODD = (math.nan, math.inf, -math.inf, 0.0, -3.0, 5e-324, 1e300)


def one(*means: float, places: Any = None, **more: Any) -> Observed:
    """A table of one column of ratios with these means, along batch sizes."""
    at = [8.0 * 2**k for k in range(len(means))] if places is None else places
    rows = [ObservedRow(at=x, cells=[spread(mean)]) for x, mean in zip(at, means, strict=True)]
    return observed("beyond/one", groups=[ObservedGroup(parameters={"dim": 3}, rows=rows)], **more)


# --- ratios


def test_marks_begin_beyond_a_quarter_and_beyond_two_either_way() -> None:
    marks = {1.25: "", 1.26: "▲", 2.0: "▲", 2.01: "▲▲", 0.8: "", 0.79: "▼", 0.5: "▼", 0.49: "▼▼"}
    assert {ratio: ratios.mark(ratio) for ratio in marks} == marks
    assert [ratios.level(r) for r in ODD] == ["far"] * len(ODD) and ratios.mark(-3.0) == "▼▼"


def test_median_and_worst_are_those_of_the_column() -> None:
    assert ratios.ratio_columns(BATCHES).keys() == {c.heading for c in BATCHES.columns if c.ratio}
    values = [1.2, 0.3, 2.5]
    assert (ratios.median(values), ratios.worst(values)) == (1.2, 0.3)
    assert ratios.median([*values, math.nan]) == 1.2 and math.isnan(ratios.worst([*values, math.nan]))
    assert math.isnan(ratios.median([math.nan])) and ratios.ratio_columns(CRASHED) == {}


# --- the terminal


def test_each_column_of_ratios_has_a_line_of_at_most_80_columns() -> None:
    lines = terminal.observed_block(observations()).splitlines()
    assert max(map(len, lines)) <= 80
    assert "  granziol2022/batches: 18 rows, 6 replicates, 96.3 s" in lines
    assert any(re.fullmatch(r" +outlier, predicted over measured +median 1\.3, worst 3\.6", x) for x in lines)
    assert "  beyond/lost: BROKEN" in lines and lines[-1] == "  beyond/lost: BROKEN"


def test_the_last_line_counts_observations() -> None:
    assert terminal.tally([], [BATCHES]) == "0 agrees, 0 disagrees (0 expected), 1 observed"
    assert terminal.tally([], [BATCHES, CRASHED]).endswith(", 2 observed (1 broken)")


# --- figures


def axes_of(panel: Panel) -> Any:
    axes = Figure().add_axes((0, 0, 1, 1))
    panel.draw(axes)
    return axes


def lines(panel: Panel) -> dict[str, list[list[float]]]:
    found: dict[str, list[list[float]]] = {}
    for line in axes_of(panel).get_lines():
        found.setdefault(str(line.get_marker()), []).append(np.asarray(line.get_ydata(), float).tolist())
    return found


def test_a_point_has_a_panel_and_a_column_of_ratios_its_line_beside_the_line_at_1() -> None:
    panels = observed_panels(BATCHES)
    assert len(panels) == len(BATCHES.groups)
    for panel, group in zip(panels, BATCHES.groups, strict=True):
        drawn = lines(panel)
        for marker, place in (("o", 2), ("s", 3), ("^", 4)):
            assert drawn[marker] == [pytest.approx([row.cells[place].mean for row in group.rows])]
        assert [1.0, 1.0] in drawn["None"] and axes_of(panel).get_xscale() == "log"
        assert panel.title == f"matrix = {group.parameters['matrix']}, state = " + str(
            group.parameters["state"]
        )
    assert [note[0] for note in panels[-1].notes] == ["●", "■", "▲"]


def test_a_line_runs_from_left_to_right_in_whatever_order_its_places_are() -> None:
    (panel,) = observed_panels(one(1.1, 0.9, 1.0, places=[32.0, 8.0, 128.0]))
    line = next(line for line in axes_of(panel).get_lines() if line.get_marker() == "o")
    assert line.get_xydata().tolist() == [[8.0, 0.9], [32.0, 1.1], [128.0, 1.0]]


def test_counted_networks_stand_side_by_side_and_no_line_connects_them() -> None:
    names = ("outlier", "edge", "overlap", "trace", "norm", "rank")
    columns = [ObservedColumn(score=name, heading=name, ratio=True) for name in names]
    rows = [ObservedRow(at=float(k), cells=[spread(0.9 + 0.1 * k)] * len(names)) for k in (1, 2, 3)]
    groups = [ObservedGroup(parameters={"dim": 3}, rows=rows)]
    (panel,) = observed_panels(observed("beyond/one", columns=columns, groups=groups))
    axes = axes_of(panel)
    drawn = [line for line in axes.get_lines() if line.get_marker() != "None"]
    assert axes.get_xscale() == "linear" and {line.get_linestyle() for line in drawn} == {"None"}
    places = np.array([line.get_xdata() for line in drawn])
    assert (np.diff(places, axis=0) > 0).all()
    assert np.array_equal(np.rint(places), [[1, 2, 3]] * len(names))
    first, last = drawn[0], drawn[-1]  # the sixth has the first marker again, hollow
    assert first.get_marker() == last.get_marker() and first.get_mfc() != last.get_mfc()
    assert [note[0] for note in panel.notes] == ["●", "■", "▲", "◆", "▼", "○"]


def test_ranges_are_bands() -> None:
    (panel,) = observed_panels(one(0.9, 1.1))
    axes = axes_of(panel)
    band = next(c for c in axes.collections if c.get_alpha() == 0.14).get_paths()[0].vertices[:, 1]
    assert {round(v, 9) for v in band} >= {
        0.9 * 0.94,
        round(0.9 * 1.084, 9),
        1.1 * 0.94,
        round(1.1 * 1.084, 9),
    }
    assert axes.get_ylim()[0] < 0.9 * 0.94 and axes.get_ylim()[1] > 1.1 * 1.084


def test_a_table_without_ratios_or_rows_has_no_figure() -> None:
    plain = [dataclasses.replace(column, ratio=False) for column in BATCHES.columns]
    assert plots.observation(dataclasses.replace(BATCHES, columns=plain)) is None
    assert plots.observation(CRASHED) is None and plots.observation(DEPTHS) is None


def test_many_points_are_drawn_in_part() -> None:
    groups = [dataclasses.replace(BATCHES.groups[0], parameters={"k": k}) for k in range(MOST_PANELS + 3)]
    panels = observed_panels(dataclasses.replace(BATCHES, groups=groups))
    assert len(panels) == MOST_PANELS and panels[-1].notes[-1] == "3 more points in the table"


@pytest.mark.parametrize("odd", ODD[:2] + ODD[3:])
def test_any_number_in_a_table_can_be_drawn(odd: float) -> None:
    wild = Spread(mean=odd, lowest=odd, highest=odd)
    for made in (one(1.0, 3.0, 0.2), one(1.1, places=[-3.0])):
        (group, *rest) = made.groups
        rows = [dataclasses.replace(group.rows[0], cells=[wild]), *group.rows[1:]]
        figure = plots.observation(
            dataclasses.replace(made, groups=[dataclasses.replace(group, rows=rows), *rest])
        )
        assert figure is not None
        figure.draw_without_rendering()


@pytest.mark.parametrize("places", [[1e-99, 1e99], [5.0], [-2.0, 3.0], [0.0], [7.0, 7.0 + 1e-12]])
def test_any_places_that_load_can_be_drawn(places: list[float]) -> None:
    figure = plots.observation(one(*[1.3] * len(places), places=places))
    assert figure is not None
    figure.draw_without_rendering()


def test_the_figure_is_stamped_and_the_same_bytes_each_time(tmp_path: Path) -> None:
    drawn = [plots.observation(made, "stamp") for made in (BATCHES, observations()[0])]
    first, again = (plots.to_svg(figure) for figure in drawn if figure is not None)
    assert first == again and ">stamp<" in first
    ElementTree.fromstring(first)
    only = dataclasses.replace(sample(), rows=[], runs=[], observations=[BATCHES, CRASHED])
    written = plots.save_all(only, tmp_path / "plots")
    assert [path.name for path in written] == ["granziol2022-batches.svg", "granziol2022-batches.png"]
    assert plots.stamp(only) in written[0].read_text(encoding="utf-8")


# --- the page


@pytest.fixture(scope="module")
def html() -> str:
    made = sample()
    return report.document(dataclasses.replace(made, rows=made.rows[2:3], runs=[], planted=[]))


def section(html: str, anchor: str) -> str:
    (found,) = re.findall(rf'<article [^>]*id="{anchor}".*?</article>', html, flags=re.DOTALL)
    return found


def words(text: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", text)))


def test_observations_stand_apart_from_what_is_judged(html: str) -> None:
    start = html.index("Real networks: reported, not judged")
    assert all(
        html.index(f'id="observed-{name}"') > start for name in ("granziol2022-batches", "beyond-lost")
    )
    assert (
        "3 tables</a> of networks on real data, reported and not judged" in html
        and 'href="#observations"' in html
    )


def test_a_card_says_what_was_observed_and_how_to_see_it_again(html: str) -> None:
    card = section(html, "observed-granziol2022-batches")
    text = words(card)
    for fact in (BATCHES.title, BATCHES.note, BATCHES.source, BATCHES.data, BATCHES.rerun):
        assert fact in text
    assert "6 at each point, each one network with its images" in text and "1 min 36 s" in text
    assert '<a href="#entry-granziol2022-B17">B17</a>' in card and "<svg role=" in card


def test_the_table_has_each_row_and_marks_what_is_far_off(html: str) -> None:
    card = section(html, "observed-granziol2022-batches")
    table = card[card.index("<table") : card.index("</table>")]
    assert table.count("<tr>") == 18 + 1 and table.count('scope="rowgroup"') == 3
    assert '<td class="n far">▲▲ 3.6 <span class="note">3.38 … 3.9</span></td>' in table
    assert '<td class="n off">▼ 0.506 ' in table and '<td class="n">0.93 ' in table
    assert table.count("▲") + table.count("▼") == sum(
        len(ratios.mark(mean)) for means in ratios.ratio_columns(BATCHES).values() for mean in means
    )
    plain = words(section(html, "observed-karakida2019-depths"))
    assert "depth = 5, activation = tanh ▼▼ 0.41 0.385 … 0.444" in plain and "erf not a number run" in plain


def test_a_crash_is_shown_first_and_among_what_is_not_as_expected(html: str) -> None:
    card = section(html, "observed-beyond-lost")
    assert "has-broken" in card and "RuntimeError: &lt;out&gt; of memory" in card and "<table" not in card
    assert html.index('id="observed-beyond-lost"') < html.index('id="observed-granziol2022-batches"')
    alarms = html[html.index('<li class="tile surprise">') : html.index("How sure?")]
    assert "beyond/lost</a>: the observation crashed" in alarms


def test_the_inventory_leads_to_observations(html: str) -> None:
    assert '<a href="#observed-granziol2022-batches">granziol2022/batches</a>' in html


# --- the results file


def written(folder: Path, change: Callable[[Any], None]) -> Results:
    raw = json.loads(dumps(dataclasses.replace(sample(), rows=[], runs=[], planted=[])))
    change(raw)
    (folder / "results.json").write_text(json.dumps(raw), encoding="utf-8")
    return load(folder / "results.json")


def test_observations_come_back_as_they_were(tmp_path: Path) -> None:
    made = dataclasses.replace(sample(), rows=[], runs=[], planted=[])
    results.save(made, tmp_path / "results.json")
    assert repr(load(tmp_path / "results.json").observations) == repr(made.observations)


def first_row(raw: Any) -> Any:
    return raw["observations"][0]["groups"][0]["rows"][0]


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda raw: raw.update(observations={}), "results.observations must be a list"),
        (lambda raw: raw["observations"][0].pop("note"), r"observations\[0\] must have the fields id, paper"),
        (lambda raw: raw["observations"][0].update(replicates=-1), "replicates must be at least 0"),
        (lambda raw: first_row(raw).update(cells=[]), "have one cell for each of its columns in every row"),
        (lambda raw: raw["observations"][0].update(columns=[]), "have one cell for each of its columns"),
        (lambda raw: first_row(raw)["cells"]["mean"].__setitem__(0, "high"), "mean must be a float"),
        (lambda raw: first_row(raw).update(at=None), "have a place for each of its rows or for none"),
        (lambda raw: first_row(raw).update(at="nan"), "have a place for each of its rows or for none"),
        (lambda raw: first_row(raw).update(at=1e200), "all of a size that can be drawn"),
        (
            lambda raw: raw["observations"].append(raw["observations"][0]),
            "observations with ids of their own",
        ),
        (lambda raw: raw["inventory"][0].update(observations=[3]), r"observations\[0\] must be a str"),
    ],
)
def test_an_observation_that_does_not_fit_is_refused(
    tmp_path: Path, change: Callable[[Any], None], match: str
) -> None:
    with pytest.raises(ValueError, match=rf"results\.json is corrupt: .*{match}"):
        written(tmp_path, change)


def test_an_observation_shares_no_id_with_a_row(tmp_path: Path) -> None:
    made = sample()
    same = dataclasses.replace(made, observations=[dataclasses.replace(DEPTHS, id=made.rows[0].id)])
    results.save(same, tmp_path / "results.json")
    with pytest.raises(ValueError, match="observations with ids of their own"):
        load(tmp_path / "results.json")


def test_colours_of_columns_are_not_those_of_verdicts() -> None:
    used = {line.get_color() for line in axes_of(observed_panels(BATCHES)[0]).get_lines()}
    assert used == {PALETTE[name] for name in ("ink", "rival", "muted", "theory")}


def test_what_does_not_change_along_the_lines_is_told_above_them() -> None:
    """A number that belongs to the network stands once beside its name, and in no column."""
    rows = [ObservedRow(at=x, cells=[spread(x), spread(7.25)]) for x in (2.0, 4.0)]
    headings = {"a": "measured", "b": "noise of the network"}
    made = dataclasses.replace(
        one(1.0, 2.0),
        columns=[ObservedColumn(score=s, heading=h, ratio=False) for s, h in headings.items()],
        groups=[ObservedGroup(parameters={"state": state}, rows=rows) for state in ("new", "trained")],
    )
    assert ratios.constant(made) == [1]
    page = report.document(dataclasses.replace(sample(), rows=[], runs=[], planted=[], observations=[made]))
    assert page.count("noise of the network: 7.25") == 2
    assert ">noise of the network</th>" not in page and ">measured</th>" in page
