"""Granziol, Zohren and Roberts (2022): Learning Rates as a Function of Batch Size: A Random Matrix Theory Approach.

What it states stands in `entries`; the rooms hold the experiments and claims that judge it, in the order of the
report.
"""

from verify.claims.shipped import page
from verify.model.inventory import Paper

__all__ = ["DOCS", "PAPER", "ROOMS"]

PAPER = Paper(
    "granziol2022",
    "Granziol, Zohren and Roberts (2022)",
    "Learning Rates as a Function of Batch Size: A Random Matrix Theory Approach",
)

DOCS = page("granziol2022")

ROOMS = (
    "outliers.theorems",
    "noise.noise",
    "noise.ensembles",
    "outliers.outliers",
    "outliers.other_noise",
    "outliers.rectangular",
    "outliers.rectangular_scatter",
    "noise.samples",
    "rates.steps",
    "rates.rates",
    "rates.least_squares",
    "training.rates_of_batches",
    "training.rates_observed",
    "training.variance",
    "training.through_training",
    "training.degeneracy",
    "noise.gradient_noise",
    "noise.sampling",
    "noise.inequalities",
    "noise.scatter",
    "outliers.free_probability",
    "outliers.wishart_transforms",
    "networks.gauss_newton",
    "networks.hessians",
    "networks.lanczos",
    "networks.algorithm_1",
    "networks.networks",
    "networks.exact",
    "networks.typical_batches",
)
