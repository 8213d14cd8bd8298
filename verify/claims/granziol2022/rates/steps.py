"""Granziol, Zohren and Roberts (2022): what one step does to a quadratic loss, and momentum."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from simulate.monte_carlo import Point
from theory import learning_rates, loss_change
from verify.model import OURS, AnyClaim, ExactProperty, Identity, Passage, Standing

__all__ = ["CLAIMS"]

PAPER = "Granziol, Zohren and Roberts (2022)"
ROUNDING = "two routes in float64"

# --- one step: eqs. (22) and (26) ----------------------------------------------------------------------------


def quadratic(rng: np.random.Generator, dim: int) -> tuple[np.ndarray[Any, Any], ...]:
    """A positive definite Hessian, a positive definite preconditioner that does not commute with it, and weights."""
    factors = rng.standard_normal((2, dim, dim + 2))
    h, a = factors @ factors.swapaxes(1, 2) / dim + 0.3 * np.eye(dim)
    return h, a, rng.standard_normal(dim)


def plain_step(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Change of the loss in one step, from the loss at both ends and from gradient and Hessian."""
    h, _, w = quadratic(rng, point.dim)
    loss, g = (lambda x: x @ h @ x / 2), h @ w
    values, vectors = np.linalg.eigh(h)
    weights = (vectors.T @ g) ** 2
    square, form = g @ g, values @ weights
    return {
        "measured": loss(w - point.rate * g) - loss(w),
        "theory": loss_change.quadratic_change(point.rate, g, h),
        "as read": -point.rate * square * (1 - point.rate / 2 * form),
        "first order": -point.rate * square,
        "without the half": -point.rate * square * (1 - point.rate * form / square),
        "largest eigenvalue for all": loss_change.descent_bound(
            point.rate, squared_gradient=square, sharpness=values[-1]
        ),
    }


def preconditioned_step(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """The same with a damped preconditioner: for one gradient, and averaged over all signs along its eigenvectors."""
    h, b, w = quadratic(rng, point.dim)
    a = b + point.damping * np.eye(point.dim)
    vectors = np.linalg.eigh(b)[1]
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=point.dim)))
    gradients = signs * np.abs(vectors.T @ h @ w) @ vectors.T
    starts = np.linalg.solve(h, gradients.T).T
    ends = starts - point.rate * np.linalg.solve(a, gradients.T).T
    changes = ((ends @ h) * ends - (starts @ h) * starts).sum(axis=1) / 2
    g = gradients[0]
    change, averaged = (
        lambda rate, law=law: law(rate, g, h, preconditioner=a)
        for law in (loss_change.quadratic_change, loss_change.sign_averaged_change)
    )
    return {
        "measured": changes[0],
        "theory": change(point.rate),
        "first term positive": change(-point.rate),
        "first order": -point.rate * g @ np.linalg.solve(a, g),
        "without preconditioner": loss_change.quadratic_change(point.rate, g, h),
        "mean over signs": changes.mean(),
        "diagonal": averaged(point.rate),
        "as read": _diagonal_as_read(g, h, b, point),
        "one gradient": changes[0],
        "along the Hessian's eigenvectors": _along_the_hessian(g, h, a, point.rate),
        "without damping": loss_change.sign_averaged_change(point.rate, g, h, preconditioner=b),
    }


def _diagonal_as_read(g: Any, h: Any, b: Any, point: Point) -> float:
    """Second line of eq. (26): eigenpairs (eta, phi) of the preconditioner, (lambda, psi) of the Hessian."""
    etas, phis = np.linalg.eigh(b)
    lambdas, psis = np.linalg.eigh(h)
    damped, overlaps = etas + point.damping, (psis.T @ phis) ** 2
    bracket = 1 - point.rate / (2 * damped) * (lambdas @ overlaps)
    return float((point.rate * (phis.T @ g) ** 2 / damped) @ bracket)


def _along_the_hessian(g: Any, h: Any, a: Any, rate: float) -> float:
    """Mean of the change over signs of the gradient along the eigenvectors of H in place of those of A."""
    inverse, psis = np.linalg.inv(a), np.linalg.eigh(h)[1]
    form = -rate * inverse + rate**2 / 2 * inverse @ h @ inverse
    return float((psis.T @ g) ** 2 @ np.diag(psis.T @ form @ psis))


def _spread_of_samples(scales: tuple[float, ...], batch_size: int) -> tuple[Any, Any, Any]:
    """Largest eigenvalue, and mean |g|^2 and g'H g over all directions of the weights, of every batch of s x x'."""
    from simulate.training import optimisers

    turns = math.pi * np.arange(len(scales)) / len(scales)
    x = np.stack([np.cos(turns), np.sin(turns)], axis=1)
    samples = np.array(scales)[:, None, None] * x[:, :, None] * x[:, None, :]
    values = np.linalg.eigvalsh(optimisers.all_batches(samples, batch_size))
    return values[:, -1], (values**2).mean(axis=1), (values**3).mean(axis=1)


