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
from verify.claims.drawn_networks import sampled_images
from verify.claims.vysogorets2024 import PAPER
from verify.claims.vysogorets2024.framed_networks import (
    network_on_images,
    of_digits,
    seen_by,
    stream_by_stream,
)
from verify.model import (
    Arrays,
    Claim,
    Experiment,
    Kind,
    NoTheory,
    out_of_scope,
)
from verify.model.observation import Observation, columns_of

# --- what is left of G ---------------------------------------------------------------------------------------


def lenet(rng: Generator, point: Point, device: str = "cpu") -> tuple[tuple[Any, ...], Any, Any]:
    """Weights of LeNet-300-100 as drawn, images and labels."""
    model, images = network_on_images(rng, point)
    return tuple(w.detach().to(device) for w in model.parameters()), *images.tensors(device)


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


def multiplied_out(net: Any, alpha: float, dtype: str = "float64") -> Any:
    """J' diag(p) J - (pJ)'(pJ), mean over samples: what cancels is rounding once p is within rounding of one-hot."""
    import torch

    kind = getattr(torch, dtype)
    jacobian, p = net.jacobian.to(kind), (alpha**net.depth * net.logits).to(kind).softmax(-1)
    means = (p[:, None] @ jacobian).squeeze(1)
    rows = jacobian.flatten(0, 1)
    return (rows.T * p.flatten()) @ rows - means.T @ means


def excess_of(matrix: Any) -> float:
    """Excess, 0 of a matrix that has come out as zero."""
    return float(curvature.positive_excess(matrix)) if bool(matrix.any()) else 0.0


COLLAPSE = Experiment(
    id="vysogorets2024/collapse",
    replicate="one bias-free ReLU network 64-40-30-10 and its mirror image, with 30 images and a random projection",
    simulate=_collapse,
    points=(of_digits(samples=30, dim=24, alpha=(9.0, 23.0, 61.0)),),
    budget=2048,
    seconds=1.3,
    data="digits",
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
    image = images[_least_confident(weights, images)]
    return {"shown": float((top @ image).square().sum() > SHOWN * image.square().sum())}


SHOWN = 0.99
"""Least share of the eigenvector's energy on the least confident image; other images reach 0.95."""


def _least_confident(weights: Any, images: Any) -> int:
    """The image with the smallest gap of its two largest logits."""
    first, second = networks.mlp_logits(weights, images).topk(2, dim=1).values.T
    return int((first - second).argmin())


LEAST_CONFIDENT = Experiment(
    id="vysogorets2024/least-confident",
    replicate="one LeNet-300-100 with 60 images",
    simulate=least_confident,
    points=(of_digits(samples=60, alpha=(4.0, 10.0, 40.0)),),
    budget=1024,
    seconds=0.6,
    data="digits",
)


# --- what one network shows over all scales ------------------------------------------------------------------


@stream_by_stream
def _plateau(rng: Generator, point: Point, device: str) -> Arrays:
    """Excesses of LeNet-300-100 along a random frame, and of its first layer's block, at every scale."""
    weights, images, labels = lenet(rng, point, device)
    net = seen_by(rng, weights, images, labels, point.dim, single=True).net
    terms, least = net.terms(point.alpha), _least_confident(weights, images)
    blocks = [layer_blocks.layer_block(weights, images, alpha=alpha) for alpha in point.alpha]
    rounded = {
        kind: [excess_of(multiplied_out(net, a, kind)) for a in point.alpha]
        for kind in ("float64", "float32")
    }
    return rounded | {
        "hessian": curvature.positive_excess(terms.hessian).cpu(),
        "g_term": curvature.positive_excess(net.scaled_g_term(point.alpha)[0]).cpu(),
        "block": [found.excess for found in blocks],
        "share": [float(found.shares[least]) for found in blocks],
    }


OBSERVATIONS = (
    Observation(
        id="vysogorets2024/plateau-of-the-excess",
        entries=("A22", "A51"),
        source=f"{PAPER}, section 3 and appendix D, figures 2 and 10",
        title="Excess of the Hessian and of its Gauss-Newton term as the weights grow",
        note="G goes to an excess of 1, that of one sample with two likely classes, and stays there at every scale; "
        "so does the first layer's block of H, in which the H-term has no part. What falls to 0 is G as float64 "
        "multiplies it out, on every network of one run from alpha = 31.6 on; in float32 noise of either sign is left "
        "(-0.9 to 0.7). The excess of H itself does drop, to the scatter of a random projection (0.2), once the H-term "
        "takes over. That it stays near 1 before was seen on one network in six (1.01 at alpha = 10): the others pass "
        "1 on their way down. LeNet-5 is not measured here.",
        replicate="one LeNet-300-100 with 60 images, along 50 random directions",
        simulate=_plateau,
        single="its derivatives; and one of its columns is what single precision leaves",
        points=(of_digits(samples=60, dim=50, alpha=(1.0, 3.0, 5.6, 10.0, 17.8, 31.6, 56.2, 100.0)),),
        along="alpha",
        columns=columns_of(
            {
                "hessian": "excess of H",
                "g_term": "excess of G",
                "float64": "excess of G, multiplied out in float64",
                "float32": "excess of G, multiplied out in float32",
                "block": "excess of the first layer's block of H",
                "share": "the least confident image's share of that block",
            }
        ),
        replicates=6,
        seconds=0.17,
        data="digits",
        axis="scale alpha of the weights",
    ),
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
