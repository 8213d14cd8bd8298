"""Vysogorets, Dawid and Kempe (2024): confidence, loss, gradient and curvature over many initialisations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.random import Generator

from simulate import data, networks, objectives
from simulate.monte_carlo import Point
from simulate.perceptrons import curvature
from simulate.training import learnable_rates
from verify.claims import Floats
from verify.claims.drawn_networks import stream_by_stream
from verify.claims.vysogorets2024 import PAPER
from verify.claims.vysogorets2024.framed_networks import experiment_on_digits, of_digits
from verify.model import OURS, Arrays, Claim, Kind, NoTheory, Tier
from verify.model.observation import Observation, columns_of

# --- many initialisations ------------------------------------------------------------------------------------

PAIRS = {
    "entropy_loss": -1,
    "entropy_gradient": -1,
    "entropy_excess": 1,
    "loss_excess": -1,
    "gradient_distance": 1,
}
"""Sign that the paper gives to the correlation of each pair."""


@stream_by_stream
def _together(rng: Generator, point: Point, device: str) -> Arrays:
    """Kendall's tau of a few initialisations, of each pair of quantities at hand."""
    drawn = _initialisations(rng, point, device)
    pairs = {pair: pair.split("_") for pair in PAIRS}
    return {
        pair: PAIRS[pair] * _tau(drawn[x], drawn[y]) for pair, (x, y) in pairs.items() if {x, y} <= set(drawn)
    }


def _tau(x: Floats, y: Floats) -> float:
    """Pairs ordered alike less pairs ordered oppositely, as a share: unbiased in a set of any size."""
    pairs = list(combinations(range(len(x)), 2))
    return float(np.mean([np.sign((x[i] - x[j]) * (y[i] - y[j])) for i, j in pairs]))


AT_ONCE = 40
"""Networks that are held together, half a megabyte each, with gradients as large."""


def _initialisations(rng: Generator, point: Point, device: str) -> dict[str, Floats]:
    """LeNet-300-100 drawn again and again, with the same images and the same projection, if the point has any.

    Directions of the first layer that no image sees are left out: nothing depends on them.
    """
    import torch

    source = data.opened(point.images, (1, 28, 28))
    widths = (*networks.LENET_300_100[:-1], source.classes)
    images = data.sample(source, rng, point.samples, balanced=True).flat()
    x, labels = images.tensors(device, torch.float32)
    coordinates = torch.linalg.qr(x.mT).R.mT.contiguous()  # images in an orthonormal basis of their span
    narrow = (coordinates.shape[1], *widths[1:])
    total, rows = networks.weight_count(widths), networks.weight_count(narrow)
    frame = None
    if "dim" in point:
        frame = curvature.haar(rng, rows, point.dim, total=total, device=device, single=True)
    parts = []
    for some in objectives.batches.cuts(point.networks, AT_ONCE):
        weights = [w.to(device) for w in _stacks(rng, narrow, some.stop - some.start, inputs=widths[0])]
        parts.append(_first_order(weights, coordinates, labels))
        if frame is not None:
            terms = curvature.projected_mlps(weights, coordinates, labels, frame, dtype=torch.float32)
            parts[-1]["excess"] = curvature.positive_excess(terms.hessian).cpu().numpy()
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _stacks(rng: Generator, widths: Sequence[int], count: int, *, inputs: int) -> list[Any]:
    """Weights of many networks, the first layer at the scale that so many inputs set, most of which are left out."""
    import torch

    source = torch.Generator().manual_seed(int(rng.integers(2**63)))
    shapes = zip(widths[1:], widths[:-1], (inputs, *widths[1:-1]), strict=True)
    return [
        torch.randn(count, out, width, generator=source) * math.sqrt(2 / fan_in)
        for out, width, fan_in in shapes
    ]


def _first_order(weights: Sequence[Any], x: Any, labels: Any) -> dict[str, Floats]:
    """Confidence, loss and gradient norm of all networks at once."""
    import torch

    inputs, targets = (t.expand(len(weights[0]), *t.shape) for t in (x, labels))
    losses, gradients, _ = learnable_rates.losses_and_gradients(
        learnable_rates.Classifiers(tuple(weights), inputs, targets)
    )
    found = {
        **_confidence(networks.mlp_logits(weights, inputs).double(), labels),
        "loss": losses,
        "gradient": torch.stack([g.square().sum((1, 2)) for g in gradients]).sum(0).sqrt(),
        "classes": torch.full_like(losses, len(weights[-1][0])),
    }
    return {name: values.double().numpy(force=True) for name, values in found.items()}


def _confidence(logits: Any, labels: Any) -> dict[str, Any]:
    """Mean entropy, excess of the mean softmax covariance, |Qhat - Q|, the bound of the loss by Jensen: by network."""
    import torch

    log_p = logits.log_softmax(-1)
    p, q = log_p.exp(), torch.nn.functional.one_hot(labels, logits.shape[-1]).double().mean(0)
    mean = p.mean(1)
    return {
        "entropy": -(p * log_p).sum(-1).mean(1),
        "gamma": curvature.positive_excess(mean.diag_embed() - p.mT @ p / len(labels)),
        "distance": (mean - q).norm(dim=1),
        "jensen": -(q * mean.log()).sum(1),
    }


SHOWN = {
    "entropy_loss": "entropy and loss",
    "entropy_gradient": "entropy and gradient norm",
    "entropy_excess": "entropy and excess of H",
    "loss_excess": "loss and excess of H",
    "gradient_distance": "gradient norm and |Qhat - Q|",
    "gamma_excess": "Gamma of the mean covariance and excess of H",
}
"""Pairs of quantities whose correlations are reported."""


