"""Vysogorets, Dawid and Kempe (2024): the loss at initialisation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulate.monte_carlo import Block, Point
from theory import initial_loss
from verify.claims.vysogorets2024 import PAPER
from verify.model import OURS, AnyClaim, Claim, ExactProperty, Experiment, Kind, Passage, Standing, Tier
from verify.model.domains import Between, Domain

__all__ = ["CLAIMS"]


def losses(block: Block, point: Point) -> Mapping[str, Any]:
    """Mean cross-entropy of random logits whose labels are drawn apart from them."""
    found = []
    for rng in block.streams:
        z = np.array(point.bias) + point.spread * rng.standard_normal((point.samples, len(point.bias)))
        labels = rng.choice(len(point.prior), size=point.samples, p=point.prior)
        log_p = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
        found.append(-log_p[np.arange(point.samples), labels].mean())
    return {"loss": np.array(found)}


UNBALANCED = (0.62, 0.27, 0.11)

BALANCED_LOSSES = Experiment(
    id="vysogorets2024/balanced-losses",
    replicate="256 samples of ten classes with random logits and labels",
    simulate=losses,
    on_host="all of it, in numpy",
    points=tuple(Point(bias=(0.0,) * 10, prior=(0.1,) * 10, spread=s, samples=256) for s in (0.3, 1.1, 3.1)),
    budget=4096,
    seconds=0.041,
    tier=Tier.SMOKE,
)

UNBALANCED_LOSSES = Experiment(
    id="vysogorets2024/unbalanced-losses",
    replicate="256 samples of three classes with random logits and labels",
    simulate=losses,
    on_host="all of it, in numpy",
    points=(
        Point(bias=tuple(np.log(UNBALANCED)), prior=UNBALANCED, spread=0.2, samples=256),
        Point(bias=(0.3, -0.8, 0.9), prior=UNBALANCED, spread=0.4, samples=256),
        Point(bias=(0.9, 0.8, -0.7), prior=(0.19, 0.34, 0.47), spread=0.3, samples=256),
    ),
    budget=4096,
    seconds=0.037,
    tier=Tier.SMOKE,
)


def _log_classes(p: Point) -> float:
    return len(p.prior) * float(np.log(len(p.prior)))


def _gaussian_loss(p: Point, *, prior: Sequence[float] = ()) -> float:
    return initial_loss.gaussian_loss(p.bias, prior or p.prior, spread=p.spread)


def _log_normal_mean(p: Point) -> float:
    """Jensen's inequality the other way: the logarithm of the mean sum."""
    return float(np.log(np.exp(p.bias).sum()) + p.spread**2 / 2 - np.dot(p.prior, p.bias))


LOSS_CLAIMS = (
    Claim(
        id="vysogorets2024/balanced-loss",
        entries=("A39",),
        source=f"{PAPER}, section 4, its sum over the classes divided by their number",
        passage=Passage(Standing.AS_STATED, "the total expected loss is no less than", "Section 4"),
        statement=r"Q_k = 1/K:\quad \mathbb{E}\,\ell = \frac1K \sum_k \mathbb{E}[\ell \mid y = k] \ge \log K",
        says="For equally frequent classes and labels independent of the logits, the mean loss is at least the "
        "logarithm of the number of classes.",
        experiment=BALANCED_LOSSES,
        kind=Kind.AT_LEAST,
        score="loss",
        predict=lambda p: float(initial_loss.prior_entropy(p.prior)),
        margin=0.01,
        margin_reason="1 % of log K; the bound is nearly reached at the smallest spread",
        rivals={
            "K log K, of the sum": _log_classes,
            "log K and a tenth": lambda p: 1.1 * np.log(len(p.prior)),
        },
        quantity="mean loss, in nats",
    ),
    Claim(
        id="vysogorets2024/unbalanced-loss-itself",
        entries=("A39",),
        source=f"ours, beside {PAPER}, section 4: the loss that its bound is one of",
        passage=OURS,
        statement=r"z_k \sim N(b_k, \sigma^2):\quad \mathbb{E}\,\ell = \int_0^\infty \Big(e^{-t} - "
        r"\prod_k \mathbb{E}\, e^{-t e^{z_k}}\Big) \frac{dt}{t} - \sum_k Q_k b_k",
        says="For Gaussian logits with biases and unevenly frequent labels independent of them, the mean loss is a "
        "one-dimensional integral less the mean bias of the label.",
        experiment=UNBALANCED_LOSSES,
        score="loss",
        predict=_gaussian_loss,
        margin=0.01,
        margin_reason="unbiased; the integral is exact to 1e-9",
        rivals={
            "logarithm of the mean sum": _log_normal_mean,
            "labels as often as each other": lambda p: _gaussian_loss(
                p, prior=[1 / len(p.bias)] * len(p.bias)
            ),
            "at the mean logits": lambda p: float(np.log(np.exp(p.bias).sum()) - np.dot(p.prior, p.bias)),
        },
        quantity="mean loss, in nats",
    ),
)


# the sum over the classes does not depend on how often they come: `evenness` only names streams
BATCHES: Domain = {
    "classes": Between(2, 12),
    "samples": Between(1, 30),
    "spread": Between(0.0, 20.0),
    "evenness": Between(0.1, 10.0),
}


def _losses(rng: np.random.Generator, point: Point) -> tuple[NDArray[np.float64], ...]:
    """Mean prediction, and mean of -log p over the samples, class by class."""
    z = point.spread * rng.standard_normal((point.samples, point.classes))
    log_p = z - z.max(axis=1, keepdims=True)
    log_p -= np.log(np.exp(log_p).sum(axis=1, keepdims=True))
    return np.exp(log_p).mean(axis=0), -log_p.mean(axis=0)


def _total(rng: np.random.Generator, point: Point, *, share: float = 1.0, least: float = 1.0) -> float:
    """By how much a share of the sum of the losses of all classes misses its bound, or that a part of K log K."""
    predicted, by_class = _losses(rng, point)
    even = np.full(point.classes, 1 / point.classes)
    bound = point.classes * float(initial_loss.jensen_bound(predicted, even))
    uniform = least * point.classes * np.log(point.classes)
    return max(bound - share * float(by_class.sum()), uniform - bound, 0.0) / (1 + bound)


TOTAL = ExactProperty(
    id="vysogorets2024/total-loss",
    entries=("A39",),
    source=f"{PAPER}, section 4",
    passage=Passage(Standing.AS_STATED, "the total expected loss is no less than", "Section 4"),
    statement=r"\sum_k \overline{(-\log p_k)} \ge \sum_k (-\log \hat Q_k) \ge K \log K",
    says="Summed over the classes, the expected initial loss is at least the sum of negative log mean predictions, "
    "which in turn is least at uniform predictions.",
    domain=BATCHES,
    violation=_total,
    examples=(
        Point(classes=10, samples=20, spread=0.3, evenness=3.0),
        Point(classes=3, samples=7, spread=2.1, evenness=0.4),
        Point(classes=5, samples=1, spread=0.0, evenness=7.0),
    ),
    tolerance=1e-12,
    tolerance_reason="rounding of sums over some hundred logarithms",
    rivals={
        "of the mean over classes": lambda rng, point: _total(rng, point, share=1 / point.classes),
        "a tenth more than K log K": lambda rng, point: _total(rng, point, least=1.1),
    },
    seconds=0.01,
)

CLAIMS: tuple[AnyClaim, ...] = (*LOSS_CLAIMS, TOTAL)
