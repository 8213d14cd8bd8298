"""Small models with every kind of layer affine in its parameters, of what is done around them, and their data."""

import math
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from simulate.modules.sites import NORMALISATIONS
from simulate.objectives import Objective
from tests.simulate.models_and_data import BUILDERS, case

SAMPLES = 5


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


def images(side: int, *layers: nn.Module) -> tuple[nn.Module, Tensor]:
    return nn.Sequential(*layers, nn.Flatten(), nn.LazyLinear(3)), torch.randn(SAMPLES, 2, side, side)


LAYERS = {
    "convolutions": lambda: images(
        5,
        nn.Conv2d(2, 3, 3),
        nn.ReLU(inplace=True),
        nn.Conv2d(3, 2, 2, stride=2, padding=1, dilation=2),
        nn.Tanh(),
        nn.Conv2d(2, 2, (1, 2), groups=2),
    ),
    "reflected": lambda: images(
        4,
        nn.Conv2d(2, 2, (3, 2), padding="same", padding_mode="circular"),
        nn.Tanh(),
        nn.Conv2d(2, 2, 3, padding="same"),
        nn.SiLU(),
        nn.Conv2d(2, 2, 3, padding=1, padding_mode="reflect"),
    ),
    "transposed": lambda: images(4, nn.Conv2d(2, 2, 3), nn.Tanh(), nn.ConvTranspose2d(2, 2, 3, stride=2)),
    "normalisations": lambda: images(
        4, nn.Conv2d(2, 4, 3), nn.GroupNorm(2, 4), nn.Tanh(), nn.BatchNorm2d(4), nn.LayerNorm([4, 2, 2])
    ),
    "tokens": lambda: (
        nn.Sequential(
            nn.Embedding(4, 3, padding_idx=1),
            nn.LayerNorm(3),
            nn.Linear(3, 4),
            nn.RMSNorm(4),
            nn.Flatten(),
            nn.LazyLinear(3),
        ),
        torch.randint(0, 4, (SAMPLES, 4)),
    ),
    "one output": lambda: (
        nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1), nn.Flatten(0)),
        torch.randn(SAMPLES, 4),
    ),
    "attention": lambda: (Attending(True), torch.randn(SAMPLES, 3, 4)),
    "attention, samples second": lambda: (Attending(False), torch.randn(SAMPLES, 3, 4)),
    "dead end": lambda: (DeadEnd(), torch.randn(SAMPLES, 4)),
}


class Turned(nn.Module):
    """Positions along the first axis of a block, samples along the second."""

    def __init__(self, block: nn.Module, own: nn.Module | None = None) -> None:
        super().__init__()
        self.block, self.own, self.last = block, own or nn.Identity(), nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.own(x.transpose(0, 1))
        return self.last(
            (self.block(x, x) if hasattr(self.block, "multihead_attn") else self.block(x)).sum(0)
        )


def _block() -> nn.Module:
    return nn.TransformerEncoderLayer(3, 3, 2, dropout=0.0, activation="gelu", norm_first=True)


def of_positions(model: nn.Module) -> tuple[nn.Module, Tensor]:
    return model, torch.randn(SAMPLES, 2, 3)


SECOND = {
    "decoder, samples second": lambda: of_positions(Turned(nn.TransformerDecoderLayer(3, 3, 2, dropout=0.0))),
    "encoder, samples second": lambda: of_positions(
        Turned(nn.TransformerEncoder(_block(), 1, norm=nn.LayerNorm(3), enable_nested_tensor=False))
    ),
}


class Folded(nn.Module):
    """Positions are folded into the samples before a layer, (N, T, d) to (N T, d)."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer, self.head = layer, nn.LazyLinear(3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layer(x.flatten(0, 1)).tanh().reshape(len(x), -1))


def before(layer: nn.Module, x: Tensor) -> tuple[nn.Module, Tensor]:
    return nn.Sequential(layer, nn.Tanh(), nn.Flatten(), nn.LazyLinear(3)), x


class Twice(nn.Module):
    """A convolution in groups, one the other way, a layer norm and a linear layer that is called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv1d(2, 4, 2, groups=2)
        self.second = nn.ConvTranspose1d(4, 2, 2)
        self.norm = nn.LayerNorm(5)
        self.last = nn.Linear(5, 5)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.norm(self.second(self.first(x).tanh()).tanh())
        return self.last(self.last(hidden).tanh()).mean(1)


