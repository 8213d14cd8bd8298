"""Vysogorets, Dawid and Kempe (2024): gradients of one network on two sets of images that share nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulate import data, networks
from simulate.monte_carlo import Block, Point
from verify.claims.vysogorets2024 import PAPER
from verify.claims.vysogorets2024.softmax.priors import SMALL, stacked
from verify.model import OURS, AnyClaim, Claim, Experiment, Kind, NoTheory, Passage, Standing

__all__ = ["CLAIMS"]

AT_ONCE = 500
"""Images whose signals are held together."""

ROUNDING = 1e-6
"""Of a cosine, for passes in single precision: at most 1e-7 on 16 networks, beside the same in double precision."""


def unrelated(block: Block, point: Point) -> Mapping[str, Any]:
    """Cosine of the gradients of LeNet-5 on images and on Gaussian ones, whose labels are drawn: as `_cosines`."""
    return stacked([_cosines(rng, point, block.device) for rng in block.streams])


def _cosines(rng: np.random.Generator, point: Point, device: str) -> dict[str, float]:
    """Balanced at scale 1 and at a small one, and there with one unbalanced prior on both."""
    import torch

    source = data.opened(point.images, (3, 32, 32))
    images = data.sample(source, rng, point.samples, balanced=True)
    pooling = point.get("pooling", "max")
    model = networks.LeNet5(classes=source.classes, rng=rng, pooling=pooling).to(device, torch.float32)
    real, labels = images.tensors(device, torch.float32)
    noise = torch.from_numpy(rng.standard_normal(tuple(real.shape))).to(real)
    shuffled = labels[torch.from_numpy(rng.permutation(len(labels))).to(device)]
    prior = torch.from_numpy(_prior(rng, source.classes, point)).to(device)
    pairs = zip(
        _three_gradients(model, real, labels, prior),
        _three_gradients(model, noise, shuffled, prior),
        strict=True,
    )
    cosines = [float(torch.nn.functional.cosine_similarity(a, b, dim=0)) for a, b in pairs]
    return dict(zip(("drawn", "small", "unbalanced"), cosines, strict=True))


def _prior(rng: np.random.Generator, classes: int, point: Point) -> NDArray[np.float64]:
    """A flat one; or classes in random order, each rarer than the one before, the last by the `imbalance`."""
    if "imbalance" not in point:
        return rng.dirichlet(np.ones(classes))
    return np.geomspace(1, 1 / point.imbalance, classes)[rng.permutation(classes)]


def _three_gradients(model: Any, x: Any, labels: Any, prior: Any) -> list[Any]:
    """Of the loss at scale 1, at a small one, and there with samples weighted by a prior; up to a factor."""
    parts = zip(x.split(AT_ONCE), labels.split(AT_ONCE), strict=True)
    found = [_of_part(model, some, own, prior) for some, own in parts]
    return [sum(gradients) for gradients in zip(*found, strict=True)]


def _of_part(model: Any, x: Any, labels: Any, prior: Any) -> list[Any]:
    """The three of some samples; their backward passes start from slopes in double precision."""
    import torch

    outputs, weights = model(x), list(model.parameters())
    logits = outputs.detach().double()
    y = torch.nn.functional.one_hot(labels, logits.shape[1])
    drawn, small = ((a**5 * logits).softmax(-1) - y for a in (1.0, SMALL))
    slopes = (drawn, small, prior[labels][:, None] * small)
    found = [torch.autograd.grad(outputs, weights, s.to(outputs), retain_graph=True) for s in slopes]
    return [torch.cat([g.flatten() for g in gradients]).double() for gradients in found]


UNRELATED = Experiment(
    id="vysogorets2024/unrelated",
    replicate="one LeNet-5 (max pooled) with 100 balanced images and 100 Gaussian ones",
    simulate=unrelated,
    single="its passes through the network are in single precision",
    points=(Point(images="digits", samples=100),),
    budget=512,
    seconds=3.6,
    data="digits",
)

COLOURS = Experiment(
    id="vysogorets2024/unrelated-in-colour",
    replicate="one LeNet-5 (average pooled) with 3000 balanced images and 3000 Gaussian ones",
    simulate=unrelated,
    single="its passes through the network are in single precision",
    points=(Point(images="given", samples=3000, pooling="average", imbalance=100),),
    budget=1024,
    seconds=4900.0,
    data="CIFAR-10",
    needs=(3, 32, 32),
)

COSINE = "cosine of the gradients on images and on Gaussian noise"

SIMILAR = Passage(Standing.AS_STATED, "have cosine similarity > 0.7 when priors", "Section 4")

CANCELLED = Passage(
    Standing.AS_STATED,
    "logit gradients cancel each other out when computed on a large balanced batch",
    "Section 4",
)


def _similar(name: str, score: str, setting: str, says: str) -> Claim:
    return Claim(
        id=f"vysogorets2024/{name}",
        entries=("A38",),
        source=f"{PAPER}, section 4, figure 5a; in the mean over initialisations",
        passage=SIMILAR,
        no_theory=NoTheory.CONSTANT,
        statement=rf"{setting}: \mathbb{{E}} \cos(\nabla\ell_{{\rm images}}, \nabla\ell_{{\rm noise}}) > 0.7",
        says=says,
        experiment=COLOURS,
        kind=Kind.AT_LEAST,
        score=score,
        predict=lambda _: 0.7,
        margin=0.05,
        numerical=ROUNDING,
        margin_reason="half of the one digit that the paper gives",
        relative=False,
        rivals={"the same gradient up to a tenth": lambda _: 0.9},
        quantity=COSINE,
    )


def _cancelled(name: str, experiment: Experiment, says: str) -> Claim:
    return Claim(
        id=f"vysogorets2024/{name}",
        entries=("A38",),
        source=f"{PAPER}, section 4, eq. (9), figure 5a",
        passage=CANCELLED,
        no_theory=NoTheory.CONSTANT,
        statement=r"\alpha = 0.01,\ \text{balanced}: "
        r"\mathbb{E} \cos(\nabla\ell_{\rm images}, \nabla\ell_{\rm noise}) = 0",
        says=says,
        experiment=experiment,
        score="small",
        predict=lambda _: 0.0,
        margin=0.1,
        numerical=ROUNDING,
        margin_reason="a seventh of the overlap of 0.7 that is said to vanish",
        relative=False,
        rivals={"as at alpha = 1, on digits": lambda _: 0.5, "as at alpha = 1, in the paper": lambda _: 0.7},
        quantity=COSINE,
    )


BALANCED, UNBALANCED = r"\alpha = 1,\ \text{balanced}", r"\alpha = 0.01,\ \text{the same unbalanced prior}"

CLAIMS: tuple[AnyClaim, ...] = (
    _similar(
        "gradients-in-colour",
        "drawn",
        BALANCED,
        "As drawn, average pooled LeNet-5 has gradients on balanced colour images and on Gaussian noise with a "
        "mean cosine above 0.7.",
    ),
    _similar(
        "gradients-in-colour-unbalanced",
        "unbalanced",
        UNBALANCED,
        "At nearly uniform predictions, average pooled LeNet-5 has gradients on colour images and on Gaussian "
        "noise of the same unbalanced prior with a mean cosine above 0.7.",
    ),
    _cancelled(
        "gradients-in-colour-uniform",
        COLOURS,
        "At nearly uniform predictions, average pooled LeNet-5 has gradients on balanced colour images and on "
        "Gaussian noise with a mean cosine of zero.",
    ),
    Claim(
        id="vysogorets2024/unrelated-gradients",
        entries=("A38",),
        source=f"ours, for digits, beside {PAPER}, section 4, figure 5a",
        passage=OURS,
        no_theory=NoTheory.CONSTANT,
        statement=rf"{BALANCED}: \cos(\nabla\ell_{{\rm images}}, \nabla\ell_{{\rm noise}}) \ge 0.25",
        says="As drawn, max pooled LeNet-5 has gradients on balanced digits and on Gaussian noise with a mean cosine "
        "of at least a quarter.",
        experiment=UNRELATED,
        kind=Kind.AT_LEAST,
        score="drawn",
        predict=lambda _: 0.25,
        margin=0.05,
        numerical=ROUNDING,
        margin_reason="a bound of ours, half of what digits were seen to give: unrelated images share a good part of "
        "the gradient, where directions drawn at random have a cosine of 0.004",
        pilot="the bound 0.25: the first networks drawn gave twice as much on digits",
        relative=False,
        rivals={"the same gradient up to a tenth": lambda _: 0.9},
        quantity=COSINE,
    ),
    _cancelled(
        "unrelated-gradients-uniform",
        UNRELATED,
        "At nearly uniform predictions, max pooled LeNet-5 has gradients on balanced digits and on Gaussian "
        "noise with a mean cosine of zero.",
    ),
)
