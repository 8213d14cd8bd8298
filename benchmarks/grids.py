"""Networks trained as one stack against the same networks one after the other with torch's SGD, side by side."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.timing import seconds, table
from simulate.training.grids import TrainingSets, train
from simulate.training.stacks import Perceptrons, perceptrons_at_start
from simulate.training.trial_training import CommonBatches

WIDTHS = {"64-32-10": (64, 32, 10), "LeNet-300-100": (784, 300, 100, 10)}
SAMPLES, CELLS = 1024, 16


def compared(name: str, size: int, steps: int) -> tuple[float, float, float]:
    """CPU seconds per step and cell, in one stack and one by one, and the largest difference of a weight at the end."""
    widths, rng = WIDTHS[name], np.random.default_rng(1)
    start = perceptrons_at_start([rng], widths)
    x = torch.from_numpy(rng.standard_normal((SAMPLES, widths[0]))).float()
    y = torch.from_numpy(rng.integers(widths[-1], size=SAMPLES))
    rates = torch.linspace(0.01, 0.05, CELLS)[None]
    batches = CommonBatches(samples=SAMPLES, size=size, seed=3, drop_last=True)

    def stacked() -> list[Tensor]:
        run = train(Perceptrons("relu"), start, TrainingSets(x, y), [batches], rates=rates, steps=steps)
        return list(run.cells.parameters)

    def alone(rate: float) -> list[Tensor]:
        layers = [nn.Linear(w.shape[2], w.shape[1]) for w in start[::2]]
        model = nn.Sequential(*[part for layer in layers for part in (layer, nn.ReLU())][:-1])
        nn.utils.vector_to_parameters(torch.cat([p[0].flatten() for p in start]), model.parameters())
        optimiser = torch.optim.SGD(model.parameters(), lr=rate)
        for chosen in batches.steps(0, steps):
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(x[chosen]), y[chosen]).backward()
            optimiser.step()
        return [p.detach() for p in model.parameters()]

    spent, ends = list[float](), list[list[Tensor]]()
    for way in (stacked, lambda: [*map(torch.stack, zip(*map(alone, rates[0].tolist()), strict=True))]):
        spent.append(seconds(lambda way=way: ends.append(way()), 1) / steps / CELLS)
    return spent[0], spent[1], max(float((a - b).abs().max()) for a, b in zip(*ends, strict=True))


def main() -> None:
    """Print the table of docs/benchmarks.md."""
    torch.set_num_threads(1)
    rows: list[list[str]] = []
    for name in WIDTHS:
        for size in (1, 4, 16, 32, 256, SAMPLES):
            found = np.array([compared(name, size, 60 if size < 256 else 20) for _ in range(3)])
            together, apart = 1e6 * found[:, :2].min(axis=0)
            told = f"{together:.0f}", f"{apart:.0f}", f"{apart / together:.1f}", f"{found[:, 2].max():.0e}"
            rows.append([name, str(size), *told])
    head = f"one stack of {CELLS}, µs a step and cell"
    print(table(["network", "batch", head, "one by one", "ratio", "weights differ by"], rows))


if __name__ == "__main__":
    main()
