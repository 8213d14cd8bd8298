"""Why claims on the moments of laws, and on the scatter of one matrix, have no closed form of their own."""

from __future__ import annotations

__all__ = ["WITHOUT_FORM"]

MOMENTS = "of three laws, each with moments of its own: tests hold them to the density"

WITHOUT_FORM: dict[str, str] = {
    "granziol2022/law-moments": MOMENTS,
    "granziol2022/law-variance": MOMENTS,
    "granziol2022/law-of-the-edge": "a solution of Painleve's second equation",
    "granziol2022/outlier-variance": "that of fluctuation-spread, which has one, in units of the noise",
    "granziol2022/edge-variance": "the variance of the Tracy-Widom law, a number, times a power",
}
