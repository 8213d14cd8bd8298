"""The closed form of the scatter of an outlier, and why claims on the moments of laws have none of their own."""

from __future__ import annotations

from tests.verify.claims.mutation import ClosedForm, shared

__all__ = ["FORMS", "UNSEEN", "WITHOUT_FORM"]

MOMENTS = "of three laws, each with moments of its own: tests hold them to the density"


def _axis(spike, sigma, dim):
    m = shared(sigma**2 / spike**2)
    return sigma**2 / dim * (1 - m) ** 2 * (1 - 2 * m + 2 * m / (1 - m))


FORMS: dict[str, ClosedForm] = {
    "granziol2022/outlier-variance": ClosedForm(
        lambda spike, small: 2 / small * (1 - 1 / spike**2), {"small": lambda p: p.dims[0]}
    ),
    "granziol2022/fluctuation-axis": ClosedForm(_axis),
}

WITHOUT_FORM: dict[str, str] = {
    "granziol2022/law-moments": MOMENTS,
    "granziol2022/law-variance": MOMENTS,
    "granziol2022/law-of-the-edge": "a solution of Painleve's second equation",
    "granziol2022/edge-variance": "the variance of the Tracy-Widom law, a number, times a power",
}

FLAT = "the margin is a tenth of the variance, and the slip changes it by less than two tenths"

UNSEEN: dict[str, dict[str, tuple[str, ...]]] = {
    "granziol2022/outlier-variance": {
        FLAT: (
            "1/2 times -1/(spike**2)",
            "square root of 1 - 1/(spike**2)",
            "square of 1 - 1/(spike**2)",
            "2 -> 3 in spike**2",
            "2 -> 4 in spike**2",
        ),
    },
    "granziol2022/fluctuation-axis": {
        FLAT: (
            "1/2 times -(sigma**2/(spike**2))",
            "square root of -2*(sigma**2/(spike**2))  ...  - (sigma**2/(spike**2)))",
            "-1 -> -1/2 in 1/(1 - (sigma**2/(spike**2)))",
        ),
    },
}
