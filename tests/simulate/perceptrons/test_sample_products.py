"""Products with single samples: against matrices by automatic differentiation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from simulate import networks
from simulate.operators import hessian
from simulate.perceptrons import per_sample
from simulate.perceptrons.sample_products import DenseSamples, PerceptronSamples, Samples
from simulate.perceptrons.trained import perceptron_objective
from tests.simulate.small_perceptrons import assert_same

NETWORKS = [((4, 3, 5), "tanh"), ((5, 4, 3, 3), "gelu"), ((4, 6, 5, 3), "relu"), ((4, 3), "tanh")]
CURVATURES = {"hessian": per_sample.hessians, "gauss-newton": per_sample.gauss_newtons}


def setting(widths: tuple[int, ...], seed: int = 0) -> tuple[torch.Tensor, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    theta = torch.from_numpy(0.5 * rng.standard_normal(networks.weight_count(widths, biases=True)))
    return theta, rng.standard_normal((7, widths[0])), rng.integers(0, widths[-1], 7)


def dense(samples: Samples, groups: Any) -> torch.Tensor:
    part = samples.on(groups)
    return part.mean(torch.eye(part.dim, dtype=part.dtype).expand(part.groups, -1, -1))


@pytest.mark.parametrize("matrix", CURVATURES)
@pytest.mark.parametrize(("widths", "activation"), NETWORKS)
def test_products_are_those_of_the_matrix_of_each_sample(
    widths: tuple[int, ...], activation: str, matrix: Any
) -> None:
    problem = setting(widths)
    samples = PerceptronSamples(widths, *problem, activation, matrix=matrix)
    whole = CURVATURES[matrix](widths, *problem, activation)
    assert_same(dense(samples, np.arange(7)[:, None]), whole)
    groups = [[0, 3], [6, 2]]
    assert_same(dense(samples, groups), whole[torch.tensor(groups)].mean(1))
    assert_same(dense(DenseSamples(whole), groups), whole[torch.tensor(groups)].mean(1))


@pytest.mark.parametrize("matrix", CURVATURES)
@pytest.mark.parametrize(("widths", "activation"), NETWORKS)
def test_mean_matrices_are_those_of_the_products(
    widths: tuple[int, ...], activation: str, matrix: Any
) -> None:
    theta, x, labels = setting(widths)
    whole = CURVATURES[matrix](widths, theta, x, labels, activation)
    groups = torch.tensor([[0, 3, 4], [6, 2, 1]])
    for samples in (
        PerceptronSamples(widths, theta, x, labels, activation, matrix=matrix),
        DenseSamples(whole),
    ):
        part = samples.on(groups)
        inner = part.inner()
        assert_same(part.matrices(inner), whole[groups].mean(1))
        assert_same(inner.square().sum((-1, -2)), whole[groups].square().sum((-1, -2)))


@pytest.mark.parametrize("matrix", CURVATURES)
@pytest.mark.parametrize(("widths", "activation"), NETWORKS)
def test_coordinates_keep_lengths_and_angles(widths: tuple[int, ...], activation: str, matrix: Any) -> None:
    samples = PerceptronSamples(widths, *setting(widths), activation, matrix=matrix)
    probes = torch.from_numpy(np.random.default_rng(1).standard_normal((1, 7, 4, samples.coordinates)))
    images = samples.apply(probes)
    for index in range(7):
        part, own = samples.on([[index]]), images[:, index : index + 1]
        vectors = part.back(own)
        assert_same(vectors[0] @ vectors[0].mT, own[0, 0] @ own[0, 0].mT)
        assert_same(part.project(vectors), own)


def test_products_of_a_network_without_biases() -> None:
    widths = (5, 4, 3, 3)
    _, x, labels = setting(widths)
    theta = torch.cat([w.flatten() for w in networks.mlp_weights(np.random.default_rng(2), widths)])
    samples = PerceptronSamples(widths, theta, x, labels)
    whole = hessian(perceptron_objective(widths, theta, x, labels)).dense()
    assert samples.dim == networks.weight_count(widths)
    assert_same(samples.mean(torch.eye(samples.dim, dtype=theta.dtype)[None])[0], whole)
    assert_same(samples.matrices(samples.inner())[0], whole)


def test_nothing_cancels_where_the_softmax_is_nearly_one_hot() -> None:
    widths = (4, 3, 5)
    theta, x, labels = setting(widths)
    theta[-5:] = torch.tensor([34.0, 0.0, 0.0, 0.0, 0.0])
    problem = (widths, theta, x, labels)
    whole = per_sample.gauss_newtons(*problem)
    assert float(whole.abs().max()) < 1e-12
    samples = PerceptronSamples(*problem, matrix="gauss-newton")
    assert_same(dense(samples, np.arange(7)[:, None]) / whole.abs().max(), whole / whole.abs().max(), 1e-7)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"matrix": "fisher"}, "matrix must be hessian or gauss-newton"),
        ({"theta": torch.zeros(3)}, r"theta must be of shape \(27,\), or with biases \(35,\)"),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, Any], message: str) -> None:
    theta, x, labels = setting((4, 3, 5))
    arguments = {"theta": theta, "x": x, "labels": labels, "activation": "tanh", "matrix": "hessian"}
    with pytest.raises(ValueError, match=message):
        PerceptronSamples((4, 3, 5), **arguments | changes)
