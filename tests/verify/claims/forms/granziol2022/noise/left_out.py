"""What the claims on the scale of drawn noise cannot see, and why two of them have no closed form."""

from __future__ import annotations

from tests.verify.claims.mutation import ClosedForm

__all__ = ["FORMS", "UNSEEN", "WITHOUT_FORM"]


def _batches(eigenvalue, sigma, dim, batch_size, dataset_size):
    return sigma**2 * dim * (1 / batch_size - 1 / dataset_size) * (1 + 1 / dim) + eigenvalue**2 / dim


FORMS: dict[str, ClosedForm] = {
    "granziol2022/noise-of-batches-second-moment": ClosedForm(_batches),
    "granziol2022/noise-of-nested-samples-second-moment": ClosedForm(
        lambda eigenvalue, sigma, dim, samples: sigma**2 * (dim + 1) / samples + eigenvalue**2 / dim
    ),
    "granziol2022/uneven-rows-second-moment": ClosedForm(lambda sigma: sigma**2),
    "granziol2022/few-entries-second-moment": ClosedForm(lambda sigma: sigma**2),
    "granziol2022/few-projections-second-moment": ClosedForm(
        lambda rank, variance, dim, batch_size: dim * rank * variance**2 / batch_size
    ),
}

BY_LAW = (
    "that of noise-of-batches-second-moment, with a diagonal by the law of the entries: 0.5 % of the whole"
)

WITHOUT_FORM: dict[str, str] = {
    "granziol2022/spiked-noise-second-moment": BY_LAW,
    "granziol2022/noise-of-any-law-second-moment": BY_LAW,
    **{
        f"granziol2022/{name}": "a single parameter of the point, the mean of the law"
        for name in (
            f"{drawn}-{read}" for drawn in ("wishart", "batch", "data-set") for read in ("along", "diagonal")
        )
    },
}

DIAGONAL = "the diagonal of Gaussian noise is less than 1 % of the whole"
SPIKE = "the spike is beside the noise as it is one row of many: what is judged is the noise"

UNSEEN: dict[str, dict[str, tuple[str, ...]]] = {
    "granziol2022/noise-of-batches-second-moment": {
        DIAGONAL: (
            "without factor 1 + 1/dim of dim*sigma**2*(1 + 1/dim)* ... aset_size + 1/batch_size)",
            "-1 times 1/dim",
            "2 times 1/dim",
            "1/2 times 1/dim",
            "square root of 1 + 1/dim",
            "inverse of 1 + 1/dim",
            "square of 1 + 1/dim",
            "-1 -> -2 in 1/dim",
        ),
    },
    "granziol2022/noise-of-nested-samples-second-moment": {
        DIAGONAL: ("without term 1", "-1 times 1", "2 times 1", "1/2 times 1"),
        SPIKE: ("1/2 times eigenvalue**2/dim",),
    },
}
