"""Granziol, Zohren and Roberts (2022), appendices A and B: transforms of spectra, by quadrature and on matrices."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulate.monte_carlo import Block, Point
from theory import outliers
from theory.rmt import MarchenkoPastur, Semicircle
from verify.model import AnyClaim, Claim, Experiment, Identity

__all__ = ["CLAIMS"]

PAPER = "Granziol, Zohren and Roberts (2022)"

Array = NDArray[Any]

QUADRATURE = "trapezoids in the angle, which converge geometrically off the spectrum; a root to rounding"

# --- spectra by quadrature -----------------------------------------------------------------------------------

STEPS = 4000


def _law(p: Point) -> Semicircle | MarchenkoPastur:
    """The semicircle, or the law of Wishart noise where the point has a ratio."""
    return (
        MarchenkoPastur(q=p.ratio, variance=p.variance) if "ratio" in p else Semicircle(variance=p.variance)
    )


def _masses(law: Semicircle | MarchenkoPastur) -> tuple[Array, Array]:
    """Points of the spectrum with their masses, from the density alone; an atom at 0 is the last of them."""
    low, high = law.edges
    angle = (np.arange(STEPS) + 0.5) * np.pi / STEPS
    x = (low + high) / 2 - (high - low) / 2 * np.cos(angle)
    mass = law.pdf(x) * (high - low) / 2 * np.sin(angle) * np.pi / STEPS
    return np.append(x, 0.0), np.append(mass, law.atom)


def _transform(law: Semicircle | MarchenkoPastur, z: Any, power: int = 1) -> Any:
    """Integral of rho(x) / (z - x)^power."""
    x, mass = _masses(law)
    return (mass / (z - x) ** power).sum()


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    from scipy import optimize

    solver: Any = optimize
    return float(solver.brentq(function, low, high, xtol=1e-14, rtol=1e-14))


def _above(law: Semicircle | MarchenkoPastur, function: Callable[[float], float]) -> float:
    """Where a function changes sign above the spectrum."""
    edge = law.edges[1]
    return _root(function, edge * (1 + 1e-3), edge * 1e4)


# --- appendix A.1: transforms and freeness -------------------------------------------------------------------


def blue_function(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """R from the inverse of the transform of the density, at several w, and in closed form."""
    law, w = _law(point), np.array(point.w)
    z = np.array([_above(law, lambda x, at=at: _transform(law, x) - at) for at in point.w])
    return {
        "inverse less 1/w": z - 1 / w,
        "R": law.r_transform(w),
        "inverse plus 1/w": z + 1 / w,
        "standard deviation for variance": law.r_transform(w) / math.sqrt(point.variance),
        "inverse": z,
    }


LAWS = (
    Point(variance=1.7, w=(0.13, 0.31, 0.47)),
    Point(variance=0.6, ratio=0.3, w=(0.21, 0.55, 0.83)),
    Point(variance=1.3, ratio=2.7, w=(0.04, 0.09, 0.14)),
)


def inverse_derivative(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Derivative of the blue function 1/w + R(w) at w = S(z), for z beyond the spectrum."""
    law = _law(point)
    z = law.edges[1] * np.array([1.1, 1.7, 3.3])
    w = law.stieltjes(z)
    slopes = np.array([-_transform(law, at, 2) for at in z])
    return {
        "B'(S)": -1 / w**2 + np.imag(law.r_transform(w + 1e-20j)) / 1e-20,
        "1/S'": 1 / slopes,
        "1/S": 1 / w,
        "S'": slopes,
    }


def mixed_moment(block: Block, point: Point) -> Mapping[str, Any]:
    """Normalised trace of A^2 B^2 A^2 B^2 for two independent Gaussian matrices."""
    from simulate import ensembles

    a, b = (s * ensembles.wigner(block, point.dim) for s in (point.sigma_a, point.sigma_b))
    product = a @ a @ b @ b
    return {"moment": (product * product.mT).sum((1, 2)) / point.dim}


MIXED = Experiment(
    id="granziol2022/mixed-moment",
    replicate="two independent Gaussian matrices",
    simulate=mixed_moment,
    points=(Point(dim=90, sigma_a=1.1, sigma_b=0.8),),
    budget=8192,
    seconds=2.0,
)


