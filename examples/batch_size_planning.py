"""How large a learning rate does a batch size allow? A plan for a network of one's own, checked by short runs.

The largest stable rate of SGD grows with the batch size, then it is flat. Where it turns is a property of the network
and its data: `plan` measures the curvature of single samples and brackets the rate at every batch size, without a
search. Beside it: twice the inverse of the largest eigenvalue of random batches, and what Theorem 4 of Granziol,
Zohren and Roberts (2022) says. Prints the plan and draws it.
"""

import torch
from matplotlib.figure import Figure
from torch import nn

from simulate import data
from verify.practice import loading
from verify.practice.plan import plan

SIZES = (1, 4, 16, 64, 256, 500)


def main() -> None:
    """Plan, print and draw."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 30), nn.ReLU(), nn.Linear(30, 10))
    problem = loading.problem(model, data.digits((1, 8, 8)).tensors(), samples=500)
    found = plan(problem, SIZES, directions=5, heavy=10, check=True, steps=60, runs=3)

    print(f"{found.samples} samples, {found.parameters} parameters, loss {found.loss:.3f}")
    print("batch size   SGD is stable below   not above   2 / E lambda(batch)   Theorem 4")
    for at in found.rates:
        numbers = f"{at.lower:21.3f} {at.upper:11.3f} {at.sharpness.value:21.3f} {at.theorem_4.value:11.3f}"
        print(f"{at.batch_size:10d} {numbers}")
    low, high = found.crossover
    print(f"half of the rate of the full data set is reached between batch sizes {low:.1f} and {high:.1f}")
    print(f"short runs: {'; '.join(map(str, found.checks))}")

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot(
        xlabel="batch size", ylabel="largest stable learning rate of SGD", xscale="log", yscale="log"
    )
    axes.fill_between(
        SIZES, [at.lower for at in found.rates], [at.upper for at in found.rates], alpha=0.3, label="bracket"
    )
    axes.plot(SIZES, [at.sharpness.value for at in found.rates], "o--", label="2 / E lambda(batch)")
    axes.plot(SIZES, [at.theorem_4.value for at in found.rates], "s:", label="2 / Theorem 4")
    axes.legend()
    figure.savefig("batch_size_planning.png", dpi=150)
    print("picture: batch_size_planning.png")


if __name__ == "__main__":
    main()
