"""Granziol, Zohren and Roberts (2022), Theorem 7: how far outliers in rectangular noise scatter."""

from __future__ import annotations

from collections.abc import Mapping

from simulate.monte_carlo import Point
from theory import finite_size
from verify.claims.granziol2022 import PAPER
from verify.claims.granziol2022.outliers.rectangular import outlier_of, rectangular
from verify.judging.estimands import variance
from verify.model import KNOWN, AnyClaim, Claim, Experiment, Kind, Prediction, Tier

__all__ = ["CLAIMS"]

SCATTERED = Experiment(
    id="granziol2022/rectangular-scatter",
    replicate="one rectangular Gaussian noise matrix with one direction, in each of three models",
    simulate=rectangular,
    on_host="eigenvalues of tridiagonal matrices, by LAPACK",
    points=(
        Point(spike=0.56, variance=0.37, dim=4500, samples=9100),
        Point(spike=29.0, variance=2.7, dim=13000, samples=2100),
    ),
    budget=32768,
    seconds=3.5,
    tier=Tier.FULL,
)

A_VARIANCE = "a variance: 10 % takes some 10^4 matrices; finite size is O(1/P + 1/n), below 1 %"


def _variances(p: Point) -> Mapping[str, float]:
    """Of the outlier in each of the three models."""
    sizes = {"dim": p.dim, "samples": p.samples, "variance": p.variance}
    return {
        "additive": float(finite_size.additive_wishart_sd(p.spike, **sizes)) ** 2,
        "information": float(finite_size.information_plus_noise_sd(p.spike, **sizes)) ** 2,
        "covariance": float(finite_size.spiked_covariance_sd(p.spike, **sizes)) ** 2,
    }


def _scatter_claim(
    model: str, entry: str, source: str, statement: str, says: str, rivals: Mapping[str, Prediction]
) -> Claim:
    others: Mapping[str, Prediction] = {
        f"as of {other}": lambda p, other=other: _variances(p)[other]
        for other in ("additive", "information", "covariance")
        if other != model
    }
    return Claim(
        id=f"granziol2022/{model}-scatter",
        entries=(entry,),
        source=source,
        statement=statement,
        says=says,
        experiment=SCATTERED,
        kind=Kind.GROUPS,
        statistic=variance,
        group=32,
        passage=KNOWN,
        score=model,
        predict=lambda p: _variances(p)[model],
        margin=0.1,
        margin_reason=A_VARIANCE,
        rivals={**others, **rivals},
        quantity="variance of the largest eigenvalue",
    )


CLAIMS: tuple[AnyClaim, ...] = (
    _scatter_claim(
        "additive",
        "B25",
        f"Benaych-Georges, Guionnet and Maida (2011), beside theorem 7, eq. (16), of {PAPER}",
        r"\mathrm{Var}\,\lambda_1' = \frac{2 \sigma^4}{n} \frac{\lambda_1^2}{(\lambda_1 - \beta\sigma^2)^2} "
        r"\Big(1 - \frac{\beta \sigma^4}{(\lambda_1 - \beta\sigma^2)^2}\Big)",
        "Under added Wishart noise the variance of the outlier falls inversely with the number of samples, in "
        "proportion to the squared overlap of the eigenvectors.",
        {"overlap left out": lambda p: _variances(p)["additive"] / float(outlier_of("additive", p).overlap)},
    ),
    _scatter_claim(
        "information",
        "B24",
        f"Chapon, Couillet, Hachem and Mestre (2014), arXiv 1207.0471, beside eqs. (14), (15) of {PAPER}",
        r"\mathrm{Var}\,\lambda_1' = \frac{2 \sigma^2}{n} \big(2 \lambda_1 + (1 + \beta) \sigma^2\big) "
        r"\Big(1 - \frac{\beta \sigma^4}{\lambda_1^2}\Big)",
        "With noise inside the factor the variance of the outlier is linear in the spike far from the threshold, and "
        "vanishes at it.",
        {
            "far from the threshold": lambda p: (
                2 * p.variance / p.samples * (2 * p.spike + (1 + p.dim / p.samples) * p.variance)
            ),
        },
    ),
    _scatter_claim(
        "covariance",
        "B24",
        "Paul (2007), theorem 3, and Bai and Yao (2008) for P > n, for the samples of eqs. (14), (15) with a random "
        "J of rank one",
        r"\mathrm{Var}\,\lambda_1' = \frac{2 (\theta + \sigma^2)^2}{n} "
        r"\Big(1 - \frac{\beta \sigma^4}{\theta^2}\Big)",
        "In the covariance of Gaussian samples the variance of the outlier is quadratic in the population's "
        "eigenvalue far from the threshold, and vanishes at it.",
        {"far from the threshold": lambda p: 2 * (p.spike + p.variance) ** 2 / p.samples},
    ),
)
