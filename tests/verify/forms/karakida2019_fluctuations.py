"""Claims on fluctuating order parameters of Karakida, Akaho and Amari (2019): all of them are bare numbers."""

__all__ = ["WITHOUT_FORM"]

WITHOUT_FORM: dict[str, str] = {
    f"karakida2019/{name}": "a bare number: its rivals are the other numbers that it is told from"
    for name in (
        "forward-rate",
        "backward-rate",
        "gradient-independence",
        "gradient-independence-of-scatter",
        "lower-bound-growth",
        "upper-bound-growth",
    )
}