def expected_ascent(point: Point, *, guaranteed: bool) -> float:
    """Mean change of the batch loss over what its first order would gain, if positive."""
    top, square, form = _spread_of_samples(point.scales, point.batch_size)
    rate = 2 * square.mean() / (square * top).mean() if guaranteed else 2 / top.mean()
    return max(0.0, rate / 2 * form.mean() / square.mean() - 1)


def _bound_violation(rng: np.random.Generator, point: Point, *, average: bool = False) -> float:
    """How far the change exceeds the bound, relative to the first order, for a gradient turned towards the top.

    In one dimension, how far it is from the bound.
    """
    h, _, w = quadratic(rng, point.dim)
    w = np.linalg.matrix_power(h, point.turned) @ w
    g = h @ w
    end = w - point.rate * g
    change = (end @ h @ end - w @ h @ w) / 2
    values = np.linalg.eigvalsh(h)
    sharpness = values.mean() if average else values[-1]
    bound = loss_change.descent_bound(point.rate, squared_gradient=g @ g, sharpness=sharpness)
    excess = float(change - bound) / float(point.rate * g @ g)
    return abs(excess) if point.dim == 1 else max(0.0, excess)


def _steps() -> Mapping[str, Any]:
    from hypothesis import strategies as st

    return {"dim": st.integers(1, 12), "rate": st.floats(0.01, 3.0), "turned": st.integers(0, 9)}


def _sample_scales() -> Mapping[str, Any]:
    from hypothesis import strategies as st

    return {"scales": st.lists(st.floats(0.1, 9.0), min_size=4, max_size=7), "batch_size": st.integers(1, 4)}


STEPS = (Point(dim=5, rate=0.13, damping=0.17), Point(dim=7, rate=0.61, damping=0.08))

STEP_CLAIMS: tuple[AnyClaim, ...] = (
    Identity(
        id="granziol2022/loss-change",
        entries=("B44",),
        source=f"{PAPER}, eq. (22)",
        statement=r"\Delta L = -a |g|^2 \Big(1 - \frac a2 \sum_i \lambda_i \frac{(\phi_i^\top g)^2}{|g|^2}\Big)",
        passage=Passage(Standing.MISPRINT, "α ∑P i λi||φig(w)||2", "Eq 22"),
        routes=plain_step,
        points=STEPS,
        measured="measured",
        theory="theory",
        printed="as read",
        finding="As our copy reads the sum lacks the factor 1/|g|^2, without which it does not lead to "
        "the bound beside it.",
        tolerance=1e-12,
        tolerance_reason=ROUNDING,
        rivals=("first order", "without the half", "largest eigenvalue for all"),
        quantity="change of a quadratic loss",
    ),
    ExactProperty(
        id="granziol2022/descent-bound",
        entries=("B44",),
        source=f"{PAPER}, eq. (22)",
        statement=r"\Delta L \le -a |g|^2 (1 - a \lambda_1 / 2)\quad (\text{equal in one dimension})",
        strategies=_steps,
        violation=_bound_violation,
        examples=(
            Point(dim=5, rate=0.13, turned=0),
            Point(dim=7, rate=0.61, turned=9),
            Point(dim=1, rate=0.37, turned=0),
        ),
        tolerance=1e-10,
        tolerance_reason="rounding, relative to the first order",
        rivals={"mean eigenvalue": lambda rng, p: _bound_violation(rng, p, average=True)},
        seconds=0.3,
    ),
    ExactProperty(
        id="granziol2022/descent-in-the-mean",
        entries=("B44",),
        source=f"{PAPER}, section 10.1, on eq. (22) in expectation",
        statement=r"a \le \frac{2\, \mathbb{E}|g_B|^2}{\mathbb{E}(|g_B|^2 \lambda_1(H_B))} \implies "
        r"\mathbb{E}\,\Delta L \le 0,\quad \text{but not } a \le 2 / \mathbb{E} \lambda_1(H_B)",
        passage=OURS,
        strategies=_sample_scales,
        violation=lambda _, p: expected_ascent(p, guaranteed=True),
        examples=(
            Point(scales=(1.3, 0.4, 0.7, 6.1), batch_size=1),
            Point(scales=(1.3, 0.4, 0.7, 6.1, 0.9), batch_size=3),
        ),
        tolerance=1e-10,
        tolerance_reason="rounding of a ratio of order 1",
        rivals={"rate below 2 / E lambda_1": lambda _, p: expected_ascent(p, guaranteed=False)},
        seconds=0.3,
    ),
    Identity(
        id="granziol2022/preconditioned-change",
        entries=("B52",),
        source=f"{PAPER}, section 11, first line of eq. (26)",
        statement=r"\Delta L = -a\, g^\top A^{-1} g + \frac{a^2}{2} g^\top A^{-1} H A^{-1} g",
        passage=Passage(Standing.MISPRINT, "L(wk−αB−1∇L(wk))−L(w) = α∇L(wk)", "first Eq 26"),
        routes=preconditioned_step,
        points=STEPS,
        measured="measured",
        theory="theory",
        printed="first term positive",
        finding="As our copy reads the first term is positive, though the step goes against the gradient, "
        "as in Eq 22.",
        tolerance=1e-12,
        tolerance_reason=ROUNDING,
        rivals=("first order", "without preconditioner"),
        quantity="change of a quadratic loss",
    ),
    Identity(
        id="granziol2022/diagonal-change",
        entries=("B53",),
        source=f"{PAPER}, section 11, second line of eq. (26)",
        statement=r"\mathbb{E}_\pm \Delta L = -\sum_i \frac{a (\phi_i^\top g)^2}{\eta_i + \delta} "
        r"\Big(1 - \frac{a}{2 (\eta_i + \delta)} \sum_\mu \lambda_\mu (\psi_\mu^\top \phi_i)^2\Big),\quad "
        r"A = \sum_i (\eta_i + \delta) \phi_i \phi_i^\top,\ H = \sum_\mu \lambda_\mu \psi_\mu \psi_\mu^\top",
        passage=Passage(Standing.MISPRINT, "α0|φTi ∇L(w)|2 ηi + δ ( 1− α0 2(ηi + δ)", "second Eq 26"),
        routes=preconditioned_step,
        points=STEPS,
        measured="mean over signs",
        theory="diagonal",
        printed="as read",
        finding="As our copy reads the leading minus is missing. The sum over one index is the change itself where "
        "preconditioner and Hessian share their eigenvectors, which the paper assumes next; else it is the mean over "
        "the signs of the gradient along those of the preconditioner.",
        tolerance=1e-12,
        tolerance_reason=ROUNDING,
        rivals=("one gradient", "along the Hessian's eigenvectors", "without damping"),
        quantity="change of a quadratic loss",
    ),
)

