"""Data in every form: the loss and the products of all samples at once, at every pass, or a clear error."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, RandomSampler, TensorDataset

from simulate.objectives import Objective, batches
from simulate.operators import hessian
from tests.simulate.objectives.losses import LABELS, TARGETS, N, X, network
from tests.simulate.small_perceptrons import assert_same

Y, NUMBERS = LABELS, TARGETS["numbers"]
ALL = TensorDataset(X, Y)
LOSS = nn.CrossEntropyLoss()


class Pair(NamedTuple):
    x: Any
    y: Any


class Once:
    """Can be gone through, but once."""

    def __init__(self, size: int = 6) -> None:
        self.left = iter(cut(size))

    def __iter__(self) -> Iterator[Any]:
        return self.left


class Endless:
    def __iter__(self) -> Iterator[Any]:
        return itertools.repeat((X, Y))


class Streamed(IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        return iter(zip(X, Y, strict=True))


class StreamedForever(IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        return itertools.repeat((X[0], Y[0]))


class Listed:
    """Samples of lists and numbers, by number."""

    def __len__(self) -> int:
        return N

    def __getitem__(self, i: int) -> Any:
        return X[i].numpy(), int(Y[i])


class Floats(Listed):
    """Python's own floats, which torch takes for single ones where nobody says."""

    def __getitem__(self, i: int) -> Any:
        return X[i].tolist(), int(Y[i])


