"""Karakida, Akaho and Amari (2019): the limit of stable learning rates, training above it, and figure 2."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator

from simulate.monte_carlo import Block, Point
from simulate.training import wide_training
from simulate.wide import fisher_gram
from theory import fisher, learning_rates
from verify.claims.karakida2019 import PAPER
from verify.claims.karakida2019.wide_networks import (
    approach,
    at_each_width,
    exponent,
    lazy_network_of,
    limit,
    network_of,
    power_of_width,
    setting,
    small_network,
    width_by_width,
)
from verify.model import (
    Arrays,
    Claim,
    Experiment,
    Identity,
    Kind,
    NoTheory,
    Tier,
    as_stated,
    out_of_scope,
)
from verify.model.observation import Cost, Observation, columns_of, on_a_gpu

FIGURE_2: dict[str, Any] = {"activation": "relu", "depth": 3, "weight_variance": 3.9, "bias_variance": 0.9}
"""Figure 2 has (4, 1), at which formulas with a wrong power could still be right."""


def student_and_targets(block: Block, point: Point, width: int) -> tuple[Any, Any]:
    """Networks with one output, and what teachers of the same law make of their inputs."""
    student, teacher = (_network(block, point, width, samples) for samples in (point.samples, 1))
    return student, wide_training.taught(student, teacher, point.activation)


def _network(block: Block, point: Point, width: int, samples: int = 0) -> Any:
    return network_of(block, point, width=width, samples=samples, outputs=1)


def drawn_lines(point: Point, width: int) -> dict[bool, float]:
    """The lines of figure 2: without mean subtraction 2 / lambda_max of eq. (10), with it 2 / (rho alpha dk)."""
    known: dict[str, Any] = setting(point, "samples") | {"width": width}
    largest = fisher.eigenvalue_statistics(**known, outputs=1).largest
    spike = fisher.mean_subtracted_largest(**known)
    return {
        less: float(learning_rates.stability_limit(top)) for less, top in ((False, largest), (True, spike))
    }


# --- close to a minimum: C42 ----------------------------------------------------------------------------------

DISPLACEMENT = 1e-7
STEPS = 20


def _contraction(rng: Generator, point: Point) -> Arrays:
    """Factor per step of a small displacement along the top eigenvector, by training and by the formula."""
    import torch

    network, less = small_network(rng, point), {"subtracted": point.subtracted}
    gram = fisher_gram.gram(network, point.activation)
    gram = fisher_gram.centred(gram) if point.subtracted else gram
    classes = network.outputs
    flat = gram[0].transpose(1, 2).reshape(classes * point.samples, -1)
    values, vectors = torch.linalg.eigh(flat)
    top = float(values[-1]) / point.samples
    away = DISPLACEMENT * vectors[:, -1].reshape(classes, point.samples).T
    targets = wide_training.outputs(network, point.activation, **less) + away
    limits = torch.tensor([point.times_limit], dtype=torch.float64)
    run = wide_training.descend(
        network, point.activation, targets, rates=2 * limits / top, steps=STEPS, **less
    )
    growth = (run.final / run.losses[..., 0])[0] ** (1 / (2 * STEPS))
    rate = 2 * np.array(point.times_limit) / top
    largest = float(wide_training.sharpness(network, point.activation, **less))
    return {
        "training": growth.numpy(),
        "formula": learning_rates.heavy_ball_contraction(rate, 0.0, largest=largest, smallest=largest),
        "limit 1 / lambda": np.abs(1 - 2 * rate * top),
        "limit 4 / lambda": np.abs(1 - rate * top / 2),
        "mean eigenvalue": np.abs(1 - rate * float(values.sum()) / point.samples / len(values)),
    }


CONTRACTION = Identity(
    id="karakida2019/contraction",
    entries=("C42",),
    source=f"{PAPER}, eq. (23)",
    passage=as_stated("Under some natural assumptions", "Section 3.4"),
    statement=r"\big(E_n / E_0\big)^{1/2n} = |1 - \eta \lambda_{\max}| \quad "
    r"\text{after a small displacement along } v_{\max} \text{ from zero error: } \eta < 2 / \lambda_{\max}",
    says="Near zero error, each step of gradient descent multiplies a displacement along the sharpest "
    "direction by one minus rate times largest eigenvalue.",
    routes=_contraction,
    points=tuple(
        Point(
            activation=activation,
            widths=widths,
            samples=samples,
            weight_variance=weights,
            bias_variance=biases,
            subtracted=subtracted,
            times_limit=(0.9, 0.97, 1.03, 1.1),
        )
        for activation, widths, samples, weights, biases in (
            ("relu", (40, 30, 35, 1), 25, 3.9, 0.9),
            ("tanh", (30, 45, 40, 3), 17, 2.7, 0.6),
        )
        for subtracted in (False, True)
    ),
    tolerance=1e-5,
    tolerance_reason="the displacement is 1e-7 and grows at most fortyfold; what is not linear is of that order",
    seconds=0.043,
    quantity="factor of a displacement in one step",
)


# --- growing networks at a fixed number of samples: C44 and C46 -------------------------------------------------


@width_by_width
def realised_limits(block: Block, point: Point, width: int) -> Arrays:
    """The realised limit over the one of the Rayleigh quotient, 2 / lambda_max over 2 / (1' K 1 / T^2)."""
    network = lazy_network_of(block, point, width=width, outputs=1)
    gram = fisher_gram.gram(network, point.activation)
    return {"ratio": fisher_gram.rayleigh(gram) / fisher_gram.fisher_eigenvalues(gram)[:, -1]}


@width_by_width
def subtracted_eigenvalues(block: Block, point: Point, width: int) -> Arrays:
    """The largest eigenvalue with mean subtraction."""
    network = lazy_network_of(block, point, width=width, outputs=1)
    gram = fisher_gram.centred(fisher_gram.gram(network, point.activation))
    return {"largest": fisher_gram.fisher_eigenvalues(gram)[:, -1]}


def growth_of_subtracted(block: Block, point: Point) -> Arrays:
    """The power of the width that takes the largest eigenvalue with mean subtraction from one width to the other.

    Gram matrices of a thousand samples in single precision, at half the cost; see `GRAM_ROUNDING`.
    """
    import torch

    def largest(width: int) -> Any:
        network = _network(block, point, width).to(torch.float32)
        return wide_training.sharpness(network, point.activation, subtracted=True)

    narrow, wide = point.widths
    small, large = (largest(width).log() for width in (narrow, wide))
    return {"exponent": (large - small) / np.log(wide / narrow)}


REALISED = at_each_width(
    id="karakida2019/realised-limits",
    simulate=realised_limits,
    points=(Point(widths=(8, 16, 32, 64, 128), networks=(8, 16, 2, 4, 4), samples=12, **FIGURE_2),),
    budget=512,
    seconds=1.3,
)

FIXED_SAMPLES = at_each_width(
    id="karakida2019/fixed-samples",
    simulate=subtracted_eigenvalues,
    points=(
        Point(
            **FIGURE_2 | {"depth": 2}, widths=(16, 32, 64, 128, 256), networks=(24, 16, 8, 2, 4), samples=4
        ),
    ),
    budget=240,
    seconds=1.2,
)

GRAM_ROUNDING = 1e-6
"""Numerical error of that power: at most 1e-7 on 16 networks against double precision."""

THOUSAND_SAMPLES = Experiment(
    id="karakida2019/a-thousand-samples",
    replicate="one network with its inputs at each of the two widths",
    simulate=growth_of_subtracted,
    single="its Gram matrices are in single precision",
    points=(Point(widths=(100, 400), samples=1000, **FIGURE_2),),
    budget=128,
    seconds=7.2,
)


LIMIT_CLAIMS = (
    limit(
        id="karakida2019/line",
        entries=("C44",),
        source=f"{PAPER}, figure 2 left, line of eq. (10) in Rayleigh form",
        passage=as_stated("which was calculated with the FIM at random initialization", "Section 3.4"),
        no_theory=NoTheory.MEASURED,
        statement=r"\lim_{M \to \infty} \mathbb{E}\Big[\tfrac{2}{\lambda_{\max}} \big/ "
        r"\tfrac{2 T^2}{\mathbf 1^\top K \mathbf 1}\Big] = 1 \quad (T \text{ fixed})",
        says="At a fixed number of samples, the limit of stable rates over that of the Rayleigh quotient tends to "
        "one as the width grows.",
        experiment=REALISED,
        score="ratio",
        predict=lambda _: 1.0,
        margin=0.01,
        order=approach(REALISED, "ratio", lambda _: 1.0, 0.2),
        margin_reason="at most 1 %; the ratio itself is 0.7 at M = 8. That the quotient has the mean of eq. (10) is "
        "a claim of its own; the scatter of single networks, 12 to 20 % at M = 50 to 100, is its scatter",
        rivals={"no convergence from M = 8 on": lambda _: 0.7, "none from M = 64 on": lambda _: 0.93},
        quantity="realised limit over that of the Rayleigh quotient",
    ),
    exponent(
        id="karakida2019/subtracted-growth-at-fixed-samples",
        entries=("C25", "C33"),
        source=f"{PAPER}, theorem 3.3, eq. (17), for the largest eigenvalue itself",
        passage=as_stated("The mean subtraction does not change the order of", "Section 3.2"),
        statement=r"\mathbb{E}\,\bar\lambda_{\max} \sim M \quad (T \text{ fixed, mean subtraction})",
        says="With mean subtraction at a fixed number of samples, the largest Fisher eigenvalue itself still grows"
        " like the width.",
        experiment=FIXED_SAMPLES,
        score="largest",
        terms=(0.5,),
        predict=lambda p: power_of_width(
            p, lambda width: fisher.mean_subtracted_largest(**setting(p, "samples"), width=width)
        ),
        margin=0.2,
        rivals={"of the upper bound": lambda _: 0.5, "as for T = O(M)": lambda _: 0.0},
        quantity="largest eigenvalue after mean subtraction",
    ),
    Claim(
        id="karakida2019/limit-at-a-thousand-samples",
        entries=("C46",),
        source=f"{PAPER}, section 3.4 and figure 2 right, for 2 / lambda_max",
        passage=as_stated("they are independent of width", "Section 3.4"),
        no_theory=NoTheory.CONSTANT,
        statement=r"\mathbb{E} \ln \frac{\bar\lambda_{\max}(M = 400)}{\bar\lambda_{\max}(M = 100)} \Big/ \ln 4 = 0 "
        r"\quad (T = 1000,\ \text{mean subtraction})",
        says="With mean subtraction of a thousand samples, the largest Fisher eigenvalue is nearer to constant "
        "than to growing like the root of the width.",
        experiment=THOUSAND_SAMPLES,
        score="exponent",
        predict=lambda _: 0.0,
        margin=0.24,
        numerical=GRAM_ROUNDING,
        relative=False,
        margin_reason="the exponents at issue are 0, 1/2 and 1: less than half the way to the nearest, as for figure 1",
        rivals={"of the upper bound": lambda _: 0.5, "without mean subtraction": lambda _: 1.0},
        quantity="growth of the largest eigenvalue with the width, as a power",
    ),
)

# --- above the limits: C43 and C45 ------------------------------------------------------------------------------


def above_the_limit(block: Block, point: Point) -> Arrays:
    """Training above 2 / lambda_max without mean subtraction: whether the loss comes back."""
    return {"recovered": _recovered(block, point, point.times_limit)}


def with_subtraction(block: Block, point: Point) -> Arrays:
    """Whether the loss comes back in training with mean subtraction, at one rate."""
    return {"recovered": _recovered(block, point, (point.times_limit,), subtracted=True)[:, 0]}


def _recovered(block: Block, point: Point, times: tuple[float, ...], **how: Any) -> Any:
    run, *_ = _descents(block, point, point.width, times, **how)
    return (run.final < run.losses[..., 0]).double()


def _descents(
    block: Block, point: Point, width: int, times: tuple[float, ...], **how: Any
) -> tuple[Any, ...]:
    """Training at multiples of the realised limits, these limits, and the networks with what they are to learn."""
    student, targets = student_and_targets(block, point, width)
    limits = 2 / wide_training.sharpness(student, point.activation, **how)
    rates = limits[:, None] * limits.new_tensor(times)
    run = wide_training.descend(student, point.activation, targets, rates=rates, steps=point.steps, **how)
    return run, limits, student, targets


ABOVE = Experiment(
    id="karakida2019/above-the-limit",
    replicate="one network with its inputs and the labels of a teacher",
    simulate=above_the_limit,
    points=(Point(width=30, samples=50, steps=60, times_limit=(1.2, 1.7, 2.9), **FIGURE_2),),
    budget=512,
    seconds=1.1,
)

# `of_line`: of a rate that is not tried any more; points keep their names, which their draws have
SUBTRACTED = Experiment(
    id="karakida2019/with-subtraction",
    replicate=ABOVE.replicate,
    simulate=with_subtraction,
    points=(Point(width=24, samples=240, steps=40, of_line=0.85, times_limit=1.6, **FIGURE_2),),
    budget=512,
    seconds=1.3,
)

_recovers = partial(
    Claim,
    no_theory=NoTheory.CONSTANT,
    kind=Kind.PROPORTION,
    score="recovered",
    predict=lambda _: 1.0,
    margin=0.1,
    relative=False,
    margin_reason="ten in a hundred; the readings at issue are always and never",
    quantity="share of networks whose loss ends below its start",
)

CLAIMS = (
    CONTRACTION,
    *LIMIT_CLAIMS,
    _recovers(
        id="karakida2019/recovery-above-the-limit",
        entries=("C43",),
        source=f"{PAPER}, section 3.4 and figure 2 left, for narrow networks and few steps",
        passage=out_of_scope(
            "Training above the red line exploded in sufficiently widen DNNs", "Section 3.4"
        ),
        statement=r"P\big(E_{60} < E_0\big) = 1 \quad \text{at } \eta = c \cdot 2 / \lambda_{\max},"
        r"\ c = 1.2, 1.7, 2.9,\ M = 30,\ T = 50",
        says="Narrow networks, outside the paper's condition, recover from rates above the limit: within a few "
        "dozen steps their loss falls below its start.",
        experiment=ABOVE,
        along="times_limit",
        axis="times_limit",
        printed=lambda _: 0.0,
        reads=r"\text{training exploded at } \eta > 2 / \lambda_{\max} \text{ in sufficiently wide networks}",
        finding="Narrow networks recover above the limit of stable rates: their loss grows first, then falls below "
        "its start. Wide networks explode there in figure 2. By then the network is where the largest eigenvalue is "
        "smaller.",
        rivals={"half of the networks": lambda _: 0.5},
    ),
    _recovers(
        id="karakida2019/recovery-with-subtraction",
        entries=("C45",),
        source=f"{PAPER}, section 3.4 and figure 2 right",
        passage=as_stated("it allows larger learning rates for convergence", "Section 3.4"),
        statement=r"P\big(E_{40} < E_0\big) = 1 \quad \text{at } "
        r"\eta = 1.6 \cdot 2 / \bar\lambda_{\max} > 2 / \lambda_{\max}, M = 24, T = 240, \text{mean subtraction}",
        says="With mean subtraction, training ends below its first loss even above the limit of stable rates.",
        experiment=SUBTRACTED,
        rivals={"never above 2 / lambda_max": lambda _: 0.0, "half of the networks": lambda _: 0.5},
    ),
)

# --- figure 2 ---------------------------------------------------------------------------------------------------

TRIED = (0.9, 1.5, 3.0, 6.0)

SEARCHED = (0.5, 64.0)
"""Learning rates over the realised limit: those of the table, and where explosions are looked for."""

GRAY = 1000.0
"""Losses beyond it are the gray area of the figure."""


@width_by_width
def figure_2(block: Block, point: Point, width: int) -> Arrays:
    """Realised limit, drawn line, rate where explosions begin, and how training ends."""
    how: dict[str, Any] = {"subtracted": point.subtracted}
    run, limits, student, targets = _descents(block, point, width, TRIED, **how)
    lower, upper = (limits * times for times in SEARCHED)
    how |= {"lower": lower, "upper": upper, "steps": point.searched, "halvings": 6}
    critical = wide_training.critical_rates(student, point.activation, targets, **how).lower
    first, line = run.losses[..., 0], drawn_lines(point, width)[point.subtracted]
    below = (run.final < first).double()
    return {
        "limit": limits,
        "line": line / limits,
        "critical": critical / limits,
        "line_over_critical": line / critical,
        "growth": (run.peak / first)[:, 1].log10(),
        "gray_on_the_way": (run.peak > GRAY)[:, 2].double(),
        "gray_at_the_end": (run.final > GRAY)[:, 2].double(),
        **{f"below_{i}": below[:, i] for i in range(len(TRIED))},
    }


COLUMNS = columns_of(
    {
        "limit": "realised limit, 2 / lambda_max at the start",
        "line": "drawn line over the realised limit",
        "critical": "rate where explosions begin, over the realised limit",
        "line_over_critical": "drawn line over the rate where explosions begin",
        "growth": f"decades the loss grows on the way at {TRIED[1]:g} times the limit",
        **{
            f"gray_{when}": f"share whose loss exceeds {GRAY:g} {text} at {TRIED[2]:g} times the limit"
            for when, text in (("on_the_way", "on the way"), ("at_the_end", "at the end"))
        },
        **{
            f"below_{i}": f"share whose loss ends below its start at {times:g} times the limit"
            for i, times in enumerate(TRIED)
        },
    },
    "line",
)

VARIANCES = {"weight_variance": 4.0, "bias_variance": 1.0}
"""Variances of the figure. They may hide a wrong power, as nothing is judged here."""

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

FIGURES = tuple(
    Observation(
        id=name,
        entries=("C43", "C44", "C45", "C46"),
        source=f"{PAPER}, section 3.4, figure 2",
        title=title,
        note=NOTE,
        replicate="one network with its inputs and the labels of a teacher at each width",
        simulate=figure_2,
        points=tuple(Point(**FIGURE_2 | size, subtracted=subtracted) for subtracted in (False, True)),
        along="widths",
        columns=COLUMNS,
        replicates=replicates,
        seconds=seconds,
        tier=tier,
        axis="width M",
    )
    for name, title, size, replicates, seconds, tier in (
        (
            "karakida2019/figure-2",
            "Learning rates of networks of growing width, drawn and realised",
            {"widths": (16, 32, 64), "samples": 256, "steps": 60, "searched": 30},
            2,
            1.6,
            Tier.DEFAULT,
        ),
        (
            "karakida2019/figure-2-wide",
            "The same with the variances, samples and steps of the paper",
            {"widths": (50, 100, 200), "samples": 1000, "steps": 1000, "searched": 100} | VARIANCES,
            3,
            120.0,
            Tier.FULL,
        ),
    )
)


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

OBSERVATIONS = (
    *FIGURES,
    on_a_gpu(
        FIGURES[1],
        points=tuple(point | {"widths": (1000,)} for point in FIGURES[1].points),
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
