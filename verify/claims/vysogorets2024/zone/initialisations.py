"""Vysogorets, Dawid and Kempe (2024): confidence, loss, gradient and curvature over many initialisations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulate import data, networks, objectives
from simulate.monte_carlo import Block, Point
from simulate.perceptrons import curvature
from simulate.training import learnable_rates
from verify.claims.vysogorets2024 import PAPER
from verify.model import OURS, AnyClaim, Claim, Experiment, Kind, NoTheory, Tier
from verify.model.observation import Column, Observation

__all__ = ["CLAIMS", "OBSERVATIONS"]

Floats = NDArray[np.float64]


def _stacked(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


# --- many initialisations ------------------------------------------------------------------------------------


def _together(block: Block, point: Point) -> Mapping[str, Any]:
    """Kendall's tau of a few initialisations, of each pair of quantities at hand."""
    return _stacked([_taus(rng, point, block.device) for rng in block.streams])


PAIRS = {
    "entropy_loss": -1,
    "entropy_gradient": -1,
    "entropy_excess": 1,
    "loss_excess": -1,
    "gradient_distance": 1,
}
"""What moves together: the sign that the paper gives it."""


def _taus(rng: np.random.Generator, point: Point, device: str) -> dict[str, float]:
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


def _initialisations(rng: np.random.Generator, point: Point, device: str) -> dict[str, Floats]:
    """LeNet-300-100 drawn again and again, with the same images and the same projection, if the point has any.

    Directions of the first layer that no image sees are left out: nothing depends on them.
    """
    import torch

    source = data.opened(point.images, (1, 28, 28))
    widths = (*networks.LENET_300_100[:-1], source.classes)
    x, labels = data.sample(source, rng, point.samples, balanced=True).flat().tensors(device)
    seen = torch.linalg.qr(x.mT).R.mT.contiguous()  # images in an orthonormal basis of their span
    narrow = (seen.shape[1], *widths[1:])
    total, rows = networks.weight_count(widths), networks.weight_count(narrow)
    frame = curvature.haar(rng, rows, point.dim, total=total, device=device) if "dim" in point else None
    parts = []
    for some in objectives.batches.cuts(point.networks, AT_ONCE):
        weights = [w.to(device) for w in _stacks(rng, narrow, some.stop - some.start, inputs=widths[0])]
        parts.append(_first_order(weights, seen, labels))
        if frame is not None:
            # in half the time, and the excess to 1e-6: what is judged is which of two is larger
            terms = curvature.projected_mlps(weights, seen, labels, frame, dtype=torch.float32)
            parts[-1]["excess"] = curvature.positive_excess(terms.hessian).cpu().numpy()
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _stacks(rng: np.random.Generator, widths: Sequence[int], count: int, *, inputs: int) -> list[Any]:
    """Weights of many networks, the first layer at the scale that so many inputs set, most of which are left out."""
    import torch

    drawn = (networks.mlp_weights(rng, widths) for _ in range(count))
    first, *others = (torch.stack(layer) for layer in zip(*drawn, strict=True))
    return [first * math.sqrt(widths[0] / inputs), *others]


def _first_order(weights: Sequence[Any], x: Any, labels: Any) -> dict[str, Floats]:
    """Confidence, loss and gradient norm of all networks at once."""
    import torch

    inputs, targets = (t.expand(len(weights[0]), *t.shape) for t in (x, labels))
    losses, gradients, _ = learnable_rates.losses_and_gradients(
        learnable_rates.Classifiers(tuple(weights), inputs, targets)
    )
    logits = networks.mlp_logits(weights, inputs)
    return {
        **_stacked([_confidence(one, labels) for one in logits]),
        "loss": losses.cpu().numpy(),
        "gradient": torch.stack([g.square().sum((1, 2)) for g in gradients]).sum(0).sqrt().cpu().numpy(),
        "classes": np.full(len(logits), float(logits.shape[-1])),
    }


def _confidence(logits: Any, labels: Any) -> dict[str, float]:
    """Mean entropy, excess of the mean softmax covariance, |Qhat - Q|, the bound of the loss by Jensen."""
    import torch

    log_p = logits.log_softmax(-1)
    p, q = log_p.exp(), torch.nn.functional.one_hot(labels, logits.shape[-1]).double().mean(0)
    mean = p.mean(0)
    return {
        "entropy": -float((p * log_p).sum(-1).mean()),
        "gamma": float(curvature.positive_excess(mean.diag() - p.mT @ p / len(p))),
        "distance": float((mean - q).norm()),
        "jensen": -float((q * mean.log()).sum()),
    }


def scatter(block: Block, point: Point) -> Mapping[str, Any]:
    """Rank and linear correlations over the initialisations of a replicate, and the losses below the bounds."""
    found = []
    for rng in block.streams:
        drawn = _initialisations(rng, point, block.device)
        found.append({**_correlations(drawn), **_low_losses(drawn)})
    return _stacked(found)


SHOWN = (*PAIRS, "gamma_excess")


