"""Experiments, and the kinds of claims that are judged on them.

| record | judged by |
|---|---|
| `Claim` | replicates of an `Experiment`, in one of the ways that `Kind` lists |
| `Identity` | two independent routes to one deterministic quantity; digits of agreement, no statistics |
| `ExactProperty` | an inequality or identity over parameters drawn by hypothesis |
| `StatisticalProperty` | a `Claim` at every set of parameters drawn by hypothesis |

`verify.model.observation` has what is reported and never judged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulate.monte_carlo import Block, Point
from verify.model.domains import Domain
from verify.model.kinds import (
    ABSOLUTE,
    BOUNDS_EVERY_REPLICATE,
    KNOWN,
    LOGARITHMS,
    MODEL_BASED,
    ONE_SIDED,
    OURS,
    Kind,
    NoTheory,
    Passage,
    Standing,
    Tier,
    Verdict,
    as_stated,
    misprint,
    out_of_scope,
    raised,
)

__all__ = [
    "ABSOLUTE",
    "ALPHA",
    "BOUNDS_EVERY_REPLICATE",
    "KNOWN",
    "LOGARITHMS",
    "MODEL_BASED",
    "ONE_SIDED",
    "OURS",
    "AnyClaim",
    "Arrays",
    "Claim",
    "ExactProperty",
    "Experiment",
    "Identity",
    "Kind",
    "NoTheory",
    "Passage",
    "Routes",
    "Standing",
    "StatisticalProperty",
    "Tier",
    "Verdict",
    "as_stated",
    "misprint",
    "out_of_scope",
    "raised",
    "real_or_nan",
]

FAMILY_ERROR = 1e-3
"""Chance that any directly judged claim of the whole registry is ever judged wrongly."""

FAMILY_SIZE = 1024
"""Intervals the registry may hold: the error of one is fixed, whatever is selected for a run."""

ALPHA = FAMILY_ERROR / FAMILY_SIZE

Arrays = Mapping[str, Any]
"""Scores of a block, or routes of an identity, by name."""

Simulator = Callable[[Block, Point], Arrays]
Prediction = Callable[[Any], Any]
"""Function of a `Point`; for a claim with measured inputs, of the point joined with the measured scores.

Returns a number; for a distribution, the distribution function.
"""

Routes = Callable[[np.random.Generator, Point], Arrays]
"""Returns what is measured, the theory, then rivals."""

Typical = float | Callable[[Point], float]
"""The typical value of a measured input, at every point or at a given one."""


def real_or_nan(formula: Prediction, at: Any) -> NDArray[np.float64]:
    """A formula's value, one number or one per replicate; NaN where it is no real number."""
    # Outside of its range a formula may return a complex number.
    value = np.asarray(formula(at))
    return np.where(np.isreal(value), np.real(value), np.nan).astype(np.float64)


