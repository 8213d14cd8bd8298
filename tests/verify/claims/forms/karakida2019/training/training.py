"""Closed forms of `verify.claims.karakida2019.training.training`: none, its predictions are bare numbers."""

from tests.verify.claims.closed_forms import A_NUMBER

__all__ = ["WITHOUT_FORM"]

WITHOUT_FORM: dict[str, str] = dict.fromkeys(
    (
        "karakida2019/line",
        "karakida2019/line-order",
        "karakida2019/subtracted-growth-at-fixed-samples",
        "karakida2019/limit-at-a-thousand-samples",
        "karakida2019/recovery-above-the-limit",
        "karakida2019/growth-above-the-limit",
        "karakida2019/explosion-below-the-line",
        "karakida2019/recovery-with-subtraction",
    ),
    A_NUMBER,
)
