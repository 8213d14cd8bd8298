"""Karakida, Akaho and Amari (2019), The Normalization Method for Alleviating Pathological Sharpness in Wide Networks.

Its statements are in `entries`; the modules hold the experiments and claims that judge it, in the order of the
report.
"""

from verify.model.inventory import Paper

PAPER = Paper(
    "karakida2019",
    "Karakida, Akaho and Amari (2019)",
    "The Normalization Method for Alleviating Pathological Sharpness in Wide Neural Networks",
)

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
