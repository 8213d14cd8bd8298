"""Identities: two routes to one number at each point, on the workers, and their rows."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulate.monte_carlo import Point, fixture, one_thread
from verify.judging.judge import PRINTED, combine, exact_outcome, labels
from verify.model import Arrays, Identity
from verify.results import PointOutcome, Row
from verify.running.pump import Asked, Pump
from verify.running.rows import require_separated, row_of
from verify.running.settings import Settings


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
        self.claim = claim
        # A point may be listed twice; its routes run once. Its name seeds the random numbers of the routes: another
        # spelling draws other numbers.
        self._asked = {
            point: Asked(
                pump,
                _run_routes,
                routes=claim.routes,
                name=f"{claim.id}\n{point.canonical()}",
                point=point,
                seed=settings.seed,
            )
            for point in dict.fromkeys(claim.points)
        }

    def found(self) -> tuple[list[tuple[Point, Arrays]], float]:
        """The routes at every point, and the seconds they took; turns the pump until they are there."""
        arrived = {point: asked.result() for point, asked in self._asked.items()}
        seconds = sum(taken for _, taken in arrived.values())
        return [(point, arrived[point][0]) for point in self.claim.points], seconds


def identity_rows(routes: Routes, settings: Settings) -> list[Row]:
    """The rows of an identity, one for each of its readings."""
    claim = routes.claim
    found, seconds = routes.found()
    return [_row(claim, label, found, seconds, settings) for label in labels(claim)]


def _run_routes(
    routes: Callable[..., Any], name: str, point: Point, seed: int
) -> tuple[dict[str, Any], float]:
    """The routes at one point, as arrays, on one thread, and the seconds they took."""
    # Time of this thread alone: other processes on the same cores must not count.
    started = time.thread_time()
    with one_thread():
        found = routes(fixture(seed, name), point)
    arrays = {
        # Routes may return tensors, which numpy takes only from the CPU and without a graph.
        key: np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
        for key, value in found.items()
    }
    return arrays, time.thread_time() - started


def _row(
    claim: Identity, label: str, routes: list[tuple[Point, Arrays]], seconds: float, settings: Settings
) -> Row:
    measured, theory, *others = (name for name in routes[0][1] if name != claim.printed)
    printed = label == PRINTED
    if not (others or printed):
        raise ValueError("an identity needs at least three routes: measured, theory and a rival")
    shown, rivals = (claim.printed, []) if printed else (theory, others)
    outcomes = [_outcome(claim, point, found, measured, shown, rivals) for point, found in routes]
    require_separated(rivals, outcomes)
    whole = _are_whole_numbers([np.asarray(found[name]) for _, found in routes for name in (measured, shown)])
    off = max(o.measured for o in outcomes)
    # Signs and counts have no digits: they are the same or differ by at least 1.
    if whole:
        same = "the same" if off <= claim.tolerance else "unlike"
        power = f"The two routes give {same} whole numbers; a count that is off by one is seen."
    else:
        # The logarithm of 0 does not exist, and a difference of 100 % leaves no digit.
        digits = "no" if off >= 1.0 else "all" if off == 0.0 else f"{-math.log10(off):.1f}"
        power = f"The two routes agree to {digits} digits; a difference beyond {claim.tolerance:.1g} is seen."
    return row_of(
        claim,
        label,
        settings,
        kind="identity",
        verdict=combine([o.verdict for o in outcomes]),
        margin=claim.tolerance,
        margin_reason=claim.tolerance_reason,
        quantity=claim.quantity,
        data=claim.data,
        power=power,
        sensitivity=None if whole else claim.tolerance,
        seconds=seconds,
        points=outcomes,
    )


def _are_whole_numbers(compared: list[NDArray[Any]]) -> bool:
    """Return whether signs or counts are compared, not all of them 0: no difference is small there."""
    if not all(a.dtype.kind in "biuf" for a in compared):
        return False
    whole = all(bool((np.isfinite(a) & (a == np.round(a))).all()) for a in compared)
    return whole and any(bool(a.any()) for a in compared)


def _outcome(
    claim: Identity, point: Point, found: Arrays, measured: str, shown: str, rivals: list[str]
) -> PointOutcome:
    """The difference of two routes, relative to the largest entry, against the tolerance."""
    off = {name: _difference(found[measured], found[name]) for name in (shown, *rivals)}
    return exact_outcome(point, off[shown], claim.tolerance, {name: off[name] for name in rivals})


def _difference(a: Any, b: Any) -> float:
    """Largest difference of two arrays relative to their largest entry; infinite where one is not finite."""
    # At least double precision, without losing the imaginary part of a complex route.
    x, y = (np.asarray(v, dtype=np.result_type(v, np.float64)) for v in (a, b))
    if x.shape != y.shape:
        raise ValueError(f"routes must have one shape, got {x.shape} and {y.shape}")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return math.inf
    scale = max(np.abs(x).max(initial=0.0), np.abs(y).max(initial=0.0))
    return float(np.abs(x - y).max(initial=0.0) / scale) if scale else 0.0
