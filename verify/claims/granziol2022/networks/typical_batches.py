"""Granziol, Zohren and Roberts (2022), section 8: theorems 4 and 7 on networks at B = 128, to the accuracy stated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from simulate import perceptrons
from simulate.matrices import ensembles
from simulate.monte_carlo import Block, Point
from verify.claims.beyond import networks
from verify.claims.beyond.networks import Noise, formulas
from verify.claims.granziol2022 import PAPER
from verify.model import AnyClaim, Claim, Experiment, Passage, Standing, Verdict

__all__ = ["CLAIMS"]


def typical_batches(block: Block, point: Point) -> Mapping[str, Any]:
    """Top eigenvalues of ten batches of a network, and how many of their deviations their mean is off a theorem.

    Networks are trained, and matrices made, in single precision, at six tenths of the cost; see `ROUNDING`.
    """
    rows = [_one_network(rng, point, block.device) for rng in block.streams]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def _one_network(rng: np.random.Generator, point: Point, device: str) -> dict[str, float]:
    samples = networks.small_perceptron(rng, point, device, single=True)
    batches = perceptrons.own_direction.partitions(rng, samples.size, point.batch_size, 1)[: point.batches]
    if batches.size != samples.size:
        raise ValueError(f"batches must hold all {samples.size} samples, got {batches.size} in them")
    parts = samples.on(batches)
    inner = parts.inner()
    matrices = parts.matrices(inner).double()  # one eigenvalue of all is cheaper than all in single precision
    tops = ensembles.top_eigenvalue(matrices).cpu().numpy()
    whole = matrices.mean(0)
    # mean squared length of products with a unit vector: with each sample's matrix, less with their mean
    total = float(inner.square().sum() / samples.size - whole.square().sum()) / samples.dim
    noise = Noise(float(ensembles.top_eigenvalue(whole[None])), total, 0.0, 0.0)
    said = formulas(noise, samples.dim, (point.batch_size, 1), samples.size)
    (fourth, alone), seventh = said["theorem_4"].tolist(), float(said["theorem_7_read"][0])
    mean, deviation = float(tops.mean()), float(tops.std(ddof=1))
    off_4, off_7 = (mean - fourth) / deviation, (mean - seventh) / deviation
    return {
        "measured": mean,
        "theorem_4": fourth,
        "theorem_4_for_one_sample": alone,
        "off_4": off_4,
        "off_7": off_7,
    }


ROUNDING = 1e-4
"""Of a score or input: on 48 networks at most 1.8e-5 from the one in double precision, training included."""

SETTING = {"images": "digits", "samples": 1280, "batch_size": 128, "batches": 10}

START = Experiment(
    id="granziol2022/typical-batches",
    replicate="one tanh network 16-8-10 at the start, with 1280 images and ten batches of 128",
    simulate=typical_batches,
    single="its matrices are in single precision",
    points=tuple(Point(matrix=matrix, steps=0, **SETTING) for matrix in ("hessian", "gauss-newton")),
    budget=1024,
    seconds=3.1,
    data="digits",
)

TRAINED = Experiment(
    id="granziol2022/typical-batches-trained",
    replicate="one tanh network 16-8-10 after 300 steps, with 1280 images and ten batches of 128",
    simulate=typical_batches,
    single="its matrices are in single precision",
    points=(Point(matrix="hessian", steps=300, **SETTING),),
    budget=512,
    seconds=4.2,
    data="digits",
    on_host="training, in numpy",
)

INPUTS = {"theorem_4": 0.6, "theorem_4_for_one_sample": 1.9}

THIRD = "the accuracy that section 8.2.1 gives for B = 128"
ONE = "the one standard deviation of section 8.2.1, of the batches, as in figure 9"

NO_BATCH = "a batch of one sample"

FAR_FROM_THE_LIMIT = Passage(Standing.OUTSIDE, "our results are in the limit of P,B →∞", "Section 8.2.1")
"""Of networks of 226 parameters, whatever comes out there: the paper's words on B = 128 are of networks of millions."""


