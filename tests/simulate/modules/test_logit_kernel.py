"""Inner products of logit gradients: against the Jacobian itself, and what is made of them against plain loops."""

import math

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn

from simulate import networks
from simulate.modules import logit_kernel
from simulate.modules.logit_kernel import Kernel
from tests.simulate.modules.test_mixed_samples import jacobian


class Convolutional(nn.Module):
    """A convolution, pooling, and an affine layer on several positions: every kind of site that nets here have."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(2, 3, 3, dtype=torch.float64)
        self.last = nn.Linear(12, 4, dtype=torch.float64)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(nn.functional.max_pool2d(self.first(x).relu(), 2).flatten(1))


def filled(model: nn.Module, seed: int) -> nn.Module:
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.from_numpy(rng.standard_normal(p.shape)))
    return model


def cases() -> dict[str, tuple[nn.Module, Tensor]]:
    rng = np.random.default_rng(0)
    return {
        "perceptron": (networks.Mlp((5, 7, 6, 3), rng=rng), torch.from_numpy(rng.standard_normal((6, 5)))),
        "biases": (
            filled(networks.Mlp((5, 4, 3), bias=True, rng=rng), 1),
            torch.from_numpy(rng.standard_normal((6, 5))),
        ),
        "convolution": (filled(Convolutional(), 2), torch.from_numpy(rng.standard_normal((5, 2, 6, 6)))),
    }


@pytest.mark.parametrize("kind", ["perceptron", "biases", "convolution"])
def test_kernel_holds_inner_products_of_the_rows_of_the_jacobian(kind: str) -> None:
    model, x = cases()[kind]
    rows = jacobian(model, x).view(*model(x).shape, -1)
    found = logit_kernel.logit_kernel(model, x)

    assert found.dim == rows.shape[2]
    assert_allclose(found.logits, model(x).detach(), rtol=1e-13)
    assert_allclose(found.gram, torch.einsum("nkp,mlp->nkml", rows, rows), rtol=1e-11, atol=1e-11)


def clustered(samples: int, classes: int, dim: int, c: float, e: float, seed: int) -> tuple[Tensor, Kernel]:
    rng = np.random.default_rng(seed)
    means, noise = rng.standard_normal((classes, dim)), rng.standard_normal((samples, classes, dim))
    rows = torch.from_numpy(c * means + e * noise)
    logits = torch.from_numpy(rng.standard_normal((samples, classes)))
    return rows, Kernel(logits, torch.einsum("nkp,mlp->nkml", rows, rows), dim)


def test_scales_are_unbiased() -> None:
    """Against moments taken from the gradients themselves; and the truth within five standard errors."""
    found = []
    for seed in range(40):
        rows, kernel = clustered(4, 3, 200, 0.3, 0.7, seed)
        scales, means = kernel.scales(), rows.mean(0)
        error = (rows - means).square().sum() / (3 * 3 * 200)
        assert_allclose(scales.sigma_e**2, error, rtol=1e-11)
        assert_allclose(scales.sigma_c**2, means.square().mean() - error / 4, rtol=1e-10)
        assert_allclose(scales.lengths, means.norm(dim=1), rtol=1e-11)
        found.append((scales.sigma_c**2, scales.sigma_e**2))
    mean, spread = np.mean(found, axis=0), np.std(found, axis=0) / math.sqrt(40)
    assert (np.abs(mean - [0.09, 0.49]) < 5 * spread).all()


def test_scales_never_turn_imaginary() -> None:
    """Two samples with opposite gradients have no mean at all."""
    rows = torch.tensor([[[1.0, 2.0]], [[-1.0, -2.0]]]).double()
    kernel = Kernel(torch.zeros(2, 1), torch.einsum("nkp,mlp->nkml", rows, rows), 2)

    assert kernel.scales().sigma_c == 0.0 and kernel.scales().sigma_e > 0


def test_cosines_are_means_over_pairs() -> None:
    rows, kernel = clustered(5, 3, 9, 0.8, 0.5, 7)
    unit = rows / rows.norm(dim=2, keepdim=True)
    pairs = [(n, m) for n in range(5) for m in range(5) if n != m]
    same = [float(unit[n, k] @ unit[m, k]) for n, m in pairs for k in range(3)]
    different = [
        float(unit[n, k] @ unit[m, j]) for n, m in pairs for k in range(3) for j in range(3) if j != k
    ]
    means = rows.mean(0)
    apart = [
        float(nn.functional.cosine_similarity(means[k], means[j], dim=0)) for k, j in ((0, 1), (0, 2), (1, 2))
    ]

    found = kernel.cosines()
    assert_allclose([found.same, found.different], [np.mean(same), np.mean(different)], rtol=1e-12)
    assert_allclose(found.means, apart, rtol=1e-12)


def test_gradients_of_any_loss_come_from_the_kernel() -> None:
    model, x = cases()["perceptron"]
    labels = torch.tensor([0, 2, 1, 1, 0, 2])
    logits = model(x)
    slope = (logits.softmax(-1) - nn.functional.one_hot(labels, 3)).detach()
    each = torch.stack(
        [
            torch.cat(
                [g.flatten() for g in torch.autograd.grad(loss, list(model.parameters()), retain_graph=True)]
            )
            for loss in nn.functional.cross_entropy(logits, labels, reduction="none")
        ]
    )

    assert_allclose(
        logit_kernel.logit_kernel(model, x).sample_gram(slope), each @ each.T, rtol=1e-10, atol=1e-12
    )


def test_one_sample_has_no_residuals() -> None:
    kernel = clustered(1, 3, 9, 1.0, 1.0, 0)[1]
    for statistic in (kernel.scales, kernel.cosines):
        with pytest.raises(ValueError, match="logits must be of at least two samples, got 1"):
            statistic()


def test_outputs_that_are_no_logits_are_refused() -> None:
    with pytest.raises(ValueError, match=r"model must return logits \(N, K\), got shape \(4, 2, 3\)"):
        logit_kernel.logit_kernel(nn.Linear(5, 3), torch.ones(4, 2, 5))
