"""What batches of real networks do: theorems 4 and 7 beside the own-direction law, outliers, stable learning rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulate.monte_carlo import Block, Point
from theory import batch_ggn, batch_hessian, own_direction
from verify.model import Column, Observation, Tier

__all__ = ["OBSERVATIONS", "Noise", "formulas", "law_of", "noise_of", "perceptron"]

PAPER = "Granziol, Zohren and Roberts (2022)"

HIDDEN = 8

Floats = NDArray[np.float64]


class Noise(NamedTuple):
    """What the formulas read: lambda_1, P sigma^2, the noise along v_1, and the coefficient of second order."""

    eigenvalue: float
    total: float
    along: float
    coefficient: float


# --- networks ------------------------------------------------------------------------------------------------


def perceptron(rng: np.random.Generator, point: Point) -> tuple[tuple[int, ...], Any, Floats, Any]:
    """Widths, parameters, inputs and labels of a tanh network on images pooled to 4 x 4, each pixel standardised."""
    from simulate import data, per_sample
    from simulate.trained_perceptrons import trained

    source = data.opened(point.images, (1, 4, 4))
    images = data.sample(source, rng, point.samples).flat()
    widths = (16, HIDDEN, source.classes)
    x = _standardised(images.images)
    theta = per_sample.initial_parameters(rng, widths)
    return widths, trained(widths, theta, x, images.labels, steps=point.steps), x, images.labels


def small_network(rng: np.random.Generator, point: Point) -> Any:
    """Per-sample curvature of `perceptron`."""
    from simulate.sample_products import PerceptronSamples

    return PerceptronSamples(*perceptron(rng, point), matrix=point.matrix)


def wide_network(rng: np.random.Generator, point: Point) -> Any:
    """Per-sample curvature of LeNet-300-100 without biases, relu, on images of 28 x 28 less their mean image."""
    import torch

    from simulate import data, networks
    from simulate.sample_products import PerceptronSamples
    from simulate.trained_perceptrons import trained

    source = data.opened(point.images, (1, 28, 28))
    images = data.sample(source, rng, point.samples).flat()
    widths = (*networks.LENET_300_100[:-1], source.classes)
    x = images.images - images.images.mean(axis=0) if point.centred else images.images
    theta = torch.cat([w.flatten() for w in networks.mlp_weights(rng, widths)])
    theta = trained(widths, theta, x, images.labels, "relu", steps=point.steps, rate=0.001)
    return PerceptronSamples(widths, theta, x, images.labels, "relu", matrix=point.matrix)


def _standardised(images: Floats) -> Floats:
    """Each pixel of mean 0 and deviation 1 over the images; a constant one 0."""
    deviation = images.std(axis=0)
    return (images - images.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)


# --- theorems 4 and 7 beside the own-direction law ------------------------------------------------------------


def noise_of(samples: Any, rng: np.random.Generator, vectors: Any) -> Noise:
    """By algorithm 1 as corrected, and from the products with v_1; curvature below the k-th direction counts as 0."""
    probes = _probes(samples, rng)
    total = _fluctuation(samples, probes)
    first = samples.project(vectors[None])
    image = samples.apply(first[:, :, :1])
    entries = (image @ first.mT)[0, :, 0].numpy()
    along = _fluctuation(samples, vectors[None, :1])
    values, variances = entries.mean(axis=0), entries.var(axis=0)
    top = float(values[0])
    curvatures = np.diagonal((samples.apply(first) @ first.mT)[0].mean(0).numpy())
    within = variances[1:] @ (1 / (top - curvatures[1:]))
    return Noise(top, total, along, float(within + max(along - variances.sum(), 0.0) / top))


def _probes(samples: Any, rng: np.random.Generator) -> Any:
    """All unit vectors of a small network, random ones of a large one, each of length one."""
    import torch

    if samples.dim <= 512:
        return torch.eye(samples.dim, dtype=samples.dtype)[None]
    probes = torch.from_numpy(rng.standard_normal((1, 32, samples.dim)))
    return torch.nn.functional.normalize(probes, dim=2)


def _fluctuation(samples: Any, vectors: Any) -> float:
    """Mean over unit vectors v of mean_i |H_i v|^2 - |mean_i H_i v|^2."""
    image = samples.apply(samples.project(vectors))
    squares = image.square().sum(-1).mean() - samples.back(image).square().sum(-1).mean()
    return float(squares)


def theorem_7_as_our_copy_reads(eigenvalue: float, variance: float, ratio: Floats) -> Floats:
    """Threshold sigma^2 (1 + beta), and its double for the edge."""
    safe = np.where(eigenvalue > variance * (1 + ratio), eigenvalue - ratio * variance, 1.0)
    outlier = eigenvalue + variance * eigenvalue / safe
    return np.where(eigenvalue > variance * (1 + ratio), outlier, 2 * variance * (1 + ratio))


def formulas(noise: Noise, dim: int, sizes: Sequence[int], total: int) -> dict[str, Floats]:
    """What each formula says of the top eigenvalue of a batch."""
    sigma = (noise.total / dim) ** 0.5
    batch: dict[str, Any] = {"batch_size": np.array(sizes, dtype=float), "dataset_size": float(total)}
    ratio = dim * (1 / batch["batch_size"] - 1 / total)
    # the variance of an element of Wishart noise is sigma^4 per sample
    repaired = {"variance": sigma, "dim": dim, **batch}
    return {
        "theorem_4": batch_hessian.batch_eigenvalue(noise.eigenvalue, sigma=sigma, dim=dim, **batch),
        "theorem_7_read": theorem_7_as_our_copy_reads(noise.eigenvalue, sigma, ratio),
        "theorem_7": batch_ggn.batch_ggn_eigenvalue(noise.eigenvalue, **repaired),
        "factor": batch_ggn.batch_ggn_factor_eigenvalue(noise.eigenvalue, **repaired),
        "second_order": batch_hessian.second_order_eigenvalue(
            noise.eigenvalue, coefficient=noise.coefficient, **batch
        ),
    }


def small_network_batches(block: Block, point: Point) -> Mapping[str, Any]:
    """Top eigenvalues of batches of a small network beside every prediction for them."""
    return _stacked([_beside_predictions(small_network(rng, point), rng, point) for rng in block.streams])


def wide_network_batches(block: Block, point: Point) -> Mapping[str, Any]:
    """The same for LeNet-300-100."""
    return _stacked([_beside_predictions(wide_network(rng, point), rng, point) for rng in block.streams])


def _stacked(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def _beside_predictions(samples: Any, rng: np.random.Generator, point: Point) -> dict[str, Any]:
    from simulate import own_direction as measured

    vectors = measured.top_eigenvectors(samples, 10, tolerance=1e-6)
    pairs = measured.sample_pairs(samples, tolerance=1e-6)
    noise = noise_of(samples, rng, vectors)
    laws = {k: law_of(measured.statistics(samples, vectors[:k], pairs, rng)) for k in (5, 10)}
    found: dict[str, list[float]] = {"measured": [], "own_5": [], "own_10": [], "disjoint": []}
    for size in point.batch_size:
        batches = measured.partitions(rng, samples.size, size, point.batches)
        batches = batches[: point.batches if size > 1 else None]
        top = _top(samples, pairs, batches).mean()
        found["measured"].append(top)
        found["disjoint"].append(_disjoint(samples, rng, size, point.passes) / top)
        for k, law in laws.items():
            found[f"own_{k}"].append(own_direction.batch_eigenvalues(law, batches).mean() / top)
    known = np.array(found["measured"])
    said = formulas(noise, samples.dim, point.batch_size, samples.size)
    return {
        **found,
        "broadening": known / noise.eigenvalue,
        **{name: value / known for name, value in said.items()},
        "concentration": noise.along / noise.total,
        "crossover": noise.total / noise.eigenvalue**2,
        "background": laws[10].background / noise.eigenvalue,
    }


def _disjoint(samples: Any, rng: np.random.Generator, size: int, passes: int) -> float:
    """The competitor: all samples once, in disjoint batches, a few Lanczos steps on each."""
    from simulate import own_direction as measured

    if size == 1:
        return float(measured.sample_pairs(samples, steps=passes, tolerance=0.0).values.mean())
    once = measured.partitions(rng, samples.size, size, 1)
    return float(measured.batch_eigenvalues(samples, once, steps=passes, tolerance=0.0).mean())


def _top(samples: Any, pairs: Any, batches: NDArray[np.intp]) -> Floats:
    """Of single samples the eigenvalues are there already."""
    from simulate import own_direction as measured

    if batches.shape[1] == 1:
        return pairs.values.double().numpy()[batches[:, 0]]
    return measured.batch_eigenvalues(samples, batches, tolerance=1e-3)


def law_of(found: Any) -> own_direction.OwnDirections:
    """The law for statistics as measured."""
    return own_direction.own_directions(
        found.projected,
        found.squared,
        found.largest,
        found.overlaps,
        background=found.background,
        spread=found.spread,
    )


OBSERVATIONS: tuple[Observation, ...] = ()
