"""Gram matrices of tangent parameters and of the cross-entropy against Jacobians by autograd."""

import torch
from numpy.testing import assert_allclose

from simulate.wide import fisher_gram, gram_variants, signals
from tests.simulate.wide.by_autograd import jacobian, network_of, plain

VARIANCES = {"weight_variance": 1.9, "bias_variance": 0.3}


def test_without_variances_no_tangent_parameter_moves_the_outputs() -> None:
    zero = gram_variants.tangent_gram(
        network_of((3, 4, 2), 3), "tanh", weight_variance=0.0, bias_variance=0.0
    )
    assert not zero.any()


def test_cross_entropy_eigenvalues_are_those_of_the_fisher_matrix_itself() -> None:
    """F = sum_t J' (diag(g) - g g') J / T, of P by P, from gradients of log g_k weighted with g_k."""
    network = network_of((4, 5, 3), 3)
    logits = signals.forward(network, "tanh").preactivations[-1]
    gram = gram_variants.cross_entropy_gram(fisher_gram.gram(network, "tanh"), logits)
    j = jacobian(network, lambda one: plain("tanh")(one).log_softmax(-1))
    scores = torch.einsum("nksp,nmtp->nkmst", j, j)
    weight = torch.softmax(logits, -1).mT.flatten(1).sqrt()
    dual = scores.transpose(2, 3).reshape(2, 9, 9) * weight[:, :, None] * weight[:, None, :]

    assert_allclose(
        fisher_gram.fisher_eigenvalues(gram), torch.linalg.eigvalsh(dual) / 3, atol=1e-13 * float(dual.max())
    )


def test_a_certain_output_has_no_information() -> None:
    network = network_of((4, 5, 2), 3)
    gram = fisher_gram.gram(network, "relu")
    sure = torch.tensor([800.0, 0.0], dtype=torch.float64).expand(2, 3, 2)
    assert not gram_variants.cross_entropy_gram(gram, sure).any()


def test_averaged_gram_keeps_both_means() -> None:
    network = network_of((4, 6, 3), 5)
    gram = fisher_gram.gram(network, "tanh")
    found = gram_variants.averaged(gram)

    assert found.shape == gram.shape
    assert_allclose(fisher_gram.fisher_trace(found), fisher_gram.fisher_trace(gram), rtol=1e-13)
    assert_allclose(fisher_gram.rayleigh(found), fisher_gram.rayleigh(gram), rtol=1e-13)
    assert len(found[0].unique()) == 3 and not found[:, 0, 1].any()
    assert_allclose(
        gram_variants.averaged(gram[..., :1, :1])[:, 0, 0, 0, 0], gram[..., 0, 0].diagonal(0, 1, 2).mean(1)
    )
