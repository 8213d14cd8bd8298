from __future__ import annotations

import dataclasses
import math
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tests.verify.results.sample_results import sample, sample_of_kinds
from tests.verify.results.sample_rows import looks, point, row
from verify.page import drawing, plots, theme
from verify.page.drawing import Panel
from verify.page.panels import local_slopes, row_panels
from verify.results import ProfilePoint, Row

ROWS = [item for item in [*sample().rows, *sample_of_kinds().rows] if item.points]
KINDS = {item.id: item for item in sample_of_kinds().rows}
EXTREMES = (math.nan, math.inf, -math.inf, 0.0, 1e300, -1e-300)


@pytest.fixture(scope="module")
def figures() -> dict[str, str]:
    """Every row drawn once."""
    return {item.id: plots.to_svg(plots.agreement(item, "stamp")) for item in ROWS}


@pytest.mark.parametrize("item", {item.kind: item for item in ROWS}.values(), ids=lambda item: item.kind)
def test_the_same_row_gives_the_same_bytes(item: Row, figures: dict[str, str]) -> None:
    assert plots.to_svg(plots.agreement(item, "stamp")) == figures[item.id]


@pytest.mark.parametrize("item", ROWS, ids=lambda item: item.id)
def test_a_figure_is_one_svg_element_that_refers_only_to_itself(item: Row, figures: dict[str, str]) -> None:
    text = figures[item.id]
    root = ElementTree.fromstring(text)
    own = {node.get("id") for node in root.iter() if node.get("id")}

    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.get("role") == "img" and item.id in (root.get("aria-label") or "")
    assert set(re.findall(r'href="#([^"]*)"', text)) | set(re.findall(r"url\(#([^)]*)\)", text)) <= own
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg\")", text)


def test_figures_on_one_page_share_no_id(figures: dict[str, str]) -> None:
    ids = [match for text in figures.values() for match in re.findall(r'\bid="([^"]*)"', text)]

    assert len(ids) == len(set(ids))


def test_a_figure_is_stamped() -> None:
    results = sample()

    assert plots.stamp(results) == "losscurv 0.1.0 · 0123456789ab · seed 20240501"
    assert plots.stamp(results) in plots.to_svg(plots.agreement(ROWS[0], plots.stamp(results)))


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


@pytest.mark.parametrize("name", ["granziol2022/edge", "karakida2019/order", "vysogorets2024/law"])
@pytest.mark.parametrize("extreme", EXTREMES)
def test_any_profile_can_be_drawn(name: str, extreme: float) -> None:
    """One odd number in every field of what an estimand was made of, the estimand and its size model."""
    good = dataclasses.replace(KINDS[name].points[0], looks=[])
    fields = ("x", "measured", "lower", "upper", "predicted")
    odd = [dataclasses.replace(good.profile[k], **{field: extreme}) for k, field in enumerate(fields)]
    bad = dataclasses.replace(good, profile=[*odd, *good.profile[3:]], measured=extreme, size_model=extreme)

    plots.agreement(dataclasses.replace(KINDS[name], points=[bad])).draw_without_rendering()


@pytest.mark.parametrize("name", ["granziol2022/edge", "karakida2019/order", "vysogorets2024/law"])
def test_what_was_kept_of_one_size_only_is_not_drawn(name: str) -> None:
    short = dataclasses.replace(KINDS[name].points[0], looks=[], profile=KINDS[name].points[0].profile[:1])

    assert len(row_panels(dataclasses.replace(KINDS[name], points=[short]))) == 1


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

    assert "a −21" in text and "rival: κ₂" in text


