"""Property claims: hypothesis explores the parameters, the engine judges every example.

Random streams are a hash of claim and drawn parameters, never a drawn value and never shared between examples:
hypothesis resets numpy's global generator before each example, so anything that read it would repeat one draw.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from simulate.monte_carlo import Point, fixture
from verify.judging.judge import exact_outcome
from verify.model import Claim, ExactProperty, StatisticalProperty, Verdict
from verify.model.domains import strategy
from verify.results import PointOutcome

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

SHRINKS = 32
"""Further examples tried to make a failing one simpler; each may cost a full set of replicates."""

CONTINUED = 4
"""A failing example is believed only after this many times the replicates of its stream."""

JudgeExample = Callable[[Claim, int | None, float], PointOutcome]
"""Judges a claim after so many replicates (None: stop when decided) with the error of one interval."""


class Explored(NamedTuple):
    """The verdicts at every example, the simplest failing one (if any), and the seconds taken.

    Attributes
    ----------
    again
        The verdicts at examples that failed once; not among the others.
    """

    outcomes: list[PointOutcome]
    failing: PointOutcome | None
    seconds: float
    again: Sequence[PointOutcome] = ()


class _CounterexampleError(Exception):
    """Tells hypothesis that an example disagrees."""


def explore_exact(claim: ExactProperty, seed: int, max_examples: int) -> Explored:
    """Look for an example that violates an exact statement by more than its tolerance."""

    def judged(point: Point) -> PointOutcome:
        def violated(by: Callable[[Any, Point], float]) -> float:
            return float(by(fixture(seed, f"{claim.id}\n{point.canonical()}"), point))

        off, rivals = violated(claim.violation), claim.rivals if point in claim.examples else {}
        others = {name: violated(rival) for name, rival in rivals.items()}
        return exact_outcome(point, off, claim.tolerance, others)

    return _explore(claim, judged, seed, max_examples)


def explore_statistical(
    claim: StatisticalProperty, judge: JudgeExample, seed: int, max_examples: int, alpha: float
) -> Explored:
    """Look for parameters at which the mean of the score is not what the theory predicts.

    All examples together have the error of one claim.
    """
    share = alpha / (max_examples + len(claim.examples))

    def judged(point: Point) -> PointOutcome:
        found = judge(claim.claim_at(point), None, share)
        if found.verdict == Verdict.DISAGREES:
            return judge(claim.claim_at(point), CONTINUED * found.replicates, share)
        return found

    return _explore(claim, judged, seed, max_examples)


class _Judged(Protocol):
    @property
    def verdict(self) -> str: ...


_Place = TypeVar("_Place", bound=Hashable)
_Outcome = TypeVar("_Outcome", bound=_Judged)


def explore(
    judged: Callable[[_Place], _Outcome],
    drawn: SearchStrategy[Mapping[str, Any]],
    place: Callable[[Mapping[str, Any]], _Place],
    *,
    seed: int,
    max_examples: int,
    examples: Sequence[_Place] = (),
) -> tuple[list[_Outcome], _Outcome | None]:
    """Judge every example that hypothesis draws, and shrink the first one that disagrees or is broken.

    Returns all outcomes, and the simplest failing one, if any.
    """
    import hypothesis
    from hypothesis import HealthCheck, Phase

    from verify.judging.provider import BACKEND

    known: dict[_Place, _Outcome] = {}
    failing: list[_Outcome] = []
    most = math.inf

    def check(point: _Place) -> None:
        nonlocal most
        # Hypothesis tries the same example again while it shrinks.
        if point not in known:
            # To hypothesis this example agrees, so the search for a simpler one comes to an end.
            if len(known) >= most:
                return
            known[point] = judged(point)
        verdict = known[point].verdict
        # a simpler point counts if it fails in the same way: where a formula has no value it does not disagree
        if verdict in (Verdict.DISAGREES, Verdict.BROKEN) and (not failing or verdict == failing[0].verdict):
            most = min(most, len(known) + SHRINKS)
            failing.append(known[point])
            raise _CounterexampleError

    # The seed alone decides which examples are tried: nothing is read from earlier runs, and no deadline
    # depends on the speed of the machine. An example may simulate for seconds.
    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=max_examples,
        backend=BACKEND,
        deadline=None,
        database=None,
        print_blob=False,
        report_multiple_bugs=False,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @hypothesis.given(drawn)
    def search(values: Mapping[str, Any]) -> None:
        check(place(values))

    for point in examples:
        _tolerate(check, point)
    if not failing:
        _tolerate(search)
    return list(known.values()), failing[-1] if failing else None


def _explore(
    claim: ExactProperty | StatisticalProperty,
    judged: Callable[[Point], PointOutcome],
    seed: int,
    max_examples: int,
) -> Explored:
    from hypothesis import strategies as st

    # Not `hash()`, which differs from process to process.
    digest = hashlib.sha256(f"{claim.id}\n{seed}".encode()).digest()
    started = time.perf_counter()
    outcomes, failing = explore(
        judged,
        st.fixed_dictionaries({name: strategy(of) for name, of in claim.domain.items()}),
        lambda drawn: Point(**drawn),
        seed=int.from_bytes(digest[:8], "big"),
        max_examples=max_examples,
        examples=claim.examples,
    )
    again = [judged(point) for point in claim.failed]
    return Explored(outcomes, failing, time.perf_counter() - started, again)


def _tolerate(call: Callable[..., None], *arguments: Any) -> None:
    try:
        call(*arguments)
    except _CounterexampleError:
        return  # the search is over; what failed is on record
