"""Trial runs of a plan: whose optimizer, which batches, which loss, and what is said of them."""

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn
from torch.nn.functional import cross_entropy
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, IterableDataset

from tests.refusals import refusal
from tests.verify.practice.plan.small_plans import small_network
from verify.practice.loading import Problem, problem
from verify.practice.plan import InterruptedPlanError, Plan, plan, plan_problem, words
from verify.practice.plan.hold_out import HOLD_OUT, HoldOut
from verify.practice.plan.optimizers import chosen_optimizer, with_schedule
from verify.practice.plan.trials import SCORES, Trials


def sentences(made: Plan) -> str:
    """Return the text of a plan, its lines put together."""
    return " ".join(words.plan_text(made).split())


@pytest.fixture(scope="module")
def given() -> Problem:
    return small_network()


def tried(given: Problem, sizes: list[int], **options: Any) -> Plan:
    return plan_problem(given, sizes, **{"steps": 20, **options})


def test_the_suggested_rate_trains(given: Problem) -> None:
    """Plain steps of torch at that rate, for as many steps, end where the plan says, and below the start."""
    made = tried(given, [14], steps=40)
    (at,) = made.trials
    low, high = HOLD_OUT["sgd", False].best
    assert at.start and at.fails and at.within == (at.start * low, min(at.start * high, at.fails))
    assert at.start <= at.trains == at.fails / 4
    net, run = small_network().model, next(run for run in at.runs if run.rate == at.start)
    steps = torch.optim.SGD(net.parameters(), lr=at.start)
    for _ in range(run.steps):
        steps.zero_grad()
        given.loss(net(given.inputs), given.targets).backward()
        steps.step()
    assert_allclose(run.loss or math.nan, given.loss(net(given.inputs), given.targets).item(), rtol=1e-9)
    assert run.trains and run.loss < made.state.loss == pytest.approx(given.objective.value())


def test_the_table_says_which_rates_rest_on_shorter_runs(given: Problem) -> None:
    made = tried(given, [14], steps=40)
    (at,) = made.trials
    runs = tuple(replace(run, steps=5 if run.rate == at.fails else 40) for run in at.runs)
    cut = replace(made, trials=(replace(at, runs=runs),))
    assert words.trial_table(cut)[1][-2:] == [f"{at.trains:g}", f"{at.fails:g} (5 steps)"]


def test_a_rate_that_trained_in_short_runs_alone_is_not_suggested(given: Problem) -> None:
    """A scheduler makes the last steps too large: shorter runs train."""

    def late(optimizer: Any) -> Any:
        return lr_scheduler.LambdaLR(optimizer, lambda step: 1.0 if step < 300 else 1e20)

    made = tried(given, [14], rate=1.6, steps=400, scheduler=late)
    (at,) = made.trials
    assert any(run.trains for run in at.runs) and (at.start, at.trains) == (None, None)
    assert "none of the longest trial runs ended 1 %" in sentences(made)
    assert "lower --rate if they diverged" in sentences(made)


def test_each_score_is_the_loss_that_it_names() -> None:
    """Labels without a rule are learned by heart: only the held-out loss rises."""
    torch.manual_seed(0)
    x, y = torch.randn(60, 40), torch.arange(60) % 3
    net = nn.Sequential(nn.Linear(40, 60), nn.Tanh(), nn.Linear(60, 3))
    found = {score: tried(problem(net, (x, y)), [16], steps=40, score=score) for score in SCORES}
    assert found["training"].trials[0].start and found["online"].trials[0].start
    assert found["held-out"].trials[0].start is None
    for score, made in found.items():
        assert f"{score} loss" in sentences(made)
        assert (made.kind is None) == (score != "training")
    with refusal("score must be one of training, held-out, online, got 'best'"):
        tried(problem(net, (x, y)), [16], score="best")
    with refusal("batch sizes must be at most 48, the samples that are not held out"):
        tried(problem(net, (x, y)), [60], score="held-out")


