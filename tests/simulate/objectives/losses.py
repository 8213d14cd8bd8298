"""Losses and models that people bring, each with targets: means and sums over samples, and those that are neither."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

N, WIDTH, OUT, STEPS = 23, 4, 3, 2
FLOAT = torch.float64

Loss = Callable[[Tensor, Any], Tensor]


def _drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=FLOAT)


X = _drawn(N, WIDTH)
LABELS = torch.tensor([0, 1, 2, 2, 1] * 5)[:N]
WEIGHTS = torch.tensor([0.2, 1.0, 3.0], dtype=FLOAT)
TARGETS: dict[str, Any] = {
    "labels": LABELS,
    "numbers": _drawn(N, OUT, seed=1),
    "shares": _drawn(N, OUT, seed=2).softmax(1),
    "bits": (_drawn(N, OUT, seed=3) > 0).to(FLOAT),
    "counts": torch.arange(3 * N).reshape(N, OUT).remainder(4).to(FLOAT),
    "signs": _drawn(N, OUT, seed=4).sign(),
    "positions": torch.stack([LABELS, LABELS.flip(0)], 1),
    "sets": torch.tensor([[0, -1, -1], [2, 0, -1], [1, 2, -1]]).repeat(8, 1)[:N],
    "weighed": (_drawn(N, OUT, seed=1), _drawn(N, seed=5).exp()),
    "named": {"mean": _drawn(N, OUT, seed=1), "variance": _drawn(N, OUT, seed=6).exp()},
    "pairs": (_drawn(N, OUT, seed=7), _drawn(N, seed=8).sign()),
    "triples": (_drawn(N, OUT, seed=9), _drawn(N, OUT, seed=10)),
    "column": _drawn(N, seed=11),
}


class Case(NamedTuple):
    loss: Loss
    targets: str
    sequences: bool = False


def network(sequences: bool = False) -> nn.Module:
    """Outputs (n, 3), or (n, 3, 2)."""
    torch_state = torch.get_rng_state()
    torch.default_generator.manual_seed(0)
    last = (nn.Linear(5, OUT * STEPS), nn.Unflatten(1, (OUT, STEPS))) if sequences else (nn.Linear(5, OUT),)
    made = nn.Sequential(nn.Linear(WIDTH, 5), nn.Tanh(), *last).double()
    torch.set_rng_state(torch_state)
    return made


def _padded(z: Tensor, y: Tensor) -> Tensor:
    """Positions of one class are padding."""
    return functional.cross_entropy(z.mT.flatten(0, 1), y.flatten(), ignore_index=2)


def _focal(z: Tensor, y: Tensor) -> Tensor:
    each = functional.cross_entropy(z, y, reduction="none")
    return (1 - (-each).exp()) ** 2 * each


def _chosen(z: Tensor, y: Tensor) -> Tensor:
    return functional.cross_entropy(z, y, reduction="none")


def _contrastive(z: Tensor, _: Any) -> Tensor:
    z = functional.normalize(z, dim=1)
    alike = (z @ z.T / 0.5).masked_fill(torch.eye(len(z), dtype=torch.bool), -1e9)
    return functional.cross_entropy(alike, torch.arange(len(z)).roll(1))


def _supervised_contrastive(z: Tensor, y: Tensor) -> Tensor:
    z = functional.normalize(z, dim=1)
    same = (y[:, None] == y).to(z.dtype) - torch.eye(len(z), dtype=z.dtype)
    return -(same * (z @ z.T).log_softmax(1)).sum() / same.sum().clamp(min=1)


def _redundancy(z: Tensor, _: Any) -> Tensor:
    unit = (z - z.mean(0)) / z.std(0)
    return ((unit.T @ unit / len(z) - torch.eye(OUT, dtype=z.dtype)) ** 2).sum()


def _dice(z: Tensor, y: Tensor) -> Tensor:
    p = z.sigmoid()
    return 1 - (2 * (p * y).sum() + 1) / (p.sum() + y.sum() + 1)


class OwnCount(nn.CrossEntropyLoss):
    """Says by its class that it divides by the weights, and divides by the number."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:  # noqa: A002 (the name that torch gave it)
        return functional.cross_entropy(input, target, weight=self.weight, reduction="sum") / len(target)


