"""Closed forms of `verify.claims.karakida2019.follow_ups`."""

from simulate.monte_carlo import Point
from tests.verify.claims.closed_forms import order_parameters_of
from tests.verify.claims.mutation import ClosedForm, Quantity

__all__ = [
    "FORMS",
]


def _tangent(backward: str, forward: str) -> Quantity:
    """Backward moment times the variance or covariance of the pre-activation, summed over the layers."""

    def total(p: Point) -> float:
        m = order_parameters_of(p)
        q = p["weight_variance"] * getattr(m, forward) + p["bias_variance"]
        return float((getattr(m, backward) * q).sum())

    return total


def _parameters(p: Point) -> int:
    return (p["depth"] - 1) * p["width"] * (p["width"] + 1) + p["outputs"] * (p["width"] + 1)


TANGENT: dict[str, Quantity] = {
    "own": _tangent("q_tilde_t", "q_hat_t"),
    "shared": _tangent("q_tilde_st", "q_hat_st"),
    "parameters": _parameters,
}


ENTRIES: dict[str, Quantity] = {k: v for k, v in TANGENT.items() if k != "parameters"}


def _second_moment(pairs, shared, own):
    return (pairs * shared**2 + own**2) / (own * (pairs * shared + own))


FORMS: dict[str, ClosedForm] = {
    "karakida2019/tangent-mean": ClosedForm(
        lambda outputs, parameters, own: outputs * own / parameters,
        {k: v for k, v in TANGENT.items() if k != "shared"},
    ),
    "karakida2019/tangent-rayleigh": ClosedForm(
        lambda samples, shared, own: (samples - 1) / samples * shared + own / samples,
        ENTRIES,
    ),
    "karakida2019/tangent-second-moment": ClosedForm(
        _second_moment, ENTRIES | {"pairs": lambda p: p["samples"] - 1}
    ),
}
