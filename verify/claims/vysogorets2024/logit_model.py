"""Vysogorets, Dawid and Kempe (2024): the random logit model, its spectrum, its finite samples, its gradients."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from simulate.matrices import ensembles
from simulate.monte_carlo import Block, Point
from theory import gauss_newton, softmax
from verify.claims import Floats
from verify.claims.vysogorets2024 import PAPER
from verify.model import OURS, Arrays, Claim, Experiment, Kind, Tier, misprint


def _model(p: Any, dim: int, sigma_c: float, sigma_e: float, **sizes: Any) -> Point:
    """A point of the random model at these predictions."""
    return Point(p=p, dim=dim, sigma_c=sigma_c, sigma_e=sigma_e, **sizes)


def _sample_logit_gradients(block: Block, point: Point, classes: int, samples: int) -> Any:
    """Class means and residuals of the random logit model: (n, K, d) and (n, samples, K, d)."""
    scales = _scales(point) | {"orthogonal": point.get("orthogonal", True)}
    return ensembles.logit_gradients(block, classes=classes, samples=samples, **scales)


def _scales(p: Point) -> dict[str, Any]:
    return {"dim": p.dim, "sigma_c": p.sigma_c, "sigma_e": p.sigma_e}


def _traces(g: Any) -> Any:
    return g.diagonal(dim1=1, dim2=2).sum(1)


def _eq_8(gamma: Any, p: Point) -> float:
    return float(gauss_newton.expected_excess(gamma, **_scales(p)) ** 2)


# --- the spectrum --------------------------------------------------------------------------------------------


def random_logit_model(block: Block, point: Point) -> Arrays:
    """Two independent mini-batches of the G-term around the same class means, through statistics linear in each.

    Every residual comes with both signs, so that its products with class means cancel, which are most of the scatter.
    Along the eigenvectors of C' M C, which are those of the mean of G, Rayleigh quotients average to eigenvalues.
    """
    import torch

    p = torch.tensor(point.p, dtype=torch.float64, device=block.device)
    c, e = _sample_logit_gradients(block, point, len(p), 2 * point.samples)
    signal = ensembles.gauss_newton_of_logits(c[:, None], p)
    first, second = (signal + ensembles.gauss_newton_of_logits(half, p) for half in e.chunk(2, dim=1))
    # on the CPU: where probabilities are equal the basis is the library's choice, and with it what is drawn
    _, vectors = torch.linalg.eigh((torch.diag(p) - torch.outer(p, p)).cpu())
    directions = torch.nn.functional.normalize(vectors.to(c).T.flip(0)[:-1] @ c, dim=-1)
    mean = (first + second) / 2
    quotients = ((directions @ mean) * directions).sum(-1)
    traces = _traces(first), _traces(second)
    return {
        "top": quotients[:, 0],
        "bulk": (sum(traces) / 2 - quotients.sum(1)) / (point.dim - len(p) + 1),
        "trace_product": traces[0] * traces[1],
        "inner_product": (first * second).sum((1, 2)),
    }


SKEWED = (0.31, 0.22, 0.15, 0.11, 0.08, 0.05, 0.04, 0.02, 0.015, 0.005)
THREE = (0.83, 0.12, 0.05)

LOGIT_MODEL = Experiment(
    id="vysogorets2024/random-logit-model",
    replicate="one draw of the class means with two mini-batches of residuals, each with both signs",
    simulate=random_logit_model,
    points=(
        _model(SKEWED, 50, 1.1, 2.3, samples=24),
        _model(THREE, 20, 1.6, 0.7, samples=32),
        *(_model(SKEWED, 50, 1.1, noise, samples=24) for noise in (0.14, 0.27, 0.77)),
        *(_model(THREE, 20, 1.6, noise, samples=32) for noise in (0.19, 0.37, 1.4, 2.1)),
    ),
    budget=8192,
    seconds=0.2,
    tier=Tier.SMOKE,
)

UNIFORM_LOGIT_MODEL = Experiment(
    id="vysogorets2024/uniform-logit-model",
    replicate=LOGIT_MODEL.replicate,
    simulate=random_logit_model,
    points=(
        _model((0.1,) * 10, 50, 1.1, 2.3, samples=24),
        _model((0.25,) * 4, 30, 1.6, 0.7, samples=40),
    ),
    seconds=0.33,
    tier=Tier.SMOKE,
)


def _eigenvalues(p: Point) -> np.ndarray[Any, Any]:
    return gauss_newton.expected_eigenvalues(p.p, **_scales(p))


def _top(p: Point) -> float:
    return _eigenvalues(p)[0]


def _squared_excess(p: Point, *, repeated: float, power: int = 2) -> float:
    """Eq 8 squared, with the standard deviation next to Gamma left open."""
    noise, signal = p.sigma_e**2, p.sigma_c**2
    bulk = noise**2 + 2 * noise * signal
    return p.dim * (noise + signal) ** 2 / (bulk + p.dim * repeated**4 * _gamma(p) ** -power)


def _one_less_squares(p: Point) -> float:
    return 1 - float(np.square(p.p).sum())


def _bulk(p: Point) -> float:
    return _one_less_squares(p) * p.sigma_e**2


def _gamma(p: Point) -> float:
    return float(softmax.gamma(p.p))


_linear = partial(
    Claim, margin=0.01, margin_reason="linear in G, hence unbiased; at most 1 % for random matrices"
)

_squared = partial(
    Claim,
    kind=Kind.RATIO,
    score=("trace_product", "inner_product"),
    margin=0.01,
    quantity="squared excess of the mean G-term",
)

SPECTRUM_CLAIMS = (
    _linear(
        id="vysogorets2024/outlier",
        entries=("A27", "A41"),
        source=f"{PAPER}, eq. (7) and appendix B",
        statement=r"\lambda_i(\mathbb{E}_e G) = (1 - \|p\|^2)\,\sigma_e^2 + d\,\sigma_c^2\,\tilde\lambda_i",
        says="In the random model, the top eigenvalue of the mean Gauss-Newton term exceeds its bulk by dimension "
        "times class-mean variance times that of the softmax covariance.",
        experiment=LOGIT_MODEL,
        score="top",
        predict=_top,
        rivals={
            "without the bulk": lambda p: _top(p) - _bulk(p),
            "bulk without 1 - |p|^2": lambda p: _top(p) - _bulk(p) + p.sigma_e**2,
            "no factor d": lambda p: _bulk(p) + p.sigma_c**2 * softmax.eigenvalues(p.p)[0],
            "p_max for the eigenvalue": lambda p: _bulk(p) + p.dim * p.sigma_c**2 * max(p.p),
        },
        quantity="largest eigenvalue of the mean G-term",
    ),
    _linear(
        id="vysogorets2024/bulk",
        entries=("A27", "A41"),
        source=f"{PAPER}, eq. (7) and appendix B",
        statement=r"\frac{1}{d - K + 1} \sum_{i \ge K} \lambda_i(\mathbb{E}_e G) = "
        r"(1 - \|p\|^2)\,\sigma_e^2",
        says="In the random model, the mean Gauss-Newton term's bulk averages to the residual variance times one "
        "minus the squared norm of the prediction.",
        experiment=LOGIT_MODEL,
        score="bulk",
        predict=lambda p: _eigenvalues(p)[-1],
        rivals={
            "without 1 - |p|^2": lambda p: p.sigma_e**2,
            "1 - 1/K for 1 - |p|^2": lambda p: (1 - 1 / len(p.p)) * p.sigma_e**2,
            "standard deviation": lambda p: _one_less_squares(p) * p.sigma_e,
            "1 - p_max for 1 - |p|^2": lambda p: (1 - max(p.p)) * p.sigma_e**2,
        },
        quantity="bulk eigenvalue of the mean G-term",
    ),
    _linear(
        id="vysogorets2024/uniform-outliers",
        entries=("A42",),
        source=f"{PAPER}, appendix B",
        statement=r"p = 1/K:\quad \lambda_i(\mathbb{E}_e G) = (1 - 1/K)\,\sigma_e^2 + d\,\sigma_c^2 / K,\quad i < K",
        says="At uniform predictions, the mean Gauss-Newton outliers exceed the bulk by dimension times class-mean"
        " variance over the number of classes.",
        reads=r"\lambda_i(\mathbb{E}_e\mathcal{G}) = 1/K,\quad i \in [K - 1]",
        experiment=UNIFORM_LOGIT_MODEL,
        score="top",
        predict=_top,
        printed=lambda p: 1 / len(p.p),
        passage=misprint("as they get squeezed between values", "Appendix B"),
        finding="As our copy reads, the outliers of E G are 1/K; those are the eigenvalues of diag(p) - p p', the "
        "lambda-tilde of the formula above it, which gives those of E G.",
        rivals={
            "without the bulk": lambda p: _top(p) - _bulk(p),
            "bulk without 1 - 1/K": lambda p: p.dim * p.sigma_c**2 / len(p.p) + p.sigma_e**2,
        },
        quantity="outlying eigenvalues of the mean G-term at uniform predictions",
    ),
    _squared(
        id="vysogorets2024/eq-8",
        entries=("A28",),
        source=f"{PAPER}, eq. (8)",
        statement=r"\mathrm{exc}(\mathbb{E}_e G)^2 = \frac{d\,(\sigma_c^2 + \sigma_e^2)^2}"
        r"{\sigma_e^4 + 2 \sigma_e^2 \sigma_c^2 + d\,\sigma_c^4\,\Gamma_p^{-2}}",
        says="In the random model, dimension, gradient variances and the softmax covariance set the excess of the "
        "mean Gauss-Newton term.",
        reads=r"\frac{\mathrm{Tr}(\mathbb{E}_e \mathcal{G})}{\|\mathbb{E}_e \mathcal{G}\|_F} = "
        r"\frac{\sqrt{d}(\sigma_c^2 + \sigma_e^2)}{\sqrt{\sigma_e^4 + 2\sigma_e^2\sigma_c^2 + "
        r"d\sigma_e^4\Gamma_p^{-2}}}",
        experiment=LOGIT_MODEL,
        predict=lambda p: _eq_8(softmax.gamma(p.p), p),
        printed=lambda p: _squared_excess(p, repeated=p.sigma_e),
        passage=misprint("directly from its elements", "before Eq 8", slip=True, root=2),
        finding="As our copy reads, the last term of the denominator carries sigma_e^4, and sigma_e -> 0 diverges; "
        "from the elements of Eq 7 it is sigma_c^4, as in the authors' published code.",
        margin_reason="products of independent mini-batches: no bias; 1 % of the square is 0.5 % of the excess",
        rivals={
            "Gamma to the power -1": lambda p: _squared_excess(p, repeated=p.sigma_c, power=1),
            "standard deviations for variances": lambda p: _eq_8(
                softmax.gamma(p.p), p | {"sigma_c": p.sigma_c**0.5, "sigma_e": p.sigma_e**0.5}
            ),
            "no noise": lambda p: _gamma(p) ** 2,
        },
        axis="sigma_e",
    ),
)

# --- finite samples ------------------------------------------------------------------------------------------


def _predictions(point: Point, device: str) -> Any:
    """Every prediction of a point as often as it says, (N, K)."""
    import torch

    return torch.tensor(point.p, dtype=torch.float64, device=device).repeat(point.copies, 1)


def finite_samples(block: Block, point: Point) -> Arrays:
    """Moments of the G-term over independent draws of everything: squared mean of its trace, mean squared norm."""
    p = _predictions(point, block.device)
    c, e = _sample_logit_gradients(block.repeated(point.draws), point, p.shape[1], len(p))
    g = ensembles.gauss_newton_of_logits(c[:, None] + e, p)
    trace = _traces(g).reshape(len(block), -1)
    products = (trace.sum(1).square() - trace.square().sum(1)) / (point.draws * (point.draws - 1))
    return {
        "squared_trace": products,
        "squared_norm": g.square().sum((1, 2)).reshape(len(block), -1).mean(1),
    }


def shared_means(block: Block, point: Point) -> Arrays:
    """Moments of the mean of G over residuals, from products of two batches around the same class means."""
    p = _predictions(point, block.device)
    c, e = _sample_logit_gradients(block.repeated(point.draws), point, p.shape[1], 2 * len(p))
    one, two = (ensembles.gauss_newton_of_logits(c[:, None] + half, p) for half in e.chunk(2, dim=1))
    products = {"trace_product": _traces(one) * _traces(two), "inner_product": (one * two).sum((1, 2))}
    return {name: values.reshape(len(block), -1).mean(1) for name, values in products.items()}


BEFORE_COLLAPSE = ((0.55, 0.42, 0.03), (0.994, 0.004, 0.002), (0.002, 0.995, 0.003), (0.001, 0.003, 0.996))

MIXED = ((0.90, 0.06, 0.03, 0.01), (0.05, 0.85, 0.02, 0.08), (0.30, 0.10, 0.55, 0.05))

UNSURE = ((0.6, 0.3, 0.1), (0.2, 0.3, 0.5), (0.1, 0.7, 0.2), (0.3, 0.4, 0.3), (0.15, 0.25, 0.6))

FINITE = Experiment(
    id="vysogorets2024/finite-samples",
    replicate="draws of Gaussian class means with one finite sample each",
    simulate=finite_samples,
    points=(
        _model(((0.6, 0.3, 0.1),), 60, 1.3, 0.8, copies=1, draws=16, orthogonal=False),
        _model(UNSURE, 7, 1.1, 0.6, copies=1, draws=48, orthogonal=False),
        _model(BEFORE_COLLAPSE, 50, 1.1, 2.3, copies=10, draws=4, orthogonal=False),
    ),
    seconds=0.31,
)

BATCH = Experiment(
    id="vysogorets2024/batch-of-predictions",
    replicate="draws of orthogonal class means with two batches of logit gradients each",
    simulate=shared_means,
    points=(
        _model(MIXED, 31, 1.1, 0.6, copies=6, draws=4, orthogonal=True),
        _model(UNSURE, 11, 0.9, 1.3, copies=4, draws=8, orthogonal=True),
    ),
    seconds=0.072,
)


def _eq_8_as_our_copy_reads(p: Point) -> float:
    """Squared excess by eq (8) with sigma_e^4 in the last term of the denominator."""
    c, e = p.sigma_c**2, p.sigma_e**2
    return p.dim * (c + e) ** 2 / (e**2 + 2 * e * c + p.dim * e**2 / float(_gammas(p).mean) ** 2)


def _gammas(p: Point) -> softmax.BatchGammas:
    return softmax.batch_gammas(np.repeat(p.p, p.copies, axis=0))


def _finite(p: Point, *, orthogonal: bool = False) -> float:
    found = gauss_newton.finite_sample_excess(*_gammas(p), **_scales(p), orthogonal=orthogonal)
    return float(found**2)


SAMPLE_CLAIMS = (
    Claim(
        id="vysogorets2024/finite-sample-excess",
        entries=("A29",),
        source=f"ours, beside {PAPER}, section 4, figure 3, which compares eq. (8) with the G-term of a sample",
        passage=OURS,
        statement=r"\frac{(\mathbb{E}\,\mathrm{Tr}\,G)^2}{\mathbb{E}\,\|G\|_F^2} = \frac{d s^2}{s^2 + (d + 1) "
        r"[\sigma_c^4 \bar\Gamma^{-2} + (s^2 - \sigma_c^4) \Gamma_\oplus^{-2}]},\quad s = \sigma_c^2 + \sigma_e^2",
        says="For finite samples with Gaussian class means in the random model, squared mean trace over mean squared "
        "norm of the Gauss-Newton term has a closed form.",
        experiment=FINITE,
        kind=Kind.RATIO,
        score=("squared_trace", "squared_norm"),
        predict=_finite,
        margin=0.01,
        margin_reason="unbiased; at most 1 % for random matrices",
        rivals={
            "eq. (8) corrected, an infinite sample": lambda p: _eq_8(_gammas(p).mean, p),
            "eq. (8) as our copy reads": _eq_8_as_our_copy_reads,
            "as for one sample": lambda p: p.dim / (1 + (p.dim + 1) / float(_gammas(p).mean) ** 2),
            "Gamma side by side in eq. (8)": lambda p: _eq_8(_gammas(p).separate, p),
            "the other kind of class means": lambda p: _finite(p, orthogonal=True),
        },
        quantity="squared excess of the G-term",
    ),
    _squared(
        id="vysogorets2024/eq-8-of-a-batch",
        entries=("A30",),
        source=f"{PAPER}, section 4, eq. (8) corrected, for a batch",
        statement=r"\mathrm{exc}(\mathbb{E}_e G)^2 = \mathrm{eq.\,(8)\ at\ } \Gamma = "
        r"\mathrm{exc}\Big(\tfrac{1}{N} \sum_\mu M(p^\mu)\Big)",
        says="For batches, the excess of the mean Gauss-Newton term is set by that of the averaged softmax "
        "covariance, not by averages over samples.",
        experiment=BATCH,
        predict=lambda p: _eq_8(_gammas(p).mean, p),
        margin_reason="products of independent batches: no bias; 1 % of the square is 0.5 % of the excess",
        rivals={
            "mean of Gamma": lambda p: _eq_8(softmax.gamma(p.p).mean(), p),
            "Gamma of the mean prediction": lambda p: _eq_8(softmax.gamma(np.mean(p.p, axis=0)), p),
        },
    ),
)

# --- gradients -----------------------------------------------------------------------------------------------


def gradients(block: Block, point: Point) -> Arrays:
    """Gradients of two samples by their parts, and product of the two.

    The parts: coefficients in the class means, and half the squared difference of the two over |c_k|^2.
    """
    import torch

    p = _predictions(point, block.device)
    labels = torch.tensor(point.labels, device=block.device).repeat(point.copies)
    residuals = p - torch.nn.functional.one_hot(labels, p.shape[1])
    c, e = _sample_logit_gradients(block.repeated(point.draws), point, p.shape[1], 2 * len(p))
    one, two = ((residuals[..., None] * (c[:, None] + half)).sum(2).mean(1) for half in e.chunk(2, dim=1))
    coefficients = torch.linalg.solve(c @ c.mT, (c @ (one + two)[..., None])[..., 0] / 2)
    floor = (one - two).square().sum(1, keepdim=True) / (2 * point.dim * point.sigma_c**2)
    found = {
        "parts": torch.cat([coefficients, floor], dim=1),
        "inner": (one * two).sum(1),
    }
    return {n: v.unflatten(0, (len(block), point.draws)).mean(1) for n, v in found.items()}


SCATTER = -1
"""The part of a gradient that is no coefficient of a class mean."""

GRADIENTS = Experiment(
    id="vysogorets2024/loss-gradients",
    replicate="draws of the class means with two samples of logit gradients each",
    simulate=gradients,
    points=(
        _model(
            ((0.70, 0.10, 0.15, 0.05), (0.20, 0.35, 0.40, 0.05), (0.55, 0.25, 0.08, 0.12)),
            47,
            0.7,
            0.9,
            labels=(1, 1, 3),
            parts=(0, 1, 2, 3, SCATTER),
            copies=5,
            draws=8,
            orthogonal=True,
        ),
        _model(
            (
                (0.30, 0.60, 0.10),
                (0.45, 0.35, 0.20),
                (0.25, 0.15, 0.60),
                (0.10, 0.70, 0.20),
                (0.50, 0.10, 0.40),
            ),
            123,
            1.4,
            0.8,
            labels=(0, 2, 2, 1, 0),
            parts=(0, 1, 2, SCATTER),
            copies=3,
            draws=8,
            orthogonal=False,
        ),
    ),
    seconds=1.1,
)


def _mean_prediction(p: Point) -> Floats:
    return np.mean(p.p, axis=0)


def _prior(p: Point) -> Floats:
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


def _square(p: Point, *, sigma_e: float | None = None) -> float:
    error = np.square(np.array(p.p) - np.eye(len(p.p[0]))[list(p.labels)]).sum(axis=1).mean()
    scales = _scales(p) | ({} if sigma_e is None else {"sigma_e": sigma_e})
    samples = len(p.p) * p.copies
    return float(
        gauss_newton.squared_gradient_norm(
            _mean_prediction(p), _prior(p), squared_error=error, samples=samples, **scales
        )
    )


CLAIMS = (
    *SPECTRUM_CLAIMS,
    *SAMPLE_CLAIMS,
    Claim(
        id="vysogorets2024/mean-gradient",
        entries=("A35", "A37"),
        source=f"{PAPER}, eq. (9), which vanishes for balanced classes and uniform predictions",
        statement=r"\mathbb{E}_e \nabla_\theta \ell = \sum_k c_k (\hat Q_k - Q_k),\quad "
        r"\mathbb{E}_e\,\|\nabla_\theta \ell - \mathbb{E}_e \nabla_\theta \ell\|^2 = "
        r"\frac{d\,\sigma_e^2}{N}\,\overline{\|p - e_y\|^2}",
        says="In the random model, the mean loss gradient is the class means weighted by mean prediction minus "
        "class frequency; residuals alone scatter it.",
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
        statement=r"\|\mathbb{E}_e \nabla_\theta \ell\|^2 = d\,\sigma_c^2\,\|\hat Q - Q\|^2",
        says="The norm of the mean loss gradient is the distance of mean prediction from class prior times class-"
        "mean deviation and root of the dimension.",
        reads=r"\text{the norm of this quantity is } d\sigma_c^2 \|\hat{Q} - Q\|",
        experiment=GRADIENTS,
        score="inner",
        predict=lambda p: _norm(p) ** 2,
        printed=lambda p: (p.dim**0.5 * p.sigma_c * _norm(p)) ** 2,
        passage=misprint("By the orthogonality assumption on logit gradient means", "after Eq 9", root=2),
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
)
