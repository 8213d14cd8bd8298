"""Observations with sizes for a GPU, at the smallest sizes: their code and their demands."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch.utils.flop_counter import FlopCounterMode

from simulate.monte_carlo import Block, Point, fixture
from simulate.perceptrons import curvature
from verify.claims import registry
from verify.claims.granziol2022.training import perceptrons, rates_of_batches, through_training
from verify.claims.karakida2019 import growth as spectra
from verify.claims.trained_networks import Classifier, classifier_at_start, pass_cost, vgg_layers
from verify.claims.vysogorets2024 import framed_networks, observed as edges_observed
from verify.model.observation import Observation

TINY = {"images": "digits", "stages": ((3,), (4,)), "head": (6,), "samples": 24}

LARGE = [o for o in registry.observations() if o.cost is not None]


def block() -> Block:
    return Block((fixture(0, "network"),))


def test_the_whole_programme_takes_a_quarter_of_an_hour_and_fits_an_h100_by_estimate() -> None:
    costs = [(o.replicates, o.cost(point)) for o in LARGE if o.cost for point in o.points]
    assert 600 < sum(replicates * cost.seconds for replicates, cost in costs) < 900
    assert max(cost.memory for _, cost in costs) < 70 * 2**30
    assert len(LARGE) == 7


@pytest.mark.parametrize("observation", LARGE, ids=lambda o: o.id)
def test_more_of_anything_costs_more(observation: Observation) -> None:
    point, ask = observation.points[0], observation.cost
    for name in ("samples", "epochs", "steps", "dim", "widths"):
        if name in point:
            more = tuple(2 * w for w in point[name]) if name == "widths" else 2 * point[name]
            assert ask(point | {name: more}).flops > ask(point).flops


# --- karakida2019 ------------------------------------------------------------------------------------------------


def test_limits_are_over_what_dense_matrices_have() -> None:
    point = Point(widths=(24,), **spectra.SETTINGS[1])
    found = spectra.fisher_by_size(block(), point)
    network = spectra.network_of(block(), point, width=24, samples=24)
    gram = spectra.fisher_gram.gram(network, "tanh")
    weights = 2 * 24 * 24 + 24 + 2 * 24 + 1
    for matrix, mean, top in (
        (gram, "mean", "largest"),
        (spectra.fisher_gram.centred(gram), "mean_subtracted", "lower"),
    ):
        values = spectra.fisher_gram.fisher_eigenvalues(matrix)[0].numpy()
        said = spectra.fisher.eigenvalue_statistics(**spectra.setting(point), width=24, samples=24, outputs=1)
        bounds = spectra.fisher.mean_subtracted_statistics(
            **spectra.setting(point), width=24, samples=24, outputs=1
        )
        right = {
            "mean": said.mean * weights / values.sum(),
            "largest": said.largest / values[-1],
            "mean_subtracted": bounds.mean * weights / values.sum(),
            "lower": values[-1] / bounds.lower,
        }
        assert_allclose(found[mean][0], right[mean], rtol=1e-9)
        assert_allclose(found[top][0], right[top], rtol=1e-6)


# --- networks of the kind of VGG ---------------------------------------------------------------------------------


def test_layers_and_passes_are_counted() -> None:
    point = Point(**TINY)
    model = classifier_at_start(fixture(0, "network"), point, "cpu").model
    weights = [p.numel() for p in model.parameters() if p.ndim > 1]
    assert [count for count, _ in vgg_layers(point)] == weights
    counter = FlopCounterMode(display=False)
    with counter, torch.no_grad():
        model(torch.zeros(1, 3, 32, 32))
    assert pass_cost(point)[0] == counter.get_total_flops()


def test_a_network_that_is_cut_has_the_edges_of_a_whole_one() -> None:
    point = Point(
        **TINY | {"samples": 12}, bias=False, dim=3, training_batch=6, epochs=1, rate=0.01, done=(0.0, 1.0)
    )
    whole, cut = (edges_observed.edges_of_vgg(block(), point | {"chunk": chunk}) for chunk in (12, 7))
    assert whole.keys() == {c.score for c in edges_observed.OF_VGG.columns}
    for name, values in whole.items():
        assert values.shape == (1, 2)
        assert_allclose(cut[name], values, rtol=1e-4)
    assert (whole["low"] < whole["high"]).all()
    assert whole["loss"][0, 0] != whole["loss"][0, 1]


def test_the_first_images_have_the_edges_of_a_network_that_sees_no_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    point = Point(images="digits", samples=40, counts=(20, 40), dim=4)
    net = framed_networks.lenet_300_100(fixture(0, "network"), point).net
    few = edges_observed._first(net, 20)
    frame_free = [net.jacobian[:20], net.second_derivatives[:20], net.logits[:20]]
    for one, other in zip([few.jacobian, few.second_derivatives, few.logits], frame_free, strict=True):
        torch.testing.assert_close(one, other)
    found = edges_observed.edges_by_samples(block(), point)
    assert found.keys() == {c.score for c in edges_observed.BY_SAMPLES.columns}
    assert all(values.shape == (1, 2) for values in found.values())
    monkeypatch.setattr(edges_observed, "_first", lambda net, _: net)  # as if all counts saw all images
    wrong = edges_observed.edges_by_samples(block(), point)
    assert wrong["high"][0, 0] == wrong["high"][0, 1] != found["high"][0, 0]


def test_without_a_crossing_there_is_no_upper_edge() -> None:
    """One sample of its own class: residuals die with G, which goes on leading."""
    net = curvature.ProjectedMlp(
        [torch.tensor([[1.0, 0.3], [0.2, 1.0]]), torch.tensor([[2.0, 0.1], [0.0, 0.5]])],
        np.array([[1.0, 0.4]]),
        np.array([0]),
        curvature.haar(fixture(0, "frame"), 8, 3),
    )
    found = edges_observed._edges(net)
    assert found["high"] == math.inf and math.isnan(found["high_said"])
    assert math.isfinite(found["low"]) and math.isnan(found["middle"]) and math.isfinite(found["drawn"])


SHORT = {"samples": 16, "chunk": 9, "epochs": 1, "training_batch": 8, "done": (0.0, 0.5, 1.0)}


def killed(monkeypatch: pytest.MonkeyPatch, *values: float) -> None:
    """All weights of a trained network are these numbers, one after the other."""
    own, left = Classifier.moved, iter(values)

    def moved(self: Classifier, checkpoint: Any) -> None:
        own(self, checkpoint)
        if checkpoint.step:
            value = next(left)
            for p in self.model.parameters():
                torch.nn.init.constant_(p, value)

    monkeypatch.setattr(Classifier, "moved", moved)


def batches_of_vgg(monkeypatch: pytest.MonkeyPatch) -> Any:
    for name, count in (("BATCHES", 2), ("DIRECTIONS", 1), ("TOLERANCE", 0.1)):
        monkeypatch.setattr(through_training, name, count)
    smaller = {**TINY, **SHORT, "stages": ((2,), (2,)), "head": (4,), "probes": 2, "batch_sizes": (8,)}
    point = through_training.VGG.points[0] | smaller
    return through_training.batches_through_training(block(), point)


def edges_of_vgg(_: pytest.MonkeyPatch) -> Any:
    return edges_observed.edges_of_vgg(block(), Point(**TINY | SHORT, bias=False, dim=3, rate=0.01))


@pytest.mark.parametrize("measured", [edges_of_vgg, batches_of_vgg])
def test_a_network_that_is_lost_has_no_numbers_and_the_start_keeps_its_own(
    monkeypatch: pytest.MonkeyPatch, measured: Callable[..., Any]
) -> None:
    killed(monkeypatch, 0.0, math.nan)
    found = measured(monkeypatch)
    assert_allclose(found["loss"][0, 1:], [math.log(10), math.nan], rtol=1e-6)
    assert measured is edges_of_vgg or abs(found["own 8"][0, 0] - 1) < 0.15
    for name, values in found.items():
        assert np.isfinite(values[0, 0]) and (name == "loss" or np.isnan(values[0, 1:]).all()), name


def test_ties_leave_no_prediction_of_the_upper_edge() -> None:
    net = curvature.ProjectedMlp(
        [torch.eye(2).double(), torch.tensor([[2.0, 0.1], [0.0, 0.5]]).double()],
        np.array([[1.0, 0.4], [-1.0, -1.0]]),  # the second has no unit that is on
        np.array([1, 0]),
        curvature.haar(fixture(0, "frame"), 8, 3),
    )
    assert framed_networks.gap_density(net) == math.inf
    found = edges_observed._edges(net)
    assert math.isfinite(found["low_said"]) and math.isnan(found["high_said"])


@pytest.mark.parametrize("rule", ["sgd", "adam"])
def test_rates_of_a_convolutional_network(rule: str) -> None:
    small = {**TINY, "stages": ((2,), (2,)), "samples": 64}
    point = Point(
        rule=rule, **small, chunk=64, rungs=1, batch_size=(8, 64), centres=(0.01, 0.01), epochs=0, least=2
    )
    found = rates_of_batches.rates_by_batch_size(block(), point)
    assert found.keys() == {c.score for c in rates_of_batches.OF_VGG.columns}
    assert all(values.shape == (1, 2) and np.isfinite(values).all() for values in found.values())
    setting = perceptrons.convolutional_setting(block(), point)
    labels = setting.samples.targets.numpy()
    shares = np.bincount(labels) / len(labels)
    assert_allclose(setting.constant, -(shares[shares > 0] * np.log(shares[shares > 0])).sum())
    lost = perceptrons.tried(setting, np.array([[1e4]]), size=8, steps=2, rule=perceptrons.rule_of("sgd"))
    assert not lost.trains.any()