def test_a_network_trains_in_its_own_mode() -> None:
    """Dropout of everything but the bias leaves nothing to learn by the inputs, in training mode alone."""
    x, y = torch.eye(3).repeat(4, 1), torch.arange(12) % 3

    def start(p: float, **options: Any) -> float | None:
        torch.manual_seed(0)
        net = nn.Sequential(nn.Dropout(p), nn.Linear(3, 3))
        return tried(problem(net, (x, y)), [12], **options).trials[0].start

    assert start(0.0) is not None and start(0.999) is None and start(0.999, evaluation=True) is not None


def test_a_batch_of_one_sample_has_no_statistics() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))
    given = problem(net, (torch.randn(12, 3), torch.arange(12) % 3))
    with refusal("model and loss cannot train on batches of 1 samples: ValueError"):
        tried(given, [1, 4])
    made = tried(given, [4], curvature=True)
    assert made.trials[0].start and made.linearised is None
    assert "no limits from curvature: batch normalisation uses the statistics" in sentences(made)
    assert tried(given, [4], curvature=True, evaluation=True).linearised is not None


def test_the_short_batch_of_a_loader_is_warned_of(given: Problem) -> None:
    shown = {at.batch_size: at.short for at in tried(given, [1, 4, 7, 13, 14], steps=2).trials}
    assert shown == {1: 0, 4: 0, 7: 0, 13: 1, 14: 0}
    warned, without = tried(given, [13]), tried(given, [13], drop_last=True)
    assert "samples in the last batch, a noisy step: 1 at B = 13; leave it out" in sentences(warned)
    assert "in the last batch" not in sentences(without)
    assert warned.trials[0].runs != without.trials[0].runs


@pytest.mark.parametrize("seed", range(2))
def test_a_dead_network_gets_no_rate(seed: int) -> None:
    """Its bias learns the frequencies of the labels, and nothing else."""
    first = nn.Linear(3, 4)
    with torch.no_grad():
        first.bias.fill_(-99.0)
    net = nn.Sequential(first, nn.ReLU(), nn.Linear(4, 3))
    targets = (torch.arange(300) % 10).clamp(max=2)
    made = tried(problem(net, (torch.ones(300, 3), targets)), [4], steps=60, seed=seed)
    (at,) = made.trials
    assert (at.start, at.within, at.trains, at.fails) == (None, None, None, None)
    assert "no rate at B = 4: none of the longest trial runs ended 1 % below the start" in sentences(made)
    assert "check initialisation, data and loss" in sentences(made)
    assert "tests on other" not in sentences(made) and words.headline(made) == "No learning rate was found"
    assert words.trial_table(made)[1] == ["4", "none", "", "", ""]


def test_a_loss_that_is_no_number_is_refused_at_the_start_and_failed_later(given: Problem) -> None:
    x = torch.randn(200, 4, generator=torch.Generator().manual_seed(0))
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    (at,) = tried(problem(net, (x, (30 * x[:, :1]) ** 2)), [8]).trials
    losses = [run.loss for run in at.runs if run.loss is not None]
    assert losses and all(map(math.isfinite, losses))
    with refusal("loss must be finite, got nan"):
        plan(net, (x, x[:, :1]), loss=lambda o, y: (o - 99 + y).mean().log(), batch_sizes=8)


# --- optimizer, scheduler, clipping ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sgd", "momentum", "adam", "adamw"])
def test_only_optimizers_that_were_tested_have_a_range(name: str, given: Problem) -> None:
    assert chosen_optimizer(name).kind == name
    assert chosen_optimizer(name, weight_decay=0.1).kind is None
    assert with_schedule(chosen_optimizer(name), None, 1.0, 10).kind is None
    made = tried(given, [14], optimizer=name, weight_decay=0.1)
    assert made.trials[0].within is None
    assert "training loss, untrained: none, so there is no range" in sentences(made)


def test_the_range_is_that_of_the_optimizer_and_state(given: Problem) -> None:
    made = tried(given, [14])
    seen: HoldOut = HOLD_OUT["sgd", False]
    assert f"SGD, training loss, untrained: in {100 * seen.good:.0f} % of {seen.cases} cases" in sentences(
        made
    )
    learned = replace(made.state, loss=0.5 * made.state.constant)
    assert "from a checkpoint: in" in sentences(replace(made, state=learned))


