"""RMSprop on quadratics: the preconditioner at which its second moments come to rest."""

from __future__ import annotations

from typing import Any

import numpy as np

from simulate.monte_carlo import Block, Point
from theory.learning_rates import edge_of_stability
from verify.claims.central_flows.networks import COHEN
from verify.model import Arrays, Claim, Experiment, as_stated


def preconditioners(block: Block, point: Point) -> Arrays:
    """Root of the second moments over the rate by weight, mean over the last quarter of the steps.

    The loss is w'Hw/2; H has the diagonal of the point, and H_ij = +-c, with the sum `coupling` of |H_ij| in a row.
    """
    dim = len(point.diagonal)
    signs = np.where(np.arange(dim) % 2, -1.0, 1.0)
    hessian = point.coupling / (dim - 1) * np.outer(signs, signs)
    np.fill_diagonal(hessian, point.diagonal)
    w = np.stack([rng.standard_normal(dim) for rng in block.streams])
    second, total = (w @ hessian) ** 2, np.zeros_like(w)
    for step in range(point.steps):
        gradient = w @ hessian
        second = point.second * second + (1 - point.second) * gradient**2
        w = w - point.rate * gradient / np.sqrt(second)
        if step >= point.steps * 3 // 4:
            total += np.sqrt(second)
    return {"preconditioner": total / point.rate / (point.steps - point.steps * 3 // 4)}


COURSE = {"second": 0.97, "steps": 1600}

QUADRATICS = Experiment(
    id="central_flows/quadratics",
    replicate="RMSprop from one start on the quadratic of the point",
    simulate=preconditioners,
    on_host="all of it, in numpy",
    points=(
        Point(diagonal=(3.1, 1.3, 1.7), coupling=0.8, rate=0.03, **COURSE),
        Point(diagonal=(2.3, 0.7, 4.2, 1.1), coupling=1.9, rate=0.09, **COURSE),
    ),
    budget=192,
    seconds=0.3,
)


def _preconditioner(p: Any) -> Any:
    return edge_of_stability.stationary_preconditioner(curvature=p.diagonal, coupling=p.coupling)


CLAIMS = (
    Claim(
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
        experiment=QUADRATICS,
        score="preconditioner",
        along="diagonal",
        predict=_preconditioner,
        margin=0.01,
        margin_reason="exact at rest",
        rivals={
            "curvature by the weight alone": lambda p: p.diagonal / 2,
            "rate at half of the edge": lambda p: 2 * _preconditioner(p),
        },
        quantity="preconditioner of RMSprop, by weight",
    ),
)
