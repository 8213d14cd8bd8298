"""Vysogorets, Dawid and Kempe (2024): the excess of positive curvature, exact properties."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from simulate.monte_carlo import Point
from theory import gauss_newton, softmax
from verify.model import OURS, AnyClaim, ExactProperty, Identity

__all__ = ["CLAIMS"]

PAPER = "Vysogorets, Dawid and Kempe (2024)"

# --- the excess itself ---------------------------------------------------------------------------------------


def _low_rank(rng: np.random.Generator, point: Point) -> Any:
    """A symmetric matrix of the rank of the point, in random directions."""
    import torch

    from simulate.perceptrons import curvature

    frame = curvature.haar(rng, point.rank + point.beyond, point.rank)
    values = torch.from_numpy(rng.standard_normal(point.rank) + point.shift)
    return frame @ (values[:, None] * frame.T)


def _excess(matrix: Any) -> float:
    from simulate.perceptrons import curvature

    return float(curvature.excess(matrix))


def _turned(rng: np.random.Generator, matrix: Any) -> Any:
    from simulate.perceptrons import curvature

    frame = curvature.haar(rng, len(matrix), len(matrix))
    return frame.T @ matrix @ frame


def _not_an_excess(rng: np.random.Generator, point: Point) -> float:
    """By how much it exceeds the root of the rank, or moves with a positive factor or a rotation."""
    matrix = _low_rank(rng, point)
    found = _excess(matrix)
    moved = (_excess(point.factor * matrix), _excess(_turned(rng, matrix)), -_excess(-matrix))
    return max(abs(found) - math.sqrt(point.rank), *(abs(other - found) for other in moved))


def _low_ranks() -> Mapping[str, Any]:
    from hypothesis import strategies as st

    return {
        "rank": st.integers(1, 9),
        "beyond": st.integers(0, 6),
        "shift": st.floats(-9.0, 9.0),
        "factor": st.floats(1e-6, 1e6),
    }


def excess_against_share(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Excess of a rotated spectrum, its share of positive eigenvalues, and what that would make of the excess."""
    import torch

    values = np.repeat(point.eigenvalues, point.multiplicities)
    share = float((values > 0).mean())
    return {
        "excess": _excess(_turned(rng, torch.diag(torch.from_numpy(values)))),
        "sum over root of squares": values.sum() / np.sqrt(np.square(values).sum()),
        "all of one size": (2 * share - 1) * math.sqrt(len(values)),
        "share": share,
    }


EXCESS_CLAIMS: tuple[AnyClaim, ...] = (
    ExactProperty(
        id="vysogorets2024/excess-bound",
        entries=("A4",),
        source=f"{PAPER}, eq. (2); bound and invariances are ours",
        passage=OURS,
        statement=r"|\mathrm{exc}(H)| \le \sqrt{\mathrm{rank}\,H},\quad \mathrm{exc}(cH) = \mathrm{exc}(H)\ (c > 0),"
        r"\quad \mathrm{exc}(Q^\top H Q) = \mathrm{exc}(H)",
        strategies=_low_ranks,
        violation=_not_an_excess,
        examples=(
            Point(rank=5, beyond=3, shift=0.4, factor=3.7),
            Point(rank=4, beyond=4, shift=8.3, factor=0.02),
        ),
        tolerance=1e-12,
        tolerance_reason="a few roundings of sums of up to fifteen numbers",
        rivals={
            "at most 1": lambda rng, point: abs(_excess(_low_rank(rng, point))) - 1,
            "at most the root of half the rank": lambda rng, point: (
                abs(_excess(_low_rank(rng, point))) - math.sqrt(point.rank / 2)
            ),
            "homogeneous": lambda rng, point: abs((point.factor - 1) * _excess(_low_rank(rng, point))),
        },
        seconds=0.2,
    ),
    Identity(
        id="vysogorets2024/excess-is-no-share",
        entries=("A4",),
        source=f"ours, beside section 2 of {PAPER}, which has either detect the zone",
        passage=OURS,
        statement=r"\mathrm{exc}(\mathrm{diag}(1 \times 98, -100, -50)) = -52/\sqrt{12598} "
        r"\text{ with } 98\,\% \text{ positive eigenvalues}",
        routes=excess_against_share,
        points=(Point(eigenvalues=(1.0, -100.0, -50.0), multiplicities=(98, 1, 1)),),
        measured="excess",
        theory="sum over root of squares",
        rivals=("all of one size", "share"),
        tolerance=1e-12,
        tolerance_reason="rounding of a rotation in a hundred dimensions",
        seconds=0.01,
        quantity="excess of positive curvature",
    ),
)

