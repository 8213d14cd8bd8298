"""Vocabulary of the project: verdicts, tiers, relations of a statement to its paper, and kinds of claims."""

from __future__ import annotations

import math
from enum import StrEnum
from functools import partial
from typing import NamedTuple


class Verdict(StrEnum):
    """Verdict of the interval on the theory; *broken*: the check itself crashed or cannot fail."""

    AGREES = "agrees"
    DISAGREES = "disagrees"
    UNDECIDED = "undecided"
    BROKEN = "broken"


class Standing(StrEnum):
    """Relation of a judged statement to what the paper says.

    | standing | what is judged |
    |---|---|
    | AS_STATED | the paper's own wording, at the accuracy it claims |
    | MISPRINT | a formula as our copy reads, which the paper's own derivation or limits contradict |
    | CORRECTED | the counterpart of a misprint: the formula that the paper's derivation gives |
    | OUTSIDE | a formula of the paper where a condition that it states or implies does not hold: no error of it |
    | KNOWN | what the paper does not say and others have shown or reported: its source names them |
    | OURS | what the paper does not say: a law of our own, or a sharper or weaker reading than its wording |
    """

    AS_STATED = "as strong as stated"
    MISPRINT = "misprint"
    CORRECTED = "corrected"
    OUTSIDE = "outside its range"
    KNOWN = "known elsewhere"
    OURS = "ours"


class Passage(NamedTuple):
    """Relation of a judged reading to the paper, and the paper's own words on when or how closely it holds.

    Attributes
    ----------
    standing
        Any but CORRECTED, which follows from MISPRINT. Of a claim without a form as our copy reads, such as one that
        has no meaning that could be computed, MISPRINT says that it judges the corrected one.
    words
        A few of them, quoted as our copy has them.
    place
        Their place: "Section 3.2", "caption of Figure 2".
    slip
        Whether a slip of the text conversion is likely.
    root
        The order of the root that leads from what is measured to the quantity of the paper: 2 where the paper has a
        norm and its square is measured.
    """

    standing: Standing
    words: str = ""
    place: str = ""
    slip: bool = False
    root: int = 1


KNOWN = Passage(Standing.KNOWN)
"""Passage of a claim on what the paper does not say, and others do."""

OURS = Passage(Standing.OURS)
"""Passage of a claim on what neither the paper nor, as far as we know, anybody else says."""

as_stated, misprint, out_of_scope = (
    partial(Passage, standing) for standing in (Standing.AS_STATED, Standing.MISPRINT, Standing.OUTSIDE)
)


class NoTheory(StrEnum):
    """Reason why a claim reads no function of theory. A formula typed next to the claim is no reason."""

    MEASURED = "an identity or inequality between measured quantities"
    CONSTANT = "a constant of the statement itself"


class Tier(StrEnum):
    """Extent of a run: cheap checks, all but expensive ones, or everything with up to eight times the replicates."""

    SMOKE = "smoke"
    DEFAULT = "default"
    FULL = "full"


class Kind(StrEnum):
    """Way in which replicates become an interval.

    | kind | what is judged |
    |---|---|
    | MEAN, RATIO, PROPORTION | E[A]; E[A]/E[B]; the probability of an event |
    | AT_LEAST, AT_MOST | one side of the interval of a mean |
    | NEVER_BELOW, NEVER_ABOVE | an inequality on every replicate: one violation is enough |
    | DISTRIBUTION | the largest distance of two distribution functions |
    | LIMIT | a mean at infinite size, extrapolated |
    | EXPONENT | d log E / d log size at infinite size, extrapolated |

    LIMIT and EXPONENT are *model-based*: they rest on the declared powers of the correction.
    """

    MEAN = "mean"
    RATIO = "ratio of means"
    PROPORTION = "probability"
    AT_LEAST = "lower bound on a mean"
    AT_MOST = "upper bound on a mean"
    NEVER_BELOW = "lower bound on every replicate"
    NEVER_ABOVE = "upper bound on every replicate"
    DISTRIBUTION = "distribution"
    LIMIT = "limit of infinite size"
    EXPONENT = "scaling exponent"


MODEL_BASED = (Kind.LIMIT, Kind.EXPONENT)
"""Kinds whose verdicts rest on a size model, outside of the promise on the chance of a wrong one.

One replicate holds the score at several sizes, which are judged together.
"""

ONE_SIDED = (Kind.AT_LEAST, Kind.AT_MOST)
"""Kinds for which only one edge of the band counts."""

BOUNDS_EVERY_REPLICATE = (Kind.NEVER_BELOW, Kind.NEVER_ABOVE)
"""Kinds that one violation refutes; the prediction is the share of violations, 0, and the margin is in it too."""

ABSOLUTE = (*BOUNDS_EVERY_REPLICATE, Kind.DISTRIBUTION)
"""Kinds that judge a share or a distance, whose prediction is 0: the margin is in probability."""

LOGARITHMS = {"2": 2.0, "e": math.e, "10": 10.0}
"""Bases of the logarithms that a claim may judge."""


def raised(logarithm: str, value: float) -> float:
    """The number whose logarithm to this base is `value`; infinite where it is too large for a float.

    >>> raised("2", 3.0), raised("10", -1.0), raised("10", 400.0)
    (8.0, 0.1, inf)
    """
    try:
        return float(LOGARITHMS[logarithm] ** value)
    except OverflowError:
        return math.inf
