"""Vysogorets, Dawid and Kempe (2024): ranks of the G-term and of gradients by the first layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from simulate import data, networks
from simulate.monte_carlo import Point
from simulate.perceptrons import curvature
from theory.batch_hessian import ranks
from verify.claims.drawn_networks import COUNTS, ROUNDING, rank_of
from verify.claims.vysogorets2024 import PAPER
from verify.claims.vysogorets2024.scaling.blocks import on_real_images
from verify.model import AnyClaim, Identity, NoTheory

__all__ = ["CLAIMS"]

# --- the G-term ---------------------------------------------------------------------------------------------------


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


CLAIMS: tuple[AnyClaim, ...] = (
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
)
