"""Comparison of repeated draws: a replay with the recorded run, and blocks of a device with those of the CPU.

On one device all that a verdict rests on is the same to the last bit, between two devices but for rounding.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from simulate.monte_carlo import run_block
from verify.judging.intervals import multiplier, widened
from verify.model import ABSOLUTE, Claim
from verify.results import Observed, PointOutcome, Results, Row, RunRecord, canonical, edited
from verify.running.settings import COUNTED, Settings

if TYPE_CHECKING:
    from verify.running.pump import Draws

INTERRUPTED = " (interrupted)"
"""Ending of the selection of a run that was stopped."""

_SETTINGS = ("seed", "tier", "draws", "data", "replicates", "alpha", "family_error")
_ROW = ("expected", "surprise", "reading", "standing", "kind", "model_based", "relative", "margin")
_FIRST = ("measured", "replicates", "predicted", "margin", "verdict")
_POINT = (*_FIRST, *(f.name for f in fields(PointOutcome) if f.name not in _FIRST))
_TABLE = ("replicates", "along", "columns", "groups")
"""Fields that are compared, the most informative first: one difference of a row is reported."""

_SHOWN = 100
"""Most characters of a value in a message."""

CLOSE = 1e-6
"""Relative difference of numbers that two devices may leave: rounding in double precision, through decompositions.

