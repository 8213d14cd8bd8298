"""Factor of the softmax covariance of logit derivatives, against many digits where the softmax is sure."""

from typing import Any

import mpmath as mp
import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor

from simulate.modules import softmax

GAPS = ((0.0, 0.0, -1.5, -1.6), (-1.40, 0.0, -1.45, -1.46), (0.0, 0.0, 0.0, 0.0))
"""Two classes tied in the first sample, all of them in the last."""


def derivatives() -> Tensor:
    """Return logit derivatives that agree for the tied classes of a sample, so that unsure classes do not move."""
    jacobian = torch.from_numpy(np.random.default_rng(0).standard_normal((3, 4, 5)))
    jacobian[0, 1], jacobian[2] = jacobian[0, 0], jacobian[2, 0]
    return jacobian


def in_many_digits(logits: Tensor, jacobian: Tensor) -> Any:
    total = mp.zeros(jacobian.shape[-1])
    for z, rows in zip(logits.tolist(), jacobian.tolist(), strict=True):
        weights = [mp.exp(mp.mpf(value)) for value in z]
        p, slopes = mp.matrix([w / mp.fsum(weights) for w in weights]), mp.matrix(rows)
        total += slopes.T * (mp.diag(p) - p * p.T) * slopes
    return total


def product(rows: Tensor) -> Tensor:
    flat = rows.flatten(0, 1)
    return flat.T @ flat


@pytest.mark.parametrize("scale", [1.0, 20.0, 1000.0])
def test_ties_that_do_not_move_neither_set_the_unit_nor_fall_out(scale: float) -> None:
    jacobian, logits = derivatives(), scale * torch.tensor(GAPS, dtype=torch.float64)
    rows, log_scale = softmax.covariance_factor(logits, softmax.contrasts(jacobian, logits))
    with mp.workdps(2000):
        expected = in_many_digits(logits, jacobian) * mp.exp(-mp.mpf(float(log_scale)))
        dense = np.array(expected.tolist(), dtype=float)
    assert_allclose(product(rows), dense, rtol=1e-12, atol=1e-13 * np.abs(dense).max())
    assert 0.1 < dense.trace() < 100


def test_nothing_that_moves_is_a_factor_of_zero() -> None:
    logits = torch.tensor(GAPS, dtype=torch.float64)
    rows, log_scale = softmax.covariance_factor(logits, torch.zeros(3, 4, 5, dtype=torch.float64))
    assert not rows.any() and log_scale == 0


def test_a_layer_may_move_what_others_do_not() -> None:
    """Layers of one network share the unit that their moved classes together set."""
    jacobian, logits = derivatives(), 100 * torch.tensor(GAPS, dtype=torch.float64)
    contrasts = softmax.contrasts(jacobian, logits)
    moved = torch.tensor([[True], [True], [False]])
    whole, unit = softmax.covariance_factor(logits, contrasts, moved)
    parts = [softmax.covariance_factor(logits, part, moved) for part in contrasts.split((2, 3), dim=-1)]
    assert unit == np.log(0.5) and all(torch.equal(unit, other) for _, other in parts)
    torch.testing.assert_close(torch.cat([rows for rows, _ in parts], dim=-1), whole, rtol=1e-14, atol=0)
    assert not whole[2].any() and whole[0].any()
