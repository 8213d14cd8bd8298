"""Small models with a loss and data, of every kind that people bring, and their curvature by dense autograd alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from simulate.objectives import Objective
from simulate.objectives.restoring import as_found

N = 9


class Case(NamedTuple):
    model: nn.Module
    loss: Any
    data: list[tuple[Any, Any]]

    def objective(self, **options: Any) -> Objective:
        return Objective(self.model, self.data, self.loss, **options)


class Tied(nn.Module):
    """An encoder whose matrix is the decoder's too."""

    def __init__(self) -> None:
        super().__init__()
        self.encode, self.decode = nn.Linear(4, 3), nn.Linear(3, 4)
        self.twice = nn.Linear(4, 4, bias=False)
        self.again = self.twice

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.tanh(self.encode(self.twice(x)))
        return self.again(nn.functional.linear(hidden, self.encode.weight.T, self.decode.bias))


class Block(nn.Module):
    """One transformer block on sequences of three tokens, with a read-out of every token."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(5, 4)
        self.block = nn.TransformerEncoderLayer(4, 2, 6, dropout=0.1, activation="gelu", batch_first=True)
        self.head = nn.Linear(4, 5)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.block(self.embed(tokens))).mT


class Named(nn.Module):
    """Two inputs by name."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(2, 3), nn.Linear(3, 3)

    def forward(self, *, left: Tensor, right: Tensor) -> Tensor:
        return torch.sigmoid(self.left(left)) * self.right(right)


def _perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))


def _convolution() -> nn.Module:
    features = (nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
    return nn.Sequential(*features, nn.Dropout(0.5), nn.Linear(2, 3))


def _ragged(x: Any, y: Any) -> list[tuple[Any, Any]]:
    cuts = (slice(0, 4), slice(4, 8), slice(8, N))
    return [(_part(x, cut), _part(y, cut)) for cut in cuts]


def _part(x: Any, cut: slice) -> Any:
    return {name: value[cut] for name, value in x.items()} if isinstance(x, dict) else x[cut]


def _classes(count: int = 3, *shape: int) -> Tensor:
    return torch.randint(0, count, (N, *shape))


def _frozen() -> nn.Module:
    model = _perceptron()
    model.get_parameter("0.weight").requires_grad_(False)
    return model


BUILDERS: dict[str, Callable[[], Case]] = {
    "cross-entropy": lambda: Case(
        _perceptron(), nn.CrossEntropyLoss(), _ragged(torch.randn(N, 4), _classes())
    ),
    "sum": lambda: Case(
        _perceptron(), nn.CrossEntropyLoss(reduction="sum"), _ragged(torch.randn(N, 4), _classes())
    ),
    "weighted classes": lambda: Case(
        _perceptron(),
        nn.CrossEntropyLoss(weight=torch.tensor([0.2, 1.0, 3.0])),
        _ragged(torch.randn(N, 4), _classes()),
    ),
    "ignored class": lambda: Case(
        _perceptron(),
        nn.CrossEntropyLoss(ignore_index=1),
        _ragged(torch.randn(N, 4), torch.tensor([0, 1, 2, 2, 1, 1, 1, 1, 0])),
    ),
    "class probabilities": lambda: Case(
        _perceptron(), nn.CrossEntropyLoss(), _ragged(torch.randn(N, 4), torch.randn(N, 3).softmax(1))
    ),
    "squared error": lambda: Case(_perceptron(), nn.MSELoss(), _ragged(torch.randn(N, 4), torch.randn(N, 3))),
    "binary": lambda: Case(
        _perceptron(), nn.BCEWithLogitsLoss(), _ragged(torch.randn(N, 4), torch.rand(N, 3).round())
    ),
    "absolute error": lambda: Case(_perceptron(), nn.L1Loss(), _ragged(torch.randn(N, 4), torch.randn(N, 3))),
    "linear": lambda: Case(nn.Linear(4, 2), nn.MSELoss(), _ragged(torch.randn(N, 4), torch.randn(N, 2))),
    "convolution": lambda: Case(
        _convolution(), nn.CrossEntropyLoss(), _ragged(torch.randn(N, 1, 4, 4), _classes())
    ),
    "tied": lambda: Case(Tied(), nn.MSELoss(), _ragged(torch.randn(N, 4), torch.randn(N, 4))),
    "frozen": lambda: Case(_frozen(), nn.CrossEntropyLoss(), _ragged(torch.randn(N, 4), _classes())),
    "transformer": lambda: Case(Block(), nn.CrossEntropyLoss(), _ragged(_classes(5, 3), _classes(5, 3))),
    "inputs by name": lambda: Case(
        Named(),
        nn.MSELoss(),
        _ragged({"left": torch.randn(N, 2), "right": torch.randn(N, 3)}, torch.randn(N, 3)),
    ),
}


def case(name: str) -> Case:
    """A model with its data in float64; the same each time."""
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(sorted(BUILDERS).index(name))
        torch.set_default_dtype(torch.float64)
        try:
            return BUILDERS[name]()
        finally:
            torch.set_default_dtype(torch.float32)


def whole_loss(objective: Objective) -> Callable[[Tensor], Tensor]:
    """Loss of all data of a flat vector of parameters."""

    def loss(vector: Tensor) -> Tensor:
        leaves = objective.split(vector)
        parts = [objective.loss(objective.outputs(leaves, b.inputs), b) for b in objective.batches()]
        return torch.stack(parts).sum()

    return loss


def dense_hessian(objective: Objective) -> Tensor:
    with as_found(objective.model, objective.training):
        vector = objective.flat(objective.leaves()).detach()
        return torch.func.jacrev(torch.func.grad(whole_loss(objective)))(vector).detach()


def dense_jacobian(objective: Objective, inputs: Any) -> Tensor:
    """Of the outputs, flattened, by the parameters: (outputs, dim)."""
    with as_found(objective.model, objective.training):
        vector = objective.flat(objective.leaves()).detach()
        return torch.func.jacrev(lambda v: objective.outputs(objective.split(v), inputs).flatten())(
            vector
        ).detach()
