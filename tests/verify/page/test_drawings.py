"""What an eye finds wrong in a figure, stated: names that collide or are cut, marks that the key does not have."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Annotation, Text
from matplotlib.transforms import Bbox
from numpy.typing import NDArray

from tests.verify.results.sample_results import sample, sample_of_kinds
from tests.verify.results.sample_rows import point, row
from verify.page import plots
from verify.page.drawing import CURVE_MARKS
from verify.page.panels import curve_panel, row_panels
from verify.results import Curve, PointOutcome, RivalOutcome, Row

LONG = tuple(round(0.31 / (k + 1), 4) for k in range(12))
LAYERS = {"activation": "hard_tanh", "weight_variance": 0.8, "bias_variance": 0.45}


def rivals(*values: float) -> list[RivalOutcome]:
    return [
        RivalOutcome(name=f"rival {k}", value=value, margins=9.0, rejected=True)
        for k, value in enumerate(values)
    ]


def off_by(margins: float, **parameters: object) -> PointOutcome:
    return point(parameters, 1.0, 0.1, 1.0 + 0.1 * margins, 0.02)


def on_curves(*points: PointOutcome, names: dict[str, float] | None = None, curves: int = 1) -> Row:
    """A row whose prediction is 1 along x, as are lines of rivals at other levels."""
    x = np.linspace(1.0, 5.0, 41).tolist()
    lines = {name: [level] * len(x) for name, level in (names or {}).items()}
    found = [
        Curve(axis="x", at={"x": 0, "law": f"law {k}"}, x=x, predicted=[1.0] * len(x), rivals=lines)
        for k in range(curves)
    ]
    return row("a/b", points=list(points), curves=found)


HARD = [
    row("a/far", points=[off_by(d, p=(*LONG, d), sigma=0.3, dim=40, samples=24) for d in (0.3, 2.9, 14.0)]),
    row(
        "a/layers", points=[off_by(0.2, **LAYERS, layers=k, first_layer_of_the_network=k) for k in (1, 2, 3)]
    ),
    *(
        on_curves(off_by(d, x=1.0, law="law 0"), off_by(-d, x=5.0, law="law 0"))
        for d in (6.0, 8.0, 40.0, 2e4)
    ),
]
ROWS = [item for item in [*sample().rows, *sample_of_kinds().rows] if item.points] + HARD


def drawn(item: Row) -> Figure:
    figure = plots.agreement(item, "stamp")
    figure.draw_without_rendering()
    return figure


@pytest.fixture(scope="module", params=ROWS, ids=lambda item: item.id)
def figure(request: pytest.FixtureRequest) -> Figure:
    """A row drawn once for all that is read of it."""
    return drawn(request.param)


def written(axes: Axes) -> list[Text]:
    """All that is written in and around a frame but the names of its ticks."""
    named = {text for axis in (axes.xaxis, axes.yaxis) for text in axis.get_majorticklabels()}
    return [found for found in axes.findobj(Text) if isinstance(found, Text) and found not in named]


def numbers(line: Line2D) -> NDArray[np.float64]:
    """Places of a line, (n, 2)."""
    return np.asarray(line.get_xydata(), dtype=float)


def boxes(texts: list[Text]) -> list[Bbox]:
    return [text.get_window_extent() for text in texts if text.get_text() and text.get_visible()]


def collisions(found: list[Bbox]) -> list[tuple[Bbox, Bbox]]:
    return [(a, b) for k, a in enumerate(found) for b in found[:k] if a.overlaps(b)]


def in_view(axes: Axes) -> Iterator[list[Text]]:
    for axis in (axes.xaxis, axes.yaxis):
        low, high = sorted(axis.get_view_interval())
        yield [t.label1 for t in axis.get_major_ticks() if low <= t.get_loc() <= high]


def test_no_two_names_of_ticks_overlap(figure: Figure) -> None:
    for axes in figure.axes:
        for labels in in_view(axes):
            assert not collisions(boxes(labels))


def test_nothing_that_is_written_is_cut(figure: Figure) -> None:
    texts = [*figure.texts, *(t for axes in figure.axes for t in written(axes))]

    for box in boxes(texts):
        assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1
    assert not any(text.get_text().endswith("…") for text in texts)


def test_points_that_differ_only_in_what_a_name_leaves_out_are_numbered() -> None:
    item = row("a/b", points=[off_by(0.1, p=(*LONG, end)) for end in (1, 2)])
    names = [t.get_text() for t in drawn(item).axes[0].texts]

    assert [name for name in names if name] == [
        "p = (0.31, 0.155, 0.1033, … 10 more) (1)",
        "p = (0.31, 0.155, 0.1033, … 10 more) (2)",
    ]


@pytest.mark.parametrize("item", HARD[:2], ids=lambda item: item.id)
def test_no_line_runs_through_the_name_of_a_point(item: Row) -> None:
    axes = drawn(item).axes[0]
    names = boxes([t for t in axes.texts if isinstance(t, Annotation) and "=" in t.get_text()])
    (drawn_lines,) = [c for c in axes.collections if isinstance(c, LineCollection)]
    ends = [axes.transData.transform(np.asarray(piece))[:, 1] for piece in drawn_lines.get_segments()]

    assert len(names) == len(item.points)
    for name in names:
        assert all(max(piece) <= name.y0 or min(piece) >= name.y1 for piece in ends)


def test_rivals_with_one_line_share_it_with_both_names() -> None:
    names = {"half": 0.5, "one over two": 0.5, "double": 2.0}
    axes = drawn(on_curves(off_by(0.1, x=2.0, law="law 0"), names=names)).axes[0]
    words = " ".join(text.get_text() for text in axes.texts)
    levels = [numbers(line)[0, 1] for line in axes.lines if len(numbers(line)) == 41]

    assert "half = one over two" in words and "double" in words
    assert sorted(levels) == [0.5, 1.0, 2.0]


def test_names_at_the_ends_of_lines_stand_apart_and_within_the_frame_above() -> None:
    names = {f"a rival of some length {k}": 1.5 + 0.001 * k for k in range(7)}
    figure = drawn(on_curves(off_by(0.1, x=2.0, law="law 0"), names=names))
    axes = figure.axes[0]
    found = boxes([t for t in axes.texts if t.get_text()])

    assert len(found) >= 7 and not collisions([box.shrunk(0.97, 0.9) for box in found])
    assert all(box.y1 <= axes.bbox.y1 + 6 for box in found)


def markers(artists: list[Line2D]) -> set[str]:
    return {str(line.get_marker()) for line in artists} & set(CURVE_MARKS)


@pytest.mark.parametrize("deviation", [0.1, 8.0])
def test_the_key_has_the_marks_that_are_drawn(deviation: float) -> None:
    """Also where they disagree: a cross goes behind a mark and leaves its shape."""
    verdict = "agrees" if deviation < 1 else "disagrees"
    points = [
        dataclasses.replace(off_by(deviation, x=2.0 + k, law=f"law {k}"), verdict=verdict) for k in (0, 1, 2)
    ]
    figure = drawn(on_curves(*points, curves=3))
    signs = {sign: mark for mark, sign in CURVE_MARKS.items()}
    key = {signs[text.get_text()] for text in figure.texts if text.get_text() in signs}

    assert key == {"o", "s", "^"} == markers(list(figure.axes[1].lines))
    inside = [line for line in figure.axes[1].lines if line.get_marker() == "x"]
    assert all(line.get_zorder() < 4 and line.get_markersize() > 8 for line in inside)
    assert len(inside) == (3 if verdict == "disagrees" else 0)


def test_a_property_says_how_many_examples_lie_beyond_the_tolerance() -> None:
    found = [dataclasses.replace(off_by(0, k=k), measured=3e-16, margin=1e-12) for k in range(20)]
    wrong = [dataclasses.replace(found[0], measured=0.2, verdict="disagrees"), *found[1:]]
    titles = [
        drawn(row("a/b", kind="exact property", points=points)).axes[0].get_title(loc="left")
        for points in (found, wrong)
    ]

    assert [title.replace("\n", " ")[-19:] for title in titles] == [
        "none of 20 examples",
        "in: 1 of 20 examples"[-19:],
    ]


def test_points_at_the_ends_of_a_curve_are_within_the_frame() -> None:
    item = on_curves(off_by(0.1, x=1.0, law="law 0"), off_by(0.1, x=5.0, law="law 1"), curves=2)
    for panel in row_panels(item)[:2]:
        axes = Figure(figsize=(4, 2)).add_axes((0, 0, 1, 1))
        panel.draw(axes)
        low, high = axes.get_xlim()
        marks = [numbers(line)[0, 0] for line in axes.lines if line.get_marker() in ("o", "s")]

        assert len(marks) == 2 and all(low < x < high for x in marks)


def test_a_parameter_of_whole_numbers_has_whole_ticks() -> None:
    item = on_curves(off_by(0.1, x=4, law="law 0"))
    curve = dataclasses.replace(item.curves[0], x=[4.0, 5.0], predicted=[1.0, 1.0])
    axes = drawn(dataclasses.replace(item, curves=[curve])).axes[0]

    assert all(float(value).is_integer() for value in axes.get_xticks())


def test_a_flat_prediction_has_its_margin_in_the_frame() -> None:
    item = on_curves(dataclasses.replace(off_by(0.0, x=2.0, law="law 0"), lower=0.93, upper=1.07))
    axes = Figure().add_axes((0, 0, 1, 1))
    curve_panel(item).draw(axes)
    low, high = axes.get_ylim()

    assert low < 0.93 and high > 1.07


def test_the_cursor_finds_what_was_measured() -> None:
    seen = dataclasses.replace(off_by(0.1, k=1), predicted=1.236, replicates=208)
    even = dataclasses.replace(seen, measured=1.234, lower=1.229, upper=1.239)
    skew = dataclasses.replace(even, upper=1.3)
    first, second = (plots.to_svg(plots.agreement(row("a/b", points=[p]))) for p in (even, skew))

    assert "<title>measured 1.234 ± 0.005, predicted 1.236, n = 208</title>" in first
    assert "<title>measured 1.234 (1.229 to 1.3), predicted 1.236, n = 208</title>" in second
    assert re.search(r"<g><title>[^<]*</title>.*?<use [^>]*/>.*?</g>", first)


def test_a_figure_has_no_long_numbers() -> None:
    text = plots.to_svg(plots.agreement(HARD[0], "stamp"))

    assert not re.search(r'(?: d| x| y)="[^"]*\.\d{3}', text)
    assert len(text) < 15_000
