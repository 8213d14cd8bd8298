"""Closed forms of the claims on rectangular noise at any ratio and spike, of Granziol, Zohren and Roberts (2022)."""

from __future__ import annotations

import sympy

from tests.verify.claims.mutation import ClosedForm, shared

__all__ = ["FORMS"]


def _additive_map(relative_spike, variance, dim, samples):
    root = shared(sympy.sqrt(dim / samples))
    spike = shared(relative_spike * root * (1 + root))
    return variance * (spike + spike / (spike - root**2))


def _information_map(relative_spike, variance, dim, samples):
    root = shared(sympy.sqrt(dim / samples))
    return variance * (1 + relative_spike * root) * (1 + root / relative_spike)


FORMS: dict[str, ClosedForm] = {
    "granziol2022/additive-wishart-map": ClosedForm(_additive_map),
    "granziol2022/information-map": ClosedForm(_information_map),
}
