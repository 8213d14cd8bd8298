"""Blocks of one layer against dense Hessians by torch.autograd."""

import math

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from simulate.perceptrons.layer_blocks import LayerBlock, layer_block
from tests.simulate.small_perceptrons import (
    SCALES,
    WIDTHS,
    assert_same,
    dense,
    flat,
    flat_logits,
    problem,
)

NET = problem(3)
DEAD = 7
"""The sample at which no unit of the second hidden layer is on."""


def matrix_of(block: LayerBlock) -> torch.Tensor:
    """exp(-log_scale) B, the weights row by row."""
    products = (block.rows[:, :, None] * block.inputs[:, None, :]).flatten(1)
    return products.T @ products


def log_trace(block: LayerBlock) -> float:
    return block.log_scale + math.log(float(matrix_of(block).trace()))


LAYERS = [(depth, layer) for depth in WIDTHS for layer in range(depth)]


@pytest.mark.parametrize(("depth", "layer"), LAYERS)
@pytest.mark.parametrize(("alpha", "temperature"), SCALES)
def test_the_block_is_that_of_the_hessian(depth: int, layer: int, alpha: float, temperature: float) -> None:
    net = problem(depth)
    block = layer_block(net.weights, net.x, layer=layer, alpha=alpha, temperature=temperature)
    ends = np.cumsum([0, *(weight.numel() for weight in net.weights)])
    own = slice(ends[layer], ends[layer + 1])
    expected = dense(depth, alpha, temperature)[1][own, own]
    assert_same(math.exp(block.log_scale) * matrix_of(block), expected, 1e-11)


each_layer = pytest.mark.parametrize("layer", range(3))


@each_layer
def test_the_eigenvector_is_that_of_the_dense_block(layer: int) -> None:
    block = layer_block(NET.weights, NET.x, layer=layer, alpha=1.3)
    matrix = matrix_of(block)
    values, vectors = torch.linalg.eigh(matrix)
    found = block.top_direction()
    assert found.shape == NET.weights[layer].shape
    assert values[-1] > 1.01 * values[-2]
    assert_allclose(float(found.flatten() @ vectors[:, -1]) ** 2, 1.0, rtol=1e-12)


@each_layer
@pytest.mark.parametrize("alpha", [1.0, 30.0, 1e4])
def test_a_sample_that_no_weight_moves_sets_no_scale(alpha: float, layer: int) -> None:
    """Its softmax stays uniform at any scale, where those of all others have long collapsed."""
    assert not flat_logits(NET)(flat(NET))[DEAD].any()
    whole, others = (
        layer_block(NET.weights, x, layer=layer, alpha=alpha) for x in (NET.x, np.delete(NET.x, DEAD, 0))
    )
    assert_allclose(log_trace(whole) + math.log(11), log_trace(others) + math.log(10), rtol=1e-12)


def test_rows_without_weight_are_left_out() -> None:
    assert len(layer_block(NET.weights, NET.x, alpha=20.0).rows) < 10
