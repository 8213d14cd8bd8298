"""Formulas drawn in pictures of the Goldilocks zone: each line is what its name says."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from numpy.testing import assert_allclose

from simulate.modules.logit_kernel import Kernel
from verify.gallery.goldilocks import (
    gradients as goldilocks_gradients,
    initialisations as goldilocks_initialisations,
    zone as goldilocks_zone,
)

PARAMETERS, SIGMA_C, SIGMA_E = 50, 0.7, 1.9


@pytest.fixture(name="axes")
def _axes() -> Any:
    figure, axes = plt.subplots()
    yield axes
    plt.close(figure)


@pytest.fixture(name="net")
def _net() -> goldilocks_gradients._Gradients:
    """The random model itself: every inner product of gradients is its mean."""
    rng, samples, classes = np.random.default_rng(5), 9, 3
    same = torch.eye(samples, dtype=torch.float64)
    by_sample = PARAMETERS * (SIGMA_C**2 + SIGMA_E**2 * same)
    gram = by_sample[:, None, :, None] * torch.eye(classes, dtype=torch.float64)[None, :, None, :]
    labels = np.eye(classes)[[0, 1, 2, 0, 1, 2, 1, 0, 2]]
    logits = torch.from_numpy(rng.standard_normal((samples, classes)))
    return goldilocks_gradients._Gradients(Kernel(logits, gram, PARAMETERS), labels, depth=2)


def _lines(axes: Axes) -> dict[str, tuple[Any, Any]]:
    return {str(line.get_label()): (line.get_xdata(), line.get_ydata()) for line in axes.get_lines()}


def test_cosines_of_the_random_model_are_as_predicted(
    net: goldilocks_gradients._Gradients, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(goldilocks_gradients, "IMAGES", 5)
    for prior in (np.array([0.2, 0.3, 0.5]), np.ones(3) / 3):
        measured, predicted = goldilocks_gradients._cosines_of(net, prior)
        assert np.ptp(measured) > 0.05
        assert_allclose(predicted, measured, rtol=1e-10, atol=1e-14)


def test_lines_of_gradient_norms_are_those_of_the_random_model(
    net: goldilocks_gradients._Gradients, axes: Axes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(goldilocks_gradients, "IMAGES", 6)
    monkeypatch.setattr(goldilocks_gradients, "PRIORS", 41)
    goldilocks_gradients._norms(axes, net=net, rng=np.random.default_rng(2))
    dots, found = axes.get_lines()[0], _lines(axes)
    distance, norm = np.asarray(dots.get_xdata()), np.asarray(dots.get_ydata())
    floor = np.median(norm**2 - PARAMETERS * SIGMA_C**2 * distance**2)
    assert len(norm) == 41 and floor > 1
    for name, law in {
        "with the noise floor": lambda x: np.sqrt(PARAMETERS * SIGMA_C**2 * x**2 + floor),
        "√P σ_c |Q̂ − Q|": lambda x: PARAMETERS**0.5 * SIGMA_C * x,
        "P σ_c² |Q̂ − Q|, as our copy reads": lambda x: PARAMETERS * SIGMA_C**2 * x,
    }.items():
        x, y = found[name]
        assert_allclose(y, law(np.asarray(x)), rtol=1e-10, atol=1e-12)


def test_lines_over_initialisations_have_their_floor(axes: Axes) -> None:
    distances = (0.2, 0.5, 0.9)
    drawn = [
        goldilocks_initialisations._Initialisation(
            loss=2.0, entropy=1.0, gradient=3.0 * x, excess=1.0, distance=x, line=2.5 * x, square=(2.5 * x) ** 2 + 4
        )
        for x in distances
    ]  # fmt: skip
    goldilocks_initialisations._gradients(axes, found=drawn)
    floored, straight = axes.get_lines()[:2]
    x = np.asarray(floored.get_xdata())
    assert_allclose(np.asarray(floored.get_ydata()), np.sqrt((2.5 * x) ** 2 + 4), rtol=1e-10)
    assert_allclose(np.asarray(straight.get_ydata()), 2.5 * x, rtol=1e-10)


def test_grey_is_two_standard_deviations_of_a_matrix_without_trace(axes: Axes) -> None:
    goldilocks_zone._floor(axes)
    (box,) = (patch.get_extents().transformed(axes.transData.inverted()) for patch in axes.patches)
    assert_allclose([box.y0, box.y1], 2 * np.sqrt(2 / 51) * np.array([-1, 1]), rtol=1e-10)


def test_powers_start_from_the_norms_at_uniform_predictions(axes: Axes) -> None:
    alphas = goldilocks_zone.ALPHAS
    kind: Any = SimpleNamespace(
        norms=(np.ones((2, len(alphas))), np.ones((2, len(alphas)))),
        uniform=[(0.3, 0.02), (0.3, 0.02)],
        depth=3,
        law=None,
    )
    goldilocks_zone._norms(axes, kind=kind)
    found = _lines(axes)
    for name, level, power in (("α²ᴸ⁻²", 0.3, 4), ("αᴸ⁻²", 0.02, 1)):
        x, y = found[name]
        assert_allclose(y, level * np.asarray(x) ** power, rtol=1e-10)
