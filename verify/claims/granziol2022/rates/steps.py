"""Granziol, Zohren and Roberts (2022): what one step does to a quadratic loss, and momentum."""

from __future__ import annotations

import itertools
import math
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator

from simulate.monte_carlo import Point
from simulate.training import optimisers
from theory import learning_rates, loss_change
from verify.claims.granziol2022 import PAPER
from verify.model import KNOWN, Arrays, ExactProperty, Identity, misprint
from verify.model.domains import Between, OneOf

ROUNDING = "two routes in float64"

# --- one step: eqs. (22) and (26) ----------------------------------------------------------------------------


def quadratic(rng: Generator, dim: int) -> tuple[np.ndarray[Any, Any], ...]:
    """A positive definite Hessian, a positive definite preconditioner that does not commute with it, and weights."""
    factors = rng.standard_normal((2, dim, dim + 2))
    h, a = factors @ factors.swapaxes(1, 2) / dim + 0.3 * np.eye(dim)
    return h, a, rng.standard_normal(dim)


def plain_step(rng: Generator, point: Point) -> Arrays:
    """Change of the loss in one step, from the loss at both ends and from gradient and Hessian."""
    h, _, w = quadratic(rng, point.dim)
    loss, g = (lambda x: x @ h @ x / 2), h @ w
    values, vectors = np.linalg.eigh(h)
    square, form = g @ g, values @ (vectors.T @ g) ** 2
    return {
        "measured": loss(w - point.rate * g) - loss(w),
        "theory": loss_change.quadratic_change(point.rate, g, h),
        "as our copy reads": -point.rate * square * (1 - point.rate / 2 * form),
        "first order": -point.rate * square,
        "without the half": -point.rate * square * (1 - point.rate * form / square),
        "largest eigenvalue for all": loss_change.descent_bound(
            point.rate, squared_gradient=square, sharpness=values[-1]
        ),
    }


def preconditioned_step(rng: Generator, point: Point) -> Arrays:
    """Change of a quadratic loss in one step with a damped preconditioner, for one gradient."""
    g, h, _, a, changes = _preconditioned(rng, point)
    return {
        "measured": changes[0],
        "theory": loss_change.quadratic_change(point.rate, g, h, preconditioner=a),
        "first term positive": loss_change.quadratic_change(-point.rate, g, h, preconditioner=a),
        "first order": -point.rate * g @ np.linalg.solve(a, g),
        "without preconditioner": loss_change.quadratic_change(point.rate, g, h),
    }


def averaged_step(rng: Generator, point: Point) -> Arrays:
    """Change in a preconditioned step, averaged over signs of the gradient along the preconditioner's eigenvectors."""
    g, h, b, a, changes = _preconditioned(rng, point)
    return {
        "mean over signs": changes.mean(),
        "diagonal": loss_change.sign_averaged_change(point.rate, g, h, preconditioner=a),
        "as our copy reads": _diagonal_as_read(g, h, b, point),
        "one gradient": changes[0],
        "along the Hessian's eigenvectors": _along_the_hessian(g, h, a, point.rate),
        "without damping": loss_change.sign_averaged_change(point.rate, g, h, preconditioner=b),
    }


def _preconditioned(rng: Generator, point: Point) -> tuple[Any, ...]:
    """One gradient, Hessian, preconditioner without damping and with it, and the changes of the loss for all signs."""
    h, b, w = quadratic(rng, point.dim)
    a = b + point.damping * np.eye(point.dim)
    vectors = np.linalg.eigh(b)[1]
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=point.dim)))
    gradients = signs * np.abs(vectors.T @ h @ w) @ vectors.T
    starts = np.linalg.solve(h, gradients.T).T
    ends = starts - point.rate * np.linalg.solve(a, gradients.T).T
    changes = ((ends @ h) * ends - (starts @ h) * starts).sum(axis=1) / 2
    return gradients[0], h, b, a, changes


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


