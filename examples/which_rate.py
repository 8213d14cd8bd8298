"""Which rate shall I use? Trial training gives one for three networks, and what training with it then does.

A perceptron, a convolutional network as torch starts it, and a residual one with batch normalisation, on small digits.
A plan looks at each network first, then tries rates by factors of 2 in short runs on common batches. Every network is
then trained twice as long, in another order of the samples: at the rate to start with, at a quarter of it, and at the
rate that failed. One thread is set: with more, sums are rounded in another order, and training at large rates ends
elsewhere.
"""

import math

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

import losscurv
from simulate import data

SIZE, STEPS = 32, 100


class Residual(nn.Module):
    """Two convolutions with batch normalisation, and what came in."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        layers = [nn.Conv2d(channels, channels, 3, padding=1) for _ in range(2)]
        self.inner = nn.Sequential(
            layers[0], nn.BatchNorm2d(channels), nn.ReLU(), layers[1], nn.BatchNorm2d(channels)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Channels of an image, (n, channels, 8, 8)."""
        return (x + self.inner(x)).relu()


def networks() -> dict[str, nn.Module]:
    """As torch starts them."""
    torch.manual_seed(0)
    pool, last = nn.MaxPool2d(2), nn.Linear(8 * 16, 10)
    return {
        "perceptron": nn.Sequential(nn.Flatten(), nn.Linear(64, 30), nn.ReLU(), nn.Linear(30, 10)),
        "convolutional": nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), pool, nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(),
            nn.Flatten(), last,
        ),
        "residual": nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), Residual(8), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 10)
        ),
    }  # fmt: skip


def main() -> None:
    """Plan, train, print and draw."""
    torch.set_num_threads(1)
    inputs, targets = (part[:800] for part in data.digits((1, 8, 8)).tensors(dtype=torch.float32))
    figure = Figure(figsize=(9, 3), layout="constrained")
    for axes, (name, model) in zip(figure.subplots(1, 3, sharey=True), networks().items(), strict=True):
        found = losscurv.plan(model, (inputs, targets), batch_sizes=SIZE, steps=STEPS, linearised=False)
        (at,) = found.trials
        print(f"{name}: loss {found.state.loss:.2f}, of the best constant output {found.state.constant:.2f}")
        if at.start is None:
            print("  no rate that was tried beats a constant output")
            continue
        upper = "" if at.fails is None else f" to {at.fails:g}"
        print(f"  start with {at.start:g}; largest that should train {at.trains:g}{upper}")
        for rate in (at.start / 4, at.start, at.fails or 4 * at.start):
            end = trained(model, inputs, targets, rate)
            print(f"  {2 * STEPS} steps at {rate:g}: loss {end:.3f}")
        rungs = [rung for rung in at.walked.rungs if rung.loss is not None]
        axes.plot([rung.rate for rung in rungs], [rung.loss for rung in rungs], "o-")
        axes.axvline(at.start, color="k", linestyle=":", label="start with")
        axes.set(xscale="log", title=name, xlabel="learning rate", ylim=(0, 1.3 * found.state.constant))
        axes.legend()
    figure.savefig("which_rate.png", dpi=150)
    print("picture: which_rate.png")


def trained(model: nn.Module, inputs: Tensor, targets: Tensor, rate: float) -> float:
    """Mean loss over the last tenth of plain SGD; the model is as before afterwards."""
    before = {name: value.clone() for name, value in model.state_dict().items()}
    steps, losses = torch.optim.SGD(model.parameters(), lr=rate), list[float]()
    torch.manual_seed(1)
    while len(losses) < 2 * STEPS:
        for chosen in torch.randperm(len(targets)).split(SIZE):
            loss = nn.functional.cross_entropy(model(inputs[chosen]), targets[chosen])
            steps.zero_grad()
            loss.backward()
            steps.step()
            losses.append(loss.item())
    model.load_state_dict(before)
    last = losses[-2 * STEPS // 10 :]
    return sum(last) / len(last) if all(map(math.isfinite, last)) else math.inf


if __name__ == "__main__":
    main()
