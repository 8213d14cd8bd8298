"""Curvature while training.

Gradient descent with learning rate η on a quadratic loss converges only if the largest eigenvalue λ₁ of the
Hessian is below 2/η. The loss of a network is not quadratic, and λ₁ changes while the network trains. Cohen
et al. (2021) found that it changes in a particular way: it rises until it reaches 2/η and then stays there.
They call this the edge of stability. This page shows it on a network that trains in seconds.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn

import losscurv

torch.set_num_threads(1)

# ## A task and a network
#
# Fit 20 points of a wiggly curve with a small tanh network. All points are used in every step, so the only
# noise is rounding.

inputs = torch.linspace(-1, 1, 20)[:, None]
targets = torch.special.chebyshev_polynomial_t(inputs, 5)
loss = nn.MSELoss()


def network() -> nn.Module:
    """Return the network, with the same weights at every call."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(1, 50), nn.Tanh(), nn.Linear(50, 50), nn.Tanh(), nn.Linear(50, 1))


# ## Train and watch
#
# `losscurv.watch` needs one line before the training loop and one line in it. It measures λ₁ at most every 50
# steps, and it leaves the training unchanged to the last bit. `most=0.9` lets the measurements take up to 90
# % of the time, because these steps are so cheap; the default is 5 %.


def train(rate: float, momentum: float = 0.0):
    """Train at a constant rate; return the watcher with its records."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=momentum)
    watcher = losscurv.watch(optimizer, model, loss, every=50, most=0.9)
    for _ in range(3000):
        optimizer.zero_grad()
        loss(model(inputs), targets).backward()
        optimizer.step()
        watcher.step(inputs, targets)
    return watcher


watchers = {rate: train(rate) for rate in (0.05, 0.1, 0.2)}
for rate, watcher in watchers.items():
    first, last = watcher.records[0], watcher.records[-1]
    print(f"rate {rate}: λ₁ from {first.eigenvalue:.1f} to {last.eigenvalue:.1f}, 2/η = {last.limit:.0f}")

# All three runs start from the same weights, with λ₁ about 17. At the end λ₁ is close to 2/η in each of them, so
# the final curvature is set by the learning rate.

figure, axes = plt.subplots(figsize=(7, 3.8), layout="constrained")
for (rate, watcher), colour in zip(watchers.items(), ("tab:blue", "tab:orange", "tab:green"), strict=True):
    steps = [record.step for record in watcher.records]
    eigenvalues = np.array([record.eigenvalue for record in watcher.records], float)
    axes.plot(steps, eigenvalues, color=colour, label=f"η = {rate}")
    axes.axhline(2 / rate, color=colour, ls="--", lw=1)
    axes.annotate(f"2/η = {2 / rate:.0f}", (3000, 2 / rate), (4, -3), textcoords="offset points")
axes.set(xlabel="step", ylabel="largest eigenvalue λ₁", ylim=(0, 50), xlim=(0, 3000))
axes.set_title("λ₁ ends at 2/η, from below and from above", loc="left")
axes.legend(frameon=False, loc=(0.8, 0.47))
figure.savefig("curvature_while_training.png", dpi=150)

# ![Largest eigenvalue against the step for three rates; each ends near 2/rate](curvature_while_training.png)
#
# With η = 0.05 the curvature rises to the limit of 40 and then oscillates about it. With η = 0.2 training
# starts above the limit of 10. It survives: the loss rises for some steps, training moves to flatter weights,
# and λ₁ falls below the limit at once. The quadratic picture predicts that such a run diverges.
#
# So 2/λ₁, measured before training, is not the largest rate that trains. To choose a rate, try rates:
# [`losscurv.plan`](../plan.md) does that.
#
# ## What to try next
#
# - `train(0.05, momentum=0.9)`: the limit becomes 2(1 + 0.9)/η = 76. Does λ₁ reach it?
# - Your own loop: add the two lines, and `watcher.save("curvature.png")` draws loss and curvature ([Watch
#   training](../watch.md)).
# - Batches of 5 points: pass the batch to `watcher.step`. Then the fixed samples of `samples=` and the batch
#   have different eigenvalues. What the papers say about batches, and what holds: [The edge of
#   stability](../claims/edge.md).