SCHEDULERS = {
    "warm-up": lambda optimizer: lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 5)),
    "cosine": lambda optimizer: lr_scheduler.CosineAnnealingLR(optimizer, 20),
    "one cycle": lambda optimizer: lr_scheduler.OneCycleLR(optimizer, 0.3, total_steps=21),
    "sequence": lambda optimizer: lr_scheduler.SequentialLR(
        optimizer,
        [lr_scheduler.LinearLR(optimizer, 0.1, total_iters=5), lr_scheduler.StepLR(optimizer, 4)],
        milestones=[5],
    ),
}


@pytest.mark.parametrize("name", SCHEDULERS)
@pytest.mark.parametrize("in_use", [True, False])
def test_a_trial_has_the_rates_of_the_scheduler(name: str, in_use: bool) -> None:
    """Scaled to the rate of the trial; a scheduler in use is left as found."""
    weight = nn.Parameter(torch.ones(1))
    own = torch.optim.SGD([weight], lr=0.3, momentum=0.5)
    scheduler = SCHEDULERS[name](own)
    before = scheduler.state_dict()
    found = with_schedule(
        chosen_optimizer(own, places={id(weight): 0}), scheduler if in_use else SCHEDULERS[name], None, 20
    )
    assert "scheduler" in found.name and found.rate == 0.3
    made = found.make([weight], 0.6)
    stepped, rates = found.schedule(made), list[tuple[float, float]]()
    assert scheduler.state_dict() == before
    for _ in range(20):
        rates.append((made.param_groups[0]["lr"], own.param_groups[0]["lr"]))
        for each in (made, own, stepped, scheduler):
            each.step()
    scaled, expected = map(list, zip(*rates, strict=True))
    assert_allclose(
        scaled, [2 * rate for rate in expected] if in_use or name != "one cycle" else scaled, rtol=1e-6
    )


def apart(optimizer: Any) -> Any:
    """Return a scheduler of two groups, of which one decays."""
    optimizer.add_param_group({"params": [nn.Parameter(torch.ones(1))]})
    return lr_scheduler.LambdaLR(optimizer, [lambda step: 1.0, lambda step: 1.0 / (1 + step)])


@pytest.mark.parametrize(
    ("scheduler", "clip", "message"),
    [
        (3, None, "scheduler must be a scheduler of torch or a function of an optimizer to one, got 3"),
        (lr_scheduler.ReduceLROnPlateau, None, "scheduler must not need a metric, got ReduceLROnPlateau"),
        (SCHEDULERS["one cycle"], None, "scheduler cannot take 30 steps of a trial run: .*total steps is 21"),
        (apart, None, "changes the ratios between the rates of parameter groups"),
        (None, 0.0, "clip must be positive, got 0.0"),
    ],
)
def test_what_is_no_scheduler_is_refused(scheduler: Any, clip: Any, message: str) -> None:
    with refusal(message):
        with_schedule(chosen_optimizer("sgd"), scheduler, clip, 30)


def test_scheduler_and_clipping_change_the_trial_runs(given: Problem) -> None:
    plain, warm, clipped = (
        tried(given, [4], optimizer="momentum", **more)
        for more in ({}, {"scheduler": SCHEDULERS["warm-up"]}, {"clip": 0.01})
    )
    assert "clipped at 0.01" in sentences(clipped)
    assert len({made.trials[0].runs for made in (plain, warm, clipped)}) == 3
    assert clipped.trials[0].fails is None or clipped.trials[0].fails > plain.trials[0].fails


class _Stream(IterableDataset[Any]):
    def __iter__(self) -> Iterator[tuple[torch.Tensor, int]]:
        return iter([(torch.full((4,), k / 9), k % 3) for k in range(30)])


def test_a_loader_of_a_stream_needs_no_length() -> None:
    made = plan(nn.Linear(4, 3), DataLoader(_Stream(), batch_size=12), steps=10)
    assert made.samples == 30 and made.trials[0].batch_size == 12


