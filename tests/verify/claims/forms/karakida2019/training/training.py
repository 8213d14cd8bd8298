"""Closed forms of `verify.claims.karakida2019.training.training`."""

__all__ = ["WITHOUT_FORM"]

WITHOUT_FORM: dict[str, str] = {
    "karakida2019/subtracted-growth-at-fixed-samples": (
        "a power of the width, read off eq. (17), whose form is mean-of-nonzero"
    ),
}
