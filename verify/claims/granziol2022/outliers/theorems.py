"""Experiments and claims of Granziol, Zohren and Roberts (2022): the spectrum of the mini-batch Hessian."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from simulate.matrices import ensembles
from simulate.monte_carlo import Block, Point
from theory import batch_hessian
from verify.claims.granziol2022 import PAPER
from verify.model import (
    AnyClaim,
    Claim,
    Experiment,
    Passage,
    Standing,
)

__all__ = ["CLAIMS"]

# --- Wigner noise: theorems 4 and 10 -------------------------------------------------------------------------


def spiked_wigner(block: Block, point: Point) -> Mapping[str, Any]:
    """One direction of curvature `eigenvalue`, plus noise of variance sigma^2 (1/B - 1/N) in every element.

    The scores of the top eigenvalue leave out v' W v, its term of first order: that has mean exactly 0 (v and W
    are independent) and most of the variance.
    """
    noise = _scale(point) * ensembles.wigner(block, point.dim, law=point.law)
    return _top(noise, ensembles.unit_vectors(block, point.dim), point.eigenvalue, mean=0.0)


def sampled_gauss_newton(block: Block, point: Point) -> Mapping[str, Any]:
    """Top eigenvalues of the mean of rank-one samples over a data set, and over a batch of it.

    Independent samples need no shuffling: the first B are a batch drawn without replacement.
    """
    sizes = point.batch_size, point.dataset_size - point.batch_size
    batch, rest = (point.variance * ensembles.wishart(block, point.dim, size) for size in sizes)
    full = (sizes[0] * batch + sizes[1] * rest) / point.dataset_size
    directions = ensembles.unit_vectors(block, point.dim)
    found = (
        _top(noise, directions, point.spike, mean=point.variance)["eigenvalue"] for noise in (batch, full)
    )
    return dict(zip(("batch", "full_eigenvalue"), found, strict=True))


def _top(noise: Any, directions: Any, spike: float, *, mean: float) -> Mapping[str, Any]:
    """Top eigenvalue, less the fluctuation of v' noise v around its known mean, and overlap with v."""
    first_order = (directions[:, None] @ noise @ directions[:, :, None]).squeeze() - mean
    value, vector = ensembles.top_eigenpair(ensembles.spiked(noise, directions, spike))
    return {"eigenvalue": value - first_order, "overlap": (vector * directions).sum(1) ** 2}


WIGNER = Experiment(
    id="granziol2022/spiked-wigner",
    replicate="one noise matrix with one direction",
    simulate=spiked_wigner,
    points=tuple(
        Point(law=law, eigenvalue=eigenvalue, sigma=0.07, dim=200, batch_size=24, dataset_size=120)
        for law in ("gaussian", "rademacher")
        for eigenvalue in (0.33, 0.53)
    ),
    budget=6144,
    seconds=0.77,
)


SAMPLED = Experiment(
    id="granziol2022/sampled-gauss-newton",
    replicate="one data set of Gaussian gradients with a batch drawn from it",
    simulate=sampled_gauss_newton,
    points=(Point(spike=2.9, variance=1.4, dim=90, batch_size=225, dataset_size=3000),),
    budget=2048,
    seconds=0.082,
)


def _scale(p: Point) -> float:
    """Edge of the noise over two: s = sqrt(P/b) sigma."""
    return p.sigma * math.sqrt(p.dim * (1 / p.batch_size - 1 / p.dataset_size))


def _theorem_4(p: Point) -> float:
    return float(
        batch_hessian.batch_eigenvalue(
            p.eigenvalue, sigma=p.sigma, dim=p.dim, batch_size=p.batch_size, dataset_size=p.dataset_size
        )
    )


def _theorem_10(p: Point) -> float:
    return float(
        batch_hessian.batch_overlap(
            p.eigenvalue, sigma=p.sigma, dim=p.dim, batch_size=p.batch_size, dataset_size=p.dataset_size
        )
    )


def _lemma_11(p: Point) -> float:
    """The overlap with the threshold at twice the scale, as our copy of eq. (45) reads."""
    return _theorem_10(p) if p.eigenvalue > 2 * _scale(p) else 0.0


