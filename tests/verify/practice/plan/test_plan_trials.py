"""Trial training in a plan: whose optimiser, which batches, what is told of them."""

import dataclasses
import math
from typing import Any

import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn

from tests.verify.practice.plan.small_plans import small_network
from verify.practice.loading import Problem, problem
from verify.practice.plan import Plan, plan_problem, trials, words
from verify.practice.plan.optimizers import chosen_optimizer
from verify.practice.plan.trials import short_batch
from verify.practice.plan.uncertainty import HOLD_OUT, hold_out


def sentences(made: Plan) -> str:
    """The text of a plan, its lines put together."""
    return " ".join(words.plan_text(made).split())


@pytest.fixture(scope="module")
def given() -> Problem:
    return small_network()


def tried(given: Problem, sizes: list[int], **options: Any) -> Plan:
    asked = {"steps": 20, "linearised": False} | options
    return plan_problem(given, sizes, **asked)


def test_the_rate_to_start_with_trains(given: Problem) -> None:
    """Plain steps of torch at that rate, for as many steps, end where the plan says, and below the start."""
    made = tried(given, [14], steps=40)
    (at,) = made.trials
    assert at.start and at.fails and at.walked.start
    low, high = HOLD_OUT["sgd", False].best
    assert at.within == (at.start * low, min(at.start * high, at.fails))
    assert at.start <= at.trains == at.fails / 2
    net, losses = small_network().model, []
    steps = torch.optim.SGD(net.parameters(), lr=at.start)
    for _ in range(at.walked.start.steps):
        loss = given.loss(net(given.inputs), given.targets)
        losses.append(loss.item())
        steps.zero_grad()
        loss.backward()
        steps.step()
    assert_allclose(
        at.walked.start.loss or math.nan, sum(losses[-5:]) / 5, rtol=1e-9
    )  # of 64 samples at least
    assert losses[-1] < losses[0]


@pytest.mark.parametrize(
    ("steps", "size", "last"),
    [(100, 512, 10), (100, 2, 32), (1, 1, 1), (5, 64, 1)],
)
def test_a_rung_is_told_by_a_tenth_of_its_steps_or_by_enough_samples(
    steps: int, size: int, last: int
) -> None:
    assert trials._last(steps, size) == last


def test_rates_at_which_units_die_are_searched_below() -> None:
    """The network gives the best constant at first, and again after training at a rate that kills all units."""
    torch.manual_seed(10)
    x = 30 * torch.randn(200, 10)
    noise = torch.randn(200, 1)
    y = noise - noise.mean() + (x[:, :1] > 0).float() - 0.5
    last = nn.Linear(20, 1)
    model = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 20), nn.ReLU(), last)
    nn.init.zeros_(last.weight)
    nn.init.constant_(last.bias, float(y.mean()))
    (at,) = tried(problem(model, (x, y)), [200], steps=60).trials
    assert at.start < 0.05


def test_a_network_trains_in_its_own_mode() -> None:
    """Dropout of everything but the bias leaves nothing to learn by the inputs, in training mode alone."""
    x, y = torch.eye(3).repeat(4, 1), torch.arange(12) % 3

    def made(p: float) -> Plan:
        torch.manual_seed(0)
        return tried(problem(nn.Sequential(nn.Dropout(p), nn.Linear(3, 3)), (x, y)), [12])

    learned, dropped = made(0.0).trials[0], made(0.999).trials[0]
    assert learned.start is not None and dropped.start is None


def test_the_short_batch_of_a_loader_is_warned_of(given: Problem) -> None:
    assert short_batch(1797, 256) == 5
    assert [short_batch(14, size) for size in (1, 4, 7, 13, 14)] == [0, 0, 0, 1, 0]
    warned, without = tried(given, [13]), tried(given, [13], drop_last=True)
    assert "samples in the last batch, a noisy step: 1 at B = 13; leave it out" in sentences(warned)
    assert "in the last batch" not in sentences(without)
    assert warned.trials[0].walked.rungs != without.trials[0].walked.rungs


def test_where_nothing_beats_a_constant_no_rate_is_given() -> None:
    """Inputs that tell nothing of the targets: every rate ends at the loss of a constant, or above."""
    given = problem(nn.Linear(2, 3), (torch.zeros(12, 2), torch.arange(12) % 3))
    made = tried(given, [12], rate=0.5)
    (at,) = made.trials
    assert (at.start, at.within, at.trains, at.fails) == (None, None, None, None)
    text = sentences(made)
    assert "no trial beats a constant output on the same batches (1.1 on all data)" in text
    assert words.trial_table(made)[1][:4] == ["12", "none", "", "none"]


