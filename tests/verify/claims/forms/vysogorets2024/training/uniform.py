"""Closed forms of `verify.claims.vysogorets2024.training.uniform`."""

__all__ = ["WITHOUT_FORM"]

WITHOUT_FORM = {
    "vysogorets2024/norm-at-first": "one half, by symmetry",
    "vysogorets2024/norm-turns": "a sign, no formula",
    "vysogorets2024/alignment-grows": "a sign, no formula",
}
