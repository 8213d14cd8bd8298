"""Closed forms of `verify.claims.karakida2019.kernels.drawn`."""

from tests.verify.claims.closed_forms import A_NUMBER
from tests.verify.claims.mutation import ClosedForm

__all__ = ["FORMS", "WITHOUT_FORM"]


def _first(weight_variance, bias_variance):
    return weight_variance + bias_variance


FORMS = {"karakida2019/biases-of-a-layer": ClosedForm(_first)}
WITHOUT_FORM = {"karakida2019/kaiming-keeps-the-scale": A_NUMBER}
