"""The random logit model: gradients of logits, and the Gauss-Newton matrix that they make."""

import math

import pytest
import torch
from numpy.testing import assert_allclose

from simulate.matrices import ensembles
from tests.simulate.matrices.drawn import MODEL, assert_mean, block_of


def test_independent_logit_gradients_have_their_variances() -> None:
    draws = [ensembles.logit_gradients(block_of(seed=s), **MODEL, orthogonal=False) for s in range(30)]
    c, e = (torch.cat(part) for part in zip(*draws, strict=True))

    assert c.shape == (480, 3, 6) and e.shape == (480, 4, 3, 6)
    assert_mean(c, 0.0)
    assert_mean(e, 0.0)
    assert_mean(c**2, 0.7**2)
    assert_mean(e**2, 1.3**2)
    assert_mean(c[:, 0] * c[:, 1], 0.0)
    assert_mean(e[:, 0] * e[:, 1], 0.0)  # other samples
    assert_mean(e[:, :, 0] * e[:, :, 1], 0.0)  # other logits
    assert_mean(c * e[:, 0], 0.0)


def test_orthogonal_class_means_are_a_scaled_haar_frame() -> None:
    draws = [ensembles.logit_gradients(block_of(seed=s), **MODEL, orthogonal=True)[0] for s in range(60)]
    c = torch.cat(draws)

    gram = torch.eye(3, dtype=torch.float64) * 6 * 0.7**2
    assert_allclose(c @ c.mT, gram.expand(960, 3, 3), atol=1e-13)
    unit = c / (0.7 * math.sqrt(6))
    for row in range(3):  # without the sign fix of the QR factors the first coordinates keep one sign
        assert_mean(unit[:, row, row], 0.0)
        assert_mean(unit[:, row, 0] ** 4, 3 / (6 * 8))


def test_means_do_not_depend_on_the_number_of_samples() -> None:
    few, many = (
        ensembles.logit_gradients(block_of(2), **{**MODEL, "samples": s}, orthogonal=True)[0] for s in (1, 9)
    )
    assert torch.equal(few, many)


@pytest.mark.parametrize("per_sample", [False, True])
def test_gauss_newton_is_the_sum_it_says(per_sample: bool) -> None:
    gradients = block_of(2).normal(4, 3, 5)
    p = torch.rand(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).softmax(-1)
    p = p if per_sample else p[0]
    cov = torch.diag_embed(p) - p[..., :, None] * p[..., None, :]

    expected = sum(gradients[:, s].mT @ (cov[s] if per_sample else cov) @ gradients[:, s] for s in range(4))
    assert_allclose(ensembles.gauss_newton_of_logits(gradients, p), expected / 4, rtol=1e-12, atol=1e-15)


def test_gauss_newton_keeps_its_digits_where_p_is_nearly_one_hot() -> None:
    gradients = block_of(2).normal(1, 2, 3)
    p = torch.tensor([1.0, 1e-14], dtype=torch.float64)

    difference = gradients[:, 0, 0] - gradients[:, 0, 1]
    expected = 1e-14 * difference[:, :, None] * difference[:, None, :]
    assert_allclose(ensembles.gauss_newton_of_logits(gradients, p), expected, rtol=1e-10)
