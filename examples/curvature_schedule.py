"""Learning rate and momentum from curvature: max pooled LeNet-5 on digits, beside a constant rate and a step schedule.

`CurvatureSchedule` measures the Gauss-Newton matrix before the first step of each epoch: that of the batch or, as a
control, that of all training images. The two others are tuned on images kept aside, over four learning rates and two
momenta. All train for the same number of epochs; what a measurement costs is counted in passes through the training
images. Shows the loss and the accuracy on images that nobody has seen; docs/schedule.md has a longer run.
"""

import argparse
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from simulate import data
from simulate.networks import LeNet5
from verify.practice.schedule import CurvatureSchedule

BATCH = 64
BATCHES = 8  # in an epoch
TRAINING, ASIDE = slice(0, BATCH * BATCHES), slice(BATCH * BATCHES, 900)
UNSEEN = slice(900, None)
LEARNING_RATES, MOMENTA = (0.003, 0.01, 0.03, 0.1), (0.0, 0.9)
LOSS = nn.CrossEntropyLoss()

Batch = tuple[Tensor, Tensor]


@dataclass
class Method:
    """How rates are chosen: from curvature if there are options for it; else constant, or with a drop by ten."""

    name: str
    curvature: dict[str, Any] | None = None
    nesterov: bool = False
    learning_rate: float = 0.01  # curvature puts its own in place of these two
    momentum: float = 0.9
    drops: bool = False


@dataclass
class Run:
    """Losses and accuracies on other images after each epoch, and passes through the training images."""

    losses: list[float] = field(default_factory=list)
    accuracies: list[float] = field(default_factory=list)
    passes: float = 0.0


def train(method: Method, digits: Batch, judged: slice, epochs: int, seed: int) -> Run:
    """One run; its weights and the order of its images follow the seed."""
    rng = np.random.default_rng(seed)
    model = LeNet5(rng=rng).float()
    optimizer = torch.optim.SGD(
        model.parameters(), lr=method.learning_rate, momentum=method.momentum, nesterov=method.nesterov
    )
    options = method.curvature or {}
    schedule = CurvatureSchedule(optimizer, model, LOSS, every=BATCHES, seed=seed, **options)
    run = Run()
    for epoch in range(epochs):
        if method.drops and 3 * epoch >= 2 * epochs:
            optimizer.param_groups[0]["lr"] = method.learning_rate / 10
        for inputs, targets in shuffled(digits, rng):
            optimizer.zero_grad()
            loss = LOSS(model(inputs), targets)
            if not loss.isfinite():  # lost: worse than any other
                return Run([math.inf] * epochs, [0.0] * epochs, run.passes)
            if method.curvature is not None:
                schedule.step((inputs, targets))
            loss.backward()
            optimizer.step()
        run.passes += 1.0
        if schedule.last is not None:  # a product is a pass, and one more prepares them
            run.passes += (schedule.last.products + 1) * (1 if "data" in options else 1 / BATCHES)
        with torch.no_grad():
            outputs, labels = model(digits[0][judged]), digits[1][judged]
        run.losses.append(float(LOSS(outputs, labels)))
        run.accuracies.append(float((outputs.argmax(1) == labels).double().mean()))
    return run


def shuffled(digits: Batch, rng: np.random.Generator) -> Iterator[Batch]:
    """The training images once."""
    for chosen in np.split(rng.permutation(TRAINING.stop), BATCHES):
        yield digits[0][chosen], digits[1][chosen]


def tuned(name: str, digits: Batch, epochs: int, *, drops: bool) -> Method:
    """The best of the grid on the images kept aside."""
    grid = [
        Method(f"{name}: {rate:g}, {momentum:g}", learning_rate=rate, momentum=momentum, drops=drops)
        for rate, momentum in itertools.product(LEARNING_RATES, MOMENTA)
    ]
    return min(grid, key=lambda method: train(method, digits, ASIDE, epochs, seed=0).losses[-1])


def main() -> None:
    """Train with every method, print a line for each and draw the losses."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--runs", type=int, default=2, help="with other weights and another order")
    options = parser.parse_args()

    images, labels = data.digits((3, 32, 32)).tensors(dtype=torch.float32)
    order = torch.from_numpy(np.random.default_rng(0).permutation(len(labels)))
    digits = images[order], labels[order]
    whole = {"data": (digits[0][TRAINING], digits[1][TRAINING])}
    methods = [
        tuned("constant, tuned", digits, options.epochs, drops=False),
        tuned("step, tuned", digits, options.epochs, drops=True),
        Method("heavy ball, batch", {}),
        Method("heavy ball, all images", whole),
        Method("heavy ball, batch, damped", {"damping": 0.1}),
        Method("Nesterov, batch", {}, nesterov=True),
        Method("Nesterov, all images", whole, nesterov=True),
    ]

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot(xlabel="epoch", ylabel="loss on unseen images", yscale="log")
    print(f"{'on unseen images':28} {'loss':>6}   {'from':>6} {'to':>6}   accuracy   passes")
    for method in methods:
        runs = [train(method, digits, UNSEEN, options.epochs, seed + 1) for seed in range(options.runs)]
        losses, accuracies = (np.array([getattr(r, n) for r in runs]) for n in ("losses", "accuracies"))
        last, passes = losses[:, -1], np.mean([run.passes for run in runs])
        print(
            f"{method.name:28} {last.mean():6.3f}   {last.min():6.3f} {last.max():6.3f}"
            f"   {accuracies[:, -1].mean():8.3f}   {passes:6.1f}"
        )
        axes.plot(range(1, options.epochs + 1), losses.mean(0), label=method.name)
    axes.legend(fontsize="small")
    figure.savefig("curvature_schedule.png", dpi=150)
    print("picture: curvature_schedule.png")


if __name__ == "__main__":
    main()