def _bound_violation(rng: Generator, point: Point, *, average: bool = False) -> float:
    """Excess of the change over the bound, relative to the first order, for a gradient turned towards the top.

    In one dimension, its distance from the bound.
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


STEPS = (Point(dim=5, rate=0.13, damping=0.17), Point(dim=7, rate=0.61, damping=0.08))

_change = partial(
    Identity, points=STEPS, tolerance=1e-12, tolerance_reason=ROUNDING, quantity="change of a quadratic loss"
)

STEP_CLAIMS = (
    _change(
        id="granziol2022/loss-change",
        symbols={r"\Delta L": "change of the loss", "a": "learning rate", "g": "gradient"},
        entries=("B44",),
        source=f"{PAPER}, eq. (22)",
        statement=r"\Delta L = -a |g|^2 \Big(1 - \frac a2 \sum_i \lambda_i \frac{(\phi_i^\top g)^2}{|g|^2}\Big)",
        says="A gradient step changes a quadratic loss by its first-order gain, times one less half the rate times "
        "the curvature along it.",
        passage=misprint("α ∑P i λi||φig(w)||2", "Eq 22"),
        routes=plain_step,
        printed="as our copy reads",
        reads=r"\delta L = -\alpha \lVert g(w)\rVert^2 \Big(1 - \frac{\alpha \sum_i^P \lambda_i \lVert \phi_i "
        r"g(w)\rVert^2}{2}\Big)",
        finding="As our copy reads the sum lacks the factor 1/|g|^2, which the bound next to it needs.",
    ),
    ExactProperty(
        id="granziol2022/descent-bound",
        entries=("B44",),
        source=f"{PAPER}, eq. (22)",
        statement=r"\Delta L \le -a |g|^2 (1 - a \lambda_1 / 2)\quad (\text{equal in one dimension})",
        says="A gradient step on a quadratic lowers the loss at least as much as the bound from the largest "
        "eigenvalue; in one dimension, exactly as much.",
        domain={"dim": Between(1, 12), "rate": Between(0.01, 3.0), "turned": Between(0, 9)},
        violation=_bound_violation,
        examples=(
            Point(dim=5, rate=0.13, turned=0),
            Point(dim=7, rate=0.61, turned=9),
            Point(dim=1, rate=0.37, turned=0),
        ),
        tolerance=1e-10,
        tolerance_reason="rounding, relative to the first order",
        rivals={"mean eigenvalue": partial(_bound_violation, average=True)},
        seconds=0.01,
    ),
    _change(
        id="granziol2022/preconditioned-change",
        entries=("B52",),
        source=f"{PAPER}, section 11, first line of eq. (26)",
        statement=r"\Delta L = -a\, g^\top A^{-1} g + \frac{a^2}{2} g^\top A^{-1} H A^{-1} g",
        says="A preconditioned step changes a quadratic loss by a negative first-order term plus one with the "
        "Hessian between two inverse preconditioners.",
        passage=misprint("L(wk−αB−1∇L(wk))−L(w) = α∇L(wk)", "first Eq 26"),
        routes=preconditioned_step,
        printed="first term positive",
        reads=r"L(w_k - \alpha B^{-1} \nabla L) - L(w) = \alpha \nabla L^\top B^{-1} \nabla L + \frac{\alpha^2}{2} "
        r"\nabla L^\top B^{-1} H B^{-1} \nabla L",
        finding="As our copy reads the first term is positive, though the step goes against the gradient.",
    ),
    _change(
        id="granziol2022/diagonal-change",
        entries=("B53",),
        source=f"{PAPER}, section 11, second line of eq. (26)",
        statement=r"\mathbb{E}_\pm \Delta L = -\sum_i \frac{a (\phi_i^\top g)^2}{\eta_i + \delta} "
        r"\Big(1 - \frac{a}{2 (\eta_i + \delta)} \sum_\mu \lambda_\mu (\psi_\mu^\top \phi_i)^2\Big),\quad "
        r"A = \sum_i (\eta_i + \delta) \phi_i \phi_i^\top,\ H = \sum_\mu \lambda_\mu \psi_\mu \psi_\mu^\top",
        says="Averaged over the gradient's signs along the preconditioner's eigenvectors, the change of a quadratic "
        "loss is one negative sum over them.",
        passage=misprint("α0|φTi ∇L(w)|2 ηi + δ ( 1− α0 2(ηi + δ)", "second Eq 26"),
        routes=averaged_step,
        printed="as our copy reads",
        reads=r"L(w_{k+1}) - L(w) = \sum_i^P \frac{\alpha_0 |\phi_i^\top \nabla L(w)|^2}{\eta_i + \delta} \Big(1 - "
        r"\frac{\alpha_0}{2 (\eta_i + \delta)} \sum_\mu \lambda_\mu |\psi_u^\top \phi_i|^2\Big)",
        finding="As our copy reads the leading minus is missing. The sum is the change itself where preconditioner "
        "and Hessian share their eigenvectors, as the paper assumes next, else its mean over signs.",
    ),
)

# --- momentum: eqs. (24) and (25) ----------------------------------------------------------------------------


def _polyak(_: Generator, point: Point) -> Arrays:
    """Contraction of products of 2^48 steps of the heavy ball: best constants, as our copy reads, and others."""
    top, low = point.largest, point.smallest
    best, ball = learning_rates.heavy_ball(top, low), optimisers.heavy_ball_step
    return {
        "heavy ball": _contraction(point, ball, *best[:2]),
        "heavy ball, theory": best.contraction,
        "heavy ball as our copy reads": _contraction(
            point, ball, 2 / (math.sqrt(top) + math.sqrt(low)), best.momentum
        ),
        "heavy ball, momentum not squared": _contraction(
            point, ball, best.learning_rate, math.sqrt(best.momentum)
        ),
        "gradient descent": _contraction(point, optimisers.descent_step, 2 / (top + low)),
    }


def _nesterov(_: Generator, point: Point) -> Arrays:
    """Contraction of products of 2^48 steps of Nesterov's method: usual constants, as our copy reads, and others."""
    top, low = point.largest, point.smallest
    usual = learning_rates.nesterov(top, low)
    contraction = partial(_contraction, point, optimisers.nesterov_step)
    return {
        "Nesterov": contraction(*usual[:2]),
        "Nesterov, theory": usual.contraction,
        "Nesterov as our copy reads": contraction(1 / math.sqrt(top / low), usual.momentum),
        "Nesterov, momentum squared": contraction(usual.learning_rate, usual.momentum**2),
        "best": contraction(*learning_rates.best_nesterov(top, low)[:2]),
        "heavy ball, theory": learning_rates.heavy_ball(top, low).contraction,
    }


