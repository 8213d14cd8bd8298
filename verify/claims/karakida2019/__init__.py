"""Karakida, Akaho and Amari (2019), The Normalization Method for Alleviating Pathological Sharpness in Wide Networks.

What it states stands in `entries`; the rooms hold the experiments and claims that judge it, in the order of the
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
    "spectrum.theorems",
    "kernels.kernels",
    "kernels.signs",
    "kernels.quadrature",
    "spectrum.spectrum",
    "spectrum.exact",
    "spectrum.spans",
    "spectrum.exceptions",
    "last_layer.fluctuations",
    "last_layer.bounds",
    "last_layer.constants",
    "last_layer.subtraction",
    "last_layer.deviations",
    "last_layer.deviation_share",
    "last_layer.last_layer",
    "batch_norm.gradients",
    "batch_norm.batch_norm",
    "batch_norm.largest",
    "layer_norm.gram",
    "layer_norm.blocks",
    "layer_norm.layer_norm",
    "layer_norm.limits",
    "layer_norm.etas",
    "spectrum.sizes",
    "training.training",
    "training.figure_1",
    "training.figure_2",
    "kernels.tangent",
    "spectrum.cross_entropy",
    "spectrum.cross_entropy_widths",
    "kernels.criticality",
    "spectrum.linear",
)
