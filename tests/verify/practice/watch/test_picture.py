"""The picture: what is drawn, where there are gaps, and what a file can be."""

import math
from pathlib import Path

from matplotlib.image import imread
from numpy.testing import assert_allclose

from tests.refusals import refusal
from tests.verify.practice.watch.small_watchers import batches, net, trained
from verify.practice.watch import CurvatureRecord, watch_figure


def test_picture_shows_what_was_measured_and_is_written(tmp_path: Path) -> None:
    model, data = net(), batches(6)
    watcher = trained(model, data, rate=0.5)

    axes = watcher.figure().axes
    lines = {str(line.get_label()): line for line in axes[0].get_lines()}
    values = [record.eigenvalue for record in watcher.records]
    assert_allclose(lines["fixed samples"].get_ydata(), values)
    assert_allclose(lines["2 / rate"].get_ydata(), [4.0] * 6)

    watcher.save(tmp_path / "curvature.png")
    assert imread(tmp_path / "curvature.png").std() > 0.01
    watcher.save(tmp_path / "curvature.html")
    page = (tmp_path / "curvature.html").read_text()
    assert page.count("<svg") >= 2 and page.count("<tr>") == 1 + len(watcher.records)
    with refusal("xyz"):
        watcher.save(tmp_path / "curvature.xyz")


def test_what_is_missing_is_a_gap_and_divergence_a_line() -> None:
    records = [
        CurvatureRecord(step=1, outcome="measured", loss=1.0, eigenvalue=2.0, error=0.1),
        CurvatureRecord(step=2, outcome="diverged: the loss is nan", loss=math.nan),
    ]
    axes = watch_figure(records).axes
    assert len(axes) == 2  # the noise scale was not measured
    assert any(line.get_label() == "diverged" for each in axes for line in each.get_lines())
    with refusal("records must hold at least one measurement, got none"):
        watch_figure([])
