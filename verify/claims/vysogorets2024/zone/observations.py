"""Vysogorets, Dawid and Kempe (2024): what real networks do beside theory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulate.modules import logit_kernel
from simulate.monte_carlo import Block, Point
from simulate.perceptrons import curvature, gram_excess
from theory import gauss_newton, softmax
from verify.claims.vysogorets2024 import PAPER, framed_networks
from verify.model.observation import Column, Observation

__all__ = ["OBSERVATIONS"]

Floats = NDArray[np.float64]

EDGES = np.logspace(-1.5, 2, 29)
"""Scales on which the crossings are looked for; the neighbours of one are refined."""


def by_scale(block: Block, point: Point) -> Mapping[str, Any]:
    """Excess of the projected G at each scale, and every prediction for it over what is measured."""
    rows = [_beside(*_drawn(rng, point, block.device), np.array(point.alpha)) for rng in block.streams]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def by_network(block: Block, point: Point) -> Mapping[str, Any]:
    """The same for one network after the other, over all scales; and both edges of the zone."""
    rows = [
        [_summary(*_drawn(own, point, block.device)) for own in rng.spawn(len(point.network_number))]
        for rng in block.streams
    ]
    return {name: np.array([[cell[name] for cell in row] for row in rows]) for name in rows[0][0]}


def _drawn(rng: np.random.Generator, point: Point, device: str) -> tuple[Any, Any]:
    """A network through its frame, and the inner products of its logit gradients in all coordinates."""
    drawn = framed_networks.NETWORKS[point.network](rng, point, device)
    return drawn.net, logit_kernel.logit_kernel(drawn.model, drawn.inputs)


def _scales(net: Any) -> tuple[float, float]:
    """Deviations per component of class means and of residuals, fitted to the projected logit gradients."""
    jacobian = net.jacobian.numpy(force=True)
    means = jacobian.mean(axis=0)
    residual = ((jacobian - means) ** 2).sum() / ((len(jacobian) - 1) * means.size)
    return float(np.sqrt(max((means**2).mean() - residual / len(jacobian), 0.0))), float(np.sqrt(residual))


def eq_8_as_our_copy_reads(gamma: Floats, dim: int, sigma_c: float, sigma_e: float) -> Floats:
    """With sigma_e in place of sigma_c in the last term."""
    bulk = sigma_e**4 + 2 * sigma_e**2 * sigma_c**2
    return dim**0.5 * (sigma_c**2 + sigma_e**2) / np.sqrt(bulk + dim * sigma_e**4 / gamma**2)


def _beside(net: Any, kernel: Any, alphas: Floats) -> dict[str, Any]:
    g_term, _ = net.scaled_g_term(alphas)
    measured = curvature.positive_excess(g_term).numpy(force=True)
    heats = alphas**-net.depth
    gammas = softmax.batch_gammas_from_logits(net.logits.numpy(force=True), temperature=heats)
    dim, (sigma_c, sigma_e) = g_term.shape[-1], _scales(net)
    fitted = {"dim": dim, "sigma_c": sigma_c, "sigma_e": sigma_e}
    full = np.array([gram_excess.gram_excess(kernel.gram, kernel.logits / heat) for heat in heats])
    said = {
        "eq_8": gauss_newton.expected_excess(gammas.mean, **fitted),
        "eq_8_read": eq_8_as_our_copy_reads(gammas.mean, **fitted),
        "finite_sample": gauss_newton.finite_sample_excess(*gammas, **fitted),
        "dimension_law": gauss_newton.projected_excess(full, dim=dim, parameters=kernel.dim),
    }
    terms = net.terms(alphas)
    return {
        "excess_g": measured,
        "excess_h": curvature.positive_excess(terms.hessian).numpy(force=True),
        "norms": np.exp(framed_networks.log_ratio(net, alphas)),
        "spread": np.full(len(alphas), sigma_e / sigma_c),
        **{name: value / measured for name, value in said.items()},
    }


FINE = np.logspace(-2, 2, 17)


def _summary(net: Any, kernel: Any) -> dict[str, float]:
    """Median and worst factor over the scales of the paper, and both edges."""
    found = _beside(net, kernel, FINE)
    edges = framed_networks.zone_edges(net, EDGES)
    names = ("eq_8", "eq_8_read", "finite_sample", "dimension_law")
    excess = found["excess_g"]
    return {
        **{name: float(np.median(found[name])) for name in names},
        **{f"{name}_worst": _farthest(found[name]) for name in names},
        "low": edges.low,
        "low_said": edges.low_said,
        "high": edges.high,
        "high_said": edges.high_said,
        "criterion": float(((found["norms"] > 1) == (found["excess_h"] > 1)).mean()),
        "rise": float((excess / np.minimum.accumulate(excess)).max()) - 1,
    }


def _farthest(ratios: Floats) -> float:
    return float(ratios[np.abs(np.log(ratios)).argmax()])


ALPHA = (0.01, 0.1, 0.32, 0.56, 0.75, 1.0, 1.33, 1.78, 2.37, 3.16, 5.62, 10.0, 17.8, 31.6, 100.0)

SIZES = {"LeNet-300-100": 160, "LeNet-5": 80}

NEARLY_ALIKE = (
    "nothing, but its images nearly are sums of others, and rounding moves what it draws in their basis"
)

HEADINGS = {
    "eq_8": "eq. (8) corrected",
    "eq_8_read": "eq. (8) as our copy reads",
    "finite_sample": "finite-sample form",
    "dimension_law": "dimension law from full space",
}

HOW = (
    "Predicted over measured; 1 is perfect. G at its place in exact arithmetic, through 50 random directions; the two "
    "scales of the random model are fitted to the projected logit gradients. LeNet-5 is max pooled."
)

OBSERVATIONS: tuple[Observation, ...] = (
    Observation(
        id="vysogorets2024/excess-by-scale",
        entries=("A7", "A22", "A24", "A29", "A51"),
        source=f"{PAPER}, section 4, figures 2 and 3",
        title="Excess of positive curvature of real networks, measured and predicted",
        note=f"{HOW} Eq. (8) has the right shape and is 11 to 22 % high at small scales; once the network is confident "
        "it is 2.1 to 2.8 times too high, because it belongs to an infinite sample, while there a few "
        "samples near a tie carry all of G. The finite-sample form stays within 16 % at every scale; what is left is "
        "residuals that are not isotropic. The law that needs no fit, from the excess in full space to that in 50 "
        "directions, stays within 13 %. exc(G) ends at 1 and stays there, exactly; that of H drops to what one "
        "frame shows of a matrix without trace, 0.2 either way.",
        replicate="one network at initialisation with its images and a random projection",
        single=NEARLY_ALIKE,
        simulate=by_scale,
        points=tuple(
            Point(images="digits", network=name, samples=size, dim=50, alpha=ALPHA)
            for name, size in SIZES.items()
        ),
        along="alpha",
        columns=(
            Column(score="excess_g", heading="exc(G), projected"),
            *(Column(score=name, heading=text, ratio=True) for name, text in HEADINGS.items()),
            Column(score="excess_h", heading="exc(H), projected"),
            Column(score="norms", heading="|G|_2 / |H-term|_2"),
            Column(score="spread", heading="sigma_e / sigma_c, fitted"),
        ),
        replicates=2,
        seconds=1.2,
        data="digits",
        axis="scale alpha",
    ),
    Observation(
        id="vysogorets2024/agreement-by-network",
        entries=("A7", "A20", "A21", "A23", "A24", "A29"),
        source=f"{PAPER}, figures 2 and 3",
        title="Agreement of theory with real networks, network by network",
        note=f"{HOW} Over 17 scales: eq. (8) is 13 to 29 % high in the median and up to 2.7 times at worst, the "
        "finite-sample form 1 to 15 % and 20 %, the dimension law 0 to 4 % and 11 % low. As our copy reads, eq. (8) is "
        "too low or too high with sigma_e over sigma_c; where it is nearer than the corrected form, at worst on four "
        "of these six networks, two errors cancel, and only the model itself can arbitrate (A28). The lower edge is "
        "predicted without a fit, single networks off by up to 10 %; the upper one, (N f(0))^(1/L), is a "
        "law of growth whose constant, 1 here, is up to 2.6 times too small. Eq. (6) and exc(H) > 1 agree at 88 to "
        "100 % of the scales. exc(G) falls with alpha but for rises of up to 3 %, a fraction of an earlier value.",
        replicate="three networks at initialisation, each with its images and a random projection",
        single=NEARLY_ALIKE,
        simulate=by_network,
        points=tuple(
            Point(images="digits", network=name, samples=size, dim=50, network_number=(1, 2, 3))
            for name, size in SIZES.items()
        ),
        along="network_number",
        columns=(
            *(
                Column(score=f"{name}{suffix}", heading=f"{text}, {what}", ratio=True)
                for name, text in HEADINGS.items()
                for suffix, what in (("", "median"), ("_worst", "farthest from 1"))
            ),
            Column(score="low", heading="lower edge read off"),
            Column(score="low_said", heading="lower edge", ratio=True),
            Column(score="high", heading="upper edge read off"),
            Column(score="high_said", heading="upper edge, constant 1", ratio=True),
            Column(score="criterion", heading="share of the scales where eq. (6) says exc(H) > 1"),
            Column(score="rise", heading="largest rise of exc(G) with alpha"),
        ),
        replicates=1,
        seconds=3.8,
        data="digits",
        axis="network",
    ),
)
