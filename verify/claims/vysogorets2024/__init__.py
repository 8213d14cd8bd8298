"""Vysogorets, Dawid and Kempe (2024): Deconstructing the Goldilocks Zone of Neural Network Initialization.

Its statements are in `entries`; the modules hold the experiments and claims that judge it, in the order of the
report.
"""

from verify.model.inventory import Paper

PAPER = Paper(
    "vysogorets2024",
    "Vysogorets, Dawid and Kempe (2024)",
    "Deconstructing the Goldilocks Zone of Neural Network Initialization",
)

ROOMS = (
    "logit_model",
    "softmax",
    "priors",
    "excess",
    "projection",
    "scaling",
    "blocks",
    "any_network",
    "zone",
    "collapsed",
    "initialisations",
    "training",
    "maps",
    "observed",
)
