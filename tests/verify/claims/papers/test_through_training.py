"""Scores of experiments on training: schedules, counts of zeros, variances."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.random import default_rng
from numpy.testing import assert_allclose

from simulate import operators
from simulate.modules.hessian_variance import bilinear_forms, variance_along
from simulate.monte_carlo import Block, Point, fixture
from simulate.perceptrons import per_sample
from tests.verify.claims.papers.test_network_observations import block
from verify.claims.granziol2022.training import degeneracy, through_training
from verify.claims.granziol2022.training.degeneracy import course, scheduled, steps_at

SMALL = {
    "images": "digits", "pixels": 4, "hidden": 5, "samples": 12, "noise": 0.3, "batch_size": 4, "epochs": 3,
    "rate": 0.1, "done": (0.0, 1.0),
}  # fmt: skip


def test_the_schedule_is_that_of_eq_21() -> None:
    rates = np.array(scheduled(0.2, 100))
    assert_allclose(rates[:51], 0.2)
    assert_allclose(rates[70], 0.2 * (1 - 0.99 * (0.7 - 0.5) / 0.4))
    assert_allclose(rates[90:], 0.002)
    assert steps_at((0.0, 0.54, 1.0), 40) == (0, 22, 40)


def test_zeros_are_counted_and_their_weight_is_read_off() -> None:
    """Seven zeros, one number below 1e-7, one small and three large: as many steps as there are different ones."""
    values = np.array([0.0] * 7 + [5e-8, 5e-4, 1.0, 2.0, 3.0])
    basis = np.linalg.qr(default_rng(0).standard_normal((12, 12)))[0]
    matrices = torch.from_numpy((basis * values) @ basis.T)[None].repeat(2, 1, 1) * torch.tensor(
        [[[1.0]], [[0.5]]]
    )
    point = Point(steps=4)
    both = degeneracy._counted(matrices, Block((default_rng(1), default_rng(2))), point)
    alone = degeneracy._counted(matrices[1:], Block((default_rng(2),)), point)
    assert_allclose(both["one"][1], alone["one"][0], rtol=1e-6)
    found = {name: values[0] for name, values in both.items()}
    assert (found["zero"], found["small"]) == (8 / 12, 9 / 12)
    start = default_rng(1).standard_normal(12)
    shares = (basis.T @ start) ** 2 / (start @ start)
    assert_allclose(found["one"], shares[:9].sum(), rtol=1e-2)
    assert_allclose(found["slack"], found["one"] - shares[:7].sum(), rtol=1e-6)


def test_zeros_that_did_split_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The weight of another node than the nearest, as if the zeros were in two."""
    point = degeneracy.GGN_OF_MANY.points[0] | {"epochs": 2}
    assert (degeneracy.at_the_end(block(4), point)["slack"] > 0).all()
    assert degeneracy.at_the_end(block(4), degeneracy.GGN_OF_FEW.points[0])["near"].mean() > 0.7
    quadrature = degeneracy.lanczos.quadrature

    def split(*arguments: Any) -> Any:
        nodes, weights = quadrature(*arguments)
        weights[:, 0] /= 20
        return nodes, weights

    monkeypatch.setattr(degeneracy.lanczos, "quadrature", split)
    found = degeneracy.at_the_end(block(4), point)
    assert (found["slack"] < 0).all()
    assert not degeneracy.at_the_end(block(4), degeneracy.GGN_OF_FEW.points[0])["near"].any()


def test_the_variance_is_that_of_dense_matrices() -> None:
    point = Point(**SMALL) | {"done": (0.0, 0.5, 1.0)}
    walk = course(block(2), point)
    found = degeneracy.variance_in_training(block(2), point)
    for network, (first, middle, last) in enumerate(
        zip(*[_variances(walk, c) for c in walk.found], strict=True)
    ):
        assert_allclose(found["later"][network], np.log(last / middle) - np.log(middle / first))


def _variances(walk: Any, checkpoint: Any) -> list[float]:
    found = []
    for network, (x, y) in enumerate(zip(walk.drawn.images, walk.drawn.labels, strict=True)):
        theta = torch.cat([p[network].flatten() for p in checkpoint.parameters]).double()
        matrices = per_sample.hessians(walk.drawn.widths, theta, x, y, "relu").numpy()
        found.append(float(matrices.var(axis=0).sum()))
    return found


def test_noise_of_lenet_is_along_its_top_eigenvector() -> None:
    point = Point(images="digits", samples=10, matrix="gauss-newton", probes=2)
    network = through_training.classifier_at_start(fixture(0, "lenet"), point, "cpu")
    objective = network.objective()
    whole = through_training._top(operators.gauss_newton(objective), fixture(0, "top"), 5)
    noise = through_training._noise(objective, fixture(0, "probes"), whole, point)
    along = variance_along(objective, whole.vectors[:, 0], matrix="gauss_newton") * 9 / 10
    entries = bilinear_forms(objective, whole.vectors, whole.vectors[:, 0], matrix="gauss_newton").var(axis=0)
    gaps = whole.values[0] - np.append(whole.values[1:], 0.0)
    rest = np.append(entries[1:], max(along - entries.sum(), 0.0))
    assert_allclose(noise.coefficient, (rest / gaps).sum(), rtol=1e-5)
    assert_allclose([noise.eigenvalue, noise.along], [whole.values[0], along], rtol=1e-5)
