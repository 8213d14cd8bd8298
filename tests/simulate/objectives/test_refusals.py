"""Refusals of objectives: one line that says what to do, instead of a wrong number or an endless wait."""

import itertools
import signal
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, dropout
from torch.utils.data import DataLoader, RandomSampler, TensorDataset, WeightedRandomSampler

from simulate.objectives import Objective, batches
from simulate.objectives.objective import require_deterministic
from simulate.operators import hessian
from tests.refusals import refusal
from tests.simulate.models_and_data import BUILDERS, case
from tests.simulate.objectives.language import CausalModel, OddModel, batch, tokens
from tests.simulate.objectives.losses import LABELS, N, X, network
from tests.simulate.objectives.sweep.listing import own
from tests.simulate.objectives.test_forms import (
    SEVERAL,
    TAKING_ALL,
    Listed,
    Pictures,
    cut,
    of_pair,
    returning,
)

Y = LABELS
ALL = TensorDataset(X, Y)
LOSS = nn.CrossEntropyLoss()


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


class Once:
    """Can be gone through, but once."""

    def __init__(self) -> None:
        self.left = iter(cut(6))

    def __iter__(self) -> Iterator[Any]:
        return self.left


class Endless:
    def __iter__(self) -> Iterator[Any]:
        return itertools.repeat((X, Y))


class Augmented(Pictures):
    """Images that are flipped or not, from a generator of its own."""

    rng = np.random.default_rng(0)

    def __getitem__(self, place: int) -> Any:
        return X[place].flip(0) if self.rng.random() < 0.5 else X[place], Y[place]


def _not_finite() -> nn.Module:
    model = network()
    model.get_parameter("0.bias").data[1] = torch.nan
    return model


def _in_half(m: Any, x: Tensor) -> Tensor:
    return nn.functional.linear(x.bfloat16(), m.a.weight.bfloat16()).double()


class Faulty(CausalModel):
    """An error inside, of the kind that a call with a wrong name raises."""

    def own_loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        raise TypeError("unsupported operand")


X6 = torch.zeros(6, 4)
ANOTHER_PASS = "data must be the same at every pass, got "

