"""Networks on images seen through a random frame, and where their Goldilocks zone begins and ends."""

from __future__ import annotations

import math
from copy import deepcopy
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from simulate import data, networks
from simulate.modules import projected_network
from simulate.monte_carlo import Point
from simulate.perceptrons import curvature
from theory import zone
from verify.claims import Floats
from verify.claims.drawn_networks import sampled_images
from verify.model import Experiment

SINGLE = "its derivatives are in single precision"

experiment_on_digits = partial(Experiment, data="digits")


def of_digits(**sizes: Any) -> Point:
    """A point on the digits."""
    return Point(images="digits", **sizes)


def network_on_images(rng: Generator, point: Point, network: str = "LeNet-300-100", **how: Any) -> Any:
    """One of the networks of the paper as drawn, bias-free, and images of the size it wants."""
    flat = network == "LeNet-300-100"
    source = data.opened(point.images, (1, 28, 28) if flat else (3, 32, 32))
    images = data.sample(source, rng, point.samples, **how)
    if flat:
        return networks.Mlp((*networks.LENET_300_100[:-1], source.classes), rng=rng), images.flat()
    pooling = point.get("pooling", "max")
    return networks.LeNet5(classes=source.classes, rng=rng, pooling=pooling), images


def on_digits(rng: Generator, point: Point, hidden: tuple[int, ...], device: str) -> Any:
    """Weights of a perceptron as drawn, and images of 8 x 8."""
    images, classes = sampled_images(rng, point, 8)
    return [w.to(device) for w in networks.mlp_weights(rng, (64, *hidden, classes))], images


class _Drawn(NamedTuple):
    """A network seen through its frame, and the module and the inputs that it is made of."""

    net: Any
    model: Any
    inputs: Any


def lenet_300_100(rng: Generator, point: Point, device: str = "cpu", *, single: bool = False) -> _Drawn:
    """LeNet-300-100 as drawn, on `samples` images, seen in `dim` random directions.

    With `single`, frame and derivatives are in single precision: half the cost, right to about 1e-6.
    """
    model, images = network_on_images(rng, point)
    weights = [w.detach().to(device) for w in model.parameters()]
    return seen_by(rng, weights, images.tensors(device)[0], images.labels, point.dim, single=single)


def seen_by(rng: Generator, weights: Any, x: Any, labels: Any, dim: int, *, single: bool = False) -> _Drawn:
    """A perceptron along a random frame.

    Directions of the first layer that no image sees move neither logits nor Hessian. Leaving them out, in the
    weights and in the frame, changes nothing else and makes a network cheap.
    """
    import torch

    first, *others = weights
    span, coordinates = torch.linalg.qr(x.T)
    narrow = (first @ span, *others)
    size, total = (sum(w.numel() for w in part) for part in (narrow, weights))
    frame = curvature.haar(rng, size, dim, total=total, device=str(first.device), single=single)
    dtype = torch.float32 if single else torch.float64
    net = curvature.ProjectedMlp(narrow, coordinates.T, labels, frame, dtype=dtype)
    return _Drawn(net, _perceptron(narrow), coordinates.T)


def _perceptron(weights: Any) -> Any:
    """A module with these matrices."""
    from torch import nn

    layers: list[Any] = []
    for weight in weights:
        layers += [nn.Linear(*weight.shape[::-1], bias=False, device="meta"), nn.ReLU()]
        layers[-2].weight = nn.Parameter(weight)
    return nn.Sequential(*layers[:-1])


def lenet_5(rng: Generator, point: Point, device: str = "cpu", *, single: bool = False) -> _Drawn:
    """LeNet-5 as drawn, on `samples` images with three channels, seen in `dim` random directions.

    Max pooled, unless the point has another `pooling`; with frame and derivatives in single precision where `single`.
    """
    import torch

    model, images = network_on_images(rng, point, "LeNet-5")
    model = model.to(device)
    size = sum(p.numel() for p in model.parameters())
    frame = curvature.haar(rng, size, point.dim, device=device, single=single)
    inputs, labels = images.tensors(device)
    if not single:
        return _Drawn(projected_network.ProjectedNetwork(model, inputs, labels, frame), model, inputs)
    net = projected_network.ProjectedNetwork(deepcopy(model).float(), inputs.float(), labels, frame)
    with torch.no_grad():
        net.logits = model(inputs)  # a scale multiplies them by alpha^L, and their rounding with them
    return _Drawn(net, model, inputs)