# --- momentum: eqs. (24) and (25) ----------------------------------------------------------------------------


def momentum(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Contraction of products of 2^48 steps, with the best constants, as our copy reads, and with others."""
    from simulate.training import optimisers

    top, low = point.largest, point.smallest
    values = tuple(np.geomspace(low, top, 7))
    polyak, look_ahead = learning_rates.heavy_ball(top, low), learning_rates.nesterov(top, low)
    best = learning_rates.best_nesterov(top, low)

    def ball(rate: Any, rho: Any) -> float:
        return optimisers.contraction(optimisers.heavy_ball(float(rate), float(rho)), values)

    def ahead(rate: Any, rho: Any) -> float:
        return optimisers.contraction(optimisers.nesterov(float(rate), float(rho)), values)

    ratio = math.sqrt(top / low)
    return {
        "heavy ball": ball(*polyak[:2]),
        "heavy ball, theory": polyak.contraction,
        "heavy ball as read": ball(2 / (math.sqrt(top) + math.sqrt(low)), polyak.momentum),
        "heavy ball, momentum not squared": ball(polyak.learning_rate, math.sqrt(polyak.momentum)),
        "gradient descent": optimisers.contraction(optimisers.descent(2 / (top + low)), values),
        "Nesterov": ahead(*look_ahead[:2]),
        "Nesterov, theory": look_ahead.contraction,
        "Nesterov as read": ahead(1 / ratio, look_ahead.momentum),
        "Nesterov, momentum squared": ahead(look_ahead.learning_rate, look_ahead.momentum**2),
        "best": ahead(*best[:2]),
        "best, theory": best.contraction,
        "common rate": ahead(look_ahead.learning_rate, best.momentum),
        "without the 1 under the root": 1 - 2 / (math.sqrt(3) * ratio),
    }


def _contraction_error(_: np.random.Generator, p: Point, *, of: str = "") -> float:
    """Predicted less iterated contraction of either method."""
    from simulate.training import optimisers

    low = p.share * p.largest
    step = (optimisers.nesterov if p.look_ahead else optimisers.heavy_ball)(p.rate, p.momentum)
    found = optimisers.contraction(step, tuple(np.linspace(low, p.largest, 5)))
    law = learning_rates.nesterov_contraction if p.look_ahead else learning_rates.heavy_ball_contraction
    ends = {"largest": p.largest, "smallest": p.largest if of == "largest" else low}
    predicted = math.sqrt(p.momentum) if of == "root" else law(p.rate, p.momentum, **ends)
    return abs(found - float(predicted)) / max(1.0, found)


def _methods() -> Mapping[str, Any]:
    from hypothesis import strategies as st

    return {
        "look_ahead": st.booleans(),
        "rate": st.floats(0.01, 3.0),
        "momentum": st.floats(0.0, 1.2),
        "largest": st.floats(0.1, 5.0),
        "share": st.floats(0.001, 1.0),
    }


SPECTRA = (
    Point(largest=7.3, smallest=0.21),
    Point(largest=100.0, smallest=1.3),
    Point(largest=0.9, smallest=0.013),
)
DOUBLE = "double roots at an end of the spectrum are only good to the root of the rounding error"

MOMENTUM_CLAIMS: tuple[AnyClaim, ...] = (
    Identity(
        id="granziol2022/polyak",
        entries=("B51",),
        source=f"{PAPER}, section 10.2, eqs. (24) and (25)",
        statement=r"\alpha = \Big(\frac{2}{\sqrt L + \sqrt\mu}\Big)^2,\ \rho = \Big(\frac{\sqrt L - \sqrt\mu}"
        r"{\sqrt L + \sqrt\mu}\Big)^2:\quad \text{contraction } \frac{\sqrt L - \sqrt\mu}{\sqrt L + \sqrt\mu}",
        passage=Passage(Standing.MISPRINT, "αPolyak = 2√ λ1 +√ λP", "Eq 24"),
        routes=momentum,
        points=SPECTRA,
        measured="heavy ball",
        theory="heavy ball, theory",
        printed="heavy ball as read",
        finding="As our copy reads the learning rate lacks the square: it does not have the unit of an "
        "inverse curvature, and for large L the method diverges.",
        tolerance=1e-5,
        tolerance_reason=DOUBLE,
        rivals=("heavy ball, momentum not squared", "gradient descent"),
        seconds=0.3,
        quantity="contraction per step",
    ),
    Identity(
        id="granziol2022/nesterov",
        entries=("B51",),
        source=f"{PAPER}, section 10.2, eqs. (24) and (25)",
        statement=r"\alpha = \frac1L,\ \rho = \frac{\sqrt L - \sqrt\mu}{\sqrt L + \sqrt\mu}:\quad "
        r"\text{contraction } 1 - \sqrt{\mu/L}",
        passage=Passage(Standing.MISPRINT, "αNesterov = √ λP λ1", "Eq 24"),
        routes=momentum,
        points=SPECTRA,
        measured="Nesterov",
        theory="Nesterov, theory",
        printed="Nesterov as read",
        finding="As our copy reads the learning rate is sqrt(mu/L), which has no unit; for large L the "
        "method diverges.",
        tolerance=1e-5,
        tolerance_reason=DOUBLE,
        rivals=("Nesterov, momentum squared", "best", "heavy ball, theory"),
        seconds=0.3,
        quantity="contraction per step",
    ),
    Identity(
        id="granziol2022/best-nesterov",
        entries=("B51",),
        source=f"beside {PAPER}, eq. (25): Lessard, Recht and Packard (2016), proposition 1",
        statement=r"\alpha = \frac{4}{3L + \mu},\ \rho = \frac{\sqrt{3\kappa + 1} - 2}{\sqrt{3\kappa + 1} + 2}:\quad "
        r"\text{contraction } 1 - \frac{2}{\sqrt{3\kappa + 1}},\ \kappa = L/\mu",
        passage=OURS,
        routes=momentum,
        points=SPECTRA,
        measured="best",
        theory="best, theory",
        tolerance=1e-5,
        tolerance_reason=DOUBLE,
        rivals=("Nesterov", "common rate", "without the 1 under the root"),
        seconds=0.3,
        quantity="contraction per step",
    ),
    ExactProperty(
        id="granziol2022/momentum-contraction",
        entries=("B51",),
        source=f"beside {PAPER}, eqs. (24) and (25)",
        statement=r"\text{contraction} = \max_{h \in \{\mu, L\}} \max\{|x| : x^2 - \tau_h x + \delta_h = 0\}",
        passage=OURS,
        strategies=_methods,
        violation=_contraction_error,
        examples=(
            Point(look_ahead=False, rate=0.33, momentum=0.41, largest=1.7, share=0.03),
            Point(look_ahead=True, rate=0.33, momentum=0.41, largest=1.7, share=0.03),
        ),
        tolerance=1e-5,
        tolerance_reason=DOUBLE,
        rivals={
            "root of the momentum": lambda rng, p: _contraction_error(rng, p, of="root"),
            "largest eigenvalue only": lambda rng, p: _contraction_error(rng, p, of="largest"),
        },
        seconds=0.5,
    ),
)

CLAIMS: tuple[AnyClaim, ...] = (*STEP_CLAIMS, *MOMENTUM_CLAIMS)