WIGNER_CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="granziol2022/theorem-4",
        entries=("B16", "B15"),
        source=f"{PAPER}, theorem 4, eq. (9); lemma 5, eq. (10)",
        statement=r"\lambda_1' = \lambda_1 + \frac{P}{b} \frac{\sigma^2}{\lambda_1}\quad "
        r"(\lambda_1 > \sqrt{P/b}\,\sigma,\ \text{Wigner noise of variance } \sigma^2/b)",
        says="As dimension and batch grow together, Wigner noise lifts an eigenvalue above the threshold by its "
        "variance times dimension over effective batch size, divided by the eigenvalue.",
        experiment=WIGNER,
        score="eigenvalue",
        predict=_theorem_4,
        margin=0.01,
        margin_reason="finite size is O(1/P) away from the threshold, 0.1 % at P = 200",
        rivals={
            "no broadening": lambda p: p.eigenvalue,
            "edge of the noise": lambda p: 2 * _scale(p),
            "twice the broadening": lambda p: p.eigenvalue + 2 * _scale(p) ** 2 / p.eigenvalue,
            "P missing": lambda p: p.eigenvalue + _scale(p) ** 2 / p.dim / p.eigenvalue,
            "B for b": lambda p: p.eigenvalue + p.sigma**2 * p.dim / p.batch_size / p.eigenvalue,
        },
        quantity="largest eigenvalue, first-order noise (mean 0) left out",
        axis="eigenvalue",
    ),
    Claim(
        id="granziol2022/theorem-10",
        entries=("B17", "B18"),
        source=f"{PAPER}, theorem 10, eq. (44); lemma 11, eq. (45)",
        statement=r"|(\phi_1')^\top \phi_1|^2 = 1 - \frac{P}{b} \frac{\sigma^2}{\lambda_1^2}\quad "
        r"(\lambda_1 > \sqrt{P/b}\,\sigma)",
        says="In Wigner noise, above the threshold, the squared overlap of batch and full top eigenvectors is one "
        "less the squared ratio of noise scale to eigenvalue.",
        passage=Passage(Standing.MISPRINT, "if λ1 > 2σε", "Lemma 11, Eq 45"),
        experiment=WIGNER,
        score="overlap",
        predict=_theorem_10,
        printed=_lemma_11,
        reads=r"|\phi'_i \phi_i|^2 = 1 - \frac{\sigma_\epsilon^2}{\lambda_1^2} \text{ if } \lambda_1 > 2 "
        r"\sigma_\epsilon,\quad 0 \text{ otherwise}",
        finding="As our copy reads the threshold of Lemma 11 is 2 sigma, where Theorem 10 and Lemma 5 "
        "have sigma; at a spike of 1.83 sigma, where it leaves no overlap at all, the overlap is 0.70.",
        margin=0.01,
        relative=False,
        margin_reason="finite size is O(1/P) away from the threshold, 0.003 at P = 200",
        rivals={
            "square root": lambda p: math.sqrt(_theorem_10(p)),
            "first power": lambda p: 1 - _scale(p) / p.eigenvalue,
            "norm of a tilted vector": lambda p: 1 / (1 + (_scale(p) / p.eigenvalue) ** 2),
            "aligned": lambda _: 1.0,
        },
        quantity="squared overlap of the eigenvectors",
        axis="eigenvalue",
    ),
)

# --- Wishart noise: theorem 7 --------------------------------------------------------------------------------


def _ratio(p: Point) -> float:
    return p.dim * (1 / p.batch_size - 1 / p.dataset_size)


def _sampled(p: Any) -> Any:
    """Theorem 7 fed with the measured top eigenvalue of the full matrix, which carries the mean of the noise."""
    return batch_hessian.batch_ggn_eigenvalue(
        p.full_eigenvalue,
        variance=p.variance,
        dim=p.dim,
        batch_size=p.batch_size,
        dataset_size=p.dataset_size,
    )


def _theorem_7_of_full(p: Any) -> Any:
    """Theorem 7 as our copy reads, above its threshold, at the same measured eigenvalue."""
    return p.full_eigenvalue + p.variance * p.full_eigenvalue / (p.full_eigenvalue - _ratio(p) * p.variance)


WISHART_CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="granziol2022/theorem-7",
        entries=("B25", "B26"),
        source=f"{PAPER}, theorem 7, eq. (16), for batches of a data set",
        statement=r"\lambda_1' = \theta + \frac{\sigma^2 \theta}{\theta - \sigma^2 P/b},\quad "
        r"\theta = \lambda_1 - \sigma^2,\ \lambda_1 \text{ of the full matrix},\ P \ll N",
        says="With far more samples than parameters, Theorem 7 gives the top eigenvalue of batches drawn from a "
        "data set, once the noise's mean is taken off the full one.",
        passage=Passage(
            Standing.AS_STATED, "where Gemp has extremal eigenvalue λ1, is given by", "Theorem 7"
        ),
        experiment=SAMPLED,
        score="batch",
        inputs={"full_eigenvalue": 4.4},
        predict=_sampled,
        printed=_theorem_7_of_full,
        reads=r"\lambda'_1 = \frac{\lambda_1 + \sigma^2 (1 - \frac Pb)}{1 - \frac{P \sigma^2}{\lambda_1 b}}\text{ "
        r"if } \lambda_1 > \sigma^2 \big(1 + \tfrac Pb\big)",
        finding="In the model of Eqs 14 and 15 a batch gains the mean sigma^2 of the noise. Batches drawn "
        "from a data set gain nothing in the mean, so that the formula is too high there, also for a batch "
        "of all samples.",
        margin=0.01,
        margin_reason="the repair leaves out the broadening of the full matrix itself, of order P/N = 0.03 here",
        rivals={
            "no broadening": lambda p: p.full_eigenvalue,
            "Wigner broadening": lambda p: p.full_eigenvalue + _ratio(p) * p.variance**2 / p.full_eigenvalue,
        },
        quantity="largest eigenvalue of the batch matrix, first-order noise (mean 0) left out",
    ),
)

CLAIMS: tuple[AnyClaim, ...] = (*WIGNER_CLAIMS, *WISHART_CLAIMS)
