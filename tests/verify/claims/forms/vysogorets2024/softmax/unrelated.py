"""Closed forms of `verify.claims.vysogorets2024.softmax.unrelated`: it has none."""

__all__ = ["WITHOUT_FORM"]

BOUND, NONE = "a declared bound, no formula", "a cosine that vanishes, no formula"

WITHOUT_FORM = {
    **{
        f"vysogorets2024/{name}{prior}": BOUND
        for name in ("unrelated-gradients", "gradients-in-colour")
        for prior in ("", "-unbalanced")
    },
    "vysogorets2024/unrelated-gradients-uniform": NONE,
    "vysogorets2024/gradients-in-colour-uniform": NONE,
}
