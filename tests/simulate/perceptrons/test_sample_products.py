"""Products with single samples: against matrices by automatic differentiation."""

from typing import Any

import numpy as np
import pytest
import torch

from simulate import networks
from simulate.perceptrons import per_sample
from simulate.perceptrons.sample_products import DenseSamples, PerceptronSamples, Samples
from tests.simulate.small_perceptrons import assert_same

NETWORKS = [((4, 3, 5), "tanh"), ((5, 4, 3, 3), "gelu"), ((4, 6, 5, 3), "relu"), ((4, 3), "tanh")]
CURVATURES = {"hessian": per_sample.hessians, "gauss-newton": per_sample.gauss_newtons}


def setting(widths: tuple[int, ...], biases: bool = True) -> tuple[torch.Tensor, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    theta = torch.from_numpy(0.5 * rng.standard_normal(networks.weight_count(widths, biases=biases)))
    return theta, rng.standard_normal((7, widths[0])), rng.integers(0, widths[-1], 7)


def dense(samples: Samples, groups: Any) -> torch.Tensor:
    part = samples.on(groups)
    return part.mean(torch.eye(part.dim, dtype=part.dtype).expand(part.groups, -1, -1))


@pytest.mark.parametrize("biases", [True, False])
@pytest.mark.parametrize("matrix", CURVATURES)
@pytest.mark.parametrize(("widths", "activation"), NETWORKS)
def test_products_means_and_coordinates_are_those_of_the_matrix_of_each_sample(
    widths: tuple[int, ...], activation: str, matrix: Any, biases: bool
) -> None:
    given = setting(widths, biases)
    own, whole = (
        PerceptronSamples(widths, *given, activation, matrix=matrix),
        CURVATURES[matrix](widths, *given, activation),
    )
    assert_same(dense(own, np.arange(7)[:, None]), whole)
    groups = torch.tensor([[0, 3, 4], [6, 2, 1]])
    for samples in (own, DenseSamples(whole)):
        part = samples.on(groups)
        inner = part.inner()
        assert_same(dense(samples, groups), whole[groups].mean(1))
        assert_same(part.matrices(inner), whole[groups].mean(1))
        assert_same(inner.square().sum((-1, -2)), whole[groups].square().sum((-1, -2)))

    probes = torch.from_numpy(np.random.default_rng(1).standard_normal((1, 7, 4, own.coordinates)))
    for index, image in enumerate(own.apply(probes).split(1, dim=1)):
        part = own.on([[index]])
        vectors = part.back(image)  # lengths and angles are kept
        assert_same(vectors[0] @ vectors[0].mT, image[0, 0] @ image[0, 0].mT)
        assert_same(part.project(vectors), image)


def test_nothing_cancels_where_the_softmax_is_nearly_one_hot() -> None:
    widths = (4, 3, 5)
    theta, x, labels = setting(widths)
    theta[-5:] = torch.tensor([34.0, 0.0, 0.0, 0.0, 0.0])
    problem = (widths, theta, x, labels)
    whole = per_sample.gauss_newtons(*problem)
    assert float(whole.abs().max()) < 1e-12
    samples = PerceptronSamples(*problem, matrix="gauss-newton")
    assert_same(dense(samples, np.arange(7)[:, None]) / whole.abs().max(), whole / whole.abs().max(), 1e-7)
