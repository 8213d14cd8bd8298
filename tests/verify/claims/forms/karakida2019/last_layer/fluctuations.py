"""Claims on fluctuating order parameters of Karakida, Akaho and Amari (2019): all of them are bare numbers."""

from tests.verify.claims.closed_forms import A_NUMBER

__all__ = ["WITHOUT_FORM"]

WITHOUT_FORM: dict[str, str] = {
    f"karakida2019/{name}": A_NUMBER
    for name in (
        "forward-rate",
        "backward-rate",
        "gradient-independence",
        "gradient-independence-of-scatter",
        "lower-bound-growth",
        "upper-bound-growth",
    )
}