def _correlation(drawn: Arrays, pair: str) -> float:
    x, y = (drawn[name] for name in pair.split("_"))
    return float(np.corrcoef(x, y)[0, 1])


@stream_by_stream
def scatter(rng: Generator, point: Point, device: str) -> Arrays:
    """Rank and linear correlations over the initialisations of a replicate, and the losses below the bounds."""
    from scipy import stats

    drawn = _initialisations(rng, point, device)
    by_rank = {name: stats.rankdata(values) for name, values in drawn.items()}
    linear, ranks = ({pair: _correlation(of, pair) for pair in SHOWN} for of in (drawn, by_rank))
    loss = drawn["loss"]
    return {
        **{f"{pair}_rank": ranks[pair] for pair in SHOWN},
        **{f"{pair}_linear": linear[pair] for pair in SHOWN},
        "error": max((1 - rank**2) / math.sqrt(len(loss) - 1) for rank in ranks.values()),
        "below_uniform": float((loss < np.log(drawn["classes"])).mean()),
        "below_jensen": float((loss < drawn["jensen"]).mean()),
    }


# --- what is judged ---------------------------------------------------------------------------------------------


CONFIDENT = experiment_on_digits(
    id="vysogorets2024/together",
    replicate="twelve initialisations of LeNet-300-100 with the same 60 images",
    simulate=_together,
    single="networks and gradients are in single precision",
    points=(of_digits(networks=12, samples=60),),
    budget=512,
    seconds=1.2,
    # of pairs that are nearly alike rounding says which is the larger
    rounding=dict.fromkeys(("entropy_loss", "entropy_gradient", "gradient_distance"), math.inf),
)

MISORDERED = 1e-4
"""Share of the pairs that single precision may order otherwise, at most: those that are alike to 1e-6."""


def _moves(pair: str, formula: str, says: str, *, bound: float = 0.4) -> Claim:
    return Claim(
        id=f"vysogorets2024/together-{pair.replace('_', '-')}",
        entries=("A40",),
        source=f"{PAPER}, section 4, figure 6; the measure and its bound are ours",
        no_theory=NoTheory.CONSTANT,
        passage=OURS,
        statement=rf"{'-' if PAIRS[pair] < 0 else ''}\tau({formula}) \ge {bound},\ "
        r"\text{Kendall's rank correlation over initialisations}",
        says=f"Of two initialisations of LeNet-300-100, {says}.",
        experiment=CONFIDENT,
        kind=Kind.AT_LEAST,
        score=pair,
        predict=lambda _: bound,
        margin=0.05,
        margin_reason="a bound of ours below what was seen, 0.5 to 0.8: of ten pairs of networks "
        f"{'seven' if bound < 0.5 else 'nearly eight'} are ordered as the paper says, where no association has five; "
        "the margin is a fortieth of all pairs",
        pilot=f"the bound {bound}: the first networks drawn gave rank correlations of 0.5 to 0.8",
        relative=False,
        numerical=MISORDERED,
        rivals={"every pair ordered alike": lambda _: 1.0},
        quantity="pairs of initialisations in the order of the paper less the others",
    )


CLAIMS = (
    _moves(
        "entropy_loss",
        r"\text{entropy}, \text{loss}",
        "the less confident one has the lower loss in at least seven of ten pairs",
    ),
    _moves(
        "entropy_gradient",
        r"\text{entropy}, \|\nabla\ell\|",
        "the less confident one has the smaller loss gradient in at least seven of ten pairs",
    ),
    _moves(
        "gradient_distance",
        r"\|\nabla\ell\|, \|\hat Q - Q\|",
        "that whose mean prediction is nearer the class prior has the smaller gradient in more than three of "
        "four pairs",
        bound=0.55,
    ),
)

# --- what is reported -------------------------------------------------------------------------------------------

SCATTER_COLUMNS = columns_of(
    {
        **{
            f"{pair}_{kind}": f"{name}, {what}"
            for kind, what in (("rank", "Spearman"), ("linear", "Pearson"))
            for pair, name in SHOWN.items()
        },
        "error": "largest standard error of a Spearman correlation",
        "below_uniform": "share of losses below log K",
        "below_jensen": "share of losses below the bound by Jensen, sum_k Q_k (-log Qhat_k)",
    }
)


def _scattered(name: str, networks: int, **its_own: Any) -> Observation:
    return Observation(
        id=f"vysogorets2024/{name}",
        entries=("A39", "A40"),
        source=f"{PAPER}, section 4, figure 6",
        title=f"Confidence, loss, gradient and curvature of {networks} initialisations of LeNet-300-100",
        note="All initialisations of a replicate see the same 60 images through the same projection. The signs are "
        "those of figure 6 and the associations strong. The excess carries the noise of the projection, which weakens "
        "its own. Below log K and below the bound by Jensen there are few losses or none, though both bound the mean "
        "and not every single loss.",
        replicate=f"{networks} initialisations with 60 balanced images and a random projection",
        simulate=scatter,
        single="networks and derivatives are in single precision",
        points=(of_digits(networks=networks, samples=60, dim=50),),
        along="",
        columns=SCATTER_COLUMNS,
        data="digits",
        **its_own,
    )


OBSERVATIONS = (
    _scattered("initialisations", 60, replicates=1, seconds=1.2),
    _scattered("many-initialisations", 2000, replicates=1, seconds=73.0, tier=Tier.FULL),
)
