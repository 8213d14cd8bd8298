"""The Gram route to the Fisher spectrum against Jacobians by autograd."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor

from benchmarks.fisher import peak_bytes
from simulate import _limits, _memory, operators
from simulate.activations import ACTIVATIONS
from simulate.eigenvalues import extremes
from simulate.monte_carlo import Block, Point, stream
from simulate.objectives import Objective
from simulate.wide import fisher_gram, signals
from simulate.wide.signals import WideNetwork

SHAPES = [
    ((3, 2), 4),
    ((5, 1), 1),
    ((4, 6, 1), 3),
    ((4, 6, 5, 3), 4),
    ((3, 2, 7, 4, 2), 5),
    ((2, 3, 3, 3, 3, 2), 2),
]


def network_of(widths=(4, 6, 5, 3), samples: int = 4, count: int = 2) -> WideNetwork:
    block = Block(tuple(stream(0, "test", Point(), i) for i in range(count)))
    return signals.wide_network(block, widths=widths, samples=samples, weight_variance=1.9, bias_variance=0.3)


def jacobian(network: WideNetwork, activation: str, *, biases: bool = True) -> Tensor:
    """Derivatives of every output at every sample by all parameters, (n, C, T, P), through autograd."""

    def outputs(weights, offsets, inputs):
        one = WideNetwork(
            weights=tuple(w[None] for w in weights),
            biases=tuple(b[None] for b in offsets),
            inputs=inputs[None],
        )
        return signals.forward(one, activation).preactivations[-1][0].T

    def rows(n: int) -> Tensor:
        parameters = tuple(w[n] for w in network.weights), tuple(b[n] for b in network.biases)
        parts = torch.func.jacrev(outputs, argnums=(0, 1))(*parameters, network.inputs[n])
        kept = parts[0] + parts[1] if biases else parts[0]
        return torch.cat([part.flatten(2) for part in kept], dim=2)

    return torch.stack([rows(n) for n in range(len(network.inputs))])


@pytest.mark.parametrize("biases", [True, False])
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize(("widths", "samples"), SHAPES)
def test_gram_is_the_product_of_jacobians(
    widths: tuple[int, ...], samples: int, activation: str, biases: bool
) -> None:
    network = network_of(widths, samples)
    j = jacobian(network, activation, biases=biases)

    measured = fisher_gram.gram(network, activation, biases=biases)

    assert measured.shape == (2, widths[-1], widths[-1], samples, samples)
    expected = torch.einsum("nksp,nmtp->nkmst", j, j)
    assert_allclose(measured, expected, rtol=0, atol=1e-13 * expected.abs().max().item())


def test_gram_takes_one_activation_per_hidden_layer() -> None:
    network = network_of()
    expected = jacobian(network, ["tanh", "relu"])
    expected = torch.einsum("nksp,nmtp->nkmst", expected, expected)
    assert_allclose(fisher_gram.gram(network, ["tanh", "relu"]), expected, atol=1e-12)


@pytest.mark.parametrize(("widths", "samples"), SHAPES)
def test_eigenvalues_are_those_of_the_fisher_matrix(widths: tuple[int, ...], samples: int) -> None:
    """J^T J / T, P x P, has the eigenvalues of K / T and zeros, or K / T the further zeros."""
    network = network_of(widths, samples)
    j = jacobian(network, "erf").flatten(1, 2)
    fisher = torch.linalg.eigvalsh(j.mT @ j / samples)

    measured = fisher_gram.fisher_eigenvalues(fisher_gram.gram(network, "erf"))

    assert measured.shape == (2, widths[-1] * samples)
    common = min(measured.shape[1], fisher.shape[1])
    scale = fisher.max().item()
    assert_allclose(measured[:, -common:], fisher[:, -common:], rtol=0, atol=1e-13 * scale)
    for rest in (measured[:, :-common], fisher[:, :-common]):
        assert_allclose(rest, 0.0, atol=1e-13 * scale)


@pytest.mark.parametrize(("widths", "samples"), SHAPES)
def test_trace_is_that_of_the_fisher_matrix(widths: tuple[int, ...], samples: int) -> None:
    network = network_of(widths, samples)
    gram = fisher_gram.gram(network, "relu")

    assert_allclose(
        fisher_gram.fisher_trace(gram),
        jacobian(network, "relu").square().sum((1, 2, 3)) / samples,
        rtol=1e-12,
    )
    assert_allclose(fisher_gram.fisher_trace(gram), fisher_gram.fisher_eigenvalues(gram).sum(1), rtol=1e-12)


@pytest.mark.parametrize(("widths", "samples"), SHAPES)
def test_rayleigh_is_the_squared_norm_of_the_mean_gradients(widths: tuple[int, ...], samples: int) -> None:
    network = network_of(widths, samples)
    gram = fisher_gram.gram(network, "tanh")

    mean_gradients = jacobian(network, "tanh").mean(2)
    assert_allclose(fisher_gram.rayleigh(gram), mean_gradients.square().sum(2).mean(1), rtol=1e-12)
    assert (fisher_gram.rayleigh(gram) <= fisher_gram.fisher_eigenvalues(gram)[:, -1] * (1 + 1e-12)).all()


@pytest.mark.parametrize(("widths", "samples"), SHAPES)
def test_centred_gram_is_that_of_mean_subtracted_outputs(widths: tuple[int, ...], samples: int) -> None:
    network = network_of(widths, samples)
    gram = fisher_gram.gram(network, "sigmoid")
    j = jacobian(network, "sigmoid")
    j = j - j.mean(2, keepdim=True)

    centred = fisher_gram.centred(gram)
    assert_allclose(
        centred, torch.einsum("nksp,nmtp->nkmst", j, j), rtol=0, atol=1e-13 * gram.abs().max().item()
    )
    assert_allclose(fisher_gram.rayleigh(centred), 0.0, atol=1e-13 * gram.abs().max().item())


@pytest.mark.parametrize(
    ("widths", "samples"), [((4, 6, 1), 9), ((4, 6, 5, 3), 4), ((3, 5, 4), 7), ((3, 2), 5)]
)
@pytest.mark.parametrize("tile", [1, 2, 3, 5, 8])
def test_tiles_of_any_size_give_the_same_gram(
    widths: tuple[int, ...], samples: int, tile: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = network_of(widths, samples)
    whole = fisher_gram.gram(network, "tanh")

    monkeypatch.setattr(fisher_gram, "_TILE", tile)
    found = fisher_gram.gram(network, "tanh")

    assert_allclose(found, whole, rtol=1e-12, atol=1e-13)
    assert_allclose(found, found.permute(0, 2, 1, 4, 3), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("biases", [True, False])
@pytest.mark.parametrize(("widths", "samples"), SHAPES)
def test_operators_multiply_by_the_fisher_dual(widths: tuple[int, ...], samples: int, biases: bool) -> None:
    network = network_of(widths, samples, count=1)
    j = jacobian(network, "softplus", biases=biases)[0].flatten(0, 1)
    vectors = torch.from_numpy(np.random.default_rng(0).standard_normal((3, len(j))))
    expected = vectors @ j @ j.T / samples

    gram = fisher_gram.gram(network, "softplus", biases=biases)[0]
    for operator in (
        fisher_gram.gram_operator(gram),
        fisher_gram.network_operator(network, "softplus", biases=biases),
    ):
        assert_allclose(operator(vectors), expected, rtol=0, atol=1e-13 * expected.abs().max().item())


def test_eigenvalues_are_those_of_the_fisher_matrix_of_any_model() -> None:
    network = network_of(count=1)

    def model(parameters: Sequence[Tensor], inputs: Tensor) -> Tensor:
        parts = [p[None] for p in parameters]
        one = WideNetwork(weights=tuple(parts[:3]), biases=tuple(parts[3:]), inputs=inputs[None])
        return signals.forward(one, "tanh").preactivations[-1][0]

    data = network.inputs[0], torch.zeros(4, 3)
    parameters = [p[0] for p in (*network.weights, *network.biases)]
    fisher = operators.fisher(Objective(model, data, torch.nn.MSELoss(), parameters=parameters)).dense()
    found = fisher_gram.fisher_eigenvalues(fisher_gram.gram(network, "tanh"))[0]
    assert_allclose(torch.linalg.eigvalsh(fisher)[-len(found) :], found, rtol=1e-10, atol=1e-13)


def test_top_eigenvalues_without_a_decomposition() -> None:
    network = network_of((20, 30, 20, 3), samples=25, count=1)
    gram = fisher_gram.gram(network, "relu")
    exact = fisher_gram.fisher_eigenvalues(gram)[0].flip(0)[:4]
    for operator in (fisher_gram.gram_operator(gram[0]), fisher_gram.network_operator(network, "relu")):
        found = extremes(operator, np.random.default_rng(0), largest=4, tolerance=1e-8)
        assert (np.abs(found.values - exact.numpy()) <= found.bounds).all()
        assert found.converged.all()


@pytest.mark.parametrize(("widths", "samples"), SHAPES)
def test_trace_of_square_is_the_sum_of_squared_eigenvalues(widths: tuple[int, ...], samples: int) -> None:
    gram = fisher_gram.gram(network_of(widths, samples), "erf")
    expected = fisher_gram.fisher_eigenvalues(gram).square().sum(1)
    assert_allclose(fisher_gram.trace_of_square(gram), expected, rtol=1e-12)


def test_single_precision_is_kept() -> None:
    network = network_of().to(torch.float32)
    gram = fisher_gram.gram(network, "tanh")
    operator = fisher_gram.network_operator(network_of(count=1).to(torch.float32), "tanh")
    exact = fisher_gram.gram(network.to(torch.float64), "tanh")

    assert gram.dtype == operator(torch.ones(1, 12)).dtype == torch.float32
    assert_allclose(gram, exact, rtol=0, atol=1e-5 * exact.max().item())


def test_an_operator_is_of_one_network() -> None:
    with pytest.raises(ValueError, match="network must be a single one, got 2 replicates"):
        fisher_gram.network_operator(network_of(), "relu")


def test_a_replicate_has_the_same_gram_alone_and_in_a_block() -> None:
    together = fisher_gram.gram(network_of(count=3), "gelu")
    assert_allclose(fisher_gram.gram(network_of(count=1), "gelu")[0], together[0], rtol=1e-12, atol=1e-13)


def test_gram_leaves_the_network_alone() -> None:
    network = network_of()
    kept = [t.clone() for t in (*network.weights, *network.biases, network.inputs)]
    fisher_gram.gram(network, "relu")
    assert all(map(torch.equal, (*network.weights, *network.biases, network.inputs), kept))


# --- memory


def test_gram_beyond_the_memory_is_refused_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_memory, "available", lambda device: 2**26)
    inputs = torch.zeros(1, 1, 1, dtype=torch.float64).expand(2, 3000, 1)  # no memory of its own
    network = WideNetwork(
        weights=(torch.zeros(2, 1, 1).double(),), biases=(torch.zeros(2, 1).double(),), inputs=inputs
    )
    with pytest.raises(
        ValueError,
        match=r"2 replicates, 1 outputs and 3000 samples need about 0.3 GiB, got 0.1 GiB; use .* network_operator",
    ):
        fisher_gram.gram(network, "relu")


def test_the_memory_that_counts_is_that_of_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(_memory, "available", lambda device: asked.append(device) or 0)
    network = network_of(count=1).to("meta")
    large = replace(network, inputs=network.inputs[:, :1].expand(1, 3000, 4))
    with pytest.raises(ValueError, match="the Gram matrices of 1 replicates"):
        fisher_gram.gram(large, "relu")
    assert [device.type for device in asked] == ["meta"]


def test_single_precision_needs_half_the_memory() -> None:
    network = network_of()
    half = fisher_gram._bytes_needed(network.to(torch.float32), 2)
    assert 2 * half == fisher_gram._bytes_needed(network, 2)


@pytest.mark.parametrize(
    ("widths", "samples"), [((30, 40, 5), 60), ((400, 300, 300, 1), 20), ((10, 300, 10), 40)]
)
def test_the_estimate_covers_the_peak(widths: tuple[int, ...], samples: int) -> None:
    """What torch really allocates stays below the estimate, and is at least 0.4 of it."""
    network = network_of(widths, samples)
    peak = peak_bytes(lambda: fisher_gram.gram(network, "tanh"))
    assert 0.4 <= peak / fisher_gram._bytes_needed(network, 2) <= 1.0


def test_memory_is_read_from_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    here = torch.device("cpu")
    monkeypatch.setattr(_limits, "memory", lambda: float("inf"))
    told = "MemTotal: 9 kB\nMemAvailable:       4 kB\n"
    monkeypatch.setattr(Path, "read_text", lambda self: told)
    assert _memory.available(here) == 4096

    def refuse(*args):
        raise OSError

    monkeypatch.setattr(Path, "read_text", refuse)
    monkeypatch.setattr(os, "sysconf", lambda name: {"SC_PHYS_PAGES": 3, "SC_PAGE_SIZE": 4096}[name])
    assert _memory.available(here) == 3 * 4096
    monkeypatch.setattr(os, "sysconf", refuse)
    assert _memory.available(here) == float("inf")


def test_memory_of_a_gpu_is_what_is_free_and_what_torch_keeps_for_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gpu = torch.device("cuda:3")
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (7, 24))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 5)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 3)
    monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", lambda *bound: None)
    monkeypatch.setattr(_memory, "_shares", {})
    assert _memory.available(gpu) == 7 + 5 - 3
    _memory.bound(gpu, 0.25)
    assert _memory.available(gpu) == 24 / 4 - 3
    assert _memory.available(torch.device("cuda:1")) == 9


def test_unknown_activation_is_refused() -> None:
    with pytest.raises(ValueError, match=r"activation must be one of .*got 'swish'"):
        fisher_gram.gram(network_of(), "swish")