def _within_a_third(name: str, says: str, experiment: Experiment, **verdict: Any) -> Claim:
    return Claim(
        id=f"granziol2022/{name}",
        entries=("B19", "B40"),
        source=f"{PAPER}, theorem 4, eq. (9), at B = 128 (section 8.2.1)",
        statement=r"\mathbb{E}\,\lambda_1(H_B) = \lambda_1 + \frac{P \sigma^2}{b \lambda_1} \text{ to } 30\,\%,\quad "
        r"B = 128",
        says=says,
        passage=FAR_FROM_THE_LIMIT,
        experiment=experiment,
        score="measured",
        inputs=INPUTS,
        predict=lambda p: p.theorem_4,
        margin=0.3,
        numerical=ROUNDING,
        margin_reason=THIRD,
        rivals={NO_BATCH: lambda p: p.theorem_4_for_one_sample},
        quantity="mean top eigenvalue of ten batches",
        **verdict,
    )


def _within_a_deviation(
    name: str, says: str, experiment: Experiment, theorem: str, score: str, **verdict: Any
) -> Claim:
    return Claim(
        id=f"granziol2022/{name}",
        entries=("B40",),
        source=f"{PAPER}, {theorem}, at B = 128 (section 8.2.1, figure 9)",
        statement=r"\Big|\mathbb{E}\,\frac{\bar\lambda - \lambda_1'}{s}\Big| \le 1,\quad \bar\lambda, s: "
        r"\text{mean and standard deviation of } \lambda_1(H_B) \text{ over ten batches},\ B = 128",
        says=says,
        passage=FAR_FROM_THE_LIMIT,
        experiment=experiment,
        score=score,
        predict=lambda _: 0.0,
        margin=1.0,
        numerical=ROUNDING,
        relative=False,
        margin_reason=ONE,
        pilot="that a batch of one sample is taken as three deviations off: on networks drawn first the theorem at "
        "b = 1 was off by 4.5 and 17 at the start and by 6.2 after training",
        rivals={NO_BATCH: lambda _: 3.0},
        quantity="mean top eigenvalue of ten batches less the theorem, in their standard deviations",
        **verdict,
    )


CLAIMS: tuple[AnyClaim, ...] = (
    _within_a_third(
        "theorem-4-at-128",
        "At the start of training, on small networks, Theorem 4 gives the mean top eigenvalue of batches of 128 to "
        "the accuracy that the paper states.",
        START,
    ),
    _within_a_third(
        "theorem-4-trained-at-128",
        "After some hundred steps of training too, on networks of 226 parameters, Theorem 4 gives the mean top "
        "eigenvalue of batches of 128 to the accuracy that the paper states.",
        TRAINED,
        expected=Verdict.DISAGREES,
        finding="On networks of 226 parameters after 300 steps, far from the limit that the theorem is stated for, it "
        "is low by more than the 30 % that the paper allows: the noise sits along the directions of large curvature.",
    ),
    _within_a_deviation(
        "theorem-7-within-a-deviation",
        "At the start of training, on small networks, the mean top eigenvalue of batches of 128 lies within one of "
        "their standard deviations of Theorem 7.",
        START,
        "theorem 7, eq. (16)",
        "off_7",
    ),
    _within_a_deviation(
        "theorem-4-trained-within-a-deviation",
        "After some hundred steps of training, on networks of 226 parameters, the mean top eigenvalue of batches of "
        "128 lies within one of their standard deviations of Theorem 4.",
        TRAINED,
        "theorem 4, eq. (9)",
        "off_4",
        expected=Verdict.DISAGREES,
        finding="On networks of 226 parameters after 300 steps, far from the limit that the theorem is stated for, the "
        "mean over ten batches of 128 is more than one of their deviations above it.",
    ),
)
