"""Stability limits from curvature: dense references of every number, the bracket around the exact limit."""

import functools
import math
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn

from simulate.eigenvalues import extremes
from simulate.training import optimisers
from tests.refusals import refusal
from tests.simulate.models_and_data import dense_hessian
from tests.verify.practice.plan.small_plans import SIZES, N, curvature_of, small_network
from tests.verify.practice.small_measurements import gauss_newtons
from verify.practice import limits
from verify.practice.limits import Linearised
from verify.practice.limits.rate_bracket import MeasuredBracket, square_bound
from verify.practice.loading import Problem, problem


@pytest.fixture(scope="module")
def given() -> Problem:
    return small_network()


@pytest.fixture(scope="module")
def dense(given: Problem) -> np.ndarray[Any, Any]:
    return gauss_newtons(given)


@pytest.fixture(scope="module")
def made(given: Problem) -> Linearised:
    return curvature_of(given, SIZES, heavy=5)


def test_a_search_that_ended_early_has_a_wider_bracket(
    made: Linearised, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "extremes", functools.partial(extremes, steps=11))
    early = curvature_of(small_network(), SIZES, heavy=5)
    assert early.bracket.bound > 10 * made.bracket.bound
    assert early.rates[-1].lower < made.rates[-1].lower


# --- every number against dense matrices -----------------------------------------------------------------------


def test_statistics_of_the_samples_are_those_of_dense_matrices(made: Linearised, dense: Any) -> None:
    values, vectors = np.linalg.eigh(dense.mean(0))
    own = [np.linalg.eigh(matrix) for matrix in dense]
    order = np.argsort([v[0][-1] for v in own])[::-1]
    directions = [vectors[:, -1 - k] for k in range(10)] + [own[i][1][:, -1] for i in order[:5]]
    forms = np.einsum("ka,iab,kb->ik", directions, dense, directions)
    found = made.bracket

    assert_allclose(found.largest, values[-1], rtol=1e-3)
    assert values[-1] <= (found.largest + found.bound) * (1 + 1e-12)
    assert_allclose(found.heaviest, own[order[0]][0][-1], rtol=1e-9)
    kept = [k for k, name in enumerate(found.directions) if name.startswith("sample") or name in ("v1", "v2")]
    expected = [*range(2), *range(10, 15)]
    total = ((dense - dense.mean(0)) ** 2).sum() / (N - 1)
    assert abs(made.variance.value - total) <= 3 * made.variance.standard_error + 1e-9 * total
    assert [found.directions[k] for k in kept[2:]] == [f"sample {i}" for i in order[:5]]
    assert_allclose(np.array(found.curvatures)[kept], forms.mean(0)[expected], rtol=1e-2)
    assert_allclose(np.array(found.variances)[kept], forms.var(0, ddof=1)[expected], rtol=1e-3)


def test_the_bracket_holds_the_exact_limit(made: Linearised, dense: Any) -> None:
    samples = optimisers.population(dense)
    for at in made.rates:
        exact = optimisers.largest_stable_rate(samples, at.batch_size).rate
        whole = 2 / optimisers.whitened_square(samples, at.batch_size)
        assert at.lower <= whole * (1 + 1e-9)
        assert whole <= exact * (1 + 1e-9)
        assert exact <= at.upper * (1 + 1e-9)
        assert at.upper / at.lower < 3


def test_at_all_samples_every_rule_gives_the_rate_of_full_gradients(made: Linearised) -> None:
    last, flat = made.rates[-1], 2 / made.bracket.largest
    assert_allclose([last.upper, last.sharpness.value, last.theorem_4.value], flat, rtol=1e-9)
    assert_allclose(last.lower, 2 / (made.bracket.largest + made.bracket.bound), rtol=1e-9)
    assert last.sharpness.standard_error == last.theorem_4.standard_error == 0
    assert last.deciding == "v1"


def test_batch_eigenvalues_are_those_of_all_batches_within_the_error_of_the_law(
    made: Linearised, dense: Any
) -> None:
    for at in made.rates[:2]:
        tops = np.linalg.eigvalsh(optimisers.all_batches(dense, at.batch_size))[:, -1]
        assert_allclose(at.batch.mean.value, tops.mean(), rtol=0.14)
        assert_allclose(at.sharpness.value, 2 / at.batch.mean.value)
        assert at.sharpness.standard_error > 0


