"""Real networks through a frame: what is read off them."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.random import default_rng
from numpy.testing import assert_allclose

from simulate import networks
from simulate.modules.logit_kernel import logit_kernel
from simulate.monte_carlo import Block, Point, fixture
from simulate.perceptrons import curvature
from verify.claims.vysogorets2024 import framed_networks as framed, observed, zone

POINT = Point(images="digits", samples=6, dim=3)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(networks, "LENET_300_100", (784, 9, 7, 10))


def perceptron(samples: int = 30) -> Any:
    rng = default_rng(2)
    weights = networks.mlp_weights(rng, (8, 12, 9, 4))
    frame = curvature.haar(rng, networks.weight_count((8, 12, 9, 4)), 6)
    x, labels = rng.standard_normal((samples, 8)), rng.integers(0, 4, samples)
    return curvature.ProjectedMlp(weights, x, labels, frame)


@pytest.mark.parametrize(
    ("draw", "parameters"), [(framed.lenet_300_100, 784 * 9 + 9 * 7 + 7 * 10), (framed.lenet_5, 61_770)]
)
def test_module_and_inputs_are_those_seen_through_the_frame(draw: Any, parameters: int) -> None:
    """A frame keeps d / P of the squared gradients, with P all parameters."""
    drawn = draw(fixture(0, "net"), POINT)
    with torch.no_grad():
        assert_allclose(drawn.model(drawn.inputs), drawn.net.logits, rtol=1e-10, atol=1e-12)
    assert drawn.net.jacobian.shape == (6, 10, 3)
    gram = logit_kernel(drawn.model, drawn.inputs).gram
    assert gram.shape == (6, 10, 6, 10)
    left = float(drawn.net.jacobian.square().sum() / gram.reshape(60, 60).trace())
    assert 0.5 < left * parameters / 3 < 2


@pytest.mark.parametrize("draw", [framed.lenet_300_100, framed.lenet_5])
def test_single_precision_is_the_same_network_to_a_millionth(
    draw: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So are both terms at large scales, which multiply the rounding of the logits; with one frame for both."""
    haar = curvature.haar
    kinds = {True: torch.float32, False: torch.float64}
    monkeypatch.setattr(curvature, "haar", lambda *a, single, **k: haar(*a, **k).to(kinds[single]))
    single, whole = (draw(fixture(0, "net"), POINT, single=single).net for single in (True, False))
    for alpha in (0.3, 1.0, 4.0):
        for term, reference in zip(single.terms(alpha), whole.terms(alpha), strict=True):
            assert 0 < float((term - reference).norm() / reference.norm()) < 3e-6


def test_norms_at_uniform_probabilities_are_the_limit_of_a_small_scale() -> None:
    net = perceptron()
    terms = net.terms(1e-4)
    for order in (2, "fro"):
        found = framed.uniform_norms(net, order)
        limits = (torch.linalg.matrix_norm(m, ord=order).item() for m in terms)
        powers = 1e-4 ** (2 * net.depth - 2), 1e-4 ** (net.depth - 2)
        assert_allclose(found, [m / a for m, a in zip(limits, powers, strict=True)], rtol=1e-6)


def test_crossings_are_where_the_norms_are_equal() -> None:
    net, grid = perceptron(), np.geomspace(0.1, 100, 25)
    low, high = (
        framed.lower_crossing(net, grid, framed.log_ratio(net, grid)),
        framed.upper_crossing(net, grid, framed.log_ratio(net, grid)),
    )
    assert low < high
    ahead = framed.log_ratio(net, np.array([0.999 * low, 1.001 * low, 0.999 * high, 1.001 * high])) > 0
    assert ahead.tolist() == [False, True, True, False]  # each to a thousandth


def test_of_several_crossings_the_zone_has_the_outermost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framed, "log_ratio", lambda _, alphas: np.sin(np.pi * np.log(alphas)))
    grid = np.exp(np.linspace(-0.53, 3.71, 30))  # ahead between e^0 and e^1, and between e^2 and e^3
    assert_allclose(framed.lower_crossing(None, grid, framed.log_ratio(None, grid)), 1.0, rtol=1e-3)
    assert_allclose(framed.upper_crossing(None, grid, framed.log_ratio(None, grid)), np.exp(3.0), rtol=1e-3)


