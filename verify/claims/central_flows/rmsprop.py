"""RMSprop on quadratics: the preconditioner at which its second moments come to rest."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from simulate.monte_carlo import Point
from theory.learning_rates import edge_of_stability
from verify.claims.central_flows.networks import COHEN
from verify.model import Arrays, Identity, as_stated


def preconditioners(rng: Generator, point: Point) -> Arrays:
    """Root of the second moments over the rate, by weight, after RMSprop from a random start on w'Hw/2."""
    couplings = np.triu(rng.uniform(0.1, 0.9, (point.dim, point.dim)), 1)
    couplings += couplings.T
    # dominant on its diagonal, so that the loss has a minimum
    diagonal = couplings.sum(1) * rng.uniform(1.1, 2.5, point.dim)
    signs = rng.choice([-1.0, 1.0], point.dim)
    hessian = np.diag(diagonal) + couplings * np.outer(signs, signs)
    w = rng.standard_normal(point.dim)
    second = (hessian @ w) ** 2
    for _ in range(point.steps):
        gradient = hessian @ w
        second = point.second * second + (1 - point.second) * gradient**2
        w = w - point.rate * gradient / np.sqrt(second)
    return {
        "RMSprop": np.sqrt(second) / point.rate,
        "theory": edge_of_stability.stationary_preconditioner(curvature=diagonal, coupling=couplings.sum(1)),
        "curvature by the weight alone": diagonal / 2,
        "half of the largest eigenvalue": np.full(point.dim, np.linalg.eigvalsh(hessian)[-1] / 2),
    }


CLAIMS = (
    Identity(
        id="central_flows/preconditioner",
        entries=("L5",),
        source=f"{COHEN}, companion page, part III: its convex program, solved at a minimum",
        passage=as_stated("RMSProp implicitly solves the convex program", "companion page, part III"),
        statement=r"\sqrt{\nu_i}/\eta \to P_i = \tfrac12 \sum_j |H_{ij}|,\quad P = \mathrm{argmin} \{\mathrm{tr} P : "
        r"P \text{ diagonal},\ H \preceq 2P\}",
        symbols={
            r"\nu_i": "average of the squared gradient by weight i",
            "H": "Hessian of a quadratic loss",
            "P": "preconditioner",
        },
        says="On a quadratic whose couplings agree in sign, RMSprop comes to rest with each effective rate at two over "
        "the sum of absolute Hessian entries in its row.",
        routes=preconditioners,
        points=tuple(
            Point(dim=dim, rate=rate, second=second, steps=4000)
            for dim, rate, second in ((3, 0.03, 0.97), (6, 0.09, 0.97), (4, 0.01, 0.93))
        ),
        tolerance=1e-5,
        tolerance_reason="exact at rest, which starts reach to rounding within these steps",
        seconds=0.1,
        quantity="preconditioner of RMSprop, by weight",
    ),
)
