"""Closed forms of `verify.claims.noise_scale.interpolation`."""

from __future__ import annotations

import sympy

from tests.verify.claims.mutation import ClosedForm

__all__ = ["FORMS", "UNSEEN"]


def _beta(p) -> float:
    return p.largest + p.many * p.middle + p.smallest


def _critical(p) -> float:
    return _beta(p) / (p.largest - p.smallest) + 1


def _rate(batch_size, beta, largest, smallest, critical):
    below = batch_size / (beta + (batch_size - 1) * smallest)
    above = 2 * batch_size / (beta + (batch_size - 1) * (largest + smallest))
    return sympy.Piecewise((below, batch_size < critical), (above, batch_size > critical))


def _gain(batch_size, beta, largest, smallest, critical):
    below = batch_size * smallest / (beta + (batch_size - 1) * smallest)
    ends = (beta + (batch_size - 1) * (largest + smallest)) ** 2
    above = 4 * batch_size * (batch_size - 1) * largest * smallest / ends
    return sympy.Piecewise((below, batch_size < critical), (above, batch_size > critical))


FORMS = {
    "noise_scale/interpolating-rate": ClosedForm(_rate, {"beta": _beta, "critical": _critical}),
    "noise_scale/interpolating-gain": ClosedForm(_gain, {"beta": _beta, "critical": _critical}),
}

BETWEEN = "the run points lie well to one side of the critical batch size or to the other"
DOMAINS = (
    "domain: batch_size -> beta in batch_size > critical",
    "domain: critical -> beta in batch_size < critical",
    "domain: critical -> beta in batch_size > critical",
    "domain: critical -> largest in batch_size > critical",
)
WIDER = "the second domain may be wider: where both hold the first one counts"

UNSEEN: dict[str, dict[str, tuple[str, ...]]] = {
    f"noise_scale/interpolating-{what}": {BETWEEN: DOMAINS[:3], WIDER: DOMAINS[3:]}
    for what in ("rate", "gain")
}
