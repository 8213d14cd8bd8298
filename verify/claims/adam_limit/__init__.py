"""Adam against the batch size, and at the edge of its stability: papers of 2022 to 2025.

What they state stands in `entries`; the rooms hold the experiments and claims that judge it, in the order of the
report.
"""

from verify.claims.shipped import page
from verify.model.inventory import Paper

__all__ = ["DOCS", "PAPER", "ROOMS"]

PAPER = Paper(
    "adam_limit",
    "Malladi et al. (2022); Li et al. (2024); Marek et al. (2025); Cohen et al. (2022)",
    "Adam against the batch size, and its edge of stability",
    family_error=1e-3,
    family_size=64,
)

DOCS = page("adam_limit")

ROOMS = (
    "scaling",
    "signs",
    "stability",
)