def _correlations(drawn: Mapping[str, Floats]) -> dict[str, Floats]:
    from scipy import stats

    def linear_of(pair: str) -> float:
        x, y = (drawn[name] for name in pair.split("_"))
        return float(np.corrcoef(x, y)[0, 1])

    def rank_of(pair: str) -> float:
        x, y = (stats.rankdata(drawn[name]) for name in pair.split("_"))
        return float(np.corrcoef(x, y)[0, 1])

    ranks, linear = (np.array([of(pair) for pair in SHOWN]) for of in (rank_of, linear_of))
    error = (1 - ranks**2) / math.sqrt(len(drawn["loss"]) - 1)
    return {
        **{f"{pair}_rank": ranks[i] for i, pair in enumerate(SHOWN)},
        **{f"{pair}_linear": linear[i] for i, pair in enumerate(SHOWN)},
        "error": error.max(),
    }


def _low_losses(drawn: Mapping[str, Floats]) -> dict[str, float]:
    uniform = np.log(drawn["classes"])
    return {
        "below_uniform": float((drawn["loss"] < uniform).mean()),
        "below_jensen": float((drawn["loss"] < drawn["jensen"]).mean()),
    }


# --- what is judged ---------------------------------------------------------------------------------------------

CONFIDENT = Experiment(
    id="vysogorets2024/together",
    replicate="twelve initialisations of LeNet-300-100 with the same 60 images",
    simulate=_together,
    points=(Point(images="digits", networks=12, samples=60),),
    budget=512,
    seconds=5.6,
    data="digits",
    # of pairs that are nearly alike rounding says which is the larger
    rounding=dict.fromkeys(("entropy_loss", "entropy_gradient"), math.inf),
)

CURVED = Experiment(
    id="vysogorets2024/together-curved",
    replicate="eight initialisations of LeNet-300-100 with the same 40 images and the same random projection",
    simulate=_together,
    single="its derivatives are in single precision",
    points=(Point(images="digits", networks=8, samples=40, dim=20),),
    budget=512,
    seconds=6.7,
    tier=Tier.FULL,
    data="digits",
)


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
        experiment=CURVED if "excess" in pair else CONFIDENT,
        kind=Kind.AT_LEAST,
        score=pair,
        predict=lambda _: bound,
        margin=0.05,
        margin_reason="a bound of ours below what was seen, 0.5 to 0.8: of ten pairs of networks "
        f"{'seven' if bound < 0.5 else 'nearly eight'} are ordered as the paper says, where no association has five; "
        "the margin is a fortieth of all pairs",
        pilot=f"the bound {bound}: the first networks drawn gave rank correlations of 0.5 to 0.8",
        relative=False,
        rivals={"every pair ordered alike": lambda _: 1.0},
        quantity="pairs of initialisations in the order of the paper less the others",
    )


CLAIMS: tuple[AnyClaim, ...] = (
    _moves(
        "entropy_loss",
        r"\text{entropy}, \text{loss}",
        "the less confident one has the lower loss in at least seven of ten pairs",
    ),
    _moves(
        "entropy_gradient",
        r"\text{entropy}, \lVert\nabla\ell\rVert",
        "the less confident one has the smaller loss gradient in at least seven of ten pairs",
    ),
    _moves(
        "entropy_excess",
        r"\text{entropy}, \mathrm{exc}(H_d)",
        "the less confident one has the larger excess of positive curvature in at least seven of ten pairs",
    ),
    _moves(
        "gradient_distance",
        r"\lVert\nabla\ell\rVert, \lVert\hat Q - Q\rVert",
        "that whose mean prediction is nearer the class prior has the smaller gradient in more than three of "
        "four pairs",
        bound=0.55,
    ),
)

# --- what is reported -------------------------------------------------------------------------------------------

SCATTER_COLUMNS = (
    *(
        Column(score=f"{pair}_{kind}", heading=f"{name}, {what}")
        for kind, what in (("rank", "Spearman"), ("linear", "Pearson"))
        for pair, name in (
            ("entropy_loss", "entropy and loss"),
            ("entropy_gradient", "entropy and gradient norm"),
            ("entropy_excess", "entropy and excess of H"),
            ("loss_excess", "loss and excess of H"),
            ("gradient_distance", "gradient norm and |Qhat - Q|"),
            ("gamma_excess", "Gamma of the mean covariance and excess of H"),
        )
    ),
    Column(score="error", heading="largest standard error of a Spearman correlation"),
    Column(score="below_uniform", heading="share of losses below log K"),
    Column(
        score="below_jensen", heading="share of losses below the bound by Jensen, sum_k Q_k (-log Qhat_k)"
    ),
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
        single="its derivatives are in single precision",
        points=(Point(images="digits", networks=networks, samples=60, dim=50),),
        along="",
        columns=SCATTER_COLUMNS,
        data="digits",
        **its_own,
    )


OBSERVATIONS: tuple[Observation, ...] = (
    _scattered("initialisations", 60, replicates=1, seconds=1.2),
    _scattered("many-initialisations", 2000, replicates=1, seconds=73.0, tier=Tier.FULL),
)
