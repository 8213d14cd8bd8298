"""Karakida, Akaho and Amari (2019), figure 1: the largest Fisher eigenvalue up to width 1000, as many samples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from simulate.matrices import ensembles
from simulate.monte_carlo import Block, Point
from simulate.wide import fisher_gram
from theory import fisher
from verify.claims.karakida2019 import PAPER
from verify.claims.karakida2019.wide_networks import network_of, setting
from verify.model import Tier
from verify.model.observation import Column, Observation

__all__ = ["OBSERVATIONS"]


def figure_1(block: Block, point: Point) -> Mapping[str, Any]:
    """At each width one network, T = M: both eigenvalues, and what theory says over them."""
    columns = [_figure_1(block, point, width) for width in point.widths]
    return {name: np.stack([column[name] for column in columns], axis=1) for name in columns[0]}


def _figure_1(block: Block, point: Point, width: int) -> dict[str, Any]:
    network = network_of(block, point, width=width, samples=width, outputs=1)
    gram = fisher_gram.gram(network, point.activation)
    largest = ensembles.top_eigenvalue(gram[:, 0, 0]).cpu().numpy() / width
    subtracted = ensembles.top_eigenvalue(fisher_gram.centred(gram)[:, 0, 0]).cpu().numpy() / width
    law: dict[str, Any] = setting(point) | {"outputs": 1}
    size: dict[str, Any] = {"width": width, "samples": width}
    bounds = fisher.mean_subtracted_statistics(**law, **size)
    c1 = fisher.fluctuation_constants(**law).c1
    return {
        "largest": largest,
        "theorem_2_2": fisher.eigenvalue_statistics(**law, **size).largest / largest,
        "subtracted": subtracted,
        "drawn": (bounds.lower - c1) / subtracted,
        "with_c1": bounds.lower / subtracted,
        "upper": bounds.upper / subtracted,
    }


OBSERVATIONS: tuple[Observation, ...] = (
    Observation(
        id="karakida2019/figure-1",
        entries=("C29",),
        source=f"{PAPER}, figure 1",
        title="Largest Fisher eigenvalue of networks of growing width, with and without mean subtraction",
        note="Theorem 2.2 follows the largest eigenvalue to about ten per cent at width 100 and one per cent at 1000. "
        "With mean subtraction it stays where it is while the width grows tenfold; the line that the figure draws, "
        "rho alpha (kappa1 - kappa2), is a lower bound some 3.6 times below it at every width, with its constant c1 "
        "2.5 times. For networks that are not linear the value itself is bounded and not known.",
        replicate="one network with its inputs at each width",
        simulate=figure_1,
        points=(
            Point(
                activation="relu",
                weight_variance=2.0,
                bias_variance=0.0,
                depth=3,
                widths=(100, 200, 300, 400, 600, 800, 1000),
            ),
            Point(
                activation="tanh",
                weight_variance=3.0,
                bias_variance=0.64,
                depth=3,
                widths=(100, 200, 300, 400, 600, 800, 1000),
            ),
        ),
        along="widths",
        columns=(
            Column(score="largest", heading="largest eigenvalue"),
            Column(score="theorem_2_2", heading="theorem 2.2 over it", ratio=True),
            Column(score="subtracted", heading="largest eigenvalue after mean subtraction"),
            Column(score="drawn", heading="drawn line over it", ratio=True),
            Column(score="with_c1", heading="lower bound with c1 over it", ratio=True),
            Column(score="upper", heading="upper bound over it", ratio=True),
        ),
        replicates=25,
        seconds=2.0,
        tier=Tier.FULL,
        axis="width M",
    ),
)
