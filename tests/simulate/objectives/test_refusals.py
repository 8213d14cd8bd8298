"""What cannot be measured is refused by one line that says what to do: no wrong number, and no endless wait."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, dropout
from torch.utils.data import DataLoader, IterableDataset, RandomSampler, TensorDataset, WeightedRandomSampler

from simulate.objectives import Objective, batches
from simulate.objectives.soundness import require_deterministic
from simulate.operators import hessian
from tests.simulate.models_and_data import BUILDERS, case
from tests.simulate.objectives.language import IGNORED, CausalModel, OddModel, batch, tokens
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


class StreamedForever(IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        return itertools.repeat((X[0], Y[0]))


class Augmented(Pictures):
    """Images that are flipped or not, from a generator of its own."""

    rng = np.random.default_rng(0)

    def __getitem__(self, place: int) -> Any:
        return X[place].flip(0) if self.rng.random() < 0.5 else X[place], Y[place]


def _layer(model: Any, batch: Any) -> Tensor:
    return of_pair(model, batch) + model[0](batch[0]).mean()


def _outputs(net: Any, targets: Any) -> Tensor:
    return cross_entropy(net, targets)


def _unnamed(m: Any, batch: Any) -> Tensor:
    return of_pair(m, batch)


def _mixed(model: Any, batch: Any) -> Tensor:
    return cross_entropy(model(batch[0], x=batch[0]), batch[1])


def _twice(model: Any, batch: Any) -> Tensor:
    return of_pair(model, batch) + model(batch[0]).square().mean()


def _never(model: Any, batch: Any) -> Tensor:
    return model.get_parameter("0.weight").square().sum() + 0 * batch[0].sum()


def _penalised(model: Any, batch: Any) -> Tensor:
    return of_pair(model, batch) + model.get_parameter("0.weight").square().sum()


def _other_output(model: Any, batch: Any) -> Tensor:
    returned = model(batch[0])
    return cross_entropy(returned["logits"], batch[1]) + returned["hidden"].mean()


def _unpacked(model: Any, batch: Any) -> Tensor:
    _, logits = model(batch[0])
    return cross_entropy(logits, batch[1])


def _noisy(model: Any, batch: Any) -> Tensor:
    return cross_entropy(model(batch[0] + 0.1 * torch.randn_like(batch[0])), batch[1])


def _without_gradients(model: Any, batch: Any) -> Tensor:
    return cross_entropy(torch.no_grad()(model)(batch[0]), batch[1])


def _drawn_after(model: Any, batch: Any) -> Tensor:
    outputs = model(batch[0])
    return cross_entropy(outputs + 0.1 * torch.randn_like(outputs), batch[1])


def _dropped(outputs: Tensor, targets: Tensor) -> Tensor:
    return cross_entropy(dropout(outputs, 0.5), targets)


def _not_finite() -> nn.Module:
    model = network()
    model.get_parameter("0.bias").data[1] = torch.nan
    return model


def _in_half(m: Any, x: Tensor) -> Tensor:
    return nn.functional.linear(x.bfloat16(), m.a.weight.bfloat16()).double()


class Faulty(CausalModel):
    """An error inside, of the kind that a call with a wrong name raises."""

    kind: type[Exception] = TypeError

    def own_loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        raise self.kind("unsupported operand")


class FaultyByName(Faulty):
    kind = KeyError


LINE = nn.Linear(4, 1).double()
X6 = torch.zeros(6, 4)
ANOTHER_PASS = "data must be the same at every pass, got "
DRAWS = r"loss must give the same for the same outputs.*: draw what is random"
OWN_LOSS = "model must give its own loss with labels among its inputs, got "

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    # the call
    "a number as model": ({"model": 3}, "model must come first, got int: call Objective"),
    "data as model": ({"model": (X, Y), "data": network()}, "model must come first, got tuple"),
    "an objective as model": ({"model": Objective(network(), (X, Y))}, "got an Objective: use it as it is"),
    "loss before data": (
        {"data": LOSS, "loss": (X, Y)},
        "data must come before the loss, got CrossEntropyLoss",
    ),
    "function before data": ({"data": cross_entropy}, "data must come before the loss, got cross_entropy"),
    "inputs and targets apart": ({"data": X, "loss": Y}, r"got Tensor: call Objective\(model, \(inputs"),
    "a class as loss": ({"loss": nn.CrossEntropyLoss}, r"got a class; write CrossEntropyLoss\(\)"),
    "no such loss": ({"loss": "mean"}, "loss must be one of cross-entropy, mse, bce"),
    "no such parameters": ({"parameters": "head"}, "parameters must name .*, such as 0.weight"),
    "no such reduction": ({"reduction": "none"}, "reduction must be one of mean, sum, got 'none'"),
    "no chunk": ({"chunk": 0}, "chunk must be a positive integer"),
    "a chunk in training mode": ({"chunk": 2, "training": True}, "chunk must be None in training mode"),
    # the model
    "no parameters": ({"model": nn.ReLU()}, "model must have a parameter that requires a gradient"),
    "a function without parameters": (
        {"model": lambda p, x: x},
        "parameters of a function must be a sequence",
    ),
    "not finite": ({"model": _not_finite()}, "parameters must be finite, got NaN or infinity in '0.bias'"),
    "half precision inside": (
        {"model": own(_in_half, a=lambda: nn.Linear(4, 3).double())()},
        "must compute in single or double precision, got torch.bfloat16",
    ),
    "two tensors": ({"model": returning(lambda z: (z, z))}, "got tuple of 0, 1; say which by field"),
    "two names": ({"model": returning(lambda z: {"a": z, "b": z})}, "got dict of a, b; say which by field"),
    "another field": (
        {"model": returning(lambda z: {"a": z, "b": z}), "field": "c"},
        "field must name a tensor that the model returns, dict of a, b, got 'c'",
    ),
    "a field of a tensor": ({"field": "logits"}, "field must name .*, Tensor of none, got 'logits'"),
    "words returned": ({"model": returning(lambda _: "words")}, "model must return one tensor, got str"),
    # the loss of outputs and targets
    "one number a sample": (
        {"loss": lambda z, y: z.sum(1)},
        r"loss must be one number for a batch, got \(\d",
    ),
    "a float": ({"loss": lambda z, y: 1.0}, "loss must be one number for a batch, got float"),
    "infinite": ({"loss": lambda z, y: z.sum() * torch.inf}, "loss must be finite"),
    "dropout in the loss": ({"loss": _dropped}, DRAWS),
    "dropout in the loss, in training mode": ({"loss": _dropped, "training": True}, DRAWS),
    # the loss of model and batch
    "noise after the model": ({"loss": _drawn_after}, DRAWS),
    "noise before the model": ({"loss": _noisy}, "loss must call the model with the same inputs each time"),
    "no gradients": ({"loss": _without_gradients}, "loss must call the model where gradients are recorded"),
    "two calls": ({"loss": _twice}, "loss must call the model once for a batch, got 2 calls in _twice"),
    "a layer": (
        {"loss": _layer},
        "loss must call the model and use it in no other way, got _layer that does",
    ),
    "a misnamed output": ({"loss": _outputs}, "name its first argument outputs"),
    "a misnamed model": (
        {"loss": _unnamed},
        r"calls the first as a model: name it model for loss.model, batch",
    ),
    "by place and name": (
        {"model": TAKING_ALL, "loss": _mixed},
        r"by name, got 1 without .* number as \*args$",
    ),
    "no call": ({"loss": _never}, "loss must call the model, got _never that returns without a call of it"),
    "a penalty": ({"loss": _penalised}, "must reach the parameters through the call of the model alone"),
    "another output": (
        {"model": SEVERAL, "loss": _other_output},
        "loss must take 'logits' of what the model returns, got one that takes 'hidden'",
    ),
    "all outputs": (
        {"model": SEVERAL, "loss": _unpacked},
        "must take 'logits' alone of what the model returns",
    ),
    # the data
    "a number": ({"data": 3}, "data must be batches"),
    "a list of a pair": ({"data": [X, Y]}, r"data must give batches \(inputs, targets\), got Tensor"),
    "triples": ({"data": [(X, Y, Y)]}, "got tuple of length 3"),
    "one number for all": ({"data": (X, torch.tensor(1))}, "got a single number"),
    "a tensor": ({"data": X}, r"data must be a pair \(inputs, targets\) .*, got a single Tensor"),
    "words": ({"data": "data"}, "file not found: data"),
    "digits that do not fit": (
        {"data": "digits", "model": nn.Linear(3, 10)},
        "data digits must fit the model in one of the shapes .*: Runtime",
    ),
    "nothing": ({"data": []}, "data must hold at least one sample, got none"),
    "nothing, without a loss": ({"data": [], "loss": None}, "data must hold at least one sample, got none"),
    "samples in a list": (
        {"data": (list(X.numpy()), Y)},
        f"inputs must be tensors with samples along the first axis, got a list of {N} samples; stack them",
    ),
    "masked inputs": (
        {"data": (np.ma.masked_array(X.numpy(), X.numpy() > 1), Y)},
        "data must hold plain arrays, got a masked",
    ),
    "words in an array": ({"data": (np.array(["a"]), Y)}, "data must hold arrays of numbers, got <U1"),
    "on the meta device": ({"data": (X.to("meta"), Y)}, "got a tensor on the meta device"),
    "sparse inputs": ({"data": (X.to_sparse(), Y)}, "data must hold dense tensors, got torch.sparse_coo"),
    "fewer targets": (
        {"data": (X[:6], Y[:5]), "chunk": 4},
        "of one number of samples to be cut, got 6 and 5",
    ),
    "labels that are floats": (
        {"data": (X, Y.double())},
        r"must be whole numbers, or shares .* got torch.float64 of shape \(23,\)",
    ),
    "targets that fit no output": (
        {"data": (X, X[:, 0]), "loss": None},
        r"targets must be of shape \(3,\) each for what the model returns, got \(\)",
    ),
    "not a number": ({"data": (X.where(X > -1, torch.nan), Y)}, "loss must be finite, got nan: check inputs"),
    "infinite behind a bound": (
        {
            "model": lambda p, x: (x * p[0]).tanh(),
            "parameters": [torch.ones(1)],
            "data": (torch.tensor([torch.inf]), torch.zeros(1)),
            "loss": nn.MSELoss(),
        },
        "gradient must be finite, got NaN or infinity",
    ),
    "two batches or one": (
        {"data": ((X6, X6), (X6, X6)), "model": nn.Linear(4, 4), "loss": nn.MSELoss()},
        "data must be a list where it holds two batches",
    ),
    "gone through once": (
        {"data": Once()},
        f"{ANOTHER_PASS}0 samples after {N}: hold what changes, as by list",
    ),
    "a loader that drops others": (
        {"data": DataLoader(ALL, 6, shuffle=True, drop_last=True, generator=generator())},
        f"{ANOTHER_PASS}18 others",
    ),
    "images that are flipped": ({"data": DataLoader(Augmented(int), 6)}, f"{ANOTHER_PASS}{N} others"),
    "an endless generator": ({"data": itertools.repeat((X, Y))}, "data must end, got more than 50 ba"),
    "what does not end": ({"data": Endless()}, "data must end, got more than 50 batches"),
    "a loader that does not end": (
        {"data": DataLoader(StreamedForever(), 6)},
        "data must end, got more than",
    ),
    "a data set of words": (
        {"data": Pictures(lambda i: ("words", 0))},
        "data must give samples of numbers, got str; give the data set a transform",
    ),
    "a data set of objects": ({"data": Pictures(lambda i: (X[i], object()))}, "of numbers, got object"),
    "a data set of triples": (
        {"data": Pictures(lambda i: (1, 2, 3))},
        r"data must give samples \(input, target\).* got tuple of length 3; wrap",
    ),
    "single samples in training mode": (
        {"data": Listed(lambda i: (X[i], int(Y[i]))), "training": True},
        "data must be batches in training mode",
    ),
    # language models
    "another loss of its own": ({"model": OddModel(), "data": batch()}, "labels must be .* got neither"),
    "a loss that moves nothing": (
        {"model": CausalModel(), "data": batch(), "loss": lambda z, y: z.square().mean() + 0 * y.sum()},
        "loss must be a cross-entropy of torch where the model moves labels .* got <lambda>; give pairs",
    ),
    "no labels": (
        {"model": CausalModel(), "data": [{"input_ids": tokens(), "targets": tokens()}]},
        "data must give batches .* or mappings with labels, got dict of input_ids, targets",
    ),
    "an input too many": (
        {"model": CausalModel(), "data": {**batch(), "speaker": torch.zeros(5)}},
        "inputs must be what forward takes, input_ids, attention_mask, labels, got speaker too; leave out",
    ),
    "an input too few": (
        {"model": CausalModel(), "data": ({"attention_mask": tokens()}, tokens())},
        "inputs must be what forward takes, .* got no input_ids; leave out or add",
    ),
    "nothing to predict": (
        {"model": CausalModel(), "data": {**batch(), "labels": torch.full((5, 6), IGNORED)}},
        "at least one sample, got none",
    ),
    "a fault with its labels": ({"model": Faulty(), "data": batch()}, f"{OWN_LOSS}TypeError: .*unsupported"),
    "another fault, of a part": (
        {"model": own(lambda m, **given: m.body(**given), body=FaultyByName)(), "data": batch()},
        f"{OWN_LOSS}KeyError: .*unsupported",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_measured_is_refused(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "_MOST", 50)
    given, message = REFUSED[what]

    def measured() -> None:
        objective = Objective(**{"model": network(), "data": (X, Y), "loss": LOSS, **given})
        objective.value()
        objective.gradient()
        hessian(objective).dense()

    with pytest.raises(ValueError, match=message):
        measured()


@pytest.mark.parametrize("loss", [_dropped, lambda z, y: z.sum(1)])
@pytest.mark.parametrize("ask", [Objective.value, Objective.gradient, lambda o: hessian(o).dense()])
def test_whatever_is_asked_first_refuses(ask: Callable[[Objective], Any], loss: Any) -> None:
    with pytest.raises(ValueError, match="loss must "):
        ask(Objective(network(), (X, Y), loss))


def test_an_iterator_stops_before_it_fills_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is given again and again is held once."""
    monkeypatch.setattr("simulate._memory.available", lambda _: 2**20)
    large = ((torch.zeros(64, 64), torch.zeros(64).long()) for _ in itertools.count())
    with pytest.raises(
        ValueError, match=r"data must end and fit into half of .* after \d+ batches; pass some"
    ):
        Objective(network(), large, LOSS)
    again = itertools.repeat((X, Y), 2000)
    assert Objective(network(), again, LOSS).samples == 2000 * N


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers on this system")
@pytest.mark.parametrize("data", [itertools.repeat((X, Y)), Endless()])
def test_what_does_not_end_can_be_interrupted(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "_MOST", 10**9)
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
    with pytest.raises(ValueError, match=f"data and model must give the same loss twice.*{cause}"):
        require_deterministic(Objective(network, loader, LOSS, training=True))
