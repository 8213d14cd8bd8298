"""Whether a loss may be taken in parts: what may is not refused for rounding, what may not does not slip through."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from simulate.objectives import Objective
from simulate.objectives.additivity import chosen
from simulate.objectives.batches import rows
from simulate.operators import hessian
from tests.simulate.objectives.sweep.listing import own
from tests.simulate.small_perceptrons import assert_same

N, CLASSES = 300, 5
DRAW = torch.Generator().manual_seed(0)
X, Y = torch.randn(N, 8, generator=DRAW), torch.randint(0, CLASSES, (N,), generator=DRAW)
WEIGHTS = torch.tensor([1.0, 1.0, 1.0, 1.3, 1.0])


def deep(activation: nn.Module, gain: float = 1.0, layers: int = 10) -> nn.Module:
    inner = [part for _ in range(layers) for part in (nn.Linear(16, 16), activation)]
    return scaled(nn.Sequential(nn.Linear(8, 16), activation, *inner, nn.Linear(16, CLASSES)), gain)


def scaled(model: nn.Module, gain: float) -> nn.Module:
    for parameter in model.parameters():
        parameter.data *= gain
    return model


def attending() -> nn.Module:
    """A transformer on sequences of three tokens."""
    return own(
        lambda m, x: m.head(m.block(m.embed(torch.stack([x, x.roll(1, 1), -x], 1))).mean(1)),
        embed=lambda: nn.Linear(8, 12),
        block=lambda: nn.TransformerEncoderLayer(12, 3, 16, dropout=0.2, batch_first=True),
        head=lambda: nn.Linear(12, CLASSES),
    )()


MODELS = {
    "deep, chaotic": lambda: deep(nn.Tanh(), 6.0, 20),
    "dropout": lambda: nn.Sequential(nn.Linear(8, 9), nn.Dropout(), nn.ReLU(), nn.Linear(9, CLASSES)),
    "normalised": lambda: nn.Sequential(
        nn.Linear(8, 9), nn.BatchNorm1d(9), nn.LayerNorm(9), nn.GELU(), nn.Linear(9, CLASSES)
    ),
    "attention": attending,
    "tiny outputs": lambda: scaled(nn.Linear(8, CLASSES), 1e-6),
    "outputs of zero": lambda: scaled(nn.Linear(8, CLASSES), 0.0),
}


def weighed(z: Tensor, y: Tensor) -> Tensor:
    return functional.cross_entropy(z, y, weight=WEIGHTS)


LOSSES = {
    "weights of single precision": lambda z, y: weighed(z, y) * WEIGHTS[y].sum() / len(y),
    "tiny": lambda z, y: 1e-30 * functional.cross_entropy(z, y),
    "half precision within": lambda z, _: (z.half().softmax(1) ** 2).mean().float(),
    "few values": lambda z, y: (z.argmax(1) != y).float().mean() + 0 * z.sum(),
    "naive": lambda z, _: torch.log(1 + torch.exp(-(10 * z).clamp(-80, 80))).mean(),
}


def in_batches(size: int, y: Tensor = Y) -> list[tuple[Tensor, Tensor]]:
    return list(zip(X.split(size), y.split(size), strict=True))


@pytest.mark.parametrize("case", [*MODELS, *LOSSES])
def test_rounding_couples_nothing(case: str) -> None:
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(1)
        built = MODELS.get(case, MODELS["deep, chaotic"])()
    for data in ([(X, Y)], in_batches(64)):
        objective = Objective(built, data, LOSSES.get(case, nn.CrossEntropyLoss()), chunk=70)
        assert (objective.coupling, objective.chunk) == ("", 70)


def rare(*labels: int) -> Tensor:
    found = torch.zeros(N, dtype=torch.int64)
    found[140 : 140 + len(labels)] = torch.tensor(labels)
    return found


@pytest.mark.parametrize("size", [7, 64, N])
@pytest.mark.parametrize(
    ("loss", "targets"),
    [
        (weighed, Y),
        (weighed, rare(3)),
        (lambda z, y: functional.cross_entropy(z, y, ignore_index=3), rare(2, 3, 4)),
        (lambda z, y: ((z[:, 0] - y) ** 2).nanmean(), torch.where(rare(3) > 0, torch.nan, Y.float())),
        (
            lambda z, y: (y @ WEIGHTS * (z - y).square().sum(1)).sum() / (y @ WEIGHTS).sum(),
            functional.one_hot(rare(3), CLASSES).float(),
        ),
        (lambda z, y: functional.cross_entropy(z, y) + 1e-3 * z.mean(0).square().sum(), Y),
    ],
)
def test_what_one_sample_in_many_shows_is_seen(loss: Any, targets: Tensor, size: int) -> None:
    objective = Objective(deep(nn.Tanh(), layers=1), in_batches(size, targets), loss, chunk=100)
    assert objective.coupling.startswith("the loss of a batch is not the mean")


def test_few_are_asked_and_only_once() -> None:
    asked = []
    model = nn.Linear(8, CLASSES)
    counting = own(lambda m, x: (asked.append(len(x)), m.body(x))[1], body=lambda: model)()
    objective = Objective(counting, (X, Y), nn.CrossEntropyLoss(), chunk=100)
    assert asked == []
    objective.value()
    # a few samples in three splits, then the parts of one batch as large as a pass takes, then the data themselves
    assert sum(asked) <= 5 * 32 + 3 * 100 + 1 + N and max(asked[:-9]) <= 32
    asked.clear()
    objective.value()
    objective.with_data((X[:200], Y[:200])).value()
    assert asked == [100] * 5
    asked.clear()
    other = objective.with_data((X[:150], Y[:150]))  # a part of a size that nothing was asked of
    other.value()
    # with three that tell whether answers about the same model are known
    assert sum(asked) <= 3 + 3 * (100 + 50) + 2 + 150 and asked[-2:] == [100, 50]
    asked.clear()
    other.with_data((X[50:200], Y[50:200])).value()
    assert asked == [100, 50]
    asked.clear()
    whole = Objective(counting, (X, Y), nn.CrossEntropyLoss())  # nothing is cut
    assert whole.value() > 0 and not whole.answers
    assert asked == [3, 3, N]  # a few twice: whether a call changes what it is given


@pytest.mark.parametrize(("size", "chunk"), [(1, None), (4, None), (N, 6), (60, 6)])
def test_no_more_are_asked_together_than_a_pass_takes(size: int, chunk: int | None) -> None:
    """But for four; a rare class is seen all the same."""
    seen = []
    objective = Objective(
        deep(nn.Tanh(), layers=1),
        in_batches(size, rare(3, 1, 4)),
        lambda z, y: (seen.append(len(y)), weighed(z, y))[1],
        chunk=chunk,
    )
    assert not objective.separable and max(seen) <= max(4, min(size, chunk or N))


@pytest.mark.parametrize(
    "targets", [Y, rare(3), Y.float(), functional.one_hot(Y, CLASSES), X, torch.arange(N)]
)
@pytest.mark.parametrize("size", [1, 7, N])
def test_the_samples_are_few_and_different(targets: Tensor, size: int) -> None:
    pairs = zip(torch.arange(N).split(size), targets.split(size), strict=True)
    found = [int(x) for x, _ in chosen(list(pairs))]
    assert found == sorted(set(found)) and 16 <= len(found) <= 32
    assert all(rows(y) == 1 for _, y in chosen([(X, targets)]))


@pytest.mark.parametrize("seed", [0, 49])  # of the last single precision does not tell
def test_targets_that_are_not_rows_of_inputs_are_asked_by_batches(seed: int) -> None:
    """Tokens, flattened: what cannot be cut is one piece."""
    torch.default_generator.manual_seed(seed)
    model = nn.Sequential(nn.Linear(4, 6), nn.Unflatten(1, (2, 3)), nn.Flatten(0, 1))
    data = [(x.view(-1, 4)[: len(x) // 2], y[: 2 * (len(y) // 2)] % 3) for x, y in in_batches(60)]
    x, y = (torch.cat(parts) for parts in zip(*data, strict=True))
    objective = Objective(model, data, nn.CrossEntropyLoss())
    assert objective.separable
    assert abs(objective.value() - nn.CrossEntropyLoss()(model(x), y).item()) < 1e-6
    with pytest.raises(ValueError, match="each for itself, of data in several batches"):
        Objective(model, data, lambda z, y: functional.cross_entropy(z, y, weight=WEIGHTS[2:])).value()


def test_batches_that_say_what_they_count_for_are_taken_as_they_are() -> None:
    """A mean of class-weighted means with the weights of the classes is that of all data."""
    model = nn.Linear(8, CLASSES)
    known = Objective(model, (X, Y), weighed)
    counted = Objective(model, in_batches(64), weighed, count=lambda y: float(WEIGHTS[y].sum()), chunk=20)
    assert counted.separable and abs(counted.value() - known.value()) < 1e-6
    each = Objective(model, in_batches(60), weighed, count=lambda _: 1.0, chunk=20)
    expected = np.mean([weighed(model(x), y).item() for x, y in in_batches(60)])
    assert each.chunk is None and abs(each.value() - expected) < 1e-6


def test_in_training_mode_a_batch_is_the_unit() -> None:
    model = nn.Sequential(nn.Linear(8, 9), nn.BatchNorm1d(9), nn.Tanh(), nn.Linear(9, CLASSES)).double()
    data, loss = [(x.double(), y) for x, y in in_batches(100)], nn.CrossEntropyLoss()
    whole, *each = (Objective(model, part, loss, training=True) for part in (data, *data))
    vector = torch.ones(whole.dim).double()
    assert abs(whole.value() - np.mean([part.value() for part in each])) < 1e-14
    assert_same(hessian(whole) @ vector, torch.stack([hessian(part) @ vector for part in each]).mean(0))
    assert whole.coupling == "in training mode samples of a batch may affect each other"
