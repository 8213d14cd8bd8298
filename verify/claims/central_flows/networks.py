"""Gradient descent at the edge of stability against the central flow and gradient flow, from the same parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from simulate.monte_carlo import Block, Point
from simulate.training import edges, flows, stacks
from theory.learning_rates import edge_of_stability
from verify.claims.drawn_networks import stacked_rows
from verify.claims.trained_networks import drawn_images
from verify.model import Arrays, Claim, Experiment, Kind, NoTheory, Tier, as_stated
from verify.model.observation import Observation, columns_of

if TYPE_CHECKING:
    from torch import Tensor

COHEN = "Cohen, Damian, Talwalkar, Kolter and Lee (2025), arXiv 2410.24206"
DAMIAN = "Damian, Nichani and Lee (2023), arXiv 2209.15594"

PARTS = 2
"""Steps of Euler for each step of descent: with 4 the scores change by less than a hundredth."""

PRODUCTS = 12
"""Hessian products for the largest eigenvalue on gradient flow."""

DISTANCE, VARIANCE, LOSS = 0.2, 0.25, 0.2
"""Largest distance to the central flow, over that to gradient flow, and largest relative errors of the variance and the
loss, at which a network counts as predicted. Shares are judged, since a few networks that have just reached the edge
lie far from the others."""


def ratios(block: Block, point: Point) -> Arrays:
    """Predicted over measured in means over the last half of the steps; images have random labels, 1 or -1."""
    import torch

    images, _ = drawn_images(block, point)
    signs = [rng.choice([-1.0, 1.0], (point.samples, 1)) for rng in block.streams]
    x, y = (
        torch.from_numpy(np.stack(values)).double().to(block.device)
        for values in ([d.images for d in images], signs)
    )
    drawn = stacks.perceptrons_at_start(block.streams, (64, *point.hidden, 1), dtype=torch.float64)
    stack, start = stacks.Perceptrons("tanh", "squared error"), [p.to(block.device) for p in drawn]
    rates = torch.full((len(block),), point.rate, dtype=torch.float64, device=block.device)
    for _ in range(point.before):
        stack.descend_(start, x, y, rates)
    setting, course = (stack, start, x, y), {"rates": rates, "steps": point.steps}
    own = flows.descent_path(*setting, **course)
    plain = flows.gradient_flow(*setting, **course, parts=PARTS)
    central = flows.central_flow(*setting, **course, parts=PARTS)

    def late(values: Tensor) -> Tensor:
        return values[:, point.steps // 2 :].mean(1)

    def sharpness(at: Tensor) -> Tensor:
        return edges.top_eigenvalues(stack, edges.shaped_like(at, start), x, y, steps=PRODUCTS).values

    between = own.parameters - central.path.parameters
    # a network that no longer sharpens, or diverges, has left the edge: it counts as not predicted
    rise, fall = (
        late(values).nan_to_num(1e-30).clamp_min(1e-30).cpu().numpy()
        for values in (central.sharpening, central.stabilisation)
    )
    variance = edge_of_stability.oscillation(sharpening=rise, stabilisation=fall)

    def distance(values: Tensor) -> Any:
        return late(values).norm(dim=1).cpu().numpy()

    loss = late(central.path.losses).cpu().numpy() + variance / point.rate
    found = {
        "distance": distance(between) / distance(own.parameters - plain.parameters),
        "variance": variance / late((between * central.directions).sum(2).square()).cpu().numpy(),
        "loss": loss / late(own.losses).cpu().numpy(),
    }
    ends = sharpness(edges.flatten(start)), sharpness(plain.parameters[:, -1])
    return found | {"sharpening": (ends[1] / ends[0]).cpu().numpy()}


def paths(block: Block, point: Point) -> Arrays:
    """Whether each network is as predicted."""
    found = ratios(block, point)
    return {
        "path": (found["distance"] < DISTANCE).astype(float),
        "variance": (np.abs(found["variance"] - 1) < VARIANCE).astype(float),
        "loss": (np.abs(found["loss"] - 1) < LOSS).astype(float),
        "sharpened": (found["sharpening"] > 1).astype(float),
    }


def at_rates(block: Block, point: Point) -> Arrays:
    """Scores of `ratios` at each rate of the point, (networks, rates)."""
    return stacked_rows([ratios(block, point | {"rate": rate}) for rate in point.rate], axis=1)


SMALL = {"images": "digits", "samples": 64, "hidden": (8,), "steps": 50}

PATHS = Experiment(
    id="central_flows/paths",
    replicate="one perceptron with its images and random labels, on three paths from the edge of stability",
    simulate=paths,
    points=(Point(**SMALL, rate=0.1, before=300), Point(**SMALL, rate=0.2, before=300)),
    budget=192,
    seconds=2.0,
    data="digits",
)

EVERY: dict[str, Any] = {
    "kind": Kind.PROPORTION,
    "predict": lambda _: 1.0,
    "margin": 0.2,
    "relative": False,
    "margin_reason": "one network in five, such as one that has just reached the edge; the readings at issue are never "
    "and always",
    "no_theory": NoTheory.CONSTANT,
    "pilot": "the steps before, so that the first large oscillation is over, and what counts as predicted: 96 networks "
    "with other seeds; 300 steps at a rate of 0.2 after 96 networks of seed 2024 with 250",
    "experiment": PATHS,
}

CLAIMS = (
    Claim(
        id="central_flows/path",
        **EVERY,
        entries=("L1",),
        source=f"{COHEN}, abstract",
        passage=as_stated(
            "can predict long-term optimization trajectories for generic neural networks with a high degree of "
            "numerical accuracy",
            "abstract",
        ),
        statement=r"P\Big(\frac{|\overline{w_t} - \overline{w(t)}|}{|\overline{w_t} - \overline{v(t)}|} < 0.2\Big) = 1,"
        r"\quad \dot w = -\eta \nabla \big(L + \tfrac{\sigma^2}{2} S\big),\ \dot v = -\eta \nabla L",
        says="At the edge of stability the time mean of the parameters of gradient descent is five times nearer to the "
        "central flow than to gradient flow, or more.",
        score="path",
        rivals={"gradient flow, or half way to it": lambda _: 0.0, "chance": lambda _: 0.5},
        quantity="share of networks whose time mean lies on the central flow",
    ),
    Claim(
        id="central_flows/oscillation",
        **EVERY,
        entries=("L2",),
        source=f"{COHEN}, companion page, part I",
        passage=as_stated("accurately predicts the variance of the oscillations", "companion page, part I"),
        statement=r"P\Big(\Big|\frac{\sigma^2}{\overline{(u \cdot (w_t - w(t)))^2}} - 1\Big| < 0.25\Big) = 1,\quad "
        r"\sigma^2 = \frac{2\, (-\nabla L \cdot \nabla S)}{|\nabla S|^2}",
        says="At the edge of stability gradient descent is displaced from the central flow along the top eigenvector "
        "with the variance that holds the eigenvalue still, within a quarter.",
        score="variance",
        rivals={"half or twice this variance": lambda _: 0.0, "chance": lambda _: 0.5},
        quantity="share of networks with the predicted oscillation",
    ),
    Claim(
        id="central_flows/loss",
        **EVERY,
        entries=("L3",),
        source=f"{COHEN}, companion page, part I",
        passage=as_stated("this prediction is quite accurate", "companion page, part I"),
        statement=r"P\Big(\Big|\frac{\overline{L(w(t))} + \sigma^2 / \eta}{\overline{L(w_t)}} - 1\Big| < 0.2\Big) = 1",
        says="At the edge of stability the time mean of the training loss is the loss of the central flow plus the "
        "variance of the oscillation over the rate, within a fifth.",
        score="loss",
        rivals={"loss of the flow alone": lambda _: 0.0, "chance": lambda _: 0.5},
        quantity="share of networks with the predicted loss",
    ),
    Claim(
        id="central_flows/sharpening",
        **EVERY,
        entries=("L4",),
        source=f"{DAMIAN}, section 1; Cohen et al. (2021), arXiv 2103.00065",
        passage=as_stated(
            "the gradient of the loss is negatively aligned with the gradient of sharpness",
            "section 1.1, for most of the trajectory",
        ),
        statement=r"P\big(S(v(t)) > S(v(0))\big) = 1 \quad\text{along gradient flow from the edge}",
        says="Gradient flow from parameters at the edge of stability raises the largest eigenvalue of the Hessian of "
        "nearly every network.",
        score="sharpened",
        rivals={"never": lambda _: 0.0, "chance": lambda _: 0.5},
        quantity="share of networks that gradient flow sharpens",
    ),
)

OBSERVATIONS = (
    Observation(
        id="central_flows/sizes",
        entries=("L1", "L2", "L3", "L4"),
        source=f"{COHEN}, abstract and companion page, part I",
        title="Central flow against gradient descent in larger networks",
        note="The flow with one eigenvalue at the edge follows wider and deeper networks as well, on average within a "
        "tenth of the distance to gradient flow; networks that have just reached the edge lie farthest.",
        replicate=PATHS.replicate,
        simulate=at_rates,
        points=tuple(
            Point(images="digits", samples=128, steps=120, hidden=hidden, rate=(0.05, 0.1), before=600)
            for hidden in ((32,), (16, 16))
        ),
        along="rate",
        columns=columns_of(
            {
                "distance": "distance to central flow over that to gradient flow",
                "variance": "sigma^2 over the variance along the top eigenvector",
                "loss": "predicted over measured loss",
                "sharpening": "largest eigenvalue after gradient flow over before",
            },
            "variance",
            "loss",
        ),
        replicates=3,
        single="the oscillation at the edge amplifies the last digit",
        seconds=4.0,
        tier=Tier.FULL,
        data="digits",
    ),
)
