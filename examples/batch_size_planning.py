"""Compare the stability bracket from curvature with rates that were tried, at each batch size.

Linearised at the parameters as they are, the largest stable rate of SGD grows with the batch size until it is flat.
Where it turns depends on network and data: `plan` measures the curvature of single samples and brackets the rate at
every batch size. Beside it stand two over the mean of the largest eigenvalue of random batches, and two over that of
Theorem 4 of Granziol, Zohren and Roberts (2022), which sees less of the noise. The network has been trained for some
steps. Trial training, from there on, finds other rates: where the loss grows it may bend away, and what is best is no
matter of stability alone. One thread is set: with more, sums are rounded in another order, and training may end
elsewhere.
"""

import math

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

import losscurv
from simulate import data

SIZES = (1, 4, 16, 64, 256, 500)


def main() -> None:
    """Plan, print and draw."""
    torch.set_num_threads(1)
    digits = data.digits((1, 8, 8)).tensors(dtype=torch.float32)
    found = losscurv.plan(trained(*digits), digits, batch_sizes=SIZES, samples=500)
    curvature = found.linearised
    if curvature is None:
        raise SystemExit(found.not_linearised)

    print(f"{found.samples} samples, {found.parameters} parameters, loss {found.state.loss:.3f}")
    print(
        "batch size   stable below   unstable above   2 / mean largest eigenvalue   2 / Theorem 4   start with"
    )
    for at, tried in zip(curvature.rates, found.trials, strict=True):
        bracket = f"{at.lower:12.3f} {at.upper:16.3f}"
        rules = f"{at.sharpness.value:29.3f} {at.theorem_4.value:15.3f}"
        print(f"{at.batch_size:10d}   {bracket} {rules} {tried.start or math.nan:12.3f}")
    low, high = curvature.crossover
    print(f"half of the stable rate at {found.samples} is reached between {low:.0f} and {high:.0f} samples")

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot(xlabel="batch size", ylabel="learning rate of SGD", xscale="log", yscale="log")
    lower, upper = ([getattr(at, side) for at in curvature.rates] for side in ("lower", "upper"))
    axes.fill_between(SIZES, lower, upper, alpha=0.3, label="stable, linearised: bracket")
    axes.plot(
        SIZES, [at.sharpness.value for at in curvature.rates], "--", label="2 / mean largest eigenvalue"
    )
    axes.plot(SIZES, [at.theorem_4.value for at in curvature.rates], ":", label="2 / Theorem 4")
    for tried in found.trials:
        if tried.start is not None and tried.within is not None:
            axes.plot([tried.batch_size] * 2, tried.within, "k_-", lw=1)
    axes.plot([], [], "k_-", label="start with, by trial training")
    axes.legend()
    figure.savefig("batch_size_planning.png", dpi=150)
    print("picture: batch_size_planning.png")


def trained(inputs: Tensor, targets: Tensor) -> nn.Module:
    """A small classifier, some way down."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 30), nn.ReLU(), nn.Linear(30, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(30):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
    return model


if __name__ == "__main__":
    main()
