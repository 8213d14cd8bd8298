"""Inner products of logit gradients: against the Jacobian itself, and what is made of them against plain loops."""

import numpy as np
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn
from torch.nn import functional

from simulate import networks
from simulate.modules import logit_kernel
from simulate.modules.empirical_kernel import empirical_kernel
from simulate.modules.logit_kernel import Kernel
from tests.refusals import refusal


def problem() -> tuple[nn.Module, Tensor]:
    rng = np.random.default_rng(0)
    return networks.Mlp((5, 7, 6, 3), rng=rng), torch.from_numpy(rng.standard_normal((6, 5)))


def test_kernel_holds_inner_products_of_the_rows_of_the_jacobian() -> None:
    model, x = problem()
    found = logit_kernel.logit_kernel(model, x)

    assert found.dim == sum(p.numel() for p in model.parameters())
    assert_allclose(found.logits, model(x).detach(), rtol=1e-13)
    assert_allclose(found.gram, empirical_kernel(model, x), rtol=1e-13)


def clustered(samples: int, classes: int, dim: int, c: float, e: float, seed: int) -> tuple[Tensor, Kernel]:
    rng = np.random.default_rng(seed)
    means, noise = rng.standard_normal((classes, dim)), rng.standard_normal((samples, classes, dim))
    rows = torch.from_numpy(c * means + e * noise)
    logits = torch.from_numpy(rng.standard_normal((samples, classes)))
    return rows, Kernel(logits, torch.einsum("nkp,mlp->nkml", rows, rows), dim)


def test_scales_are_unbiased() -> None:
    """Against moments taken from the gradients themselves; two samples with opposite gradients have no mean at all."""
    rows, kernel = clustered(4, 3, 200, 0.3, 0.7, 0)
    scales, means = kernel.scales(), rows.mean(0)
    error = (rows - means).square().sum() / (3 * 3 * 200)
    assert_allclose(scales.sigma_e**2, error, rtol=1e-11)
    assert_allclose(scales.sigma_c**2, means.square().mean() - error / 4, rtol=1e-10)
    assert_allclose(scales.lengths, means.norm(dim=1), rtol=1e-11)

    rows = torch.tensor([[[1.0, 2.0]], [[-1.0, -2.0]]]).double()
    opposite = Kernel(torch.zeros(2, 1), torch.einsum("nkp,mlp->nkml", rows, rows), 2).scales()
    assert opposite.sigma_c == 0.0 and opposite.sigma_e > 0


def test_cosines_are_means_over_pairs() -> None:
    rows, kernel = clustered(5, 3, 9, 0.8, 0.5, 7)
    unit, means = functional.normalize(rows, dim=2), functional.normalize(rows.mean(0), dim=1)
    by_pair = torch.einsum("nkp,mlp->nmkl", unit, unit)[~torch.eye(5, dtype=torch.bool)]
    alike = torch.eye(3, dtype=torch.bool)

    found = kernel.cosines()
    assert_allclose(
        [found.same, found.different], [by_pair[:, alike].mean(), by_pair[:, ~alike].mean()], rtol=1e-12
    )
    assert_allclose(found.means, (means @ means.T)[[0, 0, 1], [1, 2, 2]], rtol=1e-12)


def test_gradients_of_any_loss_come_from_the_kernel() -> None:
    rows, kernel = clustered(5, 3, 9, 0.8, 0.5, 7)
    slope = torch.linspace(-1, 2, 15).double().view(5, 3)
    each = torch.einsum("nk,nkp->np", slope, rows)
    assert_allclose(kernel.sample_gram(slope), each @ each.T, rtol=1e-10, atol=1e-12)


def test_one_sample_has_no_residuals() -> None:
    kernel = clustered(1, 3, 9, 1.0, 1.0, 0)[1]
    for statistic in (kernel.scales, kernel.cosines):
        with refusal("logits must have at least two samples, got 1"):
            statistic()


def test_outputs_that_are_no_logits_are_refused() -> None:
    with refusal(r"model must return logits \(N, K\), got shape \(4, 2, 3\)"):
        logit_kernel.logit_kernel(nn.Linear(5, 3), torch.ones(4, 2, 5))
