"""Closed forms of `verify.claims.vysogorets2024_unrelated`: it has none."""

__all__ = ["WITHOUT_FORM"]

BOUND, NONE = "a declared bound, no formula", "a cosine that vanishes, no formula"

WITHOUT_FORM = {
    **{
        f"vysogorets2024/unrelated-gradients{name}": BOUND
        for name in ("", "-unbalanced", "-in-colour", "-unbalanced-in-colour")
    },
    **{f"vysogorets2024/unrelated-gradients-uniform{name}": NONE for name in ("", "-in-colour")},
}
