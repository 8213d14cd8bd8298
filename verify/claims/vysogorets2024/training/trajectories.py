"""Vysogorets, Dawid and Kempe (2024): training of scaled networks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from simulate import objectives
from simulate.monte_carlo import Point
from simulate.training import optimisers, scaled_training
from theory import learning_rates, zone
from verify.claims.vysogorets2024 import PAPER
from verify.claims.vysogorets2024.scaling.identities import NETWORKS, DrawnNetwork, drawn
from verify.model import OURS, AnyClaim, ExactProperty, Identity
from verify.model.domains import Between, Domain

__all__ = ["CLAIMS"]

ROUNDING = (
    "an exact identity in float64; a path of some tens of steps carries rounding on, but does not amplify it"
)

# --- the same path at another scale --------------------------------------------------------------------------


def _path(case: DrawnNetwork, point: Point, *, alpha: float = 1.0, **how: Any) -> tuple[Any, list[Any]]:
    """Weights over alpha after the last step, mini-batches in the order of the images, and what was predicted."""
    import torch

    own = objectives.parameters.parametric(case.scaled(alpha))
    batches = list(zip(case.x.split(point.batch), case.labels.split(point.batch), strict=True))
    settings = {"steps": point.steps, "momentum": point.momentum, "logits": own.call} | how
    moments = list(scaled_training.descent(own.parameters, batches, **settings))
    weights = torch.cat([p.flatten() for p in moments[-1].parameters])
    return weights / alpha, [m.predictions for m in moments]


def matched_paths(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Weights after training as drawn, and scaled at T = alpha^L with learning rates in several ratios."""
    case, a = drawn(rng, point), point.alpha
    heat = a**case.depth

    def scaled(rate: float) -> Any:
        return _path(case, point, alpha=a, temperature=heat, rate=rate)[0]

    return {
        "scaled weights / alpha": scaled(
            float(zone.matched_rate(point.rate, alpha=a, depth=case.depth, temperature=heat))
        ),
        "weights": _path(case, point, rate=point.rate)[0],
        "rate times alpha": scaled(a * point.rate),
        "rate as it was": scaled(point.rate),
    }


