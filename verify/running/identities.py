"""Identities: two routes to one number at each point, on the workers, and their rows."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any

import numpy as np

from simulate.monte_carlo import Point, fixture, one_thread
from verify.judging.judge import PRINTED, labels, passage
from verify.model import Identity, Verdict
from verify.results import PointOutcome, RivalOutcome, Row
from verify.running.pump import Pump
from verify.running.rows import combine, require_separated, row_of
from verify.running.settings import Settings

Arrays = Mapping[str, Any]


class Routes:
    """Both routes of an identity, asked for at every point; workers take them while others are waited for.

    Parameters
    ----------
    claim
        The identity.
    pump, settings
        What has them taken, and their seed.
    """

    def __init__(self, claim: Identity, pump: Pump, settings: Settings) -> None:
        self.claim, self._pump = claim, pump
        self._found: dict[Point, Future[tuple[Arrays, float]]] = {}
        self._points = tuple(dict.fromkeys(claim.points))
        for point in self._points:
            name = f"{claim.id}\n{point.canonical()}"
            deliver = partial(self._found.__setitem__, point)
            pump.call(deliver, _run_routes, routes=claim.routes, name=name, point=point, seed=settings.seed)

    @property
    def done(self) -> bool:
        """Whether all of them have come."""
        return len(self._found) == len(self._points)

    def found(self) -> tuple[list[tuple[Point, Arrays]], float]:
        """The routes at every point, and the seconds they took; turns the pump until they are there."""
        while not self.done:
            for complete in self._pump.turn():
                complete.look()
        arrived = {point: future.result() for point, future in self._found.items()}
        return [(point, arrived[point][0]) for point in self.claim.points], sum(
            s for _, s in arrived.values()
        )


def identity_rows(routes: Routes, settings: Settings) -> list[Row]:
    """The rows of an identity, one for each of its readings."""
    claim = routes.claim
    found, seconds = routes.found()
    return [_row(claim, label, found, seconds, settings) for label in labels(claim)]


def _run_routes(
    routes: Callable[..., Any], name: str, point: Point, seed: int
) -> tuple[dict[str, Any], float]:
    """The routes at one point, as arrays, on one thread, and the seconds they took."""
    started = time.thread_time()
    with one_thread():
        found = routes(fixture(seed, name), point)
    arrays = {
        key: np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
        for key, value in found.items()
    }
    return arrays, time.thread_time() - started


def _row(
    claim: Identity, label: str, routes: list[tuple[Point, Arrays]], seconds: float, settings: Settings
) -> Row:
    outcomes = [_outcome(claim, label, point, found) for point, found in routes]
    rivals = [rival.name for rival in outcomes[0].rivals]
    if not (rivals or label == PRINTED):
        raise ValueError("routes must be what is measured, the theory and a rival at least")
    require_separated(rivals, outcomes)
    return row_of(
        claim,
        label,
        passage(claim, label),
        settings,
        kind="identity",
        verdict=combine([o.verdict for o in outcomes]),
        margin=claim.tolerance,
        margin_reason=claim.tolerance_reason,
        quantity=claim.quantity,
        data=claim.data,
        power=_power(claim, label, routes, outcomes),
        sensitivity=None if _whole(label, routes, claim) else claim.tolerance,
        seconds=seconds,
        points=outcomes,
    )


def _power(
    claim: Identity, label: str, routes: list[tuple[Point, Arrays]], outcomes: list[PointOutcome]
) -> str:
    """What the run could have seen, in a sentence."""
    off, whole = max(o.measured for o in outcomes), _whole(label, routes, claim)
    if claim.sees and not whole:
        raise ValueError("routes must be signs or counts where the identity says what they see")
    if whole:
        same = "the same" if off <= claim.tolerance else "unlike"
        return (
            f"The two routes give {same} whole numbers; {claim.sees or 'a count that is off by one'} is seen."
        )
    return (
        f"The two routes agree to {_digits(off)} digits; a difference beyond {claim.tolerance:.1g} is seen."
    )


def _whole(label: str, routes: list[tuple[Point, Arrays]], claim: Identity) -> bool:
    """Whether what is compared are signs or counts, not all of them 0: no difference is small there."""
    compared = [np.asarray(found[name]) for _, found in routes for name in _compared(claim, label, found)]
    if not all(a.dtype.kind in "biuf" for a in compared):
        return False
    whole = all(bool((np.isfinite(a) & (a == np.round(a))).all()) for a in compared)
    return whole and any(bool(a.any()) for a in compared)


def _compared(claim: Identity, label: str, found: Arrays) -> tuple[str, str]:
    """What is measured, and the theory or the formula as our copy reads."""
    measured, theory, *_ = (name for name in found if name != claim.printed)
    return measured, claim.printed if label == PRINTED else theory


def _outcome(claim: Identity, label: str, point: Point, found: Arrays) -> PointOutcome:
    """The difference of two routes, relative to the largest entry, against the tolerance."""
    measured, theory, *rivals = (name for name in found if name != claim.printed)
    difference = _difference(found[measured], found[claim.printed if label == PRINTED else theory])
    return PointOutcome(
        parameters=dict(point),
        verdict=Verdict.AGREES if difference <= claim.tolerance else Verdict.DISAGREES,
        predicted=0.0,
        margin=claim.tolerance,
        measured=difference,
        lower=difference,
        upper=difference,
        rivals=[]
        if label == PRINTED
        else [_rival(name, _difference(found[measured], found[name]), claim.tolerance) for name in rivals],
    )


def _rival(name: str, difference: float, tolerance: float) -> RivalOutcome:
    return RivalOutcome(
        name=name, value=difference, margins=difference / tolerance, rejected=difference > 2 * tolerance
    )


def _difference(a: Any, b: Any) -> float:
    """Largest difference of two arrays relative to their largest entry; infinite where one is not finite."""
    x, y = (np.asarray(v, dtype=np.result_type(v, np.float64)) for v in (a, b))
    if x.shape != y.shape:
        raise ValueError(f"routes must have one shape, got {x.shape} and {y.shape}")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return math.inf
    scale = max(np.abs(x).max(initial=0.0), np.abs(y).max(initial=0.0))
    return float(np.abs(x - y).max(initial=0.0) / scale) if scale else 0.0


def _digits(difference: float) -> str:
    """Digits to which two routes agree, in words where there are none or all."""
    if difference >= 1.0:
        return "no"
    return "all" if difference == 0.0 else f"{-math.log10(difference):.1f}"
