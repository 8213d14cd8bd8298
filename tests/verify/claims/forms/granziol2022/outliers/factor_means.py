"""Closed form of `verify.claims.granziol2022.outliers.factor_means`."""

from tests.verify.claims.mutation import ClosedForm

__all__ = ["FORMS"]

FORMS = {
    "granziol2022/mean-of-the-square": ClosedForm(
        lambda eigenvalue, sigma, squared_cosines: eigenvalue * squared_cosines + sigma**2
    ),
}
