"""Excess of G in all coordinates: from the inner products of logit gradients as from the matrix itself."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor

from simulate.modules.logit_kernel import logit_kernel
from simulate.networks import Mlp
from simulate.perceptrons.full_space import norms
from simulate.perceptrons.gram_excess import gram_excess


def jacobian(samples: int = 4, classes: int = 3, dim: int = 20) -> Tensor:
    return torch.from_numpy(np.random.default_rng(3).standard_normal((samples, classes, dim)))


def gram_of(rows: Tensor) -> Tensor:
    return torch.einsum("nki,mli->nkml", rows, rows)


def dense(rows: Tensor, logits: Tensor) -> Tensor:
    """G over its norm."""
    p = torch.softmax(logits, -1)
    mixing = torch.diag_embed(p) - p[:, :, None] * p[:, None, :]
    g_term = torch.einsum("nki,nkl,nlj->ij", rows, mixing, rows)
    return g_term / torch.linalg.matrix_norm(g_term)


@pytest.mark.parametrize("scale", [0.0, 0.7, 3.0])
@pytest.mark.parametrize("dim", [7, 20])  # fewer parameters than the 12 rows of the factor, and more
def test_the_excess_is_that_of_the_dense_matrix(scale: float, dim: int) -> None:
    rows, logits = jacobian(dim=dim), scale * jacobian(dim=1)[..., 0]
    expected = float(dense(rows, logits).trace())
    for unit in (1.0, 1e5):  # a common factor of the gradients does not matter
        assert_allclose(gram_excess(unit * gram_of(rows), logits), expected, rtol=1e-12)


def test_it_is_that_of_a_network_however_confident() -> None:
    rng = np.random.default_rng(0)
    model, x = Mlp((5, 6, 4, 3), rng=rng), rng.standard_normal((7, 5))
    labels, weights = np.arange(7) % 3, [p.detach() for p in model.parameters()]
    kernel = logit_kernel(model, x)
    for temperature in (1.0, 1e-3):
        found = gram_excess(kernel.gram, kernel.logits / temperature)
        assert_allclose(found, norms(weights, x, labels, temperature=temperature).excess_g, rtol=1e-10)
    assert_allclose(gram_excess(kernel.gram, 1e6 * kernel.logits), 1.0, rtol=1e-10)


def test_what_it_cannot_use_is_refused() -> None:
    logits = jacobian(dim=1)[..., 0]
    with pytest.raises(ValueError, match="gram must be of logits with different gradients"):
        gram_excess(torch.zeros(4, 3, 4, 3, dtype=torch.float64), logits)
