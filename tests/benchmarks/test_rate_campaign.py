"""A campaign with a network of one layer and few steps: the judge, the rules, the files and the tables."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from benchmarks.rates import __main__ as command, rate_free, rules, task
from benchmarks.rates.campaign import Result, best, load, place, rate, searched, work
from benchmarks.rates.networks import NETWORKS, Network
from benchmarks.rates.rate_free import RATE_FREE, DoG, Prodigy, ScheduleFree
from benchmarks.rates.rules import RULES, score, trial
from benchmarks.rates.tables import judged, lower_bound, tables
from benchmarks.rates.task import OPTIMISERS, SIZES, Ground, Task

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def small() -> Network:
    """One layer of digits."""
    network = next(n for n in NETWORKS if n.source == "digits-8")

    def layer() -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 10))

    return Network(**{**vars(network), "module": layer, "squared": False, "start": "torch"})


def ground_of(small: Network, optimiser: str = "sgd", state: str = "start") -> Ground:
    return Ground(small, state, optimiser)


# --- the judge


def test_the_judge_trains_as_torch_does(small: Network) -> None:
    """Full batches have no order: the loss is that of gradient descent."""
    ground = ground_of(small)
    model = small.built(0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    for _ in range(4):
        optimizer.zero_grad()
        small.loss(model(ground.data[0]), ground.data[1]).backward()
        optimizer.step()
    expected = small.loss(model(ground.data[0]), ground.data[1]).item()
    for order in (0, 1):
        found = ground.judge(task.SAMPLES, order, lambda own: torch.optim.SGD(own, lr=0.3), 4)
        assert found == pytest.approx(expected, rel=1e-4)


def test_the_judge_has_other_batches_than_the_rule(small: Network) -> None:
    ground = ground_of(small)
    given = ground.task()
    own = score(trial(given, 8, [0.5], 20))
    losses = [ground.judge(8, order, lambda own: torch.optim.SGD(own, lr=0.5), 20) for order in (0, 1)]
    assert len({*losses, own}) == 3


def test_a_divergent_training_is_infinitely_bad(small: Network) -> None:
    assert ground_of(small).judge(8, 0, lambda own: torch.optim.SGD(own, lr=1e38), 9) == math.inf


def test_a_checkpoint_was_trained_and_no_run_changes_it(small: Network) -> None:
    early, late = (ground_of(small, state=state) for state in ("start", "checkpoint"))
    assert late.reference < early.reference
    before = {name: value.clone() for name, value in late.model.state_dict().items()}
    late.judge(64, 0, lambda own: torch.optim.SGD(own, lr=0.1), steps=5)
    RULES["six rates x 50"](late.task())
    assert all(torch.equal(value, before[name]) for name, value in late.model.state_dict().items())


def test_the_weights_of_adamw_decay(small: Network) -> None:
    parameter = nn.Parameter(torch.ones(1))
    parameter.grad = torch.zeros(1)
    OPTIMISERS["adamw"][0]([parameter], 0.5).step()
    assert parameter.item() == pytest.approx(1 - 0.5 * 0.01)


# --- rules


def test_the_steps_of_a_rule_are_counted(small: Network) -> None:
    given = ground_of(small).task()
    trial(given, 8, [0.1], 7)
    trial(given, 64, [0.1], 3).until(5)
    assert given.spent == 12


def test_the_rate_of_a_trial_changes_from_step_to_step(small: Network) -> None:
    """A schedule that ends at rate 0 stops training: the loss of a batch of all samples stays."""
    given = ground_of(small).task()
    losses = trial(given, task.SAMPLES, [0.1, 0.1, 0.0], 5).losses
    assert losses[0] > losses[1] > losses[2]
    assert losses[2:] == pytest.approx([losses[2]] * 3, rel=1e-6)


def test_halving_takes_the_best_of_the_trials_that_it_continues(small: Network) -> None:
    given = ground_of(small).task()
    found = rules.grid(given, places=range(-1, 2), short=2, leaders=3)
    for size in SIZES:
        scores = {r: score(trial(given, size, [r], given.steps)) for r in (0.025, 0.1, 0.4)}
        assert found[size] == pytest.approx(min(scores, key=lambda r: scores[r]))


def test_no_rate_is_given_where_all_trials_diverge(small: Network) -> None:
    given = ground_of(small).task()
    assert set(rules.grid(given, places=range(62, 64), short=9).values()) == {None}


@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_the_plan_is_asked_with_the_optimiser_of_the_task(small: Network, optimiser: str) -> None:
    given = ground_of(small, optimiser).task()
    found = rules.plan(given, steps=16)
    assert found.keys() == set(SIZES)
    # at least the two longest runs of each size, and no step with another optimiser
    assert given.spent >= 2 * 16 * len(SIZES)
    for size, at in found.items():
        assert at is not None
        assert score(trial(given, size, [at], 16)) < ground_of(small).reference


def test_a_range_test_reads_its_loss_curve(small: Network) -> None:
    given, seen = ground_of(small).task(), list[Any]()

    def read(rates: np.ndarray, losses: np.ndarray) -> float:
        seen.append((rates, losses))
        return 0.5

    assert set(rules.range_test(given, read=read).values()) == {0.5}
    rates, losses = seen[0]
    assert len(rates) == len(losses) <= 100
    assert rates[0] == pytest.approx(1e-7)
    # the first steps are too small to change the model: the curve is the smoothed loss of its batches
    still = trial(given, SIZES[0], [1e-12], 3).losses
    assert losses[1] == pytest.approx(0.05 * still[1] + 0.95 * still[0], rel=1e-4)


# --- optimisers without a rate


def quadratic(make: Any, steps: int) -> tuple[nn.Parameter, Any]:
    """Descend on half of the squared distance to 1, from 0."""
    parameter = nn.Parameter(torch.zeros(1))
    optimizer = make([parameter])
    for _ in range(steps):
        parameter.grad = parameter.detach() - 1
        optimizer.step()
    return parameter, optimizer


@pytest.mark.parametrize("name", RATE_FREE)
def test_a_rate_free_optimiser_finds_the_minimum(name: str) -> None:
    parameter, optimizer = quadratic(RATE_FREE[name][0], 3000)
    getattr(optimizer, "eval", lambda: None)()
    assert parameter.item() == pytest.approx(1.0, abs=0.05)


def test_the_first_steps_of_dog_are_those_of_its_formula() -> None:
    parameter, _ = quadratic(DoG, 2)
    first = 1e-6  # the first distance, since the gradient is 1
    assert parameter.item() == pytest.approx(first + first / math.sqrt(2), rel=1e-3)


def test_prodigy_never_estimates_more_than_the_distance() -> None:
    """The estimate is a lower bound of the distance to the minimum for convex losses (its Theorem 1)."""
    _, optimizer = quadratic(Prodigy, 400)
    assert 0.1 < optimizer.estimate <= 1.0


@pytest.mark.parametrize("adam", [False, True])
def test_schedule_free_averages_its_iterates(adam: bool) -> None:
    parameter = nn.Parameter(torch.zeros(1))
    optimizer, iterates = ScheduleFree([parameter], adam=adam), list[float]()
    for _ in range(5):
        parameter.grad = parameter.detach() - 3
        optimizer.step()
        iterates.append(optimizer.z[0].item())
    assert parameter.item() == pytest.approx(0.9 * np.mean(iterates) + 0.1 * iterates[-1], rel=1e-5)
    optimizer.eval()
    assert parameter.item() == pytest.approx(np.mean(iterates), rel=1e-5)
    # the first step of Adam has the length of the rate; that of SGD is the rate times the gradient
    assert iterates[0] == pytest.approx(0.0025 if adam else 3.0, rel=1e-4)


# --- the search


@pytest.mark.parametrize("first", [-3, 0, 2, 5])
@pytest.mark.parametrize("stride", [2, 4])
def test_the_search_finds_the_best_rate_of_a_valley(first: int, stride: int) -> None:
    seen = searched(lambda k: math.inf if k > 5 else abs(k - 3), first, stride)
    assert best(seen) == 3
    assert {2, 4} <= seen.keys()


# --- files and tables


@pytest.fixture
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainings of six steps."""
    judge = Ground.judge
    monkeypatch.setattr(Ground, "judge", lambda *given: judge(*given, steps=6))


