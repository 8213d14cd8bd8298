"""losscurv: Beyond the papers.

What it states stands in `entries`; the rooms hold the experiments and claims that judge it, in the order of the
report.
"""

__all__ = ["ROOMS"]

ROOMS = (
    "rates",
    "network_observations",
)
