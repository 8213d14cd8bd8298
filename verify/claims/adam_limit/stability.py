"""Stability limits of Adam: exact on quadratics with a fixed preconditioner, measured on small networks."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from simulate.monte_carlo import Block, Point
from simulate.training import edges, rules, stacks
from theory.learning_rates import adam
from verify.claims.trained_networks import all_samples, small_networks, trained_on_digits
from verify.model import Arrays, Claim, ExactProperty, as_stated
from verify.model.domains import Between, Domain

COHEN = "Cohen et al. (2022), arXiv 2207.14484"

PRODUCTS = 14
"""Hessian products for its largest eigenvalue: residuals of at most a few hundredths of it, which enter squared."""


def off_the_edge(rng: np.random.Generator, point: Point, *, edge: Any = adam.adaptive_edge) -> float:
    """Largest error of the edge: a step must keep an oscillation there, let it grow above, and let it decay below.

    From the map of a step on weights and average gradients, with a fixed preconditioner.
    """
    factor = rng.standard_normal((point.dim, point.dim + 1))
    hessian, diagonal = factor @ factor.T, np.exp(rng.standard_normal(point.dim))
    whitened = hessian / np.sqrt(np.outer(diagonal, diagonal))
    level = float(edge(point.rate, momentum=point.momentum)) / np.linalg.eigvalsh(whitened)[-1]
    still, above, below = (
        _radius(hessian * (level * share), diagonal, point.rate, point.momentum)
        for share in (1.0, 1.05, 0.95)
    )
    return max(abs(still - 1), 1 - above, below - 1, 0.0)


def _radius(hessian: Any, diagonal: Any, rate: float, momentum: float) -> float:
    """Spectral radius of m' = beta m + (1 - beta) H x, x' = x - eta m' / diagonal."""
    size = len(diagonal)
    pull = (1 - momentum) * hessian
    average = np.hstack([pull, momentum * np.eye(size)])
    weights = np.hstack([np.eye(size), np.zeros((size, size))]) - rate * average / diagonal[:, None]
    return float(np.abs(np.linalg.eigvals(np.vstack([weights, average]))).max())


def full_batch_adam(block: Block, point: Point) -> Arrays:
    """Mean over time, late in training, of the rate times the largest eigenvalue of the preconditioned Hessian."""
    import torch

    parameters, samples = small_networks(block, point)
    x, y = all_samples(samples)
    stack, memory = stacks.Perceptrons(point.activation, "squared error"), rules.Memory()
    rule = rules.Rule(momentum=point.momentum, second=point.second, damping=point.damping)
    rates = torch.full((len(block),), point.rate, device=block.device)
    tops = []
    for step in range(1, point.looks[-1] + 1):
        _, gradients = stack.losses_and_gradients(parameters, x, y)
        memory = rule.step_(parameters, gradients, rates, memory)
        if step in point.looks:
            scales = [((v / (1 - point.second**step)).sqrt() + point.damping).rsqrt() for v in memory.second]
            tops.append(edges.top_eigenvalues(stack, parameters, x, y, steps=PRODUCTS, scales=scales).values)
    level = (torch.stack(tops, 1).mean(1).double() * point.rate).cpu().numpy()
    return {"level": level}


LATE = {
    "images": "digits",
    "samples": 32,
    "second": 0.99,
    "damping": 1e-7,
}

ADAM = trained_on_digits(
    id="adam_limit/full-batch",
    replicate="one perceptron with its images, trained by full-batch steps of Adam",
    simulate=full_batch_adam,
    points=(
        Point(activation="tanh", hidden=(16, 16), rate=0.01, momentum=0.9, looks=(360, 400, 440), **LATE),
        Point(activation="relu", hidden=(32,), rate=0.002, momentum=0.45, looks=(240, 280, 320), **LATE),
    ),
    budget=256,
    seconds=0.7,
)

ANY: Domain = {
    "dim": Between(1, 5),
    "momentum": Between(0.0, 0.98),
    "rate": Between(0.001, 0.3),
}

CLAIMS = (
    ExactProperty(
        id="adam_limit/adaptive-edge",
        entries=("I5",),
        source=COHEN,
        passage=as_stated(
            "For Adam with step size and beta_1 = 0.9, this stability threshold is 38/eta",
            "abstract, without its letters",
        ),
        statement=r"\max |\mathrm{spec}| = 1 \text{ for } m' = \beta_1 m + (1-\beta_1) H x,\ x' = x - \eta P^{-1} m'"
        r"\ \text{at } \lambda_1(P^{-1} H) = \frac{2 + 2 \beta_1}{(1 - \beta_1) \eta}",
        says="On a quadratic, Adam with a fixed preconditioner is stable while the preconditioned Hessian's largest "
        "eigenvalue is below a threshold set by rate and beta 1.",
        domain=ANY,
        violation=off_the_edge,
        examples=(Point(dim=3, momentum=0.9, rate=0.013), Point(dim=2, momentum=0.37, rate=0.17)),
        tolerance=1e-7,
        tolerance_reason="rounding of the eigenvalues of a matrix that is not symmetric",
        rivals={
            "2 / eta": partial(off_the_edge, edge=lambda rate, **_: 2 / rate),
            "a sum of gradients": lambda rng, p: off_the_edge(
                rng, p, edge=lambda rate, momentum: (2 + 2 * momentum) / rate
            ),
            "38 / eta": partial(off_the_edge, edge=lambda rate, **_: 38 / rate),
        },
        seconds=0.01,
    ),
    Claim(
        id="adam_limit/full-batch-level",
        entries=("I6",),
        source=f"{COHEN}, abstract",
        passage=as_stated(
            "the maximum eigenvalue of the preconditioned Hessian typically equilibrates at a certain numerical value "
            "-- the stability threshold",
            "abstract",
        ),
        statement=r"\eta\, \overline{\lambda_1(P^{-1} H)} = \frac{2 + 2 \beta_1}{1 - \beta_1} "
        r"\quad\text{under full-batch Adam},\ P = \mathrm{diag}(\sqrt{v} + \epsilon)",
        says="Late in training by full-batch Adam, the preconditioned Hessian's largest eigenvalue on small networks "
        "is on average where Adam so preconditioned loses its stability.",
        experiment=ADAM,
        score="level",
        predict=lambda p: adam.adaptive_edge(p.rate, momentum=p.momentum) * p.rate,
        margin=0.1,
        margin_reason="hovering with oscillations and a preconditioner that moves: a tenth of the level",
        pilot="rates, steps and betas, with seed 5, so that networks come to the edge before their loss is gone: 0.97 "
        "and 1.05 of it",
        rivals={
            "2": lambda _: 2.0,
            "a sum of gradients": lambda p: 2 + 2 * p.momentum,
            "38 at every beta 1": lambda _: 38.0,
        },
        quantity="rate times the largest preconditioned eigenvalue, mean over time",
    ),
)
