"""Stability of SGD at frozen parameters: growth of a small displacement, for many networks at once.

On the squared error, near parameters that fit their samples, a step of SGD multiplies a displacement v by
I - rate * G_B, with G_B the Gauss-Newton matrix of its batch. The outputs J v that the displacement moves then obey
u' = u - (rate / B) K[:, batch] u[batch], with K = J J' the kernel of all outputs: a step is one product with the rows
of a batch. The mean logarithm of the growth per step is the top Lyapunov exponent. SGD can end at such parameters only
where it is negative (Chemnitz and Engel 2024, arXiv 2407.20209). u has no part along directions that no sample sees.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from simulate import _checks
from simulate.training.trial_training import CommonBatches, common_orders


def lyapunov_exponents(
    kernels: Tensor, batches: Sequence[CommonBatches], *, rates: Tensor, steps: int, skip: int = 0
) -> Tensor:
    """Return the mean logarithm of the growth of a displacement in a step of SGD, (n, C).

    Parameters
    ----------
    kernels
        (n, N, K, N, K), as from `Perceptrons.output_kernels`. They must have full rank, as with more parameters than
        outputs: rounding outside of their range does not shrink, and many steps then give 0.
    batches
        One per network, all of one size; all rates of a network see the same batches.
    rates
        (n, C), positive.
    steps, skip
        Number of steps that count, and number of steps before them.

    Raises
    ------
    ValueError
        If `rates` is not positive of shape (n, C), or a count is out of its domain.

    Examples
    --------
    One weight and one sample, x = 2: a step multiplies by 1 - 4 rate.

    >>> batches = [CommonBatches(samples=1, size=1)]
    >>> kernels = torch.full((1, 1, 1, 1, 1), 4.0)
    >>> lyapunov_exponents(kernels, batches, rates=torch.tensor([[0.125, 0.5, 0.75]]), steps=9).round(decimals=4)
    tensor([[-0.6931,  0.0000,  0.6931]], dtype=torch.float64)
    """
    steps, skip = _checks.natural("steps", steps), _checks.natural_or_zero("skip", skip)
    if rates.ndim != 2 or len(rates) != len(kernels) or not _checks.all_positive(rates):
        raise ValueError(
            f"rates must be finite and positive, ({len(kernels)}, C), got shape {tuple(rates.shape)}"
        )
    size, outputs = batches[0].size, kernels.shape[2]
    rows = kernels.flatten(3).flatten(1, 2)
    moved = rows.sum(1, keepdim=True)  # change of the outputs along the gradient of their sum
    moved = (moved / moved.norm(dim=2, keepdim=True)).repeat(1, rates.shape[1], 1)
    first = torch.arange(0, rows.shape[:2].numel(), rows.shape[1], device=rates.device)[:, None]
    within = torch.arange(outputs, device=rates.device)
    scale = (rates / size)[..., None]
    total = torch.zeros(rates.shape, dtype=torch.float64, device=rates.device)
    for step, order in enumerate(common_orders(batches, skip + steps, rates.device)):
        chosen = (order[..., None] * outputs + within).flatten(1)
        # indexing with brackets takes several times as long for whole rows
        seen = (
            rows.flatten(0, 1).index_select(0, (first + chosen).flatten()).view(len(rows), -1, rows.shape[2])
        )
        # a displacement is a row: products with columns take five times as long
        moved.baddbmm_(
            scale * moved.gather(2, chosen[:, None].expand(-1, rates.shape[1], -1)), seen, alpha=-1
        )
        length = moved.norm(dim=2)
        # at every step: the product of all steps overflows or vanishes
        moved /= length[..., None]
        if step >= skip:
            total += length.double().log()
    return total / steps


def mean_square_stable_rates(kernels: Tensor, size: int, *, products: int) -> Tensor:
    """Return the largest rate at which frozen SGD with independent batches keeps E u u' bounded, (n,), by iteration.

    At this rate some M = E u u' solves G M + M G = rate G E[W M W] G, with G the kernel over N and W the weights N / B
    of a batch. Its inverse is the largest eigenvalue of the map from M to the X with G X + X G = G E[W M W] G.

    Parameters
    ----------
    kernels
        (n, N, K, N, K), as from `Perceptrons.output_kernels`, of full rank.
    size
        Samples of a batch, drawn without replacement.
    products
        Number of iterations; each costs products of matrices of all outputs.

    Raises
    ------
    ValueError
        If a number is not a positive integer, or `size` is above N.

    Examples
    --------
    Batches of all samples: 2 over the largest eigenvalue of the kernel over N.

    >>> kernels = (torch.eye(2) * torch.tensor([1.0, 4.0])).view(1, 2, 1, 2, 1)
    >>> mean_square_stable_rates(kernels, 2, products=99)
    tensor([1.], dtype=torch.float64)
    """
    count, outputs = kernels.shape[1:3]
    if not _checks.natural("size", size) <= count:
        raise ValueError(f"size must be at most the {count} samples there are, got {size}")
    values, vectors = torch.linalg.eigh(kernels.double().flatten(3).flatten(1, 2) / count)
    own = torch.eye(count, device=kernels.device).kron(torch.ones(outputs, outputs, device=kernels.device))
    more = (count / size - 1) * count / max(count - 1, 1)
    scale = values[:, :, None] * values[:, None] / (values[:, :, None] + values[:, None])
    moment, growth = torch.eye(count * outputs).to(values).expand_as(scale), values[:, 0]
    for _ in range(_checks.natural("products", products)):
        inside = vectors.mT @ ((vectors @ moment @ vectors.mT) * own) @ vectors
        moment = scale * (moment + more * (inside - moment / count))
        growth = moment.diagonal(dim1=1, dim2=2).sum(1)
        moment = moment / growth[:, None, None]
    return 1 / growth


def first_unstable(rates: Tensor, exponents: Tensor) -> Tensor:
    """Return the rate where the exponent turns positive, (n,), by a line between the two rates around it.

    Parameters
    ----------
    rates, exponents
        (n, C), rates ascending.

    Returns
    -------
    The smallest rate where the exponent is positive at all of them, infinity where it is positive at none.

    Examples
    --------
    >>> rates = torch.tensor([[1.0, 2.0, 3.0]]).expand(3, 3)
    >>> first_unstable(rates, torch.tensor([[-1.0, -0.5, 0.5], [0.1, 0.2, 0.3], [-3.0, -2.0, -1.0]]))
    tensor([2.5000, 1.0000,    inf])
    """
    positive = exponents > 0
    above = positive.int().argmax(1, keepdim=True)  # the first of them
    below = (above - 1).clamp_min(0)
    (low, down), (high, up) = (
        (rates.gather(1, place), exponents.gather(1, place)) for place in (below, above)
    )
    share = torch.where(above > below, down / (down - up), 1.0)
    found = low + share.to(rates) * (high - low)
    return torch.where(positive.any(1), found[:, 0], torch.inf)
