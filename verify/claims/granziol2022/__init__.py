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
    "noise.fluctuations",
    "outliers.outliers",
    "outliers.other_noise",
    "outliers.rectangular",
    "outliers.rectangular_scatter",
    "outliers.factor_means",
    "noise.samples",
    "rates.steps",
    "rates.rates",
    "rates.least_squares",
    "training.rates_of_batches",
    "training.damping",
    "training.rates_observed",
    "training.variance",
    "training.through_training",
    "training.degeneracy",
    "noise.gradient_noise",
    "noise.sampling",
    "noise.central_limit",
    "noise.inequalities",
    "noise.scatter",
    "noise.left_out",
    "noise.left_out_wishart",
    "noise.batch_shapes",
    "outliers.free_probability",
    "outliers.rank_one_terms",
    "outliers.wishart_transforms",
    "networks.gauss_newton",
    "networks.hessians",
    "networks.lanczos",
    "networks.algorithm_1",
    "networks.networks",
    "networks.exact",
    "networks.typical_batches",
)