def test_verdicts_differ_in_shape() -> None:
    """A deviation of the same size is drawn with a different path for each verdict."""
    base = point({"k": 0}, 1.0, 0.1, 1.0, 0.02, looks=[])
    shapes = set()
    for verdict in ("agrees", "disagrees", "undecided"):
        text = plots.to_svg(plots.agreement(row("a/b", points=[dataclasses.replace(base, verdict=verdict)])))
        used = re.findall(r'<use href="#([^"]*)"[^>]*style="fill:([^;"]*)', text)
        strokes = dict(re.findall(r'<path id="([^"]*)"[^>]*style="stroke:([^;"]*)', text))
        marker, fill = [(ref, fill) for ref, fill in used if strokes[ref] == theme.PALETTE[verdict]][-1]
        outline = re.search(rf'<path id="{marker}" d="([^"]*)"', text)
        assert outline is not None
        shapes.add((outline[1], fill == theme.PALETTE["paper"]))

    assert len(shapes) == 3


def test_overview_labels_every_row() -> None:
    results = sample()
    text = plots.to_svg(plots.overview(results.rows))
    texts = re.findall(r">([^<>]+)</text>", text)

    for item in results.rows:
        assert item.id.removeprefix(f"{item.paper}/") + " (model-based)" * item.model_based in texts
    assert {"beyond", "granziol2022", "karakida2019", "vysogorets2024", "broken"} <= set(texts)


def test_every_point_of_the_overview_has_its_mark_at_its_deviation() -> None:
    """Points far outside at the edge, with an arrow; those of one row are told apart by verdict and arrow."""
    item = next(row for row in ROWS if row.id == "granziol2022/theorem-4")
    places = [(0.2, "agrees"), (-0.4, "agrees"), (7.0, "disagrees"), (1e9, "disagrees"), (0.5, "agrees")]
    points = [
        dataclasses.replace(
            item.points[0], predicted=2.0, margin=0.5, measured=2.0 + 0.5 * x, verdict=verdict
        )
        for x, verdict in places
    ]
    axes = Figure().add_subplot()
    plots.draw_deviations(axes, [dataclasses.replace(item, points=points)])
    marks = [line for line in axes.get_lines() if line.get_zorder() == 4]
    shown = [(x, line.get_marker(), line.get_color()) for line in marks for x in np.ravel(line.get_xdata())]
    edge = axes.get_xlim()[1] / 1.3
    assert [x for x, *_ in shown] == pytest.approx([0.2, -0.4, 7.0, edge, 0.5])
    own = {verdict: (drawing.MARKERS[verdict], theme.PALETTE[verdict]) for _, verdict in places}
    told = [
        (line.get_marker(), line.get_markeredgecolor()) for line in marks for _ in np.ravel(line.get_xdata())
    ]
    beyond = (">", theme.PALETTE["disagrees"])
    assert told == [own["agrees"], own["agrees"], own["disagrees"], beyond, own["agrees"]]


def test_nothing_judged_is_an_empty_overview() -> None:
    assert plots.to_svg(plots.overview([]))


def test_save_all_writes_two_files_per_row_that_measured_something(tmp_path: Path) -> None:
    results = sample()
    rows = [row for row in results.rows if row.claim == "granziol2022/theorem-4" or not row.points]
    rows = [dataclasses.replace(row, points=row.points[:1], curves=[]) for row in rows]
    results = dataclasses.replace(results, rows=rows, observations=[])

    written = plots.save_all(results, tmp_path / "plots")

    names = {path.name for path in written}
    assert len(written) == len(names) == 2 * (2 + 1) and all(path.stat().st_size for path in written)
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


def lines(panel: Panel) -> list[tuple[str, list[float], list[float]]]:
    """Colour and places of all that is drawn as a line or a mark in a panel."""
    axes = axes_of(panel)
    numbers = [np.asarray(line.get_xydata(), dtype=float).T.tolist() for line in axes.get_lines()]
    return [(str(line.get_color()), *xy) for line, xy in zip(axes.get_lines(), numbers, strict=True)]


def axes_of(panel: Panel) -> Axes:
    axes = Figure().add_axes((0, 0, 1, 1))
    panel.draw(axes)
    return axes


