"""A paper as a plug-in: one entry of Wigner (1955), and two claims on it, each with a rival."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simulate.matrices import ensembles
from simulate.monte_carlo import Block, Point
from verify.model import Claim, Experiment, Tier
from verify.model.inventory import Entry, Paper

PAPER = Paper(
    "wigner1955",
    "Wigner (1955)",
    "Characteristic Vectors of Bordered Matrices with Infinite Dimensions",
    family_error=1e-3,  # of this paper alone, beside that of the suite
    family_size=16,
)

ENTRIES = (Entry("W1", "moments of a matrix of random signs"),)

DOCS = r"""# Wigner (1955): bordered matrices

## W1 Moments of a matrix of random signs
With independent signs over $\sqrt N$ as elements, $\frac1N E\,\mathrm{Tr}\,H^{2k}$ counts closed walks. In the limit
those remain that go over every edge of a tree twice, $C_k=\frac1{k+1}\binom{2k}k$ of them: 2 and 5 for $k=2, 3$.
"""


def signs(block: Block, point: Point) -> Mapping[str, Any]:
    """Tr H^4 and Tr H^6 over the dimension, of symmetric matrices of random signs over its square root."""
    squared = ensembles.wigner(block, point.dim, law="rademacher").matrix_power(2)
    sixth = (squared @ squared * squared).sum((1, 2))
    return {"fourth": squared.square().sum((1, 2)) / point.dim, "sixth": sixth / point.dim}


EXPERIMENT = Experiment(
    id="wigner1955/signs",
    replicate="one symmetric matrix of random signs",
    simulate=signs,
    points=(Point(dim=40), Point(dim=90)),
    seconds=0.5,
    tier=Tier.SMOKE,
)

CLAIMS = (
    Claim(
        id="wigner1955/fourth-moment",
        entries=("W1",),
        source="Wigner (1955), section 1",
        statement=r"\frac1N \mathbb{E}\,\mathrm{Tr}\,H^4 \to 2",
        experiment=EXPERIMENT,
        score="fourth",
        predict=lambda _: 2.0,
        margin=0.05,
        margin_reason="corrections are of order 1/N, N at least 40",
        rivals={"moment of a Gaussian": lambda _: 3.0},
    ),
    Claim(
        id="wigner1955/sixth-moment",
        entries=("W1",),
        source="Wigner (1955), section 1",
        statement=r"\frac1N \mathbb{E}\,\mathrm{Tr}\,H^6 \to 5",
        experiment=EXPERIMENT,
        score="sixth",
        predict=lambda _: 5.0,
        margin=0.08,
        margin_reason="corrections are of order 1/N, N at least 40",
        rivals={"the fourth moment squared": lambda _: 4.0},
    ),
)
