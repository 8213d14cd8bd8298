"""Vysogorets, Dawid and Kempe (2024): real networks next to theory, and the edges of their zone."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator

from simulate.modules import homogeneous, logit_kernel, projected_network
from simulate.monte_carlo import Point
from simulate.perceptrons import curvature, gram_excess
from theory import gauss_newton, softmax
from verify.claims import Floats
from verify.claims.drawn_networks import stacked_rows, stream_by_stream
from verify.claims.trained_networks import VGG_16, classifier_at_start, pass_cost, vgg_layers
from verify.claims.vysogorets2024 import PAPER, framed_networks
from verify.claims.vysogorets2024.framed_networks import SINGLE, of_digits
from verify.model import Arrays, Tier
from verify.model.observation import Column, Cost, Observation, classes_of, columns_of, on_a_gpu

if TYPE_CHECKING:
    from torch import Tensor

    from simulate.modules.homogeneous import Homogeneous


# --- agreement of theory with networks -------------------------------------------------------------------------

EDGES = np.logspace(-1.5, 2, 29)
"""Scales on which the crossings are looked for; the neighbours of one are refined."""


@stream_by_stream
def by_scale(rng: Generator, point: Point, device: str) -> Arrays:
    """Excess of the projected G at each scale, and every prediction for it over what is measured."""
    return _compare_predictions(*_sample_network(rng, point, device), np.array(point.alpha))


@stream_by_stream
def by_network(rng: Generator, point: Point, device: str) -> Arrays:
    """Summaries of one network after the other, over all scales, with both edges of the zone."""
    own_streams = rng.spawn(len(point.network_number))
    return stacked_rows([_summary(*_sample_network(own, point, device)) for own in own_streams])


def _sample_network(rng: Generator, point: Point, device: str) -> tuple[Any, Any]:
    """A network through its frame, and the inner products of its logit gradients in all coordinates."""
    drawn = framed_networks.NETWORKS[point.network](rng, point, device, single=True)
    return drawn.net, logit_kernel.logit_kernel(drawn.model, drawn.inputs)


def _scales(net: Any) -> tuple[float, float]:
    """Deviations per component of class means and of residuals, fitted to the projected logit gradients."""
    jacobian = net.jacobian.numpy(force=True)
    means = jacobian.mean(axis=0)
    residual = ((jacobian - means) ** 2).sum() / ((len(jacobian) - 1) * means.size)
    return float(np.sqrt(max((means**2).mean() - residual / len(jacobian), 0.0))), float(np.sqrt(residual))


def eq_8_as_our_copy_reads(gamma: Floats, dim: int, sigma_c: float, sigma_e: float) -> Floats:
    """Excess by eq (8) with sigma_e in place of sigma_c in the last term."""
    bulk = sigma_e**4 + 2 * sigma_e**2 * sigma_c**2
    return dim**0.5 * (sigma_c**2 + sigma_e**2) / np.sqrt(bulk + dim * sigma_e**4 / gamma**2)


def _compare_predictions(net: Any, kernel: Any, alphas: Floats) -> dict[str, Any]:
    """Return the excess of G and H at each scale, and every prediction for that of G over what is measured."""
    g_term, _ = net.scaled_g_term(alphas)
    measured = curvature.positive_excess(g_term).numpy(force=True)
    heats = alphas**-net.depth
    gammas = softmax.batch_gammas_from_logits(net.logits.numpy(force=True), temperature=heats)
    dim, (sigma_c, sigma_e) = g_term.shape[-1], _scales(net)
    fitted = {"dim": dim, "sigma_c": sigma_c, "sigma_e": sigma_e}
    full = np.array([gram_excess.gram_excess(kernel.gram, kernel.logits / heat) for heat in heats])
    said = {
        "eq_8": gauss_newton.expected_excess(gammas.mean, **fitted),
        "eq_8_read": eq_8_as_our_copy_reads(gammas.mean, **fitted),
        "finite_sample": gauss_newton.finite_sample_excess(*gammas, **fitted),
        "dimension_law": gauss_newton.projected_excess(full, dim=dim, parameters=kernel.dim),
    }
    ratio, excess_h = framed_networks.log_ratio_and_excess(net, alphas)
    return {
        "excess_g": measured,
        "excess_h": excess_h,
        "norms": np.exp(ratio),
        "spread": np.full(len(alphas), sigma_e / sigma_c),
        **{f"gamma_{name}": values for name, values in gammas._asdict().items()},
        **{name: value / measured for name, value in said.items()},
    }


FINE = np.logspace(-2, 2, 17)


def _summary(net: Any, kernel: Any) -> dict[str, float]:
    """Median and worst factor over the scales of the paper, and both edges."""
    found = _compare_predictions(net, kernel, FINE)
    edges, excess = framed_networks.zone_edges(net, EDGES)._asdict(), found["excess_g"]
    del edges["closes"]
    return edges | {
        **{name: float(np.median(found[name])) for name in HEADINGS},
        **{f"{name}_worst": _farthest(found[name]) for name in HEADINGS},
        "criterion": float(((found["norms"] > 1) == (found["excess_h"] > 1)).mean()),
        "rise": float((excess / np.minimum.accumulate(excess)).max()) - 1,
    }


def _farthest(ratios: Floats) -> float:
    return float(ratios[np.abs(np.log(ratios)).argmax()])


ALPHA = (0.01, 0.1, 0.32, 0.56, 0.75, 1.0, 1.33, 1.78, 2.37, 3.16, 5.62, 10.0, 17.8, 31.6, 100.0)

SIZES = {"LeNet-300-100": 160, "LeNet-5": 80}

NEARLY_ALIKE = (
    "its derivatives; its images are nearly sums of others, so rounding moves what is drawn in their basis"
)

HEADINGS = {
    "eq_8": "eq. (8) corrected",
    "eq_8_read": "eq. (8) as our copy reads",
    "finite_sample": "finite-sample form",
    "dimension_law": "dimension law from full space",
}

HOW = (
    "Predicted over measured; 1 is perfect. G at its place in exact arithmetic, through 50 random directions; the two "
    "scales of the random model are fitted to the projected logit gradients. LeNet-5 is max pooled."
)

# --- LeNet-300-100 on more and more samples --------------------------------------------------------------------

LENET_WEIGHTS = 266_200

AROUND = np.geomspace(3e-5, 1e9, 38)
"""Scales to the power of the depth, on which the crossings of any network are looked for."""


@stream_by_stream
def edges_by_samples(rng: Generator, point: Point, device: str) -> Arrays:
    """Both edges of one network on the first of its images, for each number of them."""
    net = framed_networks.lenet_300_100(rng, point, device, single=True).net
    return stacked_rows([_edges(_first(net, count)) for count in point.counts])


def _first(net: Homogeneous, count: int) -> Homogeneous:
    """Return the network on its first samples alone."""
    half: Tensor = net.second_derivatives[:count] / 2
    logits, labels, jacobian = net.logits[:count], net.labels[:count], net.jacobian[:count]
    return homogeneous.Homogeneous(logits, labels, jacobian, lambda: half, net.depth)


def _edges(net: Any) -> dict[str, float]:
    """Both edges, read off and predicted, and the excess of the Hessian between them and as drawn."""
    low, low_said, high, high_said, there = framed_networks.zone_edges(net, AROUND ** (1 / net.depth))
    if not there:  # G leads at every scale that was looked at
        high, high_said = math.inf, math.nan
    return {
        "low": low,
        "low_said": low_said,
        "high": high,
        "high_said": high_said,
        "open": float(not there),
        "middle": _excess(net, (low * high) ** 0.5) if there else math.nan,
        "drawn": _excess(net, 1.0),
    }


def _excess(net: Any, alpha: float) -> float:
    """Excess of the Hessian at a scale; NaN where the Hessian is below the range of float64."""
    hessian = net.terms(alpha).hessian
    return float(curvature.positive_excess(hessian)) if bool(hessian.any()) else math.nan


# --- a deep network, at its start and trained ------------------------------------------------------------------


@stream_by_stream
def edges_of_vgg(rng: Generator, point: Point, device: str) -> Arrays:
    """Both edges of a bias-free convolutional network at some times of its training."""
    network = classifier_at_start(rng, point, device)
    dim = sum(p.numel() for p in network.model.parameters())
    frame = curvature.haar(rng, dim, point.dim, device=device, single=True)
    found: list[dict[str, float]] = []
    for checkpoint in network.trained(rng, point, point.done):
        network.moved(checkpoint)
        lost = network.lost()
        if lost is None:
            zone = _edges(_framed(network, frame, point.chunk))
            found.append({"loss": network.objective().value(), **zone})
        else:
            found.append({**dict.fromkeys((c.score for c in COLUMNS), math.nan), "loss": lost})
    return stacked_rows(found)


def _framed(network: Any, frame: Tensor, chunk: int) -> Homogeneous:
    """Through a frame, a chunk of the images at a time; logits in double precision: scales raise their rounding."""
    import torch

    double = {name: p.detach().double() for name, p in network.model.named_parameters()}
    parts: list[Homogeneous] = []
    logits: list[Tensor] = []
    for x, labels in zip(network.images.split(chunk), network.labels.split(chunk), strict=True):
        parts.append(projected_network.ProjectedNetwork(network.model, x, labels, frame))
        with torch.no_grad():
            logits.append(torch.func.functional_call(network.model, double, (x.double(),)))
    half = torch.cat([part.second_derivatives / 2 for part in parts])
    jacobian = torch.cat([part.jacobian for part in parts])
    return homogeneous.Homogeneous(torch.cat(logits), network.labels, jacobian, lambda: half, parts[0].depth)


# --- what is shown ---------------------------------------------------------------------------------------------


OF_EDGES = {
    "low": "lower edge read off",
    "low_said": "lower edge",
    "high": "upper edge read off",
    "high_said": "upper edge, constant 1",
}
COLUMNS = columns_of(
    {
        **OF_EDGES,
        "open": "share without an upper edge, up to alpha^L = 1e9",
        "middle": "exc(H), projected, between the edges",
        "drawn": "exc(H), projected, at the scale as drawn",
    },
    "low_said",
    "high_said",
)


def cost_by_samples(point: Point) -> Cost:
    """Second derivatives in double precision, four times while they are put together, and G at all scales."""
    samples, dim, classes = point.samples, point.dim, classes_of(point)
    second, at_once = samples * classes * dim**2, len(AROUND) * samples * classes * dim
    passed = 2 * samples * (LENET_WEIGHTS * (2 + dim) + classes * dim * 300 * 100)
    scales = 4 * 2 * len(AROUND) * sum(point.counts) * classes * dim**2
    memory = 8 * (4 * second + 4 * at_once + 2 * LENET_WEIGHTS * dim)
    return Cost(memory, passed + scales, 200 + 600 * len(point.counts))


def cost_of_vgg(point: Point) -> Cost:
    """Training, and at each of its times the change of every layer along every direction by every class, by image.

    What convolutions add goes image by image where they have more places than there are directions.
    """
    (forward, activations), classes = pass_cost(point), classes_of(point)
    layers, dim, samples = vgg_layers(point), point.dim, point.samples
    weights, states = sum(count for count, _ in layers), len(point.done)
    apart = sum(places >= dim for _, places in layers[1:])
    steps = point.epochs * -(-samples // point.training_batch)
    each = (9 + 3 * dim + dim * classes) * forward + 2 * dim**2 * classes * weights
    held = dim * classes * max(count for count, _ in layers) + weights * (3 * dim + 8)
    passed = 2 * max(2 * point.training_batch, 2 * point.chunk) * activations
    memory = 4 * 8 * samples * classes * dim**2 + 4 * (held + passed) + 2**30
    launches = 25 * len(layers) * steps + states * (2000 + 17 * samples * apart)
    return Cost(memory, 3 * forward * point.epochs * samples + states * samples * each, launches)


BY_SAMPLES = Observation(
    id="vysogorets2024/edges-by-samples",
    entries=("A21", "A23"),
    source=f"{PAPER}, section 3; the growth with the samples is ours",
    title="Edges of the Goldilocks zone of LeNet-300-100 as its images grow",
    note="Of 32 networks in twenty directions the mean lower edge stays at 0.63 to 0.64 from 200 to 800 images and "
    "is predicted to 1 %, single ones to 9 %. The upper one goes from 13 to 19 and 32, where the cube root of the "
    "images would give 13, 17 and 21: the mean is that of a few networks, up to 268, as the smallest gaps decide it. "
    "Its law, of growth alone, is 0.03 to 4.5 times what single networks have.",
    replicate="one network with its images and a random projection",
    simulate=edges_by_samples,
    single=SINGLE,
    points=(of_digits(samples=800, counts=(200, 400, 800), dim=20),),
    along="counts",
    columns=COLUMNS,
    replicates=8,
    seconds=1.0,
    data="digits",
    tier=Tier.FULL,
    axis="images N",
)

OF_VGG = Observation(
    id="vysogorets2024/edges-of-vgg",
    entries=("A21", "A23", "A24"),
    source=f"{PAPER}, section 3, for a network without biases of the kind of VGG",
    title="Edges of the Goldilocks zone of a convolutional network, at its start and trained",
    note="Seven layers on 200 digits, in six random directions. At the start the lower edge of four networks "
    "is where the norms at uniform probabilities put it to 10 %, the upper one at 1.1 to 3.5, 0.6 to 1.7 times (N "
    "f(0))^(1/L). Trained, the lower edge is 2 to 7 % lower than foreseen, and two of the four, those that have learnt "
    "best, have no upper edge: residuals die with G, which goes on leading. There is then no number for it.",
    replicate="one network with its images and a random projection, followed through training",
    simulate=edges_of_vgg,
    single=SINGLE,
    points=(
        of_digits(
            stages=((8, 8), (16, 16), (32,)),
            head=(64,),
            bias=False,
            samples=200,
            chunk=200,
            dim=6,
            training_batch=50,
            epochs=20,
            rate=0.01,
            done=(0.0, 1.0),
        ),
    ),
    along="done",
    columns=(*columns_of({"loss": "loss"}), *COLUMNS),
    replicates=1,
    seconds=7.0,
    data="digits",
    tier=Tier.FULL,
    axis="share of training done",
)

OBSERVATIONS = (
    Observation(
        id="vysogorets2024/excess-by-scale",
        entries=("A7", "A22", "A24", "A29", "A51"),
        source=f"{PAPER}, section 4, figures 2 and 3",
        title="Excess of positive curvature of real networks, measured and predicted",
        note=f"{HOW} Eq. (8) has the right shape and is 11 to 22 % high at small scales; once the network is confident "
        "it is 2.1 to 2.8 times too high, because it belongs to an infinite sample, while there a few "
        "samples near a tie carry all of G. The finite-sample form stays within 16 % at every scale; what is left is "
        "residuals that are not isotropic. The law that needs no fit, from the excess in full space to that in 50 "
        "directions, stays within 13 %. exc(G) ends at 1 and stays there, exactly; that of H drops to what one "
        "frame shows of a matrix without trace, 0.2 either way.",
        replicate="one network with its images and a random projection",
        single=NEARLY_ALIKE,
        simulate=by_scale,
        points=tuple(
            of_digits(network=name, samples=size, dim=50, alpha=ALPHA) for name, size in SIZES.items()
        ),
        brief=(of_digits(network="LeNet-300-100", samples=160, dim=50, alpha=ALPHA),),
        along="alpha",
        columns=columns_of(
            {
                "excess_g": "exc(G), projected",
                **HEADINGS,
                "excess_h": "exc(H), projected",
                "norms": "|G|_2 / |H-term|_2",
                "spread": "sigma_e / sigma_c, fitted",
                "gamma_mean": "Gamma of the mean matrix",
                "gamma_separate": "Gamma of the samples side by side",
            },
            *HEADINGS,
        ),
        replicates=2,
        seconds=1.2,
        data="digits",
        axis="scale alpha",
    ),
    Observation(
        id="vysogorets2024/agreement-by-network",
        entries=("A7", "A20", "A21", "A23", "A24", "A29"),
        source=f"{PAPER}, figures 2 and 3",
        title="Agreement of theory with real networks, network by network",
        note=f"{HOW} Over 17 scales: eq. (8) is 13 to 29 % high in the median and up to 2.7 times at worst, the "
        "finite-sample form 1 to 15 % and 20 %, the dimension law 0 to 4 % and 11 % low. As our copy reads, eq. (8) is "
        "too low or too high with sigma_e over sigma_c; where it is nearer than the corrected form, at worst on four "
        "of these six networks, two errors cancel, and only the model itself can arbitrate (A28). The lower edge is "
        "predicted without a fit, single networks off by up to 10 %; the upper one, (N f(0))^(1/L), is a "
        "law of growth whose constant, 1 here, is up to 2.6 times too small. Eq. (6) and exc(H) > 1 agree at 88 to "
        "100 % of the scales. exc(G) falls with alpha but for rises of up to 3 %, a fraction of an earlier value.",
        replicate="the networks, each with its images and a random projection",
        single=NEARLY_ALIKE,
        simulate=by_network,
        points=tuple(
            of_digits(network=name, samples=size, dim=50, network_number=(1, 2, 3))
            for name, size in SIZES.items()
        ),
        brief=(of_digits(network="LeNet-5", samples=80, dim=50, network_number=(1,)),),
        along="network_number",
        columns=(
            *(
                Column(score=f"{name}{suffix}", heading=f"{text}, {what}", ratio=True)
                for name, text in HEADINGS.items()
                for suffix, what in (("", "median"), ("_worst", "farthest from 1"))
            ),
            *columns_of(
                {
                    **OF_EDGES,
                    "criterion": "share of the scales where eq. (6) says exc(H) > 1",
                    "rise": "largest rise of exc(G) with alpha",
                },
                "low_said",
                "high_said",
            ),
        ),
        replicates=1,
        seconds=3.8,
        data="digits",
        axis="network",
    ),
    BY_SAMPLES,
    on_a_gpu(
        BY_SAMPLES,
        points=(of_digits(samples=10_000, counts=(200, 400, 800, 1600, 3200, 6400, 10_000), dim=50),),
        cost=cost_by_samples,
        replicates=3,
        note="On 10,000 images of CIFAR-10 (three networks, an H200) the lower edge is where its law puts it "
        "within 1.5 % in the mean at every number of images. The mean upper edge grows from 11 to 43 between "
        "200 and 1600 of them, as the power 0.67, and stays at 42 to 46 from there on; the law, the cube root "
        "with constant 1, is 1.5 to 3.1 times too small, and single networks scatter by a factor of 1.5 to 2.9.",
    ),
    OF_VGG,
    on_a_gpu(
        OF_VGG,
        points=(
            of_digits(
                stages=VGG_16,
                head=(512, 512),
                bias=False,
                samples=10_000,
                chunk=500,
                dim=5,
                training_batch=128,
                epochs=10,
                rate=0.01,
                done=(0.0, 1.0),
            ),
        ),
        cost=cost_of_vgg,
        note="VGG-16 without biases on 10,000 images of CIFAR-10 (one network, an H200): at its start the "
        "projected excess of H is above one at a scale of 0.98 alone, where the norms at uniform probabilities put "
        "the lower edge at 0.88 and the law the upper one at 1.5. After ten epochs (loss 0.61) the zone lies between "
        "0.89 and 1.95, its lower edge within 2.2 % of what is foreseen, its upper one 16 % above the law.",
    ),
)