ADDITIVE: dict[str, Case] = {
    "cross-entropy": Case(nn.CrossEntropyLoss(), "labels"),
    "cross-entropy, sum": Case(nn.CrossEntropyLoss(reduction="sum"), "labels"),
    "cross-entropy, weights": Case(nn.CrossEntropyLoss(weight=WEIGHTS), "labels"),
    "cross-entropy, ignored": Case(nn.CrossEntropyLoss(ignore_index=1), "labels"),
    "cross-entropy, smoothed": Case(nn.CrossEntropyLoss(label_smoothing=0.2), "labels"),
    "cross-entropy, weights, ignored, smoothed": Case(
        nn.CrossEntropyLoss(weight=WEIGHTS, ignore_index=2, label_smoothing=0.2), "labels"
    ),
    "cross-entropy, shares": Case(nn.CrossEntropyLoss(), "shares"),
    "cross-entropy, shares, weights": Case(nn.CrossEntropyLoss(weight=WEIGHTS), "shares"),
    "cross-entropy, positions": Case(nn.CrossEntropyLoss(), "positions", True),
    "cross-entropy, positions, ignored": Case(
        nn.CrossEntropyLoss(weight=WEIGHTS, ignore_index=0), "positions", True
    ),
    "cross-entropy, classes last": Case(
        lambda z, y: functional.cross_entropy(z.mT.flatten(0, 1), y.flatten()), "positions", True
    ),
    "negative log-likelihood": Case(nn.NLLLoss(), "labels"),
    "negative log-likelihood, weights": Case(nn.NLLLoss(weight=WEIGHTS, ignore_index=0), "labels"),
    "squared": Case(nn.MSELoss(), "numbers"),
    "squared, sum": Case(nn.MSELoss(reduction="sum"), "numbers"),
    "absolute": Case(nn.L1Loss(), "numbers"),
    "Huber": Case(nn.HuberLoss(), "numbers"),
    "bits": Case(nn.BCEWithLogitsLoss(), "bits"),
    "bits, weights": Case(nn.BCEWithLogitsLoss(weight=WEIGHTS, pos_weight=1 / WEIGHTS), "bits"),
    "bits of probabilities": Case(lambda z, y: functional.binary_cross_entropy(z.sigmoid(), y), "bits"),
    "divergence": Case(lambda z, y: nn.KLDivLoss()(z.log_softmax(1), y), "shares"),
    "divergence by samples": Case(nn.KLDivLoss(reduction="batchmean"), "shares"),
    "Poisson": Case(nn.PoissonNLLLoss(full=True), "counts"),
    "Gaussian": Case(
        lambda z, y: functional.gaussian_nll_loss(z, y["mean"], y["variance"], full=True), "named"
    ),
    "soft margin of sets": Case(nn.MultiLabelSoftMarginLoss(weight=WEIGHTS), "bits"),
    "hinge of distances": Case(lambda z, y: nn.HingeEmbeddingLoss()(z.square(), y), "signs"),
    "angles": Case(lambda z, y: nn.CosineEmbeddingLoss(margin=0.1)(z, *y), "pairs"),
    "triples": Case(lambda z, y: nn.TripletMarginLoss(margin=0.3)(z, *y), "triples"),
    "own mean of focal": Case(lambda z, y: _focal(z, y).mean(), "labels"),
    "own mean of log cosh": Case(lambda z, y: (z - y).cosh().log().mean(), "numbers"),
    "own weights of samples": Case(lambda z, y: (y[1] * ((z - y[0]) ** 2).mean(1) / 10).mean(), "weighed"),
    "own count by class": Case(
        lambda z, y: functional.cross_entropy(z, y, weight=WEIGHTS, reduction="sum") / len(y), "labels"
    ),
    "tiny": Case(lambda z, y: 1e-30 * ((z - y) ** 2).mean(), "numbers"),
    "of both signs": Case(lambda z, y: (z * y).sin().mean(), "numbers"),
    "in place": Case(lambda z, y: (z * 1).sub_(y).square_().mean(), "numbers"),
}
"""Means and sums over the samples, or over what their targets count for: all batches give the same."""