def test_theorem_4_is_fed_with_what_was_measured(made: Linearised, given: Problem) -> None:
    """Below its threshold its edge is 2 sqrt(total / (P b)), above it lambda_1 + total / (P b lambda_1)."""
    top, share = made.bracket.largest, made.variance.value / given.objective.dim
    for at in made.rates[:-1]:
        x = 1 / at.batch_size - 1 / N
        noise = share * x
        edge = top + noise / top if noise < top**2 else 2 * math.sqrt(noise)
        assert_allclose(at.theorem_4.value, 2 / edge, rtol=1e-9)
        assert at.theorem_4.standard_error > 0


def test_a_mean_over_positions_is_one_over_samples_too() -> None:
    """The matrix of a sample is that of its own loss, whatever the whole loss divides by; their mean is G."""
    with torch.random.fork_rng():
        torch.manual_seed(2)
        net = nn.Sequential(nn.Linear(3, 6), nn.Unflatten(1, (3, 2)))
        given = problem(net, (torch.randn(6, 3), torch.randint(0, 3, (6, 2))), dtype="float64")
    found = curvature_of(given, [1, 6], directions=3, heavy=6)
    whole = found.bracket
    own = [dense_hessian(given.batch_objective([i])) for i in range(6)]  # linear in the parameters: H = G

    assert_allclose(whole.heaviest, max(float(torch.linalg.eigvalsh(g)[-1]) for g in own), rtol=1e-6)
    spread = float(sum((g - sum(own) / 6).square().sum() for g in own)) / 5
    assert_allclose(found.variance.value, spread, rtol=0, atol=3 * found.variance.standard_error + 1e-9)
    assert_allclose(whole.largest, float(torch.linalg.eigvalsh(torch.stack(own).mean(0))[-1]), rtol=1e-3)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (nn.L1Loss(), "model must have curvature along some direction"),
        (lambda o, y: (y * (o - y) ** 2).sum() / y.sum(), "a mean of losses of single samples, got another"),
        (lambda o, y: -((o - y) ** 2).mean(), "loss must be convex in the outputs"),
        (lambda o, y: ((o - y) ** 2 * (y - 1.5)).mean(), "loss must be convex in the .* use float64"),
    ],
)
def test_losses_without_a_bracket_are_refused(loss: Any, message: str) -> None:
    x = torch.tensor([[1.0], [2.0], [3.0]])
    with refusal(message):
        curvature_of(problem(nn.Linear(1, 1, bias=False), (x, x), loss=loss), [1])


# --- the lower side --------------------------------------------------------------------------------------------


def _uneven(seed: int) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((7, 5, 2)) * rng.uniform(0.1, 2.0, 7)[:, None, None]
    return factors @ factors.swapaxes(1, 2)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("size", [1, 2, 4, 7])
def test_square_bound_is_never_below_the_whitened_square(seed: int, size: int) -> None:
    matrices = _uneven(seed)
    largest = np.linalg.eigvalsh(matrices.mean(0))[-1]
    heaviest = np.linalg.eigvalsh(matrices)[:, -1].max()
    bound = square_bound(largest, heaviest, batch_size=size, dataset_size=7)
    exact = optimisers.whitened_square(optimisers.population(matrices), size)
    assert exact <= bound * (1 + 1e-9)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_square_bound_is_attained_by_samples_that_do_not_meet(size: int) -> None:
    """Equal samples of rank one along the axes: E[H_B^2] is a multiple of H."""
    matrices = np.einsum("ia,ib->iab", np.eye(5), np.eye(5))
    exact = optimisers.whitened_square(optimisers.population(matrices), size)
    assert_allclose(square_bound(0.2, 1.0, batch_size=size, dataset_size=5), exact, rtol=1e-12)
    with refusal("batch_size must be from 1 to the 5 samples"):
        square_bound(0.2, 1.0, batch_size=[size, 6], dataset_size=5)
    with refusal("largest must be positive and heaviest at least largest"):
        square_bound(2.0, 1.0, batch_size=size, dataset_size=5)


def _by_hand(**changes: Any) -> MeasuredBracket:
    parts = {
        "samples": 100,
        "largest": 2.0,
        "bound": 0.0,
        "heaviest": 40.0,
        "curvatures": (2.0, 0.5),
        "variances": (12.0, 25.0),
        "directions": ("v1", "sample 7"),
    }
    return MeasuredBracket(**parts | changes)


def test_sides_of_a_bracket_by_hand() -> None:
    found = _by_hand()
    assert (found.deciding(1), found.deciding(100)) == ("sample 7", "v1")
    assert_allclose(_by_hand(bound=0.5).rates(100).lower, 2 / 2.5)  # the error of the eigenvalue
