"""The edge of stability, with and without batches: papers of 2021 to 2026.

What they state stands in `entries`; the rooms hold the experiments and claims that judge it, in the order of the
report.
"""

from verify.claims.shipped import page
from verify.model.inventory import Paper

__all__ = ["DOCS", "PAPER", "ROOMS"]

PAPER = Paper(
    "edge",
    "Cohen et al. (2021); Damian et al. (2023); Andreyev and Beneventano (2024); Liao et al. (2026)",
    "The edge of stability, with and without batches",
    family_error=1e-3,
    family_size=64,
)

DOCS = page("edge")

ROOMS = (
    "model",
    "networks",
)
