"""Experiments and claims of Vysogorets, Dawid and Kempe (2024): softmax curvature and the Goldilocks zone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from simulate.monte_carlo import Block, Point
from theory import gauss_newton, softmax
from verify.model import AnyClaim, Claim, ExactProperty, Experiment, Identity, Kind

__all__ = ["CLAIMS"]

PAPER = "Vysogorets, Dawid and Kempe (2024)"

# --- the random logit model ----------------------------------------------------------------------------------


def random_logit_model(block: Block, point: Point) -> Mapping[str, Any]:
    """Two independent mini-batches of the G-term around the same class means, through statistics linear in each.

    Along the eigenvectors of C' M C, which are those of the mean of G, Rayleigh quotients average to eigenvalues.
    """
    import torch

    from simulate import ensembles

    p = torch.tensor(point.p, dtype=torch.float64, device=block.device)
    c, e = ensembles.logit_gradients(
        block,
        classes=len(p),
        dim=point.dim,
        samples=2 * point.samples,
        sigma_c=point.sigma_c,
        sigma_e=point.sigma_e,
        orthogonal=True,
    )
    first, second = (
        ensembles.gauss_newton_of_logits(c[:, None] + half, p) for half in e.split(point.samples, dim=1)
    )
    _, vectors = torch.linalg.eigh(torch.diag(p) - torch.outer(p, p))
    directions = torch.nn.functional.normalize(vectors.T.flip(0)[:-1] @ c, dim=-1)
    mean = (first + second) / 2
    quotients = ((directions @ mean) * directions).sum(-1)
    traces = [half.diagonal(dim1=1, dim2=2).sum(1) for half in (first, second)]
    return {
        "top": quotients[:, 0],
        "last_outlier": quotients[:, -1],
        "bulk": (sum(traces) / 2 - quotients.sum(1)) / (point.dim - len(p) + 1),
        "trace_product": traces[0] * traces[1],
        "inner_product": (first * second).sum((1, 2)),
    }


SKEWED = (0.31, 0.22, 0.15, 0.11, 0.08, 0.05, 0.04, 0.02, 0.015, 0.005)
SURE = (0.83, 0.12, 0.05)

LOGIT_MODEL = Experiment(
    id="vysogorets2024/random-logit-model",
    replicate="one draw of the class means with two mini-batches of logit gradients",
    simulate=random_logit_model,
    points=(
        Point(p=SKEWED, dim=50, samples=24, sigma_c=1.1, sigma_e=2.3),
        Point(p=SURE, dim=20, samples=32, sigma_c=1.6, sigma_e=0.7),
    ),
    budget=8192,
    seconds=2.5,
    smoke=True,
)

UNIFORM_LOGIT_MODEL = Experiment(
    id="vysogorets2024/uniform-logit-model",
    replicate=LOGIT_MODEL.replicate,
    simulate=random_logit_model,
    points=(Point(p=(0.1,) * 10, dim=50, samples=24, sigma_c=1.1, sigma_e=2.3),),
    seconds=1.0,
    smoke=True,
)


def _eigenvalues(p: Point) -> np.ndarray[Any, Any]:
    return gauss_newton.expected_eigenvalues(p.p, dim=p.dim, sigma_c=p.sigma_c, sigma_e=p.sigma_e)


def _squared_excess(p: Point, *, repeated: float, gamma_power: int = 2) -> float:
    """Eq 8 squared, with the standard deviation that stands beside Gamma left open."""
    noise, signal = p.sigma_e**2, p.sigma_c**2
    bulk = noise**2 + 2 * noise * signal
    return (
        p.dim
        * (noise + signal) ** 2
        / (bulk + p.dim * repeated**4 * float(softmax.gamma(p.p)) ** -gamma_power)
    )


def _bulk(p: Point) -> float:
    return (1 - float(np.square(p.p).sum())) * p.sigma_e**2


UNBIASED = "linear in G, hence unbiased; at most 1 % for random matrices"

LOGIT_CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="vysogorets2024/outlier",
        entries=("A27", "A41"),
        source=f"{PAPER}, eq. (7) and appendix B",
        statement=r"\lambda_i(\mathbb{E}_e G) = (1 - \lVert p\rVert^2)\,\sigma_e^2 + d\,\sigma_c^2\,\tilde\lambda_i",
        experiment=LOGIT_MODEL,
        score="top",
        predict=lambda p: _eigenvalues(p)[0],
        margin=0.01,
        margin_reason=UNBIASED,
        rivals={
            "without the bulk": lambda p: _eigenvalues(p)[0] - _bulk(p),
            "bulk without 1 - |p|^2": lambda p: _eigenvalues(p)[0] - _bulk(p) + p.sigma_e**2,
            "no factor d": lambda p: _bulk(p) + p.sigma_c**2 * softmax.eigenvalues(p.p)[0],
            "p_max for the eigenvalue": lambda p: _bulk(p) + p.dim * p.sigma_c**2 * max(p.p),
        },
        quantity="largest eigenvalue of E G",
    ),
    Claim(
        id="vysogorets2024/last-outlier",
        entries=("A27", "A41"),
        source=f"{PAPER}, eq. (7) and appendix B",
        statement=r"\lambda_{K-1}(\mathbb{E}_e G) = (1 - \lVert p\rVert^2)\,\sigma_e^2 + d\,\sigma_c^2\,"
        r"\tilde\lambda_{K-1}",
        experiment=LOGIT_MODEL,
        score="last_outlier",
        predict=lambda p: _eigenvalues(p)[len(p.p) - 2],
        margin=0.01,
        margin_reason=UNBIASED,
        rivals={
            "bulk only": _bulk,
            "smallest probability": lambda p: _bulk(p) + p.dim * p.sigma_c**2 * min(p.p),
        },
        quantity="eigenvalue K - 1 of E G",
    ),
    Claim(
        id="vysogorets2024/bulk",
        entries=("A27", "A41"),
        source=f"{PAPER}, eq. (7) and appendix B",
        statement=r"\frac{1}{d - K + 1} \sum_{i \ge K} \lambda_i(\mathbb{E}_e G) = "
        r"(1 - \lVert p\rVert^2)\,\sigma_e^2",
        experiment=LOGIT_MODEL,
        score="bulk",
        predict=lambda p: _eigenvalues(p)[-1],
        margin=0.01,
        margin_reason=UNBIASED,
        rivals={
            "without 1 - |p|^2": lambda p: p.sigma_e**2,
            "1 - 1/K for 1 - |p|^2": lambda p: (1 - 1 / len(p.p)) * p.sigma_e**2,
            "standard deviation": lambda p: (1 - float(np.square(p.p).sum())) * p.sigma_e,
        },
        quantity="bulk eigenvalue of E G",
    ),
    Claim(
        id="vysogorets2024/uniform-outliers",
        entries=("A42",),
        source=f"{PAPER}, appendix B",
        statement=r"p = 1/K:\quad \lambda_i(\mathbb{E}_e G) = (1 - 1/K)\,\sigma_e^2 + d\,\sigma_c^2 / K,\quad i < K",
        experiment=UNIFORM_LOGIT_MODEL,
        score="top",
        predict=lambda p: _eigenvalues(p)[0],
        printed=lambda p: 1 / len(p.p),
        finding="1/K is the eigenvalue of diag(p) - p p', not of the mean of G.",
        margin=0.01,
        margin_reason=UNBIASED,
        rivals={"without the bulk": lambda p: _eigenvalues(p)[0] - _bulk(p)},
        quantity="outlying eigenvalues of E G at uniform p",
    ),
    Claim(
        id="vysogorets2024/eq-8",
        entries=("A28",),
        source=f"{PAPER}, eq. (8)",
        statement=r"\mathrm{exc}(\mathbb{E}_e G)^2 = \frac{d\,(\sigma_c^2 + \sigma_e^2)^2}"
        r"{\sigma_e^4 + 2 \sigma_e^2 \sigma_c^2 + d\,\sigma_c^4\,\Gamma_p^{-2}}",
        experiment=LOGIT_MODEL,
        kind=Kind.RATIO,
        score=("trace_product", "inner_product"),
        predict=lambda p: (
            gauss_newton.expected_excess(softmax.gamma(p.p), dim=p.dim, sigma_c=p.sigma_c, sigma_e=p.sigma_e)
            ** 2
        ),
        printed=lambda p: _squared_excess(p, repeated=p.sigma_e),
        finding="The last term of the denominator carries sigma_c^4; with sigma_e^4 the limit sigma_e -> 0 diverges.",
        margin=0.01,
        margin_reason="products of independent mini-batches: no bias; 1 % of the square is 0.5 % of the excess",
        rivals={
            "Gamma to the power -1": lambda p: _squared_excess(p, repeated=p.sigma_c, gamma_power=1),
            "standard deviations for variances": lambda p: (
                gauss_newton.expected_excess(
                    softmax.gamma(p.p), dim=p.dim, sigma_c=p.sigma_c**0.5, sigma_e=p.sigma_e**0.5
                )
                ** 2
            ),
            "no noise": lambda p: float(softmax.gamma(p.p)) ** 2,
        },
        quantity="squared excess of E G",
        axis="sigma_e",
    ),
)

# --- collapse ------------------------------------------------------------------------------------------------


def collapse(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Gamma^2 with one likely class and S - 1 equally unlikely ones: the limit by algebra, and at a huge gap."""
    import sympy

    from theory import derivations

    limit = derivations.collapse_limit_equal()
    s = point.support
    return {
        "symbolic": float(sympy.lambdify(limit.symbols, limit.expression)(s)),
        "numeric": softmax.gamma_from_logits([point.gap] + [0.0] * (s - 1)) ** 2,
        "1": 1.0,
        "(S - 1) / 3, what rounding gives": (s - 1) / 3,
    }