REFUSED = {
    # the call
    "model must come first, got int: call Objective": {"model": 3},
    "got an Objective: use it as it is": {"model": Objective(network(), (X, Y))},
    "data must come before the loss, got CrossEntropyLoss": {"data": LOSS, "loss": (X, Y)},
    r"got Tensor: call Objective\(model, \(inputs": {"data": X, "loss": Y},
    r"got a class; write CrossEntropyLoss\(\)": {"loss": nn.CrossEntropyLoss},
    "loss must be one of cross-entropy, mse, bce": {"loss": "mean"},
    "parameters must name .*, such as 0.weight": {"parameters": "head"},
    "reduction must be one of mean, sum, got 'none'": {"reduction": "none"},
    "chunk must be a positive integer": {"chunk": 0},
    "chunk must be None in training mode": {"chunk": 2, "training": True},
    # the model
    "model must have a parameter that requires a gradient": {"model": nn.ReLU()},
    "parameters of a function must be a sequence": {"model": lambda p, x: x},
    "parameters must be finite, got NaN or infinity in '0.bias'": {"model": _not_finite()},
    "must compute in single or double precision, got torch.bfloat16": {
        "model": own(_in_half, a=lambda: nn.Linear(4, 3).double())()
    },
    "got dict of a, b; say which by field": {"model": returning(lambda z: {"a": z, "b": z})},
    "field 'c' not found: the model returns dict of a, b": {
        "model": returning(lambda z: {"a": z, "b": z}),
        "field": "c",
    },
    "field 'logits' not found: the model returns a single tensor": {"field": "logits"},
    "model must return one tensor, got str": {"model": returning(lambda _: "words")},
    # the loss of outputs and targets
    r"loss must be one number for a batch, got \(\d": {"loss": lambda z, y: z.sum(1)},
    "loss must be finite": {"loss": lambda z, y: z.sum() * torch.inf},
    "loss must give the same for the same outputs.*: draw what is random": {
        "loss": lambda z, y: cross_entropy(dropout(z, 0.5), y)
    },
    # the loss of model and batch
    "loss must call the model with the same inputs each time": {
        "loss": lambda model, batch: of_pair(model, (batch[0] + 0.1 * torch.randn_like(batch[0]), batch[1]))
    },
    "loss must call the model where gradients are recorded": {
        "loss": lambda model, batch: of_pair(torch.no_grad()(model), batch)
    },
    "loss must call the model once for a batch, got 2 calls in <lambda>": {
        "loss": lambda model, batch: of_pair(model, batch) + model(batch[0]).square().mean()
    },
    "loss must use the model only by calling it, got <lambda> that does otherwise": {
        "loss": lambda model, batch: of_pair(model, batch) + model[0](batch[0]).mean()
    },
    "name its first argument outputs": {"loss": lambda net, y: cross_entropy(net, y)},
    r"calls the first as a model: name it model for loss.model, batch": {
        "loss": lambda m, batch: of_pair(m, batch)
    },
    r"by name, got 1 without .* number as \*args$": {
        "model": TAKING_ALL,
        "loss": lambda model, batch: model(batch[0], x=batch[0]).sum(),
    },
    "loss must call the model, got <lambda> that returns without calling it": {
        "loss": lambda model, batch: model.get_parameter("0.weight").square().sum() + 0 * batch[0].sum()
    },
    "must use the parameters only by calling the model": {
        "loss": lambda model, batch: of_pair(model, batch) + model.get_parameter("0.weight").square().sum()
    },
    "loss must use output 'logits' of the model, got one that uses 'hidden'": {
        "model": SEVERAL,
        "loss": lambda model, batch: model(batch[0])["hidden"].mean(),
    },
    "must use only output 'logits' of the model": {
        "model": SEVERAL,
        "loss": lambda model, batch: [*model(batch[0])][1].mean(),
    },
    # the data
    "data must be batches": {"data": 3},
    r"data must give batches \(inputs, targets\), got Tensor": {"data": [X, Y]},
    "got tuple of length 3": {"data": [(X, Y, Y)]},
    "got a single number": {"data": (X, torch.tensor(1))},
    r"data must be a pair \(inputs, targets\) .*, got a single Tensor": {"data": X},
    "file not found: data": {"data": "data"},
    "data digits must fit the model in one of the shapes .*: Runtime": {
        "data": "digits",
        "model": nn.Linear(3, 10),
    },
    "data must hold at least one sample, got none": {"data": []},
    f"inputs must be tensors with samples along the first axis, got a list of {N} samples; stack them": {
        "data": (list(X.numpy()), Y)
    },
    "data must hold plain arrays, got a masked": {"data": (np.ma.masked_array(X.numpy(), X.numpy() > 1), Y)},
    "data must hold arrays of numbers, got <U1": {"data": (np.array(["a"]), Y)},
    "got a tensor on the meta device": {"data": (X.to("meta"), Y)},
    "data must hold dense tensors, got torch.sparse_coo": {"data": (X.to_sparse(), Y)},
    "the same number of samples to be cut, got 6 and 5": {"data": (X[:6], Y[:5]), "chunk": 4},
    r"must be whole numbers, or shares .* got torch.float64 of shape \(23,\)": {"data": (X, Y.double())},
    r"targets of one sample must have shape \(3,\) to match the outputs, got \(\)": {
        "data": (X, X[:, 0]),
        "loss": None,
    },
    "loss must be finite, got nan: check inputs": {"data": (X.where(X > -1, torch.nan), Y)},
    "gradient must be finite, got NaN or infinity": {
        "model": lambda p, x: (x * p[0]).tanh(),
        "parameters": [torch.ones(1)],
        "data": (torch.tensor([torch.inf]), torch.zeros(1)),
        "loss": nn.MSELoss(),
    },
    "data must be a list where it holds two batches": {
        "data": ((X6, X6), (X6, X6)),
        "model": nn.Linear(4, 4),
        "loss": nn.MSELoss(),
    },
    f"{ANOTHER_PASS}0 samples after {N}: hold what changes, as by list": {"data": Once()},
    f"{ANOTHER_PASS}18 others": {
        "data": DataLoader(ALL, 6, shuffle=True, drop_last=True, generator=generator())
    },
    f"{ANOTHER_PASS}{N} others": {"data": DataLoader(Augmented(int), 6)},
    "data must end, got more than 50 ba": {"data": itertools.repeat((X, Y))},
    "data must end, got more than 50 batches": {"data": Endless()},
    "data must give samples of numbers, got str; give the data set a transform": {
        "data": Pictures(lambda i: ("words", 0))
    },
    r"data must give samples \(input, target\).* got tuple of length 3; wrap": {
        "data": Pictures(lambda i: (1, 2, 3))
    },
    "data must be batches in training mode": {"data": Listed(lambda i: (X[i], int(Y[i]))), "training": True},
    # language models
    "own loss must be .* got neither": {"model": OddModel(), "data": batch()},
    "loss must be a cross-entropy of torch where the model moves labels .* got <lambda>; give pairs": {
        "model": CausalModel(),
        "data": batch(),
        "loss": lambda z, y: z.square().mean() + 0 * y.sum(),
    },
    "data must give batches .* or mappings with labels, got dict of input_ids, targets": {
        "model": CausalModel(),
        "data": [{"input_ids": tokens(), "targets": tokens()}],
    },
    "inputs must be the arguments of forward, input_ids, attention_mask, labels, got speaker too; leave out": {
        "model": CausalModel(),
        "data": {**batch(), "speaker": torch.zeros(5)},
    },
    "inputs must be the arguments of forward, .* got no input_ids; leave out or add": {
        "model": CausalModel(),
        "data": ({"attention_mask": tokens()}, tokens()),
    },
    "model must give its own loss with labels among its inputs, got TypeError: .*unsupported": {
        "model": Faulty(),
        "data": batch(),
    },
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_measured_is_refused(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "_MOST_BATCHES", 50)

    def measured() -> None:
        objective = Objective(**{"model": network(), "data": (X, Y), "loss": LOSS, **REFUSED[what]})
        objective.value()
        objective.gradient()
        hessian(objective).dense()

    with refusal(what):
        measured()


@pytest.mark.parametrize("loss", [lambda z, y: dropout(z, 0.5).sum(), lambda z, y: z.sum(1)])
@pytest.mark.parametrize("ask", [Objective.value, Objective.gradient, lambda o: hessian(o).dense()])
def test_whatever_is_asked_first_refuses(ask: Callable[[Objective], Any], loss: Any) -> None:
    with refusal("loss must "):
        ask(Objective(network(), (X, Y), loss))


def test_an_iterator_stops_before_it_fills_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that is given repeatedly is held once."""
    monkeypatch.setattr("simulate._memory.available", lambda _: 2**20)
    large = ((torch.zeros(64, 64), torch.zeros(64).long()) for _ in itertools.count())
    with refusal(r"data must end and fit into half of .* after \d+ batches; pass some"):
        Objective(network(), large, LOSS)
    again = itertools.repeat((X, Y), 2000)
    assert Objective(network(), again, LOSS).samples == 2000 * N


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers on this system")
@pytest.mark.parametrize("data", [itertools.repeat((X, Y)), Endless()])
def test_what_does_not_end_can_be_interrupted(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "_MOST_BATCHES", 10**9)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt):
            Objective(network(), data, LOSS)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# --- what does not repeat is refused by the name of its cause; what only comes in another order is not -----------


def model(*parts: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(4, 5), *parts, nn.Linear(5, 3)).double()


class Noise(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + torch.randn_like(x)


@pytest.mark.parametrize("name", sorted(BUILDERS))
def test_what_repeats_passes(name: str) -> None:
    require_deterministic(case(name).objective())


@pytest.mark.parametrize("training", [False, True])
def test_order_alone_passes(training: bool) -> None:
    loader = DataLoader(ALL, 5, shuffle=True)
    require_deterministic(Objective(model(), loader, LOSS, training=training))
    require_deterministic(Objective(model(nn.BatchNorm1d(5)), DataLoader(ALL, 5), LOSS, training=training))


CHOOSING = RandomSampler(ALL, replacement=True)


@pytest.mark.parametrize(
    ("network", "loader", "cause"),
    [
        (model(nn.Dropout(0.3)), DataLoader(ALL, 5), r"dropout in training mode \('1'\)"),
        (model(nn.BatchNorm1d(5)), DataLoader(ALL, 5, shuffle=True), r"shuffles under batch .* \('1'\)"),
        (model(), DataLoader(ALL, 4, shuffle=True, drop_last=True), "drops the last samples"),
        (model(), DataLoader(ALL, 5, sampler=CHOOSING), "chooses samples at random"),
        (
            model(),
            DataLoader(ALL, 5, sampler=WeightedRandomSampler([1.0] * N, N)),
            "chooses samples at random",
        ),
        (model(Noise()), DataLoader(ALL, 5), "draw random numbers of their own"),
    ],
)
def test_causes_are_named(network: nn.Module, loader: Any, cause: str) -> None:
    with refusal(f"data and model must give the same loss twice.*{cause}"):
        require_deterministic(Objective(network, loader, LOSS, training=True))
