"""Learning rates against batch sizes: dense references of every number, the bracket around the exact limit."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from simulate.spectra import Estimate
from simulate.training import optimisers
from tests.simulate.models_and_data import dense_hessian, dense_jacobian
from theory import learning_rates
from verify import cli
from verify.practice import plan as planning, work
from verify.practice.loading import Problem, problem
from verify.practice.plan import Plan, pages as plan_pages, plan, trial_runs
from verify.practice.plan.rate_bracket import Bracket, sample_matrices, square_bound

N, SIZES = 14, [14, 1, 2, 6]


def _network(**options: Any) -> Problem:
    with torch.random.fork_rng():
        torch.manual_seed(1)
        net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 3)).double()
        scale = torch.linspace(0.3, 3.0, N, dtype=torch.float64)[:, None]
        x, y = scale * torch.randn(N, 3, dtype=torch.float64), torch.randint(0, 3, (N,))
    return problem(net, (x, y), dtype="float64", **options)


def _gauss_newtons(given: Problem) -> np.ndarray[Any, Any]:
    """Every J' (diag p - p p') J, (N, P, P)."""
    jacobians = dense_jacobian(given.objective, given.inputs).reshape(N, 3, -1)
    outputs = given.objective.outputs(given.objective.leaves(), given.inputs)
    p = outputs.detach().softmax(1)
    middle = torch.diag_embed(p) - p[:, :, None] * p[:, None, :]
    return (jacobians.mT @ middle @ jacobians).numpy()


@pytest.fixture(scope="module")
def given() -> Problem:
    return _network()


@pytest.fixture(scope="module")
def dense(given: Problem) -> np.ndarray[Any, Any]:
    return _gauss_newtons(given)


@pytest.fixture(scope="module")
def made(given: Problem) -> Plan:
    return plan(given, SIZES, heavy=5, batches=2, adam=(1e-3, 4), check=True, steps=6, runs=2)


# --- every number against dense matrices -----------------------------------------------------------------------


def test_statistics_of_the_samples_are_those_of_dense_matrices(made: Plan, dense: Any) -> None:
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
    assert [found.directions[k] for k in kept[2:]] == [f"sample {i}" for i in order[:5]]
    assert_allclose(np.array(found.curvatures)[kept], forms.mean(0)[expected], rtol=1e-2)
    assert_allclose(np.array(found.variances)[kept], forms.var(0, ddof=1)[expected], rtol=1e-2)


def test_top_of_the_hessian_is_that_of_the_dense_one(made: Plan, given: Problem) -> None:
    top = float(torch.linalg.eigvalsh(dense_hessian(given.objective))[-1])
    assert abs(made.hessian - top) <= made.hessian_bound + 1e-9


def test_variance_over_the_samples_is_the_dense_one_within_its_error(made: Plan, dense: Any) -> None:
    total = ((dense - dense.mean(0)) ** 2).sum() / (N - 1)
    assert abs(made.variance.value - total) <= 3 * made.variance.standard_error + 1e-9 * total


def test_the_bracket_holds_the_exact_limit(made: Plan, dense: Any) -> None:
    samples = optimisers.population(dense)
    for at in made.rates:
        exact = optimisers.mean_square_limit(samples, at.batch_size).rate
        whole = 2 / optimisers.whitened_square(samples, at.batch_size)
        assert at.lower <= whole * (1 + 1e-9)
        assert whole <= exact * (1 + 1e-9)
        assert exact <= at.upper * (1 + 1e-9)
        assert at.upper / at.lower < 3


def test_at_all_samples_every_rule_gives_the_rate_of_full_gradients(made: Plan) -> None:
    last, flat = made.rates[-1], 2 / made.bracket.largest
    assert_allclose([last.upper, last.sharpness.value, last.theorem_4.value], flat, rtol=1e-9)
    assert_allclose(last.lower, 2 / (made.bracket.largest + made.bracket.bound), rtol=1e-9)
    assert last.sharpness.standard_error == last.theorem_4.standard_error == 0
    assert last.deciding == "v1"


def test_batch_eigenvalues_are_those_of_all_batches_within_their_error(given: Problem, dense: Any) -> None:
    count = 14
    found = plan(given, [1, 2], directions=1, heavy=0, batches=count)
    for at in found.rates:
        tops = np.linalg.eigvalsh(optimisers.all_batches(dense, at.batch_size))[:, -1]
        assert abs(at.eigenvalue.value - tops.mean()) <= 3 * at.eigenvalue.standard_error
        assert_allclose(at.eigenvalue.standard_error, tops.std() / math.sqrt(count), rtol=0.4)
        assert_allclose(at.sharpness.value, 2 / at.eigenvalue.value)
        assert_allclose(
            at.sharpness.standard_error / at.sharpness.value,
            at.eigenvalue.standard_error / at.eigenvalue.value,
        )


def test_theorem_4_is_fed_with_what_was_measured(made: Plan) -> None:
    """Below its threshold its edge is 2 sqrt(total / (P b)), above it lambda_1 + total / (P b lambda_1)."""
    top, share = made.bracket.largest, made.variance.value / made.parameters
    for at in made.rates[:-1]:
        x = 1 / at.batch_size - 1 / N
        noise = share * x
        edge = top + noise / top if noise < top**2 else 2 * math.sqrt(noise)
        assert_allclose(at.theorem_4.value, 2 / edge, rtol=1e-9)
        assert at.theorem_4.standard_error > 0


def test_adam_goes_with_the_root_of_the_batch_size(made: Plan) -> None:
    assert_allclose([at.adam or 0.0 for at in made.rates], 1e-3 * np.sqrt(np.array(sorted(SIZES)) / 4))


def test_a_mean_over_positions_is_one_over_samples_too() -> None:
    """The matrix of a sample is that of its own loss, whatever the whole loss divides by; their mean is G."""
    with torch.random.fork_rng():
        torch.manual_seed(2)
        net = nn.Sequential(nn.Linear(3, 6), nn.Unflatten(1, (3, 2)))
        given = problem(net, (torch.randn(6, 3), torch.randint(0, 3, (6, 2))), dtype="float64")
    found, whole = sample_matrices(given), plan(given, [1, 6], directions=1, heavy=1, batches=2).bracket
    own = [dense_hessian(given.batch_objective([i])) for i in range(6)]  # linear in the parameters: H = G

    assert_allclose(found.traces, [float(torch.trace(g)) for g in own])
    assert_allclose(found.largest, [float(torch.linalg.eigvalsh(g)[-1]) for g in own])
    assert_allclose(found.squares, [float((g**2).sum()) for g in own])
    assert_allclose(whole.curvatures[0], whole.largest, rtol=1e-3)


def test_variance_has_the_error_that_the_norm_of_the_mean_leaves(
    given: Problem, dense: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "frobenius", lambda *_, **__: Estimate(0.3, 0.01))
    found = plan(given, [N], directions=1, heavy=0, batches=2).variance
    spread = (dense**2).sum((1, 2)).mean() - 0.3**2
    assert_allclose(found, np.array([spread, 2 * 0.3 * 0.01]) * N / (N - 1))


def test_variance_over_the_samples_is_exact_where_the_probes_are() -> None:
    """Inputs along the axes have a diagonal G, which signs see without an error."""
    x = torch.diag(torch.tensor([1.0, 2.0, 3.0]))
    found = plan(problem(nn.Linear(3, 1, bias=False), (x, x[:, :1]), loss=_halved), [1], batches=2).variance
    squares = np.array([1.0, 4.0, 9.0])
    assert_allclose(found, (((squares**2).sum() - (squares**2).sum() / 3) / 2, 0.0), rtol=1e-5, atol=1e-9)


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


def test_a_single_sample_has_one_rate() -> None:
    assert_allclose(square_bound(2.0, 2.0, batch_size=1, dataset_size=1), 2.0)


@pytest.mark.parametrize("size", [0, 6, 0.5])
def test_square_bound_needs_a_batch_of_the_samples(size: float) -> None:
    with pytest.raises(ValueError, match="batch_size must be from 1 to the 5 samples"):
        square_bound(1.0, 2.0, batch_size=size, dataset_size=5)


@pytest.mark.parametrize(("largest", "heaviest"), [(2.0, 1.0), (0.0, 1.0)])
def test_square_bound_needs_a_sample_as_heavy_as_the_mean(largest: float, heaviest: float) -> None:
    with pytest.raises(ValueError, match="heaviest must be at least largest, which is positive"):
        square_bound(largest, heaviest, batch_size=1, dataset_size=5)


# --- closed forms ----------------------------------------------------------------------------------------------


def _halved(outputs: Tensor, targets: Tensor) -> Tensor:
    return ((outputs - targets) ** 2).mean() / 2


def test_gaussian_least_squares_lies_in_the_bracket() -> None:
    """2 B / (B + P + 1) for fresh inputs; the samples themselves give every part in closed form."""
    x = np.random.default_rng(3).standard_normal((3000, 4))
    given = problem(nn.Linear(4, 1, bias=False), (x, np.zeros((3000, 1))), loss=_halved, dtype="float64")
    sizes = [1, 3, 9]
    found = plan(given, sizes, directions=1, heavy=1, batches=2)
    limits = learning_rates.gaussian_least_squares_limit(sizes, 4)
    values, vectors = np.linalg.eigh(x.T @ x / 3000)
    along = (x @ vectors[:, -1]) ** 2

    assert_allclose(found.bracket.heaviest, (x**2).sum(1).max())
    assert_allclose(found.bracket.largest, values[-1], rtol=1e-6)
    assert_allclose(found.bracket.curvatures[0], along.mean(), rtol=1e-4)
    assert_allclose(found.bracket.variances[0], along.var(ddof=1), rtol=1e-3)
    assert all(at.lower < limit < at.upper for at, limit in zip(found.rates, limits, strict=True))


def _by_hand(**changes: Any) -> Bracket:
    parts: dict[str, Any] = {
        "samples": 100,
        "largest": 2.0,
        "bound": 0.0,
        "heaviest": 40.0,
        "curvatures": (2.0, 0.5),
        "variances": (12.0, 25.0),
        "directions": ("v1", "sample 7"),
    }
    return Bracket(**parts | changes)


def test_crossover_is_where_each_side_is_half_of_the_flat_rate() -> None:
    found = _by_hand()
    first, last = found.crossover()
    assert_allclose(found.rates(first).upper, 1 / found.largest)
    assert_allclose(found.rates(last).lower, 1 / found.largest)
    assert first <= last
    assert_allclose(found.crossover_along_top(), 1 / (4 / 12 + 1 / 100))


def test_the_lower_side_allows_for_the_error_of_the_eigenvalue() -> None:
    assert_allclose(_by_hand(bound=0.5).rates(100).lower, 2 / 2.5)


def test_even_samples_have_no_crossover() -> None:
    found = _by_hand(heaviest=2.0, curvatures=(2.0,), variances=(0.0,), directions=("v1",))
    assert found.crossover() == (0.0, 0.0)


def test_the_upper_side_names_its_direction() -> None:
    found = _by_hand()
    assert (found.deciding(1), found.deciding(100)) == ("sample 7", "v1")


# --- short runs ------------------------------------------------------------------------------------------------


def test_full_gradients_on_least_squares_hold_up_to_two_over_the_eigenvalue() -> None:
    x = torch.diag(torch.tensor([3.0, 1.0]))
    given = problem(nn.Linear(2, 1, bias=False), (x, torch.ones(2, 1)), loss=_halved, dtype="float64")
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
    given = problem(nn.Linear(1, 1, bias=False), (x, y), loss=_halved, dtype="float64")
    weight = given.objective.leaves()[0].item()
    end = trial_runs._final(given, 0.1, [torch.tensor([0]), torch.tensor([1])], 1e9)
    weight -= 0.1 * (weight - 1)
    weight -= 0.1 * 4 * weight
    assert_allclose(end, ((weight - 1) ** 2 + 4 * weight**2) / 4)


def test_a_lost_run_counts_as_infinite() -> None:
    assert trial_runs._mean([1.0, math.inf]) is None
    assert trial_runs._mean([1.0, 3.0]) == Estimate(2.0, 1.0)
    x = torch.ones(2, 1)
    given = problem(nn.Linear(1, 1, bias=False), (x, x), loss=_halved)
    assert trial_runs._final(given, 1e6, [torch.tensor([0, 1])] * 9, 1.0) == math.inf


def test_a_rate_holds_up_to_twice_the_loss_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_runs, "_final", lambda _p, rate, _b, start: (1.9 if rate < 1 else 2.1) * start)
    x = torch.ones(2, 1)
    given = problem(nn.Linear(1, 1, bias=False), (x, 2 * x), loss=_halved)
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
    given = _network(loss=nn.CrossEntropyLoss(weight=weight), batch_size=2)
    chosen = torch.tensor([0, 3, 4, 5, 7])
    x, y = given.inputs[chosen], given.targets[chosen]
    expected = given.loss(given.model(x), y)
    loss, slopes = trial_runs._slopes(given, given.objective.leaves(), chosen)
    assert_allclose(loss, expected.item())
    gradient = given.objective.flat(torch.autograd.grad(expected, list(given.model.parameters())))
    assert_allclose(given.objective.flat(slopes), gradient, atol=1e-15)


def test_nothing_grows_from_a_loss_of_zero() -> None:
    x = torch.zeros(2, 1)
    given = problem(nn.Linear(1, 1, bias=False), (x, x), loss=_halved)
    with pytest.raises(ValueError, match="loss must be positive at the start of runs, got 0"):
        trial_runs.trial(given, 1, 0.1, np.random.default_rng(0), steps=1, runs=2)


def test_three_batch_sizes_are_tried(made: Plan) -> None:
    assert [seen.batch_size for seen in made.checks] == [1, 6, 14]
    assert [(seen.steps, seen.runs) for seen in made.checks] == [(6, 2), (6, 2), (6, 1)]


# --- what is given, and what is left as found ------------------------------------------------------------------


def test_the_same_seed_gives_the_same_plan_and_changes_nothing() -> None:
    given = _network()
    model, state = given.objective.model, torch.get_rng_state()
    assert model is not None
    before = {name: p.clone() for name, p in model.state_dict().items()}
    few: dict[str, Any] = {"directions": 2, "heavy": 1, "batches": 2, "check": True, "steps": 2, "runs": 2}
    first, again = (plan(given, [2], seed=5, **few) for _ in range(2))
    assert (first.rates, first.checks, first.bracket) == (again.rates, again.checks, again.bracket)
    assert all(torch.equal(p, before[name]) for name, p in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())
    assert torch.equal(torch.get_rng_state(), state)
    assert plan(given, [2], seed=6, **few | {"check": False}).rates[0].eigenvalue != first.rates[0].eigenvalue


def test_work_is_told_in_order_and_within_bounds(given: Problem) -> None:
    told: list[tuple[str, float]] = []
    plan(
        given,
        [14],
        directions=1,
        heavy=1,
        check=True,
        steps=1,
        runs=2,
        tell=lambda what, share: told.append((what, share)),
    )
    shares = [share for _, share in told]
    assert shares == sorted(shares)
    assert 0 == shares[0] < shares[-1] <= 1
    assert list(dict.fromkeys(what for what, _ in told)) == [
        "top of the Gauss-Newton matrix",
        "top of the Hessian",
        "single samples",
        "trial directions",
        "noise of the samples",
        "batches",
        "short runs",
    ]


def test_a_pipe_is_told_how_long_it_takes(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "_EVERY", 0.0)
    with work.on_terminal("plan") as tell:
        tell("batches", 0.25)
    assert capsys.readouterr().err == "  batches: 25 %, 0 s\n"
    assert work._left(30.0, 0.25) == "30 s, about 90 s left"


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([], "batch sizes must be at least one, got none"),
        ([0], "batch sizes must be integers of at least 1, got 0"),
        ([4, -2], "batch sizes must be integers of at least 1, got -2"),
        ([1.5], "batch sizes must be integers of at least 1, got 1.5"),
        ([True], "batch sizes must be integers of at least 1, got True"),
        ([15], "batch sizes must be at most the number of samples, 14, got 15"),
        ([4, 2, 4], "batch sizes must be different, got 4 more than once"),
    ],
)
def test_batch_sizes_that_cannot_be_are_refused(given: Problem, sizes: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plan(given, sizes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"adam": (0.0, 4)}, "Adam's rate must be positive and its batch size at least 1, got 0.0 and 4"),
        ({"adam": (math.nan, 4)}, "Adam's rate must be positive"),
        ({"adam": (0.1, 0)}, "Adam's rate must be positive and its batch size at least 1, got 0.1 and 0"),
        ({"directions": 0}, "directions must be at least 1, got 0"),
        ({"heavy": -1}, "heavy must be at least 0, got -1"),
        ({"batches": 1}, "batches must be at least 2, got 1"),
        ({"steps": 0}, "steps must be at least 1, got 0"),
        ({"runs": 1}, "runs must be at least 2, got 1"),
        ({"seed": -1}, "seed must be"),
    ],
)
def test_numbers_that_cannot_be_are_refused(given: Problem, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plan(given, [1], **options)


def _line() -> nn.Module:
    return nn.Linear(1, 1, bias=False)


@pytest.mark.parametrize(
    ("loss", "training", "message"),
    [
        (nn.MSELoss(reduction="sum"), False, "loss must be a mean over the samples, got a sum"),
        (nn.MSELoss(), True, "a plan needs evaluation mode"),
        (nn.L1Loss(), False, "model must have curvature along some direction"),
        (
            lambda o, y: ((o - y) ** 2).mean().sqrt(),
            False,
            "loss must be a mean over samples, each for itself, for a plan, got another: the loss of a batch is not",
        ),
        (lambda o, y: ((o - o.mean(0)) ** 2).mean(), False, "each for itself, for a plan, got another"),
        (lambda o, y: (y * (o - y) ** 2).sum() / y.sum(), False, "each for itself, for a plan, got another"),
        (lambda o, y: -((o - y) ** 2).mean(), False, "model must have curvature along some direction"),
        (lambda o, y: ((o - y) ** 2 * (y - 1.5)).mean(), False, "loss must be convex in the .* use float64"),
    ],
)
def test_problems_without_a_bracket_are_refused(loss: Any, training: bool, message: str) -> None:
    x = torch.tensor([[1.0], [2.0], [3.0]])
    given = problem(_line(), (x, x), loss=loss, training=training)
    with pytest.raises(ValueError, match=message):
        plan(given, [1])


def test_a_single_sample_has_no_batches() -> None:
    x = torch.ones(1, 1)
    with pytest.raises(ValueError, match="data must hold at least two samples for a plan, got one"):
        plan(problem(_line(), (x, 2 * x)), [1])


# --- the command -----------------------------------------------------------------------------------------------

MODEL = """
import torch

