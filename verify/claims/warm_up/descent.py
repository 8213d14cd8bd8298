"""Warm-up under full-batch gradient descent: the rates that train, and the sharpness meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from simulate.monte_carlo import Block, Point
from simulate.training import edges, grids, rules, stacks
from theory.learning_rates import edge_of_stability
from verify.claims.trained_networks import (
    LOST,
    RARE,
    all_samples,
    below_constants,
    centred_images,
    common_rates,
    full_batches,
    normal_perceptrons,
    trained_on_digits,
)
from verify.model import Arrays, Claim, Kind, NoTheory, as_stated

if TYPE_CHECKING:
    from torch import Tensor

WARMUP = "Kalra and Barkeshli (2024), arXiv 2406.09405"
PHASES = "Kalra and Barkeshli (2023), arXiv 2302.12250"
CRITICAL = "Kalra et al. (2026), arXiv 2601.16979"

PRODUCTS = 10
"""Hessian products for its largest eigenvalue: within a hundredth of the value from more products."""

GAIN = {"relu": 2.0, "tanh": 1.0}
"""Variance of a weight times the number of inputs."""


def perceptrons_at(
    block: Block, point: Point, hidden: Sequence[int]
) -> tuple[stacks.Perceptrons, list[Tensor]]:
    """Networks at their start, with the squared error."""
    start = normal_perceptrons(block, (64, *hidden, 10), GAIN[point.activation])
    return stacks.Perceptrons(point.activation, "squared error", bias=False), start


def sharpnesses(stack: stacks.Perceptrons, parameters: Any, samples: grids.TrainingSets) -> Tensor:
    """Largest eigenvalue of the Hessian over all samples of each network."""
    x, y = all_samples(samples)
    return edges.top_eigenvalues(stack, parameters, x, y, steps=PRODUCTS).values


def octaves(
    stack: stacks.Perceptrons,
    start: list[Tensor],
    samples: grids.TrainingSets,
    rates: Tensor,
    point: Point,
    rule: rules.Rule | None = None,
    warmups: Sequence[int] = (1,),
) -> Tensor:
    """Return the number of rates that train after each warm-up, (R, T), of rates (R, K) a factor of two apart."""
    import torch

    count = len(rates)
    lengths = torch.tensor(warmups, device=rates.device).repeat_interleave(rates.shape[1])
    run = grids.train(
        stack,
        start,
        samples,
        full_batches(samples, count),
        rates=rates.repeat(1, len(warmups)),
        steps=point.steps,
        warmup=lengths.expand(count, -1),
        rule=rule or rules.SGD,
        lost=LOST,
    )
    return below_constants(stack, run, samples).view(count, len(warmups), -1).sum(2).double()


def warmed_rates(block: Block, point: Point) -> Arrays:
    """Growth of the largest rate with the warm-up, and how much less it gains if the last layer starts at 0."""
    import torch

    samples = centred_images(block, point)
    stack, sharp = perceptrons_at(block, point, point.hidden)
    ladder = point.low * 2.0 ** torch.arange(point.tried, device=block.device)
    found = [
        octaves(
            stack,
            start,
            samples,
            ladder / sharpnesses(stack, start, samples)[:, None],
            point,
            warmups=point.warmups,
        )
        for start in (sharp, [*sharp[:-1], torch.zeros_like(sharp[-1])])
    ]
    gain, flat = (each[:, -1] - each[:, 0] for each in found)
    short, long = point.warmups[-2:]
    return {"growth": (found[0][:, -1] - found[0][:, -2]) / np.log2(long / short), "less": gain - flat}


def during_warmup(block: Block, point: Point) -> Arrays:
    """Octaves of rate times sharpness, mean over some steps up to each look; 0 where a run is lost.

    The mean is over steps far enough apart that a spike is seen once.
    """
    import torch

    at = [look - before for look in point.looks for before in BEFORE]

    samples = centred_images(block, point)
    stack, start = perceptrons_at(block, point, point.hidden)
    rates = (point.target / sharpnesses(stack, start, samples))[:, None]

    def watch(_: int, cells: grids.Cells) -> dict[str, Tensor]:
        x, y = all_samples(samples, cells.places)
        return {"top": edges.top_eigenvalues(stack, cells.parameters, x, y, steps=PRODUCTS).values}

    run = grids.train(
        stack,
        start,
        samples,
        full_batches(samples, len(block)),
        rates=rates,
        steps=max(point.looks),
        warmup=torch.full_like(rates, point.warmup),
        watch=watch,
        at=at,
    )
    shares = torch.tensor(at, device=block.device) / point.warmup
    levels = (run.watched["top"][:, 0] * rates * shares).log2().nan_to_num()
    return {"level": levels.view(len(block), -1, len(BEFORE)).mean(2)}


BEFORE = (24, 0)
"""Steps before a look at which the sharpness is measured too."""


def changes_with_shape(block: Block, point: Point) -> Arrays:
    """Octaves by which the early fall of the sharpness, and the critical rate times it, grow from shape to shape."""
    import torch

    samples, found = centred_images(block, point), []
    for hidden in point.shapes:
        stack, start = perceptrons_at(block, point, hidden)
        before = sharpnesses(stack, start, samples)
        rates = (point.product / before)[:, None]
        run = grids.train(
            stack, start, samples, full_batches(samples, len(block)), rates=rates, steps=point.steps
        )
        tried = 2 ** (torch.arange(17, device=block.device) / 2) / before[:, None]
        critical = edges.rising_rates(stack, start, *all_samples(samples), tried=tried) * before
        fall = before / sharpnesses(stack, run.cells.parameters, samples)
        # the largest rate tried where none raises the loss
        found.append(torch.stack([fall, critical.nan_to_num(256)], 1).log2())
    return {"octaves": torch.stack(found, 1).diff(dim=1).flatten(1).double()}


def critical_sharpness(block: Block, point: Point) -> Arrays:
    """Whether the critical sharpness late in training, mean over steps, is at the edge at each rate; random labels.

    It counts as 0 where no rate that is tried raises the loss.
    """
    import torch

    samples = centred_images(block, point)
    labels = np.concatenate([rng.integers(10, size=point.samples) for rng in block.streams])
    samples = samples._replace(targets=torch.from_numpy(labels).to(block.device))
    stack, start = perceptrons_at(block, point, point.hidden)
    rates = common_rates(block, *point.rate)

    def watch(_: int, cells: grids.Cells) -> dict[str, Tensor]:
        x, y = all_samples(samples, cells.networks(len(point.rate)))
        tried = rates.flatten()[cells.places, None] * 2 ** (torch.arange(-4, 5, device=block.device) / 2)
        return {"critical": 2 / edges.rising_rates(stack, cells.parameters, x, y, tried=tried)}

    run = grids.train(
        stack,
        start,
        samples,
        full_batches(samples, len(block)),
        rates=rates,
        steps=max(point.looks),
        watch=watch,
        at=point.looks,
    )
    level = run.watched["critical"].nan_to_num().mean(2).cpu().numpy() / edge_of_stability.edge(point.rate)
    return {"at the edge": (np.abs(level - 1) < WITHIN).astype(float)}


WITHIN = 0.03
"""Relative distance from the edge within which a network counts as there."""


LARGEST = trained_on_digits(
    id="warm_up/largest-rates",
    replicate="one perceptron with 16 digits, from two starts, at each rate of a ladder and each warm-up",
    simulate=warmed_rates,
    points=(
        Point(activation="relu", hidden=(16, 16), samples=16, low=8.0, tried=6, warmups=(1, 8, 32), steps=64),
    ),
    budget=384,
    seconds=1.7,
)
DURING = trained_on_digits(
    id="warm_up/during",
    replicate="one perceptron with its digits, trained through a warm-up",
    simulate=during_warmup,
    points=(
        Point(
            activation="tanh",
            hidden=(16, 16),
            samples=16,
            target=11,
            warmup=400,
            looks=(150, 270, 390),
        ),
    ),
    budget=384,
    seconds=1.1,
)
SHAPES = trained_on_digits(
    id="warm_up/shapes",
    replicate="three perceptrons of unlike shape on the same 16 digits",
    simulate=changes_with_shape,
    points=(
        Point(
            activation="relu",
            shapes=((64,), (64,) * 3, (20,) * 3),
            samples=16,
            product=1.3,
            steps=10,
            changed=(
                "fall with depth",
                "critical rate with depth",
                "fall with 1 / width",
                "critical rate with 1 / width",
            ),
        ),
    ),
    budget=384,
    seconds=1.1,
)
CRITICALLY = trained_on_digits(
    id="warm_up/critical",
    replicate="one perceptron with 48 digits and random labels, trained at two rates",
    simulate=critical_sharpness,
    points=(
        Point(
            activation="tanh",
            hidden=(16, 16),
            samples=48,
            rate=(0.3, 0.42),
            looks=tuple(range(300, 347, 6)),
        ),
    ),
    budget=384,
    seconds=1.7,
)

NEARLY_ALL: dict[str, Any] = {
    **RARE,
    "kind": Kind.PROPORTION,
    "predict": lambda _: 1.0,
    "no_theory": NoTheory.CONSTANT,
}
"""Terms of a claim on all networks but rare ones."""

_at_least = partial(Claim, kind=Kind.AT_LEAST, relative=False, no_theory=NoTheory.CONSTANT)

CLAIMS = (
    _at_least(
        id="warm_up/longer-warm-up",
        entries=("K1",),
        source=f"{WARMUP}, abstract",
        passage=as_stated(
            "the overwhelming benefit of warmup arises from allowing the network to tolerate larger",
            "abstract",
        ),
        statement=r"\frac{\log \eta_{max}(4T) - \log \eta_{max}(T)}{\log 4} \ge 0.2 \quad (T = 8)",
        says="The largest target rate that trains small ReLU networks grows with the length of the warm-up.",
        experiment=LARGEST,
        score="growth",
        predict=lambda _: 0.2,
        margin=0.1,
        margin_reason="half of the bound, so that the largest rate grows by a tenth of an octave in each at least",
        rivals={"in proportion": lambda _: 1.0, "as its square": lambda _: 2.0},
        pilot="networks and bound: 0.45 on the first 32",
        quantity="exponent of the largest rate in the length of the warm-up",
    ),
    _at_least(
        id="warm_up/flat-starts-gain-less",
        entries=("K2",),
        source=f"{WARMUP}, abstract; that flat starts gain less, by accounts of others",
        statement=r"\log_2 \frac{\eta_{max}(T)}{\eta_{max}(1)}\Big|_{W_L \sim N} - "
        r"\log_2 \frac{\eta_{max}(T)}{\eta_{max}(1)}\Big|_{W_L = 0} \ge 1 \quad (T = 32)",
        symbols={"W_L": "weights of the last layer at the start"},
        says="Where the last layer starts at zero, a warm-up of 32 steps raises the largest rate by a factor less "
        "than half of what it is elsewhere.",
        experiment=LARGEST,
        score="less",
        predict=lambda _: 1.0,
        margin=0.25,
        margin_reason="a quarter of an octave, a fifth of a factor",
        rivals={"eightfold": lambda _: 3.0, "sixteenfold": lambda _: 4.0},
        pilot="networks and bound: 1.9 on the first 32",
        quantity="logarithm of the gain over that of a flat start",
        logarithm="2",
    ),
    Claim(
        id="warm_up/sharpness-follows-the-rate",
        entries=("K3",),
        source=f"{WARMUP}, abstract; that it follows 2 over the rate, by accounts of others",
        statement=r"\mathbb{E} \log_2 \eta_t \lambda_1 = 1"
        r" \quad\text{after } t \text{ steps of linear warm-up, at the edge}",
        says="Once it is at the edge, the sharpness falls during a linear warm-up as two over the rate of the step.",
        experiment=DURING,
        score="level",
        along="looks",
        predict=lambda _: float(np.log2(edge_of_stability.edge(1.0))),
        margin=0.32,
        relative=False,
        margin_reason="a quarter: at a constant rate it hovers up to a fifth above, and here the rate still grows",
        pilot="networks, steps and looks, and that octaves are judged: 1.08 to 1.13 times the edge on the first 96, "
        "whose mean spikes made too skewed",
        rivals={
            "the sharpness of the first look": lambda p: float(np.log2(p.looks / 75)),
            "2 over the target rate": lambda p: float(np.log2(2 * p.looks / p.warmup)),
        },
        logarithm="2",
        quantity="logarithm of the rate times the sharpness",
    ),
    _at_least(
        id="warm_up/depth-over-width",
        entries=("K6",),
        source=f"{PHASES}, abstract; of the critical rate, abstract of the first version",
        passage=as_stated(
            "sharpness decreases at early times, as d and 1/w are increased",
            "abstract, without its dollar signs",
        ),
        statement=r"\log_2 \frac{x(3d, w)}{x(d, w)},\ \log_2 \frac{x(d, w/3)}{x(d, w)} \ge 0.2"
        r"\text{ on average},\quad x = \frac{\lambda_1(0)}{\lambda_1(10)},\ \eta_c \lambda_1(0)",
        symbols={
            "d": "hidden layers",
            "w": "width",
            r"\eta_c": "smallest rate whose first step raises the loss",
        },
        says="The early fall of the sharpness, and the smallest rate over 1 / sharpness that raises the loss, grow "
        "with the depth of ReLU networks and with 1 / width.",
        experiment=SHAPES,
        score="octaves",
        along="changed",
        predict=lambda _: 0.2,
        margin=0.1,
        margin_reason="half of the bound",
        rivals={"twofold each": lambda _: 1.0, "fourfold each": lambda _: 2.0},
        pilot="that ReLU is judged, shapes and bound: 0.5 and 0.8, then 0.5 and 1.8 on the first 32",
        quantity="logarithm of the growth from shape to shape",
        logarithm="2",
    ),
    Claim(
        id="warm_up/critical-sharpness",
        entries=("K7",),
        source=f"{CRITICAL}, abstract",
        passage=as_stated(
            "captures well-documented Hessian sharpness phenomena, including progressive sharpening and Edge of "
            "Stability",
            "abstract",
        ),
        statement=r"P\big(|\overline{2 / \eta_c} - 2/\eta| < 0.03 \cdot 2/\eta\big) = 1,\quad "
        r"\eta_c = \min\{\rho : L(\theta - \rho \nabla L) > L(\theta)\}",
        symbols={r"\eta_c": "critical rate", r"\rho": "rate that is tried", r"\theta": "weights"},
        says="At the edge of stability under gradient descent at a constant rate, the critical sharpness is two over "
        "the rate within three hundredths, but for rare networks.",
        experiment=CRITICALLY,
        **NEARLY_ALL,
        score="at the edge",
        along="rate",
        pilot="rates, labels and steps, between too few to be at the edge and rates that lose networks; that a share "
        "is judged: the mean was 0.995 of the edge, but one network of 384 at one seed of five far below",
        rivals={
            "never": lambda _: 0.0,
            "one level for all": lambda p: float(p.rate == 0.3),
            "on half of them": lambda _: 0.5,
        },
        quantity="share of networks with the critical sharpness at the edge",
    ),
)
