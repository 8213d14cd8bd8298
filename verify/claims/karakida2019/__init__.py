"""Karakida, Akaho and Amari (2019), The Normalization Method for Alleviating Pathological Sharpness in Wide Networks.

Its statements are in `entries`; the modules hold the experiments and claims that judge it, in the order of the
report.
"""

from verify.claims.shipped import page
from verify.model.inventory import Paper

__all__ = ["DOCS", "PAPER", "ROOMS"]

PAPER = Paper(
    "karakida2019",
    "Karakida, Akaho and Amari (2019)",
    "The Normalization Method for Alleviating Pathological Sharpness in Wide Neural Networks",
)

DOCS = page("karakida2019")

ROOMS = (
    "spectrum",
    "kernels",
    "growth",
    "fluctuations",
    "last_layer",
    "batch_norm",
    "layer_norm",
    "training",
    "follow_ups",
    "any_network",
)
