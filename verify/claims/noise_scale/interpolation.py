"""SGD on quadratics that one set of weights fits in every sample: critical batch size, mean-square stability."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator

from simulate.monte_carlo import Point
from simulate.training import optimisers
from theory.learning_rates import noise_scale
from verify.claims import Floats
from verify.claims.drawn_networks import stream_by_stream
from verify.model import Arrays, Claim, ExactProperty, Experiment, as_stated
from verify.model.domains import Between, Domain

MA = "Ma, Bassily and Belkin (2018), arXiv 1712.06559"
MULAYOFF = "Mulayoff and Michaeli (2024), arXiv 2306.07850"


def eigenvalues_of(p: Any) -> Floats:
    """Second moments of the inputs: one large, `many` equal ones, one small."""
    return np.array([p.largest, *[p.middle] * p.many, p.smallest])


@stream_by_stream
def interpolating_steps(rng: Generator, point: Point, _: str) -> Arrays:
    """Rate at which the slowest of three directions shrinks fastest, and by how much; inputs of random signs.

    The mean squared length after a step from a direction is a parabola in the rate, so that three rates give all.
    """
    values = eigenvalues_of(point)
    starts = np.array([0, 1, len(values) - 1])
    tried = np.array([0.3, 0.7, 1.1]) / values[0]
    rates = np.linspace(0.01, 2.0, 4000) / values[0]
    signs = rng.integers(0, 2, (point.draws, point.batch_size, len(values)), dtype=np.int8)
    inputs = (2.0 * signs - 1.0) * np.sqrt(values)
    pulls = np.einsum("dmi,dmk->dki", inputs, inputs[:, :, starts]) / point.batch_size
    after = np.eye(len(values))[starts] - tried[:, None, None, None] * pulls
    lengths = (after**2).sum(3).mean(1)
    slowest = np.array([np.polyval(np.polyfit(tried, seen, 2), rates) for seen in lengths.T]).max(0)
    return {"rate": rates[slowest.argmin()], "gain": 1 - slowest.min()}


STEPS = Experiment(
    id="noise_scale/interpolating-steps",
    replicate="many batches of inputs of one length, and the best rate for the slowest direction",
    simulate=interpolating_steps,
    on_host="all of it, in numpy",
    points=tuple(
        Point(largest=1.7, middle=0.63, smallest=0.37, many=9, batch_size=size, draws=draws)
        for size, draws in ((2, 4096), (5, 4096), (11, 2048), (43, 512))
    ),
    budget=256,
    seconds=0.31,
)


def _sizes(p: Any) -> dict[str, float]:
    values = eigenvalues_of(p)
    return {"squared_norm": values.sum(), "largest": values[0], "smallest": values[-1]}


def _rate(p: Any, batch_size: float) -> Any:
    return noise_scale.interpolating_rate(batch_size, **_sizes(p))


def _gain(p: Any, batch_size: float) -> float:
    """One minus the factor of the slower end, at the best rate."""
    sizes = _sizes(p)
    setting = {"squared_norm": sizes["squared_norm"], "batch_size": batch_size}
    ends = [sizes["largest"], sizes["smallest"]]
    return float(1 - noise_scale.mean_square_factor(_rate(p, batch_size), eigenvalue=ends, **setting).max())


def _general_convex(p: Any) -> float:
    """The rate that the same paper gives for convex losses that are no quadratics."""
    s = _sizes(p)
    return p.batch_size / (s["squared_norm"] + (p.batch_size - 1) * s["largest"])


def _cut(p: Any, formula: Any) -> float:
    """Linear up to the critical batch size, and flat from there."""
    return min(p.batch_size, (noise_scale.critical_batch_size(**_sizes(p)))) * formula(p, 1)


def off_the_mixture(rng: Generator, point: Point, *, shift: int = 0) -> float:
    """Largest relative error of the mixture's squared distances against those over every possible batch."""
    x = rng.standard_normal((point.samples, point.dim)) * np.exp(
        0.4 * rng.standard_normal((point.samples, 1))
    )
    matrices, start = x[:, :, None] * x[:, None, :], rng.standard_normal(point.dim)
    rate = point.relative / np.linalg.eigvalsh(matrices.mean(0))[-1]
    steps = np.eye(point.dim) - rate * optimisers.all_batches(matrices, point.batch_size)
    moment, lengths = np.outer(start, start), []
    for _ in range(point.steps):
        moment = (steps @ moment @ steps).mean(0)
        lengths.append(np.trace(moment))
    said = noise_scale.mean_square_distances(
        matrices, start, rate=rate, batch_size=point.batch_size + shift, steps=point.steps
    )
    return float(np.abs(said / np.array(lengths) - 1).max())