class Net(torch.nn.Linear):
    def forward(self, x):
        print("running")
        return super().forward(x)

def build():
    return Net(3, 2)
"""


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "own.npz", x=rng.standard_normal((9, 3)), y=rng.integers(0, 2, 9))
    (tmp_path / "net.py").write_text(MODEL)
    given = ["--model", f"{tmp_path / 'net.py'}:build", "--data", str(tmp_path / "own.npz")]
    return ["plan", *given, "--output", str(tmp_path / "out")]


def test_the_command_prints_a_row_for_each_size_and_writes_its_files(
    words: list[str], tmp_path: Path, capsys: Any
) -> None:
    assert cli.main([*words, "--batch-sizes", "1,3,9", "--adam-rate", "1e-3", "--adam-batch", "3"]) == 0
    printed = capsys.readouterr()
    assert set(printed.err.splitlines()) == {"running"}
    assert printed.out.endswith(f"\npage: {tmp_path / 'out' / 'plan.html'}\n")
    table = printed.out.split("\n\n")[1].splitlines()
    assert [row.split()[0] for row in table] == ["B", "1", "3", "9"]
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "plan.html",
        "plan.json",
        "plan.png",
        "plan.svg",
    ]


def test_json_is_what_is_written(
    words: list[str], tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_pages.plots, "save_figure", lambda *_: [])
    assert cli.main([*words, "--batch-sizes", "9", "--json", "--check", "--steps", "2"]) == 0
    printed = capsys.readouterr().out
    assert printed == (tmp_path / "out" / "plan.json").read_text(encoding="utf-8")
    found = json.loads(printed)
    assert found["samples"] == 9
    assert found["rates"][0]["batch_size"] == 9
    assert found["rates"][0]["adam"] is None
    assert found["rates"][0]["sharpness"]["standard_error"] == 0
    assert len(found["checks"]) == 1


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (("--batch-sizes", "0"), "batch sizes must be integers of at least 1, got 0"),
        (("--batch-sizes", "10"), "batch sizes must be at most the number of samples, 9, got 10"),
        (("--batch-sizes", "-4"), "batch sizes must be integers of at least 1, got -4"),
        (("--batch-sizes", "3,3"), "batch sizes must be different, got 3 more than once"),
        (("--batch-sizes", "3,many"), "--batch-sizes must be integers with commas between them"),
        (("--batch-sizes", "3,"), "--batch-sizes must be integers with commas between them"),
        (("--batch-sizes", "3", "--adam-rate", "1"), "--adam-rate and --adam-batch must be given together"),
        (("--batch-sizes", "3", "--steps", "0"), "steps must be at least 1, got 0"),
        (("--batch-sizes", "3", "--training"), "a plan needs evaluation mode"),
    ],
)
def test_bad_words_end_in_one_line(words: list[str], more: tuple[str, ...], line: str, capsys: Any) -> None:
    assert cli.main([*words, *more]) == 2
    printed = capsys.readouterr()
    assert printed.err.splitlines()[-1].startswith("losscurv: ")
    assert line in printed.err
    assert set(printed.err.splitlines()[:-1]) <= {"running"}
    assert printed.out == ""


@pytest.mark.parametrize("more", [("--batch-sizes", "10"), ("--batch-sizes", "3", "--samples", "99")])
def test_what_cannot_be_planned_leaves_no_folder(words: list[str], more: Any, tmp_path: Path) -> None:
    assert cli.main([*words, *more]) == 2
    assert not (tmp_path / "out").exists()


def test_a_full_disk_takes_no_rates_away(
    words: list[str], capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise ValueError("plan cannot be written")

    monkeypatch.setattr(plan_pages, "write", full)
    assert cli.main([*words, "--batch-sizes", "9"]) == 2
    out, err = capsys.readouterr()
    assert "stable below" in out and "page:" not in out
    assert err.splitlines()[-1] == "losscurv: plan cannot be written"


def test_batch_sizes_must_be_given(words: list[str], capsys: Any) -> None:
    assert cli.main(words) == 2
    assert "--batch-sizes" in capsys.readouterr().err


# --- pages -----------------------------------------------------------------------------------------------------


def test_the_picture_has_the_bracket_the_rules_and_the_runs(made: Plan) -> None:
    first, second = plan_pages.figure(made).axes
    _, names = first.get_legend_handles_labels()
    assert {"SGD stable below, unstable above", "2 / Theorem 4", "2 / E λ₁(B)", "crossover within"} < set(
        names
    )
    assert "short runs: held" in names
    assert second.get_title(loc="left") == "Adam, in proportion to √B"


def test_without_adam_nothing_is_said_of_it(given: Problem) -> None:
    found = plan(given, [3], directions=1, heavy=0, batches=2)
    assert len(plan_pages.figure(found).axes) == 1
    assert "Adam" not in plan_pages.text(found)
    assert "short runs" not in plan_pages.text(found)


def test_the_page_needs_nothing_else_and_shows_every_rate(made: Plan) -> None:
    text = plan_pages.page(made)
    assert text.count("<svg") == 1
    for foreign in ("<script", 'href="http', "@import", "src="):
        assert foreign not in text
    for at in made.rates:
        assert f'<th scope="row">{at.batch_size}</th>' in text
    assert "var(--theory)" in text


def test_a_run_that_was_lost_is_told() -> None:
    seen = trial_runs.Trial(
        batch_size=1, steps=1, runs=2, start=1.0, held=None, failed=0.5, held_loss=None, failed_loss=None,
        best=None, best_loss=None,
    )  # fmt: skip
    assert plan_pages._outcome(seen) == "0.5 did not, lost"


def test_a_folder_that_cannot_be_written_is_told(made: Plan, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="plan cannot be written to"):
        plan_pages.write(made, tmp_path / "file" / "below")
