"""Main statements of Karakida et al. (2019)."""

from __future__ import annotations

from verify.page.main.plot import MainPlot

__all__ = ["PLOTS"]

PLOTS: tuple[MainPlot, ...] = ()
