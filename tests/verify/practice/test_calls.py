"""The calls that a new user tries first: each works, or one sentence has the right call in it."""

import sys
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.testing import assert_close
from torch.utils.data import DataLoader, Dataset, TensorDataset

import losscurv
from tests.refusals import refusal
from verify.practice.plan.optimizers import chosen_optimizer

SAMPLES, INPUTS, HIDDEN, CLASSES = 40, 2, 2, 3


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(INPUTS, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, CLASSES)).double()


def samples() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(SAMPLES, INPUTS, generator=generator, dtype=torch.float64)
    return x, torch.randint(CLASSES, (SAMPLES,), generator=generator)


def places_of(model: nn.Module) -> dict[int, int]:
    return {id(p): place for place, p in enumerate(model.parameters())}


def of_batch(model: Any, batch: Any) -> Tensor:
    x, y = batch
    return cross_entropy(model(x), y)


def _file() -> str:
    x, y = samples()
    np.savez("data.npz", x_train=x.numpy(), y_train=y.numpy())
    return "data.npz"


def loader(size: int | None = 16) -> DataLoader[Any]:
    return DataLoader(TensorDataset(*samples()), size)


CALLS = {
    "a pair": lambda: (network(), samples()),
    "a loader": lambda: (network(), loader()),
    "a data set and a loss": lambda: (network(), TensorDataset(*samples()), nn.CrossEntropyLoss()),
    "a file and the name of a loss": lambda: (network(), _file(), "cross-entropy"),
    "a loss of model and batch": lambda: (network(), loader(), of_batch),
    "an Objective of batches": lambda: (losscurv.Objective(network(), loader()),),
}


@pytest.mark.parametrize("form", CALLS)
def test_a_network_is_measured_however_its_data_come(form: str) -> None:
    found = losscurv.measure(*CALLS[form](), top=1)
    matrix = losscurv.hessian(losscurv.Objective(network(), samples())).dense()
    assert found.samples == SAMPLES
    assert found.hessian.top[0].value == pytest.approx(float(torch.linalg.eigvalsh(matrix)[-1]), rel=1e-6)


FEW = {"batch_sizes": 8, "steps": 20}


@pytest.mark.parametrize("form", ["a pair", "a loss of model and batch", "an Objective of batches"])
def test_a_rate_is_planned_however_the_data_come(form: str) -> None:
    model, *rest = CALLS[form]()
    data, loss = (*rest, None, None)[:2]
    assert [at.batch_size for at in losscurv.plan(model, data, loss=loss, **FEW).trials] == [8]


def test_the_batch_size_of_a_plan_is_that_of_the_loader() -> None:
    for data, size in ((loader(16), 16), (loader(64), SAMPLES), (samples(), SAMPLES)):
        found = losscurv.plan(network(), data, steps=20)
        assert [at.batch_size for at in found.trials] == [size]


class Counted(Dataset[Any]):
    def __init__(self) -> None:
        self.read: list[int] = []

    def __len__(self) -> int:
        return 20_000

    def __getitem__(self, place: int) -> tuple[Tensor, int]:
        self.read.append(place)
        return torch.full((INPUTS,), float(place), dtype=torch.float64), place % CLASSES


@pytest.mark.parametrize("shuffle", [None, True])
def test_samples_that_are_not_asked_for_are_not_read(shuffle: bool | None) -> None:
    data = Counted()
    given = data if shuffle is None else DataLoader(data, 32, shuffle=shuffle)
    found = losscurv.measure(network(), given, samples=128, top=1, seed=3)
    assert found.samples == len(data.read) == 128
    assert sorted(data.read) == sorted(np.random.default_rng(3).choice(20_000, 128, replace=False).tolist())


class Scaling(DataLoader[Any]):
    """A loader that changes what it loads."""

    def __iter__(self) -> Any:
        return ((10 * x, y) for x, y in super().__iter__())


def test_samples_of_a_loader_are_as_that_loader_gives_them() -> None:
    x, y = samples()
    found = losscurv.measure(network(), Scaling(TensorDataset(x, y), 16), samples=20, top=1)
    same = losscurv.measure(network(), (10 * x, y), samples=20, top=1)
    assert found.loss.value == pytest.approx(same.loss.value, rel=1e-12)


