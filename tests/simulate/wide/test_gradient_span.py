"""The span of the top Fisher eigenvectors against eigenvectors and mean gradients by autograd."""

import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor

from simulate.wide import fisher_gram, gradient_span
from tests.simulate.wide.by_autograd import jacobian, network_of, plain


def reference(j: Tensor) -> tuple[Tensor, Tensor]:
    """Return eigenvalues and overlap from matrices of the size of the parameters."""
    flat, mean = j.flatten(0, 1), j.mean(1)
    values, vectors = torch.linalg.eigh(flat.T @ flat / j.shape[1])
    values, vectors = values[-len(mean) :], vectors[:, -len(mean) :]
    basis = torch.linalg.qr(mean.T).Q
    return values, (vectors.T @ basis).square().sum() / len(mean)


@pytest.mark.parametrize("activation", ["relu", "softplus"])
@pytest.mark.parametrize(
    ("widths", "samples"),
    [((4, 6, 5, 3), 4), ((5, 7, 2), 6), ((3, 4, 1), 5), ((1, 1, 1), 3), ((2, 9, 1, 6, 2), 7)],
)
def test_the_span_is_that_of_the_eigenvectors(widths: tuple[int, ...], samples: int, activation: str) -> None:
    network = network_of(widths, samples)
    span = gradient_span.top_span(fisher_gram.gram(network, activation))
    rows = jacobian(network, plain(activation))
    for n in range(2):
        values, overlap = reference(rows[n])
        assert_allclose(span.eigenvalues[n], values, rtol=1e-12)
        assert_allclose(span.overlap[n], overlap, rtol=1e-11)


@pytest.mark.parametrize("outputs", [1, 3])
def test_one_sample_leaves_nothing_but_the_mean_gradients(outputs: int) -> None:
    span = gradient_span.top_span(fisher_gram.gram(network_of((3, 5, outputs), 1), "erf"))
    assert_allclose(span.overlap, 1.0, rtol=1e-12)


@pytest.mark.parametrize(
    "gram",
    [
        fisher_gram.centred(fisher_gram.gram(network_of((3, 5, 2), 4), "erf")),
        torch.ones(1, 2, 2, 1, 1).double(),
        torch.tensor([1e-13, 3.0]).double().diag().view(1, 2, 2, 1, 1),
    ],
)
def test_dependent_gradients_are_refused(gram: Tensor) -> None:
    with pytest.raises(ValueError, match="gram must have linearly independent mean gradients"):
        gradient_span.top_span(gram)


@pytest.mark.parametrize("smallest", [1e-8, 1e-11])
def test_nearly_dependent_gradients_span_enough(smallest: float) -> None:
    gram = torch.diag(torch.tensor([smallest, 3.0]).double()).reshape(1, 2, 2, 1, 1)
    assert_allclose(gradient_span.top_span(gram).overlap, 1.0, rtol=1e-12)
