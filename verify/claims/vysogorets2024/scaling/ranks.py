"""Vysogorets, Dawid and Kempe (2024): ranks of the G-term and of gradients by the first layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from simulate import data, networks, operators
from simulate.monte_carlo import Point
from simulate.perceptrons import curvature
from theory.batch_hessian import ranks
from verify.claims.drawn_networks import COUNTS, ROUNDING, bias_free_objective, on_noise, rank_of
from verify.claims.vysogorets2024 import PAPER
from verify.claims.vysogorets2024.scaling.blocks import on_real_images
from verify.model import OURS, AnyClaim, Identity, NoTheory

__all__ = ["CLAIMS"]

# --- the G-term ---------------------------------------------------------------------------------------------------


def g_term_rank(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Eigenvalues of the G-term that are not zero, and what the numbers of samples, classes and parameters allow."""
    weights, x, labels = on_noise(rng, point.widths, point.samples)
    size, hidden, classes = sum(w.numel() for w in weights), sum(point.widths[1:-1]), point.widths[-1]
    return {
        "rank": rank_of(operators.gauss_newton(bias_free_objective(weights, x, labels)).dense()),
        "bound": ranks.dataset_rank_bound(
            classes - 1, samples=point.samples, dim=size, symmetries=hidden + point.widths[-2]
        ),
        "min(P, N(K-1))": min(size, point.samples * (classes - 1)),
        "N K": point.samples * classes,
        "K - 1": classes - 1,
        "without the shift of all logits": min(size - hidden, point.samples * (classes - 1)),
        "without the exchange between layers": min(size - point.widths[-2], point.samples * (classes - 1)),
    }


