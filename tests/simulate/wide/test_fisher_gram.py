"""The Gram route to the Fisher spectrum against Jacobians by autograd."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from simulate import _limits, _memory
from simulate.wide import fisher_gram
from tests.simulate.wide.by_autograd import jacobian, network_of, plain

SHAPES = [((3, 2), 4), ((5, 1), 1), ((4, 6, 5, 3), 4), ((2, 3, 3, 3, 3, 2), 2)]


@pytest.mark.parametrize("activation", ["erf", "relu"])
@pytest.mark.parametrize(("widths", "samples"), SHAPES)
def test_spectrum_is_that_of_the_fisher_matrix(
    widths: tuple[int, ...], samples: int, activation: str
) -> None:
    """J^T J / T, P x P, has the eigenvalues of K / T and zeros, or K / T the further zeros."""
    network = network_of(widths, samples)
    gram, rows = fisher_gram.gram(network, activation), jacobian(network, plain(activation))
    j = rows.flatten(1, 2)
    fisher = torch.linalg.eigvalsh(j.mT @ j / samples)

    measured = fisher_gram.fisher_eigenvalues(gram)

    assert measured.shape == (2, widths[-1] * samples)
    common, scale = min(measured.shape[1], fisher.shape[1]), fisher.max().item()
    assert_allclose(measured[:, -common:], fisher[:, -common:], rtol=0, atol=1e-13 * scale)
    for rest in (measured[:, :-common], fisher[:, :-common]):
        assert_allclose(rest, 0.0, atol=1e-13 * scale)
    assert_allclose(fisher_gram.fisher_trace(gram), j.square().sum((1, 2)) / samples, rtol=1e-12)
    assert_allclose(fisher_gram.trace_of_square(gram), fisher.square().sum(1), rtol=1e-12)
    assert_allclose(fisher_gram.rayleigh(gram), rows.mean(2).square().sum(2).mean(1), rtol=1e-12)

    vectors = torch.from_numpy(np.random.default_rng(0).standard_normal((3, j.shape[1])))
    expected = vectors @ j[0] @ j[0].T / samples
    found = fisher_gram.gram_operator(gram[0])(vectors)
    assert_allclose(found, expected, rtol=0, atol=1e-13 * expected.abs().max().item())


@pytest.mark.parametrize(("widths", "samples"), [((4, 6, 1), 9), ((4, 6, 5, 3), 4), ((3, 5, 4), 7)])
@pytest.mark.parametrize("tile", [1, 3, 8])
def test_tiles_of_any_size_give_the_same_gram(
    widths: tuple[int, ...], samples: int, tile: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = network_of(widths, samples)
    whole = fisher_gram.gram(network, "tanh")

    monkeypatch.setattr(fisher_gram, "_TILE", tile)
    found = fisher_gram.gram(network, "tanh")

    assert_allclose(found, whole, rtol=1e-12, atol=1e-13)
    assert_allclose(found, found.permute(0, 2, 1, 4, 3), rtol=1e-13, atol=1e-13)


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