@pytest.mark.parametrize("seed", range(2))
def test_a_dead_network_gets_no_rate_by_the_luck_of_few_labels(seed: int) -> None:
    """Its bias learns the frequencies; batches hold others, on which the best constant's loss is other too."""
    first = nn.Linear(3, 4)
    with torch.no_grad():
        first.bias.fill_(-99.0)
    net = nn.Sequential(first, nn.ReLU(), nn.Linear(4, 3))
    targets = (torch.arange(300) % 10).clamp(max=2)
    made = tried(problem(net, (torch.ones(300, 3), targets)), [4], steps=60, seed=seed)
    assert made.state.dead == 4
    assert made.trials[0].start is None


def test_where_no_rate_betters_a_trained_network_none_is_given() -> None:
    """At the least squares themselves every step with a batch leads away."""
    x = torch.tensor([[1.0], [2.0], [3.0], [4.0]], dtype=torch.float64)
    net = nn.Linear(1, 1, bias=False).double()
    y = x + torch.tensor([[0.3], [-0.3], [0.2], [-0.175]], dtype=torch.float64)
    with torch.no_grad():
        net.weight.fill_(float((x * y).sum() / x.square().sum()))
    made = tried(problem(net, (x, y), dtype="float64"), [4])
    assert made.trials[0].start is None
    assert "no trial brings the loss below its start" in sentences(made)
    assert "held-out" not in sentences(made)
    assert all(rung.rate > 1e-9 for rung in made.trials[0].walked.rungs)


def test_rates_at_which_the_loss_is_no_number_are_not_given() -> None:
    x = torch.randn(200, 4, generator=torch.Generator().manual_seed(0))
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    (at,) = tried(problem(net, (x, (30 * x[:, :1]) ** 2)), [8]).trials
    losses = [rung.loss for rung in at.walked.rungs if rung.loss is not None]
    assert losses and all(map(math.isfinite, losses))


@pytest.mark.parametrize(
    ("kind", "share", "row", "own"),
    [("adam", 1.0, "adam", True), (None, 1.0, "sgd", False), ("adam", 0.5, "sgd", False)],
)
def test_uncertainty_is_that_of_the_optimizer_and_state_or_says_that_it_is_not(
    given: Problem, kind: str | None, share: float, row: str, own: bool
) -> None:
    made = tried(given, [14])
    learned = share < 1
    if learned:
        made = dataclasses.replace(
            made, state=dataclasses.replace(made.state, loss=share * made.state.constant)
        )
    told, measured = sentences(dataclasses.replace(made, kind=kind)), HOLD_OUT[row, learned]
    assert (
        f"of {measured.cells[1]} held-out runs, {100 * measured.twice:.0f} % were within a factor of 2"
        in told
    )
    assert ("was not measured" in told) == (not own)
    assert hold_out(kind, learned) == (measured, own)


@pytest.mark.parametrize("optimiser", ["sgd", "momentum", "adam"])
def test_optimizers_are_of_the_kind_that_was_measured(optimiser: str) -> None:
    assert chosen_optimizer(optimiser, rate=None).kind == optimiser
    assert chosen_optimizer(optimiser, weight_decay=0.1, rate=None).kind is None
    if optimiser != "adam":
        assert chosen_optimizer(optimiser, momentum=0.5, rate=None).kind is None


def test_between_two_batch_sizes_the_rate_goes_along_a_power(given: Problem) -> None:
    made = tried(given, [1, 4, 14])
    found = {at.batch_size: at for at in made.trials}
    at = [dataclasses.replace(found[size], start=rate) for size, rate in ((1, 0.1), (4, 0.4), (14, None))]
    made = dataclasses.replace(made, trials=tuple(at))
    assert_allclose([made.start_at(size) for size in (1, 2, 4)], [0.1, 0.2, 0.4])
    for size in (14, 8):
        with pytest.raises(ValueError, match=rf"lie between those with a rate \(1, 4\), got {size}"):
            made.start_at(size)


@pytest.mark.parametrize(
    ("sizes", "rates", "power"),
    [((1, 4), (0.1, 0.4), "(1 ± 0.5)"), ((1, 14), (0.1, 0.2), "(0.26 ± 0.26)"), ((1, 4), (0.1, 0.8), "")],
)
def test_a_power_that_two_rungs_cannot_tell_is_not_said(
    given: Problem, sizes: tuple[int, int], rates: tuple[float, float], power: str
) -> None:
    made = tried(given, list(sizes))
    changed = [dataclasses.replace(at, start=rate) for at, rate in zip(made.trials, rates, strict=True)]
    told = sentences(dataclasses.replace(made, trials=tuple(changed)))
    places = f"from {sizes[0]} to {sizes[1]}"
    assert (f"B^{power} {places} (± from the grid" in told) == bool(power)
    assert (f"no clear power {places}" in told) == (not power)


def test_what_the_bracket_cannot_have_stops_no_trials() -> None:
    x = torch.tensor([[1.0], [2.0], [3.0]])
    made = plan_problem(problem(nn.Linear(1, 1, bias=False), (x, 2 * x), loss=nn.L1Loss()), [3], steps=10)
    assert made.trials and made.linearised is None
    assert made.not_linearised.startswith("model must have curvature along some direction")
    assert f"none: {made.not_linearised}" in sentences(made)
