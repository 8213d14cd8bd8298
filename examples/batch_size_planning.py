"""How large a learning rate does a batch size allow? A plan for a network of one's own, beside short runs.

The largest stable rate of SGD grows with the batch size until it is flat. Where it turns depends on network and data:
`plan` measures the curvature of single samples and brackets the rate at every batch size, without a search. Beside
it stand two over the mean of the largest eigenvalue of random batches, and two over that of Theorem 4 of Granziol,
Zohren and Roberts (2022), which sees less of the noise. The network has been trained for some steps: every number
belongs to the parameters as they are. Short runs hold above the bracket where the loss, once it grows, bends away.
"""

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from simulate import data
from verify.practice import loading
from verify.practice.plan import plan

SIZES = (1, 4, 16, 64, 256, 500)


def main() -> None:
    """Plan, print and draw."""
    digits = data.digits((1, 8, 8)).tensors(dtype=torch.float32)
    problem = loading.problem(trained(*digits), digits, samples=500)
    found = plan(problem, SIZES, directions=5, heavy=10, check=True, steps=60, runs=3)

    print(f"{found.samples} samples, {found.parameters} parameters, loss {found.loss:.3f}")
    print("batch size   SGD is stable below   not above   2 / mean largest eigenvalue   2 / Theorem 4")
    for at in found.rates:
        rates = f"{at.lower:19.3f} {at.upper:11.3f} {at.sharpness.value:29.3f} {at.theorem_4.value:15.3f}"
        print(f"{at.batch_size:10d}   {rates}")
    low, high = found.crossover
    print(f"half of the rate at batch size {found.samples} is reached between {low:.0f} and {high:.0f}")
    checks = [(run.batch_size, run.held, run.failed) for run in found.checks if run.held and run.failed]
    for size, held, failed in checks:
        print(
            f"60 steps at batch size {size}: the loss doubles at a rate between {held:.3f} and {failed:.3f}"
        )

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot(xlabel="batch size", ylabel="learning rate of SGD", xscale="log", yscale="log")
    lower, upper = ([getattr(at, side) for at in found.rates] for side in ("lower", "upper"))
    axes.fill_between(SIZES, lower, upper, alpha=0.3, label="largest stable rate: bracket")
    axes.plot(SIZES, [at.sharpness.value for at in found.rates], "--", label="2 / mean largest eigenvalue")
    axes.plot(SIZES, [at.theorem_4.value for at in found.rates], ":", label="2 / Theorem 4")
    for size, held, failed in checks:
        axes.plot([size, size], [held, failed], "k_-")
    axes.plot([], [], "k_-", label="where the loss of short runs doubles")
    axes.legend()
    figure.savefig("batch_size_planning.png", dpi=150)
    print("picture: batch_size_planning.png")


def trained(inputs: Tensor, targets: Tensor) -> nn.Module:
    """A small classifier, some way down."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 30), nn.ReLU(), nn.Linear(30, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(60):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
    return model


if __name__ == "__main__":
    main()
