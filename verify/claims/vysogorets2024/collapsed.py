"""Vysogorets, Dawid and Kempe (2024): what is left of G once the softmax has collapsed, and the last sample before.

In exact arithmetic G never gets to zero: it is positive semidefinite and finite logits leave every softmax some
covariance, so that its excess stays at 1 or above.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from numpy.random import Generator

from simulate import networks
from simulate.monte_carlo import Point
from simulate.perceptrons import curvature, layer_blocks
from verify.claims.drawn_networks import sampled_images, stream_by_stream
from verify.claims.vysogorets2024 import PAPER
from verify.claims.vysogorets2024.framed_networks import experiment_on_digits, of_digits
from verify.model import (
    Arrays,
    Claim,
    Kind,
    NoTheory,
    out_of_scope,
)

# --- what is left of G ---------------------------------------------------------------------------------------


NEAR = 0.01
"""Largest distance from 1, the excess of one sample, that counts as near."""


@stream_by_stream
def _collapse(rng: Generator, point: Point, device: str) -> Arrays:
    """Collapse at the largest scale: whether the projected G-term has an excess of 1, and the excess of the Hessian.

    The latter is the mean over the network and its mirror image, whose H-term scatters to the other side.
    """
    net, alpha = small_framed(rng, point, (40, 30), point.dim, device), point.alpha[-1]
    excess = float(curvature.positive_excess(net.scaled_g_term(alpha)[0]))
    hessians = [float(curvature.positive_excess(one.terms(alpha).hessian)) for one in (net, net.mirrored())]
    return {"near_one": float(abs(excess - 1) < NEAR), "hessian": sum(hessians) / 2}


def small_framed(rng: Generator, point: Point, hidden: tuple[int, ...], dim: int, device: str = "cpu") -> Any:
    """A network as drawn, with images of 8 x 8, along a random frame that is drawn before it."""
    images, classes = sampled_images(rng, point, 8)
    widths = (64, *hidden, classes)
    frame = curvature.haar(rng, networks.weight_count(widths), dim, device=device)
    weights = [w.to(device) for w in networks.mlp_weights(rng, widths)]
    return curvature.ProjectedMlp(weights, images.images, images.labels, frame)


COLLAPSE = experiment_on_digits(
    id="vysogorets2024/collapse",
    replicate="one bias-free ReLU network 64-40-30-10 and its mirror image, with 30 images and a random projection",
    simulate=_collapse,
    points=(of_digits(samples=30, dim=24, alpha=(9.0, 23.0, 61.0)),),
    budget=2048,
    seconds=1.3,
)


# --- the least confident sample ------------------------------------------------------------------------------


@stream_by_stream
def least_confident(rng: Generator, point: Point, device: str) -> Arrays:
    """Whether the least confident image has the top eigenvector of the first layer's block at the largest scale.

    In coordinates of the span of the images: what the first layer does elsewhere moves nothing, and is not drawn.
    """
    import torch

    drawn, classes = sampled_images(rng, point, 28)
    images = torch.linalg.qr(torch.from_numpy(drawn.images.T)).R.mT.to(device)
    first, *others = networks.mlp_weights(rng, (images.shape[1], *networks.LENET_300_100[1:-1], classes))
    first *= math.sqrt(first.shape[1] / drawn.images.shape[1])  # the scale that all pixels set
    weights = [w.to(device) for w in (first, *others)]
    top = layer_blocks.layer_block(weights, images, alpha=point.alpha[-1]).top_direction()
    first, second = networks.mlp_logits(weights, images).topk(2, dim=1).values.T
    image = images[(first - second).argmin()]
    return {"shown": float((top @ image).square().sum() > SHOWN * image.square().sum())}


SHOWN = 0.99
"""Least share of the eigenvector's energy on the least confident image; other images reach 0.95."""


LEAST_CONFIDENT = experiment_on_digits(
    id="vysogorets2024/least-confident",
    replicate="one LeNet-300-100 with 60 images",
    simulate=least_confident,
    points=(of_digits(samples=60, alpha=(4.0, 10.0, 40.0)),),
    budget=1024,
    seconds=0.6,
)


FIGURES = f"{PAPER}, section 3 and appendix D, figures 2 and 10"

_on_most = partial(
    Claim,
    no_theory=NoTheory.CONSTANT,
    kind=Kind.PROPORTION,
    predict=lambda _: 1.0,
    margin=0.1,
    relative=False,
    margin_reason="ten in a hundred; the readings at issue are always and never",
    rivals={"half of the networks": lambda _: 0.5},
)

CLAIMS = (
    _on_most(
        id="vysogorets2024/excess-of-g-at-collapse",
        entries=("A22", "A51"),
        source=FIGURES,
        statement=r"P\big(|\mathrm{exc}(G_d) - 1| < 0.01\big) \to 1 \quad (\alpha \gg 1), "
        r"\text{ at } \alpha = 61",
        says="Far above the zone, the excess of the Gauss-Newton term, computed without cancellation, is close to "
        "one on almost every network.",
        reads=r"\mathrm{Tr}(\mathcal{G})/\|\mathcal{G}\|_F \text{ suddenly drops to } 0",
        experiment=COLLAPSE,
        score="near_one",
        printed=lambda _: 0.0,
        # the condition under which the excess of G drops to 0: there G is zero, and 0 its excess by definition
        passage=out_of_scope(
            "softmax output p′ to collapse to a one-hot distribution for all training samples",
            "Section 3",
        ),
        finding="The drop comes where p has rounded to one-hot: G is zero, and the authors' notebook sets its excess "
        "to 0 by definition. Elsewhere finite logits leave every softmax some covariance, and the excess is "
        "1, the paper's own lower bound.",
        quantity="share of networks whose G-term has an excess of 1",
    ),
    Claim(
        id="vysogorets2024/excess-of-h-after-collapse",
        entries=("A22", "A51"),
        source=FIGURES,
        no_theory=NoTheory.CONSTANT,
        statement=r"\mathbb{E}\,\mathrm{exc}(H_d) = 0 \text{ at } \alpha = 61:\ H = \tilde H",
        says="Far above the zone, only its remainder is left of the projected Hessian, whose excess is zero on "
        "average.",
        experiment=COLLAPSE,
        score="hessian",
        predict=lambda _: 0.0,
        margin=0.1,
        relative=False,
        margin_reason="a tenth of the plateau at 1; a random projection scatters the excess by 0.28",
        rivals={"still that of G": lambda _: 1.0, "half of it": lambda _: 0.5},
        quantity="excess of the projected Hessian",
    ),
    _on_most(
        id="vysogorets2024/least-confident-image",
        entries=("A50",),
        source=f"{PAPER}, appendix D, figure 10",
        statement=r"P\big(|V \hat x_{\mu_0}|^2 > 0.99\big) \to 1 \text{ for the top eigenvector } V "
        r"\text{ of the first layer's block } (\alpha \gg 1), \text{ at } \alpha = 40",
        says="Far above the zone, the top eigenvector of the first layer's block lies along the least confident image "
        "on almost every network.",
        experiment=LEAST_CONFIDENT,
        score="shown",
        pilot="the threshold 0.99: of the first networks drawn, other images came to 0.95",
        quantity="share of networks whose top eigenvector is along the least confident image",
    ),
)
