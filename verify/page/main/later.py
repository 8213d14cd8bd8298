"""Main statements of papers after these: the edge of stability, the catapult."""

from __future__ import annotations

from verify.page.main.plot import MainPlot

__all__ = ["PLOTS"]

PLOTS: tuple[MainPlot, ...] = ()
