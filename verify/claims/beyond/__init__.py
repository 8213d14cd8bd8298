"""losscurv: Beyond the papers.

What it states stands in `entries`; the rooms hold the experiments and claims that judge it, in the order of the
report.
"""

from verify.model.inventory import Paper

__all__ = ["PAPER", "ROOMS"]

PAPER = Paper(
    "beyond",
    "losscurv",
    "Beyond the papers",
)

ROOMS = (
    "rates",
    "network_observations",
)
