"""Granziol, Zohren and Roberts (2022), sections 10 and 11: learning rates of SGD, momentum and adaptive methods."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from simulate.monte_carlo import Block, Point
from theory import adaptive_rates, batch_hessian, learning_rates, loss_change
from theory.rmt import MarchenkoPastur
from verify.model import AnyClaim, Claim, ExactProperty, Experiment, Identity, Kind, Verdict

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
    """Change of the loss in one step, from the loss at both ends and from sums over eigenvectors."""
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
    """The same with a preconditioner: for one gradient, and averaged over all signs along the eigenvectors of H."""
    h, a, w = quadratic(rng, point.dim)
    vectors = np.linalg.eigh(h)[1]
    components = np.abs(vectors.T @ w)
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=point.dim)))
    starts = signs * components @ vectors.T
    ends = starts - point.rate * np.linalg.solve(a, (starts @ h).T).T
    changes = ((ends @ h) * ends - (starts @ h) * starts).sum(axis=1) / 2
    g = h @ starts[0]
    first = point.rate * g @ np.linalg.solve(a, g)
    averaged = loss_change.sign_averaged_change(point.rate, g, h, preconditioner=a)
    slope = loss_change.sign_averaged_change(1e-9, g, h, preconditioner=a) / 1e-9 * point.rate
    return {
        "measured": changes[0],
        "theory": loss_change.quadratic_change(point.rate, g, h, preconditioner=a),
        "first term positive": changes[0] + 2 * first,
        "first order": -first,
        "without preconditioner": loss_change.quadratic_change(point.rate, g, h),
        "mean over signs": changes.mean(),
        "diagonal": averaged,
        "diagonal, positive": averaged - 2 * slope,
        "one gradient": changes[0],
    }


def _spread_of_samples(scales: tuple[float, ...], batch_size: int) -> tuple[Any, Any, Any]:
    """Largest eigenvalue, and mean |g|^2 and g'H g over all directions of the weights, of every batch of s x x'."""
    from simulate import optimisers

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
    """How far the change exceeds the bound, relative to the change."""
    h, _, w = quadratic(rng, point.dim)
    g = h @ w
    end = w - point.rate * g
    change = (end @ h @ end - w @ h @ w) / 2
    values = np.linalg.eigvalsh(h)
    sharpness = values.mean() if average else values[-1]
    bound = loss_change.descent_bound(point.rate, squared_gradient=g @ g, sharpness=sharpness)
    return max(0.0, float(change - bound) / abs(float(change)))


def _steps() -> Mapping[str, Any]:
    from hypothesis import strategies as st

    return {"dim": st.integers(1, 12), "rate": st.floats(0.01, 3.0)}


def _sample_scales() -> Mapping[str, Any]:
    from hypothesis import strategies as st

    return {"scales": st.lists(st.floats(0.1, 9.0), min_size=4, max_size=7), "batch_size": st.integers(1, 4)}


STEPS = (Point(dim=5, rate=0.13), Point(dim=7, rate=0.61))

STEP_CLAIMS: tuple[AnyClaim, ...] = (
    Identity(
        id="granziol2022/loss-change",
        entries=("B44",),
        source=f"{PAPER}, eq. (22)",
        statement=r"\Delta L = -a |g|^2 \Big(1 - \frac a2 \sum_i \lambda_i \frac{(\phi_i^\top g)^2}{|g|^2}\Big)",
        routes=plain_step,
        points=STEPS,
        measured="measured",
        theory="theory",
        printed="as read",
        finding="The sum lacks the factor 1/|g|^2.",
        tolerance=1e-12,
        tolerance_reason=ROUNDING,
        rivals=("first order", "without the half", "largest eigenvalue for all"),
        quantity="change of a quadratic loss",
    ),
    ExactProperty(
        id="granziol2022/descent-bound",
        entries=("B44",),
        source=f"{PAPER}, eq. (22)",
        statement=r"\Delta L \le -a |g|^2 (1 - a \lambda_1 / 2)",
        strategies=_steps,
        violation=_bound_violation,
        examples=STEPS,
        tolerance=1e-10,
        tolerance_reason="rounding, relative to the change",
        rivals={"mean eigenvalue": lambda rng, p: _bound_violation(rng, p, average=True)},
        seconds=0.3,
    ),
    ExactProperty(
        id="granziol2022/descent-in-the-mean",
        entries=("B44",),
        source=f"{PAPER}, section 10.1, on eq. (22) in expectation",
        statement=r"a \le \frac{2\, \mathbb{E}|g_B|^2}{\mathbb{E}(|g_B|^2 \lambda_1(H_B))} \implies "
        r"\mathbb{E}\,\Delta L \le 0,\quad \text{but not } a \le 2 / \mathbb{E} \lambda_1(H_B)",
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
        routes=preconditioned_step,
        points=STEPS,
        measured="measured",
        theory="theory",
        printed="first term positive",
        finding="The first term has the wrong sign.",
        tolerance=1e-12,
        tolerance_reason=ROUNDING,
        rivals=("first order", "without preconditioner"),
        quantity="change of a quadratic loss",
    ),
    Identity(
        id="granziol2022/diagonal-change",
        entries=("B53",),
        source=f"{PAPER}, section 11, second line of eq. (26)",
        statement=r"\mathbb{E}_\pm \Delta L = \sum_i (\phi_i^\top g)^2 \Big[-a (A^{-1})_{ii} + \frac{a^2}{2} "
        r"(A^{-1} H A^{-1})_{ii}\Big],\quad \text{mean over the signs of } \phi_i^\top g",
        routes=preconditioned_step,
        points=STEPS,
        measured="mean over signs",
        theory="diagonal",
        printed="diagonal, positive",
        finding="The leading minus is missing; and a single sum over eigenvectors is the change itself only if "
        "preconditioner and Hessian commute, else its mean over the signs of the gradient along them.",
        tolerance=1e-12,
        tolerance_reason=ROUNDING,
        rivals=("one gradient",),
        quantity="change of a quadratic loss",
    ),
)

# --- momentum: eqs. (24) and (25) ----------------------------------------------------------------------------


def momentum(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Contraction of products of 2^48 steps, with the best constants, as our copy reads, and with others."""
    from simulate import optimisers

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
    from simulate import optimisers

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
        source=f"{PAPER}, section 10.3, eq. (24)",
        statement=r"\alpha = \Big(\frac{2}{\sqrt L + \sqrt\mu}\Big)^2,\ \rho = \Big(\frac{\sqrt L - \sqrt\mu}"
        r"{\sqrt L + \sqrt\mu}\Big)^2:\quad \text{contraction } \frac{\sqrt L - \sqrt\mu}{\sqrt L + \sqrt\mu}",
        routes=momentum,
        points=SPECTRA,
        measured="heavy ball",
        theory="heavy ball, theory",
        printed="heavy ball as read",
        finding="The learning rate lacks the square; it does not have the unit of an inverse curvature, and for "
        "large L the method diverges.",
        tolerance=1e-5,
        tolerance_reason=DOUBLE,
        rivals=("heavy ball, momentum not squared", "gradient descent"),
        seconds=0.3,
        quantity="contraction per step",
    ),
    Identity(
        id="granziol2022/nesterov",
        entries=("B51",),
        source=f"{PAPER}, section 10.3, eq. (25)",
        statement=r"\alpha = \frac1L,\ \rho = \frac{\sqrt L - \sqrt\mu}{\sqrt L + \sqrt\mu}:\quad "
        r"\text{contraction } 1 - \sqrt{\mu/L}",
        routes=momentum,
        points=SPECTRA,
        measured="Nesterov",
        theory="Nesterov, theory",
        printed="Nesterov as read",
        finding="The learning rate reads sqrt(mu/L), which has no unit; for large L the method diverges.",
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

# --- rates from theorem 4: sections 10.1, 11 and 14 ----------------------------------------------------------


def _scale(p: Point, batch_size: float) -> float:
    """Half of the noise's edge: s = sqrt(P/b) sigma."""
    return p.sigma * math.sqrt(p.dim * (1 / batch_size - 1 / p.dataset_size))


def _effective_ratio(p: Point) -> float:
    """Effective size of the larger batch over that of the smaller one."""
    return (_scale(p, p.batch_size) / _scale(p, p.larger)) ** 2


def two_batches(block: Block, point: Point) -> Mapping[str, Any]:
    """Top eigenvalue of one direction plus Wigner noise at two batch sizes: of the same noise but for its scale.

    The exponent is that of two independent batches.
    """
    from simulate import ensembles

    def top(noise: Block, batch_size: float, eigenvalue: float) -> Any:
        scale = _scale(point, batch_size)
        return scale * ensembles.goe_top_eigenvalue(noise, point.dim, spike=eigenvalue / scale)

    here, there, edge = (
        top(Block(copy.deepcopy(block.streams), block.device), size, eigenvalue)
        for size, eigenvalue in (
            (point.batch_size, point.eigenvalue),
            (point.larger, point.eigenvalue),
            (point.batch_size, 0.0),
        )
    )
    top(block, point.batch_size, point.eigenvalue)  # what is drawn next is independent of the three
    other = top(block, point.larger, point.eigenvalue)
    return {
        "here": here,
        "there": there,
        "exponent": (here / other).log() / math.log(_effective_ratio(point)),
        "shift": here - point.eigenvalue,
        "shift there": there - point.eigenvalue,
        "edge": edge,
        "adaptive": 2 * point.preconditioner / edge,
    }


def _noisy(batch_size: int, larger: int, eigenvalue: float) -> Point:
    size = {"dim": 6400, "dataset_size": 3100, "batch_size": batch_size, "larger": larger}
    return Point(eigenvalue=eigenvalue, sigma=0.07, preconditioner=0.83, **size)


RATES = Experiment(
    id="granziol2022/rates",
    replicate="one noise matrix with one direction, scaled to two batch sizes",
    simulate=two_batches,
    points=(_noisy(9, 24, 0.33), _noisy(110, 140, 0.33), _noisy(500, 800, 0.33), _noisy(1500, 2900, 0.33)),
    budget=1024,
    seconds=1.0,
    smoke=True,
)

OUTLIERS = Experiment(
    id="granziol2022/outliers-of-two-batches",
    replicate="one noise matrix with one direction, scaled to two batch sizes",
    simulate=two_batches,
    points=(_noisy(700, 1100, 0.41), _noisy(1500, 2100, 0.37)),
    budget=4096,
    seconds=1.0,
)


def _size(p: Point, batch_size: float) -> dict[str, Any]:
    return {"sigma": p.sigma, "dim": p.dim, "batch_size": batch_size, "dataset_size": p.dataset_size}


def _exponent(p: Point) -> float:
    """Local exponent of the rate between both batch sizes."""
    low, high = (learning_rates.sgd_limit(p.eigenvalue, **_size(p, b)) for b in (p.batch_size, p.larger))
    return math.log(high / low) / math.log(_effective_ratio(p))


def _outlier(p: Point, batch_size: float) -> float:
    """The formula above the threshold, used on either side of it."""
    return p.eigenvalue + _scale(p, batch_size) ** 2 / p.eigenvalue


def _straight_line(p: Point) -> float:
    """Through the eigenvalues at the smallest and the largest batch of the runs."""
    ends = RATES.points[0].batch_size, RATES.points[-1].batch_size
    low, high = (float(batch_hessian.batch_eigenvalue(p.eigenvalue, **_size(p, size))) for size in ends)
    return low + (high - low) * (p.batch_size - ends[0]) / (ends[1] - ends[0])


def _exponent_as_read(p: Point) -> float:
    return math.log(_outlier(p, p.batch_size) / _outlier(p, p.larger)) / math.log(_effective_ratio(p))


def _over_edge(p: Point) -> float:
    return float(adaptive_rates.outlier_over_edge(p.eigenvalue, **_size(p, p.batch_size)))


def _adaptive(p: Point) -> float:
    return float(adaptive_rates.adaptive_limit(p.preconditioner, **_size(p, p.batch_size)))


FINITE_SIZE = "the edge is 0.18 % low at P = 6400; a spike near the threshold is kept away"


def edge_exponent(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Slope of the log of the Marchenko-Pastur edge in log P/b."""
    up, down = (
        MarchenkoPastur(q=point.q * step, variance=0.7).edges[1] for step in (math.exp(1e-4), math.exp(-1e-4))
    )
    return {
        "slope": math.log(up / down) / 2e-4,
        "theory": learning_rates.marchenko_pastur_exponent(point.q),
        "linear": 1.0,
        "semicircle": 0.5,
        "without the root": point.q / (1 + point.q),
    }


RATE_CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="granziol2022/rate-exponent",
        entries=("B46", "B48", "B61"),
        source=f"{PAPER}, section 10.1 and footnote 6, from theorem 4",
        statement=r"\frac{d \log (2 / \lambda_1')}{d \log b} = \tfrac12 \text{ for } b \le B_c,\quad "
        r"\frac{1}{1 + b/B_c} \text{ above},\quad B_c = P \sigma^2 / \lambda_1^2",
        experiment=RATES,
        score="exponent",
        predict=_exponent,
        printed=_exponent_as_read,
        finding="Linear scaling needs the broadening to exceed the eigenvalue, which the formula for an outlier rules "
        "out: below b = B_c the edge decides and the exponent is 1/2. Theorem 4 never gives more than a square root.",
        margin=0.01,
        relative=False,
        margin_reason="finite size cancels in the ratio of two edges, and is O(1/P) for an outlier",
        rivals={
            "linear": lambda _: 1.0,
            "square root everywhere": lambda _: 0.5,
            "flat": lambda _: 0.0,
        },
        axis="batch_size",
        quantity="local exponent of the rate in the batch size",
    ),
    Claim(
        id="granziol2022/eigenvalue-below-crossover",
        entries=("B45",),
        source=f"{PAPER}, section 10.1, eq. (23)",
        statement=r"\lambda_1' = 2 \sqrt{P/b}\,\sigma \text{ for } b \le B_c,\quad "
        r"\lambda_1 + \frac Pb \frac{\sigma^2}{\lambda_1} \le 2 \lambda_1 \text{ above}",
        experiment=RATES,
        score="here",
        predict=lambda p: float(batch_hessian.batch_eigenvalue(p.eigenvalue, **_size(p, p.batch_size))),
        printed=lambda p: _outlier(p, p.batch_size),
        finding="Where the broadening would be much larger than the eigenvalue the formula does not hold: at "
        "b = 0.03 B_c the eigenvalue is a third of what it says. Within its range the broadening is at most the "
        "eigenvalue.",
        margin=0.01,
        margin_reason=FINITE_SIZE,
        rivals={
            "broadening only": lambda p: _scale(p, p.batch_size) ** 2 / p.eigenvalue,
            "edge everywhere": lambda p: 2 * _scale(p, p.batch_size),
            "half the edge": lambda p: _scale(p, p.batch_size),
            "straight line in B": _straight_line,
        },
        axis="batch_size",
        quantity="largest eigenvalue of the batch Hessian",
    ),
    Claim(
        id="granziol2022/perturbation-scaling",
        entries=("B56", "B61"),
        source=f"{PAPER}, section 14",
        statement=r"\frac{\mathbb{E}\,\lambda_1'(b) - \lambda_1}{\mathbb{E}\,\lambda_1'(b') - \lambda_1} = "
        r"\frac{b'}{b}\quad (\lambda_1 > \sqrt{P/b}\,\sigma)",
        experiment=OUTLIERS,
        kind=Kind.RATIO,
        score=("shift", "shift there"),
        predict=_effective_ratio,
        margin=0.01,
        margin_reason="finite size is O(1/P) for an outlier",
        rivals={
            "square root": lambda p: math.sqrt(_effective_ratio(p)),
            "eigenvalue itself": lambda p: _outlier(p, p.batch_size) / _outlier(p, p.larger),
            "B for b": lambda p: p.larger / p.batch_size,
        },
        quantity="shift of the eigenvalue over that of a larger batch",
    ),
    Claim(
        id="granziol2022/outlier-scaling",
        entries=("B56",),
        source=f"{PAPER}, section 11, outliers said to scale as 1/b",
        statement=r"\frac{\mathbb{E}\,\lambda_1'(b)}{\mathbb{E}\,\lambda_1'(b')} = \frac{b'}{b}",
        expected=Verdict.DISAGREES,
        finding="Only the shift of an outlier scales as 1/b, as section 14 says; the outlier tends to lambda_1.",
        experiment=OUTLIERS,
        kind=Kind.RATIO,
        score=("here", "there"),
        predict=_effective_ratio,
        margin=0.01,
        margin_reason="finite size is O(1/P) for an outlier",
        rivals={"square root": lambda p: math.sqrt(_effective_ratio(p))},
        quantity="eigenvalue over that of a larger batch",
    ),
    Claim(
        id="granziol2022/outlier-over-edge",
        entries=("B54",),
        source=f"{PAPER}, section 11, third line of eq. (26)",
        statement=r"\frac{\lambda_j'}{\lambda_{\rm edge}} = \frac12 \Big(x + \frac1x\Big) > 1,\quad "
        r"x = \frac{\lambda_j \sqrt b}{\sqrt P \sigma} > 1",
        experiment=OUTLIERS,
        kind=Kind.RATIO,
        score=("here", "edge"),
        predict=_over_edge,
        printed=lambda p: 2 * _over_edge(p),
        finding="The edge of the noise is 2 sqrt(P/b) sigma, so that the right-hand side is half of x + 1/x. It still "
        "exceeds 1, and no damping fulfils the condition.",
        margin=0.01,
        margin_reason=FINITE_SIZE,
        rivals={
            "without broadening": lambda p: p.eigenvalue / _scale(p, p.batch_size) / 2,
            "x for (x + 1/x)/2": lambda p: p.eigenvalue / _scale(p, p.batch_size),
        },
        quantity="outlier over the edge of the noise",
    ),
    Claim(
        id="granziol2022/adaptive-limit",
        entries=("B55",),
        source=f"{PAPER}, section 11",
        statement=r"\alpha_0 = \frac{\sqrt b\, \kappa}{\sqrt P \sigma} = \frac{2 \kappa}{\lambda_{\rm edge}}",
        experiment=OUTLIERS,
        score="adaptive",
        predict=_adaptive,
        margin=0.01,
        margin_reason=FINITE_SIZE,
        rivals={
            "edge without the 2": lambda p: 2 * _adaptive(p),
            "linear in b": lambda p: _adaptive(p) ** 2 / p.preconditioner,
            "without preconditioner": lambda p: _adaptive(p) / p.preconditioner,
            "B for b": lambda p: p.preconditioner * math.sqrt(p.batch_size / p.dim) / p.sigma,
        },
        axis="batch_size",
        quantity="rate at which a step along the edge stops to descend",
    ),
    Identity(
        id="granziol2022/marchenko-pastur-exponent",
        entries=("B46",),
        source=f"beside {PAPER}, section 10.1",
        statement=r"\frac{d \log [\sigma^2 (1 + \sqrt\beta)^2]}{d \log \beta} = "
        r"\frac{\sqrt\beta}{1 + \sqrt\beta},\quad \beta = P/b",
        routes=edge_exponent,
        points=tuple(Point(q=q) for q in (0.3, 7.0, 90.0)),
        measured="slope",
        theory="theory",
        tolerance=1e-7,
        tolerance_reason="a difference quotient of step 1e-4",
        rivals=("linear", "semicircle", "without the root"),
        quantity="local exponent of the edge",
    ),
)

# --- mean-square stability of one step: the rule that is linear, then flat -----------------------------------


def least_squares(block: Block, point: Point) -> Mapping[str, Any]:
    """SGD on Gaussian inputs, over many runs: growth of the squared distance, and what one step is made of."""
    from simulate import optimisers

    found = optimisers.least_squares_paths(block, **point)
    return {"growth": found["growth"], "twice trace": 2 * found["trace"], "square": found["square"]}


LEAST_SQUARES = Experiment(
    id="granziol2022/least-squares",
    replicate="24 runs of SGD on fresh Gaussian inputs",
    simulate=least_squares,
    points=(
        Point(dim=13, batch_size=1, rate=0.11, steps=2, runs=24),
        Point(dim=7, batch_size=4, rate=0.37, steps=2, runs=24),
        Point(dim=20, batch_size=9, rate=0.47, steps=2, runs=24),
    ),
    budget=8192,
    seconds=2.0,
    special="a batch of one sample is where batch noise is largest",
)


def _least_squares(p: Point) -> float:
    return float(learning_rates.gaussian_least_squares_limit(p.batch_size, p.dim))


def _growth(p: Point, dim: int) -> float:
    return (
        float(learning_rates.gaussian_least_squares_growth(p.rate, batch_size=p.batch_size, dim=dim))
        ** p.steps
    )


STABILITY_CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="granziol2022/least-squares-limit",
        entries=("B46", "B47", "beyond/D2"),
        source=f"ours, beside {PAPER}, section 10.1",
        statement=r"\frac{2\, \mathbb{E}\, \mathrm{tr}\, H_B}{\mathbb{E}\, \mathrm{tr}\, H_B^2} = "
        r"\frac{2B}{B + P + 1}\quad "
        r"\text{for inputs } x \sim N(0, I_P): \text{linear, then flat}",
        experiment=LEAST_SQUARES,
        kind=Kind.RATIO,
        score=("twice trace", "square"),
        predict=_least_squares,
        margin=0.01,
        margin_reason="unbiased; at most 1 % for random matrices",
        rivals={
            "2 / E lambda_1(H_B)": lambda p: 2 / (1 + math.sqrt(p.dim / p.batch_size)) ** 2,
            "gradient descent": lambda _: 2.0,
            "P for P + 1": lambda p: 2 * p.batch_size / (p.batch_size + p.dim),
            "square root of B": lambda p: 2 * math.sqrt(p.batch_size / (p.batch_size + p.dim + 1)),
            "variance of the quadratic form": lambda p: 2 / (1 + 2 / p.batch_size),
        },
        axis="batch_size",
        quantity="rate at which the mean squared distance stays as it is",
    ),
    Claim(
        id="granziol2022/least-squares-growth",
        entries=("B46", "beyond/D2"),
        source=f"ours, beside {PAPER}, section 10.1",
        statement=r"\frac{\mathbb{E}\,|w_t|^2}{|w_0|^2} = \Big[(1 - a)^2 + a^2 \frac{P + 1}{B}\Big]^t\quad "
        r"\text{for inputs } x \sim N(0, I_P)",
        experiment=LEAST_SQUARES,
        score="growth",
        predict=lambda p: _growth(p, p.dim),
        margin=0.01,
        margin_reason="unbiased; at most 1 % for random matrices",
        rivals={
            "no batch noise": lambda p: (1 - p.rate) ** (2 * p.steps),
            "P for P + 1": lambda p: _growth(p, p.dim - 1),
            "one step": lambda p: _growth(p | {"steps": 1}, p.dim),
        },
        axis="batch_size",
        quantity="squared distance after two steps over that before",
    ),
)

# --- noise of the squared gradient: section 11.2 -------------------------------------------------------------


def squared_gradients(block: Block, point: Point) -> Mapping[str, Any]:
    """Squared mean gradient of batches of normal samples: its mean, and half the squared difference of two batches."""
    g, spread = np.array(point.gradient), np.sqrt(point.variances)
    shape = (point.pairs, 2, point.batch_size, len(g))
    found = []
    for rng in block.streams:
        means = g + (spread * rng.standard_normal(shape)).mean(axis=2)
        squares = (means**2).sum(axis=2)
        found.append((squares.mean(), ((squares[:, 0] - squares[:, 1]) ** 2).mean() / 2))
    mean, variance = np.array(found).T
    return {"mean": mean, "variance": variance}


GRADIENTS = Experiment(
    id="granziol2022/squared-gradients",
    replicate="24 pairs of batches of normal gradients",
    simulate=squared_gradients,
    points=tuple(
        Point(gradient=(1.3, -0.7, 0.4, 0.9), variances=(3.1, 0.6, 1.7, 4.2), batch_size=size, pairs=24)
        for size in (3, 31)
    ),
    budget=16384,
    seconds=2.0,
)


def _gradient_mean(p: Point) -> float:
    square = float(np.square(p.gradient).sum())
    return float(loss_change.squared_gradient_mean(square, trace=sum(p.variances), batch_size=p.batch_size))


def _gradient_variance(p: Point, *, along: float = 1.0, square: float = 1.0) -> float:
    g, c = np.array(p.gradient), np.array(p.variances)
    return float(
        loss_change.squared_gradient_variance(
            along * g**2 @ c, trace_of_square=square * c @ c, batch_size=p.batch_size
        )
    )


GRADIENT_CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="granziol2022/squared-gradient-mean",
        entries=("B59",),
        source=f"{PAPER}, section 11.2",
        statement=r"\mathbb{E}\,|g_B|^2 = |g|^2 + \mathrm{tr}\,C / B",
        experiment=GRADIENTS,
        score="mean",
        predict=_gradient_mean,
        printed=lambda p: float(np.square(p.gradient).sum()),
        finding="It is not unchanged: the noise of the batch adds its own squared length, tr C / B.",
        margin=0.01,
        margin_reason="unbiased",
        rivals={
            "mean of the variances": lambda p: (
                float(np.square(p.gradient).sum()) + float(np.mean(p.variances)) / p.batch_size
            ),
            "1/B^2": lambda p: float(np.square(p.gradient).sum()) + sum(p.variances) / p.batch_size**2,
        },
        axis="batch_size",
        quantity="squared gradient of a batch",
    ),
    Claim(
        id="granziol2022/squared-gradient-variance",
        entries=("B59",),
        source=f"{PAPER}, section 11.2",
        statement=r"\mathrm{Var}\,|g_B|^2 = \frac4B g^\top C g + \frac2{B^2} \mathrm{tr}\,C^2\quad "
        r"\text{(normal gradients)}",
        experiment=GRADIENTS,
        score="variance",
        predict=_gradient_variance,
        printed=lambda p: _gradient_variance(p, along=0.0),
        finding="The term 4 g'C g / B is missing; it is the larger one while B |g|^2 exceeds tr C.",
        margin=0.05,
        margin_reason="a variance, from pairs of batches: 5 % takes some 10^3 replicates",
        rivals={
            "first order only": lambda p: _gradient_variance(p, square=0.0),
            "variance of the projection": lambda p: _gradient_variance(p, along=0.25),
            "without the 2": lambda p: _gradient_variance(p, square=0.5),
        },
        axis="batch_size",
        quantity="variance of the squared gradient of a batch",
    ),
)

CLAIMS: tuple[AnyClaim, ...] = (
    *STEP_CLAIMS,
    *MOMENTUM_CLAIMS,
    *RATE_CLAIMS,
    *STABILITY_CLAIMS,
    *GRADIENT_CLAIMS,
)
