"""Vysogorets, Dawid and Kempe (2024): layer blocks of the Hessian, and ranks."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator

from simulate import data, networks, objectives, operators
from simulate.monte_carlo import Point
from theory.batch_hessian import ranks
from verify.claims import Array
from verify.claims.drawn_networks import (
    COUNTS,
    ROUNDING,
    bias_free_objective,
    on_noise,
    rank_of,
)
from verify.claims.vysogorets2024 import PAPER
from verify.claims.vysogorets2024.collapsed import small_framed
from verify.claims.vysogorets2024.framed_networks import network_on_images, of_digits
from verify.model import Arrays, ExactProperty, Identity, NoTheory
from verify.model.domains import Between, Many

# --- networks of the paper on images -------------------------------------------------------------------------


def on_real_images(rng: Generator, point: Point) -> Any:
    """The loss of LeNet-300-100 or LeNet-5 (max pooled) as drawn, on some images."""
    from torch import nn

    network, images = network_on_images(rng, point, point.network)
    return objectives.Objective(network, (images.images, images.labels), nn.CrossEntropyLoss())


def layers_alone(rng: Generator, point: Point) -> Arrays:
    """Products with random directions within each layer, which move this layer alone or all of them."""
    loss = on_real_images(rng, point)
    direction = loss.leaves[0].new_tensor(rng.standard_normal(loss.dim))
    parts = loss.blocks().values()

    def within(matrix: Any) -> Array:
        found = []
        for part in parts:
            alone = direction.new_zeros(loss.dim)
            alone[part] = direction[part]
            found.append((matrix @ alone)[part].numpy())
        return np.concatenate(found)

    hessian = operators.hessian(loss)
    return {
        "Hessian": within(hessian),
        "G-term": within(operators.gauss_newton(loss)),
        "all layers moved": (hessian @ direction).numpy(),
        "second moment of the gradients": within(operators.empirical_fisher(loss)),
    }


# --- small networks in full space ----------------------------------------------------------------------------


def _largest_entry(rng: Generator, point: Point, *, within: bool) -> float:
    """Largest modulus of the H-term within layers, or between them."""
    weights, x, labels = on_noise(rng, point.widths, point.samples)
    h_term = operators.h_term(bias_free_objective(weights, x, labels)).dense().numpy()
    layer = np.repeat(np.arange(len(weights)), [weight.numel() for weight in weights])
    own = layer[:, None] == layer
    return float(np.abs(h_term[own == within]).max(initial=0.0))


# --- the rank of the G-term ----------------------------------------------------------------------------------


def real_rank(rng: Generator, point: Point) -> Arrays:
    """Rank of the G-term of a network on images, from the derivatives of its logits along a random frame."""
    classes = data.opened(point.images, (1, 8, 8)).classes
    columns = point.samples * classes + point.spare
    net, widths = small_framed(rng, point, point.hidden, columns), (64, *point.hidden, classes)
    return {
        "rank": rank_of(net.terms().g_term),
        "N(K-1)": ranks.dataset_rank_bound(
            classes - 1, samples=point.samples, dim=networks.weight_count(widths)
        ),
        "N K": point.samples * classes,
        "columns of the frame": columns,
    }


# --- gradients in the first layer ----------------------------------------------------------------------------


def first_layer_gradients(rng: Generator, point: Point) -> Arrays:
    """Gradients of all logits of one image by the first layer, and products of a derivative with the input."""
    import torch

    loss = on_real_images(rng, point)
    leaves, (batch, *_) = loss.leaves, list(loss.batches())
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


CLAIMS = (
    Identity(
        id="vysogorets2024/layer-blocks",
        entries=("A18",),
        source=f"{PAPER}, appendix A; that the blocks are those of G is ours",
        no_theory=NoTheory.MEASURED,
        statement=r"\tilde H_{ll} = 0,\ \text{so that}\ \nabla^2_{W_l} \ell = G_{ll} \text{ for every layer } l",
        says="On both LeNets, each layer's own block of the Hessian equals that block of the Gauss-Newton "
        "term: the remainder's block is zero.",
        routes=layers_alone,
        points=(
            of_digits(network="LeNet-300-100", samples=40),
            of_digits(network="LeNet-5", samples=16),
        ),
        tolerance=1e-12,
        tolerance_reason=ROUNDING,
        seconds=0.23,
        data="digits",
        quantity="products with the diagonal blocks of the Hessian",
    ),
    ExactProperty(
        id="vysogorets2024/blocks-of-the-h-term",
        entries=("A18", "A19"),
        source=f"{PAPER}, appendix A",
        no_theory=NoTheory.CONSTANT,
        statement=r"\tilde H_{ll} = 0 \text{ exactly, and } \tilde H = 0 \text{ for one layer}",
        says="Within each layer of a bias-free ReLU network, the remainder of the Hessian is exactly zero.",
        domain={"widths": Many(Between(2, 6), 2, 5), "samples": Between(1, 5)},
        violation=partial(_largest_entry, within=True),
        examples=(Point(widths=(5, 6, 4), samples=4), Point(widths=(4, 6, 5, 3), samples=3)),
        tolerance=1e-14,
        tolerance_reason="zero to the last bit; entries between layers are of the order of one",
        rivals={"between layers too": partial(_largest_entry, within=False)},
        seconds=0.11,
    ),
    Identity(
        id="vysogorets2024/g-term-rank-on-images",
        entries=("A19",),
        source=f"{PAPER}, appendix A",
        statement=r"\mathrm{rank}\,G = N(K-1) \ll P",
        says="On few images, the Gauss-Newton term of a deeper network has the rank of samples times classes less "
        "one.",
        routes=real_rank,
        points=(of_digits(samples=4, hidden=(30, 20), spare=17),),
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
        says="The first-layer gradient of each logit is the input image times a backpropagated factor for each "
        "unit.",
        routes=first_layer_gradients,
        points=(of_digits(network="LeNet-300-100", samples=3),),
        tolerance=1e-12,
        tolerance_reason=ROUNDING,
        seconds=0.013,
        data="digits",
        quantity="gradients of the logits of LeNet-300-100 by its first layer",
    ),
)
