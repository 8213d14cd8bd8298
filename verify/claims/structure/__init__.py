"""The structure of the Hessian between classes: Dong, Zhang, Luo, Yao and Sun (2025).

What it states stands in `entries`; the rooms hold the experiments and claims that judge it, in the order of the report.
"""

from verify.claims.shipped import page
from verify.model.inventory import Paper

__all__ = ["DOCS", "PAPER", "ROOMS"]

PAPER = Paper(
    "structure",
    "Dong et al. (2025)",
    "Towards quantifying the Hessian structure of neural networks",
    family_error=1e-3,
    family_size=64,
)

DOCS = page("structure")

ROOMS = ("blocks",)
