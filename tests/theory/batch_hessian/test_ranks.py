"""Bounds of ranks, attained by networks that torch differentiates."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch.autograd.functional import hessian, jacobian

from theory.batch_hessian.ranks import (
    dataset_rank_bound,
    ggn_rank_bound,
    sample_rank_bound,
    sample_rank_bound_of_paths,
)


def ranks(inputs: int, widths: tuple[int, ...], samples: int, *, biases: bool) -> tuple[int, int, int]:
    """Ranks of the mean Hessian and Gauss-Newton matrix of the cross-entropy of a tanh network, and its size."""
    torch.manual_seed(7)
    shapes = [(n, m + biases) for m, n in pairwise((inputs, *widths))]
    theta = 0.7 * torch.randn(sum(n * m for n, m in shapes), dtype=torch.float64)
    data = torch.randn(samples, inputs, dtype=torch.float64)
    labels = torch.randint(widths[-1], (samples,))

    def logits(theta: torch.Tensor) -> torch.Tensor:
        x = data
        for layer, part in enumerate(theta.split([n * m for n, m in shapes])):
            w = part.reshape(shapes[layer])
            x = torch.tanh(x) if layer else x
            x = x @ w[:, : x.shape[1]].T + (w[:, -1] if biases else 0)
        return x

    def loss(theta: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(logits(theta), labels)

    p, slopes = logits(theta).softmax(1), jacobian(logits, theta)
    centred = torch.diag_embed(p) - p[:, :, None] * p[:, None]
    ggn = torch.einsum("nia,nij,njb->ab", slopes, centred, slopes)
    found = (
        np.linalg.matrix_rank(m, tol=1e-11 * np.linalg.norm(m, 2))
        for m in (hessian(loss, theta).numpy(), ggn.numpy())
    )
    return (*map(int, found), len(theta))


each_biases = pytest.mark.parametrize("biases", [True, False])


@each_biases
@pytest.mark.parametrize(("inputs", "widths"), [(7, (3, 3)), (6, (4, 3, 3)), (5, (4,)), (9, (2, 2, 2))])
def test_one_sample_attains_its_bound(inputs: int, widths: tuple[int, ...], biases: bool) -> None:
    bound = sample_rank_bound(widths, biases=biases)
    assert ranks(inputs, widths, 1, biases=biases)[0] == bound
    assert bound <= sample_rank_bound_of_paths(inputs, widths)


@each_biases
def test_ranks_add_over_samples_up_to_the_symmetries(biases: bool) -> None:
    """A shift common to all logits is flat: one direction per input of the last layer, its bias included."""
    one, flat = sample_rank_bound((4, 3), biases=biases), 4 + biases
    for samples in (1, 2, 3, 60):
        rank, _, dim = ranks(6, (4, 3), samples, biases=biases)
        bound = dataset_rank_bound(one, samples=samples, dim=dim, symmetries=flat)
        assert rank <= bound
        assert rank == bound if samples in (1, 60) else rank > one


def test_a_batch_of_gauss_newton_matrices_attains_its_bound() -> None:
    """d_y - 1 directions for each sample, where section 6 of the paper has d_y; up to the symmetries."""
    for batch in (1, 4, 16):
        _, rank, dim = ranks(8, (6, 3), batch, biases=True)
        assert rank == ggn_rank_bound(batch, 3, dim) < 3 * batch


def test_counterexample_to_the_bound_of_a_data_set() -> None:
    """24-24-2 without biases: rank 600 was measured, 4 * 2 * (24 + 2 + 24) = 400 is the bound of one sample."""
    assert sample_rank_bound_of_paths(24, (24, 2)) == 400
    assert dataset_rank_bound(400, samples=6000, dim=624, symmetries=24) == 600
