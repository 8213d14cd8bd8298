"""Formulas drawn in pictures of spectra and batches: each line is what its name says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.testing import assert_allclose

from verify.gallery import Setting, spectra

Lines = dict[str, tuple[np.ndarray, np.ndarray]]


def drawn(panel: Any) -> Axes:
    axes = Figure().add_axes((0, 0, 1, 1))
    panel.draw(axes)
    return axes


def lines(axes: Axes) -> Lines:
    """By label; what has none by the order in which it is drawn."""
    found = [line for line in axes.get_lines() if line.get_linestyle() != "None"]
    names = [str(line.get_label()) for line in found]
    return {
        name: (np.asarray(line.get_xdata()), np.asarray(line.get_ydata()))
        for name, line in zip(names, found, strict=True)
    }


@pytest.fixture(autouse=True)
def _few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"TRANSITION_DIM": 12, "DRAWS": 2, "BATCH_DIM": 12, "BATCHES": 3}.items():
        monkeypatch.setattr(spectra, name, value)


def test_batches_of_random_samples() -> None:
    found = lines(drawn(spectra.batch_size(Setting())[0]))
    b, _ = found["theorem 4"]
    (_, full) = found["full matrix"]
    top = full[0]
    square = spectra.BATCH_DIM * spectra.SIGMA**2 * (1 / b - 1 / spectra.SAMPLES)

    assert (full == top).all()
    assert_allclose(
        found["theorem 4"][1], np.where(top**2 > square, top + square / top, 2 * np.sqrt(square)), rtol=1e-10
    )
    assert_allclose(found["without its threshold"][1], top + square / top, rtol=1e-10)


def test_transition() -> None:
    eigenvalue, overlap = (lines(drawn(panel)) for panel in spectra.transition(Setting()))
    x, wigner = eigenvalue["Wigner noise"]
    q, name = spectra.RATIO, f"Wishart noise, q = {spectra.RATIO}"
    # noise W of mean 1 plus spike t: t sits at 1 + sqrt(q) + ... ; 1/t is the Stieltjes transform of W there
    t = x * float(np.asarray(spectra.outliers.additive_wishart(1.0, q=q, variance=1.0).threshold))
    at = eigenvalue[name][1] * (1 + q**0.5) ** 2
    out = x > 1 + 1e-9
    stieltjes = (at - 1 + q - np.sqrt((at - 1 - q) ** 2 - 4 * q + 0j).real) / (2 * q * at)

    assert_allclose(wigner, np.where(x > 1, (x + 1 / x) / 2, 1), rtol=1e-10)
    assert_allclose(overlap["Wigner noise"][1], np.where(x > 1, 1 - 1 / x**2, 0), atol=1e-10)
    assert_allclose(eigenvalue[name][1][~out], 1, rtol=1e-10)
    assert_allclose((t * stieltjes)[out], 1, rtol=1e-8)
    # the overlap is the derivative of the eigenvalue in the strength of the spike
    assert_allclose(np.gradient(at, t)[out][3:-3], overlap[name][1][out][3:-3], atol=2e-3)
