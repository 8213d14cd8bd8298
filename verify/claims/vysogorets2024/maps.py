"""Vysogorets, Dawid and Kempe (2024), figures 7 to 9 and 12: what becomes of scaled networks at every base rate."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.random import Generator

from simulate import data, networks
from simulate.monte_carlo import Point
from simulate.training import edges, grids, stacks, trial_training
from verify.claims.vysogorets2024 import PAPER
from verify.claims.vysogorets2024.framed_networks import of_digits, stream_by_stream
from verify.model import Arrays, Tier
from verify.model.observation import Column, Cost, Observation, classes_of, columns_of, on_a_gpu

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
            **({"probe": self._probe(cells)} if isinstance(self.stack, stacks.Perceptrons) else {}),
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
    """LeNet-300-100 where the point names hidden units, else LeNet-5."""
    import torch

    flat = "hidden" in point
    source = data.opened(point.images, (1, 28, 28) if flat else (3, 32, 32))
    images = data.sample(source, rng, point.samples + point.others)
    inputs = torch.from_numpy((images.flat() if flat else images).images).float().to(device)
    labels, cut = torch.from_numpy(images.labels).to(device), point.samples
    training, others = (grids.TrainingSets(inputs[at], labels[at]) for at in (slice(cut), slice(cut, None)))
    if flat:
        weights = networks.mlp_weights(rng, (inputs.shape[1], *point.hidden, source.classes))
        stack, start = stacks.Perceptrons("relu", bias=False), [w[None] for w in weights]
    else:
        model = networks.LeNet5(classes=source.classes, rng=rng, pooling="average")
        stack, start = stacks.Modules(model), stacks.Modules.stacked([model])
    return Drawn(stack, [w.float().to(device) for w in start], training, others)


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
        **{name: scores[name][:, -1] for name in ("test", "probe", "zero", "cosine") if name in scores},
        "growth": scores["growth"].max(1),
        "lost": run.lost[0].double().cpu().numpy(),
        "admissible": rates * float(steep.values),
    }


@stream_by_stream
def after_divergence(rng: Generator, point: Point, device: str) -> Arrays:
    """Trained as if outputs were uniform until the norm has grown, put back to its first norm, and then trained."""
    import torch

    drawn = _sample_network(rng, point, device)
    training, length = drawn.training, _length(drawn.start)
    steps, put_back = [], []
    path = _uniform_path(drawn, point.path_rate)
    for growth in point.growth:
        step, weights = next(at for at in path if _length(at[1]) >= growth * length)
        steps.append(float(step))
        put_back.append([w * (length / _length(weights)) for w in weights])
    run = grids.train(
        drawn.stack,
        [torch.cat(layers) for layers in zip(*put_back, strict=True)],
        training,
        [trial_training.CommonBatches(samples=training.each, size=training.each)] * len(put_back),
        rates=drawn.start[0].new_full((len(put_back), 1), point.rate),
        steps=point.steps,
    )
    right = {
        name: grids.ends_measured(drawn.stack, run, samples)[1][:, 0].double().cpu().numpy()
        for name, samples in (("train", training), ("test", drawn.others))
    }
    inner = [sum(float((a * b).sum()) for a, b in zip(w, drawn.start, strict=True)) for w in put_back]
    return {**right, "cosine": np.array(inner) / length**2, "steps": np.array(steps)}


def _uniform_path(drawn: Drawn, rate: float) -> Iterator[tuple[int, list[Tensor]]]:
    """Steps and weights of descent whose residuals are those of uniform outputs, 1/K - y, whatever the outputs are."""
    import torch

    weights, images = drawn.start, drawn.training
    for step in itertools.count():
        yield step, weights
        with torch.enable_grad():
            at = [w.detach().requires_grad_() for w in weights]
            logits = drawn.stack.outputs(at, images.inputs[None])[0]
            own = logits.gather(1, images.targets[:, None])[:, 0]
            slopes = torch.autograd.grad((logits.mean(1) - own).mean(), at)
        weights = [w - rate * slope for w, slope in zip(weights, slopes, strict=True)]


def _length(weights: Sequence[Tensor]) -> float:
    return float(sum(float(w.double().square().sum()) for w in weights)) ** 0.5


COLUMNS = columns_of(
    {
        "best": "best training accuracy",
        "test": "test accuracy at the end",
        "zero": "share of images without a logit",
        "lost": "share of runs lost",
        "growth": "largest norm of the weights over the first",
        "cosine": "cosine of last and first weights",
        "admissible": "rate times sharpness at the start",
    }
)
PROBE = Column(score="probe", heading="test accuracy of a linear classifier on its features")

_reported = partial(
    Observation,
    source=f"{PAPER}, section 5 and appendix E, figures 7 to 9, 11 and 12",
    replicates=1,
    data="digits",
    tier=Tier.FULL,
    single="its networks are trained in single precision",
)
_mapped = partial(
    _reported,
    entries=("A53", "A54", "A57"),
    replicate="one bias-free network with its images, trained by full-batch descent at eight base rates",
    simulate=training_map,
    along="base_rate",
    axis="base rate eta_0",
)

LENET: Arrays = {"images": "digits", "hidden": (300, 100), "samples": 256, "others": 512}

MAP = _mapped(
    id="vysogorets2024/training-map",
    title="What becomes of LeNet-300-100 at every scale and base rate",
    note="As the paper has it, with numbers: below alpha = 1 the largest base rate that trains goes in proportion "
    "to alpha (0.01 at 0.03, 0.03 at 0.1, 0.1 at 0.3), above it stays at 0.1. With a rate 3 times larger a run ends "
    "without logits or is lost. Above alpha = 1 the training images are learnt and the others less well the "
    "larger alpha is, 0.67 to 0.79 at 10 where 0.95 at 1, and features hardly move: the lazy regime. Rate "
    "times sharpness at the start does not tell what trains: 12 at alpha = 1 and 24 at 3 do.",
    points=tuple(
        Point(alpha=alpha, steps=400, looks=(0, 25, 50, 100, 200, 300, 400), base_rate=RATES, **LENET)
        for alpha in (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)
    ),
    columns=(*COLUMNS, PROBE),
    seconds=7.0,
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
    _mapped(
        id="vysogorets2024/training-map-of-lenet-5",
        title="What becomes of LeNet-5 at every scale and base rate",
        note="The largest base rate that trains goes as the cube of alpha below 1 (0.0081 at 0.3, where 0.1 to 0.3 at "
        "1), L - 2 = 3 and not 1. On these few images networks also train at alpha = 1.8 and 3, to all of the "
        "training images and 0.79 and 0.54 of others, where the paper's, on all of FashionMNIST, do not; one step "
        "too high they end without logits or are lost, as there.",
        points=tuple(
            of_digits(
                alpha=alpha,
                samples=128,
                others=256,
                steps=150,
                looks=(0, 25, 50, 100, 150),
                base_rate=_rounded(rate * min(alpha, 1.0) ** 3 for rate in RATES),
            )
            for alpha in (0.1, 0.3, 1.0, 1.8, 3.0)
        ),
        columns=COLUMNS,
        seconds=17.0,
    ),
    _reported(
        id="vysogorets2024/after-divergence",
        title="How LeNet-300-100 learns after it has diverged with uniform outputs",
        note="The longer a network has followed the path of uniform outputs, the further it has turned and the worse "
        "it learns once its first norm is given back, as in Figure 11, right: all images at a cosine of 0.94, two "
        "thirds of them at 0.72, chance at 0.1. The norm grows by 2 % in the first 230 steps and twentyfold in "
        "the next 120.",
        entries=("A55", "A56", "A57"),
        replicate="one bias-free network with its images, taken along the path of uniform outputs, put back to its "
        "first norm and trained",
        simulate=after_divergence,
        points=(
            Point(
                path_rate=0.002,
                rate=0.03,
                steps=200,
                growth=(1.0, 1.02, 1.05, 1.1, 1.2, 1.5, 2.0, 5.0, 20.0),
                **LENET,
            ),
        ),
        along="growth",
        columns=columns_of(
            {
                "train": "training accuracy",
                "test": "test accuracy",
                "cosine": "cosine of where training begins and the first weights",
                "steps": "steps with uniform outputs",
            }
        ),
        seconds=6.0,
        axis="norm of the weights over the first, when put back",
    ),
)
