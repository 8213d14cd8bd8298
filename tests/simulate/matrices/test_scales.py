"""Scores leave out the noise along a direction for its known mean and take its scale for granted: both to a percent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from simulate.matrices import ensembles, noise, populations
from simulate.monte_carlo import Block
from tests.simulate.matrices.drawn import assert_mean, block_of

DIM = 60

DRAWS: dict[str, tuple[Callable[[Block], Any], float, float]] = {
    "gaussian": (lambda b: ensembles.wigner(b, DIM), 0, 1 + 1 / DIM),
    "rademacher": (lambda b: ensembles.wigner(b, DIM, law="rademacher"), 0, 1),
    "student": (lambda b: noise.student(b, DIM, degrees=9), 0, 1),
    "sparse": (lambda b: noise.sparse(b, DIM, per_row=7), 0, 1),
    "uneven": (lambda b: noise.profiled(b, noise.blocked_profile(DIM, contrast=0.6)), 0, 1),
    "mean of 9": (lambda b: 3 * populations.nested_means(b, DIM, (9, 18))[:, 0] / DIM**0.5, 0, 1 + 1 / DIM),
    "mean of 18": (
        lambda b: (18 / DIM) ** 0.5 * populations.nested_means(b, DIM, (9, 18))[:, 1],
        0,
        1 + 1 / DIM,
    ),
    "projections": (lambda b: noise.signed_projections(b, DIM, samples=50, rank=4), 0, 4 / 50 / DIM),
    "wishart": (lambda b: ensembles.wishart(b, DIM, 90), 1, 1 + (DIM + 1) / 90),
}
"""What is drawn, its mean along a direction, and the mean of its squared eigenvalues."""


@pytest.mark.parametrize("name", DRAWS)
def test_noise_has_its_mean_along_a_direction_and_its_scale(name: str) -> None:
    draw, mean, second = DRAWS[name]
    blocks = [block_of(seed=seed) for seed in range(40)]
    matrices, v = (
        torch.cat([f(b) for b in blocks]) for f in (draw, lambda b: ensembles.unit_vectors(b, DIM))
    )
    assert_mean(torch.einsum("ni,nij,nj->n", v, matrices, v), mean)
    squares = matrices.square().sum((1, 2)) / DIM
    assert_mean(squares, second)
    assert float(squares.std() / np.sqrt(len(squares))) < 0.003 * second  # one percent in scale is two here
