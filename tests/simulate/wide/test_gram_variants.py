"""Gram matrices of tangent parameters and of the cross-entropy against Jacobians by autograd."""

import math

import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor

from simulate import _memory
from simulate.activations import ACTIVATIONS
from simulate.monte_carlo import Block, Point, stream
from simulate.wide import fisher_gram, gram_variants, signals
from simulate.wide.signals import WideNetwork

VARIANCES = {"weight_variance": 1.9, "bias_variance": 0.3}
SHAPES = [
    ((3, 2), 4),
    ((5, 1), 1),
    ((1, 1, 1), 2),
    ((4, 6, 5, 3), 4),
    ((2, 3, 1, 3, 2), 2),
]


def network_of(widths: tuple[int, ...], samples: int) -> WideNetwork:
    block = Block(tuple(stream(0, "test", Point(), i) for i in range(2)))
    return signals.wide_network(block, widths=widths, samples=samples, **VARIANCES)


def gram_by_autograd(network: WideNetwork, activation: str, read) -> Tensor:
    """Of the standard parameters; `read` turns these into a network and its outputs into what is differentiated."""

    def outputs(weights, offsets, inputs):
        one = WideNetwork(
            weights=tuple(w[None] for w in weights),
            biases=tuple(b[None] for b in offsets),
            inputs=inputs[None],
        )
        network, transform = read(one)
        return transform(signals.forward(network, activation).preactivations[-1])[0].T

    def flat(n: int) -> Tensor:
        parameters = tuple(w[n] for w in network.weights), tuple(b[n] for b in network.biases)
        parts = torch.func.jacrev(outputs, argnums=(0, 1))(*parameters, network.inputs[n])
        return torch.cat([part.flatten(2) for part in parts[0] + parts[1]], dim=2)

    j = torch.stack([flat(n) for n in range(len(network.inputs))])
    return torch.einsum("nksp,nmtp->nkmst", j, j)


def scaled(weight_variance: float, bias_variance: float):
    """The network of standard normal parameters."""

    def read(one: WideNetwork):
        weights = tuple(math.sqrt(weight_variance / w.shape[-1]) * w for w in one.weights)
        biases = tuple(math.sqrt(bias_variance) * b for b in one.biases)
        return WideNetwork(weights=weights, biases=biases, inputs=one.inputs), lambda f: f

    return read


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize(("widths", "samples"), SHAPES)
def test_tangent_gram_is_that_of_the_standard_parameters(
    widths: tuple[int, ...], samples: int, activation: str
) -> None:
    standard = network_of(widths, samples)
    network, _ = scaled(1.7, 0.6)(standard)
    found = gram_variants.tangent_gram(network, activation, weight_variance=1.7, bias_variance=0.6)
    expected = gram_by_autograd(standard, activation, scaled(1.7, 0.6))

    assert found.shape == expected.shape
    assert_allclose(found, expected, rtol=1e-13, atol=1e-13 * float(expected.abs().max()))


def test_without_variances_no_tangent_parameter_moves_the_outputs() -> None:
    zero = gram_variants.tangent_gram(
        network_of((3, 4, 2), 3), "tanh", weight_variance=0.0, bias_variance=0.0
    )
    assert not zero.any()


@pytest.mark.parametrize("activation", ["relu", "tanh", "softplus"])
@pytest.mark.parametrize(("widths", "samples"), SHAPES)
def test_cross_entropy_gram_is_that_of_twice_the_root_of_the_softmax(
    widths: tuple[int, ...], samples: int, activation: str
) -> None:
    network = network_of(widths, samples)
    logits = signals.forward(network, activation).preactivations[-1]
    gram = fisher_gram.gram(network, activation)
    found = gram_variants.cross_entropy_gram(gram, logits)
    expected = gram_by_autograd(
        network, activation, lambda one: (one, lambda f: 2 * torch.softmax(f, -1).sqrt())
    )

    assert_allclose(found, expected, rtol=1e-13, atol=1e-13 * float(gram.abs().max()))


def test_cross_entropy_eigenvalues_are_those_of_the_fisher_matrix_itself() -> None:
    """F = sum_t J' (diag(g) - g g') J / T, of P by P, from gradients of log g_k weighted with g_k."""
    network = network_of((4, 5, 3), 3)
    logits = signals.forward(network, "tanh").preactivations[-1]
    gram = gram_variants.cross_entropy_gram(fisher_gram.gram(network, "tanh"), logits)
    scores = gram_by_autograd(network, "tanh", lambda one: (one, lambda f: torch.log_softmax(f, -1)))
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


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weight_variance": -1.0}, r"weight_variance must be non-negative and finite, got -1\.0"),
        ({"bias_variance": math.nan}, "bias_variance must be non-negative and finite, got nan"),
    ],
)
def test_bad_variances_are_refused(changes: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gram_variants.tangent_gram(network_of((3, 2), 2), "relu", **(VARIANCES | changes))


def test_logits_of_another_shape_are_refused() -> None:
    network = network_of((4, 5, 3), 2)
    gram = fisher_gram.gram(network, "relu")
    with pytest.raises(ValueError, match=r"logits must be of shape \(2, 2, 3\), got \(2, 3, 2\)"):
        gram_variants.cross_entropy_gram(gram, torch.zeros(2, 3, 2))


def test_a_gram_beyond_the_memory_is_refused_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_memory, "available", lambda device: 2**26)
    inputs = torch.zeros(1, 1, 1, dtype=torch.float64).expand(2, 3000, 1)
    network = WideNetwork(
        weights=(torch.zeros(2, 1, 1).double(),), biases=(torch.zeros(2, 1).double(),), inputs=inputs
    )
    with pytest.raises(ValueError, match=r"2 replicates, 1 outputs and 3000 samples need about 0\.3 GiB"):
        gram_variants.tangent_gram(network, "relu", **VARIANCES)


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