def _contraction_error(_: Generator, p: Point, *, of: str = "") -> float:
    """Predicted less iterated contraction of either method."""
    ends = {"largest": p.largest, "smallest": p.share * p.largest}
    step = optimisers.nesterov_step if p.look_ahead else optimisers.heavy_ball_step
    found = _contraction(p | ends, step, p.rate, p.momentum)
    law = learning_rates.nesterov_contraction if p.look_ahead else learning_rates.heavy_ball_contraction
    ends["smallest"] = p.largest if of == "largest" else ends["smallest"]
    predicted = math.sqrt(p.momentum) if of == "root" else float(law(p.rate, p.momentum, **ends))
    return abs(found - predicted) / max(1.0, found)


def _contraction(point: Point, step: Any, *constants: Any) -> float:
    spectrum = tuple(np.geomspace(point.smallest, point.largest, 7))
    return optimisers.step_contraction(step(*map(float, constants)), spectrum)


BEST_CONSTANTS: dict[str, Any] = {
    "symbols": {
        "L": "largest curvature",
        r"\mu": "smallest curvature",
        r"\alpha": "learning rate",
        r"\rho": "momentum",
    },
    "entries": ("B51",),
    "points": (
        Point(largest=7.3, smallest=0.21),
        Point(largest=100.0, smallest=1.3),
        Point(largest=0.9, smallest=0.013),
    ),
    "tolerance": 1e-5,
    "tolerance_reason": "double roots at an end of the spectrum are only good to the root of the rounding error",
    "seconds": 0.01,
    "quantity": "contraction per step",
}

