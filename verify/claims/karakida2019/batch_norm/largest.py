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
from verify.model import OURS, AnyClaim, Claim, Experiment, Kind, Passage, Standing

__all__ = ["CLAIMS"]


def _largest(network: Any, activation: str) -> Any:
    """Largest Fisher eigenvalue of one output."""
    gram = batch_normed.batch_normed_gram(network, activation)
    return ensembles.top_eigenvalue(gram[:, 0, 0]) / gram.shape[-1]


def normed_networks(block: Block, point: Point) -> Mapping[str, Any]:
    """Largest Fisher eigenvalue."""
    network = normed_network(block, widths=(*point.layers, 1), samples=point.samples)
    return {"largest": _largest(network, point.activation)}


def growing_normed_networks(block: Block, point: Point) -> Mapping[str, Any]:
    """The same at every width, as many samples as units."""
    import torch

    networks = (
        normed_network(block, widths=(width,) * point.depth + (1,), samples=width) for width in point.widths
    )
    return {"largest": torch.stack([_largest(network, point.activation) for network in networks], dim=1)}


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


CLAIMS: tuple[AnyClaim, ...] = (
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
