"""Closed forms of `verify.claims.karakida2019_training`: none, its predictions are bare numbers."""

__all__ = ["WITHOUT_FORM"]

A_NUMBER = "a bare number: its rivals are the other numbers that it is told from"

WITHOUT_FORM: dict[str, str] = dict.fromkeys(
    (
        "karakida2019/line",
        "karakida2019/line-order",
        "karakida2019/subtracted-growth-at-fixed-samples",
        "karakida2019/recovery-above-the-limit",
        "karakida2019/growth-above-the-limit",
        "karakida2019/explosion-below-the-line",
        "karakida2019/recovery-with-subtraction",
    ),
    A_NUMBER,
)
