"""Batch size, noise and learning rate.

A smaller batch gives a noisier gradient, and also a noisier Hessian. Noise raises the largest eigenvalue, so
a step that is stable for all samples may be too large for a batch. How much does the batch size matter for
your network, and which learning rate should you use with it? This page measures the curvature of batches,
compares it with two formulas, and then tries learning rates.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn

import losscurv

torch.manual_seed(0)
torch.set_num_threads(1)

# ## A network and its data
#
# Ten clouds of points in 20 dimensions, one for each class, and a network that tells them apart. Put your own
# model and data here.

targets = torch.arange(600) % 10
inputs = torch.randn(10, 20)[targets] + torch.randn(600, 20)
model = nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 10))

# ## The curvature of a batch
#
# Draw batches and take the largest eigenvalue λ₁ of each. The matrix is the Gauss-Newton matrix G, the part
# of the Hessian that has no negative eigenvalues.


def largest(batch_size: int) -> float:
    """Return the largest eigenvalue of G of a random batch."""
    rows = torch.randperm(600)[:batch_size]
    objective = losscurv.Objective(model, (inputs[rows], targets[rows]))
    return float(losscurv.extremes(losscurv.gauss_newton(objective)).values[0])


sizes = (1, 4, 16, 64, 256)
measured = {size: np.array([largest(size) for _ in range(24)]) for size in sizes}

# ## Two formulas for it, and trial runs
#
# `losscurv.plan` predicts the mean of λ₁ at each batch size in two ways. *Theorem 4* of Granziol et al.
# (2022) assumes noise that is equal in all directions, and large networks and batches. The *own-direction
# law* uses how much the curvature of single samples varies along the directions that matter. Then the plan
# tries learning rates in short training runs.

plan = losscurv.plan(model, (inputs, targets), batch_sizes=sizes, curvature=True)
assert plan.linearised is not None, plan.not_linearised
rates = plan.linearised.rates
print("    B   measured λ₁      own-direction law   Theorem 4")
for size, rate in zip(sizes, rates, strict=True):
    values = measured[size]
    error = values.std() / np.sqrt(len(values))
    laws = f"{rate.batch.mean.value:17.3f}   {2 / rate.theorem_4.value:9.3f}"
    print(f"{size:5d}   {values.mean():6.3f} ± {error:.3f}   {laws}")

# At B = 1 the eigenvalue is 3.5 times that of all samples. Theorem 4 hardly sees the batch size here, because
# the noise of a network is not equal in all directions: most of it lies where the curvature is. The paper
# states the theorem for the limit of many parameters and large batches.
#
# ## Which learning rate?
#
# A first idea is 2/λ₁(B), at which a step on one batch alone would be stable. SGD uses another batch in each
# step, so its limit concerns the average over batches. The plan brackets this limit between *stable below*
# and *unstable above*, for small displacements from the weights as they are. The last columns come from trial
# runs: the suggested rate, the largest rate that trained, and the next one on a grid of factors of 4, which
# failed.

starts, trained, failed = (
    [getattr(trial, name) or np.nan for trial in plan.trials] for name in ("start", "trains", "fails")
)
print("    B   2/λ₁(B)   stable below   unstable above   suggested   trained   failed")
for k, (size, rate) in enumerate(zip(sizes, rates, strict=True)):
    limits = f"{2 / measured[size].mean():7.2f}   {rate.lower:12.2f}   {rate.upper:14.2f}"
    print(f"{size:5d}   {limits}   {starts[k]:9.2g}   {trained[k]:7.2g}   {failed[k]:6.2g}")

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.8), layout="constrained")
for axes, ticks in ((left, (0.5, 1, 2, 4, 8)), (right, (0.05, 0.2, 1, 5))):
    axes.set(xscale="log", yscale="log", xlabel="batch size B")
    axes.set_xticks(sizes, map(str, sizes))
    axes.set_yticks(ticks, map(str, ticks))
    axes.minorticks_off()
for size in sizes:
    left.plot([size] * 24, measured[size], "_", color="tab:orange", alpha=0.4)
means = np.array([measured[size].mean() for size in sizes])
left.plot(sizes, means, "o", color="tab:orange", label="measured, mean of 24")
left.plot(sizes, [rate.batch.mean.value for rate in rates], color="tab:blue", label="own-direction law")
left.plot(sizes, [2 / rate.theorem_4.value for rate in rates], "k--", lw=1, label="Theorem 4")
left.set_title("Largest eigenvalue λ₁ of G of a batch", loc="left")
bracket = [rate.lower for rate in rates], [rate.upper for rate in rates]
right.fill_between(sizes, *bracket, alpha=0.3, lw=0, label="limit of stability lies here")
right.plot(sizes, 2 / means, "k:", label="2/λ₁(B)")
right.plot(sizes, starts, "o", color="tab:green", label="trial runs: suggested")
right.plot(sizes, failed, "x", color="tab:red", label="trial runs: failed")
right.set_title("Learning rate of SGD", loc="left")
left.legend(frameon=False)
right.legend(frameon=False)
figure.savefig("batch_size_and_rate.png", dpi=150)

# ![Left: largest eigenvalue against batch size. Right: learning rates against batch size](batch_size_and_rate.png)
#
# From B = 64 on the curvature of a batch is nearly that of all samples. At B = 1 and 4 trial runs failed at
# rates below 2/λ₁(B), and the suggested rates are 10 to 25 times smaller than 2/λ₁(B). So curvature explains
# why small batches need small rates, but it does not give the rate. Use the rate of the trial runs.
#
# ## What to try next
#
# - Your own optimizer: `losscurv.plan(model, data, torch.optim.AdamW(model.parameters()))` ([Choose a
#   learning rate](../plan.md)).
# - A trained network: train `model` for 100 steps first. At which batch size does the curvature flatten then?
# - `plan.plot()` draws the trial runs.
# - How good these formulas are on other networks: [What holds on real networks](../networks.md).
