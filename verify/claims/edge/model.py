"""The edge of stability in two variables: Damian et al. (2023), with noise as in Liao et al. (2026)."""

from __future__ import annotations

from typing import Any

import numpy as np

from simulate.monte_carlo import Block, Point
from theory.learning_rates import edge_of_stability
from verify.model import OURS, Arrays, Claim, Experiment, Kind, as_stated

DAMIAN = "Damian, Nichani and Lee (2023), Self-stabilization, arXiv 2209.15594"
LIAO = "Liao, Kolomvaki and Kyrillidis (2026), arXiv 2604.21016"


def two_variables(block: Block, point: Point) -> Arrays:
    """Weighted time means, once settled, along x' = -(1 + eta y) x + eta n, y' = y + eta (alpha - beta x^2 / 2)."""
    rate, alpha, beta = point.rate, point.sharpening, point.stabilisation
    noise = np.stack([rng.standard_normal(point.steps) for rng in block.streams], 1) * (rate * point.sigma)
    scale = np.sqrt(2 * alpha / beta)
    x = np.array([rng.standard_normal() for rng in block.streams]) * scale
    y = np.full(len(block), -rate * beta * point.sigma**2 / (4 * alpha))
    squares, levels = np.empty_like(noise), np.empty_like(noise)
    for step in range(point.steps):
        squares[step], levels[step] = x * x, y
        x, y = noise[step] - (1 + rate * y) * x, y + rate * alpha - (rate * beta / 2) * squares[step]
    # the first quarter is left out; the rest fades in and out, or the ends of the window would move the mean
    weights = np.interp(np.linspace(0, 1, point.steps), (0.25, 0.4, 0.85, 1), (0, 1, 1, 0))
    weights /= weights.sum()
    return {
        "square": weights @ squares,
        "weighted": -weights @ (levels * squares),
        "one": np.ones(len(block)),
    }


MODEL = Experiment(
    id="edge/two-variables",
    replicate="one path of the model, settled at its noise",
    simulate=two_variables,
    on_host="all of it, in numpy",
    points=(
        Point(rate=0.1, sharpening=0.02, stabilisation=40.0, sigma=0.05, steps=4000),
        Point(rate=0.23, sharpening=0.03, stabilisation=11.0, sigma=0.07, steps=4000),
        Point(rate=0.15, sharpening=0.012, stabilisation=3.0, sigma=0.09, steps=4000),
        Point(rate=0.1, sharpening=0.02, stabilisation=40.0, sigma=0.06, steps=4000),
        Point(rate=0.15, sharpening=0.012, stabilisation=3.0, sigma=0.065, steps=4000),
    ),
    budget=1024,
    seconds=0.25,
)


def _gap(p: Any) -> Any:
    return edge_of_stability.sharpness_gap(
        p.rate, noise=p.sigma**2, sharpening=p.sharpening, stabilisation=p.stabilisation
    )


def _oscillation(p: Any) -> Any:
    return edge_of_stability.oscillation(sharpening=p.sharpening, stabilisation=p.stabilisation)


CLAIMS = (
    Claim(
        id="edge/oscillation",
        entries=("E4",),
        source=f"ours, on the model of {DAMIAN}: a mean over time, with noise",
        passage=OURS,
        statement=r"\overline{x^2} = 2\alpha/\beta \quad\text{for } x' = -(1 + \eta y) x + \eta n,\ "
        r"y' = y + \eta(\alpha - \beta x^2/2)",
        says="In the two-variable model, the mean squared oscillation along the top eigenvector is twice the "
        "sharpening over the self-stabilisation, whatever the noise.",
        experiment=MODEL,
        kind=Kind.RATIO,
        score=("square", "one"),
        predict=_oscillation,
        margin=0.01,
        margin_reason="exact for a path that stays bounded, up to the ends of its window",
        rivals={
            "alpha over beta": lambda p: _oscillation(p) / 2,
            "set by the noise alone": lambda p: (p.rate * p.sigma) ** 2,
        },
        quantity="mean squared oscillation",
    ),
    Claim(
        id="edge/gap-in-the-model",
        entries=("E5",),
        source=f"{LIAO}, abstract, as a mean with weights x^2",
        passage=as_stated("we derive a closed-form equilibrium sharpness gap", "abstract"),
        statement=r"-\overline{y x^2} / \overline{x^2} = \frac{\eta \beta \sigma^2}{4 \alpha} + O(\eta y^2)",
        says="In the two-variable model, noise holds the largest eigenvalue below two over the rate by rate times "
        "self-stabilisation times noise variance, over four times the sharpening.",
        experiment=MODEL,
        kind=Kind.RATIO,
        score=("weighted", "square"),
        predict=_gap,
        margin=0.15,
        margin_reason="first order: eta y and its fluctuation, a tenth here, is what the derivation leaves out",
        rivals={
            "without the half of the square": lambda p: 2 * _gap(p),
            "rate squared": lambda p: p.rate * _gap(p),
            "standard deviation of the noise": lambda p: _gap(p) / p.sigma,
        },
        quantity="gap below two over the rate",
    ),
)