class Gated(nn.Module):
    """Network that uses a weight matrix outside of its layer, for one sample only."""

    def __init__(self, gate: float) -> None:
        super().__init__()
        self.first, self.second, self.gate = nn.Linear(4, 4), nn.Linear(4, 4, bias=False), gate

    def forward(self, x: Tensor) -> Tensor:
        opened = x[:, :1] == self.gate
        hidden = self.second(self.first(x).relu())
        return hidden + (x @ self.second.weight).tanh() * opened if bool(opened.any()) else hidden


def gated() -> tuple[nn.Module, Tensor]:
    x = torch.randn(SAMPLES, 4)
    return Gated(float(x[-1, 0])), x


class Beside(nn.Module):
    """A network next to a layer of no inputs, to one of no outputs, and to one that is given no positions."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 2), nn.Tanh(), nn.Linear(2, 3))
        with warnings.catch_warnings(action="ignore"):  # that there is nothing to draw
            self.none, self.nothing, self.nowhere = nn.Linear(0, 3), nn.Linear(4, 0), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        empty = x[:, None, :][:, :0]
        rest = self.nothing(x).sum(1, keepdim=True) + self.nowhere(empty).sum(1)
        return self.net(x) + self.none(x[:, :0]) + rest


def smooth(first: nn.Module, x: Tensor) -> tuple[nn.Module, Tensor]:
    """A layer whose outputs for a sample are fewer than its weights, with curvature behind all of it."""
    rest = (nn.Tanh(), nn.Flatten(), nn.LayerNorm(4), nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 3))
    model = nn.Sequential(first, *rest)
    for p in model.parameters():
        nn.init.normal_(p)
    return model, x


SMOOTH = {
    "smooth positions": lambda: smooth(nn.Conv1d(3, 2, 4), torch.randn(6, 3, 5)),
    "smooth groups": lambda: smooth(nn.Conv1d(6, 2, 4, groups=2), torch.randn(6, 6, 5)),
    "smooth on tokens": lambda: smooth(nn.Linear(5, 2), torch.randn(6, 2, 5)),
    "smooth embedding": lambda: smooth(nn.Embedding(5, 4), torch.arange(6) % 5),
}
AROUND = {
    **SECOND,
    **SMOOTH,
    "own layer, samples second": lambda: of_positions(Turned(_block(), own=nn.Linear(3, 3))),
    "folded, in depth": lambda: (
        Folded(nn.Conv2d(3, 3, 3, groups=3, padding=1)), torch.randn(SAMPLES, 2, 3, 2, 4)
    ),
    "folded": lambda: (
        Folded(nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4, bias=False), nn.BatchNorm1d(4))),
        torch.randn(SAMPLES, 2, 4),
    ),
    "many positions": lambda: before(nn.Linear(2, 3), torch.randn(SAMPLES, 5, 2, 2)),
    "three axes": lambda: before(nn.Conv3d(1, 2, 2, padding=1), torch.randn(SAMPLES, 1, 2, 3, 2)),
    "one token": lambda: before(nn.Embedding(5, 3, padding_idx=1), torch.arange(SAMPLES)),
    "twice": lambda: (Twice(), torch.randn(4, 2, 5)),
    "gated": gated,
    "beside layers of width 0": lambda: (Beside(), torch.randn(7, 4)),
}  # fmt: skip


# --- samples that meet in some batches only, or are reordered inside ------------------------------------------------


class Between(nn.Module):
    """Two layers, and what happens between them."""

    def __init__(self, between: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.below, self.above, self.between = nn.Linear(4, 3), nn.Linear(3, 3), between

    def forward(self, x: Tensor) -> Tensor:
        return self.above(self.between(self.below(x).relu()))


class Experts(nn.Module):
    """Each takes half of the samples at most, and four of the smallest batches: what is left over is dropped."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.experts = nn.Linear(4, 2), nn.ModuleList(nn.Linear(4, 3) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        shares = self.gate(x).softmax(1)
        found = x.new_zeros(len(x), 3)
        for i, expert in enumerate(self.experts):
            taken = (shares.argmax(1) == i).nonzero()[: max(4, math.ceil(len(x) / 2)), 0]
            found = found.index_add(0, taken, expert(x[taken]).tanh() * shares[taken, i : i + 1])
        return found


