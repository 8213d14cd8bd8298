"""Rates at which SGD turns unstable: by the noise kernel norm on least squares, by Lyapunov exponents at minima."""

from __future__ import annotations

import numpy as np

from simulate.monte_carlo import Block, Point
from simulate.training import grids, lyapunov, stacks
from theory.learning_rates import edge_of_stability
from verify.claims.edge.networks import CHEMNITZ
from verify.claims.trained_networks import (
    all_samples,
    batches_of,
    drawn_images,
    perceptrons_drawn,
    training_sets,
)
from verify.model import Arrays, Claim, Experiment, Kind, NoTheory, as_stated

PRODUCTS = 20
"""Iterations for the largest stable rate: within a part in a thousand of what more give."""


def kernel_norm_at_the_limit(block: Block, point: Point) -> Arrays:
    """Noise kernel norm at the largest mean-square stable rate of SGD on least squares, with inputs of length 1."""
    import torch

    inputs = torch.nn.functional.normalize(block.normal(point.samples, point.dim), dim=2)
    kernels = inputs @ inputs.mT
    rates = lyapunov.mean_square_stable_rates(
        kernels[:, :, None, :, None], point.batch_size, products=PRODUCTS
    )
    norms = edge_of_stability.noise_kernel_norm(
        (torch.linalg.eigvalsh(kernels) / point.samples).clamp_min(0).cpu().numpy(),
        rate=rates.cpu().numpy(),
        batch_size=point.batch_size,
        dataset_size=point.samples,
    )
    return {"norm": norms}


SHARES = (0.6, 0.7, 0.8, 0.9, 1.0)
"""Rates at which the exponent is measured, over 2 by the largest eigenvalue."""

SKIPPED, COUNTED = 10, 60
"""Epochs before the growth of a displacement is measured, and while it is."""

OFFSET, LEFT = 1e-4, 1e-3
"""Deviation of the weights from the minimum at the start, and the loss of a batch above which SGD has left it; the
first loss is about 1e-7."""


def escapes(block: Block, point: Point) -> Arrays:
    """Whether SGD leaves the minimum that it has found, at multiples of the rate where its exponent is 0."""
    import torch

    images, _ = drawn_images(block, point)
    signs = [rng.choice([-1.0, 1.0], (point.samples, 1)) for rng in block.streams]
    samples = training_sets(block, [d.images for d in images], signs)
    samples = samples._replace(inputs=samples.inputs.double(), targets=samples.targets.double())
    stack, batches = (
        stacks.Perceptrons("tanh", "squared error"),
        batches_of(block, point.samples, point.batch_size),
    )
    start = [p.double() for p in perceptrons_drawn(block, (64, *point.hidden, 1))]
    rates = torch.full((len(block), 1), point.rate, device=block.device, dtype=torch.float64)
    minima = grids.train(stack, start, samples, batches, rates=rates, steps=point.steps).cells.parameters
    kernels = stack.output_kernels(minima, all_samples(samples)[0])
    tops = torch.linalg.eigvalsh(kernels[:, :, 0, :, 0])[:, -1:] / point.samples
    tried = 2 / tops * torch.tensor(SHARES, device=block.device)
    epoch = batches[0].per_epoch
    exponents = lyapunov.lyapunov_exponents(
        kernels, batches, rates=tried, steps=COUNTED * epoch, skip=SKIPPED * epoch
    )
    limits = lyapunov.first_unstable(tried, exponents).minimum(tried[:, -1])[:, None]
    near = [p + block.stack(lambda rng, shape=p.shape[1:]: rng.normal(0, OFFSET, shape)) for p in minima]
    run = grids.train(
        stack,
        near,
        samples,
        batches,
        rates=limits * torch.tensor(point.multiple, device=block.device),
        steps=point.steps,
        lost=np.inf,
    )
    return {"left": (run.losses.amax(2) > LEFT).double().cpu().numpy()}


LEAST_SQUARES = Experiment(
    id="edge/kernel-norm",
    replicate="one set of inputs in uniform directions",
    simulate=kernel_norm_at_the_limit,
    points=(
        Point(samples=40, dim=80, batch_size=3),
        Point(samples=60, dim=90, batch_size=15),
    ),
    budget=256,
    seconds=0.2,
)

MINIMA = Experiment(
    id="edge/escapes",
    replicate="one perceptron at a minimum of its images with random signs",
    simulate=escapes,
    points=(
        Point(
            images="digits",
            samples=10,
            hidden=(34,),
            rate=0.08,
            batch_size=2,
            steps=400,
            multiple=(0.9, 1.1),
        ),
    ),
    budget=256,
    seconds=1.4,
    data="digits",
)

CLAIMS = (
    Claim(
        id="edge/kernel-norm",
        entries=("E10",),
        source="Agarwala and Pennington (2024), arXiv 2404.19261, abstract",
        passage=as_stated(
            "an alternative stochastic edge of stability which arises at small batch size that is sensitive to the "
            "trace of the Neural Tangent Kernel",
            "abstract; that the norm is 1 there, accounts by others; the formula is derived on our page",
        ),
        statement=r"\Big(\frac1B - \frac1N\Big) \sum_k \frac{\eta\lambda_k}{2 - \eta\lambda_k} = 1 "
        r"\quad\text{at the largest } \eta \text{ that is stable in the mean square}",
        symbols={r"\lambda_k": "eigenvalue of the kernel over N", "N": "number of samples"},
        says="On least squares with inputs of one length, the noise kernel norm is one at the largest rate at which "
        "SGD is stable in the mean square.",
        experiment=LEAST_SQUARES,
        score="norm",
        predict=lambda _: 1.0,
        margin=0.04,
        margin_reason="of order 1/N, for 40 samples and more",
        pilot="that inputs have one length: with Gaussian inputs single long samples took it down to 0.78",
        rivals={
            "batches with replacement": lambda p: 1 - p.batch_size / p.samples,
            "noise of twice the variance": lambda _: 2.0,
        },
        quantity="noise kernel norm at the largest stable rate",
    ),
    Claim(
        id="edge/escapes",
        entries=("E11",),
        source=f"{CHEMNITZ}, abstract",
        passage=as_stated(
            "the sign of this Lyapunov exponent determines whether SGD can accumulate at the respective global "
            "minimum",
            "abstract",
        ),
        statement=r"P(\text{SGD with rate } m \rho \text{ leaves the minimum}) = [m > 1],\quad "
        r"\rho = \min\{\eta: \text{exponent} > 0\}",
        symbols={"m": "multiple of the rate", r"\rho": "rate at which the exponent turns positive"},
        says="Started next to a minimum, SGD leaves it if its Lyapunov exponent there is positive, and stays if the "
        "exponent is negative, at rates a tenth above and below.",
        experiment=MINIMA,
        kind=Kind.PROPORTION,
        score="left",
        along="multiple",
        predict=lambda p: float(p.multiple > 1),
        margin=0.2,
        relative=False,
        margin_reason="the exponent is measured on 60 epochs, and a run is finite; the readings are always and never",
        pilot="the sizes, the rates, the displacement and the loss that counts: 32 networks with other seeds",
        rivals={
            "where the rate exceeds 2 over the largest eigenvalue": lambda _: 0.0,
            "at any of these rates": lambda _: 1.0,
        },
        no_theory=NoTheory.CONSTANT,
        quantity="share of networks that leave their minimum",
    ),
)
