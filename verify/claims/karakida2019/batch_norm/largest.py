"""Karakida, Akaho and Amari (2019), Theorem 3.4: the largest eigenvalue with batch normalised hidden layers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from simulate.matrices import ensembles
from simulate.monte_carlo import Block, Point
from simulate.wide import batch_normed
from theory.activations import gaussian_kernels, single
from theory.fisher import middle_normalisation
from verify.claims.karakida2019.batch_norm.batch_norm import OWN, THEOREM, eq_22, normed_network, sizes_at
from verify.model import OURS, AnyClaim, Claim, Experiment, Kind, NoTheory, Passage, Standing

__all__ = ["CLAIMS"]


def _largest(network: Any, activation: str) -> tuple[Any, Any]:
    """Largest Fisher eigenvalue of one output, and the Rayleigh quotient of the block of W^L at equal weights."""
    gram = batch_normed.batch_normed_gram(network, activation)
    rayleigh = batch_normed.last_layer_rayleigh(batch_normed.batch_normed_signals(network, activation))
    return ensembles.top_eigenvalue(gram[:, 0, 0]) / gram.shape[-1], rayleigh


def normed_networks(block: Block, point: Point) -> Mapping[str, Any]:
    """Largest Fisher eigenvalue, what it exceeds, and the trace of the block of W^L."""
    network = normed_network(block, widths=(*point.layers, 1), samples=point.samples)
    largest, rayleigh = _largest(network, point.activation)
    moments = batch_normed.measured_moments(batch_normed.batch_normed_signals(network, point.activation))
    return {
        "largest": largest,
        "rayleigh": rayleigh,
        "excess": largest - rayleigh,
        "trace": moments["q_hat_t"][:, -1] * network.weights[-1].shape[-1],
    }


def _mean_largest(block: Block, point: Point, width: int, count: int) -> tuple[Any, ...]:
    """Means over some networks of a replicate, where those of one are skewed."""
    widths = (width,) * point.depth + (1,)
    network = normed_network(block.repeated(count), widths=widths, samples=width)
    found = _largest(network, point.activation)
    return tuple(values.unflatten(0, (len(block), count)).mean(1) for values in found)


def growing_normed_networks(block: Block, point: Point) -> Mapping[str, Any]:
    """Largest Fisher eigenvalue at every width, as many samples as units, beside the quotient and eq. (22)."""
    import torch

    sizes = zip(point.widths, point.get("networks", (1,) * len(point.widths)), strict=True)
    pairs = [_mean_largest(block, point, width, count) for width, count in sizes]
    largest, rayleigh = (torch.stack(column, dim=1) for column in zip(*pairs, strict=True))
    bounds = [
        middle_normalisation.batch_norm_bound(point.activation, width=m, samples=m) for m in point.widths
    ]
    return {
        "largest": largest,
        "narrow": largest[:, 0],
        "wide": largest[:, -1],
        "narrow_excess": (largest - rayleigh)[:, 0],
        "wide_excess": (largest - rayleigh)[:, -1],
        "ratio": largest / largest.new_tensor(bounds),
    }


SMALL = Experiment(
    id="karakida2019/batch-norm-small",
    replicate="one network with its inputs",
    simulate=normed_networks,
    points=tuple(Point(activation=a, layers=(12, 16, 20), samples=11) for a in ("relu", "tanh", "softplus")),
    budget=1024,
    seconds=0.083,
)

ONE_HIDDEN = Experiment(
    id="karakida2019/batch-norm-one-hidden-layer",
    replicate="one network with its inputs",
    simulate=normed_networks,
    points=(
        Point(activation="relu", layers=(44, 176), samples=110),
        Point(activation="relu", layers=(300, 150), samples=90),
        Point(activation="softplus", layers=(56, 112), samples=105),
    ),
    budget=1024,
    seconds=0.4,
)

EQUAL = "as many samples as units, in all layers, as in the paper's figures; one output"

SHARP = Experiment(
    id="karakida2019/batch-norm-sharp",
    replicate="one network with its inputs at each width, several at the smallest",
    simulate=growing_normed_networks,
    points=(Point(activation="sigmoid", depth=2, widths=(16, 32, 64, 128, 256), networks=(4, 1, 1, 1, 1)),),
    budget=96,
    seconds=1.1,
    special=EQUAL,
)

DEEPER = Experiment(
    id="karakida2019/batch-norm-deeper",
    replicate="one network with its inputs at each width",
    simulate=growing_normed_networks,
    points=(Point(activation="sigmoid", depth=3, widths=(32, 96)),),
    budget=512,
    seconds=1.4,
    special=EQUAL,
)

GROWING = Experiment(
    id="karakida2019/batch-norm-growth",
    replicate="one network with its inputs at each width",
    simulate=growing_normed_networks,
    points=(Point(activation="relu", depth=2, widths=(48, 96, 192)),),
    budget=512,
    seconds=0.52,
    special=EQUAL,
)

ODD = Experiment(
    id="karakida2019/batch-norm-odd",
    replicate="one network with its inputs",
    simulate=normed_networks,
    points=(
        Point(activation="tanh", layers=(192, 320), samples=256),
        Point(activation="erf", layers=(525, 210), samples=225),
    ),
    budget=512,
    seconds=2.2,
)


def _excess(p: Point) -> float:
    bound = middle_normalisation.batch_norm_bound(p.activation, finite_samples=True, **sizes_at(p))
    return middle_normalisation.batch_norm_largest(p.activation, **sizes_at(p)) - bound


def _parts(p: Point) -> dict[str, float]:
    """What the largest eigenvalue of a network with one hidden layer exceeds its Rayleigh quotient by."""
    kernels = gaussian_kernels(single(p.activation))
    turn = kernels.curvature(1.0, 0.0, 1.0)
    return {
        "activations": kernels.value(1.0, 0.0, 1.0).gap,
        "lengths": p.layers[1] / p.layers[0] * turn / 2,
        "first layer": p.layers[0] / p.samples * (kernels.derivative(1.0, 0.0, 1.0).gap - turn),
        "bias": 1.0,
    }


def _excess_without(part: str) -> Callable[[Point], float]:
    return lambda p: _excess(p) - _parts(p)[part]


def _slopes(p: Point) -> float:
    """What the spread of the slopes adds to every eigenvalue."""
    return p.layers[0] / p.samples * gaussian_kernels(single(p.activation)).derivative(1.0, 0.0, 1.0).gap


VIOLATIONS = "an inequality of matrices: violations in 5 % of the networks would be seen"

SHARP_ORDER = Claim(
    id="karakida2019/batch-norm-sharp-order",
    entries=("C38",),
    source=OWN,
    passage=OURS,
    no_theory=NoTheory.CONSTANT,
    statement=r"\text{sigmoid, } L = 2:\quad "
    r"\mathbb{E}\,\lambda_{\max} \Big/ \alpha_{L-1} M \Big(\frac{T-1}{T} \hat q_{st,BN} + "
    r"\frac1T \hat q_{t,BN}\Big) - 1 \sim M^{-1}\quad (T = M)",
    says="For sigmoid networks with one batch-normalised hidden layer and as many samples as units, the "
    "largest Fisher eigenvalue approaches the lower bound like one over the width.",
    experiment=SHARP,
    kind=Kind.EXPONENT,
    score="ratio",
    along="widths",
    terms=(1,),
    offset=lambda _: 1.0,
    predict=lambda _: -1.0,
    margin=0.2,
    relative=False,
    margin_reason="the orders at issue are 0, 1/2, 1 and 2: less than half the way to the nearest",
    rivals={"square root": lambda _: -0.5, "loose": lambda _: 0.0, "square": lambda _: -2.0},
    quantity="largest eigenvalue over eq. (22), less one",
)

CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="karakida2019/batch-norm-inequality",
        entries=("C38",),
        source=f"{OWN}, behind it",
        passage=Passage(
            Standing.OURS, "we can construct a lower bound composed of the activations", "Section 3.3"
        ),
        no_theory=NoTheory.MEASURED,
        statement=r"\lambda_{\max} \ge \tfrac{1}{T^2} \mathbf 1^\top h^{L-1} h^{L-1\top} \mathbf 1 + 1,"
        r"\text{ the } 1 \text{ from the biases } b^L",
        says="With batch-normalised hidden layers, the largest Fisher eigenvalue of every network exceeds "
        "the last layer's Rayleigh quotient by at least the output bias's contribution of one.",
        experiment=SMALL,
        kind=Kind.NEVER_BELOW,
        score="largest",
        inputs={"rayleigh": 4.0, "trace": 10.0},
        predict=lambda p: p.rayleigh + 1,
        margin=0.05,
        relative=False,
        margin_reason=VIOLATIONS,
        numerical=1e-9,
        rivals={
            "trace of the block of W^L": lambda p: p.trace + 1,
            "twice the quotient": lambda p: 2 * p.rayleigh + 1,
        },
        quantity="largest eigenvalue of the Fisher matrix",
    ),
    Claim(
        id="karakida2019/batch-norm-sharp",
        entries=("C38",),
        source=OWN,
        passage=OURS,
        statement=r"\text{sigmoid, } L = 2:\quad "
        r"\lim_{M = T \to \infty} \mathbb{E}\,\lambda_{\max} \Big/ \alpha_{L-1} M "
        r"\Big(\frac{T-1}{T} \hat q_{st,BN} + \frac1T \hat q_{t,BN}\Big) = 1",
        says="For sigmoid networks with one batch-normalised hidden layer, the largest Fisher eigenvalue "
        "over the theorem's lower bound tends to one as width and samples grow together.",
        experiment=SHARP,
        kind=Kind.LIMIT,
        score="ratio",
        along="widths",
        terms=(1, 2),
        predict=lambda _: 1.0,
        margin=0.01,
        order=SHARP_ORDER,
        margin_reason="at most 1 %; the ratio itself is 1.26 at M = 16",
        rivals={"no convergence from M = 128 on": lambda _: 1.03, "half of it": lambda _: 2.0},
        quantity="largest eigenvalue over eq. (22)",
    ),
    SHARP_ORDER,
    Claim(
        id="karakida2019/batch-norm-deeper",
        entries=("C38",),
        source=OWN,
        passage=OURS,
        statement=r"\text{sigmoid, } L = 3:\quad "
        r"\frac{\mathbb{E}[\lambda_{\max} - R]_{3M}}{\mathbb{E}[\lambda_{\max} - R]_M} = 1,"
        r"\quad R = \tfrac{1}{T^2} \mathbf 1^\top h^{L-1} h^{L-1\top} \mathbf 1\quad (T = M)",
        says="For sigmoid networks with two batch-normalised hidden layers, the largest Fisher eigenvalue "
        "exceeds the last layer's Rayleigh quotient by an amount that does not grow with the width.",
        experiment=DEEPER,
        kind=Kind.RATIO,
        score=("wide_excess", "narrow_excess"),
        predict=lambda _: 1.0,
        margin=0.03,
        margin_reason="at most 3 % for wide networks; the excess has an O(1/M) bias of its own",
        rivals={
            "square root of the width": lambda p: math.sqrt(p.widths[-1] / p.widths[0]),
            "of the order of the bound": lambda p: p.widths[-1] / p.widths[0],
        },
        quantity="excess over the Rayleigh quotient of the last layer, wide over narrow",
    ),
    Claim(
        id="karakida2019/batch-norm-one-hidden-layer",
        entries=("C38",),
        source=OWN,
        passage=OURS,
        statement=r"L = 2:\quad \mathbb{E}\Big[\lambda_{\max} - \tfrac{1}{T^2} \mathbf 1^\top h h^\top "
        r"\mathbf 1\Big] = 1 + \mathrm{Var}\,\phi + \frac{\alpha_1}{2 \alpha_0} (\mathbb{E}\,\phi'')^2 + "
        r"\frac{\alpha_0 M}{T} \big(\mathrm{Var}\,\phi' - (\mathbb{E}\,\phi'')^2\big)",
        says="With one batch-normalised hidden layer, the largest Fisher eigenvalue exceeds the last "
        "layer's Rayleigh quotient by a derived function of the activation function and the ratios of "
        "sizes.",
        experiment=ONE_HIDDEN,
        score="excess",
        predict=_excess,
        margin=0.03,
        margin_reason="at most 3 % for wide networks; the bias is O(1/M)",
        rivals={
            "without the bias": _excess_without("bias"),
            "without the scatter of activations": _excess_without("activations"),
            "without the lengths of inputs": _excess_without("lengths"),
            "without the first layer": _excess_without("first layer"),
        },
        quantity="largest eigenvalue less the Rayleigh quotient of the last layer",
    ),
    Claim(
        id="karakida2019/batch-norm-largest",
        entries=("C38",),
        source=OWN,
        passage=OURS,
        statement=r"L = 2:\quad \mathbb{E}\,\lambda_{\max} = \alpha_1 M \Big(\frac{T-1}{T} \hat q_{st} + "
        r"\frac1T \hat q_t\Big) + 1 + \mathrm{Var}\,\phi + \dots",
        says="With one batch-normalised hidden layer, the largest Fisher eigenvalue is the theorem's lower "
        "bound plus a derived function of the activation function and the ratios of sizes.",
        experiment=ONE_HIDDEN,
        score="largest",
        predict=lambda p: middle_normalisation.batch_norm_largest(p.activation, **sizes_at(p)),
        margin=0.01,
        margin_reason="the O(1/M) bias of the excess is less than 0.1 % of the whole",
        rivals={
            "eq. (22) alone": eq_22,
            "without the bias": lambda p: eq_22(p) + _excess_without("bias")(p),
        },
        quantity="largest eigenvalue of the Fisher matrix",
    ),
    Claim(
        id="karakida2019/batch-norm-theorem",
        entries=("C38", "C41"),
        source=THEOREM,
        passage=Passage(Standing.AS_STATED, "Suppose non-negative activation functions", "Theorem 3.4"),
        statement=r"\text{ReLU, } L = 2:\quad \mathbb{E}\,\lambda_{\max} \ge \alpha_{L-1} M "
        r"\Big(\frac{T-1}{T} \hat q_{st,BN} + \frac1T \hat q_{t,BN}\Big)\quad (T = M)",
        says="For ReLU with a batch-normalised hidden layer, the mean largest Fisher eigenvalue lies above "
        "the theorem's lower bound, which grows with the width.",
        experiment=GROWING,
        kind=Kind.AT_LEAST,
        score="largest",
        along="widths",
        axis="widths",
        predict=lambda p: middle_normalisation.batch_norm_bound(
            p.activation, width=p.widths, samples=p.widths
        ),
        margin=0.03,
        margin_reason="at most 3 % for wide networks",
        rivals={
            "and 2": lambda p: (
                middle_normalisation.batch_norm_bound(p.activation, width=p.widths, samples=p.widths) + 2
            ),
            "twice": lambda p: p.widths / math.pi,
        },
        quantity="largest eigenvalue of the Fisher matrix",
    ),
    Claim(
        id="karakida2019/batch-norm-odd",
        entries=("C41",),
        source=OWN,
        passage=OURS,
        statement=r"L = 2,\ \phi \text{ odd (tanh, erf)}:\quad \mathbb{E}\,\lambda_{\max} = e + \mu\, s\, T^{-2/3},"
        r"\quad e \text{ the edge of } \tfrac1T \big(h^\top h + (\mathbb{E}\,\phi')^2 X^\top X\big) + "
        r"\tfrac{\alpha_0 M}{T} \mathrm{Var}\,\phi'"
        r"\text{: it does not grow with } M \text{ at fixed } M/T\text{, though } \sigma_b \ne 0",
        says="For odd activation functions, a batch-normalised hidden layer leaves the largest Fisher "
        "eigenvalue at a derived edge of ratios of sizes alone, less a Tracy-Widom shift.",
        experiment=ODD,
        score="largest",
        predict=lambda p: middle_normalisation.batch_norm_largest_odd(p.activation, **sizes_at(p)),
        margin=0.03,
        margin_reason="at most 3 % for wide networks; beyond the Tracy-Widom shift there are 1 or 2 % at these sizes",
        rivals={
            "without the spread of slopes": lambda p: (
                middle_normalisation.batch_norm_largest_odd(p.activation, **sizes_at(p)) - _slopes(p)
            ),
            "of a linear network": lambda p: middle_normalisation.batch_norm_largest_odd(
                "linear", **sizes_at(p)
            ),
            "inputs and units exchanged": lambda p: middle_normalisation.batch_norm_largest_odd(
                p.activation, width=p.layers[1], samples=p.samples, width_ratio=p.layers[0] / p.layers[1]
            ),
            "eq. (22) and 1": lambda p: eq_22(p) + 1,
            "mean square times the width": lambda p: eq_22(p, own=p.samples, shared=0.0),
        },
        quantity="largest eigenvalue of the Fisher matrix",
    ),
)
