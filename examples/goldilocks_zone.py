"""The Goldilocks zone of your network.

Before training, a network can be scaled too small or too large. In between there is a range of scales at
which the loss bends upwards in most directions. Vysogorets, Dawid and Kempe (2024) call this range the
Goldilocks zone and ask why it exists. This page measures whether a network lies in the zone, finds both ends
of the zone, and compares the measurement with a formula.

You need to know what a Hessian is. [What curvature is](../curvature.md) explains it on one page.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn

import losscurv

torch.manual_seed(0)
torch.set_num_threads(1)

# ## Is this network in the zone?
#
# Take a network as torch initialises it, and handwritten digits. Use your own model and data here: a pair of
# tensors, a `DataLoader`, or an `.npz` file.

model = nn.Sequential(
    nn.Flatten(), nn.Linear(784, 50), nn.ReLU(), nn.Linear(50, 50), nn.ReLU(), nn.Linear(50, 10)
)
found = losscurv.measure(model, "digits", samples=300, top=1)
assert found.zone is not None  # it is None only if the Hessian is zero
print("excess in 50 random directions:", found.zone.excess)
print(found.zone.verdict + ":", found.zone.reason)

# The *excess* of a matrix is its trace divided by its Frobenius norm. It is large if nearly all curvature is
# positive, and near 0 if positive and negative curvature cancel. As in the paper, the excess is that of the
# Hessian in 50 random directions. There a spectrum that cancels gives values within about 0.2 of 0, the
# noise.
#
# ## Scale all weights
#
# Now multiply every weight by a factor α. The biases are left out, so that the outputs grow exactly as α³ in
# a network of three layers. At each scale `losscurv.projected` returns the Hessian H along the same 50
# directions as the sum of two parts, the Gauss-Newton part G and the rest, the H-term.

layers = [nn.Linear(a, b, bias=False) for a, b in ((784, 50), (50, 50), (50, 10))]
for layer in layers:
    nn.init.kaiming_normal_(layer.weight)
model = nn.Sequential(nn.Flatten(), layers[0], nn.ReLU(), layers[1], nn.ReLU(), layers[2]).double()
start = nn.utils.parameters_to_vector(model.parameters()).detach()
directions = torch.linalg.qr(torch.randn(len(start), 50, dtype=torch.float64)).Q


def excess(matrix: torch.Tensor) -> float:
    """Return trace / Frobenius norm."""
    return float(matrix.trace() / matrix.norm())


def parts(scale: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Return G and the H-term along the directions, with all weights at this scale."""
    nn.utils.vector_to_parameters(scale * start, model.parameters())
    found = losscurv.projected(losscurv.Objective(model, "digits"), directions)
    return found.g_term, found.h_term


scales = np.geomspace(0.1, 100, 25)
matrices = [parts(scale) for scale in scales]
measured = [excess(g + h) for g, h in matrices]
positive = np.array([excess(g) for g, _ in matrices])
ratio = np.array([float(h.norm() / g.norm()) for g, h in matrices])

# ## Compare with a formula
#
# The trace of the H-term is zero in a ReLU network without biases, and its inner product with G is small.
# Then the excess of H follows from that of G and from the ratio ρ of the two norms: excess(G)/√(1 + ρ²). The
# zone should end where ρ = 1.

predicted = losscurv.theory.gauss_newton.hessian_excess(positive, frobenius_ratio=ratio)
inside = scales[ratio < 1]
print(f"the H-term is smaller than G from scale {inside[0]:.2f} to {inside[-1]:.0f}")
for k in range(0, len(scales), 4):
    print(
        f"scale {scales[k]:7.2f}: excess {measured[k]:5.2f}, predicted {predicted[k]:5.2f}, norm ratio {ratio[k]:.3g}"
    )

noise = float(losscurv.theory.gauss_newton.excess_noise_floor(50))
figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
axes.axvspan(inside[0], inside[-1], color="tab:green", alpha=0.1, label="H-term smaller than G")
axes.axhspan(-noise, noise, color="grey", alpha=0.25, lw=0, label="noise of 50 directions")
axes.plot(scales, predicted, color="tab:blue", label="predicted from G and ρ")
axes.plot(scales, measured, "o", color="tab:orange", ms=4, label="measured")
axes.set(xscale="log", xlabel="scale α of all weights", ylabel="excess of the Hessian")
axes.set_title("Excess of H = excess of G / √(1 + ρ²)", loc="left")
axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
figure.savefig("goldilocks_zone.png", dpi=150)

# ![Excess of the Hessian against the scale of all weights: points on the predicted line](goldilocks_zone.png)
#
# Below the zone the outputs are nearly constant. G is then tiny, and the H-term has as much negative as
# positive curvature. Far above it the softmax is certain about every image, so G vanishes again. The scale of
# the usual initialisation is 1.
#
# ## What to try next
#
# - Your own network: `losscurv measure --model my_net.py:build --data data.npz` prints the same verdict ([how
#   to](../measure.md)).
# - Fewer images: `(x[:100], y[:100])` in place of `"digits"`. On which side does the zone become smaller?
# - A trained network: train for some steps, then measure again.
# - What the paper claims, and what holds: [Vysogorets et al. (2024)](../claims/vysogorets2024.md).
