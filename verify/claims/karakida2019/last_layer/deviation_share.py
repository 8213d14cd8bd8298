"""Karakida, Akaho and Amari (2019), beside eq. (19): what differentiating the deviations takes out of the trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simulate.monte_carlo import Block, Point
from simulate.wide import fisher_gram, last_layer
from theory.fisher import batch_normalisation
from verify.claims.karakida2019 import PAPER
from verify.claims.karakida2019.last_layer.deviations import WIDE
from verify.claims.karakida2019.wide_networks import network_of, setting
from verify.model import OURS, AnyClaim, Claim, Experiment

__all__ = ["CLAIMS"]


def lost_shares(block: Block, point: Point) -> Mapping[str, Any]:
    """Share of the trace that differentiating the deviations takes out, times T - 1."""
    drawn = network_of(block, point)
    outputs = last_layer.outputs_of(drawn, point.activation)
    gram = fisher_gram.gram(drawn, point.activation)
    fixed, exact = (
        fisher_gram.fisher_trace(
            last_layer.projected_gram(gram, last_layer.batch_normalisation(outputs, fixed_deviation=f))
        )
        for f in (True, False)
    )
    return {"share": (point.samples - 1) * (1 - exact / fixed)}


SHARES = Experiment(
    id="karakida2019/deviation-share",
    replicate="one network with its inputs",
    simulate=lost_shares,
    points=(
        Point(
            activation="relu",
            weight_variance=2.1,
            bias_variance=0.2,
            depth=3,
            width=260,
            samples=110,
            outputs=4,
        ),
        Point(
            activation="linear",
            weight_variance=1.3,
            bias_variance=0.3,
            depth=3,
            width=260,
            samples=110,
            outputs=4,
        ),
    ),
    budget=1024,
    seconds=1.6,
)


def _share(p: Any) -> float:
    return (p.samples - 1) * batch_normalisation.deviation_share(**setting(p, "width", "samples"))


CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="karakida2019/deviation-share",
        entries=("C36",),
        source=f"ours, beside eq. (19) of {PAPER}",
        passage=OURS,
        statement=r"(T - 1) \Big(1 - \frac{\mathrm{Tr} F_{full}}{\mathrm{Tr} F_{fixed}}\Big) = "
        r"1 + \frac{r}{M} (T - 2) \quad (T = O(M)),\quad r = \frac{\lim \mathrm{Cov}(f(s) f(t), K_{st})}"
        r"{\sigma_w^2 (\hat q_t^{L-1} - \hat q_{st}^{L-1}) \alpha (\kappa_1 - \kappa_2)}",
        says="Differentiating the deviations of batch normalisation removes a share of the Fisher matrix's "
        "trace, which the covariance of output products with gradient products decides.",
        experiment=SHARES,
        score="share",
        predict=_share,
        margin=0.03,
        margin_reason=WIDE + ", about 1 % at M = 260",
        rivals={
            "2": lambda _: 2.0,
            "1, outputs independent of the Gram matrix": lambda _: 1.0,
            "M / T for T / M": lambda p: 1 + (_share(p) - 1) * (p.width / p.samples) ** 2,
        },
        quantity="share of the trace lost by differentiating the deviations, times T - 1",
    ),
)
