"""Closed forms of what the Lanczos method sees."""

from tests.verify.claims.mutation import ClosedForm

__all__ = ["FORMS"]


def _share(zero, dim):
    return zero / dim


FORMS = {
    "granziol2022/degeneracy-of-exact-zeros": ClosedForm(_share),
}
