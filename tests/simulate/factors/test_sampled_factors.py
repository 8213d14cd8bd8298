"""Kronecker factors of targets drawn from the model, and of data cut and ignored in any way."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn

from simulate.factors import (
    ekfac,
    kfac,
)
from simulate.modules import sample_parts
from simulate.objectives import Objective
from simulate.operators import fisher
from tests.simulate.dense_matrices import rng
from tests.simulate.factors.written_out import (
    KINDS,
    N,
    built,
    drawn,
    tokens,
)


@pytest.mark.parametrize(("likelihood", "outputs"), [("categorical", 4), ("bernoulli", 2), ("gaussian", 3)])
def test_sampled_derivatives_have_the_moments_of_the_fisher_information(
    likelihood: Any, outputs: int
) -> None:
    """For a layer of biases, B is the mean of g g', within five standard errors of 5 000 draws for each sample."""
    model = built(lambda: nn.Linear(3, outputs))
    objective = Objective(model, (drawn(1, 3, 3), drawn(2, 3, outputs)), nn.MSELoss(), parameters="bias")
    found = kfac(objective, kind="sampled", seed=rng(), draws=5000, likelihood=likelihood).dense()
    exact = fisher(objective, likelihood=likelihood).dense()

    assert (found - exact).abs().max() < 5 * float(exact.diagonal().max()) * np.sqrt(2 / 15000)


def test_sampled_targets_have_a_seed() -> None:
    objective, options = tokens(), {"kind": "sampled", "likelihood": "categorical"}
    made = [kfac(objective, seed=rng(seed), **options).dense() for seed in (0, 0, 1)]

    assert torch.equal(made[0], made[1]) and not torch.equal(made[0], made[2])


def test_windows_and_batches_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    for build in KINDS.values():
        objective = build()
        whole = ekfac(objective).dense()
        ((x, y),) = [(b.inputs, b.targets) for b in objective.batches()]
        cut = objective.with_data([(x[:1], y[:1]), (x[1:], y[1:])])
        with monkeypatch.context() as patch:
            patch.setattr(sample_parts, "_WINDOW", 1)
            assert_allclose(ekfac(cut).dense(), whole, atol=1e-12)


@pytest.mark.parametrize("chunk", [None, 1, 2])
@pytest.mark.parametrize("method", [kfac, ekfac])
def test_factors_with_ignored_samples_do_not_hang_on_batches(method: Any, chunk: int | None) -> None:
    """Targets that are drawn are drawn for samples that the data ignore too, also where a batch has no others."""
    model = built(lambda: nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 4)))
    x, y, loss = drawn(1, N, 3), torch.tensor([7, 7, 0, 1, 2, 7]), nn.CrossEntropyLoss(ignore_index=7)
    whole = Objective(model, (x, y), loss)
    cut = Objective(model, [(x[:2], y[:2]), (x[2:], y[2:])], loss, chunk=chunk)
    counted = Objective(model, (x[y != 7], y[y != 7]), loss)

    # a generator in the same state draws the same targets, sample by sample
    for kind, other in (("gauss-newton", counted), ("empirical", counted), ("sampled", whole)):
        found, expected = (method(objective, kind=kind, seed=rng()).dense() for objective in (cut, other))
        assert_allclose(found, expected, atol=1e-12)
