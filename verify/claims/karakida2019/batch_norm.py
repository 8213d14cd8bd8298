"""Karakida, Akaho and Amari (2019), section 3.3: normalised hidden layers, their biases, moments, and the bound."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from numpy.random import Generator

from simulate import activations
from simulate.matrices import ensembles
from simulate.monte_carlo import Block, Point
from simulate.wide import batch_normed, few_signals, signals
from theory.fisher import middle_normalisation
from verify.claims.karakida2019 import PAPER
from verify.claims.karakida2019.wide_networks import WIDE, one_network, width_by_width
from verify.model import (
    OURS,
    Arrays,
    Claim,
    ExactProperty,
    Experiment,
    Kind,
    NoTheory,
    StatisticalProperty,
    as_stated,
)
from verify.model.domains import Between, Each, Many, OneOf

THEOREM = f"{PAPER}, theorem 3.4, eq. (22)"
OWN = f"ours, beside theorem 3.4 of {PAPER}"

WEIGHTS = {"weight_variance": 1.7, "bias_variance": 0.4}
"""Neither matters, which is a claim below."""


def normed_network(block: Block, *, widths: tuple[int, ...], samples: int, lazy: bool = False) -> Any:
    """Networks whose hidden layers are to be normalised; of `lazy` ones only what signals meet is drawn."""
    draw = few_signals.LazyNetwork if lazy else signals.wide_network
    return draw(block, widths=widths, samples=samples, **WEIGHTS)


def _moments(p: Point) -> middle_normalisation.BatchNormMoments:
    return middle_normalisation.batch_norm_moments(p.activation, samples=p.samples)


def _signals(block: Block, point: Point, *hidden: int) -> Any:
    sizes: dict[str, Any] = {"widths": (*hidden, 1), "samples": point.samples}
    network = normed_network(block, **sizes, lazy=True)
    return batch_normed.batch_normed_signals(network, point.activation)


# --- activations of the last hidden layer --------------------------------------------------------------------


def normed_activations(block: Block, point: Point) -> Arrays:
    """Second moments of the activations of the last hidden layer, and the squared length of their sample mean."""
    signals = _signals(block, point, *point.layers)
    found = batch_normed.measured_moments(signals)
    return {
        "own": found["q_hat_t"][:, -1],
        "shared": found["q_hat_st"][:, -1],
        "rayleigh": batch_normed.last_layer_rayleigh(signals),
    }


RELU = one_network(
    id="karakida2019/batch-norm-relu",
    simulate=normed_activations,
    # the moments of the last layer scatter less if it is wide
    points=tuple(
        Point(activation="relu", layers=layers, samples=samples)
        for layers, samples in (
            ((480, 640, 1920), 3),
            ((480, 640, 1920), 4),
            ((120, 160, 480), 8),
            ((120, 160, 480), 50),
        )
    ),
    budget=2048,
    seconds=0.42,
)

BOUND = one_network(
    id="karakida2019/batch-norm-bound",
    simulate=normed_activations,
    points=tuple(
        Point(activation=activation, layers=(180, 240, 300), samples=samples)
        for activation, samples in (("relu", 5), ("relu", 190), ("softplus", 7), ("sigmoid", 23))
    ),
    budget=2048,
    seconds=0.17,
)


def _kernel(correlation: float) -> float:
    """Arc-cosine kernel, 1 at correlation 1."""
    root = math.sqrt(max(1 - correlation**2, 0.0))
    return (root + correlation * (math.pi - math.acos(correlation))) / math.pi


def _sizes(p: Point) -> dict[str, Any]:
    """M is the number of inputs."""
    return {"width": p.layers[0], "samples": p.samples, "width_ratio": p.layers[-1] / p.layers[0]}


def eq_22(p: Point, *, own: float = 1.0, shared: float = 1.0, ratio: float = 1.0) -> float:
    """Eq. (22) with factors on its parts."""
    m, t = _moments(p), p.samples
    return ratio * p.layers[-1] * (shared * (t - 1) / t * m.q_hat_st + own * m.q_hat_t / t)


def _shared(p: Point) -> float:
    return _moments(p).q_hat_st


WIDTH_BIAS = "the bias is O(1/M), half a per cent at these widths, less for fewer samples"

_of_activations = partial(Claim, margin=0.01, margin_reason=WIDTH_BIAS, axis="samples")

ACTIVATION_CLAIMS = (
    _of_activations(
        id="karakida2019/batch-norm-variance",
        entries=("C39",),
        source=f"{PAPER}, section 3.3",
        statement=r"\hat q_{t,BN} = \tfrac12 \text{ for ReLU}",
        says="Behind batch normalisation, ReLU has a mean square of one half, whatever the number of samples.",
        experiment=RELU,
        score="own",
        predict=lambda p: _moments(p).q_hat_t,
        margin_reason="exact in expectation at any size",
        rivals={
            "without centring": lambda p: 0.5 * p.samples / (p.samples - 1),
            "kernel at correlation 0": lambda _: _kernel(0.0) / 2,
        },
        quantity="mean square of the activations",
    ),
    _of_activations(
        id="karakida2019/batch-norm-covariance",
        entries=("C39",),
        source=f"{PAPER}, section 3.3",
        statement=r"\hat q_{st,BN} = \tfrac12 A\big(-\tfrac{1}{T-1}\big) \text{ for ReLU},\quad "
        r"A(c) = \tfrac1\pi \big(\sqrt{1 - c^2} + c\, (\pi - \arccos c)\big)",
        says="Behind batch normalisation, ReLU at two samples has as mean product half the arccosine kernel at the"
        " correlation that centring leaves.",
        experiment=RELU,
        score="shared",
        predict=_shared,
        margin=0.015,
        pilot="the margin 1.5 %, narrower than the 3 % for wide networks: first draws were off by half a per cent",
        rivals={
            "correlation 0": lambda _: _kernel(0.0) / 2,
            "correlation -1/T": lambda p: _kernel(-1 / p.samples) / 2,
            "correlation 1/(T - 1)": lambda p: _kernel(1 / (p.samples - 1)) / 2,
            "kernel without 1/pi": lambda p: math.pi * _shared(p),
            "kernel without 1/2": lambda p: 2 * _shared(p),
        },
        quantity="mean product of the activations of two samples",
    ),
    _of_activations(
        id="karakida2019/batch-norm-bound",
        entries=("C38",),
        source=f"{THEOREM}, the Rayleigh quotient in its proof",
        statement=r"\mathbb{E}\,\tfrac{1}{T^2} \mathbf 1^\top h^{L-1} h^{L-1\top} \mathbf 1 = "
        r"\alpha_{L-1} M \Big(\frac{T-1}{T} \hat q_{st,BN} + \frac1T \hat q_{t,BN}\Big)",
        says="With batch-normalised hidden layers, the mean Rayleigh quotient at equal weights is the theorem's "
        "lower bound.",
        experiment=BOUND,
        score="rayleigh",
        predict=lambda p: middle_normalisation.batch_norm_bound(p.activation, **_sizes(p)),
        rivals={
            "without the variances": lambda p: eq_22(p, own=0.0),
            "no (T - 1)/T": lambda p: eq_22(p, shared=p.samples / (p.samples - 1)),
            "variances not over T": lambda p: eq_22(p, own=p.samples),
            "no alpha": lambda p: eq_22(p, ratio=p.layers[0] / p.layers[-1]),
            "independent samples": lambda p: eq_22(p | {"samples": 10**9}),
        },
        quantity="Rayleigh quotient of the last layer at equal weights",
    ),
)

# --- the condition for growth --------------------------------------------------------------------------------


def _property_prediction(p: Point, **changed: Any) -> float:
    sizes = {"width": p.widths[-1], "samples": p.samples} | changed
    return middle_normalisation.batch_norm_bound(p.activation, **sizes)


def one_normed_layer(block: Block, point: Point) -> Arrays:
    """Rayleigh quotient of the block of the last layer, one hidden layer."""
    return {"rayleigh": batch_normed.last_layer_rayleigh(_signals(block, point, *point.widths))}


ANY_WIDTH = StatisticalProperty(
    id="karakida2019/batch-norm-any-width",
    entries=("C38", "C39"),
    source=OWN,
    passage=OURS,
    statement=r"L = 2:\quad \mathbb{E}\,\tfrac{1}{T^2} \mathbf 1^\top h h^\top \mathbf 1 = "
    r"M_1 \Big(\frac{T-1}{T} \hat q_{st} + \frac1T \hat q_t\Big)\text{, averages over the sphere, at any width}",
    says="With one batch-normalised hidden layer, the mean Rayleigh quotient is the theorem's lower bound at "
    "any width, averaged over a sphere.",
    domain={
        "activation": OneOf("relu", "sigmoid", "softplus", "gelu", "leaky_relu"),
        "widths": Each(Between(3, 40), Between(30, 90)),
        "samples": Between(3, 24),
    },
    simulate=one_normed_layer,
    replicate="one network with its inputs",
    examples=(
        Point(activation="gelu", widths=(3, 60), samples=4),
        Point(activation="relu", widths=(7, 45), samples=5),
        Point(activation="sigmoid", widths=(5, 50), samples=4),
    ),
    score="rayleigh",
    predict=partial(_property_prediction, finite_samples=True),
    margin=0.03,
    margin_reason="exact in expectation; at most 3 %",
    rivals={
        "Gaussian": _property_prediction,
        "very many samples": partial(_property_prediction, samples=10**9),
    },
    budget=4096,
    seconds=0.38,
    quantity="Rayleigh quotient of the last layer at equal weights",
)

# --- gradients by the biases ----------------------------------------------------------------------------------


def _jacobian(network: Any, activation: str, *, held: bool = False) -> tuple[Any, Any]:
    """Derivatives (C, T, P) of one network by weights and by biases, each of a list of one per layer.

    Automatic differentiation through the normalisation, or with the means held fixed.
    """
    import torch

    phi = activations.nonlinearity(activation).function
    x = network.inputs[0]

    def outputs(weights: list[torch.Tensor], biases: list[torch.Tensor]) -> torch.Tensor:
        h = x
        for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
            u = h @ weight.mT + bias
            mean = u.mean(0)
            centred = u - (mean.detach() if held else mean)
            h = phi(centred / centred.square().mean(0).sqrt())
        return (h @ weights[-1].mT + biases[-1]).T

    parameters = [w[0] for w in network.weights], [b[0] for b in network.biases]
    by_weights, by_biases = torch.func.jacrev(outputs, argnums=(0, 1))(*parameters)
    return [j.flatten(2) for j in by_weights], [j.flatten(2) for j in by_biases]


def _bias_gradients(rng: Generator, point: Point, *, last: bool = False, **options: Any) -> float:
    """Largest derivative by a bias of the hidden layers, over the largest of all."""
    network = normed_network(Block((rng,)), widths=point.widths, samples=point.samples)
    weights, biases = _jacobian(network, point.activation, **options)
    largest = max(float(j.abs().max()) for j in (*weights, *biases))
    return max(float(j.abs().max()) for j in (biases if last else biases[:-1])) / largest


BIASES = ExactProperty(
    id="karakida2019/batch-norm-biases",
    entries=("C37",),
    source=f"{PAPER}, section 3.3: the biases cancel in the mean subtraction of each middle layer",
    passage=as_stated(
        "they are canceled out in the mean subtraction of each middle layer",
        "Section 3.3",
    ),
    no_theory=NoTheory.CONSTANT,
    statement=r"\frac{\partial f_k(s)}{\partial b^l} = 0,\quad l < L",
    says="Outputs do not depend on the biases of batch-normalised hidden layers, in any network.",
    domain={
        "activation": OneOf("relu", "tanh", "erf", "linear", "sigmoid", "softplus", "gelu"),
        "widths": Many(Between(1, 6), 3, 5),
        "samples": Between(2, 6),
    },
    violation=_bias_gradients,
    examples=(
        Point(activation="tanh", widths=(4, 6, 5, 3), samples=5),
        Point(activation="softplus", widths=(3, 5, 2), samples=4),
    ),
    tolerance=1e-10,
    tolerance_reason="exact in float64; the derivative amplifies rounding where a deviation is small",
    rivals={
        "for l = L too": partial(_bias_gradients, last=True),
        "with the mean held fixed": partial(_bias_gradients, held=True),
    },
    seconds=0.018,
)

# --- the largest eigenvalue ------------------------------------------------------------------------------------


def _largest(block: Block, point: Point, *hidden: int, samples: int) -> dict[str, Any]:
    """Fisher eigenvalue of one output."""
    network = normed_network(block, widths=(*hidden, 1), samples=samples)
    gram = batch_normed.batch_normed_gram(network, point.activation)
    return {"largest": ensembles.top_eigenvalue(gram[:, 0, 0]) / samples}


def normed_networks(block: Block, point: Point) -> Arrays:
    """Largest Fisher eigenvalue."""
    return _largest(block, point, *point.layers, samples=point.samples)


@width_by_width
def growing_normed_networks(block: Block, point: Point, width: int) -> Arrays:
    """Largest Fisher eigenvalue, with as many samples as units."""
    return _largest(block, point, *(width,) * point.depth, samples=width)


ONE_HIDDEN = one_network(
    id="karakida2019/batch-norm-one-hidden-layer",
    simulate=normed_networks,
    points=(
        Point(activation="relu", layers=(44, 176), samples=110),
        Point(activation="relu", layers=(300, 150), samples=90),
        Point(activation="softplus", layers=(56, 112), samples=105),
    ),
    budget=1024,
    seconds=0.4,
)

GROWING = Experiment(
    id="karakida2019/batch-norm-growth",
    replicate="one network with its inputs at each width",
    simulate=growing_normed_networks,
    points=tuple(
        Point(activation="relu", depth=2, widths=widths) for widths in ((48, 96, 192), (32, 64, 128, 160))
    ),
    budget=512,
    seconds=0.52,
    special="as many samples as units, in all layers, as in the paper's figures; one output",
)


def _excess(p: Point) -> float:
    bound = middle_normalisation.batch_norm_bound(p.activation, finite_samples=True, **_sizes(p))
    return middle_normalisation.batch_norm_largest(p.activation, **_sizes(p)) - bound


def _at_width(p: Point) -> float:
    return middle_normalisation.batch_norm_bound(p.activation, width=p.widths, samples=p.widths)


_of_largest = partial(Claim, score="largest", margin=0.03, quantity="largest eigenvalue of the Fisher matrix")

CLAIMS = (
    *ACTIVATION_CLAIMS,
    ANY_WIDTH,
    BIASES,
    _of_largest(
        id="karakida2019/batch-norm-largest",
        entries=("C38",),
        source=OWN,
        passage=OURS,
        statement=r"L = 2:\quad \mathbb{E}\,\lambda_{\max} = \alpha_1 M \Big(\frac{T-1}{T} \hat q_{st} + "
        r"\frac1T \hat q_t\Big) + 1 + \mathrm{Var}\,\phi + \dots",
        says="With one batch-normalised hidden layer, the largest Fisher eigenvalue exceeds the theorem's lower "
        "bound by a derived function of activation and sizes.",
        experiment=ONE_HIDDEN,
        predict=lambda p: middle_normalisation.batch_norm_largest(p.activation, **_sizes(p)),
        margin=0.01,
        margin_reason="the O(1/M) bias of the excess is less than 0.1 % of the whole",
        rivals={"eq. (22) alone": eq_22, "without the bias": lambda p: eq_22(p) + (_excess(p) - 1.0)},
    ),
    _of_largest(
        id="karakida2019/batch-norm-theorem",
        entries=("C38", "C41"),
        source=THEOREM,
        passage=as_stated("Suppose non-negative activation functions", "Theorem 3.4"),
        statement=r"\text{ReLU, } L = 2:\quad \mathbb{E}\,\lambda_{\max} \ge \alpha_{L-1} M "
        r"\Big(\frac{T-1}{T} \hat q_{st,BN} + \frac1T \hat q_{t,BN}\Big)\quad (T = M)",
        says="With batch-normalised ReLU, the mean largest Fisher eigenvalue lies above the theorem's lower bound,"
        " which grows with the width.",
        experiment=GROWING,
        kind=Kind.AT_LEAST,
        along="widths",
        axis="widths",
        predict=_at_width,
        margin_reason=WIDE,
        rivals={"and 2": lambda p: _at_width(p) + 2, "twice": lambda p: p.widths / math.pi},
    ),
)
