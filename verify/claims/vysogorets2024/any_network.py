"""Gradients and curvatures of ReLU networks of any depth, scale and temperature, by every simulator of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.random import Generator

from simulate import networks, operators
from simulate.modules import projected
from simulate.monte_carlo import Point
from simulate.perceptrons import (
    confident,
    curvature,
    layer_blocks,
    per_sample,
    trained,
)
from simulate.training import edges, grids, learnable_rates, scaled_training, stacks, trial_training
from theory import softmax, zone
from verify.claims.drawn_networks import stream_by_stream
from verify.claims.vysogorets2024 import PAPER
from verify.judging.families import one
from verify.model import KNOWN, StatisticalProperty
from verify.model.domains import Between, OneOf

if TYPE_CHECKING:
    from torch import Tensor

TILT = 1e-3
"""Length of what is added to the weights as a direction, relative to theirs: replicates then scatter."""


class LabelledNetwork(NamedTuple):
    """A network of random weights on random inputs, all labelled with the class it thinks least likely.

    `along` is a direction near the weights themselves, (P,).
    """

    weights: tuple[Tensor, ...]
    x: Tensor
    labels: Tensor
    logits: Tensor
    along: Tensor

    @property
    def depth(self) -> int:
        """Number of layers."""
        return len(self.weights)

    def scaled(self, alpha: float) -> tuple[Tensor, ...]:
        """Weights times a factor."""
        return tuple(alpha * weight for weight in self.weights)

    def flat(self, alpha: float) -> tuple[Any, ...]:
        """Scaled, in one vector, with its data, for `per_sample` and `trained`."""
        return *per_sample.flattened(self.scaled(alpha)), self.x, self.labels, "relu"

    def split(self) -> tuple[Tensor, ...]:
        """The direction as matrices."""
        parts = self.along.split([w.numel() for w in self.weights])
        return tuple(part.view_as(w) for part, w in zip(parts, self.weights, strict=True))


class Along(NamedTuple):
    """Slope of the loss, G-term, H-term and Hessian along the weights, as far as a simulator makes them.

    And the mean over the samples of the squared slope.
    """

    slope: Any = None
    g_term: Any = None
    h_term: Any = None
    hessian: Any = None
    squared_slope: Any = None


def _sample_network(rng: Generator, point: Point) -> LabelledNetwork:
    import torch

    widths = (point.inputs, *(point.width,) * (point.depth - 1), point.classes)
    while True:  # where no unit of a layer responds to any sample, there is nothing to measure
        weights = networks.mlp_weights(rng, widths)
        x = torch.from_numpy(rng.standard_normal((point.samples, point.inputs)))
        logits = networks.mlp_logits(weights, x)
        if bool(logits.any(1).all()):
            break
    theta = per_sample.flattened(weights)[1]
    noise = torch.from_numpy(rng.standard_normal(len(theta))) * (theta.norm() / len(theta) ** 0.5)
    return LabelledNetwork(weights, x, logits.argmin(1), logits, theta + TILT * noise)


def _by_theory(net: LabelledNetwork, alpha: float, temperature: float) -> Along:
    """Value, slope and curvature along the scale by Euler's theorem, from the logits alone."""
    z, at = net.logits.numpy(), {"depth": net.depth, "temperature": temperature}
    heated = zone.homogeneous_factor(alpha, **at) * z
    p = np.exp(heated - heated.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    factors = zone.curvature_factors(alpha, **at)
    first, second = (zone.euler_factor(net.depth, order=order) for order in (1, 2))
    residuals = (p * z).sum(1) - z[np.arange(len(z)), net.labels]
    residual = float(residuals.mean())
    spread = float(np.einsum("nk,nkl,nl->n", z, softmax.covariance(p), z).mean())
    slopes = first * zone.homogeneous_factor(alpha, **at, order=1) * residuals
    g_term = factors.gauss_newton * first**2 * spread
    h_term = factors.h_term * second * residual
    return Along(slopes.mean(), g_term, h_term, g_term + h_term, np.square(slopes).mean())


def _of_terms(terms: Any) -> Along:
    return Along(None, terms.g_term.squeeze(), terms.h_term.squeeze(), terms.hessian.squeeze())


def _framed(net: LabelledNetwork, alpha: float, temperature: float) -> Along:
    framed = curvature.ProjectedMlp(net.weights, net.x, net.labels, net.along[:, None])
    return _of_terms(framed.terms(alpha, temperature))


def _confident(net: LabelledNetwork, alpha: float, _: float) -> Along:
    framed = confident.ConfidentMlp(net.weights, net.x, net.labels, net.along[:, None], near=len(net.x))
    return _of_terms(framed.terms(alpha))


def _together(net: LabelledNetwork, alpha: float, _: float) -> Along:
    stacked = [w[None] for w in net.scaled(alpha)]
    return _of_terms(curvature.projected_mlps(stacked, net.x, net.labels, net.along[:, None]))


def _layers(net: LabelledNetwork, alpha: float, temperature: float) -> Along:
    """The logits are linear in each layer, so that a block gives a depth-squared part of the whole."""
    total = 0.0
    for layer, part in enumerate(net.split()):
        block = layer_blocks.layer_block(
            net.weights, net.x, layer=layer, alpha=alpha, temperature=temperature
        )
        along = ((block.rows @ part) * block.inputs).sum(1)
        total += float(np.exp(block.log_scale)) * float(along.square().sum())
    return Along(g_term=net.depth * total)


def _operators(net: LabelledNetwork, alpha: float, _: float) -> Along:
    objective = trained.perceptron_objective(*net.flat(alpha))
    matrices = (operators.gauss_newton, operators.h_term, operators.hessian, operators.empirical_fisher)
    return Along(None, *(net.along @ (matrix(objective) @ net.along) for matrix in matrices))


def _projected(net: LabelledNetwork, alpha: float, _: float) -> Along:
    objective = trained.perceptron_objective(*net.flat(alpha))
    return _of_terms(projected.projected(objective, net.along[:, None]))


def _samples(net: LabelledNetwork, alpha: float, _: float) -> Along:
    data = net.flat(alpha)
    slope = (per_sample.loss_gradients(*data) @ net.along).mean()
    whole, g = (
        (matrices(*data) @ net.along @ net.along).mean()
        for matrices in (per_sample.hessians, per_sample.gauss_newtons)
    )
    return Along(slope, g, None, whole)


def _classifiers(net: LabelledNetwork, alpha: float, _: float) -> Along:
    stacked = learnable_rates.Classifiers(tuple(w[None] for w in net.weights), net.x[None], net.labels[None])
    gradients = learnable_rates.losses_and_gradients(stacked.scaled(alpha))[1]
    return Along(scaled_training.inner([g[0] for g in gradients], net.split(), 0))


def _path(net: LabelledNetwork, alpha: float, temperature: float) -> Along:
    start = scaled_training.descent(
        net.scaled(alpha), [(net.x, net.labels)], rate=1.0, steps=0, temperature=temperature
    )
    return Along(scaled_training.inner(next(start).gradients, net.split(), 0))


def _stacked(net: LabelledNetwork, alpha: float, _: float) -> Along:
    """Along the weights: the first step of training, and a product with the Hessian."""
    import torch

    stack, weights = stacks.Perceptrons("relu", bias=False), [w[None] for w in net.scaled(alpha)]
    v = [part[None] for part in net.split()]
    whole = edges.hessian_products(stack, weights, net.x[None], net.labels[None], v)
    batches = [trial_training.CommonBatches(samples=len(net.x), size=len(net.x))]
    sets, rates = grids.TrainingSets(net.x, net.labels), torch.ones(1, 1, dtype=net.x.dtype)
    run = grids.train(stack, weights, sets, batches, rates=rates, steps=1)
    moved = [before - after for before, after in zip(weights, run.cells.parameters, strict=True)]
    slope, bent = (sum((a * b).sum() for a, b in zip(v, made, strict=True)) for made in (moved, whole))
    return Along(slope, None, None, bent)


WITH_TEMPERATURE = ("framed", "layers", "path")
SIMULATORS: dict[str, Callable[[LabelledNetwork, float, float], Along]] = {
    "framed": _framed,
    "layers": _layers,
    "path": _path,
    "confident": _confident,
    "together": _together,
    "operators": _operators,
    "projected": _projected,
    "samples": _samples,
    "classifiers": _classifiers,
    "stacked": _stacked,
}


@stream_by_stream
def along_weights(rng: Generator, point: Point, _: str) -> Mapping[str, Any]:
    """Slope and curvatures along the weights over what Euler's theorem says, the mean of those that there are.

    The softmax of the scaled logits is that of z / `heat`, whatever the scale; without a temperature the scale
    follows from it.
    """
    net = _sample_network(rng, point)
    heat = point.heat * float(net.logits.abs().amax())
    alpha, temperature = point.alpha, heat * point.alpha**net.depth
    if point.case not in WITH_TEMPERATURE:
        alpha, temperature = heat ** (-1 / net.depth), 1.0
    expected = _by_theory(net, alpha, temperature)
    found = SIMULATORS[point.case](net, alpha, temperature)
    pairs = [(float(a), float(b)) for a, b in zip(found, expected, strict=True) if a is not None and b]
    return {"ratio": float(np.mean([measured / said for measured, said in pairs]))}


def _example(case: str, **changes: Any) -> Point:
    plain = {"case": case, "depth": 3, "inputs": 5, "width": 6, "classes": 4, "samples": 7, "alpha": 3.7}
    return Point(**plain | {"heat": 0.43} | changes)


CLAIMS = (
    StatisticalProperty(
        id="vysogorets2024/any-network",
        entries=("A9", "A10", "A11", "A12", "A14", "A18"),
        source=f"Euler's theorem for homogeneous functions, on eqs. (3) to (5) of {PAPER}; Dinh et al. (2017)",
        passage=KNOWN,
        statement=r"\theta^\top \nabla^2 z\, \theta = L (L - 1) z,\quad z(\alpha\theta) = \alpha^L z(\theta)",
        says="Along its own weights, slope and curvature of a ReLU network of any depth, scale and temperature "
        "follow from its logits, by every simulator.",
        domain={
            "case": OneOf(*SIMULATORS),
            "depth": Between(1, 5),
            "inputs": Between(3, 8),
            "width": Between(4, 9),
            "classes": Between(3, 6),
            "samples": Between(3, 8),
            "alpha": Between(0.05, 20.0),
            "heat": Between(0.1, 3.0),
        },
        simulate=along_weights,
        on_host="all of it, network by network",
        replicate="one network with its inputs and a direction near its weights",
        examples=(
            *(_example(case) for case in SIMULATORS),
            *(
                _example("framed", depth=depth, alpha=alpha)
                for depth, alpha in ((1, 0.07), (2, 0.13), (5, 11.0))
            ),
        ),
        score="ratio",
        predict=one,
        margin=0.005,
        margin_reason="the direction is 0.1 % off the weights; exact along them",
        rivals={
            "one power of the scale more": lambda p: p.alpha,
            "L - 1 for L": lambda p: (p.depth - 1) / p.depth,
            "without temperature": lambda p: p.heat,
        },
        budget=512,
        seconds=2.0,
        quantity="slope or curvature along the weights over theory",
    ),
)
