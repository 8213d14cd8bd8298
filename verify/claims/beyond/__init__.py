"""losscurv: Beyond the papers.

What it states stands in `entries`; the rooms hold the experiments and claims that judge it, in the order of the
report.
"""

from verify.claims.shipped import page
from verify.model.inventory import Paper

__all__ = ["DOCS", "PAPER", "ROOMS"]

PAPER = Paper(
    "beyond",
    "losscurv",
    "Beyond the papers",
)

DOCS = page("beyond")

ROOMS = (
    "rates",
    "networks",
)
