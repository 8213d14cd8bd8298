"""Claims of `verify.claims.vysogorets2024.softmax.rays` on shares of pairs, which have no closed form."""

__all__ = ["WITHOUT_FORM"]

WITHOUT_FORM = {
    "vysogorets2024/order-by-entropy": "an integral over pairs of distributions, known by its value alone",
}
