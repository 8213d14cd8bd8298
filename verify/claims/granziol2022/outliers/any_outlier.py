"""Outliers of every random matrix with a spike, at any size, shape and strength beyond the threshold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from simulate.matrices import ensembles, reduced
from simulate.monte_carlo import Block, Point
from theory import outliers
from theory.batch_hessian import low_rank_noise
from verify.claims.granziol2022 import PAPER
from verify.judging.families import one
from verify.model import KNOWN, AnyClaim, StatisticalProperty
from verify.model.domains import Between, OneOf

__all__ = ["CLAIMS"]


def _ratio(eigenvalue: Any, overlap: Any, known: outliers.Outlier) -> Any:
    """Of eigenvalue and overlap, the mean of both: the overlap is at least a half here."""
    return (eigenvalue / float(known.eigenvalue) + overlap / float(known.overlap)) / 2


def _wigner(block: Block, p: Point) -> Any:
    sign = -1.0 if p.bottom else 1.0
    found = reduced.wigner_extreme(block, p.dim, spike=sign * p.times, bottom=p.bottom)
    return _ratio(sign * found.eigenvalue, found.overlap, outliers.additive_wigner(p.times, sigma=1.0))


def _several(block: Block, p: Point) -> Any:
    spikes = (p.times, -p.times - 0.3, p.times + 0.9)
    found = reduced.wigner_outliers(block, p.dim, spikes=spikes)
    known = outliers.additive_wigner(spikes, sigma=1.0)
    values, overlaps = (found.eigenvalue.new_tensor(part) for part in (known.eigenvalue, known.overlap))
    return (found.eigenvalue / values + found.overlap / overlaps).mean(1) / 2


def _without_the_matrix(block: Block, p: Point) -> Any:
    known = outliers.additive_wigner(p.times, sigma=1.0)
    return ensembles.goe_top_eigenvalue(block, p.dim, spike=p.times) / float(known.eigenvalue)


def _wishart(block: Block, p: Point) -> Any:
    draw, law = {
        "added": (reduced.additive_wishart_top, outliers.additive_wishart),
        "inside": (reduced.information_plus_noise_top, outliers.information_plus_noise),
        "covariance": (reduced.spiked_covariance_top, outliers.spiked_covariance),
    }[p.case]
    q = p.dim / p.samples
    spike = p.times * float(law(0.0, q=q, variance=1.0).threshold)
    found, known = draw(block, p.dim, p.samples, spike=spike), law(spike, q=q, variance=1.0)
    return _ratio(found.eigenvalue, found.overlap, known)


def _projections(block: Block, p: Point) -> Any:
    """Signed ones, of a few samples."""
    samples = p.samples // 40
    law = low_rank_noise(rank=2, variance=1.0, dim=p.dim, batch_size=samples)
    spike = p.times * law.edges[1]
    found = reduced.signed_projections_top(block, p.dim, samples=samples, rank=2, spike=spike, scale=p.dim)
    return found.eigenvalue / float(outliers.additive(spike, law).eigenvalue)


def _dense_wishart(block: Block, p: Point) -> Any:
    dim, samples = p.dim // 20, p.samples // 10
    law = outliers.additive_wishart
    spike = p.times * float(law(0.0, q=dim / samples, variance=1.0).threshold)
    known = law(spike, q=dim / samples, variance=1.0)
    return _dense(block, ensembles.wishart(block, dim, samples), spike, known, mean=1.0)


def _dense_wigner(block: Block, p: Point) -> Any:
    noise = ensembles.wigner(block, p.dim // 20, law="rademacher" if p.bottom else "gaussian")
    return _dense(block, noise, p.times, outliers.additive_wigner(p.times, sigma=1.0), mean=0.0)


def _dense(block: Block, noise: Any, spike: float, known: outliers.Outlier, *, mean: float) -> Any:
    """What a spike adds to a whole matrix, the part of first order, of known mean, left out of the eigenvalue."""
    v = ensembles.unit_vectors(block, noise.shape[1])
    first_order = (v[:, None] @ noise @ v[:, :, None]).squeeze() - mean
    whole = ensembles.spiked(noise, v, spike)
    value, vector = ensembles.top_eigenpair(whole)
    value = (value + ensembles.top_eigenvalue(whole)) / 2
    return _ratio(value - first_order, (vector * v).sum(1).square(), known)


CASES: dict[str, Callable[[Block, Point], Any]] = {
    "Wigner": _wigner,
    "several": _several,
    "without the matrix": _without_the_matrix,
    "projections": _projections,
    "dense Wishart": _dense_wishart,
    "dense Wigner": _dense_wigner,
    **dict.fromkeys(("added", "inside", "covariance"), _wishart),
}


def any_outlier(block: Block, point: Point) -> Mapping[str, Any]:
    """Eigenvalue and overlap over what theory says of them."""
    return {"ratio": CASES[point.case](block, point)}


def _example(case: str) -> Point:
    return Point(case=case, dim=2600, samples=3800, times=1.83, bottom=case == "Wigner")


CLAIMS: tuple[AnyClaim, ...] = (
    StatisticalProperty(
        id="granziol2022/any-outlier",
        entries=("B15", "B16", "B17", "B24", "B25"),
        source="Benaych-Georges and Nadakuditi (2011, 2012); Baik and Silverstein (2006); for lemma 5 and theorems 7 "
        f"and 10 of {PAPER}",
        passage=KNOWN,
        statement=r"\lambda_1',\ |\phi_1'^\top \phi_1|^2 \text{ for } \lambda_1 \text{ from 1.6 to 4 thresholds}",
        says="Over ranges of size, shape and strength, the outlier of every random matrix with a spike lies, and "
        "points, where theory has it.",
        domain={
            "case": OneOf(*CASES),
            "dim": Between(1600, 5000),
            "samples": Between(1000, 5000),
            "times": Between(1.6, 4.0),
            "bottom": OneOf(False, True),
        },
        simulate=any_outlier,
        on_host="eigenvalues of tridiagonal matrices, by LAPACK",
        replicate="one noise matrix with one direction, or three",
        examples=tuple(map(_example, CASES)),
        score="ratio",
        predict=one,
        margin=0.01,
        margin_reason="finite size is O(1/P + 1/n), below 0.3 % for whole matrices of 80 rows",
        rivals={
            "no broadening": lambda p: p.times**2 / (1 + p.times**2),
            "twice the broadening": lambda p: (2 + p.times**2) / (1 + p.times**2),
        },
        budget=4096,
        seconds=2.0,
        quantity="eigenvalue and overlap over theory",
    ),
)
