"""Vysogorets, Dawid and Kempe (2024): training of scaled networks, with uniform outputs, and its largest rates."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator

from simulate import data, networks, objectives
from simulate.monte_carlo import Block, Point
from simulate.training import learnable_rates, optimisers, scaled_training
from theory import learning_rates, zone
from verify.claims.trained_networks import RARE, trained_on_digits
from verify.claims.vysogorets2024 import PAPER
from verify.claims.vysogorets2024.framed_networks import experiment_on_digits, of_digits
from verify.claims.vysogorets2024.scaling import NETWORKS, DrawnNetwork, drawn
from verify.model import (
    Arrays,
    Claim,
    ExactProperty,
    Experiment,
    Identity,
    Kind,
    NoTheory,
    as_stated,
)
from verify.model.domains import Between

# --- the same path at another scale --------------------------------------------------------------------------


def _path(case: DrawnNetwork, point: Point, *, alpha: float = 1.0, **how: Any) -> tuple[Any, list[Any]]:
    """Weights over alpha after the last step, mini-batches in the order of the images, and what was predicted."""
    import torch

    own = objectives.parameters.parametric(case.scaled(alpha))
    batches = list(zip(case.x.split(point.batch), case.labels.split(point.batch), strict=True))
    settings = {"steps": point.steps, "momentum": point.momentum, "logits": own.call} | how
    moments = list(scaled_training.descent(own.parameters, batches, **settings))
    weights = torch.cat([p.flatten() for p in moments[-1].parameters])
    return weights / alpha, [m.predictions for m in moments]


def matched_paths(rng: Generator, point: Point) -> Arrays:
    """Weights after training as drawn, and scaled at T = alpha^L with learning rates in several ratios."""
    case, a = drawn(rng, point), point.alpha
    heat = a**case.depth

    def scaled(rate: Any) -> Any:
        return _path(case, point, alpha=a, temperature=heat, rate=float(rate))[0]

    return {
        "scaled weights / alpha": scaled(
            zone.matched_rate(point.rate, alpha=a, depth=case.depth, temperature=heat)
        ),
        "weights": _path(case, point, rate=point.rate)[0],
        "rate times alpha": scaled(a * point.rate),
        "rate as it was": scaled(point.rate),
    }


def shared_predictions(rng: Generator, point: Point) -> Arrays:
    """Weights after training as drawn, and scaled with the probabilities of the other, or with its own."""
    case, a, heat, rate = drawn(rng, point), point.alpha, point.temperature, point.rate
    one, predictions = _path(case, point, rate=rate)
    matched = float(zone.matched_rate(rate, alpha=a, depth=case.depth, temperature=heat))

    def weights_at(at: float, **how: Any) -> Any:
        return _path(case, point, alpha=a, temperature=heat, rate=at, **how)[0]

    shared = {"predictions": lambda step, _: predictions[step]}
    return {
        "scaled weights / alpha": weights_at(matched, **shared),
        "weights": one,
        "own predictions": weights_at(matched),
        "without T": weights_at(matched / heat, **shared),
        "alpha^(1-L)": weights_at(rate * heat * a ** (1 - case.depth), **shared),
        "alpha^(-L)": weights_at(rate * heat * a**-case.depth, **shared),
        "alpha^2": weights_at(rate * heat * a**2, **shared),
    }


SCHEDULE: Arrays = {
    "images": "digits",
    "samples": 15,
    "batch": 5,
    "steps": 11,
    "momentum": 0.9,
    "rate": 0.004,
}

_same_path = partial(
    Identity,
    tolerance=1e-12,
    tolerance_reason="exact in float64; a path of some tens of steps carries rounding on, but does not amplify it",
    data="digits",
    quantity="weights after training",
)

SAME_PATHS = (
    _same_path(
        id="vysogorets2024/matched-path",
        entries=("A16",),
        source=f"{PAPER}, sections 1 and 3; momentum and mini-batches are ours",
        statement=r"T = \alpha^L,\ \eta' = \alpha^2 \eta:\quad \theta'_t = \alpha\, \theta_t "
        r"\text{ with momentum and mini-batches}",
        says="At matched temperature and a rate times the squared scale, a scaled network trains along the "
        "original's path, momentum and mini-batches included.",
        routes=matched_paths,
        points=tuple(Point(network=n, alpha=alpha, **SCHEDULE) for n in NETWORKS for alpha in (0.1, 10.0)),
        seconds=0.5,
    ),
    _same_path(
        id="vysogorets2024/shared-predictions",
        entries=("A17",),
        source=f"{PAPER}, section 5; the factor T is ours",
        statement=r"\eta' = \eta_0\, \alpha^{2-L}\, T:\quad \theta'_t = \alpha\, \theta_t \text{ if } p' = p "
        r"\text{ at every step, not with its own } p'",
        says="At a matched rate, a scaled network given the original's predictions at every step trains along its "
        "path.",
        routes=shared_predictions,
        points=tuple(
            Point(network=n, alpha=alpha, temperature=heat, **SCHEDULE)
            for n in NETWORKS
            for alpha, heat in ((0.4, 1.0), (1.7, 3.4))
        ),
        seconds=0.43,
    ),
)

# --- stability of gradient descent on a quadratic ------------------------------------------------------------


def _unstable(rng: Generator, point: Point, *, times: float = 1.0) -> float:
    """Growth of descent below the limit, times a factor, or its lack above it of the growth along the top."""
    basis = np.linalg.qr(rng.standard_normal((point.dim, point.dim)))[0]
    values = point.scale * np.geomspace(1.0, 1 / point.condition, point.dim)
    hessian, start = (basis * values) @ basis.T, rng.standard_normal(point.dim)
    limit = times * float(learning_rates.stability_limit(float(np.linalg.norm(hessian, 2))))

    def end(rate: float) -> Any:
        w, step = start, optimisers.descent_step(rate)
        for _ in range(STEPS):
            w = step(w, w, lambda at: hessian @ at)
        return w

    below, above = end((1 - point.offset) * limit), end((1 + point.offset) * limit)
    grown = np.linalg.norm(below) / np.linalg.norm(start) - 1
    reached = abs(basis[:, 0] @ above) / abs(basis[:, 0] @ start)
    return float(max(grown, 1 - reached / (1 + 2 * point.offset) ** STEPS, 0.0))


STEPS = 60


STABILITY = ExactProperty(
    id="vysogorets2024/stability-limit",
    entries=("A52",),
    source=f"{PAPER}, section 5 and appendix E",
    statement=r"\text{gradient descent on } \tfrac12 w^\top H w,\ H \succ 0: \text{ bounded for } \eta < 2/\|"
    r"H\|_2, \text{ divergent above as } |1 - \eta \|H\|_2|^t",
    says="On a convex quadratic, gradient descent stays bounded below a rate of two over the largest "
    "eigenvalue, and above grows by an exact factor.",
    domain={
        "dim": Between(1, 12),
        "condition": Between(1.0, 1e4),
        "scale": Between(1e-3, 1e3),
        "offset": Between(1e-3, 0.3),
    },
    violation=_unstable,
    examples=(
        Point(dim=3, condition=50.0, scale=5.0, offset=0.05),
        Point(dim=7, condition=3.0, scale=0.2, offset=0.001),
    ),
    rivals={
        "1 / |H|": partial(_unstable, times=0.5),
        "4 / |H|": partial(_unstable, times=2.0),
    },
    tolerance=1e-10,
    tolerance_reason="rounding of sixty steps, beside a growth by a tenth at least",
    seconds=0.022,
)


# --- uniform outputs -----------------------------------------------------------------------------------------


def perceptrons(
    block: Block, point: Point, hidden: tuple[int, ...], side: int = 8
) -> tuple[list[Any], Any, Any]:
    """Bias-free networks on square images: weights (n, 1, out, in), inputs (n, 1, N, side^2) and labels (n, 1, N)."""
    import torch

    source = data.opened(point.images, (1, side, side))
    weights = [networks.mlp_weights(rng, (side**2, *hidden, source.classes)) for rng in block.streams]
    images = [data.sample(source, rng, point.samples).flat().tensors(block.device) for rng in block.streams]
    stacked = [torch.stack(layer)[:, None].to(block.device) for layer in zip(*weights, strict=True)]
    x, labels = (torch.stack(part)[:, None] for part in zip(*images, strict=True))
    return stacked, x, labels


def uniform_paths(rng: Generator, point: Point) -> Arrays:
    """Weights after training as if outputs were uniform, and of a network scaled so far down that they round to it."""
    import torch

    weights, x, labels = perceptrons(Block((rng,)), point, (point.hidden,) * (point.depth - 1))
    start, batches = [point.alpha * w for w in weights], [(x, labels)]
    rate = float(zone.matched_rate(point.rate, alpha=point.alpha, depth=point.depth))

    def end(parameters: Any, **how: Any) -> Any:
        *_, last = scaled_training.descent(parameters, batches, steps=point.steps, **how)
        return torch.cat([p.flatten() for p in last.parameters])

    scaled = end(start, rate=rate)
    return {
        "scaled weights / alpha": scaled / point.alpha,
        "uniform outputs": end(weights, rate=point.rate, predictions=scaled_training.uniform),
        "not scaled back": scaled,
        "own outputs": end(weights, rate=point.rate),
        "rate as it was": end(start, rate=point.rate) / point.alpha,
    }


UNIFORM_PATHS = Identity(
    id="vysogorets2024/uniform-outputs-path",
    entries=("A55",),
    source=f"{PAPER}, appendix E and figure 11",
    passage=as_stated(
        "the USO model and the down-scaled networks with uniform output have exactly the same evolution",
        "Appendix E",
    ),
    statement=r"\theta'_t/\alpha = \theta^{\mathrm{unif}}_t \quad (\eta' = \eta\, \alpha^{2-L}) \text{ where } "
    r"\alpha^L \text{ is so small that outputs are uniform in every digit}",
    says="Where outputs are uniform in every digit, a scaled-down network at a matched rate trains exactly "
    "like one whose outputs are held uniform.",
    routes=uniform_paths,
    points=tuple(
        of_digits(depth=depth, alpha=alpha, hidden=12, samples=20, steps=15, rate=0.006)
        for depth, alpha in ((2, 1e-9), (3, 1e-6), (4, 3e-5), (5, 3e-4))
    ),
    tolerance=1e-12,
    tolerance_reason="rounding of fifteen steps",
    seconds=0.056,
    data="digits",
    quantity="weights after training",
)


def turned(block: Block, point: Point) -> Arrays:
    """Cosine between weights and step at the end of training with uniform predictions, and what it gained."""
    weights, x, labels = perceptrons(block, point, (14, 11))
    cosines = []
    for at in scaled_training.descent(
        weights, [(x, labels)], rate=point.rate, steps=point.steps, predictions=scaled_training.uniform
    ):
        square, slope, product = (
            scaled_training.inner(one, other, 1)
            for one, other in ((at.parameters,) * 2, (at.gradients,) * 2, (at.parameters, at.gradients))
        )
        cosines.append(-product / (square * slope).sqrt())
    return {"cosine": cosines[-1], "gain": cosines[-1] - cosines[0]}


TURNED = experiment_on_digits(
    id="vysogorets2024/divergence-regime",
    replicate="one bias-free ReLU network 64-14-11-10 with 20 images, trained with uniform predictions",
    simulate=turned,
    points=(of_digits(samples=20, steps=100, rate=0.004),),
    budget=256,
    seconds=0.23,
)

_on_every_network = partial(
    Claim,
    entries=("A56",),
    source=f"{PAPER}, section 5 and appendix E",
    no_theory=NoTheory.CONSTANT,
    experiment=TURNED,
    kind=Kind.NEVER_BELOW,
    predict=lambda _: 0.0,
    **RARE,
)

TURNED_CLAIMS = (
    _on_every_network(
        id="vysogorets2024/norm-turns",
        statement=r"\cos(\theta, -\nabla\ell) > 0 \text{ after some training with uniform outputs}",
        says="After some training with uniform outputs, the descent direction has a positive cosine with the "
        "weights on every network.",
        score="cosine",
        rivals={"above 0.3": lambda _: 0.3},
        quantity="cosine of weights and descent direction after training",
    ),
    _on_every_network(
        id="vysogorets2024/alignment-grows",
        statement=r"\cos(\theta, -\nabla\ell) \text{ grows in training with uniform outputs}",
        says="Training with uniform outputs increases the cosine of weights and descent direction on every "
        "network.",
        score="gain",
        rivals={"by 0.3": lambda _: 0.3},
        quantity="growth of the cosine of weights and descent direction",
    ),
)

# --- the largest learning rate of a scaled network -------------------------------------------------------------

LADDER = {"factor": math.sqrt(2), "count": 5}
"""Rates eta from 0.35 to 2, all moved by one random factor up to sqrt(2): networks learn at the first ones.

