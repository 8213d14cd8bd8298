"""Vysogorets, Dawid and Kempe (2024): the Gauss-Newton matrix of finite samples of the random logit model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from simulate.matrices import ensembles
from simulate.monte_carlo import Block, Point
from theory import gauss_newton, softmax
from verify.claims.vysogorets2024 import PAPER
from verify.model import OURS, AnyClaim, Claim, Experiment, Kind

__all__ = ["CLAIMS", "logit_gradients_at", "predictions_at"]

UNBIASED = "unbiased; at most 1 % for random matrices"


def logit_gradients_at(block: Block, point: Point, samples: int) -> Any:
    """Class means and residuals of the random logit model at a point: (n, K, d) and (n, samples, K, d)."""
    return ensembles.logit_gradients(
        block,
        classes=len(point.p[0]),
        dim=point.dim,
        samples=samples,
        sigma_c=point.sigma_c,
        sigma_e=point.sigma_e,
        orthogonal=point.orthogonal,
    )


def predictions_at(point: Point, device: str) -> Any:
    """Every prediction of a point as often as it says, (N, K)."""
    import torch

    return torch.tensor(point.p, dtype=torch.float64, device=device).repeat(point.copies, 1)


def finite_samples(block: Block, point: Point) -> Mapping[str, Any]:
    """Moments of the G-term over independent draws of everything: squared mean of its trace, mean squared norm."""
    p = predictions_at(point, block.device)
    c, e = logit_gradients_at(block.repeated(point.draws), point, len(p))
    g = ensembles.gauss_newton_of_logits(c[:, None] + e, p)
    trace = g.diagonal(dim1=1, dim2=2).sum(1).reshape(len(block), -1)
    products = (trace.sum(1).square() - trace.square().sum(1)) / (point.draws * (point.draws - 1))
    return {
        "squared_trace": products,
        "squared_norm": g.square().sum((1, 2)).reshape(len(block), -1).mean(1),
    }


def shared_means(block: Block, point: Point) -> Mapping[str, Any]:
    """The same of the mean of G over residuals: products of two batches around the same class means."""
    p = predictions_at(point, block.device)
    c, e = logit_gradients_at(block.repeated(point.draws), point, 2 * len(p))
    one, two = (ensembles.gauss_newton_of_logits(c[:, None] + half, p) for half in e.split(len(p), dim=1))
    traces = [g.diagonal(dim1=1, dim2=2).sum(1) for g in (one, two)]
    products = {"trace_product": traces[0] * traces[1], "inner_product": (one * two).sum((1, 2))}
    return {name: values.reshape(len(block), -1).mean(1) for name, values in products.items()}


BEFORE_COLLAPSE = ((0.55, 0.42, 0.03), (0.994, 0.004, 0.002), (0.002, 0.995, 0.003), (0.001, 0.003, 0.996))
MIXED = ((0.90, 0.06, 0.03, 0.01), (0.05, 0.85, 0.02, 0.08), (0.30, 0.10, 0.55, 0.05))
UNSURE = ((0.6, 0.3, 0.1), (0.2, 0.3, 0.5), (0.1, 0.7, 0.2), (0.3, 0.4, 0.3), (0.15, 0.25, 0.6))

FINITE = Experiment(
    id="vysogorets2024/finite-samples",
    replicate="draws of Gaussian class means with one finite sample each",
    simulate=finite_samples,
    points=(
        Point(p=((0.6, 0.3, 0.1),), copies=1, dim=60, draws=16, sigma_c=1.3, sigma_e=0.8, orthogonal=False),
        Point(p=UNSURE, copies=1, dim=7, draws=48, sigma_c=1.1, sigma_e=0.6, orthogonal=False),
        Point(p=BEFORE_COLLAPSE, copies=10, dim=50, draws=4, sigma_c=1.1, sigma_e=2.3, orthogonal=False),
    ),
    budget=4096,
    seconds=0.31,
)

FINITE_ORTHOGONAL = Experiment(
    id="vysogorets2024/finite-samples-orthogonal",
    replicate="draws of orthogonal class means with one finite sample each",
    simulate=finite_samples,
    points=(
        Point(p=UNSURE, copies=1, dim=13, draws=16, sigma_c=1.1, sigma_e=0.6, orthogonal=True),
        Point(p=MIXED, copies=2, dim=8, draws=48, sigma_c=0.7, sigma_e=0.9, orthogonal=True),
        Point(p=BEFORE_COLLAPSE, copies=10, dim=50, draws=4, sigma_c=1.1, sigma_e=2.3, orthogonal=True),
    ),
    budget=4096,
    seconds=0.15,
)

BATCH = Experiment(
    id="vysogorets2024/batch-of-predictions",
    replicate="draws of orthogonal class means with two batches of logit gradients each",
    simulate=shared_means,
    points=(
        Point(p=MIXED, copies=6, dim=31, draws=4, sigma_c=1.1, sigma_e=0.6, orthogonal=True),
        Point(p=UNSURE, copies=4, dim=11, draws=8, sigma_c=0.9, sigma_e=1.3, orthogonal=True),
    ),
    budget=4096,
    seconds=0.072,
)


def _scales(p: Point) -> dict[str, Any]:
    return {"dim": p.dim, "sigma_c": p.sigma_c, "sigma_e": p.sigma_e}


def _eq_8(gamma: Any, p: Point) -> float:
    return float(gauss_newton.expected_excess(gamma, **_scales(p)) ** 2)


def _eq_8_as_our_copy_reads(p: Point) -> float:
    """With sigma_e^4 in the last term of the denominator."""
    c, e = p.sigma_c**2, p.sigma_e**2
    return p.dim * (c + e) ** 2 / (e**2 + 2 * e * c + p.dim * e**2 / float(_gammas(p).mean) ** 2)


def _gammas(p: Point) -> softmax.BatchGammas:
    return softmax.batch_gammas(np.repeat(p.p, p.copies, axis=0))


def _finite(p: Point, *, orthogonal: bool) -> float:
    found = gauss_newton.finite_sample_excess(*_gammas(p), **_scales(p), orthogonal=orthogonal)
    return float(found**2)


def _one_sample(p: Point) -> float:
    return p.dim / (1 + (p.dim + 1) / float(_gammas(p).mean) ** 2)


def _finite_claim(name: str, experiment: Experiment, statement: str, *, says: str, orthogonal: bool) -> Claim:
    return Claim(
        id=f"vysogorets2024/{name}",
        entries=("A29",),
        source=f"ours, beside {PAPER}, section 4, figure 3, which compares eq. (8) with the G-term of a sample",
        passage=OURS,
        statement=statement,
        says=says,
        experiment=experiment,
        kind=Kind.RATIO,
        score=("squared_trace", "squared_norm"),
        predict=lambda p: _finite(p, orthogonal=orthogonal),
        margin=0.01,
        margin_reason=UNBIASED,
        rivals={
            "eq. (8) corrected, an infinite sample": lambda p: _eq_8(_gammas(p).mean, p),
            "eq. (8) as our copy reads": _eq_8_as_our_copy_reads,
            "as for one sample": _one_sample,
            "Gamma side by side in eq. (8)": lambda p: _eq_8(_gammas(p).separate, p),
            "the other kind of class means": lambda p: _finite(p, orthogonal=not orthogonal),
        },
        quantity="squared excess of the G-term",
    )


CLAIMS: tuple[AnyClaim, ...] = (
    _finite_claim(
        "finite-sample-excess",
        FINITE,
        r"\frac{(\mathbb{E}\,\mathrm{Tr}\,G)^2}{\mathbb{E}\,\lVert G\rVert_F^2} = \frac{d s^2}{s^2 + (d + 1) "
        r"[\sigma_c^4 \bar\Gamma^{-2} + (s^2 - \sigma_c^4) \Gamma_\oplus^{-2}]},\quad s = \sigma_c^2 + \sigma_e^2",
        says="For finite samples with Gaussian class means in the random model, squared mean trace over mean squared "
        "norm of the Gauss-Newton term has an exact closed form.",
        orthogonal=False,
    ),
    _finite_claim(
        "finite-sample-orthogonal",
        FINITE_ORTHOGONAL,
        r"\frac{(\mathbb{E}\,\mathrm{Tr}\,G)^2}{\mathbb{E}\,\lVert G\rVert_F^2} = \frac{d s^2}{(s^2 - \sigma_c^4)"
        r"(1 + (d + 1) \Gamma_\oplus^{-2}) + d\,\sigma_c^4 \bar\Gamma^{-2}}",
        says="For finite samples with orthogonal class means in the random model, squared mean trace over mean "
        "squared norm of the Gauss-Newton term has a closed form of its own.",
        orthogonal=True,
    ),
    Claim(
        id="vysogorets2024/eq-8-of-a-batch",
        entries=("A30",),
        source=f"{PAPER}, section 4, eq. (8) corrected, for a batch",
        statement=r"\mathrm{exc}(\mathbb{E}_e G)^2 = \mathrm{eq.\,(8)\ at\ } \Gamma = "
        r"\mathrm{exc}\Big(\tfrac{1}{N} \sum_\mu M(p^\mu)\Big)",
        says="For drawn batches of the random model, the excess of the mean Gauss-Newton term is set by the excess of "
        "the averaged softmax covariance, not by averages over samples.",
        experiment=BATCH,
        kind=Kind.RATIO,
        score=("trace_product", "inner_product"),
        predict=lambda p: _eq_8(_gammas(p).mean, p),
        margin=0.01,
        margin_reason="products of independent batches: no bias; 1 % of the square is 0.5 % of the excess",
        rivals={
            "mean of Gamma": lambda p: _eq_8(softmax.gamma(p.p).mean(), p),
            "Gamma of the mean prediction": lambda p: _eq_8(softmax.gamma(np.mean(p.p, axis=0)), p),
        },
        quantity="squared excess of the mean G-term",
    ),
)
