"""Granziol, Zohren and Roberts (2022): Learning Rates as a Function of Batch Size: A Random Matrix Theory Approach.

Its statements are in `entries`; the folders hold the experiments and claims that judge it, in the order of the
report.
"""

from verify.model.inventory import Paper

PAPER = Paper(
    "granziol2022",
    "Granziol, Zohren and Roberts (2022)",
    "Learning Rates as a Function of Batch Size: A Random Matrix Theory Approach",
)

ROOMS = (
    "outliers.outliers",
    "noise.noise",
    "outliers.rectangular",
    "noise.samples",
    "rates.steps",
    "rates.rates",
    "training.rates_of_batches",
    "training.through_training",
    "training.degeneracy",
    "noise.sampling",
    "noise.inequalities",
    "outliers.transforms",
    "networks.hessians",
    "networks.lanczos",
    "networks.networks",
)
