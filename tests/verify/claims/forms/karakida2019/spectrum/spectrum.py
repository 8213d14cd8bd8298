"""Closed forms of the claims on the Fisher spectrum without normalisation of Karakida, Akaho and Amari (2019)."""

from __future__ import annotations

from functools import cache

from simulate.monte_carlo import Point
from tests.verify.claims.mutation import ClosedForm, Quantity
from theory.order_parameters import OrderParameters, order_parameters

__all__ = ["ENTRIES", "FORMS"]


@cache
def _moments(activation: str, depth: int, weight_variance: float, bias_variance: float) -> OrderParameters:
    return order_parameters(
        activation, depth=depth, weight_variance=weight_variance, bias_variance=bias_variance
    )


def _of(p: Point) -> OrderParameters:
    return _moments(p.activation, p.depth, p.weight_variance, p.get("bias_variance", 0.0))


def _terms(backward: str, forward: str, first: int, last: int | None = None) -> Quantity:
    """A part of the sum over layers of alpha_{l-1} times backward times forward order parameter of the layer below."""

    def value(p: Point) -> float:
        m, ratios = _of(p), p.get("ratios", (1.0,) * p.depth)
        rows = zip(ratios, getattr(m, backward), getattr(m, forward), strict=True)
        return sum(float(a * t * h) for a, t, h in list(rows)[first:last])

    return value


def _biases(name: str) -> Quantity:
    return lambda p: float(getattr(_of(p), name).sum())


def _with_biases(entry: Quantity, biases: Quantity) -> Quantity:
    """What the weights of a layer or of all of them make of an entry of K / M, and the biases of all layers."""
    return lambda p: entry(p) + biases(p) / p.width


def _quantities(backward: str, forward: str) -> dict[str, Quantity]:
    return {
        "middle": _with_biases(_terms(backward, forward, 1, -1), _biases(backward)),
        "last": _terms(backward, forward, -1),
    }


ENTRIES: dict[str, Quantity] = {
    "alpha_kappa1": _terms("q_tilde_t", "q_hat_t", 0),
    "alpha_kappa2": _terms("q_tilde_st", "q_hat_st", 0),
    "bias1": _biases("q_tilde_t"),
    "bias2": _biases("q_tilde_st"),
}

SQUARE: dict[str, Quantity] = {
    "diagonal": _with_biases(ENTRIES["alpha_kappa1"], ENTRIES["bias1"]),
    "off_diagonal": _with_biases(ENTRIES["alpha_kappa2"], ENTRIES["bias2"]),
}


def _any_samples(samples, width, diagonal, off_diagonal):
    return width * (off_diagonal + (diagonal - off_diagonal) / samples)


FORMS: dict[str, ClosedForm] = {
    "karakida2019/uneven-kappa2": ClosedForm(
        lambda middle, last: middle + last, _quantities("q_tilde_st", "q_hat_st")
    ),
    "karakida2019/any-samples": ClosedForm(_any_samples, SQUARE),
}
