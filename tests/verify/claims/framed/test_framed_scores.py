"""Scores of networks in random frames: each against a route that shares none of its code."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from simulate import data, networks
from simulate.monte_carlo import Block, Point, fixture
from simulate.perceptrons import full_space
from theory.gauss_newton import projection
from verify.claims.vysogorets2024 import projection as frames

WIDTHS = (784, 9, 7, 10)
POINT = Point(images="digits", alpha=1.7, samples=5, frames=2, dims=(2, 5))


def drawn(widths: tuple[int, ...], samples: int) -> tuple[list[Any], Any, Any]:
    """Weights, images and labels of the first stream."""
    rng = fixture(3, "net")
    images = data.sample(data.opened("digits", (1, 28, 28)), rng, samples).flat()
    return list(networks.mlp_weights(rng, widths)), *images.tensors("cpu")


def test_scores_of_the_g_term_are_those_of_the_scaled_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(networks, "LENET_300_100", WIDTHS)
    found = frames.lenet_spectra(Block((fixture(3, "net"),)), POINT)
    weights, x, labels = drawn(WIDTHS, 5)
    parameters = networks.weight_count(WIDTHS)
    assert_allclose(found["excess"], full_space.norms(weights, x, labels, 1.7).excess_g, rtol=1e-10)
    assert_allclose(found["parameters"], parameters)

    def logits(*theta: Any) -> Any:
        return networks.mlp_logits(theta, x)

    scaled = tuple(1.7 * w for w in weights)
    parts = torch.autograd.functional.jacobian(logits, scaled)
    jacobian = torch.cat([part.flatten(2) for part in parts], 2)
    means = jacobian.mean(0)
    noise = float((jacobian - means).square().sum()) / (4 * 10 * parameters)
    means_squared = float(means.square().mean())
    assert_allclose(found["sigma_e"], noise**0.5, rtol=1e-10)
    assert_allclose(found["sigma_c"], (means_squared - noise / 5) ** 0.5, rtol=1e-10)
    p = logits(*scaled).softmax(1)
    covariance = torch.stack([torch.diag(row) - torch.outer(row, row) for row in p]).mean(0)
    assert_allclose(found["gamma"], float(covariance.trace() / covariance.norm()), rtol=1e-10)


def test_frames_show_the_moments_of_all_coordinates() -> None:
    """Eigenvalues that are zero are left out; four standard errors."""
    values, total = torch.tensor([3.0, -1.0, *(0.0,) * 4, *(1.0,) * 6], dtype=torch.float64), 40
    seen = frames._in_frames(np.random.default_rng(1), values, Point(frames=1500, dims=(2, 5)), total)
    law = projection.haar_moments(8.0, 16.0, dim=5, parameters=total)
    square, trace = seen.square().sum((1, 2)), seen.diagonal(dim1=1, dim2=2).sum(1)
    for found, expected in ((square, law.squared_norm), (trace, law.trace)):
        assert abs(float(found.mean()) - expected) < 4 * float(found.std()) / 1500**0.5
