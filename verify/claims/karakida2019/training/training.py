"""Karakida, Akaho and Amari (2019): the limit of stable learning rates, and the lines of figure 2."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from simulate.monte_carlo import Block, Point
from simulate.training import wide_training
from simulate.wide import fisher_gram, signals
from theory import fisher, learning_rates
from verify.claims.karakida2019 import PAPER
from verify.claims.karakida2019.last_layer.subtraction import growth_of_mean
from verify.claims.karakida2019.wide_networks import mean_over_networks
from verify.model import (
    OURS,
    AnyClaim,
    Claim,
    ExactProperty,
    Experiment,
    Identity,
    Kind,
    NoTheory,
    Passage,
    Standing,
)
from verify.model.domains import Between, Domain, Many, OneOf

__all__ = ["CLAIMS", "FIGURE_2", "drawn_lines", "student_and_targets"]

FIGURE_2 = {"activation": "relu", "depth": 3, "weight_variance": 3.9, "bias_variance": 0.9}
"""Figure 2 has (4, 1), at which formulas with a wrong power could still be right."""


def student_and_targets(block: Block, point: Mapping[str, Any], width: int) -> tuple[Any, Any]:
    """Networks with one output, and what teachers of the same law make of their inputs."""
    student = _network(block, point, width, point["samples"])
    teacher = _network(block, point, width, 1)
    return student, wide_training.taught(student, teacher, point["activation"])


def _network(block: Block, point: Mapping[str, Any], width: int, samples: int) -> Any:
    return signals.wide_network(
        block,
        widths=(width,) * point["depth"] + (1,),
        samples=samples,
        weight_variance=point["weight_variance"],
        bias_variance=point["bias_variance"],
    )


def drawn_lines(point: Mapping[str, Any], width: int) -> dict[bool, float]:
    """The lines of figure 2: without mean subtraction 2 / lambda_max of eq. (10), with it 2 / (rho alpha dk)."""
    law = {name: point[name] for name in ("depth", "weight_variance", "bias_variance")}
    size = {"width": width, "samples": point["samples"]}
    largest = fisher.eigenvalue_statistics(point["activation"], **law, **size, outputs=1).largest
    spike = fisher.mean_subtracted_largest(point["activation"], **law, **size)
    return {
        False: float(learning_rates.stability_limit(largest)),
        True: float(learning_rates.stability_limit(spike)),
    }


# --- close to a minimum: C42 ----------------------------------------------------------------------------------

DISPLACEMENT = 1e-7
STEPS = 20


def _contraction(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Factor per step of a small displacement along the top eigenvector, by training and by the formula."""
    import torch

    network = signals.wide_network(
        Block((rng,)),
        widths=point.widths,
        samples=point.samples,
        weight_variance=point.weight_variance,
        bias_variance=point.bias_variance,
    )
    gram = fisher_gram.gram(network, point.activation)
    gram = fisher_gram.centred(gram) if point.subtracted else gram
    classes = network.outputs
    flat = gram[0].transpose(1, 2).reshape(classes * point.samples, -1)
    values, vectors = torch.linalg.eigh(flat)
    top = float(values[-1]) / point.samples
    away = DISPLACEMENT * vectors[:, -1].reshape(classes, point.samples).T
    targets = wide_training.outputs(network, point.activation, subtracted=point.subtracted) + away
    limits = torch.tensor([point.times_limit], dtype=torch.float64)
    run = wide_training.descend(
        network, point.activation, targets, rates=2 * limits / top, steps=STEPS, subtracted=point.subtracted
    )
    growth = (run.final / run.losses[..., 0])[0] ** (1 / (2 * STEPS))
    rate = 2 * np.array(point.times_limit) / top
    largest = float(wide_training.sharpness(network, point.activation, subtracted=point.subtracted))
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
    passage=Passage(Standing.AS_STATED, "Under some natural assumptions", "Section 3.4"),
    statement=r"\big(E_n / E_0\big)^{1/2n} = |1 - \eta \lambda_{\max}| \quad "
    r"\text{after a small displacement along } v_{\max} \text{ from zero error: } \eta < 2 / \lambda_{\max}",
    says="Near a minimum of zero error, each step of gradient descent multiplies a displacement along the "
    "sharpest direction by one minus the learning rate times the largest eigenvalue.",
    routes=_contraction,
    points=tuple(
        Point(
            activation=activation, widths=widths, samples=samples, weight_variance=weights, bias_variance=biases,
            subtracted=subtracted, times_limit=(0.9, 0.97, 1.03, 1.1),
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
)  # fmt: skip

# --- with and without mean subtraction: C45 --------------------------------------------------------------------


ARCHITECTURES: Domain = {
    "activation": OneOf("relu", "tanh", "erf", "linear", "sigmoid", "softplus", "gelu"),
    "widths": Many(Between(1, 7), 2, 5),
    "samples": Between(1, 6),
    "weight_variance": Between(0.1, 4.0),
    "bias_variance": Between(0.0, 2.0),
}


def _spectra(rng: np.random.Generator, point: Point) -> tuple[Any, Any, float]:
    """Eigenvalues without and with mean subtraction, descending, and the Rayleigh quotient at equal weights."""
    network = signals.wide_network(
        Block((rng,)),
        widths=point.widths,
        samples=point.samples,
        weight_variance=point.weight_variance,
        bias_variance=point.bias_variance,
    )
    gram = fisher_gram.gram(network, point.activation)
    plain, less = (
        fisher_gram.fisher_eigenvalues(g)[0].numpy()[::-1] for g in (gram, fisher_gram.centred(gram))
    )
    return plain, less, float(fisher_gram.rayleigh(gram)[0])


def _line_excess(rng: np.random.Generator, point: Point) -> float:
    """By how much the Rayleigh quotient exceeds the largest eigenvalue, relative to it."""
    plain, _, quotient = _spectra(rng, point)
    return float(max(quotient - plain[0], 0.0) / plain[0])


def _sum_excess(rng: np.random.Generator, point: Point) -> float:
    """The same for the trace over C, which counts every direction."""
    plain, _, _ = _spectra(rng, point)
    return float(max(plain.sum() / point.widths[-1] - plain[0], 0.0) / plain[0])


EXAMPLES = (
    Point(activation="tanh", widths=(4, 6, 5, 3), samples=5, weight_variance=1.7, bias_variance=0.3),
    Point(activation="relu", widths=(5, 7, 1), samples=4, weight_variance=2.1, bias_variance=0.4),
)


def subtracted_pairs(block: Block, point: Point) -> Mapping[str, Any]:
    """The largest eigenvalue on two samples, and what mean subtraction takes off it."""
    network = _network(block, point, point.width, point.samples)
    plain, less = (
        wide_training.sharpness(network, point.activation, subtracted=subtracted)
        for subtracted in (False, True)
    )
    return {"plain": plain, "taken": plain - less}


PAIRS = Experiment(
    id="karakida2019/subtracted-pairs",
    replicate="one network with two inputs",
    simulate=subtracted_pairs,
    points=tuple(
        Point(activation=name, depth=3, width=300, samples=2, weight_variance=weights, bias_variance=biases)
        for name, weights, biases in (("relu", 3.9, 0.9), ("tanh", 1.7, 0.9), ("softplus", 1.7, 0.3))
    ),
    budget=2048,
    seconds=0.1,
    special="two samples: what mean subtraction leaves has one eigenvalue, whose mean is that of the trace",
)


def _taken(p: Point, *, left: float = 1.0, samples: int = 0) -> float:
    """Share of the largest eigenvalue that mean subtraction takes."""
    law = {
        **{name: p[name] for name in ("activation", "depth", "weight_variance", "bias_variance", "width")},
        "samples": samples or p.samples,
        "outputs": 1,
        "finite_width": True,
    }
    parameters = fisher.parameter_count(depth=p.depth, width=p.width, outputs=1)
    trace = fisher.mean_subtracted_statistics(**law).mean * parameters
    return 1 - left * trace / fisher.eigenvalue_statistics(**law).largest


SUBTRACTION = Claim(
    id="karakida2019/subtraction-never-sharpens",
    entries=("C45",),
    source=f"ours, beside {PAPER}, section 3.4: mean subtraction allows larger learning rates",
    passage=Passage(Standing.OURS, "it allows larger learning rates for convergence", "Section 3.4"),
    statement=r"\frac{\mathbb{E}[\lambda_{\max} - \bar\lambda_{\max}]}{\mathbb{E}\,\lambda_{\max}} = "
    r"1 - \frac{\kappa_1 - \kappa_2}{\kappa_1 + \kappa_2} > 0 \quad (T = 2, \text{ biases counted})",
    says="On two samples, mean subtraction takes a derived share off the largest Fisher eigenvalue of a wide "
    "network, so it raises the limit of stable learning rates.",
    experiment=PAIRS,
    kind=Kind.RATIO,
    score=("taken", "plain"),
    predict=_taken,
    margin=0.02,
    relative=False,
    margin_reason="2 % of the eigenvalue; the bias is O(1/M), below 0.8 % at M = 300",
    rivals={
        "nothing taken": lambda _: 0.0,
        "all of it taken": lambda _: 1.0,
        "half of the rest": lambda p: _taken(p, left=0.5),
        "of three samples": lambda p: _taken(p, samples=3),
        "1 for 1 - 1/T": lambda p: _taken(p, left=2.0),
    },
    quantity="share of the largest eigenvalue that mean subtraction takes",
)

UNDER_LINE = ExactProperty(
    id="karakida2019/limit-under-rayleigh",
    entries=("C44",),
    source=f"ours, beside {PAPER}, figure 2 left, line of eq. (10) in Rayleigh form",
    passage=OURS,
    no_theory=NoTheory.MEASURED,
    statement=r"2 / \lambda_{\max} \le 2 T^2 \big/ \tfrac1C \sum_k \mathbf 1^\top K_{kk} \mathbf 1",
    says="In every network, the limit of stable learning rates never exceeds the one computed from the "
    "Fisher matrix's Rayleigh quotient at equal weights.",
    domain=ARCHITECTURES,
    violation=_line_excess,
    examples=EXAMPLES,
    tolerance=1e-12,
    tolerance_reason="an exact inequality in float64: a quotient never exceeds the largest eigenvalue",
    rivals={"trace over C": _sum_excess},
    seconds=0.01,
)

# --- growing networks at a fixed number of samples: C44 and C46 -------------------------------------------------


def realised_limits(block: Block, point: Point) -> Mapping[str, Any]:
    """The realised limit over the one of the Rayleigh quotient, 2 / lambda_max over 2 / (1' K 1 / T^2)."""

    def ratio(block: Block, width: int) -> Any:
        gram = fisher_gram.gram(_network(block, point, width, point.samples), point.activation)
        return fisher_gram.rayleigh(gram) / fisher_gram.fisher_eigenvalues(gram)[:, -1]

    return {"ratio": _over_networks(block, point, ratio)}


def subtracted_eigenvalues(block: Block, point: Point) -> Mapping[str, Any]:
    """The largest eigenvalue with mean subtraction."""
    return {"largest": _over_networks(block, point, partial(_subtracted, point=point))}


def _subtracted(block: Block, width: int, point: Point) -> Any:
    network = _network(block, point, width, point.samples)
    return wide_training.sharpness(network, point.activation, subtracted=True)


def growth_of_subtracted(block: Block, point: Point) -> Mapping[str, Any]:
    """The power of the width that takes the largest eigenvalue with mean subtraction from one width to the other.

    Gram matrices of a thousand samples in single precision, half as dear; see `GRAM_ROUNDING`.
    """
    import torch

    def largest(width: int) -> Any:
        network = _network(block, point, width, point.samples).to(torch.float32)
        return wide_training.sharpness(network, point.activation, subtracted=True)

    narrow, wide = point.widths
    small, large = (largest(width).log() for width in (narrow, wide))
    return {"exponent": (large - small) / np.log(wide / narrow)}


def _over_networks(block: Block, point: Point, score: Callable[[Block, int], Any]) -> Any:
    """A score at every width, (n, widths): the mean over its networks."""
    import torch

    sizes = zip(point.widths, point.networks, strict=True)
    found = [mean_over_networks(block, count, lambda part, w=width: score(part, w)) for width, count in sizes]
    return torch.stack(found, dim=1)


REALISED = Experiment(
    id="karakida2019/realised-limits",
    replicate="one network with its inputs at each width, several at the small ones",
    simulate=realised_limits,
    points=(Point(widths=(8, 16, 32, 64, 128), networks=(4, 8, 2, 1, 1), samples=12, **FIGURE_2),),
    budget=1280,
    seconds=1.3,
)

FIXED_SAMPLES = Experiment(
    id="karakida2019/fixed-samples",
    replicate=REALISED.replicate,
    simulate=subtracted_eigenvalues,
    points=(
        Point(**{**FIGURE_2, "depth": 2}, widths=(16, 32, 64, 128, 256), networks=(6, 4, 2, 1, 1), samples=4),
    ),
    budget=768,
    seconds=1.2,
)

GRAM_ROUNDING = 1e-6
"""Of that power: on 16 networks it was at most 1e-7 from the one in double precision."""

THOUSAND_SAMPLES = Experiment(
    id="karakida2019/a-thousand-samples",
    replicate="one network with its inputs at each of the two widths",
    simulate=growth_of_subtracted,
    single="its Gram matrices are in single precision",
    points=(Point(widths=(100, 400), samples=1000, **FIGURE_2),),
    budget=128,
    seconds=7.2,
)

LINE_ORDER = Claim(
    id="karakida2019/line-order",
    entries=("C44",),
    source=f"ours, beside figure 2 of {PAPER}",
    passage=OURS,
    no_theory=NoTheory.CONSTANT,
    statement=r"1 - \mathbb{E}\Big[\tfrac{2}{\lambda_{\max}} \big/ "
    r"\tfrac{2 T^2}{\mathbf 1^\top K \mathbf 1}\Big] \sim M^{-1} \quad (T \text{ fixed})",
    says="At a fixed number of samples, the limit of stable learning rates approaches that of the Rayleigh "
    "quotient like one over the width.",
    experiment=REALISED,
    kind=Kind.EXPONENT,
    score="ratio",
    along="widths",
    terms=(1,),
    offset=lambda _: 1.0,
    predict=lambda _: -1.0,
    margin=0.2,
    relative=False,
    margin_reason="the orders at issue are 1/2, 1 and 2: less than half the way to the nearest",
    rivals={"as for several outputs": lambda _: -0.5, "square": lambda _: -2.0},
    quantity="realised limit over that of the Rayleigh quotient, from 1",
)

LIMIT_CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="karakida2019/line",
        entries=("C44",),
        source=f"{PAPER}, figure 2 left, line of eq. (10) in Rayleigh form",
        passage=Passage(
            Standing.AS_STATED, "which was calculated with the FIM at random initialization", "Section 3.4"
        ),
        no_theory=NoTheory.MEASURED,
        statement=r"\lim_{M \to \infty} \mathbb{E}\Big[\tfrac{2}{\lambda_{\max}} \big/ "
        r"\tfrac{2 T^2}{\mathbf 1^\top K \mathbf 1}\Big] = 1 \quad (T \text{ fixed})",
        says="At a fixed number of samples, the limit of stable learning rates over that of the Rayleigh "
        "quotient tends to one as the width grows.",
        experiment=REALISED,
        kind=Kind.LIMIT,
        score="ratio",
        along="widths",
        terms=(1, 2),
        predict=lambda _: 1.0,
        margin=0.01,
        order=LINE_ORDER,
        margin_reason="at most 1 %; the ratio itself is 0.7 at M = 8. That the quotient has the mean of eq. (10) is "
        "a claim of its own; the scatter of single networks, 12 to 20 % at M = 50 to 100, is its scatter",
        rivals={"no convergence from M = 8 on": lambda _: 0.7, "none from M = 64 on": lambda _: 0.93},
        quantity="realised limit over that of the Rayleigh quotient",
    ),
    LINE_ORDER,
    Claim(
        id="karakida2019/subtracted-growth-at-fixed-samples",
        entries=("C25", "C33"),
        source=f"{PAPER}, theorem 3.3, eq. (17), for the largest eigenvalue itself",
        passage=Passage(
            Standing.AS_STATED, "The mean subtraction does not change the order of", "Section 3.2"
        ),
        statement=r"\mathbb{E}\,\bar\lambda_{\max} \sim M \quad (T \text{ fixed, mean subtraction})",
        says="With mean subtraction at a fixed number of samples, the largest Fisher eigenvalue itself "
        "still grows in proportion to the width.",
        experiment=FIXED_SAMPLES,
        kind=Kind.EXPONENT,
        score="largest",
        along="widths",
        terms=(0.5,),
        predict=growth_of_mean,
        margin=0.2,
        relative=False,
        margin_reason="the exponents at issue are 0, 1/2 and 1: less than half the way to the nearest",
        rivals={"of the upper bound": lambda _: 0.5, "as for T = O(M)": lambda _: 0.0},
        quantity="largest eigenvalue after mean subtraction",
    ),
    Claim(
        id="karakida2019/limit-at-a-thousand-samples",
        entries=("C46",),
        source=f"{PAPER}, section 3.4 and figure 2 right, for 2 / lambda_max",
        passage=Passage(Standing.AS_STATED, "they are independent of width", "Section 3.4"),
        no_theory=NoTheory.CONSTANT,
        statement=r"\mathbb{E} \ln \frac{\bar\lambda_{\max}(M = 400)}{\bar\lambda_{\max}(M = 100)} \Big/ \ln 4 = 0 "
        r"\quad (T = 1000,\ \text{mean subtraction})",
        says="With mean subtraction and a thousand samples, the largest Fisher eigenvalue is nearer to "
        "constant in the width than to growing like its square root, up to four hundred units.",
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

CLAIMS: tuple[AnyClaim, ...] = (CONTRACTION, SUBTRACTION, UNDER_LINE, *LIMIT_CLAIMS)
