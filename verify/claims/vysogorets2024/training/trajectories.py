"""Vysogorets, Dawid and Kempe (2024): training of scaled networks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from simulate.monte_carlo import Point
from theory import learning_rates, zone
from verify.claims.vysogorets2024.scaling.identities import NETWORKS, PAPER, Drawn, drawn
from verify.model import AnyClaim, ExactProperty, Identity

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["CLAIMS"]

ROUNDING = (
    "an exact identity in float64; a path of some tens of steps carries rounding on, but does not amplify it"
)

# --- the same path at another scale --------------------------------------------------------------------------


def _path(case: Drawn, point: Point, *, alpha: float = 1.0, **how: Any) -> tuple[Any, list[Any]]:
    """Weights over alpha after the last step, mini-batches in the order of the images, and what was predicted."""
    import torch

    from simulate.objectives.parameters import parametric
    from simulate.training.scaled_training import descent

    own = parametric(case.scaled(alpha))
    batches = list(zip(case.x.split(point.batch), case.labels.split(point.batch), strict=True))
    settings = {"steps": point.steps, "momentum": point.momentum, "logits": own.call} | how
    moments = list(descent(own.parameters, batches, **settings))
    weights = torch.cat([p.flatten() for p in moments[-1].parameters])
    return weights / alpha, [m.predictions for m in moments]


def matched_paths(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Weights after training as drawn, and scaled at T = alpha^L with learning rates in several ratios."""
    case, a = drawn(rng, point), point.alpha
    heat = a**case.depth

    def scaled(rate: float) -> Any:
        return _path(case, point, alpha=a, temperature=heat, rate=rate)[0]

    return {
        "weights": _path(case, point, rate=point.rate)[0],
        "scaled weights / alpha": scaled(
            float(zone.matched_rate(point.rate, alpha=a, depth=case.depth, temperature=heat))
        ),
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
        "weights": one,
        "scaled weights / alpha": given(matched),
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


def _matched(name: str, alphas: tuple[float, ...], tolerance: float, reason: str) -> Identity:
    return Identity(
        id=f"vysogorets2024/{name}",
        entries=("A16",),
        source=f"{PAPER}, sections 1 and 3; momentum and mini-batches are ours",
        statement=r"T = \alpha^L,\ \eta' = \alpha^2 \eta:\quad \theta'_t = \alpha\, \theta_t "
        r"\text{ with momentum and mini-batches}",
        routes=matched_paths,
        points=tuple(Point(network=n, alpha=alpha, **SCHEDULE) for n in NETWORKS for alpha in alphas),
        measured="scaled weights / alpha",
        theory="weights",
        tolerance=tolerance,
        tolerance_reason=reason,
        rivals=("rate times alpha", "rate as it was"),
        seconds=0.5,
        data="digits",
        quantity="weights after training",
    )


SAME_PATHS: tuple[AnyClaim, ...] = (
    _matched("matched-path", (0.1, 10.0), 1e-12, ROUNDING),
    _matched(
        "matched-path-to-the-bit",
        (0.25, 2.0),
        1e-30,
        "a power of two moves exponents only, so that nothing is rounded differently",
    ),
    Identity(
        id="vysogorets2024/shared-predictions",
        entries=("A17",),
        source=f"{PAPER}, section 5; the factor T is ours",
        statement=r"\eta' = \eta_0\, \alpha^{2-L}\, T:\quad \theta'_t = \alpha\, \theta_t \text{ if } p' = p "
        r"\text{ at every step, not with its own } p'",
        routes=shared_predictions,
        points=tuple(
            Point(network=n, alpha=alpha, temperature=heat, **SCHEDULE)
            for n in NETWORKS
            for alpha, heat in ((0.4, 1.0), (1.7, 3.4))
        ),
        measured="scaled weights / alpha",
        theory="weights",
        tolerance=1e-12,
        tolerance_reason=ROUNDING,
        rivals=("own predictions", "without T", "alpha^(1-L)", "alpha^(-L)", "alpha^2"),
        seconds=0.9,
        data="digits",
        quantity="weights after training",
    ),
)

# --- stability of gradient descent on a quadratic ------------------------------------------------------------


def _quadratics() -> Mapping[str, SearchStrategy[Any]]:
    from hypothesis import strategies as st

    return {
        "dim": st.integers(1, 12),
        "condition": st.floats(1.0, 1e4),
        "scale": st.floats(1e-3, 1e3),
        "offset": st.floats(1e-3, 0.3),
    }


def _unstable(rng: np.random.Generator, point: Point, *, times: float) -> float:
    """How far descent grows below `times` the limit 2 / |H|, or falls short above it of the growth along the top."""
    from simulate.training.optimisers import descent

    basis = np.linalg.qr(rng.standard_normal((point.dim, point.dim)))[0]
    values = point.scale * np.geomspace(1.0, 1 / point.condition, point.dim)
    hessian, start = (basis * values) @ basis.T, rng.standard_normal(point.dim)
    limit = times * float(learning_rates.stability_limit(np.linalg.norm(hessian, 2)))

    def end(rate: float) -> Any:
        w, step = start, descent(rate)
        for _ in range(STEPS):
            w = step(w, w, lambda at: hessian @ at)
        return w

    below, above = end((1 - point.offset) * limit), end((1 + point.offset) * limit)
    grown = np.linalg.norm(below) / np.linalg.norm(start) - 1
    reached = abs(basis[:, 0] @ above) / abs(basis[:, 0] @ start)
    return float(max(grown, 1 - reached / (1 + 2 * point.offset) ** STEPS, 0.0))


STEPS = 60


STABILITY = ExactProperty(
    id="vysogorets2024/stability-limit",
    entries=("A52",),
    source=f"{PAPER}, section 5 and appendix E",
    statement=r"\text{gradient descent on } \tfrac12 w^\top H w,\ H \succ 0: \text{ bounded for } \eta < 2/\lVert "
    r"H\rVert_2, \text{ divergent above as } \lvert 1 - \eta \lVert H\rVert_2 \rvert^t",
    strategies=_quadratics,
    violation=lambda rng, point: _unstable(rng, point, times=1.0),
    examples=(
        Point(dim=3, condition=50.0, scale=5.0, offset=0.05),
        Point(dim=7, condition=3.0, scale=0.2, offset=0.001),
    ),
    tolerance=1e-10,
    tolerance_reason="rounding of sixty steps, beside a growth by a tenth at least",
    rivals={
        "1 / |H|": lambda rng, point: _unstable(rng, point, times=0.5),
        "4 / |H|": lambda rng, point: _unstable(rng, point, times=2.0),
    },
    seconds=0.5,
)

CLAIMS: tuple[AnyClaim, ...] = (*SAME_PATHS, STABILITY)
