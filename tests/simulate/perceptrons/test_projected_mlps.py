"""Projected curvature of many perceptrons at once: that of each by itself, and that of automatic differentiation."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor

from simulate.networks import mlp_weights, weight_count
from simulate.perceptrons.curvature import ProjectedMlp, haar, projected_mlps

COUNT, SAMPLES, COLUMNS = 3, 7, 4


def problem(widths: tuple[int, ...]) -> tuple[list[Tensor], np.ndarray, np.ndarray, Tensor]:
    rng = np.random.default_rng(1)
    stacks = [torch.stack(w) for w in zip(*(mlp_weights(rng, widths) for _ in range(COUNT)), strict=True)]
    x, labels = rng.standard_normal((SAMPLES, widths[0])), rng.integers(0, widths[-1], SAMPLES)
    return stacks, x, labels, haar(rng, weight_count(widths), COLUMNS)


@pytest.mark.parametrize("widths", [(6, 4), (6, 8, 4), (6, 8, 7, 4), (6, 8, 7, 5, 3)])
def test_terms_are_those_of_each_network(widths: tuple[int, ...]) -> None:
    stacks, x, labels, frame = problem(widths)
    found = projected_mlps(stacks, x, labels, frame)
    for i in range(COUNT):
        single = ProjectedMlp([w[i] for w in stacks], x, labels, frame).terms()
        for term, other in zip(found, single, strict=True):
            assert_allclose(term[i], other, rtol=1e-11, atol=1e-14)


def test_derivatives_in_single_precision_are_right_to_a_millionth() -> None:
    stacks, x, labels, frame = problem((6, 7, 5, 4))
    whole, single = (
        projected_mlps(stacks, x, labels, frame, dtype=t) for t in (torch.float64, torch.float32)
    )
    for term, reference in zip(single, whole, strict=True):
        assert term.dtype == torch.float64
        assert 0 < float((term - reference).norm() / reference.norm()) < 1e-6
