"""Granziol, Zohren and Roberts (2022): outliers in rectangular noise, added to a spike or inside its factor."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from simulate.monte_carlo import Block, Point
from theory import finite_size, outliers
from verify.estimands import variance
from verify.model import (
    AnyClaim,
    Claim,
    ExactProperty,
    Experiment,
    Kind,
    Prediction,
    StatisticalProperty,
    Verdict,
)

__all__ = ["CLAIMS"]

PAPER = "Granziol, Zohren and Roberts (2022)"

# --- rectangular noise: theorem 7, and noise inside the factor -----------------------------------------------


def rectangular(block: Block, point: Point) -> Mapping[str, Any]:
    """One spike with the same rectangular noise added, inside the factor, and in the samples of a covariance."""
    from simulate import reduced

    shape, spike = (point.dim, point.samples), point.spike / point.variance
    models = {
        "additive": reduced.additive_wishart,
        "information": reduced.information_plus_noise,
        "covariance": reduced.spiked_covariance,
    }
    found = {name: draw(block, *shape, spike=spike) for name, draw in models.items()}
    values = {name: point.variance * top.eigenvalue for name, top in found.items()}
    return values | {f"{name}_overlap": top.overlap for name, top in found.items()}


def drowned_in_wishart(block: Block, point: Point) -> Mapping[str, Any]:
    """Largest eigenvalue of Wishart noise with a weak spike added."""
    from simulate import reduced

    found = reduced.additive_wishart(block, point.dim, point.samples, spike=point.spike / point.variance)
    return {"eigenvalue": point.variance * found.eigenvalue}


RECTANGULAR = Experiment(
    id="granziol2022/rectangular-noise",
    replicate="one rectangular Gaussian noise matrix with one direction, in each of three models",
    simulate=rectangular,
    points=(
        Point(spike=1.84, variance=2.6, dim=1200, samples=9900),
        Point(spike=5.4, variance=2.6, dim=2100, samples=6700),
        Point(spike=29.2, variance=2.6, dim=8600, samples=1900),
        Point(spike=94.0, variance=2.6, dim=38000, samples=1950),
    ),
    budget=8192,
    seconds=0.2,
)

WISHART_EDGE = Experiment(
    id="granziol2022/wishart-edge",
    replicate="one Wishart matrix with one weak direction",
    simulate=drowned_in_wishart,
    points=(
        Point(spike=0.32, variance=2.6, dim=300, samples=1100),
        Point(spike=3.8, variance=2.6, dim=3900, samples=870),
        Point(spike=14.1, variance=2.6, dim=8600, samples=1950),
    ),
    budget=4096,
    seconds=0.1,
)


def _model(name: str, p: Point) -> outliers.Outlier:
    law = {
        "additive": outliers.additive_wishart,
        "information": outliers.information_plus_noise,
        "covariance": outliers.spiked_covariance,
    }[name]
    return law(p.spike, q=p.dim / p.samples, variance=p.variance)


def _theorem_7(p: Point) -> float:
    """Outlier, threshold and edge as our copy of eq. (16) reads."""
    q = p.dim / p.samples
    if p.spike > p.variance * (1 + q):
        return p.spike + p.variance * p.spike / (p.spike - q * p.variance)
    return 2 * p.variance * (1 + q)


def _finite_wishart_edge(p: Point) -> float:
    """Mean of the largest eigenvalue of Wishart noise of these sizes."""
    return float(finite_size.wishart_edge(p.dim, p.samples, variance=p.variance).mean)


def _semicircle(p: Point) -> float:
    """The spike in a semicircle of the mean and variance of the noise."""
    width = p.variance * math.sqrt(p.dim / p.samples)
    return p.variance + float(outliers.additive_wigner(p.spike, sigma=width).eigenvalue)


LIMIT_OF_SIZES = "finite size is O(1/P + 1/n), below 0.1 % where it was measured at these sizes"

RECTANGULAR_CLAIMS: tuple[AnyClaim, ...] = (
    Claim(
        id="granziol2022/theorem-7-ratios",
        entries=("B25",),
        source=f"{PAPER}, theorem 7, eq. (16)",
        statement=r"\lambda_1' = \lambda_1 + \frac{\sigma^2 \lambda_1}{\lambda_1 - \beta\sigma^2}\quad "
        r"(\lambda_1 > \sigma^2 \sqrt\beta\,(1 + \sqrt\beta),\ \beta \text{ from 0.12 to 19})",
        experiment=RECTANGULAR,
        score="additive",
        axis="spike",
        predict=lambda p: float(_model("additive", p).eigenvalue),
        printed=_theorem_7,
        finding="At beta = 0.12 a spike of 0.7 sigma^2 has an outlier; by the threshold sigma^2 (1 + beta) in our copy "
        "it would have none, and the edge 2 sigma^2 (1 + beta) lies 17 % beyond it.",
        margin=0.01,
        margin_reason=LIMIT_OF_SIZES,
        rivals={
            "information plus noise": lambda p: float(_model("information", p).eigenvalue),
            "mean of the noise only": lambda p: p.spike + p.variance,
            "semicircle of the same variance": _semicircle,
            "edge of the noise": lambda p: float(_model("additive", p).edge),
        },
        quantity="largest eigenvalue",
    ),
    Claim(
        id="granziol2022/theorem-7-overlap",
        entries=("B25",),
        source=f"ours, beside theorem 7, eq. (16), of {PAPER}",
        statement=r"|(\phi_1')^\top \phi_1|^2 = 1 - \frac{\beta \sigma^4}{(\lambda_1 - \beta \sigma^2)^2}",
        experiment=RECTANGULAR,
        score="additive_overlap",
        axis="spike",
        predict=lambda p: float(_model("additive", p).overlap),
        margin=0.01,
        relative=False,
        margin_reason="finite size is O(1/P + 1/n), below 0.001 at these sizes",
        rivals={
            "information plus noise": lambda p: float(_model("information", p).overlap),
            "semicircle of the same variance": lambda p: 1 - p.dim / p.samples * (p.variance / p.spike) ** 2,
            "square root": lambda p: math.sqrt(_model("additive", p).overlap),
        },
        quantity="squared overlap of the eigenvectors",
    ),
    Claim(
        id="granziol2022/theorem-7-edge",
        entries=("B25",),
        source=f"{PAPER}, theorem 7, eq. (16), below its threshold; finite sizes by Johnstone (2001) and Ma (2012)",
        statement=r"\mathbb{E}\,\lambda_1' = \frac{\sigma^2}{n} (\sqrt{P'} + \sqrt{n'})\big[\sqrt{P'} + \sqrt{n'} "
        r"- 1.2065\,(P'^{-1/2} + n'^{-1/2})^{1/3}\big],\quad P' = P - \tfrac12,\ n' = n - \tfrac12",
        experiment=WISHART_EDGE,
        score="eigenvalue",
        axis="spike",
        predict=_finite_wishart_edge,
        printed=_theorem_7,
        finding="The edge in our copy, 2 sigma^2 (1 + beta), is 10 % too high at beta = 0.27, 13 % at 4.5; between its "
        "threshold sigma^2 (1 + beta) and the true one it has an outlier where there is none.",
        margin=0.004,
        margin_reason="the spike moves the edge by O(1/P + 1/n), 0.05 % where it was measured",
        rivals={
            "edge of infinite size": lambda p: float(_model("additive", p).edge),
            "edge of the semicircle": lambda p: p.variance * (1 + 2 * math.sqrt(p.dim / p.samples)),
            "ratio upside down": lambda p: p.variance * (1 + math.sqrt(p.samples / p.dim)) ** 2,
            "mean of the noise only": lambda p: p.spike + p.variance,
        },
        quantity="largest eigenvalue",
    ),
    Claim(
        id="granziol2022/information-plus-noise",
        entries=("B24", "B27"),
        source=f"{PAPER}, the model of eqs. (14), (15); Benaych-Georges and Nadakuditi (2012)",
        statement=r"\lambda_1' = \frac{(\lambda_1 + \sigma^2)(\lambda_1 + \beta \sigma^2)}{\lambda_1}\quad "
        r"\text{of } (J + X)(J + X)^\top",
        experiment=RECTANGULAR,
        score="information",
        axis="spike",
        predict=lambda p: float(_model("information", p).eigenvalue),
        printed=_theorem_7,
        finding="Theorem 7 adds the noise to J J'; the matrix it starts from has cross terms of J and X, which lift "
        "the outlier further.",
        margin=0.01,
        margin_reason=LIMIT_OF_SIZES,
        rivals={
            "noise added, not inside": lambda p: float(_model("additive", p).eigenvalue),
            "mean of the noise only": lambda p: p.spike + p.variance,
            "ratio upside down": lambda p: (
                (p.spike + p.variance) * (p.spike + p.samples / p.dim * p.variance) / p.spike
            ),
            "cross term missing": lambda p: p.spike + (1 + p.dim / p.samples) * p.variance,
        },
        quantity="largest eigenvalue",
    ),
    Claim(
        id="granziol2022/information-overlap",
        entries=("B24",),
        source="Benaych-Georges and Nadakuditi (2012), section 3.1",
        statement=r"|(\phi_1')^\top \phi_1|^2 = \frac{1 - \beta \sigma^4/\lambda_1^2}{1 + \beta \sigma^2/\lambda_1}",
        experiment=RECTANGULAR,
        score="information_overlap",
        axis="spike",
        predict=lambda p: float(_model("information", p).overlap),
        margin=0.01,
        relative=False,
        margin_reason="finite size is O(1/P + 1/n), below 0.001 at these sizes",
        rivals={
            "noise added, not inside": lambda p: float(_model("additive", p).overlap),
            "right singular vectors": lambda p: (
                (1 - p.dim / p.samples * (p.variance / p.spike) ** 2) / (1 + p.variance / p.spike)
            ),
            "square root": lambda p: math.sqrt(_model("information", p).overlap),
        },
        quantity="squared overlap of the left singular vectors",
    ),
    Claim(
        id="granziol2022/spiked-covariance",
        entries=("B24",),
        source="Baik and Silverstein (2006), for the samples of eqs. (14), (15) with a random J of rank one",
        statement=r"\lambda_1' = \frac{(\theta + \sigma^2)(\theta + \beta \sigma^2)}{\theta}\quad "
        r"\text{for samples of } N(0, \sigma^2 I + \theta u u^\top)",
        experiment=RECTANGULAR,
        score="covariance",
        axis="spike",
        predict=lambda p: float(_model("covariance", p).eigenvalue),
        margin=0.01,
        margin_reason=LIMIT_OF_SIZES,
        rivals={
            "noise added, not inside": lambda p: float(_model("additive", p).eigenvalue),
            "variance of the samples": lambda p: p.spike + p.variance,
        },
        quantity="largest eigenvalue",
    ),
    Claim(
        id="granziol2022/one-broadening-for-all",
        entries=("B27",),
        source=f"{PAPER}, after theorem 7, eq. (16)",
        statement=r"\lambda_1' = \lambda_1 + \frac{\sigma^2 \lambda_1}{\lambda_1 - \beta\sigma^2}\quad "
        r"\text{whatever the noise, also of } (J + X)(J + X)^\top",
        expected=Verdict.DISAGREES,
        finding="That noise broadens is universal, by how much is not: at the same spike and noise the two models have "
        "outliers up to a half apart.",
        experiment=RECTANGULAR,
        score="information",
        axis="spike",
        predict=lambda p: float(_model("additive", p).eigenvalue),
        margin=0.01,
        margin_reason="as for each of the two maps",
        rivals={
            "no broadening": lambda p: p.spike,
            "semicircle of the same variance": _semicircle,
        },
        quantity="largest eigenvalue",
    ),
)

# --- how far these outliers scatter -------------------------------------------------------------------------

SCATTERED = Experiment(
    id="granziol2022/rectangular-scatter",
    replicate="one rectangular Gaussian noise matrix with one direction, in each of three models",
    simulate=rectangular,
    points=(
        Point(spike=0.56, variance=0.37, dim=4500, samples=9100),
        Point(spike=29.0, variance=2.7, dim=13000, samples=2100),
    ),
    budget=32768,
    seconds=6.0,
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
    model: str, entry: str, source: str, statement: str, rivals: Mapping[str, Prediction]
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
        experiment=SCATTERED,
        kind=Kind.GROUPS,
        statistic=variance,
        group=32,
        score=model,
        predict=lambda p: _variances(p)[model],
        margin=0.1,
        margin_reason=A_VARIANCE,
        rivals={**others, **rivals},
        quantity="variance of the largest eigenvalue",
    )


SCATTER_CLAIMS: tuple[AnyClaim, ...] = (
    _scatter_claim(
        "additive",
        "B25",
        f"ours, beside theorem 7, eq. (16), of {PAPER}",
        r"\mathrm{Var}\,\lambda_1' = \frac{2 \sigma^4}{n} \frac{\lambda_1^2}{(\lambda_1 - \beta\sigma^2)^2} "
        r"\Big(1 - \frac{\beta \sigma^4}{(\lambda_1 - \beta\sigma^2)^2}\Big)",
        {"overlap left out": lambda p: _variances(p)["additive"] / float(_model("additive", p).overlap)},
    ),
    _scatter_claim(
        "information",
        "B24",
        f"ours, beside eqs. (14), (15) of {PAPER}",
        r"\mathrm{Var}\,\lambda_1' = \frac{2 \sigma^2}{n} \big(2 \lambda_1 + (1 + \beta) \sigma^2\big) "
        r"\Big(1 - \frac{\beta \sigma^4}{\lambda_1^2}\Big)",
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
        {"far from the threshold": lambda p: 2 * (p.spike + p.variance) ** 2 / p.samples},
    ),
)

# --- the same over ratio and spike ---------------------------------------------------------------------------


def _rectangular_parameters() -> Mapping[str, Any]:
    from hypothesis import strategies as st

    return {
        "dim": st.integers(700, 9000),
        "samples": st.integers(700, 9000),
        "variance": st.floats(0.03, 30.0),
        "relative_spike": st.floats(1.6, 4.0),
    }


def _in_units(p: Point, threshold: float) -> Point:
    """The spike in units of the threshold that it is given for variance 1."""
    return p | {"spike": p.relative_spike * threshold * p.variance}


def _above_additive(p: Point) -> Point:
    root = math.sqrt(p.dim / p.samples)
    return _in_units(p, root * (1 + root))


def _above_information(p: Point) -> Point:
    return _in_units(p, math.sqrt(p.dim / p.samples))


def any_additive_wishart(block: Block, point: Point) -> Mapping[str, Any]:
    """The largest eigenvalue with added Wishart noise, the spike in units of its threshold."""
    return drowned_in_wishart(block, _above_additive(point))


def any_information(block: Block, point: Point) -> Mapping[str, Any]:
    """The largest eigenvalue with noise inside the factor, the spike in units of its threshold."""
    from simulate import reduced

    p = _above_information(point)
    found = reduced.information_plus_noise(block, p.dim, p.samples, spike=p.spike / p.variance)
    return {"eigenvalue": p.variance * found.eigenvalue}


EXAMPLES = (
    Point(dim=900, samples=3800, variance=1.7, relative_spike=1.83),
    Point(dim=5300, samples=740, variance=0.7, relative_spike=2.6),
)

MAP_CLAIMS: tuple[AnyClaim, ...] = (
    StatisticalProperty(
        id="granziol2022/additive-wishart-map",
        entries=("B25",),
        source=f"{PAPER}, theorem 7, eq. (16)",
        statement=r"\lambda_1' = \lambda_1 + \frac{\sigma^2 \lambda_1}{\lambda_1 - \beta\sigma^2} \text{ for } "
        r"\lambda_1 \text{ from 1.6 to 4 times } \sigma^2 \sqrt\beta\,(1 + \sqrt\beta)",
        strategies=_rectangular_parameters,
        simulate=any_additive_wishart,
        replicate="one Wishart matrix with one direction",
        examples=EXAMPLES,
        score="eigenvalue",
        predict=lambda p: float(_model("additive", _above_additive(p)).eigenvalue),
        margin=0.01,
        margin_reason="finite size is O(1/P + 1/n), below 0.1 % at 700",
        rivals={
            "information plus noise": lambda p: float(_model("information", _above_additive(p)).eigenvalue),
            "mean of the noise only": lambda p: _above_additive(p).spike + p.variance,
            "edge of the noise": lambda p: float(_model("additive", _above_additive(p)).edge),
        },
        budget=4096,
        seconds=0.5,
        quantity="largest eigenvalue",
    ),
    StatisticalProperty(
        id="granziol2022/information-map",
        entries=("B24",),
        source=f"Benaych-Georges and Nadakuditi (2012), for the model of eqs. (14), (15) of {PAPER}",
        statement=r"\lambda_1' = \frac{(\lambda_1 + \sigma^2)(\lambda_1 + \beta \sigma^2)}{\lambda_1} \text{ for } "
        r"\lambda_1 \text{ from 1.6 to 4 times } \sigma^2 \sqrt\beta",
        strategies=_rectangular_parameters,
        simulate=any_information,
        replicate="one noise matrix inside the factor of one direction",
        examples=EXAMPLES,
        score="eigenvalue",
        predict=lambda p: float(_model("information", _above_information(p)).eigenvalue),
        margin=0.01,
        margin_reason="finite size is O(1/P + 1/n), below 0.1 % at 700",
        rivals={
            "noise added, not inside": lambda p: float(_model("additive", _above_information(p)).eigenvalue),
            "mean of the noise only": lambda p: _above_information(p).spike + p.variance,
            "edge of the noise": lambda p: float(_model("information", _above_information(p)).edge),
        },
        budget=4096,
        seconds=0.5,
        quantity="largest eigenvalue",
    ),
)

# --- the mean of noise inside a factor: exact ----------------------------------------------------------------


def _factor_parameters() -> Mapping[str, Any]:
    from hypothesis import strategies as st

    return {
        "dim": st.integers(1, 6),
        "samples": st.integers(1, 6),
        "draws": st.integers(2, 9),
        "sigma": st.floats(1e-3, 1e3),
    }


def _factors(rng: np.random.Generator, p: Point) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """J, and noise with equally likely values whose mean is 0."""
    noise = p.sigma * rng.standard_exponential((p.draws, p.dim, p.samples))
    return rng.standard_normal((p.dim, p.samples)), noise - noise.mean(axis=0)


def _mean_square(j: Any, noise: Any) -> Any:
    return np.mean([(j + x) @ (j + x).T for x in noise], axis=0)


def _off(found: Any, expected: Any) -> float:
    """Largest difference relative to the largest entry."""
    return float(np.abs(found - expected).max() / np.abs(found).max())


def _noise_adds_its_square(rng: np.random.Generator, p: Point) -> float:
    j, noise = _factors(rng, p)
    return _off(_mean_square(j, noise), j @ j.T + np.mean([x @ x.T for x in noise], axis=0))


def _noise_drops_out(rng: np.random.Generator, p: Point) -> float:
    j, noise = _factors(rng, p)
    return _off(_mean_square(j, noise), j @ j.T)


def _every_draw_adds_its_square(rng: np.random.Generator, p: Point) -> float:
    j, noise = _factors(rng, p)
    return max(_off((j + x) @ (j + x).T, j @ j.T + x @ x.T) for x in noise)


def _batch_parameters() -> Mapping[str, Any]:
    from hypothesis import strategies as st

    return {"dim": st.integers(1, 5), "dataset_size": st.integers(2, 7), "share": st.floats(0.1, 0.9)}


def _batches(rng: np.random.Generator, p: Point) -> tuple[Any, Any, float]:
    """Mean over all batches of their Gauss-Newton matrix, that of the data set, and sigma^2 of eq. (15)."""
    factors = rng.standard_normal((p.dataset_size, p.dim, 2)) + 1.0
    size = math.ceil(p.share * (p.dataset_size - 1))
    samples = np.array([f @ f.T for f in factors])
    batches = [samples[list(chosen)].mean(axis=0) for chosen in combinations(range(len(samples)), size)]
    noise = float(factors.var(axis=0).mean()) * (1 / size - 1 / p.dataset_size)
    return np.mean(batches, axis=0), samples.mean(axis=0), noise


def _batches_keep_the_mean(rng: np.random.Generator, p: Point) -> float:
    batches, whole, _ = _batches(rng, p)
    return _off(batches, whole)


def _batches_gain_the_noise(rng: np.random.Generator, p: Point) -> float:
    batches, whole, noise = _batches(rng, p)
    return _off(batches, whole + noise * np.eye(p.dim))


ROUNDING = "rounding of a few dozen additions"

MEAN_CLAIMS: tuple[AnyClaim, ...] = (
    ExactProperty(
        id="granziol2022/mean-of-the-square",
        entries=("B24",),
        source=f"{PAPER}, eq. (15)",
        statement=r"\mathbb{E}\,(J + X)(J + X)^\top = J J^\top + \mathbb{E}\,X X^\top\quad (\mathbb{E} X = 0)",
        strategies=_factor_parameters,
        violation=_noise_adds_its_square,
        examples=(Point(dim=4, samples=3, draws=5, sigma=0.7),),
        tolerance=1e-10,
        tolerance_reason=ROUNDING,
        rivals={
            "the noise drops out": _noise_drops_out,
            "without the mean, in every draw": _every_draw_adds_its_square,
        },
    ),
    ExactProperty(
        id="granziol2022/mean-of-the-batches",
        entries=("B24",),
        source=f"{PAPER}, eqs. (14), (15), against the sampling of eq. (3)",
        statement=r"\mathbb{E}\,G_B = G\quad \text{over all batches of any size}",
        finding="By eq. (15) batches would gain sigma^2 I in the mean; drawn from a data set they gain nothing.",
        strategies=_batch_parameters,
        violation=_batches_keep_the_mean,
        examples=(Point(dim=3, dataset_size=6, share=0.4),),
        tolerance=1e-11,
        tolerance_reason=ROUNDING,
        rivals={"the mean gains sigma^2 I, as eq. (15)": _batches_gain_the_noise},
    ),
)

CLAIMS: tuple[AnyClaim, ...] = (*RECTANGULAR_CLAIMS, *SCATTER_CLAIMS, *MAP_CLAIMS, *MEAN_CLAIMS)
