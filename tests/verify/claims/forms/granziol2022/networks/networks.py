"""Closed forms of `verify.claims.granziol2022.networks.networks` and of `granziol2022_typical_batches`."""

from tests.verify.claims.closed_forms import A_NUMBER

__all__ = ["WITHOUT_FORM"]

MEASURED = "the prediction is one measured score, in which the formula has read the noise of each network"

WITHOUT_FORM: dict[str, str] = {
    "granziol2022/broadening-of-networks": A_NUMBER,
    "granziol2022/theorem-4-on-networks": MEASURED,
    "granziol2022/theorem-7-on-networks": MEASURED,
    "granziol2022/theorem-4-at-128": MEASURED,
    "granziol2022/theorem-4-trained-at-128": MEASURED,
    "granziol2022/theorem-7-within-a-deviation": A_NUMBER,
    "granziol2022/theorem-4-trained-within-a-deviation": A_NUMBER,
    "granziol2022/theorem-7-fits-better": A_NUMBER,
    "beyond/own-directions": "the root of an equation in the statistics of all samples of a batch",
}
