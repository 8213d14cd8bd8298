"""Gram matrices of tangent parameters and of the cross-entropy against Jacobians by autograd."""

import torch

from simulate.wide import fisher_gram, gram_variants
from tests.simulate.wide.by_autograd import network_of


def test_without_variances_no_tangent_parameter_moves_the_outputs() -> None:
    nothing = gram_variants.tangent_overlap(weight_variance=0.0, bias_variance=0.0)
    assert not fisher_gram.gram(network_of((3, 4, 2), 3), "tanh", overlap=nothing).any()


def test_a_certain_output_has_no_information() -> None:
    network = network_of((4, 5, 2), 3)
    gram = fisher_gram.gram(network, "relu")
    sure = torch.tensor([800.0, 0.0], dtype=torch.float64).expand(2, 3, 2)
    assert not gram_variants.cross_entropy_gram(gram, sure).any()
