"""The edge of stability on small networks: what hovers at 2 / eta, of the whole loss, of batches, along gradients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from simulate import data
from simulate.monte_carlo import Block, Point
from simulate.training import edges, grids, stacks, trial_training
from theory.learning_rates import edge_of_stability
from verify.model import AnyClaim, Claim, Experiment, Kind, NoTheory, Passage, Standing, Tier, Verdict

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["CLAIMS", "start_and_images", "trained_and_watched"]

COHEN = "Cohen, Kaur, Li, Kolter and Talwalkar (2021), arXiv 2103.00065"
FIRST = "Andreyev and Beneventano (2024), arXiv 2412.20553, first version, abstract"
LATER = "Andreyev and Beneventano (2024), arXiv 2412.20553, third and fourth version, abstract"

BATCHES = 8
"""Batches of a size whose curvature is looked at, for each network each time."""

PRODUCTS = 14
"""With a Hessian, for its largest eigenvalue: residuals of a hundredth of it, which enter squared."""

WITHIN = 0.1
"""Of the edge, as a share of it: there a network counts as hovering."""


class CurvatureWatch(NamedTuple):
    """What is looked at while the networks of a block are trained: batches of some sizes, and all samples if asked."""

    stack: stacks.Perceptrons
    samples: grids.TrainingSets
    looks: list[np.random.Generator]
    sizes: tuple[int, ...]
    whole: bool

    def __call__(self, _: int, cells: grids.Cells) -> dict[str, Tensor]:
        """Largest eigenvalues of the whole Hessian and of those of batches, and curvatures along batch gradients."""
        import torch

        networks = cells.networks(1)
        found: dict[str, Tensor] = {}
        if self.whole:
            x, y = self._drawn(networks, torch.arange(self.samples.each).expand(len(networks), -1))
            top = edges.top_eigenvalues(self.stack, cells.parameters, x, y, steps=PRODUCTS)
            held = edges.self_stabilisation(self.stack, cells.parameters, x, y, top.vectors)
            found = {"whole": top.values, **held._asdict()}
        for size in self.sizes:
            chosen = np.stack([self._batches(int(network), size) for network in networks])
            repeated = networks.repeat_interleave(BATCHES)
            parameters = [p.repeat_interleave(BATCHES, 0) for p in cells.parameters]
            x, y = self._drawn(repeated, torch.from_numpy(chosen).flatten(0, 1))
            tops = edges.top_eigenvalues(self.stack, parameters, x, y, steps=PRODUCTS)
            along, squares = edges.gradient_curvatures(self.stack, parameters, x, y)
            found[f"batch {size}"] = tops.values.view(-1, BATCHES).mean(1)
            found[f"along {size}"] = (along / squares).view(-1, BATCHES).mean(1)
        return found

    def _drawn(self, networks: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
        return self.samples.at(networks, chosen.to(self.samples.inputs.device))

    def _batches(self, network: int, size: int) -> np.ndarray[Any, Any]:
        rng = self.looks[network]
        return np.stack([rng.permutation(self.samples.each)[:size] for _ in range(BATCHES)])


class StartAndImages(NamedTuple):
    """Networks at their start, each with images of its own."""

    start: list[Tensor]
    samples: grids.TrainingSets


def start_and_images(block: Block, point: Point) -> StartAndImages:
    """Perceptrons as torch draws them, and images of 8 x 8."""
    import torch

    source = data.opened(point.images, (1, 8, 8))
    images = [data.sample(source, rng, point.samples).flat() for rng in block.streams]
    own = torch.arange(len(block) * point.samples).view(len(block), -1).to(block.device)
    samples = grids.TrainingSets(
        torch.from_numpy(np.concatenate([d.images for d in images])).float().to(block.device),
        torch.from_numpy(np.concatenate([d.labels for d in images])).to(block.device),
        own,
    )
    start = stacks.perceptrons_at_start(block.streams, (64, *point.hidden, source.classes))
    return StartAndImages([p.to(block.device) for p in start], samples)


def trained_and_watched(
    block: Block,
    point: Point,
    setting: StartAndImages,
    size: int,
    *,
    looked: tuple[int, ...],
    whole: bool = True,
) -> Mapping[str, np.ndarray[Any, Any]]:
    """What was seen of each network at each look, (R, looks), trained with batches of one size."""
    import torch

    batches = [
        trial_training.CommonBatches(
            samples=point.samples, size=size, seed=int(rng.integers(2**31)), drop_last=True
        )
        for rng in block.streams
    ]
    stack = stacks.Perceptrons(point.activation, point.loss)
    run = grids.train(
        stack,
        setting.start,
        setting.samples,
        batches,
        rates=torch.full((len(block), 1), point.rate, device=block.device),
        steps=point.steps,
        watch=CurvatureWatch(stack, setting.samples, list(block.streams), looked, whole),
        at=point.looks,
    )
    return {name: seen[:, 0].double().cpu().numpy() for name, seen in run.watched.items()}


def at_the_edge(block: Block, point: Point) -> Mapping[str, Any]:
    """Time means over the edge 2 / eta, late in training: of the whole Hessian, of batches, along their gradients."""
    size = point.get("batch_size", point.samples)
    looked = () if size == point.samples else (size,)
    seen = trained_and_watched(
        block, point, start_and_images(block, point), size, looked=looked, whole=not looked
    )
    edge = float(edge_of_stability.edge(point.rate))
    if looked:
        return {name: seen[f"{name} {size}"].mean(1) / edge for name in ("batch", "along")}
    return {"at the edge": (np.abs(seen["whole"].mean(1) / edge - 1) < WITHIN).astype(float)}


SMALL: dict[str, Any] = {
    "images": "digits",
    "loss": "squared error",
    "steps": 1200,
    "looks": (800, 900, 1000, 1100, 1200),
}
TANH = {"activation": "tanh", "hidden": (16, 16), "samples": 128, "rate": 0.25, **SMALL}
RELU = {"activation": "relu", "hidden": (32,), "samples": 144, "rate": 0.25, **SMALL}

SURE = {
    "activation": "tanh", "hidden": (16, 16), "samples": 512, "rate": 0.46, "images": "digits", "loss": "cross-entropy",
    "steps": 120, "looks": tuple(range(60, 121, 5)),
}  # fmt: skip
"""While the loss falls: once a network is sure of its images its curvature goes to 0."""

WHOLE, SOME, ENTROPY = (
    Experiment(
        id=f"edge/{name}",
        replicate=f"one perceptron with its images, trained on the {loss}",
        simulate=at_the_edge,
        single="its networks are trained in single precision",
        points=points,
        budget=budget,
        seconds=seconds,
        tier=tier,
        data="digits",
    )
    for name, loss, points, budget, seconds, tier in (
        ("full-batch", "squared error", (Point(**TANH), Point(**RELU)), 256, 3.6, Tier.DEFAULT),
        (
            "batches",
            "squared error",
            (Point(batch_size=16, **TANH), Point(batch_size=4, **TANH), Point(batch_size=12, **RELU)),
            256,
            2.6,
            Tier.FULL,
        ),
        (
            "cross-entropy",
            "cross-entropy",
            (Point(batch_size=4, **SURE), Point(batch_size=6, **SURE)),
            256,
            2.5,
            Tier.FULL,
        ),
    )
)

MEAN = Passage(
    Standing.AS_STATED,
    "the average over the batches of the largest eigenvalue of the Hessian of the mini batch",
    "abstract of the first version",
)
SHARPNESS = Passage(
    Standing.AS_STATED,
    "the expected directional curvature of mini-batch Hessians along their corresponding stochastic gradients",
    "abstract of the third version",
)

CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="edge/full-batch",
        entries=("E1",),
        source=f"{COHEN}, abstract and section 3",
        passage=Passage(
            Standing.AS_STATED, "the sharpness rises to 2/eta and hovers just above it", "abstract, in short"
        ),
        statement=r"P\big(|\overline{\lambda_1} \cdot \eta / 2 - 1| < 0.1\big) = 1 "
        r"\quad\text{under full-batch gradient descent}",
        says="Late in training by full-batch gradient descent, the largest eigenvalue of the Hessian of small "
        "networks is, on average over time, within a tenth of two over the learning rate.",
        experiment=WHOLE,
        kind=Kind.PROPORTION,
        score="at the edge",
        predict=lambda _: 1.0,
        margin=0.25,
        relative=False,
        margin_reason="one network in four; the readings at issue are always and never",
        rivals={"never": lambda _: 0.0},
        no_theory=NoTheory.CONSTANT,
        quantity="share of networks that hover at the edge",
    ),
    Claim(
        id="edge/mean-of-batches",
        entries=("E2",),
        source=FIRST,
        passage=MEAN,
        statement=r"\overline{\mathbb{E}\, \lambda_1(H_B)} = 2/\eta \quad\text{under SGD with batches of } B",
        says="Late in training by SGD, the largest eigenvalue of a batch Hessian is on average two over the learning "
        "rate, within a fifth.",
        experiment=SOME,
        score="batch",
        predict=lambda _: 1.0,
        margin=0.2,
        margin_reason="hovering with noise: a fifth of the level, where that of the whole Hessian, or batch sharpness "
        "in its place, would be off by a third or more somewhere",
        pilot="the margin 0.2: networks trained first lay a tenth below",
        rivals={
            "what it is if the whole Hessian is at the edge": lambda p: 1.8 if p.batch_size == 4 else 1.5,
            "half of it": lambda _: 0.5,
        },
        quantity="mean largest eigenvalue of batch Hessians over two over the rate, mean over time",
    ),
    Claim(
        id="edge/batch-sharpness",
        entries=("E3",),
        source=LATER,
        passage=SHARPNESS,
        statement=r"\overline{\mathbb{E}\, \frac{g_B^\top H_B\, g_B}{g_B^\top g_B}} = 2/\eta "
        r"\quad\text{under SGD with batches of } B",
        says="Late in training by SGD, the curvature of a batch along its own gradient is on average two over the "
        "learning rate, within a fifth.",
        experiment=SOME,
        score="along",
        predict=lambda _: 1.0,
        margin=0.2,
        margin_reason="hovering with noise: a fifth of the level",
        rivals={"half of it": lambda _: 0.5},
        expected=Verdict.DISAGREES,
        finding="On these small networks with the squared error, late in runs whose batch Hessians have come to the "
        "edge, the curvature of a batch along its own gradient hovers at half of it and a little more; with "
        "cross-entropy it is this that comes to the edge. The paper's networks are larger.",
        quantity="mean curvature of batches along their gradients over two over the rate, mean over time",
    ),
    Claim(
        id="edge/batch-sharpness-of-cross-entropy",
        entries=("E3",),
        source=LATER,
        passage=SHARPNESS,
        statement=r"\overline{\mathbb{E}\, \frac{g_B^\top H_B\, g_B}{g_B^\top g_B}} = 2/\eta "
        r"\quad\text{under SGD on the cross-entropy with batches of } B",
        says="While small networks learn by SGD with small batches on the cross-entropy, the curvature of a batch "
        "along its own gradient is on average two over the learning rate, within a quarter.",
        experiment=ENTROPY,
        score="along",
        predict=lambda _: 1.0,
        margin=0.25,
        margin_reason="hovering with noise: a quarter of the level, where the mean of batches would be off by one half "
        "and more",
        pilot="the rate and the window of steps: networks trained first, at rates 0.25 and 0.5",
        rivals={"half of it": lambda _: 0.5, "as the mean largest eigenvalue of batches": lambda _: 2.0},
        quantity="mean curvature of batches along their gradients over two over the rate, mean over time",
    ),
    Claim(
        id="edge/mean-of-batches-of-cross-entropy",
        entries=("E2",),
        source=FIRST,
        passage=MEAN,
        statement=r"\overline{\mathbb{E}\, \lambda_1(H_B)} = 2/\eta "
        r"\quad\text{under SGD on the cross-entropy with batches of } B",
        says="While small networks learn by SGD with small batches on the cross-entropy, the largest eigenvalue of a "
        "batch Hessian is on average two over the learning rate, within a quarter.",
        experiment=ENTROPY,
        score="batch",
        predict=lambda _: 1.0,
        margin=0.25,
        margin_reason="hovering with noise: a quarter of the level",
        pilot="the rate and the window of steps: networks trained first, at rates 0.25 and 0.5",
        rivals={"half of it": lambda _: 0.5},
        expected=Verdict.DISAGREES,
        finding="With cross-entropy the batch Hessians are twice above the edge and more at small batches: their "
        "gradients do not lie along their top eigenvectors. The later versions of the paper name batch sharpness.",
        quantity="mean largest eigenvalue of batch Hessians over two over the rate, mean over time",
    ),
)
