"""Karakida, Akaho and Amari (2019): second moments that hold at any width, and with them the scale of what is drawn."""

from __future__ import annotations

from functools import cache

from simulate.monte_carlo import Point
from theory.order_parameters import order_parameters, preactivation_moment
from verify.model import AnyClaim

__all__ = ["CLAIMS"]

# --- biases --------------------------------------------------------------------------------------------------


# --- weights -------------------------------------------------------------------------------------------------


@cache
def _at_any_depth(depth: int) -> float:
    """Of rectifiers without biases whose weights have variance two over the fan-in."""
    below = order_parameters(activation="relu", depth=depth, weight_variance=2.0, bias_variance=0.0).q_hat_t
    return float(preactivation_moment(below[-1], weight_variance=2.0, bias_variance=0.0))


def _output(p: Point) -> float:
    return _at_any_depth(len(p.widths) - 1)


CLAIMS: tuple[AnyClaim, ...] = ()
