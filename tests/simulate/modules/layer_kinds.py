"""Small models with every kind of layer that is affine in its parameters, and their data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from simulate.objectives import Objective

SAMPLES = 5


class Reused(nn.Module):
    """A layer that is met twice, and one that gets its own output on top."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.again = nn.Linear(4, 5), nn.Linear(5, 5)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.again(self.first(x).sigmoid())
        return hidden + self.again(hidden.tanh())


class Centred(nn.Module):
    """Outputs less what the batch has in the mean of squares."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.layer(x)
        return hidden - hidden.square().mean(0)


class DeadEnd(nn.Module):
    """A layer whose output nobody takes."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.aside, self.last = nn.Linear(4, 3), nn.Linear(3, 2), nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.first(x).tanh()
        self.aside(hidden)
        return self.last(hidden)


class Attending(nn.Module):
    """Attention of positions to themselves, and of their sum to them, the last of them hidden."""

    def __init__(self, batch_first: bool) -> None:
        super().__init__()
        self.whole = nn.MultiheadAttention(4, 2, bias=batch_first, batch_first=batch_first)
        self.one, self.last = nn.MultiheadAttention(4, 1, batch_first=batch_first), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = x if self.whole.batch_first else x.transpose(0, 1)
        axis = 1 if self.whole.batch_first else 0
        hidden, _ = self.whole(x, x, x, attn_mask=torch.eye(3, dtype=torch.bool))
        padding = (torch.arange(3) == 2).expand(x.shape[1 - axis], 3)
        one, _ = self.one(hidden.sum(axis, keepdim=True).tanh(), hidden, x, key_padding_mask=padding)
        return self.last(one.squeeze(axis))


def images(*layers: nn.Module) -> tuple[nn.Module, Tensor]:
    return nn.Sequential(*layers, nn.Flatten(), nn.LazyLinear(3)), torch.randn(SAMPLES, 2, 6, 6)


LAYERS: dict[str, Callable[[], tuple[nn.Module, Tensor]]] = {
    "convolutions": lambda: images(
        nn.Conv2d(2, 3, 3),
        nn.ReLU(inplace=True),
        nn.Conv2d(3, 2, 2, stride=2, padding=1, dilation=2),
        nn.Tanh(),
    ),
    "groups": lambda: images(nn.Conv2d(2, 4, 3, groups=2), nn.SiLU(), nn.Conv2d(4, 2, 3, groups=2)),
    "reflected": lambda: images(
        nn.Conv2d(2, 2, 3, padding="same"),
        nn.Tanh(),
        nn.Conv2d(2, 2, 3, padding="same"),
        nn.Tanh(),
        nn.Conv2d(2, 2, 3, padding=1, padding_mode="reflect"),
    ),
    "transposed": lambda: images(nn.Conv2d(2, 2, 3), nn.Tanh(), nn.ConvTranspose2d(2, 2, 3, stride=2)),
    "normalisations": lambda: images(
        nn.Conv2d(2, 4, 3), nn.GroupNorm(2, 4), nn.Tanh(), nn.BatchNorm2d(4), nn.LayerNorm([4, 4, 4])
    ),
    "one axis": lambda: (
        nn.Sequential(nn.Conv1d(2, 3, 2), nn.Tanh(), nn.Conv1d(3, 2, 2), nn.Flatten(), nn.LazyLinear(3)),
        torch.randn(SAMPLES, 2, 5),
    ),
    "tokens": lambda: (
        nn.Sequential(nn.Embedding(4, 3), nn.LayerNorm(3), nn.Linear(3, 4), nn.Flatten(), nn.LazyLinear(3)),
        torch.randint(0, 4, (SAMPLES, 4)),
    ),
    "one output": lambda: (
        nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1), nn.Flatten(0)),
        torch.randn(SAMPLES, 4),
    ),
    "padding": lambda: (
        nn.Sequential(nn.Embedding(4, 3, padding_idx=1), nn.RMSNorm(3), nn.Flatten(), nn.LazyLinear(3)),
        torch.randint(0, 4, (SAMPLES, 4)),
    ),
    "attention": lambda: (Attending(True), torch.randn(SAMPLES, 3, 4)),
    "attention, samples second": lambda: (Attending(False), torch.randn(SAMPLES, 3, 4)),
    "encoder": lambda: (
        nn.Sequential(
            nn.TransformerEncoderLayer(4, 2, 5, activation="gelu", batch_first=True),
            nn.Flatten(),
            nn.LazyLinear(3),
        ),
        torch.randn(SAMPLES, 2, 4),
    ),
    "dead end": lambda: (DeadEnd(), torch.randn(SAMPLES, 4)),
    "reused": lambda: (Reused(), torch.randn(SAMPLES, 4)),
}


def layered(name: str, **options: Any) -> Objective:
    """A model with data in float64; the same each time."""
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(sorted(LAYERS).index(name))
        model, x = LAYERS[name]()
        model = model.double()
        model.eval()(x if not x.is_floating_point() else x.double())
        y = torch.randint(0, 3, (SAMPLES,))
    if name == "one output":
        return Objective(model, (x, y.clamp(max=1).double()), nn.BCEWithLogitsLoss(), **options)
    return Objective(model, (x, y), nn.CrossEntropyLoss(), **options)


def centred() -> Objective:
    """Samples see each other."""
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(0)
        model, x = Centred().double(), torch.randn(6, 4).double()
    return Objective(model, (x, torch.arange(6) % 3), nn.CrossEntropyLoss())