# --- the loss ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("of_batch", [True, False])
def test_a_penalty_on_the_weights_is_part_of_the_loss(of_batch: bool) -> None:
    """A heavy penalty pulls the weights to zero; the model of the caller is left as found."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    x, y = torch.randn(60, 4), torch.arange(60) % 3
    before = [p.detach().clone() for p in model.parameters()]

    def penalty(net: nn.Module) -> torch.Tensor:
        return sum(p.square().sum() for p in net.parameters())

    def of_model(model: Any, batch: Any) -> torch.Tensor:
        return cross_entropy(model(batch[0]), batch[1]) + penalty(model)

    loss: Any = of_model if of_batch else lambda o, t: cross_entropy(o, t) + penalty(model)
    found = plan(model, (x, y), loss=loss, batch_sizes=20, steps=40, curvature=True)
    (at,) = found.trials
    assert at.start is not None and min(run.loss for run in at.runs if run.trains) < 0.7 * found.state.loss
    assert found.linearised is None and "a penalty on the weights" in found.not_linearised
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), before, strict=True))
    assert all(p.grad is None for p in model.parameters())


def test_a_loss_that_compares_samples_needs_no_constant_output() -> None:
    torch.manual_seed(0)

    class Pairs(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x) @ x.T

    def contrast(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return cross_entropy(outputs, torch.arange(len(outputs)))

    found = plan(Pairs(4, 4), (torch.randn(24, 4), torch.zeros(24)), loss=contrast, batch_sizes=8, steps=20)
    assert found.trials[0].start and found.to_dict()["state"]["constant"] is None
    assert "best constant output" not in sentences(found) and not found.state.learned
    assert found.trials[0].within is None


# --- time ----------------------------------------------------------------------------------------------------------


def _slow(seconds: float) -> Problem:
    class Slow(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if self.training and self.weight.grad_fn is None and torch.is_grad_enabled():
                time.sleep(seconds)
            return super().forward(x)

    torch.manual_seed(0)
    return problem(Slow(2, 3), (torch.randn(12, 2), torch.arange(12) % 3))


def test_a_budget_is_kept_and_one_that_is_too_small_refused() -> None:
    given, started = _slow(0.005), time.monotonic()
    made = plan_problem(given, [4, 12], seconds=1.5)
    assert time.monotonic() - started < 1.6
    assert [at.batch_size for at in made.trials] == [4, 12] and 10 <= made.trials[0].ahead < 200
    with refusal(r"seconds must be at least \d+ for these batch sizes, got 0.01"):
        plan_problem(given, [4], seconds=0.01)


def test_where_the_guess_was_wrong_the_time_ends_the_search(
    given: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Trials, "shorten", lambda *_: None)
    made = plan_problem(_slow(0.005), [4, 12], seconds=0.8)
    assert made.stopped == "time" and made.seconds < 1.0
    assert sentences(made).endswith("(ended by the time limit)")
    assert all(at.within is None and at.ahead < 200 for at in made.trials)
    with refusal(r"seconds must be more, got 0\.001: no trial run could end"):
        plan_problem(given, [4], seconds=0.001)


def _interrupt() -> None:
    raise KeyboardInterrupt


def test_an_interruption_keeps_what_was_found(given: Problem) -> None:
    """The largest batch size comes first; of the other one half a search is done."""
    calls, seen = list[float](), list[float]()
    whole = tried(given, [14], tell=lambda _, share: calls.append(share))

    def interrupt(what: str, share: float) -> None:
        seen.append(share)
        if len(seen) == len(calls) + 4:
            raise KeyboardInterrupt

    with pytest.raises(InterruptedPlanError) as caught:
        tried(given, [2, 14], tell=interrupt)
    made = caught.value.plan
    assert made.stopped == "interrupted" and [at.batch_size for at in made.trials] == [2, 14]
    assert made.trials[-1] == whole.trials[-1] and len(made.trials[0].runs) == 3
    with pytest.raises(InterruptedPlanError) as caught:
        tried(given, [14], curvature=True, tell=lambda what, _: _interrupt() if what == "curvature" else None)
    assert caught.value.plan.trials == whole.trials and caught.value.plan.linearised is None
    with pytest.raises(KeyboardInterrupt) as bare:
        tried(given, [2], tell=lambda *_: _interrupt())
    assert not isinstance(bare.value, InterruptedPlanError)