ONCE: dict[str, Case] = {
    "margin": Case(nn.MultiMarginLoss(), "labels"),
    "margin, weights": Case(nn.MultiMarginLoss(p=2, weight=WEIGHTS), "labels"),
    "margin of sets": Case(nn.MultiLabelMarginLoss(), "sets"),
}
"""Without a second derivative in torch."""

COUPLED: dict[str, Case] = {
    "weights of classes": Case(lambda z, y: functional.cross_entropy(z, y, weight=WEIGHTS), "labels"),
    "weights that its class tells otherwise": Case(OwnCount(weight=WEIGHTS), "labels"),
    "ignored class": Case(lambda z, y: functional.cross_entropy(z, y, ignore_index=1), "labels"),
    "padded positions, classes last": Case(_padded, "positions", True),
    "root of a mean": Case(lambda z, y: ((z - y) ** 2).mean().sqrt(), "numbers"),
    "sum and a constant": Case(lambda z, y: ((z - y) ** 2).sum() + 1.0, "numbers"),
    "normalised by weights": Case(
        lambda z, y: (y[1] * ((z - y[0]) ** 2).mean(1)).sum() / y[1].sum(), "weighed"
    ),
    "contrastive": Case(_contrastive, "labels"),
    "contrastive by class": Case(_supervised_contrastive, "labels"),
    "redundancy": Case(_redundancy, "labels"),
    "dice": Case(_dice, "bits"),
    "variance of the losses": Case(lambda z, y: _chosen(z, y).mean() + _chosen(z, y).var(), "labels"),
    "hardest half": Case(lambda z, y: _chosen(z, y).topk(len(y) // 2).values.mean(), "labels"),
    "correlation": Case(lambda z, y: -functional.cosine_similarity(z - z.mean(0), y, dim=0).sum(), "numbers"),
    "ranks": Case(
        lambda z, y: functional.softplus((z[:, 0] - z[:, :1]) * (y - y[:, None]).sign()).mean(), "column"
    ),
    "spread over all pairs": Case(lambda z, y: ((z[:, :1] - y) ** 2).mean(), "column"),
    "penalty on the batch": Case(lambda z, y: _chosen(z, y).mean() + z.mean(0).square().sum(), "labels"),
    "weights of these samples": Case(
        lambda z, y: (_drawn(N, 1, seed=5).exp() * (z - y) ** 2).mean(), "numbers"
    ),
}
"""Other numbers for other batches: there is one for all data at once alone."""


class Mixing(nn.Module):
    """Outputs that hang on the other samples of the batch."""

    def __init__(self, mixing: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.body, self.mixing = network(), mixing

    def forward(self, x: Tensor) -> Tensor:
        return self.mixing(self.body(x))


def _normalised() -> nn.Module:
    layers = list(network())
    return nn.Sequential(layers[0], nn.BatchNorm1d(5, track_running_stats=False).double(), *layers[1:])


MIXING: dict[str, Callable[[], nn.Module]] = {
    "statistics of the batch": _normalised,
    "attention over the batch": lambda: Mixing(lambda z: (z @ z.T).softmax(1) @ z),
    "the sample before": lambda: Mixing(lambda z: z + 0.1 * z.roll(1, 0)),
    "scaled by the largest": lambda: Mixing(lambda z: z / z.abs().amax()),
    "whitened": lambda: Mixing(
        lambda z: z @ torch.linalg.inv(z.T @ z / len(z) + torch.eye(OUT, dtype=FLOAT))
    ),
}