def test_who_measures_in_single_precision_says_so() -> None:
    for dtype, found in ((None, "float64"), ("float32",) * 2, (torch.float32, "float32")):
        assert losscurv.measure(network(), samples(), top=1, dtype=dtype, budget=60).dtype == found
    assert losscurv.measure(network().bfloat16(), samples(), top=1).dtype == "float32"


def test_a_program_without_a_console_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    assert losscurv.measure(network(), samples(), top=1).samples == SAMPLES


# --- optimizers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("optimizer", "name"),
    [
        ("adamw", "AdamW, weight decay 0.01"),
        (torch.optim.NAdam, "NAdam"),
        (lambda p, rate: torch.optim.RMSprop(p, lr=rate), "optimizer <lambda>"),
    ],
)
def test_an_optimizer_is_a_name_a_class_or_a_function(optimizer: Any, name: str) -> None:
    found = losscurv.plan(network(), samples(), optimizer, **FEW)
    assert found.optimizer == name
    assert found.trials[0].start is not None


def test_an_optimizer_in_use_gives_its_class_groups_and_settings() -> None:
    model = network()
    groups = [
        {"params": model[0].parameters(), "lr": 2e-3},
        {"params": model[2].parameters(), "weight_decay": 0.0},
    ]
    own = torch.optim.AdamW(groups, lr=1e-3, betas=(0.8, 0.9), weight_decay=0.3)
    found = chosen_optimizer(own, places=places_of(model))
    assert (found.rate, found.kind) == (2e-3, None)
    copies = [nn.Parameter(p.detach().clone()) for p in model.parameters()]
    made = found.make(copies, 1.0)
    assert type(made) is torch.optim.AdamW
    settings = [(g["lr"], g["weight_decay"], g["betas"]) for g in made.param_groups]
    assert settings == [(1.0, 0.3, (0.8, 0.9)), (0.5, 0.0, (0.8, 0.9))]
    held = [p for g in made.param_groups for p in g["params"]]
    assert all(p is q for p, q in zip(held, copies, strict=True))


class Wrapping(torch.optim.Optimizer):
    """Optimizer around another one, with an attribute of its own."""

    def __init__(self, base: torch.optim.Optimizer, *, every: int) -> None:
        super().__init__(base.param_groups, base.defaults)
        self.base, self.every, self.param_groups = base, every, base.param_groups

    def step(self, closure: Any = None) -> Any:
        return self.base.step(closure)


def test_an_optimizer_in_use_is_copied_with_its_state_and_left_as_found() -> None:
    model = network()
    base = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.5)
    own = Wrapping(base, every=3)
    torch.optim.lr_scheduler.StepLR(own, 1)  # binds own.step to own
    model(samples()[0]).sum().backward()
    own.step()
    made = chosen_optimizer(own, places=places_of(model)).make(list(model.parameters()), 0.25)
    assert type(made) is Wrapping and made.every == 3 and made.base is not base
    weight = model[0].weight
    assert made.base.param_groups[0]["params"][0] is weight and made.base.param_groups[0]["lr"] == 0.25
    buffers = [each.state[weight]["momentum_buffer"] for each in (made.base, base)]
    assert torch.equal(*buffers) and buffers[0] is not buffers[1]
    before, state = weight.detach().clone(), buffers[1].clone()
    made.step(lambda: model(samples()[0]).sum())
    assert_close(before - weight.detach(), 0.25 * made.base.state[weight]["momentum_buffer"])
    assert torch.equal(base.state[weight]["momentum_buffer"], state) and base.param_groups[0]["lr"] == 1e-3


def test_a_rate_of_zero_is_that_from_which_its_scheduler_starts() -> None:
    model = network()
    groups = [{"params": model[0].parameters(), "lr": 2e-3}, {"params": model[2].parameters()}]
    own = torch.optim.AdamW(groups, lr=1e-3)
    torch.optim.lr_scheduler.LambdaLR(own, lambda step: step / 10)
    assert [group["lr"] for group in own.param_groups] == [0.0, 0.0]
    found = chosen_optimizer(own, places=places_of(model))
    assert found.rate == 2e-3
    assert [g["lr"] for g in found.make([*model.parameters()], 1.0).param_groups] == [1.0, 0.5]

    none = torch.optim.SGD(model.parameters(), lr=0.0)
    with refusal("optimizer must have a positive learning rate, got 0"):
        chosen_optimizer(none, places=places_of(model))
    made = chosen_optimizer(none, places=places_of(model), rate=0.1).make([*model.parameters()], 0.3)
    assert made.param_groups[0]["lr"] == 0.3


