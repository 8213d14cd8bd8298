"""Vysogorets, Dawid and Kempe (2024): derivatives of networks whose weights are scaled, on real images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from simulate.monte_carlo import Point
from simulate.perceptrons import curvature
from theory import zone
from verify.claims.vysogorets2024 import PAPER
from verify.claims.vysogorets2024.scaling.identities import (
    EXACT,
    drawn,
    frame_of,
    on_both,
)
from verify.model import OURS, AnyClaim, Identity, Passage, Standing

__all__ = ["CLAIMS"]


def matched_temperature(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Full gradients of the network as drawn and scaled, at T = alpha^L and at the power below."""
    case, a = drawn(rng, point), point.alpha
    matched, low = (
        case.objective(alpha=a, temperature=a**power).gradient() for power in (case.depth, case.depth - 1)
    )
    factor = zone.homogeneous_factor(a, depth=case.depth, order=1, temperature=a**case.depth)
    return {
        "alpha grad'": matched / float(factor),
        "grad": case.objective().gradient(),
        "gradient itself restored": matched,
        "T = alpha^(L-1)": a * low,
    }


def one_temperature(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Hessians along a frame at scaled weights, and at the weights as drawn with another temperature."""
    case, a, heat = drawn(rng, point), point.alpha, point.temperature
    frame = frame_of(rng, case, point)
    reduced = float(zone.reduced_temperature(a, depth=case.depth, temperature=heat))
    scaled = case.hessian(frame, alpha=a, temperature=heat)
    return {
        "alpha^2 H'(alpha, T)": a**2 * scaled,
        "H(1, T / alpha^L)": case.hessian(frame, temperature=reduced),
        "without alpha^2": scaled,
        "H(1, T / alpha^(L-1))": case.hessian(frame, temperature=a * reduced),
        "H(1, T alpha^L)": case.hessian(frame, temperature=heat**2 / reduced),
    }


# --- far above the zone --------------------------------------------------------------------------------------


def large_losses(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Loss at 4 alpha, from the logits as drawn, and what an exponential makes of the losses at alpha and 2 alpha."""
    case = drawn(rng, point)
    one, two, four = (case.objective(alpha=a * point.alpha).value() for a in (1, 2, 4))
    z, factor = case.scaled(1.0)(case.x).detach(), 4 * point.alpha
    short = float((z.amax(1) - z.gather(1, case.labels[:, None])[:, 0]).mean())
    return {
        "loss at 4 alpha": four,
        "(4 alpha)^L c": float(zone.homogeneous_factor(factor, depth=case.depth)) * short,
        "exponential in alpha": two * (two / one) ** 2,
        "(4 alpha)^(L-1) c": factor ** (case.depth - 1) * short,
        "mean logit for the largest": factor**case.depth * (short - float((z.amax(1) - z.mean(1)).mean())),
    }


def large_curvature(rng: np.random.Generator, point: Point) -> Mapping[str, Any]:
    """Spectral norm of the Hessian far above the zone, and of the H-term as drawn at one-hot predictions."""
    from torch.nn import functional

    case, a = drawn(rng, point), point.alpha
    frame = frame_of(rng, case, point)
    found = case.derivatives(frame)
    sure = functional.one_hot(found.logits.argmax(-1), found.logits.shape[-1])
    h_term = curvature.spectral_norm(found.h_term(case.residuals(sure.to(found.logits))))
    return {
        "norm of H'": curvature.spectral_norm(case.hessian(frame, alpha=a)),
        "alpha^(L-2) norm of Ht": float(zone.curvature_factors(a, depth=case.depth).h_term) * h_term,
        "none": 0 * h_term,
        "norm of Ht": h_term,
        "alpha^(L-1) norm of Ht": a ** (case.depth - 1) * h_term,
        "alpha^L norm of Ht": a**case.depth * h_term,
    }


CLAIMS: tuple[AnyClaim, ...] = (
    Identity(
        id="vysogorets2024/temperature-gradient",
        entries=("A13",),
        source=f"{PAPER}, sections 1 and 3",
        statement=r"T = \alpha^L:\quad \alpha \nabla\ell' = \nabla\ell",
        says="At a temperature of the scale to the power of the depth, the loss gradient of a scaled network is the "
        "original one over the scale.",
        routes=matched_temperature,
        points=on_both({"alpha": 0.3}, {"alpha": 3.0}, samples=8),
        tolerance=1e-12,
        tolerance_reason=EXACT,
        seconds=0.14,
        data="digits",
        quantity="gradient of the loss",
    ),
    Identity(
        id="vysogorets2024/one-temperature",
        entries=("A15",),
        source=f"ours, sharper than section 6 and figure 1 of {PAPER}",
        passage=OURS,
        statement=r"\alpha^2 H'(\alpha, T) = H(1, T / \alpha^L)",
        says="Up to a factor of the squared scale, the Hessian depends on scale and temperature only through the "
        "temperature over the scale to the depth.",
        routes=one_temperature,
        points=on_both(
            {"alpha": 0.4, "temperature": 3.0}, {"alpha": 1.6, "temperature": 0.7}, samples=8, dim=3
        ),
        tolerance=1e-12,
        tolerance_reason=EXACT,
        seconds=0.62,
        data="digits",
        quantity="projected Hessian",
    ),
    Identity(
        id="vysogorets2024/loss-at-large-scale",
        entries=("A57",),
        source=f"{PAPER}, section 5",
        statement=r"\ell(\alpha) = \alpha^L\, \overline{\max_k z_k - z_y} \quad (\alpha \gg 1)",
        says="At large scale, the loss grows as the scale to the power of the depth, times the mean shortfall of the "
        "label's logit behind the largest.",
        reads=r"\text{loss scales exponentially with } \alpha",
        routes=large_losses,
        points=on_both({}, alpha=200.0, samples=8),
        printed="exponential in alpha",
        passage=Passage(
            Standing.AS_STATED,
            "their loss remains extremely large and scales exponentially with",
            "Section 5",
        ),
        finding="Of a homogeneous network the loss at large scale grows with the logits, as the power alpha^L of the "
        "scale and not exponentially.",
        tolerance=1e-7,
        tolerance_reason="the loss is at most log K above alpha^L c, here 1e8 or more",
        seconds=0.028,
        data="digits",
        quantity="loss",
    ),
    Identity(
        id="vysogorets2024/norm-at-large-scale",
        entries=("A57",),
        source=f"{PAPER}, section 5; the growth is ours, from eq. (5)",
        statement=r"\lVert H'_d\rVert_2 = \alpha^{L-2} \lVert \tilde H_d(\text{one-hot } p)\rVert_2 "
        r"\quad (\alpha \gg 1)",
        says="Far above the zone, the spectral norm of the Hessian is that of its remainder at one-hot predictions, "
        "times the scale to the depth less two.",
        reads=r"\text{the loss curvature vanishes along all directions}",
        routes=large_curvature,
        points=on_both({}, alpha=1300.0, samples=8, dim=3),
        printed="none",
        passage=Passage(Standing.AS_STATED, "the loss curvature vanishes along all directions", "Section 5"),
        finding="That the curvature vanishes along all directions holds below the zone; above it the norm of the "
        "Hessian grows as alpha^(L-2), and what vanishes on both sides is the excess of positive curvature.",
        tolerance=1e-10,
        tolerance_reason="an image would need two logits closer than 1e-8 to show",
        seconds=0.16,
        data="digits",
        quantity="spectral norm of the projected Hessian",
    ),
)
