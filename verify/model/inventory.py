"""Papers, and the inventory of their statements, each with its status."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Status(StrEnum):
    """Status of an entry of the inventory, in the order of a count, judged ones first.

    *Judged* and *partly judged* follow from the claims that cover it.
    """

    JUDGED = "judged"
    PARTLY = "partly judged"
    OBSERVED = "observed"
    DEFINITION = "definition"
    OPEN = "open"
    NOT_CHECKABLE = "not checkable here"


class Paper(NamedTuple):
    """A source of statements.

    Attributes
    ----------
    id
        Its claims are called ``id/name``.
    authors, title
        Authors and title, as the report names them.
    family_error
        Chance that any directly judged claim of it is ever judged wrongly. The papers of this package share one, which
        none of them declares; every other paper declares its own.
    family_size
        Intervals that its claims may use: the error of one is the error of the family over this number.
    """

    id: str
    authors: str
    title: str
    family_error: float = 0.0
    family_size: int = 0

    def __str__(self) -> str:
        return self.authors

    @property
    def alpha(self) -> float:
        """Error of one interval, of a paper with a family of its own."""
        return self.family_error / self.family_size


class Entry(NamedTuple):
    """One statement, as the inventory lists it while nothing judges it.

    Attributes
    ----------
    status
        Its status while nothing judges or observes it.
    scope
        The part of it that claims judge, if not the whole: it is then *partly judged*.
    ours
        Whether the paper does not make it. It is then ours, or known elsewhere if all claims on it say so.
    """

    id: str
    title: str
    status: str = "open"
    reason: str = ""
    scope: str = ""
    ours: bool = False
