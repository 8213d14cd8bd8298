"""Closed forms of `verify.claims.karakida2019.layer_norm`."""

from tests.verify.claims.forms.karakida2019.layer_norm.layer_norm import unit_moments
from tests.verify.claims.mutation import ClosedForm, Quantity

__all__ = ["FORMS"]


def _variance(name: str) -> Quantity:
    """Of the outputs: of one, or of those of two samples together."""
    return lambda p: p.weight_variance * unit_moments(p)[name][-1] + p.bias_variance


def _eta1(outputs, q):
    return outputs / ((outputs - 3) * q)


FORMS = {"karakida2019/layer-norm-eta1": ClosedForm(_eta1, {"q": _variance("own")})}
