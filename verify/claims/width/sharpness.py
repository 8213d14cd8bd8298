"""Noci et al. (2024): the largest eigenvalue of the Hessian through training, at two widths of the same depth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from simulate.monte_carlo import Block, Point
from simulate.training import edges, grids, stacks
from verify.claims.trained_networks import (
    all_samples,
    common_rates,
    drawn_images,
    full_batches,
    trained_on_digits,
    training_sets,
)
from verify.claims.width import PAPER
from verify.model import KNOWN, Arrays, Claim, Kind, NoTheory, Tier, as_stated

if TYPE_CHECKING:
    from torch import Tensor

MUP, STANDARD = "muP", "standard"


def through_training(block: Block, point: Point) -> Arrays:
    """Exponents of the sharpness between two widths at some steps, and how it has moved at the wider one; same images.

    Networks f = W_3 phi(W_2 phi(W_1 x)) on unit inputs with the squared error. Standard: entries of W_1 of variance 1,
    of the others 1/M (2/M for ReLU), rate eta/M. MuP: the same but entries of W_3 of variance 1/M^2, rates eta M, eta
    and eta/M for W_1, W_2 and W_3, and the Hessian in the coordinates in which these are one rate.
    """
    images = images_of(block, point)
    narrow, wide = (
        sharpness_in_training(block, point, images, width) for width in (point.narrow, point.wide)
    )
    return {
        "exponent": np.log(wide / narrow) / np.log(point.wide / point.narrow),
        "sharpening": wide[:, -1] / wide[:, 0],
    }


def sharpness_in_training(
    block: Block, point: Point, images: grids.TrainingSets, width: int
) -> np.ndarray[Any, Any]:
    """Sharpness at each of the steps looked at, (R, looks)."""
    scaled = point.parametrisation == MUP
    factor = width**0.5 if scaled else 1.0
    start = weights(block, point, width, scaled, images.targets.shape[1])
    stack = stacks.Perceptrons(point.activation, "squared error", bias=False)
    return at_looks(block, point, stack, start, enlarged(images, factor), point.rate / width) / factor**2


def enlarged(images: grids.TrainingSets, factor: float) -> grids.TrainingSets:
    """Return inputs and targets times a factor, which is the root of the width under muP.

    MuP with one rate eta has weights w_1 = W_1/sqrt(M), w_2 = W_2, w_3 = W_3 sqrt(M), all of variance 1/M. With
    inputs and targets times sqrt(M) their loss is M times that of the network, so that eta/M is its rate.
    """
    return images._replace(inputs=factor * images.inputs, targets=factor * images.targets)


def at_looks(
    block: Block,
    point: Point,
    stack: stacks.Stack,
    start: list[Tensor],
    samples: grids.TrainingSets,
    rate: float,
) -> np.ndarray[Any, Any]:
    """Largest eigenvalue of the Hessian at each of the steps looked at in full-batch descent, (R, looks)."""

    def watch(_: int, cells: grids.Cells) -> dict[str, Tensor]:
        x, y = all_samples(samples, cells.networks(1))
        return {"top": edges.top_eigenvalues(stack, cells.parameters, x, y, steps=PRODUCTS).values}

    run = grids.train(
        stack,
        start,
        samples,
        full_batches(samples, len(block)),
        rates=common_rates(block, rate),
        steps=max(point.looks),
        watch=watch,
        at=point.looks,
    )
    return run.watched["top"][:, 0].double().cpu().numpy()


PRODUCTS = 14
"""Hessian products for its largest eigenvalue."""


def images_of(block: Block, point: Point) -> grids.TrainingSets:
    """Images of length 1, and their classes as 1 at their place and 0 elsewhere."""
    drawn, classes = drawn_images(block, point)
    inputs = [d.images / np.linalg.norm(d.images, axis=1, keepdims=True) for d in drawn]
    return training_sets(block, inputs, [np.eye(classes)[d.labels] for d in drawn])


def weights(block: Block, point: Point, width: int, scaled: bool, classes: int) -> list[Tensor]:
    """Weights of a perceptron with two hidden layers at the start, (R, out, in) each."""
    gain = 2**0.5 if point.activation == "relu" else 1.0
    deviations = (width**-0.5 if scaled else 1.0, gain * width**-0.5, width**-0.5)
    shapes = ((width, 64), (width, width), (classes, width))
    return [
        normal_weights(block, deviation, shape) for deviation, shape in zip(deviations, shapes, strict=True)
    ]


def normal_weights(block: Block, deviation: float, shape: tuple[int, ...]) -> Tensor:
    """Normal numbers in single precision, (R, *shape), from the streams of the replicates."""
    import torch

    values = np.stack([rng.normal(0, deviation, shape) for rng in block.streams])
    return torch.from_numpy(values).float().to(block.device)


def _point(parametrisation: str) -> Point:
    return Point(
        parametrisation=parametrisation, activation="tanh", rate=1.2, narrow=64, wide=256, samples=32,
        images="digits", looks=(0, 20, 80),
    )  # fmt: skip


UNDER_MUP, UNDER_STANDARD = (
    trained_on_digits(
        id=f"width/{name}",
        replicate="two perceptrons of unlike width on the same 32 images, trained by full-batch descent",
        simulate=through_training,
        points=(_point(parametrisation),),
        budget=384,
        seconds=7.0,
        tier=Tier.FULL,
    )
    for name, parametrisation in (("mup", MUP), ("standard", STANDARD))
)
"""Rates below the edge of stability, at which any curvature would come to one level."""

SOURCE = f"{PAPER}, arXiv 2402.17457, abstract"

EXPONENT = {
    "no_theory": NoTheory.CONSTANT,
    "score": "exponent",
    "along": "looks",
    "margin": 0.2,
    "relative": False,
    "margin_reason": "largely independent, at small widths: a fifth of what tells the parametrisations apart",
    "pilot": "the rates, below the edge of stability for networks trained first",
    "quantity": "exponent of the largest eigenvalue between widths 64 and 256, after so many steps",
}

SHARPENING = {
    "entries": ("J3",),
    "source": SOURCE,
    "no_theory": NoTheory.CONSTANT,
    "score": "sharpening",
    "quantity": "largest eigenvalue after training over that at the start",
}

CLAIMS = (
    Claim(
        id="width/sharpness-under-mup",
        **EXPONENT,
        entries=("J1",),
        source=SOURCE,
        passage=as_stated(
            "largely independent of the size of the network, and remain consistent as training progresses",
            "abstract",
        ),
        statement=r"\frac{\log \lambda_1(4M, t) - \log \lambda_1(M, t)}{\log 4} = 0 \quad (\mu P)",
        says="Under muP the largest eigenvalue of the Hessian, at the start and through training, does not go with "
        "the width.",
        experiment=UNDER_MUP,
        predict=lambda _: 0.0,
        rivals={"in proportion": lambda _: 1.0, "as the root": lambda _: 0.5},
    ),
    Claim(
        id="width/sharpness-under-standard",
        **EXPONENT,
        entries=("J2",),
        source=f"Karakida, Akaho and Amari (2019), theorem 2.2, at the start; beside {SOURCE}",
        passage=KNOWN,
        statement=r"\frac{\log \lambda_1(4M, t) - \log \lambda_1(M, t)}{\log 4} = 1 \quad \text{(standard)}",
        says="Under the standard parametrisation, with a rate in proportion to one over the width, the largest "
        "eigenvalue of the Hessian is proportional to the width through training.",
        experiment=UNDER_STANDARD,
        predict=lambda _: 1.0,
        rivals={"independent": lambda _: 0.0, "as the root": lambda _: 0.5},
    ),
    Claim(
        id="width/sharpening-under-mup",
        **SHARPENING,
        passage=as_stated("the presence (for muP) ... of feature learning", "abstract, in short"),
        statement=r"\lambda_1(t) / \lambda_1(0) \ge 1.5 \quad (\mu P,\ t = 80)",
        says="Under muP training raises the largest eigenvalue of the Hessian by half and more, also at width 256.",
        experiment=UNDER_MUP,
        kind=Kind.AT_LEAST,
        predict=lambda _: 1.5,
        margin=0.1,
        margin_reason="a bound well below what networks trained first showed, so that a tenth of it decides nothing",
        pilot="the bound, between none and what networks trained first showed",
        rivals={"fourfold": lambda _: 4.0},
    ),
    Claim(
        id="width/no-sharpening-under-standard",
        **SHARPENING,
        passage=as_stated("progressive absence (for the NTK scaling) of feature learning", "abstract"),
        statement=r"\lambda_1(t) / \lambda_1(0) \le 1.15 \quad \text{(standard, } t = 80\text{, every network)}",
        says="Under the standard parametrisation, with a rate in proportion to one over the width, training raises "
        "no Hessian's largest eigenvalue at width 256 by more than 15 %.",
        experiment=UNDER_STANDARD,
        kind=Kind.NEVER_ABOVE,
        predict=lambda _: 1.15,
        margin=0.15,
        margin_reason="the share of exceptions that a hundred networks would show; the bound is what the mean had to "
        "stay below before, less than a third of the rise under muP that is asked for",
        pilot="that every network is judged: the ratio was 0.99 on average and 1.05 at most on 350 networks, but at "
        "one seed in two too skewed for a mean",
        relative=False,
        rivals={"no rise at all": lambda _: 1.0},
    ),
)
