"""Vysogorets, Dawid and Kempe (2024): the softmax covariance, exactly: Gamma, its limits, its rays, its rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator

from simulate.monte_carlo import Point
from theory import derivations, gauss_newton, softmax
from verify.claims import Array
from verify.claims.drawn_networks import stream_by_stream
from verify.claims.vysogorets2024 import PAPER
from verify.model import (
    OURS,
    Arrays,
    Claim,
    ExactProperty,
    Experiment,
    Identity,
    Tier,
    as_stated,
    out_of_scope,
)
from verify.model.domains import Between, Either, Many, OneOf


def covariances(p: Array) -> Array:
    """diag(p) - p p', shape (..., K) -> (..., K, K), in the precision of p."""
    return p[..., None] * np.eye(p.shape[-1], dtype=p.dtype) - p[..., None] * p[..., None, :]


def dense_gamma(covariance: Array) -> Array:
    """Trace over norm, (..., K, K) -> (...)."""
    trace = np.trace(covariance, axis1=-2, axis2=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return trace / np.sqrt(np.square(covariance).sum((-2, -1)))


def _normalised(weights: Any) -> Array:
    return np.array(weights) / np.sum(weights)


def _exactly(weights: Any) -> tuple[list[Any], Any]:
    """Rational probabilities in the proportions of whole numbers, and their covariance."""
    import sympy

    p = [sympy.Rational(w, sum(weights)) for w in weights]
    column = sympy.Matrix(p)
    return p, sympy.diag(*p) - column * column.T


# --- rank and moments ----------------------------------------------------------------------------------------


def rank(_: Generator, point: Point) -> Arrays:
    """Rank of the covariance in rational arithmetic, and eigenvalues above zero."""
    return {
        "exact": _exactly(point.weights)[1].rank(),
        "theory": np.count_nonzero(softmax.eigenvalues(_normalised(point.weights))),
        "K - 1": len(point.weights) - 1,
        "support": np.count_nonzero(point.weights),
    }


RANK = Identity(
    id="vysogorets2024/softmax-rank",
    entries=("A44",),
    source=f"{PAPER}, appendix C; covariances of the multinomial law, Tanabe and Sagae (1992)",
    statement=r"\mathrm{rank}(\mathrm{diag}(p) - pp^\top) = |\mathrm{supp}\,p| - 1",
    says="The rank of the softmax covariance is one less than the number of classes with nonzero probability.",
    reads=r"\mathrm{rank}(\mathrm{diag}(p) - pp^\top) = K - 1",
    routes=rank,
    points=tuple(Point(weights=w) for w in ((5, 3, 2, 0, 0), (3, 0, 4, 1, 0, 0, 2), (10**9, 1, 0, 7, 0))),
    printed="K - 1",
    passage=out_of_scope("is identically zero when p is one-hot", "Appendix C"),
    finding="Outside of predictions without zeros, where the rank is K - 1, each absent class lowers it by one, down "
    "to the zero at one-hot p that the paper names.",
    tolerance=1e-12,
    tolerance_reason="whole numbers",
    seconds=0.01,
    quantity="rank of the softmax covariance",
)


def moment_form(_: Generator, point: Point) -> Arrays:
    """Gamma^2 from the dense matrix and from sums of powers, both in rational arithmetic."""
    p, exact = _exactly(point.weights)
    s2, s3 = (sum(x**n for x in p) for n in (2, 3))
    found = derivations.gamma_squared_of_moments()
    return {
        "dense": float(exact.trace() ** 2 / (exact * exact).trace()),
        "moments": float(found.expression.subs(dict(zip(found.symbols, (s2, s3), strict=True)))),
        "s3 once": float((1 - s2) ** 2 / (s2 - s3 + s2**2)),
        "s2 not squared": float((1 - s2) ** 2 / (2 * s2 - 2 * s3)),
        "diagonal only": float((1 - s2) ** 2 / (s2 - 2 * s3 + sum(x**4 for x in p))),
    }


MOMENTS = Identity(
    id="vysogorets2024/moment-form",
    entries=("A45",),
    source=f"{PAPER}, appendix C, eq. (10), shortened",
    statement=r"\Gamma_p^2 = \frac{(1 - s_2)^2}{s_2 - 2 s_3 + s_2^2},\quad s_n = \sum_k p_k^n",
    says="The squared excess of the softmax covariance is a ratio in the sums of squared and of cubed "
    "probabilities.",
    routes=moment_form,
    points=(
        *(Point(weights=w) for w in ((7, 2, 1), (31, 22, 15, 11, 8, 5, 4), (10**12, 3, 2, 2, 1))),
        *(Point(weights=(mode, *(1,) * others)) for others in (2, 4, 11) for mode in (3, 13, 90, 1100)),
    ),
    tolerance=1e-15,
    tolerance_reason="rational arithmetic, rounded once",
    seconds=0.01,
    quantity="squared Gamma",
)


# --- its range, and limits at collapse -----------------------------------------------------------------------


def weighted_collapse(_: Generator, point: Point) -> Arrays:
    """Gamma^2 with unlikely classes in given proportions: the limit by algebra, and at a huge gap."""
    import sympy

    limit = derivations.collapse_limit_weighted()
    weights = np.array(point.weights)
    concentration = (weights**2).sum() / weights.sum() ** 2
    count = len(weights)
    return {
        "numeric": softmax.gamma_from_logits(np.append(point.gap, np.log(weights))) ** 2,
        "symbolic": float(sympy.lambdify(limit.symbols, limit.expression)(concentration)),
        "1": 1.0,
        "equal runners-up": 4 * count / (count + 3),
    }


def gamma_and_interlacing(_: Generator, point: Point) -> float:
    """Distance of Gamma from [1, sqrt(K - 1)] or of an eigenvalue from its interval, ties and zeros included."""
    largest = float(gauss_newton.largest_excess(len(point.weights) - 1))
    return max(_outside_gamma(point, largest), _outside_interlacing(point, below=1))


def _outside_gamma(point: Point, largest: float) -> float:
    found = float(softmax.gamma(_normalised(point.weights)))
    return max(1 - found, found / largest - 1, 0.0)


def _outside_interlacing(point: Point, *, below: int) -> float:
    """Largest distance of dense eigenvalue i from [p_(i + below), p_(i)], i = 1..K-1."""
    p = _normalised(point.weights)
    found = np.linalg.eigvalsh(np.diag(p) - np.outer(p, p))[::-1][:-1]
    upper, lower = (np.sort(p)[::-1][first : first + len(found)] for first in (0, below))
    return float(max((found - upper).max(), (lower - found).max(), 0.0))


WEIGHTED = Identity(
    id="vysogorets2024/weighted-collapse",
    entries=("A33",),
    source=f"{PAPER}, section 4 and appendix C",
    statement=r"\lim \Gamma_p^2 = \frac{4}{1 + 3h},\quad h = \frac{\sum_i w_i^2}{(\sum_i w_i)^2}\quad "
    r"\text{for small entries in the proportions } w",
    says="As a prediction becomes one-hot with small entries in fixed proportions, the excess tends to a limit"
    " set by how concentrated these are.",
    reads=r"\Gamma_p^2 \to 1",
    routes=weighted_collapse,
    points=tuple(Point(weights=w, gap=90.0) for w in ((1.0, 0.5), (1.0, 0.1, 0.01), (3.0, 2.0, 1.0, 1.0))),
    printed="1",
    passage=out_of_scope("Assuming no two logits are identically the same", "Appendix C, below Eq 11"),
    finding="Outside of the paper's condition, distinct logits that are scaled up, the limit of Gamma^2 is not 1: it "
    "depends on the proportions of the runners-up and can be anything up to 4 (S - 1) / (S + 2).",
    tolerance=1e-14,
    tolerance_reason="a few roundings; the correction exp(-60) is below them",
    quantity="squared Gamma at collapse",
)

RANGE = ExactProperty(
    id="vysogorets2024/gamma-and-interlacing",
    entries=("A32", "A43"),
    source=f"{PAPER}, section 4 and appendix B",
    statement=r"1 \le \Gamma_p \le \sqrt{K - 1},\qquad p_{(i)} \ge \tilde\lambda_i \ge p_{(i+1)}",
    says="The excess of the softmax covariance lies between one and the root of classes less one; its "
    "eigenvalues interlace the probabilities.",
    domain={
        "weights": Many(
            Either(OneOf(0.0), OneOf(0.25, 1.0), Between(1e-6, 1.0)),
            2,
            9,
            where=lambda w: sum(x > 0 for x in w) > 1,
        )
    },
    violation=gamma_and_interlacing,
    examples=tuple(Point(weights=w) for w in ((0.7, 0.2, 0.1), (1.0, 1.0, 1.0, 1.0), (0.9, 0.3))),
    tolerance=1e-13,
    tolerance_reason="rounding of a dense eigensolver",
    rivals={
        "Gamma at most sqrt(K / 2)": lambda _, p: _outside_gamma(p, (len(p.weights) / 2) ** 0.5),
        "eigenvalues equal to the probabilities": lambda _, p: _outside_interlacing(p, below=0),
    },
    seconds=0.017,
)

# --- the approach to one-hot ---------------------------------------------------------------------------------


def _mode_and_tail(point: Point) -> Array:
    s = point.support
    return np.array([1 - (s - 1) * point.tail] + [point.tail] * (s - 1))


def _gamma_squared(p: Any) -> Any:
    """Trace^2 over squared norm, from the entries, in the arithmetic of mpmath."""
    import mpmath

    trace = mpmath.fsum(x * (1 - x) for x in p)
    square = mpmath.fsum((x * (1 - x)) ** 2 for x in p)
    crossed = mpmath.fsum(x * x for x in p) ** 2 - mpmath.fsum(x**4 for x in p)
    return trace**2 / (square + crossed)


def equal_tail_slope(_: Generator, point: Point) -> Arrays:
    """Rate at which Gamma^2 leaves its limit: a difference with 300 digits, and the derivative by algebra."""
    import mpmath
    import sympy

    s = point.support
    with mpmath.workdps(300):
        tail = mpmath.mpf(10) ** -25
        found = _gamma_squared([1 - (s - 1) * tail] + [tail] * (s - 1))
        slope = (found - mpmath.mpf(4 * (s - 1)) / (s + 2)) / tail
    form = derivations.gamma_squared_equal()
    members, epsilon = form.symbols
    derivative = sympy.diff(form.expression, epsilon).subs({epsilon: 0, members: s})
    return {
        "difference": float(slope),
        "derivative": float(derivative),
        "S for S - 2": 4 * (s - 1) * s**2 / (s + 2) ** 2,
        "falling": -float(derivative),
        "S + 2 not squared": 4 * (s - 1) * (s**2 - 2 * s) / (s + 2),
    }


SLOPE = Identity(
    id="vysogorets2024/equal-tail-slope",
    entries=("A46",),
    source=f"{PAPER}, appendix C, eq. (11), first order",
    statement=r"\Gamma_p^2 = \frac{4 (S - 1)}{S + 2} + \frac{4 (S - 1)(S^2 - 2S)}{(S + 2)^2}\,\varepsilon + "
    r"O(\varepsilon^2)",
    says="Near one-hot with equally small entries, the squared excess rises linearly from its limit, at a "
    "slope set by their number.",
    routes=equal_tail_slope,
    points=tuple(Point(support=s) for s in (3, 4, 7, 23)),
    tolerance=1e-14,
    tolerance_reason="the next term of the expansion is far below it, and so is rounding with hundreds of digits",
    seconds=0.01,
    quantity="slope of squared Gamma at one-hot",
)


def equal_tail_spectrum(_: Generator, point: Point) -> Arrays:
    """Eigenvalues, descending: dense, in closed form, and of 2 x 2 blocks that are right in leading order."""
    s, eps, classes = point.support, point.tail, point.classes
    p = np.zeros(classes)
    p[:s] = _mode_and_tail(point)
    single = np.zeros(classes)
    single[0] = 2 * eps
    return {
        "dense": np.linalg.eigvalsh(np.diag(p) - np.outer(p, p))[::-1],
        "theory": softmax.equal_tail_eigenvalues(eps, members=s, classes=classes),
        "2 eps": single,
        # the multiple of I that makes the largest eigenvalue right
        "lifted": single - 2 * eps**2,
    }


SINGLE = Identity(
    id="vysogorets2024/single-eigenvalue",
    entries=("A48",),
    source=f"{PAPER}, appendix C, eq. (12), whose remainder O(eps^2) is made exact",
    statement=r"p = (1 - \varepsilon, \varepsilon, 0, \ldots):\quad "
    r"\tilde\lambda = 2 \varepsilon (1 - \varepsilon), 0, \ldots, 0",
    says="With two classes of nonzero probability, the softmax covariance has a single nonzero eigenvalue, "
    "twice their product.",
    routes=equal_tail_spectrum,
    points=tuple(Point(support=2, tail=t, classes=k) for t, k in ((0.03, 3), (0.21, 5), (0.0004, 10))),
    tolerance=1e-11,
    tolerance_reason="the dense matrix loses the digits of 1 - max p, which is 4e-4 at least",
    seconds=0.01,
    quantity="eigenvalues of the softmax covariance",
)


# --- ties and near ties --------------------------------------------------------------------------------------


def _plateau(_: Generator, point: Point) -> Arrays:
    """Gamma^-2 along a ray whose runners-up are nearly tied, next to the prediction from their proportions."""
    behind = np.array(point.behind) / 1024  # no logit is rounded
    weights = np.exp(-np.outer(point.betas, behind))
    h = np.square(weights).sum(axis=1) / weights.sum(axis=1) ** 2
    logits = [beta * np.append(0.0, -point.gap - behind) for beta in point.betas]
    return {
        "many digits": [_many_digits(z) ** -2 for z in logits],
        "proportions": softmax.collapse_limit(weights) ** -2,
        "1 at once": np.ones(len(h)),
        "tied for ever": np.full(len(h), (len(behind) + 3) / (4 * len(behind))),
        "h in place of 3 h": (1 + h) / 4,
    }


def _many_digits(logits: Array) -> float:
    """Gamma from the definition, with so many digits that 1 - max p keeps 60 of them."""
    import mpmath

    reach = float(np.ptp(logits))
    with mpmath.workdps(60 + round(reach)):
        z = [mpmath.mpf(x) for x in logits]
        weights = [mpmath.exp(x - max(z)) for x in z]
        total = mpmath.fsum(weights)
        return float(mpmath.sqrt(_gamma_squared([w / total for w in weights])))


PLATEAU = Identity(
    id="vysogorets2024/plateau",
    entries=("A33", "A47"),
    source=f"{PAPER}, section 4 and appendix C, figure 4 right",
    statement=r"\Gamma_p^{-2} = \frac{1 + 3h}{4},\quad h = \frac{\sum_i w_i^2}{(\sum_i w_i)^2},\ "
    r"w_i = p_{(i)} / p_{(2)}: \text{ a plateau while } w \text{ hardly moves, in the end } 1",
    says="Along a temperature ray with nearly tied runners-up, the excess follows their proportions: nearly "
    "constant for a while, one in the end.",
    routes=_plateau,
    points=(
        Point(gap=3.0, behind=(0, 2, 3, 4), betas=(13.0, 40.0, 150.0, 700.0)),
        Point(gap=2.0, behind=(0, 10, 700), betas=(20.0, 60.0, 300.0)),
    ),
    tolerance=1e-14,
    tolerance_reason="p_(2), exp(-39) at most, is a correction below rounding",
    seconds=0.011,
    quantity="inverse squared Gamma",
)


# --- rounding ------------------------------------------------------------------------------------------------


def dense_rounding(_: Generator, point: Point) -> Arrays:
    """Gamma of the dense matrix in float64 once 1 - max p is below its last digit."""
    s = point.support
    return {
        "dense float64": dense_gamma(covariances(_mode_and_tail(point))),
        "of rounding": softmax.rounded_gamma(s),
        "true": softmax.equal_tail_gamma(point.tail, members=s),
        "zero, a collapse": 0.0,
    }


DENSE = Identity(
    id="vysogorets2024/dense-rounding",
    entries=("A59",),
    source=f"ours, beside {PAPER}, section 4",
    passage=OURS,
    statement=r"\text{in float64}\quad \frac{\mathrm{Tr}}{\|\cdot\|_F}(\mathrm{diag}(p) - pp^\top) \to "
    r"\sqrt{(S - 1) / 3},\quad \text{below the bound } 1 \text{ for } S < 4",
    says="From the dense matrix in double precision, the excess of a nearly one-hot softmax settles at a value"
    " set by rounding, below one for few classes.",
    routes=dense_rounding,
    points=tuple(Point(support=s, tail=t) for s, t in ((2, 3e-19), (3, 1e-25), (7, 1e-40), (23, 1e-120))),
    tolerance=1e-14,
    tolerance_reason="the mode has rounded to 1, nothing else is lost",
    seconds=0.01,
    quantity="Gamma as float64 has it",
)


# --- against entropy -----------------------------------------------------------------------------------------


def _entropy(p: Array) -> Array:
    return -(p * np.log(np.where(p > 0, p, 1.0))).sum(-1)


@stream_by_stream
def pairs_of_distributions(rng: Generator, point: Point, _: str) -> Arrays:
    """Share of pairs that entropy and Gamma order differently, of distributions drawn uniformly from the simplex."""
    p = rng.dirichlet(np.ones(point.classes), point.draws)
    entropy, gamma = _entropy(p), dense_gamma(covariances(p))
    order = np.sign(np.subtract.outer(entropy, entropy) * np.subtract.outer(gamma, gamma))
    return {"discordant": float((order < 0).sum() / (len(gamma) * (len(gamma) - 1)))}


PAIRS = Experiment(
    id="vysogorets2024/pairs-of-distributions",
    replicate="64 probability vectors, uniform on the simplex",
    simulate=pairs_of_distributions,
    on_host="all of it, in numpy",
    points=(Point(classes=4, draws=64), Point(classes=10, draws=64)),
    seconds=0.051,
    tier=Tier.SMOKE,
)

ORDER = Claim(
    id="vysogorets2024/order-by-entropy",
    entries=("A34",),
    source=f"{PAPER}, section 4, figure 4 right, between its rays: any two predictions",
    statement=r"\Pr\big[(H(p) - H(q)) (\Gamma_p - \Gamma_q) < 0\big] = 0.128\ (K = 4),\ 0.036\ (K = 10)",
    says="Entropy and excess order two predictions drawn uniformly differently with a probability that depends"
    " on the number of classes.",
    experiment=PAIRS,
    score="discordant",
    predict=lambda p: softmax.entropy_discordance(p.classes),
    printed=lambda _: 0.0,
    reads=r"\Gamma_p \text{ monotonic with respect to the entropy of } p",
    passage=out_of_scope("produced by scaling 30 different logit sets", "caption of Figure 4, right"),
    finding="Outside of the rays of Figure 4, each of one set of logits, entropy and Gamma may order two "
    "predictions differently; along each ray Gamma is monotone, as the paper says: a theorem.",
    margin=0.004,
    margin_reason="seven times what seven times the points change in the integral",
    relative=False,
    rivals={
        "no association": lambda _: 0.5,
        "whatever the number of classes": lambda _: softmax.entropy_discordance(4),
    },
    quantity="share of pairs that entropy and Gamma order differently",
)

# --- along rays ----------------------------------------------------------------------------------------------


def _gamma_of_pairs(logits: Array) -> Array:
    """Gamma from the weights p_i p_j of pairs alone, (..., K) -> (...): nothing is subtracted, the scale drops out."""
    weights = logits[..., :, None] + logits[..., None, :]
    weights = np.where(np.eye(logits.shape[-1], dtype=bool), -np.inf, weights)
    weights = np.exp(weights - weights.max((-2, -1), keepdims=True))
    degrees = weights.sum(-1)
    return degrees.sum(-1) / np.sqrt(np.square(degrees).sum(-1) + np.square(weights).sum((-2, -1)))


BETAS = np.concatenate([[0.0], np.geomspace(1e-3, 1e3, 61)])


def _rays(rng: Generator, point: Point) -> Array:
    """The logits of a point and 40 random ones of its size, a third of their entries tied: (41, K), largest 0.

    The pairs of the largest with the others, all that counts at low temperature, are then not rounded.
    """
    count = len(point.logits)
    drawn = rng.standard_normal((40, count)) * point.scale
    tied = rng.random((40, count)) < 0.3
    rays = np.vstack([point.logits, np.where(tied, drawn[:, :1], drawn)])
    return rays - rays.max(axis=1, keepdims=True)


def _rise(gammas: Array) -> float:
    """Largest rise from one inverse temperature to the next, along axis 0."""
    return max(0.0, float(np.diff(gammas, axis=0).max()))


def falls_along_rays(rng: Generator, point: Point) -> float:
    """Largest rise of Gamma by two routes, their largest difference, and the largest rise of the entropy."""
    directions = _rays(rng, point)
    rays = BETAS[:, None, None] * directions
    found, pairs = softmax.gamma_from_logits(rays / 8, temperature=1 / 8), _gamma_of_pairs(rays)
    alone = softmax.batch_gammas_from_logits(directions[:1], temperature=1 / BETAS[1:]).mean  # a batch of one
    p = np.exp(rays)
    entropy = _entropy(p / p.sum(-1, keepdims=True))
    apart = max(float(np.abs(x).max()) for x in (found - pairs, alone - pairs[1:, 0]))
    return max(_rise(found), _rise(pairs), apart, _rise(entropy))


def _rise_of_the_mean(_: Generator, point: Point) -> float:
    """Largest rise of Gamma of the mean matrix over ten copies of the first two logits and one of the others."""
    z = np.zeros((11, 4))
    z[:10, 2:] = z[10, :2] = -1e6
    z[:10, 0], z[10, 2] = point.scale, point.scale / 2
    return _rise(softmax.batch_gammas_from_logits(z, temperature=1 / BETAS[1:]).mean)


CLAIMS = (
    WEIGHTED,
    RANGE,
    RANK,
    MOMENTS,
    SLOPE,
    SINGLE,
    PLATEAU,
    DENSE,
    ORDER,
    ExactProperty(
        id="vysogorets2024/temperature-ray",
        entries=("A34",),
        source=f"{PAPER}, section 4, figure 4 right, along each of its rays; the proof is ours",
        passage=as_stated(
            "monotonic between its extreme values with respect to the entropy",
            "Section 4, on Figure 4, right",
        ),
        statement=r"\beta \mapsto \Gamma_p,\ p = \mathrm{softmax}(\beta z), \text{ never rises, nor does } H(p)",
        says="As one set of logits is scaled up, neither the excess of its softmax covariance nor the entropy ever "
        "rises.",
        domain={
            "logits": Many(Either(OneOf(0.0, 1.0, 1.25), Between(-5.0, 5.0)), 2, 12),
            "scale": Between(0.01, 30.0),
        },
        violation=falls_along_rays,
        examples=(
            Point(logits=(0.3, -1.2, 2.1, 0.7), scale=1.7),
            Point(logits=(1.0, 1.0, 0.0, 0.0, 0.0), scale=0.2),
            Point(logits=(2.0, 1.999, 1.998, -3.0), scale=11.0),
        ),
        tolerance=1e-13,
        tolerance_reason="roundings of the entropy and of two sums over pairs",
        rivals={
            "for the mean over a batch": _rise_of_the_mean,
            "never falls": lambda rng, point: _rise(
                -softmax.gamma_from_logits(BETAS[:, None, None] * _rays(rng, point))
            ),
        },
        seconds=0.026,
    ),
)
