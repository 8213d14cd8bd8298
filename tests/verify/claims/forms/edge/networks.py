"""Closed forms for the claims on levels of curvature in training: two over the rate."""

from __future__ import annotations

from tests.verify.claims.mutation import ClosedForm

__all__ = ["FORMS"]

FORMS = {
    f"edge/{name}": ClosedForm(lambda rate: 2 / rate)
    for name in ("mean-of-batches-at-two-rates", "batch-sharpness-at-two-rates", "whole-hessian-under-sgd")
}
