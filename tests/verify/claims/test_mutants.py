"""No prediction that reads a wrong quantity may pass at the run points of a claim.

Each number that a prediction reads is doubled, halved, replaced by its root, or taken for another number of its point.
Every such mutant must lie two margins away from the prediction at one run point, or is listed here with the reason.
"""

import dataclasses
import functools
import warnings
from typing import Any

import numpy as np
import pytest

from simulate.monte_carlo import Point
from verify.claims import registry
from verify.judging.estimands import components
from verify.judging.judge import SEPARATION
from verify.model import BOUNDS_EVERY_REPLICATE, Claim, Kind, StatisticalProperty

Statistical = Claim | StatisticalProperty

CLAIMS = {c.id: c for c in registry.claims() if isinstance(c, Statistical)}

STRONGER = {Kind.AT_LEAST: 1, Kind.NEVER_BELOW: 1, Kind.AT_MOST: -1, Kind.NEVER_ABOVE: -1}
"""A weaker bound holds as well."""

ROUNDING = 1e-9
"""A bound that is stronger by more may be broken by a single replicate."""

SLOW = {
    "karakida2019/not-centred depth width",
    "karakida2019/layer-norm-upper-bound depth width",
    "adam_limit/second-moment rate before",
    "adam_limit/second-moment rate after",
}
"""Mutants that are not tried: claim, number, and the one put in its place. All are slow, and far from what is right."""

EDITS = {"twice": lambda x: 2 * x, "half": lambda x: x / 2, "root": lambda x: abs(x) ** 0.5}


def runs(claim: Statistical) -> tuple[Claim, list[Point]]:
    """A claim and its points, or a property at the examples that are always tried; measured inputs are typical."""
    points = claim.examples if isinstance(claim, StatisticalProperty) else claim.experiment.points
    one = claim.claim_at(points[0]) if isinstance(claim, StatisticalProperty) else claim
    parts = [part for point in points for part in components(one, point)]
    typical = [{n: v(part) if callable(v) else v for n, v in one.inputs.items()} for part in parts]
    return one, [part | more for part, more in zip(parts, typical, strict=True)]


def numbers(points: list[Point]) -> list[str]:
    """The names of all numbers at these points."""
    return list(dict.fromkeys(n for p in points for n, v in p.items() if type(v) in (int, float)))


def edited(point: Point, name: str, edit: str) -> Point:
    """The point with another number in one place, if it has both."""
    if name not in point or not (edit in EDITS or edit in point):
        return point
    old = point[name]
    new = EDITS[edit](old) if edit in EDITS else point[edit]
    return point | {name: round(new) if isinstance(old, int) and edit in EDITS else new}


