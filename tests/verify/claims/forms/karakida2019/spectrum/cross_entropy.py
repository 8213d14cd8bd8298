"""Closed forms of `verify.claims.karakida2019.spectrum.cross_entropy`."""

from simulate.monte_carlo import Point
from tests.verify.claims.closed_forms import A_NUMBER, order_parameters_of
from tests.verify.claims.mutation import ClosedForm, Quantity

__all__ = ["FORMS", "WITHOUT_FORM"]


def _entry(backward: str, forward: str) -> Quantity:
    """An entry of the Gram matrix: gradients by the weights, and by the biases."""

    def total(p: Point) -> float:
        m = order_parameters_of(p)
        back = getattr(m, backward)
        return float((back * (p["width"] * getattr(m, forward) + 1)).sum())

    return total


GRAM: dict[str, Quantity] = {
    "one": _entry("q_tilde_t", "q_hat_t"),
    "pair": _entry("q_tilde_st", "q_hat_st"),
}


def _quotient(one, pair, shared, own):
    """Entries of two samples carry `shared`; what those of one sample have beyond them carries `own`."""
    return pair * shared + (one - pair) * own


FORMS: dict[str, ClosedForm] = {
    "karakida2019/cross-entropy-trace": ClosedForm(lambda one, spread: one * spread, GRAM),
    "karakida2019/cross-entropy-rayleigh": ClosedForm(_quotient, GRAM),
}

WITHOUT_FORM: dict[str, str] = {
    "karakida2019/cross-entropy-largest": A_NUMBER,
    "karakida2019/cross-entropy-largest-order": A_NUMBER,
    "karakida2019/cross-entropy-outliers": A_NUMBER,
    "karakida2019/cross-entropy-last-outlier": "the prediction is one measured score, of the mean of Q",
}
