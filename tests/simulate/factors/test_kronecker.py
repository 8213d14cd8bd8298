"""Kronecker factors against loops over samples, the matrix where they are exact, and what is made of them densely."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn

from simulate.factors import DenseBlock, KroneckerBlock, KroneckerFactors, ekfac, kfac, kronecker
from simulate.objectives import Objective
from simulate.operators import gauss_newton
from tests.simulate.factors.written_out import (
    KINDS,
    N,
    built,
    by_loops,
    convolutions,
    drawn,
    matrix_of,
    mixed,
    perceptron,
    tokens,
)
from tests.simulate.models_and_data import case


def block_of(factors: KroneckerFactors, layer: str) -> Any:
    return next(block for block in factors.blocks if f"{layer}.weight" in block.places)


each_kind = pytest.mark.parametrize("kind", ["gauss-newton", "empirical"])


@each_kind
@pytest.mark.parametrize("sharing", ["expand", "reduce"])
@pytest.mark.parametrize(("build", "layer"), [
    (perceptron, "0"), (perceptron, "2"), (convolutions, "0"), (convolutions, "2"), (convolutions, "5"),
    (tokens, "0"), (mixed, "twice"),
])  # fmt: skip
def test_factors_are_those_of_loops(build: Any, layer: str, sharing: Any, kind: Any) -> None:
    objective = build()
    a, b = by_loops(objective, layer, kind, sharing)
    block = block_of(kfac(objective, kind=kind, sharing=sharing), layer)

    assert_allclose(block.inputs[0], a, atol=1e-13)
    assert_allclose(block.outputs[0], b, atol=1e-13)
    order = torch.arange(len(a) * len(b)).view(len(b), -1)
    if len(block.places) > 1:  # all weights, then the biases
        order = torch.cat([order[:, :-1].flatten(), order[:, -1]])
    flat = order.flatten()
    assert_allclose(block.product(torch.eye(len(flat)).double()), torch.kron(b, a)[flat][:, flat], atol=1e-12)


def test_every_group_of_a_convolution_has_its_own_factors() -> None:
    """The factors are those of a convolution of the group's own channels."""
    block = block_of(kfac(mixed()), "grouped")
    assert block.inputs.shape == (2, 5, 5) and block.outputs.shape == (2, 2, 2)

    both = built(lambda: nn.Sequential(nn.Conv1d(4, 6, 3, groups=2), nn.Flatten()))
    one = built(lambda: nn.Sequential(nn.Conv1d(2, 3, 3), nn.Flatten()))
    x, y, loss = drawn(6, N, 4, 5), drawn(7, N, 18), nn.MSELoss(reduction="sum")
    for part, whole in zip(one[0].parameters(), both[0].parameters(), strict=True):
        part.data.copy_(whole.data[3:])
    whole = kfac(Objective(both, (x, y), loss)).blocks[0]
    alone = kfac(Objective(one, (x[:, 2:], y[:, 9:]), loss)).blocks[0]
    assert_allclose(whole.inputs[1], alone.inputs[0], atol=1e-13)
    assert_allclose(whole.outputs[1], alone.outputs[0], atol=1e-13)


each_name = pytest.mark.parametrize("name", KINDS)


@pytest.mark.parametrize("method", [kfac, ekfac])
@each_name
def test_what_is_made_of_factors_is_that_of_their_dense_matrix(name: str, method: Any) -> None:
    factors = method(KINDS[name]())
    dense, damping = factors.dense(), 0.3
    one = torch.eye(factors.dim).double()
    values, vectors = torch.linalg.eigh(dense)
    values = values.clamp(min=0)

    assert_allclose(factors.inverse(damping).dense(), torch.linalg.inv(dense + damping * one), atol=1e-11)
    assert_allclose(factors.power(0.5).dense(), (vectors * values.sqrt()) @ vectors.mT, atol=1e-7)
    whitened = factors.power(-0.5, damping=damping).dense()
    assert_allclose(whitened @ (dense + damping * one) @ whitened, one, atol=1e-11)
    assert_allclose(factors.eigenvalues(), values.flip(0), atol=1e-12)
    assert_allclose(factors.trace(), dense.trace(), rtol=1e-11)
    assert_allclose(factors.frobenius_norm(), dense.norm(), rtol=1e-11)
    assert_allclose(factors.log_determinant(damping=damping), (dense + damping * one).logdet(), rtol=1e-11)
    assert_allclose(factors.diagonal(), dense.diagonal(), atol=1e-12)


@each_kind
@each_name
def test_a_corrected_block_has_the_diagonal_of_the_matrix_in_its_eigenbasis(name: str, kind: Any) -> None:
    objective = KINDS[name]()
    factors, matrix = ekfac(objective, kind=kind), matrix_of(objective, kind).dense()

    assert_allclose(factors.trace(), matrix.trace(), rtol=1e-11)
    for block in factors.blocks:
        at = torch.cat([torch.arange(p.start, p.stop) for p in block.places.values()])
        own = matrix[at][:, at]
        if isinstance(block, DenseBlock):
            assert_allclose(block.matrix, own, atol=1e-13)
            continue
        assert isinstance(block, KroneckerBlock)
        units = torch.eye(len(at)).double()
        # what is left has nothing on the diagonal: it is orthogonal to every matrix of this form
        for trial in range(3):
            other = replace(block, corrected=drawn(trial, *block.corrected.shape).abs())
            assert abs(float(((own - block.product(units)) * other.product(units)).sum())) < 1e-12


@each_name
def test_an_eigenbasis_at_hand_spares_a_pass(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    objective = KINDS[name]()
    plain, expected = kfac(objective, sharing="reduce"), ekfac(objective, sharing="reduce")
    monkeypatch.setattr(kronecker, "factored", None)

    assert torch.equal(ekfac(objective, factors=plain).dense(), expected.dense())


# --- where factors are exact --------------------------------------------------------------------------------------


class Positions(nn.Module):
    """A deep linear network at every position, whose mean is given or all."""

    def __init__(self, pooled: bool) -> None:
        super().__init__()
        self.layers, self.pooled = built(lambda: nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2)), 2), pooled

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x).mean(1) if self.pooled else self.layers(x)


@pytest.mark.parametrize(
    ("pooled", "right", "wrong"), [(False, "expand", "reduce"), (True, "reduce", "expand")]
)
def test_positions_of_a_deep_linear_network_are_samples_to_expand_and_one_to_reduce(
    pooled: bool, right: Any, wrong: Any
) -> None:
    """Exact where the loss sees every position, and where it sees their mean."""
    x, y = drawn(3, N, 5, 4), drawn(4, N, 5, 2)
    objective = Objective(Positions(pooled), (x, y[:, 0] if pooled else y), nn.MSELoss())
    for name in ("layers.0", "layers.1"):
        exact = gauss_newton(objective).block(name).dense()
        assert_allclose(kfac(objective, sharing=right).block(name).dense(), exact, atol=1e-13)
        assert not np.allclose(kfac(objective, sharing=wrong).block(name).dense(), exact, rtol=0.05)


def test_a_loss_of_straight_pieces_has_no_curvature() -> None:
    assert not ekfac(case("absolute error").objective()).dense().any()


def test_frozen_weights_leave_a_factor_of_one() -> None:
    objective = case("frozen").objective()
    exact = gauss_newton(objective).block("0.bias").dense()
    assert_allclose(kfac(objective).block("0.bias").dense(), exact, atol=1e-13)
