"""Vysogorets, Dawid and Kempe (2024): gradients of the random logit model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulate.monte_carlo import Block, Point
from theory import gauss_newton
from verify.claims.vysogorets2024 import PAPER
from verify.claims.vysogorets2024.softmax.samples import logit_gradients_at, predictions_at
from verify.model import OURS, AnyClaim, Claim, Experiment, Kind, Passage, Standing

__all__ = ["CLAIMS"]

UNBIASED = "unbiased; at most 1 % for random matrices"


def _residuals(point: Point, device: str) -> Any:
    """Predictions less one-hot labels of every sample, (N, K)."""
    import torch

    p = predictions_at(point, device)
    labels = torch.tensor(point.labels, device=device).repeat(point.copies)
    return p - torch.nn.functional.one_hot(labels, p.shape[1])


def gradients(block: Block, point: Point) -> Mapping[str, Any]:
    """Gradients of two samples by their parts, squared norm, and product of the two.

    The parts: coefficients in the class means, and half the squared difference of the two over |c_k|^2.
    """
    import torch

    residuals = _residuals(point, block.device)
    c, e = logit_gradients_at(block.repeated(point.draws), point, 2 * len(residuals))
    one, two = (
        (residuals[..., None] * (c[:, None] + half)).sum(2).mean(1) for half in e.split(len(residuals), dim=1)
    )
    coefficients = torch.linalg.solve(c @ c.mT, (c @ (one + two)[..., None])[..., 0] / 2)
    floor = (one - two).square().sum(1, keepdim=True) / (2 * point.dim * point.sigma_c**2)
    found = {
        "parts": torch.cat([coefficients, floor], dim=1),
        "square": (one.square().sum(1) + two.square().sum(1)) / 2,
        "inner": (one * two).sum(1),
    }
    return {
        name: values.reshape(len(block), point.draws, *values.shape[1:]).mean(1)
        for name, values in found.items()
    }


def class_mean_lengths(block: Block, point: Point) -> Mapping[str, Any]:
    """Variance of the squared length of the mean gradient over Gaussian class means, and its squared mean."""
    c, _ = logit_gradients_at(block.repeated(point.draws), point, 1)
    lengths = (_residuals(point, block.device).mean(0) @ c).square().sum(1).reshape(len(block), -1)
    variance = lengths.var(1)
    return {"variance": variance, "squared_mean": lengths.mean(1).square() - variance / point.draws}


SCATTER = -1
"""The part of a gradient that is no coefficient of a class mean."""

SKEWED_BATCH: dict[str, Any] = {
    "p": ((0.70, 0.10, 0.15, 0.05), (0.20, 0.35, 0.40, 0.05), (0.55, 0.25, 0.08, 0.12)),
    "labels": (1, 1, 3),
    "parts": (0, 1, 2, 3, SCATTER),
}
LEANING_BATCH: dict[str, Any] = {
    "p": ((0.30, 0.60, 0.10), (0.45, 0.35, 0.20), (0.25, 0.15, 0.60), (0.10, 0.70, 0.20), (0.50, 0.10, 0.40)),
    "labels": (0, 2, 2, 1, 0),
    "parts": (0, 1, 2, SCATTER),
}

GRADIENTS = Experiment(
    id="vysogorets2024/loss-gradients",
    replicate="draws of the class means with two samples of logit gradients each",
    simulate=gradients,
    points=(
        Point(**SKEWED_BATCH, copies=5, dim=47, draws=8, sigma_c=0.7, sigma_e=0.9, orthogonal=True),
        Point(**LEANING_BATCH, copies=3, dim=123, draws=8, sigma_c=1.4, sigma_e=0.8, orthogonal=False),
    ),
    budget=4096,
    seconds=1.1,
)

BALANCED = Experiment(
    id="vysogorets2024/balanced-gradients",
    replicate="draws of orthogonal class means with two balanced samples each, all predictions uniform",
    simulate=gradients,
    points=(
        Point(
            p=((0.2,) * 5,) * 5,
            labels=(0, 1, 2, 3, 4),
            copies=3,
            dim=100,
            draws=8,
            sigma_c=1.7,
            sigma_e=0.4,
            orthogonal=True,
        ),
    ),
    budget=4096,
    seconds=0.74,
)

LENGTHS = Experiment(
    id="vysogorets2024/class-mean-lengths",
    replicate="128 draws of Gaussian class means",
    simulate=class_mean_lengths,
    points=(Point(**LEANING_BATCH, copies=1, dim=23, draws=128, sigma_c=1.4, sigma_e=0.3, orthogonal=False),),
    budget=4096,
    seconds=0.87,
)


def _mean_prediction(p: Point) -> NDArray[np.float64]:
    return np.mean(p.p, axis=0)


def _prior(p: Point) -> NDArray[np.float64]:
    return np.bincount(p.labels, minlength=len(p.p[0])) / len(p.labels)


def _part(weights: Callable[[Point], Any], *, sigma_e: float = 1.0) -> Callable[[Point], float]:
    """Weight of a class mean in the gradient, or the noise floor over its squared length, `sigma_e` times as it is."""

    def part(p: Point) -> float:
        if p.parts != SCATTER:
            return float(weights(p)[p.parts])
        return (_square(p, sigma_e=sigma_e * p.sigma_e) - _norm(p) ** 2) / (p.dim * p.sigma_c**2)

    return part


def _weights(p: Point) -> Any:
    return gauss_newton.expected_gradient_weights(_mean_prediction(p), _prior(p))


def _norm(p: Point) -> float:
    return float(
        gauss_newton.expected_gradient_norm(_mean_prediction(p), _prior(p), dim=p.dim, sigma_c=p.sigma_c)
    )


def _square(p: Point, *, samples: int | None = None, sigma_e: float | None = None) -> float:
    errors = np.square(np.array(p.p) - np.eye(len(p.p[0]))[list(p.labels)]).sum(axis=1)
    found = gauss_newton.squared_gradient_norm(
        _mean_prediction(p),
        _prior(p),
        squared_error=errors.mean(),
        dim=p.dim,
        sigma_c=p.sigma_c,
        sigma_e=p.sigma_e if sigma_e is None else sigma_e,
        samples=samples or len(p.p) * p.copies,
    )
    return float(found)


CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="vysogorets2024/mean-gradient",
        entries=("A35",),
        source=f"{PAPER}, eq. (9)",
        statement=r"\mathbb{E}_e \nabla_\theta \ell = \sum_k c_k (\hat Q_k - Q_k),\quad "
        r"\mathbb{E}_e\,\lVert\nabla_\theta \ell - \mathbb{E}_e \nabla_\theta \ell\rVert^2 = "
        r"\frac{d\,\sigma_e^2}{N}\,\overline{\lVert p - e_y\rVert^2}",
        says="In the random model, the mean loss gradient combines the class means of the logit gradients, each "
        "weighted by mean prediction minus class frequency; residuals alone scatter it.",
        experiment=GRADIENTS,
        score="parts",
        along="parts",
        predict=_part(_weights),
        margin=0.004,
        margin_reason="a fiftieth of the typical coefficient, and less than a tenth of the scatter",
        relative=False,
        rivals={
            "the other sign": _part(lambda p: -_weights(p)),
            "without the labels": _part(_mean_prediction),
            "without the predictions": _part(lambda p: -_prior(p)),
            "labels as often as each other": _part(lambda p: _mean_prediction(p) - 1 / len(p.p[0])),
            "sigma_e halved": _part(_weights, sigma_e=0.5),
        },
        quantity="coefficients of the mean gradient, then its squared scatter over |c_k|^2",
    ),
    Claim(
        id="vysogorets2024/mean-gradient-norm",
        entries=("A36",),
        source=f"{PAPER}, after eq. (9)",
        statement=r"\lVert\mathbb{E}_e \nabla_\theta \ell\rVert^2 = d\,\sigma_c^2\,\lVert\hat Q - Q\rVert^2",
        says="In the random model, the norm of the mean loss gradient is the distance of mean prediction from class "
        "prior times class-mean deviation and root of the dimension.",
        reads=r"\text{the norm of this quantity is } d\sigma_c^2 \lVert\hat{Q} - Q\rVert",
        experiment=GRADIENTS,
        score="inner",
        predict=lambda p: _norm(p) ** 2,
        printed=lambda p: (p.dim**0.5 * p.sigma_c * _norm(p)) ** 2,
        passage=Passage(
            Standing.MISPRINT, "By the orthogonality assumption on logit gradient means", "after Eq 9", root=2
        ),
        finding="As our copy reads, the norm is d sigma_c^2 |Qhat - Q|; with |c_k|^2 = d sigma_c^2, as the paper has "
        "it, the root of d sigma_c^2 multiplies the distance.",
        margin=0.01,
        margin_reason="product of two independent samples: unbiased; 1 % of the square is 0.5 % of the norm",
        rivals={
            "d sigma_c": lambda p: p.dim * _norm(p) ** 2,
            "with the noise of a sample": _square,
            "without d": lambda p: _norm(p) ** 2 / p.dim,
        },
        quantity="squared norm of the mean gradient",
    ),
    Claim(
        id="vysogorets2024/sample-gradient-norm",
        entries=("A36",),
        source=f"ours, beside {PAPER}, eq. (9) and figure 5",
        passage=OURS,
        statement=r"\mathbb{E}\,\lVert\nabla_\theta \ell\rVert^2 = d\,\sigma_c^2\,\lVert\hat Q - Q\rVert^2 + "
        r"\frac{d\,\sigma_e^2}{N}\,\overline{\lVert p - e_y\rVert^2}",
        says="In the random model, the mean squared gradient of a finite sample exceeds that of the mean gradient by "
        "a noise floor of residual variance and prediction error over sample size.",
        experiment=GRADIENTS,
        score="square",
        predict=_square,
        margin=0.01,
        margin_reason=UNBIASED,
        rivals={
            "without the floor": lambda p: _norm(p) ** 2,
            "floor of one sample": lambda p: _square(p, samples=1),
            "sigma_e for sigma_e^2": lambda p: _square(p, sigma_e=p.sigma_e**0.5),
        },
        quantity="mean squared norm of the gradient of a sample",
    ),
    Claim(
        id="vysogorets2024/gradient-scatter",
        entries=("A36",),
        source=f"ours, beside {PAPER}, after eq. (9): class means only nearly orthogonal",
        passage=OURS,
        statement=r"\mathrm{Var}\,\lVert\nabla\rVert^2 = \frac{2}{d}\,(\mathbb{E}\,\lVert\nabla\rVert^2)^2,\quad "
        r"\nabla = \sum_k c_k (\hat Q_k - Q_k),\ c_k \sim N(0, \sigma_c^2 I)",
        says="With Gaussian class means, which are only nearly orthogonal, the squared length of the mean gradient "
        "has a relative variance of two over the dimension.",
        experiment=LENGTHS,
        kind=Kind.RATIO,
        score=("variance", "squared_mean"),
        predict=lambda p: gauss_newton.gradient_scatter(p.dim),
        margin=0.03,
        margin_reason="3 % for a variance",
        rivals={
            "1 / d": lambda p: 1 / p.dim,
            "1 / (2 d), of the norm itself": lambda p: 1 / (2 * p.dim),
            "2 / (d + 2)": lambda p: 2 / (p.dim + 2),
        },
        quantity="relative variance of the squared norm",
    ),
    Claim(
        id="vysogorets2024/balanced-gradient-floor",
        entries=("A37",),
        source=f"ours, beside {PAPER}, section 4",
        passage=OURS,
        statement=r"\hat Q_k = Q_k = 1/K:\quad \mathbb{E}\,\lVert\nabla_\theta \ell\rVert^2 = "
        r"\frac{d\,\sigma_e^2}{N}\,\Big(1 - \frac{1}{K}\Big)",
        says="For uniform predictions on balanced classes, the random model's mean squared gradient is sampling noise "
        "alone, inversely proportional to the sample size.",
        experiment=BALANCED,
        score="square",
        predict=lambda p: float(
            gauss_newton.squared_gradient_norm(
                _mean_prediction(p),
                _prior(p),
                squared_error=1 - 1 / len(p.p[0]),
                dim=p.dim,
                sigma_c=p.sigma_c,
                sigma_e=p.sigma_e,
                samples=len(p.p) * p.copies,
            )
        ),
        margin=0.01,
        margin_reason=UNBIASED,
        rivals={
            "without 1 - 1/K": lambda p: p.dim * p.sigma_e**2 / (len(p.p) * p.copies),
            "1 + 1/K": lambda p: (1 + 1 / len(p.p[0])) * p.dim * p.sigma_e**2 / (len(p.p) * p.copies),
            "sigma_c for sigma_e": lambda p: (
                (1 - 1 / len(p.p[0])) * p.dim * p.sigma_c**2 / (len(p.p) * p.copies)
            ),
        },
        quantity="mean squared norm of the gradient of a sample",
    ),
)
