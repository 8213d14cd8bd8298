"""Networks on real images, and what theorems 4 and 7 and the own-direction law say of their batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulate import data, networks
from simulate.monte_carlo import Point
from simulate.perceptrons import per_sample, sample_products, trained
from theory import batch_hessian, own_direction

__all__ = [
    "Noise",
    "fluctuation",
    "formulas",
    "law_of",
    "lenet_perceptron",
    "noise_of",
    "perceptron",
    "small_perceptron",
    "standardised",
    "theorem_7_as_our_copy_reads",
]

HIDDEN = 8

Floats = NDArray[np.float64]


class Noise(NamedTuple):
    """What the formulas read: lambda_1, P sigma^2, the noise along v_1, and the coefficient of second order."""

    eigenvalue: float
    total: float
    along: float
    coefficient: float


def perceptron(
    rng: np.random.Generator, point: Point, device: str = "cpu", *, single: bool = False
) -> tuple[tuple[int, ...], Any, Floats, Any]:
    """Widths, parameters, inputs and labels of a tanh network on images pooled to 4 x 4, each pixel standardised.

    It is trained, if at all, in single precision where `single`, and its parameters are of that.
    """
    source = data.opened(point.images, (1, 4, 4))
    images = data.sample(source, rng, point.samples).flat()
    widths = (16, HIDDEN, source.classes)
    x = standardised(images.images)
    theta = per_sample.initial_parameters(rng, widths).to(device)
    theta = theta.float() if single else theta
    return widths, trained.trained(widths, theta, x, images.labels, steps=point.steps), x, images.labels


def small_perceptron(
    rng: np.random.Generator, point: Point, device: str = "cpu", *, single: bool = False
) -> Any:
    """Per-sample curvature of `perceptron`."""
    return sample_products.PerceptronSamples(
        *perceptron(rng, point, device, single=single), matrix=point.matrix
    )


def lenet_perceptron(rng: np.random.Generator, point: Point, device: str = "cpu") -> Any:
    """Per-sample curvature of LeNet-300-100 without biases, relu, on images of 28 x 28 less their mean image."""
    import torch

    source = data.opened(point.images, (1, 28, 28))
    images = data.sample(source, rng, point.samples).flat()
    widths = (*networks.LENET_300_100[:-1], source.classes)
    x = images.images - images.images.mean(axis=0) if point.centred else images.images
    theta = torch.cat([w.flatten() for w in networks.mlp_weights(rng, widths)]).to(device)
    theta = trained.trained(widths, theta, x, images.labels, "relu", steps=point.steps, rate=0.001)
    return sample_products.PerceptronSamples(widths, theta, x, images.labels, "relu", matrix=point.matrix)


def standardised(images: Floats) -> Floats:
    """Each pixel of mean 0 and deviation 1 over the images; a constant one 0."""
    deviation = images.std(axis=0)
    return (images - images.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)


def noise_of(samples: Any, rng: np.random.Generator, vectors: Any) -> Noise:
    """By algorithm 1 as corrected, and from the products with v_1; curvature below the k-th direction counts as 0."""
    probes = _probes(samples, rng)
    total = fluctuation(samples, probes)
    first = samples.project(vectors[None])
    image = samples.apply(first[:, :, :1])
    entries = (image @ first.mT)[0, :, 0].cpu().numpy()
    along = fluctuation(samples, vectors[None, :1])
    values, variances = entries.mean(axis=0), entries.var(axis=0)
    top = float(values[0])
    curvatures = np.diagonal((samples.apply(first) @ first.mT)[0].mean(0).cpu().numpy())
    within = variances[1:] @ (1 / (top - curvatures[1:]))
    return Noise(top, total, along, float(within + max(along - variances.sum(), 0.0) / top))


def _probes(samples: Any, rng: np.random.Generator) -> Any:
    """All unit vectors of a small network, random ones of a large one, each of length one."""
    import torch

    if samples.dim <= 512:
        return torch.eye(samples.dim, dtype=samples.dtype, device=samples.device)[None]
    probes = torch.from_numpy(rng.standard_normal((1, 32, samples.dim))).to(samples.device)
    return torch.nn.functional.normalize(probes, dim=2)


def fluctuation(samples: Any, vectors: Any) -> float:
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
    sigma = float(batch_hessian.element_variance(noise.total, dim=dim)) ** 0.5
    batch: dict[str, Any] = {"batch_size": np.array(sizes, dtype=float), "dataset_size": float(total)}
    ratio = dim * (1 / batch["batch_size"] - 1 / total)
    # the variance of an element of Wishart noise is sigma^4 per sample
    repaired = {"variance": sigma, "dim": dim, **batch}
    return {
        "theorem_4": batch_hessian.batch_eigenvalue(noise.eigenvalue, sigma=sigma, dim=dim, **batch),
        "theorem_7_read": theorem_7_as_our_copy_reads(noise.eigenvalue, sigma, ratio),
        "theorem_7": batch_hessian.batch_ggn_eigenvalue(noise.eigenvalue, **repaired),
        "factor": batch_hessian.batch_ggn_factor_eigenvalue(noise.eigenvalue, **repaired),
        "second_order": batch_hessian.second_order_eigenvalue(
            noise.eigenvalue, coefficient=noise.coefficient, **batch
        ),
    }


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