ANY: Domain = {
    "samples": Between(4, 7),
    "dim": Between(1, 4),
    "batch_size": Between(1, 3),
    "relative": Between(0.1, 2.2),
    "steps": Between(1, 6),
}

INTERPOLATING = {
    "experiment": STEPS,
    "source": f"{MA}, on the quadratic loss",
    "axis": "batch_size",
    "margin": 0.01,
    "margin_reason": "exact for inputs of one length; the least of a maximum of means over batches is biased by them",
}

CLAIMS = (
    Claim(
        id="noise_scale/interpolating-rate",
        **INTERPOLATING,
        entries=("H6",),
        passage=as_stated(
            "for the quadratic loss, we derive explicit expressions for the optimal mini-batch and step size",
            "abstract",
        ),
        statement=r"\eta^*(m) = \frac{m}{\beta + (m-1) \lambda_n}\ (m \le m^*),\quad "
        r"\frac{2 m}{\beta + (m-1)(\lambda_1 + \lambda_n)}\ (m \ge m^*),\quad "
        r"m^* = \frac{\beta}{\lambda_1 - \lambda_n} + 1",
        says="Where one set of weights fits every sample, the best rate of SGD on least squares grows almost "
        "linearly up to a critical batch size and then saturates.",
        score="rate",
        predict=lambda p: _rate(p, p.batch_size),
        rivals={
            "linear throughout": lambda p: p.batch_size * _rate(p, 1),
            "linear, then flat": lambda p: _cut(p, _rate),
            "that of convex losses": _general_convex,
            "that of full gradients": lambda p: 2 / (p.largest + p.smallest),
        },
        quantity="best learning rate",
    ),
    Claim(
        id="noise_scale/interpolating-gain",
        **INTERPOLATING,
        entries=("H7",),
        passage=as_stated(
            "is nearly equivalent to m iterations of mini-batch size 1 (linear scaling regime)",
            "abstract",
        ),
        statement=r"1 - g(m) = \frac{m \lambda_n}{\beta + (m-1) \lambda_n}\ (m \le m^*),\quad "
        r"\frac{4 m (m-1) \lambda_1 \lambda_n}{(\beta + (m-1)(\lambda_1 + \lambda_n))^2}\ (m \ge m^*)",
        says="The decrease along the slowest direction in a step of SGD at the best rate is almost linear in the "
        "batch size up to the critical one, then tends to a full gradient's.",
        score="gain",
        predict=lambda p: _gain(p, p.batch_size),
        rivals={
            "linear throughout": lambda p: p.batch_size * _gain(p, 1),
            "linear, then flat": lambda p: _cut(p, _gain),
            "that of full gradients": lambda p: _gain(p, 1e12),
        },
        quantity="share of the squared distance that a step takes off",
    ),
    ExactProperty(
        id="noise_scale/mixture",
        entries=("H8",),
        source=MULAYOFF,
        passage=as_stated(
            "a full batch gradient step w.p. 1-p, and a single sample gradient step w.p. p",
            "abstract",
        ),
        statement=r"\mathbb{E}\, (I - \eta H_B) M (I - \eta H_B) = (1-p)(I - \eta H) M (I - \eta H) + "
        r"p\, \mathbb{E}_i (I - \eta H_i) M (I - \eta H_i),\quad p = \frac{N - B}{B (N - 1)}",
        says="Over all batches of a size, second moments move exactly as over full steps mixed with single-sample "
        "steps, so that both are stable up to one rate.",
        domain=ANY,
        violation=off_the_mixture,
        examples=(
            Point(samples=7, dim=3, batch_size=2, relative=0.7, steps=4),
            Point(samples=5, dim=4, batch_size=3, relative=1.9, steps=3),
        ),
        tolerance=1e-9,
        tolerance_reason="rounding of products of small matrices",
        rivals={"a batch one larger": partial(off_the_mixture, shift=1)},
        seconds=0.023,
    ),
)