@lru_cache(maxsize=1 << 14)
def value_at(formula: Prediction, at: Point) -> float:
    """A formula's value at a point; kept until the next session, for every look, rival and curve asks for it anew."""
    return float(real_or_nan(formula, at))


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Simulation that draws replicates and returns named scores; any number of claims read them.

    Attributes
    ----------
    id
        Stable: random streams are filed under it.
    replicate
        What one replicate is, in words: "one noise matrix", "one network with its inputs".
    simulate
        A function at module level (workers find it by name) from a block and a point to scores.
    points
        The parameters of its runs, generic enough to keep rival formulas apart.
    budget
        Most replicates per point in the default tier.
    seconds
        Measured cost of one point on one core, for the progress bar and for nothing else.
    tier
        The lowest tier that runs it: the smoke tier if it is cheap, the full tier if it is expensive.
    data
        The real data set behind it, if any: such claims have a section of their own.
    needs
        The stored size (channels, height, width) of its images, if a statement is on such images alone: without
        ``--data``, or with images of another size, its claims are not run.
    special
        Why a point may hold one of the values that hide errors (0, 1/2, 1, 2, equal sizes), if one does.
    on_host
        The part that is computed on the CPU whatever the device of the run, if it costs much; draws aside.
    single
        The part in single precision, if any. Its scores may then differ between devices by more than the rounding of
        double precision, but by no more than the `numerical` error that a claim declares.
    rounding
        Scores in double precision that rounding on another machine still moves by more than one part in a million, each
        with the largest such part: infinite where rounding decides the result. `benchmarks.pretend --rounding` finds
        them.
    """

    id: str
    replicate: str
    simulate: Simulator
    points: tuple[Point, ...]
    budget: int = 4096
    seconds: float = 1.0
    tier: Tier = Tier.DEFAULT
    data: str = ""
    needs: tuple[int, int, int] | None = None
    special: str = ""
    on_host: str = ""
    single: str = ""
    rounding: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True, kw_only=True)
class _Stated:
    """Fields that every judged statement has.

    Attributes
    ----------
    id
        ``paper/name``, stable: reports and plots are filed under it.
    entries
        The entries of the paper's page in docs/claims that it judges.
    statement
        The statement in LaTeX, without dollar signs.
    rivals
        Formulas a careless author would have written; each must lie two margins away somewhere. Those of an identity
        are routes.
    expected
        The verdict on the theory; any other is a surprise, which fails the test. Undecided is a surprise too, unless
        `may_be_undecided`, `verify.running.rows` or a lowered budget excuses it.
    finding
        For a statement that disagrees as our copy reads: what is wrong with it, in a sentence.
    passage
        The paper's own words, and how the form as our copy reads (if there is none, the claim itself) relates to them.
        None: as the paper states it, without a qualifier.
    no_theory
        Why it reads no function of theory, if it does not.
    pilot
        The part of its bound or margin that was set after pilot draws, in a sentence: the page says it in place of
        "declared before the run".
    may_be_undecided
        Why it may end undecided at its own budget, in a sentence; where empty, an undecided end fails the run.
    reads
        The formula as our copy of the paper reads, in LaTeX, next to the corrected one in `statement`.
    says
        The statement in a sentence without formulas, for readers who do not know its symbols.
    symbols
        Letters of its statement, as LaTeX, that mean something else than its paper lists, or that it does not list.
    paper
        The short name of its paper, by its id.
    """

    id: str
    entries: tuple[str, ...]
    source: str
    statement: str
    expected: Verdict = Verdict.AGREES
    finding: str = ""
    passage: Passage | None = None
    no_theory: NoTheory | None = None
    pilot: str = ""
    may_be_undecided: str = ""
    reads: str = ""
    says: str = ""
    symbols: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)
    paper: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "paper", self.id.partition("/")[0])


@dataclass(frozen=True, kw_only=True)
class Claim(_Stated):
    """Prediction for a mean, limit or other `Kind` of number that replicates of a score estimate.

    Attributes
    ----------
    score
        Name of the score; for a ratio the names of numerator and denominator.
    predict
        The theory's value at a point.
    margin
        Half-width of the band in which the theory counts as right, declared before the run:
        a fraction of the prediction, or in its own unit if not `relative`. For a distribution a distance of
        distribution functions, for an inequality on every replicate the share of violations that would be seen;
        both are absolute.
    along
        The parameter that runs along the components of a score that is a vector: a tuple in the point, one value
        for each component. The claim is judged at each of them, `predict` reading the one value in place of the
        tuple; where the kind spans sizes these are the sizes, judged together.
    terms
        LIMIT and EXPONENT: powers p, p' of the corrections a size^-p + b size^-p'. Two at least for a limit: with
        the leading one alone the extrapolation is off by something that no number of replicates shrinks.
    offset
        EXPONENT: the limit of the score; the exponent is then that of the distance from this limit, the order of the
        correction.
    order
        LIMIT: the claim on the exponent with which the score approaches the limit, on the same experiment. The limit
        stays undecided unless that claim agrees.
    printed
        The formula as our copy of the paper reads, or the name of the score it describes instead:
        judged next to `predict` on the same replicates, expected to disagree.
    inputs
        For predictions from measured inputs (a variance, an eigenvalue measured on the same replicate): names of
        these scores with typical values. `predict`, `printed` and `rivals` then read them like parameters and the
        mean of score - predict, relative to predict if the margin is `relative`, is judged against 0; the typical
        values only serve to tell rivals apart before the run, in any unit that all of them share, and are not drawn.
    numerical
        Bound on the rounding or truncation error of a score, added to the half-width.
    axis
        The parameter on the horizontal axis of the agreement plot. Lines run along it, through the prediction at every
        point; with `inputs` there are only the points, each with its own prediction.
    quantity
        Label of the vertical axis, with its unit.
    logarithm
        The base, "2", "e" or "10", where score and prediction are logarithms: their differences are then given as
        factors. Empty for plain numbers, and for exponents, which are slopes.
    """

    experiment: Experiment
    score: str | tuple[str, str]
    predict: Prediction
    margin: float
    margin_reason: str
    rivals: Mapping[str, Prediction] = field(default_factory=dict[str, Prediction])
    relative: bool = True
    kind: Kind = Kind.MEAN
    along: str = ""
    terms: tuple[float, ...] = ()
    offset: Prediction | None = None
    order: Claim | None = None
    printed: Prediction | str | None = None
    inputs: Mapping[str, Typical] = field(default_factory=dict[str, Typical])
    numerical: float = 0.0
    axis: str = ""
    quantity: str = ""
    logarithm: str = ""

    def prediction(self, point: Point, formula: Prediction | None = None) -> float:
        """A formula's value (the theory's by default) at a point, measured inputs at their typical values."""
        typical = {name: v(point) if callable(v) else v for name, v in self.inputs.items()}
        return value_at(formula or self.predict, point | typical if typical else point)

    def margin_at(self, point: Point) -> float:
        """The margin in the unit of the prediction."""
        return self.margin * abs(self.prediction(point)) if self.relative else self.margin


@dataclass(frozen=True, kw_only=True)
class Identity(_Stated):
    """Two independent routes to one deterministic quantity.

    Attributes
    ----------
    routes
        A function at module level from a generator and a point to arrays by name: what is measured, the theory, then
        the rivals, at least one, each of which must differ from what is measured by more than twice the tolerance.
        Agreement is the largest difference relative to the largest entry.
    tolerance
        Relative difference up to which the routes agree.
    printed
        Name of the route that is the formula as our copy reads, if there is one; it is no rival.
    """

    routes: Routes
    points: tuple[Point, ...]
    tolerance: float
    tolerance_reason: str
    printed: str = ""
    seconds: float = 1.0
    tier: Tier = Tier.SMOKE
    data: str = ""
    quantity: str = ""


@dataclass(frozen=True, kw_only=True)
class ExactProperty(_Stated):
    """A statement that must hold at every point hypothesis can find.

    Attributes
    ----------
    domain
        The range of each parameter, by name.
    violation
        Amount by which the statement fails at a point (0 where it holds); rounding is judged by `tolerance`.
    examples
        Points always tried first; on at least one of them each rival must fail by twice the tolerance.
    rivals
        Statements a careless author would have made, as functions like `violation`.
    failed
        Points that failed once, as a report prints them: judged in addition and listed apart; no verdict rests on them.
    seconds
        Measured cost on one core of ten drawn points and of the examples. If each takes less than 10 ms, a hundred are
        drawn.
    """

    domain: Domain
    violation: Callable[[np.random.Generator, Point], float]
    examples: tuple[Point, ...]
    tolerance: float
    tolerance_reason: str
    rivals: Mapping[str, Callable[[np.random.Generator, Point], float]]
    failed: tuple[Point, ...] = ()
    seconds: float = 1.0
    tier: Tier = Tier.SMOKE
    data: str = ""


@dataclass(frozen=True, kw_only=True)
class StatisticalProperty(_Stated):
    """A prediction for the mean of a score, at every point hypothesis draws.

    The fields are those of `Claim` and `Experiment`; `examples` are always tried first, `failed` and `seconds` are as
    for `ExactProperty`.
    """

    domain: Domain
    simulate: Simulator
    replicate: str
    examples: tuple[Point, ...]
    score: str
    predict: Prediction
    margin: float
    margin_reason: str
    rivals: Mapping[str, Prediction]
    failed: tuple[Point, ...] = ()
    relative: bool = True
    budget: int = 2048
    seconds: float = 1.0
    tier: Tier = Tier.DEFAULT
    data: str = ""
    quantity: str = ""
    on_host: str = ""

    def claim_at(self, point: Point) -> Claim:
        """The claim that judges one example."""
        experiment = Experiment(
            id=self.id, replicate=self.replicate, simulate=self.simulate, points=(point,), budget=self.budget
        )
        return Claim(
            id=self.id,
            entries=self.entries,
            source=self.source,
            statement=self.statement,
            experiment=experiment,
            score=self.score,
            predict=self.predict,
            margin=self.margin,
            margin_reason=self.margin_reason,
            rivals=self.rivals,
            relative=self.relative,
        )


AnyClaim = Claim | Identity | ExactProperty | StatisticalProperty