class Augmented(Dataset[Any]):
    """Images that are flipped or not, from a generator of its own."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)

    def __len__(self) -> int:
        return N

    def __getitem__(self, i: int) -> Any:
        return X[i].flip(0) if self.rng.random() < 0.5 else X[i], Y[i]


def cut(size: int) -> list[tuple[Tensor, Tensor]]:
    return list(zip(X.split(size), Y.split(size), strict=True))


def own() -> torch.Generator:
    return torch.Generator().manual_seed(0)


SAME: dict[str, Callable[[], Any]] = {
    "a pair": lambda: (X, Y),
    "a named pair": lambda: Pair(X, Y),
    "arrays": lambda: (X.numpy(), Y.numpy()),
    "arrays backwards": lambda: (X.numpy()[::-1], Y.numpy()[::-1]),
    "arrays of the other byte order": lambda: (X.numpy().astype(">f8"), Y.numpy().astype(">i8")),
    "arrays that cannot be written": lambda: (np.broadcast_to(X.numpy(), X.shape), Y.numpy()),
    "long floats": lambda: (X.numpy().astype(np.longdouble), Y.numpy()),
    "labels of two bytes": lambda: (X, Y.short()),
    "unsigned labels": lambda: (X.numpy(), Y.numpy().astype(np.uint64)),
    "inputs with gradients": lambda: (X.clone().requires_grad_(), Y),
    "a list": lambda: cut(6),
    "named pairs": lambda: [Pair(*batch) for batch in cut(6)],
    "values of a dictionary": lambda: dict(enumerate(cut(6))).values(),
    "batches with empty ones": lambda: [(X[:0], Y[:0]), *cut(9), (X[:0], Y[:0])],
    "a loader": lambda: DataLoader(ALL, 6),
    "a loader that shuffles": lambda: DataLoader(ALL, 6, shuffle=True),
    "a loader that shuffles by its own generator": lambda: DataLoader(ALL, 6, shuffle=True, generator=own()),
    "a loader of a stream": lambda: DataLoader(Streamed(), 6),
    "a generator": lambda: (batch for batch in cut(6)),
    "a zip": lambda: zip(X.split(6), Y.split(6), strict=True),
    "an iterator over a loader": lambda: iter(DataLoader(ALL, 6)),
    "a data set": lambda: ALL,
    "numbers by number": Listed,
    "lists of floats by number": Floats,
}
"""All samples of X and Y."""


class Known(NamedTuple):
    """A model with its loss over X and Y at once, its gradient, and its Hessian times a vector."""

    model: nn.Module
    value: float
    gradient: Tensor
    vector: Tensor
    product: Tensor


@pytest.fixture(scope="module")
def known() -> Known:
    model = network()
    objective = Objective(model, [(X, Y)], LOSS)
    vector = torch.arange(objective.dim, dtype=torch.float64)
    return Known(model, objective.value(), objective.gradient(), vector, hessian(objective) @ vector)


@pytest.mark.parametrize("chunk", [None, 4])
@pytest.mark.parametrize("form", SAME)
def test_forms_are_no_matter(form: str, chunk: int | None, known: Known) -> None:
    found = Objective(known.model, SAME[form](), LOSS, chunk=chunk)
    for _ in range(2):
        assert abs(found.value() - known.value) < 1e-14
        assert_same(found.gradient(), known.gradient, 1e-13)
        assert_same(hessian(found) @ known.vector, known.product, 1e-13)
    assert found.separable and (found.rows, found.samples) == (N, N)


class Several(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = network()

    def forward(self, left: Tensor, right: Tensor, factor: Tensor) -> Tensor:
        return self.body(left + factor * right)


@pytest.mark.parametrize(
    "several",
    [
        lambda x: (x, x / 2, torch.tensor(0.5)),
        lambda x: {"left": x, "right": x / 2, "factor": torch.tensor(0.5)},
        lambda x: [x.numpy(), x.numpy() / 2, torch.tensor(0.5)],
    ],
)
@pytest.mark.parametrize("batched", [False, True])
def test_inputs_may_be_structures_with_numbers_for_all_samples(several: Any, batched: bool) -> None:
    """Targets too."""

    def loss(outputs: Tensor, targets: Any) -> Tensor:
        return (targets["scale"] * (outputs - targets["numbers"]) ** 2).mean()

    def batch(part: slice) -> Any:
        return several(X[part]), {"numbers": NUMBERS[part], "scale": torch.tensor(3.0)}

    model = Several()
    x, y = batch(slice(None))
    expected = loss(model.body(1.25 * X), y).item()
    data = [batch(slice(0, 9)), batch(slice(9, N))] if batched else [(x, y)]
    for chunk in (None, 4):
        objective = Objective(model, data, loss, chunk=chunk)
        assert objective.separable and abs(objective.value() - expected) < 1e-14


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "a list of a pair": (lambda: [X, Y], r"data must give batches \(inputs, targets\), got Tensor"),
    "triples": (lambda: [(x, y, y) for x, y in cut(6)], "got tuple of length 3"),
    "one number for all": (lambda: (X, torch.tensor(1)), "got a single number"),
    "a tensor": (lambda: X, r"data must be a pair \(inputs, targets\)"),
    "words": (lambda: "data", "file not found: data"),
    "nothing": (list, "data must hold at least one sample, got none"),
    "samples in a list": (
        lambda: (list(X.numpy()), Y),
        f"inputs must be tensors with samples along the first axis, got a list of {N} samples; stack them",
    ),
    "masked inputs": (
        lambda: (np.ma.masked_array(X.numpy(), X.numpy() > 1), Y),
        "data must hold plain arrays, got a masked",
    ),
    "words in an array": (lambda: (np.array(["a"]), Y), "data must hold arrays of numbers, got <U1"),
    "objects in an array": (
        lambda: (X.numpy().astype(object), Y),
        "data must hold arrays of numbers, got object",
    ),
    "inputs on the meta device": (lambda: (X.to("meta"), Y), "got a tensor on the meta device"),
    "sparse inputs": (lambda: (X.to_sparse(), Y), r"data must hold dense tensors, got torch.sparse_coo"),
    "fewer targets": (
        lambda: (X[:6], Y[:5]),
        "inputs and targets must be of one number of samples to be cut, got 6 and 5",
    ),
    "labels that are floats": (
        lambda: (X, Y.double()),
        r"targets of a cross-entropy must be whole numbers, or shares .* got torch.float64 of shape \(23,\)",
    ),
    "inputs that are no numbers": (
        lambda: (X.where(X > -1, torch.nan), Y),
        "loss must be finite, got nan: check inputs",
    ),
    "what can be gone through once": (
        Once,
        f"data must be the same at every pass, got 0 samples after {N}: hold what changes, as by list",
    ),
    "a loader that drops others": (
        lambda: DataLoader(ALL, 6, shuffle=True, drop_last=True, generator=own()),
        "data must be the same at every pass, got 18 others",
    ),
    "a loader that chooses": (
        lambda: DataLoader(ALL, 6, sampler=RandomSampler(ALL, replacement=True, generator=own())),
        f"data must be the same at every pass, got {N} others",
    ),
    "images that are flipped": (
        lambda: DataLoader(Augmented(), 6),
        f"data must be the same at every pass, got {N} others",
    ),
    "a generator that does not end": (lambda: itertools.repeat((X, Y)), "data must end, got more than 50 ba"),
    "what does not end": (Endless, "data must end, got more than 50 batches"),
    "a loader that does not end": (lambda: DataLoader(StreamedForever(), 6), "data must end, got more than"),
}


@pytest.mark.parametrize("form", REFUSED)
def test_what_is_no_data_is_told(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "_MOST", 50)
    build, message = REFUSED[form]

    def measured() -> None:
        objective = Objective(network(), build(), LOSS, chunk=4)
        objective.value()
        objective.gradient()

    with pytest.raises(ValueError, match=message):
        measured()


def test_data_that_tell_their_number_have_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "_MOST", 5)
    for data in (cut(1), DataLoader(ALL, 1)):
        assert Objective(network(), data, LOSS).samples == N


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
@pytest.mark.parametrize("data", [lambda: itertools.repeat((X, Y)), Endless])
def test_what_does_not_end_can_be_interrupted(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "_MOST", 10**9)

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt):
            Objective(network(), data(), LOSS)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_infinite_inputs_behind_a_bound_show_in_the_gradient() -> None:
    """The loss of tanh is finite there."""
    objective = Objective(
        lambda p, x: (x * p[0]).tanh(), (torch.tensor([torch.inf]), torch.zeros(1)), nn.MSELoss(),
        parameters=[torch.ones(1)],
    )  # fmt: skip
    assert objective.value() == 1.0
    with pytest.raises(ValueError, match="gradient must be finite, got NaN or infinity"):
        objective.gradient()


def test_a_tuple_that_may_be_two_batches_or_one_is_refused() -> None:
    x, y = torch.zeros(6, 4), torch.zeros(6, 4)
    with pytest.raises(ValueError, match="data must be a list where it holds two batches"):
        Objective(nn.Linear(4, 4), ((x, y), (x, y)), nn.MSELoss())
    assert Objective(nn.Linear(4, 4), ((x, y), (x[:5], y[:5])), nn.MSELoss()).rows == 11
    assert Objective(nn.Linear(4, 4), [(x, y), (x, y)], nn.MSELoss()).rows == 12
    for inputs in ((x, x[:, :2]), (x, x, x)):  # one batch: targets of other shapes or of another number
        one = Objective(
            lambda p, parts: parts[0] * p[0],
            (inputs, (y, y)),
            lambda z, targets: (z - targets[0]).square().mean(),
            parameters=[torch.ones(4)],
        )
        assert one.rows == 6
