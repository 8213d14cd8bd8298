"""The state of a network before a plan, and curvature in the mode in which it trains."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn

from simulate.objectives.restoring import preserve_state
from simulate.spectra import Estimate
from tests.verify.practice.watch.small_watchers import top
from verify.practice.loading import Problem, problem
from verify.practice.plan import plan_problem, words
from verify.practice.plan.batch_curvature import BatchCurvature, batch_curvature
from verify.practice.plan.state import State, seen_before

COUNT = 12


def digits_like(*shape: int) -> tuple[Tensor, Tensor]:
    draws = torch.Generator().manual_seed(3)
    return torch.randn(COUNT, *shape, generator=draws), torch.arange(COUNT) % 3


def given(*parts: nn.Module, shape: tuple[int, ...] = (5,), **options: Any) -> Problem:
    return problem(nn.Sequential(*parts), digits_like(*shape), **options)


@pytest.fixture(autouse=True)
def _seeded() -> Any:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


def normalised() -> Problem:
    return given(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 3), dtype="float64")


@pytest.mark.parametrize("batch_size", [None, 5])
def test_dead_units_are_counted_over_all_passes(batch_size: int | None) -> None:
    """One that responds in any pass is alive, also of a functional relu."""
    first = nn.Linear(5, 4)
    with torch.no_grad():
        most, next_to_it = digits_like(5)[0][:, 0].topk(2).values
        first.bias.copy_(torch.tensor([-99.0, -99.0, -(most + next_to_it) / 2, 99.0]))
        first.weight[2] = 0.0
        first.weight[2, 0] = 1.0
    found = seen_before(given(first, nn.ReLU(), nn.Linear(4, 3), batch_size=batch_size), 1.0)
    assert (found.units, found.dead, found.dead_share) == (4, 2, 0.5)


@pytest.mark.parametrize(
    ("part", "batch", "drops"),
    [
        (nn.BatchNorm1d(4), True, False),
        (nn.BatchNorm1d(4, track_running_stats=False), True, False),
        (nn.LayerNorm(4), False, False),
        (nn.Dropout(0.5), False, True),
        (nn.Dropout(0.0), False, False),
    ],
)
def test_batch_statistics_and_dropout_are_seen(part: nn.Module, batch: bool, drops: bool) -> None:
    found = seen_before(given(nn.Linear(5, 4), part, nn.Linear(4, 3)), 1.0)
    assert found.units == 0
    assert (found.batch_statistics, found.dropout) == (batch, drops)


def test_the_loss_is_that_of_the_mode_of_training_and_nothing_is_changed() -> None:
    found = normalised()
    before = {name: value.clone() for name, value in found.model.state_dict().items()}
    with preserve_state(found.model, True), torch.no_grad():
        expected = float(found.loss(found.model(found.inputs), found.targets))
    found.model.load_state_dict(before)
    state = seen_before(found, 1.0)
    assert_allclose(state.loss, expected)
    assert abs(state.loss - found.objective.value()) > 1e-3
    assert all(torch.equal(value, before[name]) for name, value in found.model.state_dict().items())


def test_outputs_that_hardly_differ_are_near_constant() -> None:
    last = nn.Linear(5, 3)
    wide = seen_before(given(last), 1.0)
    with torch.no_grad():
        last.weight *= 1e-3
    narrow = seen_before(given(last), 1.0)
    assert_allclose(wide.spread, 1e3 * narrow.spread, rtol=1e-4)
    assert narrow.near_constant and not wide.near_constant
    outputs = last(digits_like(5)[0]).detach()
    assert_allclose(narrow.spread, outputs.std(0, correction=0).square().mean().sqrt(), rtol=1e-4)


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"loss": 2.0}, "nothing is learned yet"),
        (
            {"units": 8, "dead": 1},
            "dead ReLU units (zero for every sample): 1 of 8. They stay off until other units change",
        ),
        ({"batch_statistics": True}, "no stability limits, which need single samples"),
    ],
)
def test_each_state_is_said_with_what_it_means(changed: dict[str, Any], line: str) -> None:
    plain = {
        "loss": 0.5, "constant": 2.0, "units": 0, "dead": 0, "batch_statistics": False, "dropout": False,
        "spread": 1.0, "scale": 1.0,
    }  # fmt: skip
    said, silent = (" ".join(words.state_lines(State(**each))) for each in (plain | changed, plain))
    assert line in said and line not in silent


# --- curvature with the statistics of each batch ---------------------------------------------------------------


def _dense(found: Problem, rows: Any) -> float:
    """Largest eigenvalue of the Hessian of these samples in training mode."""
    return top(found.model, (found.inputs[rows], found.targets[rows]), loss=found.loss, training=True)


def test_curvature_of_batches_has_their_own_statistics() -> None:
    found = normalised()
    (whole,) = batch_curvature(found, [COUNT], 2, np.random.default_rng(5))
    assert_allclose(whole.eigenvalue.value, _dense(found, slice(None)), rtol=1e-3)
    assert whole.eigenvalue.standard_error == 0
    (half,) = batch_curvature(found, [COUNT // 2], 2, np.random.default_rng(5))
    order = np.random.default_rng(5).permutation(COUNT)
    tops = [_dense(found, order[:6]), _dense(found, order[6:])]
    assert_allclose(half.eigenvalue.value, sum(tops) / 2, rtol=1e-2)


def test_a_plan_of_batch_statistics_has_no_bracket() -> None:
    made = plan_problem(normalised(), [4, COUNT], steps=10, batches=2)
    assert made.linearised is None and not made.not_linearised
    assert [at.batch_size for at in made.batch_curvature] == [4, COUNT]
    assert BatchCurvature(batch_size=1, eigenvalue=Estimate(-1.0, 0.0)).rate == math.inf
    text = words.plan_text(made)
    assert "stable below, unstable" not in text and "2/E λ₁(H_B)" in text
    assert text.index("batch normalisation") < text.index("start with")


def test_who_trains_in_evaluation_mode_has_the_bracket_of_it() -> None:
    given = normalised()
    made = plan_problem(given, [1, 4], steps=10, batches=2, evaluation=True)
    assert made.linearised and not made.batch_curvature
    assert not made.state.batch_statistics
    assert_allclose(made.state.loss, given.objective.value())
    other = plan_problem(given, [4], steps=10, linearised=False)
    assert other.trials[0].walked != made.trials[1].walked


def test_a_batch_of_one_sample_has_no_statistics() -> None:
    with pytest.raises(ValueError, match="model and loss cannot train on batches of 1 samples: ValueError"):
        plan_problem(normalised(), [1, 4], steps=10, batches=2)
    with pytest.raises(ValueError, match="run on batches of 1 samples in training mode: ValueError"):
        plan_problem(normalised(), [1, 4], trials=False, batches=2)
