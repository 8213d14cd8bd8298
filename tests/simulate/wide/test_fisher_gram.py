"""The Gram route to the Fisher spectrum against Jacobians by autograd."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from simulate import _limits, _memory
from simulate.eigenvalues import extremes
from simulate.wide import fisher_gram
from tests.simulate.wide.by_autograd import jacobian, network_of, plain

SHAPES = [((3, 2), 4), ((5, 1), 1), ((4, 6, 5, 3), 4), ((2, 3, 3, 3, 3, 2), 2)]


@pytest.mark.parametrize(("widths", "samples"), SHAPES)
def test_eigenvalues_are_those_of_the_fisher_matrix(widths: tuple[int, ...], samples: int) -> None:
    """J^T J / T, P x P, has the eigenvalues of K / T and zeros, or K / T the further zeros."""
    network = network_of(widths, samples)
    j = jacobian(network, plain("erf")).flatten(1, 2)
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
        jacobian(network, plain("relu")).square().sum((1, 2, 3)) / samples,
        rtol=1e-12,
    )
    assert_allclose(fisher_gram.fisher_trace(gram), fisher_gram.fisher_eigenvalues(gram).sum(1), rtol=1e-12)


@pytest.mark.parametrize(("widths", "samples"), SHAPES)
def test_rayleigh_is_the_squared_norm_of_the_mean_gradients(widths: tuple[int, ...], samples: int) -> None:
    network = network_of(widths, samples)
    gram = fisher_gram.gram(network, "tanh")

    mean_gradients = jacobian(network, plain("tanh")).mean(2)
    assert_allclose(fisher_gram.rayleigh(gram), mean_gradients.square().sum(2).mean(1), rtol=1e-12)
    assert (fisher_gram.rayleigh(gram) <= fisher_gram.fisher_eigenvalues(gram)[:, -1] * (1 + 1e-12)).all()


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
    j = jacobian(network, plain("softplus"))[0].flatten(0, 1)
    j = j if biases else j[:, : sum(w[0].numel() for w in network.weights)]
    vectors = torch.from_numpy(np.random.default_rng(0).standard_normal((3, len(j))))
    expected = vectors @ j @ j.T / samples

    gram = fisher_gram.gram(network, "softplus", biases=biases)[0]
    found = fisher_gram.gram_operator(gram)(vectors)
    assert_allclose(found, expected, rtol=0, atol=1e-13 * expected.abs().max().item())


def test_top_eigenvalues_without_a_decomposition() -> None:
    network = network_of((20, 30, 20, 3), samples=25, count=1)
    gram = fisher_gram.gram(network, "relu")
    exact = fisher_gram.fisher_eigenvalues(gram)[0].flip(0)[:4]
    operator = fisher_gram.gram_operator(gram[0])
    found = extremes(operator, np.random.default_rng(0), largest=4, tolerance=1e-8)
    assert (np.abs(found.values - exact.numpy()) <= found.bounds).all()
    assert found.converged.all()


@pytest.mark.parametrize(("widths", "samples"), SHAPES)
def test_trace_of_square_is_the_sum_of_squared_eigenvalues(widths: tuple[int, ...], samples: int) -> None:
    gram = fisher_gram.gram(network_of(widths, samples), "erf")
    expected = fisher_gram.fisher_eigenvalues(gram).square().sum(1)
    assert_allclose(fisher_gram.trace_of_square(gram), expected, rtol=1e-12)


# --- memory


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
