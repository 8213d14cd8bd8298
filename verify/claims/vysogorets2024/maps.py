"""Vysogorets, Dawid and Kempe (2024), figures 7 to 9 and 12: what becomes of scaled networks at every base rate."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.random import Generator

from simulate import data, networks
from simulate.monte_carlo import Point
from simulate.training import edges, grids, stacks, trial_training
from verify.claims.drawn_networks import stream_by_stream
from verify.claims.vysogorets2024 import PAPER
from verify.claims.vysogorets2024.framed_networks import of_digits
from verify.model import Arrays, Tier
from verify.model.observation import Cost, Observation, classes_of, columns_of, on_a_gpu

if TYPE_CHECKING:
    from torch import Tensor


class Drawn(NamedTuple):
    """A network at its start with its images, and others like them; called, what is seen of every run from there."""

    stack: stacks.Stack
    start: list[Tensor]
    training: grids.TrainingSets
    others: grids.TrainingSets

    def __call__(self, _: int, cells: grids.Cells) -> dict[str, Tensor]:
        """Accuracies, share of training images without a logit, and length and direction of the weights."""
        train_right, zero = self._outputs(self.training, cells)
        test_right = self._outputs(self.others, cells)[0]
        now, start = cells.parameters, self.start
        squares, inner, before = (
            sum((a * b).flatten(1).sum(1) for a, b in zip(one, other, strict=True))
            for one, other in ((now, now), (now, start), (start, start))
        )
        return {
            "train": train_right,
            "test": test_right,
            "zero": zero,
            "growth": (squares / before) ** 0.5,
            "cosine": inner / (squares * before) ** 0.5,
            "probe": self._probe(cells),
        }

    def _outputs(self, samples: grids.TrainingSets, cells: grids.Cells) -> tuple[Tensor, Tensor]:
        """Shares of images whose largest logit is their own, and of those with no logit but 0."""
        import torch

        found = []
        for parameters in zip(*cells.parameters, strict=True):
            logits = self.stack.outputs([p[None] for p in parameters], samples.inputs[None])[0]
            none = (logits == 0).all(1)
            found.append(torch.stack([(logits.argmax(1) == samples.targets) & ~none, none]).float().mean(1))
        right, zero = torch.stack(found).unbind(1)
        return right, zero

    def _probe(self, cells: grids.Cells) -> Tensor:
        """Accuracy on other images of a linear classifier on the features before the last layer."""
        import torch

        wanted = torch.nn.functional.one_hot(self.training.targets, cells.parameters[-1].shape[1]).double()
        found = []
        for parameters in zip(*cells.parameters[:-1], strict=True):
            features, other_features = (
                _features(parameters, samples.inputs).double() for samples in (self.training, self.others)
            )
            scale = features.square().mean().sqrt().clamp_min(1e-300)
            features, other_features = features / scale, other_features / scale
            ridge = RIDGE * len(features) * torch.eye(features.shape[1]).to(features)
            weights = torch.linalg.solve(features.mT @ features + ridge, features.mT @ wanted)
            found.append(((other_features @ weights).argmax(1) == self.others.targets).double().mean())
        return torch.stack(found)


RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)

RIDGE = 1e-3
"""Ridge penalty of linear classifiers on features of mean square 1."""


def _features(parameters: tuple[Tensor, ...], inputs: Tensor) -> Tensor:
    for weight in parameters:
        inputs = (inputs @ weight.mT).relu()
    return inputs


def _sample_network(rng: Generator, point: Point, device: Any) -> Drawn:
    """LeNet-300-100 with images to train on and others."""
    import torch

    source = data.opened(point.images, (1, 28, 28))
    images = data.sample(source, rng, point.samples + point.others).flat()
    inputs, labels = (torch.from_numpy(a).to(device) for a in (images.images, images.labels))
    training, others = (
        grids.TrainingSets(inputs[at].float(), labels[at])
        for at in (slice(point.samples), slice(point.samples, None))
    )
    weights = networks.mlp_weights(rng, (inputs.shape[1], *point.hidden, source.classes))
    start = [w[None].float().to(device) for w in weights]
    return Drawn(stacks.Perceptrons("relu", bias=False), start, training, others)


@stream_by_stream
def training_map(rng: Generator, point: Point, device: str) -> Arrays:
    """One scale at every base rate: how well a network learns, where it goes, and whether it stays there."""
    import torch

    drawn = _sample_network(rng, point, device)
    drawn = drawn._replace(start=[point.alpha * w for w in drawn.start])
    start, training = drawn.start, drawn.training
    rates = np.array(point.base_rate) * point.alpha ** (2.0 - len(start))
    steep = edges.top_eigenvalues(drawn.stack, start, training.inputs[None], training.targets[None], steps=20)
    run = grids.train(
        drawn.stack,
        start,
        training,
        [trial_training.CommonBatches(samples=training.each, size=training.each)],
        rates=torch.from_numpy(rates)[None].to(start[0]),
        steps=point.steps,
        watch=drawn,
        at=point.looks,
    )
    scores = {
        name: np.nan_to_num(values[0].double().cpu().numpy(), nan=0.0) for name, values in run.watched.items()
    }
    return {
        "best": scores["train"].max(1),
        **{name: scores[name][:, -1] for name in ("test", "probe", "zero", "cosine")},
        "growth": scores["growth"].max(1),
        "lost": run.lost[0].double().cpu().numpy(),
        "admissible": rates * float(steep.values),
    }


MAP = Observation(
    id="vysogorets2024/training-map",
    entries=("A53", "A54", "A57"),
    source=f"{PAPER}, section 5 and appendix E, figures 7 to 9 and 12",
    title="What becomes of LeNet-300-100 at every scale and base rate",
    note="As the paper has it, with numbers: below alpha = 1 the largest base rate that trains goes in proportion "
    "to alpha (0.01 at 0.03, 0.03 at 0.1, 0.1 at 0.3), above it stays at 0.1. With a rate 3 times larger a run ends "
    "without logits or is lost. Above alpha = 1 the training images are learnt and the others less well the "
    "larger alpha is, 0.67 to 0.79 at 10 where 0.95 at 1, and features hardly move: the lazy regime. Rate "
    "times sharpness at the start does not tell what trains: 12 at alpha = 1 and 24 at 3 do.",
    replicate="one bias-free network with its images, trained by full-batch descent at eight base rates",
    simulate=training_map,
    points=tuple(
        of_digits(
            hidden=(300, 100),
            samples=256,
            others=512,
            alpha=alpha,
            steps=400,
            looks=(0, 25, 50, 100, 200, 300, 400),
            base_rate=RATES,
        )
        for alpha in (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)
    ),
    along="base_rate",
    columns=columns_of(
        {
            "best": "best training accuracy",
            "test": "test accuracy at the end",
            "zero": "share of images without a logit",
            "lost": "share of runs lost",
            "growth": "largest norm of the weights over the first",
            "cosine": "cosine of last and first weights",
            "admissible": "rate times sharpness at the start",
            "probe": "test accuracy of a linear classifier on its features",
        }
    ),
    replicates=1,
    seconds=7.0,
    data="digits",
    tier=Tier.FULL,
    axis="base rate eta_0",
    single="its networks are trained in single precision",
)


def cost_of_map(point: Point) -> Cost:
    """Every rate has its images and what layers make of them; a step takes four operations for a weight and image."""
    classes = classes_of(point)
    weights = sum(a * b for a, b in itertools.pairwise((784, *point.hidden, classes)))
    units, rates = 784 + 3 * (sum(point.hidden) + classes), len(point.base_rate)
    looks = 2 * (point.samples + point.others) * weights * rates * len(point.looks) * 2
    steepest = 12 * 20 * weights * point.samples
    step = 4 * weights * point.samples * rates
    memory = 4 * rates * (units * point.samples + 4 * weights) + 12 * units * point.samples
    return Cost(
        memory, step * point.steps + looks + steepest, 30 * point.steps + 250 * len(point.looks) * rates
    )


def _rounded(values: Any) -> tuple[float, ...]:
    return tuple(float(f"{value:.3g}") for value in values)


OBSERVATIONS = (
    MAP,
    on_a_gpu(
        MAP,
        points=tuple(
            of_digits(
                hidden=(300, 100),
                samples=9_000,
                others=1_000,
                alpha=alpha,
                steps=200,
                looks=(0, 25, 50, 100, 150, 200),
                base_rate=_rounded(np.geomspace(0.001, 3.0, 10)),
            )
            for alpha in _rounded(np.geomspace(0.01, 100.0, 20))
        ),
        cost=cost_of_map,
        replicates=3,
        note="On 9,000 images of CIFAR-10 with 1,000 to test on (three networks at each point, an H200), base rates in "
        "steps of 2.4: the largest one that trains goes in proportion to alpha within one step from 0.03 to 0.8 "
        "(0.035 at 0.026, 0.5 at 0.48 to 1.3), falls above and stays at 0.035 from 3.4 on. Test accuracy "
        "after 200 steps is best between alpha = 0.2 and 1.3 (0.34 to 0.36), 0.27 at 2 and 0.2 from 3.4 on. "
        "Weights stop turning where alpha passes 1: at the best rate their cosine with the first is 0.73 at "
        "0.18, 0.93 at 0.8 and 0.99 from 1.3 on.",
    ),
)
