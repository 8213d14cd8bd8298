"""Scores of many initialisations and priors, against automatic differentiation and closed forms."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from numpy.random import default_rng
from numpy.testing import assert_allclose
from scipy import stats
from torch import nn

from simulate import networks
from simulate.modules.logit_kernel import Kernel, Scales, logit_kernel
from simulate.monte_carlo import Point, fixture
from simulate.perceptrons import curvature
from verify.claims.vysogorets2024 import initialisations, observed, priors

LABELS = np.array([0, 2, 1, 1, 0, 1])
PRIOR = np.array([2, 3, 1]) / 6


def inputs() -> Any:
    return torch.from_numpy(default_rng(1).standard_normal((6, 5)))


def gradient(model: nn.Module, alpha: float = 1.0) -> Any:
    """Gradient of the mean loss by the weights times alpha."""
    for p in model.parameters():
        p.data.mul_(alpha)
    loss = nn.functional.cross_entropy(model(inputs()), torch.from_numpy(LABELS))
    return loss, torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(model.parameters()))])


def test_first_layers_have_the_scale_of_all_inputs() -> None:
    first, last = initialisations._stacks(fixture(0, "stacks"), (60, 40, 10), 30, inputs=784)
    assert_allclose([first.var() * 784, last.var() * 40], 2.0, rtol=0.04)


def test_confidence_loss_and_gradient_are_those_of_each_network() -> None:
    rng = default_rng(2)
    models = [networks.Mlp((5, 7, 3), rng=rng) for _ in range(3)]
    weights = [torch.stack(w).detach() for w in zip(*(m.parameters() for m in models), strict=True)]
    found = initialisations._first_order(weights, inputs(), torch.from_numpy(LABELS))
    for i, model in enumerate(models):
        p = model(inputs()).softmax(-1).detach().numpy()
        mixing = np.mean([np.diag(q) - np.outer(q, q) for q in p], 0)
        loss, slope = gradient(model)
        expected = {
            "loss": float(loss.detach()),
            "gradient": float(slope.norm()),
            "entropy": stats.entropy(p, axis=1).mean(),
            "gamma": np.trace(mixing) / np.linalg.norm(mixing),
            "distance": np.linalg.norm(p.mean(0) - PRIOR),
            "jensen": -PRIOR @ np.log(p.mean(0)),
            "classes": 3.0,
        }
        assert_allclose([found[name][i] for name in expected], list(expected.values()), rtol=1e-10)


def test_pairs_in_order_less_the_others_are_kendalls_tau() -> None:
    x, y = default_rng(3).standard_normal((2, 9))
    assert_allclose(initialisations._tau(x, y), np.asarray(stats.kendalltau(x, y))[0], rtol=1e-12)


@pytest.mark.parametrize("alpha", [1.0, 0.3])
def test_gradients_of_a_scaled_network_come_from_the_kernel(alpha: float) -> None:
    model = networks.Mlp((5, 7, 6, 3), rng=default_rng(4))
    norm, distance = priors._norm_and_distance(logit_kernel(model, inputs()), LABELS, alpha**3)
    _, slope = gradient(model, alpha)
    p = model(inputs()).softmax(-1).mean(0)
    assert_allclose(norm * alpha**2, slope.norm(), rtol=1e-10)
    assert_allclose(distance, np.linalg.norm(p.detach().numpy() - PRIOR), rtol=1e-10)


def batches(sigma_e: float) -> priors.Fit:
    """Fit of logit gradients with orthogonal means of length 0.7 sqrt(11) and residuals without overlap."""
    rng, count, classes, dim = default_rng(5), 400, 4, 11
    labels = np.arange(count) % classes
    gram = 0.7**2 * dim * torch.eye(classes).double().expand(count, count, classes, classes).transpose(1, 2)
    noise = sigma_e**2 * dim * torch.eye(count * classes).double().view(count, classes, count, classes)
    kernel = Kernel(torch.from_numpy(rng.standard_normal((count, classes))), gram + noise, dim)
    point = Point(priors=300, batch=50)
    return priors._over_priors(kernel, labels, Scales(0.7, sigma_e, np.ones(4)), rng, point)


def test_gradients_of_equal_means_are_a_line_in_the_distance() -> None:
    fit = batches(0.0)
    assert_allclose(fit, (0.7 * math.sqrt(11), 0.7 * math.sqrt(11), 1.0, 1.0), rtol=1e-10)


def test_residuals_bend_the_line_to_a_hyperbola() -> None:
    """Its floor counts samples that a batch holds more than once with the squares of their shares."""
    fit = batches(1.9)
    assert fit.slope > 1.02 * 0.7 * math.sqrt(11) and fit.pearson < 0.999
    assert_allclose([fit.mean_slope / math.sqrt(11), fit.hyperbola], [0.7, 1.0], rtol=1e-10)


def test_tables_show_predicted_over_measured() -> None:
    """Sure of all but one sample G has rank one, excess 1, and through d directions the law says sqrt(d / (d + 2))."""
    rng = default_rng(7)
    model, frame = networks.Mlp((5, 7, 6, 3), rng=rng), curvature.haar(rng, 95, 4)
    net = curvature.ProjectedMlp([p.detach() for p in model.parameters()], inputs(), LABELS, frame)
    kernel = logit_kernel(model, inputs())
    found = observed._compare_predictions(net, kernel, np.array([60.0]))
    assert_allclose(found["excess_g"], 1.0, rtol=1e-9)
    assert_allclose(found["dimension_law"], math.sqrt(4 / 6), rtol=0.02)

    from verify.claims.vysogorets2024 import framed_networks

    edges = observed._summary(net, kernel)
    g_norm, h_norm = framed_networks.uniform_norms(net)
    assert_allclose(edges["low_said"] * edges["low"], (h_norm / g_norm) ** (1 / 3), rtol=1e-9)
    assert_allclose(
        edges["high_said"] * edges["high"], (6 * framed_networks.gap_density(net)) ** (1 / 3), rtol=1e-9
    )
