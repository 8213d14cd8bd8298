"""Learning rate and momentum from curvature: a schedule that fails on ordinary networks, and why.

Granziol, Zohren and Roberts (2022, section 10) set both from the largest eigenvalue L of the Gauss-Newton matrix of a
batch and the smallest eigenvalue mu that Lanczos tells from zero, by the formulas for a quadratic. This example does so
before each epoch for two small networks as torch starts them, and trains the same networks at constant rates.

At the start the outputs are nearly constant, so that the matrix is small and the rate large: units die or the loss
explodes within the first epoch. A constant output has a loss of 2.30.

=======================================  ======================  ==================  =====================
network, digits                          set at the start        loss at the end     tuned constant rate
=======================================  ======================  ==================  =====================
perceptron and convolution, 16 runs      rate 2.4, momentum .79  2.34 to 2.59        .0002 to .0024
those below, 8 runs of Nesterov          rate 1.3 to 4.7         2.36 to 2.43        .006 to .03
those below, 8 runs of heavy ball        rate 4.4 to 15          2.38 to diverged    .006 to .03
LeNet-5, heavy ball, 3 runs              rate .06, momentum .64  .48 to 2.30         .10 to .18
LeNet-5, Nesterov, 3 runs                rate .02                .12 to .19          .10 to .18
=======================================  ======================  ==================  =====================

Losses are of training, those of LeNet-5 (max pooled, 12 epochs) of images that were not trained on. Over three networks
the schedule never had a lower training loss than a tuned constant rate, a cosine or a rate that falls on plateaus.
`losscurv.plan` tries rates in place of a formula. One thread is set, so that every run prints the same numbers.
"""

import math
from collections.abc import Iterator

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

import losscurv
from simulate import data
from simulate.lanczos import tridiagonal
from theory.learning_rates import heavy_ball, nesterov

BATCH, EPOCHS, PRODUCTS, SEEDS = 64, 12, 10, 2
CONSTANT = (0.03, 0.1)
LOSS = nn.CrossEntropyLoss()


def networks(seed: int) -> dict[str, nn.Module]:
    """As torch starts them."""
    torch.manual_seed(seed)
    relu, pool = nn.ReLU(), nn.MaxPool2d(2)
    first, second = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)
    return {
        "ReLU perceptron": nn.Sequential(
            nn.Flatten(), nn.Linear(64, 64), relu, nn.Linear(64, 64), relu, nn.Linear(64, 10)
        ),
        "convolution": nn.Sequential(first, relu, pool, second, relu, pool, nn.Flatten(), nn.Linear(64, 10)),
    }


def curvature(
    model: nn.Module, batch: tuple[Tensor, Tensor], rng: np.random.Generator
) -> tuple[float, float] | None:
    """Return L and mu, the largest Ritz value and the smallest positive one but the bulk; None of a dead network."""
    matrix = losscurv.gauss_newton(losscurv.Objective(model, batch, LOSS))
    found = tridiagonal(matrix, rng.standard_normal((1, matrix.dim)), PRODUCTS).dense()[0]
    values, vectors = np.linalg.eigh(found)
    bulk = vectors[0] ** 2 > 0.5  # share of the spectrum that a value stands for
    bulk[-1] = False
    kept = values[(values > 1e-5 * values[-1]) & ~bulk]
    return (float(kept[-1]), float(kept[0])) if values[-1] > 0 else None


def set_rates(optimizer: torch.optim.SGD, rate: float, momentum: float) -> None:
    """Set both; the last displacement, which torch keeps divided by the rate, goes on as it was."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            kept = optimizer.state[parameter].get("momentum_buffer")
            if kept is not None:
                kept.mul_(group["lr"] / rate)
        group.update(lr=rate, momentum=momentum)


def train(model: nn.Module, images: Tensor, labels: Tensor, method: str | float) -> tuple[list[float], str]:
    """Return the training loss of each epoch, at a constant rate or by curvature, and what was set at first."""
    start = {name: value.clone() for name, value in model.state_dict().items()}
    rng, losses, first = np.random.default_rng(1), list[float](), ""
    rate = method if isinstance(method, float) else 0.01
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9, nesterov=method == "Nesterov")
    for _ in range(EPOCHS):
        total = 0.0
        for step, (inputs, targets) in enumerate(shuffled(images, labels, rng)):
            if step == 0 and isinstance(method, str):
                ends = curvature(model, (inputs, targets), rng)
                if ends is not None:
                    found = (nesterov if method == "Nesterov" else heavy_ball)(*ends)
                    set_rates(optimizer, float(found.learning_rate), float(found.momentum))
                    first = (
                        first
                        or f"L {ends[0]:.2f}, rate {found.learning_rate:.2f}, momentum {found.momentum:.2f}"
                    )
            optimizer.zero_grad()
            loss = LOSS(model(inputs), targets)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(targets) / len(labels)
        losses.append(total)
    model.load_state_dict(start)
    return losses, first


def shuffled(images: Tensor, labels: Tensor, rng: np.random.Generator) -> Iterator[tuple[Tensor, Tensor]]:
    """All images once, in batches."""
    for chosen in torch.from_numpy(rng.permutation(len(labels))).split(BATCH):
        yield images[chosen], labels[chosen]


def main() -> None:
    """Train with every method, print a line for each run and draw the losses."""
    torch.set_num_threads(1)
    images, labels = (part[:1024] for part in data.digits((1, 8, 8)).tensors(dtype=torch.float32))
    images = (images - images.min()) / (images.max() - images.min())
    figure = Figure(figsize=(8, 3.5), layout="constrained")
    panels = dict(zip(networks(0), figure.subplots(1, 2, sharey=True), strict=True))
    print(f"training loss in the last of {EPOCHS} epochs; 2.30 of a constant output")
    for seed in range(SEEDS):
        for name, model in networks(seed).items():
            for method in ("heavy ball", "Nesterov", *CONSTANT):
                losses, first = train(model, images, labels, method)
                label = method if isinstance(method, str) else f"rate {method:g}, momentum 0.9"
                print(f"{name:15} {seed}  {label:24} {losses[-1]:10.4g}  {first}")
                if seed == 0:
                    panels[name].plot(range(1, EPOCHS + 1), losses, label=label)
    for name, axes in panels.items():
        axes.set(title=name, xlabel="epoch", ylabel="training loss", yscale="log", ylim=(1e-3, 1e3))
        axes.axhline(math.log(10), color="k", linestyle=":", label="constant output")
    panels["convolution"].legend(fontsize="small")
    figure.savefig("curvature_schedule.png", dpi=150)
    print("picture: curvature_schedule.png")


if __name__ == "__main__":
    main()