@pytest.mark.usefixtures("_short")
def test_what_is_missing_is_added_and_nothing_is_run_again(
    small: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ground = ground_of(small)
    list(work(ground, {"usual default": rules.usual}, tmp_path))
    (file,) = tmp_path.glob("*.json")
    one = load(file)
    assert one.rules["usual default"] == {"rates": {"8": 0.1, "64": 0.1}, "steps": 0}
    assert set(one.replaced) == {"DoG", "Schedule-Free SGD"}

    def mine(given: Task) -> Mapping[int, float | None]:
        trial(given, 8, [0.1], 3)
        return {8: 1e-9}

    list(work(ground, {"usual default": rules.usual, "mine": mine}, tmp_path, orders=2))
    two = load(file)
    assert two.rules["mine"] == {"rates": {"8": 1e-9, "64": None}, "steps": 3}
    assert two.losses["8"].keys() == one.losses["8"].keys() | {str(place(1e-9))}
    for size in two.losses:
        for at, runs in two.losses[size].items():
            assert len(runs) == 2 and runs[:1] == one.losses[size].get(at, runs[:1])
    monkeypatch.setattr(Ground, "judge", None)
    assert list(work(ground, {"mine": mine}, tmp_path, orders=2)) == []


def result_of(given: float | None, losses: Mapping[int, list[float]]) -> Result:
    """One batch size, with a rule's rate, where the model has the loss 2.2."""
    by_place = {str(k): runs for k, runs in losses.items()}
    answer = {"rates": {"64": given}, "steps": 500}
    return Result(["a", "start", "sgd"], 2.2, {"64": by_place}, {"plan": answer})


TRIED = {-4: [0.5], -2: [0.4], 0: [0.2], 2: [0.6], 3: [math.inf]}


@pytest.mark.parametrize(
    ("given", "regret", "ratio"),
    [(0.5, 0.1, 0.5), (1.0, 0.0, 1.0), (2.0, 0.2, 2.0), (rate(3), 1.0, rate(3)), (None, 1.0, None)],
)
def test_a_rate_is_judged_by_the_share_of_the_loss_reduction_that_it_loses(
    given: float | None, regret: float, ratio: float | None
) -> None:
    (row,) = judged([result_of(given, TRIED)])
    assert (row.rule, row.kind, row.ratio, row.steps) == ("plan", "sgd, start", ratio, 500)
    assert row.regret == pytest.approx(regret)


def test_where_nothing_trains_nothing_is_judged() -> None:
    assert judged([result_of(1.0, {0: [2.19], 2: [math.inf]})]) == []


def test_losses_are_means_over_the_orders() -> None:
    result = result_of(1.0, {0: [0.2, 0.6], 1: [0.3, 0.3], 2: [0.1]})
    assert result.grid("64") == {0: 0.4, 1: 0.3}
    (row,) = judged([result])
    assert row.regret == pytest.approx(0.1 / 1.9)


def test_tables_say_what_was_judged() -> None:
    made = [" ".join(line.split()) for line in tables([result_of(2.0, TRIED)]).splitlines()]
    assert made.count("| plan | 1 | 0.00 | 0.00 | 0.200 | 0 | 1.00 | 0.5 to 0.5 | 500 |") == 2
    assert made[0].startswith("| sgd, start | judgements |")


def test_the_lower_bound_is_exceeded_by_chance_in_one_of_ten() -> None:
    """With the bound as true share, so many or more good answers have the probability 0.1."""
    share = lower_bound(15, 18)
    chance = sum(math.comb(18, k) * share**k * (1 - share) ** (18 - k) for k in range(15, 19))
    assert chance == pytest.approx(0.1)


@pytest.mark.usefixtures("_short")
def test_the_command_adds_a_rule_and_prints_tables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "OPTIMISERS", ("adam",))
    monkeypatch.setattr(command, "STATES", ("start",))
    tanh = next(n for n in NETWORKS if n.name == "tanh-squared-digits-torch")
    monkeypatch.setattr(command, "NETWORKS", (tanh,))
    words = ["--folder", str(tmp_path), "--half", "design"]
    own = ["--rule", "usual default", "--rule", "benchmarks.rates.rules:usual"]
    assert command.main([*words, *own]) == 0
    said = capsys.readouterr()
    assert "tanh-squared-digits-torch, start, adam: best rates" in said.err
    assert "| benchmarks.rates.rules:usual |" in said.out
    assert command.main([*words, *own]) == 0
    assert capsys.readouterr() == (said.out, "")
    monkeypatch.setattr(command, "NETWORKS", NETWORKS)
    assert command.main([*words, *own, "--network", tanh.name]) == 0
    assert capsys.readouterr() == (said.out, "")
    with pytest.raises(SystemExit, match="2"):
        command.main(words)
    assert "--data must name an archive of colour images" in capsys.readouterr().err


def test_rate_free_optimisers_are_judged_in_place_of_known_ones() -> None:
    assert {name for _, instead_of in rate_free.RATE_FREE.values() for name in instead_of} == set(OPTIMISERS)