class Reordered(nn.Module):
    """Layers on the samples in another order, and their outputs put back."""

    def __init__(self, order: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.layers, self.order = Between(lambda h: h.tanh()), order

    def forward(self, x: Tensor) -> Tensor:
        order = self.order(x)
        return self.layers(x[order])[order.argsort()]


def swapped_ends(x: Tensor) -> Tensor:
    order = torch.arange(len(x))
    order[0], order[-1] = len(x) - 1, 0
    return order


def ends_swapped_from(size: int, to: float = math.inf) -> nn.Module:
    return Reordered(lambda x: swapped_ends(x) if size <= len(x) <= to else torch.arange(len(x)))


MIXING = {
    "mean subtracted from four samples on": lambda: Between(lambda h: h - h.mean(0) if len(h) > 3 else h),
    "mixed with the batch reversed": lambda: Between(lambda h: 0.7 * h + 0.3 * h.flip(0)),
    "mixed at the ends": lambda: Between(lambda h: h + h[swapped_ends(h)]),
    "experts with a capacity": Experts,
}
REORDERING = {
    "sorted": (lambda: Reordered(lambda x: x[:, 0].argsort()), [9]),
    "reversed": (lambda: Reordered(lambda x: torch.arange(len(x)).flip(0)), [9]),
    "ends swapped": (lambda: ends_swapped_from(1), [9]),
    "ends swapped beyond a few samples": (lambda: ends_swapped_from(33), [34]),
    "ends swapped in a second batch, which is larger": (lambda: ends_swapped_from(40), [6, 40]),
    "ends swapped in a last batch, which is smaller": (lambda: ends_swapped_from(1, 6), [10, 6]),
}


def inputs(samples: int) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(samples, 4, generator=generator, dtype=torch.float64) + 0.5


def labels(x: Tensor) -> Tensor:
    return torch.arange(len(x)) % 3


def on_batches(model: nn.Module, sizes: list[int], **options: Any) -> Objective:
    parts = inputs(sum(sizes)).split(sizes)
    return Objective(model.double(), [(x, labels(x)) for x in parts], nn.CrossEntropyLoss(), **options)


def objective_of(name: str, **options: Any) -> Objective:
    """A model with data in float64; the same each time."""
    if name in BUILDERS:
        return case(name).objective(**options)
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(sorted(LAYERS).index(name) if name in LAYERS else 0)
        if name in MIXING:
            return on_batches(MIXING[name](), [9], **options)
        if name in REORDERING:
            build, sizes = REORDERING[name]
            return on_batches(build(), sizes, **options)
        model, x = {**LAYERS, **AROUND}[name]()
        model = model.double()
        model.eval()(x if not x.is_floating_point() else x.double())
        for norm in (m for m in model.modules() if isinstance(m, NORMALISATIONS)):
            for tensor in (*norm.parameters(), *norm.buffers()):  # no identity
                tensor.data.copy_(tensor.new_empty(tensor.shape, dtype=torch.float64).uniform_(0.5, 1.5))
        y = torch.randint(0, 3, (len(x),))
    if name == "one output":
        return Objective(model, (x, y.clamp(max=1).double()), nn.BCEWithLogitsLoss(), **options)
    return Objective(model, (x, y), nn.CrossEntropyLoss(), **options)
