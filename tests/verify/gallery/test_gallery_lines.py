"""Formulas drawn in pictures of spectra, batches and wide networks: each line is what its name says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.testing import assert_allclose

from theory import criticality, fisher
from theory.order_parameters import order_parameters
from verify.gallery import Setting, batch_sizes, spectra, wide_networks
from verify.gallery.goldilocks import frames as goldilocks_frames, gamma as goldilocks_gamma
from verify.page.theme import PALETTE

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
    for module, sizes in (
        (batch_sizes, {"DIM": 12, "DRAWS": 3}),
        (spectra, {"TRANSITION_DIM": 12, "DRAWS": 2}),
        (
            wide_networks,
            {"DRAWS": 2, "SIGNAL_WIDTH": 6, "SIGNAL_SAMPLES": 3, "CUT_WIDTH": 6, "GRID": (2, 2), "LINE": 3},
        ),
        (goldilocks_frames, {"SAMPLES": 4, "FRAMES": 2, "PROBES": 3, "GROUPS": 2}),
    ):
        for name, value in sizes.items():
            monkeypatch.setattr(module, name, value)


def test_batches_of_random_samples() -> None:
    found = lines(drawn(batch_sizes.random_samples(Setting())[0]))
    b, _ = found["theorem 4"]
    (_, full) = found["full matrix"]
    top = full[0]
    square = batch_sizes.DIM * batch_sizes.SIGMA**2 * (1 / b - 1 / batch_sizes.SAMPLES)

    assert (full == top).all()
    assert_allclose(
        found["theorem 4"][1], np.where(top**2 > square, top + square / top, 2 * np.sqrt(square)), rtol=1e-10
    )
    assert_allclose(found["without its threshold"][1], top + square / top, rtol=1e-10)


def test_learning_rates_and_their_exponents() -> None:
    """E |H v|^2 of a normal sample is P + 2; theorem 4 has the same P sigma^2 = P + 1 spread evenly."""
    rates, exponents = (lines(drawn(panel)) for panel in batch_sizes.learning_rate(Setting()))
    noise = batch_sizes.RATE_DIM + 1.0
    b, kept = rates["one step keeps the mean square"]
    _, broadened = rates["2 / eigenvalue of theorem 4"]

    assert_allclose(kept, 2 / (1 + noise / b), rtol=1e-10)
    assert_allclose(broadened, np.where(b > noise, 2 / (1 + noise / b), np.sqrt(b / noise)), rtol=1e-10)
    slopes = list(exponents.values())
    middle = slice(5, -5)
    assert_allclose(slopes[0][1][middle], (noise / (b + noise))[middle], atol=1e-3)
    assert_allclose(slopes[1][1][b < 0.9 * noise][5:], 0.5, rtol=1e-6)


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


@pytest.mark.parametrize("law", [wide_networks.RELU, wide_networks.TANH], ids=["relu", "tanh"])
def test_signals_by_layer(law: dict[str, Any]) -> None:
    axes = drawn(wide_networks._signals(Setting(), law, last=True))
    theory = order_parameters(depth=wide_networks.LAYERS, **law)
    found = [line for line in axes.get_lines() if line.get_color() in (PALETTE["theory"], PALETTE["rival"])]
    forward, backward = [np.arange(wide_networks.LAYERS), np.arange(1, wide_networks.LAYERS + 1)]
    expected = [
        (theory.q_hat_t, forward, True, "activations of a sample"),
        (theory.q_hat_st, forward, False, "of two samples"),
        (theory.q_tilde_t, backward, True, "gradients of a sample"),
        (theory.q_tilde_st, backward, False, "of two samples"),
    ]
    for line, (values, layers, dashed, name) in zip(found, expected, strict=True):
        assert_allclose(np.asarray(line.get_ydata()), values, rtol=1e-12)
        assert (np.asarray(line.get_xdata()) == layers).all()
        assert line.is_dashed() == dashed and line.get_label() == name


def test_constants_on_the_cut_and_the_critical_line() -> None:
    *fields, cut = (drawn(panel) for panel in wide_networks.constants(Setting()))
    found = lines(cut)
    w = found["κ₁"][0]
    theory = [
        fisher.kappas("tanh", depth=wide_networks.DEPTH, weight_variance=v, bias_variance=wide_networks.CUT)
        for v in w
    ]
    for symbol, name in (("κ₁", "kappa1"), ("κ₂", "kappa2"), ("κ₁ − κ₂", "difference")):
        assert_allclose(found[symbol][1], [getattr(k, name) for k in theory], rtol=1e-12)
    for axes in fields:
        (line,) = [line for line in axes.get_lines() if line.get_color() == PALETTE["disagrees"]]
        for weight, bias in np.asarray(line.get_xydata())[1:]:
            assert weight == pytest.approx(criticality.critical_weight_variance("tanh", bias))


def test_frames_are_what_the_law_undoes() -> None:
    (panel,) = goldilocks_frames.hutchinson(Setting())
    found = lines(drawn(panel))
    exact, d = found["exact, full space"][1], goldilocks_frames.DIM
    seen = found[f"seen in d = {d}, law"][1]

    assert_allclose(seen, exact * np.sqrt(d / (d + 1 + exact**2)), rtol=1e-10)
    assert_allclose(goldilocks_frames._undone(seen), exact, rtol=1e-10)


def test_a_plateau_of_gamma_belongs_to_four_equal_classes() -> None:
    axes = Figure().add_axes((0, 0, 1, 1))
    goldilocks_gamma._rays(axes)
    (plateau,) = [line for line in axes.get_lines() if line.get_color() == PALETTE["theory"]]
    assert_allclose(np.asarray(plateau.get_ydata()), (1 + 3 / 4) / 4, rtol=1e-12)
    tied = next(line for line in axes.get_lines() if line.get_label() == "tied")
    assert_allclose(np.asarray(tied.get_ydata())[-1], (1 + 3 / 4) / 4, rtol=1e-6)
