"""Words for what the records name: verdicts and kinds."""

from __future__ import annotations

from verify.model import Kind

SYMBOLS = {"agrees": "●", "disagrees": "◆", "undecided": "○", "broken": "✕"}
"""A shape for each verdict, so that nothing hangs on colour."""

EXACT = ("identity", "exact property")
"""Kinds judged without statistics."""

KINDS: dict[str, str] = {
    Kind.MEAN: "the mean over replicates",
    Kind.RATIO: "the ratio of two means, both over the same replicates",
    Kind.PROPORTION: "the share of replicates in which an event happens",
    Kind.AT_LEAST: "the mean must not lie below the bound; only that side of the interval counts",
    Kind.AT_MOST: "the mean must not lie above the bound; only that side of the interval counts",
    Kind.NEVER_BELOW: "no replicate may lie below the bound; one that does is enough to refute it",
    Kind.NEVER_ABOVE: "no replicate may lie above the bound; one that does is enough to refute it",
    Kind.DISTRIBUTION: "the largest distance of the distribution functions, measured and predicted",
    Kind.LIMIT: "the mean extrapolated to infinite size by declared powers of the size",
    Kind.EXPONENT: "d log mean / d log size, extrapolated to infinite size by declared powers of the size",
    "identity": "two independent routes to one quantity, without statistics",
    "exact property": "a statement without statistics, at parameters that hypothesis draws",
    "property": "the mean over replicates, at parameters that hypothesis draws",
    "check": "crashed before anything was judged",
}
"""Judged quantity in each kind of row."""
