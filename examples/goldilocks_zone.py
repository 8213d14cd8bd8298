"""Is my initialisation in the Goldilocks zone? Excess of positive curvature against the scale of all weights.

The zone is where the Hessian in a random subspace is far more positive than a balanced spectrum would be (Vysogorets,
Dawid and Kempe, 2024). Every weight of a ReLU network is multiplied by alpha, on 200 digits. Theory beside the
measurement: the excess from that of the Gauss-Newton part and the sizes of both parts; that of the Gauss-Newton part
from the spread of the logit gradients; and the lower edge of the zone, from one look far below it.
"""

import math

import numpy as np
import torch
from matplotlib.figure import Figure

from simulate import data
from simulate.networks import mlp_weights
from simulate.perceptrons import curvature
from theory import gauss_newton, softmax

WIDTHS, SAMPLES, DIM = (64, 100, 50, 10), 200, 50
ALPHA = np.geomspace(0.1, 10.0, 21)


def main() -> None:
    """Measure, print and draw."""
    rng = np.random.default_rng(0)
    digits = data.sample(data.digits((1, 8, 8)).flat(), rng, SAMPLES, balanced=True)
    weights = mlp_weights(rng, WIDTHS)
    frame = curvature.haar(rng, sum(w.numel() for w in weights), DIM)
    net = curvature.ProjectedMlp(weights, digits.images, digits.labels, frame)

    terms = net.terms(ALPHA)
    g, h_term = terms.g_term, terms.h_term
    measured = curvature.positive_excess(terms.hessian).numpy()
    positive = curvature.positive_excess(g).numpy()
    ratio = (torch.linalg.matrix_norm(h_term) / torch.linalg.matrix_norm(g)).numpy()
    from_parts = gauss_newton.hessian_excess(positive, frobenius_ratio=ratio)
    from_gradients = random_logit_model(net)
    floor = float(gauss_newton.excess_noise_floor(DIM))

    far_below = net.terms(1e-3)
    norms = [float(curvature.spectral_norm(part)) for part in (far_below.h_term, far_below.g_term)]
    edge = 1e-3 * (norms[0] / norms[1]) ** (1 / net.depth)

    print(" alpha   excess: measured   from both parts   Gauss-Newton: measured   random logit model")
    for i in range(0, len(ALPHA), 2):
        numbers = f"{measured[i]:17.2f} {from_parts[i]:17.2f} {positive[i]:24.2f} {from_gradients[i]:20.2f}"
        print(f"{ALPHA[i]:6.2f} {numbers}")
    print(
        f"a balanced spectrum scatters by {floor:.2f} about 0; lower edge of the zone at alpha = {edge:.2f}"
    )
    here = float(np.interp(0.0, np.log(ALPHA), measured))
    verdict = "in the zone" if here > 5 * floor else "not in the zone"
    print(f"at alpha = 1: {here:.2f}, {here / floor:.0f} times that scatter: {verdict}")

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot(xlabel="scale of all weights, alpha", ylabel="excess of positive curvature")
    axes.set_xscale("log")
    axes.plot(ALPHA, measured, "o", label="Hessian, measured")
    axes.plot(ALPHA, from_parts, label="Hessian, from the sizes of its parts")
    axes.plot(ALPHA, positive, "s", fillstyle="none", label="Gauss-Newton part, measured")
    axes.plot(ALPHA, from_gradients, "--", label="Gauss-Newton part, random logit model")
    axes.axvline(edge, color="grey", lw=1, label="lower edge, predicted")
    axes.axhspan(-floor, floor, color="grey", alpha=0.2, label="noise of a balanced spectrum")
    axes.legend(fontsize="small")
    figure.savefig("goldilocks_zone.png", dpi=150)
    print("picture: goldilocks_zone.png")


def random_logit_model(net: curvature.ProjectedMlp) -> np.ndarray:
    """Eq. (8), corrected, with the scales of class means and residuals that the logit gradients have."""
    gradients = net.jacobian.numpy()
    residuals = gradients.var(axis=0, ddof=1).mean()
    means = (gradients.mean(axis=0) ** 2).mean() - residuals / SAMPLES
    logits = net.logits.numpy()
    gammas = []
    for alpha in ALPHA:
        scaled = alpha**net.depth * logits
        p = np.exp(scaled - scaled.max(axis=1, keepdims=True))
        gammas.append(softmax.gamma(p / p.sum(axis=1, keepdims=True), average=True))
    return gauss_newton.expected_excess(
        np.array(gammas), dim=DIM, sigma_c=math.sqrt(means), sigma_e=math.sqrt(residuals)
    )


if __name__ == "__main__":
    main()