def _mixed_moment(p: Point) -> float:
    """Exact at every size: E A^2 M A^2 = u tr(M) I + v M for symmetric M and a Gaussian matrix A."""
    n = p.dim
    u, v = (n + 2) / n**2, (n**2 + 3 * n + 5) / n**2
    squared_trace = (n + 1) ** 2 + 4 * (n + 1) / n
    fourth_moment = 2 * n + 5 + 5 / n
    return p.sigma_a**4 * p.sigma_b**4 * (u * squared_trace + v * fourth_moment) / n


def subordination(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """What the noise adds to the argument: z less the u at which the transform of A is that of the sum A + noise.

    A and the noise are free semicircles, so the sum is one of their variances' sum.
    """
    signal, noise = Semicircle(variance=point.signal), Semicircle(variance=point.noise)
    total = Semicircle(variance=point.signal + point.noise)
    z = total.edges[1] * np.array([1.2, 1.9, 4.1])
    w = np.array([_transform(total, at) for at in z])
    u = np.array([_above(signal, lambda x, at=at: _transform(signal, x) - at) for at in w])
    return {
        "z - u": z - u,
        "B_noise(S_M) - 1/S_M": noise.r_transform(w),
        "B_A(S_M) - 1/S_M": signal.r_transform(w),
        "B_noise(S_M)": noise.r_transform(w) + 1 / w,
    }


FREENESS: tuple[AnyClaim, ...] = (
    Identity(
        id="granziol2022/blue-function",
        entries=("B-A1",),
        source=f"{PAPER}, eqs. (27) to (29), definition 8, theorem 9, eq. (33)",
        statement=r"R(w) = S^{-1}(w) - \frac1w = \sigma^2 w \ \text{(semicircle)},\ "
        r"\frac{\sigma^2}{1 - \beta\sigma^2 w} \ \text{(Wishart)}",
        routes=blue_function,
        points=LAWS,
        measured="inverse less 1/w",
        theory="R",
        tolerance=1e-9,
        tolerance_reason=QUADRATURE,
        rivals=("inverse plus 1/w", "standard deviation for variance", "inverse"),
        seconds=0.2,
        quantity="R transform",
    ),
    Identity(
        id="granziol2022/inverse-derivative",
        entries=("B-A3",),
        source=f"{PAPER}, appendix A.2, after eq. (40)",
        statement=r"\mathcal B'(S(z)) = 1 / S'(z)",
        routes=inverse_derivative,
        points=LAWS,
        measured="B'(S)",
        theory="1/S'",
        printed="1/S",
        finding="The derivative of the inverse function is 1/S'(z), not 1/S(z).",
        tolerance=1e-9,
        tolerance_reason=QUADRATURE,
        rivals=("S'",),
        seconds=0.02,
        quantity="derivative of the blue function",
    ),
    Identity(
        id="granziol2022/subordination",
        entries=("B-A3",),
        source=f"{PAPER}, eq. (40)",
        statement=r"S_M(z) = S_A(u):\quad z = u + \mathcal B_\varepsilon(S_M(z)) - \frac{1}{S_M(z)}",
        routes=subordination,
        points=(Point(signal=0.7, noise=1.3), Point(signal=2.6, noise=0.4)),
        measured="z - u",
        theory="B_noise(S_M) - 1/S_M",
        printed="B_A(S_M) - 1/S_M",
        finding="The blue function on the right is that of the noise, not that of the matrix A.",
        tolerance=1e-9,
        tolerance_reason=QUADRATURE,
        rivals=("B_noise(S_M)",),
        seconds=0.1,
        quantity="shift of the argument by the noise",
    ),
    Claim(
        id="granziol2022/mixed-moment",
        entries=("B-A2",),
        source=f"{PAPER}, eqs. (34) and (35); the value at finite size is ours",
        statement=r"\psi(A^2 B^2 A^2 B^2) = \psi(A^4)\psi(B^2)^2 + \psi(A^2)^2\psi(B^4) - \psi(A^2)^2\psi(B^2)^2 "
        r"= 3\,\sigma_A^4\sigma_B^4 + \tfrac{15}{P}\,\sigma_A^4\sigma_B^4 + O(P^{-2})",
        experiment=MIXED,
        score="moment",
        predict=_mixed_moment,
        printed=lambda p: p.sigma_a**4 * p.sigma_b**4,
        finding="Moments of alternating words do not factorise; only those of centred neighbours vanish. Two "
        "semicircles give 3, where the product of the moments is 1.",
        margin=0.01,
        margin_reason="exact at every size; at most 1 % for random matrices",
        rivals={
            "limit of infinite size": lambda p: 3 * p.sigma_a**4 * p.sigma_b**4,
            "last factor of A, as our copy reads": lambda p: p.sigma_a**6 * p.sigma_b**2,
            "commuting: fourth moments": lambda p: 4 * p.sigma_a**4 * p.sigma_b**4,
            "without the last term": lambda p: _mixed_moment(p) + p.sigma_a**4 * p.sigma_b**4,
        },
        quantity="normalised trace of the word",
    ),
)

# --- appendix A.2: one spike ---------------------------------------------------------------------------------


def minus_branch(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Transform of the semicircle at complex and real z, by quadrature and from either root of its equation."""
    law, z = _law(point), np.array(point.real) + 1j * np.array(point.imaginary)
    sigma = law.sigma
    root = np.sqrt(z - 2 * sigma) * np.sqrt(z + 2 * sigma)
    return {
        "density": np.array([_transform(law, at) for at in z]),
        "minus": law.stieltjes(z),
        "plus": (z + root) / (2 * sigma**2),
        "opposite sign": -law.stieltjes(z),
    }


def rank_one_transform(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Transform of the matrix lambda v v^T of dimension N, from its eigenvalues, at complex u."""
    u, spike = complex(*point.u), point.spike
    v = np.cos(np.arange(point.dim))
    eigenvalues = np.linalg.eigvalsh(spike * np.outer(v, v) / (v @ v))
    correction = spike / u / (1 - spike / u) / point.dim
    return {
        "eigenvalues": np.mean(1 / (u - eigenvalues)),
        "(1 + correction) / u": (1 + correction) / u,
        "1/u + correction": 1 / u + correction,
        "no correction": 1 / u,
        "rank in full": (1 + point.dim * correction) / u,
    }


def pole(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Transform of the semicircle at lambda + sigma^2 / lambda, for several lambda of either sign."""
    law, spikes = _law(point), np.array(point.spikes)
    z = spikes + point.variance / spikes
    inside = spikes / point.variance
    return {
        "density": np.array([_transform(law, at) for at in z]),
        "1/lambda beyond sigma": np.where(np.abs(spikes) > law.sigma, 1 / spikes, inside),
        "1/lambda beyond 2 sigma": np.where(np.abs(spikes) > 2 * law.sigma, 1 / spikes, inside),
        "1/lambda everywhere": 1 / spikes,
    }


def spike_in_transform(block: Block, point: Point) -> Mapping[str, Any]:
    """N times the difference of the transforms with and without a spike, at one complex z.

    A multiple of v' W v, which has mean exactly 0, is taken out of each part: most of its variance.
    """
    import torch

    from simulate import ensembles

    noise = point.sigma * ensembles.wigner(block, point.dim)
    v = ensembles.unit_vectors(block, point.dim)
    z = complex(*point.z)
    with_spike, without = (
        (1 / (z - torch.linalg.eigvalsh(m))).sum(dim=1)
        for m in (ensembles.spiked(noise, v, point.spike), noise)
    )
    first_order = torch.einsum("ni,nij,nj->n", v, noise, v)
    real, imaginary = (share * first_order for share in point.taken_out)
    difference = with_spike - without
    return {"real": difference.real - real, "imaginary": difference.imag - imaginary}


SPIKED = Experiment(
    id="granziol2022/spike-in-transform",
    replicate="one noise matrix with one direction",
    simulate=spike_in_transform,
    points=(Point(dim=160, spike=2.3, sigma=0.9, z=(4.1, 1.3), taken_out=(-0.016, -0.191)),),
    budget=2048,
    seconds=1.5,
)


def _spike_in_transform(p: Point, *, denominator: float = 1.0) -> complex:
    """-lambda S' / (1 - lambda S), with S' = S^2 / (sigma^2 S^2 - 1) of the semicircle."""
    s = complex(Semicircle(sigma=p.sigma).stieltjes(complex(*p.z)))
    slope = s**2 / (p.sigma**2 * s**2 - 1)
    return -p.spike * slope / (1 - denominator * p.spike * s)


def _spike_rivals(part: Callable[[complex], float]) -> dict[str, Callable[[Point], float]]:
    return {
        "first order in the spike": lambda p: part(_spike_in_transform(p, denominator=0.0)),
        "plus in the denominator": lambda p: part(_spike_in_transform(p, denominator=-1.0)),
        "spike without the noise": lambda p: part(1 / (complex(*p.z) - p.spike) - 1 / complex(*p.z)),
        "not multiplied by N": lambda p: part(_spike_in_transform(p)) / p.dim,
    }


SPIKE_MARGIN = 0.0027
SPIKE_REASON = "1 % of the modulus, 0.27; finite size is O(1/P)"
SPIKE_STATEMENT = (
    r"P\,(S_M(z) - S_\varepsilon(z)) \to \frac{-\lambda S_\varepsilon'(z)}{1 - \lambda S_\varepsilon(z)}"
)

SPIKE_CLAIMS: tuple[AnyClaim, ...] = (
    Identity(
        id="granziol2022/minus-branch",
        entries=("B-A3",),
        source=f"{PAPER}, eq. (36)",
        statement=r"S(z) = \frac{z - \sqrt{z^2 - 4\sigma^2}}{2\sigma^2} \sim \frac1z",
        routes=minus_branch,
        points=(
            Point(variance=1.7, real=(3.1, -2.9, 0.4, 4.2), imaginary=(0.4, 0.7, 1.3, 0.0)),
            Point(variance=0.3, real=(0.7, -1.6), imaginary=(-0.6, 0.0)),
        ),
        measured="density",
        theory="minus",
        printed="plus",
        finding="The sign before the root must be minus off the cut: with plus the transform grows like z.",
        tolerance=1e-11,
        tolerance_reason=QUADRATURE,
        rivals=("opposite sign",),
        seconds=0.02,
        quantity="Stieltjes transform of the semicircle",
    ),
    Identity(
        id="granziol2022/rank-one-transform",
        entries=("B-A3",),
        source=f"{PAPER}, eqs. (37) and (38)",
        statement=r"S_A(u) = \frac1u \Big[1 + \frac1N \frac{\lambda/u}{1 - \lambda/u}\Big]",
        routes=rank_one_transform,
        points=(Point(dim=40, spike=1.7, u=(2.3, 0.7)), Point(dim=12, spike=-0.9, u=(0.6, -1.2))),
        measured="eigenvalues",
        theory="(1 + correction) / u",
        printed="1/u + correction",
        finding="The factor 1/u before the correction is missing.",
        tolerance=1e-12,
        tolerance_reason="exact; rounding of an eigensolver",
        rivals=("no correction", "rank in full"),
        seconds=0.02,
        quantity="Stieltjes transform of a rank-one matrix",
    ),
    *(
        Claim(
            id=f"granziol2022/spike-in-transform-{name}",
            entries=("B-A3",),
            source=f"{PAPER}, eqs. (39) to (42)",
            statement=rf"\mathrm{{{operator}}}:\quad {SPIKE_STATEMENT}",
            experiment=SPIKED,
            score=name,
            predict=lambda p, part=part: part(_spike_in_transform(p)),
            margin=SPIKE_MARGIN,
            relative=False,
            margin_reason=SPIKE_REASON,
            rivals=_spike_rivals(part),
            quantity=f"{name} part of P times the difference, first-order noise (mean 0) left out",
        )
        for name, operator, part in (
            ("real", "Re", lambda value: value.real),
            ("imaginary", "Im", lambda value: value.imag),
        )
    ),
    Identity(
        id="granziol2022/pole",
        entries=("B-A3", "B15", "B18"),
        source=f"{PAPER}, eq. (43) and the remark on the smallest eigenvalue",
        statement=r"S(\lambda + \sigma^2/\lambda) = \frac1\lambda\ \text{ if } |\lambda| > \sigma,\ "
        r"\text{else } \frac\lambda{\sigma^2}",
        routes=pole,
        points=(
            Point(variance=1.7, spikes=(2.9, 1.6, 0.7, -2.1, -0.4)),
            Point(variance=0.3, spikes=(0.73, -0.81, -0.33)),
        ),
        measured="density",
        theory="1/lambda beyond sigma",
        printed="1/lambda beyond 2 sigma",
        finding="The outlier leaves the bulk at |lambda| = sigma; in the remark on the smallest eigenvalue, as in "
        "lemma 11, our copy has 2 sigma.",
        tolerance=1e-9,
        tolerance_reason=QUADRATURE,
        rivals=("1/lambda everywhere",),
        seconds=0.02,
        quantity="Stieltjes transform at the image of the spike",
    ),
)

# --- appendix B: Wishart noise, one rank-one term at a time --------------------------------------------------


def rank_one_term(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Where the transform s of one term r r^T / N is s, in the appendix's sign: s = mean of 1 / (eigenvalue - z)."""
    dim, s = point.dim, point.s
    spike = point.ratio * point.variance
    r = rng.standard_normal(dim)
    r *= math.sqrt(dim * point.variance) / np.linalg.norm(r)
    eigenvalues = np.linalg.eigvalsh(np.outer(r, r) * point.ratio / dim)

    def excess(z: float) -> float:
        return float(np.mean(1 / (eigenvalues - z))) - s

    a, b = s * spike - 1, s * spike + 1
    roots = [(a + sign * math.sqrt(b**2 - 4 * s * spike / dim)) / (2 * s) for sign in (-1, 1)]
    step = 2 * s * spike / b
    near = -1 / s
    return {
        "eigenvalues": _root(excess, *sorted((0.9 * near, 1.2 * near))),
        "exact root": roots[0],
        "other root": roots[1],
        "expanded": (a - b + step / dim) / (2 * s),
        "expanded, wrong sign and extra P": (a - b - step) / (2 * s),
        "expanded, wrong sign": (a - b - step / dim) / (2 * s),
        "no correction": near,
        "term over P for N": near + point.variance / (dim * (s * point.variance + 1)),
    }


TERMS = (
    Point(dim=160, ratio=0.4, variance=1.3, s=-0.3),
    Point(dim=120, ratio=1.7, variance=0.6, s=0.45),
)


def sum_of_terms(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """R of the sum of N free rank-one terms, from the exact root for one of them at a large dimension."""
    s, dim = np.array(point.s), point.dim
    spike = point.ratio * point.variance
    root = np.sqrt((s * spike + 1) ** 2 - 4 * s * spike / dim)
    z = (s * spike - 1 - root) / (2 * s)
    terms = dim / point.ratio
    law = _law(point)
    return {
        "N (z + 1/s)": terms * (z + 1 / s),
        "R(-s)": law.r_transform(-s),
        "N (z - 1/s)": terms * (z - 1 / s),
        "R(s)": law.r_transform(s),
        "without the ratio": point.variance / (1 + s * point.variance),
    }


ORDERS = 6


def free_cumulants(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Free cumulants of Wishart noise from the moments of its density."""
    x, mass = _masses(_law(point))
    moments = [float((mass * x**k).sum()) for k in range(ORDERS + 1)]
    n = np.arange(1, ORDERS + 1)
    return {
        "from the moments": _cumulants(moments),
        "sigma^(2n) beta^(n-1)": point.variance**n * point.ratio ** (n - 1.0),
        "sigma^(2n) beta^n": point.variance**n * point.ratio**n,
        "sigma^n beta^(n-1)": point.variance ** (n / 2) * point.ratio ** (n - 1.0),
        "moments": moments[1:],
    }


def _cumulants(moments: list[float]) -> list[float]:
    """From m_n = sum_s kappa_s [z^(n-s)] M(z)^s, with M the series of the moments."""
    found: list[float] = []
    for n in range(1, len(moments)):
        series = np.polynomial.Polynomial(moments)
        known = sum(kappa * _coefficient(series**s, n - s) for s, kappa in enumerate(found, start=1))
        found.append(moments[n] - known)
    return found


def _coefficient(series: np.polynomial.Polynomial, power: int) -> float:
    return float(series.coef[power])


WISHART_LAWS = (Point(variance=1.7, ratio=0.6), Point(variance=0.8, ratio=3.1))

TERM_CLAIMS: tuple[AnyClaim, ...] = (
    Identity(
        id="granziol2022/rank-one-root",
        entries=("B-B1",),
        source=f"{PAPER}, eqs. (46) to (49)",
        statement=r"s z^2 + (1 - s\lambda) z - \lambda(1 - 1/P) = 0,\quad \lambda = \beta\sigma^2,\ "
        r"W^s = \frac{r r^\top}{N}",
        routes=rank_one_term,
        points=TERMS,
        measured="eigenvalues",
        theory="exact root",
        tolerance=1e-10,
        tolerance_reason="exact; rounding of an eigensolver and of a root near 1/s",
        rivals=("other root", "no correction", "term over P for N"),
        seconds=0.05,
        quantity="inverse of the transform of one term",
    ),
    Identity(
        id="granziol2022/rank-one-expansion",
        entries=("B-B1",),
        source=f"{PAPER}, eq. (49)",
        statement=r"z = \frac{1}{2 s}\Big[s\lambda - 1 - (s\lambda + 1) + \frac1P \frac{2 s\lambda}{s\lambda + 1}\Big] "
        r"= -\frac1s + \frac{\lambda}{P (s\lambda + 1)}",
        routes=rank_one_term,
        points=TERMS,
        measured="eigenvalues",
        theory="expanded",
        printed="expanded, wrong sign and extra P",
        finding="In the middle line the last term has the wrong sign and a factor P too many; the last line is right.",
        tolerance=1e-4,
        tolerance_reason="of the order 1/P^2 that is left out, 5e-6 here",
        rivals=("no correction", "expanded, wrong sign", "term over P for N"),
        seconds=0.05,
        quantity="inverse of the transform of one term",
    ),
    Identity(
        id="granziol2022/sum-of-terms",
        entries=("B-B1", "B-B2"),
        source=f"{PAPER}, eq. (50)",
        statement=r"R = N\Big(z + \frac1s\Big) \to \frac{\sigma^2}{1 + s \beta\sigma^2}",
        routes=sum_of_terms,
        points=(
            Point(variance=1.7, ratio=0.6, s=(-0.3, 0.2, 1.1), dim=10**6),
            Point(variance=0.8, ratio=3.1, s=(-0.12, 0.7), dim=10**6),
        ),
        measured="N (z + 1/s)",
        theory="R(-s)",
        printed="N (z - 1/s)",
        finding="In the sign convention of the appendix R = N (z + 1/s); with minus it grows with N.",
        tolerance=1e-4,
        tolerance_reason="of the order 1/P that is left out, 1e-6, and cancellation of nine digits",
        rivals=("R(s)", "without the ratio"),
        seconds=0.01,
        quantity="R transform of Wishart noise",
    ),
    Identity(
        id="granziol2022/free-cumulants",
        entries=("B-B2",),
        source=f"{PAPER}, eq. (50); the cumulants are ours",
        statement=r"R(w) = \frac{\sigma^2}{1 - \beta\sigma^2 w} = \sum_n \kappa_n w^{n-1},\quad "
        r"\kappa_n = \sigma^{2n} \beta^{n-1}",
        routes=free_cumulants,
        points=WISHART_LAWS,
        measured="from the moments",
        theory="sigma^(2n) beta^(n-1)",
        tolerance=1e-10,
        tolerance_reason="moments to rounding; differences of sums up to 30 times the result",
        rivals=("sigma^(2n) beta^n", "sigma^n beta^(n-1)", "moments"),
        seconds=0.02,
        quantity="free cumulants of Wishart noise",
    ),
)

# --- appendix B: Wishart noise as a whole --------------------------------------------------------------------


def wishart_transform(block: Block, point: Point) -> Mapping[str, Any]:
    """Mean of 1 / (z - eigenvalue) for Wishart noise, along a line of complex z."""
    import torch

    from simulate import ensembles

    values = torch.linalg.eigvalsh(point.variance * ensembles.wishart(block, point.dim, point.samples))
    z = torch.tensor(point.x, dtype=torch.complex128, device=values.device) + 1j * point.height
    found = (1 / (z - values[:, :, None])).mean(dim=1)
    return {"real": found.real, "imaginary": found.imag}


WISHART = Experiment(
    id="granziol2022/wishart-transform",
    replicate="one Wishart matrix",
    simulate=wishart_transform,
    points=(
        Point(dim=140, samples=240, variance=1.7, x=(-0.7, 3.4, 8.1), height=0.7),
        Point(dim=180, samples=120, variance=0.8, x=(-0.3, 1.9, 5.2), height=0.6),
    ),
    budget=512,
    seconds=0.5,
)


def _eq_51(z: complex, *, ratio: float, variance: float, sign: int) -> complex:
    """Transform with z + sign sigma^2 (1 - beta), on the branch that decays."""
    shifted = z + sign * variance * (1 - ratio)
    root = cmath.sqrt(shifted**2 - 4 * ratio * variance * z)
    return (shifted - (root if (root * shifted.conjugate()).real > 0 else -root)) / (2 * ratio * variance * z)


def _wishart_point(p: Point) -> complex:
    return p.x + 1j * p.height


def _corrected_51(p: Point) -> complex:
    return complex(MarchenkoPastur(q=p.dim / p.samples, variance=p.variance).stieltjes(_wishart_point(p)))


def _read_51(p: Point) -> complex:
    return _eq_51(_wishart_point(p), ratio=p.dim / p.samples, variance=p.variance, sign=1)


def _upside_down_51(p: Point) -> complex:
    return complex(MarchenkoPastur(q=p.samples / p.dim, variance=p.variance).stieltjes(_wishart_point(p)))


def _semicircle_51(p: Point) -> complex:
    width = math.sqrt(p.dim / p.samples) * p.variance
    return complex(Semicircle(sigma=width).stieltjes(_wishart_point(p) - p.variance))


MASS_STEPS = 200_000


def wishart_mass(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Mass of the density of eq. (52), corrected and as our copy reads, and the atom at 0."""
    ratio, variance = point.ratio, point.variance
    law = _law(point)
    bulk = _masses(law)[1][:-1].sum()
    atom = max(0.0, 1 - 1 / ratio)
    return {
        "bulk and atom": [bulk + atom, atom],
        "one": [1.0, law.atom],
        "as our copy reads": [_mass_as_read(ratio, variance), 0.0],
        "without 1/pi": [np.pi * bulk + atom, atom],
        "no atom": [bulk, 0.0],
        "bulk of mass one": [1.0 + atom, atom],
    }


def _mass_as_read(ratio: float, variance: float) -> float:
    """Quadrature over the support of the density with x + sigma^2 (1 - beta) and without pi."""
    middle, square = variance * (3 * ratio - 1), (3 * ratio - 1) ** 2 - (1 - ratio) ** 2
    if square <= 0:
        return 0.0
    radius = variance * math.sqrt(square)
    angle = (np.arange(MASS_STEPS) + 0.5) * np.pi / MASS_STEPS
    x = middle - radius * np.cos(angle)
    return float(((radius * np.sin(angle)) ** 2 / (2 * ratio * variance * x)).sum()) * math.pi / MASS_STEPS


def zero_eigenvalues(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Share of zero eigenvalues of one Wishart matrix, counted."""
    x = rng.standard_normal((point.dim, point.samples))
    values = np.linalg.eigvalsh(x @ x.T / point.samples)
    law = MarchenkoPastur(q=point.dim / point.samples, variance=1.0)
    return {
        "counted": float((values < 1e-9 * values[-1]).mean()),
        "1 - 1/beta": law.atom,
        "none": 0.0,
        "1/beta": 1 - law.atom,
    }


def t_transform(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Where T(z) = z S(z) - 1 of Wishart noise is 1/theta, and what other readings of eq. (53) give."""
    law, thetas = _law(point), np.array(point.thetas)
    inverse = [_above(law, lambda z, at=at: z * _transform(law, z) - 1 - 1 / at) for at in point.thetas]
    spikes = thetas * point.variance
    multiplicative = outliers.information_plus_noise(spikes, q=point.ratio, variance=point.variance)
    additive = outliers.additive_wishart(spikes, q=point.ratio, variance=point.variance)
    return {
        "inverse of T": inverse,
        "multiplicative map": multiplicative.eigenvalue,
        "T itself": law.stieltjes(1 / thetas + 1e-9j) / thetas - 1,
        "T itself, with the sign of eq. (51)": [
            (1 / at) * _eq_51(1 / at, ratio=point.ratio, variance=point.variance, sign=1) - 1
            for at in point.thetas
        ],
        "additive map": additive.eigenvalue,
    }


WISHART_CLAIMS: tuple[AnyClaim, ...] = (
    *(
        Claim(
            id=f"granziol2022/wishart-transform-{name}",
            entries=("B-B3",),
            source=f"{PAPER}, eq. (51)",
            statement=rf"\mathrm{{{operator}}}\ S(z),\quad S(z) = \frac{{z - \sigma^2(1 - \beta) - "
            r"\sqrt{(z - \sigma^2(1 - \beta))^2 - 4\beta\sigma^2 z}}{2\beta\sigma^2 z}",
            experiment=WISHART,
            score=name,
            along="x",
            axis="x",
            predict=lambda p, part=part: part(_corrected_51(p)),
            printed=lambda p, part=part: part(_read_51(p)),
            finding="Our copy has z + sigma^2 (1 - beta) where minus is needed; the two agree at beta = 1 only.",
            margin=0.004,
            relative=False,
            margin_reason="1 % of the largest modulus on this line; finite size is O(1/P)",
            rivals={
                "ratio upside down": lambda p, part=part: part(_upside_down_51(p)),
                "semicircle of the same variance": lambda p, part=part: part(_semicircle_51(p)),
                "no noise": lambda p, part=part: part(1 / (_wishart_point(p) - p.variance)),
            },
            quantity=f"{name} part of the Stieltjes transform",
        )
        for name, operator, part in (
            ("real", "Re", lambda value: value.real),
            ("imaginary", "Im", lambda value: value.imag),
        )
    ),
    Identity(
        id="granziol2022/wishart-mass",
        entries=("B-B4",),
        source=f"{PAPER}, eq. (52)",
        statement=r"\int \frac{\sqrt{4\beta\sigma^2 x - (x - \sigma^2(1 - \beta))^2}}{2\pi\beta\sigma^2 x}\,dx "
        r"= \min(1, 1/\beta),\quad \text{atom } 1 - 1/\beta \text{ at } 0 \text{ for } \beta > 1",
        routes=wishart_mass,
        points=tuple(Point(variance=1.3, ratio=ratio) for ratio in (0.3, 0.6, 3.1)),
        measured="bulk and atom",
        theory="one",
        printed="as our copy reads",
        finding="Without 1/pi, and with the sign of sigma^2 (1 - beta) turned, the density has a mass of pi for beta "
        "from 1 on, 1.047 at beta = 0.6, and no support at all below 1/2; the atom is not mentioned.",
        tolerance=1e-9,
        tolerance_reason=QUADRATURE,
        rivals=("without 1/pi", "no atom", "bulk of mass one"),
        seconds=0.05,
        quantity="total mass, and mass at 0",
    ),
    Identity(
        id="granziol2022/zero-eigenvalues",
        entries=("B-B4",),
        source=f"ours, beside {PAPER}, eq. (52)",
        statement=r"\frac1P \#\{i : \lambda_i = 0\} = 1 - \frac1\beta,\quad \beta = P/N > 1",
        routes=zero_eigenvalues,
        points=(Point(dim=90, samples=40), Point(dim=65, samples=52)),
        measured="counted",
        theory="1 - 1/beta",
        tolerance=1e-12,
        tolerance_reason="a count; zeros are told from the rest by nine digits",
        rivals=("none", "1/beta"),
        seconds=0.02,
        quantity="share of zero eigenvalues",
    ),
    Identity(
        id="granziol2022/t-transform",
        entries=("B-B5",),
        source=f"{PAPER}, eq. (53)",
        statement=r"T(z) = z S(z) - 1:\quad T^{-1}(1/\theta) = \sigma^2 (1 + \theta)(1 + \beta/\theta)",
        routes=t_transform,
        points=(
            Point(variance=1.3, ratio=0.4, thetas=(0.9, 2.1, 4.7)),
            Point(variance=0.7, ratio=2.6, thetas=(2.3, 6.1)),
        ),
        measured="inverse of T",
        theory="multiplicative map",
        printed="T itself",
        finding="The outlier is the inverse of T at 1/theta, not T itself, which is complex where 1/theta lies in the "
        "bulk; and it is the multiplicative map, not the additive one of theorem 7.",
        tolerance=1e-9,
        tolerance_reason=QUADRATURE,
        rivals=("additive map", "T itself, with the sign of eq. (51)"),
        seconds=0.2,
        quantity="outlier in the multiplicative model",
    ),
)

CLAIMS: tuple[AnyClaim, ...] = (*FREENESS, *SPIKE_CLAIMS, *TERM_CLAIMS, *WISHART_CLAIMS)
