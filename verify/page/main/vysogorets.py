"""Main statements of Vysogorets et al. (2024)."""

from __future__ import annotations

from verify.page.main.plot import MainPlot

__all__ = ["PLOTS"]

PLOTS: tuple[MainPlot, ...] = ()
