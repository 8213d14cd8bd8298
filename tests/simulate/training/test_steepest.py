"""Steepest descent and generalised sharpness against singular values and trials of all directions."""

import itertools

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from simulate.training import edges
from simulate.training.rules import Memory
from simulate.training.scaled_training import inner
from simulate.training.stacks import Perceptrons, perceptrons_at_start
from simulate.training.steepest import NORMS, Steepest, generalised_sharpness
from tests.refusals import refusal

RATES = torch.tensor([0.1, 0.3], dtype=torch.float64)


@pytest.fixture
def gradients():
    draw = torch.Generator().manual_seed(3)
    return [torch.randn(2, *shape, generator=draw, dtype=torch.float64) for shape in ((3, 5), (4, 3), (2, 4))]


def norm_of(norm, vectors):
    """Return the norm of each network, and its dual, by singular values."""
    values = [torch.linalg.svdvals(v) for v in vectors]
    sizes, lengths = edges.flatten(vectors).abs(), torch.stack([v.flatten(1).norm(dim=1) for v in vectors])
    return {
        "signs": (sizes.amax(1), sizes.sum(1)),
        "spectral": (torch.cat(values, 1).amax(1), torch.cat(values, 1).sum(1)),
        "blocks": (lengths.sum(0), lengths.amax(0)),
    }[norm]


@pytest.mark.parametrize("norm", NORMS)
def test_directions_have_norm_one_and_the_dual_norm_as_product(gradients, norm):
    found = NORMS[norm](gradients)
    assert_close(norm_of(norm, found)[0], torch.ones(2, dtype=torch.float64))
    assert_close(inner(found, gradients, 1), norm_of(norm, gradients)[1])


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("normalised", [False, True])
def test_steps_go_by_the_rate_and_the_dual_norm(gradients, norm, normalised):
    parameters = [torch.zeros_like(g) for g in gradients]
    Steepest(norm=norm, normalised=normalised).step_(parameters, gradients, RATES, Memory())
    expected = RATES if normalised else RATES * norm_of(norm, gradients)[1]
    assert_close(norm_of(norm, parameters)[0], expected)
    assert (inner(parameters, gradients, 1) < 0).all()


@pytest.fixture
def setting():
    start = perceptrons_at_start([np.random.default_rng(s) for s in (1, 2)], (2, 3, 1), dtype=torch.float64)[
        ::2
    ]
    draw = torch.Generator().manual_seed(5)
    x, y = (torch.randn(2, 6, width, generator=draw, dtype=torch.float64) for width in (2, 1))
    return Perceptrons("tanh", "squared error", bias=False), start, x, y


def hessians(setting):
    """Return the dense Hessians, by products with all unit vectors."""
    start = setting[1]
    units = torch.eye(edges.flatten(start).shape[1], dtype=torch.float64)
    columns = [
        edges.hessian_products(*setting, edges.shaped_like(unit.expand(2, -1), start)) for unit in units
    ]
    return torch.stack([*map(edges.flatten, columns)], 2)


def starts_for(setting, count):
    draw = torch.Generator().manual_seed(6)
    return [
        [torch.randn(p.shape, generator=draw, dtype=torch.float64) for p in setting[1]] for _ in range(count)
    ]


def test_sharpness_of_signs_is_the_largest_of_all_signs(setting):
    dense = hessians(setting)
    signs = torch.tensor(list(itertools.product([-1.0, 1.0], repeat=dense.shape[1])), dtype=torch.float64)
    best = ((signs @ dense) * signs).sum(2).amax(1)
    found = generalised_sharpness(*setting, norm="signs", starts=starts_for(setting, 12), steps=8)
    assert_close(found, best)


def test_sharpness_of_blocks_is_nearly_the_largest_eigenvalue_of_a_block(setting):
    """A search that changes blocks stops just below."""
    dense, first = hessians(setting), setting[1][0][0].numel()
    parts = (dense[:, :first, :first], dense[:, first:, first:])
    best = torch.stack([torch.linalg.eigvalsh(part)[:, -1] for part in parts]).amax(0)
    found = generalised_sharpness(*setting, norm="blocks", starts=starts_for(setting, 12), steps=60)
    assert (found <= best * (1 + 1e-9)).all() and (found > 0.98 * best).all()


def test_spectral_sharpness_is_above_all_trials_and_never_above_the_bound(setting):
    """A vector of norm 1 has a squared length of 3 at most, for the smaller sides 2 and 1 of its matrices."""
    dense = hessians(setting)
    found = generalised_sharpness(*setting, norm="spectral", starts=starts_for(setting, 12), steps=30)
    for trial in starts_for(setting, 300):
        flat = edges.flatten(NORMS["spectral"](trial))
        assert (found >= torch.einsum("ni,nij,nj->n", flat, dense, flat) * (1 - 1e-9)).all()
    assert (found <= torch.linalg.eigvalsh(dense)[:, -1] * 3).all()


def test_wrong_norms_are_refused():
    with refusal("norm must be one of signs, spectral, blocks, got 'frobenius'"):
        Steepest(norm="frobenius")
    with refusal("parameters must be matrices for the spectral norm"):
        NORMS["spectral"]([torch.ones(2, 3)])