def predicted(claim: Claim, point: Point, at: Point) -> Any:
    """Return the prediction; of a distribution function its values at quantiles; NaN if there is no number."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            found = claim.predict(point)
            return np.asarray(found(quantiles(claim.predict(at))) if callable(found) else found, float)
    except Exception:
        return np.nan


def quantiles(cdf: Any) -> np.ndarray:
    decades = np.logspace(-5, 5, 2001)
    scale = np.concatenate([-decades[::-1], decades])
    mass = np.asarray(cdf(scale))
    inside = scale[(mass > 1e-3) & (mass < 1 - 1e-3)]
    return np.linspace(inside[0], inside[-1], 33)


def unseen(claim: Statistical) -> dict[str, list[str]]:
    """The mutants that no point tells from the prediction, by the number that is edited."""
    one, points = runs(claim)
    right = [predicted(one, p, p) for p in points]

    @functools.cache
    def off(i: int, name: str, edit: str) -> Any:
        """By how much a mutant is away; of a bound, by how much it is stronger."""
        found = predicted(one, edited(points[i], name, edit), points[i]) - right[i]
        return STRONGER[one.kind] * found if one.kind in STRONGER else np.abs(found)

    def apart(i: int, name: str, edit: str) -> bool:
        margin = one.margin if one.kind is Kind.DISTRIBUTION else one.margin_at(points[i])
        enough = ROUNDING if one.kind in BOUNDS_EVERY_REPLICATE else SEPARATION * margin
        return not (off(i, name, edit) < enough).all()

    def moves(i: int, name: str, edit: str) -> bool:
        return not (np.abs(off(i, name, edit)) <= ROUNDING * np.abs(right[i])).all()

    # the last points often have closed forms, so that less time is spent on the others
    everywhere, names = range(len(points))[::-1], numbers(points)
    read = [n for n in names if any(moves(i, n, edit) for i in everywhere for edit in ("twice", "half"))]
    pairs = (
        (n, other)
        for n in read
        for other in names
        if n != other and f"{claim.id} {n} {other}" not in SLOW and any({n, other} <= {*p} for p in points)
    )
    mutants = [*((n, edit) for n in read for edit in EDITS), *pairs]
    left = [at for at in mutants if not any(apart(i, *at) for i in everywhere)]
    weaker = [
        at for at in left if all((off(i, *at) < -ROUNDING * np.abs(right[i])).all() for i in everywhere)
    ]
    return {
        n: found for n in read if (found := [e for other, e in left if other == n and (n, e) not in weaker])
    }


UNSEEN = {
    "the term in 1/N is too small against 1/B, or the broadening against the eigenvalue": {
        "granziol2022/theorem-7": "dataset_size: twice half",
    },
    "in more than ten dimensions the law of one component hardly depends on their number": {
        "granziol2022/probe-overlap": "dim: twice half root",
    },
    "a bound: by less than two margins stronger, at other points weaker": {
        "karakida2019/lower-bound-with-c1": "outputs: twice root depth",
        "karakida2019/upper-bound": "bias_variance: half, outputs: root",
        "karakida2019/layer-norm-lower-bound": (
            "weight_variance: twice, bias_variance: half, outputs: twice samples width, eta2: samples"
        ),
        "karakida2019/layer-norm-upper-bound": (
            "weight_variance: twice half root, bias_variance: twice half, samples: outputs, eta3: half "
            "root depth"
        ),
    },
    "the other number is as large, or its prediction within two margins": {
        "vysogorets2024/lower-edge": "g_norm: h_frobenius",
        "adam_limit/quiet-gradients": "base_mean: noise",
        "edge/return-after-a-change": "rate: first_rate",
    },
    "a share is 0 or 1 on either side of a number, and the other number is on the same side": {
        "edge/spike-after-a-change": "first_steps: half",
        "edge/escapes": "multiple: root",
    },
    "it moves the prediction by less than two margins at these points": {
        "vysogorets2024/prior-slope": "parameters: twice half",
        "vysogorets2024/upper-edge": "gap_density: root",
        "granziol2022/sgd-rates-clean-linear-then-flat": "whole: root",
        "granziol2022/theorem-4-at-128": "theorem_4: half root",
        "granziol2022/theorem-4-trained-at-128": "theorem_4: half root",
        "karakida2019/uneven-kappa2": "width: twice half",
        "karakida2019/second-moment": "weight_variance: twice depth samples outputs, bias_variance: half root",
        "karakida2019/forward-variance-by-layer": "depth: twice samples outputs",
        "karakida2019/forward-covariance-by-layer": "depth: twice samples outputs",
        "karakida2019/narrow-inputs": "weight_variance: depth, inputs: twice half root depth samples",
        "karakida2019/centred-formal": "outputs: twice root depth widths",
        "karakida2019/squares-over-trace": (
            "weight_variance: root, bias_variance: twice half root weight_variance depth outputs, "
            "outputs: twice half root depth"
        ),
        "karakida2019/batch-normalised-mean": "outputs: twice width samples, q2: twice",
        "karakida2019/batch-normalised-bound": (
            "weight_variance: root, bias_variance: twice half root weight_variance depth outputs, depth: "
            "half root, outputs: twice width samples"
        ),
        "karakida2019/batch-normalised-root": "outputs: twice width samples",
        "karakida2019/batch-norm-largest": "samples: twice half",
        "karakida2019/subtracted-growth-at-fixed-samples": "depth: twice samples",
        "catapult/where-the-curvature-ends": "width: twice half steps",
        "catapult/growth": "wider: twice half",
        "structure/classifiers": "dim: twice half samples, samples: half dim",
        "structure/neurons": "samples: twice half dim, dim: twice half root classes samples width networks",
        "noise_scale/at-the-start": (
            "batch_size: twice half root noise, samples: twice half root draws trace, squared_gradient: "
            "twice half root, curvature: twice half root squared_gradient, noise: twice half root "
            "batch_size"
        ),
        "noise_scale/later": "samples: twice steps, curvature: twice half",
        "noise_scale/simple-scale-later": (
            "batch_size: twice, samples: twice half draws steps trained_with, curvature: twice half, "
            "trace: twice half"
        ),
        "adam_limit/second-moment": (
            "before: half paths, momentum: half root curvature rate, damping: half root start momentum second"
        ),
        "adam_limit/surge": "coupling: root",
    },
}
"""Mutants that no run point tells apart: why, of which claim, and what stands in place of which number."""


@pytest.mark.slow
@pytest.mark.parametrize("name", CLAIMS)
def test_run_points_tell_every_mutant_from_the_prediction(name: str) -> None:
    listed = ", ".join(claims[name] for claims in UNSEEN.values() if name in claims)
    assert ", ".join(f"{n}: {' '.join(edits)}" for n, edits in unseen(CLAIMS[name]).items()) == listed


@pytest.mark.parametrize(
    ("name", "changes", "edit"),
    [
        ("granziol2022/theorem-4", {"sigma": 1.0, "eigenvalue": 7.1}, "sigma root"),
        ("granziol2022/theorem-10", {"dataset_size": 10**6}, "dataset_size twice"),
        ("karakida2019/mean-eigenvalue", {"outputs": 1}, "outputs root"),
        ("vysogorets2024/eq-8", {"sigma_c": 0.9, "sigma_e": 0.9}, "sigma_c sigma_e"),
    ],
)
def test_a_degenerate_point_leaves_mutants_unseen(name: str, changes: dict, edit: str) -> None:
    claim = CLAIMS[name]
    points = tuple(p | changes for p in claim.experiment.points)
    degenerate = dataclasses.replace(claim, experiment=dataclasses.replace(claim.experiment, points=points))
    number, edit = edit.split()
    assert edit in unseen(degenerate)[number] and edit not in unseen(claim).get(number, [])
