"""Losses and models that people bring, each with targets: means and sums over samples, and those that are neither."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.simulate.objectives.sweep.listing import own

N, WIDTH, OUT, STEPS = 23, 4, 3, 2
FLOAT = torch.float64

Loss = Callable[[Tensor, Any], Tensor]


def _drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=FLOAT)


X = _drawn(N, WIDTH)
LABELS = torch.tensor([0, 1, 2, 2, 1] * 5)[:N]
WEIGHTS = torch.tensor([0.2, 1.0, 3.0], dtype=FLOAT)
TARGETS = {
    "labels": LABELS,
    "numbers": _drawn(N, OUT, seed=1),
    "shares": _drawn(N, OUT, seed=2).softmax(1),
    "bits": (_drawn(N, OUT, seed=3) > 0).to(FLOAT),
    "counts": torch.arange(3 * N).reshape(N, OUT).remainder(4).to(FLOAT),
    "positions": torch.stack([LABELS, LABELS.flip(0)], 1),
    "weighed": (_drawn(N, OUT, seed=1), _drawn(N, seed=5).exp()),
    "named": {"mean": _drawn(N, OUT, seed=1), "variance": _drawn(N, OUT, seed=6).exp()},
    "pairs": (_drawn(N, OUT, seed=7), _drawn(N, seed=8).sign()),
    "column": _drawn(N, seed=11),
}


def network(sequences: bool = False) -> nn.Module:
    """Outputs (n, 3), or (n, 3, 2)."""
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(0)
        last = (
            (nn.Linear(5, OUT * STEPS), nn.Unflatten(1, (OUT, STEPS))) if sequences else (nn.Linear(5, OUT),)
        )
        return nn.Sequential(nn.Linear(WIDTH, 5), nn.Tanh(), *last).double()


def _flat(loss: Callable[..., Tensor]) -> Loss:
    """Flatten classes and positions into one row."""
    return lambda z, y: loss(z.mT.flatten(0, 1), y.flatten())


def _focal(z: Tensor, y: Tensor) -> Tensor:
    each = _each(z, y)
    return ((1 - (-each).exp()) ** 2 * each).mean()


def _each(z: Tensor, y: Tensor) -> Tensor:
    return functional.cross_entropy(z, y, reduction="none")


def _contrastive(z: Tensor, _: Any) -> Tensor:
    z = functional.normalize(z, dim=1)
    alike = (z @ z.T / 0.5).masked_fill(torch.eye(len(z), dtype=torch.bool), -1e9)
    return functional.cross_entropy(alike, torch.arange(len(z)).roll(1))


def _dice(z: Tensor, y: Tensor) -> Tensor:
    p = z.sigmoid()
    return 1 - (2 * (p * y).sum() + 1) / (p.sum() + y.sum() + 1)


class OwnCount(nn.CrossEntropyLoss):
    """Says by its class that it divides by the weights, and divides by the number."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:  # noqa: A002 (the name that torch gave it)
        return functional.cross_entropy(input, target, weight=self.weight, reduction="sum") / len(target)


def _normalised() -> nn.Module:
    layers = list(network())
    return nn.Sequential(layers[0], nn.BatchNorm1d(5, track_running_stats=False).double(), *layers[1:])


def mixed(mixing: Callable[[Tensor], Tensor]) -> Callable[[], nn.Module]:
    return own(lambda m, x: mixing(m.body(x)), body=network)


class Case(NamedTuple):
    loss: Loss
    targets: str = "labels"
    model: Callable[[], nn.Module] = network


def in_positions(loss: Loss) -> Case:
    return Case(loss, "positions", lambda: network(sequences=True))


SMOOTHED = nn.CrossEntropyLoss(weight=WEIGHTS, ignore_index=2, label_smoothing=0.2)
ADDITIVE = {
    "cross-entropy": Case(nn.CrossEntropyLoss()),
    "cross-entropy, sum": Case(nn.CrossEntropyLoss(reduction="sum")),
    "cross-entropy, weights, ignored, smoothed": Case(SMOOTHED),
    "cross-entropy, shares, weights": Case(nn.CrossEntropyLoss(weight=WEIGHTS), "shares"),
    "cross-entropy, positions": in_positions(nn.CrossEntropyLoss(weight=WEIGHTS, ignore_index=0)),
    "cross-entropy, classes last": in_positions(_flat(functional.cross_entropy)),
    "negative log-likelihood, weights": Case(nn.NLLLoss(weight=WEIGHTS, ignore_index=0)),
    "squared": Case(nn.MSELoss(), "numbers"),
    "absolute": Case(nn.L1Loss(), "numbers"),
    "bits, weights": Case(nn.BCEWithLogitsLoss(weight=WEIGHTS, pos_weight=1 / WEIGHTS), "bits"),
    "divergence by samples": Case(nn.KLDivLoss(reduction="batchmean"), "shares"),
    "Poisson": Case(nn.PoissonNLLLoss(full=True), "counts"),
    "Gaussian": Case(lambda z, y: functional.gaussian_nll_loss(z, y["mean"], y["variance"]), "named"),
    "angles": Case(lambda z, y: nn.CosineEmbeddingLoss(margin=0.1)(z, *y), "pairs"),
    "own mean of focal": Case(_focal),
    "own weights of samples": Case(lambda z, y: (y[1] * ((z - y[0]) ** 2).mean(1) / 10).mean(), "weighed"),
    "own count by class": Case(
        lambda z, y: functional.cross_entropy(z, y, weight=WEIGHTS, reduction="sum") / len(y)
    ),
    "tiny": Case(lambda z, y: 1e-30 * ((z - y) ** 2).mean(), "numbers"),
    "of both signs": Case(lambda z, y: (z * y).sin().mean(), "numbers"),
    "in place": Case(lambda z, y: (z * 1).sub_(y).square_().mean(), "numbers"),
}
"""Means and sums over the samples, or over what their targets count for: all batches give the same."""

ONCE = Case(nn.MultiMarginLoss(weight=WEIGHTS))
"""Without a second derivative in torch."""

COUPLED = {
    "weights that its class tells otherwise": Case(OwnCount(weight=WEIGHTS)),
    "padded positions": in_positions(_flat(nn.CrossEntropyLoss(ignore_index=2))),
    "root of a mean": Case(lambda z, y: ((z - y) ** 2).mean().sqrt(), "numbers"),
    "sum and a constant": Case(lambda z, y: ((z - y) ** 2).sum() + 1.0, "numbers"),
    "contrastive": Case(_contrastive),
    "dice": Case(_dice, "bits"),
    "hardest half": Case(lambda z, y: _each(z, y).topk(len(y) // 2).values.mean()),
    "spread over all pairs": Case(lambda z, y: ((z[:, :1] - y) ** 2).mean(), "column"),
    "weights of these samples": Case(
        lambda z, y: (_drawn(N, 1, seed=5).exp() * (z - y) ** 2).mean(), "numbers"
    ),
    "statistics of the batch": Case(nn.CrossEntropyLoss(), model=_normalised),
    "attention over the batch": Case(nn.CrossEntropyLoss(), model=mixed(lambda z: (z @ z.T).softmax(1) @ z)),
    "the sample before": Case(nn.CrossEntropyLoss(), model=mixed(lambda z: z + 0.1 * z.roll(1, 0))),
}
"""Other numbers for other batches: there is one for all data at once alone."""