class Ignoring(torch.optim.SGD):
    """A class whose step leaves the gradient to its caller."""

    def step(self, closure: Any = None) -> Any:
        return super().step()


def test_a_plan_with_an_optimizer_in_use_is_that_of_its_settings() -> None:
    model = network()
    own = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    named = losscurv.plan(model, samples(), "momentum", rate=0.05, **FEW)
    objective = losscurv.Objective(model, samples())
    other = losscurv.plan(model, samples(), own, dtype="float32", **FEW)
    assert other.trials[0].start == named.trials[0].start
    for found in (losscurv.plan(model, samples(), own, **FEW), losscurv.plan(objective, None, own, **FEW)):
        assert found.optimizer == named.optimizer == "SGD, momentum 0.9"
        rates = [(at.start, at.trains, at.fails) for made in (found, named) for at in made.trials]
        assert rates[0] == rates[1]


def test_a_plan_moves_the_parameters_that_the_optimizer_has() -> None:
    model = network()
    head = torch.optim.SGD(model[2].parameters(), lr=0.1)
    found = losscurv.plan(model, samples(), head, **FEW)
    assert found.parameters == (HIDDEN + 1) * CLASSES


# --- wrong calls -------------------------------------------------------------------------------------------------

PLAN, MEASURE = losscurv.plan, losscurv.measure
NET, PAIR = network(), samples()
MADE = losscurv.Objective(NET, PAIR)
OWN = torch.optim.SGD(nn.Linear(2, 2).parameters(), 0.1)
HEAD = torch.optim.SGD(NET[2].parameters(), 0.1)


@pytest.mark.parametrize(
    ("call", "arguments", "keywords", "message"),
    [
        (PLAN, (NET, PAIR, [64]), {}, r"batch sizes by name: batch_sizes=\[64\]"),
        (PLAN, (NET, PAIR, "adma"), {}, "optimizer must be one of sgd, .* got 'adma'"),
        (PLAN, (NET, PAIR, nn.MSELoss()), {}, r"loss by name: loss=MSELoss\(\)"),
        (PLAN, (NET,), {}, r"data must be given, got none: call plan\(model, data\)"),
        (PLAN, (NET, PAIR, OWN), {}, "not parameters of the model"),
        (PLAN, (MADE, None, HEAD), {"batch_sizes": 8}, "optimizer holds 2 of the 4 measured parameters"),
        (PLAN, (NET, PAIR, Ignoring), FEW, "must call the closure that its step is given, got Ignoring"),
        (MEASURE, (NET, nn.MSELoss(), PAIR), {}, r"got MSELoss: call measure\(model, data, loss\)"),
        (MEASURE, (MADE, PAIR), {}, r"an Objective has its own data.*\(objective\)"),
        (MEASURE, (MADE,), {"dtype": "float32"}, "an Objective has its own dtype"),
        (MEASURE, (NET, loader(None)), {}, "got a single number; stack samples"),
        (MEASURE, (NET, PAIR), {"samples": 9.0}, "samples must be an integer, got 9.0"),
    ],
)
def test_a_wrong_call_is_told_the_right_one(call: Any, arguments: Any, keywords: Any, message: str) -> None:
    with refusal(message):
        call(*arguments, **keywords)


def test_an_objective_of_a_function_is_measured_and_not_trained() -> None:
    weight = torch.zeros(CLASSES, INPUTS, dtype=torch.float64)
    objective = losscurv.Objective(lambda p, x: x @ p[0].T, PAIR, parameters=[weight])
    assert losscurv.measure(objective, top=1).name == "function"
    with refusal("got an Objective of a function"):
        losscurv.plan(objective, batch_sizes=8)