def test_a_crossing_beyond_the_grid_is_the_nearest_scale_on_it() -> None:
    net = perceptron()
    low = np.geomspace(0.01, 0.1, 5)
    assert framed.lower_crossing(net, low, framed.log_ratio(net, low)) == low[-1]
    assert framed.upper_crossing(net, low, framed.log_ratio(net, low)) == low[-1]
    inside = np.geomspace(1.0, 1.2, 3)
    assert framed.upper_crossing(net, inside, framed.log_ratio(net, inside)) == inside[-1]


def test_the_excess_beside_the_ratio_is_that_of_the_hessian() -> None:
    """At the last scale G is below the range of float64: the ratio still has a number, the excess that of Ht."""
    net, alphas = perceptron(), np.array([0.3, 1.0, 4.0, 1e3])
    ratio, excess = framed.log_ratio_and_excess(net, alphas)
    terms = net.terms(alpha=alphas)
    g_norm, h_norm = (torch.linalg.matrix_norm(m, 2) for m in terms)
    assert g_norm[-1] == 0
    assert_allclose(ratio[:-1], (g_norm / h_norm).log()[:-1], rtol=1e-10)
    assert np.isfinite(ratio[-1])
    assert_allclose(excess, curvature.positive_excess(terms.hessian), rtol=1e-10)


def test_the_upper_edge_is_the_same_with_all_samples_near_a_tie(monkeypatch: pytest.MonkeyPatch) -> None:
    def edge(samples: int) -> float:
        rng = default_rng(4)
        weights = networks.mlp_weights(rng, (6, 8, 4))
        frame = curvature.haar(rng, networks.weight_count((6, 8, 4)), 3)
        return zone._upper_edge(rng, weights, frame, rng.standard_normal((samples, 6)))

    few = edge(400)
    from simulate.perceptrons import confident

    whole = confident.ConfidentMlp
    monkeypatch.setattr(confident, "ConfidentMlp", lambda *args, near: whole(*args, near=400))
    assert_allclose(edge(400), few, rtol=1e-3)


def test_what_the_smallest_gaps_take_out_of_the_edges_is_nothing_on_average() -> None:
    """Whichever of the sets is looked at: their leads over the mean of all add up to zero."""
    gaps = np.log(default_rng(3).exponential(size=(4, 7)))
    leads = [zone._lead(gaps[i], np.delete(gaps, i, 0).ravel()) for i in range(4)]

    assert_allclose(sum(leads), 0.0, atol=1e-12)
    assert np.ptp(leads) > 0.1


@pytest.mark.slow
def test_the_smallest_gaps_take_most_of_the_scatter_out_of_the_growth(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    point, edges, upper_edge = zone.UPPER.points[0] | {"more": 2000}, list[float](), zone._upper_edge

    def noted(*given: Any) -> float:
        edges.append(upper_edge(*given))
        return edges[-1]

    monkeypatch.setattr(zone, "_upper_edge", noted)
    with_gaps = zone.upper_edges(Block(tuple(fixture(i, "upper edge") for i in range(24))), point)["growth"]
    without = np.diff(np.log(edges).reshape(24, 2)) / np.log(point.more / point.samples)

    assert np.var(with_gaps) < np.var(without) / 3


def test_fitted_scales_are_those_of_the_model() -> None:
    """Gradients c_k + e_nk drawn with known deviations give them back."""
    rng = default_rng(1)
    shared, own = rng.normal(0, 0.7, (1, 40, 900)), rng.normal(0, 1.9, (6, 40, 900))

    class Net:
        jacobian = torch.from_numpy(shared + own)

    assert_allclose(observed._scales(Net()), (0.7, 1.9), rtol=0.01)


def test_the_gap_density_is_that_of_the_smallest_gaps() -> None:
    rng = default_rng(1)
    first = rng.uniform(0, 4, 20_000)

    class Net:
        logits = torch.from_numpy(np.stack([first, np.zeros_like(first)], 1))

    assert_allclose(framed.gap_density(Net()), 0.25, rtol=0.05)


def test_eq_8_as_read_is_the_corrected_one_where_both_scales_are_equal() -> None:
    from theory import gauss_newton

    gamma = np.array([1.3, 2.8])
    read = observed.eq_8_as_our_copy_reads(gamma, 50, 0.7, 0.7)
    assert_allclose(read, gauss_newton.expected_excess(gamma, dim=50, sigma_c=0.7, sigma_e=0.7), rtol=1e-12)
    unequal = observed.eq_8_as_our_copy_reads(np.sqrt(5.0), 50, 1.0, 2.0)
    assert_allclose(unequal, 50**0.5 * 5 / 184**0.5, rtol=1e-12)  # by hand
