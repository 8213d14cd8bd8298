"""Closed forms of `verify.claims.granziol2022.noise.inequalities`."""

from tests.verify.claims.closed_forms import A_NUMBER

__all__ = ["WITHOUT_FORM"]

WITHOUT_FORM = {"granziol2022/frobenius-step": A_NUMBER}
