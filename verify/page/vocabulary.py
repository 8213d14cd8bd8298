"""Words for what the records name: verdicts, kinds, and the measured inputs of predictions."""

from __future__ import annotations

from collections.abc import Mapping

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
    Kind.GROUPS: "a statistic of groups of replicates, such as a variance, averaged over the groups",
    Kind.DISTRIBUTION: "the largest distance of the distribution functions, measured and predicted",
    Kind.SETTLED: "the mean at the larger size, once a smaller one shows that it no longer moves",
    Kind.LIMIT: "the mean extrapolated to infinite size by declared powers of the size",
    Kind.EXPONENT: "d log mean / d log size, extrapolated to infinite size by declared powers of the size",
    "identity": "two independent routes to one quantity, without statistics",
    "exact property": "a statement without statistics, at parameters that hypothesis draws",
    "property": "the mean over replicates, at parameters that hypothesis draws",
    "check": "crashed before anything was judged",
}
"""Judged quantity in each kind of row."""

NAMES: Mapping[str, str] = {
    "below": "forward variance of the layer below",
    "diagonal_fourth": "sum of the squared diagonal elements of the square",
    "diagonal_square": "sum of the squared diagonal elements",
    "excess_g": "excess of positive curvature of G",
    "fourth": "trace of the fourth power",
    "g_frobenius": "Frobenius norm of G",
    "g_norm": "spectral norm of G",
    "h_frobenius": "Frobenius norm of the H-term",
    "h_norm": "spectral norm of the H-term",
    "square": "squared Frobenius norm",
    "vysogorets2024/frobenius-law/ratio": "Frobenius norm of the H-term over that of G",
    "vysogorets2024/hutchinson-norm/length": "mean length of the images",
    "karakida2019/known_largest": "Rayleigh quotient given the outputs",
    "karakida2019/known_mean": "trace given the outputs",
    "karakida2019/layer-norm-largest/lower": "lower bound given the outputs",
    "karakida2019/layer-norm-largest/root": "largest eigenvalue given the outputs",
    "karakida2019/layer-norm-largest/upper": "upper bound given the outputs",
    "karakida2019/own": "quotient of the softmax within samples",
    "karakida2019/q1": "Q_1",
    "karakida2019/q2": "Q_2",
    "karakida2019/shared": "quotient of the softmax over all pairs of samples",
    "karakida2019/spread": "one less the mean sum of squared probabilities",
}
"""Words by name, or by paper or claim and name if others use the name for something else."""


def inputs_named(claim: str, values: Mapping[str, float]) -> dict[str, float]:
    """Measured inputs of a claim, by what they are.

    >>> inputs_named("karakida2019/batch-normalised-mean", {"q1": 3.6})
    {'Q_1': 3.6}
    >>> inputs_named("ours/x", {"g_norm": 2.0, "own": 1.0})
    {'spectral norm of G': 2.0, 'own': 1.0}
    """
    paper = claim.partition("/")[0]

    def words(name: str) -> str:
        keys = (f"{claim}/{name}", f"{paper}/{name}", name)
        return next((NAMES[key] for key in keys if key in NAMES), name.replace("_", " "))

    return {words(name): value for name, value in values.items()}
