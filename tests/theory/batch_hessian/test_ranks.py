"""Rank bounds against the Hessians of small networks, exact by a complex step through the gradient."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from theory.batch_hessian.ranks import (
    dataset_rank_bound,
    ggn_rank_bound,
    sample_rank_bound,
    sample_rank_bound_of_paths,
)


class Network:
    """Fully connected tanh network with softmax cross-entropy, parameters flat."""

    def __init__(self, inputs: int, widths: tuple[int, ...], *, biases: bool) -> None:
        self.fans, self.biases = list(zip((inputs, *widths[:-1]), widths, strict=True)), biases
        self.dim = sum(n * (m + biases) for m, n in self.fans)
        self.outputs = widths[-1]

    def layers(self, theta: np.ndarray) -> list[np.ndarray]:
        sizes = [n * (m + self.biases) for m, n in self.fans]
        parts = np.split(theta, np.cumsum(sizes)[:-1])
        return [part.reshape(n, m + self.biases) for part, (m, n) in zip(parts, self.fans, strict=True)]

    def gradient(self, theta: np.ndarray, x: np.ndarray, label: int) -> np.ndarray:
        return self.backward(theta, x, lambda p: p - np.eye(self.outputs)[label])

    def backward(self, theta: np.ndarray, x: np.ndarray, error: Any) -> np.ndarray:
        layers, inputs, h = self.layers(theta), [], x
        for i, w in enumerate(layers):
            inputs.append(np.append(h, 1.0) if self.biases else h)
            h = w @ inputs[-1]
            h = np.tanh(h) if i < len(layers) - 1 else h
        p = np.exp(h) / np.exp(h).sum()
        delta, found = error(p), []
        for i, w in reversed(list(enumerate(layers))):
            found.append(np.outer(delta, inputs[i]).ravel())
            hidden = inputs[i][: self.fans[i][0]]
            delta = (w[:, : self.fans[i][0]].T @ delta) * (1 - hidden**2 if i else 1.0)
        return np.concatenate(found[::-1])

    def hessian(self, theta: np.ndarray, x: np.ndarray, label: int) -> np.ndarray:
        steps = 1e-30j * np.eye(self.dim)
        return np.array([self.gradient(theta + step, x, label).imag / 1e-30 for step in steps])

    def gauss_newton(self, theta: np.ndarray, x: np.ndarray) -> np.ndarray:
        jacobian = np.array([self.backward(theta, x, lambda _, e=e: e) for e in np.eye(self.outputs)])
        kept: list[np.ndarray] = []
        self.backward(theta, x, lambda p: kept.append(p) or p)
        return jacobian.T @ (np.diag(kept[0]) - np.outer(kept[0], kept[0])) @ jacobian


def rank(matrix: np.ndarray) -> int:
    return int(np.linalg.matrix_rank(matrix, tol=1e-11 * np.linalg.norm(matrix, 2)))


def draws(network: Network, samples: int) -> tuple[np.ndarray, list[tuple[np.ndarray, int]]]:
    rng = np.random.default_rng(7)
    inputs = network.fans[0][0]
    data = [(rng.standard_normal(inputs), int(rng.integers(network.outputs))) for _ in range(samples)]
    return rng.standard_normal(network.dim) * 0.7, data


@pytest.mark.parametrize("biases", [True, False])
@pytest.mark.parametrize(("inputs", "widths"), [(7, (3, 3)), (6, (4, 3, 3)), (5, (4,)), (9, (2, 2, 2))])
def test_one_sample_attains_its_bound(inputs: int, widths: tuple[int, ...], biases: bool) -> None:
    network = Network(inputs, widths, biases=biases)
    theta, data = draws(network, 1)
    found = network.hessian(theta, *data[0])

    assert np.allclose(found, found.T, atol=1e-12)
    bound = sample_rank_bound(widths, biases=biases)
    assert rank(found) == bound
    assert bound <= sample_rank_bound_of_paths(inputs, widths)


@pytest.mark.parametrize("biases", [True, False])
def test_ranks_add_over_samples_up_to_the_symmetries(biases: bool) -> None:
    """A shift common to all logits is flat: one direction per input of the last layer, its bias included."""
    network = Network(6, (4, 3), biases=biases)
    one, flat = sample_rank_bound((4, 3), biases=biases), 4 + biases
    for samples in (1, 2, 3, 60):
        theta, data = draws(network, samples)
        mean = np.mean([network.hessian(theta, *sample) for sample in data], axis=0)
        bound = dataset_rank_bound(one, samples=samples, dim=network.dim, symmetries=flat)
        assert rank(mean) <= bound
        assert rank(mean) == bound if samples in (1, 60) else rank(mean) > one
    assert bound == network.dim - flat > one


def test_a_batch_of_gauss_newton_matrices_attains_its_bound() -> None:
    """d_y - 1 directions for each sample, where section 6 of the paper has d_y; up to the symmetries."""
    network = Network(8, (6, 3), biases=True)
    for batch in (1, 4, 16):
        theta, data = draws(network, batch)
        mean = np.mean([network.gauss_newton(theta, x) for x, _ in data], axis=0)
        assert rank(mean) == ggn_rank_bound(batch, 3, network.dim) < 3 * batch


def test_counterexample_to_the_bound_of_a_data_set() -> None:
    """24-24-2 without biases: rank 600 was measured, 4 * 2 * (24 + 2 + 24) = 400 is the bound of one sample."""
    assert sample_rank_bound_of_paths(24, (24, 2)) == 400
    assert dataset_rank_bound(400, samples=6000, dim=624, symmetries=24) == 600
    assert sample_rank_bound((24, 2), biases=False) == 48


def test_integers_in_any_guise_are_counted() -> None:
    assert ggn_rank_bound(np.int64(3), 4.0, 100) == 9
    assert ggn_rank_bound(5, 1, 100) == 0 and sample_rank_bound((4, 1)) == 0
    assert dataset_rank_bound(0, samples=3, dim=5) == 0
    assert isinstance(sample_rank_bound([np.int32(4), 2]), int)
    assert ggn_rank_bound(10**18, 10**18, 10**18) == 10**18


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ggn_rank_bound(0, 2, 3), "batch_size must be an integer >= 1, got 0"),
        (lambda: ggn_rank_bound(1, 0, 3), "outputs must be an integer >= 1, got 0"),
        (lambda: ggn_rank_bound(1, 2, 2.5), "dim must be an integer >= 1, got 2.5"),
        (lambda: ggn_rank_bound(1, 2, math.nan), "dim must be an integer >= 1"),
        (lambda: ggn_rank_bound(np.array([1, 2]), 2, 3), "batch_size must be an integer >= 1"),
        (lambda: sample_rank_bound(()), r"widths must be a sequence of integers >= 1, got \(\)"),
        (lambda: sample_rank_bound("24"), "widths must be a sequence of integers >= 1, got '24'"),
        (lambda: sample_rank_bound(24), "widths must be a sequence of integers >= 1, got 24"),
        (lambda: sample_rank_bound((4, 0)), "widths must be an integer >= 1, got 0"),
        (lambda: sample_rank_bound((4, 2), biases=1), "biases must be True or False, got 1"),
        (lambda: sample_rank_bound_of_paths(0, (4, 2)), "inputs must be an integer >= 1, got 0"),
        (lambda: dataset_rank_bound(-1, samples=2, dim=3), "sample_rank must be an integer >= 0, got -1"),
        (lambda: dataset_rank_bound(1, samples=0, dim=3), "samples must be an integer >= 1, got 0"),
        (
            lambda: dataset_rank_bound(1, samples=2, dim=3, symmetries=4),
            "symmetries must be at most 3, got 4",
        ),
    ],
)
def test_what_is_no_number_of_things_is_refused(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
