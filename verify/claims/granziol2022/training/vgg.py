"""Granziol, Zohren and Roberts (2022), figures 8 and 9, on networks of the kind that they are of: VGG-16."""

from __future__ import annotations

from simulate.monte_carlo import Point
from verify.claims.granziol2022 import PAPER
from verify.claims.granziol2022.training.through_training import (
    BATCH_COLUMNS,
    DIRECTIONS,
    batches_through_training,
)
from verify.claims.trained_networks import VGG_16, pass_cost, vgg_layers
from verify.model import Tier
from verify.model.observation import Cost, Observation, on_a_gpu

__all__ = ["OBSERVATIONS"]


def cost_of_course(point: Point) -> Cost:
    """Passes forward of every image at each time of training, and of the batches; both as the pretended device counts.

    The Hessian takes another search, since the law of own directions is that of the Gauss-Newton matrix.
    """
    forward, kept = pass_cost(point)
    layers, states, samples = vgg_layers(point), len(point.done), point.samples
    weights = sum(count for count, _ in layers)
    training = 3 * forward * point.epochs * samples
    whole = (410 if point.matrix == "hessian" else 290) * samples
    batches = 33 * 10 * sum(point.batch_sizes)
    chunk = min(point.chunk, samples)
    held = 6 * kept * chunk + weights * (16 + 6 * DIRECTIONS)
    launches = len(layers) * (25 * point.epochs * samples / point.training_batch)
    launches += len(layers) * states * (6_000 + 10_000 * -(-samples // chunk))
    return Cost(4 * held + 2**30, training + states * (whole + batches) * forward, launches)


VGG = Observation(
    id="granziol2022/vgg-through-training",
    entries=("B19", "B40", "B41", "B50", "beyond/D1"),
    source=f"{PAPER}, section 8.2, figures 8 and 9",
    title="Largest eigenvalue of a batch of a convolutional network through training, measured and predicted",
    note="Three convolutions and two matrices on digits, in single precision, with momentum 0.9, weight decay 0.0005 "
    "and the rates of eq. (21); the Gauss-Newton matrix. Predicted over measured; 1 is perfect. Four networks: at the "
    "start all agree to 7 %. Once trained theorems 4 and 7 are within 10 % at B = 128 and 29 to 48 % low at 16, second "
    "order in the noise within 12 and 20 %, own directions within 1.5 %: as for LeNet-5.",
    replicate="one convolutional network with its images, followed through training",
    simulate=batches_through_training,
    single="its networks are trained in single precision",
    points=(
        Point(
            images="digits", matrix="gauss-newton", stages=((4, 4), (8,)), head=(16,), samples=192, chunk=192,
            training_batch=64, epochs=20, rate=0.02, done=(0.0, 1.0), batch_sizes=(128, 16), probes=3,
        ),
    ),
    along="done",
    columns=BATCH_COLUMNS,
    replicates=1,
    seconds=19.0,
    data="digits",
    tier=Tier.FULL,
    axis="share of training done",
)  # fmt: skip

OBSERVATIONS: tuple[Observation, ...] = (
    VGG,
    on_a_gpu(
        VGG,
        points=tuple(
            Point(
                images="digits", matrix=matrix, stages=VGG_16, head=(512, 512), samples=samples, chunk=2500,
                training_batch=128, epochs=10, rate=0.01, done=(0.0, 1.0), batch_sizes=(128, 16), probes=3,
            )
            for matrix, samples in (("gauss-newton", 10_000), ("hessian", 1_500))
        ),
        cost=cost_of_course,
        note="VGG-16 without normalisation, 15,291,300 parameters where there are a hundred classes, on images of the "
        "user, at the start and after ten epochs: theorems 4 and 7 and the law of own directions on the Gauss-Newton "
        "matrix of 10,000 of them and the Hessian of 1,500. Written before any GPU had drawn it.",
    ),
)  # fmt: skip
