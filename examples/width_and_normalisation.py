"""Wider networks are sharper, unless they are normalised: largest eigenvalue of the Fisher matrix against the width.

Random ReLU networks of three layers on as many random inputs as they are wide (Karakida, Akaho and Amari, 2019).
Without normalisation the largest eigenvalue grows in proportion to the width, so that the largest stable learning
rate of gradient descent, two over it, shrinks. Subtracting the mean of the last layer's outputs over the samples
takes that away; normalising the layers does not. Prints and draws drawn networks and theory: a prediction for wide
networks without normalisation and with that of the layers, but only a lower bound with the mean subtracted, where the
measured value is three to seven times as large.
"""

from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure

from simulate.monte_carlo import Block
from simulate.wide import fisher_gram, layer_normed
from simulate.wide.signals import WideNetwork, wide_network
from theory import fisher
from theory.fisher.layer_normalisation import layer_norm_largest
from theory.learning_rates import stability_limit

WIDTHS, NETWORKS, OUTPUTS = (20, 40, 80, 160), 6, 8
VARIANCES = {"weight_variance": 2.0, "bias_variance": 0.0}
THEORY: dict[str, Any] = {"activation": "relu", "depth": 3, **VARIANCES}


def main() -> None:
    """Draw networks, print and draw."""
    kinds = {"none": plain, "mean subtraction": subtracted, "layer normalisation": layer_normalised}
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot(xlabel="width", ylabel="largest eigenvalue", xscale="log", yscale="log")
    print("normalisation         width   measured   theory            stable learning rate below")
    for name, kind in kinds.items():
        found = np.array([kind(width) for width in WIDTHS])
        sign = ">=" if kind is subtracted else "  "
        for width, (measured, theory) in zip(WIDTHS, found, strict=True):
            limit = float(stability_limit(measured))
            print(f"{name:21} {width:5d} {measured:10.2f}   {sign} {theory:6.2f} {limit:21.3f}")
        (line,) = axes.plot(WIDTHS, found[:, 1])
        axes.plot(WIDTHS, found[:, 0], "o", color=line.get_color(), label=name)
    print(">=: theory gives a lower bound only, no prediction")
    axes.set_title("points: measured; lines: theory, a lower bound with mean subtraction", fontsize="medium")
    axes.legend(title="normalisation", loc="center left")
    axes.set_xticks(WIDTHS, map(str, WIDTHS), minor=False)
    axes.minorticks_off()
    figure.savefig("width_and_normalisation.png", dpi=150)
    print("picture: width_and_normalisation.png")


def drawn(width: int) -> WideNetwork:
    """Networks on as many inputs as they are wide."""
    block = Block(tuple(np.random.default_rng([width, i]) for i in range(NETWORKS)))
    return wide_network(block, widths=(width,) * 3 + (OUTPUTS,), samples=width, **VARIANCES)


def plain(width: int) -> tuple[float, float]:
    """As they are: theory to leading order in the width."""
    size: dict[str, Any] = {"width": width, "samples": width, "outputs": OUTPUTS}
    theory = fisher.eigenvalue_statistics(**THEORY, **size).largest
    return top(fisher_gram.gram(drawn(width), "relu")), theory


def subtracted(width: int) -> tuple[float, float]:
    """The mean over the samples taken from every output: theory gives a lower bound."""
    size: dict[str, Any] = {"width": width, "samples": width, "outputs": OUTPUTS}
    theory = fisher.mean_subtracted_statistics(**THEORY, **size).lower
    return top(fisher_gram.centred(fisher_gram.gram(drawn(width), "relu"))), theory


def layer_normalised(width: int) -> tuple[float, float]:
    """Every layer normalised over its units: theory of wide networks with these outputs."""
    networks = drawn(width)
    signals = layer_normed.layer_normed_signals(networks, "relu")
    outputs = signals.normalised[-1] / signals.inverses[-1][..., None]
    theory = [layer_norm_largest(preactivations=u, width=width, **THEORY) for u in outputs.numpy()]
    return top(layer_normed.layer_normed_gram(networks, "relu")), float(np.mean(theory))


def top(gram: torch.Tensor) -> float:
    """Largest eigenvalue of the Fisher matrix of each network, their mean: it is that of the Gram matrix over T."""
    networks, outputs, _, samples, _ = gram.shape
    matrices = gram.transpose(2, 3).reshape(networks, outputs * samples, -1) / samples
    return float(torch.linalg.eigvalsh(matrices)[:, -1].mean())


if __name__ == "__main__":
    main()
