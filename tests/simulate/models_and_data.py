"""Small models with a loss and data, of every kind that people bring, and their curvature by dense autograd alone."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from simulate.objectives import Objective

N = 9
CUTS = (slice(0, 4), slice(4, 8), slice(8, N))


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


def _frozen() -> nn.Module:
    model = _perceptron()
    model.get_parameter("0.weight").requires_grad_(False)
    return model


def _drawn(*shape: int) -> Callable[[], Tensor]:
    return lambda: torch.randn(N, *shape)


def _classes(count: int = 3, *shape: int) -> Callable[[], Tensor]:
    return lambda: torch.randint(0, count, (N, *shape))


def _some() -> Tensor:
    return torch.tensor([0, 1, 2, 2, 1, 1, 1, 1, 0])


def _sides() -> dict[str, Tensor]:
    return {"left": torch.randn(N, 2), "right": torch.randn(N, 3)}


def _part(x: Any, cut: slice) -> Any:
    return {name: value[cut] for name, value in x.items()} if isinstance(x, dict) else x[cut]


ENTROPY, SQUARES = nn.CrossEntropyLoss, nn.MSELoss
Build = Callable[[], Any]

BUILDERS = {
    "cross-entropy": (_perceptron, ENTROPY, _drawn(4), _classes()),
    "sum": (_perceptron, lambda: ENTROPY(reduction="sum"), _drawn(4), _classes()),
    "weighted classes": (
        _perceptron,
        lambda: ENTROPY(weight=torch.tensor([0.2, 1.0, 3.0])),
        _drawn(4),
        _classes(),
    ),
    "ignored class": (_perceptron, lambda: ENTROPY(ignore_index=1), _drawn(4), _some),
    "class probabilities": (_perceptron, ENTROPY, _drawn(4), lambda: torch.randn(N, 3).softmax(1)),
    "squared error": (_perceptron, SQUARES, _drawn(4), _drawn(3)),
    "binary": (_perceptron, nn.BCEWithLogitsLoss, _drawn(4), lambda: torch.rand(N, 3).round()),
    "absolute error": (_perceptron, nn.L1Loss, _drawn(4), _drawn(3)),
    "linear": (lambda: nn.Linear(4, 2), SQUARES, _drawn(4), _drawn(2)),
    "convolution": (_convolution, ENTROPY, _drawn(1, 4, 4), _classes()),
    "tied": (Tied, SQUARES, _drawn(4), _drawn(4)),
    "frozen": (_frozen, ENTROPY, _drawn(4), _classes()),
    "transformer": (Block, ENTROPY, _classes(5, 3), _classes(5, 3)),
    "inputs by name": (Named, SQUARES, _sides, _drawn(3)),
}
"""Model, loss, inputs and targets."""


def case(name: str) -> Case:
    """A model with its data in float64; the same each time."""
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(sorted(BUILDERS).index(name))
        torch.set_default_dtype(torch.float64)
        try:
            model, loss, x, y = (build() for build in BUILDERS[name])
            return Case(model, loss, [(_part(x, cut), y[cut]) for cut in CUTS])
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
    with objective.own_mode():
        vector = objective.flat(objective.leaves).detach()
        return torch.func.jacrev(torch.func.grad(whole_loss(objective)))(vector).detach()


def dense_jacobian(objective: Objective, inputs: Any) -> Tensor:
    """Return the Jacobian of the flattened outputs in the parameters, (outputs, dim)."""
    with objective.own_mode():
        vector = objective.flat(objective.leaves).detach()
        return torch.func.jacrev(lambda v: objective.outputs(objective.split(v), inputs).flatten())(
            vector
        ).detach()
