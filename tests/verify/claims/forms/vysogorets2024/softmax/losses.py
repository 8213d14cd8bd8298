"""Closed forms of `verify.claims.vysogorets2024.softmax.losses`."""

import sympy

from tests.verify.claims.mutation import ClosedForm, Quantity

__all__ = ["FORMS", "WITHOUT_FORM"]

LOSSES: dict[str, Quantity] = {f"f{k}": lambda p, k=k: p.prior[k] for k in range(3)}


def _jensen(f0, f1, f2, q0, q1, q2):
    return -(f0 * sympy.log(q0) + f1 * sympy.log(q1) + f2 * sympy.log(q2))


FORMS = {
    "vysogorets2024/balanced-loss": ClosedForm(
        lambda count, share: -count * share * sympy.log(share),
        {"count": lambda p: len(p.prior), "share": lambda p: p.prior[0]},
    ),
    "vysogorets2024/jensen-loss": ClosedForm(_jensen, LOSSES),
}

INTEGRAL = "an integral over products of averages, known by its value alone"

WITHOUT_FORM = {
    "vysogorets2024/balanced-loss-itself": INTEGRAL,
    "vysogorets2024/unbalanced-loss-itself": INTEGRAL,
}