NETWORKS = {"LeNet-300-100": lenet_300_100, "LeNet-5": lenet_5}


def uniform_norms(net: Any, order: float | str = 2) -> tuple[float, float]:
    """Norms of G and of the H-term with the derivatives of the network and uniform probabilities."""
    import torch

    # at a temperature so high that p differs from 1/K by rounding alone; its factors are taken out again
    heat = 2.0**60 * float(net.logits.abs().max())
    g_term, h_term = (torch.linalg.matrix_norm(m, ord=order) for m in net.terms(temperature=heat))
    return float(g_term) * heat**2, float(h_term) * heat


def log_ratio(net: Any, alphas: Floats) -> Floats:
    """Logarithm of |G'|_2 / |Ht'|_2 at these scales, also where G is below the range of float64."""
    g_term, log_scale = net.scaled_g_term(alphas)
    return _log_ratio(g_term, log_scale, net.h_term(alphas))


def log_ratio_and_excess(net: Any, alphas: Floats) -> tuple[Floats, Floats]:
    """Logarithm of |G'|_2 / |Ht'|_2 and excess of the Hessian, from one computation of both terms."""
    (g_term, log_scale), h_term = net.scaled_g_term(alphas), net.h_term(alphas)
    hessian = g_term * log_scale.exp()[:, None, None] + h_term
    return _log_ratio(g_term, log_scale, h_term), curvature.positive_excess(hessian).numpy(force=True)


def _log_ratio(g_term: Any, log_scale: Any, h_term: Any) -> Floats:
    g_norm, h_norm = (curvature.spectral_norm(m).log() for m in (g_term, h_term))
    return (g_norm + log_scale - h_norm).numpy(force=True)


def lower_crossing(net: Any, grid: Floats, values: Floats) -> float:
    """Scale where |G'|_2 first overtakes |Ht'|_2; where it comes closest to it if it never does on the grid.

    `values` are the logarithms of their ratio on the grid.
    """
    up = np.flatnonzero((values[:-1] <= 0) & (values[1:] > 0))
    return _refined(net, grid, up[0]) if up.size else float(grid[np.abs(values).argmin()])


def upper_crossing(net: Any, grid: Floats, values: Floats) -> float:
    """Scale where |G'|_2 falls behind |Ht'|_2 for good, at most the last; where it comes closest if it never leads."""
    down = np.flatnonzero((values[:-1] > 0) & (values[1:] <= 0))
    if values[-1] > 0:
        return float(grid[-1])
    return _refined(net, grid, down[-1]) if down.size else float(grid[np.abs(values).argmin()])


class ZoneEdges(NamedTuple):
    """Both edges of the zone, read off on a grid, and what is predicted over each.

    `closes` says whether G is behind at the last scale; if not, `high` is that scale.
    """

    low: float
    low_said: float
    high: float
    high_said: float
    closes: bool


def zone_edges(net: Any, grid: Floats) -> ZoneEdges:
    """Edges of the zone on this grid; no prediction for the upper one where a tenth of the samples are tied."""
    values = log_ratio(net, grid)
    low, high = lower_crossing(net, grid, values), upper_crossing(net, grid, values)
    said_low = float(zone.lower_edge(*uniform_norms(net), depth=net.depth))
    density, said_high = gap_density(net), math.nan
    if math.isfinite(density):
        said_high = float(zone.upper_edge(len(net.logits), gap_density=density, depth=net.depth))
    return ZoneEdges(low, said_low / low, high, said_high / high, not values[-1] > 0)


def _refined(net: Any, grid: Floats, place: int) -> float:
    """A grid of 8 steps in place of one, then a straight line in the logarithms."""
    scales = np.geomspace(grid[place], grid[place + 1], 9)
    values = log_ratio(net, scales)
    first = int(np.flatnonzero((values[:-1] > 0) != (values[1:] > 0))[0])
    weight = values[first] / (values[first] - values[first + 1])
    return float(scales[first] * (scales[first + 1] / scales[first]) ** weight)


def gap_density(net: Any) -> float:
    """Density at zero of the gap of the two largest logits, from the tenth of the samples with the smallest.

    Infinite where that tenth has none.
    """
    first, second = net.logits.topk(2).values.T
    gaps = np.sort((first - second).numpy(force=True))
    few = max(len(gaps) // 10, 1)
    return few / len(gaps) / float(gaps[few - 1]) if gaps[few - 1] > 0 else math.inf
