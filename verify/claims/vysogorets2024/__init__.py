"""Vysogorets, Dawid and Kempe (2024): Deconstructing the Goldilocks Zone of Neural Network Initialization.

What it states stands in `entries`; the rooms hold the experiments and claims that judge it, in the order of the
report.
"""

from verify.claims.shipped import page
from verify.model.inventory import Paper

__all__ = ["DOCS", "PAPER", "ROOMS"]

PAPER = Paper(
    "vysogorets2024",
    "Vysogorets, Dawid and Kempe (2024)",
    "Deconstructing the Goldilocks Zone of Neural Network Initialization",
)

DOCS = page("vysogorets2024")

ROOMS = (
    "softmax.theorems",
    "softmax.softmax",
    "softmax.one_hot",
    "softmax.rays",
    "softmax.samples",
    "softmax.gradients",
    "softmax.losses",
    "excess.excess",
    "excess.projection",
    "excess.hutchinson",
    "scaling.homogeneity",
    "scaling.identities",
    "scaling.scaling",
    "scaling.blocks",
    "zone.collapsed",
    "zone.networks",
    "zone.zone",
    "zone.initialisations",
    "softmax.priors",
    "softmax.unrelated",
    "training.trajectories",
    "training.uniform",
    "training.maps",
    "training.rates",
    "zone.observations",
)
