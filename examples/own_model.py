"""Curvature of a model of one's own, in the twenty lines of `main`.

Any module, any twice differentiable loss of its outputs, any batches: put yours in place of the first three. Shows
the extreme eigenvalues of Hessian and Gauss-Newton matrix with bounds of their errors, their traces and how positive
they are as a whole, each with its standard error, and draws the density of the Hessian's eigenvalues.
"""

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import nn

from simulate import data, spectra
from simulate.eigenvalues import extremes
from simulate.objectives import Objective
from simulate.operators import gauss_newton, hessian


def main() -> None:
    """Measure, print and draw."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 50), nn.GELU(), nn.Linear(50, 10))
    loss = nn.CrossEntropyLoss()
    batches = [data.digits((1, 8, 8)).tensors(dtype=torch.float32)]

    rng = np.random.default_rng(0)
    objective = Objective(model, batches, loss)
    print(f"loss {objective.value():.4f}, {objective.dim} parameters, {objective.samples:.0f} samples")
    for name, matrix in (("Hessian", hessian(objective)), ("Gauss-Newton matrix", gauss_newton(objective))):
        found = extremes(matrix, rng, largest=3, smallest=1)
        trace = spectra.trace(matrix, rng, probes=30)
        norm = spectra.frobenius_norm(matrix, rng, probes=30)
        print(f"{name}: largest and smallest eigenvalues ({found.products} products; {found.stopped})")
        for value, bound in zip(found.values, found.bounds, strict=True):
            print(f"    {value:9.5f}, error at most {bound:.0e}")
        print(f"    trace {trace.value:.2f} +- {trace.standard_error:.2f}", end=", ")
        print(f"Frobenius norm {norm.value:.2f} +- {norm.standard_error:.2f}", end=", ")
        print(f"excess of positive curvature {trace.value / norm.value:.2f}")
    draw(spectra.density(hessian(objective), rng, x=GRID, width=0.02, steps=60, probes=4))


GRID = np.linspace(-1.0, 2.0, 400)


def draw(density: spectra.Density) -> None:
    """The density of the eigenvalues with a band of two standard errors."""
    figure = Figure(figsize=(6, 3.5), layout="constrained")
    axes = figure.add_subplot(
        xlabel="eigenvalue of the Hessian", ylabel="density", yscale="log", ylim=(1e-4, 50)
    )
    two = 2 * density.standard_error
    axes.fill_between(GRID, density.value - two, density.value + two, alpha=0.3)
    axes.plot(GRID, density.value)
    figure.savefig("own_model.png", dpi=150)
    print("picture: own_model.png")


if __name__ == "__main__":
    main()