def weighted_collapse(_: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """The same with unlikely classes in given proportions."""
    import sympy

    from theory import derivations

    limit = derivations.collapse_limit_weighted()
    weights = np.array(point.weights)
    concentration = (weights**2).sum() / weights.sum() ** 2
    count = len(weights)
    return {
        "symbolic": float(sympy.lambdify(limit.symbols, limit.expression)(concentration)),
        "numeric": softmax.gamma_from_logits(np.append(point.gap, np.log(weights))) ** 2,
        "1": 1.0,
        "equal runners-up": 4 * count / (count + 3),
    }


ROUNDING = "a few roundings; the correction exp(-60) is below them"

COLLAPSE_CLAIMS: tuple[AnyClaim, ...] = (
    Identity(
        id="vysogorets2024/collapse-limit",
        entries=("A46",),
        source=f"{PAPER}, appendix C, eq. (11)",
        statement=r"\lim_{\varepsilon \to 0} \Gamma_p^2 = \frac{4 (S - 1)}{S + 2}\quad "
        r"\text{for } S - 1 \text{ equal small entries } \varepsilon",
        routes=collapse,
        points=tuple(Point(support=s, gap=gap) for s in (3, 4, 7, 23) for gap in (60.0, 900.0, 1e6)),
        measured="numeric",
        theory="symbolic",
        tolerance=1e-14,
        tolerance_reason=ROUNDING,
        rivals=("1", "(S - 1) / 3, what rounding gives"),
        quantity="squared Gamma at collapse",
    ),
    Identity(
        id="vysogorets2024/weighted-collapse",
        entries=("A33",),
        source=f"{PAPER}, section 4 and appendix C",
        statement=r"\lim \Gamma_p^2 = \frac{4}{1 + 3h},\quad h = \frac{\sum_i w_i^2}{(\sum_i w_i)^2}\quad "
        r"\text{for small entries in the proportions } w",
        routes=weighted_collapse,
        points=tuple(
            Point(weights=w, gap=90.0) for w in ((1.0, 0.5), (1.0, 0.1, 0.01), (3.0, 2.0, 1.0, 1.0))
        ),
        measured="numeric",
        theory="symbolic",
        printed="1",
        finding="Gamma tends to 1 if one runner-up outweighs all others; in general the limit depends on their "
        "proportions and can be anything up to 4 (S - 1) / (S + 2), squared.",
        tolerance=1e-14,
        tolerance_reason=ROUNDING,
        rivals=("equal runners-up",),
        quantity="squared Gamma at collapse",
    ),
)


def _probabilities() -> Mapping[str, Any]:
    from hypothesis import strategies as st

    entry = st.one_of(st.just(0.0), st.sampled_from([0.25, 1.0]), st.floats(1e-6, 1.0))
    return {"weights": st.lists(entry, min_size=2, max_size=9).filter(lambda w: sum(x > 0 for x in w) > 1)}


def _p(point: Point) -> np.ndarray[Any, Any]:
    weights = np.array(point.weights)
    return weights / weights.sum()


def gamma_and_interlacing(_: np.random.Generator, point: Point) -> float:
    """By how much Gamma leaves [1, sqrt(K - 1)], or an eigenvalue its interval, ties and zeros included."""
    p = _p(point)
    return max(_outside_gamma(p, len(p) - 1), _outside_interlacing(p, above=0, below=1))


def _outside_gamma(p: np.ndarray[Any, Any], rank: float) -> float:
    found = float(softmax.gamma(p))
    return max(1 - found, found / rank**0.5 - 1, 0.0)


def _outside_interlacing(p: np.ndarray[Any, Any], *, above: int, below: int) -> float:
    """By how much dense eigenvalue i leaves [p_(i + below), p_(i + above)], i = 1..K-1."""
    found = np.linalg.eigvalsh(np.diag(p) - np.outer(p, p))[::-1][:-1]
    ordered = np.sort(p)[::-1]
    upper, lower = ordered[above : above + len(found)], ordered[below : below + len(found)]
    return float(max((found - upper).max(), (lower - found).max(), 0.0))


GAMMA_PROPERTY = ExactProperty(
    id="vysogorets2024/gamma-and-interlacing",
    entries=("A32", "A43"),
    source=f"{PAPER}, section 4 and appendix B",
    statement=r"1 \le \Gamma_p \le \sqrt{K - 1},\qquad p_{(i)} \ge \tilde\lambda_i \ge p_{(i+1)}",
    strategies=_probabilities,
    violation=gamma_and_interlacing,
    examples=(Point(weights=(0.7, 0.2, 0.1)), Point(weights=(1.0, 1.0, 1.0, 1.0)), Point(weights=(0.9, 0.3))),
    tolerance=1e-13,
    tolerance_reason="rounding of a dense eigensolver",
    rivals={
        "Gamma at most sqrt(K / 2)": lambda _, point: _outside_gamma(_p(point), len(point.weights) / 2),
        "eigenvalues equal to the probabilities": lambda _, point: _outside_interlacing(
            _p(point), above=0, below=0
        ),
    },
    seconds=0.5,
)

# --- real networks on real images ----------------------------------------------------------------------------


def temperature_scaling(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Hessians of one network by automatic differentiation: as drawn, and scaled by alpha at three temperatures."""
    from simulate import curvature, data, networks

    source = data.opened(point.images, (1, 28, 28))
    widths = (*networks.LENET_300_100[:-1], source.classes)
    images = data.sample(source, rng, point.samples).flat()
    weights = networks.mlp_weights(rng, widths)
    frame = curvature.haar(rng, networks.parameter_count(widths), point.dim)

    def hessian(alpha: float, temperature: float) -> Any:
        return curvature.latent_loss_hessian(
            weights, images.images, images.labels, frame, alpha=alpha, temperature=temperature
        )

    depth = len(widths) - 1
    matched, low = (hessian(point.alpha, point.alpha**power) for power in (depth, depth - 1))
    drawn = hessian(1.0, 1.0)
    return {
        "Hessian": drawn,
        "scaled Hessian": point.alpha**2 * matched,
        "factor alpha": point.alpha * matched,
        "T = alpha^(L-1)": point.alpha**2 * low,
        "excess": curvature.excess(drawn),
        "scaled excess": curvature.excess(matched),
        "excess at T = alpha^(L-1)": curvature.excess(low),
    }


def zone(block: Block, point: Point) -> Mapping[str, Any]:
    """Share of the alpha grid on which |G| > |Ht| and exc(H) > 1 say the same, network by network."""
    import torch

    from simulate import curvature

    alphas = np.logspace(-2, 2, point.alphas)
    found = []
    for rng in block.streams:
        terms = _projected(rng, point, block.device).terms(alpha=alphas)
        g, h = curvature.spectral_norm(terms.g_term), curvature.spectral_norm(terms.h_term)
        curved = curvature.excess(terms.hessian) > 1
        criteria = torch.stack([g > h, torch.zeros_like(curved)])
        found.append((criteria == curved).double().mean(1))
    share, never = torch.stack(found).T
    return {"share": share, "over_never": share - never}


def _projected(rng: np.random.Generator, point: Point, device: str) -> Any:
    """LeNet-300-100 seen through a random frame.

    Directions of the first layer that no image sees move neither logits nor Hessian. Leaving them out, in the
    weights and in the frame, changes nothing else and makes a network cheap.
    """
    import torch

    from simulate import curvature, data, networks

    source = data.opened(point.images, (1, 28, 28))
    widths = (*networks.LENET_300_100[:-1], source.classes)
    images = data.sample(source, rng, point.samples).flat()
    first, *others = (w.to(device) for w in networks.mlp_weights(rng, widths))
    span, coordinates = torch.linalg.qr(images.tensors(device)[0].T)
    seen = (first @ span, *others)
    frame = curvature.haar(
        rng,
        sum(w.numel() for w in seen),
        point.dim,
        total=networks.parameter_count(widths),
        device=device,
    )
    return curvature.ProjectedMlp(seen, coordinates.T, images.labels, frame)


def full_space(block: Block, point: Point) -> Mapping[str, Any]:
    """Excess of H and of G and the ratio of Frobenius norms, in all 2720 coordinates of one network each."""
    from simulate import data, full_space, networks

    source = data.opened(point.images, (1, 8, 8))
    found = []
    for rng in block.streams:
        images = data.sample(source, rng, point.samples).flat()
        weights = [w.to(block.device) for w in networks.mlp_weights(rng, (64, 30, 20, source.classes))]
        norms = full_space.norms(tuple(weights), images.images, images.labels, point.alpha)
        found.append((norms.excess_hessian, norms.excess_g, norms.norm_h_term / norms.norm_g))
    excess, excess_g, ratio = np.array(found).T
    return {"excess": excess, "excess_g": excess_g, "ratio": ratio}


ZONE = Experiment(
    id="vysogorets2024/zone",
    replicate="one LeNet-300-100 at initialisation with 40 images and a random projection",
    simulate=zone,
    points=(Point(images="digits", samples=40, dim=50, alphas=17),),
    budget=1024,
    seconds=30.0,
    data="digits",
)

TYPICAL = {0.6: (5.2, 2.8), 1.3: (3.9, 0.96), 2.2: (2.7, 0.7)}
"""Excess of G and ratio of the norms by alpha, to one digit or two: they place margins and rivals."""

FULL_SPACE = Experiment(
    id="vysogorets2024/full-space",
    replicate="one bias-free ReLU network 64-30-20-10 at initialisation with 60 images",
    simulate=full_space,
    points=tuple(Point(images="digits", alpha=alpha, samples=60) for alpha in TYPICAL),
    budget=512,
    seconds=8.0,
    data="digits",
)

SCALING_POINTS = tuple(Point(images="digits", alpha=alpha, samples=60, dim=12) for alpha in (0.3, 0.7, 3.0))

NETWORK_CLAIMS: tuple[AnyClaim, ...] = (
    Identity(
        id="vysogorets2024/temperature-excess",
        entries=("A13",),
        source=f"{PAPER}, sections 1 and 3, figure 1",
        statement=r"T = \alpha^L:\quad \mathrm{exc}(H'_d) = \mathrm{exc}(H_d)",
        routes=temperature_scaling,
        points=SCALING_POINTS,
        measured="scaled excess",
        theory="excess",
        tolerance=1e-10,
        tolerance_reason="an exact identity in float64; the rival is only 3 % away",
        rivals=("excess at T = alpha^(L-1)",),
        seconds=3.0,
        data="digits",
        quantity="excess of the projected Hessian of LeNet-300-100",
    ),
    Identity(
        id="vysogorets2024/temperature-hessian",
        entries=("A13",),
        source=f"{PAPER}, section 3",
        statement=r"T = \alpha^L:\quad \alpha^2 H'_d = H_d",
        routes=temperature_scaling,
        points=SCALING_POINTS,
        measured="scaled Hessian",
        theory="Hessian",
        tolerance=1e-10,
        tolerance_reason="an exact identity in float64",
        rivals=("factor alpha", "T = alpha^(L-1)"),
        seconds=3.0,
        data="digits",
        quantity="projected Hessian of LeNet-300-100",
    ),
    Claim(
        id="vysogorets2024/zone-criterion",
        entries=("A20",),
        source=f"{PAPER}, eq. (6), figure 2; the share and its bound are ours",
        statement=r"\lVert G_d\rVert_2 > \lVert \tilde H_d\rVert_2 \iff \mathrm{exc}(H_d) > 1 "
        r"\text{ on at least } 0.9 \text{ of } \alpha \in 10^{[-2, 2]},\ d = 50",
        experiment=ZONE,
        kind=Kind.AT_LEAST,
        score="share",
        predict=lambda _: 0.9,
        margin=0.01,
        margin_reason="a lower bound near the mean itself; a sixth of a point of a grid of 17",
        relative=False,
        rivals={"on the whole grid": lambda _: 1.0},
        quantity="share of the alpha grid",
    ),
    Claim(
        id="vysogorets2024/zone-against-never",
        entries=("A20",),
        source=f"{PAPER}, eq. (6), figure 2; the comparison is ours",
        statement=r"\text{eq. (6) tells the zone on at least } 0.1 \text{ more of the grid than } "
        r"\mathrm{exc}(H_d) \le 1 \text{ everywhere}",
        experiment=ZONE,
        kind=Kind.AT_LEAST,
        score="over_never",
        predict=lambda _: 0.1,
        margin=0.03,
        margin_reason="half a point of a grid of 17",
        relative=False,
        rivals={"0.3 more": lambda _: 0.3},
        quantity="share of the grid gained over a constant answer",
    ),
    Claim(
        id="vysogorets2024/frobenius-law",
        entries=("A20",),
        source=f"ours, in place of eq. (6) of {PAPER}, in full space",
        statement=r"\mathrm{exc}(H) = \mathrm{exc}(G) \big/ \sqrt{1 + \lVert \tilde H\rVert_F^2 / \lVert G\rVert_F^2}",
        experiment=FULL_SPACE,
        score="excess",
        inputs={"excess_g": lambda p: TYPICAL[p.alpha][0], "ratio": lambda p: TYPICAL[p.alpha][1]},
        predict=lambda p: gauss_newton.hessian_excess(p.excess_g, frobenius_ratio=p.ratio),
        margin=0.03,
        margin_reason="the law drops the cross term of G and the H-term, on average up to 3 % of |H|^2, 1.5 % of exc",
        rivals={
            "excess of G": lambda p: p.excess_g,
            "norms added without squares": lambda p: p.excess_g / (1 + p.ratio),
            "ratio to the first power": lambda p: p.excess_g / np.sqrt(1 + p.ratio),
        },
        quantity="excess of the full Hessian",
    ),
)

CLAIMS: tuple[AnyClaim, ...] = (*LOGIT_CLAIMS, *COLLAPSE_CLAIMS, GAMMA_PROPERTY, *NETWORK_CLAIMS)
