"""Granziol, Zohren and Roberts (2022): inequalities that every population keeps to, and two numbers of the text."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.random import Generator

from simulate.matrices import ensembles, populations
from simulate.monte_carlo import Block, Point
from theory import batch_hessian
from theory.batch_hessian import ranks
from theory.rmt import Semicircle
from verify.claims import Array
from verify.claims.granziol2022 import PAPER
from verify.claims.trained_networks import VGG_16
from verify.model import (
    Arrays,
    Claim,
    ExactProperty,
    Experiment,
    Identity,
    Kind,
    NoTheory,
    as_stated,
    misprint,
)
from verify.model.domains import Between, Domain, OneOf

ROUNDING = "exact; a few roundings of an eigensolver in float64"

# --- section 2: inverses and Lipschitz constants -------------------------------------------------------------


def _inverse_gaps(rng: Generator, point: Point) -> Array:
    """Eigenvalues of E H^-1 - (E H)^-1, over the largest of the mean inverse."""
    samples = populations.definite_matrices(rng, point.dataset_size, point.dim, least=point.least)
    of_inverses = np.linalg.inv(samples).mean(axis=0)
    gap = of_inverses - np.linalg.inv(samples.mean(axis=0))
    return np.linalg.eigvalsh(gap) / np.linalg.norm(of_inverses, 2)


MEAN_INVERSE = ExactProperty(
    id="granziol2022/mean-inverse",
    no_theory=NoTheory.MEASURED,
    entries=("B2",),
    source=f"{PAPER}, section 2; the order is ours",
    statement=r"\mathbb{E}\,H_i^{-1} \succeq (\mathbb{E}\,H_i)^{-1}\quad (H_i \succ 0)",
    says="The mean inverse of positive definite matrices is, in the matrix order, at least the inverse of their mean.",
    domain={"dataset_size": Between(2, 6), "dim": Between(1, 6), "least": Between(0.05, 3.0)},
    violation=lambda rng, point: max(0.0, -float(_inverse_gaps(rng, point)[0])),
    examples=(Point(dataset_size=5, dim=4, least=0.3), Point(dataset_size=2, dim=1, least=0.7)),
    tolerance=1e-12,
    tolerance_reason="rounding of inverses of condition up to some thousands",
    rivals={
        "equal": lambda rng, point: float(np.abs(_inverse_gaps(rng, point)).max()),
        "the other order": lambda rng, point: max(0.0, float(_inverse_gaps(rng, point)[-1])),
    },
    seconds=0.02,
)


def lipschitz_constants(_: Generator, point: Point) -> Arrays:
    """Steepest chord of the gradient a_i w_i + c_i sin w_i, whose Hessian is diag(a_i + c_i cos w_i)."""
    grid = np.linspace(-2 * np.pi, 2 * np.pi, 801)
    curvatures = [a + c * np.cos(grid) for a, c in zip(point.constant, point.wave, strict=True)]
    chords = [
        np.abs(np.diff(a * grid + c * np.sin(grid))).max() / (grid[1] - grid[0])
        for a, c in zip(point.constant, point.wave, strict=True)
    ]
    eigenvalues = np.sort(curvatures, axis=0)
    return {
        "steepest chord": max(chords),
        "largest |eigenvalue|": np.abs(eigenvalues).max(),
        "infimum of the eigenvalues": eigenvalues.min(),
        "infimum of |eigenvalue|": np.abs(eigenvalues).min(),
        "largest eigenvalue": eigenvalues.max(),
    }


LIPSCHITZ = Identity(
    id="granziol2022/lipschitz-constant",
    symbols={"w": "parameters, of which the loss R is a function"},
    no_theory=NoTheory.MEASURED,
    entries=("B2",),
    source=f"{PAPER}, section 2.1",
    statement=r"\sup_{w, w'} \frac{|\nabla R(w) - \nabla R(w')|}{|w - w'|} = \sup_w \max_i |\lambda_i(\nabla^2 R(w))|",
    says="The Lipschitz constant of the gradient is the supremum of the Hessian's largest absolute eigenvalue.",
    passage=misprint(
        "which is the infimum of the eigenvalues of the Hessian in the weight manifold",
        "Section 2.1",
    ),
    routes=lipschitz_constants,
    points=(
        Point(constant=(-0.6, 0.3), wave=(1.7, 0.9)),
        Point(constant=(0.8, -0.2), wave=(1.3, 0.7)),
    ),
    printed="infimum of the eigenvalues",
    reads=r"\text{Lipschitz constant} = \text{infimum of the eigenvalues of the Hessian}",
    finding="As our copy reads it is the infimum of the eigenvalues, where the supremum of the absolute ones is "
    "meant, as Section 2.2 has it.",
    tolerance=1e-3,
    tolerance_reason="chords of length 0.016 miss the steepest tangent by 2e-5",
    seconds=0.01,
    quantity="Lipschitz constant of the gradient",
)


# --- inequalities over all batches ---------------------------------------------------------------------------


SYMMETRIC_POPULATIONS: Domain = {"dataset_size": Between(2, 7), "dim": Between(1, 5)}


def _extremes(rng: Generator, point: Point) -> tuple[list[Array], float]:
    """Lowest and top eigenvalues of all batches, for B = 1..N; and how far the mean trace moves with B."""
    total = point.dataset_size
    samples = populations.symmetric_matrices(rng, total, point.dim)
    batches = [populations.batch_sums(samples, size) / size for size in range(1, total + 1)]
    traces = [np.trace(b, axis1=1, axis2=2).mean() for b in batches]
    return [np.linalg.eigvalsh(b)[:, [0, -1]] for b in batches], float(np.ptp(traces))


def _not_monotone(rng: Generator, point: Point) -> float:
    ends, drift = _extremes(rng, point)
    low, top = np.array([e.mean(axis=0) for e in ends]).T
    return max(drift, float(np.diff(top).max()), float(-np.diff(low).min()))


def _mean_broadening(rng: Generator, point: Point) -> float:
    ends, _ = _extremes(rng, point)
    return float(ends[0][:, 1].mean() - ends[-1][0, 1])


def _single_batch_below(rng: Generator, point: Point) -> float:
    ends, _ = _extremes(rng, point)
    return float(max(ends[-1][0, 1] - e[:, 1].min() for e in ends))


EVERY_BATCH = ExactProperty(
    id="granziol2022/every-batch",
    no_theory=NoTheory.MEASURED,
    entries=("B1", "B60"),
    source=f"{PAPER}, abstract and sections 1, 8.1 and 12 to 14; that it never grows with B is ours",
    statement=r"\mathbb{E}\,\lambda_1(H_B) \ge \mathbb{E}\,\lambda_1(H_{B+1}) \ge \dots \ge \lambda_1(H),\quad "
    r"\mathbb{E}\,\lambda_P(H_B) \le \dots \le \lambda_P(H),\quad \mathbb{E}\,\mathrm{tr}\,H_B = \mathrm{tr}\,H",
    says="Over all batches the mean top eigenvalue never grows with the batch size, the mean lowest one never falls, "
    "the mean trace stays.",
    domain=SYMMETRIC_POPULATIONS,
    violation=_not_monotone,
    examples=(Point(dataset_size=8, dim=5), Point(dataset_size=6, dim=3)),
    tolerance=1e-12,
    tolerance_reason=ROUNDING,
    rivals={"equal in the mean": _mean_broadening, "for every single batch": _single_batch_below},
    seconds=0.021,
)


def norms_of_noise(block: Block, point: Point) -> Arrays:
    """Squared Frobenius and squared spectral norm of noise with independent elements."""
    frobenius, spectral = ensembles.goe_norms(block, point.dim)
    return {"frobenius": frobenius, "spectral": point.dim * spectral}


NORMS = Experiment(
    id="granziol2022/norms-of-noise",
    replicate="one matrix of noise",
    simulate=norms_of_noise,
    on_host="eigenvalues of tridiagonal matrices, by LAPACK",
    points=(Point(dim=6400), Point(dim=10**5)),
    budget=1024,
    seconds=0.03,
)


def _norms(_: Point) -> float:
    """Squared Frobenius norm over dimension times squared spectral norm, from the law of the eigenvalues."""
    law = Semicircle(sigma=1.0)
    return float(law.var() / law.edges[1] ** 2)


FROBENIUS = Claim(
    id="granziol2022/frobenius-step",
    entries=("B9",),
    source=f"{PAPER}, eq. (6), for independent elements, where the quarter is ours",
    statement=r"\frac{\mathbb{E}\,\lVert\varepsilon\rVert_F^2}{P\,\mathbb{E}\,\lVert\varepsilon\rVert_2^2} "
    r"\to \tfrac14 \le 1",
    says="For noise with independent elements, the squared Frobenius norm is a quarter of its bound, dimension times "
    "squared spectral norm.",
    experiment=NORMS,
    kind=Kind.RATIO,
    score=("frobenius", "spectral"),
    predict=_norms,
    margin=0.01,
    margin_reason="at most 1 % for random matrices; the spectral norm is 0.1 % low at P = 6400",
    rivals={
        "attained": lambda _: 1.0,
        "edge without the 2": lambda p: 4 * _norms(p),
        "5 % larger": lambda p: 1.05 * _norms(p),
    },
    quantity="squared Frobenius norm over P times the squared spectral norm",
)


BOUNDED_POPULATIONS: Domain = {
    "dataset_size": Between(2, 7),
    "batch_size": Between(1, 7),
    "dim": Between(1, 12),
    "lipschitz": Between(0.1, 10.0),
    "opposed": OneOf(False, True),
}


def _bounded_noise(rng: Generator, point: Point) -> tuple[Array, float]:
    """Noise of all batches of matrices of norm L at most, and the bound of them.

    `opposed`: one sample -L in every direction, all others +L; else norm L each, in random directions.
    """
    total = point.dataset_size
    size = min(point.batch_size, total)
    if point.opposed:
        signs = np.where(np.arange(total) == 0, -1.0, 1.0)
        samples = signs[:, None, None] * np.eye(point.dim)
    else:
        samples = populations.symmetric_matrices(rng, total, point.dim)
        samples = samples / np.linalg.norm(samples, 2, axis=(1, 2))[:, None, None]
    noise = populations.batch_sums(samples, size) / size - samples.mean(axis=0)
    most = batch_hessian.noise_bound(point.lipschitz, batch_size=size, dataset_size=total)
    return point.lipschitz * noise, float(most)


def _mean_square_excess(rng: Generator, point: Point, *, bound: float = 1.0, power: int = 1) -> float:
    """Excess of the mean square of the elements over 4 L^2 (1 - B/N)^2 / P, relative to L^2."""
    noise, largest = _bounded_noise(rng, point)
    most = bound * largest**2 / point.dim**power
    return max(0.0, float((noise**2).mean() - most) / point.lipschitz**2)


INEQUALITIES = (
    MEAN_INVERSE,
    EVERY_BATCH,
    FROBENIUS,
    ExactProperty(
        id="granziol2022/vanishing-noise",
        entries=("B8", "B14"),
        source=f"{PAPER}, proof of theorem 3, second argument",
        statement=r"|H_i| \le L:\quad \frac1{P^2} \sum_{jk} \mathbb{E}\,\varepsilon_{jk}^2 \le "
        r"\frac{4 L^2}{P} (1 - B/N)^2 \to 0",
        says="If every sample's curvature is bounded, the mean square of the noise elements is at most a constant "
        "over the dimension.",
        domain=BOUNDED_POPULATIONS,
        violation=_mean_square_excess,
        examples=(
            Point(dataset_size=2, batch_size=1, dim=9, lipschitz=1.3, opposed=True),
            Point(dataset_size=6, batch_size=2, dim=5, lipschitz=0.7, opposed=False),
        ),
        tolerance=1e-12,
        tolerance_reason=ROUNDING,
        rivals={
            "1/P^2": partial(_mean_square_excess, power=2),
            "half of it": partial(_mean_square_excess, bound=0.5),
        },
        seconds=0.01,
    ),
)

# --- section 7: the figure for VGG-16 ------------------------------------------------------------------------

CHANNELS = tuple(wide for stage in VGG_16 for wide in stage)
SIDE = 32


def vgg_16(_: Generator, point: Point) -> Arrays:
    """Degeneracy of VGG-16 on small colour images: units and parameters counted on the network, and by arithmetic."""
    import torch

    head = (512, 512, point.classes)
    layers, units, positions = _vgg_layers(head), 0, 0
    image = torch.zeros(1, 3, SIDE, SIDE, device="meta")
    x = image
    for layer in layers:
        x = layer(x)
        if any(True for _ in layer.parameters()):
            units, positions = units + x.shape[1], positions + x[0].numel()
    parameters = sum(w.numel() for layer in layers for w in layer.parameters())
    by_hand = sum((9 * a + 1) * b for a, b in pairwise((3, *CHANNELS)))
    by_hand += sum((a + 1) * b for a, b in pairwise((CHANNELS[-1], *head)))

    def degeneracy(units: int, inputs: int = image.numel()) -> float:
        return 1 - 4 * point.classes * (units + inputs) / parameters

    return {
        "counted": degeneracy(units),
        "by hand": 1 - ranks.sample_rank_bound_of_paths(3 * SIDE**2, (*CHANNELS, *head)) / by_hand,
        "as our copy reads": 1 - 577600 / 1.6e7,
        "one colour": degeneracy(units, SIDE**2),
        "head of ImageNet": degeneracy(sum(CHANNELS) + 4096 + 4096 + 1000),
        "every position": degeneracy(positions),
    }


def _vgg_layers(head: tuple[int, ...]) -> list[Any]:
    """Convolutions of 3 x 3 with biases, halvings, and the fully connected head; shapes only, no weights."""
    import torch
    from torch import nn

    layers, narrow = [], 3
    with torch.device("meta"):
        for stage in VGG_16:
            for wide in stage:
                layers.append(nn.Conv2d(narrow, wide, 3, padding=1))
                narrow = wide
            layers.append(nn.MaxPool2d(2))
        return [*layers, nn.Flatten(), *(nn.Linear(a, b) for a, b in pairwise((narrow, *head)))]


CLAIMS = (
    *INEQUALITIES,
    LIPSCHITZ,
    Identity(
        id="granziol2022/vgg-16",
        entries=("B33",),
        source=f"{PAPER}, section 7",
        statement=r"1 - \frac{4 d_y (\sum_l N_l + d_x)}{P} = 0.9781\quad "
        r"(d_y = 10,\ \textstyle\sum_l N_l = 5258,\ d_x = 3072,\ P = 15\,245\,130)",
        says="The rank bound, with units, colours and parameters counted on the ten-class VGG-16, gives the share of "
        "zero eigenvalues.",
        passage=as_stated("total number of neurons is 13, 416", "Section 7.1"),
        routes=vgg_16,
        points=(Point(classes=10),),
        printed="as our copy reads",
        reads=r"1 - \frac{577{,}600}{1.6 \times 10^7} = 0.9639",
        finding="577600 = 40 (13416 + 1024) is right arithmetic on a wrong count: one colour of three and a head of a "
        "thousand classes. The network of Section 8, with ten classes, gives 0.9781, a stronger figure; with every "
        "position a unit it is 0.264.",
        tolerance=1e-6,
        tolerance_reason="whole numbers; the rivals are 5e-3 away",
        seconds=0.01,
        quantity="degeneracy from the rank bound",
    ),
)