def test_a_limit_is_drawn_beyond_all_sizes() -> None:
    means, _ = row_panels(KINDS["granziol2022/edge"])
    at = [(x[0], y) for _, x, y in lines(means) if len(x) == 2 and x[0] == x[1]]

    assert list(dict.fromkeys(x for x, _ in at if x <= 1024)) == pytest.approx([64, 128, 256, 512, 1024])
    assert next(y for x, y in at if x > 1024) == pytest.approx([1.9972, 2.0052])


def test_a_settled_mean_has_no_infinity() -> None:
    (means, *_), limit = row_panels(KINDS["beyond/settled"]), row_panels(KINDS["granziol2022/edge"])[0]

    assert max(x for _, places, _ in lines(means) for x in places[:1]) <= 800
    assert "∞" not in "".join(means.notes) and "∞" in "".join(limit.notes)


def test_an_exponent_has_those_between_sizes_beside_it_and_those_of_the_rivals_as_lines() -> None:
    item = KINDS["karakida2019/order"]
    panel = row_panels(item)[0]
    flat = {(colour, y[0]) for colour, x, y in lines(panel) if len(x) == 2 and x[0] < x[1] and y[0] == y[1]}
    marks = [(x[0], y[0]) for _, x, y in lines(panel) if len(x) == 1]

    assert (theme.PALETTE["theory"], 1.5) in flat
    assert {v for colour, v in flat if colour == theme.PALETTE["rival"]} >= {1.0, 2.0}
    for x, slope in local_slopes(item.points[0].profile):
        assert any(math.isclose(a, x) and math.isclose(b, slope) for a, b in marks)


def test_negative_means_have_exponents_of_their_size() -> None:
    profile = [
        ProfilePoint(x=x, measured=m, lower=m, upper=m, predicted=m) for x, m in ((10, -3), (20, -6), (40, 1))
    ]
    assert local_slopes(profile) == [(pytest.approx(math.sqrt(200)), pytest.approx(1.0))]


@pytest.mark.parametrize(
    ("name", "inside", "outside"),
    [
        ("karakida2019/upper", -7.0, 2.0),
        ("karakida2019/always", 0.5, 1.5),
        ("granziol2022/edge", 0.5, 1.5),
        ("granziol2022/edge", -0.5, -1.5),
    ],
)
def test_the_band_covers_what_agrees_and_nothing_else(name: str, inside: float, outside: float) -> None:
    panel = next(p for p in row_panels(KINDS[name]) if axes_of(p).get_xlabel().endswith("/ margin"))
    box = axes_of(panel).patches[0].get_extents().transformed(axes_of(panel).transData.inverted())

    assert box.x0 <= inside <= box.x1 and not box.x0 <= outside <= box.x1


def test_overview_tells_model_based_rows_apart() -> None:
    axes = Figure().add_axes((0, 0, 1, 1))
    plots.draw_deviations(axes, list(KINDS.values()))
    names = [label.get_text() for label in axes.get_yticklabels()]
    rows = sorted(KINDS.values(), key=lambda item: item.paper)

    assert [name.endswith("(model-based)") for name in names] == [item.model_based for item in rows]


def test_axes_are_called_by_words() -> None:
    item = next(row for row in ROWS if row.curves)
    curves = [dataclasses.replace(curve, axis="weight_variance") for curve in item.curves]
    points = [
        dataclasses.replace(
            p, parameters={**p.parameters, "weight_variance": p.parameters[item.curves[0].axis]}
        )
        for p in item.points
    ]
    text = plots.to_svg(plots.agreement(dataclasses.replace(item, curves=curves, points=points)))
    assert ">weight variance<" in text and ">weight_variance<" not in text


def test_the_overview_ends_just_below_its_last_row() -> None:
    axes = Figure().add_subplot()
    rows = [*sample().rows, *(dataclasses.replace(row, paper="another") for row in sample().rows[:3])]
    plots.draw_deviations(axes, rows)
    assert axes.get_ylim() == pytest.approx((min(axes.get_yticks()) - 0.6, -0.4))
