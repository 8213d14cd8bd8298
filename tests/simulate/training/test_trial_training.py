"""Runs of training at a rate: the steps of the optimiser itself, common batches, no trace left in the model."""

import math
import random
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn

from simulate.training.trial_training import OPTIMISERS, CommonBatches, Training, TrialRun, tail
from tests.refusals import refusal

DATA = (torch.linspace(-2, 2, 60).view(15, 4).sin(), torch.arange(15) % 3)


class _Noisy(nn.Module):
    """Statistics of batches, dropout, a generator of numpy, and a weight with two names."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.last = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 3)
        self.second.weight = self.first.weight
        self.norm, self.drop = nn.BatchNorm1d(4), nn.Dropout(0.3)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.drop(self.norm(self.second(self.first(x).tanh())))
        return self.last(hidden) * (1 + 0.1 * np.random.random() + 0.1 * random.random())  # noqa: NPY002


def of(model: nn.Module, optimiser: Any = "sgd", *, size: int = 5, **other: Any) -> Training:
    given = {"loss": nn.CrossEntropyLoss(), "batches": CommonBatches(samples=15, size=size, seed=3), **other}
    return Training(model=model, inputs=DATA[0], targets=DATA[1], optimiser=optimiser, **given)


@pytest.fixture
def model() -> nn.Module:
    torch.manual_seed(0)
    return _Noisy()


def state(model: nn.Module) -> dict[str, Any]:
    return {name: value.tolist() for name, value in model.state_dict().items()}


def everything(model: nn.Module) -> list[Any]:
    generators = [torch.get_rng_state().tolist(), random.getstate(), np.random.get_state()[1].tolist()]  # noqa: NPY002
    modes = [part.training for part in model.modules()]
    places = [id(tensor) for tensor in [*model.parameters(), *model.buffers()]]
    return [state(model), places, modes, [p.grad for p in model.parameters()], generators]


each_optimiser = pytest.mark.parametrize("optimiser", OPTIMISERS)


@each_optimiser
@pytest.mark.parametrize("rate", [0.01, 1e9])
def test_the_model_is_left_as_found(model: nn.Module, optimiser: str, rate: float) -> None:
    model.norm.eval()
    before = everything(model)

    run = TrialRun(of(model, optimiser), rate).until(7)
    run.until(30)

    assert everything(model) == before
    assert len(run.losses) == 30 or run.lost


def test_a_model_is_left_as_found_by_what_raises(model: nn.Module) -> None:
    model.first.weight.grad = torch.ones(4, 4)
    gradient, before = model.first.weight.grad, everything(model)[:3]
    calls = iter(range(3))

    with pytest.raises(StopIteration):
        TrialRun(of(model, loss=lambda z, _: z.square().mean() + next(calls)), 0.1).until(9)

    assert everything(model)[:3] == before
    assert model.first.weight.grad is gradient


@each_optimiser
def test_a_run_that_is_continued_is_the_run_in_one_go(model: nn.Module, optimiser: str) -> None:
    training = of(model, optimiser)
    whole, parts = TrialRun(training, 0.02).until(23), TrialRun(training, 0.02)
    for steps in (1, 4, 4, 11, 23):
        TrialRun(training, 0.3).until(steps)  # another run in between
        parts.until(steps)

    assert parts.losses == whole.losses
    with whole.trained() as one:
        ends = state(one)
    with parts.trained() as other:
        assert state(other) == ends
        assert other.training


def test_a_run_takes_the_steps_of_the_optimiser() -> None:
    """Plain loop, no dropout: the same numbers."""
    torch.manual_seed(1)
    model, twin = (
        nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3)) for _ in "12"
    )
    twin.load_state_dict(model.state_dict())
    training = of(model, "momentum", size=4)

    run = TrialRun(training, 0.1).until(12)

    optimiser, expected = torch.optim.SGD(twin.parameters(), lr=0.1, momentum=0.9), []
    for step in range(12):
        chosen = training.batches.at(step)
        loss = nn.functional.cross_entropy(twin(DATA[0][chosen]), DATA[1][chosen])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        expected.append(loss.item())
    assert run.losses == expected
    with run.trained() as end:
        assert state(end) == state(twin)


def test_a_function_may_make_any_optimiser(model: nn.Module) -> None:
    made = []

    def heads(rate: float) -> torch.optim.Optimizer:
        made.append(rate)
        return torch.optim.LBFGS(model.last.parameters(), lr=rate, max_iter=3)

    run = TrialRun(of(model, heads, training=False), 0.5).until(20)

    assert made == [0.5] and len(run.losses) == 20
    assert run.final(last=3) < np.mean(run.losses[:3])
    with run.trained() as end:
        assert not end.training


@pytest.mark.parametrize("drop_last", [False, True])
def test_orders_are_new_in_each_epoch_and_steps_are_their_batches(drop_last: bool) -> None:
    batches = CommonBatches(samples=10, size=4, seed=1, drop_last=drop_last)
    assert batches.per_epoch == (2 if drop_last else 3)
    several = [chosen.tolist() for chosen in batches.steps(1, 9)]
    assert several == [batches.at(step).tolist() for step in range(1, 9)]
    assert {len(chosen) for chosen in several} == ({4} if drop_last else {4, 2})
    orders = [batches.order(epoch).tolist() for epoch in range(3)]
    assert [sorted(order) for order in orders] == [list(range(10))] * 3
    assert orders[0] != orders[1] != orders[2]
    first = batches.per_epoch - 1  # of the second epoch, where step 1 comes first
    assert [i for chosen in several[first : first + 2] for i in chosen] == orders[1][:8]
    assert CommonBatches(samples=10, size=4, seed=2).at(0).tolist() != batches.at(0).tolist()


def test_a_run_is_lost_where_its_loss_leaves() -> None:
    line = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(line.weight)
    x = torch.ones(4, 1)
    batches = CommonBatches(samples=4, size=4)
    given = {
        "model": line,
        "loss": nn.MSELoss(),
        "inputs": x,
        "targets": x,
        "batches": batches,
    }
    growing = TrialRun(Training(**given), 2.0).until(99)  # the distance to 1 times 3 at each step
    assert growing.lost
    assert growing.losses == [9.0**k for k in range(6)]
    assert growing.final() == math.inf
    assert growing.until(200).steps == 6
    assert TrialRun(Training(**given, lost=80.0), 2.0).until(99).steps == 3
    unbounded = TrialRun(Training(**given, lost=math.inf), 2.0).until(99)
    assert unbounded.lost
    assert not math.isfinite(unbounded.losses[-1])
    with refusal("run is lost: its parameters were not kept"):
        growing.trained()


def test_the_end_is_the_last_tenth(model: nn.Module) -> None:
    run = TrialRun(of(model), 0.1).until(25)
    assert tail(25) == 3
    assert_allclose(run.final(), np.mean(run.losses[22:]))
    assert_allclose(run.final(last=5), np.mean(run.losses[20:]))


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda _: CommonBatches(samples=4, size=5), "size must be at most the 4 samples there are, got 5"),
        (lambda m: of(m, "lion"), "optimiser must be one of sgd, momentum, adam or a function, got 'lion'"),
        (
            lambda m: TrialRun(
                of(m, lambda rate: torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=rate)), 0.1
            ),
            "optimiser must hold the parameters of the model itself",
        ),
        (lambda _: of(nn.Linear(4, 3).requires_grad_(False)), "model must have a parameter that requires"),
        (lambda m: TrialRun(of(m), 0.1).final(), "run must have taken at least one step"),
        (
            lambda m: of(m, batches=CommonBatches(samples=14, size=2)),
            "batches must have the 15 samples of the targets, got 14",
        ),
        (
            lambda m: TrialRun(of(m, loss=nn.CrossEntropyLoss(reduction="none")), 0.1).until(1),
            r"loss must be one number for a batch, got \(5,\)",
        ),
    ],
)
def test_what_is_asked_of_the_arguments(model: nn.Module, ask: Any, message: str) -> None:
    with refusal(message):
        ask(model)


@pytest.mark.parametrize("training", [True, False])
def test_the_loss_on_samples_is_that_of_the_run_and_changes_nothing(model: nn.Module, training: bool) -> None:
    """Also in several passes in evaluation mode, and the run continues as if nobody had looked."""
    run, other = (TrialRun(of(model), 0.1).until(7) for _ in range(2))
    before = everything(model)
    with run.trained() as trained:
        trained.train(training)
        seed = run.training.batches.seed
        torch.manual_seed(seed), random.seed(seed), np.random.seed(seed)  # noqa: NPY002
        with torch.no_grad():
            expected = nn.functional.cross_entropy(trained(DATA[0]), DATA[1]).item()
    assert run.loss_on(*DATA, training=training, most=15) == pytest.approx(expected)
    assert everything(model) == before
    assert run.until(12).losses == other.until(12).losses
    line = TrialRun(of(nn.Linear(4, 3)), 0.1).until(3)
    whole, parts = (line.loss_on(*DATA, training=False, most=most) for most in (15, 4))
    assert parts == pytest.approx(whole)
    assert TrialRun(of(model), 1e9).until(50).loss_on(*DATA, training=training, most=15) == math.inf


def test_gradients_are_clipped_and_rates_scheduled() -> None:
    line = nn.Linear(4, 3)
    halved = of(
        line,
        size=15,
        clip=1e-3,
        schedule=lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda step: 0.5**step),
    )
    run = TrialRun(halved, 2.0)
    start = [p.detach().clone() for p in line.parameters()]
    for steps, length in ((1, 2e-3), (2, 3e-3)):
        with run.until(steps).trained() as trained:
            moved = torch.cat([(p - q).flatten() for p, q in zip(trained.parameters(), start, strict=True)])
        assert moved.norm().item() == pytest.approx(length, rel=1e-2)
