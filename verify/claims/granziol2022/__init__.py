"""Granziol, Zohren and Roberts (2022): Learning Rates as a Function of Batch Size: A Random Matrix Theory Approach.

What it states stands in `entries`; the rooms hold the experiments and claims that judge it, in the order of the
report.
"""

from verify.model.inventory import Paper

__all__ = ["PAPER", "ROOMS"]

PAPER = Paper(
    "granziol2022",
    "Granziol, Zohren and Roberts (2022)",
    "Learning Rates as a Function of Batch Size: A Random Matrix Theory Approach",
)

ROOMS = (
    "outliers.theorems",
    "noise.noise",
    "noise.ensembles",
    "outliers.outliers",
    "outliers.rectangular",
    "outliers.rectangular_scatter",
    "outliers.rectangular_maps",
    "outliers.factor_means",
    "noise.samples",
    "rates.steps",
    "rates.rates",
    "noise.gradient_noise",
    "noise.sampling",
    "noise.inequalities",
    "noise.scatter",
    "outliers.free_probability",
    "outliers.wishart_transforms",
    "networks.gauss_newton",
    "networks.hessians",
    "networks.lanczos",
    "networks.networks",
    "networks.typical_batches",
)
