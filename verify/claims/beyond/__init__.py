"""losscurv: Beyond the papers.

What it states stands in `entries`; the rooms hold the experiments and claims that judge it, in the order of the
report.
"""

from pathlib import Path

from verify.model.inventory import Paper

__all__ = ["DOCS", "PAPER", "ROOMS"]

PAPER = Paper(
    "beyond",
    "losscurv",
    "Beyond the papers",
)

DOCS = Path(__file__).with_name("docs.md")

ROOMS = (
    "rates",
    "network_observations",
)
