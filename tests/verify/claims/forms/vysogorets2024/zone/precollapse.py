"""Statistical claims of `verify.claims.vysogorets2024.zone.collapsed` and `vysogorets2024_precollapse`."""

__all__ = ["WITHOUT_FORM"]

ALWAYS = "an event that occurs always"
BOUND = "a declared bound, no formula"

WITHOUT_FORM = {
    "vysogorets2024/excess-of-g-at-collapse": ALWAYS,
    "vysogorets2024/excess-of-g-never-below-one": "the bound is 1 for every semidefinite matrix",
    "vysogorets2024/excess-of-h-after-collapse": "zero, no formula",
    "vysogorets2024/least-confident-image": ALWAYS,
    "vysogorets2024/least-confident-share": ALWAYS,
    "vysogorets2024/not-another-image": BOUND,
    "vysogorets2024/share-grows-with-scale": BOUND,
    "vysogorets2024/excess-of-the-block": ALWAYS,
}
