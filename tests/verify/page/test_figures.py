"""Figures: what is drawn of any numbers, where, and what an eye finds wrong: names that collide or are cut."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from tests.verify.results.drawn_rows import axes_of, written
from tests.verify.results.sample_results import sample, sample_of_kinds
from tests.verify.results.sample_rows import point, row
from verify.page import plots, theme
from verify.page.panels import MARKS, local_slopes, row_panels
from verify.page.vocabulary import SYMBOLS
from verify.results import Curve, PointOutcome, Row

KINDS = {item.id: item for item in sample_of_kinds().rows}
LONG = tuple(round(0.31 / (k + 1), 4) for k in range(12))
LAYERS = {"activation": "hard_tanh", "weight_variance": 0.8, "bias_variance": 0.45}
EXTREMES = (math.nan, math.inf, -math.inf, 0.0, 1e300, -1e-300)


def off_by(margins: float, **parameters: object) -> PointOutcome:
    return point(parameters, 1.0, 0.1, 1.0 + 0.1 * margins, 0.02)


def on_curves(*points: PointOutcome, names: dict[str, float] | None = None, curves: int = 1) -> Row:
    """A row whose prediction is 1 along x, as are lines of rivals at other levels."""
    x = np.linspace(1.0, 5.0, 41).tolist()
    lines = {name: [level] * len(x) for name, level in (names or {}).items()}
    found = [
        Curve(axis="x", at={"law": f"law {k}"}, x=x, predicted=[1.0] * len(x), rivals=lines)
        for k in range(curves)
    ]
    return row("a/b", points=list(points), curves=found)


HARD = [
    row("a/far", points=[off_by(d, p=(*LONG, d), sigma=0.3, dim=40, samples=24) for d in (0.3, 2.9, 14.0)]),
    row("a/layers", points=[off_by(0.2, **LAYERS, layers=k, first_layer_of_the_network=k) for k in (1, 2, 3)]),
    *(
        replace(on_curves(off_by(d, x=1.0, law="law 0"), off_by(-d, x=5.0, law="law 0")), id=f"a/{d}")
        for d in (6.0, 40.0, 2e4)
    ),
]  # fmt: skip
ROWS = {r.id: r for r in [*sample().rows, *KINDS.values(), *HARD] if r.points}
every_row = pytest.mark.parametrize("name", ROWS)


@cache
def figure_of(name: str) -> Figure:
    """A row drawn once for all that is read of it."""
    return plots.agreement(ROWS[name], "stamp")


@cache
def svg_of(name: str) -> str:
    return plots.to_svg(figure_of(name))


# --- every figure


@every_row
def test_a_figure_is_one_svg_element_that_refers_only_to_itself_and_has_no_long_numbers(name: str) -> None:
    text = svg_of(name)
    root = ElementTree.fromstring(text)
    own = {node.get("id") for node in root.iter() if node.get("id")}

    assert root.tag == "{http://www.w3.org/2000/svg}svg" and root.get("role") == "img"
    assert ROWS[name].id in (root.get("aria-label") or "") and ">stamp<" in text
    assert {*re.findall(r'href="#([^"]*)"', text), *re.findall(r"url\(#([^)]*)\)", text)} <= own
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg\")", text)
    assert not re.search(r'(?: d| x| y)="[^"]*\.\d{3}', text) and len(text) < 60_000


def test_figures_on_one_page_share_no_id() -> None:
    ids = [match for name in ROWS for match in re.findall(r'\bid="([^"]*)"', svg_of(name))]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    "name", ["granziol2022/theorem-10", "granziol2022/edge", "vysogorets2024/law", "karakida2019/eq-4"]
)
def test_the_same_row_gives_the_same_bytes(name: str) -> None:
    assert plots.to_svg(plots.agreement(ROWS[name], "stamp")) == svg_of(name)


def boxes(texts: list[Text]) -> list[Bbox]:
    return [text.get_window_extent() for text in texts if text.get_text() and text.get_visible()]


def collisions(found: list[Bbox]) -> list[tuple[Bbox, Bbox]]:
    return [(a, b) for k, a in enumerate(found) for b in found[:k] if a.overlaps(b)]


def formulas(figure: Figure) -> list[PathPatch]:
    return [artist for artist in figure.artists if isinstance(artist, PathPatch)]


@every_row
def test_nothing_that_is_written_is_cut_and_no_two_texts_overlap(name: str) -> None:
    """On the page, and with all panels at the least width."""
    for figure in (figure_of(name), plots.agreement(ROWS[name], "stamp", "all", 6.0)):
        found = boxes(written(figure))
        found += [formula.get_window_extent() for formula in formulas(figure)]
        assert all(figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 for box in found)
        assert all(figure.bbox.y0 <= box.y0 and box.y1 <= figure.bbox.y1 for box in found)
        assert not collisions([box.shrunk(0.97, 0.75) for box in found])
        assert not any(text.get_text().endswith("…") for text in written(figure))


@every_row
def test_a_figure_is_one_landscape_panel(name: str) -> None:
    figure = figure_of(name)
    width, height = 72 * figure.get_size_inches()
    assert len(figure.axes) == 1 and height < 0.75 * width


@every_row
def test_a_mark_is_smaller_than_an_interval_that_can_be_seen(name: str) -> None:
    """A mark leaves part of its interval visible if the interval is at least three pixels long."""
    for axes in figure_of(name).axes:
        lines: list[Any] = list(axes.lines)
        for line, mark in pairwise(lines):
            if (
                line.get_zorder() == 3
                and mark.get_zorder() == 4
                and mark.get_markerfacecolor() != theme.PALETTE["paper"]
            ):
                ends = axes.transData.transform(line.get_xydata()) * 72 / figure_of(name).dpi
                length = float(np.abs(ends[1] - ends[0]).max())
                assert not length > 3.7 or mark.get_markersize() < length


# --- any numbers


each_extreme = pytest.mark.parametrize("extreme", EXTREMES)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["mean", "identity", "lower bound on a mean"])
@each_extreme
def test_any_number_can_be_drawn(kind: str, extreme: float) -> None:
    """NaN, infinity and the ends of the range, in every field, with and without company."""
    fields = ("measured", "predicted", "margin", "lower", "upper")
    good = point({"k": 0}, 1.0, 0.1, 1.01, 0.02)
    bad = [replace(good, parameters={"k": k}, **{name: extreme}) for k, name in enumerate(fields)]
    for points in ([good, *bad], bad[:1]):
        plots.agreement(row("a/b", kind=kind, points=points)).draw_without_rendering()


@pytest.mark.parametrize("name", ["granziol2022/edge", "karakida2019/order"])
def test_any_profile_can_be_drawn_and_one_size_alone_is_not(name: str) -> None:
    """One odd number in every field of what an estimand was made of, the estimand and its size model."""
    good = replace(KINDS[name].points[0], looks=[])
    short = replace(good, profile=good.profile[:1])
    assert len(row_panels(replace(KINDS[name], points=[short]))) == 1
    for extreme in EXTREMES:
        fields = ("x", "measured", "lower", "upper", "predicted")
        odd = [replace(good.profile[k], **{field: extreme}) for k, field in enumerate(fields)]
        bad = replace(good, profile=[*odd, *good.profile[3:]], measured=extreme, size_model=extreme)
        plots.agreement(replace(KINDS[name], points=[bad])).draw_without_rendering()


@each_extreme
def test_any_curve_can_be_drawn(extreme: float) -> None:
    item = next(item for item in ROWS.values() if item.curves)
    curve = item.curves[0]
    broken = [extreme if k % 3 == 0 else v for k, v in enumerate(curve.predicted)]
    curves = [replace(curve, predicted=broken), replace(curve, rivals={"wild": broken})]
    plots.agreement(replace(item, curves=curves)).draw_without_rendering()


# --- words in figures


def test_a_figure_is_stamped_with_what_is_known_of_its_run() -> None:
    results = sample()
    bare = replace(results, suite=replace(results.suite, host={}))
    assert plots.stamp(results) == "losscurv 0.1.0 · 0123456789ab · seed 20240501"
    assert plots.stamp(bare) == "losscurv 0.1.0 · seed 20240501"
    with pytest.raises(ValueError, match="row must have points, karakida2019/crash has none"):
        plots.agreement(row("karakida2019/crash", kind="check", verdict="broken"))


def test_words_of_a_figure_are_text_and_far_rivals_are_named_with_their_distance() -> None:
    item = replace(ROWS["vysogorets2024/eq-12"], quantity="cost in $ and $\\frac{$")
    text = plots.to_svg(plots.agreement(item))
    assert "$\\frac{$" in text and "κ₂ (−21)" in text
    at = off_by(0.1, weight_variance=2.0, law="law 0")
    curve = replace(on_curves(at).curves[0], axis="weight_variance")
    text = plots.to_svg(plots.agreement(row("a/b", points=[at], curves=[curve])))
    assert ">weight variance<" in text and ">weight_variance<" not in text


def test_names_at_the_ends_of_lines_stand_apart() -> None:
    names = {"half": 0.5, "one over two": 0.5, "double": 2.0}
    names |= {f"a rival of some length {k}": 1.5 + 0.001 * k for k in range(7)}
    axes = plots.agreement(on_curves(off_by(0.1, x=2.0, law="law 0"), names=names)).axes[0]
    levels = [np.asarray(line.get_ydata())[0] for line in axes.lines if np.size(line.get_ydata()) == 41]
    found = boxes([t for t in axes.texts if t.get_color() == theme.PALETTE["rival"]])

    assert sorted(levels)[:3] == [0.5, 0.5, 1.0] and max(levels) == 2.0
    assert len(found) >= 7 and not collisions([box.shrunk(0.97, 0.9) for box in found])
    assert all(box.y1 <= axes.bbox.y1 + 6 for box in found)


# --- marks, lines and frames


def test_verdicts_differ_in_shape() -> None:
    """A deviation of the same size is drawn with a different mark for each verdict, beside the point and above it."""
    base = point({"k": 0}, 1.0, 0.1, 1.0, 0.02, looks=[])
    seen = set()
    for verdict in ("agrees", "disagrees", "undecided"):
        figure = plots.agreement(row("a/b", verdict=verdict, points=[replace(base, verdict=verdict)]))
        (own,) = [line for line in figure.axes[0].lines if line.get_zorder() == 4]
        seen.add((str(own.get_marker()), own.get_markerfacecolor() == theme.PALETTE["paper"]))
        assert f"{SYMBOLS[verdict]} {verdict}" in [text.get_text() for text in figure.texts]
    assert len(seen) == 3


@pytest.mark.parametrize("deviation", [0.1, 8.0])
def test_the_names_of_curves_have_the_marks_that_are_drawn(deviation: float) -> None:
    """Also where they disagree."""
    verdict = "agrees" if deviation < 1 else "disagrees"
    found = [off_by(deviation, x=2.0 + k, law=f"law {k}") for k in (0, 1, 2)]
    axes = plots.agreement(on_curves(*(replace(p, verdict=verdict) for p in found), curves=3)).axes[0]
    lines: list[Line2D] = list(axes.lines)

    assert {*MARKS.values()} <= {t.get_text()[:1] for t in axes.texts}
    assert {*MARKS} <= {str(line.get_marker()) for line in lines}


def test_what_is_measured_on_networks_has_squares_in_their_colour() -> None:
    for data, mark, colour in (("", "o", "ink"), ("digits", "s", "nets")):
        axes = plots.agreement(replace(on_curves(off_by(0.1, x=2.0, law="law 0")), data=data)).axes[0]
        (own,) = [line for line in axes.lines if line.get_zorder() == 4]
        assert (own.get_marker(), own.get_markeredgecolor()) == (mark, theme.PALETTE[colour])


def test_a_heading_is_the_formula_or_the_sentence_where_it_is_none() -> None:
    item = replace(ROWS["vysogorets2024/eq-12"], says="What is claimed, in a sentence.")
    bare = plots.agreement(item, "stamp", heading=False)
    assert not formulas(bare) and [text.get_text() for text in bare.texts if text.get_text()[0] in "●s"] == [
        "stamp"
    ]
    assert len(formulas(plots.agreement(replace(item, statement=r"\frac1B \lVert H\rVert_2")))) == 1
    for none in (r"\frac{", r"\begin{cases} 0 \end{cases}", "x + " * 80 + "1", "$", "", r"\undefined"):
        figure = plots.agreement(replace(item, statement=none))
        assert not formulas(figure) and figure.texts[0].get_text() == "What is claimed, in a sentence."


def lines(axes: Axes) -> list[tuple[str, list[float], list[float]]]:
    """Colour and places of all that is drawn as a line or a mark."""
    return [
        (str(line.get_color()), *np.asarray(line.get_xydata(), float).T.tolist()) for line in axes.get_lines()
    ]


def test_a_limit_is_drawn_beyond_all_sizes() -> None:
    limit = row_panels(KINDS["granziol2022/edge"])[0]
    at = [(x[0], y) for _, x, y in lines(axes_of(limit)) if len(x) == 2 and x[0] == x[1]]

    assert list(dict.fromkeys(x for x, _ in at if x <= 1024)) == pytest.approx([64, 128, 256, 512, 1024])
    assert next(y for x, y in at if x > 1024) == pytest.approx([1.9972, 2.0052])
    assert "∞" in limit.note


def test_an_exponent_has_those_between_sizes_beside_it_and_those_of_the_rivals_as_lines() -> None:
    item = KINDS["karakida2019/order"]
    shown = lines(axes_of(row_panels(item)[0]))
    flat = {(colour, y[0]) for colour, x, y in shown if len(x) == 2 and x[0] < x[1] and y[0] == y[1]}
    marks = [(x[0], y[0]) for _, x, y in shown if len(x) == 1]

    assert (theme.PALETTE["theory"], 1.5) in flat
    assert {v for colour, v in flat if colour == theme.PALETTE["rival"]} >= {1.0, 2.0}
    for x, slope in local_slopes(item.points[0].profile):
        assert any(math.isclose(a, x) and math.isclose(b, slope) for a, b in marks)


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
    axes = axes_of(row_panels(KINDS[name])[-1])
    assert any(text.get_text().endswith("/ margin") for text in axes.texts)
    x = np.asarray(axes.collections[0].get_paths()[0].vertices)[:, 0]
    assert x.min() <= inside <= x.max() and not x.min() <= outside <= x.max()
