"""A linear network with one hidden layer on one sample, trained by gradient descent."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from simulate.monte_carlo import Block, Point
from theory.learning_rates import catapult
from verify.model import (
    KNOWN,
    Arrays,
    Claim,
    ExactProperty,
    Experiment,
    Kind,
    NoTheory,
    as_stated,
)
from verify.model.domains import Between

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = "Lewkowycz et al. (2020), section 2"


class LinearNetwork(NamedTuple):
    """Parameters of R networks, (R, 2, n), of unit variance."""

    parameters: Tensor

    def outputs(self) -> Tensor:
        """Outputs on the input 1, (R,)."""
        u, v = self.parameters.unbind(1)
        return (u * v).sum(1) / self.parameters.shape[2] ** 0.5

    def curvatures(self) -> Tensor:
        """Squared gradients of the outputs, (R,): the tangent kernel of one sample."""
        return (self.parameters.flip(1) * self.parameters.shape[2] ** -0.5).square().sum((1, 2))

    def losses(self) -> Tensor:
        """Half of the squared outputs: the target is 0."""
        return self.outputs().square() / 2

    def descended(self, rates: Tensor) -> LinearNetwork:
        """After one step at a rate for each: u moves along v and v along u, by the output over the root of n."""
        slopes = (self.outputs() / self.parameters.shape[2] ** 0.5)[:, None, None] * self.parameters.flip(1)
        return LinearNetwork(self.parameters - rates[:, None, None] * slopes)


# --- one step ------------------------------------------------------------------------------------------------


def _step_error(rng: np.random.Generator, point: Point, *, reading: str = "") -> float:
    """Largest error of the formulas for a step, or of another reading of them."""
    import torch

    drawn = rng.standard_normal((8, 2, point.width)) * point.scale
    before = LinearNetwork(torch.from_numpy(drawn))
    rates = point.product / before.curvatures()
    after = before.descended(rates)
    found = np.stack([after.outputs().numpy(), after.curvatures().numpy()])
    f, curvature, rate = before.outputs().numpy(), before.curvatures().numpy(), rates.numpy()
    said = catapult.step(f, curvature, rate=rate, width=point.width)
    linear = f * (1 - rate * curvature)
    stated = {
        "": said,
        "linearised": (linear, curvature),
        "linear output": (linear, said.curvature),
        "2 for 4": (said.output, curvature + rate * f**2 / point.width * (rate * curvature - 2)),
    }[reading]
    return float((np.abs(found - np.stack(stated)) / (1 + np.abs(found))).max())


STEP = ExactProperty(
    id="catapult/step",
    entries=("F1",),
    source=f"{SOURCE}, the update of f and of lambda",
    statement=r"f' = f (1 - \eta\lambda + \eta^2 f^2/n),\quad "
    r"\lambda' = \lambda + \frac{\eta f^2}{n} (\eta\lambda - 4)",
    says="One step of descent on a linear network with one hidden layer and one sample changes output and curvature "
    "by two formulas in these, the rate and the width.",
    domain={"width": Between(1, 300), "product": Between(0.1, 6.0), "scale": Between(0.3, 2.0)},
    violation=_step_error,
    examples=(Point(width=7, product=3.3, scale=1.3),),
    tolerance=1e-10,
    tolerance_reason="rounding of sums over the width",
    rivals={
        "the network linearised": partial(_step_error, reading="linearised"),
        "without the square of the output": partial(_step_error, reading="linear output"),
        "2 in place of 4": partial(_step_error, reading="2 for 4"),
    },
    seconds=0.013,
)

# --- whole runs ----------------------------------------------------------------------------------------------


def _started(block: Block, width: int) -> LinearNetwork:
    return LinearNetwork(block.normal(2, width))


def followed(block: Block, point: Point) -> Arrays:
    """Return rate times curvature where descent ends, and whether the loss grew first."""
    network = _started(block, point.width)
    rates, loss = point.product / network.curvatures(), network.losses()
    network = network.descended(rates)
    grew = network.losses() > loss
    for _ in range(point.steps - 1):
        network = network.descended(rates)
    return {"end": rates * network.curvatures(), "grew": grew.double()}


def lazy(block: Block, point: Point) -> Arrays:
    """Share of the curvature that descent takes off, over the squared output at the start; means over some networks."""
    network = LinearNetwork(block.normal(point.networks, 2, point.width).flatten(0, 1))
    first, outputs = network.curvatures(), network.outputs()
    rates = point.product / first
    for _ in range(point.steps):
        network = network.descended(rates)
    drops = (1 - network.curvatures() / first) * point.width / (rates * outputs).square()
    return {"drop": drops.view(len(block), -1).mean(1)}


def largest_rates_of_linear_networks(block: Block, point: Point) -> Arrays:
    """Largest rate of a ladder at which the loss falls, times the curvature at the start, and the next one."""
    import torch

    begun = _started(block, point.width)
    first = begun.curvatures()
    shift = block.stack(lambda rng: np.asarray(rng.uniform()))
    tried = torch.stack([point.low * point.ratio ** (shift + i) for i in range(point.rungs)], 1)
    network = LinearNetwork(begun.parameters.repeat_interleave(point.rungs, 0))
    rates = (tried / first[:, None]).flatten()
    for _ in range(point.steps):
        network = network.descended(rates)
    fell = (network.losses().view(len(block), -1) < begun.losses()[:, None]).double()
    return {"largest": (tried.log() * fell).amax(1).exp() * point.ratio**0.5}


def peaks(block: Block, point: Point) -> Arrays:
    """Steps by which the loss of a wide network is highest after that of a narrow one."""
    import torch

    found = []
    for width in (point.width, point.width * point.wider):
        network = _started(block, width)
        rates, losses = point.product / network.curvatures(), []
        for _ in range(point.steps):
            losses.append(network.losses())
            network = network.descended(rates)
        found.append(torch.stack(losses).argmax(0).double())
    return {"delay": found[1] - found[0]}


REPLICATE = "one linear network from unit normal parameters"

PHASES = Experiment(
    id="catapult/phases",
    replicate=REPLICATE,
    simulate=followed,
    points=(
        Point(product=1.7, width=250, steps=60),
        Point(product=2.3, width=250, steps=90),
        Point(product=3.4, width=250, steps=300),
    ),
    budget=1024,
    seconds=0.096,
)
ENDS = Experiment(
    id="catapult/ends",
    replicate=REPLICATE,
    simulate=followed,
    points=(
        Point(product=2.3, width=40, steps=90),
        Point(product=2.7, width=320, steps=80),
        Point(product=3.6, width=140, steps=160),
        *(
            Point(product=product, width=40, steps=steps)
            for steps, products in ((100, (2.2,)), (45, (2.5,)), (30, (2.7, 2.8, 2.9)), (50, (3.4, 3.6)))
            for product in products
        ),
    ),
    seconds=0.47,
)
LAZY = Experiment(
    id="catapult/lazy",
    replicate="twelve linear networks from unit normal parameters",
    simulate=lazy,
    points=(
        Point(product=0.4, width=150, steps=25, networks=12),
        Point(product=1.7, width=600, steps=50, networks=12),
    ),
    budget=512,
    seconds=0.08,
    rounding={"drop": 1e-4},  # a difference of the order of 1/n over the square of an output
)
RATES = Experiment(
    id="catapult/largest-rates-of-linear-networks",
    replicate=f"{REPLICATE}, at each rate of a ladder",
    simulate=largest_rates_of_linear_networks,
    points=(
        Point(width=15, low=3.5, ratio=1.02, rungs=16, steps=1000),
        Point(width=120, low=3.5, ratio=1.02, rungs=16, steps=1000),
    ),
    budget=128,
    seconds=0.5,
)

GROWTH = Experiment(
    id="catapult/growth",
    replicate="two linear networks, one much wider than the other",
    simulate=peaks,
    points=(
        Point(product=2.6, width=100, wider=36, steps=26),
        Point(product=3.3, width=60, wider=64, steps=16),
    ),
    seconds=0.87,
)

CLAIMS = (
    STEP,
    Claim(
        id="catapult/loss-grows-first",
        entries=("F2",),
        source=f"{SOURCE}, the three phases",
        statement=r"P(L_1 > L_0) = 1 \text{ if } \eta\lambda_0 > 2,\ 0 \text{ if } \eta\lambda_0 < 2",
        says="In a wide linear network the first step raises the loss at rates above two over the curvature, and "
        "lowers it below.",
        experiment=PHASES,
        kind=Kind.PROPORTION,
        score="grew",
        predict=lambda p: float(p.product > 2),
        margin=0.1,
        relative=False,
        margin_reason="what is said is always and never; a tenth of the networks as exceptions would show",
        rivals={"never": lambda _: 0.0, "always": lambda _: 1.0, "above 4": lambda p: float(p.product > 4)},
        no_theory=NoTheory.CONSTANT,
        quantity="share of networks whose loss grows in the first step",
    ),
    Claim(
        id="catapult/largest-rate-of-linear-networks",
        entries=("F3",),
        source=f"{SOURCE}, the largest rate; at every width, up to about it, Wang et al. (2022), arXiv 2110.03677",
        passage=as_stated(
            "a narrow range of large, stable learning rates",
            "abstract; the bounds stand in section 2",
        ),
        statement=r"\eta_{\max} \lambda_0 = 4",
        says="A linear network with one hidden layer and one sample converges up to a rate of four over its initial "
        "curvature.",
        experiment=RATES,
        score="largest",
        predict=lambda _: catapult.largest_product(),
        margin=0.01,
        margin_reason="exact at every width; half a step between tried rates is a hundredth",
        rivals={
            "2, as for a quadratic loss": lambda _: 2.0,
            "3": lambda _: 3.0,
            "that of ReLU": lambda _: 12.0,
        },
        quantity="largest rate times the curvature at the start",
    ),
    Claim(
        id="catapult/below-the-edge",
        entries=("F4",),
        source=f"{SOURCE}, the catapult phase",
        statement=r"\eta\lambda_{end} \le 2 \text{ on every network with } \eta\lambda_0 < 4",
        says="Wherever a linear network converges, its curvature ends below two over the rate.",
        experiment=ENDS,
        kind=Kind.NEVER_ABOVE,
        score="end",
        predict=lambda _: 2.0,
        margin=0.02,
        margin_reason="the share of exceptions that some hundred networks would show",
        pilot="the number of steps at width 40: after 45 at a product of 2.15 one of 448 networks had not settled",
        relative=False,
        rivals={"below half of that": lambda _: 1.0, "below three quarters": lambda _: 1.5},
        no_theory=NoTheory.CONSTANT,
        quantity="rate times the curvature at the end",
    ),
    Claim(
        id="catapult/where-the-curvature-ends",
        entries=("F5",),
        source=f"the steps of {SOURCE}; their fixed points, Kalra et al. (2023), arXiv 2311.02076; the mean is ours",
        passage=KNOWN,
        statement=r"\mathbb{E}\, \eta\lambda_{end} = \mathbb{E}\, a_\infty(\eta\lambda_0 (b - 1/2)),\quad "
        r"b \sim \mathrm{Beta}(n/2, n/2),\ z' = z |1 - a + z^2|,\ a' = a - z^2 (4 - a)",
        says="The mean curvature at which linear networks end after a catapult follows from two coupled steps.",
        experiment=ENDS,
        score="end",
        predict=lambda p: catapult.mean_final_product(p.product, width=p.width),
        margin=0.12,
        margin_reason="exact; some thousand networks tell a mean that scatters by 0.7 of itself to a tenth",
        pilot="the margin: with 0.08 it took four thousand networks to decide",
        rivals={
            "at the edge": lambda _: 2.0,
            "as far below the edge as it began above": lambda p: 4 - p.product,
            "two over the product": lambda p: 2 / p.product,
        },
        quantity="rate times the curvature at the end",
    ),
    Claim(
        id="catapult/growth",
        entries=("F6",),
        source=f"{SOURCE}, where the time is of order log n; the constant is ours",
        statement=r"\mathbb{E}\,(t_{rn} - t_n) = \frac{\log r}{2 \log(\eta\lambda_0 - 1)}",
        says="In a linear network that is wider by a factor, the loss peaks later by that factor's logarithm over "
        "twice that of the growth in a step.",
        experiment=GROWTH,
        score="delay",
        predict=lambda p: catapult.growth_steps(p.product, ratio=p.wider),
        margin=0.14,
        margin_reason="exact for wide networks but for an output of size 1 beside the root of the width; a "
        "thousand pairs tell it to a tenth",
        pilot="widths and margin, between what first runs decided and what tells slips in the formula from it",
        rivals={
            "the loss of size n": lambda p: 2 * catapult.growth_steps(p.product, ratio=p.wider),
            "growth by the product": lambda p: float(np.log(p.wider) / (2 * np.log(p.product))),
            "as the root of the width": lambda p: p.wider**0.5,
        },
        quantity="steps between the highest losses",
    ),
    Claim(
        id="catapult/lazy",
        entries=("F7",),
        source=f"{SOURCE}, where the change is of order 1/n; the constant is ours",
        statement=r"\frac{n}{\eta^2 f_0^2} (1 - \lambda_{end}/\lambda_0) = "
        r"\frac{4 - \eta\lambda_0}{(2 - \eta\lambda_0)\, (\eta\lambda_0)^2} \text{ to first order in } 1/n",
        says="At rates below two over the curvature, descent takes a share off a linear network's curvature that "
        "goes as squared output over width.",
        experiment=LAZY,
        score="drop",
        predict=lambda p: catapult.curvature_drop(1.0, p.product),
        margin=0.05,
        margin_reason="the second order in 1/n, which is a hundredth at these widths",
        pilot="that means over twelve networks are judged: single ones were too skewed",
        rivals={
            "gradient flow": lambda p: 2 / p.product**2,
            "without the edge": lambda p: (4 - p.product) / (2 * p.product**2),
            "of order 1/n^2": lambda p: (4 - p.product) / ((2 - p.product) * p.product**2 * p.width),
        },
        quantity="share of the curvature taken off, over the squared initial output",
    ),
)
