"""Short runs beside a plan: what holds, what is lost, and what a step is."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from simulate.spectra import Estimate
from tests.verify.practice.small_plans import halved_square, small_network
from verify.practice.loading import Problem, problem
from verify.practice.plan import trial_runs


@pytest.fixture(scope="module")
def given() -> Problem:
    return small_network()


def test_full_gradients_on_least_squares_hold_up_to_two_over_the_eigenvalue() -> None:
    x = torch.diag(torch.tensor([3.0, 1.0]))
    given = problem(nn.Linear(2, 1, bias=False), (x, torch.ones(2, 1)), loss=halved_square, dtype="float64")
    seen = trial_runs.trial(given, 2, 0.05, np.random.default_rng(0), steps=60, runs=2)
    assert seen.held is not None
    assert seen.failed is not None
    assert seen.held < 2 / 4.5 < seen.failed
    assert_allclose(seen.failed / seen.held, trial_runs.RATIO)
    assert seen.start == given.objective.value()
    assert seen.best is not None
    assert seen.best <= seen.held
    after = given.objective.value()
    assert after == seen.start


class _Rerun(nn.Module):
    """A first layer that is run again in the backward pass, or not."""

    def __init__(self, again: bool) -> None:
        super().__init__()
        self.first, self.second, self.again = nn.Linear(4, 4), nn.Linear(4, 3), again

    def forward(self, x: Tensor) -> Tensor:
        return self.second(
            checkpoint(self._hidden, x, use_reentrant=False) if self.again else self._hidden(x)
        )

    def _hidden(self, x: Tensor) -> Tensor:
        return self.first(x).tanh()


def test_what_is_run_again_has_the_weights_of_its_step() -> None:
    """And not those that the run began with."""
    nets, x = (_Rerun(True), _Rerun(False)), torch.linspace(-1, 1, 24).view(6, 4)
    nets[1].load_state_dict(nets[0].state_dict())
    given = [problem(net, (x, torch.arange(6) % 3), dtype="float64") for net in nets]
    steps = [torch.tensor([0, 1, 2]), torch.tensor([3, 4, 5])] * 3

    ends = [trial_runs._final(one, 0.7, steps, 1e9) for one in given]

    assert_allclose(ends[0], ends[1], rtol=1e-12)


def test_a_run_takes_the_steps_of_plain_sgd() -> None:
    x, y = torch.tensor([[1.0], [2.0]]), torch.tensor([[1.0], [0.0]])
    given = problem(nn.Linear(1, 1, bias=False), (x, y), loss=halved_square, dtype="float64")
    weight = given.objective.leaves()[0].item()
    end = trial_runs._final(given, 0.1, [torch.tensor([0]), torch.tensor([1])], 1e9)
    weight -= 0.1 * (weight - 1)
    weight -= 0.1 * 4 * weight
    assert_allclose(end, ((weight - 1) ** 2 + 4 * weight**2) / 4)


def test_a_lost_run_counts_as_infinite() -> None:
    assert trial_runs._mean([1.0, math.inf]) is None
    assert trial_runs._mean([1.0, 3.0]) == Estimate(2.0, 1.0)
    x = torch.ones(2, 1)
    given = problem(nn.Linear(1, 1, bias=False), (x, x), loss=halved_square)
    assert trial_runs._final(given, 1e6, [torch.tensor([0, 1])] * 9, 1.0) == math.inf


def test_a_rate_holds_up_to_twice_the_loss_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_runs, "_final", lambda _p, rate, _b, start: (1.9 if rate < 1 else 2.1) * start)
    x = torch.ones(2, 1)
    given = problem(nn.Linear(1, 1, bias=False), (x, 2 * x), loss=halved_square)
    seen = trial_runs.trial(given, 1, 0.9, np.random.default_rng(0), steps=1, runs=2)
    assert_allclose([seen.held or 0, seen.failed or 0], [0.9, 0.9 * trial_runs.RATIO])
    assert_allclose(
        [seen.held_loss or 0, seen.failed_loss or 0], [[1.9 * seen.start, 0], [2.1 * seen.start, 0]]
    )


@pytest.mark.parametrize(
    ("edge", "found"),
    [
        (1, (0, 1)),
        (4, (3, 4)),
        (5, (4, 5)),
        (0, (-1, 0)),
        (-3, (-4, -3)),
        (99, (16, None)),
        (-99, (None, -16)),
    ],
)
def test_the_walk_ends_where_rates_stop_or_begin_to_hold(edge: int, found: Any) -> None:
    assert trial_runs._walk(lambda k: k < edge) == found


@pytest.mark.parametrize("weight", [None, torch.tensor([0.1, 1.0, 4.0], dtype=torch.float64)])
def test_a_batch_too_large_for_one_pass_gives_the_same_step(weight: Any) -> None:
    """Also of a loss that divides by the weights of the classes, which are others in each pass."""
    given = small_network(loss=nn.CrossEntropyLoss(weight=weight), batch_size=2)
    chosen = torch.tensor([0, 3, 4, 5, 7])
    x, y = given.inputs[chosen], given.targets[chosen]
    expected = given.loss(given.model(x), y)
    loss, slopes = trial_runs._slopes(given, given.objective.leaves(), chosen)
    assert_allclose(loss, expected.item())
    gradient = given.objective.flat(torch.autograd.grad(expected, list(given.model.parameters())))
    assert_allclose(given.objective.flat(slopes), gradient, atol=1e-15)


def test_nothing_grows_from_a_loss_of_zero() -> None:
    x = torch.zeros(2, 1)
    given = problem(nn.Linear(1, 1, bias=False), (x, x), loss=halved_square)
    with pytest.raises(ValueError, match="loss must be positive at the start of runs, got 0"):
        trial_runs.trial(given, 1, 0.1, np.random.default_rng(0), steps=1, runs=2)