# --- larger dimensions, larger excess ------------------------------------------------------------------------


def _models() -> Mapping[str, Any]:
    from hypothesis import strategies as st

    return {
        "classes": st.integers(2, 6),
        "beyond": st.integers(0, 40),
        "sigma_c": st.floats(0.1, 3.0),
        "sigma_e": st.floats(0.1, 3.0),
        "sharpness": st.floats(0.0, 4.0),
    }


def _expected(rng: np.random.Generator, point: Point) -> tuple[float, float, float, float]:
    """Excess of the mean G-term as a dense matrix in d and in d + 1 dimensions; Gamma; Eq. (8)."""
    import torch

    from simulate.perceptrons import curvature

    p = torch.softmax(torch.from_numpy(point.sharpness * rng.standard_normal(point.classes)), 0)
    covariance, dim = torch.diag(p) - torch.outer(p, p), point.classes + point.beyond

    def dense(size: int) -> float:
        means = math.sqrt(size) * point.sigma_c * curvature.haar(rng, size, point.classes)
        noise = point.sigma_e**2 * covariance.trace() * torch.eye(size, dtype=p.dtype)
        return _excess(means @ covariance @ means.T + noise)

    gamma = float(softmax.gamma(p.numpy()))
    law = gauss_newton.expected_excess(gamma, dim=dim, sigma_c=point.sigma_c, sigma_e=point.sigma_e)
    return dense(dim), dense(dim + 1), gamma, float(law)


def _not_growing(rng: np.random.Generator, point: Point) -> float:
    here, further, gamma, law = _expected(rng, point)
    ceiling = gamma * (1 + (point.sigma_e / point.sigma_c) ** 2)
    root = math.sqrt(point.classes + point.beyond)
    flat = float(further <= here)  # it is to grow, not just not to fall
    return max(flat, here / ceiling - 1, here / root - 1, abs(here / law - 1))


def _changes(rng: np.random.Generator, point: Point) -> float:
    here, further, *_ = _expected(rng, point)
    return abs(further - here)


def _beyond_gamma(rng: np.random.Generator, point: Point) -> float:
    here, _, gamma, _ = _expected(rng, point)
    return here / gamma - 1


def _not_as_the_root(rng: np.random.Generator, point: Point) -> float:
    here, further, *_ = _expected(rng, point)
    dim = point.classes + point.beyond
    return abs(further / here - math.sqrt((dim + 1) / dim))


GROWTH_CLAIM = ExactProperty(
    id="vysogorets2024/growth-with-dimension",
    entries=("A31",),
    source=f"{PAPER}, section 4, figure 4 left; the ceilings are ours",
    statement=r"\mathrm{exc}(\mathbb{E}_e G)\big|_{d + 1} > \mathrm{exc}(\mathbb{E}_e G)\big|_d,\quad "
    r"\mathrm{exc}(\mathbb{E}_e G) \le \min\big(\Gamma_p (1 + \sigma_e^2/\sigma_c^2), \sqrt d\big)",
    strategies=_models,
    violation=_not_growing,
    examples=(
        Point(classes=5, beyond=45, sigma_c=1.0, sigma_e=2.0, sharpness=0.7),
        Point(classes=3, beyond=6, sigma_c=1.6, sigma_e=0.7, sharpness=2.3),
    ),
    tolerance=1e-11,
    tolerance_reason="rounding of a dense matrix in up to fifty dimensions",
    rivals={
        "the same in every dimension": _changes,
        "at most Gamma": _beyond_gamma,
        "as the root of the dimension": _not_as_the_root,
    },
    seconds=0.3,
)

CLAIMS: tuple[AnyClaim, ...] = (*EXCESS_CLAIMS, GROWTH_CLAIM)
