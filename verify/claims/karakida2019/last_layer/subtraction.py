"""Karakida, Akaho and Amari (2019): mean subtraction with a few samples."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

from simulate.monte_carlo import Block, Point
from simulate.wide import few_signals, fisher_gram
from theory.fisher import mean_subtraction
from verify.claims.karakida2019 import PAPER
from verify.claims.karakida2019.wide_networks import (
    kappas_at,
    mean_over_networks,
    network_of,
    passed_at,
    setting,
)
from verify.model import AnyClaim, Claim, Experiment

__all__ = ["CLAIMS", "growth_of_mean"]

# --- a few samples -------------------------------------------------------------------------------------------


def _few_samples(block: Block, point: Point) -> Mapping[str, Any]:
    """Mean of the eigenvalues that mean subtraction leaves."""
    gram = few_signals.passed_gram(passed_at(block, point))
    left = point.outputs * (point.samples - 1)
    return {"mean_of_nonzero": fisher_gram.fisher_trace(fisher_gram.centred(gram)) / left}


FEW = Experiment(
    id="karakida2019/few-samples",
    replicate="one network with its inputs",
    simulate=_few_samples,
    points=(
        Point(
            activation="relu",
            weight_variance=2.6,
            bias_variance=0.4,
            depth=3,
            width=160,
            samples=2,
            outputs=5,
        ),
        Point(
            activation="tanh",
            weight_variance=2.7,
            bias_variance=0.6,
            depth=4,
            width=160,
            samples=3,
            outputs=5,
        ),
        Point(
            activation="erf",
            weight_variance=0.8,
            bias_variance=2.1,
            depth=3,
            width=160,
            samples=13,
            outputs=5,
        ),
    ),
    budget=4096,
    seconds=0.27,
)


def _at_fixed_samples(p: Any) -> float:
    return mean_subtraction.mean_subtracted_largest(**setting(p, "width", "samples"), finite_width=True)


def growth_of_mean(p: Any) -> float:
    """Power of the width by which eq. (17) takes the narrowest network to the widest."""
    narrow, wide = (
        mean_subtraction.mean_subtracted_largest(**setting(p, "samples"), width=width)
        for width in (p.widths[0], p.widths[-1])
    )
    return math.log(wide / narrow) / math.log(p.widths[-1] / p.widths[0])


def _instead(p: Any, constant: float) -> float:
    """Eq. (17) with another constant in place of kappa1 - kappa2."""
    return constant * float(kappas_at(p).alpha) * p.width / p.samples


FEW_CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="karakida2019/mean-of-nonzero",
        entries=("C24", "C25"),
        source=f"{PAPER}, theorem 3.3, eqs. (16) and (17), for the mean of the eigenvalues that are not zero",
        statement=r"\frac{\mathrm{Tr}\,\bar F}{C (T - 1)} = \frac{1}{T} "
        r"\Big(\alpha M (\kappa_1 - \kappa_2) + \sum_l (\tilde q_t^l - \tilde q_{st}^l)\Big),\quad T \ge 2",
        says="With mean subtraction and few samples, the mean of the non-zero Fisher eigenvalues of a wide "
        "network has the value that the theorem gives for the largest.",
        experiment=FEW,
        score="mean_of_nonzero",
        predict=_at_fixed_samples,
        margin=0.03,
        margin_reason="linear in the Gram matrix: unbiased up to O(1/M); at most 3 % for wide networks",
        rivals={
            "over T - 1": lambda p: _at_fixed_samples(p) * p.samples / (p.samples - 1),
            "1 - 2/T for 1 - 1/T": lambda p: _at_fixed_samples(p) * (p.samples - 2) / (p.samples - 1),
            "kappa1": lambda p: _instead(p, kappas_at(p).kappa1),
            "kappa1 - kappa2 (1 - 1/T)": lambda p: _instead(
                p, kappas_at(p).kappa1 - (1 - 1 / p.samples) * kappas_at(p).kappa2
            ),
            "no alpha": lambda p: _at_fixed_samples(p) / (p.depth - 1),
        },
        quantity="mean of the eigenvalues that are not zero after mean subtraction",
        axis="samples",
    ),
)

# --- growing width at a fixed number of samples --------------------------------------------------------------


def widening(block: Block, point: Point) -> Mapping[str, Any]:
    """Mean of the eigenvalues that mean subtraction leaves, and the largest over it."""
    import torch

    def scores(block: Block, width: int) -> Any:
        drawn = network_of(block, point, width=width, samples=point.samples, outputs=point.outputs)
        found = fisher_gram.fisher_eigenvalues(fisher_gram.centred(fisher_gram.gram(drawn, point.activation)))
        mean = found[:, point.outputs :].mean(1)
        return torch.stack([mean, found[:, -1] / mean], dim=1)

    sizes = zip(point.widths, point.networks, strict=True)
    found = [mean_over_networks(block, count, partial(scores, width=width)) for width, count in sizes]
    mean, over_mean = torch.stack(found, dim=-1).unbind(1)
    return {"mean": mean, "over_mean": over_mean}


HALFWAY = "the exponents at issue are 1/2 apart: less than half the way to the nearest"

WIDENING_CLAIMS: tuple[AnyClaim, ...] = ()

# --- two samples ---------------------------------------------------------------------------------------------


def two_samples(block: Block, point: Point) -> Mapping[str, Any]:
    """Whether the only eigenvalue left by mean subtraction lies below the line of figure 1."""
    gram = few_signals.passed_gram(passed_at(block, point))
    line = mean_subtraction.mean_subtracted_largest(**setting(point, "width", "samples"))
    return {"below": (fisher_gram.fisher_trace(fisher_gram.centred(gram)) < line).double()}


TWO = Experiment(
    id="karakida2019/two-samples",
    replicate="one network with its inputs",
    simulate=two_samples,
    points=(
        Point(
            activation="erf", weight_variance=0.8, bias_variance=2.1, depth=2, width=150, samples=2, outputs=1
        ),
    ),
    budget=16384,
    seconds=0.55,
    special="two samples and one output leave one eigenvalue: its mean is the bound",
)

TWO_CLAIMS: tuple[AnyClaim, ...] = ()

CLAIMS: tuple[AnyClaim, ...] = (*FEW_CLAIMS, *WIDENING_CLAIMS, *TWO_CLAIMS)
