"""Experiments and claims of Vysogorets, Dawid and Kempe (2024): the spectrum of the random logit model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from simulate.matrices import ensembles
from simulate.monte_carlo import Block, Point
from theory import gauss_newton, softmax
from verify.claims.vysogorets2024 import PAPER
from verify.model import AnyClaim, Claim, Experiment, Kind, Passage, Standing, Tier

__all__ = ["CLAIMS"]


def random_logit_model(block: Block, point: Point) -> Mapping[str, Any]:
    """Two independent mini-batches of the G-term around the same class means, through statistics linear in each.

    Along the eigenvectors of C' M C, which are those of the mean of G, Rayleigh quotients average to eigenvalues.
    """
    import torch

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
    # on the CPU: where probabilities are equal the basis is the library's choice, and with it what is drawn
    _, vectors = torch.linalg.eigh((torch.diag(p) - torch.outer(p, p)).cpu())
    directions = torch.nn.functional.normalize(vectors.to(c).T.flip(0)[:-1] @ c, dim=-1)
    mean = (first + second) / 2
    quotients = ((directions @ mean) * directions).sum(-1)
    traces = [half.diagonal(dim1=1, dim2=2).sum(1) for half in (first, second)]
    return {
        "top": quotients[:, 0],
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
    seconds=1.9,
    tier=Tier.SMOKE,
)

UNIFORM_LOGIT_MODEL = Experiment(
    id="vysogorets2024/uniform-logit-model",
    replicate=LOGIT_MODEL.replicate,
    simulate=random_logit_model,
    points=(
        Point(p=(0.1,) * 10, dim=50, samples=24, sigma_c=1.1, sigma_e=2.3),
        Point(p=(0.25,) * 4, dim=30, samples=40, sigma_c=1.6, sigma_e=0.7),
    ),
    seconds=0.33,
    tier=Tier.SMOKE,
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

CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="vysogorets2024/outlier",
        entries=("A27", "A41"),
        source=f"{PAPER}, eq. (7) and appendix B",
        statement=r"\lambda_i(\mathbb{E}_e G) = (1 - \lVert p\rVert^2)\,\sigma_e^2 + d\,\sigma_c^2\,\tilde\lambda_i",
        says="In the random model of logit gradients, the largest eigenvalue of the mean Gauss-Newton term exceeds "
        "its bulk by dimension times class-mean variance times that of the softmax covariance.",
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
        quantity="largest eigenvalue of the mean G-term",
    ),
    Claim(
        id="vysogorets2024/bulk",
        entries=("A27", "A41"),
        source=f"{PAPER}, eq. (7) and appendix B",
        statement=r"\frac{1}{d - K + 1} \sum_{i \ge K} \lambda_i(\mathbb{E}_e G) = "
        r"(1 - \lVert p\rVert^2)\,\sigma_e^2",
        says="In the random model of logit gradients, the bulk eigenvalues of the mean Gauss-Newton term average to "
        "the residual variance times one minus the squared norm of the prediction.",
        experiment=LOGIT_MODEL,
        score="bulk",
        predict=lambda p: _eigenvalues(p)[-1],
        margin=0.01,
        margin_reason=UNBIASED,
        rivals={
            "without 1 - |p|^2": lambda p: p.sigma_e**2,
            "1 - 1/K for 1 - |p|^2": lambda p: (1 - 1 / len(p.p)) * p.sigma_e**2,
            "standard deviation": lambda p: (1 - float(np.square(p.p).sum())) * p.sigma_e,
            "1 - p_max for 1 - |p|^2": lambda p: (1 - max(p.p)) * p.sigma_e**2,
        },
        quantity="bulk eigenvalue of the mean G-term",
    ),
    Claim(
        id="vysogorets2024/uniform-outliers",
        entries=("A42",),
        source=f"{PAPER}, appendix B",
        statement=r"p = 1/K:\quad \lambda_i(\mathbb{E}_e G) = (1 - 1/K)\,\sigma_e^2 + d\,\sigma_c^2 / K,\quad i < K",
        says="At uniform predictions, the outlying eigenvalues of the random model's mean Gauss-Newton term exceed "
        "its bulk by dimension times class-mean variance over the number of classes.",
        reads=r"\lambda_i(\mathbb{E}_e\mathcal{G}) = 1/K,\quad i \in [K - 1]",
        experiment=UNIFORM_LOGIT_MODEL,
        score="top",
        predict=lambda p: _eigenvalues(p)[0],
        printed=lambda p: 1 / len(p.p),
        passage=Passage(Standing.MISPRINT, "as they get squeezed between values", "Appendix B"),
        finding="As our copy reads, the outliers of E G are 1/K; those are the eigenvalues of diag(p) - p p', the "
        "lambda-tilde of the formula above it, which gives those of E G.",
        margin=0.01,
        margin_reason=UNBIASED,
        rivals={
            "without the bulk": lambda p: _eigenvalues(p)[0] - _bulk(p),
            "bulk without 1 - 1/K": lambda p: p.dim * p.sigma_c**2 / len(p.p) + p.sigma_e**2,
        },
        quantity="outlying eigenvalues of the mean G-term at uniform predictions",
    ),
    Claim(
        id="vysogorets2024/eq-8",
        entries=("A28",),
        source=f"{PAPER}, eq. (8)",
        statement=r"\mathrm{exc}(\mathbb{E}_e G)^2 = \frac{d\,(\sigma_c^2 + \sigma_e^2)^2}"
        r"{\sigma_e^4 + 2 \sigma_e^2 \sigma_c^2 + d\,\sigma_c^4\,\Gamma_p^{-2}}",
        says="In the random model, the excess of positive curvature of the mean Gauss-Newton term is set by "
        "dimension, gradient variances and the softmax covariance, weighted by the class-mean variance.",
        reads=r"\frac{\mathrm{Tr}(\mathbb{E}_e \mathcal{G})}{\lVert\mathbb{E}_e \mathcal{G}\rVert_F} = "
        r"\frac{\sqrt{d}(\sigma_c^2 + \sigma_e^2)}{\sqrt{\sigma_e^4 + 2\sigma_e^2\sigma_c^2 + "
        r"d\sigma_e^4\Gamma_p^{-2}}}",
        experiment=LOGIT_MODEL,
        kind=Kind.RATIO,
        score=("trace_product", "inner_product"),
        predict=lambda p: (
            gauss_newton.expected_excess(softmax.gamma(p.p), dim=p.dim, sigma_c=p.sigma_c, sigma_e=p.sigma_e)
            ** 2
        ),
        printed=lambda p: _squared_excess(p, repeated=p.sigma_e),
        passage=Passage(Standing.MISPRINT, "directly from its elements", "before Eq 8", slip=True, root=2),
        finding="As our copy reads, the last term of the denominator carries sigma_e^4, and sigma_e -> 0 diverges; "
        "from the elements of Eq 7 it is sigma_c^4, as in the authors' published code.",
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
        quantity="squared excess of the mean G-term",
        axis="sigma_e",
    ),
)
