"""The edge of stability on small networks: what hovers at 2 / eta, of the whole loss, of batches, along gradients.

Labels are drawn at random, so that the loss has a long way to fall and sharpening goes on until the edge is reached.
Each network is trained at two rates, a factor of two apart: a level counts only if it follows the rate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from simulate.monte_carlo import Block, Point
from simulate.training import edges, grids, lyapunov, stacks
from theory.learning_rates import edge_of_stability
from verify.claims import Array
from verify.claims.trained_networks import (
    SINGLE,
    all_samples,
    batches_of,
    common_rates,
    drawn_images,
    perceptrons_drawn,
    trained_on_digits,
    training_sets,
)
from verify.model import (
    OURS,
    Arrays,
    Claim,
    Kind,
    NoTheory,
    Tier,
    Verdict,
    as_stated,
    out_of_scope,
)
from verify.model.observation import Observation, columns_of

if TYPE_CHECKING:
    from torch import Tensor

COHEN = "Cohen, Kaur, Li, Kolter and Talwalkar (2021), arXiv 2103.00065"
CHEMNITZ = "Chemnitz and Engel (2024), arXiv 2407.20209"

StartAndImages: TypeAlias = "tuple[list[Tensor], grids.TrainingSets]"

BATCHES = 5
"""Batches whose curvature is looked at, for each network each time."""

PRODUCTS = 8
"""Hessian products for its largest eigenvalue: within a hundredth of the value from more products."""

WITHIN = 0.1
"""Largest relative distance from the edge at which a network counts as hovering there."""

RISEN, SETTLED = 1.2, 0.2
"""A run counts as at rest if the mean largest eigenvalue of its batches has risen by this factor since the first look,
and its mean over the last quarter is within this share of that over the second one, and the loss is lower there. These
are trends: the level itself decides nothing."""

FACTORS = (0.85, 0.95, 1.0, 1.05, 1.1, 1.2, 1.35)
"""Multiples of the training rate at which the Lyapunov exponent is measured."""

SKIPPED, COUNTED = 8, 20
"""Epochs of frozen SGD before the growth is measured, and while it is."""


def curvature_watch(
    stack: stacks.Perceptrons,
    samples: grids.TrainingSets,
    looks: Sequence[np.random.Generator],
    rates: int,
    size: int,
    *,
    tops: bool = False,
) -> grids.Watch:
    """Return what is measured during training: the loss and curvature of all samples, the curvature of batches.

    Batches are measured along their gradients, and by their largest eigenvalues too if `tops`.
    """
    import torch

    def curvatures(parameters: Any, x: Tensor, y: Tensor) -> Tensor:
        return edges.top_eigenvalues(stack, parameters, x, y, steps=PRODUCTS).values

    def measure(_: int, cells: grids.Cells) -> dict[str, Tensor]:
        """The loss and the largest eigenvalue of all samples, and the mean curvatures of batches."""
        networks, own = cells.networks(rates), cells.parameters
        x, y = all_samples(samples, networks)
        found = {
            "loss": stack.losses(stack.outputs(own, x), y).mean(1),
            "whole": curvatures(own, x, y),
        }
        if size == samples.each:
            return found
        streams = [looks[int(network)] for network in networks]
        chosen = [[rng.permutation(samples.each)[:size] for _ in range(BATCHES)] for rng in streams]
        parameters = [p.repeat_interleave(BATCHES, 0) for p in own]
        rows = torch.from_numpy(np.array(chosen)).flatten(0, 1).to(networks.device)
        x, y = samples.at(networks.repeat_interleave(BATCHES), rows)
        along, squares = edges.gradient_curvatures(stack, parameters, x, y)
        if tops:
            found["batch"] = curvatures(parameters, x, y).view(-1, BATCHES).mean(1)
        found["along"] = (along / squares).view(-1, BATCHES).mean(1)
        return found

    return measure


class CurvatureRun(NamedTuple):
    """Measurements of each network at each rate and look, (R, C, looks), and the grid at the end."""

    seen: Mapping[str, Array]
    run: grids.GridRun
    stack: stacks.Perceptrons


def start_and_images(block: Block, point: Point) -> StartAndImages:
    """Return perceptrons as torch draws them, and images of 8 x 8 with their own labels or random ones."""
    images, classes = drawn_images(block, point)
    labels = [d.labels for d in images]
    if point.labels == "random":
        labels = [rng.integers(classes, size=point.samples) for rng in block.streams]
    samples = training_sets(block, [d.images for d in images], labels)
    return perceptrons_drawn(block, (64, *point.hidden, classes)), samples


def trained_and_watched(
    block: Block, point: Point, setting: StartAndImages, size: int, *, tops: bool = False
) -> CurvatureRun:
    """Train each network at each of the rates with batches of one size, and look at its curvature."""
    stack, (start, samples) = stacks.Perceptrons(point.activation, point.loss), setting
    run = grids.train(
        stack,
        start,
        samples,
        batches_of(block, point.samples, size),
        rates=common_rates(block, *point.rate),
        steps=point.steps,
        watch=curvature_watch(stack, samples, block.streams, len(point.rate), size, tops=tops),
        at=point.looks,
    )
    return CurvatureRun(
        {name: values.double().cpu().numpy() for name, values in run.watched.items()}, run, stack
    )


def full_batch_share(block: Block, point: Point) -> Arrays:
    """Whether the largest eigenvalue of each network is at the edge, mean over the last half of the steps."""
    trained = trained_and_watched(block, point, start_and_images(block, point), point.samples)
    level = late_mean(point, trained.seen["whole"]) / edge_of_stability.edge(point.rate)
    return {"at the edge": (np.abs(level - 1) < WITHIN).astype(float)}


def at_the_edge(block: Block, point: Point) -> Arrays:
    """Return the levels of all runs, 0 for a lost one, and which of them count: all (networks, rates)."""
    found = late_levels(block, point, point.batch_size)
    return {name: np.nan_to_num(values) for name, values in found.items()}


def late_levels(block: Block, point: Point, size: int) -> dict[str, Array]:
    """Means over the last half of the steps, the rate that is just unstable at the end, and which runs count."""
    setting = start_and_images(block, point)
    trained = trained_and_watched(block, point, setting, size, tops=True)
    found = {name: late_mean(point, trained.seen[name]) for name in ("whole", "batch", "along")}
    if point.loss == "squared error":
        found["unstable"] = _just_unstable(block, point, setting, trained, size)
    return found | {"counts": _counts(point, trained.seen)}


def late_mean(point: Point, values: Array) -> Array:
    """Return the mean over the looks in the second half of the steps."""
    return values[..., np.array(point.looks) > point.steps / 2].mean(-1)


def _counts(point: Point, values: Mapping[str, Array]) -> Array:
    """Mask of runs that have sharpened and come to rest while their loss falls on; 0 where a run was lost."""
    quarter = np.ceil(4 * np.array(point.looks) / point.steps)
    batch, loss = values["batch"], values["loss"]
    before, after = (batch[..., quarter == which].mean(-1) for which in (2, 4))
    risen = late_mean(point, batch) > RISEN * batch[..., 0]
    settled = np.abs(after / before - 1) < SETTLED
    falling = loss[..., quarter == 4].mean(-1) < loss[..., quarter == 2].mean(-1)
    return (risen & settled & falling).astype(float)


def _just_unstable(
    block: Block, point: Point, setting: StartAndImages, trained: CurvatureRun, size: int
) -> Array:
    """Rate at which SGD turns unstable at the final parameters, held to the range of `FACTORS`; NaN where lost."""
    import torch

    cells, rates = trained.run.cells, torch.tensor(point.rate, device=block.device)
    networks = cells.networks(len(rates))
    kernels = trained.stack.output_kernels(cells.parameters, all_samples(setting[1], networks)[0])
    orders = batches_of(block, point.samples, size)
    tried = rates[cells.places % len(rates), None] * torch.tensor(FACTORS, device=block.device)
    exponents = lyapunov.lyapunov_exponents(
        kernels,
        [orders[int(network)] for network in networks],
        rates=tried,
        steps=COUNTED * orders[0].per_epoch,
        skip=SKIPPED * orders[0].per_epoch,
    )
    found = lyapunov.first_unstable(tried, exponents).minimum(tried[:, -1])
    return trained.run.spread(found, np.nan).double().cpu().numpy()


SMALL = {
    "images": "digits",
    "loss": "squared error",
    "labels": "random",
    "samples": 64,
    "rate": (0.15, 0.3),
}
TANH = {"activation": "tanh", "hidden": (16, 16)}
RELU = {"activation": "relu", "hidden": (32,)}
FULL = {"samples": 24, "steps": 700, "looks": (500, 600, 700)}
BATCHED = SMALL | TANH | {"samples": 36, "hidden": (20, 20)}
THREE = {"batch_size": 3, "rate": (0.14, 0.28), "steps": 1800, "looks": (20, 700, 900, 1200, 1500, 1800)}
NINE = {"batch_size": 9, "steps": 1000, "looks": (20, 400, 700, 850, 1000)}

AT_TWO_RATES = "one perceptron with its images and random labels, trained at two rates"

WHOLE = trained_on_digits(
    id="edge/full-batch",
    replicate=AT_TWO_RATES,
    simulate=full_batch_share,
    points=(
        Point(**SMALL | TANH | FULL),
        Point(**SMALL | RELU | FULL | {"rate": (0.1, 0.2)}),
    ),
    budget=256,
    seconds=2.0,
)

SOME = trained_on_digits(
    id="edge/batches",
    replicate=AT_TWO_RATES,
    simulate=at_the_edge,
    points=tuple(Point(**BATCHED | few) for few in (THREE, NINE)),
    budget=256,
    seconds=6.5,
)

PILOT = (
    "the rates, the numbers of samples and steps, the lines of the trend and the margin: 32 networks with other seeds, "
    "where at batches of 3 the mean of batches came to 1.34 to 1.45 of the edge, batch sharpness to 0.88 to 0.99, the "
    "whole Hessian to 0.68 to 0.77 and the rate of instability to 1.03 to 1.05 of the rate; the step of the first look "
    "after 96 networks of seed 2024 with 32 samples, where a look at step 10 came before the first fall; rates of 0.14 "
    "and 0.28 at batches of 3 and other looks after 448 networks with other seeds, since at 0.3 one run was lost"
)


def edge_at(p: Any) -> Any:
    """Largest eigenvalue at which the rate of a point is at the edge."""
    return edge_of_stability.edge(p.rate)


FIFTH = "a fifth tells the quantities at issue from each other"
LEVEL: dict[str, Any] = {
    "experiment": SOME,
    "along": "rate",
    "predict": edge_at,
    "margin": 0.2,
    "pilot": PILOT,
    "rivals": {
        "one level for all rates": lambda _: edge_of_stability.edge(min(SMALL["rate"])),
        "half of it": lambda p: edge_at(p) / 2,
    },
}

MOSTLY: dict[str, Any] = {
    "kind": Kind.PROPORTION,
    "margin": 0.25,
    "relative": False,
    "margin_reason": "one network in four; the readings at issue are always and never",
    "no_theory": NoTheory.CONSTANT,
}
"""Terms of a claim on a share of the networks, of which one in four may be an exception."""

CLAIMS = (
    Claim(
        id="edge/full-batch",
        entries=("E1",),
        source=f"{COHEN}, abstract and section 3",
        passage=as_stated("the sharpness rises to 2/eta and hovers just above it", "abstract, in short"),
        statement=r"P\big(|\overline{\lambda_1} \cdot \eta / 2 - 1| < 0.1\big) = 1 "
        r"\quad\text{under full-batch gradient descent}",
        says="Late in full-batch gradient descent, the largest Hessian eigenvalue of small networks stays, "
        "averaged over time, within a tenth of two over the rate.",
        experiment=WHOLE,
        **MOSTLY,
        predict=lambda _: 1.0,
        score="at the edge",
        along="rate",
        pilot="the rates and the number of steps: 16 networks of each kind with another seed; fewer samples and steps "
        "after 192 networks of each kind with two others",
        rivals={"never": lambda _: 0.0},
        quantity="share of networks that hover at the edge",
    ),
    Claim(
        id="edge/runs-that-count",
        entries=("E2", "E3", "E6"),
        source="ours: the regime that the levels are read in",
        passage=OURS,
        statement=r"P\Big(\tfrac{\Lambda_{3,4}}{\Lambda_0} > 1.2,\ \big|\tfrac{\Lambda_4}{\Lambda_2} - 1\big| < 0.2,\ "
        r"L_4 < L_2\Big) = 1",
        symbols={
            r"\Lambda_0": "mean largest eigenvalue of batches after 20 steps",
            r"\Lambda_2": "the same over the second quarter of the run",
            r"\Lambda_4": "the same over the last quarter",
            r"\Lambda_{3,4}": "the same over the last half",
            "L_2": "loss of all samples over the second quarter of the run",
            "L_4": "the same over the last quarter",
        },
        says="With random labels the curvature of batches rises and comes to rest while the loss falls on, in most "
        "runs.",
        experiment=SOME,
        kind=Kind.PROPORTION,
        score="counts",
        along="rate",
        predict=lambda _: 1.0,
        margin=0.5,
        relative=False,
        margin_reason="every second run: levels are means over all runs, so most of them have to be at rest",
        pilot=PILOT,
        rivals={"never": lambda _: 0.0},
        no_theory=NoTheory.CONSTANT,
        quantity="share of runs that count",
    ),
    Claim(
        id="edge/mean-of-batches-at-two-rates",
        entries=("E2",),
        **LEVEL,
        source="Andreyev and Beneventano (2024), arXiv 2412.20553, first version, abstract",
        passage=as_stated(
            "the average over the batches of the largest eigenvalue of the Hessian of the mini batch",
            "abstract of the first version",
        ),
        statement=r"\text{time mean of } \mathbb{E}\, \lambda_1(H_B) = 2/\eta \quad\text{under SGD with batches of } B",
        says="Where curvature is at rest under SGD, the largest eigenvalue of a batch Hessian is on average two over "
        "the rate, within a fifth, at each of two rates.",
        score="batch",
        margin_reason=f"the paper names no accuracy; {FIFTH}",
        expected=Verdict.DISAGREES,
        finding="Under SGD the largest eigenvalue of a batch Hessian is on average 1.28 to 1.44 times two over the "
        "rate. The later versions of the paper name batch sharpness instead.",
        quantity="mean largest eigenvalue of batch Hessians, mean over time",
    ),
    Claim(
        id="edge/batch-sharpness-at-two-rates",
        entries=("E3",),
        **LEVEL,
        source="Andreyev and Beneventano (2024), arXiv 2412.20553, third to fifth version, abstract",
        passage=as_stated(
            "the expected directional curvature of mini-batch Hessians along their corresponding stochastic gradients",
            "abstract of the third version",
        ),
        statement=r"\text{time mean of } \mathbb{E}\, \frac{g_B^\top H_B\, g_B}{g_B^\top g_B} = 2/\eta "
        r"\quad\text{under SGD with batches of } B",
        says="Where curvature is at rest under SGD, the curvature of a batch along its own gradient is on average "
        "two over the rate, within a fifth, at each of two rates.",
        score="along",
        margin_reason=f"the paper names no accuracy; {FIFTH}",
        quantity="mean curvature of batches along their gradients, mean over time",
    ),
    Claim(
        id="edge/whole-hessian-under-sgd",
        entries=("E1",),
        **LEVEL,
        source=f"{COHEN}, abstract, read under SGD",
        passage=out_of_scope("full-batch gradient descent", "abstract"),
        statement=r"\text{time mean of } \lambda_1(H) = 2/\eta \quad\text{under SGD with batches of } B",
        says="Where curvature is at rest under SGD, the largest eigenvalue of the whole Hessian is two over the "
        "rate, within a fifth, at each of two rates.",
        score="whole",
        margin_reason=FIFTH,
        expected=Verdict.DISAGREES,
        finding="With batches of 3 of 36 samples it is 0.69 to 0.77 of two over the rate, with batches of 9 3 to 5 % "
        "above: the level of full batches holds for large batches only.",
        quantity="largest eigenvalue of the Hessian, mean over time",
    ),
    Claim(
        id="edge/rate-of-instability",
        entries=("E6",),
        source=f"ours, on the criterion of {CHEMNITZ}",
        passage=OURS,
        statement=r"\min\Big\{\rho : \lim \tfrac1t \log\Big|\prod_{s \le t} (I - \rho\, G_{B_s})\, v\Big| > 0\Big\} "
        r"= \eta \quad\text{after SGD with rate } \eta",
        symbols={
            r"\rho": "rate that is tried at frozen parameters",
            "G_{B_s}": "Gauss-Newton matrix of the batch of step s",
        },
        says="Where curvature is at rest under SGD, the rate at which SGD linearised there turns unstable is the one "
        "in use, within 15 %, at batches of 3 and 9 and two rates.",
        experiment=SOME,
        score="unstable",
        along="rate",
        predict=lambda p: p.rate,
        margin=0.15,
        margin_reason="rates are tried up to a tenth apart, and the state at one step is not that of the mean",
        pilot=PILOT,
        rivals={
            "one rate for all": lambda _: min(SMALL["rate"]),
            "half of it": lambda p: p.rate / 2,
            "two over the largest eigenvalue": lambda p: 1.4 * p.rate if p.batch_size == 3 else p.rate,
        },
        no_theory=NoTheory.CONSTANT,
        quantity="rate at which linearised SGD turns unstable",
    ),
)


def levels(block: Block, point: Point) -> Arrays:
    """Levels over the edge, and the rate of instability over the rate, at each batch size; 0 where a run is lost."""
    (rate,) = point.rate
    unit = {"counts": 1.0, "unstable": rate}
    rows = [late_levels(block, point, size) for size in point.batch_size]
    return {
        name: np.concatenate([np.nan_to_num(row[name]) for row in rows], 1)
        / unit.get(name, float(edge_of_stability.edge(rate)))
        for name in rows[0]
    }


def full_batch_path(block: Block, point: Point) -> Arrays:
    """Largest eigenvalue over the edge after each number of steps of full-batch descent, at two rates."""
    trained = trained_and_watched(block, point, start_and_images(block, point), point.samples)
    levels = trained.seen["whole"] / edge_of_stability.edge(point.rate)[:, None]
    return dict(zip(("slow", "fast"), np.moveaxis(np.nan_to_num(levels), 1, 0), strict=True))


SHARED = {
    "images": "digits",
    "samples": 64,
    "batch_size": (16, 8, 4),
    "steps": 8000,
    "looks": (50, 2500, 3500, 4500, 5500, 6500, 7500),
}


def _points(network: Mapping[str, Any], loss: str, labels: str, *rates: float) -> tuple[Point, ...]:
    return tuple(Point(labels=labels, loss=loss, rate=(rate,), **network, **SHARED) for rate in rates)


OBSERVED = {
    "along": "batch_size",
    "axis": "batch size",
    "data": "digits",
    "replicate": "one perceptron with its images, trained at three batch sizes",
    "replicates": 2,
    "simulate": levels,
    "single": SINGLE,
    "tier": Tier.FULL,
}

OBSERVATIONS = (
    Observation(
        id="edge/full-batch-path",
        entries=("E1",),
        source=f"{COHEN}, abstract and section 3",
        title="Largest eigenvalue times rate over 2 during full-batch gradient descent",
        note="At both rates the curvature rises until it passes 2 / rate, and stays there, up to a fifth above.",
        replicate=AT_TWO_RATES,
        simulate=full_batch_path,
        single=SINGLE,
        points=(
            Point(
                **SMALL | TANH | {"rate": (0.075, 0.15), "steps": 1000, "looks": (1, *range(50, 1001, 50))}
            ),
        ),
        along="looks",
        axis="steps",
        columns=columns_of({"slow": "at the smaller rate", "fast": "at the larger rate"}),
        replicates=2,
        seconds=0.5,
        data="digits",
    ),
    Observation(
        id="edge/levels",
        **OBSERVED,
        entries=("E1", "E2", "E3", "E6"),
        source="ours, on the statements of Cohen et al. (2021) and Andreyev and Beneventano (2024)",
        title="Where curvature comes to rest under SGD, over 2 / rate",
        note="With random labels batch sharpness and the rate of instability follow the rate at every batch size, "
        "while the whole Hessian falls with the batch and the mean of batches lies a quarter to two thirds above. "
        "With true labels nothing lies at one level: the curves are flat because the loss is gone, and the rate of "
        "instability reaches the largest tried, 1.35. The trends alone do not tell such runs.",
        points=(
            *_points(TANH, "squared error", "random", 0.09, 0.18, 0.3),
            *_points(TANH, "squared error", "true", 0.09, 0.18, 0.3),
            *_points(RELU, "squared error", "random", 0.075, 0.15),
        ),
        columns=columns_of(
            {
                "whole": "largest eigenvalue over 2 / rate",
                "batch": "mean largest eigenvalue of batches",
                "along": "batch sharpness",
                "counts": "share of runs that count by their trend",
                "unstable": "rate of instability over the rate",
            },
            "unstable",
        ),
        seconds=12.0,
    ),
)