def shared_predictions(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Weights after training as drawn, and scaled with the probabilities of the other, or with its own."""
    case, a, heat, rate = drawn(rng, point), point.alpha, point.temperature, point.rate
    one, predictions = _path(case, point, rate=rate)
    matched = float(zone.matched_rate(rate, alpha=a, depth=case.depth, temperature=heat))

    def shared(step: int, _: Any) -> Any:
        return predictions[step]

    def given(at: float) -> Any:
        return _path(case, point, alpha=a, temperature=heat, rate=at, predictions=shared)[0]

    return {
        "scaled weights / alpha": given(matched),
        "weights": one,
        "own predictions": _path(case, point, alpha=a, temperature=heat, rate=matched)[0],
        "without T": given(matched / heat),
        "alpha^(1-L)": given(rate * heat * a ** (1 - case.depth)),
        "alpha^(-L)": given(rate * heat * a**-case.depth),
        "alpha^2": given(rate * heat * a**2),
    }


SCHEDULE: Mapping[str, Any] = {
    "images": "digits",
    "samples": 15,
    "batch": 5,
    "steps": 11,
    "momentum": 0.9,
    "rate": 0.004,
}


SAME_PATHS: tuple[AnyClaim, ...] = (
    Identity(
        id="vysogorets2024/matched-path",
        entries=("A16",),
        source=f"{PAPER}, sections 1 and 3; momentum and mini-batches are ours",
        statement=r"T = \alpha^L,\ \eta' = \alpha^2 \eta:\quad \theta'_t = \alpha\, \theta_t "
        r"\text{ with momentum and mini-batches}",
        says="At matched temperature and a learning rate times the squared scale, a scaled network trains along the "
        "original's path, momentum and mini-batches included.",
        routes=matched_paths,
        points=tuple(Point(network=n, alpha=alpha, **SCHEDULE) for n in NETWORKS for alpha in (0.1, 10.0)),
        tolerance=1e-12,
        tolerance_reason=ROUNDING,
        seconds=0.5,
        data="digits",
        quantity="weights after training",
    ),
    Identity(
        id="vysogorets2024/shared-predictions",
        entries=("A17",),
        source=f"{PAPER}, section 5; the factor T is ours",
        statement=r"\eta' = \eta_0\, \alpha^{2-L}\, T:\quad \theta'_t = \alpha\, \theta_t \text{ if } p' = p "
        r"\text{ at every step, not with its own } p'",
        says="With a learning rate matched to scale and temperature, a scaled network trains along the original's "
        "path if it is given the original's predictions at every step.",
        routes=shared_predictions,
        points=tuple(
            Point(network=n, alpha=alpha, temperature=heat, **SCHEDULE)
            for n in NETWORKS
            for alpha, heat in ((0.4, 1.0), (1.7, 3.4))
        ),
        tolerance=1e-12,
        tolerance_reason=ROUNDING,
        seconds=0.43,
        data="digits",
        quantity="weights after training",
    ),
)

# --- stability of gradient descent on a quadratic ------------------------------------------------------------


def _unstable(rng: np.random.Generator, point: Point, limit_of: Callable[[float], Any]) -> float:
    """How far descent grows below a limit made of |H|, or falls short above it of the growth along the top."""
    basis = np.linalg.qr(rng.standard_normal((point.dim, point.dim)))[0]
    values = point.scale * np.geomspace(1.0, 1 / point.condition, point.dim)
    hessian, start = (basis * values) @ basis.T, rng.standard_normal(point.dim)
    limit = float(limit_of(float(np.linalg.norm(hessian, 2))))

    def end(rate: float) -> Any:
        w, step = start, optimisers.descent_step(rate)
        for _ in range(STEPS):
            w = step(w, w, lambda at: hessian @ at)
        return w

    below, above = end((1 - point.offset) * limit), end((1 + point.offset) * limit)
    grown = np.linalg.norm(below) / np.linalg.norm(start) - 1
    reached = abs(basis[:, 0] @ above) / abs(basis[:, 0] @ start)
    return float(max(grown, 1 - reached / (1 + 2 * point.offset) ** STEPS, 0.0))


STEPS = 60


def _at_constant_rate(rng: np.random.Generator, point: Point, *, times: float = 1.0) -> float:
    return _unstable(rng, point, lambda norm: times * learning_rates.stability_limit(norm))


def _at_base_rate(
    rng: np.random.Generator, point: Point, *, times: float = 1.0, layers: int = 0, schedule: bool = True
) -> float:
    """At the largest base rate, for the depth of the point or another, times the schedule alpha^(2-L)."""

    def limit(norm: float) -> Any:
        base = zone.largest_base_rate(point.alpha, sharpness=norm, depth=layers or point.depth)
        return times * (zone.matched_rate(base, alpha=point.alpha, depth=point.depth) if schedule else base)

    return _unstable(rng, point, limit)


QUADRATIC: Domain = {
    "dim": Between(1, 12),
    "condition": Between(1.0, 1e4),
    "scale": Between(1e-3, 1e3),
    "offset": Between(1e-3, 0.3),
}

STABILITY = ExactProperty(
    id="vysogorets2024/stability-limit",
    entries=("A52",),
    source=f"{PAPER}, section 5 and appendix E",
    statement=r"\text{gradient descent on } \tfrac12 w^\top H w,\ H \succ 0: \text{ bounded for } \eta < 2/\lVert "
    r"H\rVert_2, \text{ divergent above as } \lvert 1 - \eta \lVert H\rVert_2 \rvert^t",
    says="On a convex quadratic, gradient descent stays bounded at learning rates below two over the largest "
    "eigenvalue, and above grows by an exact factor each step.",
    domain=QUADRATIC,
    violation=_at_constant_rate,
    examples=(
        Point(dim=3, condition=50.0, scale=5.0, offset=0.05),
        Point(dim=7, condition=3.0, scale=0.2, offset=0.001),
    ),
    tolerance=1e-10,
    tolerance_reason="rounding of sixty steps, beside a growth by a tenth at least",
    rivals={
        "1 / |H|": lambda rng, point: _at_constant_rate(rng, point, times=0.5),
        "4 / |H|": lambda rng, point: _at_constant_rate(rng, point, times=2.0),
    },
    seconds=0.022,
)

BASE_RATE = ExactProperty(
    id="vysogorets2024/base-rate-limit",
    entries=("A54",),
    source=f"{PAPER}, appendix E, on a quadratic loss; the constant is ours",
    passage=OURS,
    statement=r"\eta_{0,\max} = 2 \alpha^{L-2} / \lVert H\rVert_2:\text{ gradient descent on } \tfrac12 w^\top H w "
    r"\text{ at } \eta = \eta_0 \alpha^{2-L} \text{ is bounded for } \eta_0 < \eta_{0,\max},\text{ divergent above}",
    says="On a convex quadratic, with the rate scheduled by initial scale and depth, the largest stable base rate is "
    "two over the sharpness, times scale to the depth less two.",
    domain={**QUADRATIC, "alpha": Between(0.05, 20.0), "depth": Between(1, 7)},
    violation=_at_base_rate,
    examples=(
        Point(dim=3, condition=50.0, scale=5.0, offset=0.05, alpha=0.3, depth=5),
        Point(dim=7, condition=3.0, scale=0.2, offset=0.001, alpha=4.2, depth=2),
        Point(dim=1, condition=1.0, scale=0.7, offset=0.001, alpha=1.7, depth=4),
    ),
    tolerance=1e-10,
    tolerance_reason="rounding of sixty steps, beside a growth by a tenth at least",
    rivals={
        "a tenth less": lambda rng, point: _at_base_rate(rng, point, times=0.9),
        "a tenth more": lambda rng, point: _at_base_rate(rng, point, times=1.1),
        "linear in alpha": lambda rng, point: _at_base_rate(rng, point, layers=3),
        "without the schedule": lambda rng, point: _at_base_rate(rng, point, schedule=False),
    },
    seconds=0.023,
)

CLAIMS: tuple[AnyClaim, ...] = (*SAME_PATHS, STABILITY, BASE_RATE)