Where an experiment is in single precision what its claim allows for, if that is more.
"""

DERIVED = 100
"""Factor by which the ends of an interval and a skewness may differ more than a mean."""

SHARE = 0.05
"""Share of the blocks of a run on a device that are drawn again on the CPU."""

SECONDS = 60.0
"""Most seconds for drawing blocks again; a block that would take longer is not begun."""

NONE: Mapping[str, float] = {}

_Made = TypeVar("_Made")


def read_by(claim: Claim) -> dict[str, float]:
    """The scores that a claim reads, each with the numerical error of it that is known, 0 if none is.

    Of a score, in its own unit and at every point: that of a measured mean is in the unit of the margin.
    """
    own = (claim.score,) if isinstance(claim.score, str) else claim.score
    printed = (claim.printed,) if isinstance(claim.printed, str) else ()
    return dict.fromkeys(claim.inputs, 0.0) | dict.fromkeys((*own, *printed), claim.numerical)


# --- a repeated run beside the recorded one


def replay_differences(
    recorded: Results,
    repeated: Results,
    asked: Collection[str] | None = None,
    left_out: Collection[str] = (),
    single: Collection[str] = (),
    rounding: Mapping[str, float] = NONE,
) -> list[str]:
    """Return a line per difference of a repeated run from the recorded one; on another device beyond rounding.

    Compared are the settings, the scores by their hash, and of every row the verdicts, predictions, margins, measured
    values and all else that its points hold, and the lines drawn through them, but for rounding; of observations the
    tables. What is there in one of the two runs only is a difference too. What was not asked for, or not reached before
    an interruption, is not compared.

    Parameters
    ----------
    recorded
        As its file has it; that it was edited is a difference.
    repeated
        The new run.
    asked
        Ids of the claims and observations that were to be repeated; all recorded ones if None.
    left_out
        Ids of claims and observations that this version does not have or this machine cannot draw: all others are
        compared as if these had not been recorded. Of an experiment that such a claim read the scores are not compared
        by their hash, which covers what only that claim may have read.
    single
        Ids of experiments and observations in single precision: between two devices, of claims on them that know no
        numerical error the verdicts alone are compared, and of such observations that there is a table.
    rounding
        By which part, if by more than others, rounding moves what claims read, by the id of the claim: where that is
        infinite verdicts alone are compared.
    """
    known = set(names_in(recorded)).difference(left_out)
    names = set(known if asked is None else asked)
    if repeated.suite.selection.endswith(INTERRUPTED):
        names.intersection_update(names_in(repeated))
    whole = names >= known and not recorded.suite.selection.endswith(INTERRUPTED)
    close = CLOSE if recorded.suite.device != repeated.suite.device else 0.0
    # a claim that is gone may have asked for more replicates, and for scores that nobody else reads
    apart = {*left_out, *(row.experiment for row in recorded.rows if row.claim in left_out)}
    both = (recorded, repeated)
    runs = [
        {f"{r.experiment} at {canonical(r.parameters)}": r for r in made.runs if r.experiment not in apart}
        for made in both
    ]
    # where fewer claims are repeated, the others may have asked for more of the same replicates
    if not whole:
        old, new = ({name: run.replicates for name, run in made.items()} for made in runs)
        runs = [{name: run for name, run in made.items() if old.get(name) == new.get(name)} for made in runs]
    rows = [{row.id: row for row in made.rows if row.claim in names} for made in both]
    planted = [{row.id: row for row in made.planted} for made in both]
    tables = [{table.id: table for table in made.observations if table.id in names} for made in both]
    of_row = partial(_row_change, close=close, single=single)
    settings = ((n, _change(*(getattr(made.suite, n) for made in both))) for n in _SETTINGS)
    return [
        *(["the results file was edited after its run (its sha256 does not match)"] * edited(recorded)),
        *(f"{name} {change}" for name, change in settings if change),
        *_differences(*runs, differ=partial(_run_change, hashed=not close)),
        *_differences(*rows, differ=partial(of_row, rounding=rounding)),
        *_differences(*planted, differ=partial(of_row, rounding=NONE)),
        *_differences(*tables, differ=partial(_table_change, close=close, single=single)),
    ]


def run_differences(recorded: Results, now: Results) -> list[str]:
    """Return a line per row of which two runs differ in the verdict, and per row or table that one of them lacks."""
    verdicts = (
        {row.id: row.verdict for row in made.rows} | {table.id: "observed" for table in made.observations}
        for made in (recorded, now)
    )
    return list(_differences(*verdicts, differ=_change))


def largest_change(recorded: Results, now: Results) -> str:
    """Return the largest change of an estimate between two runs in words.

    It is in standard errors of the difference of two independent estimates; runs from one seed share their replicates.
    """
    earlier = _estimates(recorded)
    changes = [
        (abs(x - earlier[at][0]) / math.hypot(error, earlier[at][1]), *at)
        for at, (x, error) in _estimates(now).items()
        if at in earlier
    ]
    size, *place = max(changes, default=(0.0, "none"))
    return f"largest of {len(changes)} changes of estimates: {size:.2g} standard errors, {' at '.join(place)}"


def _estimates(made: Results) -> dict[tuple[str, str], tuple[float, float]]:
    """Return the measured values by row and point, with their standard errors."""
    alphas = {p.id: p.family_error / p.intervals_allowed for p in made.suite.papers if p.family_error}
    return {
        (row.id, canonical(point.parameters)): (point.measured, error)
        for row in made.rows
        for point in row.points
        # The interval of a distance or of a share of violations is no multiple of a standard error.
        if row.kind not in ABSOLUTE
        and 0 < (error := standard_error(point, alphas.get(row.paper, made.suite.alpha))) < math.inf
    }


def standard_error(point: PointOutcome, alpha: float) -> float:
    """Standard error of the measured value of a point, from its interval of error `alpha`.

    >>> from verify.judging.intervals import mean_interval
    >>> drawn = np.random.default_rng(1).gamma(9.0, size=256)
    >>> at = mean_interval(drawn, alpha=1e-6)
    >>> point = PointOutcome(parameters={}, verdict="agrees", predicted=9.0, margin=1.0, measured=at.estimate,
    ...     lower=at.lower, upper=at.upper, statistical=at.statistical, skewness=at.skewness, replicates=256)
    >>> bool(np.isclose(standard_error(point, 1e-6), drawn.std(ddof=1) / 16))
    True
    """
    n = max(point.replicates, 1)  # 0 where nothing is sampled: then the half-width is 0 too
    return point.statistical / widened(multiplier(n, alpha), n, point.skewness)


def names_in(made: Results) -> list[str]:
    """Ids of the claims and observations of a run."""
    return list(
        dict.fromkeys([*(row.claim for row in made.rows), *(table.id for table in made.observations)])
    )


def _run_change(recorded: RunRecord, again: RunRecord, *, hashed: bool) -> str:
    if recorded.replicates != again.replicates:
        return f"{recorded.replicates} replicates were recorded, now {again.replicates}"
    return f"{again.replicates} replicates, scores differ" * (hashed and recorded.sha256 != again.sha256)


def _differences(
    before: Mapping[str, _Made], now: Mapping[str, _Made], *, differ: Callable[[_Made, _Made], str]
) -> Iterator[str]:
    for name in dict.fromkeys((*before, *now)):
        if name in before and name in now:
            change = differ(before[name], now[name])
        else:
            change = "recorded, now missing" if name in before else "not recorded, now there"
        if change:
            yield f"{name}: {change}"


def _row_change(
    recorded: Row, again: Row, *, close: float, single: Collection[str], rounding: Mapping[str, float]
) -> str:
    left = rounding.get(recorded.claim, 0.0)
    loose = recorded.experiment in single or left == math.inf
    # On one device bits are compared, however much rounding the experiment declares.
    close = max(close, left) if close and not loose else close
    if recorded.verdict != again.verdict:
        return f"{recorded.verdict} was recorded, now {again.verdict}"
    if close and loose and not any(point.numerical for point in recorded.points):
        return ""  # a training moves with the last bit, by how much nobody knows
    if len(recorded.points) != len(again.points):
        return f"{len(recorded.points)} points were recorded, now {len(again.points)}"
    pairs = list(zip(recorded.points, again.points, strict=True))
    where = ", at point {}" if len(pairs) > 1 else ""
    for name in _POINT:
        for i, (one, other) in enumerate(pairs):
            change = _change(getattr(one, name), getattr(other, name), _tolerance(one, name, close))
            if change:
                return f"{name} {change}{where.format(i)}"
    return _field_change(recorded, again, _ROW, close)


def _tolerance(point: PointOutcome, name: str, close: float) -> float:
    """Return the relative difference allowed for a number of a point."""
    size = abs(point.measured or 0.0)
    # An experiment in single precision is further off than rounding in double precision, and says by how much.
    allowed = max(close, point.numerical / size) if close and size > 0 else close
    return allowed if name in _FIRST else DERIVED * allowed


def _field_change(recorded: Any, again: Any, names: Sequence[str], close: float) -> str:
    changes = ((name, _change(getattr(recorded, name), getattr(again, name), close)) for name in names)
    return next((f"{name} {change}" for name, change in changes if change), "")


def _table_change(recorded: Observed, again: Observed, *, close: float, single: Collection[str]) -> str:
    if bool(recorded.error) != bool(again.error):
        return "a table was recorded, now broken" if again.error else "broken was recorded, now a table"
    if close and recorded.id in single:
        return ""
    return "the table differs" if _field_change(recorded, again, _TABLE, close) else ""


def _change(recorded: Any, again: Any, close: float = 0.0) -> str:
    """Return the change of a value in words; empty if there is none."""
    # As text a NaN equals itself, and a tuple the list that a file has in its place.
    one, other = canonical(recorded), canonical(again)
    if one == other or (close and _close_values(json.loads(one), json.loads(other), close)):
        return ""
    one, other = (text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..." for text in (one, other))
    return f"{one} was recorded, now {other}"


def _close_values(one: Any, other: Any, close: float) -> bool:
    """Whether two values differ by numbers that are close alone."""
    if isinstance(one, int | float) and isinstance(other, int | float):  # a whole number has lost its point
        # The absolute part is for a zero, from which rounding noise has no finite relative difference.
        return math.isclose(one, other, rel_tol=close, abs_tol=close * close)
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return all(_close_values(a, b, close) for a, b in zip(one, other, strict=True))
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return all(_close_values(value, other[name], close) for name, value in one.items())
    return one == other


# --- blocks of a device beside those of the CPU


class Again(NamedTuple):
    """Blocks drawn again, of those asked for and of all that there were, and what differs, each by how much.

    `off` are differences of judged scores beyond what their claims allow for, and count against the run; `other` those
    of indicators, which flip where rounding decides, of experiments in single precision of which no claim knows by how
    much, and of all that is not judged. `failed` are blocks that the CPU could not draw, each with the reason.
    """

    drawn: int
    asked: int
    blocks: int
    off: dict[str, float]
    other: dict[str, float]
    failed: Mapping[str, str] = {}

    def line(self, device: str) -> str:
        """Return the result in one line; empty if there was nothing to draw.

        >>> Again(drawn=2, asked=3, blocks=60, off={}, other={"a/b, x": 0.5}).line("cuda")
        '2 of 60 blocks of cuda drawn again on the CPU (3 asked for): judged scores agree; a/b, x differs by 0.5'
        """
        if not self.asked:
            return ""
        short = f" ({self.asked} asked for)" * (self.drawn < self.asked)
        agree = "judged scores agree" if self.drawn else "nothing was compared"
        failed = [f"{name} could not be drawn there: {reason}" for name, reason in self.failed.items()]
        parts = [*([] if self.off else [agree]), *_in_words(self.off), *_in_words(self.other), *failed]
        where = f"{self.drawn} of {self.blocks} blocks of {device} drawn again on the CPU{short}"
        return f"{where}: {'; '.join(parts)}"

    def doubts(self, device: str) -> list[str]:
        """Return the differences that count against the run."""
        differences = "; ".join(_in_words(self.off))
        return [f"scores of {device} that the CPU does not reproduce: {differences}"] * bool(self.off)


def _in_words(found: Mapping[str, float]) -> list[str]:
    return [f"{name} differs by {gap:.2g}" for name, gap in found.items()]


def draw_again(
    runs: Sequence[Draws],
    settings: Settings,
    claims: Sequence[Claim],
    *,
    without: Collection[str] = (),
    share: float = SHARE,
    seconds: float = SECONDS,
) -> Again:
    """Draw a share of all blocks on the CPU, chosen by the seed of the run, from the numbers that the run drew from.

    A block that fails there is named, and an interrupt from the keyboard ends it: the run is over and has its report.

    Parameters
    ----------
    runs
        What was drawn.
    settings
        Of the run.
    claims
        Which read the scores, and say by how much these may differ. Where a claim does not know what single precision
        moves, it is not held to it.
    without
        Ids of what no CPU draws.
    share, seconds
        How many blocks, rounded up, and for how long: none is begun that took longer in the run than is left.
    """
    there = [run for run in runs if run.name not in without and not run.error]
    blocks = [(run, i) for run in there for i in range(run.blocks)]
    wanted = math.ceil(share * len(blocks))
    order = np.random.default_rng(settings.seed).permutation(len(blocks))[:wanted]
    experiments = {claim.experiment.id: claim.experiment for claim in claims}
    judged: dict[tuple[str, str], float] = {}
    for claim in claims:
        for score, known in read_by(claim).items():
            place = claim.experiment.id, score
            judged[place] = max(known, judged.get(place, 0.0))
    off: dict[str, float] = {}
    other: dict[str, float] = {}
    failed: dict[str, str] = {}
    end, drawn = time.monotonic() + seconds, 0
    try:
        for run, index in (blocks[place] for place in order.tolist()):
            # Skip this block and go on: a cheaper one may still fit.
            if time.monotonic() + run.seconds / run.blocks > end:
                continue
            try:
                scores = run_block(
                    run.simulate,
                    experiment=run.name,
                    point=run.point,
                    seed=settings.seed,
                    index=index,
                    device="cpu",
                    size=run.size,
                    counted=settings.drawn_by == COUNTED,
                ).scores
            # The host may lack the memory, for example: the run has its report all the same.
            except Exception as error:
                failed.setdefault(run.name, str(error).partition("\n")[0] or type(error).__name__)
                continue
            drawn += 1
            experiment = experiments.get(run.name)
            for score, here in scores.items():
                place = run.name, score
                difference, gap = _gap(here, run.scores[score][index * run.size : (index + 1) * run.size])
                known, left = judged.get(place), experiment.rounding.get(score, 0.0) if experiment else 0.0
                # Infinite rounding bounds nothing; `loose` below decides which list such a difference goes
                # to.
                if gap <= (left if CLOSE < left < math.inf else CLOSE) or difference <= (known or 0.0):
                    continue
                loose = left == math.inf or bool(experiment and experiment.single)
                # A claim on single precision that knows no numerical error is not held to one.
                held = known is not None and (known > 0 or not loose)
                # An indicator flips wherever rounding moves a number across its threshold.
                found = off if held and not np.isin(here, (0.0, 1.0)).all() else other
                found[", ".join(place)] = max(gap, found.get(", ".join(place), 0.0))
    except KeyboardInterrupt:
        # The run is over and has its report: an interrupt ends this comparison and keeps what was found.
        pass
    return Again(drawn, wanted, len(blocks), off, other, failed)


def _gap(here: NDArray[np.float64], there: NDArray[np.float64]) -> tuple[float, float]:
    """The largest difference, and that over the largest entry; none where both have no number, or the same infinity."""
    size = float(np.abs(here[np.isfinite(here)]).max(initial=0.0)) or 1.0
    with np.errstate(invalid="ignore"):
        apart = np.abs(here - there)
    # Two infinities subtract to NaN, and so does NaN from anything: infinitely far, unless both are the same.
    apart[np.isnan(apart)] = math.inf
    apart[(here == there) | (np.isnan(here) & np.isnan(there))] = 0.0
    largest = float(apart.max(initial=0.0))
    return largest, largest / size
