"""Karakida, Akaho and Amari (2019): training above the limit of stable learning rates, and figure 2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from simulate.monte_carlo import Block, Point
from simulate.training import wide_training
from verify.claims.karakida2019 import PAPER
from verify.claims.karakida2019.training.training import FIGURE_2, drawn_lines, student_and_targets
from verify.model import AnyClaim, Claim, Experiment, Kind, NoTheory, Passage, Standing, Tier
from verify.model.observation import Column, Cost, Observation, on_a_gpu

__all__ = ["CLAIMS", "OBSERVATIONS"]

# --- above the limits: C43 and C45 ------------------------------------------------------------------------------


def above_the_limit(block: Block, point: Point) -> Mapping[str, Any]:
    """Training above 2 / lambda_max without mean subtraction: whether the loss comes back."""
    import torch

    student, targets = student_and_targets(block, point, point.width)
    limits = 2 / wide_training.sharpness(student, point.activation)
    rates = limits[:, None] * torch.tensor(point.times_limit, dtype=limits.dtype, device=limits.device)
    run = wide_training.descend(student, point.activation, targets, rates=rates, steps=point.steps)
    return {"recovered": (run.final < run.losses[..., 0]).double()}


ABOVE = Experiment(
    id="karakida2019/above-the-limit",
    replicate="one network with its inputs and the labels of a teacher",
    simulate=above_the_limit,
    points=(Point(width=30, samples=50, steps=60, times_limit=(1.2, 1.7, 2.9), **FIGURE_2),),
    budget=512,
    seconds=1.1,
)


def with_subtraction(block: Block, point: Point) -> Mapping[str, Any]:
    """Training with mean subtraction above 2 / lambda_max: whether the loss comes back."""
    student, targets = student_and_targets(block, point, point.width)
    limits = 2 / wide_training.sharpness(student, point.activation, subtracted=True)
    run = wide_training.descend(
        student,
        point.activation,
        targets,
        rates=point.times_limit * limits[:, None],
        steps=point.steps,
        subtracted=True,
    )
    return {"recovered": (run.final < run.losses[..., 0]).double()[:, 0]}


# `of_line`: of a rate that is not tried any more; points keep their names, which their draws have
SUBTRACTED = Experiment(
    id="karakida2019/with-subtraction",
    replicate="one network with its inputs and the labels of a teacher",
    simulate=with_subtraction,
    points=(Point(width=24, samples=240, steps=40, of_line=0.85, times_limit=1.6, **FIGURE_2),),
    budget=512,
    seconds=1.3,
)

EVENTS = "ten in a hundred; the readings at issue are always and never"

CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="karakida2019/recovery-above-the-limit",
        entries=("C43",),
        source=f"{PAPER}, section 3.4 and figure 2 left, for narrow networks and few steps",
        passage=Passage(
            Standing.OUTSIDE, "Training above the red line exploded in sufficiently widen DNNs", "Section 3.4"
        ),
        no_theory=NoTheory.CONSTANT,
        statement=r"P\big(E_{60} < E_0\big) = 1 \quad \text{at } \eta = c \cdot 2 / \lambda_{\max},"
        r"\ c = 1.2, 1.7, 2.9,\ M = 30,\ T = 50",
        says="Narrow networks, outside the paper's condition, recover from learning rates above the limit "
        "of stable ones: within a few dozen steps their loss falls below its start.",
        experiment=ABOVE,
        kind=Kind.PROPORTION,
        score="recovered",
        along="times_limit",
        axis="times_limit",
        predict=lambda _: 1.0,
        printed=lambda _: 0.0,
        reads=r"\text{training exploded at } \eta > 2 / \lambda_{\max} \text{ in sufficiently wide networks}",
        finding="Outside wide networks, for which figure 2 shows explosions, the loss grows above the limit of stable "
        "learning rates until the network has left for a place where the largest eigenvalue is smaller; then it falls "
        "below where it began.",
        margin=0.1,
        relative=False,
        margin_reason=EVENTS,
        rivals={"half of the networks": lambda _: 0.5},
        quantity="share of networks whose loss ends below its start",
    ),
    Claim(
        id="karakida2019/recovery-with-subtraction",
        entries=("C45",),
        source=f"{PAPER}, section 3.4 and figure 2 right",
        passage=Passage(Standing.AS_STATED, "it allows larger learning rates for convergence", "Section 3.4"),
        no_theory=NoTheory.CONSTANT,
        statement=r"P\big(E_{40} < E_0\big) = 1 \quad \text{at } "
        r"\eta = 1.6 \cdot 2 / \bar\lambda_{\max} > 2 / \lambda_{\max}, M = 24, T = 240, \text{mean subtraction}",
        says="With mean subtraction, training ends below its first loss even at a learning rate above the "
        "limit of stable ones, hence above the limit without subtraction.",
        experiment=SUBTRACTED,
        kind=Kind.PROPORTION,
        score="recovered",
        predict=lambda _: 1.0,
        margin=0.1,
        relative=False,
        margin_reason=EVENTS,
        rivals={"never above 2 / lambda_max": lambda _: 0.0, "half of the networks": lambda _: 0.5},
        quantity="share of networks whose loss ends below its start",
    ),
)

# --- figure 2 ---------------------------------------------------------------------------------------------------

TRIED = (0.9, 1.5, 3.0, 6.0)
SEARCHED = (0.5, 64.0)
"""Learning rates over the realised limit: those of the table, and where explosions are looked for."""

GRAY = 1000.0
"""Losses beyond it are the gray area of the figure."""


def figure_2(block: Block, point: Point) -> Mapping[str, Any]:
    """At each width: the realised limit, the drawn line, the rate where explosions begin, and how training ends."""
    columns = [_figure_2(block, point, width) for width in point.widths]
    return {name: np.stack([column[name] for column in columns], axis=1) for name in columns[0]}


def _figure_2(block: Block, point: Point, width: int) -> dict[str, Any]:
    import torch

    student, targets = student_and_targets(block, point, width)
    how: dict[str, Any] = {"subtracted": point.subtracted}
    limits = 2 / wide_training.sharpness(student, point.activation, subtracted=point.subtracted)
    rates = limits[:, None] * torch.tensor(TRIED, dtype=limits.dtype, device=limits.device)
    run = wide_training.descend(student, point.activation, targets, rates=rates, steps=point.steps, **how)
    lowest, highest = (limits * times for times in SEARCHED)
    critical = wide_training.critical_rates(
        student,
        point.activation,
        targets,
        lower=lowest,
        upper=highest,
        steps=point.searched,
        halvings=6,
        **how,
    ).lower.cpu()
    first, limits = run.losses[..., 0], limits.cpu()
    line = drawn_lines(point, width)[point.subtracted]
    below = (run.final < first).double().cpu().numpy()
    return {
        "limit": limits.numpy(),
        "line": (line / limits).numpy(),
        "critical": (critical / limits).numpy(),
        "line_over_critical": (line / critical).numpy(),
        "growth": (run.peak / first)[:, 1].log10().cpu().numpy(),
        "gray_on_the_way": (run.peak > GRAY)[:, 2].double().cpu().numpy(),
        "gray_at_the_end": (run.final > GRAY)[:, 2].double().cpu().numpy(),
        **{f"below_{i}": below[:, i] for i in range(len(TRIED))},
    }


COLUMNS = (
    Column(score="limit", heading="realised limit, 2 / lambda_max at the start"),
    Column(score="line", heading="drawn line over the realised limit", ratio=True),
    Column(score="critical", heading="rate where explosions begin, over the realised limit"),
    Column(score="line_over_critical", heading="drawn line over the rate where explosions begin"),
    Column(score="growth", heading=f"decades the loss grows on the way at {TRIED[1]:g} times the limit"),
    *(
        Column(
            score=f"gray_{when}",
            heading=f"share whose loss exceeds {GRAY:g} {text} at {TRIED[2]:g} times the limit",
        )
        for when, text in (("on_the_way", "on the way"), ("at_the_end", "at the end"))
    ),
    *(
        Column(
            score=f"below_{i}", heading=f"share whose loss ends below its start at {times:g} times the limit"
        )
        for i, times in enumerate(TRIED)
    ),
)

VARIANCES = {"weight_variance": 4.0, "bias_variance": 1.0}
"""Of the figure: nothing is judged here, so they may hide a wrong power."""

NOTE = (
    "relu networks of three layers and one output, labels of a teacher of the same law; as many samples at every "
    "width. The figure is of sufficiently wide networks, a thousand samples and a thousand steps, and calls a loss "
    "beyond 1000 exploded; its widths are not in our copy. Without mean subtraction the line of eq. (10) is the "
    "realised limit up to the scatter of single networks. At the widths here the loss grows above it, the largest "
    "eigenvalue falls, and training goes on; runs overflow some ten to sixty times further up (the search ends at 64). "
    "With mean subtraction "
    "explosions are sharp, two and a half to five times above the realised limit. The line 2 / (rho alpha (kappa1 - "
    "kappa2)), which the paper draws from its lower bound of the largest eigenvalue, lies above them, as such a line "
    "may: it falls like 1 / M, while the realised limit hardly moves until M comes near T. Explosions are overflows "
    "here, except in the two columns on losses beyond 1000."
)

FIGURES: tuple[Observation, ...] = tuple(
    Observation(
        id=name,
        entries=("C43", "C44", "C45", "C46"),
        source=f"{PAPER}, section 3.4, figure 2",
        title=title,
        note=NOTE,
        replicate="one network with its inputs and the labels of a teacher at each width",
        simulate=figure_2,
        points=tuple(
            Point(**FIGURE_2 | size, subtracted=subtracted)
            for subtracted in (False, True)
        ),
        along="widths",
        columns=COLUMNS,
        replicates=replicates,
        seconds=seconds,
        tier=tier,
        axis="width M",
    )
    for name, title, size, replicates, seconds, tier in (
        (
            "karakida2019/figure-2", "Learning rates of networks of growing width, drawn and realised",
            {"widths": (16, 32, 64), "samples": 256, "steps": 60, "searched": 60},
            2, 1.6, Tier.DEFAULT,
        ),
        (
            "karakida2019/figure-2-wide", "The same with the variances, samples and steps of the paper",
            {"widths": (50, 100, 200), "samples": 1000, "steps": 1000, "searched": 100} | VARIANCES,
            3, 120.0, Tier.FULL,
        ),
    )
)  # fmt: skip


def cost_of_figure(point: Point) -> Cost:
    """A step takes six operations for every sample and weight, in double precision; the table has steps at all rates.

    A search takes a run at its upper end and one for each halving. Widths come one after the other.
    """
    samples, layers = point.samples, point.depth - 1
    runs = len(TRIED) * point.steps + SEARCHES * point.searched
    widest = max(point.widths)
    copies = 4 * len(TRIED) * (layers * widest**2 + 2 * point.depth * widest * samples)
    products = sum(
        6 * runs * samples * layers * width**2 + 2 * point.depth * samples**2 * width
        for width in point.widths
    )
    launches = 80 * len(point.widths) * (point.steps + SEARCHES * point.searched)
    return Cost(8 * (copies + 3 * samples**2), products, launches)


SEARCHES = 8
"""Runs in which explosions are looked for."""

OBSERVATIONS: tuple[Observation, ...] = (
    *FIGURES,
    on_a_gpu(
        FIGURES[1],
        points=tuple(
            Point(
                **FIGURE_2 | VARIANCES,
                widths=(1000,),
                samples=1000,
                steps=1000,
                searched=100,
                subtracted=subtracted,
            )
            for subtracted in (False, True)
        ),
        cost=cost_of_figure,
        replicates=3,
        note="The figure up to its own width, a thousand units, with as many samples and steps (drawn on an H200: ten "
        "networks of up to 400 units, three of 1000). Without subtraction the drawn line is at the realised "
        "limit, 2 over the largest eigenvalue, within 20 % at 400 units and 1 % at 1000. Above it the loss grows,"
        " the more the wider (4, 7, 10, 27 and 60 times at 1.5 times the limit; past 1000 at 3 times in none, "
        "one, nine of ten and all), and comes back: all runs at 0.9 to 6 times the limit end below their start, "
        "and explosions that last begin at 12 times or further up, in single networks not before the search ends "
        "at 59. With subtraction they begin at 2.7 to 4.9 times the realised limit, and the drawn line lies 13, "
        "7, 4.1, 2.3 and 1.3 times above them.",
    ),
)