def real_rank(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """The same for a network on images, from the derivatives of its logits along a random frame."""
    source = data.opened(point.images, (1, 8, 8))
    images = data.sample(source, rng, point.samples).flat()
    widths = (64, *point.hidden, source.classes)
    columns = point.samples * source.classes + point.spare
    frame = curvature.haar(rng, networks.weight_count(widths), columns)
    net = curvature.ProjectedMlp(networks.mlp_weights(rng, widths), images.images, images.labels, frame)
    return {
        "rank": rank_of(net.terms().g_term),
        "N(K-1)": ranks.dataset_rank_bound(
            source.classes - 1, samples=point.samples, dim=networks.weight_count(widths)
        ),
        "N K": point.samples * source.classes,
        "columns of the frame": columns,
    }


# --- gradients in the first layer ----------------------------------------------------------------------------


def first_layer_gradients(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Gradients of all logits of one image by the first layer, and products of a derivative with the input."""
    import torch

    loss = on_real_images(rng, point)
    leaves, (batch, *_) = loss.leaves(), list(loss.batches())
    logits = loss.outputs(leaves, batch.inputs)
    found = torch.stack([torch.autograd.grad(z, leaves[0], retain_graph=True)[0] for z in logits[0]])
    x = batch.inputs[0].flatten()
    units = _back_to_first_layer(leaves, x)
    return {
        "gradients": found.numpy(),
        "derivative by the units times input": torch.einsum("ko,i->koi", units, x).numpy(),
        "input": x.expand_as(found).numpy(),
        "input where the unit is on": ((units != 0)[..., None] * x).double().numpy(),
        "absolute derivative": torch.einsum("ko,i->koi", units.abs(), x).numpy(),
    }


def _back_to_first_layer(leaves: Any, x: Any) -> Any:
    """Derivatives (K, out) of the logits by the first pre-activations, as a product of matrices and slopes."""
    import torch

    first, *others = (leaf.detach() for leaf in leaves)
    before, backward = first @ x, torch.eye(len(first), dtype=x.dtype)
    for weight in others:
        on = (before > 0).to(x.dtype)
        backward = weight @ (on[:, None] * backward)
        before = weight @ (on * before)
    return backward


def convolution_gradients(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Gradient of one logit by the filters of a first convolution, and sums over the places they act at."""
    gradient, delta, patches = _by_filters(rng, point)
    return {
        "gradient": gradient.numpy(),
        "sum over places": (delta @ patches.T).numpy(),
        "sum of derivatives times mean patch": delta.sum(1).outer(patches.mean(1)).numpy(),
        "mean patch": patches.mean(1).expand(len(delta), -1).numpy(),
    }


def convolution_ranks(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Rank of that gradient as a matrix, and of a product of two vectors."""
    import torch

    gradient = _by_filters(rng, point)[0]
    rank = int(torch.linalg.matrix_rank(gradient, rtol=1e-10))
    return {"rank": rank, "filters": len(gradient), "1": 1}


def _by_filters(rng: np.random.Generator, point: Point) -> tuple[Any, Any, Any]:
    """The gradient, a row to each filter; the derivatives by what the filters return, and the patches they see."""
    import torch
    from torch.nn import functional

    loss = on_real_images(rng, point)
    (batch, *_), filters = list(loss.batches()), loss.leaves()[0]
    image, rest = batch.inputs[:1], loss.model.features[1:]
    maps = functional.conv2d(image, filters.detach()).requires_grad_()
    logit = loss.model.head(rest(maps))[0, point.logit]
    (slopes,) = torch.autograd.grad(logit, maps)
    whole = loss.outputs((filters, *loss.leaves()[1:]), image)[0, point.logit]
    (found,) = torch.autograd.grad(whole, filters)
    patches, delta = functional.unfold(image, filters.shape[-1])[0], slopes[0].flatten(1)
    return found.flatten(1), delta, patches


CLAIMS: tuple[AnyClaim, ...] = (
    Identity(
        id="vysogorets2024/g-term-rank",
        entries=("A19",),
        source=f"{PAPER}, appendix A; the bound with P is ours",
        passage=OURS,
        statement=r"\mathrm{rank}\,G = \min\big(P - n_{L-1} - \textstyle\sum_{l<L} n_l,\ N(K-1)\big),\quad L \le 2",
        says="With at most one hidden layer, the rank of the Gauss-Newton term is samples times classes less one, or, "
        "if smaller, the parameters less the network's symmetries.",
        routes=g_term_rank,
        points=tuple(
            Point(widths=widths, samples=n)
            for widths, n in (((6, 21, 5), 1), ((5, 23, 6), 4), ((6, 7, 4), 60), ((4, 3), 30))
        ),
        tolerance=1e-3,
        tolerance_reason=COUNTS,
        seconds=0.035,
        quantity="rank of the G-term",
    ),
    Identity(
        id="vysogorets2024/g-term-rank-on-images",
        entries=("A19",),
        source=f"{PAPER}, appendix A",
        statement=r"\mathrm{rank}\,G = N(K-1) \ll P",
        says="On few images, the rank of a deeper network's Gauss-Newton term is the number of samples times the "
        "classes less one, far below the number of parameters.",
        routes=real_rank,
        points=(Point(images="digits", samples=4, hidden=(30, 20), spare=17),),
        tolerance=1e-3,
        tolerance_reason=COUNTS,
        seconds=0.011,
        data="digits",
        quantity="rank of the G-term of a network 64-30-20-K",
    ),
    Identity(
        id="vysogorets2024/first-layer-gradient",
        entries=("A49",),
        source=f"{PAPER}, appendix D, for a fully connected layer; the factor of each unit is ours",
        no_theory=NoTheory.MEASURED,
        statement=r"\partial z_k / \partial W_1 = \delta_k x^\top",
        says="In a fully connected network, the first-layer gradient of each logit is the input image times a "
        "backpropagated factor for each unit.",
        routes=first_layer_gradients,
        points=(Point(images="digits", network="LeNet-300-100", samples=3),),
        tolerance=1e-12,
        tolerance_reason=ROUNDING,
        seconds=0.013,
        data="digits",
        quantity="gradients of the logits of LeNet-300-100 by its first layer",
    ),
    Identity(
        id="vysogorets2024/convolution-gradient",
        entries=("A49",),
        source=f"ours, beside {PAPER}, appendix D, which is on fully connected networks",
        passage=OURS,
        no_theory=NoTheory.MEASURED,
        statement=r"\partial z_k / \partial W_1 = \textstyle\sum_u \delta_k(u)\, x(u)^\top "
        r"\text{ over the places } u \text{ of a convolution}",
        says="In LeNet-5, the first-layer gradient of a logit sums, over the places of the convolution, "
        "backpropagated derivatives times the patches seen there.",
        routes=convolution_gradients,
        points=(Point(images="digits", network="LeNet-5", samples=3, logit=1),),
        tolerance=1e-12,
        tolerance_reason=ROUNDING,
        seconds=0.01,
        data="digits",
        quantity="gradient of a logit of LeNet-5 (max pooled) by its first layer",
    ),
    Identity(
        id="vysogorets2024/convolution-rank",
        entries=("A49",),
        source=f"ours, beside {PAPER}, appendix D, which is on fully connected networks",
        passage=OURS,
        no_theory=NoTheory.MEASURED,
        statement=r"\mathrm{rank}\,\partial z_k / \partial W_1 = \text{number of filters, not } 1",
        says="In LeNet-5, the first-layer gradient of a logit has the rank of the number of filters, and not rank one "
        "as in fully connected networks.",
        routes=convolution_ranks,
        points=(Point(images="digits", network="LeNet-5", samples=3, logit=1),),
        tolerance=1e-3,
        tolerance_reason=COUNTS,
        seconds=0.01,
        data="digits",
        quantity="rank of the gradient of a logit of LeNet-5 (max pooled) by its first layer",
    ),
)