Of 48 networks of each depth none learned at a higher rate, at either scale.
"""


def base_rates(block: Block, point: Point) -> Arrays:
    """Exponent between two scales of the largest eta_0 = eta alpha^(L-2) at which a network learns; same images."""
    import torch

    weights, x, labels = perceptrons(block, point, (point.width,) * (point.depth - 1), side=4)
    scales = (point.small, point.large)
    # both scales in one stack, in single precision: near the largest rate rounding decides whether one run learns
    networks = learnable_rates.Classifiers(
        tuple(torch.cat([alpha * w[:, 0] for alpha in scales]).float() for w in weights),
        x[:, 0].float().repeat(2, 1, 1),
        labels[:, 0].repeat(2, 1),
    )
    offsets = [rng.uniform() for _ in scales for rng in block.streams]
    largest = learnable_rates.largest_rates(
        networks,
        lowest=0.35 * LADDER["factor"] ** torch.tensor(offsets, device=block.device),
        target=math.log(weights[-1].shape[2]) / 2,
        steps=point.steps,
        **LADDER,
    )
    small, large = np.split(largest, 2)
    return {"exponent": np.log(large / small) / math.log(point.large / point.small) + point.depth - 2}


def _exponent(p: Point) -> float:
    rates = zone.largest_base_rate([p.small, p.large], sharpness=1.3, depth=p.depth)
    return float(np.diff(np.log(rates)).item() / np.log(p.large / p.small))


def _experiment(name: str, seconds: float, *rows: tuple[int, float, float, int]) -> Experiment:
    """Points of depth, small and large scale, and steps."""
    return trained_on_digits(
        id=f"vysogorets2024/base-rates-{name}",
        replicate="one bias-free ReLU network with 24 images, trained at two scales and five learning rates each",
        simulate=base_rates,
        points=tuple(
            of_digits(depth=depth, small=small, large=large, width=20, samples=24, steps=steps)
            for depth, small, large, steps in rows
        ),
        budget=512,
        seconds=seconds,
    )


_exponent_claim = partial(
    Claim,
    entries=("A54",),
    source=f"{PAPER}, appendix E, figure 8 left",
    statement=r"\eta_{0,\max} \sim \alpha^{L-2}:\text{ the largest } \eta = \eta_0 \alpha^{2-L} "
    r"\text{ at which a network learns does not depend on its initial scale}",
    score="exponent",
    predict=_exponent,
    relative=False,
    rivals={
        "of the logit gradients, L - 1": lambda p: p.depth - 1.0,
        "of the logits, L": lambda p: float(p.depth),
        "of the schedule, 2 - L": lambda p: 2.0 - p.depth,
        "half the power": lambda p: (p.depth - 2) / 2,
    },
    axis="depth",
    quantity="exponent of the largest base rate in the scale",
)

CLAIMS = (
    *SAME_PATHS,
    STABILITY,
    UNIFORM_PATHS,
    *TURNED_CLAIMS,
    _exponent_claim(
        id="vysogorets2024/base-rate-exponent-three-layers",
        experiment=_experiment("three-layers", 1.0, (3, 0.07, 0.6, 250)),
        says="With three layers, the largest base learning rate at which a network learns grows linearly with its "
        "initial scale.",
        margin=0.1,
        margin_reason="an exponent, 0.05, and as much for a larger scale that is not yet small, where base rates lay a "
        "tenth above the power; ten times smaller scales would need ten times the steps",
        pilot="the margin 0.1: base rates of the first networks drawn lay a tenth above the power at the larger scale",
    ),
    _exponent_claim(
        id="vysogorets2024/base-rate-exponent-deep",
        experiment=_experiment("deep", 2.5, (4, 0.25, 0.8, 200), (5, 0.35, 0.9, 400)),
        says="With four and five layers, the largest base rate at which a network learns grows as the initial "
        "scale to the depth less two.",
        margin=0.2,
        margin_reason="an exponent between scales a factor of three apart, where rates of single networks differ by "
        "30 %: a fifth of a layer is what a hundred networks resolve",
        pilot="the margin 0.2: rates of single networks drawn first differed by 30 %",
        reads=r"\eta_0 \alpha^{-1} = 2/\mathcal{O}(1)",
        printed=lambda _: 1.0,
        passage=as_stated("linear separation between trainable and divergent models", "Appendix E"),
        finding="The largest base rate eta_0 grows as alpha with three layers, but as alpha^3 with the five of "
        "LeNet-5. With its own eta = eta_0 alpha^(2-L) it is eta_0 alpha^(2-L) that stays.",
    ),
)
