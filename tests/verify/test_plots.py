from __future__ import annotations

import dataclasses
import math
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tests.verify.sample_results import looks, point, row, sample
from verify import plots
from verify.results import Row

ROWS = [item for item in sample().rows if item.points]
EXTREMES = (math.nan, math.inf, -math.inf, 0.0, 1e300, -1e-300)


@pytest.mark.parametrize("item", ROWS, ids=lambda item: item.id)
def test_the_same_row_gives_the_same_bytes(item: Row) -> None:
    first, second = (plots.to_svg(plots.agreement(item, "stamp")) for _ in range(2))

    assert first == second


@pytest.mark.parametrize("item", ROWS, ids=lambda item: item.id)
def test_a_figure_is_one_svg_element_that_refers_only_to_itself(item: Row) -> None:
    text = plots.to_svg(plots.agreement(item, "stamp"))
    root = ElementTree.fromstring(text)
    own = {node.get("id") for node in root.iter() if node.get("id")}

    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.get("role") == "img" and item.id in (root.get("aria-label") or "")
    assert set(re.findall(r'href="#([^"]*)"', text)) | set(re.findall(r"url\(#([^)]*)\)", text)) <= own
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg\")", text)


def test_figures_on_one_page_share_no_id() -> None:
    figures = [plots.to_svg(plots.agreement(item)) for item in ROWS]
    ids = [match for text in figures for match in re.findall(r'\bid="([^"]*)"', text)]

    assert len(ids) == len(set(ids))


def test_a_figure_is_stamped() -> None:
    results = sample()

    assert plots.stamp(results) == "losscurv 0.1.0 · 0123456789ab · seed 20240501"
    assert plots.stamp(results) in plots.to_svg(plots.agreement(ROWS[0], plots.stamp(results)))
    assert plots.stamp(results) in plots.to_svg(plots.seconds_chart(results))


def test_no_commit_leaves_no_gap_in_the_stamp() -> None:
    results = sample()
    bare = dataclasses.replace(results, suite=dataclasses.replace(results.suite, host={}))

    assert plots.stamp(bare) == "losscurv 0.1.0 · seed 20240501"


def test_a_row_without_points_has_no_figure() -> None:
    with pytest.raises(ValueError, match="row must have points, karakida2019/crash has none"):
        plots.agreement(row("karakida2019/crash", kind="check", verdict="broken"))


@pytest.mark.parametrize("kind", ["mean", "identity", "exact property", "property", "lower bound on a mean"])
@pytest.mark.parametrize("extreme", EXTREMES)
def test_any_number_can_be_drawn(kind: str, extreme: float) -> None:
    """NaN, infinity and the ends of the range, in every field, with and without company."""
    fields = ("measured", "predicted", "margin", "lower", "upper")
    good = point({"k": 0}, 1.0, 0.1, 1.01, 0.02)
    bad = [dataclasses.replace(good, parameters={"k": k}, **{name: extreme}) for k, name in enumerate(fields)]
    wild = [dataclasses.replace(good, looks=looks(extreme, 0.1))]

    for points in ([good, *bad], bad[:1], wild):
        assert plots.to_svg(plots.agreement(row("a/b", kind=kind, points=points)))


@pytest.mark.parametrize("extreme", EXTREMES)
def test_any_curve_can_be_drawn(extreme: float) -> None:
    item = next(item for item in ROWS if item.curves)
    curve = item.curves[0]
    broken = [extreme if k % 3 == 0 else v for k, v in enumerate(curve.predicted)]
    curves = [
        dataclasses.replace(curve, predicted=broken),
        dataclasses.replace(curve, rivals={"wild": broken}),
    ]

    assert plots.to_svg(plots.agreement(dataclasses.replace(item, curves=curves)))


def test_dollar_signs_are_text() -> None:
    item = dataclasses.replace(ROWS[2], quantity="cost in $ and $\\frac{$")

    assert "$\\frac{$" in plots.to_svg(plots.agreement(item))


def test_far_rivals_are_named_with_their_distance() -> None:
    item = next(item for item in ROWS if item.id == "vysogorets2024/eq-12")

    text = plots.to_svg(plots.agreement(item))

    assert "a −21" in text and "rival: kappa2" in text


def test_verdicts_differ_in_shape() -> None:
    """A deviation of the same size is drawn with a different path for each verdict."""
    base = point({"k": 0}, 1.0, 0.1, 1.0, 0.02, looks=[])
    shapes = set()
    for verdict in ("agrees", "disagrees", "undecided"):
        text = plots.to_svg(plots.agreement(row("a/b", points=[dataclasses.replace(base, verdict=verdict)])))
        used = re.findall(r'<use href="#([^"]*)"[^>]*style="fill: ([^;"]*); stroke: ([^;"]*)', text)
        marker, fill = [(ref, fill) for ref, fill, stroke in used if stroke == plots.PALETTE[verdict]][-1]
        outline = re.search(rf'<path id="{marker}" d="([^"]*)"', text)
        assert outline is not None
        shapes.add((outline[1], fill == plots.PALETTE["paper"]))

    assert len(shapes) == 3


def test_overview_labels_every_row() -> None:
    results = sample()
    text = plots.to_svg(plots.overview(results.rows))
    texts = re.findall(r">([^<>]+)</text>", text)

    for item in results.rows:
        assert item.id.removeprefix(f"{item.paper}/") in texts
    assert {"beyond", "granziol2022", "karakida2019", "vysogorets2024", "broken"} <= set(texts)


def test_nothing_judged_is_an_empty_overview() -> None:
    assert plots.to_svg(plots.overview([]))


def test_seconds_are_added_up_per_experiment() -> None:
    results = sample()
    runs = [dataclasses.replace(results.runs[0], experiment="draws", seconds=s) for s in (1.25, 2.5)]

    text = plots.to_svg(plots.seconds_chart(dataclasses.replace(results, runs=runs)))

    assert ">3.75<" in text and ">draws<" in text


def test_save_all_writes_two_files_per_row_that_measured_something(tmp_path: Path) -> None:
    results = sample()
    results = dataclasses.replace(results, rows=[results.rows[0], results.rows[1], *results.rows[-2:]])

    written = plots.save_all(results, tmp_path / "plots")

    names = {path.name for path in written}
    assert len(written) == len(names) == 2 * (3 + 2) and all(path.stat().st_size for path in written)
    assert {
        "granziol2022-theorem-4.svg",
        "granziol2022-theorem-4-as-our-copy-reads.png",
        "overview.svg",
    } <= names
    before = {path: path.read_bytes() for path in written}
    plots.save_all(results, tmp_path / "plots")
    assert all(path.read_bytes() == content for path, content in before.items())


def test_a_folder_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    with pytest.raises(ValueError, match=r"plots cannot be written to .*file"):
        plots.save_all(sample(), tmp_path / "file")