CLAIMS = (
    *STEP_CLAIMS,
    Identity(
        **BEST_CONSTANTS,
        id="granziol2022/polyak",
        source=f"{PAPER}, section 10.2, eqs. (24) and (25)",
        statement=r"\alpha = \Big(\frac{2}{\sqrt L + \sqrt\mu}\Big)^2,\ \rho = \Big(\frac{\sqrt L - \sqrt\mu}"
        r"{\sqrt L + \sqrt\mu}\Big)^2:\quad \text{contraction } \frac{\sqrt L - \sqrt\mu}{\sqrt L + \sqrt\mu}",
        says="Momentum descent with Polyak's rate, squared, contracts by difference over sum of the roots of the "
        "largest and smallest eigenvalue.",
        passage=misprint("αPolyak = 2√ λ1 +√ λP", "Eq 24"),
        routes=_polyak,
        printed="heavy ball as our copy reads",
        reads=r"\alpha_{\rm Polyak} = \frac{2}{\sqrt{\lambda_1} + \sqrt{\lambda_P}}",
        finding="As our copy reads the rate lacks the square: it has not the unit of an inverse curvature, and for "
        "large L the method diverges.",
    ),
    Identity(
        **BEST_CONSTANTS,
        id="granziol2022/nesterov",
        source=f"{PAPER}, section 10.2, eqs. (24) and (25)",
        statement=r"\alpha = \frac1L,\ \rho = \frac{\sqrt L - \sqrt\mu}{\sqrt L + \sqrt\mu}:\quad "
        r"\text{contraction } 1 - \sqrt{\mu/L}",
        says="Nesterov's method at one over the largest eigenvalue contracts by one less the root of smallest over "
        "largest eigenvalue.",
        passage=misprint("αNesterov = √ λP λ1", "Eq 24"),
        routes=_nesterov,
        printed="Nesterov as our copy reads",
        reads=r"\alpha_{\rm Nesterov} = \sqrt{\frac{\lambda_P}{\lambda_1}}",
        finding="As our copy reads the learning rate is sqrt(mu/L), which has no unit; for large L the "
        "method diverges.",
    ),
    ExactProperty(
        id="granziol2022/momentum-contraction",
        symbols={"L": "largest curvature", r"\mu": "smallest curvature"},
        entries=("B51",),
        source=f"Polyak (1964), beside {PAPER}, eqs. (24) and (25)",
        passage=KNOWN,
        statement=r"\text{contraction} = \max_{h \in \{\mu, L\}} \max\{|x| : x^2 - \tau_h x + \delta_h = 0\}",
        says="With any constant rate and momentum, the contraction on a quadratic is the largest root modulus at "
        "its smallest or its largest eigenvalue.",
        domain={
            "look_ahead": OneOf(False, True),
            "rate": Between(0.01, 3.0),
            "momentum": Between(0.0, 1.2),
            "largest": Between(0.1, 5.0),
            "share": Between(0.001, 1.0),
        },
        violation=_contraction_error,
        examples=tuple(
            Point(look_ahead=ahead, rate=0.33, momentum=0.41, largest=1.7, share=0.03)
            for ahead in (False, True)
        ),
        rivals={
            "root of the momentum": partial(_contraction_error, of="root"),
            "largest eigenvalue only": partial(_contraction_error, of="largest"),
        },
        **{name: BEST_CONSTANTS[name] for name in ("tolerance", "tolerance_reason", "seconds")},
    ),
)
