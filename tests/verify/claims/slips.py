"""Formulas that are one slip away from the prediction of a claim, at the points where it runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature
from typing import Any, NamedTuple

import numpy as np
import sympy

from simulate.monte_carlo import Point
from tests.verify.claims.mutation import (
    ClosedForm,
    Sample,
    evaluate,
    expression,
    mutants,
    quantities,
)
from verify.judging.estimands import components
from verify.judging.judge import SEPARATION
from verify.model import BOUNDS_EVERY_REPLICATE, Claim, Kind, StatisticalProperty

__all__ = ["Statistical", "inseparable", "is_formula", "plain_form", "read_off", "runs", "second_route"]

Statistical = Claim | StatisticalProperty


def plain_form(claim: Statistical) -> ClosedForm | None:
    """The formula of a prediction that is plain arithmetic in the numbers it reads; None of any other."""
    points = claim.examples if isinstance(claim, StatisticalProperty) else claim.experiment.points
    judged = claim.claim_at(points[0]) if isinstance(claim, StatisticalProperty) else claim
    part, *_ = components(judged, points[0])
    typical = {name: v(part) if callable(v) else v for name, v in judged.inputs.items()}
    return read_off(judged.predict, part | typical)


def read_off(predict: Callable[[Any], Any], point: Mapping[str, Any]) -> ClosedForm | None:
    """The formula of a prediction that is plain arithmetic in numbers of its point; None of any other."""
    numbers = {n: v for n, v in point.items() if isinstance(v, int | float) and not isinstance(v, bool)}
    asked = _Reading({name: sympy.Symbol(name) for name in numbers})
    try:
        with sympy.evaluate(False):
            found = predict(asked)
    except (TypeError, ValueError, AttributeError, LookupError):
        return None
    if not isinstance(found, int | float | sympy.Expr):
        return None
    return ClosedForm(_of_symbols(predict, sorted(asked.read)))


class _Reading(dict[str, Any]):
    """Numbers of a point by name, and which of them were asked for."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.read.add(name)
        return super().__getitem__(name)

    def __getattr__(self, name: str) -> Any:
        return self[name]


def _of_symbols(predict: Callable[[Any], Any], names: Sequence[str]) -> Callable[..., Any]:
    def formula(*values: Any) -> Any:
        return predict(_Reading(dict(zip(names, values, strict=True))))

    formula.__signature__ = Signature([Parameter(n, Parameter.POSITIONAL_ONLY) for n in names])  # type: ignore[attr-defined]
    return formula


def is_formula(form: ClosedForm) -> bool:
    """Whether there is anything to edit: a bare number, or one measured score, is no formula."""
    return bool(expression(form).args)


class Runs(NamedTuple):
    """Where a formula is compared with the prediction, and how far is far enough."""

    predicted: np.ndarray
    margins: np.ndarray
    sample: Sample


def runs(claim: Statistical, form: ClosedForm) -> Runs:
    """A claim at its points, a property at the examples that are always tried; measured inputs at typical values."""
    points = claim.examples if isinstance(claim, StatisticalProperty) else claim.experiment.points
    judged = claim.claim_at(points[0]) if isinstance(claim, StatisticalProperty) else claim
    rows = [row for point in points for part in components(judged, point) for row in _rows(judged, part)]
    predicted, margins, joined = (list(column) for column in zip(*rows, strict=True))
    sample = Sample.at([quantities(form, point) for point in joined], joined)
    return Runs(np.array(predicted), np.array(margins), sample)


def _rows(claim: Claim, point: Point) -> list[tuple[float, float, Point]]:
    """Prediction, margin and point with all that the formula reads; of a distribution function at many `x`."""
    if claim.kind is Kind.DISTRIBUTION:
        cdf = claim.predict(point)
        return [(float(cdf(x)), claim.margin, point | {"x": float(x)}) for x in _quantiles(cdf)]
    typical = {name: v(point) if callable(v) else v for name, v in claim.inputs.items()}
    margin = ROUNDING if claim.kind in BOUNDS_EVERY_REPLICATE else claim.margin_at(point)
    return [(claim.prediction(point), margin, point | typical)]


def _quantiles(cdf: Any) -> np.ndarray:
    decades = np.logspace(-5, 5, 2001)
    scale = np.concatenate([-decades[::-1], decades])
    mass = np.asarray(cdf(scale))
    inside = scale[(mass > 1e-3) & (mass < 1 - 1e-3)]
    return np.linspace(inside[0], inside[-1], 33)


def second_route(claim: Statistical, form: ClosedForm) -> tuple[np.ndarray, np.ndarray]:
    """The predictions of a claim and the values of its closed form."""
    at = runs(claim, form)
    return at.predicted, evaluate(expression(form), at.sample, {}) + np.zeros_like(at.predicted)


def inseparable(claim: Statistical, form: ClosedForm) -> tuple[int, list[str]]:
    """How many mutants a formula has, and those that lie within two margins of the prediction at every point."""
    formula, at = expression(form), runs(claim, form)
    wide, memo, wide_memo = at.sample.scattered(np.random.default_rng(3), 24), {}, {}
    with np.errstate(all="ignore"):
        whole = evaluate(formula, wide, wide_memo) + np.zeros(len(wide.points))
        stated = np.isfinite(whole)
        alike = [whole[stated]]
        apart, found = set(), []
        for edit, mutant in mutants(formula):
            value = evaluate(mutant, at.sample, memo) + np.zeros_like(at.predicted)
            distance = stronger_by(claim, value - at.predicted)
            if not (distance < SEPARATION * at.margins).all():  # far, or no number
                apart.add(tuple(f"{v:.9e}" for v in value))
                continue
            elsewhere = (evaluate(mutant, wide, wide_memo) + np.zeros(len(stated)))[stated]
            binds = (distance >= -ROUNDING * np.abs(at.predicted)).any()
            if binds and not any(same(elsewhere, known) for known in alike):
                alike.append(elsewhere)
                found.append(edit)
    return len(apart) + len(found), numbered(found)


STRONGER = {Kind.AT_LEAST: 1, Kind.NEVER_BELOW: 1, Kind.AT_MOST: -1, Kind.NEVER_ABOVE: -1}

ROUNDING = 1e-9
"""A bound that is stronger by more may be broken by a single replicate; by less, the two routes may differ."""


def stronger_by(claim: Statistical, difference: np.ndarray) -> np.ndarray:
    """Distance from the prediction; of a bound only upwards, since a weaker one holds too."""
    kind = claim.kind if isinstance(claim, Claim) else Kind.MEAN
    return STRONGER[kind] * difference if kind in STRONGER else np.abs(difference)


def same(one: np.ndarray, other: np.ndarray) -> bool:
    return bool(np.isclose(one, other, rtol=1e-9, atol=0, equal_nan=True).all())


def numbered(edits: list[str]) -> list[str]:
    """The same edit at several places: the second is called (2)."""
    seen: Counter[str] = Counter()
    named = []
    for edit in edits:
        seen[edit] += 1
        named.append(edit if seen[edit] == 1 else f"{edit} ({seen[edit]})")
    return named
